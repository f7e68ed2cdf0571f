// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A counter, seen from another clock. It changes by at most one in a cycle, so that at most one bit
// of its Gray code changes, and the output is a value that it had: one cycle of s_clk and 3 to 4
// edges of m_clk ago. The other clock must not be slower, or values are skipped.

module plx_timestamp_cdc #(
    parameter WIDTH = 64  // bits of the counter
) (
    // The counter, and the same in the other clock.
    input  logic             s_clk,
    input  logic [WIDTH-1:0] s_cycle_ts,
    input  logic             m_clk,
    input  logic             m_rst,
    output logic [WIDTH-1:0] m_cycle_ts
);
    generate
        if (WIDTH < 2) WIDTH_must_be_at_least_2 parameter_error ();
    endgenerate

    logic [WIDTH-1:0] gray, seen;

    always_ff @(posedge s_clk) gray <= s_cycle_ts ^ (s_cycle_ts >> 1);

    plx_sync_bit #(.WIDTH(WIDTH)) crossing (.clk(m_clk), .rst(m_rst), .d(gray), .q(seen));

    // A bit is the exclusive or of all Gray bits from it upwards.
    logic [WIDTH-1:0] binary;

    always_comb begin
        binary = seen;
        for (int i = 0; i < $clog2(WIDTH); i = i + 1) binary = binary ^ (binary >> (1 << i));
    end

    always_ff @(posedge m_clk) m_cycle_ts <= m_rst ? '0 : binary;
endmodule
