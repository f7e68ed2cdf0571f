// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// No word is lost, doubled, changed or reordered; an offer is stable until accepted.
// formal: induction 3
// formal: cover 8
// mutant: if (s_ready) kept <= s_data; => kept <= s_data;

module plx_skid_formal (
    input logic       clk,
    input logic       rst,
    input logic       s_valid,
    input logic [1:0] s_data,
    input logic       m_ready
);
    logic       s_ready, m_valid;
    logic [1:0] m_data;

    plx_skid #(.WIDTH(2)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);

    always_ff @(posedge clk) if (running && !rst && !$past(rst)) begin
        if ($past(m_valid && !m_ready)) assert (m_valid && $stable(m_data));
        // An empty stage accepts at once, and a word moves in every cycle.
        if ($past(m_ready)) assert (s_ready);
        cover (m_valid && !s_ready && $past(m_valid && m_ready, 3));
    end
endmodule
