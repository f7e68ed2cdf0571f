# SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
#
# The cores of the top: PCIe block (PG213), transceivers (PG182). Their ports are in amd/blackboxes.sv.

if {![info exists ip_folder]} {
    set ip_folder [file normalize ip]
    file mkdir $ip_folder
}

# PCIe Gen3 x8, as hw/rtl/pcie/us expects it; completions are aligned to DWORDs unless set otherwise. The host may
# enable extended tags (`extended_tag_field`: Extended Tag Field Supported, in Device Capabilities). IDs, BARs
# and MSI-X are those of the driver (pmd/src/drivers/card); virtual functions have the same, from number 4 on.
create_ip -name pcie4c_uscale_plus -vendor xilinx.com -library ip -module_name plx_pcie4c -dir $ip_folder
set_property -dict [list \
    CONFIG.mode_selection {Advanced} \
    CONFIG.PL_LINK_CAP_MAX_LINK_SPEED {8.0_GT/s} \
    CONFIG.PL_LINK_CAP_MAX_LINK_WIDTH {X8} \
    CONFIG.axisten_if_width {256_bit} \
    CONFIG.axisten_freq {250} \
    CONFIG.AXISTEN_IF_CQ_ALIGNMENT_MODE {DWORD_Aligned} \
    CONFIG.AXISTEN_IF_RQ_ALIGNMENT_MODE {DWORD_Aligned} \
    CONFIG.AXISTEN_IF_RC_STRADDLE {false} \
    CONFIG.axisten_if_enable_client_tag {true} \
    CONFIG.extended_tag_field {true} \
    CONFIG.pf0_dev_cap_max_payload {1024_bytes} \
    CONFIG.PF0_Use_Class_Code_Lookup_Assistant {false} \
    CONFIG.PF0_CLASS_CODE {020000} \
    CONFIG.vendor_id {1234} \
    CONFIG.PF0_DEVICE_ID {504c} \
    CONFIG.pf0_bar0_64bit {true} \
    CONFIG.pf0_bar0_scale {Kilobytes} \
    CONFIG.pf0_bar0_size {128} \
    CONFIG.pf0_bar2_enabled {true} \
    CONFIG.pf0_bar2_64bit {true} \
    CONFIG.pf0_bar2_scale {Kilobytes} \
    CONFIG.pf0_bar2_size {8} \
    CONFIG.pf0_msi_enabled {false} \
    CONFIG.MSI_X_OPTIONS {MSI-X_External} \
    CONFIG.pf0_msix_enabled {true} \
    CONFIG.PF0_MSIX_CAP_TABLE_SIZE {0FF} \
    CONFIG.PF0_MSIX_CAP_TABLE_BIR {BAR_3:2} \
    CONFIG.PF0_MSIX_CAP_TABLE_OFFSET {00000000} \
    CONFIG.PF0_MSIX_CAP_PBA_BIR {BAR_3:2} \
    CONFIG.PF0_MSIX_CAP_PBA_OFFSET {00001000} \
    CONFIG.SRIOV_CAP_ENABLE {true} \
    CONFIG.PF0_SRIOV_CAP_INITIAL_VF {7} \
    CONFIG.PF0_SRIOV_FIRST_VF_OFFSET {4} \
    CONFIG.PF0_SRIOV_VF_DEVICE_ID {504c} \
    CONFIG.pf0_sriov_bar0_64bit {true} \
    CONFIG.pf0_sriov_bar0_scale {Kilobytes} \
    CONFIG.pf0_sriov_bar0_size {128} \
    CONFIG.pf0_sriov_bar2_enabled {true} \
    CONFIG.pf0_sriov_bar2_64bit {true} \
    CONFIG.pf0_sriov_bar2_scale {Kilobytes} \
    CONFIG.pf0_sriov_bar2_size {8} \
    CONFIG.VFG0_MSIX_CAP_TABLE_SIZE {0FF} \
    CONFIG.VFG0_MSIX_CAP_TABLE_BIR {BAR_3:2} \
    CONFIG.VFG0_MSIX_CAP_TABLE_OFFSET {00000000} \
    CONFIG.VFG0_MSIX_CAP_PBA_BIR {BAR_3:2} \
    CONFIG.VFG0_MSIX_CAP_PBA_OFFSET {00001000} \
] [get_ips plx_pcie4c]

# Lanes of 10GBASE-R with the asynchronous 64B/66B gearbox: TXUSRCLK2 and RXUSRCLK2 at 156.25 MHz. One core
# has the PLL of the quad. Clock buffers are in amd/plx_gty_lane.sv, since each receiver has its own clock.
set lane [list \
    CONFIG.TX_LINE_RATE {10.3125} \
    CONFIG.TX_REFCLK_FREQUENCY {161.1328125} \
    CONFIG.TX_DATA_ENCODING {64B66B_ASYNC} \
    CONFIG.TX_USER_DATA_WIDTH {64} \
    CONFIG.TX_INT_DATA_WIDTH {64} \
    CONFIG.TX_OUTCLK_SOURCE {TXPROGDIVCLK} \
    CONFIG.RX_LINE_RATE {10.3125} \
    CONFIG.RX_REFCLK_FREQUENCY {161.1328125} \
    CONFIG.RX_DATA_DECODING {64B66B_ASYNC} \
    CONFIG.RX_USER_DATA_WIDTH {64} \
    CONFIG.RX_INT_DATA_WIDTH {64} \
    CONFIG.RX_OUTCLK_SOURCE {RXPROGDIVCLK} \
    CONFIG.RX_PPM_OFFSET {200} \
    CONFIG.LOCATE_RESET_CONTROLLER {CORE} \
    CONFIG.LOCATE_TX_USER_CLOCKING {EXAMPLE_DESIGN} \
    CONFIG.LOCATE_RX_USER_CLOCKING {EXAMPLE_DESIGN} \
    CONFIG.LOCATE_USER_DATA_WIDTH_SIZING {CORE} \
    CONFIG.FREERUN_FREQUENCY {100} \
    CONFIG.DISABLE_LOC_XDC {1} \
]
set optional {txprgdivresetdone_out rxprgdivresetdone_out gtpowergood_out}

create_ip -name gtwizard_ultrascale -vendor xilinx.com -library ip -module_name plx_gty_full -dir $ip_folder
set_property CONFIG.preset {GTY-10GBASE-R} [get_ips plx_gty_full]
set_property -dict [concat $lane [list \
    CONFIG.LOCATE_COMMON {CORE} \
    CONFIG.ENABLE_OPTIONAL_PORTS [concat $optional {gtrefclk00_in qpll0lock_out qpll0outclk_out qpll0outrefclk_out}] \
]] [get_ips plx_gty_full]

create_ip -name gtwizard_ultrascale -vendor xilinx.com -library ip -module_name plx_gty_channel -dir $ip_folder
set_property CONFIG.preset {GTY-10GBASE-R} [get_ips plx_gty_channel]
set_property -dict [concat $lane [list \
    CONFIG.LOCATE_COMMON {EXAMPLE_DESIGN} \
    CONFIG.ENABLE_OPTIONAL_PORTS $optional \
]] [get_ips plx_gty_channel]
