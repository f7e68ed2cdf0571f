// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Of any one virtual function: it masters the bus, and has interrupts, only while the host has it enabled, by its
// own bits; each reset that the block asks for is reported done once, with the number by which requests and
// completions name that function, and only behind a reset that the card began behind it, or one of everything;
// then within 4 cycles in which no other is, unless that has to begin anew. The card is asked for a reset of what
// the host takes away, and each time until it is done.
// formal: aiger
// formal: always 12
// formal: cover 24
// mutant: cfg_vf_status[2*v+1] && cfg_vf_status[2*v]; => cfg_vf_status[2*v+1];
// mutant: cfg_vf_status[2*v+1] && => cfg_vf_status[2*((v+1)%7)+1] &&
// mutant: vf_enable & exists => vf_enable
// mutant: existed & ~exists; => 7'd0;
// mutant: requested & ~was_requested; => requested;
// mutant: done & ~waits; => done;
// mutant: flush ? owed : owed => owed
// mutant: flush ? 7'd0 : (does => 1'b0 ? 7'd0 : (does
// mutant: owed & ~over | asked; => owed | asked;
// mutant: notifies & ~told | over; => notifies & ~told & 7'h3F | over;
// mutant: FIRST + {5'd0, number}; => {5'd0, number} + 8'd1;
// mutant: (does | begins) & ~done; => begins & ~done;
// mutant: number = 3'(v); => number = 3'(6 - v);

module plx_pcie_vf_formal (
    input logic        clk,
    input logic        rst,
    input logic        flush,
    input logic [3:0]  cfg_function_status,
    input logic [13:0] cfg_vf_status,
    input logic        cfg_interrupt_msix_enable,
    input logic        cfg_interrupt_msix_mask,
    input logic [6:0]  cfg_interrupt_msix_vf_enable,
    input logic [6:0]  cfg_interrupt_msix_vf_mask,
    input logic [6:0]  cfg_vf_flr_in_process,
    input logic [7:0]  card_flr_done
);
    logic [7:0] cfg_vf_flr_func_num, card_bus_master, card_msix_enable, card_msix_mask, card_flr;
    logic       cfg_vf_flr_done;

    plx_pcie_vf dut (.*);

    // The card's number of the function that is reported, as those of requests are made (plx_pcie_cq, plx_pcie_rc).
    logic [7:0] told;
    plx_pcie_func func (.block(cfg_vf_flr_func_num), .card(told));

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);

    // Any one function, by the card's number.
    (* anyconst *) logic [2:0] who;
    always_comb assume (who != 0);
    wire [2:0] v       = who - 3'd1;
    wire       exists  = cfg_vf_status[{v, 1'b0}];
    wire       asks    = cfg_vf_flr_in_process[v];
    wire       told_it = cfg_vf_flr_done && told == {5'd0, who};

    // The block has asked, and has not been told; the card has begun, and done, a reset since.
    logic       asked_before = 0, owed = 0, begun = 0, over = 0, was_flr = 0, was_done = 0, flushed = 0, existed = 0,
                pending = 0, late_exists = 0, late_master = 0, late_enable = 0, late_mask = 0, late_own = 0, was_rst = 1;
    logic [2:0] since = 0, gone_for = 0;

    wire begins = card_flr[who] && !was_flr;

    always_ff @(posedge clk) begin
        was_rst      <= rst;
        asked_before <= asks;
        was_flr      <= card_flr[who];
        was_done     <= card_flr_done[who];
        flushed      <= flush;
        existed      <= exists;
        late_exists  <= exists;
        late_master  <= cfg_vf_status[{v, 1'b1}];
        late_enable  <= cfg_interrupt_msix_vf_enable[v];
        late_mask    <= cfg_interrupt_msix_vf_mask[v];
        late_own     <= cfg_function_status[2];
        if (asks && !asked_before) begin
            owed  <= 1'b1;
            begun <= 1'b0;
            over  <= 1'b0;
        end else begin
            if (told_it) owed <= 1'b0;
            if (owed && begins) begun <= 1'b1;
            if (owed && (begun || begins) && card_flr_done[who] || owed && flush) over <= 1'b1;
        end
        // A function that was also taken away has one more.
        since <= over && owed && !card_flr[who] && !pending && !cfg_vf_flr_done ? since + 3'd1 : 3'd0;
        // A function that was taken away is to be reset.
        if (existed && !exists) pending <= 1'b1;
        else if (begins || flush) pending <= 1'b0;
        if (rst) begin
            owed    <= 1'b0;
            over    <= 1'b0;
            pending <= 1'b0;
            existed <= 1'b0;
            asked_before <= 1'b0;
        end
        gone_for <= pending && !card_flr[who] && !begins && !flush && !rst ? gone_for + 3'd1 : 3'd0;
    end

    always_comb if (running && !rst && !was_rst) begin
        // A request is held until it is reported done. The card ends what it was asked for.
        if (owed) assume (asks || told_it);
        assume ((card_flr_done & ~card_flr) == 0);
        assert (card_flr[0] == 0);
        assert (card_bus_master[who] == (late_master && late_exists) && card_bus_master[0] == late_own);
        assert (card_msix_enable[who] == (late_enable && late_exists) && card_msix_mask[who] == late_mask);
        if (cfg_vf_flr_done) assert (told != 0 && told < 8);
        if (told_it) assert (owed && over);
        assert (since < 4);
        // Until it is done; and each time anew.
        if (was_flr && !was_done && !flushed) assert (card_flr[who]);
        if (was_flr && was_done) assert (!card_flr[who]);
        assert (gone_for < 4);
        if (flushed) assert (!card_flr[who]);
        cover (told_it && who == 7 && !flushed);
        cover (told_it && flushed);
        cover (begins && pending && !owed);
    end
endmodule
