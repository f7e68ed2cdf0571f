// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Two messages that are sent, return and are sent again, in any order. A time-out is over only of a message
// that is expected, of its newest start, and not before its time; what is over at the time of the first one
// is found while `examining`. Where none is over and none is looked at, no time-out has come. How many are
// expected is counted.
// formal: aiger
// formal: bounded 14
// formal: cover 14
// mutant: is_valid && !since[31] && !(start || stop); => is_valid && !since[31];
// mutant: is_valid && !since[31] && => is_valid &&
// mutant: is_valid      = number_newest == {1'b1, place}; => is_valid      = number_newest[AW];
// mutant: more     <= start && !start_newest[AW]; => more     <= start;
// mutant: start_now ? from_now : from_op => from_op
// mutant: ? time_of_op : soon => ? time_of_op : now

module plx_evb_timers_formal (
    input logic        clk,
    input logic        rst,
    input logic        any_start,
    input logic [31:0] start_number,
    input logic        start_now,
    input logic        any_stop,
    input logic        stop_slot,
    input logic        look_slot,
    input logic        any_take
);
    localparam SLOTS = 2;

    (* anyconst *) logic [1:0] timeout;
    (* anyconst *) logic       slot;

    logic        running = 0;
    logic [31:0] now = 0, time_of_op = 0;
    logic        room, look_expected, due, examining, looking;
    logic [1:0]  expected;
    logic [31:0] due_number;

    // One operation at a time; the slots are cleared while there is a reset.
    logic clear_slot = 0;
    wire  take  = due && any_take && !rst;
    wire  start = any_start && room && !take && !rst;
    wire  stop  = any_stop && !any_start && !take && !rst;

    plx_evb_timers #(.SLOTS(SLOTS)) dut (
        .clk, .rst, .cfg_timeout({29'd0, timeout}), .now, .time_of_op,
        .clear(rst), .clear_slot,
        .start, .start_number, .start_now, .room,
        .stop, .stop_slot, .look_slot, .look_expected, .expected,
        .due, .examining, .looking, .due_number, .take
    );

    // The first cycles are a reset, in which both slots are cleared.
    logic [1:0] age = 0;
    always_comb if (age < 2) assume (rst);
    always_comb if (age == 2) assume (!rst);

    // The message of the slot: whether it is expected, its number and its time-out; how many are.
    logic        held = 0, taken = 0;
    logic [31:0] number = 0, deadline = 0;
    logic [1:0]  all = 0, all_before = 0;

    always_ff @(posedge clk) begin
        running    <= 1'b1;
        clear_slot <= !clear_slot;
        if (age < 2) age <= age + 1'b1;
        now        <= rst ? 0 : now + 1;
        if (take && !examining) time_of_op <= now;
        if (start && start_number[0] == slot) begin
            held     <= 1'b1;
            taken    <= 1'b0;
            number   <= start_number;
            deadline <= (start_now ? now : time_of_op) + timeout;
        end
        if (stop && stop_slot == slot) held <= 1'b0;
        if (take && due_number[0] == slot) taken <= 1'b1;
        if (start && !all[start_number[0]]) all[start_number[0]] <= 1'b1;
        if (stop) all[stop_slot] <= 1'b0;
        all_before <= all;
        if (rst) begin
            held       <= 1'b0;
            taken      <= 1'b0;
            all        <= 0;
            all_before <= 0;
            time_of_op <= 0;
        end
    end

    // It alone is expected, and has not been accepted.
    wire        alone = held && !taken && all == (slot ? 2'b10 : 2'b01);
    wire [31:0] late = (examining ? time_of_op : now) - deadline;

    always_ff @(posedge clk) if (running && !rst) begin
        if (look_slot == slot) assert (look_expected == held);
        assert (expected == {1'b0, all_before[0]} + {1'b0, all_before[1]});
        if (due && due_number[0] == slot) assert (held && due_number == number && !late[31]);
        if (alone && !looking && !due && !examining) assert (late[31]);
        cover (take && examining);
        cover (due && deadline == 3 && now == 7);
        cover (expected == 2 && !looking && !due);
    end
endmodule
