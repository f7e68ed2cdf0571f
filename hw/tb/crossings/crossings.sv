// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The synchronisers, from one clock to another.

module crossings (
    input  logic s_clk,
    input  logic m_clk,
    input  logic rst_async,
    output logic s_rst,
    output logic m_rst,

    input  logic s_level,
    output logic m_level
);
    plx_sync_reset s_reset (.clk(s_clk), .rst_async, .rst(s_rst));
    plx_sync_reset m_reset (.clk(m_clk), .rst_async, .rst(m_rst));
    plx_sync_bit level (.clk(m_clk), .rst(m_rst), .d(s_level), .q(m_level));
endmodule
