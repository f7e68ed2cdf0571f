// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The timing input: each rising edge of any one input, whose levels last as long as required, counts once, 2 to 3
// cycles after its arrival, and nothing else does. Each start, end, trigger and new flag of a cycle, if requested, is
// in the event of that cycle, with the time, the burst and the counts of it; one that is not accepted at once is
// counted as lost, with all of its edges. Bursts are the starts; one is in progress from a start to an end; what is
// not paired is a flag. In own time five cycles are 32 ns. The inputs are low in a reset. Not the external clock as
// the time, nor its watch. Counts and times are compared in their lowest 8 bits.
// formal: edges
// formal: aiger
// formal: abstract plx_sync_bit
// formal: always 14
// formal: cover 20
// mutant: edges      = level & ~level_before; => edges      = level;
// mutant: edges      = level & ~level_before; => edges      = level ^ level_before;
// mutant: plx_sync_bit #(.WIDTH(4)) => plx_sync_bit #(.WIDTH(4), .STAGES(3))
// mutant: level_before <= rst ? 4'd0 : level; => level_before <= rst ? 4'd0 : level & {4{!edges[0]}};
// mutant: start && in_burst && !stop; => start && in_burst;
// mutant: = stop && !in_burst; => = stop && !start && !in_burst;
// mutant: in_burst <= start || in_burst && !stop; => in_burst <= (start || in_burst) && !stop;
// mutant: if (start) at_start <= now_timestamp_ns; => if (start && !in_burst) at_start <= now_timestamp_ns;
// mutant: fifths - 3'd3 => fifths - 3'd2
// mutant: wr_set || start && cfg_set_on_start => start && cfg_set_on_start
// mutant: news          = wrong & ~flags[3:0]; => news          = wrong;
// mutant: m_event_valid <= !rst && events != 0; => m_event_valid <= !rst && (events != 0 || dropped);
// mutant: dropped       = m_event_valid && !m_event_ready; => dropped       = m_event_valid && !m_event_ready && events != 0;
// mutant: inc_events_lost = dropped ? {2'd0, m_event_edges[0]} + => inc_events_lost = dropped ? 3'd0 +
// mutant: cfg_event_burst && stop, cfg_event_burst && start} => cfg_event_burst && stop && !start, cfg_event_burst && start}
// mutant: m_event_burst           <= bursts + {31'd0, start}; => m_event_burst           <= bursts;
// mutant: m_event_triggers        <= triggers_next; => m_event_triggers        <= triggers;
// mutant: m_event_flags           <= flags | {1'b0, wrong}; => m_event_flags           <= flags;

module plx_timing_formal (
    input logic       clk,
    input logic       rst,
    input logic       ttc_clock,
    input logic       ttc_start,
    input logic       ttc_end,
    input logic       ttc_trigger,
    input logic       cfg_set_on_start,
    input logic       cfg_event_burst,
    input logic       cfg_event_trigger,
    input logic       cfg_event_flag,
    input logic       wr_set,
    input logic [4:0] flags,
    input logic       m_event_ready
);
    logic [63:0] now_cycle_ts, now_timestamp_ns, at_start, at_end, at_trigger;
    logic        now_timestamp_valid, in_burst, m_event_valid, m_event_timestamp_valid;
    logic [63:0] m_event_timestamp_ns, m_event_clocks, m_event_triggers;
    logic [31:0] bursts, m_event_cycle_ts, m_event_burst;
    logic [4:0]  set_flags, m_event_flags;
    logic [3:0]  m_event_edges;
    logic        inc_clocks, inc_triggers, inc_early, inc_lost, inc_unpaired;
    logic [2:0]  inc_events_lost;

    plx_timing dut (
        .*, .cfg_from_clock(1'b0), .cfg_period(32'd0), .cfg_watch_expect(16'd2), .cfg_watch_tolerance(16'd0),
        .cfg_set(64'd200), .cfg_preset(64'd100)
    );

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire [3:0] \dut.edges ;
    wire [3:0] edges = \dut.edges ;

    (* gclk *) wire step;

    logic up = 0, in_rst = 1, was_rst = 1;
    always_ff @(posedge step) up <= up || clk;
    always_ff @(posedge step) was_rst <= rst;
    always_ff @(posedge clk) in_rst <= rst;
    wire [3:0] inputs = {ttc_trigger, ttc_end, ttc_start, ttc_clock};
    always_comb begin
        if (!up || was_rst && !in_rst) assume (rst);
        if (rst) assume (inputs == 4'd0);
    end

    // ---- Arrivals, at any one input -----------------------------------------------------------------

    (* anyconst *) wire [1:0] which;
    wire  d = inputs[which], counts = clk && edges[which];
    // The input of the step before; an edge has sampled its level, which has not changed in the step of that.
    logic was = 0, sampled = 1;
    wire  rises = d && !was;
    // It has not counted yet, nor has the one before, which does at the next edge; edges of clk since.
    logic       open = 0, earlier = 0;
    logic [2:0] since = 0;

    always_comb if (d != was) assume (sampled);

    always_ff @(posedge step) begin
        was     <= d;
        sampled <= d == was && (sampled || clk);
        since   <= (rises ? 3'd0 : since) + 3'(clk && (rises || since != 7));
        open    <= !rst && (rises || open && !(counts && !earlier));
        earlier <= !rst && !counts && (earlier || rises && open);
    end

    always_comb if (up && !rst && !in_rst) begin
        if (edges[which]) assert (earlier || open && (since == 2 || since == 3));
        if (earlier) assert (edges[which] && open && since <= 1);
        if (open && !earlier) assert (since <= 3 && (edges[which] || since <= 2));
        cover (rises && open && earlier == 0 && !counts);
        cover (edges[which] && since == 3);
    end

    // ---- Cycles: what is in each, and what was in the one before ---------------------------------------

    wire       start = edges[1], stop = edges[2], trigger = edges[3];
    logic      burst = 0;
    wire [1:0] unpaired = {stop && !burst, start && burst && !stop};
    wire [3:0] wrong    = {inc_lost, inc_early, unpaired};
    wire [3:0] news     = wrong & ~flags[3:0];
    wire [3:0] wanted   = {news != 0 && cfg_event_flag, trigger && cfg_event_trigger,
                           {stop, start} & {2{cfg_event_burst}}};

    // Of the cycle before.
    logic [3:0] were = 0;
    logic [4:0] its_flags;
    logic [7:0] clocks = 0, triggers = 0, starts = 0, time_then, cycle_then;
    logic       valid_then = 0;
    // The time at the last start, end, trigger; since the time was set, up to five cycles; the last five times.
    logic [7:0] start_at = 0, end_at = 0, trigger_at = 0, base = 0;
    logic [2:0] known = 0, own = 0;
    logic [39:0] times;
    always_ff @(posedge clk) begin
        were       <= wanted;
        its_flags  <= flags | {1'b0, wrong};
        time_then  <= now_timestamp_ns[7:0];
        valid_then <= now_timestamp_valid;
        cycle_then <= now_cycle_ts[7:0];
        clocks     <= clocks + 8'(edges[0]);
        triggers   <= triggers + 8'(trigger);
        starts     <= starts + 8'(start);
        burst      <= start || burst && !stop;
        if (start) start_at <= now_timestamp_ns[7:0];
        if (stop) end_at <= now_timestamp_ns[7:0];
        if (trigger) trigger_at <= now_timestamp_ns[7:0];
        times      <= {times[31:0], now_timestamp_ns[7:0]};
        own        <= own + 3'(own != 5);
        if (wr_set || start && cfg_set_on_start) begin
            own  <= 3'd0;
            base <= wr_set ? 8'd200 : 8'd100;
        end
        if (rst) begin
            {were, clocks, triggers, starts, start_at, end_at, trigger_at, base, own, burst} <= '0;
        end
    end

    // 6.4 ns a cycle, without what is behind the point.
    wire [7:0] moved = own == 0 ? 8'd0 : own == 1 ? 8'd6 : own == 2 ? 8'd12 : own == 3 ? 8'd19 : 8'd25;

    always_comb if (up) begin
        assert (m_event_valid == (were != 0));
        if (m_event_valid) begin
            assert (m_event_edges == were && m_event_flags == its_flags && m_event_timestamp_valid == valid_then);
            assert (m_event_timestamp_ns[7:0] == time_then && m_event_cycle_ts[7:0] == cycle_then);
            assert (m_event_clocks[7:0] == clocks && m_event_triggers[7:0] == triggers && m_event_burst[7:0] == starts);
        end
        // Lost as a whole, or not at all.
        assert (set_flags == {m_event_valid && !m_event_ready, wrong});
        assert (inc_events_lost == (set_flags[4] ? 3'(were[0]) + 3'(were[1]) + 3'(were[2]) + 3'(were[3]) : 3'd0));
        assert (inc_clocks == edges[0] && inc_triggers == edges[3] && inc_unpaired == (unpaired != 0));
        assert (in_burst == burst && bursts[7:0] == starts);
        assert (at_start[7:0] == start_at && at_end[7:0] == end_at && at_trigger[7:0] == trigger_at);
        if (!in_rst) assert (now_cycle_ts[7:0] == cycle_then + 8'd1);
        if (own < 5) assert (now_timestamp_ns[7:0] == base + moved);
        else assert (now_timestamp_ns[7:0] - times[39:32] == 8'd32);
        cover (m_event_valid && m_event_edges == 4'b1111 && !m_event_ready && starts == 2);
        cover (in_burst && start && stop && own == 5);
    end
endmodule
