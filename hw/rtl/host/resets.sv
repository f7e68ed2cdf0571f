// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Resets of the card. A reset from outside is one of everything. One by register leaves the host bus
// logic as it is: first no write is begun any more, and the one on its way out ends; then all others
// are reset, while reads that are open come to their end, with data or by their timeout, and what
// they bring is thrown away. So the host never sees half a TLP, and no answer finds another asker.

module resets (
    // Clocks, and resets from outside, of each or of both; they last a cycle of their clock or more.
    input  logic clk_net,
    input  logic rst_net,
    input  logic clk_core,
    input  logic rst_core,

    // A reset is asked for, for one cycle; it goes on.
    input  logic request,
    output logic resetting,

    // The host bus: nothing is to be begun; what is read is to be thrown away; nothing is on its way.
    output logic quiesce,
    output logic discard,
    input  logic wr_idle,
    input  logic rd_idle,

    // Resets of the host bus logic, and of all others in both clocks.
    output logic host_rst,
    output logic others_rst,
    output logic net_rst
);
    localparam [1:0] RUN = 2'd0, QUIESCE = 2'd1, CLEAR = 2'd2, SETTLE = 2'd3;
    // Long enough for each clock to see a reset, and for both to have left it.
    localparam [4:0] LAST = 5'd31;

    logic [1:0] state;
    logic [4:0] count;
    wire        outside = rst_net || rst_core;

    sync_reset host (.clk(clk_core), .rst_async(outside), .rst(host_rst));
    sync_reset others (.clk(clk_core), .rst_async(outside || discard), .rst(others_rst));
    sync_reset net (.clk(clk_net), .rst_async(outside || discard), .rst(net_rst));

    assign resetting = state != RUN;
    assign quiesce   = resetting;

    always_ff @(posedge clk_core) begin
        count <= state == CLEAR || state == SETTLE ? count + 5'd1 : 5'd0;
        case (state)
            RUN: if (request) state <= QUIESCE;
            QUIESCE: if (wr_idle) begin
                state   <= CLEAR;
                discard <= 1'b1;
            end
            CLEAR: if (count == LAST) begin
                // Not before all reads have ended.
                count <= rd_idle ? 5'd0 : LAST;
                if (rd_idle) begin
                    state   <= SETTLE;
                    discard <= 1'b0;
                end
            end
            default: if (count == LAST) state <= RUN;
        endcase
        if (host_rst) begin
            state   <= RUN;
            discard <= 1'b0;
        end
    end
endmodule
