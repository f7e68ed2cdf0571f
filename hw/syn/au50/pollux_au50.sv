// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The card on AMD's Alveo U50: four ports of 10GBASE-R on the lanes of its QSFP28, and PCIe Gen3 x8.
// hw/docs/clocks.md shows its clocks and resets, hw/docs/board.md what it lacks.

module pollux_au50 #(
    parameter GIT_HASH = 160'h0  // commit of the build, in printed order
) (
    // 100 MHz, always running.
    input  logic       clk_100mhz_p,
    input  logic       clk_100mhz_n,

    // QSFP28: 161.1328125 MHz, and four lanes.
    input  logic       qsfp_refclk_p,
    input  logic       qsfp_refclk_n,
    input  logic [3:0] qsfp_rx_p,
    input  logic [3:0] qsfp_rx_n,
    output logic [3:0] qsfp_tx_p,
    output logic [3:0] qsfp_tx_n,

    // PCIe: 100 MHz of the slot, its reset (PERST#), eight lanes.
    input  logic       pcie_refclk_p,
    input  logic       pcie_refclk_n,
    input  logic       pcie_reset_n,
    input  logic [7:0] pcie_rx_p,
    input  logic [7:0] pcie_rx_n,
    output logic [7:0] pcie_tx_p,
    output logic [7:0] pcie_tx_n,

    // LEDs of the QSFP28: a lane is locked, none is; the transmitters' clock runs.
    output logic       qsfp_led_stat_g,
    output logic       qsfp_led_stat_y,
    output logic       qsfp_led_act,

    // The memory is too hot: high would switch the board off (UG1371).
    output logic       hbm_cattrip
);
    localparam LANES = 4;

    assign hbm_cattrip = 1'b0;

    // ---- The clock that always runs, and reference clocks ----------------------------------------------

    logic clk_100mhz, clk_free, qsfp_refclk, pcie_refclk_gt, pcie_refclk;

    IBUFDS free_pins (.I(clk_100mhz_p), .IB(clk_100mhz_n), .O(clk_100mhz));
    BUFG free_buffer (.I(clk_100mhz), .O(clk_free));

    /* verilator lint_off PINCONNECTEMPTY */
    IBUFDS_GTE4 qsfp_pins (.I(qsfp_refclk_p), .IB(qsfp_refclk_n), .CEB(1'b0), .O(qsfp_refclk), .ODIV2());
    /* verilator lint_on PINCONNECTEMPTY */
    IBUFDS_GTE4 pcie_pins (
        .I(pcie_refclk_p), .IB(pcie_refclk_n), .CEB(1'b0), .O(pcie_refclk_gt), .ODIV2(pcie_refclk)
    );

    // ---- Transmitters: one clock of all lanes, from the first one --------------------------------------

    logic             clk_net, rst_net, rst_free, net_stopped;
    logic [LANES-1:0] power_good, tx_clk_out, tx_clk_valid, tx_up;

    BUFG_GT net_buffer (
        .I(tx_clk_out[0]), .CE(1'b1), .CEMASK(1'b1), .CLR(1'b0), .CLRMASK(1'b1), .DIV(3'd0), .O(clk_net)
    );

    plx_sync_reset free_starts (.clk(clk_free), .rst_async(!power_good[0]), .rst(rst_free));
    plx_sync_reset net_starts (.clk(clk_net), .rst_async(!tx_clk_valid[0]), .rst(net_stopped));
    plx_sync_reset net_up (.clk(clk_net), .rst_async(!tx_up[0]), .rst(rst_net));

    // ---- Lanes: transceivers ---------------------------------------------------------------------------

    logic                pll_clk, pll_refclk, pll_locked;
    logic [LANES*64-1:0] tx_data, rx_data;
    logic [LANES*2-1:0]  tx_header, rx_header;
    logic [LANES-1:0]    clk_rx_net, rx_signal_ok, rx_slip, locked, lane_clk, lane_refclk, lane_locked;

    assign {pll_clk, pll_refclk, pll_locked} = {lane_clk[0], lane_refclk[0], lane_locked[0]};

    generate
        for (genvar i = 0; i < LANES; i = i + 1) begin : g_lane
            plx_gty_lane #(.PLL(i == 0 ? 1 : 0)) lane (
                .rx_p(qsfp_rx_p[i]), .rx_n(qsfp_rx_n[i]), .tx_p(qsfp_tx_p[i]), .tx_n(qsfp_tx_n[i]),
                .clk_free, .rst_free, .power_good(power_good[i]), .refclk(qsfp_refclk), .pll_clk(lane_clk[i]),
                .pll_refclk(lane_refclk[i]), .pll_locked(lane_locked[i]), .other_clk(i == 0 ? 1'b0 : pll_clk),
                .other_refclk(i == 0 ? 1'b0 : pll_refclk), .other_locked(i == 0 ? 1'b0 : pll_locked),
                .tx_clk_out(tx_clk_out[i]), .tx_clk_valid(tx_clk_valid[i]), .clk_net, .tx_active(!net_stopped),
                .tx_up(tx_up[i]), .tx_header(tx_header[i*2+:2]), .tx_data(tx_data[i*64+:64]),
                .clk_rx_net(clk_rx_net[i]), .rx_signal_ok(rx_signal_ok[i]), .rx_header(rx_header[i*2+:2]),
                .rx_data(rx_data[i*64+:64]), .rx_slip(rx_slip[i])
            );
        end
    endgenerate

    always_ff @(posedge clk_net) begin
        qsfp_led_stat_g <= !rst_net && locked != 0;
        qsfp_led_stat_y <= rst_net || locked == 0;
        qsfp_led_act    <= !rst_net;
    end

    // ---- The PCIe block --------------------------------------------------------------------------------

    logic         clk_core, rst_core;
    logic         rq_valid, rq_last, rc_valid, rc_ready, rc_last, cq_valid, cq_ready, cq_last, cc_valid, cc_last;
    logic [3:0]   rq_ready, cc_ready;
    logic [255:0] rq_data, rc_data, cq_data, cc_data;
    logic [7:0]   rq_keep, rc_keep, cq_keep, cc_keep;
    logic [61:0]  rq_user;
    logic [74:0]  rc_user;
    logic [87:0]  cq_user;
    logic [32:0]  cc_user;
    logic [5:0]   seq_num0, seq_num1;
    logic         seq_num_vld0, seq_num_vld1, config_enable, power_change, power_ack;
    logic [1:0]   np_req, max_payload;
    logic [2:0]   fc_sel, max_read;
    logic [7:0]   fc_nph;
    logic [15:0]  function_status;
    logic [3:0]   msix_enable, msix_mask, flr_in_process, flr_done;
    logic [503:0] vf_status;
    logic [251:0] vf_msix_enable, vf_msix_mask, vf_flr_in_process;
    logic [7:0]   vf_flr_func_num;
    logic         vf_flr_done, mgmt_read, mgmt_done;
    logic [9:0]   mgmt_addr;
    logic [7:0]   mgmt_func;
    logic [31:0]  mgmt_data;

    plx_pcie4c pcie (
        .pci_exp_rxp(pcie_rx_p), .pci_exp_rxn(pcie_rx_n), .pci_exp_txp(pcie_tx_p), .pci_exp_txn(pcie_tx_n),
        .sys_clk(pcie_refclk), .sys_clk_gt(pcie_refclk_gt), .sys_reset(pcie_reset_n), .user_clk(clk_core),
        .user_reset(rst_core),
        .s_axis_rq_tvalid(rq_valid), .s_axis_rq_tready(rq_ready), .s_axis_rq_tdata(rq_data),
        .s_axis_rq_tkeep(rq_keep), .s_axis_rq_tuser(rq_user), .s_axis_rq_tlast(rq_last),
        .m_axis_rc_tvalid(rc_valid), .m_axis_rc_tready(rc_ready), .m_axis_rc_tdata(rc_data),
        .m_axis_rc_tkeep(rc_keep), .m_axis_rc_tuser(rc_user), .m_axis_rc_tlast(rc_last),
        .m_axis_cq_tvalid(cq_valid), .m_axis_cq_tready(cq_ready), .m_axis_cq_tdata(cq_data),
        .m_axis_cq_tkeep(cq_keep), .m_axis_cq_tuser(cq_user), .m_axis_cq_tlast(cq_last),
        .s_axis_cc_tvalid(cc_valid), .s_axis_cc_tready(cc_ready), .s_axis_cc_tdata(cc_data),
        .s_axis_cc_tkeep(cc_keep), .s_axis_cc_tuser(cc_user), .s_axis_cc_tlast(cc_last),
        .pcie_rq_seq_num0(seq_num0), .pcie_rq_seq_num_vld0(seq_num_vld0), .pcie_rq_seq_num1(seq_num1),
        .pcie_rq_seq_num_vld1(seq_num_vld1), .pcie_cq_np_req(np_req), .cfg_fc_sel(fc_sel), .cfg_fc_nph(fc_nph),
        .cfg_max_payload(max_payload), .cfg_max_read_req(max_read), .cfg_function_status(function_status),
        .cfg_interrupt_msix_enable(msix_enable), .cfg_interrupt_msix_mask(msix_mask),
        .cfg_config_space_enable(config_enable), .cfg_power_state_change_interrupt(power_change),
        .cfg_power_state_change_ack(power_ack), .cfg_flr_in_process(flr_in_process), .cfg_flr_done(flr_done),
        .cfg_vf_status(vf_status), .cfg_interrupt_msix_vf_enable(vf_msix_enable),
        .cfg_interrupt_msix_vf_mask(vf_msix_mask), .cfg_vf_flr_in_process(vf_flr_in_process),
        .cfg_vf_flr_func_num(vf_flr_func_num), .cfg_vf_flr_done(vf_flr_done), .cfg_mgmt_addr(mgmt_addr),
        .cfg_mgmt_function_number(mgmt_func), .cfg_mgmt_read(mgmt_read), .cfg_mgmt_read_data(mgmt_data),
        .cfg_mgmt_read_write_done(mgmt_done),
        .cfg_mgmt_write(1'b0), .cfg_mgmt_write_data(32'd0), .cfg_mgmt_byte_enable(4'd0), .cfg_mgmt_debug_access(1'b0),
        .cfg_link_training_enable(1'b1), .cfg_hot_reset_in(1'b0), .cfg_req_pm_transition_l23_ready(1'b0),
        .cfg_err_cor_in(1'b0), .cfg_err_uncor_in(1'b0), .cfg_dsn(64'd0), .cfg_interrupt_int(4'd0),
        .cfg_interrupt_pending(4'd0), .cfg_interrupt_msix_int(1'b0), .cfg_interrupt_msix_data(32'd0),
        .cfg_interrupt_msix_address(64'd0), .cfg_interrupt_msi_function_number(8'd0)
    );

    // ---- The network card ------------------------------------------------------------------------------

    // The board has no input for an experiment's timing signals.
    plx_nic #(.PORTS(LANES), .GIT_HASH(GIT_HASH)) nic (
        .clk_net, .rst_net, .clk_core, .rst_core, .lane_tx_header(tx_header), .lane_tx_data(tx_data),
        .lane_clk_rx_net(clk_rx_net), .lane_rx_header(rx_header), .lane_rx_data(rx_data),
        .lane_rx_signal_ok(rx_signal_ok), .lane_rx_slip(rx_slip), .lane_locked(locked),
        .ttc_clock(1'b0), .ttc_start(1'b0), .ttc_end(1'b0), .ttc_trigger(1'b0),
        .m_axis_rq_tvalid(rq_valid), .m_axis_rq_tready(rq_ready[0]), .m_axis_rq_tdata(rq_data),
        .m_axis_rq_tkeep(rq_keep), .m_axis_rq_tuser(rq_user), .m_axis_rq_tlast(rq_last), .s_axis_rc_tvalid(rc_valid),
        .s_axis_rc_tready(rc_ready), .s_axis_rc_tdata(rc_data), .s_axis_rc_tkeep(rc_keep), .s_axis_rc_tuser(rc_user),
        .s_axis_rc_tlast(rc_last), .s_axis_cq_tvalid(cq_valid), .s_axis_cq_tready(cq_ready),
        .s_axis_cq_tdata(cq_data), .s_axis_cq_tkeep(cq_keep), .s_axis_cq_tuser(cq_user), .s_axis_cq_tlast(cq_last),
        .m_axis_cc_tvalid(cc_valid), .m_axis_cc_tready(cc_ready[0]), .m_axis_cc_tdata(cc_data),
        .m_axis_cc_tkeep(cc_keep), .m_axis_cc_tuser(cc_user), .m_axis_cc_tlast(cc_last), .pcie_rq_seq_num0(seq_num0),
        .pcie_rq_seq_num_vld0(seq_num_vld0), .pcie_rq_seq_num1(seq_num1), .pcie_rq_seq_num_vld1(seq_num_vld1),
        .pcie_cq_np_req(np_req), .cfg_fc_sel(fc_sel), .cfg_fc_nph(fc_nph), .cfg_max_payload(max_payload),
        .cfg_max_read_req(max_read), .cfg_function_status(function_status), .cfg_interrupt_msix_enable(msix_enable),
        .cfg_interrupt_msix_mask(msix_mask), .cfg_config_space_enable(config_enable),
        .cfg_power_state_change_interrupt(power_change), .cfg_power_state_change_ack(power_ack),
        .cfg_flr_in_process(flr_in_process), .cfg_flr_done(flr_done), .cfg_vf_status(vf_status[13:0]),
        .cfg_interrupt_msix_vf_enable(vf_msix_enable[6:0]), .cfg_interrupt_msix_vf_mask(vf_msix_mask[6:0]),
        .cfg_vf_flr_in_process(vf_flr_in_process[6:0]), .cfg_vf_flr_func_num(vf_flr_func_num),
        .cfg_vf_flr_done(vf_flr_done), .cfg_mgmt_addr(mgmt_addr), .cfg_mgmt_function_number(mgmt_func),
        .cfg_mgmt_read(mgmt_read), .cfg_mgmt_read_data(mgmt_data), .cfg_mgmt_read_write_done(mgmt_done)
    );

    wire unused = &{1'b0, vf_status[503:14], vf_msix_enable[251:7], vf_msix_mask[251:7], vf_flr_in_process[251:7],
                    rq_ready[3:1], cc_ready[3:1], power_good[3:1], tx_clk_out[3:1], tx_clk_valid[3:1],
                    tx_up[3:1], lane_clk[3:1], lane_refclk[3:1], lane_locked[3:1]};
endmodule
