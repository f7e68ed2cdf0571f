// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Removes the last BYTES bytes, all zero, from a CRC-32 (see crc32); no registers.

module plx_crc32_back #(
    parameter BYTES = 1  // zero bytes to undo
) (
    // State after the zeros, and before them.
    input  logic [31:0] state,
    output logic [31:0] previous
);
    localparam [31:0] POLYNOMIAL = 32'hEDB88320;

    generate
        if (BYTES < 0) BYTES_must_not_be_negative parameter_error ();
    endgenerate

    // Row i selects the bits of the state that make up bit i.
    function automatic [32*32-1:0] matrix;
        input [31:0] polynomial;
        integer i, j, k;
        reg [31:0] column;
        begin
            for (j = 0; j < 32; j = j + 1) begin
                column = 32'd1 << j;
                // A step shifted right, and added the polynomial if a one was shifted out: exactly then
                // its highest bit is set.
                for (k = 0; k < 8 * BYTES; k = k + 1) begin
                    column = column[31] ? ((column ^ polynomial) << 1) | 32'd1 : column << 1;
                end
                for (i = 0; i < 32; i = i + 1) matrix[i*32+j] = column[i];
            end
        end
    endfunction

    localparam [32*32-1:0] ROWS = matrix(POLYNOMIAL);

    generate
        for (genvar i = 0; i < 32; i = i + 1) begin : g_bit
            assign previous[i] = ^(state & ROWS[i*32+:32]);
        end
    endgenerate
endmodule
