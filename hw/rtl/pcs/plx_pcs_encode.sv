// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// 64B/66B encoder (IEEE 802.3, 49.2.4 and figure 49-7): a word of XGMII to a block, and its kind. A
// word that is none of the legal ones becomes a block of errors. Without registers.

module plx_pcs_encode (
    // XGMII, lane 0 in the lowest bits.
    input  logic [63:0] xgmii_txd,
    input  logic [7:0]  xgmii_txc,

    // The block, not scrambled.
    output logic [2:0]  kind,
    output logic [1:0]  header,
    output logic [63:0] data
);
    // Lanes: characters of control blocks and their codes.
    logic [7:0]  valid, error, ends;
    logic [55:0] codes;

    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_lane
            wire [7:0] lane = xgmii_txd[i*8+:8];
            wire [6:0] code = lane == pcs_pkg::ERROR ? pcs_pkg::CODE_ERROR
                : lane == pcs_pkg::RESERVED_0 ? pcs_pkg::CODE_RESERVED_0
                : lane == pcs_pkg::RESERVED_1 ? pcs_pkg::CODE_RESERVED_1
                : lane == pcs_pkg::RESERVED_2 ? pcs_pkg::CODE_RESERVED_2
                : lane == pcs_pkg::RESERVED_3 ? pcs_pkg::CODE_RESERVED_3
                : lane == pcs_pkg::RESERVED_4 ? pcs_pkg::CODE_RESERVED_4
                : lane == pcs_pkg::RESERVED_5 ? pcs_pkg::CODE_RESERVED_5 : pcs_pkg::CODE_IDLE;
            assign codes[i*7+:7] = code;
            assign error[i]      = xgmii_txc[i] && lane == pcs_pkg::ERROR;
            assign valid[i]      = xgmii_txc[i] && (lane == pcs_pkg::IDLE || code != pcs_pkg::CODE_IDLE);
            assign ends[i]       = xgmii_txc[i] && lane == pcs_pkg::TERMINATE;
        end
    endgenerate

    // Halves of the word: data, control characters, an ordered set, a start.
    wire [7:0] lane_0 = xgmii_txd[7:0];
    wire [7:0] lane_4 = xgmii_txd[39:32];
    wire       low_c  = &valid[3:0];
    wire       high_c = &valid[7:4];
    wire       low_o  = xgmii_txc[3:0] == 4'h1 && (lane_0 == pcs_pkg::SEQUENCE || lane_0 == pcs_pkg::SIGNAL);
    wire       high_o = xgmii_txc[7:4] == 4'h1 && (lane_4 == pcs_pkg::SEQUENCE || lane_4 == pcs_pkg::SIGNAL);
    wire       high_s = xgmii_txc[7:4] == 4'h1 && lane_4 == pcs_pkg::START;
    wire [3:0] o_0    = lane_0 == pcs_pkg::SIGNAL ? pcs_pkg::CODE_SIGNAL : pcs_pkg::CODE_SEQUENCE;
    wire [3:0] o_4    = lane_4 == pcs_pkg::SIGNAL ? pcs_pkg::CODE_SIGNAL : pcs_pkg::CODE_SEQUENCE;

    wire is_d  = xgmii_txc == 8'd0;
    wire is_s  = xgmii_txc == 8'h01 && lane_0 == pcs_pkg::START;
    wire is_cc = low_c && high_c && error == 8'd0;
    wire is_co = low_c && high_o;
    wire is_cs = low_c && high_s;
    wire is_oc = low_o && high_c;
    wire is_oo = low_o && high_o;
    wire is_os = low_o && high_s;

    // A frame that ends in lane i: data before it, control characters behind it.
    wire [7:0]      is_t;
    wire [64*8-1:0] tails;

    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_end
            wire [7:0]  ahead = ~(8'hFF << i);
            wire [7:0]  behind = 8'hFE << i;
            wire [63:0] bytes  = {xgmii_txd[55:0], 8'd0} & ~(64'hFFFF_FFFF_FFFF_FF00 << 8 * i);
            wire [63:0] rest   = {codes, 8'd0} & (64'hFFFF_FFFF_FFFF_8000 << 7 * i);
            assign is_t[i]          = ends[i] && (xgmii_txc & ahead) == 8'd0 && (valid & behind) == behind;
            assign tails[i*64+:64]  = {64{is_t[i]}} & (bytes | rest | {56'd0, pcs_pkg::ENDS[i*8+:8]});
        end
    endgenerate

    wire [63:0] tail = tails[0+:64] | tails[64+:64] | tails[128+:64] | tails[192+:64] | tails[256+:64] | tails[320+:64]
        | tails[384+:64] | tails[448+:64];

    // Parts of blocks that have them where XGMII has them.
    wire [23:0] low_data   = xgmii_txd[31:8];
    wire [23:0] high_data  = xgmii_txd[63:40];
    wire [27:0] low_codes  = codes[27:0];
    wire [27:0] high_codes = codes[55:28];
    wire        is_e       = !(is_d || is_s || is_cc || is_co || is_cs || is_oc || is_oo || is_os || |is_t);

    assign kind   = is_d ? pcs_pkg::TYPE_D : is_s || is_cs || is_os ? pcs_pkg::TYPE_S : |is_t ? pcs_pkg::TYPE_T
        : is_e ? pcs_pkg::TYPE_E : pcs_pkg::TYPE_C;
    assign header = is_d ? pcs_pkg::DATA : pcs_pkg::CONTROL;
    assign data   = tail
        | {64{is_d}}  & xgmii_txd
        | {64{is_s}}  & {xgmii_txd[63:8], pcs_pkg::S_}
        | {64{is_cc}} & {codes, pcs_pkg::CC}
        | {64{is_co}} & {high_data, o_4, low_codes, pcs_pkg::CO}
        | {64{is_cs}} & {high_data, 4'd0, low_codes, pcs_pkg::CS}
        | {64{is_oc}} & {high_codes, o_0, low_data, pcs_pkg::OC}
        | {64{is_oo}} & {high_data, o_4, o_0, low_data, pcs_pkg::OO}
        | {64{is_os}} & {high_data, 4'd0, o_0, low_data, pcs_pkg::OS}
        | {64{is_e}}  & pcs_pkg::ERROR_BLOCK;
endmodule
