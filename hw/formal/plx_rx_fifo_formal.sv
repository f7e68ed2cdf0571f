// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Any one payload leaves whole, in order and after its metadata, with its status; or it ends bad, or
// leaves no trace, and then it is reported as lost, once, unless it arrived bad. It contains no word
// of another payload. Neither queue is written when it is full, and nothing is lost while less than
// the fifo holds has arrived. An offer is stable until accepted. The clocks are unrelated.
// formal: aiger
// formal: edges
// formal: bounded 12
// formal: cover 16
// mutant: && (lost || full) => && full
// mutant: = write && free < 2 && !s_axis_payload_tlast => = 1'b0
// mutant: .s_valid(first && !refuse) => .s_valid(first)
// mutant: inc_overflow <= lost && !s_axis_payload_tuser => inc_overflow <= lost
// mutant: s_axis_payload_tlast && s_axis_payload_tuser); => s_axis_payload_tlast && lost);

module plx_rx_fifo_formal (
    input logic clk_net,
    input logic rst_net,
    input logic s_axis_payload_tvalid,
    input logic s_axis_payload_tlast,
    input logic s_axis_payload_tuser,
    input logic clk_core,
    input logic rst_core,
    input logic m_axis_payload_tready,
    input logic m_axis_meta_tready
);
    logic         inc_overflow, m_axis_payload_tvalid, m_axis_payload_tlast, m_axis_payload_tuser, m_axis_meta_tvalid;
    logic [63:0]  m_axis_payload_tdata;
    logic [7:0]   m_axis_payload_tkeep;
    logic [168:0] m_axis_meta_tdata;

    // A word is its payload's number, and its index in it.
    logic [3:0] coming = 0, word = 0;

    plx_rx_fifo #(.WORDS(4), .METAS(4)) dut (
        .*,
        .clear(1'b0),
        .s_axis_payload_tdata({56'd0, word, coming}),
        .s_axis_payload_tkeep(8'hFF),
        .s_axis_meta_tvalid(word == 0 && s_axis_payload_tvalid),
        .s_axis_meta_tdata({165'd0, coming})
    );

    (* gclk *) wire step;
    (* anyconst *) logic [3:0] who;

    // Each clock samples its reset, and then never again.
    logic net_seen = 0, core_seen = 0, net_runs = 0, core_runs = 0;
    always_ff @(posedge step) begin
        net_seen  <= net_seen || clk_net;
        core_seen <= core_seen || clk_core;
        net_runs  <= !rst_net;
        core_runs <= !rst_core;
    end
    always_comb begin
        assume (rst_net == !(net_seen && core_seen) && rst_core == !(net_seen && core_seen));
        if (rst_net) assume (!s_axis_payload_tvalid);
    end

    // Outcome: number of words, and whether they were good; reported as lost.
    logic [3:0] came, all = 0;
    logic       ended = 0, was_bad, lost = 0, just_ended = 0, just_bad, just_any = 0;
    always_ff @(posedge clk_net) if (!rst_net) begin
        just_any   <= s_axis_payload_tvalid && s_axis_payload_tlast;
        just_ended <= s_axis_payload_tvalid && s_axis_payload_tlast && coming == who;
        just_bad   <= s_axis_payload_tuser;
        if (s_axis_payload_tvalid) begin
            all    <= all + 1'b1;
            word   <= s_axis_payload_tlast ? 4'd0 : word + 1'b1;
            coming <= coming + {3'd0, s_axis_payload_tlast};
            if (s_axis_payload_tlast && coming == who) begin
                ended   <= 1'b1;
                came    <= word + 1'b1;
                was_bad <= s_axis_payload_tuser;
            end
        end
        if (just_ended && inc_overflow) lost <= 1'b1;
    end
    wire is_lost = lost || (just_ended && inc_overflow);

    // Output: the current payload, whether its metadata have been accepted, words so far.
    logic [3:0] turn, left = 0, next = 0;
    logic       has_meta = 0, good = 0, bad = 0;
    wire  [3:0] meta   = m_axis_meta_tdata[3:0];
    wire  [3:0] number = has_meta ? turn : meta;
    wire        leaves = m_axis_payload_tvalid && m_axis_payload_tready;

    always_ff @(posedge clk_core) if (!rst_core) begin
        if (m_axis_meta_tvalid && m_axis_meta_tready) begin
            turn     <= meta;
            has_meta <= 1'b1;
            next     <= meta + 1'b1;
        end
        if (leaves) begin
            left <= m_axis_payload_tlast ? 4'd0 : left + 1'b1;
            if (m_axis_payload_tlast) begin
                has_meta <= 1'b0;
                good     <= good || (number == who && !m_axis_payload_tuser);
                bad      <= bad || (number == who && m_axis_payload_tuser);
            end
        end
    end

    // Offers in the previous cycle.
    logic       word_stood = 0, meta_stood = 0, last_then, bad_then;
    logic [7:0] word_then;
    logic [3:0] meta_then;
    always_ff @(posedge step) begin
        word_stood <= !rst_core && m_axis_payload_tvalid && !(clk_core && m_axis_payload_tready);
        meta_stood <= !rst_core && m_axis_meta_tvalid && !(clk_core && m_axis_meta_tready);
        word_then  <= m_axis_payload_tdata[7:0];
        last_then  <= m_axis_payload_tlast;
        bad_then   <= m_axis_payload_tuser;
        meta_then  <= meta;
    end

    // Metadata are accepted with the last word at the latest.
    always_comb begin
        if (m_axis_payload_tvalid && m_axis_payload_tlast && !has_meta && !m_axis_meta_tready)
            assume (!m_axis_payload_tready);
    end

    always_comb if (net_runs && core_runs) begin
        if (inc_overflow) assert (just_any && !just_bad && all >= 4);
        if (m_axis_meta_tvalid) assert (!has_meta && meta >= next && meta <= coming);
        if (m_axis_payload_tvalid) begin
            assert (has_meta || m_axis_meta_tvalid);
            assert (m_axis_payload_tdata[7:0] == {left, number} && m_axis_payload_tkeep == 8'hFF);
        end
        if (leaves && m_axis_payload_tlast && number == who) begin
            if (!m_axis_payload_tuser) assert (ended && !was_bad && came == left + 1'b1);
            if (m_axis_payload_tuser && ended) assert (was_bad || is_lost);
        end
        assert (!(good && is_lost) && !(bad && ended && !was_bad && !is_lost));
        // It left no trace, and a later payload is next.
        if (next > who && !good && !bad && !(has_meta && turn == who)) assert (ended && (was_bad || is_lost));
        if (word_stood)
            assert (m_axis_payload_tvalid && m_axis_payload_tdata[7:0] == word_then
                    && m_axis_payload_tlast == last_then && m_axis_payload_tuser == bad_then);
        if (meta_stood) assert (m_axis_meta_tvalid && meta == meta_then);
        cover (good && who == 1);
        cover (bad && is_lost && who == 1 && left != 0);
        cover (is_lost && !bad && next > who);
    end
endmodule
