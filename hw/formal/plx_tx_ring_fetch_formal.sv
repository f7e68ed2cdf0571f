// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Descriptors are requested in order, once, inside the ring, never before they are posted, and
// never more than there are slots for, for any producer index; an impossible index changes
// nothing and stops the ring. A stopped or disabled ring makes no new request, and restarts
// only when no request is pending.
// formal: words
// formal: bounded 10
// formal: cover 13
// mutant: ahead > size || ahead < known => ahead > size
// mutant: open > 1 : some_open => open != 0 : some_open

module plx_tx_ring_fetch_formal (
    input logic        clk,
    input logic        rst,
    input logic        cfg_enable,
    input logic [5:0]  producer,
    input logic        wild,
    input logic        wr_producer,
    input logic        m_fetch_ready,
    input logic        s_word_valid,
    input logic        s_word_bad,
    input logic        s_done,
    input logic        quiet
);
    // Slots for 8 descriptors, of a ring of 16.
    localparam [31:0] PLACES = 8;

    logic        m_fetch_valid, accept, begins, running, error, fetching, s_word_last, s_quiet;
    logic [63:0] m_fetch_address;
    logic [3:0]  m_fetch_count;
    logic [31:0] doorbell_ts, consumer, cfg_producer;

    plx_tx_ring_fetch #(.DESCRIPTORS(PLACES)) dut (.*, .now_cycle_ts(32'd0), .cfg_base(64'd0), .cfg_log2_size(5'd4));

    logic started = 0;
    always_ff @(posedge clk) started <= 1'b1;
    always_comb assume (rst == !started);

    // The producer's register, which changes with the doorbell.
    logic [31:0] register = 0;
    assign cfg_producer = wr_producer ? {wild, 25'd0, producer} : register;
    always_ff @(posedge clk) if (wr_producer) register <= cfg_producer;

    // Words of at most two requests, in order; accepted descriptors that are not done.
    wire         asks = m_fetch_valid && m_fetch_ready;
    logic [31:0] asked = 0, accepted = 0, done = 0;
    logic [3:0]  first = 0, second = 0;
    logic        bad_seen = 0;
    assign s_word_last = s_word_bad || first == 1;
    assign s_quiet     = quiet && accepted == done;

    wire word_ends = s_word_valid && s_word_last;
    wire is_forwarded   = m_fetch_valid && !m_fetch_ready;
    logic        stood = 0, off = 0;
    logic [63:0] address;
    logic [3:0]  count;

    always_ff @(posedge clk) if (started) begin
        if (word_ends) begin
            first  <= second != 0 ? second : asks ? m_fetch_count : 4'd0;
            second <= second != 0 && asks ? m_fetch_count : 4'd0;
        end else begin
            if (s_word_valid) first <= first - 4'd1;
            if (asks && first == 0) first <= m_fetch_count;
            else if (asks) second <= m_fetch_count;
        end
        if (asks) asked <= asked + {28'd0, m_fetch_count};
        if (accept) accepted <= accepted + 32'd1;
        if (s_done) done <= done + 32'd1;
        if (s_word_valid && s_word_bad) bad_seen <= 1'b1;
        if (begins) begin
            asked    <= 32'd0;
            accepted    <= 32'd0;
            done     <= 32'd0;
            bad_seen <= 1'b0;
        end
        stood   <= is_forwarded;
        address <= m_fetch_address;
        count   <= m_fetch_count;
        off     <= !cfg_enable || error;
    end

    always_comb if (started) begin
        if (s_word_valid) assume (first != 0);
        if (m_fetch_ready) assume (second == 0);
        if (s_done) assume (accepted != done);
    end

    always_comb if (started) begin
        assert (asked - done <= PLACES && accepted - done <= PLACES);
        assert (consumer == done);
        if (m_fetch_valid) begin
            assert (m_fetch_count >= 1 && m_fetch_count <= 8);
            assert (m_fetch_address[63:9] == 0 && m_fetch_address[8:0] == {asked[3:0], 5'd0});
            // None across a multiple of 8, so none across the end of the ring.
            assert ({1'b0, asked[2:0]} + m_fetch_count <= 8);
            assert (asked + {28'd0, m_fetch_count} - done <= PLACES);
        end
        if (stood) assert (m_fetch_valid && m_fetch_address == address && m_fetch_count == count);
        if (off && !stood) assert (!m_fetch_valid);
        if (accept) assert (!bad_seen && !s_word_bad);
        if (begins) assert (!running && !fetching && accepted == done);
        assert (fetching == (m_fetch_valid || first != 0));
        cover (asked == 9 && consumer > 2);
        cover (error && !bad_seen && consumer > 1);
        cover (begins && bad_seen);
    end
endmodule
