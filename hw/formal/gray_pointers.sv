// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Invariants of the pointers of a queue between two clocks, for the proofs of plx_fifo_async and
// plx_fifo_async_deep. From the oldest head that the writer knows to the newest tail, each is at most
// the next, and all of them lie within DEPTH words: so no word is overwritten, and no unwritten word
// is read. A stable pointer is known to the other side after two
// of its edges.

module gray_pointers #(
    parameter AW = 2  // DEPTH is 2^AW
) (
    input logic            w_clk,
    input logic            w_rst,
    input logic            r_clk,
    input logic            r_rst,

    // Pointers, in Gray code, and their copies in the other side's synchroniser, the newer first.
    input logic [AW:0]     tail,
    input logic [AW:0]     tail_gray,
    input logic [2*AW+1:0] tail_stages,
    input logic [AW:0]     head,
    input logic [AW:0]     head_gray,
    input logic [2*AW+1:0] head_stages,

    // The writer's clock has sampled its reset, the reader's has, and each has.
    output logic           w_seen,
    output logic           r_seen,
    output logic           up
);
    localparam [AW:0] DEPTH = {1'b1, {AW{1'b0}}};

    (* gclk *) wire step;

    logic w_runs = 0, r_runs = 0;
    initial {w_seen, r_seen} = 2'b00;
    assign up = w_seen && r_seen;

    always_ff @(posedge step) begin
        w_seen <= w_seen || w_clk;
        r_seen <= r_seen || r_clk;
        w_runs <= !w_rst;
        r_runs <= !r_rst;
    end

    // Resets are held until each clock has sampled its own, and do not recur.
    always_comb begin
        if (!up) assume (w_rst && r_rst);
        if (w_runs) assume (!w_rst);
        if (r_runs) assume (!r_rst);
        assert (up || !(w_runs || r_runs));
    end

    function [AW:0] number(input [AW:0] gray);
        integer i;
        for (i = 0; i <= AW; i = i + 1) number[i] = ^(gray >> i);
    endfunction

    wire [AW:0] tail_0 = number(tail_stages[AW:0]);
    wire [AW:0] tail_1 = number(tail_stages[2*AW+1:AW+1]);
    wire [AW:0] head_0 = number(head_stages[AW:0]);
    wire [AW:0] head_1 = number(head_stages[2*AW+1:AW+1]);

    always_comb begin
        if (up) begin
            assert (number(tail_gray) == tail && number(head_gray) == head);
            assert (tail - head_1 <= DEPTH);
            assert (tail_0 - head_1 <= tail - head_1 && tail_1 - head_1 <= tail_0 - head_1);
            assert (head - head_1 <= tail_1 - head_1 && head_0 - head_1 <= head - head_1);
        end
        if (w_seen && !w_runs) assert (tail == 0 && tail_gray == 0 && head_stages == 0);
        if (r_seen && !r_runs) assert (head == 0 && head_gray == 0 && tail_stages == 0);
    end

    // Edges of the other side since a pointer is stable.
    logic [AW:0] last_tail, last_head;
    logic [1:0]  r_before = 0, w_before = 0;
    logic        r_edge = 0, w_edge = 0;
    wire  [1:0]  r_edges = tail != last_tail ? 2'd0 : r_before == 2 ? 2'd2 : r_before + {1'b0, r_edge};
    wire  [1:0]  w_edges = head != last_head ? 2'd0 : w_before == 2 ? 2'd2 : w_before + {1'b0, w_edge};

    always_ff @(posedge step) begin
        last_tail <= tail;
        last_head <= head;
        r_before  <= r_runs ? r_edges : 2'd0;
        w_before  <= w_runs ? w_edges : 2'd0;
        r_edge    <= r_clk && r_runs;
        w_edge    <= w_clk && w_runs;
    end

    always_comb begin
        if (r_edges >= 1) assert (tail_0 == tail);
        if (r_edges == 2) assert (tail_1 == tail);
        if (w_edges >= 1) assert (head_0 == head);
        if (w_edges == 2) assert (head_1 == head);
    end
endmodule
