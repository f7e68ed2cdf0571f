// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// One step of the ones' complement sum of the Internet protocols (RFC 1071): adds the selected bytes
// of a word. The last carry of the sum is separate, so that a step folds only once. Data with a
// correct checksum sum to 17'h0FFFF: ones' complement has two zeros, and all zeros is the sum of
// zeros only.

module plx_checksum #(
    parameter BYTES = 8  // of a word, an even number; byte 0, the first of its 16 bits, in bits 7:0
) (
    // The sum so far, initially 0.
    input  logic [16:0]        state,

    // The word to add: bytes whose keep bit is set; others count as zeros.
    input  logic [8*BYTES-1:0] data,
    input  logic [BYTES-1:0]   keep,

    // The sum including the word.
    output logic [16:0]        next
);
    localparam LANES = BYTES / 2;
    localparam CW    = $clog2(LANES + 2);  // carries

    generate
        if (BYTES < 2 || BYTES > 64 || BYTES % 2 != 0) BYTES_must_be_even_from_2_to_64 parameter_error ();
    endgenerate

    wire [16*LANES-1:0] lanes;
    logic [15+CW:0]     sum;

    generate
        for (genvar i = 0; i < LANES; i = i + 1) begin : g_lane
            assign lanes[16*i+:16] = {data[16*i+:8] & {8{keep[2*i]}}, data[16*i+8+:8] & {8{keep[2*i+1]}}};
        end
    endgenerate

    always_comb begin
        sum = {{CW - 1{1'b0}}, state};
        for (int i = 0; i < LANES; i = i + 1) sum = sum + {{CW{1'b0}}, lanes[16*i+:16]};
    end

    assign next = {1'b0, sum[15:0]} + {{17 - CW{1'b0}}, sum[15+CW:16]};
endmodule
