// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The card is reset only behind a cycle in which it was held and no TLP was under way; for 64 cycles; it is held for
// 64 more, so never runs in reset. Each request holds it from the next cycle on, and is done once, when its reset has
// ended and not before; nothing but a request and the block's reset holds the card.
// formal: aiger
// formal: induction 3
// formal: cover 264
// mutant: default: if (idle) begin => default: begin
// mutant: RESET: if (count == LAST) begin => RESET: if (count == LAST - 6'd1) begin
// mutant: SETTLE: if (count == LAST) begin => SETTLE: if (count == LAST - 6'd1) begin
// mutant: cfg_flr_done <= asked; => cfg_flr_done <= 1'b1;
// mutant: cfg_flr_done <= asked; => cfg_flr_done <= 1'b0;
// mutant: cfg_flr_in_process && !asked => cfg_flr_in_process
// mutant: !cfg_flr_in_process) begin => 1'b0) begin
// mutant: state == RESET || state == SETTLE ? => state == SETTLE ?
// mutant: hold  <= 1'b1; => hold  <= 1'b0;
// mutant: state    <= SETTLE; => state    <= RUN;

module plx_pcie_flr_formal (
    input logic clk,
    input logic rst,
    input logic cfg_flr_in_process,
    input logic idle
);
    logic cfg_flr_done, hold, card_rst;

    plx_pcie_flr dut (.*);

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire [1:0] \dut.state ;
    (* hierconn *) wire [5:0] \dut.count ;
    (* hierconn *) wire       \dut.asked ;

    // Of the last cycle; cycles of reset, and held behind it; the request of now has not begun, its reset has not, has
    // begun, is done.
    localparam [1:0] NEW = 0, HELD = 1, IN_RESET = 2, DONE = 3;
    logic       running = 0, was_held = 0, was_rst, was_hold, was_idle, was_card, was_in, was_done;
    logic [6:0] in_reset = 0, settled = 0;
    logic [1:0] state = NEW;

    always_ff @(posedge clk) begin
        running  <= 1'b1;
        was_rst  <= rst;
        was_hold <= hold;
        was_idle <= idle;
        was_card <= card_rst;
        was_in   <= cfg_flr_in_process;
        was_done <= cfg_flr_done;
        was_held <= !rst && state == HELD;
        in_reset <= rst || !card_rst ? 7'd0 : in_reset + 7'd1;
        settled  <= rst || card_rst || !hold || state == HELD ? 7'd0 : settled + 7'd1;
        if (rst || !cfg_flr_in_process && (state == NEW || state == DONE)) state <= NEW;
        else begin
            if (state == NEW && !hold && cfg_flr_in_process) state <= HELD;
            if (state == HELD && card_rst) state <= IN_RESET;
            if (cfg_flr_done) state <= DONE;
        end
    end

    always_comb begin
        if (!running) assume (rst);
        // A request stands until it is done. The block's reset takes it back.
        else if (!was_rst && was_in && (state == HELD || state == IN_RESET)) assume (cfg_flr_in_process);
    end

    always_comb if (running) begin
        if (was_rst) assert (card_rst && hold && !cfg_flr_done);
        else begin
            if (card_rst) assert (hold);
            if (card_rst && !was_card) assert (was_hold && was_idle);
            if (card_rst) assert (in_reset < 64);
            if (was_card && !card_rst) assert (in_reset == 64 && hold);
            // Held without end only while a TLP is under way.
            if (was_hold && !hold) assert (settled == 64 && !was_card);
            if (hold && !card_rst && state != HELD) assert (settled < 64);
            if (hold && !was_hold) assert (was_in);
            if (state == HELD) assert (hold);
            if (state == HELD && was_held && was_idle) assert (card_rst);
            if (cfg_flr_done) assert (state == IN_RESET && was_in && was_hold && !hold && !was_done);
            if (state == IN_RESET) assert (hold || cfg_flr_done);
        end
        // What makes it inductive.
        assert (\dut.asked == (state != NEW));
        assert (card_rst == (\dut.state == 0) && hold == (\dut.state != 2));
        if (card_rst) assert (in_reset == \dut.count );
        if (\dut.state == 1) assert (settled == \dut.count && state != HELD && state != DONE && !cfg_flr_done);
        if (\dut.state == 3) assert (state == HELD);
        if (\dut.state == 0) assert (state != DONE && !cfg_flr_done);
        if (\dut.state >= 2) assert (\dut.count == 0);
        if (state == HELD || state == IN_RESET) assert (was_in && !was_rst);
        if (state == HELD && card_rst) assert (in_reset == 0 && !was_card);
        if (settled != 0) assert (was_hold && !was_rst);
        if (\dut.state == 1 && settled == 0) assert (was_card);
        if (\dut.state == 2) assert (state != HELD);
        if (cfg_flr_done) assert (\dut.state == 2 && was_hold);
        cover (cfg_flr_done);
        cover (state == DONE && !cfg_flr_in_process && !hold);
    end
endmodule
