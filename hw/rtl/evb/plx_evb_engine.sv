// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The scheduler's decisions. One operation after the other: a trigger, feedback, a message that
// returned, a decision, a time-out, a command. Each ends with a choice, and with the messages that it
// makes possible; then the next one begins. So the result depends on the order of the operations
// alone, and equals that of `pollux-farm`.
//
//   trigger, receive buffer ready    message in the next cycle
//   message                          next receive buffer 2 cycles later, in turn
//
// States of an event: waiting, in the ring, building, processed, decided. Numbers of events wrap;
// fewer than 2^31 lie between any two that are compared.

module plx_evb_engine #(
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

    // Tables: weights and queues of columns, and whether the next buffer is of the column; columns of nodes.
    input  logic                             w_weight,
    input  logic [$clog2(COLUMNS)-1:0]       look_column,
    input  logic [15:0]                      weight_data,
    output logic [15:0]                      look_weight,
    output logic [$clog2(BUFFERS):0]         look_used,
    output logic                             look_offered,
    input  logic                             w_node,
    input  logic [$clog2(NODES)-1:0]         look_node,
    input  logic [$clog2(COLUMNS)-1:0]       node_data,
    output logic [$clog2(COLUMNS)-1:0]       look_node_column,

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

    // Messages to the first feeder: valid for one cycle, when ready.
    output logic                             m_flow_valid,
    input  logic                             m_flow_ready,
    output logic [layouts_pkg::FLOW_W-1:0]   m_flow_data,

    // State.
    output logic                             sts_ready,
    output logic                             sts_enabled,
    output logic [31:0]                      sts_members,
    output logic [31:0]                      sts_triggered,
    output logic [$clog2(SLOTS):0]           sts_pending,
    output logic [$clog2(SLOTS):0]           sts_peak,
    output logic [$clog2(SLOTS):0]           sts_copies,

    // Counted events, lowest first: sent, returned, another round, sent again, not returned, too late,
    // pending full, in flight full, arrivals lost, feedback (8, as plx_evb_buffers has them), other run, decided
    // foreign, reassigned, column repeated, otherwise than sent, triggered. Busy columns that were passed.
    output logic [22:0]                      inc,
    output logic [5:0]                       inc_passed
);
    localparam CW = $clog2(COLUMNS), NW = $clog2(NODES), BW = $clog2(BUFFERS), SW = $clog2(SLOTS);
    localparam ALL = BUFFERS > SLOTS ? (BUFFERS > NODES ? BUFFERS : NODES) : (SLOTS > NODES ? SLOTS : NODES);
    localparam AW = $clog2(ALL);
    localparam FLOW_W = layouts_pkg::FLOW_W, KEPT = layouts_pkg::FLOW_GENERATION_AT;
    // In a copy, which is a message from the generation on.
    localparam ATTEMPT = layouts_pkg::FLOW_ATTEMPT_AT - KEPT, LOOPS = layouts_pkg::FLOW_LOOPS_AT - KEPT,
               MEMBERS = layouts_pkg::FLOW_MEMBERS_AT - KEPT;

    // States of events.
    localparam WAITING = 3'd0, RING = 3'd1, BUILDING = 3'd2, PROCESSED = 3'd3, DECIDED = 3'd4;

    // Two bits of their own: a set-up; nothing is under way, as all that begins needs it early.
    localparam RESTS = 5, CLEARS = 6;
    localparam IDLE = 7'd32, SETUP = 7'd64, CHECK = 7'd2, FEEDBACK_1 = 7'd3, FEEDBACK_2 = 7'd4, FEEDBACK_3 = 7'd5,
               FEEDBACK_4 = 7'd6, FLOW_1 = 7'd7, FLOW_2 = 7'd8, DECIDE_0 = 7'd13, DECIDE_1 = 7'd9, DECIDE_2 = 7'd10,
               RETIRE = 7'd11, EXPIRE = 7'd12, AGAIN_1 = 7'd14, AGAIN_2 = 7'd15, SEND = 7'd16, RELEASE = 7'd17,
               COMMAND = 7'd18, GIVE_BACK = 7'd19;

    generate
        if (NODES < 2 || NODES != 1 << NW) NODES_must_be_a_power_of_two_at_least_2 parameter_error ();
        if (BUFFERS < 2 || BUFFERS != 1 << BW) BUFFERS_must_be_a_power_of_two_at_least_2 parameter_error ();
        if (SLOTS < 2 || SLOTS != 1 << SW) SLOTS_must_be_a_power_of_two_at_least_2 parameter_error ();
    endgenerate

    logic [6:0]  state, after;
    logic [31:0] now, time_of_op;

    // Events: the next one to be sent, the first that is kept, the first that is undecided. How many are in
    // flight, wait for the first time, wait at all.
    logic [31:0] unsent, oldest, decided;
    logic [SW:0] in_flight, pending;
    logic        enabled, waits;
    logic [31:0] members;
    logic        has_members;
    logic [2:0]  phases [0:SLOTS-1];
    logic [COLUMNS-1:0] live;
    // The operation's message, and places in tables.
    logic [layouts_pkg::FEEDBACK_W-1:0] feedback;
    logic [FLOW_W-1:0]                  flow, prepared;
    logic [63:0]                        decision;
    logic [SW-1:0]                      at;
    logic [AW-1:0]                      walk;
    logic [31:0]                        number;
    logic                               retired;
    logic                               prepared_dispatch, prepared_event;
    logic [NW-1:0]                      prepared_node;

    // A buffer and a copy, as they were read.
    logic [31:0]            generation;
    logic [NW-1:0]          place_node, copy_node;
    logic [CW-1:0]          place_column;
    logic [FLOW_W-KEPT-1:0] copy;

    // Columns.
    logic           rests, picks, reading, ready, fresh, may_follow;
    logic [BW-1:0]  head, ready_buffer;
    logic [CW-1:0]  ready_column;
    logic [31:0]    ready_generation;
    logic [NW-1:0]  ready_node;
    wire  [31:0]    next_generation = fresh ? generation : ready_generation;
    wire  [NW-1:0]  next_node       = fresh ? place_node : ready_node;

    // Time-outs.
    logic           timer_room, timer_due, timer_examining, timer_looking, expected;
    logic [31:0]    due_number;

    // The message without an event.
    logic           release_over, release_late, release_copied;
    logic [31:0]    told, release_number, release_decided, release_members;

    // What begins.
    logic again_valid, go_again, go_new, go_release, go_expire, go_trigger, accepted, go_direct, go_change, go_command,
          go_decide, go_flow, go_feedback, settled, none_waits, begins, lost, command_waits, expired;
    logic [31:0] again_number;
    wire clears   = state[CLEARS];
    wire resting  = state[RESTS];
    wire can      = enabled && has_members && ready;
    wire room     = m_flow_ready && timer_room;
    wire retires  = oldest != told && !expected;

    logic full, at_limit, has_waiting;

    plx_evb_turns turns (
        .clk, .clear(rst || setup || clears),
        .quiet(resting && rests && !picks), .can, .room, .waits(has_waiting), .waits_again(again_valid),
        .timer_due, .timer_examining, .timer_looking, .release_over, .release_late(expired && release_late),
        .trigger, .full, .at_limit, .change(enabled != cfg_enable || waits != cfg_wait), .command(command_waits),
        .decide(s_decided_valid), .flow(s_flow_valid), .feedback(s_feedback_valid),
        .go_again, .go_new, .go_release, .go_expire, .go_trigger, .accepted, .go_direct, .go_change, .go_command,
        .go_decide, .go_flow, .go_feedback, .settled, .none_waits, .begins, .lost
    );

    // What is over at one time is one operation.
    wire same_time = (go_expire && timer_examining) || (go_release && expired && release_late);
    assign {s_decided_ready, s_flow_ready, s_feedback_ready} = {go_decide, go_flow, go_feedback};

    // Messages. A first one is made in the cycle of its trigger, others are prepared.
    logic                no_loops;
    wire                 send_first = go_new || go_direct;
    wire                 send_now   = state == SEND && room;
    wire                 dispatch   = send_first || (send_now && prepared_dispatch);
    wire [FLOW_W-1:0]    first = {members, members, 1'b1, no_loops, 8'd0, 16'd1, {{(16 - BW) {1'b0}}, ready_buffer},
                                  next_generation, decided, unsent, cfg_run};
    wire [FLOW_W-1:0]    message    = resting ? first : prepared;
    wire [31:0]          sent       = message[layouts_pkg::FLOW_NUMBER_AT +: 32];
    wire                 starts     = send_first || (send_now && prepared_event);
    wire [31:0] f_number  = flow[layouts_pkg::FLOW_NUMBER_AT +: 32];
    wire [31:0] f_pending = flow[layouts_pkg::FLOW_PENDING_AT +: 32];
    assign m_flow_valid = send_first || (send_now && |prepared[layouts_pkg::FLOW_PENDING_AT +: 32]);
    assign m_flow_data  = message;

    // Commands.
    logic          excludes, readmits, forgets, reassigns, c_done, c_looks, c_pop, c_push, c_reads;
    logic [NW-1:0] c_node;
    logic [CW-1:0] c_column;
    logic [BW-1:0] c_buffer, forgotten;
    logic [SW-1:0] c_slot;
    logic [31:0]   leaves, joins;

    // Verdicts on feedback and on messages that return.
    logic [NW-1:0] setup_node, sender;
    logic [CW-1:0] setup_column, member_column;
    logic          member_excluded, sender_excluded, is_new, is_finished, is_in_flight;
    logic [8:0]    judged;
    logic       is_forwarded, returned, is_release, message_req, last_loop;
    logic [7:0] next_loops;
    logic [2:0] compared;

    // A decision. `dc_done`: no event before the first that is not decided is left, known a cycle ahead.
    // `decides_first`: one waited in the cycle before, as plx_evb_turns sees it.
    logic       dc_valid, dc_in_flight, dc_done, decides_first;
    wire [31:0] dc_left = decision[31:0] - decided, again_age = again_number - oldest;
    wire [31:0] dc_number = decision[63:32] - unsent, dc_before = decision[31:0] - unsent, dc_kept = decision[63:32] - oldest;

    // Phases of events.
    wire [2:0] phase = phases[at];
    logic      in_ring, is_open;
    wire       in_ring_or_built = phase == RING || phase == BUILDING;
    wire       turns_over       = state == FLOW_2 && returned && in_ring;
    wire       finishes         = state == FEEDBACK_4 && is_in_flight && in_ring_or_built;
    wire       decides          = (state == DECIDE_1 && dc_valid && dc_in_flight) || (state == DECIDE_2 && !dc_done);
    wire       stop             = (state == FLOW_2 && returned) || (state == EXPIRE && phase != RING) || reassigns;

    always_ff @(posedge clk) begin
        if (starts) phases[sent[SW-1:0]] <= RING;
        else if (turns_over || finishes || decides || reassigns) begin
            phases[state == DECIDE_2 ? decided[SW-1:0] : at] <= turns_over ? BUILDING : finishes ? PROCESSED
                                                              : decides ? DECIDED : WAITING;
        end
    end

    plx_evb_pending #(.SLOTS(SLOTS)) events (
        .clk, .clear(rst || setup || clears), .cfg_limit(cfg_pending_limit),
        .accepted, .direct(go_direct), .sends(go_new), .reassigns, .sends_again(state == AGAIN_1),
        .retires(state == RETIRE && retires),
        .full, .at_limit, .waits(has_waiting), .in_flight, .pending, .peak(sts_peak), .triggered(sts_triggered)
    );

    plx_evb_timers #(.SLOTS(SLOTS)) timers (
        .clk, .rst, .cfg_timeout, .now, .time_of_op,
        .clear(clears), .clear_slot(walk[SW-1:0]),
        .start(starts), .start_number(sent), .start_now(resting && none_waits), .room(timer_room),
        .stop, .stop_slot(at),
        .look_slot(state == RETIRE ? oldest[SW-1:0] : at), .look_expected(expected), .expected(sts_copies),
        .due(timer_due), .examining(timer_examining), .looking(timer_looking), .due_number, .take(go_expire)
    );

    // Queues of free buffers.
    logic [CW-1:0] col;
    logic [BW-1:0] op_buffer;
    logic [BW:0]   used;
    logic          push;
    logic [CW-1:0] push_column;
    logic [BW-1:0] push_buffer;
    wire           drop      = excludes && ready && ready_node == c_node;
    logic          give_back;
    wire           choose    = state == CHECK && !ready;

    plx_evb_columns #(.COLUMNS(COLUMNS), .BUFFERS(BUFFERS)) columns (
        .clk, .rst(rst || clears),
        .cfg_discipline, .cfg_wait(waits), .cfg_live(live), .cfg_partition,
        .w_weight, .look_column(c_looks ? c_column : look_column), .weight_data, .look_weight, .look_used(used),
        .push, .pop(c_pop), .op_column(push_column), .op_buffer(push_buffer),
        .give_back, .drop, .choose,
        .rests, .picks, .reading, .head, .ready, .fresh, .ready_buffer, .ready_column, .may_follow, .take(dispatch),
        .inc_passed
    );

    // A buffer is in its queue before the choice that follows.
    always_ff @(posedge clk) begin
        give_back   <= state == CHECK && ready && !may_follow;
        push        <= (state == FEEDBACK_3 && (is_new || is_finished)) || c_push;
        push_column <= state == COMMAND ? c_column : state == CHECK ? ready_column : col;
        push_buffer <= state == COMMAND ? c_buffer : state == CHECK ? ready_buffer : op_buffer;
        if (rst || clears) {give_back, push} <= 2'b00;
    end

    assign look_offered = ready && !fresh && ready_column == look_column;  // a fresh one is in its queue yet
    assign look_used    = used;

    // Buffers and their nodes.
    wire           reads_buffer = reading || go_feedback;
    wire [BW-1:0]  buffer       = reading ? head : s_feedback_data[layouts_pkg::FEEDBACK_DESCRIPTOR_AT +: BW];

    plx_evb_nodes #(.COLUMNS(COLUMNS), .NODES(NODES)) nodes (
        .clk, .rst, .cfg_nodes,
        .setup, .clear(clears), .clear_number({{(16 - AW) {1'b0}}, walk}), .buffer_node(setup_node),
        .buffer_column(setup_column),
        .w_node, .look_node, .node_data, .look_node_column,
        .member(c_node), .member_column, .member_excluded,
        .excludes, .readmits, .op_node(c_node), .op_column(c_column),
        .sender, .sender_excluded, .live
    );

    plx_evb_buffers #(.COLUMNS(COLUMNS), .NODES(NODES), .BUFFERS(BUFFERS), .SLOTS(SLOTS)) buffers (
        .clk, .cfg_run, .cfg_descriptors,
        .clear(clears), .clear_buffer(walk[BW-1:0]), .clear_node(setup_node), .clear_column(setup_column),
        .read(reads_buffer), .read_buffer(buffer), .generation, .node(place_node), .column(place_column),
        .assigns(dispatch), .assigned_buffer(ready_buffer), .assigned_generation(next_generation), .assigned_number(sent),
        .forgets, .forgotten,
        .feedback, .compare(state == FEEDBACK_1), .judge(state == FEEDBACK_2), .free(state == FEEDBACK_3),
        .oldest, .in_flight, .sender, .sender_excluded, .is_new, .is_finished, .is_in_flight, .verdict(judged)
    );

    plx_evb_copies #(.NODES(NODES), .SLOTS(SLOTS)) copies (
        .clk, .cfg_run,
        .send(starts), .send_slot(sent[SW-1:0]), .send_copy(message[FLOW_W-1:KEPT]), .send_node(resting || prepared_dispatch ? next_node : prepared_node),
        .read(go_flow || go_expire || state == AGAIN_1 || c_reads),
        .read_slot(resting ? (timer_due ? due_number[SW-1:0] : s_flow_data[layouts_pkg::FLOW_NUMBER_AT +: SW])
                   : state == AGAIN_1 ? again_number[SW-1:0] : c_slot),
        .copy, .copy_node, .cfg_loops, .next_loops, .last_loop,
        .flow, .compare(state == FLOW_1), .expected, .unsent, .oldest, .told,
        .release_copied, .release_number, .release_decided, .release_members, .in_ring,
        .is_forwarded, .returned, .is_release, .message_req, .verdict(compared)
    );

    plx_evb_release release_message (
        .clk, .clear(rst || setup || clears), .now, .cfg_timeout, .decided, .members,
        .arm(state == DECIDE_2 && dc_done), .time_of_op, .hurry(go_trigger && full),
        .returned(state == FLOW_2 && is_release), .message_req(state == FLOW_2 && message_req),
        .says(flow[layouts_pkg::FLOW_DECIDED_AT +: 32]), .told, .over(release_over), .late(release_late),
        .send(state == RELEASE), .has_members, .copied(release_copied), .number(release_number),
        .copy_decided(release_decided), .copy_members(release_members)
    );

    plx_evb_command #(.COLUMNS(COLUMNS), .NODES(NODES), .BUFFERS(BUFFERS), .SLOTS(SLOTS)) commands (
        .clk, .rst(rst || setup || clears), .cfg_nodes, .cfg_descriptors, .cfg_feeders,
        .command, .command_kind, .command_member, .waits(command_waits), .start(go_command), .done(c_done),
        .node(c_node), .column(c_column), .node_column(member_column), .node_excluded(member_excluded),
        .excludes, .readmits, .leaves, .joins,
        .looks(c_looks), .used, .pop(c_pop), .head, .head_node(place_node), .push(c_push), .buffer(c_buffer),
        .forgets, .forgotten,
        .decided, .unsent, .reads(c_reads), .slot(c_slot), .is_open,
        .event_node(copy_node), .reassigns,
        .again_valid, .again_take(state == AGAIN_1), .again_number
    );

    assign busy = clears || command_waits || state == COMMAND;

    // The steps.
    always_ff @(posedge clk) begin
        now         <= now + 1'b1;
        in_ring     <= phase == RING;
        is_open     <= in_ring_or_built || phase == PROCESSED;
        has_members <= |members;
        {no_loops, decides_first} <= {cfg_loops == 0, s_decided_valid};
        dc_done     <= state == DECIDE_2 ? dc_left == 1 : dc_left[31] || dc_left == 0;
        if (begins) {expired, time_of_op} <= {go_expire, same_time ? time_of_op : now};
        if (fresh) {ready_generation, ready_node} <= {generation, place_node};

        if (send_first) unsent <= unsent + 1'b1;

        case (state)
            SETUP: begin
                walk       <= walk + 1'b1;
                members    <= cfg_feeders;
                if (&walk) state <= IDLE;
            end
            IDLE: begin
                // Of the operation that would begin: whether it does is known late.
                at <= timer_due ? due_number[SW-1:0] : decides_first ? s_decided_data[32 +: SW]
                                : s_flow_data[layouts_pkg::FLOW_NUMBER_AT +: SW];
                if (go_feedback) begin
                    feedback  <= s_feedback_data;
                    state     <= FEEDBACK_1;
                end
                if (go_flow) begin
                    flow  <= s_flow_data;
                    state <= FLOW_1;
                end
                if (go_decide) begin
                    decision <= s_decided_data;
                    state    <= DECIDE_0;
                end
                if (go_expire) {state, number} <= {EXPIRE, due_number};
                if (go_again) state <= AGAIN_1;
                if (go_release) state <= RELEASE;
                if (go_command) state <= COMMAND;
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
                at        <= feedback[layouts_pkg::FEEDBACK_NUMBER_AT +: SW];
                col       <= place_column;
                op_buffer <= feedback[layouts_pkg::FEEDBACK_DESCRIPTOR_AT +: BW];
                state     <= FEEDBACK_2;
            end
            FEEDBACK_2: state <= FEEDBACK_3;
            FEEDBACK_3: state <= is_finished ? FEEDBACK_4 : is_new ? CHECK : IDLE;
            FEEDBACK_4: state <= CHECK;

            FLOW_1: state <= FLOW_2;
            FLOW_2: begin
                prepared          <= {f_pending, copy[MEMBERS +: 32], 1'b1, last_loop, next_loops,
                                      copy[LOOPS-1:0], decided, f_number, cfg_run};
                {prepared_dispatch, prepared_event} <= 2'b01;
                prepared_node     <= copy_node;
                after             <= IDLE;
                state             <= is_forwarded ? SEND : returned || is_release ? RETIRE : IDLE;
            end

            DECIDE_0: begin
                dc_valid     <= dc_number[31] && (dc_before[31] || decision[31:0] == unsent);
                dc_in_flight <= !dc_kept[31];
                state        <= DECIDE_1;
            end
            DECIDE_1: state <= dc_valid ? DECIDE_2 : IDLE;
            DECIDE_2: if (dc_done) state <= RETIRE; else decided <= decided + 1'b1;

            // Events that are decided, and whose messages are not expected: as far as the feeders know.
            RETIRE: begin
                if (retires) oldest <= oldest + 1'b1;
                else state <= CHECK;
            end

            EXPIRE: begin
                prepared          <= {members, members, 1'b1, no_loops, 8'd0, copy[ATTEMPT +: 16] + 1'b1,
                                      copy[ATTEMPT-1:0], decided, number, cfg_run};
                {prepared_dispatch, prepared_event} <= 2'b01;
                prepared_node     <= copy_node;
                after             <= CHECK;
                state             <= phase == RING ? SEND : RETIRE;
            end

            AGAIN_1: begin
                number  <= again_number;
                at      <= again_number[SW-1:0];
                retired <= again_age[31];
                state   <= AGAIN_2;
            end
            AGAIN_2: begin
                prepared          <= {members, members, 1'b1, no_loops, 8'd0, copy[ATTEMPT +: 16] + 1'b1,
                                      {{(16 - BW) {1'b0}}, ready_buffer}, ready_generation, decided, number, cfg_run};
                {prepared_dispatch, prepared_event} <= 2'b11;
                after             <= IDLE;
                state             <= phase == WAITING && !retired ? SEND : IDLE;
            end

            RELEASE: begin
                prepared          <= {members, members, 2'b01, 72'd0, decided, release_number + 1'b1, cfg_run};
                {prepared_dispatch, prepared_event} <= 2'b00;
                after             <= IDLE;
                state             <= has_members ? SEND : IDLE;
            end

            SEND: if (room) state <= after;

            COMMAND: begin
                at      <= c_slot;
                members <= (members & ~leaves) | joins;
                if (c_done) state <= CHECK;
            end
            default: state <= IDLE;
        endcase

        if (rst) now <= '0;
        if (rst || setup || clears) begin
            unsent          <= '0;
            oldest          <= '0;
            decided         <= '0;
            enabled         <= 1'b0;
        end
        if (rst || setup) begin
            state      <= SETUP;
            walk       <= '0;
        end
    end

    // Counted events.
    always_ff @(posedge clk) begin
        inc <= {
            accepted, state == FLOW_2 && compared[1], dispatch && !may_follow, reassigns, state == DECIDE_1 && !dc_valid,
            (state == FEEDBACK_3 && judged[8]) || (state == FLOW_2 && compared[2]),
            judged[7:0] & {8{state == FEEDBACK_3}},
            lost, go_trigger && full, go_trigger && !full && at_limit,
            state == FLOW_2 && compared[0], state == EXPIRE && phase != RING, state == EXPIRE && phase == RING,
            state == FLOW_2 && is_forwarded, state == FLOW_2 && returned, dispatch
        };
        if (rst) inc <= '0;
    end

    assign {sts_ready, sts_enabled, sts_members, sts_pending} = {ready, enabled, members, pending};

    wire unused = &{1'b0, settled, again_age[30:0], dc_number[30:0], dc_before[30:0], dc_kept[30:0],
                     copy[FLOW_W-KEPT-1:MEMBERS+32], copy[LOOPS+9:LOOPS]};
endmodule
