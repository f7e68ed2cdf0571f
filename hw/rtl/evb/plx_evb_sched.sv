// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The scheduler of an event builder (thesis, III.B and III.F): its registers, sources of triggers,
// input buffers and counters around plx_evb_engine.

module plx_evb_sched #(
    parameter COLUMNS = 32,    // columns, at most
    parameter NODES   = 1024,  // nodes, at most, a power of two
    parameter BUFFERS = 4096,  // receive buffers of all nodes, at most, a power of two
    parameter SLOTS   = 256    // events in flight, a power of two
) (
    input  logic                               clk,
    input  logic                               rst,

    // Registers.
    input  logic [12:0]                        s_axil_awaddr,
    input  logic                               s_axil_awvalid,
    output logic                               s_axil_awready,
    input  logic [31:0]                        s_axil_wdata,
    input  logic [3:0]                         s_axil_wstrb,
    input  logic                               s_axil_wvalid,
    output logic                               s_axil_wready,
    output logic [1:0]                         s_axil_bresp,
    output logic                               s_axil_bvalid,
    input  logic                               s_axil_bready,
    input  logic [12:0]                        s_axil_araddr,
    input  logic                               s_axil_arvalid,
    output logic                               s_axil_arready,
    output logic [31:0]                        s_axil_rdata,
    output logic [1:0]                         s_axil_rresp,
    output logic                               s_axil_rvalid,
    input  logic                               s_axil_rready,

    // The external trigger: one event for each cycle.
    input  logic                               trigger,

    // Feedback of nodes, one in each cycle.
    input  logic                               s_feedback_valid,
    input  logic [layouts_pkg::FEEDBACK_W-1:0] s_feedback_data,

    // Decisions: an event, and the first event that is not decided.
    input  logic                               s_decided_valid,
    output logic                               s_decided_ready,
    input  logic [63:0]                        s_decided_data,

    // The ring: messages to the first feeder, and from the last one; damaged ones are dropped before.
    output logic                               m_flow_valid,
    input  logic                               m_flow_ready,
    output logic [layouts_pkg::FLOW_W-1:0]     m_flow_data,
    input  logic                               s_flow_valid,
    input  logic [layouts_pkg::FLOW_W-1:0]     s_flow_data,
    input  logic                               inc_damaged,

    // A set-up: feeders and links clear what they have, and so do registers and counters here, which are a cycle
    // behind what they count.
    output logic                               m_setup,

    // Settings that feeders have too.
    output logic [31:0]                        cfg_run,
    output logic [16:0]                        cfg_descriptors
);
    localparam CW = $clog2(COLUMNS), NW = $clog2(NODES), BW = $clog2(BUFFERS), SW = $clog2(SLOTS);
    localparam FLOW_W = layouts_pkg::FLOW_W, FEEDBACK_W = layouts_pkg::FEEDBACK_W;
    localparam INPUTS = 64;

    // Registers.
    logic        enable, trigger_enable, mode, hand, setup, command, busy, ready, enabled;
    logic [1:0]  select, discipline, kind;
    logic [7:0]  loops;
    logic [15:0] nodes, limit, member;
    logic [30:0] timeout;
    logic [31:0] feeders, partition, period, members, triggered, errors, passed;
    logic [3:0]  overflow, peak_bits;
    logic [4:0]  output_level;
    logic [SW:0] copies, pending, peak;
    logic        win_write, counters_valid, counters_ready, column_valid, node_valid;
    logic [12:0] win_addr;
    logic [31:0] win_wdata, counters_rdata, column_rdata, node_rdata;
    logic [3:0]  win_wstrb;
    logic [15:0] weight, column_weight;
    logic [BW:0] used, column_used;
    logic [CW-1:0] node_column;
    logic        column_ready, node_ready, offered, column_offered;

    // Input buffers, and the output buffer: a message is offered in the cycle after.
    logic                  feedback_room, feedback_valid, feedback_ready, flow_room, flow_valid, flow_ready,
                           engine_valid, engine_ready;
    logic [FEEDBACK_W-1:0] feedback;
    logic [FLOW_W-1:0]     flow, engine_flow;
    logic [6:0]            feedback_level, flow_level;

    plx_evb_regs registers (
        .clk, .rst,
        .s_axil_awaddr, .s_axil_awvalid, .s_axil_awready, .s_axil_wdata, .s_axil_wstrb, .s_axil_wvalid, .s_axil_wready,
        .s_axil_bresp, .s_axil_bvalid, .s_axil_bready, .s_axil_araddr, .s_axil_arvalid, .s_axil_arready,
        .s_axil_rdata, .s_axil_rresp, .s_axil_rvalid, .s_axil_rready,
        .cfg_enable(enable), .cfg_trigger_select_source(select), .cfg_trigger_enable(trigger_enable),
        .sts_state_state(enabled ? {ready, !ready} : 2'd0), .cfg_mode(mode), .sts_ring_errors(errors),
        .pulse_hand_trigger_trigger(hand),
        .sts_overflow_pending(overflow[0]), .sts_overflow_arrivals(overflow[1]),
        .sts_overflow_feedback(overflow[2]), .sts_overflow_returned(overflow[3]),
        .sts_event(triggered), .sts_passed(passed), .sts_pending_peak_peak(peak_bits),
        .sts_input_used({1'b0, feedback_level}), .sts_output_used({3'd0, output_level}),
        .sts_copies_used({{(15 - SW) {1'b0}}, copies}), .sts_returned_used({1'b0, flow_level}),
        .sts_pending_used({{(31 - SW) {1'b0}}, pending}),
        .cfg_run, .cfg_nodes(nodes), .cfg_descriptors, .cfg_feeders(feeders), .cfg_discipline_discipline(discipline),
        .cfg_partition(partition), .cfg_loops(loops), .cfg_ring_timeout_cycles(timeout), .cfg_pending_limit(limit),
        .cfg_trigger_period_cycles(period), .pulse_setup_start(setup),
        .cfg_command_member(member), .cfg_command_kind(kind), .wr_command(command), .sts_busy(busy),
        .sts_members(members),
        .win_write, .win_addr, .win_wdata, .win_wstrb,
        .win_counters_valid(counters_valid), .win_counters_ready(counters_ready), .win_counters_rdata(counters_rdata),
        .win_column_valid(column_valid), .win_column_ready(column_ready), .win_column_rdata(column_rdata),
        .win_node_valid(node_valid), .win_node_ready(node_ready), .win_node_rdata(node_rdata)
    );

    // A table is read while no command looks at it, and answered in the cycle after: no command begins between, as
    // registers are accessed one after the other. Of a column's buffers one may be the next.
    always_ff @(posedge clk) begin
        column_ready <= column_valid && !busy && !column_ready;
        node_ready   <= node_valid && !busy && !node_ready;
        {column_offered, column_used, column_weight} <= {offered, used, weight};
        node_rdata   <= {{(32 - CW) {1'b0}}, node_column};
        if (rst) {column_ready, node_ready} <= 2'b00;
    end

    assign column_rdata = win_addr[2] ? {{(31 - BW) {1'b0}}, column_used} + {31'd0, column_offered}
                                      : {16'd0, column_weight};

    // Triggers: of the selected source. That an internal one is due is known a cycle ahead.
    logic [31:0] until_next;
    logic        internal;
    wire         source   = select == 2'd3 ? hand : select == 2'd2 ? trigger : internal;

    always_ff @(posedge clk) begin
        until_next <= internal ? period - 1'b1 : until_next - 1'b1;
        internal   <= internal ? period == 1 : until_next == 1;
        if (rst || !trigger_enable || select[1]) begin
            until_next <= period;
            internal   <= period == 0;
        end
    end

    // What finds an input buffer full is lost and counted.
    plx_fifo_sync #(.WIDTH(FEEDBACK_W), .DEPTH(INPUTS)) feedback_buffer (
        .clk, .rst(rst || setup),
        .s_valid(s_feedback_valid), .s_ready(feedback_room), .s_data(s_feedback_data),
        .m_valid(feedback_valid), .m_ready(feedback_ready), .m_data(feedback), .level(feedback_level)
    );

    // With the link before it.
    plx_fifo_sync #(.WIDTH(FLOW_W), .DEPTH(INPUTS)) flow_buffer (
        .clk, .rst(rst || setup || m_setup),
        .s_valid(s_flow_valid), .s_ready(flow_room), .s_data(s_flow_data),
        .m_valid(flow_valid), .m_ready(flow_ready), .m_data(flow), .level(flow_level)
    );

    plx_fifo_sync #(.WIDTH(FLOW_W), .DEPTH(16)) output_buffer (
        .clk, .rst(rst || setup),
        .s_valid(engine_valid), .s_ready(engine_ready), .s_data(engine_flow),
        .m_valid(m_flow_valid), .m_ready(m_flow_ready), .m_data(m_flow_data), .level(output_level)
    );

    // Room in the output buffer, as of the cycle before, in which one message may have come.
    logic output_room;

    always_ff @(posedge clk) output_room <= output_level < 5'd14;

    logic [22:0] inc;
    logic [5:0]  inc_passed;
    wire         feedback_lost = s_feedback_valid && !feedback_room;
    wire         flow_lost     = s_flow_valid && !flow_room;

    plx_evb_engine #(
        .COLUMNS(COLUMNS),
        .NODES(NODES),
        .BUFFERS(BUFFERS),
        .SLOTS(SLOTS)
    ) engine (
        .clk, .rst,
        .cfg_enable(enable), .cfg_wait(mode), .cfg_run, .cfg_nodes(nodes), .cfg_descriptors, .cfg_feeders(feeders),
        .cfg_discipline(discipline), .cfg_partition(partition[COLUMNS-1:0]), .cfg_loops(loops), .cfg_timeout(timeout),
        .cfg_pending_limit(limit),
        .setup, .command, .command_kind(kind), .command_member(member), .busy,
        .w_weight(column_valid && column_ready && win_write && !win_addr[2] && &win_wstrb[1:0]),
        .look_column(win_addr[3 +: CW]), .weight_data(win_wdata[15:0]), .look_weight(weight), .look_used(used),
        .look_offered(offered),
        .w_node(node_valid && node_ready && win_write && win_wstrb[0]), .look_node(win_addr[2 +: NW]),
        .node_data(win_wdata[CW-1:0]), .look_node_column(node_column),
        .trigger(trigger_enable && source),
        .s_feedback_valid(feedback_valid), .s_feedback_ready(feedback_ready), .s_feedback_data(feedback),
        .s_flow_valid(flow_valid), .s_flow_ready(flow_ready), .s_flow_data(flow),
        .s_decided_valid, .s_decided_ready, .s_decided_data,
        .m_flow_valid(engine_valid), .m_flow_ready(output_room), .m_flow_data(engine_flow),
        .sts_ready(ready), .sts_enabled(enabled), .sts_members(members), .sts_triggered(triggered),
        .sts_pending(pending), .sts_peak(peak), .sts_copies(copies),
        .inc, .inc_passed
    );

    // In the order of the registers.
    wire [23:0] counted = {inc[20], inc[19], inc[18], inc[17], inc_damaged, flow_lost, feedback_lost, inc[16:0]};

    plx_counters #(
        .COUNT(24),
        .AMOUNT_W(1)
    ) counter_bank (
        .clk, .rst(rst || m_setup),
        .amount(counted),
        .win_valid(counters_valid), .win_write, .win_addr(win_addr[7:2]), .win_ready(counters_ready),
        .win_rdata(counters_rdata)
    );

    // Eighths of the limit, in registers.
    wire [19:0] peaks  = {{(16 - SW) {1'b0}}, peak, 3'd0};
    wire [19:0] twice  = {3'd0, limit, 1'b0};
    logic [19:0] six, seven;

    always_ff @(posedge clk) begin
        m_setup   <= setup && !rst;
        overflow  <= overflow | {flow_lost, feedback_lost, inc[8], inc[7] || inc[6]};
        errors    <= errors + {31'd0, inc[21]};
        passed    <= passed + {26'd0, inc_passed};
        six       <= twice + (twice << 1);
        seven     <= {1'b0, limit, 3'd0} - {4'd0, limit};
        peak_bits <= {peaks > seven, peaks > six, peaks > twice << 1, peaks > twice};
        if (rst || m_setup) begin
            overflow <= '0;
            errors   <= '0;
            passed   <= '0;
        end
    end

    wire unused = &{1'b0, engine_ready, inc[22], win_wdata[31:16], win_wstrb[3:2], win_addr};
endmodule
