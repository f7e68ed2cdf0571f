// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The block's number of a function to the card's: 0 is the physical one in both, the virtual ones are 1 to 7
// in the card and begin at FIRST_VF in the block. Any other has bit 7 set, and is none of the card's.

module plx_pcie_func #(
    parameter FIRST_VF = 4
) (
    input  logic [7:0] block,
    output logic [7:0] card
);
    localparam [7:0] FIRST = FIRST_VF;

    wire [7:0] number = block - FIRST;

    assign card = block == 0 ? 8'd0 : number < 8'd7 ? {5'd0, number[2:0] + 3'd1} : {1'b1, block[6:0]};
endmodule
