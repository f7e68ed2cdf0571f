// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A queue in which a message that waits can be replaced. Any of the messages can be looked at, by its
// place from the first on; the first one is taken. The memory is read without a register (LUT RAM).

module plx_evb_queue #(
    parameter WIDTH = 64,  // bits of a message
    parameter DEPTH = 16   // messages, a power of two
) (
    input  logic                     clk,
    input  logic                     rst,

    // A message at the end: when there is room.
    input  logic                     push,
    input  logic [WIDTH-1:0]         data,

    // The message at a place, and another one instead of it, `data`; the first one leaves.
    input  logic [$clog2(DEPTH)-1:0] place,
    output logic [WIDTH-1:0]         word,
    input  logic                     replace,
    input  logic                     pop,

    // Messages held.
    output logic [$clog2(DEPTH):0]   level
);
    localparam AW = $clog2(DEPTH);

    generate
        if (DEPTH < 2 || DEPTH != 1 << AW) DEPTH_must_be_a_power_of_two_at_least_2 parameter_error ();
    endgenerate

    logic [WIDTH-1:0] memory [0:DEPTH-1];
    logic [AW:0]      front, back;
    wire  [AW-1:0]    at = front[AW-1:0] + place;

    assign word  = memory[at];

    always_ff @(posedge clk) begin
        if (push || replace) memory[replace ? at : back[AW-1:0]] <= data;
        if (push) back <= back + 1'b1;
        if (pop) front <= front + 1'b1;
        if (push != pop) level <= push ? level + 1'b1 : level - 1'b1;
        if (rst) begin
            level <= '0;
            front <= '0;
            back  <= '0;
        end
    end
endmodule
