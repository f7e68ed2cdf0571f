// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Generator of the PRBS31 test pattern (IEEE 802.3, 49.2.8 and figure 49-9), 1 + x^28 + x^31 and
// inverted, of WIDTH bits in each cycle, the first in bit 0.

module plx_prbs31_gen #(
    parameter WIDTH = 66  // bits of a cycle
) (
    input  logic             clk,
    input  logic             rst,

    // The pattern advances; the bits of this cycle.
    input  logic             enable,
    output logic [WIDTH-1:0] pattern
);
    // The register's outputs, the most recent in the highest bit, and the next ones.
    logic [30:0]       state;
    logic [WIDTH+30:0] line;

    generate
        if (WIDTH < 1) WIDTH_must_be_at_least_1 parameter_error ();
    endgenerate

    always_comb begin
        line = {{WIDTH{1'b0}}, state};
        for (int i = 0; i < WIDTH; i = i + 1) line[31+i] = line[31+i-28] ^ line[i];
    end

    assign pattern = ~line[WIDTH+30:31];

    always_ff @(posedge clk) begin
        if (enable) state <= line[WIDTH+30:WIDTH];
        if (rst) state <= '1;
    end
endmodule
