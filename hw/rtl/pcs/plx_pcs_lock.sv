// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Block lock (IEEE 802.3, figure 49-14): 64 valid headers in a row lock; 16 invalid ones among 64
// unlock. Not locked, an invalid header makes the transceiver move the boundary of blocks by a bit;
// headers count again after SLIP_CYCLES, when it has done so.

module plx_pcs_lock #(
    parameter SLIP_CYCLES = 32,  // from a slip to the first header behind it, at least
    parameter WINDOW      = 64,  // headers; of the standard
    parameter LIMIT       = 16   // invalid ones of them; of the standard
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
    localparam W = $clog2(SLIP_CYCLES + 1), N = $clog2(WINDOW + 1);

    generate
        if (SLIP_CYCLES < 1) SLIP_CYCLES_must_be_at_least_1 parameter_error ();
        if (LIMIT < 2 || WINDOW < LIMIT) LIMIT_must_be_2_to_WINDOW parameter_error ();
    endgenerate

    // sh_cnt, sh_invalid_cnt, and cycles until slip_done.
    logic [N-1:0] seen, bad;
    logic [W-1:0] moving;
    wire          invalid   = header[0] == header[1];
    wire  [N-1:0] seen_next = seen + 1'b1;
    wire  [N-1:0] bad_next  = bad + {{(N - 1) {1'b0}}, invalid};
    wire          loses     = invalid && (!locked || bad_next == LIMIT[N-1:0]);
    wire          ends      = seen_next == WINDOW[N-1:0];

    always_ff @(posedge clk) begin
        slip <= 1'b0;
        if (moving != 0) begin
            moving <= moving - 1'b1;
        end else begin
            seen <= loses || ends ? '0 : seen_next;
            bad  <= loses || ends ? '0 : bad_next;
            if (loses) begin
                locked <= 1'b0;
                slip   <= 1'b1;
                moving <= SLIP_CYCLES[W-1:0];
            end else if (ends) begin
                // Without lock, each of them was valid.
                locked <= 1'b1;
            end
        end
        if (rst || !signal_ok) begin
            locked <= 1'b0;
            slip   <= 1'b0;
            moving <= '0;
            seen   <= '0;
            bad    <= '0;
        end
    end

`ifdef FORMAL
    // Valid headers in a row, up to WINDOW, and invalid ones among the last WINDOW, counted from any cycle on.
    (* anyseq *) logic f_begin;
    logic [N-1:0] f_good = 0, f_since = 0, f_bad = 0;
    logic         f_marked = 0, f_locked = 0, f_counted = 0, f_up = 0;
    wire          f_counts = !rst && signal_ok && moving == 0;

    always_ff @(posedge clk) begin
        if (rst || !signal_ok || moving != 0) f_good <= '0;
        else f_good <= invalid ? '0 : f_good + {{(N - 1) {1'b0}}, f_good != WINDOW};
        if (rst || !signal_ok) begin
            f_marked <= 1'b0;
        end else if (f_counts) begin
            if (f_marked && f_since < WINDOW) begin
                f_since <= f_since + 1'b1;
                f_bad   <= f_bad + {{(N - 1) {1'b0}}, invalid};
            end else begin
                f_marked <= f_begin;
                f_since  <= 'd1;
                f_bad    <= {{(N - 1) {1'b0}}, invalid};
            end
        end
        f_locked  <= locked;
        f_counted <= f_counts;
        f_up      <= 1'b1;
    end

    // The reset has been.
    always_comb if (f_up) begin
        assert (seen < WINDOW && bad < LIMIT && bad <= seen);
        if (!locked) assert (bad == 0);
        if (!locked && moving == 0) assert (seen <= f_good);
        if (moving != 0) assert (!locked && seen == 0);
        if (f_marked) begin
            assert (f_since != 0 && f_since <= WINDOW && f_bad <= f_since);
            if (f_counted && f_locked && !locked) assert (f_since < WINDOW || f_bad >= LIMIT);
            else if (f_since >= seen) assert (bad <= f_bad);
            else assert (bad <= f_bad + seen - f_since);
        end
        // Each WINDOW of valid headers lock.
        if (locked && !f_locked) assert (f_good == WINDOW);
        if (f_good == WINDOW) assert (locked);
    end
`endif
endmodule
