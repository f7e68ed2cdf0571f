// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Owner of each event queue and of its interrupt vector: a memory of 32 words with eight owners each, which
// function 0 writes. Look-ups are combinational: an owner is valid in the cycle of its request. After a reset,
// function 0 owns all queues. The words are cleared one a cycle, and register accesses wait for the last one. A
// valid flag for each word would need no clearing, but would lengthen the look-up, which is late in its cycle.

module plx_queue_owners #(
    parameter ASKERS = 4  // look-ups at the same time
) (
    input  logic                clk,
    input  logic                rst,

    // Registers: word n has the owners of queues 8n to 8n + 7, four bits each.
    input  logic                win_valid,
    output logic                win_ready,
    input  logic                win_write,
    input  logic [6:0]          win_addr,
    input  logic [31:0]         win_wdata,
    input  logic [3:0]          win_wstrb,
    output logic [31:0]         win_rdata,

    // Look-ups: a queue, its owner.
    input  logic [ASKERS*8-1:0] s_queue,
    output logic [ASKERS*3-1:0] m_owner
);
    localparam WORDS = 32;

    generate
        if (ASKERS < 1) ASKERS_must_be_at_least_1 parameter_error ();
    endgenerate

    logic [23:0] words [0:WORDS-1];
    // Words that have been cleared since the reset.
    logic [5:0]  cleared;
    wire         known = cleared[5];

    wire [4:0]  number = win_addr[6:2];
    wire [23:0] now    = words[number];
    logic [23:0] written;

    integer i;
    always_comb begin
        for (i = 0; i < 8; i = i + 1) begin
            win_rdata[i*4 +: 4]  = {1'b0, now[i*3 +: 3]};
            written[i*3 +: 3]    = win_wstrb[i/2] ? win_wdata[i*4 +: 3] : now[i*3 +: 3];
        end
    end

    assign win_ready = known;

    always_ff @(posedge clk) cleared <= rst ? 6'd0 : cleared + 6'(!known);

    wire [4:0] place = known ? number : cleared[4:0];

    always_ff @(posedge clk) if (!known || win_valid && win_write) words[place] <= known ? written : '0;

    generate
        for (genvar a = 0; a < ASKERS; a = a + 1) begin : g_ask
            wire [7:0]  queue = s_queue[a*8 +: 8];
            wire [23:0] word  = words[queue[7:3]];
            assign m_owner[a*3 +: 3] = word[queue[2:0]*3 +: 3] & {3{known}};
        end
    endgenerate

    wire unused = &{1'b0, win_addr[1:0], win_wdata[31], win_wdata[27], win_wdata[23], win_wdata[19], win_wdata[15],
                    win_wdata[11], win_wdata[7], win_wdata[3]};
endmodule
