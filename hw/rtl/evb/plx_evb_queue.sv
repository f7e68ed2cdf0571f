// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A queue in which a message that waits can be replaced. Messages can be read one after the other, from the
// first on; the first one is removed. The memory is read without a register (LUT RAM). Its read address comes
// from a register, because the multiplexers behind a deep memory take half of a cycle.

module plx_evb_queue #(
    parameter WIDTH = 64,  // bits of a message
    parameter DEPTH = 16   // messages, a power of two
) (
    input  logic                     clk,
    input  logic                     rst,

    // A message at the end: when there is room.
    input  logic                     push,
    input  logic [WIDTH-1:0]         data,

    // The message that is read; `replace` puts `data` in its place. `step` reads the one behind it, which there is,
    // `rewind` the first one again; `pop` removes the first one, while it is read. At most one of these three in a cycle.
    output logic [WIDTH-1:0]         word,
    input  logic                     replace,
    input  logic                     step,
    input  logic                     rewind,
    input  logic                     pop,

    // Messages held.
    output logic [$clog2(DEPTH):0]   level
);
    localparam AW = $clog2(DEPTH);

    generate
        if (DEPTH < 2 || DEPTH != 1 << AW) DEPTH_must_be_a_power_of_two_at_least_2 parameter_error ();
    endgenerate

    logic [WIDTH-1:0] memory [0:DEPTH-1];
    // The address of the message that is read is held inverted: Yosys would make the register a part of the memory,
    // and of both a block RAM.
    logic [AW-1:0]    front, back, at_inverse;
    wire  [AW-1:0]    at = ~at_inverse;

    assign word = memory[at];

    always_ff @(posedge clk) begin
        if (push || replace) memory[replace ? at : back] <= data;
        if (push) back <= back + 1'b1;
        if (pop) front <= front + 1'b1;
        if (step || pop) at_inverse <= at_inverse - 1'b1;
        if (rewind) at_inverse <= ~front;
        if (push != pop) level <= push ? level + 1'b1 : level - 1'b1;
        if (rst) begin
            level      <= '0;
            front      <= '0;
            back       <= '0;
            at_inverse <= '1;
        end
    end
endmodule
