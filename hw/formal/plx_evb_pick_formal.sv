// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The first member from a place on is a member, and no other one is before it.
// formal: induction 2
// mutant: ahead[i] && !before_ahead => ahead[i]
// mutant: |(members & BEFORE) => |(ahead & BEFORE)
// mutant: wire         any   = |ahead; => wire         any   = |from;

module plx_evb_pick_formal #(
    parameter N = 32
) (
    input logic         clk,
    input logic [N-1:0] members,
    input logic [N-1:0] from
);
    (* anyconst *) logic [4:0] which;

    logic [N-1:0] first;

    plx_evb_pick #(.N(N)) dut (.members, .from, .first);

    wire [N-1:0] ahead  = members & from;
    wire [N-1:0] before = ahead != 0 ? ahead : members;

    always_ff @(posedge clk) begin
        assert ((first & (first - 1'b1)) == 0);
        assert ((first != 0) == (members != 0));
        if (first[which]) begin
            assert (before[which]);
            assert ((before & ~({N{1'b1}} << which)) == 0);
        end
    end
endmodule
