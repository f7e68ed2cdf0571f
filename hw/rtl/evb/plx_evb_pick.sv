// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The first of a set from a place on, or the first of all; no registers. Each bit asks for those before
// it at once: trees, not carry chains.

module plx_evb_pick #(
    parameter N = 32  // members
) (
    // The set, and all bits from the place on.
    input  logic [N-1:0] members,
    input  logic [N-1:0] from,
    // At most one bit; none if the set is empty.
    output logic [N-1:0] first
);
    generate
        if (N < 1 || N > 32) N_must_be_1_to_32 parameter_error ();
    endgenerate

    wire [N-1:0] ahead = members & from;

    wire         any   = |ahead;

    generate
        for (genvar i = 0; i < N; i = i + 1) begin : g_first
            localparam [N-1:0] BEFORE = ({{(N - 1) {1'b0}}, 1'b1} << i) - 1'b1;
            wire before_ahead = |(ahead & BEFORE);
            wire before_all   = |(members & BEFORE);

            assign first[i] = any ? ahead[i] && !before_ahead : members[i] && !before_all;
        end
    endgenerate
endmodule
