// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The PCIe shim and the card's host bus logic behind it, with one writer, one reader, interrupt
// requests, and a memory of 4 KiB in place of all other register blocks.

module pcie_host #(
    parameter PERIOD_LOG2 = 14,
    parameter TAGS        = 256,
    parameter EXTENDED    = 1  // the bench's host enables extended tags
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

    // The block does not see that its configuration space is read; not connected by most tests.
    input  logic         mgmt_hold,

    // A writer, a reader, interrupt requests.
    input  logic         s_wr_desc_valid,
    output logic         s_wr_desc_ready,
    input  logic [63:0]  s_wr_desc_address,
    input  logic [12:0]  s_wr_desc_length,
    input  logic [7:0]   s_wr_desc_func,
    input  logic         s_wr_data_tvalid,
    output logic         s_wr_data_tready,
    input  logic [255:0] s_wr_data_tdata,
    input  logic         s_wr_data_tlast,
    input  logic         s_rd_desc_valid,
    output logic         s_rd_desc_ready,
    input  logic [63:0]  s_rd_desc_address,
    input  logic [15:0]  s_rd_desc_length,
    input  logic [7:0]   s_rd_desc_tag,
    input  logic [7:0]   s_rd_desc_func,
    output logic         m_rd_data_tvalid,
    input  logic         m_rd_data_tready,
    output logic [255:0] m_rd_data_tdata,
    output logic [31:0]  m_rd_data_tkeep,
    output logic         m_rd_data_tlast,
    output logic         m_rd_data_tuser,
    output logic [7:0]   m_rd_status_tag,
    input  logic         s_irq_valid,
    input  logic [7:0]   s_irq_queue,

    // What the shim has counted; reset of the card.
    output logic [15:0]  refused,
    output logic [15:0]  dropped,
    output logic [15:0]  discontinued,
    output logic [15:0]  unmastered,
    output logic [15:0]  lost,
    output logic         card_rst
);
    logic         wr_valid, wr_ready, wr_sop, wr_eop, rd_valid, rd_ready, cpl_valid, cpl_ready, cpl_sop, cpl_eop;
    logic         req_valid, req_ready, req_sop, req_eop, tx_valid, tx_ready, tx_sop, tx_eop;
    logic [127:0] wr_header, rd_header, cpl_header, req_header, tx_header;
    logic [255:0] wr_data, cpl_data, req_data, tx_data;
    logic [2:0]   max_payload, max_read;
    logic [7:0]   bus_master, msix_enable, msix_mask, flr, flr_done;
    logic         inc_refused, inc_dropped, inc_discontinued, inc_unmastered, inc_lost;

    // The model looks at these before the first reset; the shim never writes.
    wire mgmt_read;
    assign cfg_mgmt_read = mgmt_read === 1'b1 && mgmt_hold !== 1'b1;
    assign {cfg_mgmt_write, cfg_mgmt_write_data, cfg_mgmt_byte_enable} = '0;

    plx_pcie_us #(.PERIOD_LOG2(PERIOD_LOG2), .TAGS(TAGS)) shim (
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
        .inc_cq_refused(inc_refused), .inc_cq_dropped(inc_dropped), .inc_rc_discontinued(inc_discontinued),
        .inc_rq_dropped(inc_unmastered), .inc_tag_lost(inc_lost)
    );

    always_ff @(posedge clk) begin
        refused      <= rst ? 16'd0 : refused + {15'd0, inc_refused};
        dropped      <= rst ? 16'd0 : dropped + {15'd0, inc_dropped};
        discontinued <= rst ? 16'd0 : discontinued + {15'd0, inc_discontinued};
        unmastered   <= rst ? 16'd0 : unmastered + {15'd0, inc_unmastered};
        lost         <= rst ? 16'd0 : lost + {15'd0, inc_lost};
    end

    // Six blocks share one memory.
    logic [16:0] addr;
    logic [31:0] wdata, rdata, acc_wdata;
    logic [3:0]  wstrb, acc_wstrb;
    logic [5:0]  awvalid, wvalid, arvalid, bready, rready;
    logic        awready, wready, arready, bvalid, rvalid, acc_valid, acc_write;
    logic [16:0] acc_addr;
    logic [31:0] memory [0:1023];

    plx_host_bus #(.PORTS(1), .EVENT_QUEUES(8)) host_bus (
        .clk_net, .rst_net(card_rst), .clk_core(clk), .rst_core(card_rst), .others_rst(), .net_rst(), .net_clear(),
        .net_in_reset(),
        .now_cycle_ts(64'd0), .cfg_max_payload(max_payload), .cfg_max_read(max_read), .cfg_bus_master(bus_master),
        .cfg_msix_enable(msix_enable), .cfg_msix_mask(msix_mask), .cfg_flr(flr), .flr_done,
        .m_axil_func(), .port_owner(), .s_owner_queue(8'd0), .m_owner(), .resetting_functions(), .s_placing('0), .s_ring_quiet('1),
        .s_event_rest(3'b111), .cfg_event_fault(), .cfg_fault_queue(),
        .hif_wr_req_valid(wr_valid), .hif_wr_req_ready(wr_ready), .hif_wr_req_sop(wr_sop), .hif_wr_req_eop(wr_eop),
        .hif_wr_req_header(wr_header), .hif_wr_req_data(wr_data), .hif_rd_req_valid(rd_valid),
        .hif_rd_req_ready(rd_ready), .hif_rd_req_header(rd_header), .hif_rx_cpl_valid(cpl_valid),
        .hif_rx_cpl_ready(cpl_ready), .hif_rx_cpl_sop(cpl_sop), .hif_rx_cpl_eop(cpl_eop),
        .hif_rx_cpl_header(cpl_header), .hif_rx_cpl_data(cpl_data), .hif_rx_req_valid(req_valid),
        .hif_rx_req_ready(req_ready), .hif_rx_req_sop(req_sop), .hif_rx_req_eop(req_eop),
        .hif_rx_req_header(req_header), .hif_rx_req_data(req_data), .hif_tx_cpl_valid(tx_valid),
        .hif_tx_cpl_ready(tx_ready), .hif_tx_cpl_sop(tx_sop), .hif_tx_cpl_eop(tx_eop), .hif_tx_cpl_header(tx_header),
        .hif_tx_cpl_data(tx_data),
        .m_axil_addr(addr), .m_axil_awvalid(awvalid), .m_axil_awready({6{awready}}), .m_axil_wdata(wdata),
        .m_axil_wstrb(wstrb), .m_axil_wvalid(wvalid), .m_axil_wready({6{wready}}), .m_axil_bvalid({6{bvalid}}),
        .m_axil_bready(bready), .m_axil_arvalid(arvalid), .m_axil_arready({6{arready}}), .m_axil_rdata({6{rdata}}),
        .m_axil_rvalid({6{rvalid}}), .m_axil_rready(rready),
        .s_wr_desc_valid({1'b0, s_wr_desc_valid}), .s_wr_desc_ready(wr_desc_ready),
        .s_wr_desc_address({64'd0, s_wr_desc_address}), .s_wr_desc_length({13'd0, s_wr_desc_length}),
        .s_wr_desc_func({8'd0, s_wr_desc_func}), .s_wr_data_tvalid({1'b0, s_wr_data_tvalid}), .s_wr_data_tready(wr_data_ready),
        .s_wr_data_tdata({256'd0, s_wr_data_tdata}), .s_wr_data_tlast({1'b0, s_wr_data_tlast}), .m_wr_accepted(),
        .s_rd_desc_valid, .s_rd_desc_ready, .s_rd_desc_address, .s_rd_desc_length, .s_rd_desc_tag,
        .s_rd_desc_func, .m_rd_data_tvalid, .m_rd_data_tready, .m_rd_data_tdata, .m_rd_data_tkeep,
        .m_rd_data_tlast, .m_rd_data_tuser, .m_rd_status_tag, .s_irq_valid, .s_irq_queue, .inc_events_discarded(1'b0)
    );

    logic [1:0] wr_desc_ready, wr_data_ready;
    assign s_wr_desc_ready  = wr_desc_ready[0];
    assign s_wr_data_tready = wr_data_ready[0];

    plx_axil_slave #(.ADDR_W(17)) slave (
        .clk, .rst(card_rst), .s_axil_awaddr(addr), .s_axil_awvalid(|awvalid), .s_axil_awready(awready),
        .s_axil_wdata(wdata), .s_axil_wstrb(wstrb), .s_axil_wvalid(|wvalid), .s_axil_wready(wready), .s_axil_bresp(),
        .s_axil_bvalid(bvalid), .s_axil_bready(|bready), .s_axil_araddr(addr), .s_axil_arvalid(|arvalid),
        .s_axil_arready(arready), .s_axil_rdata(rdata), .s_axil_rresp(), .s_axil_rvalid(rvalid),
        .s_axil_rready(|rready), .acc_valid, .acc_write, .acc_addr, .acc_wdata, .acc_wstrb, .acc_ready(1'b1),
        .acc_rdata(memory[acc_addr[11:2]])
    );

    always_ff @(posedge clk) begin
        for (integer b = 0; b < 4; b = b + 1) begin
            if (acc_valid && acc_write && acc_wstrb[b]) memory[acc_addr[11:2]][b*8 +: 8] <= acc_wdata[b*8 +: 8];
        end
    end
endmodule
