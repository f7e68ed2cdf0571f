// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Time-outs of the messages in the ring, all of one duration, so that a queue has them in order. An
// entry of the queue is valid while it is the newest one of its message and the message is expected;
// others are discarded at the head, one a cycle.

module plx_evb_timers #(
    parameter SLOTS = 256  // messages in flight, a power of two
) (
    input  logic                     clk,
    input  logic                     rst,
    input  logic [31:0]              now,
    input  logic [31:0]              time_of_op,

    // Slots without a message, one after the other, before the first operation.
    input  logic                     clear,
    input  logic [$clog2(SLOTS)-1:0] clear_slot,

    // A message is sent: time-out from then on. There is room for one more.
    input  logic                     start,
    input  logic [31:0]              start_number,
    input  logic [31:0]              start_deadline,
    output logic                     room,

    // A message is not expected any more.
    input  logic                     stop,
    input  logic [$clog2(SLOTS)-1:0] stop_slot,

    // Whether a message is expected, and how many are.
    input  logic [$clog2(SLOTS)-1:0] look_slot,
    output logic                     look_expected,
    output logic [$clog2(SLOTS):0]   expected,

    // The oldest time-out is over, until it is taken. Then `examining`, until one is found that was not over
    // at the time of the first, `time_of_op`: those that were over at one time are taken one after the other.
    // `looking`: it is not known yet whether one is over.
    output logic                     due,
    output logic                     examining,
    output logic                     looking,
    output logic [31:0]              due_number,
    input  logic                     take
);
    localparam SW = $clog2(SLOTS);
    // Entries of messages that have returned wait behind the head.
    localparam AW = SW + 2;

    generate
        if (SLOTS < 2 || SLOTS != 1 << SW) SLOTS_must_be_a_power_of_two_at_least_2 parameter_error ();
    endgenerate

    // Of each slot, whether its message is expected, and its newest entry.
    logic [AW:0]   newest [0:SLOTS-1];
    logic [63:0]   queue  [0:(1 << AW)-1];
    logic [AW:0]   front, back;
    wire  [AW:0]   level = back - front;

    // The head, read into a register: valid with `full`.
    logic          full, known, over;
    logic [31:0]   number, deadline;
    logic [AW-1:0] place;
    wire  [AW:0]   number_newest = newest[number[SW-1:0]];
    wire  [SW-1:0] start_slot    = start_number[SW-1:0];
    wire  [AW:0]   start_newest  = newest[start_slot];
    wire  [AW:0]   stop_newest   = newest[stop_slot];
    wire  [AW:0]   look_newest   = newest[look_slot];
    wire           valid         = number_newest == {1'b1, place};
    // In the next cycle.
    wire  [31:0]   left          = deadline - (examining ? time_of_op : now + 1'b1);
    wire           leaves        = full && (take || !valid);
    wire           ends          = examining && full && valid && known && !over;

    assign room          = level < (1 << AW) - 2;
    assign look_expected = look_newest[AW];
    assign due           = full && valid && known && over;
    assign looking       = full ? !known || !valid : level != 0;
    assign due_number    = number;

    always_ff @(posedge clk) begin
        if (start) begin
            newest[start_slot] <= {1'b1, back[AW-1:0]};
        end else if (stop || clear) begin
            newest[clear ? clear_slot : stop_slot] <= '0;
        end
        if (start) begin
            queue[back[AW-1:0]] <= {start_deadline, start_number};
            back                <= back + 1'b1;
        end
        if (start && !start_newest[AW]) expected <= expected + 1'b1;
        if (!start && stop && stop_newest[AW]) expected <= expected - 1'b1;
        known <= full && !leaves && !ends;
        over  <= left[31] || left == 0;
        if (take) examining <= 1'b1;
        else if (ends || (!full && level == 0)) examining <= 1'b0;
        if (leaves || !full) begin
            full               <= level != 0;
            {deadline, number} <= queue[front[AW-1:0]];
            place              <= front[AW-1:0];
            if (level != 0) front <= front + 1'b1;
        end
        if (rst || clear) begin
            full      <= 1'b0;
            known     <= 1'b0;
            examining <= 1'b0;
            front     <= '0;
            back      <= '0;
            expected  <= '0;
        end
    end
endmodule
