// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// As in hw/rtl, in steps of the solver: a reset begins without an edge.

module plx_sync_reset #(
    parameter STAGES = 4
) (
    input  logic clk,
    input  logic rst_async,
    output logic rst
);
    (* gclk *) wire step;
    logic [STAGES-1:0] before;
    wire  [STAGES-1:0] stages = before | {STAGES{rst_async}};

    assign rst = stages[STAGES-1];
    always_ff @(posedge step) before <= clk ? {stages[STAGES-2:0], rst_async} : stages;
endmodule
