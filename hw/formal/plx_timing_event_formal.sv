// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Between any two clocks: each event of an accepted cycle becomes one record, an end before a start, trigger and flag,
// those of a cycle before those of the next; with the fields of that cycle, its queue, and the next sequence number.
// A record is offered to a queue that had room when that was asked for it, and stays as it is until it is accepted.
// One leaves when the queue between the clocks has shown its word for two cycles and there is room. A clear forgets
// what waits, and nothing else. Each cycle's fields are its number, at both ends. ABC finds no invariant of it.
// formal: edges
// formal: aiger
// formal: abstract plx_fifo_async
// formal: bounded 22
// formal: cover 16
// mutant: left[1] ? 2'd1 : left[0] ? 2'd0 => left[0] ? 2'd0 : left[1] ? 2'd1
// mutant: left[2] ? 2'd2 : 2'd3; => left[3] ? 2'd3 : 2'd2;
// mutant: .m_ready(send && last) => .m_ready(send)
// mutant: .m_ready(send && last) => .m_ready(last && !m_event_valid)
// mutant: gone            <= last ? 4'd0 : gone | one; => gone            <= gone | one;
// mutant: gone            <= last ? 4'd0 : gone | one; => gone            <= last ? 4'd0 : one;
// mutant: if (clear) gone <= 4'd0; => if (1'b0) gone <= 4'd0;
// mutant: .r_rst(rst_core || clear) => .r_rst(rst_core)
// mutant: valid && asked && !m_event_valid && s_room; => valid && asked && s_room;
// mutant: valid && asked && !m_event_valid && s_room; => valid && !m_event_valid && s_room;
// mutant: valid && asked && !m_event_valid && s_room; => valid && asked && !m_event_valid;
// mutant: asked <= valid && !send; => asked <= valid;
// mutant: asked <= valid && !send; => asked <= asked && valid && !send;
// mutant: if (m_event_ready) m_event_valid <= 1'b0; => if (m_event_ready || clear) m_event_valid <= 1'b0;
// mutant: sequence_number <= sequence_number + 32'd1; => sequence_number <= sequence_number + {31'd0, last};
// mutant: kind == 2'd1 && edges[0] ? => kind == 2'd1 ?
// mutant: kind == 2'd1 && edges[0] ? => edges[0] && edges[1] ?
// mutant: m_event_queue  <= queue; => m_event_queue  <= cfg_queue;

module plx_timing_event_formal (
    input logic       clk_net,
    input logic       rst_net,
    input logic       s_event_valid,
    input logic [3:0] s_event_edges,
    input logic       clk_core,
    input logic       rst_core,
    input logic       clear,
    input logic       s_room,
    input logic       m_event_ready
);
    // The number of the next cycle with events; the next one that leaves; events of it that have left.
    logic [2:0] coming = 0, leaving = 0;
    logic [3:0] done = 0;

    // Fields of a cycle.
    function [7:0] queue_of(input [2:0] id);
        queue_of = {id, 2'd0, id};
    endfunction
    function [31:0] word_of(input [2:0] id, input [3:0] field);
        word_of = {id, 19'd0, field, 3'd0, id};
    endfunction
    function [63:0] long_of(input [2:0] id, input [3:0] field);
        long_of = {id, 51'd0, field, 3'd0, id};
    endfunction

    logic         s_event_ready, m_event_valid;
    logic [7:0]   m_room_queue, m_event_queue;
    logic [511:0] m_event_record;

    plx_timing_event #(.DEPTH(4)) dut (
        .*, .cfg_queue(queue_of(coming)), .s_event_timestamp_ns(long_of(coming, 4'd1)),
        .s_event_timestamp_valid(coming[1]), .s_event_cycle_ts(word_of(coming, 4'd2)),
        .s_event_burst(word_of(coming, 4'd4)), .s_event_flags({coming[0], 1'b0, coming}),
        .s_event_clocks(long_of(coming, 4'd8)), .s_event_triggers(long_of(coming, 4'd15))
    );

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire [2:0]    \dut.crossing.level ;
    (* hierconn *) wire          \dut.crossing.m_valid , \dut.asked ;
    (* hierconn *) wire [1095:0] \dut.crossing.words ;
    (* hierconn *) wire [3:0]    \dut.gone ;
    localparam WIDTH = 274;
    wire [2:0] level = \dut.crossing.level ;
    wire [4*WIDTH-1:0] words = \dut.crossing.words ;
    wire       shown = \dut.crossing.m_valid ;

    (* gclk *) wire step;

    // ---- Resets -----------------------------------------------------------------------------------

    // The core's side has sampled its reset; the ports' side has, since; ever. The reset of the whole is both.
    // What waits is lost, once the ports' side has sampled its reset.
    wire  core_reset = rst_core || clear;
    logic stale = 0;
    logic core_in = 0, net_in = 0, up = 0, all_in = 0, was_core = 1, was_all = 1;
    always_ff @(posedge step) begin
        was_core <= core_reset;
        was_all  <= rst_core;
        if (clk_core) core_in <= core_reset;
        if (clk_core) all_in <= rst_core;
        net_in   <= core_in && core_reset && (net_in || clk_net && rst_net);
        up       <= up || net_in && all_in;
        if (clk_net && rst_net) stale <= 1'b0;
        else if (clk_core && core_reset && !core_in) stale <= 1'b1;
    end
    always_comb begin
        if (!up) assume (rst_net && rst_core);
        if (rst_net && up) assume (core_in && core_reset);
        if (was_core && !core_reset) assume (core_in && net_in);
        if (was_all && !all_in) assume (rst_core);
        // Events have edges. One may be offered in the first cycle of a reset: it is not accepted.
        if (s_event_valid) assume (s_event_edges != 0);
    end

    // ---- Cycles with events -------------------------------------------------------------------------

    logic [31:0] edges;
    wire  accept = clk_net && s_event_valid && s_event_ready && !rst_net;

    always_ff @(posedge step) if (accept) begin
        coming               <= coming + 3'd1;
        edges[4*coming +: 4] <= s_event_edges;
    end

    // ---- Records ------------------------------------------------------------------------------------

    // The last cycle of clk_core.
    logic       was_valid = 0, accepted = 0, was_room = 0, was_shown = 0, was_clear = 1, was_rst = 1;
    logic [7:0] room_queue, last_queue;
    logic [511:0] last_record;
    always_ff @(posedge clk_core) begin
        was_valid   <= m_event_valid && !rst_core;
        accepted    <= m_event_ready;
        was_room    <= s_room;
        room_queue  <= m_room_queue;
        last_queue  <= m_event_queue;
        last_record <= m_event_record;
        was_shown   <= shown && !m_event_valid;
        was_clear   <= core_reset;
        was_rst     <= rst_core;
    end
    // The queue that the answer of this cycle is about, and of the cycle before.
    logic [7:0] asked_queue;
    logic       was_known = 0;
    always_ff @(posedge clk_core) begin
        asked_queue <= room_queue;
        was_known   <= was_shown && shown && !m_event_valid && s_room && !core_reset;
    end

    wire  fresh = m_event_valid && (!was_valid || accepted);
    logic told = 0;
    // A fresh record is looked at once.
    wire  look = fresh && !told;
    always_ff @(posedge step) told <= !clk_core && (told || fresh);

    wire [3:0] its  = edges[4*leaving +: 4], left = its & ~done;
    wire [1:0] kind = left[1] ? 2'd1 : left[0] ? 2'd0 : left[2] ? 2'd2 : 2'd3;
    wire       last = (left & ~(4'd1 << kind)) == 0;
    logic [31:0] sequence_number = 0;

    logic [511:0] record;
    always_comb begin
        record = '0;
        record[layouts_pkg::EVENT_RECORD_WIRE_AT +: 64]      = long_of(leaving, 4'd1);
        record[layouts_pkg::EVENT_RECORD_INDEX_AT +: 32]     =
            kind == 1 && its[0] ? word_of(leaving, 4'd4) - 32'd1 : word_of(leaving, 4'd4);
        record[layouts_pkg::TIMING_EDGE_EDGE_AT +: 2]        = kind;
        record[layouts_pkg::TIMING_EDGE_FLAGS_AT +: 5]       = {leaving[0], 1'b0, leaving};
        record[layouts_pkg::TIMING_EDGE_CLOCKS_AT +: 64]     = long_of(leaving, 4'd8);
        record[layouts_pkg::TIMING_EDGE_TRIGGERS_AT +: 64]   = long_of(leaving, 4'd15);
        record[layouts_pkg::TIMING_EDGE_STAGES_AT + 64 +: 32] = word_of(leaving, 4'd2);
        record[layouts_pkg::EVENT_RECORD_SEQUENCE_AT +: 32]  = sequence_number;
        record[layouts_pkg::EVENT_RECORD_KIND_AT +: 8]       = layouts_pkg::TIMING_EDGE_KIND;
        record[layouts_pkg::EVENT_RECORD_FLAGS_AT]           = leaving[1];
    end

    // Behind the record that is looked at.
    wire [2:0] next = look && last ? leaving + 3'd1 : leaving;
    wire [3:0] gone = look ? last ? 4'd0 : done | 4'd1 << kind : done;

    always_ff @(posedge step) begin
        if (look) sequence_number <= sequence_number + 32'd1;
        leaving <= next;
        done    <= gone;
        // What waits is lost.
        if (clk_net && rst_net) begin
            leaving <= coming;
            done    <= 4'd0;
        end
        if (clk_core && rst_core) sequence_number <= 32'd0;
    end

    always_comb if (up) begin
        if (look) begin
            assert (m_event_record == record && m_event_queue == queue_of(leaving) && leaving != coming);
            assert (was_room && asked_queue == queue_of(leaving));
        end
        if (was_valid && !accepted && !was_rst) assert (m_event_valid);
        if (m_event_valid && !fresh) assert (m_event_record == last_record && m_event_queue == last_queue);
        if (was_rst) assert (!m_event_valid);
        if (was_known) assert (m_event_valid);
        // Each cycle waits until all of its events have left.
        if (!stale) assert (level == coming - next);
        // The module and the checker agree on what waits.
        assert (level <= 4);
        if (!stale) assert (gone == 0 || level != 0);
        assert (\dut.gone == (core_in ? 4'd0 : gone));
        if (\dut.asked && !core_in) assert (level != 0 && room_queue == queue_of(next));
        cover (look && done == 4'b0111 && leaving == 1 && !was_clear);
        cover (look && clear && was_clear);
        cover (level == 4 && done == 4'b0010 && sequence_number == 2);
    end

    generate
        for (genvar i = 0; i < 4; i = i + 1) begin : g_slot
            localparam [2:0] HERE = i;
            wire [2:0] id = next + HERE;
            always_comb if (up && !stale && level > HERE) begin
                assert (words[WIDTH*i +: WIDTH] == {queue_of(id), edges[4*id +: 4], long_of(id, 4'd1), id[1],
                    word_of(id, 4'd2), word_of(id, 4'd4), id[0], 1'b0, id, long_of(id, 4'd8), long_of(id, 4'd15)});
                assert (edges[4*id +: 4] != 0);
            end
        end
    endgenerate
endmodule
