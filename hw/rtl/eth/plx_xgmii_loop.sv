// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Between the MACs and the wires: a port's receiver is connected to its wire or, looped, to the
// transmitter of the other port of its pair (0 with 1, 2 with 3; a single port to itself). The wire of
// a looped port is idle, so that its frames have one receiver. Latency 1 cycle both ways.

module plx_xgmii_loop #(
    parameter PORTS = 4  // 1, 2 or 4; port p in [p*64 +: 64] and [p*8 +: 8]
) (
    input  logic                clk,

    // Ports that are looped; both of a pair, or neither.
    input  logic [PORTS-1:0]    cfg_loop,

    // XGMII of the MACs.
    input  logic [PORTS*64-1:0] mac_txd,
    input  logic [PORTS*8-1:0]  mac_txc,
    output logic [PORTS*64-1:0] mac_rxd,
    output logic [PORTS*8-1:0]  mac_rxc,

    // XGMII of the wires.
    input  logic [PORTS*64-1:0] xgmii_rxd,
    input  logic [PORTS*8-1:0]  xgmii_rxc,
    output logic [PORTS*64-1:0] xgmii_txd,
    output logic [PORTS*8-1:0]  xgmii_txc
);
    localparam [7:0] IDLE = 8'h07;  // IEEE 802.3, table 46-3

    generate
        if (PORTS != 1 && PORTS != 2 && PORTS != 4) PORTS_must_be_1_2_or_4 parameter_error ();

        for (genvar p = 0; p < PORTS; p = p + 1) begin : g_port
            localparam OTHER = PORTS == 1 ? 0 : p ^ 1;

            always_ff @(posedge clk) begin
                mac_rxd[p*64+:64]   <= cfg_loop[p] ? mac_txd[OTHER*64+:64] : xgmii_rxd[p*64+:64];
                mac_rxc[p*8+:8]     <= cfg_loop[p] ? mac_txc[OTHER*8+:8] : xgmii_rxc[p*8+:8];
                xgmii_txd[p*64+:64] <= cfg_loop[p] ? {8{IDLE}} : mac_txd[p*64+:64];
                xgmii_txc[p*8+:8]   <= cfg_loop[p] ? 8'hFF : mac_txc[p*8+:8];
            end
        end
    endgenerate
endmodule
