// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// No tag is given out while the block holds it, unless it has held it for more than three periods, the last of them at rest; a
// completion that is found current belongs to the latest read of its tag in the card, for the same function,
// which has not been completed before, nor forgotten, and no other read of that tag waits. No tag from LOW on is given
// out behind a cycle in which the host does not allow them all.
// formal: aiger
// formal: always 10
// formal: cover 34
// mutant: .allow_all, => .allow_all(1'b1),
// mutant: latest[m_card_tag] == looked => 1'b1
// mutant: && !(s_read_valid && s_read_tag == m_card_tag) => && 1'b1
// mutant: && !(s_next_valid && s_next_tag == m_card_tag); => ;
// mutant: && known && !ended_now : m_current; => && known && !ended_now : looked_live;
// mutant: && known && !ended_now => && known
// mutant: looked_live && fits => looked_live
// mutant: known && open[s_look_tag[W-1:0]] => known
// mutant: looked_ends && fits => looked_ends
// mutant: (live | accepted) & ~over) & ~{TAGS{flush}} => (live | accepted) & ~over)
// mutant: (tick ? old : worn) => (tick ? open : worn)
// mutant: (live | accepted) & ~over => (live | accepted) & ~ended
// mutant: (tick ? open : old) & ~ended => (tick ? open : old) & ~over

module plx_pcie_tags_formal (
    input logic       clk,
    input logic       rst,
    input logic       flush,
    input logic       allow_all,
    input logic       m_tag_ready,
    input logic       s_read_valid,
    input logic       s_read_tag,
    input logic       read_vf,
    input logic       s_next_valid,
    input logic       s_next_tag,
    input logic       s_look_valid,
    input logic [7:0] s_look_tag,
    input logic       look_vf,
    input logic       look_none,
    input logic       s_return_valid,
    input logic       s_return_late
);
    logic       m_tag_valid, m_tag, m_card_tag, m_current, inc_tag_lost;

    // Two functions of the card, and one that is none of its.
    wire [2:0] s_read_func = {2'd0, read_vf};
    wire [7:0] s_look_func = {look_none, 6'd0, look_vf};

    plx_pcie_tags #(.TAGS(2), .LOW(1), .CARD_TAGS(2), .PERIOD_LOG2(2)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb begin
        if (!running) assume (rst);
        // A read takes a tag, and a return is of what is looked up.
        if (m_tag_ready) assume (s_read_valid);
        if (s_return_valid) assume (s_look_valid);
    end

    // Any one tag at the block: whether it is held, and for how many cycles; any one of the card's: its
    // latest read that is not completed.
    (* anyconst *) logic       tag;
    (* anyconst *) logic       card;
    logic       held = 0, open = 0, held_vf, latest_vf;
    logic [3:0] age = 0;
    logic       latest;

    wire takes     = m_tag_valid && m_tag_ready;
    wire of_held   = !look_none && look_vf == held_vf;
    wire of_latest = !look_none && look_vf == latest_vf;
    wire returns   = s_return_valid && s_look_tag < 2;

    logic       allowed = 0;

    // What was looked up.
    logic       looked = 0, looked_open = 0;
    logic       looked_tag;

    always_ff @(posedge clk) begin
        allowed <= allow_all;
        age <= age == 4'd15 ? age : age + 4'd1;
        if (takes && m_tag == tag) begin
            held    <= 1'b1;
            held_vf <= read_vf;
            age     <= 4'd0;
        end
        if (returns && s_look_tag[0] == tag && of_held) held <= 1'b0;
        if (returns && s_look_tag[0] == latest && of_latest) open <= 1'b0;
        if (takes && s_read_tag == card) begin
            open      <= 1'b1;
            latest    <= m_tag;
            latest_vf <= read_vf;
        end
        if (flush) open <= 1'b0;
        if (s_look_valid) begin
            looked      <= s_look_tag < 2;
            looked_tag  <= s_look_tag[0];
            looked_open <= open && latest == s_look_tag[0] && of_latest;
        end
        if (rst) begin
            held   <= 1'b0;
            open   <= 1'b0;
            looked <= 1'b0;
        end
    end

    always_comb if (running && !rst) begin
        if (takes && m_tag >= 1) assert (allowed);
        if (takes && m_tag == tag) assert (!held || age > 12);
        if (m_current && looked && m_card_tag == card) begin
            assert (looked_open);
            assert (!(s_read_valid && s_read_tag == card) && !(s_next_valid && s_next_tag == card));
        end
        cover (m_current && looked && m_card_tag == card && looked_open);
        cover (takes && m_tag == tag && held);
    end
endmodule
