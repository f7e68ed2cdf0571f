// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Sending half of a 10GBASE-R PCS (IEEE 802.3, clause 49): from XGMII, 8 lanes at single data rate, to
// blocks of 66 bits, one in each cycle, for a transceiver that serialises them, bit 0 first. Latency
// from a word to its block: 2 cycles.

module plx_pcs_tx (
    input  logic        clk,
    input  logic        rst,

    // XGMII, lane 0 in the lowest bits.
    input  logic [63:0] xgmii_txd,
    input  logic [7:0]  xgmii_txc,

    // Blocks. The PRBS31 pattern replaces all of their bits (49.2.8).
    output logic [1:0]  tx_header,
    output logic [63:0] tx_data,
    input  logic        cfg_prbs31,

    // A word that was sent as a block of errors.
    output logic        inc_error
);
    logic [2:0]  kind;
    logic [1:0]  header;
    logic [63:0] data;

    plx_pcs_encode encode (.xgmii_txd, .xgmii_txc, .kind, .header, .data);

    // States of figure 49-16: that of a block follows from its kind and from the state before it.
    localparam [2:0] INIT = 3'd0, C = 3'd1, D = 3'd2, T = 3'd3, E = 3'd4;
    logic [2:0] state, state_next;

    always_comb begin
        state_next = E;
        case (kind)
            pcs_pkg::TYPE_C: if (state != D) state_next = C;
            pcs_pkg::TYPE_S: if (state != D && state != E) state_next = D;
            pcs_pkg::TYPE_D: if (state == D || state == E) state_next = D;
            pcs_pkg::TYPE_T: if (state == D || state == E) state_next = T;
            default: state_next = E;
        endcase
    end

    logic [1:0]  e_header;
    logic [63:0] e_data;

    always_ff @(posedge clk) begin
        state     <= rst ? INIT : state_next;
        inc_error <= !rst && state_next == E;
        e_header  <= rst || state_next == E ? pcs_pkg::CONTROL : header;
        e_data    <= rst ? pcs_pkg::FAULT_BLOCK : state_next == E ? pcs_pkg::ERROR_BLOCK : data;
    end

    logic [57:0] line, line_next;
    logic [63:0] scrambled;
    logic [65:0] pattern;

    plx_pcs_scramble scramble (.state(line), .next(line_next), .in(e_data), .out(scrambled));
    plx_prbs31_gen prbs31 (.clk, .rst, .enable(cfg_prbs31), .pattern);

    // Any state is a good one to start from; the standard has none.
    always_ff @(posedge clk) begin
        line                 <= rst ? '1 : line_next;
        {tx_data, tx_header} <= cfg_prbs31 ? pattern : {scrambled, e_header};
    end
endmodule
