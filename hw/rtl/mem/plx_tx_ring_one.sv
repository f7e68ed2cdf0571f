// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// One transmit ring: fetches its descriptors, passes them to plx_tx_read, and reports their status by
// events. A packet begins only when there is a slot for an event at its end: so requested events,
// and events of packets that were not passed on, are never lost, and a full event queue stops only
// this ring.

module plx_tx_ring_one #(
    parameter DESCRIPTORS = 32  // descriptors that are fetched and not done, a power of two
) (
    input  logic         clk,
    input  logic         rst,
    input  logic [31:0]  now_cycle_ts,

    // Registers of the ring.
    input  logic [63:0]  cfg_base,
    input  logic         cfg_enable,
    input  logic [4:0]   cfg_log2_size,
    input  logic [31:0]  cfg_producer,
    input  logic         wr_producer,
    output logic [31:0]  sts_consumer,
    output logic         sts_idle,
    output logic         quiet,
    output logic         sts_error,

    // Descriptor requests, and their data, a word each.
    output logic         m_fetch_valid,
    input  logic         m_fetch_ready,
    output logic [63:0]  m_fetch_address,
    output logic [3:0]   m_fetch_count,
    input  logic         s_word_valid,
    input  logic [255:0] s_word,
    input  logic         s_word_last,
    input  logic         s_word_bad,

    // To plx_tx_read and back, and state of the packets in flight there and in plx_tx_fifo.
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

    // Packets that were passed on, and lost because no neighbour was found.
    input  logic         s_lost_valid,
    output logic         s_lost_ready,
    input  logic [15:0]  s_lost_count,
    input  logic [31:0]  s_lost_cookie,

    // Events: fields of TxSent, and the number of the event.
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

    // Counts.
    output logic         inc_packets,
    output logic [13:0]  inc_bytes,
    output logic         inc_bad,
    output logic         inc_read_failed
);
    localparam DW = $clog2(DESCRIPTORS);
    localparam LENGTH_AT = layouts_pkg::TX_DESCRIPTOR_LENGTH_AT;
    localparam FLAGS_AT = layouts_pkg::TX_DESCRIPTOR_FLAGS_AT;
    localparam COOKIE_AT = layouts_pkg::TX_DESCRIPTOR_COOKIE_AT;
    localparam [1:0] SENT = 2'd0, BAD = 2'd1, FAILED = 2'd2;
    localparam [2:0] STOPPED = 3'd3, UNRESOLVED = 3'd4;

    wire        accept, begins, running, fetching;
    wire [31:0] doorbell_ts;

    // ---- Descriptors that were fetched ------------------------------------------------------------

    wire  [15:0] word_flags = s_word[FLAGS_AT +: 16];
    wire  [31:0] word_length = s_word[LENGTH_AT +: 32];
    wire         word_last  = |(word_flags & layouts_pkg::TX_DESCRIPTOR_LAST);
    wire         word_asks  = word_last && |(word_flags & layouts_pkg::TX_DESCRIPTOR_EVENT);
    wire         in_line    = |(word_flags & layouts_pkg::TX_DESCRIPTOR_INLINE);
    // Slots with data behind a descriptor: for 1 to 32 bytes, 33 to 64.
    wire         too_long   = word_length[31:6] > 26'd1 || word_length[6] && word_length[5:0] != 0;
    wire         two        = word_length[6] || word_length[5] && word_length[4:0] != 0;
    wire  [1:0]  follow     = !in_line || too_long || word_length == 0 ? 2'd0 : two ? 2'd2 : 2'd1;

    // Of the descriptor whose data follow: how many slots; what its note says.
    logic [1:0]  left;
    logic        kept_asks;
    logic [31:0] kept_cookie;
    wire         is_data    = left != 0;
    wire         word_ends  = is_data ? left == 2'd1 : follow == 0 && (word_last || in_line);
    wire         word_event_req = is_data ? kept_asks && word_ends : word_asks && word_ends;
    wire  [31:0] word_cookie = is_data ? kept_cookie : s_word[COOKIE_AT +: 32];

    always_ff @(posedge clk) begin
        if (accept) left <= is_data ? left - 2'd1 : follow;
        if (rst || begins) left <= 2'd0;
    end

    always_ff @(posedge clk) if (accept && !is_data) begin
        kept_asks   <= word_asks;
        kept_cookie <= s_word[COOKIE_AT +: 32];
    end

    wire         tx_segment_valid, done_event_req, handed;
    wire  [31:0] done_cookie, done_doorbell_ts, done_fetched;
    wire  [DW:0] waiting, unhanded, untold;
    wire         tx_segments_free, notes_free, note_valid;

    plx_fifo_sync #(.WIDTH(258), .DEPTH(DESCRIPTORS)) tx_segments (
        .clk,
        .rst,
        .s_valid(accept),
        .s_ready(tx_segments_free),
        .s_data({is_data, word_ends, s_word}),
        .m_valid(tx_segment_valid),
        .m_ready(handed),
        .m_data({m_tx_segment_data, m_tx_segment_ends, m_tx_segment}),
        .level(unhanded)
    );

    // Fields that are kept of each until it is done.
    plx_fifo_sync #(.WIDTH(97), .DEPTH(DESCRIPTORS)) notes (
        .clk,
        .rst,
        .s_valid(accept),
        .s_ready(notes_free),
        .s_data({word_event_req, word_cookie, doorbell_ts, now_cycle_ts}),
        .m_valid(note_valid),
        .m_ready(s_done_valid),
        .m_data({done_event_req, done_cookie, done_doorbell_ts, done_fetched}),
        .level(waiting)
    );

    // ---- Passed on, while there is a slot for the packet's event ----------------------------------

    // Packets that have not ended, and events that have not left, as of a cycle ago; one is reserved for the
    // ring's end, and one because a loss may be reported in the cycle in which a packet begins.
    logic [DW:0]  tickets;
    logic         open, untold_end, event_left;
    wire  [15:0]  flags  = m_tx_segment[FLAGS_AT +: 16];
    wire          starts = !open || !m_tx_segment_data && |(flags & layouts_pkg::TX_DESCRIPTOR_FIRST);
    wire          place  = tickets < DESCRIPTORS[DW:0] - {{(DW - 1) {1'b0}}, 2'd2};

    assign m_tx_segment_valid = tx_segment_valid && (!starts || place);
    assign handed             = m_tx_segment_valid && m_tx_segment_ready;
    // Packets that the ring will not complete end now.
    // A cycle late: the next descriptor of a ring that starts takes several.
    always_ff @(posedge clk) m_tx_segment_flush <= !rst && (!running || sts_error) && !fetching && !tx_segment_valid;

    // ---- Done -------------------------------------------------------------------------------------

    // Since the last event; of the last descriptor, 0 before the first one.
    logic [31:0] packets, last_cookie, last_doorbell_ts, last_fetched;
    logic [63:0] bytes;
    logic        told, stop_due;
    // Notes wait: that of a descriptor that has not been done.
    logic        some_wait;

    wire         sent         = s_done_end && s_done_status == SENT;
    wire [31:0]  packets_next = packets + {31'd0, s_done_end};
    wire [63:0]  bytes_next   = bytes + (sent ? {48'd0, s_done_length} : 64'd0);
    wire [31:0]  cookie       = s_done_valid ? done_cookie : last_cookie;
    // No fetched descriptor is pending; no event is due.
    wire         read         = !some_wait && s_read_idle && !s_done_valid && !s_done_end;
    wire         settled      = tickets == 0 && !stop_due && sts_error == told;
    // The ring's end is reported after all other events.
    wire         stops          = stop_due && read && !fetching;
    wire         event_req      = s_done_end && (s_done_status != SENT || s_done_valid && done_event_req);
    wire         event_accepted = m_event_valid && m_event_ready;
    // Lost packets are reported in a cycle without another event.
    wire         loses        = s_lost_valid && s_lost_ready;
    wire         event_made   = event_req || stops || loses;

    assign s_lost_ready    = place && !s_done_end && !stop_due;

    assign inc_packets     = sent;
    assign inc_bytes       = sent ? s_done_length[13:0] : '0;
    assign inc_bad         = s_done_end && s_done_status == BAD;
    assign inc_read_failed = s_done_end && s_done_status == FAILED;

    always_ff @(posedge clk) begin
        some_wait <= !rst && (accept || (s_done_valid ? waiting > 1 : some_wait));
        tickets <= tickets + {{DW{1'b0}}, handed && starts} + {{DW{1'b0}}, stops} + {{DW{1'b0}}, loses}
                   - {{DW{1'b0}}, untold_end} - {{DW{1'b0}}, event_left};
        untold_end <= s_done_end && !event_req;
        event_left <= event_accepted;
        if (handed) open <= !m_tx_segment_ends;
        packets  <= event_req || stops ? '0 : packets_next;
        bytes    <= event_req || stops ? '0 : bytes_next;
        told     <= sts_error;
        stop_due <= (stop_due || sts_error && !told) && !stops;
        if (event_accepted) m_event_serial <= m_event_serial + 32'd1;
        if (s_done_valid) begin
            last_cookie      <= done_cookie;
            last_doorbell_ts <= done_doorbell_ts;
            last_fetched     <= done_fetched;
        end
        if (rst || begins) begin
            open             <= 1'b0;
            packets          <= '0;
            bytes            <= '0;
            m_event_serial   <= '0;
            last_cookie      <= '0;
            last_doorbell_ts <= '0;
            last_fetched     <= '0;
        end
        if (rst) begin
            tickets    <= '0;
            untold_end <= 1'b0;
            event_left <= 1'b0;
            told       <= 1'b0;
            stop_due   <= 1'b0;
        end
    end

    // ---- Events -----------------------------------------------------------------------------------

    wire  [95:0] stages = {now_cycle_ts, s_done_valid ? done_fetched : last_fetched,
                           s_done_valid ? done_doorbell_ts : last_doorbell_ts};
    wire         events_free, event_there;

    // As the queue says it, from a register.
    always_ff @(posedge clk) m_event_valid <= !rst && (event_made || (event_accepted ? untold > 1 : m_event_valid));

    plx_fifo_sync #(.WIDTH(275), .DEPTH(DESCRIPTORS)) events (
        .clk,
        .rst,
        .s_valid(event_made),
        .s_ready(events_free),
        .s_data({sts_consumer + {31'd0, s_done_valid}, s_done_end ? s_done_length : 16'd0,
                 loses ? {16'd0, s_lost_count} : packets_next,
                 loses ? UNRESOLVED : stops ? STOPPED : {1'b0, s_done_status}, loses ? s_lost_cookie : cookie,
                 loses ? 64'd0 : bytes_next, stages}),
        .m_valid(event_there),
        .m_ready(event_accepted),
        .m_data({m_event_index, m_event_length, m_event_packets, m_event_status, m_event_cookie, m_event_bytes,
                 m_event_stages}),
        .level(untold)
    );

    assign quiet    = read && settled && !fetching && !s_lost_valid;
    assign sts_idle = quiet && s_fifo_idle;

    // ---- Pointers ---------------------------------------------------------------------------------

    plx_tx_ring_fetch #(.DESCRIPTORS(DESCRIPTORS)) fetch (
        .clk,
        .rst,
        .now_cycle_ts,
        .cfg_base,
        .cfg_enable,
        .cfg_log2_size,
        .cfg_producer,
        .wr_producer,
        .m_fetch_valid,
        .m_fetch_ready,
        .m_fetch_address,
        .m_fetch_count,
        .s_word_valid,
        .s_word_last,
        .s_word_bad,
        .accept,
        .doorbell_ts,
        .s_done(s_done_valid),
        .s_quiet(read && settled),
        .consumer(sts_consumer),
        .begins,
        .running,
        .error(sts_error),
        .fetching
    );

    wire unused = &{1'b0, flags, word_flags, tx_segments_free, notes_free, note_valid, events_free, event_there,
                    unhanded};
endmodule
