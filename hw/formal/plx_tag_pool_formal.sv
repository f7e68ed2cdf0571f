// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// No tag is issued twice; an abandoned one not before a whole period has passed; each free tag is
// issued in turn. None from LOW on is offered behind a cycle in which not all are allowed, and none is lost by that.
// formal: induction 4
// formal: cover 16
// mutant: <= tick ? fresh : stale; => <= '0;
// mutant: wire          releases = ready && !back => wire          releases = ready
// mutant: !filled[W] && !back && !ready => !filled[W]
// mutant: !all && {1'b0, tag} >= LOW => 1'b0
// mutant: m_tag_valid <= some && !barred(next, allow_all); => m_tag_valid <= some;
// mutant: m_tag_valid <= !withdraws; => m_tag_valid <= 1'b1;
// mutant: keeps       <= withdraws; => keeps       <= 1'b0;
// mutant: (tick ? stale : '0) | kept | back_kept => (tick ? stale : '0) | back_kept
// mutant: (tick ? stale : '0) | kept | back_kept => (tick ? stale : '0) | kept
// mutant: back && !back_barred || releases => back || releases

module plx_tag_pool_formal (
    input logic       clk,
    input logic       rst,
    input logic       allow_all,
    input logic       m_tag_ready,
    input logic       s_return_valid,
    input logic [1:0] s_return_tag,
    input logic       s_return_late,
    input logic       tick
);
    logic       m_tag_valid, event_unexpected;
    logic [1:0] m_tag;
    logic [3:0] open;

    plx_tag_pool #(.N(4), .LOW(2)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);

    // An offer is stable unless it is withdrawn, and recurs within three cycles of a tag's return in good time.
    logic stands = 0, strange = 0, seen = 0;
    logic [1:0] tag;
    logic [2:0] back = 0, allowed = 0;
    always_ff @(posedge clk) begin
        stands  <= !rst && m_tag_valid && !m_tag_ready && (allow_all || m_tag < 2);
        allowed <= {allowed[1:0], allow_all};
        // Offered, and then not any more.
        seen    <= !rst && (seen || m_tag_valid && m_tag == 3 && !allow_all);
        tag     <= m_tag;
        strange <= !rst && s_return_valid && !open[s_return_tag];
        back    <= rst ? 3'd0 : {back[1:0], s_return_valid && open[s_return_tag] && !s_return_late};
        if (running && !rst) begin
            if (stands) assert (m_tag_valid && m_tag == tag);
            assert (event_unexpected == strange);
            if (m_tag_valid && m_tag >= 2) assert (allowed[0]);
            cover (seen && m_tag_valid && m_tag == 3 && allowed == 3'b111 && open == 4'b0111);
            if (back[2] && allowed == 3'b111) assert (m_tag_valid || open == 4'hF || $past(m_tag_valid));
        end
    end
endmodule
