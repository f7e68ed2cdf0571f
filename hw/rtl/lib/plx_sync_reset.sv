// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A reset of any clock, or of none, becomes one of clk: it begins at once, also while clk is
// stopped, and ends STAGES edges of clk after its cause.

module plx_sync_reset #(
    parameter STAGES = 4  // registers in a row
) (
    input  logic clk,

    // Reset of any clock, and of clk.
    input  logic rst_async,
    output logic rst
);
    generate
        if (STAGES < 2) STAGES_must_be_at_least_2 parameter_error ();
    endgenerate

    (* ASYNC_REG = "TRUE" *) logic [STAGES-1:0] stages;

    assign rst = stages[STAGES-1];

    always_ff @(posedge clk or posedge rst_async) begin
        if (rst_async) stages <= '1;
        else stages <= {stages[STAGES-2:0], 1'b0};
    end
endmodule
