// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// 64B/66B decoder (IEEE 802.3, 49.2.4 and figure 49-7): a block to a word of XGMII, and its kind. A
// block that is none of the legal ones becomes eight errors. Bits that the figure shows as zero are
// ignored, as 49.2.4.3 requires. Without registers.

module plx_pcs_decode (
    // The block, no longer scrambled.
    input  logic [1:0]  header,
    input  logic [63:0] data,

    // XGMII, lane 0 in the lowest bits.
    output logic [2:0]  kind,
    output logic [63:0] xgmii_rxd,
    output logic [7:0]  xgmii_rxc
);
    // Control characters of the eight codes.
    logic [7:0]  valid, error;
    logic [63:0] characters;

    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_code
            wire [6:0] code = data[8+i*7+:7];
            wire [7:0] lane = code == pcs_pkg::CODE_ERROR ? pcs_pkg::ERROR
                : code == pcs_pkg::CODE_RESERVED_0 ? pcs_pkg::RESERVED_0
                : code == pcs_pkg::CODE_RESERVED_1 ? pcs_pkg::RESERVED_1
                : code == pcs_pkg::CODE_RESERVED_2 ? pcs_pkg::RESERVED_2
                : code == pcs_pkg::CODE_RESERVED_3 ? pcs_pkg::RESERVED_3
                : code == pcs_pkg::CODE_RESERVED_4 ? pcs_pkg::RESERVED_4
                : code == pcs_pkg::CODE_RESERVED_5 ? pcs_pkg::RESERVED_5 : pcs_pkg::IDLE;
            assign characters[i*8+:8] = lane;
            assign valid[i]           = code == pcs_pkg::CODE_IDLE || lane != pcs_pkg::IDLE;
            assign error[i]           = code == pcs_pkg::CODE_ERROR;
        end
    endgenerate

    wire [3:0]  o_0        = data[35:32];
    wire [3:0]  o_4        = data[39:36];
    wire        valid_0    = o_0 == pcs_pkg::CODE_SEQUENCE || o_0 == pcs_pkg::CODE_SIGNAL;
    wire        valid_4    = o_4 == pcs_pkg::CODE_SEQUENCE || o_4 == pcs_pkg::CODE_SIGNAL;
    wire [7:0]  set_0      = o_0 == pcs_pkg::CODE_SIGNAL ? pcs_pkg::SIGNAL : pcs_pkg::SEQUENCE;
    wire [7:0]  set_4      = o_4 == pcs_pkg::CODE_SIGNAL ? pcs_pkg::SIGNAL : pcs_pkg::SEQUENCE;
    wire [7:0]  first      = data[7:0];
    wire        is_control = header == pcs_pkg::CONTROL;
    wire        low_c      = &valid[3:0];
    wire        high_c     = &valid[7:4];

    wire is_d  = header == pcs_pkg::DATA;
    wire is_s  = is_control && first == pcs_pkg::S_;
    wire is_cc = is_control && first == pcs_pkg::CC && low_c && high_c && error == 8'd0;
    wire is_co = is_control && first == pcs_pkg::CO && low_c && valid_4;
    wire is_cs = is_control && first == pcs_pkg::CS && low_c;
    wire is_oc = is_control && first == pcs_pkg::OC && valid_0 && high_c;
    wire is_oo = is_control && first == pcs_pkg::OO && valid_0 && valid_4;
    wire is_os = is_control && first == pcs_pkg::OS && valid_0;

    // A frame that ends in lane i.
    wire [7:0]      is_t;
    wire [72*8-1:0] tails;

    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_end
            wire [7:0]  behind = 8'hFE << i;
            wire [63:0] bytes  = {8'd0, data[63:8]} & ~(64'hFFFF_FFFF_FFFF_FFFF << 8 * i);
            wire [63:0] rest   = characters & (64'hFFFF_FFFF_FFFF_FF00 << 8 * i);
            assign is_t[i]         = is_control && first == pcs_pkg::ENDS[i*8+:8] && (valid & behind) == behind;
            assign tails[i*72+:72] = {72{is_t[i]}} & {8'hFF << i, bytes | rest | {56'd0, pcs_pkg::TERMINATE} << 8 * i};
        end
    endgenerate

    wire [71:0] tail = tails[0+:72] | tails[72+:72] | tails[144+:72] | tails[216+:72] | tails[288+:72] | tails[360+:72]
        | tails[432+:72] | tails[504+:72];

    wire [23:0] low_data  = data[31:8];
    wire [23:0] high_data = data[63:40];
    wire [31:0] low_chars  = characters[31:0];
    wire [31:0] high_chars = characters[63:32];
    wire        is_e       = !(is_d || is_s || is_cc || is_co || is_cs || is_oc || is_oo || is_os || |is_t);

    assign kind = is_d ? pcs_pkg::TYPE_D : is_s || is_cs || is_os ? pcs_pkg::TYPE_S : |is_t ? pcs_pkg::TYPE_T
        : is_e ? pcs_pkg::TYPE_E : pcs_pkg::TYPE_C;
    assign {xgmii_rxc, xgmii_rxd} = tail
        | {72{is_d}}  & {8'h00, data}
        | {72{is_s}}  & {8'h01, data[63:8], pcs_pkg::START}
        | {72{is_cc}} & {8'hFF, characters}
        | {72{is_co}} & {8'h1F, high_data, set_4, low_chars}
        | {72{is_cs}} & {8'h1F, high_data, pcs_pkg::START, low_chars}
        | {72{is_oc}} & {8'hF1, high_chars, low_data, set_0}
        | {72{is_oo}} & {8'h11, high_data, set_4, low_data, set_0}
        | {72{is_os}} & {8'h11, high_data, pcs_pkg::START, low_data, set_0}
        | {72{is_e}}  & {8'hFF, pcs_pkg::ERROR_WORD};
endmodule
