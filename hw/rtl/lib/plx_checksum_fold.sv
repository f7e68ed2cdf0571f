// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The end of a sum by plx_checksum: its two addends become one number of 16 bits.

module plx_checksum_fold (
    input  logic [31:0] state,
    output logic [15:0] sum
);
    wire [16:0] whole = {1'b0, state[15:0]} + {1'b0, state[31:16]};

    assign sum = whole[15:0] + {15'd0, whole[16]};
endmodule
