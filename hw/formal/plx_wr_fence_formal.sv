// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A fence is passed only when each write that was accepted before it, or with it, has ended, with as many on
// their way as can be counted; it is passed once, two cycles behind the last of them whatever follows, and only
// while one is asked for.
// formal: aiger
// formal: always 12
// formal: cover 16
// mutant: s_fence && !m_done; => s_fence;
// mutant: {{(COUNT_W-1){1'b0}}, accepted} - => {COUNT_W{1'b0}} -
// mutant: : now; => : pending;
// mutant: pending <= now; => pending <= begun ? pending : now;
// mutant: begun && left == 0; => begun && now == 0;
// mutant: logic [COUNT_W-1:0] pending, left; => logic [COUNT_W-2:0] pending, left;
// mutant: left - {{(COUNT_W-1){1'b0}}, ended} => left - {{(COUNT_W-1){1'b0}}, ended && left != 1}

module plx_wr_fence_formal (
    input logic clk,
    input logic rst,
    input logic accepted,
    input logic ended,
    input logic s_fence,
    input logic mine
);
    logic m_done;

    plx_wr_fence #(.COUNT_W(3)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);

    // Writes on their way, in order: fewer than the count has values (plx_dma_wr: at most 3, and 2 in
    // plx_wr_mux); of any one of them, those before it.
    logic [2:0] there = 0, before_it;
    logic       open = 0, last = 0;
    wire        marks = accepted && mine && !open;
    wire        leaves = open && ended && before_it == 0;
    // The fence: it begins, is awaited; the marked write, or that there is none, holds it, was the last before it.
    logic       awaited = 0, holds = 0, final_one = 0, none = 0;
    wire        begins = s_fence && !awaited;
    wire        on_way = marks || open && !leaves;
    // Cycles since the last write before it has left.
    logic [1:0] free_for = 0;

    always_ff @(posedge clk) begin
        there     <= there + {2'd0, accepted} - {2'd0, ended};
        open      <= on_way;
        before_it <= marks ? there - {2'd0, ended} : before_it - {2'd0, ended};
        last      <= marks || last && !accepted && !leaves;
        awaited   <= s_fence && !m_done;
        if (begins) begin
            holds     <= on_way;
            final_one <= on_way && (marks || last && !accepted);
            none      <= there == {2'd0, ended} && !accepted;
        end else if (leaves) holds <= 1'b0;
        free_for <= awaited && !m_done && (none || final_one && !holds) ? free_for + 2'd1 : 2'd0;
        if (rst) begin
            there   <= 3'd0;
            open    <= 1'b0;
            awaited <= 1'b0;
            holds   <= 1'b0;
            last    <= 1'b0;
        end
    end

    always_comb if (running && !rst) begin
        assume (!ended || there != 0);
        assume (!accepted || there != 3'd7);
        // Held until it is passed.
        if (awaited) assume (s_fence);
        if (m_done) assert (awaited && !holds);
        assert (free_for < 2'd2);
        cover (m_done && final_one && there == 3'd6);
        cover (m_done && none);
        cover (begins && there == 3'd7);
    end
endmodule
