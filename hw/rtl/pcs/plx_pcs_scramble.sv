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
    // Bits that follow from earlier ones alone, those that follow from the first of these, too, and the line of
    // the descrambler.
    wire [38:0]  first  = in[38:0] ^ state[57:19] ^ state[38:0];
    wire [24:0]  second = in[63:39] ^ first[24:0] ^ {first[5:0], state[57:39]};
    wire [82:0] line   = {in[24:0], state};

    assign out  = DESCRAMBLE != 0 ? in ^ line[82:19] ^ line[63:0] : {second, first};
    assign next = DESCRAMBLE != 0 ? in[63:6] : out[63:6];
endmodule
