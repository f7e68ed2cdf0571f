// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Words leave in order, none is lost, none overwritten; an offer is stable until accepted; a word
// is offered in the cycle after it was accepted, if none is before it.
// formal: induction 3
// formal: cover 14
// mutant: assign s_ready = !level[AW]; => assign s_ready = 1'b1;
// mutant: put && !(free && !some) => put && !free
// mutant: some ? memory[head] : s_data => s_data

module plx_fifo_first_formal (
    input logic       clk,
    input logic       rst,
    input logic       s_valid,
    input logic [1:0] s_data,
    input logic       m_ready
);
    logic       s_ready, m_valid;
    logic [1:0] m_data;

    plx_fifo_first #(.WIDTH(2), .DEPTH(4)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);

    // Yosys merges wires of this name with those inside.
    (* hierconn *) wire [2:0] \dut.level ;
    wire [2:0] behind = \dut.level ;

    // Words held.
    logic [2:0] held = 0;
    logic       was_full = 0;
    always_ff @(posedge clk) begin
        held     <= rst ? 3'd0 : held + {2'd0, s_valid && s_ready} - {2'd0, m_valid && m_ready};
        was_full <= !rst && (was_full || held == 5);
    end

    always_ff @(posedge clk) if (running && !rst && !$past(rst)) begin
        if ($past(m_valid && !m_ready)) assert (m_valid && $stable(m_data));
        assert (held <= 5 && m_valid == (held != 0) && held == behind + {2'd0, m_valid});
        if (held != 5) assert (s_ready || held == 4);
        cover (was_full && held == 0);
    end
endmodule
