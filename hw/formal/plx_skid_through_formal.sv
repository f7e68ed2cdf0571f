// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Each word leaves once, unchanged and in order, in the cycle in which it comes if the reader is ready; an
// offer is stable until accepted, if that of the writer is.
// formal: induction 3
// formal: cover 8
// mutant: if (s_ready) kept <= s_data; => kept <= s_data;
// mutant: kept_valid <= !rst && m_valid && !m_ready => kept_valid <= !rst && s_valid && !m_ready
// mutant: assign s_ready = !kept_valid; => assign s_ready = !kept_valid || m_ready;

module plx_skid_through_formal (
    input logic       clk,
    input logic       rst,
    input logic       s_valid,
    input logic [1:0] s_data,
    input logic       m_ready
);
    logic       s_ready, m_valid;
    logic [1:0] m_data;

    plx_skid_through #(.WIDTH(2)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);

    // The word that has come, and has not left.
    logic       f_waits = 0;
    logic [1:0] f_word;

    always_ff @(posedge clk) begin
        f_waits <= !rst && (f_waits || s_valid) && !m_ready;
        if (s_valid && s_ready) f_word <= s_data;
    end

    always_ff @(posedge clk) if (running && !rst && !$past(rst)) begin
        if ($past(s_valid && !s_ready)) assume (s_valid && $stable(s_data));
        if ($past(m_valid && !m_ready)) assert (m_valid && $stable(m_data));
        // A word that comes is not kept if the reader is ready.
        if ($past(m_ready)) assert (s_ready);
        cover (m_valid && !s_ready && $past(m_valid && m_ready, 3));
    end

    always_comb if (running && !rst) begin
        // Accepted words are those that leave: at once, or after all before them.
        assert (s_ready == !f_waits);
        assert (m_valid == (f_waits || s_valid));
        if (m_valid) assert (m_data == (f_waits ? f_word : s_data));
    end
endmodule
