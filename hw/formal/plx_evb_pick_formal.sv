// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The first member from a place on is a member, no other one is before it, and `above` is all behind it.
// formal: induction 2
// mutant: fill_ahead = fill_ahead | (fill_ahead << 16); => fill_ahead = fill_ahead | (fill_ahead << 14);
// mutant: wire [N-1:0] fill = |ahead ? => wire [N-1:0] fill = |from ?
// mutant: fill_all   = fill_all | (fill_all << 4); =>

module plx_evb_pick_formal #(
    parameter N = 32
) (
    input logic         clk,
    input logic [N-1:0] members,
    input logic [N-1:0] from
);
    (* anyconst *) logic [4:0] which;

    logic [N-1:0] first, above;

    plx_evb_pick #(.N(N)) dut (.members, .from, .first, .above);

    wire [N-1:0] ahead  = members & from;
    wire [N-1:0] before = ahead != 0 ? ahead : members;

    always_ff @(posedge clk) begin
        assert ((first & (first - 1'b1)) == 0);
        assert ((first != 0) == (members != 0));
        if (first[which]) begin
            assert (before[which]);
            assert ((before & ~({N{1'b1}} << which)) == 0);
            assert (above == ({N{1'b1}} << which) << 1);
        end
        if (first == 0) assert (above == 0);
    end
endmodule
