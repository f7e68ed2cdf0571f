// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Time-outs of the messages in the ring, all of one duration, so that a queue has them in order. An
// entry of the queue is valid while it is the newest one of its message and the message is expected;
// others are discarded at the head, one in two cycles. What is known of the head is looked up in the
// cycle before, and not used in the cycle after a start or a stop.

module plx_evb_timers #(
    parameter SLOTS = 256  // messages in flight, a power of two
) (
    input  logic                     clk,
    input  logic                     rst,
    input  logic [30:0]              cfg_timeout,
    input  logic [31:0]              now,
    input  logic [31:0]              time_of_op,

    // Slots without a message, one after the other, before the first operation.
    input  logic                     clear,
    input  logic [$clog2(SLOTS)-1:0] clear_slot,

    // A message is sent: time-out from now on, or from the time of the operation. There is room for one more; in the cycle before there was
    // room for three.
    input  logic                     start,
    input  logic [31:0]              start_number,
    input  logic                     start_now,
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

    // The head, read into a register: valid with `full`. In the cycle after, `known`: whether it is valid, and
    // over; `found`: both, `holds`: valid, and neither in the cycle after a start or a stop. One that is not valid does
    // not become so.
    logic          full, known, valid, over, found, holds, none;
    logic [31:0]   number, deadline;
    logic [AW-1:0] place;
    wire  [AW:0]   number_newest = newest[number[SW-1:0]];
    wire  [SW-1:0] start_slot    = start_number[SW-1:0];
    wire  [AW:0]   start_newest  = newest[start_slot];
    wire  [AW:0]   stop_newest   = newest[stop_slot];
    wire  [AW:0]   look_newest   = newest[look_slot];
    wire  [31:0]   from_now      = now + {1'b0, cfg_timeout};
    wire  [31:0]   from_op       = time_of_op + {1'b0, cfg_timeout};
    // The next cycle, in which what is found here is used: what is over then comes before all else.
    logic [31:0]   soon;
    wire  [31:0]   since         = (examining ? time_of_op : soon) - deadline;
    wire           is_valid      = number_newest == {1'b1, place};
    wire           discards      = known && !valid;
    wire           leaves        = take || discards;
    wire           ends          = examining && holds && !over;
    logic          more, fewer;

    assign look_expected = look_newest[AW];
    assign looking       = !holds && !none;
    assign due           = found;
    assign due_number    = number;

    always_ff @(posedge clk) begin
        soon <= now + 32'd2;
        if (start) begin
            newest[start_slot] <= {1'b1, back[AW-1:0]};
        end else if (stop || clear) begin
            newest[clear ? clear_slot : stop_slot] <= '0;
        end
        if (start) begin
            queue[back[AW-1:0]] <= {start_now ? from_now : from_op, start_number};
            back                <= back + 1'b1;
        end
        more     <= start && !start_newest[AW];
        fewer    <= !start && stop && stop_newest[AW];
        expected <= expected + {{SW{1'b0}}, more} - {{SW{1'b0}}, fewer};
        room     <= level < (1 << AW) - 4;
        known    <= full && !leaves && !ends;
        valid    <= is_valid;
        over     <= !since[31];
        found    <= full && !leaves && !ends && is_valid && !since[31] && !(start || stop);
        holds    <= full && !leaves && !ends && is_valid && !(start || stop);
        none     <= !full && back == front && !start;
        if (take) examining <= 1'b1;
        else if (ends || (!full && back == front)) examining <= 1'b0;
        if (leaves || !full) begin
            full               <= back != front;
            {deadline, number} <= queue[front[AW-1:0]];
            place              <= front[AW-1:0];
            if (back != front) front <= front + 1'b1;
        end
        if (rst || clear) begin
            full      <= 1'b0;
            known     <= 1'b0;
            found     <= 1'b0;
            holds     <= 1'b0;
            examining <= 1'b0;
            front     <= '0;
            back      <= '0;
            expected  <= '0;
            more      <= 1'b0;
            fewer     <= 1'b0;
        end
    end

    wire unused = &{1'b0, since[30:0]};
endmodule
