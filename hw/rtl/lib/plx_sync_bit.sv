// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Synchronises levels from another clock, each bit through its own registers. Bits that must agree
// are Gray-coded, or change only while they are not sampled. Latency: STAGES edges of clk.

module plx_sync_bit #(
    parameter WIDTH  = 1,  // levels
    parameter STAGES = 2   // registers in a row, the first of which may be metastable
) (
    input  logic             clk,
    input  logic             rst,

    // Levels: in any clock, and in clk.
    input  logic [WIDTH-1:0] d,
    output logic [WIDTH-1:0] q
);
    generate
        if (WIDTH < 1) WIDTH_must_be_at_least_1 parameter_error ();
        if (STAGES < 2) STAGES_must_be_at_least_2 parameter_error ();
    endgenerate

    (* ASYNC_REG = "TRUE" *) logic [STAGES*WIDTH-1:0] stages;

    assign q = stages[STAGES*WIDTH-1 -: WIDTH];

    always_ff @(posedge clk) begin
        stages <= rst ? '0 : {stages[(STAGES-1)*WIDTH-1:0], d};
    end
endmodule
