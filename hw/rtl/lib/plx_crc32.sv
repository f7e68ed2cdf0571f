// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The CRC-32 of IEEE 802.3, clause 3.2.9, over 8 bytes at once; no registers. State and data are
// bit-reversed as on the wire: the first bit sent is bit 0. The state starts as all ones; the frame
// check sequence is its complement. A last word of fewer bytes is padded with zeros, and
// plx_crc32_back removes the zeros: so one matrix serves words of any length.

module plx_crc32 (
    // State before the word, the word (byte 0 first), state after it.
    input  logic [31:0] state,
    input  logic [63:0] data,
    output logic [31:0] next
);
    localparam [31:0] POLYNOMIAL = 32'hEDB88320;

    // Row i selects the bits of the word, with the state added to its first 32, that make up bit i.
    function automatic [32*64-1:0] matrix;
        input [31:0] polynomial;
        integer i, j;
        reg [31:0] column;
        begin
            // The last bit passes through one step of the register, the one before it through two.
            column = polynomial;
            for (j = 63; j >= 0; j = j - 1) begin
                for (i = 0; i < 32; i = i + 1) matrix[i*64+j] = column[i];
                column = (column >> 1) ^ (column[0] ? polynomial : 32'd0);
            end
        end
    endfunction

    localparam [32*64-1:0] ROWS = matrix(POLYNOMIAL);

    wire [63:0] word = data ^ {32'd0, state};

    generate
        for (genvar i = 0; i < 32; i = i + 1) begin : g_bit
            assign next[i] = ^(word & ROWS[i*64+:64]);
        end
    endgenerate
endmodule
