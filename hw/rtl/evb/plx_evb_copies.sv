// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Copies of the messages that were sent, with which those that return are compared: read with `read`,
// `compare`, and then the verdict is valid.

module plx_evb_copies #(
    parameter NODES = 1024,  // nodes, at most, a power of two
    parameter SLOTS = 256    // events in flight, a power of two
) (
    input  logic                           clk,
    input  logic [31:0]                    cfg_run,

    // A message is sent, from the generation on, to a buffer of that node.
    input  logic                           send,
    input  logic [$clog2(SLOTS)-1:0]       send_slot,
    input  logic [layouts_pkg::FLOW_W-layouts_pkg::FLOW_GENERATION_AT-1:0] send_copy,
    input  logic [$clog2(NODES)-1:0]       send_node,

    // A copy is read: valid in the next cycle, a message from the generation on, and the node; behind `compare` the
    // loops that follow, and whether they are the last one.
    input  logic                           read,
    input  logic [$clog2(SLOTS)-1:0]       read_slot,
    output logic [layouts_pkg::FLOW_W-layouts_pkg::FLOW_GENERATION_AT-1:0] copy,
    output logic [$clog2(NODES)-1:0]       copy_node,
    input  logic [7:0]                     cfg_loops,
    output logic [7:0]                     next_loops,
    output logic                           last_loop,

    // The message that returned, and what it meets: events that were sent and are kept, the message
    // without an event that was sent last.
    input  logic [layouts_pkg::FLOW_W-1:0] flow,
    input  logic                           compare,
    input  logic                           expected,
    input  logic [31:0]                    unsent,
    input  logic [31:0]                    oldest,
    input  logic [31:0]                    told,
    input  logic                           release_copied,
    input  logic [31:0]                    release_number,
    input  logic [31:0]                    release_decided,
    input  logic [31:0]                    release_members,
    input  logic                           in_ring,

    // It goes for another round, or has returned; it is the message without an event; it says more than
    // was known of decisions; what is counted: too late, otherwise than sent, of another run.
    output logic                           is_forwarded,
    output logic                           returned,
    output logic                           is_release,
    output logic                           message_req,
    output logic [2:0]                     verdict
);
    localparam FLOW_W = layouts_pkg::FLOW_W, KEPT = layouts_pkg::FLOW_GENERATION_AT, COPY_W = FLOW_W - KEPT;
    localparam ATTEMPT = layouts_pkg::FLOW_ATTEMPT_AT - KEPT, LOOPS = layouts_pkg::FLOW_LOOPS_AT - KEPT,
               PENDING = layouts_pkg::FLOW_PENDING_AT - KEPT;
    localparam NW = $clog2(NODES);

    wire [31:0] number   = flow[layouts_pkg::FLOW_NUMBER_AT +: 32];
    wire [31:0] pending  = flow[layouts_pkg::FLOW_PENDING_AT +: 32];
    wire [31:0] decided  = flow[layouts_pkg::FLOW_DECIDED_AT +: 32];
    wire [7:0]  loops    = flow[layouts_pkg::FLOW_LOOPS_AT +: 8];
    wire        is_event = flow[layouts_pkg::FLOW_EVENT_AT];
    wire        early    = $signed(number - oldest) < 0;

    logic is_run, was_sent, is_old, is_expected, same_attempt, earlier_loop, is_copy, is_pending, says_more, same_release,
          old_release;

    wire [7:0]        loops_of_copy = copy[LOOPS +: 8];
    wire [COPY_W-1:0] differs = copy ^ flow[FLOW_W-1:KEPT];
    wire is_own    = is_run && is_event && was_sent && is_expected && same_attempt && !earlier_loop && is_copy;
    wire late    = is_event ? is_old || (was_sent && (!is_expected || !same_attempt || earlier_loop))
                            : !same_release && old_release;
    wire changed = is_event ? (!was_sent && !is_old)
                              || (was_sent && is_expected && same_attempt && !earlier_loop && !is_copy)
                            : !same_release && !old_release;

    assign is_forwarded = is_own && is_pending && in_ring;
    assign returned     = is_own && !(is_pending && in_ring);
    assign is_release   = is_run && !is_event && same_release;
    assign message_req  = says_more && ((is_own && loops == 0) || is_release);
    assign verdict      = {!is_run, is_run && changed, is_run && late};

    plx_ram_sdp #(.WIDTH(NW + COPY_W), .DEPTH(SLOTS)) copies (
        .clk,
        .w_enable(send), .w_address(send_slot), .w_data({send_node, send_copy}),
        .r_enable(read), .r_address(read_slot), .r_data({copy_node, copy})
    );

    always_ff @(posedge clk) if (compare) begin
        next_loops   <= &loops_of_copy ? loops_of_copy : loops_of_copy + 1'b1;
        last_loop    <= {1'b0, loops_of_copy} + 9'd1 >= {1'b0, cfg_loops};
        is_run       <= flow[layouts_pkg::FLOW_RUN_AT +: 32] == cfg_run;
        was_sent     <= !early && $signed(number - unsent) < 0;
        is_old       <= early;
        is_expected  <= expected;
        same_attempt <= differs[LOOPS-1:ATTEMPT] == 0;
        earlier_loop <= loops_of_copy > loops;
        is_copy      <= differs[PENDING-1:LOOPS] == 0 && differs[ATTEMPT-1:0] == 0 && (pending & ~copy[PENDING +: 32]) == 0;
        is_pending   <= |pending;
        says_more    <= $signed(decided - told) > 0;
        same_release <= release_copied && number == release_number && decided == release_decided
                     && flow[FLOW_W-1:KEPT] == {32'd0, release_members, 2'b01, 72'd0};
        old_release  <= $signed(number - release_number) <= 0;
    end

    wire unused = &{1'b0, differs[COPY_W-1:PENDING]};
endmodule
