// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Self-synchronising scrambler (IEEE 802.3, 49.2.6) and descrambler (49.2.10), 1 + x^39 + x^58, of 64
// bits at once, the first in bit 0. Headers of blocks are not scrambled. Without registers.

module plx_pcs_scramble #(
    parameter DESCRAMBLE = 0  // 1: descrambler
) (
    // The last 58 scrambled bits of the line, the most recent in the highest bit; and after the data.
    input  logic [57:0] state,
    output logic [57:0] next,

    input  logic [63:0] in,
    output logic [63:0] out
);
    // The line: earlier bits and those of this word.
    logic [121:0] line;
    logic         mixed;

    always_comb begin
        line = {64'd0, state};
        out  = 64'd0;
        for (int i = 0; i < 64; i = i + 1) begin
            mixed      = in[i] ^ line[58+i-39] ^ line[i];
            out[i]     = mixed;
            line[58+i] = DESCRAMBLE != 0 ? in[i] : mixed;
        end
    end

    assign next = line[121:64];
endmodule
