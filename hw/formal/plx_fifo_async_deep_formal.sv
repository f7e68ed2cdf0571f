// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// As plx_fifo_async, for a writer that observes the number of free words, which never exceeds the true
// number; promised words stay free until it writes.
// formal: edges
// formal: induction 4
// formal: cover 24
// mutant: - (tail - head_bin) => - (tail - head_bin) + 1'b1

module plx_fifo_async_deep_formal (
    input logic       w_clk,
    input logic       w_rst,
    input logic       s_valid,
    input logic [1:0] s_data,
    input logic       r_clk,
    input logic       r_rst,
    input logic       m_ready
);
    logic       m_valid;
    logic [1:0] m_data;
    logic [2:0] s_free;

    plx_fifo_async_deep #(.WIDTH(2), .DEPTH(4)) dut (.*);

    (* gclk *) wire step;

    // The previous step; and for the cover, words inside, including the one at the output.
    logic       stood = 0, promised = 0, was_full = 0;
    logic [1:0] data;
    logic [2:0] free, level = 0;

    wire write = w_clk && !w_rst && s_valid;
    wire take  = r_clk && !r_rst && m_valid && m_ready;

    always_comb if (s_valid) assume (!w_rst && s_free != 0);

    always_ff @(posedge step) begin
        stood    <= !r_rst && m_valid && !take;
        data     <= m_data;
        promised <= !w_rst;
        free     <= s_free - {2'd0, write};
        level    <= level + {2'd0, write} - {2'd0, take};
        was_full <= was_full || level == 5;
    end

    always_comb begin
        if (stood) assert (m_valid && m_data == data);
        if (promised) assert (s_free >= free);
        cover (was_full && level == 0);
    end
endmodule
