// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The transmit rings of all ports, as in APEnet: software posts descriptors and writes their number
// once; the card reads them, several at once, and reports the number done. This module merges their
// requests to one client of plx_rd_mux, and their events to one source of plx_event_writer, round robin.

module plx_tx_ring #(
    parameter PORTS       = 4,  // rings: one for each port
    parameter DESCRIPTORS = 64  // of a ring, that are fetched and not done, a power of two
) (
    input  logic                    clk,
    input  logic                    rst,
    input  logic [63:0]             now_cycle_ts,

    // Registers of the rings.
    input  logic [PORTS*64-1:0]     cfg_ring_base,
    input  logic [PORTS-1:0]        cfg_ring_ctrl_enable,
    input  logic [PORTS*5-1:0]      cfg_ring_ctrl_log2_size,
    input  logic [PORTS*8-1:0]      cfg_ring_ctrl_queue,
    input  logic [PORTS*32-1:0]     cfg_ring_producer,
    input  logic [PORTS-1:0]        wr_ring_producer,
    output logic [PORTS*32-1:0]     sts_ring_consumer,
    output logic [PORTS-1:0]        sts_ring_status_idle,
    output logic [PORTS-1:0]        sts_ring_status_error,
    output logic [PORTS-1:0]        sts_ring_status_no_event,

    // Rings whose function is being reset: their events are thrown away. Nothing of a ring is fetched, or
    // to be reported; its packets may still wait for the wire.
    input  logic [PORTS-1:0]        forget,
    output logic [PORTS-1:0]        quiet,

    // Reads of descriptors; the tag is the ring. A word of the data is a descriptor.
    output logic                    m_desc_valid,
    input  logic                    m_desc_ready,
    output logic [63:0]             m_desc_address,
    output logic [15:0]             m_desc_length,
    output logic [3:0]              m_desc_tag,
    input  logic                    s_data_tvalid,
    output logic                    s_data_tready,
    input  logic [255:0]            s_data_tdata,
    input  logic                    s_data_tlast,
    input  logic                    s_data_tuser,
    input  logic [3:0]              s_data_tag,

    // Descriptors to plx_tx_read of each port, and slots with data of a packet; which they are, and whether
    // they end a packet; their completion, and state of the packets in flight.
    output logic [PORTS-1:0]        m_tx_segment_valid,
    input  logic [PORTS-1:0]        m_tx_segment_ready,
    output logic [PORTS*256-1:0]    m_tx_segment,
    output logic [PORTS-1:0]        m_tx_segment_data,
    output logic [PORTS-1:0]        m_tx_segment_ends,
    output logic [PORTS-1:0]        m_tx_segment_flush,
    input  logic [PORTS-1:0]        s_done_valid,
    input  logic [PORTS-1:0]        s_done_end,
    input  logic [PORTS*2-1:0]      s_done_status,
    input  logic [PORTS*16-1:0]     s_done_length,
    input  logic [PORTS-1:0]        s_read_idle,
    input  logic [PORTS-1:0]        s_fifo_idle,

    // Packets that were passed on, and lost because no neighbour was found: their number, the cookie of
    // the last one.
    input  logic [PORTS-1:0]        s_lost_valid,
    output logic [PORTS-1:0]        s_lost_ready,
    input  logic [PORTS*16-1:0]     s_lost_count,
    input  logic [PORTS*32-1:0]     s_lost_cookie,

    // Events: the queue of each ring, and in the next cycle whether it has room.
    output logic [PORTS*8-1:0]      m_room_queue,
    input  logic [PORTS-1:0]        s_room,
    output logic                    m_event_valid,
    input  logic                    m_event_ready,
    output logic [7:0]              m_event_queue,
    output logic [511:0]            m_event_record,

    // Counts, of each ring.
    output logic [PORTS-1:0]        inc_packets,
    output logic [PORTS*14-1:0]     inc_bytes,
    output logic [PORTS-1:0]        inc_bad,
    output logic [PORTS-1:0]        inc_read_failed
);
    generate
        if (PORTS < 1 || PORTS > 16) PORTS_must_be_1_to_16 parameter_error ();
    endgenerate

    // Fields of an event: index, length, packets, status, cookie, bytes, stages, serial.
    localparam EVENT_W = 32 + 16 + 32 + 3 + 32 + 64 + 96 + 32;

    // An arbiter needs at least two requesters.
    localparam ASKERS = PORTS < 2 ? 2 : PORTS;

    wire [PORTS-1:0]     fetch_valid, event_valid, idle, at_rest;
    wire [PORTS*64-1:0]  fetch_address;
    wire [PORTS*4-1:0]   fetch_count;
    wire [PORTS*EVENT_W-1:0] event_fields;
    wire [PORTS*4-1:0]   number;
    // Queues of which it is known whether they have room.
    logic [PORTS*8-1:0]  asked;
    wire [PORTS-1:0]     allowed = s_room;

    assign m_room_queue = cfg_ring_ctrl_queue;
    always_ff @(posedge clk) asked <= cfg_ring_ctrl_queue;

    // ---- Arbitration ------------------------------------------------------------------------------

    logic [ASKERS-1:0] fetch_turn, event_turn;
    wire               fetch_free = !m_desc_valid || m_desc_ready;
    // `room` is valid again when the last event has been accepted.
    wire  [PORTS-1:0]  event_req      = event_valid & allowed & ~forget & {PORTS{!m_event_valid}};

    plx_arb_rr #(.N(ASKERS)) fetches (.clk, .rst, .request(ASKERS'(fetch_valid)), .grant(fetch_turn), .done(fetch_free));
    plx_arb_rr #(.N(ASKERS)) events (.clk, .rst, .request(ASKERS'(event_req)), .grant(event_turn), .done(1'b1));

    integer i;
    logic [63:0]  address;
    logic [3:0]   count, tag, ring;
    logic [7:0]   queue;
    logic [EVENT_W-1:0] fields;
    always_comb begin
        address = '0;
        count   = '0;
        tag     = '0;
        queue   = '0;
        ring    = '0;
        fields  = '0;
        for (i = 0; i < PORTS; i = i + 1) begin
            address = address | (fetch_address[i*64 +: 64] & {64{fetch_turn[i]}});
            count   = count | (fetch_count[i*4 +: 4] & {4{fetch_turn[i]}});
            tag     = tag | (number[i*4 +: 4] & {4{fetch_turn[i]}});
            queue   = queue | (asked[i*8 +: 8] & {8{event_turn[i]}});
            ring    = ring | (number[i*4 +: 4] & {4{event_turn[i]}});
            fields  = fields | (event_fields[i*EVENT_W +: EVENT_W] & {EVENT_W{event_turn[i]}});
        end
    end

    wire [31:0] index, packets, cookie, serial;
    wire [15:0] length;
    wire [2:0]  status;
    wire [63:0] bytes;
    wire [95:0] stages;
    assign {index, length, packets, status, cookie, bytes, stages, serial} = fields;

    // Slots for the data are free.
    assign s_data_tready = 1'b1;

    always_ff @(posedge clk) begin
        if (fetch_free) m_desc_valid <= |fetch_turn;
        if (m_event_ready) m_event_valid <= 1'b0;
        if (|event_turn) m_event_valid <= 1'b1;
        if (rst) begin
            m_desc_valid  <= 1'b0;
            m_event_valid <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        if (fetch_free) begin
            m_desc_address <= address;
            m_desc_length  <= {7'd0, count, 5'd0};
            m_desc_tag     <= tag;
        end
        if (|event_turn) begin
            m_event_queue                                                <= queue;
            m_event_record                                               <= '0;
            m_event_record[layouts_pkg::EVENT_RECORD_INDEX_AT +: 32]     <= index;
            m_event_record[layouts_pkg::EVENT_RECORD_LENGTH_AT +: 16]    <= length;
            m_event_record[layouts_pkg::TX_SENT_PACKETS_AT +: 32]        <= packets;
            m_event_record[layouts_pkg::TX_SENT_STATUS_AT +: 3]          <= status;
            m_event_record[layouts_pkg::TX_SENT_COOKIE_AT +: 32]         <= cookie;
            m_event_record[layouts_pkg::TX_SENT_BYTES_AT +: 64]          <= bytes;
            m_event_record[layouts_pkg::TX_SENT_STAGES_AT +: 96]         <= stages;
            m_event_record[layouts_pkg::EVENT_RECORD_SEQUENCE_AT +: 32]  <= serial;
            m_event_record[layouts_pkg::EVENT_RECORD_STREAM_AT +: 4]     <= ring;
            m_event_record[layouts_pkg::EVENT_RECORD_KIND_AT +: 8]       <= layouts_pkg::TX_SENT_KIND;
        end
    end

    // ---- The rings ----------------------------------------------------------------------------------

    generate
        for (genvar p = 0; p < PORTS; p = p + 1) begin : g_ring
            localparam [3:0] RING = p;
            wire [31:0] e_index, e_packets, e_cookie, e_serial;
            wire [15:0] e_length;
            wire [2:0]  e_status;
            wire [63:0] e_bytes;
            wire [95:0] e_stages;
            assign event_fields[p*EVENT_W +: EVENT_W] = {e_index, e_length, e_packets, e_status, e_cookie, e_bytes,
                                                         e_stages, e_serial};
            assign number[p*4 +: 4] = RING;
            assign sts_ring_status_no_event[p] = event_valid[p] && !allowed[p];
            // Its last event has been accepted by plx_event_writer. Software sees it a cycle later.
            assign quiet[p] = at_rest[p] && !m_event_valid;
            always_ff @(posedge clk) sts_ring_status_idle[p] <= idle[p] && !m_event_valid;

            plx_tx_ring_one #(.DESCRIPTORS(DESCRIPTORS)) one (
                .clk,
                .rst,
                .now_cycle_ts(now_cycle_ts[31:0]),
                .cfg_base(cfg_ring_base[p*64 +: 64]),
                .cfg_enable(cfg_ring_ctrl_enable[p]),
                .cfg_log2_size(cfg_ring_ctrl_log2_size[p*5 +: 5]),
                .cfg_producer(cfg_ring_producer[p*32 +: 32]),
                .wr_producer(wr_ring_producer[p]),
                .sts_consumer(sts_ring_consumer[p*32 +: 32]),
                .sts_idle(idle[p]),
                .quiet(at_rest[p]),
                .sts_error(sts_ring_status_error[p]),
                .m_fetch_valid(fetch_valid[p]),
                .m_fetch_ready(fetch_turn[p] && fetch_free),
                .m_fetch_address(fetch_address[p*64 +: 64]),
                .m_fetch_count(fetch_count[p*4 +: 4]),
                .s_word_valid(s_data_tvalid && s_data_tag == RING),
                .s_word(s_data_tdata),
                .s_word_last(s_data_tlast),
                .s_word_bad(s_data_tuser),
                .m_tx_segment_valid(m_tx_segment_valid[p]),
                .m_tx_segment_ready(m_tx_segment_ready[p]),
                .m_tx_segment(m_tx_segment[p*256 +: 256]),
                .m_tx_segment_data(m_tx_segment_data[p]),
                .m_tx_segment_ends(m_tx_segment_ends[p]),
                .m_tx_segment_flush(m_tx_segment_flush[p]),
                .s_done_valid(s_done_valid[p]),
                .s_done_end(s_done_end[p]),
                .s_done_status(s_done_status[p*2 +: 2]),
                .s_done_length(s_done_length[p*16 +: 16]),
                .s_read_idle(s_read_idle[p]),
                .s_fifo_idle(s_fifo_idle[p]),
                .s_lost_valid(s_lost_valid[p]),
                .s_lost_ready(s_lost_ready[p]),
                .s_lost_count(s_lost_count[p*16 +: 16]),
                .s_lost_cookie(s_lost_cookie[p*32 +: 32]),
                .m_event_valid(event_valid[p]),
                .m_event_ready(event_turn[p] || forget[p]),
                .m_event_index(e_index),
                .m_event_length(e_length),
                .m_event_packets(e_packets),
                .m_event_status(e_status),
                .m_event_cookie(e_cookie),
                .m_event_bytes(e_bytes),
                .m_event_stages(e_stages),
                .m_event_serial(e_serial),
                .inc_packets(inc_packets[p]),
                .inc_bytes(inc_bytes[p*14 +: 14]),
                .inc_bad(inc_bad[p]),
                .inc_read_failed(inc_read_failed[p])
            );
        end
    endgenerate

    wire unused = &{1'b0, now_cycle_ts[63:32]};
endmodule
