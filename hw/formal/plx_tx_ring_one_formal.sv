// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Around any plx_tx_ring_fetch that does what its proof says, and any plx_tx_read that reports each descriptor and each
// packet once and in order:
// - Descriptors, and slots with data behind them, are passed on in order, once; which they are, and where a packet ends.
// - Each packet that was not passed on, or whose event was requested, is reported once, in order, with the descriptors
//   done, and the packets and bytes since the last report; each loss and each stop too, the stop when all is done.
// - No event is lost: a packet begins, and a loss is accepted, only with a slot for an event; none waits without need.
// - `quiet` only when nothing is fetched, waits, is to be reported or was reported and has not left; `flush` only when
//   no descriptor follows. Events have consecutive numbers since the ring was enabled; each packet is counted once.
// formal: aiger
// formal: induction 2
// formal: cover 10
// mutant: && (!starts || place); => ;
// mutant: {{(DW - 1) {1'b0}}, 2'd2} => {{(DW - 1) {1'b0}}, 2'd1}
// mutant: = place && !s_done_end && !stop_due; => = !s_done_end && !stop_due;
// mutant: = place && !s_done_end && !stop_due; => = place && !stop_due;
// mutant: = place && !s_done_end && !stop_due; => = place && !s_done_end;
// mutant: word_length[6] && word_length[5:0] != 0; => 1'b0;
// mutant: word_length[31:6] > 26'd1 || => 1'b0 ||
// mutant: word_length[5] && word_length[4:0] != 0; => word_length[5];
// mutant: follow == 0 && (word_last || in_line) => follow == 0 && word_last
// mutant: is_data ? kept_asks && word_ends : => is_data ? kept_asks :
// mutant: is_data ? kept_cookie : s_word => s_word
// mutant: {word_event_req, word_cookie, doorbell_ts, now_cycle_ts} => {word_event_req, word_cookie, now_cycle_ts, doorbell_ts}
// mutant: .s_data({is_data, word_ends, s_word}) => .s_data({1'b0, word_ends, s_word})
// mutant: = !open || !m_tx_segment_data && => = !open || 1'b0 &&
// mutant: = !open || !m_tx_segment_data && => = !open ||
// mutant: = !some_wait && s_read_idle && !s_done_valid => = s_read_idle && !s_done_valid
// mutant: = !some_wait && s_read_idle && !s_done_valid => = !some_wait && !s_done_valid
// mutant: = tickets == 0 && !stop_due && sts_error == told; => = !stop_due && sts_error == told;
// mutant: = tickets == 0 && !stop_due && sts_error == told; => = tickets == 0 && sts_error == told;
// mutant: = tickets == 0 && !stop_due && sts_error == told; => = tickets == 0 && !stop_due;
// mutant: = stop_due && read && !fetching; => = stop_due && read;
// mutant: s_done_valid && done_event_req); => done_event_req);
// mutant: (s_done_status != SENT || => (s_done_status == BAD ||
// mutant: packets  <= event_req || stops => packets  <= event_req
// mutant: bytes    <= event_req || stops => bytes    <= stops
// mutant: sent ? {48'd0, s_done_length} : 64'd0 => s_done_end ? {48'd0, s_done_length} : 64'd0
// mutant: = event_req || stops || loses; => = event_req || stops;
// mutant: event_accepted ? untold > 1 : => event_accepted ? untold > 2 :
// mutant: sts_consumer + {31'd0, s_done_valid}, => sts_consumer,
// mutant: loses ? 64'd0 : bytes_next => bytes_next
// mutant: loses ? {16'd0, s_lost_count} : => 1'b0 ? {16'd0, s_lost_count} :
// mutant: if (event_accepted) m_event_serial => if (event_made) m_event_serial
// mutant: !running || sts_error) && !fetching && !tx_segment_valid => !running || sts_error) && !fetching
// mutant: !running || sts_error) && !fetching && !tx_segment_valid => !running || sts_error) && !tx_segment_valid
// mutant: read && settled && !fetching && !s_lost_valid; => read && settled && !fetching;
// mutant: read && settled && !fetching && !s_lost_valid; => read && settled && !s_lost_valid;
// mutant: quiet && s_fifo_idle => quiet
// mutant: if (rst || begins) left <= 2'd0; => if (rst) left <= 2'd0;
// mutant: untold_end <= s_done_end && !event_req; => untold_end <= 1'b0;
// mutant: if (rst || begins) begin => if (rst) begin
// mutant: inc_bad         = s_done_end && => inc_bad         =

// What its proof allows: no more descriptors than there are slots; it restarts when nothing is open.
module plx_tx_ring_fetch #(
    parameter DESCRIPTORS = 32
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [31:0] now_cycle_ts,
    input  logic [63:0] cfg_base,
    input  logic        cfg_enable,
    input  logic [4:0]  cfg_log2_size,
    input  logic [31:0] cfg_producer,
    input  logic        wr_producer,
    output logic        m_fetch_valid,
    input  logic        m_fetch_ready,
    output logic [63:0] m_fetch_address,
    output logic [3:0]  m_fetch_count,
    input  logic        s_word_valid,
    input  logic        s_word_last,
    input  logic        s_word_bad,
    output logic        accept,
    output logic [31:0] doorbell_ts,
    input  logic        s_done,
    input  logic        s_quiet,
    output logic [31:0] consumer,
    output logic        begins,
    output logic        running,
    output logic        error,
    output logic        fetching
);
    (* anyseq *) wire goes_on, refuses;
    (* anyseq *) wire [1:0] rung;
    logic       lost;
    logic [2:0] in_use;

    assign {m_fetch_valid, m_fetch_address, m_fetch_count} = 69'd0;
    assign doorbell_ts = {{16{rung[1]}}, {16{rung[0]}}};
    assign accept      = s_word_valid && !s_word_bad && !lost;
    assign begins      = cfg_enable && !running && !fetching && s_quiet;

    always_comb begin
        if (s_word_valid) assume (fetching);
        if (accept) assume (in_use < DESCRIPTORS);
    end

    always_ff @(posedge clk) begin
        running  <= !rst && cfg_enable && (running || begins);
        fetching <= !rst && goes_on && (fetching || cfg_enable && running && !error);
        in_use   <= rst ? 3'd0 : in_use + {2'd0, accept} - {2'd0, s_done};
        if (s_done) consumer <= consumer + 32'd1;
        if (running && refuses) error <= 1'b1;
        if (s_word_valid && s_word_bad) {error, lost} <= 2'b11;
        if (rst || begins) begin
            consumer      <= 32'd0;
            {error, lost} <= 2'b00;
        end
    end
endmodule

// As in hw/rtl, but the words move, the first of them in the lowest bits.
module plx_fifo_sync #(
    parameter WIDTH = 64,
    parameter DEPTH = 16
) (
    input  logic                   clk,
    input  logic                   rst,
    input  logic                   s_valid,
    output logic                   s_ready,
    input  logic [WIDTH-1:0]       s_data,
    output logic                   m_valid,
    input  logic                   m_ready,
    output logic [WIDTH-1:0]       m_data,
    output logic [$clog2(DEPTH):0] level
);
    // No word is read before it is written.
    logic [DEPTH*WIDTH-1:0] words = 0;
    wire write = s_valid && s_ready, take = m_valid && m_ready;

    assign s_ready = level < DEPTH;
    assign m_valid = level != 0;
    assign m_data  = words[WIDTH-1:0];

    generate
        for (genvar i = 0; i < DEPTH; i = i + 1) begin : g_word
            localparam NEXT = i + 1 < DEPTH ? i + 1 : i;
            always_ff @(posedge clk) begin
                if (write && level - take == i) words[i*WIDTH +: WIDTH] <= s_data;
                else if (take) words[i*WIDTH +: WIDTH] <= words[NEXT*WIDTH +: WIDTH];
            end
        end
    endgenerate

    always_ff @(posedge clk) level <= rst ? '0 : level + {2'd0, write} - {2'd0, take};
endmodule

module plx_tx_ring_one_formal (
    input logic       clk,
    input logic       rst,
    input logic [1:0] now,
    input logic       cfg_enable,
    input logic       s_word_valid,
    input logic       s_word_bad,
    input logic [2:0] word_length,
    input logic [3:0] word_flags,
    input logic [1:0] word_cookie,
    input logic       m_tx_segment_ready,
    input logic       s_done_valid,
    input logic       s_done_end,
    input logic [1:0] s_done_status,
    input logic [3:0] done_length,
    input logic       s_read_idle,
    input logic       s_fifo_idle,
    input logic       s_lost_valid,
    input logic [1:0] lost_count,
    input logic [1:0] lost_cookie,
    input logic       m_event_ready
);
    localparam [2:0] SENT = 3'd0, BAD = 3'd1, FAILED = 3'd2, STOPPED = 3'd3, UNRESOLVED = 3'd4;
    localparam [3:0] SLOTS = 4;

    // A few values of each field.
    logic [31:0]  s_lost_cookie, now_cycle_ts, cookie_field;
    logic [15:0]  s_lost_count, s_done_length, flags;
    logic [31:0]  bytes_field;
    logic [255:0] s_word;
    always_comb begin
        case (word_length)
            0: bytes_field = 32'd0;
            1: bytes_field = 32'd1;
            2: bytes_field = 32'd32;
            3: bytes_field = 32'd33;
            4: bytes_field = 32'd64;
            5: bytes_field = 32'd65;
            6: bytes_field = 32'h10000;
            default: bytes_field = 32'd128;
        endcase
        cookie_field  = {{16{word_cookie[1]}}, {16{word_cookie[0]}}};
        flags         = (word_flags[0] ? layouts_pkg::TX_DESCRIPTOR_FIRST : 16'd0)
                        | (word_flags[1] ? layouts_pkg::TX_DESCRIPTOR_LAST : 16'd0)
                        | (word_flags[2] ? layouts_pkg::TX_DESCRIPTOR_EVENT : 16'd0)
                        | (word_flags[3] ? layouts_pkg::TX_DESCRIPTOR_INLINE : 16'd0);
        s_word        = 256'd0;
        s_word[layouts_pkg::TX_DESCRIPTOR_LENGTH_AT +: 32] = bytes_field;
        s_word[layouts_pkg::TX_DESCRIPTOR_FLAGS_AT +: 16]  = flags;
        s_word[layouts_pkg::TX_DESCRIPTOR_COOKIE_AT +: 32] = cookie_field;
        s_lost_cookie = {{16{lost_cookie[1]}}, {16{lost_cookie[0]}}};
        s_lost_count  = {14'd0, lost_count};
        s_done_length = {4'd0, {8{done_length[3]}}, 1'b0, done_length[2:0]};
        now_cycle_ts  = {{16{now[1]}}, {16{now[0]}}};
    end

    logic [31:0]  sts_consumer, m_event_index, m_event_packets, m_event_cookie, m_event_serial;
    logic [63:0]  m_fetch_address, m_event_bytes;
    logic [95:0]  m_event_stages;
    logic [255:0] m_tx_segment;
    logic [15:0]  m_event_length;
    logic [13:0]  inc_bytes;
    logic [3:0]   m_fetch_count;
    logic [2:0]   m_event_status;
    logic         sts_idle, quiet, sts_error, m_fetch_valid, m_tx_segment_valid, m_tx_segment_data, m_tx_segment_ends,
                  m_tx_segment_flush, s_lost_ready, m_event_valid, inc_packets, inc_bad, inc_read_failed;

    plx_tx_ring_one #(.DESCRIPTORS(4)) dut (
        .*, .cfg_base(64'd0), .cfg_log2_size(5'd4), .cfg_producer(32'd0), .wr_producer(1'b0), .m_fetch_ready(1'b0),
        .s_word_last(1'b0)
    );

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire          \dut.accept , \dut.begins , \dut.running , \dut.fetching ;
    (* hierconn *) wire [31:0]   \dut.doorbell_ts ;
    (* hierconn *) wire [2:0]    \dut.fetch.in_use ;
    (* hierconn *) wire [2:0]    \dut.tx_segments.level , \dut.notes.level , \dut.events.level ;
    (* hierconn *) wire [1031:0] \dut.tx_segments.words ;
    (* hierconn *) wire [387:0]  \dut.notes.words ;
    (* hierconn *) wire          \dut.events.s_valid ;
    (* hierconn *) wire [274:0]  \dut.events.s_data , \dut.events.m_data ;
    (* hierconn *) wire [2:0]    \dut.tickets ;
    (* hierconn *) wire          \dut.open , \dut.untold_end , \dut.event_left , \dut.told , \dut.stop_due , \dut.some_wait ;
    (* hierconn *) wire [1:0]    \dut.left ;
    (* hierconn *) wire          \dut.kept_asks ;
    (* hierconn *) wire [31:0]   \dut.kept_cookie , \dut.packets , \dut.last_cookie , \dut.last_fetched ;
    (* hierconn *) wire [31:0]   \dut.last_doorbell_ts ;
    (* hierconn *) wire [63:0]   \dut.bytes ;
    wire       accept = \dut.accept , begins = \dut.begins , running = \dut.running , fetching = \dut.fetching ;
    // Descriptors that wait to be passed on, that are not done; events that have not left.
    wire [2:0] waiting = \dut.tx_segments.level , undone = \dut.notes.level , unread = \dut.events.level ;

    logic started = 0;
    always_ff @(posedge clk) started <= 1'b1;

    // ---- Descriptors that are accepted --------------------------------------------------------------

    // Slots with data that follow; of their descriptor: its event is requested, its cookie.
    logic [1:0]  follow = 0;
    logic        asks;
    logic [31:0] cookie;
    wire         flags_last = word_flags[1], flags_event = word_flags[2], flags_inline = word_flags[3];
    wire  [1:0]  slots = flags_inline && bytes_field != 0 && bytes_field <= 64 ? (bytes_field > 32 ? 2'd2 : 2'd1) : 2'd0;
    wire         is_data = follow != 0;
    wire         is_end  = is_data ? follow == 1 : slots == 0 && (flags_last || flags_inline);
    wire         is_asked = is_end && (is_data ? asks : flags_last && flags_event);
    wire [31:0]  its_cookie = is_data ? cookie : cookie_field;

    always_ff @(posedge clk) begin
        if (accept) follow <= is_data ? follow - 2'd1 : slots;
        if (accept && !is_data) {asks, cookie} <= {flags_last && flags_event, cookie_field};
        if (rst || begins) follow <= 2'd0;
    end

    // Those that wait to be passed on; what is to be known of each until it is done.
    logic [1031:0] segments = 0;
    logic [387:0]  notes = 0;
    wire           passes = m_tx_segment_valid && m_tx_segment_ready;
    wire  [2:0]    segment_at = waiting - {2'd0, passes}, note_at = undone - {2'd0, s_done_valid};
    generate
        for (genvar i = 0; i < 4; i = i + 1) begin : g_slot
            localparam NEXT = i < 3 ? i + 1 : 3;
            always_ff @(posedge clk) begin
                if (accept && segment_at == i) segments[258*i +: 258] <= {is_data, is_end, s_word};
                else if (passes) segments[258*i +: 258] <= segments[258*NEXT +: 258];
                if (accept && note_at == i) notes[97*i +: 97] <= {is_asked, its_cookie, \dut.doorbell_ts , now_cycle_ts};
                else if (s_done_valid) notes[97*i +: 97] <= notes[97*NEXT +: 97];
            end
            always_comb if (started) begin
                if (waiting > i) assert (\dut.tx_segments.words [258*i +: 258] == segments[258*i +: 258]);
                if (undone > i) assert (\dut.notes.words [97*i +: 97] == notes[97*i +: 97]);
            end
        end
    endgenerate
    wire        done_asked = notes[96];
    wire [31:0] done_cookie = notes[95:64], done_doorbell = notes[63:32], done_fetched = notes[31:0];

    // ---- Packets in plx_tx_read -----------------------------------------------------------------------

    // Descriptors, packets that have not been reported; the last packet has no end; it was flushed.
    logic [2:0] inside = 0, packets_inside = 0;
    logic       open = 0, flushed = 0;
    wire        is_first = !m_tx_segment_data && |(m_tx_segment[layouts_pkg::TX_DESCRIPTOR_FLAGS_AT +: 16]
                                                   & layouts_pkg::TX_DESCRIPTOR_FIRST);
    wire        starts = passes && (!open || is_first);

    always_ff @(posedge clk) begin
        inside         <= rst ? 3'd0 : inside + {2'd0, passes} - {2'd0, s_done_valid};
        packets_inside <= rst ? 3'd0 : packets_inside + {2'd0, starts} - {2'd0, s_done_end};
        if (passes) open <= !m_tx_segment_ends;
        flushed <= !rst && !begins && (flushed || m_tx_segment_flush && !passes);
        if (rst || begins) open <= 1'b0;
    end

    logic       was_lost = 0;
    logic [1:0] was_count, was_cookie;
    always_ff @(posedge clk) begin
        was_lost   <= !rst && s_lost_valid && !s_lost_ready;
        was_count  <= lost_count;
        was_cookie <= lost_cookie;
    end

    always_comb begin
        if (!started) assume (rst);
        assume (s_done_status <= 2'd2);
        if (s_done_valid) assume (inside != 0);
        // An open packet ends by the next one, or by a flush.
        if (s_done_end) assume (packets_inside > {2'd0, open && !flushed});
        if (s_read_idle) assume (inside == {2'd0, s_done_valid} && packets_inside == {2'd0, s_done_end});
        if (was_lost) assume (s_lost_valid && lost_count == was_count && lost_cookie == was_cookie);
    end

    // ---- Reports -----------------------------------------------------------------------------------------

    // Of the ring, since it was enabled: done; since the last event; of the last descriptor; events that have left.
    logic [31:0] done = 0, packets = 0, last_cookie = 0, last_doorbell = 0, last_fetched = 0, serial = 0;
    logic [63:0] bytes = 0;
    logic        was_error = 0, stop = 0;

    wire [31:0] packets_now = packets + {31'd0, s_done_end};
    wire [63:0] bytes_now   = bytes + (s_done_end && s_done_status == 0 ? {48'd0, s_done_length} : 64'd0);
    wire [31:0] done_now    = done + {31'd0, s_done_valid};
    wire [95:0] stages      = {now_cycle_ts, s_done_valid ? {done_fetched, done_doorbell} : {last_fetched, last_doorbell}};
    wire [31:0] cookie_now  = s_done_valid ? done_cookie : last_cookie;
    // Each that is not passed on, and each that requests one: plx_tx_read reports its descriptor with its end.
    wire        of_packet   = s_done_end && s_done_status != 0 || s_done_valid && done_asked;
    always_comb if (s_done_valid && done_asked) assume (s_done_end);
    wire        nothing     = inside == 0 && packets_inside == 0 && waiting == 0 && undone == 0 && !fetching;
    wire        of_loss     = s_lost_valid && s_lost_ready;
    wire        of_stop     = stop && s_read_idle && undone == 0 && !fetching && !s_done_end;
    wire        made        = \dut.events.s_valid ;
    wire        leaves      = m_event_valid && m_event_ready;

    always_ff @(posedge clk) begin
        done    <= done_now;
        packets <= of_packet || of_stop ? 32'd0 : packets_now;
        bytes   <= of_packet || of_stop ? 64'd0 : bytes_now;
        if (s_done_valid) {last_cookie, last_fetched, last_doorbell} <= {done_cookie, done_fetched, done_doorbell};
        if (leaves) serial <= serial + 32'd1;
        was_error <= sts_error;
        stop      <= (stop || sts_error && !was_error) && !of_stop;
        if (rst || begins) begin
            {done, packets, last_cookie, last_doorbell, last_fetched, serial} <= 192'd0;
            bytes <= 64'd0;
        end
        if (rst) {was_error, stop} <= 2'b00;
    end

    // Of the last cycle.
    logic         was_offered = 0, was_ended;
    logic [306:0] was_event;
    wire  [306:0] event_now = {m_event_index, m_event_length, m_event_packets, m_event_status, m_event_cookie, m_event_bytes,
                               m_event_stages, m_event_serial};
    always_ff @(posedge clk) begin
        was_offered <= !rst && m_event_valid && !m_event_ready;
        was_event   <= event_now;
        was_ended   <= !rst && (!running || sts_error) && !fetching && waiting == 0;
    end

    always_comb if (started && !rst) begin
        // Slots: none is lost.
        if (accept) assert (waiting < SLOTS && undone < SLOTS);
        assert (!m_tx_segment_valid || waiting != 0);
        if (m_tx_segment_valid) assert ({m_tx_segment_data, m_tx_segment_ends, m_tx_segment} == segments[257:0]);
        // Whatever is not reported has a slot. None waits without need.
        if (made) assert (unread < SLOTS);
        if (starts) assert (packets_inside + unread < SLOTS - 1);
        if (waiting != 0 && (open && !is_first || \dut.tickets < 2)) assert (m_tx_segment_valid);
        assert (\dut.tickets <= {1'b0, packets_inside} + unread + 2);
        // Events.
        assert ({2'd0, of_packet} + of_stop + of_loss <= 1 && made == (of_packet || of_stop || of_loss));
        if (of_packet) assert (\dut.events.s_data == {done_now, s_done_length, packets_now, 1'b0, s_done_status, cookie_now,
                                                      bytes_now, stages});
        if (of_stop) assert (nothing && \dut.events.s_data == {done_now, 16'd0, packets, STOPPED, cookie_now, bytes, stages});
        if (of_loss) assert (\dut.events.s_data == {done_now, 16'd0, 16'd0, s_lost_count, UNRESOLVED, s_lost_cookie, 64'd0,
                                                    stages});
        assert (m_event_valid == (unread != 0) && m_event_serial == serial);
        if (m_event_valid) assert (event_now == {\dut.events.m_data , serial});
        if (was_offered) assert (m_event_valid && event_now == was_event);
        assert (inc_packets == (s_done_end && s_done_status == 0) && inc_bad == (s_done_end && s_done_status == 1)
                && inc_read_failed == (s_done_end && s_done_status == 2));
        assert (inc_bytes == (inc_packets ? s_done_length[13:0] : 14'd0));
        assert (sts_consumer == done);
        // A loss is accepted if there is a slot, and nothing else to report.
        if (s_lost_valid && \dut.tickets < 2 && !s_done_end && !stop && was_error == sts_error) assert (s_lost_ready);
        // At rest.
        if (quiet) assert (nothing && unread == 0 && !s_lost_valid && !stop && (!sts_error || was_error));
        if (begins) assert (nothing && unread == 0 && !stop);
        if (sts_idle) assert (quiet && s_fifo_idle);
        if (m_tx_segment_flush) assert (was_ended && !m_tx_segment_valid);

        cover (of_packet && s_done_status == 0 && packets == 1 && bytes != 0);
        cover (of_packet && !s_done_valid && serial == 1);
        cover (of_stop && unread == 2);
        cover (of_loss && starts);
        cover (unread == SLOTS);
        cover (begins && sts_error);
        cover (m_tx_segment_valid && m_tx_segment_data && m_tx_segment_ends && waiting == 1);
        cover (waiting != 0 && !m_tx_segment_valid);
    end

    // ---- What makes it inductive --------------------------------------------------------------------------

    always_comb if (started) begin
        assert (undone == \dut.fetch.in_use && {1'b0, undone} == {1'b0, waiting} + {1'b0, inside});
        assert (undone <= SLOTS && unread <= SLOTS && waiting <= SLOTS && inside <= SLOTS && packets_inside <= SLOTS);
        assert (\dut.left == follow && \dut.open == open && \dut.some_wait == (undone != 0));
        if (follow != 0) assert (\dut.kept_asks == asks && \dut.kept_cookie == cookie);
        assert ({1'b0, \dut.tickets } == {1'b0, packets_inside} + {1'b0, unread} + {3'd0, \dut.untold_end }
                + {3'd0, \dut.event_left });
        assert (\dut.tickets <= 3 + {2'd0, sts_error && was_error && !stop});
        assert ({\dut.packets , \dut.last_cookie , \dut.last_doorbell_ts , \dut.last_fetched }
                == {packets, last_cookie, last_doorbell, last_fetched} && \dut.bytes == bytes);
        assert (\dut.told == was_error && \dut.stop_due == stop);
        if (stop) assert (sts_error && was_error);
        if (was_error) assert (sts_error || packets_inside == 0 && waiting == 0);
    end
endmodule
