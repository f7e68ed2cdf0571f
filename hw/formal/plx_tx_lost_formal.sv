// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Losses have numbers, which are their cookies: each report covers those behind the one of the report before, to
// that of its cookie, so none is uncounted and none counted twice, between any two clocks; `busy` until the last
// one is in the queue. Behind a reset reports begin with the first loss behind it. Not more than 65535 losses are
// added up, where the count stays. The ports' reset is within that of the core's side, which lasts until
// the ports' clock has sampled it: the queue requires it.
// formal: edges
// formal: words
// formal: abstract plx_fifo_async
// formal: induction 2
// formal: cover 14
// mutant: count <= {15'd0, s_lost_valid}; => count <= 16'd0;
// mutant: count <= {15'd0, s_lost_valid}; => count <= 16'd1;
// mutant: s_lost_valid && !(&count) => s_lost_valid && !count[1]
// mutant: passes  = pending && ready; => passes  = 1'b0;
// mutant: else if (passes) count => else if (passes && !s_lost_valid) count
// mutant: if (s_lost_valid) cookie => if (s_lost_valid && !pending) cookie
// mutant: .s_valid(pending) => .s_valid(pending && m_lost_ready)
// mutant: busy = s_lost_valid || pending; => busy = s_lost_valid;
// mutant: busy = s_lost_valid || pending; => busy = pending;
// mutant: if (rst_net) count <= 16'd0; => if (1'b0) count <= 16'd0;

module plx_tx_lost_formal (
    input logic clk_net,
    input logic rst_net,
    input logic s_lost_valid,
    input logic clk_core,
    input logic rst_core,
    input logic m_lost_ready
);
    (* gclk *) wire step;

    logic        busy, m_lost_valid;
    logic [15:0] m_lost_count;
    logic [31:0] m_lost_cookie;

    // The last loss; its number, twice, is its cookie.
    logic [15:0] lost = 0;
    wire  [15:0] now  = lost + 16'd1;

    plx_tx_lost dut (.*, .s_lost_cookie({~now, now}));

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire [15:0]  \dut.count ;
    (* hierconn *) wire [31:0]  \dut.cookie ;
    (* hierconn *) wire         \dut.passes ;
    (* hierconn *) wire [2:0]   \dut.crossing.level ;
    (* hierconn *) wire [191:0] \dut.crossing.words ;
    wire [15:0]  count = \dut.count ;
    wire [2:0]   level = \dut.crossing.level ;
    wire [191:0] words = \dut.crossing.words ;

    // ---- Resets -----------------------------------------------------------------------------------

    // The core's side has sampled its reset; the ports' side has, since.
    logic core_held = 0, net_held = 0, up = 0;
    always_ff @(posedge step) begin
        if (clk_core) core_held <= rst_core;
        net_held <= core_held && rst_core && (net_held || clk_net && rst_net);
        up       <= up || net_held;
    end

    logic was_core = 1;
    always_ff @(posedge step) was_core <= rst_core;
    always_comb begin
        if (!up) assume (rst_net && rst_core);
        if (rst_net && up) assume (core_held && rst_core);
        if (was_core && !rst_core) assume (core_held && net_held);
        // A reset lasts until it has been sampled.
        if (was_core && !core_held) assume (rst_core);
        // Not added up any more.
        if (clk_net && s_lost_valid) assume (!(&count));
    end

    // ---- Losses and reports -----------------------------------------------------------------------

    // The last loss that is in the queue, or is forgotten in a reset; the last one that was reported.
    logic [15:0] handed = 0, said = 0;
    wire         take = clk_core && m_lost_valid && m_lost_ready && !rst_core;

    always_ff @(posedge step) begin
        if (clk_net && s_lost_valid) lost <= now;
        if (clk_net && \dut.passes ) handed <= lost;
        if (take) said <= m_lost_cookie[15:0];
        if (clk_net && rst_net) begin
            handed <= s_lost_valid ? now : lost;
            said   <= s_lost_valid ? now : lost;
        end
    end

    logic saved = 0;
    always_ff @(posedge step) if (up && rst_core && was_core && net_held) saved <= 1'b1;

    always_comb if (up) begin
        if (m_lost_valid) begin
            assert (m_lost_count != 0 && m_lost_cookie[31:16] == ~m_lost_cookie[15:0]);
            assert (m_lost_cookie[15:0] - m_lost_count == said);
        end
        assert (busy == (s_lost_valid || handed != lost));
        if (!busy && level == 0) assert (said == lost);
        // What makes it inductive.
        assert (level <= 4);
        assert (count == lost - handed);
        if (count != 0) assert (\dut.cookie == {~lost, lost});
        if (level == 0) assert (said == handed);
        cover (m_lost_valid && level == 4 && m_lost_count == 2 && said != 0);
        cover (level == 1 && m_lost_valid && m_lost_count == 1 && clk_net && clk_core && saved);
    end

    generate
        for (genvar i = 0; i < 4; i = i + 1) begin : g_slot
            localparam [2:0] HERE = i;
            wire [15:0] its  = words[48*i + 32 +: 16], last = words[48*i +: 16];
            wire [15:0] before;
            if (i == 0) begin : g_first
                assign before = said;
            end else begin : g_next
                assign before = words[48*(i-1) +: 16];
            end
            always_comb if (up && level > HERE) begin
                assert (its != 0 && words[48*i + 16 +: 16] == ~last && last - its == before);
                if (level == HERE + 1) assert (last == handed);
            end
        end
    endgenerate
endmodule
