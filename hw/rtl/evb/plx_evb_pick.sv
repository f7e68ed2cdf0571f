// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The first of a set from a place on, or the first of all; no registers. `above` has all bits behind
// the one that is found. Trees, not carry chains.

module plx_evb_pick #(
    parameter N = 32  // members
) (
    // The set, and all bits from the place on.
    input  logic [N-1:0] members,
    input  logic [N-1:0] from,
    // At most one bit; none if the set is empty.
    output logic [N-1:0] first,
    output logic [N-1:0] above
);
    generate
        if (N < 1 || N > 32) N_must_be_1_to_32 parameter_error ();
    endgenerate

    wire [N-1:0] ahead = members & from;

    // Bits at or above the lowest one.
    logic [N-1:0] fill_ahead, fill_all;
    always_comb begin
        fill_ahead = ahead;
        fill_all   = members;
        fill_ahead = fill_ahead | (fill_ahead << 1);
        fill_all   = fill_all | (fill_all << 1);
        fill_ahead = fill_ahead | (fill_ahead << 2);
        fill_all   = fill_all | (fill_all << 2);
        fill_ahead = fill_ahead | (fill_ahead << 4);
        fill_all   = fill_all | (fill_all << 4);
        fill_ahead = fill_ahead | (fill_ahead << 8);
        fill_all   = fill_all | (fill_all << 8);
        fill_ahead = fill_ahead | (fill_ahead << 16);
        fill_all   = fill_all | (fill_all << 16);
    end

    wire [N-1:0] fill = |ahead ? fill_ahead : fill_all;

    assign above = fill << 1;
    assign first = fill & ~above;
endmodule
