# SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
#
# Paths between clocks, each of them bounded. Made by `scripts/gateware syn` from the netlist, and checked
# by `scripts/gateware lint`. A delay of data alone (-datapath_only) is limited to the period of the sender,
# for Gray code, or of the receiver; so is the skew between the bits of Gray code.
# 51 of Gray code, 40 of held, 33 of levels, 13 of memory, 17 of resets.

set clk_core [get_clocks -of_objects [get_nets {clk_core}]]
set clk_net [get_clocks -of_objects [get_nets {clk_net}]]
set clk_rx_net_0 [get_clocks -of_objects [get_nets {clk_rx_net[0]}]]
set clk_rx_net_1 [get_clocks -of_objects [get_nets {clk_rx_net[1]}]]
set clk_rx_net_2 [get_clocks -of_objects [get_nets {clk_rx_net[2]}]]
set clk_rx_net_3 [get_clocks -of_objects [get_nets {clk_rx_net[3]}]]

set_false_path -to [get_pins {free_starts/stages_reg[*]/PRE}]
set_false_path -to [get_pins {g_lane[0].lane/rx_starts/stages_reg[*]/PRE}]
set_false_path -to [get_pins {g_lane[1].lane/rx_starts/stages_reg[*]/PRE}]
set_false_path -to [get_pins {g_lane[2].lane/rx_starts/stages_reg[*]/PRE}]
set_false_path -to [get_pins {g_lane[3].lane/rx_starts/stages_reg[*]/PRE}]
set_false_path -to [get_pins {net_starts/stages_reg[*]/PRE}]
set_false_path -to [get_pins {net_up/stages_reg[*]/PRE}]
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/g_port[0].port/crossing/answering/stages_reg*}] 4.0
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[0].port/crossing/asking/stages_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[0].port/crossing/m_axil_araddr_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[0].port/crossing/m_axil_arvalid_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[0].port/crossing/m_axil_awaddr_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[0].port/crossing/m_axil_awvalid_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[0].port/crossing/m_axil_wdata_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[0].port/crossing/m_axil_wstrb_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[0].port/crossing/m_axil_wvalid_reg*}] 6.4
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/g_port[0].port/crossing/slave/s_axil_rdata_reg*}] 4.0
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[0].port/forgets/stages_reg*}] 6.4
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/g_port[0].port/idle_core/stages_reg*}] 4.0
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[0].port/idle_seen/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[0].port/rx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/rx_fifo/metas/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[0].port/rx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/rx_fifo/metas/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[0].port/rx_fifo/metas/head_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/rx_fifo/metas/to_write/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[0].port/rx_fifo/metas/head_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/rx_fifo/metas/to_write/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[0].port/rx_fifo/words/tail_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/rx_fifo/words/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[0].port/rx_fifo/words/tail_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/rx_fifo/words/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[0].port/rx_fifo/words/head_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/rx_fifo/words/to_write/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[0].port/rx_fifo/words/head_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/rx_fifo/words/to_write/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[0].port/tx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/tx_fifo/metas/to_read/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[0].port/tx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/tx_fifo/metas/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[0].port/tx_fifo/head_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/tx_fifo/to_core/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[0].port/tx_fifo/head_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/tx_fifo/to_core/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[0].port/tx_lost/crossing/memory_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[0].port/tx_lost/crossing/tail_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/tx_lost/crossing/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[0].port/tx_lost/crossing/tail_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/tx_lost/crossing/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[0].port/tx_lost/crossing/head_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/tx_lost/crossing/to_write/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[0].port/tx_lost/crossing/head_gray_reg*}] -to [get_cells {nic/card/g_port[0].port/tx_lost/crossing/to_write/stages_reg*}] 4.0
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/g_port[1].port/crossing/answering/stages_reg*}] 4.0
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[1].port/crossing/asking/stages_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[1].port/crossing/m_axil_araddr_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[1].port/crossing/m_axil_arvalid_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[1].port/crossing/m_axil_awaddr_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[1].port/crossing/m_axil_awvalid_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[1].port/crossing/m_axil_wdata_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[1].port/crossing/m_axil_wstrb_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[1].port/crossing/m_axil_wvalid_reg*}] 6.4
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/g_port[1].port/crossing/slave/s_axil_rdata_reg*}] 4.0
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[1].port/forgets/stages_reg*}] 6.4
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/g_port[1].port/idle_core/stages_reg*}] 4.0
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[1].port/idle_seen/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[1].port/rx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/rx_fifo/metas/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[1].port/rx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/rx_fifo/metas/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[1].port/rx_fifo/metas/head_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/rx_fifo/metas/to_write/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[1].port/rx_fifo/metas/head_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/rx_fifo/metas/to_write/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[1].port/rx_fifo/words/tail_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/rx_fifo/words/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[1].port/rx_fifo/words/tail_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/rx_fifo/words/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[1].port/rx_fifo/words/head_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/rx_fifo/words/to_write/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[1].port/rx_fifo/words/head_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/rx_fifo/words/to_write/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[1].port/tx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/tx_fifo/metas/to_read/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[1].port/tx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/tx_fifo/metas/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[1].port/tx_fifo/head_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/tx_fifo/to_core/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[1].port/tx_fifo/head_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/tx_fifo/to_core/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[1].port/tx_lost/crossing/memory_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[1].port/tx_lost/crossing/tail_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/tx_lost/crossing/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[1].port/tx_lost/crossing/tail_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/tx_lost/crossing/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[1].port/tx_lost/crossing/head_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/tx_lost/crossing/to_write/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[1].port/tx_lost/crossing/head_gray_reg*}] -to [get_cells {nic/card/g_port[1].port/tx_lost/crossing/to_write/stages_reg*}] 4.0
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/g_port[2].port/crossing/answering/stages_reg*}] 4.0
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[2].port/crossing/asking/stages_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[2].port/crossing/m_axil_araddr_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[2].port/crossing/m_axil_arvalid_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[2].port/crossing/m_axil_awaddr_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[2].port/crossing/m_axil_awvalid_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[2].port/crossing/m_axil_wdata_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[2].port/crossing/m_axil_wstrb_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[2].port/crossing/m_axil_wvalid_reg*}] 6.4
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/g_port[2].port/crossing/slave/s_axil_rdata_reg*}] 4.0
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[2].port/forgets/stages_reg*}] 6.4
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/g_port[2].port/idle_core/stages_reg*}] 4.0
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[2].port/idle_seen/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[2].port/rx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/rx_fifo/metas/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[2].port/rx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/rx_fifo/metas/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[2].port/rx_fifo/metas/head_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/rx_fifo/metas/to_write/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[2].port/rx_fifo/metas/head_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/rx_fifo/metas/to_write/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[2].port/rx_fifo/words/tail_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/rx_fifo/words/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[2].port/rx_fifo/words/tail_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/rx_fifo/words/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[2].port/rx_fifo/words/head_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/rx_fifo/words/to_write/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[2].port/rx_fifo/words/head_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/rx_fifo/words/to_write/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[2].port/tx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/tx_fifo/metas/to_read/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[2].port/tx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/tx_fifo/metas/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[2].port/tx_fifo/head_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/tx_fifo/to_core/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[2].port/tx_fifo/head_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/tx_fifo/to_core/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[2].port/tx_lost/crossing/memory_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[2].port/tx_lost/crossing/tail_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/tx_lost/crossing/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[2].port/tx_lost/crossing/tail_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/tx_lost/crossing/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[2].port/tx_lost/crossing/head_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/tx_lost/crossing/to_write/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[2].port/tx_lost/crossing/head_gray_reg*}] -to [get_cells {nic/card/g_port[2].port/tx_lost/crossing/to_write/stages_reg*}] 4.0
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/g_port[3].port/crossing/answering/stages_reg*}] 4.0
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[3].port/crossing/asking/stages_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[3].port/crossing/m_axil_araddr_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[3].port/crossing/m_axil_arvalid_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[3].port/crossing/m_axil_awaddr_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[3].port/crossing/m_axil_awvalid_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[3].port/crossing/m_axil_wdata_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[3].port/crossing/m_axil_wstrb_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[3].port/crossing/m_axil_wvalid_reg*}] 6.4
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/g_port[3].port/crossing/slave/s_axil_rdata_reg*}] 4.0
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[3].port/forgets/stages_reg*}] 6.4
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/g_port[3].port/idle_core/stages_reg*}] 4.0
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/g_port[3].port/idle_seen/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[3].port/rx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/rx_fifo/metas/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[3].port/rx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/rx_fifo/metas/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[3].port/rx_fifo/metas/head_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/rx_fifo/metas/to_write/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[3].port/rx_fifo/metas/head_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/rx_fifo/metas/to_write/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[3].port/rx_fifo/words/tail_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/rx_fifo/words/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[3].port/rx_fifo/words/tail_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/rx_fifo/words/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[3].port/rx_fifo/words/head_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/rx_fifo/words/to_write/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[3].port/rx_fifo/words/head_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/rx_fifo/words/to_write/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[3].port/tx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/tx_fifo/metas/to_read/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[3].port/tx_fifo/metas/tail_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/tx_fifo/metas/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[3].port/tx_fifo/head_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/tx_fifo/to_core/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[3].port/tx_fifo/head_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/tx_fifo/to_core/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[3].port/tx_lost/crossing/memory_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[3].port/tx_lost/crossing/tail_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/tx_lost/crossing/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/g_port[3].port/tx_lost/crossing/tail_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/tx_lost/crossing/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/g_port[3].port/tx_lost/crossing/head_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/tx_lost/crossing/to_write/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/g_port[3].port/tx_lost/crossing/head_gray_reg*}] -to [get_cells {nic/card/g_port[3].port/tx_lost/crossing/to_write/stages_reg*}] 4.0
set_false_path -to [get_pins {nic/card/host_bus/resets/core_by_core/stages_reg[*]/PRE}]
set_false_path -to [get_pins {nic/card/host_bus/resets/core_by_request/stages_reg[*]/PRE}]
set_false_path -to [get_pins {nic/card/host_bus/resets/net_by_core/stages_reg[*]/PRE}]
set_false_path -to [get_pins {nic/card/host_bus/resets/net_by_forget/stages_reg[*]/PRE}]
set_false_path -to [get_pins {nic/card/host_bus/resets/net_by_net/stages_reg[*]/PRE}]
set_false_path -to [get_pins {nic/card/host_bus/resets/net_by_request/stages_reg[*]/PRE}]
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/host_bus/resets/net_resets/stages_reg*}] 4.0
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/host_bus/resets/watch/crossing/stages_reg*}] 4.0
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/pairs/stages_reg*}] 6.4
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/timing/crossing/answering/stages_reg*}] 4.0
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/timing/crossing/asking/stages_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/timing/crossing/m_axil_araddr_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/timing/crossing/m_axil_arvalid_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/timing/crossing/m_axil_awaddr_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/timing/crossing/m_axil_awvalid_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/timing/crossing/m_axil_wdata_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/timing/crossing/m_axil_wstrb_reg*}] 6.4
set_max_delay -datapath_only -from $clk_core -to [get_cells {nic/card/timing/crossing/m_axil_wvalid_reg*}] 6.4
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/card/timing/crossing/slave/s_axil_rdata_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/timing/events/crossing/memory_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/timing/events/crossing/tail_gray_reg*}] -to [get_cells {nic/card/timing/events/crossing/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/timing/events/crossing/tail_gray_reg*}] -to [get_cells {nic/card/timing/events/crossing/to_read/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/timing/events/crossing/head_gray_reg*}] -to [get_cells {nic/card/timing/events/crossing/to_write/stages_reg*}] 4.0
set_bus_skew -from [get_cells {nic/card/timing/events/crossing/head_gray_reg*}] -to [get_cells {nic/card/timing/events/crossing/to_write/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/card/timing/timestamp_cdc/gray_reg*}] -to [get_cells {nic/card/timing/timestamp_cdc/crossing/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/card/timing/timestamp_cdc/gray_reg*}] -to [get_cells {nic/card/timing/timestamp_cdc/crossing/stages_reg*}] 4.0
set_max_delay -datapath_only -from [get_cells {nic/g_lane[0].pcs/counts/queue/memory_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[0].pcs/counts/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[0].pcs/counts/queue/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[0].pcs/counts/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[0].pcs/counts/queue/to_read/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[0].pcs/counts/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[0].pcs/counts/queue/to_write/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[0].pcs/counts/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[0].pcs/counts/queue/to_write/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[0].pcs/elastic/queue/memory_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[0].pcs/elastic/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[0].pcs/elastic/queue/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[0].pcs/elastic/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[0].pcs/elastic/queue/to_read/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[0].pcs/elastic/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[0].pcs/elastic/queue/to_write/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[0].pcs/elastic/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[0].pcs/elastic/queue/to_write/stages_reg*}] 6.4
set_false_path -to [get_pins {nic/g_lane[0].pcs/reset/stages_reg[*]/PRE}]
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/g_lane[0].pcs/settings/stages_reg*}] 6.4
set_max_delay -datapath_only -from $clk_rx_net_0 -to [get_cells {nic/g_lane[0].pcs/state/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[1].pcs/counts/queue/memory_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[1].pcs/counts/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[1].pcs/counts/queue/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[1].pcs/counts/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[1].pcs/counts/queue/to_read/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[1].pcs/counts/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[1].pcs/counts/queue/to_write/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[1].pcs/counts/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[1].pcs/counts/queue/to_write/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[1].pcs/elastic/queue/memory_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[1].pcs/elastic/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[1].pcs/elastic/queue/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[1].pcs/elastic/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[1].pcs/elastic/queue/to_read/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[1].pcs/elastic/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[1].pcs/elastic/queue/to_write/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[1].pcs/elastic/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[1].pcs/elastic/queue/to_write/stages_reg*}] 6.4
set_false_path -to [get_pins {nic/g_lane[1].pcs/reset/stages_reg[*]/PRE}]
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/g_lane[1].pcs/settings/stages_reg*}] 6.4
set_max_delay -datapath_only -from $clk_rx_net_1 -to [get_cells {nic/g_lane[1].pcs/state/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[2].pcs/counts/queue/memory_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[2].pcs/counts/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[2].pcs/counts/queue/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[2].pcs/counts/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[2].pcs/counts/queue/to_read/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[2].pcs/counts/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[2].pcs/counts/queue/to_write/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[2].pcs/counts/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[2].pcs/counts/queue/to_write/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[2].pcs/elastic/queue/memory_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[2].pcs/elastic/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[2].pcs/elastic/queue/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[2].pcs/elastic/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[2].pcs/elastic/queue/to_read/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[2].pcs/elastic/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[2].pcs/elastic/queue/to_write/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[2].pcs/elastic/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[2].pcs/elastic/queue/to_write/stages_reg*}] 6.4
set_false_path -to [get_pins {nic/g_lane[2].pcs/reset/stages_reg[*]/PRE}]
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/g_lane[2].pcs/settings/stages_reg*}] 6.4
set_max_delay -datapath_only -from $clk_rx_net_2 -to [get_cells {nic/g_lane[2].pcs/state/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[3].pcs/counts/queue/memory_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[3].pcs/counts/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[3].pcs/counts/queue/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[3].pcs/counts/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[3].pcs/counts/queue/to_read/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[3].pcs/counts/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[3].pcs/counts/queue/to_write/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[3].pcs/counts/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[3].pcs/counts/queue/to_write/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[3].pcs/elastic/queue/memory_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[3].pcs/elastic/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[3].pcs/elastic/queue/to_read/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[3].pcs/elastic/queue/tail_gray_reg*}] -to [get_cells {nic/g_lane[3].pcs/elastic/queue/to_read/stages_reg*}] 6.4
set_max_delay -datapath_only -from [get_cells {nic/g_lane[3].pcs/elastic/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[3].pcs/elastic/queue/to_write/stages_reg*}] 6.4
set_bus_skew -from [get_cells {nic/g_lane[3].pcs/elastic/queue/head_gray_reg*}] -to [get_cells {nic/g_lane[3].pcs/elastic/queue/to_write/stages_reg*}] 6.4
set_false_path -to [get_pins {nic/g_lane[3].pcs/reset/stages_reg[*]/PRE}]
set_max_delay -datapath_only -from $clk_net -to [get_cells {nic/g_lane[3].pcs/settings/stages_reg*}] 6.4
set_max_delay -datapath_only -from $clk_rx_net_3 -to [get_cells {nic/g_lane[3].pcs/state/stages_reg*}] 6.4
