// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Transmit arbiter: whole frames of several sources, in turn. It has no registers: no latency.

module plx_tx_mux #(
    parameter N = 3  // sources
) (
    input  logic            clk,
    input  logic            rst,

    // Frames to send, concatenated.
    input  logic [N-1:0]    s_axis_tx_tvalid,
    output logic [N-1:0]    s_axis_tx_tready,
    input  logic [64*N-1:0] s_axis_tx_tdata,
    input  logic [8*N-1:0]  s_axis_tx_tkeep,
    input  logic [N-1:0]    s_axis_tx_tlast,

    // To the MAC.
    output logic            m_axis_tx_tvalid,
    input  logic            m_axis_tx_tready,
    output logic [63:0]     m_axis_tx_tdata,
    output logic [7:0]      m_axis_tx_tkeep,
    output logic            m_axis_tx_tlast
);
    logic [N-1:0] grant;

    plx_arb_rr #(.N(N)) turn (
        .clk,
        .rst,
        .request(s_axis_tx_tvalid),
        .grant,
        .done(m_axis_tx_tvalid && m_axis_tx_tready && m_axis_tx_tlast)
    );

    assign s_axis_tx_tready = grant & {N{m_axis_tx_tready}};
    assign m_axis_tx_tvalid = |(grant & s_axis_tx_tvalid);
    assign m_axis_tx_tlast  = |(grant & s_axis_tx_tlast);

    always_comb begin
        m_axis_tx_tdata = '0;
        m_axis_tx_tkeep = '0;
        for (int i = 0; i < N; i = i + 1) begin
            m_axis_tx_tdata = m_axis_tx_tdata | (s_axis_tx_tdata[64*i+:64] & {64{grant[i]}});
            m_axis_tx_tkeep = m_axis_tx_tkeep | (s_axis_tx_tkeep[8*i+:8] & {8{grant[i]}});
        end
    end
endmodule
