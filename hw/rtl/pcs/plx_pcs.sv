// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// 10GBASE-R PCS of a lane (IEEE 802.3, clause 49), between XGMII in the card's clock and a transceiver
// that takes and gives a block of 66 bits in each cycle, and can move the boundary of received blocks.
// Both XGMII are in clk_net, which is the transmitter's clock, too; the received clock is the lane's own.

module plx_pcs #(
    parameter SLIP_CYCLES = 32,    // from a slip to the first block behind it, at least
    parameter BER_WINDOW  = 19531  // cycles of 125 us
) (
    // Clock of the card and of the transmitter, and its reset, of two cycles at least, which may be while the other
    // stands.
    input  logic        clk_net,
    input  logic        rst_net,

    // XGMII, lane 0 in the lowest bits.
    input  logic [63:0] xgmii_txd,
    input  logic [7:0]  xgmii_txc,
    output logic [63:0] xgmii_rxd,
    output logic [7:0]  xgmii_rxc,

    // Transceiver: blocks to send, bit 0 first, the header before the data.
    output logic [1:0]  tx_header,
    output logic [63:0] tx_data,

    // Transceiver: received clock and blocks; a signal is there, in any clock; move the boundary by a bit.
    input  logic        clk_rx_net,
    input  logic [1:0]  rx_header,
    input  logic [63:0] rx_data,
    input  logic        rx_signal_ok,
    output logic        rx_slip,

    // PRBS31 test pattern, sent and received in place of blocks.
    input  logic        cfg_prbs31_tx,
    input  logic        cfg_prbs31_rx,

    // State: a signal is there; the boundary of blocks is known, and words arrive; the error rate is high.
    output logic        sts_signal_ok,
    output logic        sts_block_lock,
    output logic        sts_hi_ber,

    // Counts, as numbers to add: invalid headers, blocks of errors and wrong bits of a test pattern received;
    // columns that the elastic buffer deleted, words that it inserted and lost, times that it had none; words
    // sent as errors.
    output logic [1:0]  inc_ber,
    output logic [1:0]  inc_errored_blocks,
    output logic [7:0]  inc_prbs31_errors,
    output logic [1:0]  inc_deleted,
    output logic        inc_inserted,
    output logic [1:0]  inc_overflow,
    output logic        inc_underflow,
    output logic        inc_tx_error
);
    plx_pcs_tx tx (
        .clk(clk_net), .rst(rst_net), .xgmii_txd, .xgmii_txc, .tx_header, .tx_data, .cfg_prbs31(cfg_prbs31_tx),
        .inc_error(inc_tx_error)
    );

    // ---- The received clock -------------------------------------------------------------------------

    logic        rst_out, rst_rx, signal, prbs31, locked, hi_ber, header_invalid, errored, lost, deleted;
    logic [63:0] word;
    logic [7:0]  control;
    logic [6:0]  wrong;

    // From a register, since it takes effect without the received clock.
    always_ff @(posedge clk_net) rst_out <= rst_net;

    plx_sync_reset reset (.clk(clk_rx_net), .rst_async(rst_out), .rst(rst_rx));
    plx_sync_bit #(.WIDTH(2)) settings (
        .clk(clk_rx_net), .rst(rst_rx), .d({rx_signal_ok, cfg_prbs31_rx}), .q({signal, prbs31})
    );

    plx_pcs_rx #(.SLIP_CYCLES(SLIP_CYCLES), .BER_WINDOW(BER_WINDOW)) rx (
        .clk(clk_rx_net), .rst(rst_rx), .rx_header, .rx_data, .rx_signal_ok(signal), .rx_slip, .xgmii_rxd(word),
        .xgmii_rxc(control), .cfg_prbs31(prbs31), .prbs31_errors(wrong), .locked, .hi_ber,
        .inc_header(header_invalid), .inc_error(errored)
    );

    // ---- To the card's clock ------------------------------------------------------------------------

    logic up, flows, locked_seen;

    plx_sync_bit #(.WIDTH(4)) state (
        .clk(clk_net), .rst(rst_net), .d({!rst_rx, rx_signal_ok, locked, hi_ber}),
        .q({up, sts_signal_ok, locked_seen, sts_hi_ber})
    );

    plx_pcs_elastic elastic (
        .clk_rx_net, .rst_rx, .s_xgmii_rxd(word), .s_xgmii_rxc(control),
        .clk_net, .rst_net(rst_net || !up), .m_xgmii_rxd(xgmii_rxd), .m_xgmii_rxc(xgmii_rxc), .flows,
        .inc_overflow(lost), .inc_underflow, .inc_deleted(deleted), .inc_inserted
    );

    assign sts_block_lock = locked_seen && flows;

    plx_pcs_counts counts (
        .clk_rx_net, .rst_rx, .s_ber(header_invalid), .s_errored_block(errored), .s_deleted(deleted), .s_overflow(lost),
        .s_prbs31_errors(wrong), .clk_net, .rst_net(rst_net || !up), .inc_ber, .inc_errored_blocks, .inc_deleted,
        .inc_overflow, .inc_prbs31_errors
    );
endmodule
