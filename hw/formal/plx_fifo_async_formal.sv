// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Words leave in order, none is lost, none overwritten, for any relation of the two clocks; an offer
// is stable until accepted, and so is the promise of space. A synchroniser's register holds the value
// at an edge of its clock; for a bit that changes at that edge, the old value or, an edge later,
// the new one.
// formal: edges
// formal: induction 4
// formal: cover 24
// mutant: head_gray != tail_seen => head_gray != tail_gray

module plx_fifo_async_formal (
    input logic       w_clk,
    input logic       w_rst,
    input logic       s_valid,
    input logic [1:0] s_data,
    input logic       r_clk,
    input logic       r_rst,
    input logic       m_ready
);
    logic       s_ready, m_valid;
    logic [1:0] m_data;

    plx_fifo_async #(.WIDTH(2), .DEPTH(4)) dut (.*);

    (* gclk *) wire step;

    // The previous step; and for the cover, words inside.
    logic       stood = 0, promised = 0, was_full = 0;
    logic [1:0] data;
    logic [2:0] level = 0;

    wire write = w_clk && !w_rst && s_valid && s_ready;
    wire take  = r_clk && !r_rst && m_valid && m_ready;

    always_ff @(posedge step) begin
        stood    <= !r_rst && m_valid && !take;
        data     <= m_data;
        promised <= !w_rst && s_ready && !write;
        level    <= level + {2'd0, write} - {2'd0, take};
        was_full <= was_full || level == 4;
    end

    always_comb begin
        if (stood) assert (m_valid && m_data == data);
        if (promised) assert (s_ready);
        cover (was_full && level == 0);
    end
endmodule
