# SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
#
# Pins, standards and clocks of the Alveo U50 (UG1371, and the board's published pin list), of those that
# the top uses. Clocks that a core or a transceiver makes are made by Vivado.

# ---- Clocks ----

# 100 MHz, of the board's clock generator (SI5394, OUT3).
set_property -dict {PACKAGE_PIN BB18 IOSTANDARD LVDS} [get_ports {clk_100mhz_p}]
set_property -dict {PACKAGE_PIN BC18 IOSTANDARD LVDS} [get_ports {clk_100mhz_n}]
create_clock -name clk_100mhz -period 10.000 [get_ports clk_100mhz_p]

# 161.1328125 MHz (SI5394, OUT0): MGTREFCLK0 of quad 131.
set_property -dict {PACKAGE_PIN N36} [get_ports {qsfp_refclk_p}]
set_property -dict {PACKAGE_PIN N37} [get_ports {qsfp_refclk_n}]
create_clock -name qsfp_refclk -period 6.206 [get_ports qsfp_refclk_p]

# 100 MHz of the slot: MGTREFCLK0 of quad 227, for lanes 0 to 7.
set_property -dict {PACKAGE_PIN AB9} [get_ports {pcie_refclk_p}]
set_property -dict {PACKAGE_PIN AB8} [get_ports {pcie_refclk_n}]
create_clock -name pcie_refclk -period 10.000 [get_ports pcie_refclk_p]

# ---- QSFP28: quad 131 ----

set_property -dict {PACKAGE_PIN J45} [get_ports {qsfp_rx_p[0]}]
set_property -dict {PACKAGE_PIN J46} [get_ports {qsfp_rx_n[0]}]
set_property -dict {PACKAGE_PIN D42} [get_ports {qsfp_tx_p[0]}]
set_property -dict {PACKAGE_PIN D43} [get_ports {qsfp_tx_n[0]}]
set_property -dict {PACKAGE_PIN G45} [get_ports {qsfp_rx_p[1]}]
set_property -dict {PACKAGE_PIN G46} [get_ports {qsfp_rx_n[1]}]
set_property -dict {PACKAGE_PIN C40} [get_ports {qsfp_tx_p[1]}]
set_property -dict {PACKAGE_PIN C41} [get_ports {qsfp_tx_n[1]}]
set_property -dict {PACKAGE_PIN F43} [get_ports {qsfp_rx_p[2]}]
set_property -dict {PACKAGE_PIN F44} [get_ports {qsfp_rx_n[2]}]
set_property -dict {PACKAGE_PIN B42} [get_ports {qsfp_tx_p[2]}]
set_property -dict {PACKAGE_PIN B43} [get_ports {qsfp_tx_n[2]}]
set_property -dict {PACKAGE_PIN E45} [get_ports {qsfp_rx_p[3]}]
set_property -dict {PACKAGE_PIN E46} [get_ports {qsfp_rx_n[3]}]
set_property -dict {PACKAGE_PIN A40} [get_ports {qsfp_tx_p[3]}]
set_property -dict {PACKAGE_PIN A41} [get_ports {qsfp_tx_n[3]}]

# ---- PCIe: quads 227 and 226 ----

set_property -dict {PACKAGE_PIN AL2} [get_ports {pcie_rx_p[0]}]
set_property -dict {PACKAGE_PIN AL1} [get_ports {pcie_rx_n[0]}]
set_property -dict {PACKAGE_PIN Y5} [get_ports {pcie_tx_p[0]}]
set_property -dict {PACKAGE_PIN Y4} [get_ports {pcie_tx_n[0]}]
set_property -dict {PACKAGE_PIN AM4} [get_ports {pcie_rx_p[1]}]
set_property -dict {PACKAGE_PIN AM3} [get_ports {pcie_rx_n[1]}]
set_property -dict {PACKAGE_PIN AA7} [get_ports {pcie_tx_p[1]}]
set_property -dict {PACKAGE_PIN AA6} [get_ports {pcie_tx_n[1]}]
set_property -dict {PACKAGE_PIN AK4} [get_ports {pcie_rx_p[2]}]
set_property -dict {PACKAGE_PIN AK3} [get_ports {pcie_rx_n[2]}]
set_property -dict {PACKAGE_PIN AB5} [get_ports {pcie_tx_p[2]}]
set_property -dict {PACKAGE_PIN AB4} [get_ports {pcie_tx_n[2]}]
set_property -dict {PACKAGE_PIN AN2} [get_ports {pcie_rx_p[3]}]
set_property -dict {PACKAGE_PIN AN1} [get_ports {pcie_rx_n[3]}]
set_property -dict {PACKAGE_PIN AC7} [get_ports {pcie_tx_p[3]}]
set_property -dict {PACKAGE_PIN AC6} [get_ports {pcie_tx_n[3]}]
set_property -dict {PACKAGE_PIN AP4} [get_ports {pcie_rx_p[4]}]
set_property -dict {PACKAGE_PIN AP3} [get_ports {pcie_rx_n[4]}]
set_property -dict {PACKAGE_PIN AD5} [get_ports {pcie_tx_p[4]}]
set_property -dict {PACKAGE_PIN AD4} [get_ports {pcie_tx_n[4]}]
set_property -dict {PACKAGE_PIN AR2} [get_ports {pcie_rx_p[5]}]
set_property -dict {PACKAGE_PIN AR1} [get_ports {pcie_rx_n[5]}]
set_property -dict {PACKAGE_PIN AF5} [get_ports {pcie_tx_p[5]}]
set_property -dict {PACKAGE_PIN AF4} [get_ports {pcie_tx_n[5]}]
set_property -dict {PACKAGE_PIN AT4} [get_ports {pcie_rx_p[6]}]
set_property -dict {PACKAGE_PIN AT3} [get_ports {pcie_rx_n[6]}]
set_property -dict {PACKAGE_PIN AE7} [get_ports {pcie_tx_p[6]}]
set_property -dict {PACKAGE_PIN AE6} [get_ports {pcie_tx_n[6]}]
set_property -dict {PACKAGE_PIN AU2} [get_ports {pcie_rx_p[7]}]
set_property -dict {PACKAGE_PIN AU1} [get_ports {pcie_rx_n[7]}]
set_property -dict {PACKAGE_PIN AH5} [get_ports {pcie_tx_p[7]}]
set_property -dict {PACKAGE_PIN AH4} [get_ports {pcie_tx_n[7]}]
set_property -dict {PACKAGE_PIN AW27 IOSTANDARD LVCMOS18} [get_ports {pcie_reset_n}]
set_property PULLUP true [get_ports pcie_reset_n]
set_false_path -from [get_ports pcie_reset_n]

# ---- LEDs of the QSFP28; the memory's alarm, which has to be driven ----

set_property -dict {PACKAGE_PIN E18 IOSTANDARD LVCMOS18} [get_ports {qsfp_led_act}]
set_property -dict {PACKAGE_PIN E16 IOSTANDARD LVCMOS18} [get_ports {qsfp_led_stat_g}]
set_property -dict {PACKAGE_PIN F17 IOSTANDARD LVCMOS18} [get_ports {qsfp_led_stat_y}]
set_property -dict {PACKAGE_PIN J18 IOSTANDARD LVCMOS18} [get_ports {hbm_cattrip}]
set_false_path -to [get_ports {qsfp_led_act qsfp_led_stat_g qsfp_led_stat_y hbm_cattrip}]

# ---- Configuration, from the board's flash ----

set_property CFGBVS GND [current_design]
set_property CONFIG_VOLTAGE 1.8 [current_design]
set_property CONFIG_MODE SPIx4 [current_design]
set_property BITSTREAM.CONFIG.SPI_BUSWIDTH 4 [current_design]
set_property BITSTREAM.CONFIG.SPI_32BIT_ADDR YES [current_design]
set_property BITSTREAM.CONFIG.SPI_FALL_EDGE YES [current_design]
set_property BITSTREAM.CONFIG.CONFIGRATE 85.0 [current_design]
set_property BITSTREAM.CONFIG.CONFIGFALLBACK ENABLE [current_design]
set_property BITSTREAM.CONFIG.UNUSEDPIN PULLUP [current_design]
set_property BITSTREAM.CONFIG.OVERTEMPSHUTDOWN ENABLE [current_design]
set_property BITSTREAM.GENERAL.COMPRESS TRUE [current_design]
# The power that the slot's card may take, in W.
set_operating_conditions -design_power_budget 63
