// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Receiving half of a 10GBASE-R PCS (IEEE 802.3, clause 49): from blocks of 66 bits, one in each cycle
// of the received clock, to XGMII, 8 lanes at single data rate. Without signal or block lock, and with
// a high error rate, XGMII has local faults. Latency from a block to its word: 3 cycles.

module plx_pcs_rx #(
    parameter SLIP_CYCLES = 32,    // from a slip to the first block behind it, at least
    parameter BER_WINDOW  = 19531  // cycles of 125 us
) (
    input  logic        clk,
    input  logic        rst,

    // Blocks; the transceiver has a signal; move the boundary of blocks by a bit.
    input  logic [1:0]  rx_header,
    input  logic [63:0] rx_data,
    input  logic        rx_signal_ok,
    output logic        rx_slip,

    // XGMII, lane 0 in the lowest bits.
    output logic [63:0] xgmii_rxd,
    output logic [7:0]  xgmii_rxc,

    // A PRBS31 pattern is received, and blocks are not looked at (49.2.12); its wrong bits.
    input  logic        cfg_prbs31,
    output logic [6:0]  prbs31_errors,

    // State, and counts: an invalid header, while locked; a block that became errors.
    output logic        locked,
    output logic        hi_ber,
    output logic        inc_header,
    output logic        inc_error
);
    plx_pcs_lock #(.SLIP_CYCLES(SLIP_CYCLES)) lock (
        .clk, .rst(rst || cfg_prbs31), .header(rx_header), .signal_ok(rx_signal_ok), .locked, .slip(rx_slip)
    );

    plx_pcs_ber #(.WINDOW(BER_WINDOW)) ber (.clk, .rst, .header(rx_header), .locked, .hi_ber, .inc_header);

    // Cycles until the last slip of the boundary is over, and the pattern has no more gaps.
    localparam SETTLE = SLIP_CYCLES + 2;
    localparam W = $clog2(SETTLE + 1);
    logic [W-1:0] settling;

    always_ff @(posedge clk) begin
        if (!cfg_prbs31) settling <= SETTLE[W-1:0];
        else if (settling != 0) settling <= settling - 1'b1;
    end

    plx_prbs31_check prbs31 (
        .clk, .rst(rst || settling != 0), .s_bits({rx_data, rx_header}), .errors(prbs31_errors)
    );

    // Stage A: the block, descrambled. Stage B: its word and kind, while the block behind it is in A.
    logic [57:0] line, line_next;
    logic [63:0] plain, a_data, word, b_word;
    logic [1:0]  a_header;
    logic [7:0]  control, b_control;
    logic [2:0]  kind, b_kind;

    plx_pcs_scramble #(.DESCRAMBLE(1)) descramble (.state(line), .next(line_next), .in(rx_data), .out(plain));
    plx_pcs_decode decode (.header(a_header), .data(a_data), .kind, .xgmii_rxd(word), .xgmii_rxc(control));

    always_ff @(posedge clk) begin
        line      <= line_next;
        a_header  <= rx_header;
        a_data    <= plain;
        b_word    <= word;
        b_control <= control;
        b_kind    <= kind;
    end

    // States of figure 49-17: that of a block follows from its kind, from the one behind it if it ends a
    // frame, and from the state before it.
    localparam [2:0] INIT = 3'd0, C = 3'd1, D = 3'd2, T = 3'd3, E = 3'd4;
    logic [2:0] state, state_next;
    wire        before_gap = kind == pcs_pkg::TYPE_S || kind == pcs_pkg::TYPE_C;
    wire        faulty = rst || !rx_signal_ok || !locked || hi_ber;

    always_comb begin
        state_next = E;
        case (b_kind)
            pcs_pkg::TYPE_C: if (state != D) state_next = C;
            pcs_pkg::TYPE_S: if (state != D && state != E) state_next = D;
            pcs_pkg::TYPE_D: if (state == D || state == E) state_next = D;
            pcs_pkg::TYPE_T: if ((state == D || state == E) && before_gap) state_next = T;
            default: state_next = E;
        endcase
    end

    always_ff @(posedge clk) begin
        state     <= faulty ? INIT : state_next;
        inc_error <= !faulty && state_next == E;
        xgmii_rxd <= faulty ? pcs_pkg::FAULT_WORD : state_next == E ? pcs_pkg::ERROR_WORD : b_word;
        xgmii_rxc <= faulty ? 8'h11 : state_next == E ? 8'hFF : b_control;
    end
endmodule
