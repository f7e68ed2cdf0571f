// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Any one message leaves in its turn, unchanged but where it is replaced; steps to others and back change nothing.
// formal: aiger
// formal: always 8
// formal: cover 8
// mutant: memory[replace ? at : back] <= data; => memory[back] <= data;
// mutant: if (pop) front <= front + 1'b1; => if (pop && !push) front <= front + 1'b1;
// mutant: if (step || pop) at_inverse => if (step) at_inverse
// mutant: if (rewind) at_inverse <= ~front; => if (rewind) at_inverse <= '1;

module plx_evb_queue_formal (
    input logic       clk,
    input logic       rst,
    input logic       any_push,
    input logic       any_replace,
    input logic       any_step,
    input logic       any_rewind,
    input logic       any_pop,
    input logic       any_follow,
    input logic [1:0] data
);
    localparam WIDTH = 2, DEPTH = 4;

    logic [WIDTH-1:0] word;
    // Messages held, and those in front of the one that is read.
    logic [2:0]       level, place = 0;

    // As of plx_evb_node: one write a cycle, of what is there.
    logic running = 0;
    wire  push    = any_push && !level[2] && !any_replace;
    wire  replace = any_replace && place < level;
    wire  step    = any_step && place + 3'd1 < level;
    wire  rewind  = any_rewind && !step;
    wire  pop     = any_pop && level != 0 && place == 0 && !replace && !step && !rewind;

    plx_evb_queue #(
        .WIDTH(WIDTH),
        .DEPTH(DEPTH)
    ) dut (
        .clk, .rst,
        .push, .data, .word, .replace, .step, .rewind, .pop, .level
    );

    always_comb if (!running) assume (rst);

    // Messages held; the one that is followed, those before it, and what it is now.
    logic [2:0]       held = 0, before = 0;
    logic             here = 0;
    logic [WIDTH-1:0] followed = 0;

    always_ff @(posedge clk) begin
        running <= 1'b1;
        held    <= held + push - pop;
        place   <= rewind ? 3'd0 : place + step;
        if (push && any_follow && !here) begin
            here     <= 1'b1;
            before   <= held - pop;
            followed <= data;
        end else if (here) begin
            before <= before - pop;
            if (pop && before == 0) here <= 1'b0;
            if (replace && place == before) followed <= data;
        end
        if (rst) begin
            held  <= 0;
            place <= 0;
            here  <= 0;
        end
    end

    always_ff @(posedge clk) if (running && !rst) begin
        assert (level == held);
        if (here) assert (before < level);
        if (here && place == before) assert (word == followed);
        cover (here && before == 0 && level == 4);
        cover (replace && here && place == before && before == 2);
    end
endmodule
