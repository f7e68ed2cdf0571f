// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A lane of 10GBASE-R on a GTY transceiver of AMD's UltraScale+ (UG578): the interface of plx_pcs, behind
// the transceiver's asynchronous 64B/66B gearbox. The received clock and its state are the lane's own;
// the transmitter's clock is given, so that all lanes share one. The core has the sequence of resets.

module plx_gty_lane #(
    parameter PLL = 1  // 1: has the PLL of the quad; 0: uses that of another lane
) (
    // The pins.
    input  logic        rx_p,
    input  logic        rx_n,
    output logic        tx_p,
    output logic        tx_n,

    // A clock that always runs, and the reset of the transceiver in it; the transceiver has power.
    input  logic        clk_free,
    input  logic        rst_free,
    output logic        power_good,

    // Reference clock, with PLL; the PLL: of this lane, and of the other one.
    input  logic        refclk,
    output logic        pll_clk,
    output logic        pll_refclk,
    output logic        pll_locked,
    input  logic        other_clk,
    input  logic        other_refclk,
    input  logic        other_locked,

    // Transmitter: its clock before the buffer, and whether that is valid; the clock in use, and whether
    // it runs. The transmitter is up.
    output logic        tx_clk_out,
    output logic        tx_clk_valid,
    input  logic        clk_net,
    input  logic        tx_active,
    output logic        tx_up,
    input  logic [1:0]  tx_header,
    input  logic [63:0] tx_data,

    // Receiver.
    output logic        clk_rx_net,
    output logic        rx_signal_ok,
    output logic [1:0]  rx_header,
    output logic [63:0] rx_data,
    input  logic        rx_slip
);
    // The transceiver's highest bit is the first one of the line.
    wire [63:0] to_gearbox, from_gearbox;
    wire [5:0]  header;

    assign rx_header = {header[0], header[1]};

    generate
        for (genvar i = 0; i < 64; i = i + 1) begin : g_bit
            assign to_gearbox[i] = tx_data[63-i];
            assign rx_data[i]    = from_gearbox[63-i];
        end
    endgenerate

    // ---- The received clock ----------------------------------------------------------------------------

    logic rx_clk_out, rx_clk_valid, rx_stopped;

    BUFG_GT rx_buffer (
        .I(rx_clk_out), .CE(1'b1), .CEMASK(1'b1), .CLR(1'b0), .CLRMASK(1'b1), .DIV(3'd0), .O(clk_rx_net)
    );

    plx_sync_reset rx_starts (.clk(clk_rx_net), .rst_async(!rx_clk_valid), .rst(rx_stopped));

    // ---- The transceiver -------------------------------------------------------------------------------

    /* verilator lint_off PINCONNECTEMPTY */
    generate
        if (PLL != 0) begin : g_pll
            plx_gty_full gty (
                .gtyrxp_in(rx_p), .gtyrxn_in(rx_n), .gtytxp_out(tx_p), .gtytxn_out(tx_n), .gtrefclk00_in(refclk),
                .gtpowergood_out(power_good), .qpll0lock_out(pll_locked), .qpll0outclk_out(pll_clk),
                .qpll0outrefclk_out(pll_refclk), .gtwiz_reset_clk_freerun_in(clk_free), .gtwiz_reset_all_in(rst_free),
                .gtwiz_reset_tx_pll_and_datapath_in(1'b0), .gtwiz_reset_tx_datapath_in(1'b0),
                .gtwiz_reset_rx_pll_and_datapath_in(1'b0), .gtwiz_reset_rx_datapath_in(1'b0),
                .gtwiz_reset_rx_cdr_stable_out(), .gtwiz_reset_tx_done_out(tx_up),
                .gtwiz_reset_rx_done_out(rx_signal_ok), .txoutclk_out(tx_clk_out), .txusrclk_in(clk_net),
                .txusrclk2_in(clk_net), .gtwiz_userclk_tx_active_in(tx_active), .txprgdivresetdone_out(tx_clk_valid),
                .gtwiz_userdata_tx_in(to_gearbox), .txheader_in({4'd0, tx_header[0], tx_header[1]}),
                .txsequence_in(7'd0), .rxoutclk_out(rx_clk_out), .rxusrclk_in(clk_rx_net), .rxusrclk2_in(clk_rx_net),
                .gtwiz_userclk_rx_active_in(!rx_stopped), .rxprgdivresetdone_out(rx_clk_valid),
                .gtwiz_userdata_rx_out(from_gearbox), .rxheader_out(header), .rxgearboxslip_in(rx_slip)
            );

            wire unused = &{1'b0, header[5:2], other_clk, other_refclk, other_locked};
        end else begin : g_channel
            assign {pll_clk, pll_refclk, pll_locked} = {other_clk, other_refclk, other_locked};

            plx_gty_channel gty (
                .gtyrxp_in(rx_p), .gtyrxn_in(rx_n), .gtytxp_out(tx_p), .gtytxn_out(tx_n),
                .gtpowergood_out(power_good), .qpll0clk_in(other_clk), .qpll0refclk_in(other_refclk),
                .qpll1clk_in(1'b0), .qpll1refclk_in(1'b0), .gtwiz_reset_qpll0lock_in(other_locked),
                .gtwiz_reset_qpll0reset_out(), .gtwiz_reset_clk_freerun_in(clk_free), .gtwiz_reset_all_in(rst_free),
                .gtwiz_reset_tx_pll_and_datapath_in(1'b0), .gtwiz_reset_tx_datapath_in(1'b0),
                .gtwiz_reset_rx_pll_and_datapath_in(1'b0), .gtwiz_reset_rx_datapath_in(1'b0),
                .gtwiz_reset_rx_cdr_stable_out(), .gtwiz_reset_tx_done_out(tx_up),
                .gtwiz_reset_rx_done_out(rx_signal_ok), .txoutclk_out(tx_clk_out), .txusrclk_in(clk_net),
                .txusrclk2_in(clk_net), .gtwiz_userclk_tx_active_in(tx_active), .txprgdivresetdone_out(tx_clk_valid),
                .gtwiz_userdata_tx_in(to_gearbox), .txheader_in({4'd0, tx_header[0], tx_header[1]}),
                .txsequence_in(7'd0), .rxoutclk_out(rx_clk_out), .rxusrclk_in(clk_rx_net), .rxusrclk2_in(clk_rx_net),
                .gtwiz_userclk_rx_active_in(!rx_stopped), .rxprgdivresetdone_out(rx_clk_valid),
                .gtwiz_userdata_rx_out(from_gearbox), .rxheader_out(header), .rxgearboxslip_in(rx_slip)
            );

            wire unused = &{1'b0, header[5:2], refclk};
        end
    endgenerate
    /* verilator lint_on PINCONNECTEMPTY */
endmodule
