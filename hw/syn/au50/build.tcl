# SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
#
# Builds the bitstream for the Alveo U50, without a project, from the root of the repository:
#
#     vivado -mode batch -source hw/syn/au50/build.tcl -tclargs FOLDER
#
# FOLDER is made, and gets the cores, checkpoints, reports and pollux_au50.bit. It ends with an error if a
# path is too slow, or a fifo is not in block RAM.

if {[llength $argv] != 1} {
    error "one argument is needed, the folder for the results: -tclargs FOLDER"
}
set part xcu50-fsvh2104-2-e
set top pollux_au50
set here hw/syn/au50
set folder [file normalize [lindex $argv 0]]
set ip_folder $folder/ip
file mkdir $ip_folder

# The commit, as registers show it: 160 bits.
set commit [exec git rev-parse HEAD]

# ---- Sources -----------------------------------------------------------------------------------------------

create_project -in_memory -part $part
set_property target_language Verilog [current_project]
source $here/ip.tcl
foreach core [get_ips] {
    generate_target all $core
    synth_ip $core
}

set list [open $here/files.f]
foreach file [split [string trim [read $list]] "\n"] {
    read_verilog -sv $file
}
close $list
read_xdc $here/pins.xdc

# ---- Synthesis ---------------------------------------------------------------------------------------------

synth_design -top $top -part $part -flatten_hierarchy rebuilt -generic GIT_HASH=160'h$commit
write_checkpoint -force $folder/synth.dcp
report_utilization -hierarchical -file $folder/synth_utilization.rpt
report_ram_utilization -file $folder/synth_ram.rpt

# The fifos of the ports have a clocked output and a port for each side: they have to be in block RAM.
set registers [llength [get_cells -hierarchical -filter {NAME =~ *_fifo/*memory_reg* && REF_NAME =~ FD*}]]
if {$registers != 0} {
    error "$registers bits of the ports' fifos became registers: see synth_ram.rpt"
}

# ---- Implementation ----------------------------------------------------------------------------------------

# Its names are those of the netlist.
read_xdc $here/crossings.xdc
opt_design
place_design
phys_opt_design
route_design
phys_opt_design
write_checkpoint -force $folder/route.dcp

report_timing_summary -file $folder/timing.rpt
report_exceptions -ignored -file $folder/exceptions.rpt
report_bus_skew -file $folder/bus_skew.rpt
report_cdc -details -file $folder/cdc.rpt
report_methodology -file $folder/methodology.rpt
report_utilization -hierarchical -file $folder/utilization.rpt
report_power -file $folder/power.rpt
report_drc -file $folder/drc.rpt

# Paths between clocks without a bound are timed as if their clocks were related, and so are here, too.
foreach {what words} {setup {-setup} hold {-hold}} {
    set slack [get_property SLACK [get_timing_paths {*}$words]]
    puts "$what: slack $slack ns"
    if {$slack < 0} {
        error "timing is not met ($what, $slack ns): see timing.rpt"
    }
}

write_bitstream -force $folder/$top.bit
