// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Link fault signalling (IEEE 802.3, 46.3.4.3 and figure 46-11): a fault is set by four ordered sets
// of one kind with less than 128 columns between them, and cleared by 128 columns without any.

module plx_link_fault (
    input  logic        clk,
    input  logic        rst,

    // XGMII, lane 0 in the lowest bits: two columns a word.
    input  logic [63:0] xgmii_rxd,
    input  logic [7:0]  xgmii_rxc,

    // Faults: detected by the PCS below; detected by the link partner.
    output logic        local_fault,
    output logic        remote_fault
);
    localparam [31:0] LOCAL = 32'h0100009C, REMOTE = 32'h0200009C;  // table 46-5

    // The kind of each column; registered, as the latency does not matter.
    logic local_a, local_b, remote_a, remote_b;
    wire  fault_a = local_a || remote_a;
    wire  fault_b = local_b || remote_b;

    always_ff @(posedge clk) begin
        local_a  <= xgmii_rxc[3:0] == 4'h1 && xgmii_rxd[31:0] == LOCAL;
        remote_a <= xgmii_rxc[3:0] == 4'h1 && xgmii_rxd[31:0] == REMOTE;
        local_b  <= xgmii_rxc[7:4] == 4'h1 && xgmii_rxd[63:32] == LOCAL;
        remote_b <= xgmii_rxc[7:4] == 4'h1 && xgmii_rxd[63:32] == REMOTE;
    end

    // The last kind, its consecutive count, up to 4, and words without a fault. Two columns are two
    // steps.
    logic       kind;  // 1: remote
    logic [2:0] seen;
    logic [6:0] quiet;
    wire        kind_mid  = fault_a ? remote_a : kind;
    wire        kind_next = fault_b ? remote_b : kind_mid;
    wire  [2:0] seen_mid  = !fault_a ? seen : kind_mid != kind ? 3'd1 : seen == 4 ? seen : seen + 3'd1;
    wire  [2:0] seen_next = !fault_b ? seen_mid : kind_next != kind_mid ? 3'd1 : seen_mid == 4 ? seen_mid : seen_mid + 3'd1;

    always_ff @(posedge clk) begin
        kind  <= kind_next;
        seen  <= seen_next;
        quiet <= fault_a || fault_b ? 7'd0 : quiet + 7'd1;
        if (seen_next == 4) begin
            local_fault  <= !kind_next;
            remote_fault <= kind_next;
        end
        // 64 words are 128 columns.
        if (quiet == 7'd63 && !fault_a && !fault_b) begin
            quiet        <= 7'd63;
            seen         <= 3'd0;
            local_fault  <= 1'b0;
            remote_fault <= 1'b0;
        end
        if (rst) begin
            seen         <= 3'd0;
            quiet        <= 7'd0;
            local_fault  <= 1'b0;
            remote_fault <= 1'b0;
        end
    end
endmodule
