// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The whole card behind the PCIe shim: two ports, as many event queues as vectors (pcie.py).

module pcie_card #(
    parameter PORTS   = 2,
    parameter RD_TAGS = 16
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         clk_net,
    input  logic         sys_reset,

    // The block.
    output logic         m_axis_rq_tvalid,
    input  logic         m_axis_rq_tready,
    output logic [255:0] m_axis_rq_tdata,
    output logic [7:0]   m_axis_rq_tkeep,
    output logic [61:0]  m_axis_rq_tuser,
    output logic         m_axis_rq_tlast,
    input  logic         s_axis_rc_tvalid,
    output logic         s_axis_rc_tready,
    input  logic [255:0] s_axis_rc_tdata,
    input  logic [7:0]   s_axis_rc_tkeep,
    input  logic [74:0]  s_axis_rc_tuser,
    input  logic         s_axis_rc_tlast,
    input  logic         s_axis_cq_tvalid,
    output logic         s_axis_cq_tready,
    input  logic [255:0] s_axis_cq_tdata,
    input  logic [7:0]   s_axis_cq_tkeep,
    input  logic [87:0]  s_axis_cq_tuser,
    input  logic         s_axis_cq_tlast,
    output logic         m_axis_cc_tvalid,
    input  logic         m_axis_cc_tready,
    output logic [255:0] m_axis_cc_tdata,
    output logic [7:0]   m_axis_cc_tkeep,
    output logic [32:0]  m_axis_cc_tuser,
    output logic         m_axis_cc_tlast,
    input  logic [5:0]   pcie_rq_seq_num0,
    input  logic         pcie_rq_seq_num_vld0,
    input  logic [5:0]   pcie_rq_seq_num1,
    input  logic         pcie_rq_seq_num_vld1,
    output logic [1:0]   pcie_cq_np_req,
    output logic [2:0]   cfg_fc_sel,
    input  logic [7:0]   cfg_fc_nph,
    input  logic [1:0]   cfg_max_payload,
    input  logic [2:0]   cfg_max_read_req,
    input  logic [15:0]  cfg_function_status,
    input  logic [3:0]   cfg_interrupt_msix_enable,
    input  logic [3:0]   cfg_interrupt_msix_mask,
    input  logic [13:0]  cfg_vf_status,
    input  logic [6:0]   cfg_interrupt_msix_vf_enable,
    input  logic [6:0]   cfg_interrupt_msix_vf_mask,
    output logic         cfg_config_space_enable,
    input  logic         cfg_power_state_change_interrupt,
    output logic         cfg_power_state_change_ack,
    input  logic [3:0]   cfg_flr_in_process,
    output logic [3:0]   cfg_flr_done,
    input  logic [6:0]   cfg_vf_flr_in_process,
    output logic [7:0]   cfg_vf_flr_func_num,
    output logic         cfg_vf_flr_done,
    output logic [9:0]   cfg_mgmt_addr,
    output logic [7:0]   cfg_mgmt_function_number,
    output logic         cfg_mgmt_write,
    output logic [31:0]  cfg_mgmt_write_data,
    output logic [3:0]   cfg_mgmt_byte_enable,
    output logic         cfg_mgmt_read,
    input  logic [31:0]  cfg_mgmt_read_data,
    input  logic         cfg_mgmt_read_write_done,

    // XGMII of the ports; reset of the card.
    input  logic [PORTS*64-1:0] xgmii_rxd,
    input  logic [PORTS*8-1:0]  xgmii_rxc,
    output logic [PORTS*64-1:0] xgmii_txd,
    output logic [PORTS*8-1:0]  xgmii_txc,
    output logic                card_rst
);
    logic         wr_valid, wr_ready, wr_sop, wr_eop, rd_valid, rd_ready, cpl_valid, cpl_ready, cpl_sop, cpl_eop;
    logic         req_valid, req_ready, req_sop, req_eop, tx_valid, tx_ready, tx_sop, tx_eop;
    logic [127:0] wr_header, rd_header, cpl_header, req_header, tx_header;
    logic [255:0] wr_data, cpl_data, req_data, tx_data;
    logic [2:0]   max_payload, max_read;
    logic [7:0]   bus_master, msix_enable, msix_mask, flr, flr_done;

    // The model looks at these before the first reset; the shim never writes.
    wire mgmt_read;
    assign cfg_mgmt_read = mgmt_read === 1'b1;
    assign {cfg_mgmt_write, cfg_mgmt_write_data, cfg_mgmt_byte_enable} = '0;

    plx_pcie_us #(.PERIOD_LOG2(14), .RD_TAGS(RD_TAGS)) shim (
        .clk, .rst, .card_rst,
        .m_axis_rq_tvalid, .m_axis_rq_tready, .m_axis_rq_tdata, .m_axis_rq_tkeep, .m_axis_rq_tuser, .m_axis_rq_tlast,
        .s_axis_rc_tvalid, .s_axis_rc_tready, .s_axis_rc_tdata, .s_axis_rc_tkeep, .s_axis_rc_tuser, .s_axis_rc_tlast,
        .s_axis_cq_tvalid, .s_axis_cq_tready, .s_axis_cq_tdata, .s_axis_cq_tkeep, .s_axis_cq_tuser, .s_axis_cq_tlast,
        .m_axis_cc_tvalid, .m_axis_cc_tready, .m_axis_cc_tdata, .m_axis_cc_tkeep, .m_axis_cc_tuser, .m_axis_cc_tlast,
        .pcie_rq_seq_num0, .pcie_rq_seq_num_vld0, .pcie_rq_seq_num1, .pcie_rq_seq_num_vld1, .pcie_cq_np_req,
        .cfg_fc_sel, .cfg_fc_nph, .cfg_max_payload, .cfg_max_read_req, .cfg_function_status,
        .cfg_interrupt_msix_enable, .cfg_interrupt_msix_mask, .cfg_config_space_enable,
        .cfg_power_state_change_interrupt, .cfg_power_state_change_ack, .cfg_flr_in_process, .cfg_flr_done,
        .cfg_vf_status, .cfg_interrupt_msix_vf_enable, .cfg_interrupt_msix_vf_mask, .cfg_vf_flr_in_process,
        .cfg_vf_flr_func_num, .cfg_vf_flr_done,
        .cfg_mgmt_addr, .cfg_mgmt_function_number, .cfg_mgmt_read(mgmt_read), .cfg_mgmt_read_data,
        .cfg_mgmt_read_write_done, .hif_wr_req_valid(wr_valid), .hif_wr_req_ready(wr_ready), .hif_wr_req_sop(wr_sop),
        .hif_wr_req_eop(wr_eop), .hif_wr_req_header(wr_header), .hif_wr_req_data(wr_data), .hif_rd_req_valid(rd_valid),
        .hif_rd_req_ready(rd_ready), .hif_rd_req_header(rd_header), .hif_rx_cpl_valid(cpl_valid),
        .hif_rx_cpl_ready(cpl_ready), .hif_rx_cpl_sop(cpl_sop), .hif_rx_cpl_eop(cpl_eop),
        .hif_rx_cpl_header(cpl_header), .hif_rx_cpl_data(cpl_data), .hif_rx_req_valid(req_valid),
        .hif_rx_req_ready(req_ready), .hif_rx_req_sop(req_sop), .hif_rx_req_eop(req_eop),
        .hif_rx_req_header(req_header), .hif_rx_req_data(req_data), .hif_tx_cpl_valid(tx_valid),
        .hif_tx_cpl_ready(tx_ready), .hif_tx_cpl_sop(tx_sop), .hif_tx_cpl_eop(tx_eop), .hif_tx_cpl_header(tx_header),
        .hif_tx_cpl_data(tx_data), .card_max_payload(max_payload), .card_max_read(max_read),
        .card_bus_master(bus_master), .card_msix_enable(msix_enable), .card_msix_mask(msix_mask), .card_flr(flr),
        .card_flr_done(flr_done),
        .inc_cq_refused(), .inc_cq_dropped(), .inc_rc_discontinued(), .inc_rq_dropped(), .inc_tag_lost()
    );

    plx_card #(
        .PORTS(PORTS), .TLB_ENTRIES(32), .EVENT_QUEUES(8), .RD_TAGS(RD_TAGS), .RX_FIFO_WORDS(256), .RX_FIFO_FRAMES(32),
        .ARP_ENTRIES(16)
    ) card (
        .clk_net, .rst_net(card_rst), .clk_core(clk), .rst_core(card_rst), .xgmii_rxd, .xgmii_rxc, .xgmii_txd, .xgmii_txc,
        .cfg_prbs31_tx(), .cfg_prbs31_rx(), .sts_pcs('0), .inc_pcs('0),
        .ttc_clock(1'b0), .ttc_start(1'b0), .ttc_end(1'b0), .ttc_trigger(1'b0),
        .hif_wr_req_valid(wr_valid), .hif_wr_req_ready(wr_ready), .hif_wr_req_sop(wr_sop), .hif_wr_req_eop(wr_eop),
        .hif_wr_req_header(wr_header), .hif_wr_req_data(wr_data), .hif_rd_req_valid(rd_valid),
        .hif_rd_req_ready(rd_ready), .hif_rd_req_header(rd_header), .hif_rx_cpl_valid(cpl_valid),
        .hif_rx_cpl_ready(cpl_ready), .hif_rx_cpl_sop(cpl_sop), .hif_rx_cpl_eop(cpl_eop),
        .hif_rx_cpl_header(cpl_header), .hif_rx_cpl_data(cpl_data), .hif_rx_req_valid(req_valid),
        .hif_rx_req_ready(req_ready), .hif_rx_req_sop(req_sop), .hif_rx_req_eop(req_eop),
        .hif_rx_req_header(req_header), .hif_rx_req_data(req_data), .hif_tx_cpl_valid(tx_valid),
        .hif_tx_cpl_ready(tx_ready), .hif_tx_cpl_sop(tx_sop), .hif_tx_cpl_eop(tx_eop), .hif_tx_cpl_header(tx_header),
        .hif_tx_cpl_data(tx_data), .cfg_max_payload(max_payload), .cfg_max_read(max_read), .cfg_bus_master(bus_master),
        .cfg_msix_enable(msix_enable), .cfg_msix_mask(msix_mask), .cfg_flr(flr), .flr_done
    );
endmodule
