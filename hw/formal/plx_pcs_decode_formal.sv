// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// For any block: the decoder's word is legal, or all errors; the encoder makes of a legal one the same block
// again, but for the bits that figure 49-7 shows as zero; and these make no difference to the decoder.
// formal: aiger
// formal: always 2
// mutant: header == pcs_pkg::CONTROL => header != pcs_pkg::DATA
// mutant: (valid & behind) == behind => (valid & behind) != 8'd0
// mutant: && low_c && valid_4 => && low_c
// mutant: code == pcs_pkg::CODE_IDLE || lane => code[6:1] == 6'd0 || lane

module plx_pcs_decode_formal (
    input logic        clk,
    input logic [1:0]  header,
    input logic [63:0] data
);
    logic [2:0]  kind, kind_again;
    logic [1:0]  header_again;
    logic [63:0] xgmii_rxd, data_again;
    logic [7:0]  xgmii_rxc;

    plx_pcs_decode dut (.*);
    plx_pcs_encode again (
        .xgmii_txd(xgmii_rxd), .xgmii_txc(xgmii_rxc), .kind(kind_again), .header(header_again), .data(data_again)
    );

    // The same block without the bits that are ignored.
    logic [2:0]  kind_clean;
    logic [63:0] rxd_clean;
    logic [7:0]  rxc_clean;
    wire  [63:0] clean = header == 2'b10 ? data : data & carry;

    plx_pcs_decode ignores (.header, .data(clean), .kind(kind_clean), .xgmii_rxd(rxd_clean), .xgmii_rxc(rxc_clean));

    // Bits of each control block that carry something.
    logic [63:0] carry;
    logic        known;

    always_comb begin
        known = 1'b1;
        case (data[7:0])
            8'h33: carry = 64'hFFFF_FF0F_FFFF_FFFF;
            8'h66: carry = 64'hFFFF_FF0F_FFFF_FFFF;
            8'h87: carry = 64'hFFFF_FFFF_FFFF_80FF;
            8'h99: carry = 64'hFFFF_FFFF_FFC0_FFFF;
            8'hAA: carry = 64'hFFFF_FFFF_E0FF_FFFF;
            8'hB4: carry = 64'hFFFF_FFF0_FFFF_FFFF;
            8'hCC: carry = 64'hFFFF_F8FF_FFFF_FFFF;
            8'hD2: carry = 64'hFFFC_FFFF_FFFF_FFFF;
            8'hE1: carry = 64'hFEFF_FFFF_FFFF_FFFF;
            8'h1E, 8'h2D, 8'h55, 8'h78, 8'h4B, 8'hFF: carry = {64{1'b1}};
            default: begin
                carry = {64{1'b1}};
                known = 1'b0;
            end
        endcase
    end

    always_ff @(posedge clk) begin
        assert (kind_again == kind);
        if (header == 2'b10) assert (kind == 3'd3);
        if (header == 2'b00 || header == 2'b11 || header == 2'b01 && !known) assert (kind == 3'd4);
        if (kind == 3'd4) assert (xgmii_rxc == 8'hFF && xgmii_rxd == {8{8'hFE}});
        else assert (header_again == header && data_again == clean);
        assert (kind_clean == kind && rxd_clean == xgmii_rxd && rxc_clean == xgmii_rxc);
    end
endmodule
