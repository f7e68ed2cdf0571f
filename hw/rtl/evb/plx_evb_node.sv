// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A feeder's end of the flow control ring (thesis, III.E.3 and III.F). A message selects a descriptor
// of the table that was imported at set-up; it is sent on when its transfer is done. Messages that
// arrive meanwhile wait, the first of them looked up; behind a long transfer, and while data are
// missing, those that need not be held pass on untouched. A new attempt takes the place of the one that
// waits. The same operations as `pollux-farm`'s feeder, one after the other.
//
// A set-up begins a run as a reset does: with event 0, nothing stored, no message. A transfer that is under way
// then is of the run before: it stays on offer until it is done, and no message is taken before.
//
//   message    transfer offered 3 cycles later, if nothing is before it
//   done       message in the next cycle, the next transfer in the one after

module plx_evb_node #(
    parameter ID      = 0,     // number of the feeder: its bit in a message
    parameter BUFFERS = 4096,  // descriptors, at most, a power of two
    parameter SLOTS   = 256    // events in flight, as of the scheduler, a power of two
) (
    input  logic                           clk,
    input  logic                           rst,

    // A set-up: data and messages from the next cycle on are of the new run.
    input  logic                           setup,

    // Settings: the run, descriptors in the table, bytes of a slot of a receive buffer, and bytes of a
    // fragment above which messages pass.
    input  logic [31:0]                    cfg_run,
    input  logic [16:0]                    cfg_descriptors,
    input  logic [15:0]                    cfg_slot,
    input  logic [15:0]                    cfg_bypass_above,

    // Descriptor table: addresses of receive buffers.
    input  logic                           w_table,
    input  logic [$clog2(BUFFERS)-1:0]     w_descriptor,
    input  logic [63:0]                    w_address,

    // The next event's data are in the store: their bytes. They stay until the event is decided.
    input  logic                           s_store_valid,
    output logic                           s_store_ready,
    input  logic [15:0]                    s_store_bytes,

    // Messages from the one before, to the one after.
    input  logic                           s_flow_valid,
    output logic                           s_flow_ready,
    input  logic [layouts_pkg::FLOW_W-1:0] s_flow_data,
    output logic                           m_flow_valid,
    input  logic                           m_flow_ready,
    output logic [layouts_pkg::FLOW_W-1:0] m_flow_data,

    // A transfer: stable until it is done. Bytes of the payload: a table of one length, and the data unless
    // they are absent or larger than a slot.
    output logic                           m_transfer_valid,
    output logic [63:0]                    m_transfer_address,
    output logic [15:0]                    m_transfer_descriptor,
    output logic [31:0]                    m_transfer_number,
    output logic [16:0]                    m_transfer_bytes,
    output logic                           m_transfer_absent,
    output logic                           m_transfer_oversize,
    input  logic                           s_done,

    // All events before this one are decided.
    output logic [31:0]                    decided,

    // Counted events: transfers, bypassed, early, repeated, stale, decided before, for others, without an
    // event, out of range, queue full, other run.
    output logic [10:0]                    inc
);
    localparam BW = $clog2(BUFFERS), SW = $clog2(SLOTS), FLOW_W = layouts_pkg::FLOW_W;
    localparam PENDING = layouts_pkg::FLOW_PENDING_AT;
    // Bytes of the table in front of the data.
    localparam [16:0] TABLE = 17'd8;

    localparam CLEAR = 4'd0, IDLE = 4'd1, READ = 4'd2, JUDGE = 4'd3, LOOK = 4'd4, SERVE = 4'd5, WALK = 4'd6,
               RETURN = 4'd7, SEARCH = 4'd8, FOUND = 4'd9;
    localparam I_TRANSFER = 0, I_BYPASSED = 1, I_EARLY = 2, I_REPEATED = 3, I_STALE = 4, I_DECIDED = 5, I_OTHERS = 6,
               I_RELEASE = 7, I_OUT_OF_RANGE = 8, I_QUEUE_FULL = 9, I_OTHER_RUN = 10;

    generate
        if (ID < 0 || ID > 31) ID_must_be_0_to_31 parameter_error ();
        if (BUFFERS < 2 || BUFFERS != 1 << BW) BUFFERS_must_be_a_power_of_two_at_least_2 parameter_error ();
        if (SLOTS < 2 || SLOTS != 1 << SW) SLOTS_must_be_a_power_of_two_at_least_2 parameter_error ();
    endgenerate

    logic [3:0]        state;
    logic [SW-1:0]     clear;
    logic              running, long, done, room;
    wire               clears = rst || setup;
    logic [31:0]       stored;
    logic [FLOW_W-1:0] flow, current, turned;

    // Messages that wait.
    // The first one, or in a search the one at the place.
    logic [FLOW_W-1:0] head;
    logic [SW:0]       level, left;
    logic [SW-1:0]     place;
    // In FOUND: the message at the place is of the same event; it is the last one.
    logic              searched, same, is_last;
    wire               waits      = level != 0;
    wire  [SW:0]       next_place = {1'b0, place} + 1'b1;
    wire               full       = level[SW];
    wire [31:0]        head_number = head[layouts_pkg::FLOW_NUMBER_AT +: 32];
    wire               head_hold  = head[layouts_pkg::FLOW_HOLD_AT];

    // The message that is judged.
    wire [31:0]        number     = flow[layouts_pkg::FLOW_NUMBER_AT +: 32];
    wire [15:0]        attempt    = flow[layouts_pkg::FLOW_ATTEMPT_AT +: 16];
    wire [31:0]        says       = flow[layouts_pkg::FLOW_DECIDED_AT +: 32];
    wire               hold       = flow[layouts_pkg::FLOW_HOLD_AT];
    wire               is_event   = flow[layouts_pkg::FLOW_EVENT_AT];
    logic              is_own, is_run, is_decided, in_range, is_served, is_newer, is_equal;

    // What the tables have of the first message that waits is known.
    logic known;

    // What begins. Whether the store has room is looked up in the cycle before, in which nothing was stored.
    logic       has_room, stored_last;
    wire [31:0] kept = stored - decided;
    wire more    = s_store_valid && has_room && !stored_last;
    wire ends    = state == IDLE && room && (done || s_done) && running;
    wire stores  = state == IDLE && !ends && more;
    wire unknown = waits && !known;
    wire looks   = state == IDLE && !ends && !more && unknown;
    // Whether a transfer ends depends on the space for its message, which comes late.
    wire calm    = state == IDLE && !more && !unknown;
    wire rests   = calm && !ends;
    wire flow_accepted = rests && s_flow_valid;

    assign s_store_ready = stores;
    assign s_flow_ready  = rests;

    // Tables: accepted events, addresses, lengths. They are read for a message that arrives, and for
    // the first that waits.
    wire                       reads  = flow_accepted || looks || (state == SERVE && waits && !known);
    wire [SW-1:0]              read_slot  = flow_accepted ? s_flow_data[layouts_pkg::FLOW_NUMBER_AT +: SW]
                                                          : head_number[SW-1:0];
    wire [BW-1:0]              read_descriptor = flow_accepted ? s_flow_data[layouts_pkg::FLOW_DESCRIPTOR_AT +: BW]
                                                               : head[layouts_pkg::FLOW_DESCRIPTOR_AT +: BW];
    logic [48:0]               served;
    logic [63:0]               address;
    logic [15:0]               length;
    wire                       give_back, accept;
    wire                       judges         = state == JUDGE || state == FOUND;
    wire [31:0]                marked_number  = judges ? number : head_number;
    wire [15:0]                marked_attempt = judges ? attempt : head[layouts_pkg::FLOW_ATTEMPT_AT +: 16];

    plx_ram_sdp #(.WIDTH(49), .DEPTH(SLOTS)) accepted (
        .clk,
        .w_enable(state == CLEAR || accept || give_back),
        .w_address(state == CLEAR ? clear : marked_number[SW-1:0]),
        .w_data(state == CLEAR ? 49'd0 : {1'b1, marked_number, give_back ? marked_attempt - 1'b1 : marked_attempt}),
        .r_enable(reads), .r_address(read_slot), .r_data(served)
    );

    plx_ram_sdp #(.WIDTH(64), .DEPTH(BUFFERS)) addresses (
        .clk,
        .w_enable(w_table), .w_address(w_descriptor), .w_data(w_address),
        .r_enable(reads), .r_address(read_descriptor), .r_data(address)
    );

    plx_ram_sdp #(.WIDTH(16), .DEPTH(SLOTS)) lengths (
        .clk,
        .w_enable(stores), .w_address(stored[SW-1:0]), .w_data(s_store_bytes),
        .r_enable(reads), .r_address(read_slot), .r_data(length)
    );

    // The data of the message that was read, one cycle later.
    logic [31:0] read_number;
    wire [31:0]  behind_stored  = read_number - stored;
    wire [31:0]  behind_decided = read_number - decided;
    wire         found          = behind_stored[31] && !behind_decided[31];
    wire [16:0]  end_of_data  = TABLE + {1'b0, length[15:3] + {12'd0, |length[2:0]}, 3'd0};
    // The most data behind the table: none in a slot that is no larger.
    logic [15:0] most;
    logic        has_most;
    wire         fits         = has_most && length <= most;

    // Looked up: of the message that is judged, and of the first that waits.
    logic        has, oversize, head_has, head_oversize;
    logic [16:0] end_of_one, end_of_head;
    wire  [16:0] bytes      = has && !oversize ? end_of_one : TABLE;
    wire  [16:0] head_bytes = head_has && !head_oversize ? end_of_head : TABLE;
    logic [63:0] head_address;

    // Judgement.
    wire passes      = running && long && !hold;
    wire is_old      = is_served && !is_newer;
    wire concerns    = is_run && is_own && is_event && in_range && !is_decided;
    // One of an attempt that has been given up may wait.
    wire searches    = concerns && is_served && is_newer && waits && !searched;
    wire replaces    = state == FOUND && same;
    wire search_ends = same || is_last;
    wire judging     = state == JUDGE && !searches;
    wire may_take    = concerns && !is_old && !passes && !full;
    wire starts_now  = judging && may_take && !running && (hold || has);
    wire early_now   = judging && may_take && !running && !hold && !has;
    wire queues      = judging && may_take && running;
    wire untouched   = is_run && (!is_own || (concerns && !is_old && passes));
    wire cleared     = is_run && is_own && (!is_event || (in_range && is_decided));
    wire starts_next = state == SERVE && waits && known && (head_hold || head_has);
    wire early_next  = state == SERVE && waits && known && !head_hold && !head_has && room;
    wire passes_next = state == WALK && !head_hold && room;
    wire turns       = state == WALK && head_hold;
    wire starts      = starts_now || starts_next;

    assign accept    = starts_now || queues || replaces;
    assign give_back = (early_now && room) || early_next || passes_next;

    // Messages out.
    logic [2:0] output_level;
    wire forwards = ends || (judging && room && (untouched || cleared || early_now)) || early_next || passes_next;
    wire [FLOW_W-1:0] outgoing = state == JUDGE ? flow : state == IDLE ? current : head;
    wire [FLOW_W-1:0] bit_     = {{(FLOW_W - 1) {1'b0}}, ends || (state == JUDGE && cleared)} << (PENDING + ID);

    plx_fifo_sync #(
        .WIDTH(FLOW_W),
        .DEPTH(4)
    ) output_buffer (
        .clk, .rst(clears),
        .s_valid(forwards), .s_ready(room), .s_data(outgoing & ~bit_),
        .m_valid(m_flow_valid), .m_ready(m_flow_ready), .m_data(m_flow_data), .level(output_level)
    );

    plx_evb_queue #(
        .WIDTH(FLOW_W),
        .DEPTH(SLOTS)
    ) queue (
        .clk, .rst(clears),
        .push(queues || state == RETURN), .data(state == RETURN ? turned : flow),
        .word(head), .replace(replaces), .step(state == FOUND && !search_ends), .rewind(state == FOUND && search_ends),
        .pop(starts_next || early_next || passes_next || turns), .level
    );

    // In READ: what the message says is new, if it is of this run.
    wire [31:0] news       = decided - says;
    wire        of_run     = flow[layouts_pkg::FLOW_RUN_AT +: 32] == cfg_run;
    wire        is_long    = bytes > {1'b0, cfg_bypass_above};
    wire        head_long  = head_bytes > {1'b0, cfg_bypass_above};

    always_ff @(posedge clk) begin
        most        <= {cfg_slot[15:3] - 1'b1, 3'd0};
        has_most    <= cfg_slot[15:3] != 0;
        same        <= head_number == number;
        is_last     <= next_place == level;
        has_room    <= kept[31] || kept[30:SW] == 0;
        stored_last <= stores;
        if (reads) read_number <= flow_accepted ? s_flow_data[layouts_pkg::FLOW_NUMBER_AT +: 32] : head_number;
        if (s_done) done <= 1'b1;
        if (stores) begin
            stored <= stored + 1'b1;
            if (!head_has) known <= 1'b0;
        end
        if (starts_next || early_next || state == WALK || (replaces && place == 0)) known <= 1'b0;

        if (ends) begin
            running          <= 1'b0;
            done             <= 1'b0;
            m_transfer_valid <= 1'b0;
        end
        if (starts) begin
            running               <= 1'b1;
            m_transfer_valid      <= 1'b1;
            current               <= starts_now ? flow : head;
            m_transfer_address    <= starts_now ? address : head_address;
            m_transfer_descriptor <= starts_now ? flow[layouts_pkg::FLOW_DESCRIPTOR_AT +: 16]
                                                : head[layouts_pkg::FLOW_DESCRIPTOR_AT +: 16];
            m_transfer_number     <= starts_now ? number : head_number;
            m_transfer_bytes      <= starts_now ? bytes : head_bytes;
            m_transfer_absent     <= starts_now ? !has : !head_has;
            m_transfer_oversize   <= starts_now ? oversize : head_oversize;
            long                  <= starts_now ? is_long : head_long;
        end

        case (state)
            CLEAR: begin
                done <= 1'b0;
                if (s_done) m_transfer_valid <= 1'b0;
                if (!(&clear)) clear <= clear + 1'b1;
                else if (!m_transfer_valid) state <= IDLE;
            end
            IDLE: begin
                if (ends) state <= waits ? SERVE : IDLE;
                if (flow_accepted) begin
                    flow  <= s_flow_data;
                    state <= READ;
                end
                if (looks) state <= LOOK;
            end
            READ: begin
                is_run     <= of_run;
                is_own     <= flow[PENDING + ID];
                in_range   <= {1'b0, flow[layouts_pkg::FLOW_DESCRIPTOR_AT +: 16]} < cfg_descriptors;
                is_decided <= $signed(number - decided) < 0 || $signed(number - says) < 0;
                is_served  <= served[48] && served[47:16] == number;
                is_newer   <= $signed(attempt - served[15:0]) > 0;
                is_equal   <= attempt == served[15:0];
                has        <= found;
                oversize   <= found && !fits;
                end_of_one <= end_of_data;
                if (news[31] && of_run) begin
                    decided <= says;
                    known   <= 1'b0;
                end
                searched   <= 1'b0;
                place      <= '0;
                state      <= JUDGE;
            end
            JUDGE: if (searches) state <= SEARCH; else if (room || !(untouched || cleared || early_now)) state <= IDLE;
            SEARCH: state <= FOUND;
            FOUND: begin
                searched <= is_last;
                place    <= search_ends ? '0 : next_place[SW-1:0];
                state    <= same ? IDLE : is_last ? JUDGE : SEARCH;
            end
            LOOK: begin
                known         <= 1'b1;
                head_has      <= found;
                head_oversize <= found && !fits;
                end_of_head   <= end_of_data;
                head_address  <= address;
                state         <= running ? IDLE : SERVE;
            end
            SERVE: begin
                if (!waits) state <= IDLE;
                else if (!known) state <= LOOK;
                if (starts_next) begin
                    left  <= level - 1'b1;
                    state <= level != 1 && head_long ? WALK : IDLE;
                end
            end
            // Behind a long transfer: one that is held goes to the end of the queue.
            WALK: begin
                turned <= head;
                if (passes_next || turns) begin
                    left  <= left - 1'b1;
                    state <= turns ? RETURN : left == 1 ? IDLE : WALK;
                end
            end
            RETURN: state <= left == 0 ? IDLE : WALK;
            default: state <= IDLE;
        endcase

        if (clears) begin
            state   <= CLEAR;
            clear   <= '0;
            running <= 1'b0;
            known   <= 1'b0;
            stored  <= '0;
            decided <= '0;
            // A transfer that would begin does not; one that runs ends.
            m_transfer_valid <= m_transfer_valid && !done && !s_done && !rst;
        end
    end

    wire judges_old = concerns && is_old;
    wire judged = judging && (room || !(untouched || cleared || early_now));
    always_ff @(posedge clk) begin
        inc[I_TRANSFER]     <= starts;
        inc[I_BYPASSED]     <= (judged && is_run && is_own && !cleared && untouched) || passes_next;
        inc[I_EARLY]        <= (judged && early_now) || early_next;
        inc[I_REPEATED]     <= judged && judges_old && is_equal;
        inc[I_STALE]        <= (judged && judges_old && !is_equal) || replaces;
        inc[I_DECIDED]      <= judged && is_run && is_own && is_event && in_range && is_decided;
        inc[I_OTHERS]       <= judged && is_run && !is_own;
        inc[I_RELEASE]      <= judged && is_run && is_own && !is_event;
        inc[I_OUT_OF_RANGE] <= judged && is_run && is_own && is_event && !in_range;
        inc[I_QUEUE_FULL]   <= judged && concerns && !is_old && !passes && full;
        inc[I_OTHER_RUN]    <= judged && !is_run;
        if (clears) inc <= '0;
    end

    wire unused = &{1'b0, output_level, cfg_slot[2:0], kept[SW-1:0], behind_stored[30:0], behind_decided[30:0], news[30:0]};
endmodule
