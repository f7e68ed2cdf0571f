// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Reset of the card: by the block's reset, and by a function-level reset of function 0 (PCIe 4.0,
// 6.6.2; PG213, "Configuration Control Interface"). No new TLP begins, those under way end, then the
// card is reset, all of its reads are forgotten, and the block is notified that it is done. Requests of the
// host wait until the card is out of reset.

module plx_pcie_flr (
    input  logic clk,
    input  logic rst,

    // A reset of the function is requested by the host; done, for one cycle.
    input  logic cfg_flr_in_process,
    output logic cfg_flr_done,

    // No TLP of the card begins, and no request of the host goes on to it: a register; no TLP is under way.
    output logic hold,
    input  logic idle,

    // Reset of the card: a register, since it takes effect without clock.
    output logic card_rst
);
    // Reset: as long as synchronisers of all of its clocks need. Leaving it takes as long.
    localparam [1:0] RESET = 0, SETTLE = 1, RUN = 2, DRAIN = 3;
    localparam [5:0] LAST = 63;

    logic [1:0] state;
    logic [5:0] count;
    logic       asked;

    always_ff @(posedge clk) begin
        count        <= state == RESET || state == SETTLE ? count + 6'd1 : 6'd0;
        cfg_flr_done <= 1'b0;
        case (state)
            RESET: if (count == LAST) begin
                state    <= SETTLE;
                card_rst <= 1'b0;
            end
            SETTLE: if (count == LAST) begin
                state        <= RUN;
                hold         <= 1'b0;
                cfg_flr_done <= asked;
            end
            // After `done` the request ends a few cycles later.
            RUN: if (cfg_flr_in_process && !asked) begin
                state <= DRAIN;
                hold  <= 1'b1;
                asked <= 1'b1;
            end else if (!cfg_flr_in_process) begin
                asked <= 1'b0;
            end
            default: if (idle) begin
                state    <= RESET;
                card_rst <= 1'b1;
            end
        endcase
        if (rst) begin
            state        <= RESET;
            card_rst     <= 1'b1;
            hold         <= 1'b1;
            count        <= 6'd0;
            asked        <= 1'b0;
            cfg_flr_done <= 1'b0;
        end
    end
endmodule
