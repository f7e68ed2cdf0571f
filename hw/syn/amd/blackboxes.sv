// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Ports of AMD's primitives and IP cores that the tops use, without contents: for elaboration where
// Vivado is not. Vivado has the primitives (UG974), and makes the cores (PG213, PG182) by ip.tcl; it does
// not read this file. `clocked_by` names the clock of a port; a port without it belongs to no clock.
// Transceiver cores have one lane, `plx_gty_full` with the PLL, `plx_gty_channel` without it.

/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNDRIVEN */

(* blackbox *)
module IBUFDS (
    input  logic I,
    input  logic IB,
    output logic O
);
endmodule

(* blackbox *)
module BUFG (
    input  logic I,
    output logic O
);
endmodule

(* blackbox *)
module IBUFDS_GTE4 (
    input  logic I,
    input  logic IB,
    input  logic CEB,
    output logic O,
    output logic ODIV2
);
endmodule

(* blackbox *)
module BUFG_GT (
    input  logic       I,
    input  logic       CE,
    input  logic       CEMASK,
    input  logic       CLR,
    input  logic       CLRMASK,
    input  logic [2:0] DIV,
    output logic       O
);
endmodule

(* blackbox *)
module plx_gty_full (
    input  logic        gtyrxp_in,
    input  logic        gtyrxn_in,
    output logic        gtytxp_out,
    output logic        gtytxn_out,
    input  logic        gtrefclk00_in,
    output logic        gtpowergood_out,
    output logic        qpll0lock_out,
    output logic        qpll0outclk_out,
    output logic        qpll0outrefclk_out,

    input  logic        gtwiz_reset_clk_freerun_in,
    (* clocked_by = "gtwiz_reset_clk_freerun_in" *) input  logic gtwiz_reset_all_in,
    input  logic        gtwiz_reset_tx_pll_and_datapath_in,
    input  logic        gtwiz_reset_tx_datapath_in,
    input  logic        gtwiz_reset_rx_pll_and_datapath_in,
    input  logic        gtwiz_reset_rx_datapath_in,
    output logic        gtwiz_reset_rx_cdr_stable_out,
    (* clocked_by = "txusrclk2_in" *) output logic gtwiz_reset_tx_done_out,
    (* clocked_by = "rxusrclk2_in" *) output logic gtwiz_reset_rx_done_out,

    output logic        txoutclk_out,
    input  logic        txusrclk_in,
    input  logic        txusrclk2_in,
    (* clocked_by = "txusrclk2_in" *) input  logic gtwiz_userclk_tx_active_in,
    output logic        txprgdivresetdone_out,
    (* clocked_by = "txusrclk2_in" *) input  logic [63:0] gtwiz_userdata_tx_in,
    (* clocked_by = "txusrclk2_in" *) input  logic [5:0]  txheader_in,
    (* clocked_by = "txusrclk2_in" *) input  logic [6:0]  txsequence_in,

    output logic        rxoutclk_out,
    input  logic        rxusrclk_in,
    input  logic        rxusrclk2_in,
    (* clocked_by = "rxusrclk2_in" *) input  logic gtwiz_userclk_rx_active_in,
    output logic        rxprgdivresetdone_out,
    (* clocked_by = "rxusrclk2_in" *) output logic [63:0] gtwiz_userdata_rx_out,
    (* clocked_by = "rxusrclk2_in" *) output logic [5:0]  rxheader_out,
    (* clocked_by = "rxusrclk2_in" *) input  logic rxgearboxslip_in
);
endmodule

(* blackbox *)
module plx_gty_channel (
    input  logic        gtyrxp_in,
    input  logic        gtyrxn_in,
    output logic        gtytxp_out,
    output logic        gtytxn_out,
    output logic        gtpowergood_out,
    input  logic        qpll0clk_in,
    input  logic        qpll0refclk_in,
    input  logic        qpll1clk_in,
    input  logic        qpll1refclk_in,
    input  logic        gtwiz_reset_qpll0lock_in,
    output logic        gtwiz_reset_qpll0reset_out,

    input  logic        gtwiz_reset_clk_freerun_in,
    (* clocked_by = "gtwiz_reset_clk_freerun_in" *) input  logic gtwiz_reset_all_in,
    input  logic        gtwiz_reset_tx_pll_and_datapath_in,
    input  logic        gtwiz_reset_tx_datapath_in,
    input  logic        gtwiz_reset_rx_pll_and_datapath_in,
    input  logic        gtwiz_reset_rx_datapath_in,
    output logic        gtwiz_reset_rx_cdr_stable_out,
    (* clocked_by = "txusrclk2_in" *) output logic gtwiz_reset_tx_done_out,
    (* clocked_by = "rxusrclk2_in" *) output logic gtwiz_reset_rx_done_out,

    output logic        txoutclk_out,
    input  logic        txusrclk_in,
    input  logic        txusrclk2_in,
    (* clocked_by = "txusrclk2_in" *) input  logic gtwiz_userclk_tx_active_in,
    output logic        txprgdivresetdone_out,
    (* clocked_by = "txusrclk2_in" *) input  logic [63:0] gtwiz_userdata_tx_in,
    (* clocked_by = "txusrclk2_in" *) input  logic [5:0]  txheader_in,
    (* clocked_by = "txusrclk2_in" *) input  logic [6:0]  txsequence_in,

    output logic        rxoutclk_out,
    input  logic        rxusrclk_in,
    input  logic        rxusrclk2_in,
    (* clocked_by = "rxusrclk2_in" *) input  logic gtwiz_userclk_rx_active_in,
    output logic        rxprgdivresetdone_out,
    (* clocked_by = "rxusrclk2_in" *) output logic [63:0] gtwiz_userdata_rx_out,
    (* clocked_by = "rxusrclk2_in" *) output logic [5:0]  rxheader_out,
    (* clocked_by = "rxusrclk2_in" *) input  logic rxgearboxslip_in
);
endmodule

(* blackbox *)
module plx_pcie4c (
    input  logic [7:0]   pci_exp_rxp,
    input  logic [7:0]   pci_exp_rxn,
    output logic [7:0]   pci_exp_txp,
    output logic [7:0]   pci_exp_txn,
    input  logic         sys_clk,
    input  logic         sys_clk_gt,
    input  logic         sys_reset,
    output logic         user_clk,
    (* clocked_by = "user_clk" *) output logic user_reset,

    (* clocked_by = "user_clk" *) input  logic         s_axis_rq_tvalid,
    (* clocked_by = "user_clk" *) output logic [3:0]   s_axis_rq_tready,
    (* clocked_by = "user_clk" *) input  logic [255:0] s_axis_rq_tdata,
    (* clocked_by = "user_clk" *) input  logic [7:0]   s_axis_rq_tkeep,
    (* clocked_by = "user_clk" *) input  logic [61:0]  s_axis_rq_tuser,
    (* clocked_by = "user_clk" *) input  logic         s_axis_rq_tlast,
    (* clocked_by = "user_clk" *) output logic         m_axis_rc_tvalid,
    (* clocked_by = "user_clk" *) input  logic         m_axis_rc_tready,
    (* clocked_by = "user_clk" *) output logic [255:0] m_axis_rc_tdata,
    (* clocked_by = "user_clk" *) output logic [7:0]   m_axis_rc_tkeep,
    (* clocked_by = "user_clk" *) output logic [74:0]  m_axis_rc_tuser,
    (* clocked_by = "user_clk" *) output logic         m_axis_rc_tlast,
    (* clocked_by = "user_clk" *) output logic         m_axis_cq_tvalid,
    (* clocked_by = "user_clk" *) input  logic         m_axis_cq_tready,
    (* clocked_by = "user_clk" *) output logic [255:0] m_axis_cq_tdata,
    (* clocked_by = "user_clk" *) output logic [7:0]   m_axis_cq_tkeep,
    (* clocked_by = "user_clk" *) output logic [87:0]  m_axis_cq_tuser,
    (* clocked_by = "user_clk" *) output logic         m_axis_cq_tlast,
    (* clocked_by = "user_clk" *) input  logic         s_axis_cc_tvalid,
    (* clocked_by = "user_clk" *) output logic [3:0]   s_axis_cc_tready,
    (* clocked_by = "user_clk" *) input  logic [255:0] s_axis_cc_tdata,
    (* clocked_by = "user_clk" *) input  logic [7:0]   s_axis_cc_tkeep,
    (* clocked_by = "user_clk" *) input  logic [32:0]  s_axis_cc_tuser,
    (* clocked_by = "user_clk" *) input  logic         s_axis_cc_tlast,

    (* clocked_by = "user_clk" *) output logic [5:0]   pcie_rq_seq_num0,
    (* clocked_by = "user_clk" *) output logic         pcie_rq_seq_num_vld0,
    (* clocked_by = "user_clk" *) output logic [5:0]   pcie_rq_seq_num1,
    (* clocked_by = "user_clk" *) output logic         pcie_rq_seq_num_vld1,
    (* clocked_by = "user_clk" *) input  logic [1:0]   pcie_cq_np_req,
    (* clocked_by = "user_clk" *) input  logic [2:0]   cfg_fc_sel,
    (* clocked_by = "user_clk" *) output logic [7:0]   cfg_fc_nph,
    (* clocked_by = "user_clk" *) output logic [1:0]   cfg_max_payload,
    (* clocked_by = "user_clk" *) output logic [2:0]   cfg_max_read_req,
    (* clocked_by = "user_clk" *) output logic [15:0]  cfg_function_status,
    (* clocked_by = "user_clk" *) output logic [3:0]   cfg_interrupt_msix_enable,
    (* clocked_by = "user_clk" *) output logic [3:0]   cfg_interrupt_msix_mask,
    (* clocked_by = "user_clk" *) output logic [503:0] cfg_vf_status,
    (* clocked_by = "user_clk" *) output logic [251:0] cfg_interrupt_msix_vf_enable,
    (* clocked_by = "user_clk" *) output logic [251:0] cfg_interrupt_msix_vf_mask,
    (* clocked_by = "user_clk" *) input  logic         cfg_config_space_enable,
    (* clocked_by = "user_clk" *) output logic         cfg_power_state_change_interrupt,
    (* clocked_by = "user_clk" *) input  logic         cfg_power_state_change_ack,
    (* clocked_by = "user_clk" *) output logic [3:0]   cfg_flr_in_process,
    (* clocked_by = "user_clk" *) input  logic [3:0]   cfg_flr_done,
    (* clocked_by = "user_clk" *) output logic [251:0] cfg_vf_flr_in_process,
    (* clocked_by = "user_clk" *) input  logic [7:0]   cfg_vf_flr_func_num,
    (* clocked_by = "user_clk" *) input  logic         cfg_vf_flr_done,
    (* clocked_by = "user_clk" *) input  logic [9:0]   cfg_mgmt_addr,
    (* clocked_by = "user_clk" *) input  logic [7:0]   cfg_mgmt_function_number,
    (* clocked_by = "user_clk" *) input  logic         cfg_mgmt_read,
    (* clocked_by = "user_clk" *) output logic [31:0]  cfg_mgmt_read_data,
    (* clocked_by = "user_clk" *) output logic         cfg_mgmt_read_write_done,

    // Constant in the tops.
    input  logic         cfg_mgmt_write,
    input  logic [31:0]  cfg_mgmt_write_data,
    input  logic [3:0]   cfg_mgmt_byte_enable,
    input  logic         cfg_mgmt_debug_access,
    input  logic         cfg_link_training_enable,
    input  logic         cfg_hot_reset_in,
    input  logic         cfg_req_pm_transition_l23_ready,
    input  logic         cfg_err_cor_in,
    input  logic         cfg_err_uncor_in,
    input  logic [63:0]  cfg_dsn,
    input  logic [3:0]   cfg_interrupt_int,
    input  logic [3:0]   cfg_interrupt_pending,
    input  logic         cfg_interrupt_msix_int,
    input  logic [31:0]  cfg_interrupt_msix_data,
    input  logic [63:0]  cfg_interrupt_msix_address,
    input  logic [7:0]   cfg_interrupt_msi_function_number
);
endmodule
