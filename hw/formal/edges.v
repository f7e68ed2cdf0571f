// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Replaces a clock by a signal of its edges: the registers of several clocks then step
// together, each in those steps of the solver in which its own clock is 1, and the solver may choose
// any order of edges, and edges at once. A proof of two clocks takes half the steps of one in which
// clocks rise and fall, and a third of the registers.

(* techmap_celltype = "$dff" *)
module edges (CLK, D, Q);
    parameter WIDTH = 1;
    parameter CLK_POLARITY = 1;
    input              CLK;
    input  [WIDTH-1:0] D;
    output [WIDTH-1:0] Q;

    \$ff #(.WIDTH(WIDTH)) _TECHMAP_REPLACE_ (.D(CLK ? D : Q), .Q(Q));
endmodule
