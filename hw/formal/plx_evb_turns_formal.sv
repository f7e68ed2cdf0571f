// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// At most one operation begins, what can be sent first; time-outs that are over before the others. Each
// trigger is accepted, waits, or is counted as lost, which none is while fewer than 15 wait. A trigger waits for
// at most one other, and the others for at most one trigger. Where something waits, something begins.
// formal: aiger
// formal: always 20
// formal: cover 20
// mutant: !(triggered_last && others) => !others
// mutant: !(triggered_last && others) => 1'b1
// mutant: assign lost        = trigger && !go_trigger && &arrivals; => assign lost = trigger && &arrivals;
// mutant: if (!trigger && go_trigger) arrivals <= arrivals - 1'b1; => if (go_trigger) arrivals <= arrivals - 1'b1;
// mutant: assign settled     = quiet && !wants; => assign settled     = quiet;

module plx_evb_turns_formal (
    input logic clk,
    input logic clear,
    input logic quiet,
    input logic can,
    input logic room,
    input logic waits,
    input logic waits_again,
    input logic timer_due,
    input logic timer_examining,
    input logic timer_looking,
    input logic release_over,
    input logic release_late,
    input logic trigger,
    input logic full,
    input logic at_limit,
    input logic change,
    input logic command,
    input logic decide,
    input logic flow,
    input logic feedback
);
    logic go_again, go_new, go_release, go_expire, go_trigger, accepted, go_direct, go_change, go_command, go_decide,
          go_flow, go_feedback, settled, begins, lost,
          none_waits;

    plx_evb_turns dut (
        .clk, .clear, .quiet, .can, .room, .waits, .waits_again, .timer_due, .timer_examining, .timer_looking,
        .release_over, .release_late, .trigger, .full, .at_limit, .change, .command, .decide, .flow, .feedback,
        .go_again, .go_new, .go_release, .go_expire, .go_trigger, .accepted, .go_direct, .go_change, .go_command,
        .go_decide, .go_flow, .go_feedback, .settled, .none_waits, .begins, .lost
    );

    logic running = 0;
    always_comb if (!running) assume (clear);

    wire [9:0] starts  = {go_again, go_new, go_release, go_expire, go_trigger, go_change, go_command, go_decide, go_flow,
                          go_feedback};
    // What waits counts from the cycle after on.
    logic      again = 0, changes = 0, commands = 0, decides = 0, flows = 0, feedbacks = 0;
    wire       others  = changes || commands || decides || flows || feedbacks;
    wire       other   = go_change || go_command || go_decide || go_flow || go_feedback;
    wire       sending = can && (waits || again);
    wire       timers  = timer_due || timer_examining || release_over;

    // Triggers that wait; what began last, of triggers and the others.
    logic [4:0] waiting = 0;
    logic       trigger_last = 0, other_last = 0;

    always_ff @(posedge clk) begin
        running <= 1'b1;
        {again, changes, commands, decides, flows, feedbacks} <= {waits_again, change, command, decide, flow, feedback};
        waiting <= waiting + trigger - go_trigger - lost;
        if (go_trigger || other) begin
            trigger_last <= go_trigger;
            other_last   <= other;
        end
        if (clear) begin
            {again, changes, commands, decides, flows, feedbacks} <= 0;
            waiting      <= 0;
            trigger_last <= 0;
            other_last   <= 0;
        end
    end

    always_ff @(posedge clk) if (running && !clear) begin
        // One at a time, of those that wait, and the messages first.
        assert ((starts & (starts - 1'b1)) == 0);
        if (starts != 0) assert (quiet);
        if (quiet && sending) assert ((starts & 10'h0ff) == 0 && (go_again || go_new) == room && go_again == (room && again));
        if (go_again || go_new) assert (sending);
        assert (none_waits == !(waits || again));
        if (timers) assert (!go_trigger && !other);
        assert (!go_change || changes);
        assert (!go_command || commands);
        assert (!go_decide || decides);
        assert (!go_flow || flows);
        assert (!go_feedback || feedbacks);
        assert (begins || starts[7:0] == 0);
        // Triggers.
        assert (waiting <= 15);
        if (go_trigger) assert (trigger || waiting != 0);
        if (lost) assert (trigger && !go_trigger && waiting == 15);
        assert (accepted == (go_trigger && !full && !at_limit));
        assert (go_direct == (accepted && can && room));
        // Turns.
        if (go_trigger && trigger_last) assert (!others);
        if (other && other_last) assert (!trigger && waiting == 0);
        if (quiet && !sending && !timers && (others || trigger || waiting != 0)) assert (go_trigger || other);
        cover (lost);
        cover (go_trigger && other_last && others);
        cover (other && trigger_last && trigger);
    end

    wire unused = settled;
endmodule
