// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Words leave in the order in which they came, none is lost, none overwritten, whatever the two
// clocks are to each other; an offer stands until it is taken, and so does the promise of room. A
// synchroniser's register holds what was there at an edge of its clock, of a bit that changes just
// then the old value or, an edge later, the new one.
// formal: edges
// formal: induction 4
// formal: cover 24
// mutant: head_gray != tail_seen => head_gray != tail_gray

module fifo_async_formal (
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

    fifo_async #(.WIDTH(2), .DEPTH(4)) dut (.*);

    (* gclk *) wire step;

    // What stood before this step; and for the cover, words inside.
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
