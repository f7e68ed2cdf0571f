// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Outcomes of the payloads of each list: eight counters of 64 bits for each of 128 lists, in one
// memory, which is cleared after a reset. A counter can increment in every second cycle.

module plx_clop_status (
    input  logic        clk,
    input  logic        rst,

    // Counts, once the memory is cleared.
    output logic        ready,
    input  logic        count,
    input  logic [6:0]  of_list,
    input  logic [2:0]  status,

    // Reads of software; the high half is that of the last low half. Writes have no effect.
    input  logic        win_outcome_valid,
    output logic        win_outcome_ready,
    input  logic        win_write,
    input  logic [14:0] win_addr,
    output logic [31:0] win_outcome_rdata
);
    // Cleared up to here.
    logic [10:0] cleared;
    assign ready = cleared[10];

    logic        counting, reading;
    logic [9:0]  at;
    logic [63:0] value;
    logic [31:0] high;

    wire high_half = win_addr[2];
    wire read      = win_outcome_valid && !win_write && !high_half && !count && !reading;

    plx_ram_sdp #(
        .WIDTH(64),
        .DEPTH(1024)
    ) counters (
        .clk,
        .w_enable(!ready || counting),
        .w_address(ready ? at : cleared[9:0]),
        .w_data(ready ? value + 1'b1 : 64'd0),
        .r_enable(count || read),
        .r_address(count ? {of_list, status} : win_addr[12:3]),
        .r_data(value)
    );

    always_ff @(posedge clk) begin
        cleared  <= rst ? '0 : ready ? cleared : cleared + 1'b1;
        counting <= !rst && count;
        reading  <= !rst && read;
        at       <= {of_list, status};
        if (reading) high <= value[63:32];
    end

    assign win_outcome_ready = win_write || high_half || reading;
    assign win_outcome_rdata = high_half ? high : value[31:0];

    wire unused = &{1'b0, win_addr[14:13], win_addr[1:0]};
endmodule
