// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Between any two clocks, of which each may stand, pulses that are STAGES + 1 edges of the receiver apart arrive
// once each, in a cycle of their own, and nothing else does: behind STAGES edges of the receiver, or one more, since
// the level may change at an edge. STAGES + 1 cycles of the slower clock, which the module requires, have at least
// as many edges of the receiver in them.
// formal: edges
// formal: aiger
// formal: abstract plx_sync_bit
// formal: always 12
// formal: cover 24
// mutant: level ^ s_pulse; => level | s_pulse;
// mutant: level ^ s_pulse; => s_pulse;
// mutant: <= s_rst ? 1'b0 : level => <= level
// mutant: .STAGES(STAGES) => .STAGES(STAGES + 1)
// mutant: .rst(m_rst), .d(level) => .rst(1'b0), .d(level)
// mutant: last_seen <= m_rst ? 1'b0 : seen; => last_seen <= m_rst ? 1'b0 : level;
// mutant: last_seen <= m_rst ? 1'b0 : seen; => last_seen <= seen;
// mutant: seen ^ last_seen; => seen && !last_seen;
// mutant: seen ^ last_seen; => seen;

module plx_sync_pulse_formal #(
    parameter STAGES = 2
) (
    input logic s_clk,
    input logic s_rst,
    input logic s_pulse,
    input logic m_clk,
    input logic m_rst
);
    logic m_pulse;

    plx_sync_pulse #(.STAGES(STAGES)) dut (.*);

    (* gclk *) wire step;

    // ---- Resets: at once for long enough, though they may begin and end apart -----------------------

    logic s_held = 0, m_held = 0, was_in = 1, up = 0;
    wire  in_reset = s_rst || m_rst;

    always_ff @(posedge step) begin
        was_in <= in_reset;
        up     <= up || m_held;
        s_held <= s_rst && m_rst && (s_held || s_clk);
        m_held <= in_reset && (m_held || s_held && s_rst && m_rst && m_clk);
    end

    always_comb begin
        if (was_in && !m_held) assume (in_reset);
        if (!up && !m_held) assume (s_rst && m_rst);
    end

    // ---- Pulses ------------------------------------------------------------------------------------

    wire sends = s_clk && !s_rst && s_pulse, arrives = m_clk && m_pulse;

    // Edges since the last pulse, without that of the pulse: of the receiver; of the sender, for the covers.
    logic [2:0] m_since = 7, s_since = 7;
    // It has not arrived yet; the one before it has not, but does at the next edge.
    logic       open = 0, earlier = 0;

    always_ff @(posedge step) begin
        s_since <= sends ? 3'd0 : s_since + 3'(s_clk && s_since != 7);
        m_since <= sends ? 3'd0 : m_since + 3'(m_clk && m_since != 7);
        open    <= sends || open && !(arrives && !earlier);
        earlier <= !arrives && (earlier || sends && open);
        if (in_reset) begin
            m_since <= 3'd7;
            open    <= 1'b0;
            earlier <= 1'b0;
        end
    end

    // With an edge at that of the next pulse, as of equal clocks.
    wire [3:0] apart = m_since + 4'(m_clk);
    always_comb if (sends) assume (!m_rst && apart >= STAGES + 1);

    always_comb if (up && !in_reset) begin
        // The receiver samples a pulse at the edge behind its last register's.
        if (m_pulse) assert (earlier || open && m_since >= STAGES);
        if (earlier) assert (m_pulse && open && m_since == 0);
        if (open) assert (m_since <= STAGES + 1 && (m_pulse || m_since <= STAGES));
        // As close together as may be, either clock the faster one; each of the delays.
        cover (sends && m_since == STAGES && open && !m_pulse && s_since == 7);
        cover (sends && m_since == 7 && s_since == 0);
        cover (m_pulse && !earlier && m_since == STAGES && s_since == 5);
        cover (m_pulse && !earlier && m_since == STAGES + 1 && s_since == 0);
    end
endmodule
