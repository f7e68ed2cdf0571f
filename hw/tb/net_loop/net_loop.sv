// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A port whose wire is connected to itself: net, plx_mac_tx, plx_mac_rx; the wire is XGMII, or the blocks of its PCS.

module net_loop #(
    parameter PCS = 0  // 1: with the PCS and a received clock of its own
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        clk_rx_net,
    output logic        locked,
    input  logic        s_axis_tx_tvalid,
    output logic        s_axis_tx_tready,
    input  logic [63:0] s_axis_tx_tdata,
    input  logic [7:0]  s_axis_tx_tkeep,
    input  logic        s_axis_tx_tlast,
    input  logic        s_axis_meta_tvalid,
    output logic        s_axis_meta_tready,
    input  logic [layouts_pkg::TX_META_W-1:0] s_axis_meta_tdata,
    output logic        m_axis_payload_tvalid,
    output logic [63:0] m_axis_payload_tdata,
    output logic [7:0]  m_axis_payload_tkeep,
    output logic        m_axis_payload_tlast,
    output logic        m_axis_payload_tuser,
    input  logic [47:0] cfg_mac,
    input  logic [31:0] cfg_ip,
    input  logic        cfg_promiscuous,
    input  logic        cfg_multicast,
    input  logic        cfg_arp,
    input  logic        cfg_echo,
    input  logic        cfg_checksum,
    input  logic [13:0] cfg_max_frame,
    input  logic [255:0] cfg_stream_port,
    input  logic [31:0] cfg_stream_form,
    input  logic [15:0] cfg_stream_enable,
    input  logic        cfg_catch_udp,
    input  logic        cfg_catch_other,
    // Frames sent, frames received, frames lost anywhere.
    output logic        sent,
    output logic        received,
    output logic        lost
);
    logic [63:0] xgmii_d, back_d, tx_data, rx_data, rx_timestamp_ns;
    logic [7:0]  xgmii_c, back_c, tx_keep, rx_keep;
    logic        tx_valid, tx_ready, tx_last, rx_valid, rx_last, rx_user, rx_timestamp_valid;
    logic [31:0] rx_cycle_ts, now;
    logic [4:0]  rx_lost;
    logic [6:0]  net_lost;
    logic [1:0]  tx_lost;

    assign lost = |rx_lost || |net_lost || |tx_lost;

    always_ff @(posedge clk) now <= rst ? 32'd0 : now + 32'd1;

    plx_net port (
        .s_axis_rx_tvalid(rx_valid), .s_axis_rx_tdata(rx_data), .s_axis_rx_tkeep(rx_keep), .s_axis_rx_tlast(rx_last),
        .s_axis_rx_tuser(rx_user), .s_axis_rx_cycle_ts(rx_cycle_ts), .s_axis_rx_timestamp_ns(rx_timestamp_ns),
        .s_axis_rx_timestamp_valid(rx_timestamp_valid), .m_axis_meta_tvalid(), .m_axis_meta_tdata(),
        .m_axis_tx_tvalid(tx_valid), .m_axis_tx_tready(tx_ready), .m_axis_tx_tdata(tx_data),
        .m_axis_tx_tkeep(tx_keep), .m_axis_tx_tlast(tx_last), .now_cycle_ts(now),
        .cfg_destination_ip(cfg_ip), .cfg_destination_port(16'd0), .cfg_source_port(16'd0), .cfg_ttl(8'd64),
        .cfg_tos(8'd0), .cfg_arp_wait_cycles(32'd100), .cfg_arp_retry(16'd1), .cfg_arp_expiry(16'd0),
        .arp_flush(1'b0), .win_valid(1'b0), .win_ready(), .win_write(1'b0), .win_addr(12'd0), .win_wdata(32'd0),
        .win_wstrb(4'd0), .win_rdata(), .inc_drop_address(net_lost[0]), .inc_drop_malformed(net_lost[1]),
        .inc_drop_checksum(net_lost[2]), .inc_drop_fragment(net_lost[3]), .inc_drop_unsupported(net_lost[4]),
        .inc_drop_miss(net_lost[5]), .inc_drop_answer(), .inc_arp_frames(), .inc_echo_frames(),
        .inc_tx_unresolved(net_lost[6]), .m_lost_valid(), .m_lost_cookie(), .discard(1'b0),
        .rx_busy(), .tx_busy(), .ring_busy(), .*
    );

    plx_mac_tx sender (
        .clk, .rst, .s_axis_tx_tvalid(tx_valid), .s_axis_tx_tready(tx_ready), .s_axis_tx_tdata(tx_data),
        .s_axis_tx_tkeep(tx_keep), .s_axis_tx_tlast(tx_last), .s_axis_tx_tuser(1'b0), .xgmii_txd(xgmii_d),
        .xgmii_txc(xgmii_c), .cfg_enable(1'b1), .pause(1'b0), .local_fault(1'b0), .remote_fault(1'b0),
        .inc_frames(sent), .inc_bytes(), .inc_aborted(tx_lost[0]), .inc_fault(tx_lost[1]), .inc_paused(), .busy()
    );

    generate
        if (PCS != 0) begin : g_pcs
            logic [1:0]  header;
            logic [63:0] block;

            plx_pcs pcs (
                .clk_net(clk), .rst_net(rst), .xgmii_txd(xgmii_d), .xgmii_txc(xgmii_c), .xgmii_rxd(back_d),
                .xgmii_rxc(back_c), .tx_header(header), .tx_data(block), .clk_rx_net, .rx_header(header),
                .rx_data(block), .rx_signal_ok(1'b1), .rx_slip(), .cfg_prbs31_tx(1'b0), .cfg_prbs31_rx(1'b0),
                .sts_signal_ok(), .sts_block_lock(locked), .sts_hi_ber(), .inc_ber(), .inc_errored_blocks(),
                .inc_prbs31_errors(), .inc_deleted(), .inc_inserted(), .inc_overflow(), .inc_underflow(),
                .inc_tx_error()
            );
        end else begin : g_wire
            assign {locked, back_d, back_c} = {1'b1, xgmii_d, xgmii_c};
        end
    endgenerate

    plx_mac_rx receiver (
        .clk, .rst, .xgmii_rxd(back_d), .xgmii_rxc(back_c), .m_axis_rx_tvalid(rx_valid), .m_axis_rx_tdata(rx_data),
        .m_axis_rx_tkeep(rx_keep), .m_axis_rx_tlast(rx_last), .m_axis_rx_tuser(rx_user),
        .m_axis_rx_cycle_ts(rx_cycle_ts), .m_axis_rx_timestamp_ns(rx_timestamp_ns),
        .m_axis_rx_timestamp_valid(rx_timestamp_valid), .now_cycle_ts(now), .now_timestamp_ns(64'd0),
        .now_timestamp_valid(1'b0), .cfg_enable(1'b1), .cfg_max_frame, .cfg_mac, .pause_valid(), .pause_quanta(),
        .inc_frames(received), .inc_bytes(), .inc_symbol(rx_lost[0]), .inc_oversize(rx_lost[1]),
        .inc_runt(rx_lost[2]), .inc_fcs(rx_lost[3]), .inc_pause(rx_lost[4]), .busy()
    );
endmodule
