// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Time: the counter of cycles, the timestamp of payloads in nanoseconds, and the inputs that set and
// latch it: external clock, start and end of burst, trigger. An edge is detected 2 to 3 cycles after
// its arrival, and counts then; a level must last a cycle and its setup time.

module plx_timing (
    input  logic        clk,
    input  logic        rst,

    // Timing input, of any clock: rising edges count.
    input  logic        ttc_clock,
    input  logic        ttc_start,
    input  logic        ttc_end,
    input  logic        ttc_trigger,

    // The present time.
    output logic [63:0] now_cycle_ts,
    output logic [63:0] now_timestamp_ns,
    output logic        now_timestamp_valid,

    // Settings; present flags.
    input  logic        cfg_from_clock,
    input  logic        cfg_set_on_start,
    input  logic        cfg_event_burst,
    input  logic        cfg_event_trigger,
    input  logic        cfg_event_flag,
    input  logic [31:0] cfg_period,
    input  logic [15:0] cfg_watch_expect,
    input  logic [15:0] cfg_watch_tolerance,
    input  logic [63:0] cfg_set,
    input  logic        wr_set,
    input  logic [63:0] cfg_preset,
    input  logic [4:0]  flags,

    // Errors, in the order of the flags: unexpected start, unexpected end, early, lost; an event that
    // did not fit.
    output logic [4:0]  set_flags,

    // Bursts so far, whether a burst is in progress, the timestamp at the last of each edge.
    output logic [31:0] bursts,
    output logic        in_burst,
    output logic [63:0] at_start,
    output logic [63:0] at_end,
    output logic [63:0] at_trigger,

    // Events of one cycle, to be accepted at once or lost: the edges (as in TimingEdge), and their
    // fields.
    output logic        m_event_valid,
    input  logic        m_event_ready,
    output logic [3:0]  m_event_edges,
    output logic [63:0] m_event_timestamp_ns,
    output logic        m_event_timestamp_valid,
    output logic [31:0] m_event_cycle_ts,
    output logic [31:0] m_event_burst,
    output logic [4:0]  m_event_flags,
    output logic [63:0] m_event_clocks,
    output logic [63:0] m_event_triggers,

    // Counts; several events may be lost at once.
    output logic        inc_clocks,
    output logic        inc_triggers,
    output logic        inc_early,
    output logic        inc_lost,
    output logic        inc_unpaired,
    output logic [2:0]  inc_events_lost
);
    // ---- Edges ----------------------------------------------------------------------------------

    logic [3:0] level, level_before;
    wire  [3:0] edges      = level & ~level_before;
    wire        clock_edge = edges[0], start = edges[1], stop = edges[2], trigger = edges[3];

    plx_sync_bit #(.WIDTH(4)) inputs (.clk, .rst, .d({ttc_trigger, ttc_end, ttc_start, ttc_clock}), .q(level));

    always_ff @(posedge clk) level_before <= rst ? 4'd0 : level;

    // An end in the cycle of a start belongs to the previous burst.
    wire unexpected_start = start && in_burst && !stop;
    wire unexpected_end   = stop && !in_burst;

    always_ff @(posedge clk) begin
        in_burst <= start || in_burst && !stop;
        bursts   <= bursts + {31'd0, start};
        if (start) at_start <= now_timestamp_ns;
        if (stop) at_end <= now_timestamp_ns;
        if (trigger) at_trigger <= now_timestamp_ns;
        if (rst) begin
            in_burst   <= 1'b0;
            bursts     <= 32'd0;
            at_start   <= 64'd0;
            at_end     <= 64'd0;
            at_trigger <= 64'd0;
        end
    end

    // ---- Time -----------------------------------------------------------------------------------

    // Own time: 6.4 ns a cycle are 6 and 2 fifths. External clock: units of 2^-16 ns.
    logic [2:0]  fifths;
    logic [15:0] fraction;
    wire         carry = fifths >= 3'd3;

    always_ff @(posedge clk) begin
        now_cycle_ts <= now_cycle_ts + 64'd1;
        if (wr_set || start && cfg_set_on_start) begin
            now_timestamp_ns    <= wr_set ? cfg_set : cfg_preset;
            now_timestamp_valid <= 1'b1;
            fifths              <= 3'd0;
            fraction            <= 16'd0;
        end else if (!cfg_from_clock) begin
            now_timestamp_ns <= now_timestamp_ns + 64'd6 + {63'd0, carry};
            fifths           <= carry ? fifths - 3'd3 : fifths + 3'd2;
        end else if (clock_edge) begin
            {now_timestamp_ns, fraction} <= {now_timestamp_ns, fraction} + {48'd0, cfg_period};
        end
        if (rst) begin
            now_cycle_ts        <= 64'd0;
            now_timestamp_ns    <= 64'd0;
            now_timestamp_valid <= 1'b0;
            fifths              <= 3'd0;
            fraction            <= 16'd0;
        end
    end

    // ---- Watch ----------------------------------------------------------------------------------

    // Cycles since the last external clock; or since a missing one was due: the next is then not
    // early.
    logic [17:0] since;
    logic        unknown;
    wire         watched = cfg_watch_expect != 0;
    wire  [17:0] latest  = {2'd0, cfg_watch_expect} + {2'd0, cfg_watch_tolerance};
    wire         early   = watched && clock_edge && !unknown
                           && since + {2'd0, cfg_watch_tolerance} < {2'd0, cfg_watch_expect};
    wire         lost    = watched && since > latest;

    always_ff @(posedge clk) begin
        since <= since + 18'd1;
        if (lost) begin
            since   <= {2'd0, cfg_watch_tolerance} + 18'd2;
            unknown <= 1'b1;
        end
        if (clock_edge) begin
            since   <= 18'd1;
            unknown <= 1'b0;
        end
        if (rst || !watched) begin
            since   <= 18'd1;
            unknown <= 1'b1;
        end
    end

    // ---- Counts, flags, events ------------------------------------------------------------------

    logic [63:0] clocks, triggers;
    wire  [63:0] clocks_next   = clocks + {63'd0, clock_edge};
    wire  [63:0] triggers_next = triggers + {63'd0, trigger};
    wire  [3:0]  wrong         = {lost, early, unexpected_end, unexpected_start};
    wire  [3:0]  news          = wrong & ~flags[3:0];
    // Start, end, trigger, a flag that was not set before.
    wire  [3:0]  events        = {cfg_event_flag && news != 0, cfg_event_trigger && trigger,
                                  cfg_event_burst && stop, cfg_event_burst && start};
    wire         dropped       = m_event_valid && !m_event_ready;

    assign set_flags       = {dropped, wrong};
    assign inc_clocks      = clock_edge;
    assign inc_triggers    = trigger;
    assign inc_early       = early;
    assign inc_lost        = lost;
    assign inc_unpaired    = unexpected_start || unexpected_end;
    assign inc_events_lost = dropped ? {2'd0, m_event_edges[0]} + {2'd0, m_event_edges[1]} + {2'd0, m_event_edges[2]}
                                       + {2'd0, m_event_edges[3]} : 3'd0;

    always_ff @(posedge clk) begin
        m_event_valid <= !rst && events != 0;
        clocks        <= rst ? 64'd0 : clocks_next;
        triggers      <= rst ? 64'd0 : triggers_next;
    end

    always_ff @(posedge clk) if (events != 0) begin
        m_event_edges           <= events;
        m_event_timestamp_ns    <= now_timestamp_ns;
        m_event_timestamp_valid <= now_timestamp_valid;
        m_event_cycle_ts        <= now_cycle_ts[31:0];
        m_event_burst           <= bursts + {31'd0, start};
        m_event_flags           <= flags | {1'b0, wrong};
        m_event_clocks          <= clocks_next;
        m_event_triggers        <= triggers_next;
    end
endmodule
