// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Codes of 10GBASE-R (IEEE 802.3, clause 49). A block is its synchronisation header, two bits, and 64
// bits; bit 0 of each is the first on the line, the header before the rest.
package pcs_pkg;
    /* verilator lint_off UNUSEDPARAM */

    // Headers (49.2.4.3). As numbers: the figures of the standard have the first bit on the left.
    localparam DATA = 2'b10, CONTROL = 2'b01;

    // Kinds of blocks, T_TYPE and R_TYPE (49.2.13.2.3).
    localparam TYPE_C = 3'd0, TYPE_S = 3'd1, TYPE_T = 3'd2, TYPE_D = 3'd3, TYPE_E = 3'd4;

    // Control characters of XGMII (table 46-3) and their codes (table 49-1). A start and an end are told
    // by the kind of block; an ordered set has a code of four bits.
    localparam IDLE = 8'h07, START = 8'hFB, TERMINATE = 8'hFD, ERROR = 8'hFE, SEQUENCE = 8'h9C, SIGNAL = 8'h5C;
    localparam CODE_IDLE = 7'h00, CODE_ERROR = 7'h1E, CODE_SEQUENCE = 4'h0, CODE_SIGNAL = 4'hF;
    localparam RESERVED_0 = 8'h1C, RESERVED_1 = 8'h3C, RESERVED_2 = 8'h7C, RESERVED_3 = 8'hBC, RESERVED_4 = 8'hDC,
               RESERVED_5 = 8'hF7;
    localparam CODE_RESERVED_0 = 7'h2D, CODE_RESERVED_1 = 7'h33, CODE_RESERVED_2 = 7'h4B, CODE_RESERVED_3 = 7'h55,
               CODE_RESERVED_4 = 7'h66, CODE_RESERVED_5 = 7'h78;

    // The first byte of a control block (figure 49-7): what its lanes have. C: control characters, O: an
    // ordered set, S: a start, in the lower and the upper half; T: the end of a frame in lane 0 to 7.
    localparam CC = 8'h1E, CO = 8'h2D, CS = 8'h33, OS = 8'h66, OO = 8'h55, S_ = 8'h78, OC = 8'h4B;
    localparam ENDS = 64'hFFE1_D2CC_B4AA_9987;

    // Eight errors, and two local faults (EBLOCK_T, LBLOCK_T; EBLOCK_R, LBLOCK_R: 49.2.13.2.1).
    localparam ERROR_BLOCK = {{8{7'h1E}}, 8'h1E}, FAULT_BLOCK = 64'h0100_0000_0100_0055;
    localparam ERROR_WORD = {8{8'hFE}}, FAULT_WORD = {2{32'h0100_009C}};

    // State and counts of a lane to its port: {sts_hi_ber, sts_block_lock, sts_signal_ok, there is a PCS}, and
    // {inc_tx_error, inc_underflow, inc_overflow, inc_inserted, inc_deleted, inc_prbs31_errors,
    // inc_errored_blocks, inc_ber}, as the registers have them from the lowest on.
    localparam STS_W = 4, INC_W = 19;

    /* verilator lint_on UNUSEDPARAM */
endpackage
