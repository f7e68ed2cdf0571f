# Runs a script of Vivado without Vivado: `tclsh dry.tcl SCRIPT FOLDER SLACK REGISTERS`. Each command is
# printed as a list with its words; one that is not known here, and a file that is not there, is an error.
# SLACK is that of all paths; REGISTERS of memories are found.

lassign $argv script folder slack registers

proc say {name words} { puts [list $name {*}$words] }

proc complete {file} {
    set channel [open $file]
    set text [read $channel]
    close $channel
    if {![info complete $text]} { error "$file: a brace, bracket or quote is not closed" }
    return $text
}

foreach name {
    create_project create_ip set_property generate_target synth_ip synth_design opt_design place_design
    phys_opt_design route_design write_checkpoint write_bitstream report_utilization report_ram_utilization
    report_timing_summary report_exceptions report_bus_skew report_cdc report_methodology report_power report_drc
} { proc $name args "say $name \$args" }

foreach name {current_project current_design get_files get_ports get_pins get_nets get_clocks} {
    proc $name args "say $name \$args; return \$args"
}
set cores {}
rename create_ip create_ip_said
proc create_ip args {
    create_ip_said {*}$args
    lappend ::cores [dict get $args -module_name]
}
proc get_ips args {
    foreach name $args {
        if {$name ni $::cores} { error "no core $name" }
    }
    return [expr {$args eq {} ? $::cores : $args}]
}
proc get_cells args {
    say get_cells $args
    return [expr {"-filter" in $args ? [lrepeat $::registers bit] : $args}]
}
proc get_timing_paths args { say get_timing_paths $args; return path }
proc get_property {name of} { say get_property [list $name $of]; return $::slack }

proc read_verilog {option file} {
    if {![file isfile $file]} { error "no file $file" }
    say read_verilog [list $option $file]
}

# Constraints have only a part of Tcl.
proc read_xdc file {
    say read_xdc [list $file]
    set child [interp create]
    foreach name [$child eval {info commands}] {
        if {$name ni {set list}} { $child hide $name }
    }
    foreach name {get_ports get_pins get_nets get_clocks get_cells current_design set_property} {
        $child alias $name $name
    }
    foreach name {
        create_clock set_max_delay set_bus_skew set_false_path set_operating_conditions
    } { $child alias $name say_constraint $name }
    set text [complete $file]
    $child invokehidden eval $text
    interp delete $child
}
proc say_constraint {name args} { say $name $args }

rename source tcl_source
proc source file {
    complete $file
    say source [list $file]
    uplevel 1 [list tcl_source $file]
}
rename exec tcl_exec
proc exec args { return [string repeat 0 40] }

set argv [list $folder]
if {[catch {source $script} why]} {
    puts stderr $why
    exit 1
}
