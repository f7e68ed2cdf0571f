// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Simple dual-port block RAM of one clock: one port writes, one reads. Data are valid one cycle
// after the request, and stable. A read of a word in the cycle of its write returns the old
// value. The memory starts undefined.

module plx_ram_sdp #(
    parameter WIDTH = 64,  // bits of a word
    parameter DEPTH = 512  // words
) (
    input  logic                     clk,

    // Write port.
    input  logic                     w_enable,
    input  logic [$clog2(DEPTH)-1:0] w_address,
    input  logic [WIDTH-1:0]         w_data,

    // Read port.
    input  logic                     r_enable,
    input  logic [$clog2(DEPTH)-1:0] r_address,
    output logic [WIDTH-1:0]         r_data
);
    generate
        if (WIDTH < 1) WIDTH_must_be_at_least_1 parameter_error ();
        if (DEPTH < 2) DEPTH_must_be_at_least_2 parameter_error ();
    endgenerate

    logic [WIDTH-1:0] memory [0:DEPTH-1];

    always_ff @(posedge clk) begin
        if (w_enable) memory[w_address] <= w_data;
        if (r_enable) r_data <= memory[r_address];
    end
endmodule
