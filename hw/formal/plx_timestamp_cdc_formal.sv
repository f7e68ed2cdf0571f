// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Where the other clock is not slower, the output is at most five cycles of the counter late and never ahead of
// it, and never falls; it moves by at most two at an edge: by two where the counter has met two edges, at the first
// of which its new bit came too late. Each bit that has changed since the last step of the solver arrives for
// itself, before or after an edge of the receiver, as it does at a register that may be metastable.
// formal: edges
// formal: aiger
// formal: abstract plx_sync_bit
// formal: always 14
// formal: cover 24
// mutant: s_cycle_ts ^ (s_cycle_ts >> 1); => s_cycle_ts ^ (s_cycle_ts >> 2);
// mutant: i < $clog2(WIDTH); => i < $clog2(WIDTH) - 1;
// mutant: binary ^ (binary >> (1 << i)); => binary ^ (binary >> 1);
// mutant: m_cycle_ts <= m_rst ? '0 : binary; => m_cycle_ts <= m_rst ? '0 : binary + 'd1;
// mutant: plx_sync_bit #(.WIDTH(WIDTH)) => plx_sync_bit #(.WIDTH(WIDTH), .STAGES(4))

module plx_timestamp_cdc_formal (
    input logic       s_clk,
    input logic [4:0] s_cycle_ts,
    input logic       m_clk,
    input logic       m_rst
);
    logic [4:0] m_cycle_ts;

    plx_timestamp_cdc #(.WIDTH(5)) dut (.*);

    (* gclk *) wire step;

    // Edges: both clocks have had one; of s_clk since one of m_clk, up to two; of m_clk since its reset.
    logic       s_seen = 0, m_seen = 0, was_s_clk = 0, fast = 1;
    logic [1:0] had = 0;
    logic [2:0] since = 0;
    logic [4:0] ts, shown;
    wire        up    = s_seen && m_seen;
    wire        valid = since >= 3;

    always_ff @(posedge step) begin
        s_seen    <= s_seen || s_clk;
        m_seen    <= m_seen || m_clk && s_seen;
        was_s_clk <= s_clk;
        ts        <= s_cycle_ts;
        shown     <= m_cycle_ts;
        had       <= m_clk ? {1'b0, s_clk} : had + {1'b0, s_clk && had != 2};
        if (m_clk) since <= m_rst ? 3'd0 : since + 3'(since != 7);
        // The other clock has not been slower since its reset.
        fast      <= m_rst && m_clk || fast && !(s_clk && !m_clk && had != 0);
    end

    wire [4:0] late = s_cycle_ts - m_cycle_ts, moved = m_cycle_ts - shown;

    logic was_valid = 0;
    always_ff @(posedge step) was_valid <= valid;

    always_comb begin
        // The counter moves by at most one, behind an edge of its clock.
        assume (s_cycle_ts - ts <= {4'd0, was_s_clk} || !s_seen && !was_s_clk);
        if (!up) assume (m_rst);
        if (valid && fast) assert (late <= 5);
        if (was_valid && valid && fast) assert (moved <= 2);
        cover (valid && fast && late == 5);
        cover (valid && fast && late == 1 && m_cycle_ts == 4);
        cover (was_valid && valid && fast && moved == 2);
    end
endmodule
