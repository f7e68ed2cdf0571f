// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Time and the timing input, wired with their registers, counters and events.

module plx_timing_block (
    input  logic                    clk_net,
    input  logic                    rst_net,
    input  logic                    clk_core,
    input  logic                    rst_core,

    // The other clock's modules, in clk_core: they are in reset, and what waits for them is lost; they are in
    // reset, or their clock stands.
    input  logic                    net_clear,
    input  logic                    net_in_reset,

    // Timing input, of any clock: rising edges count.
    input  logic                    ttc_clock,
    input  logic                    ttc_start,
    input  logic                    ttc_end,
    input  logic                    ttc_trigger,

    // The present time: cycles for both clocks, and the timestamp of frames in clk_net.
    output logic [63:0]             now_cycle_ts,
    output logic [63:0]             now_timestamp_ns,
    output logic                    now_timestamp_valid,
    output logic [63:0]             core_cycle_ts,

    // Registers, in clk_core.
    input  logic [8:0]              s_axil_addr,
    input  logic                    s_axil_awvalid,
    output logic                    s_axil_awready,
    input  logic [31:0]             s_axil_wdata,
    input  logic [3:0]              s_axil_wstrb,
    input  logic                    s_axil_wvalid,
    output logic                    s_axil_wready,
    output logic                    s_axil_bvalid,
    input  logic                    s_axil_bready,
    input  logic                    s_axil_arvalid,
    output logic                    s_axil_arready,
    output logic [31:0]             s_axil_rdata,
    output logic                    s_axil_rvalid,
    input  logic                    s_axil_rready,

    // Event records, to queues with room: a queue, and in the next cycle whether it has.
    output logic [7:0]              m_room_queue,
    input  logic                    s_room,
    output logic                    m_event_valid,
    input  logic                    m_event_ready,
    output logic [7:0]              m_event_queue,
    output logic [511:0]            m_event_record
);
    logic [8:0]  awaddr, araddr, win_addr;
    logic        awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready;
    logic [31:0] wdata, rdata;
    logic [3:0]  wstrb;
    logic [1:0]  bresp, rresp;

    /* verilator lint_off PINCONNECTEMPTY */
    plx_axil_cdc #(.ADDR_W(9)) crossing (
        .s_clk(clk_core), .s_rst(rst_core || net_in_reset),
        .s_axil_awaddr(s_axil_addr), .s_axil_awvalid, .s_axil_awready, .s_axil_wdata, .s_axil_wstrb, .s_axil_wvalid,
        .s_axil_wready, .s_axil_bresp(), .s_axil_bvalid, .s_axil_bready, .s_axil_araddr(s_axil_addr), .s_axil_arvalid,
        .s_axil_arready, .s_axil_rdata, .s_axil_rresp(), .s_axil_rvalid, .s_axil_rready,
        .m_clk(clk_net), .m_rst(rst_net),
        .m_axil_awaddr(awaddr), .m_axil_awvalid(awvalid), .m_axil_awready(awready), .m_axil_wdata(wdata),
        .m_axil_wstrb(wstrb), .m_axil_wvalid(wvalid), .m_axil_wready(wready), .m_axil_bresp(bresp),
        .m_axil_bvalid(bvalid), .m_axil_bready(bready), .m_axil_araddr(araddr), .m_axil_arvalid(arvalid),
        .m_axil_arready(arready), .m_axil_rdata(rdata), .m_axil_rresp(rresp), .m_axil_rvalid(rvalid),
        .m_axil_rready(rready)
    );

    logic        from_clock, set_on_start, event_burst, event_trigger, event_flag, wr_set, in_burst, win_write,
                 win_valid, win_ready;
    logic [7:0]  queue;
    logic [4:0]  flags, set_flags;
    logic [31:0] period, bursts, win_rdata;
    logic [15:0] expect_cycles, tolerance;
    logic [63:0] set, preset, at_start, at_end, at_trigger;

    plx_timing_regs registers (
        .clk(clk_net), .rst(rst_net),
        .s_axil_awaddr(awaddr), .s_axil_awvalid(awvalid), .s_axil_awready(awready), .s_axil_wdata(wdata),
        .s_axil_wstrb(wstrb), .s_axil_wvalid(wvalid), .s_axil_wready(wready), .s_axil_bresp(bresp),
        .s_axil_bvalid(bvalid), .s_axil_bready(bready), .s_axil_araddr(araddr), .s_axil_arvalid(arvalid),
        .s_axil_arready(arready), .s_axil_rdata(rdata), .s_axil_rresp(rresp), .s_axil_rvalid(rvalid),
        .s_axil_rready(rready),
        .cfg_ctrl_from_clock(from_clock), .cfg_ctrl_set_on_start(set_on_start), .cfg_ctrl_event_burst(event_burst),
        .cfg_ctrl_event_trigger(event_trigger), .cfg_ctrl_event_flag(event_flag), .cfg_ctrl_queue(queue),
        .set_flags_unexpected_start(set_flags[0]), .flag_flags_unexpected_start(flags[0]),
        .set_flags_unexpected_end(set_flags[1]), .flag_flags_unexpected_end(flags[1]),
        .set_flags_early(set_flags[2]), .flag_flags_early(flags[2]),
        .set_flags_lost(set_flags[3]), .flag_flags_lost(flags[3]),
        .set_flags_event(set_flags[4]), .flag_flags_event(flags[4]),
        .cfg_period(period), .cfg_watch_expect(expect_cycles), .cfg_watch_tolerance(tolerance), .sts_bursts(bursts),
        .sts_status_valid(now_timestamp_valid), .sts_status_burst(in_burst), .sts_now(now_timestamp_ns),
        .cfg_set(set), .wr_set, .cfg_preset(preset), .sts_start(at_start), .sts_end(at_end), .sts_trigger(at_trigger),
        .win_write, .win_addr, .win_wdata(), .win_wstrb(), .win_counters_valid(win_valid),
        .win_counters_ready(win_ready), .win_counters_rdata(win_rdata)
    );
    /* verilator lint_on PINCONNECTEMPTY */

    logic        inc_clocks, inc_triggers, inc_early, inc_lost, inc_unpaired;
    logic [2:0]  inc_events_lost;
    logic        edge_valid, edge_ready, edge_timestamp_valid;
    logic [3:0]  edges;
    logic [63:0] edge_timestamp_ns, edge_clocks, edge_triggers;
    logic [31:0] edge_cycle_ts, edge_burst;
    logic [4:0]  edge_flags;

    plx_timing timing (
        .clk(clk_net), .rst(rst_net), .ttc_clock, .ttc_start, .ttc_end, .ttc_trigger, .now_cycle_ts, .now_timestamp_ns,
        .now_timestamp_valid, .cfg_from_clock(from_clock), .cfg_set_on_start(set_on_start),
        .cfg_event_burst(event_burst), .cfg_event_trigger(event_trigger), .cfg_event_flag(event_flag),
        .cfg_period(period), .cfg_watch_expect(expect_cycles), .cfg_watch_tolerance(tolerance), .cfg_set(set),
        .wr_set, .cfg_preset(preset), .flags, .set_flags, .bursts, .in_burst, .at_start, .at_end, .at_trigger,
        .m_event_valid(edge_valid), .m_event_ready(edge_ready), .m_event_edges(edges),
        .m_event_timestamp_ns(edge_timestamp_ns), .m_event_timestamp_valid(edge_timestamp_valid),
        .m_event_cycle_ts(edge_cycle_ts), .m_event_burst(edge_burst), .m_event_flags(edge_flags),
        .m_event_clocks(edge_clocks), .m_event_triggers(edge_triggers), .inc_clocks, .inc_triggers, .inc_early,
        .inc_lost, .inc_unpaired, .inc_events_lost
    );

    localparam COUNTERS = 6, AMOUNT_W = 8;
    localparam SUMS = 1 << regs_pkg::TIMING_EVENTS_LOST_ROW / 8;
    wire [COUNTERS*AMOUNT_W-1:0] amount;
    assign amount[regs_pkg::TIMING_CLOCKS_ROW/8*AMOUNT_W +: AMOUNT_W]      = {7'd0, inc_clocks};
    assign amount[regs_pkg::TIMING_TRIGGERS_ROW/8*AMOUNT_W +: AMOUNT_W]    = {7'd0, inc_triggers};
    assign amount[regs_pkg::TIMING_EARLY_ROW/8*AMOUNT_W +: AMOUNT_W]       = {7'd0, inc_early};
    assign amount[regs_pkg::TIMING_LOST_ROW/8*AMOUNT_W +: AMOUNT_W]        = {7'd0, inc_lost};
    assign amount[regs_pkg::TIMING_UNPAIRED_ROW/8*AMOUNT_W +: AMOUNT_W]    = {7'd0, inc_unpaired};
    assign amount[regs_pkg::TIMING_EVENTS_LOST_ROW/8*AMOUNT_W +: AMOUNT_W] = {5'd0, inc_events_lost};

    plx_counters #(.COUNT(COUNTERS), .AMOUNT_W(AMOUNT_W), .SUMS(SUMS)) counters (
        .clk(clk_net), .rst(rst_net), .amount, .win_valid, .win_write, .win_addr({2'd0, win_addr[5:2]}), .win_ready,
        .win_rdata
    );

    plx_timing_event events (
        .clk_net, .rst_net, .cfg_queue(queue), .s_event_valid(edge_valid), .s_event_ready(edge_ready),
        .s_event_edges(edges), .s_event_timestamp_ns(edge_timestamp_ns), .s_event_timestamp_valid(edge_timestamp_valid),
        .s_event_cycle_ts(edge_cycle_ts), .s_event_burst(edge_burst), .s_event_flags(edge_flags),
        .s_event_clocks(edge_clocks), .s_event_triggers(edge_triggers),
        .clk_core, .rst_core, .clear(net_clear), .m_room_queue, .s_room, .m_event_valid, .m_event_ready, .m_event_queue, .m_event_record
    );

    plx_timestamp_cdc timestamp_cdc (
        .s_clk(clk_net), .s_cycle_ts(now_cycle_ts), .m_clk(clk_core), .m_rst(rst_core), .m_cycle_ts(core_cycle_ts)
    );

    wire unused = &{1'b0, win_addr[8:6], win_addr[1:0]};
endmodule
