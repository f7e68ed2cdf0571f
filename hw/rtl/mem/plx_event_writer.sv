// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Writes event records of 64 bytes to the queues in host memory (docs/formats/event-record.md): in
// the order in which sources are granted, round robin, each with its phase bit and the stamp of
// its writing. A record is offered to the host bus two cycles after it is offered here.
//
// `room` of a queue means that ROOM records are free: a source has at most one in flight, and checks
// `room` when its last one has been accepted, so it fits. Where a consumer withdraws space
// (an impossible RELEASED, or a disabled queue), the record is discarded: a record that the
// consumer has not released is never overwritten. Likewise one whose function does not own the queue.

module plx_event_writer #(
    parameter SOURCES      = 4,  // sources of events
    parameter EVENT_QUEUES = 8,  // queues, 1 to 8
    parameter ROOM         = 4   // records that are free while `room` is set
) (
    input  logic                       clk,
    input  logic                       rst,
    input  logic [63:0]                now_stamp,

    // Registers of the queues: 2^log2_size records from `base`; released by the consumer; written.
    input  logic [EVENT_QUEUES*64-1:0] cfg_queue_base,
    input  logic [EVENT_QUEUES-1:0]    cfg_queue_ctrl_enable,
    input  logic [EVENT_QUEUES*5-1:0]  cfg_queue_ctrl_log2_size,
    input  logic [EVENT_QUEUES*32-1:0] cfg_queue_released,
    output logic [EVENT_QUEUES*32-1:0] sts_queue_produced,
    input  logic [EVENT_QUEUES*3-1:0]  cfg_queue_owner,

    // Events, of each source, with their function; and the queues with room for them.
    input  logic [SOURCES-1:0]         s_event_valid,
    output logic [SOURCES-1:0]         s_event_ready,
    input  logic [SOURCES*3-1:0]       s_event_queue,
    input  logic [SOURCES*3-1:0]       s_event_func,
    input  logic [SOURCES*512-1:0]     s_event_record,
    output logic [EVENT_QUEUES-1:0]    room,

    // Writes to the host: two words each. `m_taken` says that the last word was.
    output logic                       m_desc_valid,
    input  logic                       m_desc_ready,
    output logic [63:0]                m_desc_address,
    output logic [12:0]                m_desc_length,
    output logic [7:0]                 m_desc_func,
    output logic                       m_data_tvalid,
    input  logic                       m_data_tready,
    output logic [255:0]               m_data_tdata,
    output logic                       m_data_tlast,
    input  logic                       m_taken,

    // One cycle for each discarded record; a record has been accepted, and has not been written.
    output logic                       inc_discarded,
    output logic                       busy
);
    localparam QW = EVENT_QUEUES < 2 ? 1 : $clog2(EVENT_QUEUES);

    generate
        if (SOURCES < 2) SOURCES_must_be_at_least_2 parameter_error ();
        if (EVENT_QUEUES < 1 || EVENT_QUEUES > 8) EVENT_QUEUES_must_be_1_to_8 parameter_error ();
        if (ROOM < SOURCES) ROOM_must_be_at_least_SOURCES parameter_error ();
    endgenerate

    // One record at a time: free, offered, or waiting for acceptance.
    logic [SOURCES-1:0] grant;

    plx_arb_rr #(.N(SOURCES)) arbiter (.clk, .rst, .request(s_event_valid & {SOURCES{!busy}}), .grant, .done(1'b1));

    assign s_event_ready = grant;

    integer s;
    logic [2:0]   queue_wide, func;
    logic [511:0] record;
    always_comb begin
        queue_wide = '0;
        func       = '0;
        record     = '0;
        for (s = 0; s < SOURCES; s = s + 1) begin
            queue_wide = queue_wide | (s_event_queue[s*3 +: 3] & {3{grant[s]}});
            func       = func | (s_event_func[s*3 +: 3] & {3{grant[s]}});
            record     = record | (s_event_record[s*512 +: 512] & {512{grant[s]}});
        end
    end

    // Each queue: records accepted, the basis of `room`, and written.
    logic [EVENT_QUEUES*32-1:0] accepted;
    logic [EVENT_QUEUES-1:0]    free;

    // The queue of the granted record.
    wire          known  = {1'b0, queue_wide} < EVENT_QUEUES;
    wire [QW-1:0] which  = queue_wide[QW-1:0];
    wire [31:0]   number = accepted[which*32 +: 32];
    wire [63:0]   base   = cfg_queue_base[which*64 +: 64];
    wire [4:0]    log2   = cfg_queue_ctrl_log2_size[which*5 +: 5];
    wire [31:0]   place  = number & ~(32'hFFFFFFFF << log2);
    wire [31:0]   passes = number >> log2;
    wire          phase  = !passes[0];
    wire          owned  = cfg_queue_owner[which*3 +: 3] == func;
    wire          fits   = known && owned && free[which] && cfg_queue_ctrl_enable[which];

    logic [2:0]   to;
    logic [255:0] second;

    genvar q;
    generate
        for (q = 0; q < EVENT_QUEUES; q = q + 1) begin : queue
            wire [31:0] used = accepted[q*32 +: 32] - cfg_queue_released[q*32 +: 32];
            wire [31:0] size = 32'd1 << cfg_queue_ctrl_log2_size[q*5 +: 5];

            // An impossible released number gives more than `size` used.
            // Known a cycle late, before another record can be accepted.
            always_ff @(posedge clk) free[q] <= used < size;
            assign room[q] = cfg_queue_ctrl_enable[q] && {1'b0, used} + ROOM <= {1'b0, size};

            always_ff @(posedge clk) begin
                if (|grant && fits && queue_wide == q) accepted[q*32 +: 32] <= number + 1'b1;
                if (busy && m_taken && to == q) sts_queue_produced[q*32 +: 32] <= accepted[q*32 +: 32];
                if (rst || !cfg_queue_ctrl_enable[q]) begin
                    accepted[q*32 +: 32]           <= '0;
                    sts_queue_produced[q*32 +: 32] <= '0;
                end
            end
        end
    endgenerate

    assign m_desc_length = 13'd64;
    assign inc_discarded = |grant && !fits;

    always_ff @(posedge clk) begin
        if (m_desc_ready) m_desc_valid <= 1'b0;
        if (m_data_tready && m_data_tvalid) begin
            if (m_data_tlast) m_data_tvalid <= 1'b0;
            m_data_tlast <= 1'b1;
        end
        if (m_taken) busy <= 1'b0;
        if (|grant && fits) begin
            busy          <= 1'b1;
            m_desc_valid  <= 1'b1;
            m_data_tvalid <= 1'b1;
            m_data_tlast  <= 1'b0;
        end
        if (rst) begin
            busy          <= 1'b0;
            m_desc_valid  <= 1'b0;
            m_data_tvalid <= 1'b0;
        end
    end

    // The stamp is that of the cycle in which the first word is accepted.
    localparam STAMP = layouts_pkg::CLOP_BUFFER_STAGES_AT + 96 - 256;
    localparam PHASE = layouts_pkg::EVENT_RECORD_FLAGS_AT + 7 - 256;

    always_ff @(posedge clk) begin
        if (m_data_tready && m_data_tvalid) begin
            m_data_tdata              <= second;
            m_data_tdata[STAMP +: 32] <= now_stamp[31:0];
        end
        if (|grant && fits) begin
            to             <= queue_wide;
            m_desc_func    <= {5'd0, func};
            m_desc_address <= base + {26'd0, place, 6'd0};
            m_data_tdata   <= record[255:0];
            second         <= record[511:256];
            second[PHASE]  <= phase;
        end
    end

    wire unused = &{1'b0, now_stamp[63:32], passes[31:1]};
endmodule
