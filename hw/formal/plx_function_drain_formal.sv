// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// `done` only when, since the cycle before `run` rose, each source has been at rest (events one place after the other,
// and ports of another function need not), and each write that was accepted by then, or in the next cycle, has ended.
// It comes within four cycles of that, whatever others do, and stays until `run` falls.
// formal: aiger
// formal: induction 8
// formal: cover 16
// mutant: {!left[EVENTS+1], !left[EVENTS], 1'b1}; => 3'b111;
// mutant: {!left[EVENTS+1], !left[EVENTS], 1'b1}; => {!left[EVENTS], !left[EVENTS], 1'b1};
// mutant: left <= run ? => left <= 1'b1 ?
// mutant: ~{4'b0000, foreign, foreign} => ~{4'b0001, foreign, foreign}
// mutant: ~{4'b0000, foreign, foreign} => ~{4'b0000, ~foreign, foreign}
// mutant: {4'b0000, foreign, foreign} => {4'b0000, foreign, {PORTS{1'b0}}}
// mutant: {!s_irq_busy, s_event_rest, => {s_irq_busy, s_event_rest,
// mutant: s_ring_quiet, ~s_placing}; => s_ring_quiet, s_placing};
// mutant: accepted + {{(COUNT_W-1){1'b0}}, was_accepted}; => ended;
// mutant: target <= accepted + {{(COUNT_W-1){1'b0}}, was_accepted}; => target <= accepted;
// mutant: if (!waiting) target => target
// mutant: waiting || left == 0 => waiting || left[3:0] == 0
// mutant: waiting <= run && => waiting <=
// mutant: !ahead[COUNT_W-1] => 1'b1
// mutant: done    <= run && => done    <=
// mutant: done || waiting => waiting

module plx_function_drain_formal (
    input logic       clk,
    input logic       rst,
    input logic       run,
    input logic [1:0] s_placing,
    input logic [1:0] s_ring_quiet,
    input logic [2:0] s_event_rest,
    input logic       s_irq_busy,
    input logic       s_accepted,
    input logic       s_ended
);
    // Any owners, which do not change meanwhile.
    (* anyconst *) wire [1:0] foreign;
    logic done;

    plx_function_drain #(.PORTS(2), .COUNT_W(4)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);
    wire on = running && !rst;

    // Sources that have been at rest since the cycle before `run` rose: of each port two, places of events, the
    // interrupt. An event's place counts behind those before it.
    localparam SOURCES = 8;
    wire  [SOURCES-1:0] at_rest = {!s_irq_busy, s_event_rest, s_ring_quiet | foreign, ~s_placing | foreign};
    logic [SOURCES-1:0] rested = '0;
    logic               ran = 0;
    wire  [SOURCES-1:0] counts = {1'b1, rested[5:4] == 2'd3, rested[4], 5'h1F};
    always_ff @(posedge clk) begin
        ran    <= run && !rst;
        rested <= rst || !run ? at_rest & 8'b10011111 : rested | (at_rest & counts);
    end

    // Writes under way, and those of them that have to end; any one: how many are before it, with it, and whether
    // it has to end.
    (* anyseq *) wire observe;
    logic       had_rested = 0, owed_one = 0;
    logic [2:0] open = 0, owed = 0, before = 0;
    wire  [2:0] open_next = open + {2'd0, s_accepted} - {2'd0, s_ended};
    always_comb begin
        if (open == 0) assume (!s_ended);
        if (open == 7) assume (!s_accepted);
    end
    always_ff @(posedge clk) begin
        had_rested <= !rst && run && &rested;
        open       <= rst ? 3'd0 : open_next;
        owed       <= rst ? 3'd0 : had_rested ? owed - 3'(s_ended && owed != 0) : open_next;
        if (before != 0) before <= before - {2'd0, s_ended};
        else if (observe && s_accepted) begin
            before   <= open_next;
            owed_one <= !had_rested;
        end
        // In another run it is any write again.
        if (rst || !run) before <= 3'd0;
    end

    // Cycles in which nothing holds it up.
    logic [2:0] free = 0;
    always_ff @(posedge clk) free <= rst || !run || !(&rested) || owed != 0 ? 3'd0 : free + 3'(free != 7);

    // The cycle before.
    logic               was_done = 0, all_rested = 0;
    logic [SOURCES-1:0] were_rested = '0;
    always_ff @(posedge clk) begin
        was_done    <= done && run && !rst;
        were_rested <= run && !rst ? rested : '0;
        all_rested  <= run && !rst && &were_rested;
    end

    // The same counts in the module, for the solver.
    (* hierconn *) wire [3:0] \dut.accepted , \dut.ended , \dut.target ;
    (* hierconn *) wire       \dut.was_accepted , \dut.waiting ;
    (* hierconn *) wire [SOURCES-1:0] \dut.left ;
    wire [3:0] until_target = \dut.target - \dut.ended ;

    always_comb if (on) begin
        if (done) assert (ran && &rested && owed == 0 && (before == 0 || !owed_one));
        if (was_done) assert (done);
        if (free >= 4) assert (done);

        assert (4'(\dut.accepted + {3'd0, \dut.was_accepted } - \dut.ended ) == {1'b0, open});
        assert (before <= open && owed <= open);
        if (!ran) assert (!done && !\dut.waiting );
        if (ran) begin
            assert ((were_rested & ~rested) == 0 && (rested[6:4] & (rested[6:4] + 3'd1)) == 0);
            assert (&(were_rested ^ \dut.left ));
            assert (\dut.waiting == all_rested);
        end else assert (&\dut.left );
        if (before != 0) assert (owed_one ? owed >= before : had_rested && owed < before);
        if (ran && !all_rested) assert (owed == open);
        if (ran) assert (had_rested == &were_rested);
        if (\dut.waiting && !done) assert (owed == 0 ? until_target[3] || until_target == 0 : until_target == {1'b0, owed});

        cover (done && before > 1 && !owed_one);
        cover (done && foreign == 2 && open == 3);
    end
endmodule
