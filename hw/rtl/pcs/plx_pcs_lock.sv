// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Block lock (IEEE 802.3, figure 49-14): 64 valid headers in a row lock; 16 invalid ones among 64
// unlock. Not locked, an invalid header makes the transceiver move the boundary of blocks by a bit;
// headers count again after SLIP_CYCLES, when it has done so.

module plx_pcs_lock #(
    parameter SLIP_CYCLES = 32  // from a slip to the first header behind it, at least
) (
    input  logic       clk,
    input  logic       rst,

    // Header of each block; the transceiver has a signal (signal_ok).
    input  logic [1:0] header,
    input  logic       signal_ok,

    // The boundary is known; move it.
    output logic       locked,
    output logic       slip
);
    localparam [6:0] WINDOW = 7'd64;
    localparam [4:0] LIMIT = 5'd16;
    localparam W = $clog2(SLIP_CYCLES + 1);

    generate
        if (SLIP_CYCLES < 1) SLIP_CYCLES_must_be_at_least_1 parameter_error ();
    endgenerate

    // sh_cnt, sh_invalid_cnt, and cycles until slip_done.
    logic [6:0]   seen;
    logic [4:0]   bad;
    logic [W-1:0] moving;
    wire          invalid   = header[0] == header[1];
    wire  [6:0]   seen_next = seen + 7'd1;
    wire  [4:0]   bad_next  = bad + {4'd0, invalid};
    wire          loses     = invalid && (!locked || bad_next == LIMIT);
    wire          ends      = seen_next == WINDOW;

    always_ff @(posedge clk) begin
        slip <= 1'b0;
        if (moving != 0) begin
            moving <= moving - 1'b1;
        end else begin
            seen <= loses || ends ? 7'd0 : seen_next;
            bad  <= loses || ends ? 5'd0 : bad_next;
            if (loses) begin
                locked <= 1'b0;
                slip   <= 1'b1;
                moving <= SLIP_CYCLES[W-1:0];
            end else if (ends && bad_next == 0) begin
                locked <= 1'b1;
            end
        end
        if (rst || !signal_ok) begin
            locked <= 1'b0;
            slip   <= 1'b0;
            moving <= '0;
            seen   <= 7'd0;
            bad    <= 5'd0;
        end
    end
endmodule
