// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// plx_nic with two ports, whose lanes hear each other, or each a partner with the clock of its receiver. Of the
// PCIe block there are register requests and their completions. The card is small.

module nic_lanes (
    input  logic         clk_net,
    input  logic         rst_net,
    input  logic         clk_core,
    input  logic         rst_core,

    // Of each lane: received clock; a signal; a partner is heard; bits of the block to invert.
    input  logic         clk_rx_0,
    input  logic         clk_rx_1,
    input  logic [1:0]   signal_ok,
    input  logic [1:0]   far,
    input  logic [131:0] spoil,

    // XGMII of the partners, and their reset.
    input  logic         far_rst,
    input  logic [63:0]  far_txd,
    input  logic [7:0]   far_txc,

    output logic [1:0]   locked,

    input  logic         s_axis_cq_tvalid,
    output logic         s_axis_cq_tready,
    input  logic [255:0] s_axis_cq_tdata,
    input  logic [87:0]  s_axis_cq_tuser,
    output logic         m_axis_cc_tvalid,
    output logic [255:0] m_axis_cc_tdata
);
    wire  [1:0]   clk_rx_net = {clk_rx_1, clk_rx_0};
    logic [3:0]   tx_header, rx_header;
    logic [127:0] tx_data, rx_data;

    generate
        for (genvar i = 0; i < 2; i = i + 1) begin : g_lane
            localparam OTHER = 1 - i;
            logic [1:0]  header;
            logic [63:0] data;

            plx_pcs_tx partner (
                .clk(clk_rx_net[i]), .rst(far_rst), .xgmii_txd(far_txd), .xgmii_txc(far_txc), .tx_header(header),
                .tx_data(data), .cfg_prbs31(1'b0), .inc_error()
            );

            assign {rx_data[i*64+:64], rx_header[i*2+:2]} = spoil[i*66+:66]
                ^ (far[i] ? {data, header} : {tx_data[OTHER*64+:64], tx_header[OTHER*2+:2]});
        end
    endgenerate

    defparam nic.card.TLB_ENTRIES = 4;
    defparam nic.card.EVENT_QUEUES = 2;
    defparam nic.card.RX_FIFO_WORDS = 256;
    defparam nic.card.RX_FIFO_FRAMES = 32;
    defparam nic.card.ARP_ENTRIES = 16;

    plx_nic #(.PORTS(2), .RD_TAGS(16)) nic (
        .clk_net, .rst_net, .clk_core, .rst_core,
        .lane_tx_header(tx_header), .lane_tx_data(tx_data), .lane_clk_rx_net(clk_rx_net), .lane_rx_header(rx_header),
        .lane_rx_data(rx_data), .lane_rx_signal_ok(signal_ok), .lane_rx_slip(), .lane_locked(locked),
        .ttc_clock(1'b0), .ttc_start(1'b0), .ttc_end(1'b0), .ttc_trigger(1'b0),
        .m_axis_rq_tvalid(), .m_axis_rq_tready(1'b1), .m_axis_rq_tdata(), .m_axis_rq_tkeep(), .m_axis_rq_tuser(),
        .m_axis_rq_tlast(), .s_axis_rc_tvalid(1'b0), .s_axis_rc_tready(), .s_axis_rc_tdata(256'd0),
        .s_axis_rc_tkeep(8'd0), .s_axis_rc_tuser(75'd0), .s_axis_rc_tlast(1'b0),
        .s_axis_cq_tvalid, .s_axis_cq_tready, .s_axis_cq_tdata, .s_axis_cq_tkeep(8'hFF), .s_axis_cq_tuser,
        .s_axis_cq_tlast(1'b1), .m_axis_cc_tvalid, .m_axis_cc_tready(1'b1), .m_axis_cc_tdata, .m_axis_cc_tkeep(),
        .m_axis_cc_tuser(), .m_axis_cc_tlast(),
        .pcie_rq_seq_num0(6'd0), .pcie_rq_seq_num_vld0(1'b0), .pcie_rq_seq_num1(6'd0), .pcie_rq_seq_num_vld1(1'b0),
        .pcie_cq_np_req(), .cfg_fc_sel(), .cfg_fc_nph(8'd32), .cfg_max_payload(2'd0), .cfg_max_read_req(3'd0),
        .cfg_function_status(16'd6), .cfg_interrupt_msix_enable(4'd0), .cfg_interrupt_msix_mask(4'd0),
        .cfg_vf_status(14'd0), .cfg_interrupt_msix_vf_enable(7'd0), .cfg_interrupt_msix_vf_mask(7'd0),
        .cfg_config_space_enable(), .cfg_power_state_change_interrupt(1'b0), .cfg_power_state_change_ack(),
        .cfg_flr_in_process(4'd0), .cfg_flr_done(), .cfg_vf_flr_in_process(7'd0), .cfg_vf_flr_func_num(),
        .cfg_vf_flr_done()
    );
endmodule
