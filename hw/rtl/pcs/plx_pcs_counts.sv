// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Counts of the received clock, to clk_net. Amounts are written to a queue as soon as any is not 0, and add up
// while it is full, so that none is lost at any phase, or where the received clock is faster. While clk_net
// stands they stop at their greatest value, and further counts are lost.

module plx_pcs_counts (
    // Of each cycle: an invalid header, a block of errors, a column deleted, a word lost; wrong bits of a pattern.
    input  logic       clk_rx_net,
    input  logic       rst_rx,
    input  logic       s_ber,
    input  logic       s_errored_block,
    input  logic       s_deleted,
    input  logic       s_overflow,
    input  logic [6:0] s_prbs31_errors,

    // The same in the card's clock, as numbers to add; its reset lasts until rst_rx has been sampled.
    input  logic       clk_net,
    input  logic       rst_net,
    output logic [1:0] inc_ber,
    output logic [1:0] inc_errored_blocks,
    output logic [1:0] inc_deleted,
    output logic [1:0] inc_overflow,
    output logic [7:0] inc_prbs31_errors
);
    localparam FLAGS = 4, W = 2 * FLAGS + 8;
    // More words than are on their way while one is written in each cycle, so that the queue is not full then.
    localparam DEPTH = 16;

    // ---- The received clock: amounts that wait, at most 2^bits - 1 -----------------------------------

    wire  [FLAGS-1:0]   flags = {s_overflow, s_deleted, s_errored_block, s_ber};
    logic [2*FLAGS-1:0] waiting;
    logic [7:0]         wrong;
    logic               ready, valid;
    logic [W-1:0]       word;

    wire       any  = waiting != 0 || wrong != 0;
    wire       take = any && ready;
    wire [8:0] more = {1'b0, take ? 8'd0 : wrong} + {2'b00, s_prbs31_errors};

    always_ff @(posedge clk_rx_net) wrong <= rst_rx ? 8'd0 : more[8] ? 8'hFF : more[7:0];

    generate
        for (genvar i = 0; i < FLAGS; i = i + 1) begin : g_flag
            wire [1:0] rest = take ? 2'd0 : waiting[2*i+:2];

            always_ff @(posedge clk_rx_net) waiting[2*i+:2] <= rst_rx ? 2'd0 : rest + {1'b0, flags[i] && rest != 2'd3};
        end
    endgenerate

    plx_fifo_async #(.WIDTH(W), .DEPTH(DEPTH)) queue (
        .w_clk(clk_rx_net), .w_rst(rst_rx), .s_valid(any), .s_ready(ready), .s_data({wrong, waiting}),
        .r_clk(clk_net), .r_rst(rst_net), .m_valid(valid), .m_ready(1'b1), .m_data(word)
    );

    // ---- The card's clock ----------------------------------------------------------------------------

    always_ff @(posedge clk_net) begin
        {inc_prbs31_errors, inc_overflow, inc_deleted, inc_errored_blocks, inc_ber} <= valid ? word : '0;
    end
endmodule
