// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Monitor of the bit error rate (IEEE 802.3, figure 49-15): 16 invalid headers within 125 us are a high
// error rate, until 125 us pass with fewer.

module plx_pcs_ber #(
    parameter WINDOW = 19531  // cycles of 125 us (+1 %, -25 %)
) (
    input  logic       clk,
    input  logic       rst,

    // Header of each block; the boundary of blocks is known.
    input  logic [1:0] header,
    input  logic       locked,

    // The error rate is high; an invalid header.
    output logic       hi_ber,
    output logic       inc_header
);
    localparam [4:0] LIMIT = 5'd16;
    localparam W = $clog2(WINDOW);

    generate
        if (WINDOW < 16) WINDOW_must_be_at_least_16 parameter_error ();
    endgenerate

    // ber_cnt, which stays at its limit, and what is left of the window.
    logic [4:0]   bad;
    logic [W-1:0] left;
    wire          invalid  = header[0] == header[1];
    wire  [4:0]   bad_next = bad + {4'd0, invalid && bad != LIMIT};
    wire          ends     = left == 0;

    always_ff @(posedge clk) begin
        left       <= ends ? WINDOW[W-1:0] - 1'b1 : left - 1'b1;
        bad        <= ends ? 5'd0 : bad_next;
        inc_header <= invalid;
        if (bad_next == LIMIT) hi_ber <= 1'b1;
        else if (ends) hi_ber <= 1'b0;
        if (rst || !locked) begin
            left       <= WINDOW[W-1:0] - 1'b1;
            bad        <= 5'd0;
            hi_ber     <= 1'b0;
            inc_header <= 1'b0;
        end
    end
endmodule
