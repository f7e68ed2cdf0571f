// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Events that wait for a receive buffer, and those in flight. Whether any waits, and whether more may, is
// known at the begin of a cycle.

module plx_evb_pending #(
    parameter SLOTS = 256  // events in flight, a power of two
) (
    input  logic                   clk,
    input  logic                   clear,
    input  logic [15:0]            cfg_limit,

    // A trigger is accepted, and sent at once; the first that waits is sent; an event waits again, and is
    // sent again; one is not in flight any more.
    input  logic                   accepted,
    input  logic                   direct,
    input  logic                   sends,
    input  logic                   reassigns,
    input  logic                   sends_again,
    input  logic                   retires,

    // No more events in flight; no more that wait; some wait for the first time.
    output logic                   full,
    output logic                   at_limit,
    output logic                   waits,

    // In flight; all that wait, and the most that did; accepted triggers.
    output logic [$clog2(SLOTS):0] in_flight,
    output logic [$clog2(SLOTS):0] pending,
    output logic [$clog2(SLOTS):0] peak,
    output logic [31:0]            triggered
);
    localparam SW = $clog2(SLOTS);

    logic [SW:0] waiting;

    wire defers = accepted && !direct;
    wire more   = defers || reassigns;
    wire fewer  = sends || sends_again;
    // With one more, so that there are no negative numbers.
    wire [17:0] after = {{(17 - SW) {1'b0}}, pending} + 18'd1;
    wire [17:0] limit = {2'd0, cfg_limit};

    assign full = in_flight[SW];

    always_ff @(posedge clk) begin
        if (accepted) triggered <= triggered + 1'b1;
        if (accepted) in_flight <= in_flight + 1'b1;
        else if (retires) in_flight <= in_flight - 1'b1;
        if (defers) waiting <= waiting + 1'b1;
        else if (sends) waiting <= waiting - 1'b1;
        waits <= defers || (sends ? waiting != 1 : waiting != 0);
        if (more) pending <= pending + 1'b1;
        else if (fewer) pending <= pending - 1'b1;
        at_limit <= more ? after >= limit : fewer ? after > limit + 18'd1 : after > limit;
        if (defers && pending >= peak) peak <= pending + 1'b1;
        if (clear) begin
            triggered <= '0;
            in_flight <= '0;
            waiting   <= '0;
            waits     <= 1'b0;
            pending   <= '0;
            at_limit  <= cfg_limit == 0;
            peak      <= '0;
        end
    end
endmodule
