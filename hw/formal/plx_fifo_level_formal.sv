// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Words leave in order, none is lost, none overwritten, for any relation of the two clocks; the writer sees
// at least as many words as wait, the reader at most, and what it sees only falls as it takes. A
// synchroniser's register holds the value at an edge of its clock; for a bit that changes at that edge, the
// old value or, an edge later, the new one.
// formal: edges
// formal: induction 4
// formal: cover 26
// mutant: s_level = tail - head_bin => s_level = tail - head_bin - 'd1
// mutant: m_level = tail_bin - head => m_level = tail_bin - head + 'd1
// mutant: tail_bin  <= r_rst ? '0 : tail_number; => tail_bin <= r_rst ? '0 : tail_seen;

module plx_fifo_level_formal (
    input logic       w_clk,
    input logic       w_rst,
    input logic       s_valid,
    input logic [1:0] s_data,
    input logic       r_clk,
    input logic       r_rst,
    input logic       m_take
);
    logic [2:0] s_level, m_level;
    logic [1:0] m_data;

    plx_fifo_level #(.WIDTH(2), .DEPTH(4)) dut (.*);

    (* gclk *) wire step;

    always_comb begin
        if (s_valid) assume (s_level < 4);
        if (m_take) assume (m_level != 0);
    end

    // The previous step; and for the cover, words inside.
    logic       stood = 0, was_full = 0;
    logic [1:0] data;
    logic [2:0] seen, level = 0;

    wire write = w_clk && !w_rst && s_valid;
    wire take  = r_clk && !r_rst && m_take;

    always_ff @(posedge step) begin
        stood    <= !r_rst && m_level != 0 && !take;
        data     <= m_data;
        seen     <= m_level;
        level    <= level + {2'd0, write} - {2'd0, take};
        was_full <= was_full || level == 4;
    end

    always_comb begin
        if (stood) assert (m_level >= seen && m_data == data);
        cover (was_full && level == 0);
    end
endmodule
