// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Writes event records of 64 bytes to the queues in host memory (docs/formats/event-record.md): in
// the order in which sources are granted, round robin, each with its phase bit and the timestamp of
// its writing. A record is offered to the host bus four cycles after it is offered here.
//
// Room of a queue means that ROOM records are free: a source has at most one in flight, and asks for
// room when its last one has been accepted, so it fits. Where a consumer withdraws space
// (an impossible RELEASED, or a disabled queue), the record is discarded: a record that the
// consumer has not released is never overwritten. Likewise one whose function does not own the queue.

module plx_event_writer #(
    parameter SOURCES      = 4,    // sources of events
    parameter EVENT_QUEUES = 256,  // queues, 1 to 256
    parameter ASKERS       = 7,    // of room, at the same time
    parameter ROOM         = 4     // records that are free while there is room
) (
    input  logic                   clk,
    input  logic                   rst,
    input  logic [63:0]            now_cycle_ts,

    // Registers of the queues.
    input  logic                   win_valid,
    output logic                   win_ready,
    input  logic                   win_write,
    input  logic [13:0]            win_addr,
    input  logic [31:0]            win_wdata,
    input  logic [3:0]             win_wstrb,
    output logic [31:0]            win_rdata,

    // The owner of a queue, in the same cycle.
    output logic [7:0]             m_owner_queue,
    input  logic [2:0]             s_owner,

    // Functions in reset.
    input  logic [7:0]             resetting,

    // Queues, and in the next cycle whether there is room in them.
    input  logic [ASKERS*8-1:0]    s_room_queue,
    output logic [ASKERS-1:0]      m_room,

    // Events, of each source, with their function. A source shows its record until `ready`.
    input  logic [SOURCES-1:0]     s_event_valid,
    output logic [SOURCES-1:0]     s_event_ready,
    input  logic [SOURCES*8-1:0]   s_event_queue,
    input  logic [SOURCES*3-1:0]   s_event_func,
    input  logic [SOURCES*512-1:0] s_event_record,

    // Writes to the host: two words each. `m_accepted` says that the last word was, in the cycle before.
    output logic                   m_desc_valid,
    input  logic                   m_desc_ready,
    output logic [63:0]            m_desc_address,
    output logic [12:0]            m_desc_length,
    output logic [7:0]             m_desc_func,
    output logic                   m_data_tvalid,
    input  logic                   m_data_tready,
    output logic [255:0]           m_data_tdata,
    output logic                   m_data_tlast,
    input  logic                   m_accepted,

    // An interrupt request of a queue, for one cycle.
    output logic                   m_irq_valid,
    output logic [7:0]             m_irq_queue,

    // One cycle for each discarded record. No record has a grant alone, and no source has one of a function in reset; no
    // record is offered, none is to be counted, or the one that is goes on in this cycle: a bit each, and once they
    // have been set in this order, in different cycles, all records that were granted before, and those of functions in
    // reset that sources offered, have been written. Sources take turns, so those of others do not hold it up.
    output logic                   inc_discarded,
    output logic [2:0]             rest
);
    localparam QW    = EVENT_QUEUES < 2 ? 1 : $clog2(EVENT_QUEUES);
    localparam DEPTH = EVENT_QUEUES < 2 ? 2 : EVENT_QUEUES;

    generate
        if (SOURCES < 2) SOURCES_must_be_at_least_2 parameter_error ();
        if (ASKERS < 1) ASKERS_must_be_at_least_1 parameter_error ();
        if (ROOM < SOURCES) ROOM_must_be_at_least_SOURCES parameter_error ();
    endgenerate

    // ---- Grants -------------------------------------------------------------------------------------

    // One record is granted until it has its place; another is offered until it is accepted, one is to be counted.
    // A record without its queue: that has begun anew meanwhile.
    logic [SOURCES-1:0] grant, granted;
    logic               clearing, held, placing, place_ready, place_valid, fits, phase, offered, written, written_ready,
                        void_valid;
    logic [63:0]        address;
    logic [7:0]         next_queue, to, offered_queue, written_queue, void_queue;
    logic [2:0]         next_func, func;
    logic [511:0]       record;

    plx_arb_rr #(.N(SOURCES)) arbiter (
        .clk, .rst, .request(s_event_valid & ~s_event_ready & {SOURCES{!held && !clearing}}), .grant, .done(1'b1)
    );

    integer s;
    always_comb begin
        next_queue = '0;
        next_func  = '0;
        record     = '0;
        for (s = 0; s < SOURCES; s = s + 1) begin
            next_queue = next_queue | (s_event_queue[s*8 +: 8] & {8{grant[s]}});
            next_func  = next_func | (s_event_func[s*3 +: 3] & {3{grant[s]}});
            record     = record | (s_event_record[s*512 +: 512] & {512{granted[s]}});
        end
    end

    // The one before has left. (Whether its last word leaves in this cycle is known too late for a choice.)
    wire place = placing && (!offered || m_accepted);
    // Those before do not count.
    logic offered_void;
    wire  is_void = offered_void || void_valid && void_queue == offered_queue;

    // Sources that offered one of a function in reset a cycle ago: it may have its grant since.
    logic [SOURCES-1:0] old;
    genvar g;
    generate
        for (g = 0; g < SOURCES; g = g + 1) begin : g_old
            wire [2:0] whose = s_event_func[g*3 +: 3];
            always_ff @(posedge clk) old[g] <= s_event_valid[g] && resetting[whose];
        end
    endgenerate

    assign rest = {!written || written_ready, !offered || m_accepted, !held && old == 0};

    always_ff @(posedge clk) begin
        if (place_ready) placing <= 1'b0;
        if (place_valid) held <= 1'b0;
        if (|grant) begin
            placing <= 1'b1;
            held    <= 1'b1;
        end
        if (m_accepted) offered <= 1'b0;
        if (place_valid && fits) offered <= 1'b1;
        offered_void <= is_void && !place_valid;
        if (written_ready || void_valid && void_queue == written_queue) written <= 1'b0;
        if (m_accepted && !is_void) written <= 1'b1;
        // The room that it leaves is known when its source asks again.
        s_event_ready <= granted & {SOURCES{place_valid}};
        inc_discarded <= place_valid && !fits;
        if (rst) begin
            placing       <= 1'b0;
            held          <= 1'b0;
            offered       <= 1'b0;
            offered_void  <= 1'b0;
            written       <= 1'b0;
            s_event_ready <= '0;
            inc_discarded <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        if (|grant) begin
            granted <= grant;
            to      <= next_queue;
            func    <= next_func;
        end
        if (place_valid) offered_queue <= to;
        if (m_accepted) written_queue <= offered_queue;
    end

    // ---- The queues ---------------------------------------------------------------------------------

    logic       room_valid, room_now;
    logic [7:0] room_queue;

    plx_event_queues #(.EVENT_QUEUES(EVENT_QUEUES), .ROOM(ROOM)) queues (
        .clk, .rst, .clearing, .win_valid, .win_ready, .win_write, .win_addr, .win_wdata, .win_wstrb, .win_rdata,
        .m_owner_queue, .s_owner,
        .s_event_valid(place), .s_event_ready(place_ready), .s_event_queue(to), .s_event_func(func),
        .m_place_valid(place_valid), .m_place_fits(fits), .m_place_address(address), .m_place_phase(phase),
        .s_written_valid(written), .s_written_ready(written_ready), .s_written_queue(written_queue),
        .m_void_valid(void_valid), .m_void_queue(void_queue),
        .m_room_valid(room_valid), .m_room_queue(room_queue), .m_room(room_now), .m_irq_valid, .m_irq_queue
    );

    // A bit of each queue, read by all who ask.
    logic rooms [0:DEPTH-1];

    always_ff @(posedge clk) if (room_valid) rooms[room_queue[QW-1:0]] <= room_now;

    genvar a;
    generate
        for (a = 0; a < ASKERS; a = a + 1) begin : g_ask
            wire [7:0] which = s_room_queue[a*8 +: 8];
            always_ff @(posedge clk) m_room[a] <= rooms[which[QW-1:0]] && {1'b0, which} < EVENT_QUEUES && !clearing;
        end
    endgenerate

    // ---- Writes -------------------------------------------------------------------------------------

    logic [255:0] second;

    assign m_desc_length = 13'd64;

    always_ff @(posedge clk) begin
        if (m_desc_ready) m_desc_valid <= 1'b0;
        if (m_data_tready && m_data_tvalid) begin
            if (m_data_tlast) m_data_tvalid <= 1'b0;
            m_data_tlast <= 1'b1;
        end
        if (place_valid && fits) begin
            m_desc_valid  <= 1'b1;
            m_data_tvalid <= 1'b1;
            m_data_tlast  <= 1'b0;
        end
        if (rst) begin
            m_desc_valid  <= 1'b0;
            m_data_tvalid <= 1'b0;
        end
    end

    // The timestamp is that of the cycle in which the first word is accepted.
    localparam STAMP = layouts_pkg::CLOP_BUFFER_STAGES_AT + 96 - 256;
    localparam PHASE = layouts_pkg::EVENT_RECORD_FLAGS_AT + 7 - 256;

    always_ff @(posedge clk) begin
        if (m_data_tready && m_data_tvalid) begin
            m_data_tdata              <= second;
            m_data_tdata[STAMP +: 32] <= now_cycle_ts[31:0];
        end
        if (place_valid) begin
            m_desc_func    <= {5'd0, func};
            m_desc_address <= address;
            m_data_tdata   <= record[255:0];
            second         <= record[511:256];
            second[PHASE]  <= phase;
        end
    end

    wire unused = &{1'b0, now_cycle_ts[63:32], room_queue};
endmodule
