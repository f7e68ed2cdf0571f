// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The scheduler's decisions. One operation after the other: a trigger, feedback, a message that
// returned, a decision, a time-out, a command. Each ends with a choice, and with the messages that it
// makes possible; then the next one begins. So the outcome depends on the order of the operations
// alone, and equals that of `pollux-farm`.
//
//   trigger, receive buffer ready    message in the next cycle
//   message                          next receive buffer 2 cycles later, in turn
//
// States of an event: waiting, in the ring, building, processed, decided. Numbers of events wrap;
// fewer than 2^31 lie between any two that are compared.

module evb_engine #(
    parameter COLUMNS = 32,    // columns, at most
    parameter NODES   = 1024,  // nodes, at most, a power of two
    parameter BUFFERS = 4096,  // receive buffers of all nodes, at most, a power of two
    parameter SLOTS   = 256    // events in flight, a power of two
) (
    input  logic                             clk,
    input  logic                             rst,

    // Settings, constant from a set-up on but for `enable` and `wait`.
    input  logic                             cfg_enable,
    input  logic                             cfg_wait,
    input  logic [31:0]                      cfg_run,
    input  logic [15:0]                      cfg_nodes,
    input  logic [16:0]                      cfg_descriptors,
    input  logic [31:0]                      cfg_feeders,
    input  logic [1:0]                       cfg_discipline,
    input  logic [COLUMNS-1:0]               cfg_partition,
    input  logic [7:0]                       cfg_loops,
    input  logic [30:0]                      cfg_timeout,
    input  logic [15:0]                      cfg_pending_limit,

    // A set-up; commands: 0 excludes a node, 1 readmits it, 2 excludes a feeder, 3 readmits it.
    input  logic                             setup,
    input  logic                             command,
    input  logic [1:0]                       command_kind,
    input  logic [15:0]                      command_member,
    output logic                             busy,

    // Tables: weights and queues of columns, columns of nodes.
    input  logic                             w_weight,
    input  logic [$clog2(COLUMNS)-1:0]       look_column,
    input  logic [15:0]                      weight_data,
    output logic [15:0]                      look_weight,
    output logic [16:0]                      look_used,
    input  logic                             w_node,
    input  logic [$clog2(NODES)-1:0]         look_node,
    input  logic [4:0]                       node_data,
    output logic [4:0]                       look_node_column,

    // A trigger.
    input  logic                             trigger,

    // Feedback; messages that returned; decisions: an event, and the first that is not decided.
    input  logic                             s_feedback_valid,
    output logic                             s_feedback_ready,
    input  logic [layouts_pkg::FEEDBACK_W-1:0] s_feedback_data,
    input  logic                             s_flow_valid,
    output logic                             s_flow_ready,
    input  logic [layouts_pkg::FLOW_W-1:0]   s_flow_data,
    input  logic                             s_decided_valid,
    output logic                             s_decided_ready,
    input  logic [63:0]                      s_decided_data,

    // Messages to the first feeder.
    output logic                             m_flow_valid,
    input  logic                             m_flow_ready,
    output logic [layouts_pkg::FLOW_W-1:0]   m_flow_data,

    // State.
    output logic                             sts_ready,
    output logic                             sts_enabled,
    output logic [31:0]                      sts_members,
    output logic [31:0]                      sts_triggered,
    output logic [31:0]                      sts_pending,
    output logic [31:0]                      sts_peak,
    output logic [$clog2(SLOTS):0]           sts_copies,
    output logic [4:0]                       sts_output,

    // Counted events.
    output logic [22:0]                      inc,
    output logic [5:0]                       inc_passed
);
    localparam CW = $clog2(COLUMNS), NW = $clog2(NODES), BW = $clog2(BUFFERS), SW = $clog2(SLOTS);
    localparam ALL = BUFFERS > SLOTS ? (BUFFERS > NODES ? BUFFERS : NODES) : (SLOTS > NODES ? SLOTS : NODES);
    localparam AW = $clog2(ALL);
    // A copy: a message from the generation on, and the node.
    localparam FLOW_W = layouts_pkg::FLOW_W, KEPT = layouts_pkg::FLOW_GENERATION_AT, COPY_W = FLOW_W - KEPT + NW;
    localparam ATTEMPT = layouts_pkg::FLOW_ATTEMPT_AT - KEPT, LOOPS = layouts_pkg::FLOW_LOOPS_AT - KEPT,
               MEMBERS = layouts_pkg::FLOW_MEMBERS_AT - KEPT, PENDING = layouts_pkg::FLOW_PENDING_AT - KEPT,
               NODE = FLOW_W - KEPT;

    // States of events and buffers.
    localparam WAITING = 3'd0, RING = 3'd1, BUILDING = 3'd2, PROCESSED = 3'd3, DECIDED = 3'd4;
    localparam UNKNOWN = 2'd0, FREE = 2'd1, ASSIGNED = 2'd2;

    localparam SETUP = 5'd0, IDLE = 5'd1, CHECK = 5'd2, FEEDBACK_1 = 5'd3, FEEDBACK_2 = 5'd4, FEEDBACK_3 = 5'd5,
               FEEDBACK_4 = 5'd6, FLOW_1 = 5'd7, FLOW_2 = 5'd8, DECIDE_1 = 5'd9, DECIDE_2 = 5'd10, RETIRE = 5'd11,
               EXPIRE = 5'd12, AGAIN_1 = 5'd14, AGAIN_2 = 5'd15, SEND = 5'd16, RELEASE = 5'd17,
               COMMAND_1 = 5'd18, COMMAND_2 = 5'd19, PURGE_1 = 5'd20, PURGE_2 = 5'd21, PURGE_3 = 5'd22,
               PURGE_4 = 5'd23, FORGET = 5'd24, WALK_1 = 5'd25, WALK_2 = 5'd26, GIVE_BACK = 5'd27;

    // Bits of `inc`.
    localparam I_SENT = 0, I_RETURNED = 1, I_LOOPED = 2, I_RESENT = 3, I_UNRETURNED = 4, I_STALE = 5,
               I_PENDING_FULL = 6, I_IN_FLIGHT_FULL = 7, I_ARRIVALS_LOST = 8, I_REGISTERED = 9, I_RELEASED = 10,
               I_REPEATED = 11, I_FEEDBACK_STALE = 12, I_FOREIGN = 13, I_OUT_OF_RANGE = 14, I_WRONG_COLUMN = 15,
               I_EXCLUDED = 16, I_OTHER_RUN = 17, I_DECIDED_FOREIGN = 18, I_REASSIGNED = 19,
               I_COLUMNS_REPEATED = 20, I_ERRORS = 21, I_TAKEN = 22;

    generate
        if (NODES < 2 || NODES != 1 << NW) NODES_must_be_a_power_of_two_at_least_2 parameter_error ();
        if (BUFFERS < 2 || BUFFERS != 1 << BW) BUFFERS_must_be_a_power_of_two_at_least_2 parameter_error ();
        if (SLOTS < 2 || SLOTS != 1 << SW) SLOTS_must_be_a_power_of_two_at_least_2 parameter_error ();
    endgenerate

    logic [4:0]  state, after;
    logic [31:0] now, time_of_op;

    // Events: the next one to be triggered, to be sent, the first that is kept, that is undecided, and
    // that the feeders do not know as decided. Their numbers: in flight, waiting for the first time.
    logic [31:0] unsent, oldest, decided, told;
    logic [SW:0] in_flight, waiting, pending;
    logic [3:0]  arrivals;
    logic        enabled, waits, triggered_last;
    logic [31:0] members, triggered, peak;
    logic        has_members;

    // Tables.
    logic [CW-1:0]      column_of  [0:NODES-1];
    logic               excluded   [0:NODES-1];
    logic [NW:0]        live_nodes [0:COLUMNS-1];
    logic [2:0]         phases     [0:SLOTS-1];
    logic [COLUMNS-1:0] live;

    // The operation's message, and places in tables.
    logic [layouts_pkg::FEEDBACK_W-1:0] feedback;
    logic [FLOW_W-1:0]                  flow, prepared;
    logic [63:0]                        decision;
    logic [SW-1:0]                      at;
    logic [AW-1:0]                      walk;
    logic [31:0]                        number;
    logic                               prepared_dispatch, prepared_event;
    logic [NW-1:0]                      prepared_node;

    // Memories.
    logic [31:0]       generation_next;
    logic [33:0]       assigned;
    logic [NW+CW-1:0]  place;
    logic [COPY_W-1:0] copy;

    // Columns.
    logic           idle, reading, ready, fresh, may_follow;
    logic [BW-1:0]  head, ready_buffer;
    logic [CW-1:0]  ready_column;
    logic [31:0]    ready_generation;
    logic [NW-1:0]  ready_node;
    wire  [31:0]    next_generation = fresh ? generation_next : ready_generation;
    wire  [NW-1:0]  next_node       = fresh ? place[CW +: NW] : ready_node;

    // Time-outs.
    logic           timer_room, timer_due, timer_examining, timer_looking, expected;
    logic [31:0]    due_number;

    // Release of events that are decided.
    logic           release_armed, release_over, release_at_once, release_copied;
    logic [31:0]    release_deadline, release_number, release_members, release_decided;
    wire  [31:0]    release_left = release_deadline - now;
    wire            all_told     = told == decided;

    // What may begin. Everything that can be sent is sent first.
    logic           again_valid;
    logic [31:0]    again_number;
    wire            quiet      = state == IDLE && idle;
    wire            room       = m_flow_room && timer_room;
    wire            can        = enabled && has_members && ready;
    wire            wants      = can && (again_valid || waiting != 0);
    wire            go_again   = quiet && wants && room && again_valid;
    wire            go_new     = quiet && wants && room && !again_valid;
    wire            settled    = quiet && !wants;
    wire            go_release = settled && (release_at_once || (release_over && !timer_due && !timer_examining && !timer_looking));
    wire            go_expire  = settled && !release_at_once && timer_due;
    wire            free_slot  = settled && !release_at_once && !release_over && !timer_due && !timer_examining;
    wire            changes    = enabled != cfg_enable || waits != cfg_wait;
    wire            others     = changes || command_waits || s_decided_valid || s_flow_valid || s_feedback_valid;
    wire            go_trigger = free_slot && (trigger || arrivals != 0) && !(triggered_last && others);
    wire            full       = in_flight[SW];
    wire            at_limit   = {{(16 - SW) {1'b0}}, pending} >= {1'b0, cfg_pending_limit};
    wire            accepted   = go_trigger && !full && !at_limit;
    wire            go_direct  = accepted && can && room;
    wire            go_other   = free_slot && !go_trigger;
    wire            go_change  = go_other && changes;
    wire            go_command = go_other && !changes && command_waits;
    wire            go_decide  = go_other && !changes && !command_waits && s_decided_valid;
    wire            go_flow    = go_other && !changes && !command_waits && !s_decided_valid && s_flow_valid;
    wire            go_feedback = go_other && !changes && !command_waits && !s_decided_valid && !s_flow_valid
                                && s_feedback_valid;

    assign s_decided_ready  = go_decide;
    assign s_flow_ready     = go_flow;
    assign s_feedback_ready = go_feedback;

    // Messages. A first one is made in the cycle of its trigger, others are prepared.
    logic                m_flow_room, no_loops;
    wire                 send_first = go_new || go_direct;
    wire                 send_now   = state == SEND && room;
    wire                 dispatch   = send_first || (send_now && prepared_dispatch);
    wire [FLOW_W-1:0]    first = {members, members, 1'b1, no_loops, 8'd0, 16'd1, {{(16 - BW) {1'b0}}, ready_buffer},
                                  next_generation, decided, unsent, cfg_run};
    wire [FLOW_W-1:0]    message    = send_first ? first : prepared;
    wire [31:0]          sent       = message[layouts_pkg::FLOW_NUMBER_AT +: 32];
    wire                 starts     = send_first || (send_now && prepared_event);
    wire [31:0]          base       = go_direct ? now : time_of_op;

    wire [31:0] f_number  = flow[layouts_pkg::FLOW_NUMBER_AT +: 32];
    wire [31:0] f_pending = flow[layouts_pkg::FLOW_PENDING_AT +: 32];
    wire [31:0] f_decided = flow[layouts_pkg::FLOW_DECIDED_AT +: 32];
    wire [7:0]  f_loops   = flow[layouts_pkg::FLOW_LOOPS_AT +: 8];
    wire        f_event   = flow[layouts_pkg::FLOW_EVENT_AT];

    wire clears = state == SETUP;

    fifo_sync #(
        .WIDTH(FLOW_W),
        .DEPTH(16)
    ) output_buffer (
        .clk, .rst(rst || clears),
        .s_valid((send_first || send_now) && |message[layouts_pkg::FLOW_PENDING_AT +: 32]),
        .s_ready(m_flow_room), .s_data(message),
        .m_valid(m_flow_valid), .m_ready(m_flow_ready), .m_data(m_flow_data), .level(sts_output)
    );

    // Events of excluded nodes, first in, first out.
    logic again_room, again_add;
    logic [SW:0] again_level;
    fifo_sync #(
        .WIDTH(32),
        .DEPTH(SLOTS)
    ) again (
        .clk, .rst(rst || clears),
        .s_valid(again_add), .s_ready(again_room), .s_data(number),
        .m_valid(again_valid), .m_ready(state == AGAIN_1), .m_data(again_number), .level(again_level)
    );

    evb_timers #(.SLOTS(SLOTS)) timers (
        .clk, .rst, .now,
        .clear(clears), .clear_slot(walk[SW-1:0]),
        .start(starts), .start_number(sent), .start_deadline(base + {1'b0, cfg_timeout}), .room(timer_room),
        .stop, .stop_slot(at),
        .look_slot(state == RETIRE ? oldest[SW-1:0] : at), .look_expected(expected), .expected(sts_copies),
        .due(timer_due), .examining(timer_examining), .looking(timer_looking), .due_number, .take(go_expire)
    );

    // Queues of free buffers.
    logic [CW-1:0] col;
    logic [BW-1:0] op_buffer;
    logic [BW:0]   used, left;
    logic          purging;
    wire           push      = (state == FEEDBACK_3 && fb_frees) || (state == PURGE_4 && !purging);
    wire           give_back = state == GIVE_BACK;
    wire           drop      = state == COMMAND_2 && ready && ready_node == command_node && excludes;
    wire           choose    = state == CHECK && !ready;

    evb_columns #(
        .COLUMNS(COLUMNS),
        .BUFFERS(BUFFERS)
    ) columns (
        .clk, .rst(rst || clears),
        .cfg_discipline, .cfg_wait(waits), .cfg_live(live), .cfg_partition,
        .w_weight, .look_column(state == COMMAND_2 ? col : look_column), .weight_data, .look_weight, .look_used(used),
        .push, .pop(state == PURGE_1 && left != 0), .op_column(col), .op_buffer,
        .give_back, .drop, .choose,
        .idle, .reading, .head, .ready, .fresh, .ready_buffer, .ready_column, .may_follow, .take(dispatch),
        .inc_passed
    );

    assign look_used        = {{(16 - BW) {1'b0}}, used} + {16'd0, ready && ready_column == look_column};
    assign look_node_column = {{(5 - CW) {1'b0}}, column_of[look_node]};

    // Memories by buffer and by event.
    wire          reads_buffer = reading || go_feedback;
    wire [BW-1:0] buffer       = reading ? head : s_feedback_data[layouts_pkg::FEEDBACK_DESCRIPTOR_AT +: BW];
    wire          frees        = state == FEEDBACK_3 && fb_frees;
    wire          forgets      = state == FORGET && forget < cfg_descriptors;
    wire          newer_write  = state == FEEDBACK_3 && fb_newer;
    logic [16:0]  forget;
    wire [31:0]   m_number     = feedback[layouts_pkg::FEEDBACK_NUMBER_AT +: 32];
    wire [31:0]   m_generation = feedback[layouts_pkg::FEEDBACK_GENERATION_AT +: 32];
    wire [15:0]   m_descriptor = feedback[layouts_pkg::FEEDBACK_DESCRIPTOR_AT +: 16];
    logic [NW-1:0] setup_node;

    ram_sdp #(.WIDTH(32), .DEPTH(BUFFERS)) generations (
        .clk,
        .w_enable(clears || dispatch || newer_write),
        .w_address(clears ? walk[BW-1:0] : newer_write ? m_descriptor[BW-1:0] : ready_buffer),
        .w_data(clears ? 32'd1 : newer_write ? m_generation + 1'b1 : next_generation + 1'b1),
        .r_enable(reads_buffer), .r_address(buffer), .r_data(generation_next)
    );

    ram_sdp #(.WIDTH(34), .DEPTH(BUFFERS)) assignments (
        .clk,
        .w_enable(clears || dispatch || frees || forgets),
        .w_address(clears ? walk[BW-1:0] : frees ? m_descriptor[BW-1:0] : forgets ? forget[BW-1:0] : ready_buffer),
        .w_data({clears || forgets ? UNKNOWN : frees ? FREE : ASSIGNED, sent}),
        .r_enable(reads_buffer), .r_address(buffer), .r_data(assigned)
    );

    ram_sdp #(.WIDTH(NW + CW), .DEPTH(BUFFERS)) places (
        .clk,
        .w_enable(clears), .w_address(walk[BW-1:0]), .w_data({setup_node, column_of[setup_node]}),
        .r_enable(reads_buffer), .r_address(buffer), .r_data(place)
    );

    ram_sdp #(.WIDTH(COPY_W), .DEPTH(SLOTS)) copies (
        .clk,
        .w_enable(starts), .w_address(sent[SW-1:0]),
        .w_data({dispatch ? next_node : prepared_node, message[FLOW_W-1:KEPT]}),
        .r_enable(go_flow || go_expire || state == AGAIN_1 || state == WALK_1),
        .r_address(go_flow ? s_flow_data[layouts_pkg::FLOW_NUMBER_AT +: SW] : go_expire ? due_number[SW-1:0]
                   : state == AGAIN_1 ? again_number[SW-1:0] : number[SW-1:0]),
        .r_data(copy)
    );

    // Phases of events.
    wire [2:0] phase = phases[at];
    wire       in_ring_or_built = phase == RING || phase == BUILDING;
    wire       turns_over       = state == FLOW_2 && fl_returned && phase == RING;
    wire       finishes         = state == FEEDBACK_4 && fb_in_flight && in_ring_or_built;
    wire       decides          = (state == DECIDE_1 && dc_valid && dc_in_flight)
                               || (state == DECIDE_2 && !dc_done);
    wire       reassigns        = state == WALK_2 && copy[NODE +: NW] == command_node
                               && (in_ring_or_built || phase == PROCESSED);
    wire       stop             = (state == FLOW_2 && fl_returned) || (state == EXPIRE && phase != RING) || reassigns;

    always_ff @(posedge clk) begin
        if (starts) phases[sent[SW-1:0]] <= RING;
        else if (turns_over || finishes || decides || reassigns) begin
            phases[state == DECIDE_2 ? decided[SW-1:0] : at] <= turns_over ? BUILDING : finishes ? PROCESSED
                                                              : decides ? DECIDED : WAITING;
        end
        if (w_node) column_of[look_node] <= node_data[CW-1:0];
    end

    assign again_add = reassigns;

    // Feedback, in steps: its buffer is read; compared; judged; freed.
    logic        fb_run, fb_in_range, fb_column, fb_same, fb_excluded, fb_in_flight;
    logic [1:0]  fb_state;
    logic [31:0] fb_ahead, fb_after;
    logic [NW-1:0] fb_node;
    wire fb_equal = fb_ahead == 32'hFFFF_FFFF;
    wire fb_later = !fb_ahead[31] && fb_ahead != 32'h7FFF_FFFF;
    wire fb_judged = fb_run && fb_in_range && fb_column && !fb_excluded;
    wire fb_new    = fb_judged && fb_state == UNKNOWN;
    wire fb_ours   = fb_judged && fb_state == ASSIGNED && fb_equal && fb_same;
    wire fb_again  = fb_judged && fb_state == FREE && fb_equal;
    wire fb_frees  = fb_new || fb_ours;
    wire fb_newer  = fb_new && fb_later;
    wire fb_old    = fb_judged && fb_state != UNKNOWN && !fb_equal && !fb_later;

    // A message that returned: compared with its copy.
    logic fl_run, fl_sent, fl_old, fl_attempt, fl_loops, fl_copy, fl_expected, fl_tells, fl_release, fl_release_old,
          fl_pending;
    wire [FLOW_W-KEPT-1:0] differs = copy[FLOW_W-KEPT-1:0] ^ flow[FLOW_W-1:KEPT];
    wire fl_ours     = fl_run && f_event && fl_sent && fl_expected && fl_attempt && !fl_loops && fl_copy;
    wire fl_round    = fl_ours && fl_pending && phase == RING;
    wire fl_returned = fl_ours && !(fl_pending && phase == RING);
    wire fl_told     = state == FLOW_2 && fl_tells && ((fl_ours && f_loops == 0) || (fl_run && !f_event && fl_release));
    wire [7:0] copy_loops = copy[LOOPS +: 8];
    wire [7:0] next_loops = &copy_loops ? copy_loops : copy_loops + 1'b1;

    // A decision.
    wire dc_valid     = $signed(decision[63:32] - unsent) < 0 && $signed(decision[31:0] - unsent) <= 0;
    wire dc_in_flight = $signed(decision[63:32] - oldest) >= 0;
    wire dc_done      = $signed(decision[31:0] - decided) <= 0;

    // Commands.
    logic          command_waits, is_node, is_excluded, is_feeder;
    logic [1:0]    kind;
    logic [15:0]   member;
    logic [NW-1:0] command_node;
    wire [31:0]    member_bit = 32'd1 << member[4:0];
    wire           excludes   = state == COMMAND_2 && kind == 2'd0 && is_node && !is_excluded;
    wire           readmits   = state == COMMAND_2 && kind == 2'd1 && is_node && is_excluded;

    assign busy = state == SETUP || command_waits || state >= COMMAND_1;

    // Set-up: all tables at once.
    wire [CW-1:0] setup_column = column_of[setup_node];
    wire [CW-1:0] count_column = clears ? setup_column : col;
    wire [NW:0]   lives        = live[count_column] ? live_nodes[count_column] : '0;
    wire          counts_node  = (clears && {{(16 - AW) {1'b0}}, walk} < cfg_nodes)
                              || readmits;

    always_ff @(posedge clk) begin
        if (counts_node) live_nodes[count_column] <= lives + 1'b1;
        else if (excludes) live_nodes[count_column] <= lives - 1'b1;
        if (clears) excluded[walk[NW-1:0]] <= 1'b0;
        else if (excludes || readmits) excluded[command_node] <= excludes;
        if (counts_node) live[count_column] <= 1'b1;
        else if (excludes && lives == 1) live[count_column] <= 1'b0;
        if (rst || setup) live <= '0;
    end

    // The steps.
    always_ff @(posedge clk) begin
        now         <= now + 1'b1;
        has_members <= |members;
        no_loops    <= cfg_loops == 0;
        if (go_trigger || go_release || go_expire || go_other) time_of_op <= now;
        if (free_slot && (go_trigger || others)) triggered_last <= go_trigger;
        if (fresh) begin
            ready_generation <= generation_next;
            ready_node       <= place[CW +: NW];
        end

        // Triggers.
        if (trigger != go_trigger) begin
            if (go_trigger) arrivals <= arrivals - 1'b1;
            else if (!(&arrivals)) arrivals <= arrivals + 1'b1;
        end
        if (accepted) triggered <= triggered + 1'b1;
        if (accepted && !go_direct && {{(31 - SW) {1'b0}}, pending} >= peak) peak <= {{(31 - SW) {1'b0}}, pending} + 1'b1;
        if (accepted != (state == RETIRE && retires)) in_flight <= accepted ? in_flight + 1'b1 : in_flight - 1'b1;
        if (accepted && !go_direct) waiting <= waiting + 1'b1;
        else if (go_new) waiting <= waiting - 1'b1;
        if ((accepted && !go_direct) || reassigns) pending <= pending + 1'b1;
        else if (go_new || state == AGAIN_1) pending <= pending - 1'b1;
        if (send_first) unsent <= unsent + 1'b1;

        // Release of events.
        release_over <= release_armed && state != RELEASE && (release_left[31] || release_left == 0);
        if (all_told) begin
            release_armed  <= 1'b0;
            release_copied <= 1'b0;
        end
        if (go_trigger && full && !all_told && !release_copied) begin
            release_armed    <= 1'b1;
            release_at_once  <= 1'b1;
            release_deadline <= now;
        end
        if (fl_told) told <= f_decided;

        case (state)
            SETUP: begin
                walk       <= walk + 1'b1;
                setup_node <= {{(16 - NW) {1'b0}}, setup_node} + 1'b1 >= cfg_nodes ? '0 : setup_node + 1'b1;
                members    <= cfg_feeders;
                if (&walk) state <= IDLE;
            end
            IDLE: begin
                if (go_feedback) begin
                    feedback  <= s_feedback_data;
                    state     <= FEEDBACK_1;
                end
                if (go_flow) begin
                    flow  <= s_flow_data;
                    at    <= s_flow_data[layouts_pkg::FLOW_NUMBER_AT +: SW];
                    state <= FLOW_1;
                end
                if (go_decide) begin
                    decision <= s_decided_data;
                    at       <= s_decided_data[32 +: SW];
                    state    <= DECIDE_1;
                end
                if (go_expire) begin
                    number <= due_number;
                    at     <= due_number[SW-1:0];
                    state  <= EXPIRE;
                end
                if (go_again) state <= AGAIN_1;
                if (go_release) state <= RELEASE;
                if (go_command) state <= COMMAND_1;
                if (go_change) begin
                    enabled <= cfg_enable;
                    waits   <= cfg_wait;
                    state   <= CHECK;
                end
            end
            // Columns have changed: the offered buffer may not follow any more, or there was none.
            CHECK: state <= ready && !may_follow ? GIVE_BACK : IDLE;
            GIVE_BACK: state <= CHECK;

            FEEDBACK_1: begin
                fb_run      <= feedback[layouts_pkg::FEEDBACK_RUN_AT +: 32] == cfg_run;
                fb_in_range <= {1'b0, m_descriptor} < cfg_descriptors;
                fb_column   <= feedback[layouts_pkg::FEEDBACK_COLUMN_AT +: 8] == {{(8 - CW) {1'b0}}, place[CW-1:0]};
                fb_same     <= assigned[31:0] == m_number;
                fb_state    <= assigned[33:32];
                fb_ahead    <= m_generation - generation_next;
                fb_after    <= m_number - oldest;
                fb_node     <= place[CW +: NW];
                at          <= m_number[SW-1:0];
                col         <= place[CW-1:0];
                op_buffer   <= m_descriptor[BW-1:0];
                state       <= FEEDBACK_2;
            end
            FEEDBACK_2: begin
                fb_excluded  <= excluded[fb_node];
                fb_in_flight <= fb_after < {{(31 - SW) {1'b0}}, in_flight};
                state        <= FEEDBACK_3;
            end
            FEEDBACK_3: state <= fb_ours ? FEEDBACK_4 : fb_new ? CHECK : IDLE;
            FEEDBACK_4: state <= CHECK;

            FLOW_1: begin
                fl_run      <= flow[layouts_pkg::FLOW_RUN_AT +: 32] == cfg_run;
                fl_sent     <= !early && $signed(f_number - unsent) < 0;
                fl_old      <= early;
                fl_expected <= expected;
                fl_attempt  <= copy[ATTEMPT +: 16] == flow[layouts_pkg::FLOW_ATTEMPT_AT +: 16];
                fl_loops    <= copy_loops > f_loops;
                fl_copy     <= differs[PENDING-1:LOOPS] == 0 && differs[ATTEMPT-1:0] == 0
                            && (f_pending & ~copy[PENDING +: 32]) == 0;
                fl_pending  <= |f_pending;
                fl_tells    <= $signed(f_decided - told) > 0;
                fl_release  <= release_copied && f_number == release_number && f_decided == release_decided
                            && flow[FLOW_W-1:KEPT] == {32'd0, release_members, 2'b01, 72'd0};
                fl_release_old <= $signed(f_number - release_number) <= 0;
                state       <= FLOW_2;
            end
            FLOW_2: begin
                prepared          <= {f_pending, copy[MEMBERS +: 32], 1'b1, next_loops >= cfg_loops, next_loops,
                                      copy[LOOPS-1:0], decided, f_number, cfg_run};
                prepared_dispatch <= 1'b0;
                prepared_event    <= 1'b1;
                prepared_node     <= copy[NODE +: NW];
                after             <= IDLE;
                state             <= fl_round ? SEND : fl_returned || (fl_run && !f_event && fl_release) ? RETIRE : IDLE;
            end

            DECIDE_1: state <= dc_valid ? DECIDE_2 : IDLE;
            DECIDE_2: begin
                if (!dc_done) begin
                    decided <= decided + 1'b1;
                end else begin
                    if (!all_told && !release_armed) begin
                        release_armed    <= 1'b1;
                        release_deadline <= time_of_op + {1'b0, cfg_timeout};
                    end
                    state <= RETIRE;
                end
            end

            // Events that are decided, and whose messages are not expected: as far as the feeders know.
            RETIRE: begin
                if (retires) oldest <= oldest + 1'b1;
                else state <= CHECK;
            end

            EXPIRE: begin
                prepared          <= {members, members, 1'b1, no_loops, 8'd0, copy[ATTEMPT +: 16] + 1'b1,
                                      copy[ATTEMPT-1:0], decided, number, cfg_run};
                prepared_dispatch <= 1'b0;
                prepared_event    <= 1'b1;
                prepared_node     <= copy[NODE +: NW];
                after             <= CHECK;
                state             <= phase == RING ? SEND : RETIRE;
            end

            AGAIN_1: begin
                number <= again_number;
                at     <= again_number[SW-1:0];
                state  <= AGAIN_2;
            end
            AGAIN_2: begin
                prepared          <= {members, members, 1'b1, no_loops, 8'd0, copy[ATTEMPT +: 16] + 1'b1,
                                      {{(16 - BW) {1'b0}}, ready_buffer}, ready_generation, decided, number, cfg_run};
                prepared_dispatch <= 1'b1;
                prepared_event    <= 1'b1;
                after             <= IDLE;
                state             <= phase == WAITING && $signed(number - oldest) >= 0 ? SEND : IDLE;
            end

            RELEASE: begin
                prepared          <= {members, members, 2'b01, 72'd0, decided, release_number + 1'b1, cfg_run};
                prepared_dispatch <= 1'b0;
                prepared_event    <= 1'b0;
                release_at_once   <= 1'b0;
                release_deadline  <= time_of_op + {1'b0, cfg_timeout};
                after             <= IDLE;
                state             <= IDLE;
                if (has_members) begin
                    release_number  <= release_number + 1'b1;
                    release_members <= members;
                    release_decided <= decided;
                    release_copied  <= 1'b1;
                    state           <= SEND;
                end
            end

            SEND: if (room) state <= after;

            COMMAND_1: begin
                command_node <= member[NW-1:0];
                is_node      <= member < cfg_nodes;
                is_excluded  <= excluded[member[NW-1:0]];
                is_feeder    <= member < 16'd32 && |(cfg_feeders & member_bit);
                col          <= column_of[member[NW-1:0]];
                state        <= COMMAND_2;
            end
            COMMAND_2: begin
                if (is_feeder && kind == 2'd2) members <= members & ~member_bit;
                if (is_feeder && kind == 2'd3) members <= members | member_bit;
                left   <= used;
                forget <= {1'b0, member};
                number <= decided;
                state  <= excludes ? PURGE_1 : CHECK;
            end

            // The node's buffers leave their queue, and are unknown.
            PURGE_1: state <= left == 0 ? FORGET : PURGE_2;
            PURGE_2: begin
                op_buffer <= head;
                state     <= PURGE_3;
            end
            PURGE_3: begin
                purging <= place[CW +: NW] == command_node;
                state   <= PURGE_4;
            end
            PURGE_4: begin
                left  <= left - 1'b1;
                state <= PURGE_1;
            end
            FORGET: begin
                forget <= forget + {1'b0, cfg_nodes};
                if (!forgets) state <= WALK_1;
            end

            // Its events are given to others.
            WALK_1: begin
                at    <= number[SW-1:0];
                state <= number == unsent ? CHECK : WALK_2;
            end
            WALK_2: begin
                number <= number + 1'b1;
                state  <= WALK_1;
            end
            default: state <= IDLE;
        endcase

        if (command) begin
            command_waits <= 1'b1;
            kind          <= command_kind;
            member        <= command_member;
        end else if (state == COMMAND_2) begin
            command_waits <= 1'b0;
        end
        if (rst) now <= '0;
        if (rst || setup || clears) begin
            unsent          <= '0;
            oldest          <= '0;
            decided         <= '0;
            told            <= '0;
            in_flight       <= '0;
            waiting         <= '0;
            pending         <= '0;
            arrivals        <= '0;
            triggered       <= '0;
            peak            <= '0;
            enabled         <= 1'b0;
            triggered_last  <= 1'b0;
            command_waits   <= 1'b0;
            release_armed   <= 1'b0;
            release_at_once <= 1'b0;
            release_copied  <= 1'b0;
            release_over    <= 1'b0;
            release_number  <= '0;
        end
        if (rst || setup) begin
            state      <= SETUP;
            walk       <= '0;
            setup_node <= '0;
        end
    end

    wire retires = oldest != told && !expected;
    wire early   = $signed(f_number - oldest) < 0;

    // Counted events.
    wire fl_stale = fl_run && (f_event ? fl_old || (fl_sent && (!fl_expected || !fl_attempt || fl_loops))
                                       : !fl_release && fl_release_old);
    wire fl_error = fl_run && (f_event ? (!fl_sent && !fl_old)
                                         || (fl_sent && fl_expected && fl_attempt && !fl_loops && !fl_copy)
                                       : !fl_release && !fl_release_old);
    always_ff @(posedge clk) begin
        inc[I_SENT]             <= dispatch;
        inc[I_RETURNED]         <= state == FLOW_2 && fl_returned;
        inc[I_LOOPED]           <= state == FLOW_2 && fl_round;
        inc[I_RESENT]           <= state == EXPIRE && phase == RING;
        inc[I_UNRETURNED]       <= state == EXPIRE && phase != RING;
        inc[I_STALE]            <= state == FLOW_2 && fl_stale;
        inc[I_ERRORS]           <= state == FLOW_2 && fl_error;
        inc[I_TAKEN]            <= accepted;
        inc[I_PENDING_FULL]     <= go_trigger && !full && at_limit;
        inc[I_IN_FLIGHT_FULL]   <= go_trigger && full;
        inc[I_ARRIVALS_LOST]    <= trigger && !go_trigger && &arrivals;
        inc[I_REGISTERED]       <= state == FEEDBACK_3 && fb_new;
        inc[I_RELEASED]         <= state == FEEDBACK_3 && fb_ours;
        inc[I_REPEATED]         <= state == FEEDBACK_3 && fb_again;
        inc[I_FEEDBACK_STALE]   <= state == FEEDBACK_3 && fb_old;
        inc[I_FOREIGN]          <= state == FEEDBACK_3 && fb_judged && !fb_new && !fb_ours && !fb_again && !fb_old;
        inc[I_OUT_OF_RANGE]     <= state == FEEDBACK_3 && fb_run && !fb_in_range;
        inc[I_WRONG_COLUMN]     <= state == FEEDBACK_3 && fb_run && fb_in_range && !fb_column;
        inc[I_EXCLUDED]         <= state == FEEDBACK_3 && fb_run && fb_in_range && fb_column && fb_excluded;
        inc[I_OTHER_RUN]        <= (state == FEEDBACK_3 && !fb_run) || (state == FLOW_2 && !fl_run);
        inc[I_DECIDED_FOREIGN]  <= state == DECIDE_1 && !dc_valid;
        inc[I_REASSIGNED]       <= reassigns;
        inc[I_COLUMNS_REPEATED] <= dispatch && !may_follow;
        if (rst) inc <= '0;
    end

    assign sts_ready     = ready;
    assign sts_enabled   = enabled;
    assign sts_members   = members;
    assign sts_triggered = triggered;
    assign sts_pending   = {{(31 - SW) {1'b0}}, pending};
    assign sts_peak      = peak;

    wire unused = &{1'b0, again_room, again_level, differs[FLOW_W-KEPT-1:PENDING], differs[LOOPS-1:ATTEMPT]};
endmodule
