// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Synchronises pulses of one cycle from one clock to another: each toggles a level, and a change of
// the level is a pulse again. Pulses must be STAGES + 1 cycles of the slower clock apart. A reset
// of one side alone would change the level, which is a pulse to the other.
// Latency: one cycle of s_clk, then STAGES edges of m_clk.

module plx_sync_pulse #(
    parameter STAGES = 2  // registers of the synchroniser
) (
    // Pulses in. Both resets must be held until each clock has sampled its own; none arrives in them.
    input  logic s_clk,
    input  logic s_rst,
    input  logic s_pulse,

    // Pulses out.
    input  logic m_clk,
    input  logic m_rst,
    output logic m_pulse
);
    logic level, seen, last_seen;

    always_ff @(posedge s_clk) level <= s_rst ? 1'b0 : level ^ s_pulse;

    plx_sync_bit #(.STAGES(STAGES)) crossing (.clk(m_clk), .rst(m_rst), .d(level), .q(seen));

    always_ff @(posedge m_clk) last_seen <= m_rst ? 1'b0 : seen;

    assign m_pulse = seen ^ last_seen;
endmodule
