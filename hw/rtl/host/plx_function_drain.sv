// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Whether a function that can begin nothing new has come to rest: each of its sources has been at rest once
// since the cycle before `run` rose, and each write that had been accepted by then has ended.

module plx_function_drain #(
    parameter PORTS   = 4, // ports of the card
    parameter COUNT_W = 16 // bits of the counts of writes: of twice as many as can be on their way
) (
    input  logic             clk,
    input  logic             rst,

    // Nothing new can begin from the cycle before `run` rises on, until it falls; done: for good, until it does.
    input  logic             run,
    output logic             done,

    // Ports that are another function's: they need not rest.
    input  logic [PORTS-1:0] foreign,

    // Sources of each port: a payload is being placed; the ring has nothing fetched or to report, and the port
    // nothing to send. Those of all: events, as plx_event_writer; an interrupt is offered.
    input  logic [PORTS-1:0] s_placing,
    input  logic [PORTS-1:0] s_ring_quiet,
    input  logic [2:0]       s_event_rest,
    input  logic             s_irq_busy,

    // One cycle for each: a write is accepted, and has ended, in the same order.
    input  logic             s_accepted,
    input  logic             s_ended
);
    // Sources that have not been at rest since; then the writes up to the last one that counts.
    localparam EVENTS = 2 * PORTS, SOURCES = EVENTS + 4;
    logic               waiting;
    logic [SOURCES-1:0] left;
    // At rest a cycle ago: what would begin anew has been disabled long before.
    logic [SOURCES-1:0] rested;
    // Events of others may follow without end: places of a record rest one after the other.
    wire  [2:0]         turn  = {!left[EVENTS+1], !left[EVENTS], 1'b1};
    wire  [SOURCES-1:0] quiet = rested & {1'b1, turn, {EVENTS{1'b1}}};
    logic [COUNT_W-1:0] accepted, ended, target;
    wire  [COUNT_W-1:0] ahead = ended - target;
    // One cycle ago: a source is seen at rest as late.
    logic               was_accepted;

    always_ff @(posedge clk) begin
        was_accepted <= s_accepted;
        rested       <= {!s_irq_busy, s_event_rest, s_ring_quiet, ~s_placing};
        if (was_accepted) accepted <= accepted + 1'b1;
        if (s_ended) ended <= ended + 1'b1;
        left <= run ? left & ~quiet & ~{4'b0000, foreign, foreign} : '1;
        if (!waiting) target <= accepted + {{(COUNT_W-1){1'b0}}, was_accepted};
        waiting <= run && (waiting || left == 0);
        done    <= run && (done || waiting && !ahead[COUNT_W-1]);
        if (rst) begin
            left         <= '1;
            waiting      <= 1'b0;
            done         <= 1'b0;
            was_accepted <= 1'b0;
            accepted     <= '0;
            ended        <= '0;
        end
    end
endmodule
