// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Crossings of clocks as they must not be, and three as they may be: what scripts/lib/crossings.py has to
// find. Before each module stands what it says of it.

// wrong: q (register_follows_other_clock, clk_net) follows held
module register_follows_other_clock (
    input  logic clk_core,
    input  logic clk_net,
    input  logic d,
    output logic q
);
    logic first, held;

    plx_sync_bit enters (.clk(clk_core), .rst(1'b0), .d, .q(first));
    always_ff @(posedge clk_core) held <= first;
    always_ff @(posedge clk_net) q <= !held;
endmodule

// wrong: q (memory_between_clocks, clk_core) follows memory.RD_DATA; memory (memory_between_clocks, clk_net) follows address
module memory_between_clocks (
    input  logic       clk_core,
    input  logic       clk_net,
    output logic [7:0] q
);
    logic [7:0] memory [0:15];
    logic [3:0] address = 0;

    always_ff @(posedge clk_core) begin
        address <= address + 4'd1;
        q       <= memory[address];
    end
    always_ff @(posedge clk_net) memory[address] <= 8'd1;
endmodule

// wrong: logic ($logic_and) before late
module logic_before_synchroniser (
    input  logic clk_core,
    input  logic clk_net,
    output logic q
);
    logic a = 0, b = 0;

    always_ff @(posedge clk_core) begin
        a <= !a;
        b <= a;
    end
    plx_sync_bit late (.clk(clk_net), .rst(1'b0), .d(a && b), .q);
endmodule

// wrong: logic ($logic_or) before the asynchronous reset of starts
module logic_before_reset (
    input  logic clk_core,
    input  logic clk_net,
    input  logic pin,
    output logic rst
);
    logic a = 0;

    always_ff @(posedge clk_core) a <= !a;
    plx_sync_reset starts (.clk(clk_net), .rst_async(a || pin), .rst);
endmodule

// wrong: q has an asynchronous reset, and is not in plx_sync_reset
module reset_of_a_register (
    input  logic clk_net,
    input  logic rst,
    output logic q
);
    always_ff @(posedge clk_net or posedge rst) begin
        if (rst) q <= 1'b0;
        else q <= !q;
    end
endmodule

// wrong: q (reset_from_other_clock, clk_net) follows starts/rst
module reset_from_other_clock (
    input  logic clk_core,
    input  logic clk_net,
    input  logic pin,
    output logic q
);
    logic rst;

    plx_sync_reset starts (.clk(clk_core), .rst_async(pin), .rst);
    always_ff @(posedge clk_net) q <= !rst && !q;
endmodule

// wrong:
module reset_in_its_clock (
    input  logic clk_net,
    input  logic pin,
    output logic q
);
    logic rst;

    plx_sync_reset starts (.clk(clk_net), .rst_async(!pin), .rst);
    always_ff @(posedge clk_net) q <= !rst && !q;
endmodule

// wrong:
module queue_between_clocks (
    input  logic       clk_core,
    input  logic       clk_net,
    output logic [7:0] q
);
    logic [7:0] d = 0, word;

    always_ff @(posedge clk_core) d <= d + 8'd1;
    /* verilator lint_off PINCONNECTEMPTY */
    plx_fifo_async #(.WIDTH(8), .DEPTH(4)) queue (
        .w_clk(clk_core), .w_rst(1'b0), .s_valid(1'b1), .s_ready(), .s_data(d), .r_clk(clk_net), .r_rst(1'b0),
        .m_valid(), .m_ready(1'b1), .m_data(word)
    );
    /* verilator lint_on PINCONNECTEMPTY */
    always_ff @(posedge clk_net) q <= word;
endmodule

// The timing input, as a top has it whose board has the pins: each of them goes to its synchroniser alone.
// wrong:
module timing_input_at_pins (
    input  logic       clk_net,
    input  logic       ttc_clock,
    input  logic       ttc_start,
    input  logic       ttc_end,
    input  logic       ttc_trigger,
    output logic [4:0] seen
);
    /* verilator lint_off PINCONNECTEMPTY */
    plx_timing timing (
        .clk(clk_net), .rst(1'b0), .ttc_clock, .ttc_start, .ttc_end, .ttc_trigger, .now_cycle_ts(),
        .now_timestamp_ns(), .now_timestamp_valid(), .cfg_from_clock(1'b1), .cfg_set_on_start(1'b1),
        .cfg_event_burst(1'b1), .cfg_event_trigger(1'b1), .cfg_event_flag(1'b1), .cfg_period(32'd1),
        .cfg_watch_expect(16'd0), .cfg_watch_tolerance(16'd0), .cfg_set(64'd0), .wr_set(1'b0), .cfg_preset(64'd0),
        .flags(5'd0), .set_flags(), .bursts(), .in_burst(), .at_start(), .at_end(), .at_trigger(),
        .m_event_valid(seen[4]), .m_event_ready(1'b1), .m_event_edges(seen[3:0]), .m_event_timestamp_ns(),
        .m_event_timestamp_valid(), .m_event_cycle_ts(), .m_event_burst(), .m_event_flags(), .m_event_clocks(),
        .m_event_triggers(), .inc_clocks(), .inc_triggers(), .inc_early(), .inc_lost(), .inc_unpaired(),
        .inc_events_lost()
    );
    /* verilator lint_on PINCONNECTEMPTY */
endmodule
