// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A sending MAC whose XGMII is that of a receiving one.

module mac_loop (
    input  logic        clk,
    input  logic        rst,

    // Frames in.
    input  logic        s_axis_tx_tvalid,
    output logic        s_axis_tx_tready,
    input  logic [63:0] s_axis_tx_tdata,
    input  logic [7:0]  s_axis_tx_tkeep,
    input  logic        s_axis_tx_tlast,
    input  logic        s_axis_tx_tuser,

    // Frames out.
    output logic        m_axis_rx_tvalid,
    output logic [63:0] m_axis_rx_tdata,
    output logic [7:0]  m_axis_rx_tkeep,
    output logic        m_axis_rx_tlast,
    output logic        m_axis_rx_tuser,

    // Counts.
    output logic        inc_sent,
    output logic        inc_aborted,
    output logic        inc_received,
    output logic        inc_symbol
);
    logic [63:0] data;
    logic [7:0]  control;

    plx_mac_tx tx (
        .clk, .rst,
        .s_axis_tx_tvalid, .s_axis_tx_tready, .s_axis_tx_tdata, .s_axis_tx_tkeep, .s_axis_tx_tlast, .s_axis_tx_tuser,
        .xgmii_txd(data), .xgmii_txc(control),
        .cfg_enable(1'b1), .pause(1'b0), .local_fault(1'b0), .remote_fault(1'b0),
        .inc_frames(inc_sent), .inc_bytes(), .inc_aborted, .inc_fault(), .inc_paused(),
        .busy()
    );

    plx_mac_rx rx (
        .clk, .rst,
        .xgmii_rxd(data), .xgmii_rxc(control),
        .m_axis_rx_tvalid, .m_axis_rx_tdata, .m_axis_rx_tkeep, .m_axis_rx_tlast, .m_axis_rx_tuser,
        .m_axis_rx_cycle_ts(), .m_axis_rx_timestamp_ns(), .m_axis_rx_timestamp_valid(),
        .now_cycle_ts(32'd0), .now_timestamp_ns(64'd0), .now_timestamp_valid(1'b0),
        .cfg_enable(1'b1), .cfg_max_frame(14'd9022), .cfg_mac(48'd0),
        .pause_valid(), .pause_quanta(),
        .inc_frames(inc_received), .inc_bytes(), .inc_symbol, .inc_oversize(), .inc_runt(), .inc_fcs(), .inc_pause(),
        .busy()
    );
endmodule
