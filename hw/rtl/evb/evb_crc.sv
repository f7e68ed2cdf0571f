// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// CRC-32 (IEEE 802.3, clause 3.2.9) of one wide word, bit 0 first; no registers. The state starts as
// all ones, so that a word of zeros has a CRC too.

module evb_crc #(
    parameter WIDTH = 234  // bits of the word, more than 32
) (
    input  logic [WIDTH-1:0] data,
    output logic [31:0]      crc
);
    localparam [31:0] POLYNOMIAL = 32'hEDB88320;

    generate
        if (WIDTH < 33) WIDTH_must_be_at_least_33 parameter_error ();
    endgenerate

    // Row i selects the bits of the word, with the state added to its first 32, that make up bit i.
    function automatic [32*WIDTH-1:0] matrix;
        input [31:0] polynomial;
        integer i, j;
        reg [31:0] column;
        begin
            column = polynomial;
            for (j = WIDTH - 1; j >= 0; j = j - 1) begin
                for (i = 0; i < 32; i = i + 1) matrix[i*WIDTH+j] = column[i];
                column = (column >> 1) ^ (column[0] ? polynomial : 32'd0);
            end
        end
    endfunction

    localparam [32*WIDTH-1:0] ROWS = matrix(POLYNOMIAL);

    wire [WIDTH-1:0] word = data ^ {{(WIDTH - 32) {1'b0}}, 32'hFFFFFFFF};

    generate
        for (genvar i = 0; i < 32; i = i + 1) begin : g_bit
            assign crc[i] = ~^(word & ROWS[i*WIDTH+:WIDTH]);
        end
    endgenerate
endmodule
