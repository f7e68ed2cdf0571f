// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Checker of the PRBS31 test pattern (IEEE 802.3, 49.2.12 and figure 49-11): predicts each bit from
// those before it, so that it synchronises itself, and a single wrong bit counts three times. A line
// that stands still fits the polynomial, but is no pattern: a word of it counts as all wrong.

module plx_prbs31_check #(
    parameter WIDTH = 66  // bits of a cycle
) (
    input  logic                       clk,
    input  logic                       rst,

    // Bits of the line, the first in bit 0.
    input  logic [WIDTH-1:0]           s_bits,

    // Wrong bits of the word of three cycles ago.
    output logic [$clog2(WIDTH+1)-1:0] errors
);
    localparam W = $clog2(WIDTH + 1);

    logic [30:0]       state;
    logic [WIDTH-1:0]  wrong;
    wire  [WIDTH+30:0] line = {~s_bits, state};
    wire  [WIDTH-1:0]  differs = line[WIDTH+30:31] ^ line[WIDTH+2:3] ^ line[WIDTH-1:0];

    generate
        if (WIDTH < 31 || WIDTH % 3 != 0) WIDTH_must_be_a_multiple_of_3_above_30 parameter_error ();
    endgenerate

    // Counted in two steps: thirds of the word, and their sum.
    localparam THIRD = WIDTH / 3;
    logic [3*W-1:0] counts;

    generate
        for (genvar t = 0; t < 3; t = t + 1) begin : g_third
            wire [THIRD-1:0] some = wrong[t*THIRD+:THIRD];
            logic [W-1:0]    count;

            always_comb begin
                count = '0;
                for (int i = 0; i < THIRD; i = i + 1) count = count + {{(W - 1) {1'b0}}, some[i]};
            end

            always_ff @(posedge clk) counts[t*W+:W] <= rst ? '0 : count;
        end
    endgenerate

    always_ff @(posedge clk) begin
        state  <= line[WIDTH+30:WIDTH];
        wrong  <= rst ? '0 : s_bits == '1 ? '1 : differs;
        errors <= rst ? '0 : counts[0+:W] + counts[W+:W] + counts[2*W+:W];
    end
endmodule
