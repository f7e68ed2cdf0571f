// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// What the scheduler does next: what can be sent is sent first; then time-outs that are over, triggers,
// and the others. Triggers and others take turns where both wait. Triggers that come faster than they are
// taken are counted. What waits is looked at in the cycle before: each operation takes two cycles at least,
// so that what it took is not seen again.

module plx_evb_turns (
    input  logic clk,
    input  logic clear,

    // Nothing is under way; an event can be sent, but for the room that messages need; one waits, or one
    // that is sent again.
    input  logic quiet,
    input  logic can,
    input  logic room,
    input  logic waits,
    input  logic waits_again,

    // Time-outs that are over; not all have been looked at; the message without an event, due at the time
    // of the time-outs that were taken last.
    input  logic timer_due,
    input  logic timer_examining,
    input  logic timer_looking,
    input  logic release_over,
    input  logic release_late,

    // A trigger of this cycle, and why it would be refused; the others, first one first.
    input  logic trigger,
    input  logic full,
    input  logic at_limit,
    input  logic change,
    input  logic command,
    input  logic decide,
    input  logic flow,
    input  logic feedback,

    // What begins, at most one; of triggers whether it is taken, and whether it is sent at once.
    output logic go_again,
    output logic go_new,
    output logic go_release,
    output logic go_expire,
    output logic go_trigger,
    output logic accepted,
    output logic go_direct,
    output logic go_change,
    output logic go_command,
    output logic go_decide,
    output logic go_flow,
    output logic go_feedback,

    // Nothing can be sent; no event waits; an operation other than sending begins; a trigger is lost.
    output logic settled,
    output logic none_waits,
    output logic begins,
    output logic lost
);
    logic [3:0] arrivals;
    logic       triggered_last;

    // As it was in the cycle before.
    logic again, changes, commands, decides, flows, feedbacks;

    wire wants     = can && !none_waits;
    wire free_slot = settled && !release_over && !timer_due && !timer_examining;
    wire others    = changes || commands || decides || flows || feedbacks;
    wire go_other  = free_slot && !go_trigger;

    assign none_waits  = !waits && !again;
    assign settled     = quiet && !wants;
    assign go_again    = quiet && wants && room && again;
    assign go_new      = quiet && wants && room && !again;
    assign go_release  = settled && release_over && !timer_examining && (release_late || !(timer_due || timer_looking));
    assign go_expire   = settled && timer_due && !go_release;
    assign go_trigger  = free_slot && (trigger || arrivals != 0) && !(triggered_last && others);
    assign accepted    = go_trigger && !full && !at_limit;
    assign go_direct   = accepted && can && room;
    assign go_change   = go_other && changes;
    assign go_command  = go_other && !changes && commands;
    assign go_decide   = go_other && !changes && !commands && decides;
    assign go_flow     = go_other && !changes && !commands && !decides && flows;
    assign go_feedback = go_other && !changes && !commands && !decides && !flows && feedbacks;
    assign begins      = go_trigger || go_release || go_expire || go_other;
    assign lost        = trigger && !go_trigger && &arrivals;

    always_ff @(posedge clk) begin
        {again, changes, commands, decides, flows, feedbacks} <= {waits_again, change, command, decide, flow, feedback};
        if (free_slot && (go_trigger || others)) triggered_last <= go_trigger;
        if (trigger && !go_trigger && !lost) arrivals <= arrivals + 1'b1;
        if (!trigger && go_trigger) arrivals <= arrivals - 1'b1;
        if (clear) begin
            arrivals       <= '0;
            triggered_last <= 1'b0;
            {again, changes, commands, decides, flows, feedbacks} <= '0;
        end
    end
endmodule
