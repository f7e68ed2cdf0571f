// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// What the feeders know of the decisions, and the message without an event that tells them when no
// other message does in time.

module plx_evb_release (
    input  logic        clk,
    input  logic        clear,
    input  logic [31:0] now,
    input  logic [30:0] cfg_timeout,

    // All events before this one are decided; feeders that take part.
    input  logic [31:0] decided,
    input  logic [31:0] members,

    // More is decided. Feeders are to be told at once. The last message has returned. A message that all
    // feeders have seen says more than they knew. The time of the operation.
    input  logic        arm,
    input  logic [31:0] time_of_op,
    input  logic        hurry,
    input  logic        returned,
    input  logic        message_req,
    input  logic [31:0] says,
    output logic [31:0] told,

    // The message is due; it was at the time of the operation, known in its second cycle; it is sent.
    output logic        over,
    output logic        late,
    input  logic        send,
    input  logic        has_members,

    // The copy of the last one.
    output logic        copied,
    output logic [31:0] number,
    output logic [31:0] copy_decided,
    output logic [31:0] copy_members
);
    logic        armed;
    logic [31:0] deadline;
    wire  [31:0] left     = deadline - now;
    wire  [31:0] left_then = deadline - time_of_op;
    wire         all_told = told == decided;

    always_ff @(posedge clk) begin
        late <= left_then[31] || left_then == 0;
        over <= armed && !all_told && !send && (left[31] || left == 0);
        if (message_req) told <= says;
        if (all_told) begin
            armed  <= 1'b0;
            copied <= 1'b0;
        end
        if (returned) copied <= 1'b0;
        if (arm && !all_told && !armed) begin
            armed    <= 1'b1;
            deadline <= time_of_op + {1'b0, cfg_timeout};
        end
        if (hurry && !all_told && !copied) begin
            armed    <= 1'b1;
            deadline <= now;
        end
        if (send) begin
            deadline <= time_of_op + {1'b0, cfg_timeout};
            if (has_members) begin
                copied       <= 1'b1;
                number       <= number + 1'b1;
                copy_decided <= decided;
                copy_members <= members;
            end
        end
        if (clear) begin
            told    <= '0;
            armed   <= 1'b0;
            copied  <= 1'b0;
            over    <= 1'b0;
            number  <= '0;
        end
    end
endmodule
