// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Lock begins behind 8 valid headers in a row, and each 8 begin it; it ends only behind 3 invalid ones among 8,
// or without signal, and ends behind 5 invalid ones in a row, of which 3 are in one window. A slip is where there
// is no lock, and the boundary is then left alone for as long as a slip takes. (64 and 16 in the card.)
// formal: aiger
// formal: always 3
// mutant: !locked || bad_next == LIMIT[N-1:0] => bad_next == LIMIT[N-1:0]
// mutant: seen_next == WINDOW[N-1:0] => seen_next == 'd7
// mutant: bad  <= loses || ends ? '0 => bad  <= loses ? '0
// mutant: SLIP_CYCLES[W-1:0] => 'd1

module plx_pcs_lock_formal (
    input logic       clk,
    input logic       rst,
    input logic [1:0] header,
    input logic       signal_ok
);
    logic locked, slip;

    plx_pcs_lock #(.SLIP_CYCLES(3), .WINDOW(8), .LIMIT(3)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);

    // Invalid headers in a row, and cycles since a slip.
    logic [2:0] bad = 0;
    logic [1:0] still = 0;

    always_ff @(posedge clk) begin
        bad   <= header[0] != header[1] ? 3'd0 : bad + {2'd0, bad != 5};
        still <= rst || !signal_ok ? 2'd0 : slip ? 2'd2 : still - {1'b0, still != 0};
        if (running) begin
            if (slip) assert (!locked && still == 0);
            if (bad == 5) assert (!locked);
            if ($past(rst || !signal_ok)) assert (!locked && !slip);
        end
    end
endmodule
