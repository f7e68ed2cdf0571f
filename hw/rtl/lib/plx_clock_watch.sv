// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Whether another clock runs: a level that it toggles every two cycles has to change. A clock that stood
// runs again after BEATS changes, so that by then its registers have had several edges.

module plx_clock_watch #(
    parameter LIMIT = 63,  // cycles of clk without a change, after which the other clock stands
    parameter BEATS = 4    // changes after which it runs again
) (
    // The watched clock, and its reset.
    input  logic s_clk,
    input  logic s_rst,

    // A reset lasts until the other clock has ended its own: it runs.
    input  logic clk,
    input  logic rst,
    output logic runs
);
    localparam LW = $clog2(LIMIT + 1), BW = $clog2(BEATS + 1);

    generate
        if (LIMIT < 8) LIMIT_must_be_at_least_8 parameter_error ();
        if (BEATS < 1) BEATS_must_be_at_least_1 parameter_error ();
    endgenerate

    logic [1:0] cycle;
    logic       seen, last;

    always_ff @(posedge s_clk) cycle <= s_rst ? 2'd0 : cycle + 2'd1;

    plx_sync_bit crossing (.clk, .rst(1'b0), .d(cycle[1]), .q(seen));

    // Cycles since a change; changes that are needed.
    logic [LW-1:0] still;
    logic [BW-1:0] needed;
    wire           change = seen != last;
    wire           stands = still == LIMIT[LW-1:0];

    always_ff @(posedge clk) begin
        last <= seen;
        if (change) still <= '0;
        else if (!stands) still <= still + 1'b1;
        if (stands) needed <= BEATS[BW-1:0];
        else if (change && needed != 0) needed <= needed - 1'b1;
        runs <= !stands && needed == 0;
        if (rst) begin
            still  <= '0;
            needed <= '0;
            runs   <= 1'b1;
        end
    end
endmodule
