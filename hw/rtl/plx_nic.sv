// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The network card without its hard blocks: the card, the PCIe shim, and a PCS for each port, wired. A board's top
// has a transceiver for each lane and the PCIe block around it.

module plx_nic #(
    parameter PORTS    = 4,      // 1, 2 or 4
    parameter RD_TAGS  = 128,    // open reads of the card
    parameter TAGS     = 256,    // of reads at the PCIe block: 32, and more where the host enables extended tags
    parameter GIT_HASH = 160'h0  // commit of the build, in printed order
) (
    // Clock of the ports and of their transmitters, 156.25 MHz, and its reset, of two cycles or more; the PCIe
    // block's user clock, 250 MHz, and its reset.
    input  logic                  clk_net,
    input  logic                  rst_net,
    input  logic                  clk_core,
    input  logic                  rst_core,

    // Lanes: blocks of 66 bits to and from the transceivers, the lane's received clock, and its state.
    output logic [PORTS*2-1:0]    lane_tx_header,
    output logic [PORTS*64-1:0]   lane_tx_data,
    input  logic [PORTS-1:0]      lane_clk_rx_net,
    input  logic [PORTS*2-1:0]    lane_rx_header,
    input  logic [PORTS*64-1:0]   lane_rx_data,
    input  logic [PORTS-1:0]      lane_rx_signal_ok,
    output logic [PORTS-1:0]      lane_rx_slip,
    output logic [PORTS-1:0]      lane_locked,

    // Timing input of the card: external clock, start and end of burst, trigger. Any clock; rising edges count.
    input  logic                  ttc_clock,
    input  logic                  ttc_start,
    input  logic                  ttc_end,
    input  logic                  ttc_trigger,

    // The block: requests of the card, and their completions.
    output logic                  m_axis_rq_tvalid,
    input  logic                  m_axis_rq_tready,
    output logic [255:0]          m_axis_rq_tdata,
    output logic [7:0]            m_axis_rq_tkeep,
    output logic [61:0]           m_axis_rq_tuser,
    output logic                  m_axis_rq_tlast,
    input  logic                  s_axis_rc_tvalid,
    output logic                  s_axis_rc_tready,
    input  logic [255:0]          s_axis_rc_tdata,
    input  logic [7:0]            s_axis_rc_tkeep,
    input  logic [74:0]           s_axis_rc_tuser,
    input  logic                  s_axis_rc_tlast,

    // The block: requests of the host, and their completions.
    input  logic                  s_axis_cq_tvalid,
    output logic                  s_axis_cq_tready,
    input  logic [255:0]          s_axis_cq_tdata,
    input  logic [7:0]            s_axis_cq_tkeep,
    input  logic [87:0]           s_axis_cq_tuser,
    input  logic                  s_axis_cq_tlast,
    output logic                  m_axis_cc_tvalid,
    input  logic                  m_axis_cc_tready,
    output logic [255:0]          m_axis_cc_tdata,
    output logic [7:0]            m_axis_cc_tkeep,
    output logic [32:0]           m_axis_cc_tuser,
    output logic                  m_axis_cc_tlast,

    // The block: flow control.
    input  logic [5:0]            pcie_rq_seq_num0,
    input  logic                  pcie_rq_seq_num_vld0,
    input  logic [5:0]            pcie_rq_seq_num1,
    input  logic                  pcie_rq_seq_num_vld1,
    output logic [1:0]            pcie_cq_np_req,
    output logic [2:0]            cfg_fc_sel,
    input  logic [7:0]            cfg_fc_nph,

    // The block: configuration, of function 0 in the lowest bits, and of the virtual ones: first to seventh.
    input  logic [1:0]            cfg_max_payload,
    input  logic [2:0]            cfg_max_read_req,
    input  logic [15:0]           cfg_function_status,
    input  logic [3:0]            cfg_interrupt_msix_enable,
    input  logic [3:0]            cfg_interrupt_msix_mask,
    input  logic [13:0]           cfg_vf_status,
    input  logic [6:0]            cfg_interrupt_msix_vf_enable,
    input  logic [6:0]            cfg_interrupt_msix_vf_mask,
    output logic                  cfg_config_space_enable,
    input  logic                  cfg_power_state_change_interrupt,
    output logic                  cfg_power_state_change_ack,
    input  logic [3:0]            cfg_flr_in_process,
    output logic [3:0]            cfg_flr_done,
    input  logic [6:0]            cfg_vf_flr_in_process,
    output logic [7:0]            cfg_vf_flr_func_num,
    output logic                  cfg_vf_flr_done,

    // The block: its configuration space.
    output logic [9:0]            cfg_mgmt_addr,
    output logic [7:0]            cfg_mgmt_function_number,
    output logic                  cfg_mgmt_read,
    input  logic [31:0]           cfg_mgmt_read_data,
    input  logic                  cfg_mgmt_read_write_done
);
    // ---- Lanes -----------------------------------------------------------------------------------------

    logic [PORTS*64-1:0] xgmii_txd, xgmii_rxd;
    logic [PORTS*8-1:0]  xgmii_txc, xgmii_rxc;

    // Registers of each PCS are in its port.
    localparam STS_W = pcs_pkg::STS_W, INC_W = pcs_pkg::INC_W;
    logic [PORTS-1:0]       prbs31_tx, prbs31_rx, signal_ok, hi_ber;
    logic [PORTS*STS_W-1:0] pcs_state;
    logic [PORTS*INC_W-1:0] pcs_inc;

    generate
        for (genvar i = 0; i < PORTS; i = i + 1) begin : g_lane
            logic [1:0] ber, errored_blocks, deleted, overflow;
            logic [7:0] prbs31_errors;
            logic       inserted, underflow, tx_error;

            plx_pcs pcs (
                .clk_net, .rst_net, .xgmii_txd(xgmii_txd[i*64+:64]), .xgmii_txc(xgmii_txc[i*8+:8]),
                .xgmii_rxd(xgmii_rxd[i*64+:64]), .xgmii_rxc(xgmii_rxc[i*8+:8]), .tx_header(lane_tx_header[i*2+:2]),
                .tx_data(lane_tx_data[i*64+:64]), .clk_rx_net(lane_clk_rx_net[i]),
                .rx_header(lane_rx_header[i*2+:2]), .rx_data(lane_rx_data[i*64+:64]),
                .rx_signal_ok(lane_rx_signal_ok[i]), .rx_slip(lane_rx_slip[i]), .cfg_prbs31_tx(prbs31_tx[i]),
                .cfg_prbs31_rx(prbs31_rx[i]), .sts_signal_ok(signal_ok[i]), .sts_block_lock(lane_locked[i]),
                .sts_hi_ber(hi_ber[i]), .inc_ber(ber), .inc_errored_blocks(errored_blocks),
                .inc_prbs31_errors(prbs31_errors), .inc_deleted(deleted), .inc_inserted(inserted),
                .inc_overflow(overflow), .inc_underflow(underflow), .inc_tx_error(tx_error)
            );

            assign pcs_state[i*STS_W+:STS_W] = {hi_ber[i], lane_locked[i], signal_ok[i], 1'b1};
            assign pcs_inc[i*INC_W+:INC_W]   = {
                tx_error, underflow, overflow, inserted, deleted, prbs31_errors, errored_blocks, ber
            };
        end
    endgenerate

    // ---- The host bus behind the PCIe block ------------------------------------------------------------

    // Sampled in its clock by the shim and the card, and by plx_sync_reset without one.
    /* verilator lint_off SYNCASYNCNET */
    logic         card_rst;
    /* verilator lint_on SYNCASYNCNET */
    logic         hif_wr_req_valid, hif_wr_req_ready, hif_wr_req_sop, hif_wr_req_eop;
    logic         hif_rd_req_valid, hif_rd_req_ready;
    logic         hif_rx_cpl_valid, hif_rx_cpl_ready, hif_rx_cpl_sop, hif_rx_cpl_eop;
    logic         hif_rx_req_valid, hif_rx_req_ready, hif_rx_req_sop, hif_rx_req_eop;
    logic         hif_tx_cpl_valid, hif_tx_cpl_ready, hif_tx_cpl_sop, hif_tx_cpl_eop;
    logic [127:0] hif_wr_req_header, hif_rd_req_header, hif_rx_cpl_header, hif_rx_req_header, hif_tx_cpl_header;
    logic [255:0] hif_wr_req_data, hif_rx_cpl_data, hif_rx_req_data, hif_tx_cpl_data;
    logic [2:0]   card_max_payload, card_max_read;
    logic [7:0]   card_bus_master, card_msix_enable, card_msix_mask, card_flr, card_flr_done;

    // Its counts have no registers.
    /* verilator lint_off PINCONNECTEMPTY */
    plx_pcie_us #(.RD_TAGS(RD_TAGS), .TAGS(TAGS)) shim (
        .clk(clk_core), .rst(rst_core), .card_rst,
        .m_axis_rq_tvalid, .m_axis_rq_tready, .m_axis_rq_tdata, .m_axis_rq_tkeep, .m_axis_rq_tuser,
        .m_axis_rq_tlast, .s_axis_rc_tvalid, .s_axis_rc_tready, .s_axis_rc_tdata, .s_axis_rc_tkeep,
        .s_axis_rc_tuser, .s_axis_rc_tlast, .s_axis_cq_tvalid, .s_axis_cq_tready, .s_axis_cq_tdata,
        .s_axis_cq_tkeep, .s_axis_cq_tuser, .s_axis_cq_tlast, .m_axis_cc_tvalid, .m_axis_cc_tready,
        .m_axis_cc_tdata, .m_axis_cc_tkeep, .m_axis_cc_tuser, .m_axis_cc_tlast, .pcie_rq_seq_num0,
        .pcie_rq_seq_num_vld0, .pcie_rq_seq_num1, .pcie_rq_seq_num_vld1, .pcie_cq_np_req, .cfg_fc_sel, .cfg_fc_nph,
        .cfg_max_payload, .cfg_max_read_req, .cfg_function_status, .cfg_interrupt_msix_enable,
        .cfg_interrupt_msix_mask, .cfg_vf_status, .cfg_interrupt_msix_vf_enable, .cfg_interrupt_msix_vf_mask,
        .cfg_config_space_enable, .cfg_power_state_change_interrupt, .cfg_power_state_change_ack,
        .cfg_flr_in_process, .cfg_flr_done, .cfg_vf_flr_in_process, .cfg_vf_flr_func_num, .cfg_vf_flr_done,
        .cfg_mgmt_addr, .cfg_mgmt_function_number, .cfg_mgmt_read, .cfg_mgmt_read_data, .cfg_mgmt_read_write_done,
        .hif_wr_req_valid, .hif_wr_req_ready, .hif_wr_req_sop, .hif_wr_req_eop, .hif_wr_req_header,
        .hif_wr_req_data, .hif_rd_req_valid, .hif_rd_req_ready, .hif_rd_req_header, .hif_rx_cpl_valid,
        .hif_rx_cpl_ready, .hif_rx_cpl_sop, .hif_rx_cpl_eop, .hif_rx_cpl_header, .hif_rx_cpl_data,
        .hif_rx_req_valid, .hif_rx_req_ready, .hif_rx_req_sop, .hif_rx_req_eop, .hif_rx_req_header,
        .hif_rx_req_data, .hif_tx_cpl_valid, .hif_tx_cpl_ready, .hif_tx_cpl_sop, .hif_tx_cpl_eop,
        .hif_tx_cpl_header, .hif_tx_cpl_data,
        .card_max_payload, .card_max_read, .card_bus_master, .card_msix_enable, .card_msix_mask, .card_flr,
        .card_flr_done,
        .inc_cq_refused(), .inc_cq_dropped(), .inc_rc_discontinued(), .inc_rq_dropped(), .inc_tag_lost()
    );
    /* verilator lint_on PINCONNECTEMPTY */

    // ---- The card --------------------------------------------------------------------------------------

    plx_card #(.PORTS(PORTS), .RD_TAGS(RD_TAGS), .GIT_HASH(GIT_HASH)) card (
        .clk_net, .rst_net, .clk_core, .rst_core(card_rst), .xgmii_rxd, .xgmii_rxc, .xgmii_txd, .xgmii_txc,
        .cfg_prbs31_tx(prbs31_tx), .cfg_prbs31_rx(prbs31_rx), .sts_pcs(pcs_state), .inc_pcs(pcs_inc),
        .ttc_clock, .ttc_start, .ttc_end, .ttc_trigger,
        .hif_wr_req_valid, .hif_wr_req_ready, .hif_wr_req_sop, .hif_wr_req_eop, .hif_wr_req_header,
        .hif_wr_req_data, .hif_rd_req_valid, .hif_rd_req_ready, .hif_rd_req_header, .hif_rx_cpl_valid,
        .hif_rx_cpl_ready, .hif_rx_cpl_sop, .hif_rx_cpl_eop, .hif_rx_cpl_header, .hif_rx_cpl_data,
        .hif_rx_req_valid, .hif_rx_req_ready, .hif_rx_req_sop, .hif_rx_req_eop, .hif_rx_req_header,
        .hif_rx_req_data, .hif_tx_cpl_valid, .hif_tx_cpl_ready, .hif_tx_cpl_sop, .hif_tx_cpl_eop,
        .hif_tx_cpl_header, .hif_tx_cpl_data,
        .cfg_max_payload(card_max_payload), .cfg_max_read(card_max_read), .cfg_bus_master(card_bus_master),
        .cfg_msix_enable(card_msix_enable), .cfg_msix_mask(card_msix_mask), .cfg_flr(card_flr),
        .flr_done(card_flr_done)
    );
endmodule
