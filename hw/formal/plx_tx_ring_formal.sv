// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Around any three plx_tx_ring_one:
// - Each request of a ring leaves once, with its address, length and the ring as its tag, unchanged until accepted; a
//   ring waits for at most one request of each other. A word of the data reaches the ring of its tag, and no other.
// - Each event of a ring leaves once, as a record of its fields, its number and its queue, unchanged until accepted: when
//   none is in flight, and the queue that was asked for in the cycle before has space. A ring whose queue has space
//   waits for at most one event of each other.
// - Events of a ring in `forget` are thrown away at once, and no other's. No ring is `quiet` or idle while a record waits.
// - Each ring has its own registers, segments, reports and counts.
// formal: aiger
// formal: always 8
// formal: cover 8
// mutant: (fetch_address[i*64 +: 64] & {64{fetch_turn[i]}}) => fetch_address[i*64 +: 64]
// mutant: (fetch_count[i*4 +: 4] & {4{fetch_turn[i]}}) => fetch_count[i*4 +: 4]
// mutant: (number[i*4 +: 4] & {4{fetch_turn[i]}}) => (number[i*4 +: 4] & {4{fetch_valid[i]}})
// mutant: (asked[i*8 +: 8] & {8{event_turn[i]}}) => (cfg_ring_ctrl_queue[i*8 +: 8] & {8{event_turn[i]}})
// mutant: (number[i*4 +: 4] & {4{event_turn[i]}}) => (number[i*4 +: 4] & {4{event_valid[i]}})
// mutant: (event_fields[i*EVENT_W +: EVENT_W] & {EVENT_W{event_turn[i]}}) => event_fields[i*EVENT_W +: EVENT_W]
// mutant: = !m_desc_valid || m_desc_ready; => = 1'b1;
// mutant: = !m_desc_valid || m_desc_ready; => = !m_desc_valid;
// mutant: event_valid & allowed & ~forget & {PORTS{!m_event_valid}}; => event_valid & allowed & ~forget;
// mutant: event_valid & allowed & ~forget & {PORTS{!m_event_valid}}; => event_valid & allowed & {PORTS{!m_event_valid}};
// mutant: event_valid & allowed & ~forget & {PORTS{!m_event_valid}}; => event_valid & ~forget & {PORTS{!m_event_valid}};
// mutant: .request(ASKERS'(fetch_valid)), => .request(ASKERS'(fetch_valid[0] ? 'd1 : fetch_valid)),
// mutant: .request(ASKERS'(event_req)), => .request(ASKERS'(event_req[0] ? 'd1 : event_req)),
// mutant: if (fetch_free) m_desc_valid <= |fetch_turn; => if (fetch_free) m_desc_valid <= |fetch_valid && !m_desc_valid;
// mutant: if (m_event_ready) m_event_valid <= 1'b0; => m_event_valid <= 1'b0;
// mutant: event_turn[p] || forget[p] => event_turn[p]
// mutant: event_turn[p] || forget[p] => event_turn[p] || |forget
// mutant: fetch_turn[p] && fetch_free => fetch_turn[p]
// mutant: s_data_tvalid && s_data_tag == RING => s_data_tvalid
// mutant: at_rest[p] && !m_event_valid; => at_rest[p];
// mutant: <= idle[p] && !m_event_valid; => <= idle[p];
// mutant: event_valid[p] && !allowed[p]; => event_valid[p];
// mutant: cfg_ring_base[p*64 +: 64] => cfg_ring_base[0 +: 64]
// mutant: s_lost_cookie[p*32 +: 32] => s_lost_cookie[0 +: 32]
// mutant: s_done_status[p*2 +: 2] => s_done_status[p +: 2]
// mutant: {7'd0, count, 5'd0} => {8'd0, count, 4'd0}

// A ring that requests and reports what it likes; its offers stand until accepted.
module plx_tx_ring_one #(
    parameter DESCRIPTORS = 32
) (
    input  logic         clk,
    input  logic         rst,
    input  logic [31:0]  now_cycle_ts,
    input  logic [63:0]  cfg_base,
    input  logic         cfg_enable,
    input  logic [4:0]   cfg_log2_size,
    input  logic [31:0]  cfg_producer,
    input  logic         wr_producer,
    output logic [31:0]  sts_consumer,
    output logic         sts_idle,
    output logic         quiet,
    output logic         sts_error,
    output logic         m_fetch_valid,
    input  logic         m_fetch_ready,
    output logic [63:0]  m_fetch_address,
    output logic [3:0]   m_fetch_count,
    input  logic         s_word_valid,
    input  logic [255:0] s_word,
    input  logic         s_word_last,
    input  logic         s_word_bad,
    output logic         m_tx_segment_valid,
    input  logic         m_tx_segment_ready,
    output logic [255:0] m_tx_segment,
    output logic         m_tx_segment_data,
    output logic         m_tx_segment_ends,
    output logic         m_tx_segment_flush,
    input  logic         s_done_valid,
    input  logic         s_done_end,
    input  logic [1:0]   s_done_status,
    input  logic [15:0]  s_done_length,
    input  logic         s_read_idle,
    input  logic         s_fifo_idle,
    input  logic         s_lost_valid,
    output logic         s_lost_ready,
    input  logic [15:0]  s_lost_count,
    input  logic [31:0]  s_lost_cookie,
    output logic         m_event_valid,
    input  logic         m_event_ready,
    output logic [31:0]  m_event_index,
    output logic [15:0]  m_event_length,
    output logic [31:0]  m_event_packets,
    output logic [2:0]   m_event_status,
    output logic [31:0]  m_event_cookie,
    output logic [63:0]  m_event_bytes,
    output logic [95:0]  m_event_stages,
    output logic [31:0]  m_event_serial,
    output logic         inc_packets,
    output logic [13:0]  inc_bytes,
    output logic         inc_bad,
    output logic         inc_read_failed
);
    // A field has two bits, which repeat.
    (* anyseq *) wire [11:0] fetch;
    (* anyseq *) wire [16:0] fields;
    (* anyseq *) wire        fetches, reports;
    (* anyseq *) wire [312:0] rest;
    logic        fetch_waits = 0, event_waits = 0;
    logic [11:0] was_fetch;
    logic [16:0] was_fields;

    // What goes in, to be compared.
    wire [464:0] goes_in = {now_cycle_ts, cfg_base, cfg_enable, cfg_log2_size, cfg_producer, wr_producer, s_word_last,
                            s_word_bad, m_tx_segment_ready, s_done_valid, s_done_end, s_done_status, s_done_length, s_read_idle,
                            s_fifo_idle, s_lost_valid, s_lost_count, s_lost_cookie, s_word};

    assign m_fetch_valid = fetches;
    assign {m_fetch_address, m_fetch_count} = {{8{fetch[11:4]}}, fetch[3:0]};
    assign m_event_valid = reports;
    assign m_event_index   = {16{fields[1:0]}};
    assign m_event_length  = {8{fields[3:2]}};
    assign m_event_packets = {16{fields[5:4]}};
    assign m_event_status  = fields[8:6];
    assign m_event_cookie  = {16{fields[10:9]}};
    assign m_event_bytes   = {32{fields[12:11]}};
    assign m_event_stages  = {48{fields[14:13]}};
    assign m_event_serial  = {16{fields[16:15]}};
    assign {sts_consumer, sts_idle, quiet, sts_error, m_tx_segment_valid, m_tx_segment, m_tx_segment_data, m_tx_segment_ends,
            m_tx_segment_flush, s_lost_ready, inc_packets, inc_bytes, inc_bad, inc_read_failed} = rest;

    always_comb begin
        if (fetch_waits) assume (fetches && fetch == was_fetch);
        if (event_waits) assume (reports && fields == was_fields);
    end
    always_ff @(posedge clk) begin
        fetch_waits <= !rst && m_fetch_valid && !m_fetch_ready;
        event_waits <= !rst && m_event_valid && !m_event_ready;
        was_fetch   <= fetch;
        was_fields  <= fields;
    end
endmodule

module plx_tx_ring_formal (
    input logic         clk,
    input logic         rst,
    input logic [63:0]  now_cycle_ts,
    input logic [191:0] cfg_ring_base,
    input logic [2:0]   cfg_ring_ctrl_enable,
    input logic [14:0]  cfg_ring_ctrl_log2_size,
    input logic [23:0]  cfg_ring_ctrl_queue,
    input logic [95:0]  cfg_ring_producer,
    input logic [2:0]   wr_ring_producer,
    input logic [2:0]   forget,
    input logic         m_desc_ready,
    input logic         s_data_tvalid,
    input logic [255:0] s_data_tdata,
    input logic         s_data_tlast,
    input logic         s_data_tuser,
    input logic [3:0]   s_data_tag,
    input logic [2:0]   m_tx_segment_ready,
    input logic [2:0]   s_done_valid,
    input logic [2:0]   s_done_end,
    input logic [5:0]   s_done_status,
    input logic [47:0]  s_done_length,
    input logic [2:0]   s_read_idle,
    input logic [2:0]   s_fifo_idle,
    input logic [2:0]   s_lost_valid,
    input logic [47:0]  s_lost_count,
    input logic [95:0]  s_lost_cookie,
    input logic [2:0]   s_room,
    input logic         m_event_ready
);
    logic [95:0]  sts_ring_consumer;
    logic [2:0]   sts_ring_status_idle, sts_ring_status_error, sts_ring_status_no_event, quiet;
    logic         m_desc_valid, s_data_tready, m_event_valid;
    logic [63:0]  m_desc_address;
    logic [15:0]  m_desc_length;
    logic [3:0]   m_desc_tag;
    logic [2:0]   m_tx_segment_valid, m_tx_segment_data, m_tx_segment_ends, m_tx_segment_flush, s_lost_ready;
    logic [767:0] m_tx_segment;
    logic [23:0]  m_room_queue;
    logic [7:0]   m_event_queue;
    logic [511:0] m_event_record;
    logic [2:0]   inc_packets, inc_bad, inc_read_failed;
    logic [41:0]  inc_bytes;

    plx_tx_ring #(.PORTS(3)) dut (.*);

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire \dut.g_ring[0].one.m_fetch_valid ,
                        \dut.g_ring[1].one.m_fetch_valid , \dut.g_ring[2].one.m_fetch_valid ;
    wire [2:0] fetches = {\dut.g_ring[2].one.m_fetch_valid ,
                          \dut.g_ring[1].one.m_fetch_valid , \dut.g_ring[0].one.m_fetch_valid };
    (* hierconn *) wire \dut.g_ring[0].one.m_fetch_ready ,
                        \dut.g_ring[1].one.m_fetch_ready , \dut.g_ring[2].one.m_fetch_ready ;
    wire [2:0] fetch_readies = {\dut.g_ring[2].one.m_fetch_ready ,
                                \dut.g_ring[1].one.m_fetch_ready , \dut.g_ring[0].one.m_fetch_ready };
    (* hierconn *) wire [11:0] \dut.g_ring[0].one.fetch ,
                        \dut.g_ring[1].one.fetch , \dut.g_ring[2].one.fetch ;
    wire [35:0] offers = {\dut.g_ring[2].one.fetch , \dut.g_ring[1].one.fetch , \dut.g_ring[0].one.fetch };
    (* hierconn *) wire \dut.g_ring[0].one.m_event_valid ,
                        \dut.g_ring[1].one.m_event_valid , \dut.g_ring[2].one.m_event_valid ;
    wire [2:0] reports = {\dut.g_ring[2].one.m_event_valid ,
                          \dut.g_ring[1].one.m_event_valid , \dut.g_ring[0].one.m_event_valid };
    (* hierconn *) wire \dut.g_ring[0].one.m_event_ready ,
                        \dut.g_ring[1].one.m_event_ready , \dut.g_ring[2].one.m_event_ready ;
    wire [2:0] event_readies = {\dut.g_ring[2].one.m_event_ready ,
                                \dut.g_ring[1].one.m_event_ready , \dut.g_ring[0].one.m_event_ready };
    (* hierconn *) wire [16:0] \dut.g_ring[0].one.fields ,
                        \dut.g_ring[1].one.fields , \dut.g_ring[2].one.fields ;
    wire [50:0] says = {\dut.g_ring[2].one.fields , \dut.g_ring[1].one.fields , \dut.g_ring[0].one.fields };
    (* hierconn *) wire \dut.g_ring[0].one.s_word_valid ,
                        \dut.g_ring[1].one.s_word_valid , \dut.g_ring[2].one.s_word_valid ;
    wire [2:0] words = {\dut.g_ring[2].one.s_word_valid ,
                        \dut.g_ring[1].one.s_word_valid , \dut.g_ring[0].one.s_word_valid };
    (* hierconn *) wire [312:0] \dut.g_ring[0].one.rest ,
                        \dut.g_ring[1].one.rest , \dut.g_ring[2].one.rest ;
    wire [938:0] rests = {\dut.g_ring[2].one.rest , \dut.g_ring[1].one.rest , \dut.g_ring[0].one.rest };
    (* hierconn *) wire [464:0] \dut.g_ring[0].one.goes_in ,
                        \dut.g_ring[1].one.goes_in , \dut.g_ring[2].one.goes_in ;
    wire [1394:0] inputs = {\dut.g_ring[2].one.goes_in , \dut.g_ring[1].one.goes_in , \dut.g_ring[0].one.goes_in };

    logic started = 0;
    always_ff @(posedge clk) started <= 1'b1;

    // ---- What each ring has to itself -----------------------------------------------------------------

    generate
        for (genvar p = 0; p < 3; p = p + 1) begin : g_ring
            wire [312:0] rest = rests[313*p +: 313];
            wire [464:0] to_it = {now_cycle_ts[31:0], cfg_ring_base[64*p +: 64], cfg_ring_ctrl_enable[p],
                                  cfg_ring_ctrl_log2_size[5*p +: 5], cfg_ring_producer[32*p +: 32], wr_ring_producer[p],
                                  s_data_tlast, s_data_tuser, m_tx_segment_ready[p], s_done_valid[p], s_done_end[p],
                                  s_done_status[2*p +: 2], s_done_length[16*p +: 16], s_read_idle[p], s_fifo_idle[p],
                                  s_lost_valid[p], s_lost_count[16*p +: 16], s_lost_cookie[32*p +: 32], s_data_tdata};
            logic was_idle;
            always_ff @(posedge clk) was_idle <= rest[280] && !m_event_valid;
            always_comb if (started && !rst) begin
                assert (inputs[465*p +: 465] == to_it);
                assert ({sts_ring_consumer[32*p +: 32], sts_ring_status_error[p], m_tx_segment_valid[p],
                         m_tx_segment[256*p +: 256], m_tx_segment_data[p], m_tx_segment_ends[p], m_tx_segment_flush[p],
                         s_lost_ready[p], inc_packets[p], inc_bytes[14*p +: 14], inc_bad[p], inc_read_failed[p]}
                        == {rest[312:281], rest[278:0]});
                assert (words[p] == (s_data_tvalid && s_data_tag == p));
                assert (quiet[p] == (rest[279] && !m_event_valid) && sts_ring_status_idle[p] == was_idle);
                assert (sts_ring_status_no_event[p] == (reports[p] && !s_room[p]));
            end
        end
    endgenerate

    // ---- Any one ring --------------------------------------------------------------------------------------

    (* anyconst *) logic [1:0] who;
    logic        desc_due = 0, event_due = 0, desc_stood = 0, event_stood = 0;
    logic [11:0] fetch;
    logic [16:0] fields;
    logic [7:0]  queue, was_queue;
    logic [83:0] was_desc;
    logic [519:0] was_event;
    // Requests and events of others that went first.
    logic [1:0]  fetch_others = 0, event_others = 0;

    wire [2:0] fetched = fetches & fetch_readies, ready = reports & s_room & ~forget;
    // Those of `forget` do not become records.
    wire [2:0] reported = reports & event_readies & ~forget;
    wire       asks = ready[who] && !m_event_valid;

    always_comb assume (who < 3 && (started || rst));

    always_ff @(posedge clk) begin
        was_queue   <= cfg_ring_ctrl_queue[8*who +: 8];
        desc_stood  <= !rst && m_desc_valid && !m_desc_ready;
        event_stood <= !rst && m_event_valid && !m_event_ready;
        was_desc    <= {m_desc_address, m_desc_length, m_desc_tag};
        was_event   <= {m_event_queue, m_event_record};
        if (m_desc_ready) desc_due <= 1'b0;
        if (m_event_ready) event_due <= 1'b0;
        if (fetched[who]) {desc_due, fetch} <= {1'b1, offers[12*who +: 12]};
        if (reported[who]) {event_due, fields, queue} <= {1'b1, says[17*who +: 17], was_queue};
        if (!fetches[who] || fetched[who]) fetch_others <= 2'd0;
        else if (fetched != 0) fetch_others <= fetch_others + 2'd1;
        if (reported[who] || !m_event_valid && !asks) event_others <= 2'd0;
        else if (reported != 0) event_others <= event_others + 2'd1;
        if (rst) begin
            {desc_due, event_due}        <= 2'b00;
            {fetch_others, event_others} <= 4'd0;
        end
    end

    logic [511:0] record;
    always_comb begin
        record = 512'd0;
        record[layouts_pkg::EVENT_RECORD_INDEX_AT +: 32]    = {16{fields[1:0]}};
        record[layouts_pkg::EVENT_RECORD_LENGTH_AT +: 32]   = {16'd0, {8{fields[3:2]}}};
        record[layouts_pkg::TX_SENT_PACKETS_AT +: 32]       = {16{fields[5:4]}};
        record[layouts_pkg::TX_SENT_STATUS_AT +: 32]        = {29'd0, fields[8:6]};
        record[layouts_pkg::TX_SENT_COOKIE_AT +: 32]        = {16{fields[10:9]}};
        record[layouts_pkg::TX_SENT_BYTES_AT +: 64]         = {32{fields[12:11]}};
        record[layouts_pkg::TX_SENT_STAGES_AT +: 96]        = {48{fields[14:13]}};
        record[layouts_pkg::EVENT_RECORD_SEQUENCE_AT +: 32] = {16{fields[16:15]}};
        record[layouts_pkg::EVENT_RECORD_STREAM_AT +: 16]   = {14'd0, who};
        record[layouts_pkg::EVENT_RECORD_KIND_AT +: 8]      = layouts_pkg::TX_SENT_KIND;
    end

    always_comb if (started && !rst) begin
        assert (s_data_tready && m_room_queue == cfg_ring_ctrl_queue);
        // Requests: of one ring at a time, into an empty register, and none waits beside an empty one.
        assert ((fetched & (fetched - 3'd1)) == 0 && (fetched == 0 || !m_desc_valid || m_desc_ready));
        if ((!m_desc_valid || m_desc_ready) && fetches != 0) assert (fetched != 0);
        assert (desc_due == (m_desc_valid && m_desc_tag == {2'd0, who}));
        if (m_desc_valid) assert (m_desc_tag < 3);
        if (desc_due) assert (m_desc_address == {8{fetch[11:4]}} && m_desc_length == {7'd0, fetch[3:0], 5'd0});
        if (desc_stood) assert (m_desc_valid && {m_desc_address, m_desc_length, m_desc_tag} == was_desc);
        assert (fetch_others <= 2);
        if (fetch_others == 2 && fetched != 0) assert (fetched[who]);
        // Events.
        assert ((reported & (reported - 3'd1)) == 0 && (reported & ~s_room) == 0 && (reported == 0 || !m_event_valid));
        if (!m_event_valid && ready != 0) assert (reported != 0);
        if (forget[who]) assert (event_readies[who]);
        assert (event_due == (m_event_valid && m_event_record[layouts_pkg::EVENT_RECORD_STREAM_AT +: 16] == {14'd0, who}));
        if (event_due) assert (m_event_record == record && m_event_queue == queue);
        if (event_stood) assert (m_event_valid && {m_event_queue, m_event_record} == was_event);
        assert (event_others <= 2);
        if (event_others == 2 && asks) assert (reported[who]);

        cover (fetch_others == 2 && fetched[who]);
        cover (event_others == 2 && reported[who]);
        cover (forget[who] && reports[who] && reported != 0);
        cover (event_stood && event_due && desc_due && desc_stood);
    end
endmodule
