// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Events of the timing input to records for plx_event_writer: the events of one cycle enter a short fifo
// together, and leave one after the other, an end before a start of the same cycle.

module plx_timing_event #(
    parameter DEPTH = 8  // cycles with events that may wait, a power of two
) (
    // Output of `plx_timing`; the event queue.
    input  logic                    clk_net,
    input  logic                    rst_net,
    input  logic [7:0]              cfg_queue,
    input  logic                    s_event_valid,
    output logic                    s_event_ready,
    input  logic [3:0]              s_event_edges,
    input  logic [63:0]             s_event_timestamp_ns,
    input  logic                    s_event_timestamp_valid,
    input  logic [31:0]             s_event_cycle_ts,
    input  logic [31:0]             s_event_burst,
    input  logic [4:0]              s_event_flags,
    input  logic [63:0]             s_event_clocks,
    input  logic [63:0]             s_event_triggers,

    // Records, to queues with room: a queue, and in the next cycle whether it has. Clear: the other clock's side is in reset, and what waits is lost.
    input  logic                    clk_core,
    input  logic                    rst_core,
    input  logic                    clear,
    output logic [7:0]              m_room_queue,
    input  logic                    s_room,
    output logic                    m_event_valid,
    input  logic                    m_event_ready,
    output logic [7:0]              m_event_queue,
    output logic [511:0]            m_event_record
);
    localparam WIDTH = 8 + 4 + 64 + 1 + 32 + 32 + 5 + 64 + 64;

    logic        valid, timestamp_valid;
    logic [7:0]  queue;
    logic [3:0]  edges;
    logic [63:0] timestamp_ns, clocks, triggers;
    logic [31:0] cycle_ts, burst;
    logic [4:0]  flags;
    wire         send, last;

    plx_fifo_async #(.WIDTH(WIDTH), .DEPTH(DEPTH)) crossing (
        .w_clk(clk_net), .w_rst(rst_net), .s_valid(s_event_valid), .s_ready(s_event_ready),
        .s_data({cfg_queue, s_event_edges, s_event_timestamp_ns, s_event_timestamp_valid, s_event_cycle_ts,
                 s_event_burst, s_event_flags, s_event_clocks, s_event_triggers}),
        .r_clk(clk_core), .r_rst(rst_core || clear), .m_valid(valid), .m_ready(send && last),
        .m_data({queue, edges, timestamp_ns, timestamp_valid, cycle_ts, burst, flags, clocks, triggers})
    );

    // Events that have left, and the next one: end, start, trigger, flag.
    logic [3:0]  gone;
    wire  [3:0]  left = edges & ~gone;
    wire  [1:0]  kind = left[1] ? 2'd1 : left[0] ? 2'd0 : left[2] ? 2'd2 : 2'd3;
    wire  [3:0]  one  = 4'd1 << kind;
    logic [31:0] sequence_number;

    assign last = left == one;
    // It is known whether the queue of the oldest has room.
    logic        asked;
    assign m_room_queue = queue;
    assign send         = valid && asked && !m_event_valid && s_room;

    always_ff @(posedge clk_core) begin
        if (m_event_ready) m_event_valid <= 1'b0;
        asked <= valid && !send;
        if (send) begin
            m_event_valid   <= 1'b1;
            sequence_number <= sequence_number + 32'd1;
            gone            <= last ? 4'd0 : gone | one;
        end
        if (clear) gone <= 4'd0;
        if (rst_core) begin
            m_event_valid   <= 1'b0;
            sequence_number <= 32'd0;
            gone            <= 4'd0;
        end
    end

    // A burst that ended with the start of another is the one before that.
    wire [31:0] index = kind == 2'd1 && edges[0] ? burst - 32'd1 : burst;

    always_ff @(posedge clk_core) if (send) begin
        m_event_queue  <= queue;
        m_event_record <= '0;
        m_event_record[layouts_pkg::EVENT_RECORD_WIRE_AT +: 64]         <= timestamp_ns;
        m_event_record[layouts_pkg::EVENT_RECORD_INDEX_AT +: 32]        <= index;
        m_event_record[layouts_pkg::TIMING_EDGE_EDGE_AT +: 2]           <= kind;
        m_event_record[layouts_pkg::TIMING_EDGE_FLAGS_AT +: 5]          <= flags;
        m_event_record[layouts_pkg::TIMING_EDGE_CLOCKS_AT +: 64]        <= clocks;
        m_event_record[layouts_pkg::TIMING_EDGE_TRIGGERS_AT +: 64]      <= triggers;
        m_event_record[layouts_pkg::TIMING_EDGE_STAGES_AT + 64 +: 32]   <= cycle_ts;
        m_event_record[layouts_pkg::EVENT_RECORD_SEQUENCE_AT +: 32]     <= sequence_number;
        m_event_record[layouts_pkg::EVENT_RECORD_KIND_AT +: 8]          <= layouts_pkg::TIMING_EDGE_KIND;
        m_event_record[layouts_pkg::EVENT_RECORD_FLAGS_AT]              <= timestamp_valid;
    end
endmodule
