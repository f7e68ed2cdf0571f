// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The card's host bus behind the PCIe block of AMD's UltraScale+ (PG213): 256 bit at 250 MHz, one physical
// function with seven virtual ones, DWORD aligned, no straddling, tags by the client, tables of MSI-X in the
// card. All in the block's user clock, which is the card's `clk_core`. MSI-X is a posted write behind the
// payload that it announces, by the same stream, so the block's own interface for it is idle.

module plx_pcie_us #(
    parameter RD_TAGS     = 128, // of the card
    parameter TAGS        = 256, // at the block: the first 32, and more where the host enables extended tags
    parameter FIRST_VF    = 4,   // number of the first virtual function at the block: that of UltraScale+
    parameter PERIOD_LOG2 = 24   // cycles after which a tag that the block has lost is old
) (
    // The block's user clock and reset, and the reset of the card.
    input  logic         clk,
    input  logic         rst,
    output logic         card_rst,

    // The block: requests of the card, and their completions.
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

    // The block: requests of the host, and their completions.
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

    // The block: flow control.
    input  logic [5:0]   pcie_rq_seq_num0,
    input  logic         pcie_rq_seq_num_vld0,
    input  logic [5:0]   pcie_rq_seq_num1,
    input  logic         pcie_rq_seq_num_vld1,
    output logic [1:0]   pcie_cq_np_req,
    output logic [2:0]   cfg_fc_sel,
    input  logic [7:0]   cfg_fc_nph,

    // The block: configuration, of function 0 in the lowest bits, and of the virtual ones: first to seventh.
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

    // The block: its configuration space.
    output logic [9:0]   cfg_mgmt_addr,
    output logic [7:0]   cfg_mgmt_function_number,
    output logic         cfg_mgmt_read,
    input  logic [31:0]  cfg_mgmt_read_data,
    input  logic         cfg_mgmt_read_write_done,

    // The card: posted writes.
    input  logic         hif_wr_req_valid,
    output logic         hif_wr_req_ready,
    input  logic         hif_wr_req_sop,
    input  logic         hif_wr_req_eop,
    input  logic [127:0] hif_wr_req_header,
    input  logic [255:0] hif_wr_req_data,

    // The card: reads, and their completions.
    input  logic         hif_rd_req_valid,
    output logic         hif_rd_req_ready,
    input  logic [127:0] hif_rd_req_header,
    output logic         hif_rx_cpl_valid,
    input  logic         hif_rx_cpl_ready,
    output logic         hif_rx_cpl_sop,
    output logic         hif_rx_cpl_eop,
    output logic [127:0] hif_rx_cpl_header,
    output logic [255:0] hif_rx_cpl_data,

    // The card: accesses of registers, and their completions.
    output logic         hif_rx_req_valid,
    input  logic         hif_rx_req_ready,
    output logic         hif_rx_req_sop,
    output logic         hif_rx_req_eop,
    output logic [127:0] hif_rx_req_header,
    output logic [255:0] hif_rx_req_data,
    input  logic         hif_tx_cpl_valid,
    output logic         hif_tx_cpl_ready,
    input  logic         hif_tx_cpl_sop,
    input  logic         hif_tx_cpl_eop,
    input  logic [127:0] hif_tx_cpl_header,
    input  logic [255:0] hif_tx_cpl_data,

    // The card: function 0 as configured. A bit for each function: as configured; a reset is requested, until
    // it is done.
    output logic [2:0]   card_max_payload,
    output logic [2:0]   card_max_read,
    output logic [7:0]   card_bus_master,
    output logic [7:0]   card_msix_enable,
    output logic [7:0]   card_msix_mask,
    output logic [7:0]   card_flr,
    input  logic [7:0]   card_flr_done,

    // One cycle for each: requests of the host refused, and dropped; completions discontinued; requests
    // of the card dropped without bus mastering; tags that the block has lost.
    output logic         inc_cq_refused,
    output logic         inc_cq_dropped,
    output logic         inc_rc_discontinued,
    output logic         inc_rq_dropped,
    output logic         inc_tag_lost
);
    localparam W = $clog2(TAGS), CW = $clog2(RD_TAGS);

    // ---- Configuration -----------------------------------------------------------------------------

    // Credits available at the transmitter.
    assign cfg_fc_sel              = 3'b100;
    assign cfg_config_space_enable = 1'b1;

    always_ff @(posedge clk) begin
        cfg_power_state_change_ack <= cfg_power_state_change_interrupt;
        card_max_payload           <= {1'b0, cfg_max_payload};
        card_max_read              <= cfg_max_read_req;
        if (rst) cfg_power_state_change_ack <= 1'b0;
    end

    plx_pcie_vf #(.FIRST_VF(FIRST_VF)) vf (
        .clk, .rst, .flush(card_rst), .cfg_function_status(cfg_function_status[3:0]), .cfg_vf_status,
        .cfg_interrupt_msix_enable(cfg_interrupt_msix_enable[0]), .cfg_interrupt_msix_mask(cfg_interrupt_msix_mask[0]),
        .cfg_interrupt_msix_vf_enable, .cfg_interrupt_msix_vf_mask, .cfg_vf_flr_in_process, .cfg_vf_flr_func_num,
        .cfg_vf_flr_done, .card_bus_master, .card_msix_enable, .card_msix_mask, .card_flr, .card_flr_done
    );

    logic hold, rq_idle, flr_done, ext_tag;
    assign cfg_flr_done = {3'd0, flr_done};

    plx_pcie_flr flr (
        .clk, .rst, .cfg_flr_in_process(cfg_flr_in_process[0]), .cfg_flr_done(flr_done), .hold,
        .idle(rq_idle), .card_rst
    );

    plx_pcie_ext_tag ext_tags (
        .clk, .rst, .hold, .cfg_mgmt_addr, .cfg_mgmt_function_number, .cfg_mgmt_read, .cfg_mgmt_read_data,
        .cfg_mgmt_read_write_done, .ext_tag
    );

    // ---- Requests of the host ----------------------------------------------------------------------

    logic np_accepted;

    plx_pcie_cq #(.FIRST_VF(FIRST_VF)) cq (
        .clk, .rst, .hold, .s_axis_cq_tvalid, .s_axis_cq_tready, .s_axis_cq_tdata, .s_axis_cq_tuser,
        .s_axis_cq_tlast, .hif_rx_req_valid, .hif_rx_req_ready, .hif_rx_req_sop, .hif_rx_req_eop, .hif_rx_req_header,
        .hif_rx_req_data, .np_accepted, .inc_cq_refused, .inc_cq_dropped
    );

    plx_pcie_cc #(.FIRST_VF(FIRST_VF)) cc (
        .clk, .rst, .flush(card_rst), .hif_tx_cpl_valid, .hif_tx_cpl_ready, .hif_tx_cpl_sop,
        .hif_tx_cpl_eop, .hif_tx_cpl_header, .hif_tx_cpl_data, .m_axis_cc_tvalid, .m_axis_cc_tready,
        .m_axis_cc_tdata, .m_axis_cc_tkeep, .m_axis_cc_tuser, .m_axis_cc_tlast, .np_accepted, .pcie_cq_np_req
    );

    // ---- Requests of the card ----------------------------------------------------------------------

    logic          tag_valid, tag_ready, look, current, return_valid, return_late;
    logic          refused_valid, refused_ready;
    logic [23:0]   refused;
    logic [W-1:0]  tag;
    logic [7:0]    look_tag, look_func;
    logic [CW-1:0] card_tag;

    // A read of the card that waits for its turn: the card's long paths begin with the acceptance, which so is a
    // register's. A reset of the card forgets it.
    logic          rd_valid, rd_ready;
    logic [127:0]  rd_header;

    plx_skid_through #(.WIDTH(128)) waits (
        .clk, .rst(rst || card_rst), .s_valid(hif_rd_req_valid), .s_ready(hif_rd_req_ready), .s_data(hif_rd_req_header),
        .m_valid(rd_valid), .m_ready(rd_ready), .m_data(rd_header)
    );

    plx_pcie_rq #(.W(W), .FIRST_VF(FIRST_VF)) rq (
        .clk, .rst, .flush(card_rst), .hold, .idle(rq_idle), .bus_master(card_bus_master), .hif_wr_req_valid,
        .hif_wr_req_ready, .hif_wr_req_sop, .hif_wr_req_eop, .hif_wr_req_header, .hif_wr_req_data,
        .hif_rd_req_valid(rd_valid), .hif_rd_req_ready(rd_ready), .hif_rd_req_header(rd_header),
        .s_tag_valid(tag_valid), .s_tag_ready(tag_ready), .s_tag(tag), .m_axis_rq_tvalid, .m_axis_rq_tready,
        .m_axis_rq_tdata, .m_axis_rq_tkeep, .m_axis_rq_tuser, .m_axis_rq_tlast, .pcie_rq_seq_num0,
        .pcie_rq_seq_num_vld0, .pcie_rq_seq_num1, .pcie_rq_seq_num_vld1, .cfg_fc_nph,
        .m_refused_valid(refused_valid), .m_refused_ready(refused_ready), .m_refused(refused), .inc_rq_dropped
    );

    plx_pcie_tags #(.TAGS(TAGS), .CARD_TAGS(RD_TAGS), .PERIOD_LOG2(PERIOD_LOG2)) tags (
        .clk, .rst, .flush(card_rst), .allow_all(ext_tag), .m_tag_valid(tag_valid), .m_tag_ready(tag_ready),
        .m_tag(tag), .s_read_valid(rd_valid), .s_read_tag(rd_header[layouts_pkg::HIF_TAG_AT +: CW]),
        .s_read_func(rd_header[layouts_pkg::HIF_FUNC_AT +: 3]), .s_next_valid(hif_rd_req_valid),
        .s_next_tag(hif_rd_req_header[layouts_pkg::HIF_TAG_AT +: CW]), .s_look_valid(look), .s_look_tag(look_tag),
        .s_look_func(look_func),
        .m_card_tag(card_tag), .m_current(current), .s_return_valid(return_valid),
        .s_return_late(return_late), .inc_tag_lost
    );

    plx_pcie_rc #(.CW(CW), .FIRST_VF(FIRST_VF)) rc (
        .clk, .rst, .s_axis_rc_tvalid, .s_axis_rc_tready, .s_axis_rc_tdata, .s_axis_rc_tuser, .s_axis_rc_tlast,
        .s_refused_valid(refused_valid), .s_refused_ready(refused_ready), .s_refused(refused),
        .hif_rx_cpl_valid, .hif_rx_cpl_ready, .hif_rx_cpl_sop, .hif_rx_cpl_eop, .hif_rx_cpl_header, .hif_rx_cpl_data,
        .look, .look_tag, .look_func, .card_tag, .current, .return_valid, .return_late, .inc_rc_discontinued
    );

    wire unused = &{1'b0, s_axis_rc_tkeep, s_axis_cq_tkeep, cfg_function_status[15:4], cfg_interrupt_msix_enable[3:1],
                    cfg_interrupt_msix_mask[3:1], cfg_flr_in_process[3:1]};
endmodule
