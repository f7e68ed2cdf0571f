// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Turns a cover into an assertion of its negation, so that a counterexample reaches it.

(* techmap_celltype = "$cover" *)
module covers (A, EN);
    input A, EN;

    \$assert _TECHMAP_REPLACE_ (.A(!A), .EN(EN));
endmodule
