// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A synchroniser with every delay that the constraints of crossings allow: each bit that has changed in the last
// step of the solver arrives for itself, before or after an edge of the receiver, as it does at a register that
// may be metastable.

module plx_sync_bit #(
    parameter WIDTH  = 1,
    parameter STAGES = 2
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [WIDTH-1:0] d,
    output logic [WIDTH-1:0] q
);
    (* gclk *) wire step;
    (* anyseq *) wire [WIDTH-1:0] late;
    logic [WIDTH-1:0]        before;
    logic [STAGES*WIDTH-1:0] stages;

    assign q = stages[STAGES*WIDTH-1 -: WIDTH];

    always_ff @(posedge step) before <= d;
    always_ff @(posedge clk) stages <= rst ? '0 : {stages[(STAGES-1)*WIDTH-1:0], (d & ~late) | (before & late)};
endmodule
