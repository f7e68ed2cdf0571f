// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The card's structures in host memory, wired with their registers: lists of buffers, their pages,
// event queues, transmit rings.

module plx_memory #(
    parameter PORTS        = 4,    // ports of the card
    parameter TLB_ENTRIES  = 128,  // pages
    parameter EVENT_QUEUES = 256   // event queues
) (
    input  logic                    clk,
    input  logic                    rst,
    input  logic [63:0]             now_cycle_ts,

    // Registers: event, tlb, tx, clop; the function that accesses them.
    input  logic [2:0]              s_axil_func,
    input  logic [14:0]             s_axil_addr,
    input  logic [3:0]              s_axil_awvalid,
    output logic [3:0]              s_axil_awready,
    input  logic [31:0]             s_axil_wdata,
    input  logic [3:0]              s_axil_wstrb,
    input  logic [3:0]              s_axil_wvalid,
    output logic [3:0]              s_axil_wready,
    output logic [3:0]              s_axil_bvalid,
    input  logic [3:0]              s_axil_bready,
    input  logic [3:0]              s_axil_arvalid,
    output logic [3:0]              s_axil_arready,
    output logic [127:0]            s_axil_rdata,
    output logic [3:0]              s_axil_rvalid,
    input  logic [3:0]              s_axil_rready,

    // Owners of ports, that of a queue in the same cycle; functions in reset. Each port: a payload has space and no
    // status yet; its ring is at rest. Events that are being written: as plx_event_writer.
    input  logic [PORTS*3-1:0]      cfg_port_owner,
    output logic [7:0]              m_owner_queue,
    input  logic [2:0]              s_owner,
    input  logic [7:0]              resetting,
    output logic [PORTS-1:0]        placing,
    output logic [PORTS-1:0]        ring_quiet,
    output logic [2:0]              event_rest,

    // Of each function: an event for each of its TLB faults, and its queue.
    input  logic [7:0]              cfg_event_fault,
    input  logic [63:0]             cfg_fault_queue,

    // Payloads of the ports: their space, its bus address, their status.
    input  logic [PORTS-1:0]        s_select_valid,
    output logic [PORTS-1:0]        s_select_ready,
    input  logic [PORTS*7-1:0]      s_select_list,
    input  logic [PORTS*16-1:0]     s_select_length,
    input  logic [PORTS*64-1:0]     s_select_timestamp_ns,
    input  logic [PORTS-1:0]        s_select_timestamp_valid,
    output logic [PORTS-1:0]        m_select_valid,
    output logic [2:0]              m_select_status,
    output logic [63:0]             m_select_address,
    output logic [31:0]             m_select_sequence,
    output logic                    m_select_bare,
    output logic [15:0]             m_select_stride,
    output logic [7:0]              m_select_func,
    input  logic [PORTS-1:0]        s_xlate_valid,
    output logic [PORTS-1:0]        m_xlate_accepted,
    input  logic [PORTS*64-1:0]     s_xlate_address,
    input  logic [PORTS*13-1:0]     s_xlate_length,
    input  logic [PORTS*8-1:0]      s_xlate_func,
    input  logic [PORTS*7-1:0]      s_xlate_list,
    output logic [PORTS-1:0]        m_xlate_valid,
    output logic                    m_xlate_hit,
    output logic [63:0]             m_xlate_address,
    output logic                    m_xlate_epoch,
    input  logic [PORTS-1:0]        s_xlate_done,
    input  logic [PORTS-1:0]        s_xlate_done_epoch,
    input  logic [PORTS-1:0]        s_commit_valid,
    output logic [PORTS-1:0]        s_commit_ready,
    input  logic [PORTS*4-1:0]      s_commit_status,
    input  logic [PORTS*16-1:0]     s_commit_length,
    input  logic [PORTS*64-1:0]     s_commit_timestamp_ns,
    input  logic [PORTS-1:0]        s_commit_timestamp_valid,
    input  logic [PORTS*32-1:0]     s_commit_cycle_ts_mac,
    input  logic [PORTS*32-1:0]     s_commit_cycle_ts_parsed,
    input  logic [PORTS*32-1:0]     s_commit_cycle_ts_placed,

    // Writes accepted before have left the card.
    output logic                    m_fence,
    input  logic                    s_fence_done,

    // Events of the timing input; room in its queue, a cycle later.
    input  logic                    s_event_valid,
    output logic                    s_event_ready,
    input  logic [7:0]              s_event_queue,
    input  logic [511:0]            s_event_record,
    input  logic [7:0]              s_room_queue,
    output logic                    m_room,

    // Event records to memory; a discarded one.
    output logic                    m_desc_valid,
    input  logic                    m_desc_ready,
    output logic [63:0]             m_desc_address,
    output logic [12:0]             m_desc_length,
    output logic [7:0]              m_desc_func,
    output logic                    m_data_tvalid,
    input  logic                    m_data_tready,
    output logic [255:0]            m_data_tdata,
    output logic                    m_data_tlast,
    input  logic                    m_accepted,
    output logic                    inc_events_discarded,

    // An interrupt request of a queue.
    output logic                    m_irq_valid,
    output logic [7:0]              m_irq_queue,

    // Descriptors to each port, their completion, state of the packets in flight.
    output logic [PORTS-1:0]        m_tx_segment_valid,
    input  logic [PORTS-1:0]        m_tx_segment_ready,
    output logic [PORTS*256-1:0]    m_tx_segment,
    output logic [PORTS-1:0]        m_tx_segment_data,
    output logic [PORTS-1:0]        m_tx_segment_ends,
    output logic [PORTS-1:0]        m_tx_segment_flush,
    input  logic [PORTS-1:0]        s_done_valid,
    input  logic [PORTS-1:0]        s_done_end,
    input  logic [PORTS*2-1:0]      s_done_status,
    input  logic [PORTS*16-1:0]     s_done_length,
    input  logic [PORTS-1:0]        s_read_idle,
    input  logic [PORTS-1:0]        s_fifo_idle,
    input  logic [PORTS-1:0]        s_lost_valid,
    output logic [PORTS-1:0]        s_lost_ready,
    input  logic [PORTS*16-1:0]     s_lost_count,
    input  logic [PORTS*32-1:0]     s_lost_cookie,

    // Read requests of ports, and their data: to the port whose valid is set.
    input  logic [PORTS-1:0]        s_rd_desc_valid,
    output logic [PORTS-1:0]        s_rd_desc_ready,
    input  logic [PORTS*64-1:0]     s_rd_desc_address,
    input  logic [PORTS*16-1:0]     s_rd_desc_length,
    output logic [PORTS-1:0]        m_rd_data_tvalid,
    input  logic [PORTS-1:0]        m_rd_data_tready,
    output logic [255:0]            m_rd_data_tdata,
    output logic [31:0]             m_rd_data_tkeep,
    output logic                    m_rd_data_tlast,
    output logic                    m_rd_data_tuser,

    // All reads, to the host bus.
    output logic                    m_rd_desc_valid,
    input  logic                    m_rd_desc_ready,
    output logic [63:0]             m_rd_desc_address,
    output logic [15:0]             m_rd_desc_length,
    output logic [7:0]              m_rd_desc_tag,
    output logic [7:0]              m_rd_desc_func,
    input  logic                    s_rd_data_tvalid,
    output logic                    s_rd_data_tready,
    input  logic [255:0]            s_rd_data_tdata,
    input  logic [31:0]             s_rd_data_tkeep,
    input  logic                    s_rd_data_tlast,
    input  logic                    s_rd_data_tuser,
    input  logic [7:0]              s_rd_status_tag
);
    localparam EVENT = 0, TLB = 1, TX = 2, CLOP = 3;
    // Sources of events: lists, pages, timing, rings.
    localparam SOURCES = 4;
    logic [SOURCES-1:0]     event_valid, event_ready;
    logic [SOURCES*8-1:0]   event_queue;
    // Who asks for room: lists, pages, timing, each ring.
    localparam ASKERS = PORTS + 3;
    logic [ASKERS*8-1:0]    room_queue;
    logic [ASKERS-1:0]      room;
    logic [SOURCES*512-1:0] event_record;

    // Port p has bits p, 4 ports or fewer. Events and rings name theirs by two bits.
    wire [11:0] owners = 12'(cfg_port_owner);
    // A cycle late: a ring is disabled, and enabled anew, many cycles later.
    logic [PORTS-1:0] forget;
    generate
        for (genvar p = 0; p < PORTS; p = p + 1) begin : g_forget
            always_ff @(posedge clk) forget[p] <= resetting[owners[p*3 +: 3]];
        end
    endgenerate

    // ---- Lists ----------------------------------------------------------------------------------

    logic        list_valid, list_ready, status_valid, status_ready, clop_write;
    logic [31:0] list_rdata, status_rdata, clop_wdata;
    logic [14:0] clop_addr;
    logic [3:0]  clop_wstrb;
    logic [7:0]  list_func;

    /* verilator lint_off PINCONNECTEMPTY */
    plx_clop_regs clop_registers (
        .clk, .rst, .s_axil_awaddr(s_axil_addr), .s_axil_awvalid(s_axil_awvalid[CLOP]),
        .s_axil_awready(s_axil_awready[CLOP]), .s_axil_wdata, .s_axil_wstrb, .s_axil_wvalid(s_axil_wvalid[CLOP]),
        .s_axil_wready(s_axil_wready[CLOP]), .s_axil_bresp(), .s_axil_bvalid(s_axil_bvalid[CLOP]),
        .s_axil_bready(s_axil_bready[CLOP]), .s_axil_araddr(s_axil_addr), .s_axil_arvalid(s_axil_arvalid[CLOP]),
        .s_axil_arready(s_axil_arready[CLOP]), .s_axil_rdata(s_axil_rdata[CLOP*32 +: 32]), .s_axil_rresp(),
        .s_axil_rvalid(s_axil_rvalid[CLOP]), .s_axil_rready(s_axil_rready[CLOP]),
        .win_write(clop_write), .win_addr(clop_addr), .win_wdata(clop_wdata), .win_wstrb(clop_wstrb),
        .win_list_valid(list_valid), .win_list_ready(list_ready), .win_list_rdata(list_rdata),
        .win_outcome_valid(status_valid), .win_outcome_ready(status_ready), .win_outcome_rdata(status_rdata)
    );

    plx_clop #(.PORTS(PORTS)) clop (
        .clk, .rst, .now_cycle_ts,
        .win_list_valid(list_valid), .win_list_ready(list_ready), .win_list_rdata(list_rdata),
        .win_outcome_valid(status_valid), .win_outcome_ready(status_ready), .win_outcome_rdata(status_rdata),
        .win_write(clop_write), .win_addr(clop_addr), .win_wdata(clop_wdata), .win_wstrb(clop_wstrb),
        .s_select_valid, .s_select_ready, .s_select_list, .s_select_length, .s_select_timestamp_ns,
        .s_select_timestamp_valid, .m_select_valid, .m_select_status, .m_select_address, .m_select_sequence,
        .m_select_bare, .m_select_stride, .m_select_func(list_func), .s_commit_valid, .s_commit_ready,
        .s_commit_status, .s_commit_length, .s_commit_timestamp_ns, .s_commit_timestamp_valid,
        .s_commit_cycle_ts_mac, .s_commit_cycle_ts_parsed, .s_commit_cycle_ts_placed,
        .m_room_queue(room_queue[0 +: 8]), .s_room(room[0]), .m_event_valid(event_valid[0]),
        .m_event_ready(event_ready[0]), .m_event_queue(event_queue[0 +: 8]), .m_event_record(event_record[0 +: 512])
    );

    // Memory of a list belongs to the owner of its port; function 0 may place for another one.
    logic [2:0] list_owner;
    integer     o;
    always_comb begin
        list_owner = '0;
        for (o = 0; o < PORTS; o = o + 1) list_owner = list_owner | (owners[o*3 +: 3] & {3{m_select_valid[o]}});
    end
    assign m_select_func = list_owner == 0 ? list_func : {5'd0, list_owner};

    always_ff @(posedge clk) begin
        placing <= (placing | s_select_valid & s_select_ready) & ~(s_commit_valid & s_commit_ready);
        if (rst) placing <= '0;
    end

    // ---- Pages ----------------------------------------------------------------------------------

    logic        entry_valid, entry_ready, tlb_counters_valid, tlb_counters_ready, tlb_write,
                 invalidate_now, inc_misses, inc_faults, inc_events_lost;
    logic [31:0] entry_rdata, tlb_counters_rdata, tlb_wdata, invalidate, invalidated, miss_cycles;
    logic [12:0] tlb_addr;
    logic [3:0]  tlb_wstrb;
    logic [2:0]  fault_func;

    plx_tlb_regs tlb_registers (
        .clk, .rst, .s_axil_awaddr(s_axil_addr[12:0]), .s_axil_awvalid(s_axil_awvalid[TLB]),
        .s_axil_awready(s_axil_awready[TLB]), .s_axil_wdata, .s_axil_wstrb, .s_axil_wvalid(s_axil_wvalid[TLB]),
        .s_axil_wready(s_axil_wready[TLB]), .s_axil_bresp(), .s_axil_bvalid(s_axil_bvalid[TLB]),
        .s_axil_bready(s_axil_bready[TLB]), .s_axil_araddr(s_axil_addr[12:0]), .s_axil_arvalid(s_axil_arvalid[TLB]),
        .s_axil_arready(s_axil_arready[TLB]), .s_axil_rdata(s_axil_rdata[TLB*32 +: 32]), .s_axil_rresp(),
        .s_axil_rvalid(s_axil_rvalid[TLB]), .s_axil_rready(s_axil_rready[TLB]),
        .cfg_invalidate(invalidate),
        .wr_invalidate(invalidate_now), .sts_invalidated(invalidated), .cfg_timeout_cycles(miss_cycles),
        .win_write(tlb_write), .win_addr(tlb_addr), .win_wdata(tlb_wdata), .win_wstrb(tlb_wstrb),
        .win_counters_valid(tlb_counters_valid), .win_counters_ready(tlb_counters_ready),
        .win_counters_rdata(tlb_counters_rdata), .win_entry_valid(entry_valid), .win_entry_ready(entry_ready),
        .win_entry_rdata(entry_rdata)
    );

    // Ports write; the pages of lists have key 0.
    plx_xlate #(.MASTERS(PORTS), .ENTRIES(TLB_ENTRIES)) xlate (
        .clk, .rst, .cfg_event_fault, .cfg_fault_queue, .cfg_timeout_cycles(miss_cycles), .resetting,
        .cfg_invalidate(invalidate), .wr_invalidate(invalidate_now), .sts_invalidated(invalidated),
        .win_entry_valid(entry_valid), .win_entry_ready(entry_ready), .win_write(tlb_write), .win_addr(tlb_addr),
        .win_wdata(tlb_wdata), .win_wstrb(tlb_wstrb), .win_entry_rdata(entry_rdata),
        .s_req_valid(s_xlate_valid), .s_req_address(s_xlate_address), .s_req_length(s_xlate_length),
        .s_req_func(s_xlate_func), .s_req_key({PORTS{32'd0}}), .s_req_write({PORTS{1'b1}}), .s_req_index(s_xlate_list),
        .m_req_accepted(m_xlate_accepted), .m_rsp_valid(m_xlate_valid), .m_rsp_hit(m_xlate_hit),
        .m_rsp_address(m_xlate_address), .m_rsp_epoch(m_xlate_epoch), .s_done(s_xlate_done),
        .s_done_epoch(s_xlate_done_epoch), .m_fence, .s_fence_done, .now_cycle_ts, .m_room_queue(room_queue[8 +: 8]),
        .s_room(room[1]), .m_event_valid(event_valid[1]), .m_event_ready(event_ready[1]),
        .m_event_queue(event_queue[8 +: 8]), .m_event_func(fault_func),
        .m_event_record(event_record[512 +: 512]), .inc_misses, .inc_faults,
        .inc_events_lost
    );

    wire [2:0] tlb_amount;
    assign tlb_amount[regs_pkg::TLB_FAULTS_ROW / 8]      = inc_faults;
    assign tlb_amount[regs_pkg::TLB_EVENTS_LOST_ROW / 8] = inc_events_lost;
    assign tlb_amount[regs_pkg::TLB_MISSES_ROW / 8]      = inc_misses;

    plx_counters #(.COUNT(3), .AMOUNT_W(1)) tlb_counters (
        .clk, .rst, .amount(tlb_amount), .win_valid(tlb_counters_valid), .win_write(tlb_write),
        .win_addr({3'd0, tlb_addr[4:2]}), .win_ready(tlb_counters_ready), .win_rdata(tlb_counters_rdata)
    );

    // ---- Rings ----------------------------------------------------------------------------------

    logic [255:0] ring_base;
    logic [3:0]   ring_enable, ring_rings;
    logic [19:0]  ring_log2_size;
    logic [31:0]  ring_queue;
    logic [127:0] ring_producer;
    logic [PORTS*32-1:0] ring_consumer;
    logic [PORTS-1:0]    ring_idle, ring_error, ring_no_event;
    logic         tx_counters_valid, tx_counters_ready, tx_write;
    logic [10:0]  tx_addr;
    logic [31:0]  tx_counters_rdata;

    plx_tx_regs tx_registers (
        .clk, .rst, .s_axil_func, .s_axil_awaddr(s_axil_addr[10:0]), .s_axil_awvalid(s_axil_awvalid[TX]),
        .s_axil_awready(s_axil_awready[TX]), .s_axil_wdata, .s_axil_wstrb, .s_axil_wvalid(s_axil_wvalid[TX]),
        .s_axil_wready(s_axil_wready[TX]), .s_axil_bresp(), .s_axil_bvalid(s_axil_bvalid[TX]),
        .s_axil_bready(s_axil_bready[TX]), .s_axil_araddr(s_axil_addr[10:0]), .s_axil_arvalid(s_axil_arvalid[TX]),
        .s_axil_arready(s_axil_arready[TX]), .s_axil_rdata(s_axil_rdata[TX*32 +: 32]), .s_axil_rresp(),
        .s_axil_rvalid(s_axil_rvalid[TX]), .s_axil_rready(s_axil_rready[TX]),
        .cfg_ring_base(ring_base), .cfg_ring_ctrl_enable(ring_enable), .cfg_ring_ctrl_log2_size(ring_log2_size),
        .cfg_ring_ctrl_queue(ring_queue), .cfg_ring_producer(ring_producer), .wr_ring_producer(ring_rings),
        .sts_ring_consumer(128'(ring_consumer)), .sts_ring_status_idle(4'(ring_idle)),
        .sts_ring_status_error(4'(ring_error)), .sts_ring_status_no_event(4'(ring_no_event)),
        .win_write(tx_write), .win_addr(tx_addr), .win_wdata(), .win_wstrb(), .win_counters_valid(tx_counters_valid),
        .win_counters_ready(tx_counters_ready), .win_counters_rdata(tx_counters_rdata)
    );

    // The rings' descriptors are one client of plx_rd_mux, packets of each port another.
    // Typed, because Icarus 11 does not know the bound of the loop.
    localparam integer CLIENTS = PORTS + 1;
    logic         fetch_valid, fetch_ready, fetch_tready;
    logic [63:0]  fetch_address;
    logic [15:0]  fetch_length;
    logic [3:0]   fetch_tag, rd_tag;
    logic [CLIENTS-1:0] rd_tvalid;
    logic [PORTS-1:0]    inc_packets, inc_bad, inc_read_failed;
    logic [PORTS*14-1:0] inc_bytes;

    plx_tx_ring #(.PORTS(PORTS)) tx_ring (
        .clk, .rst, .now_cycle_ts, .cfg_ring_base(ring_base[PORTS*64-1:0]),
        .cfg_ring_ctrl_enable(ring_enable[PORTS-1:0]), .cfg_ring_ctrl_log2_size(ring_log2_size[PORTS*5-1:0]),
        .cfg_ring_ctrl_queue(ring_queue[PORTS*8-1:0]), .cfg_ring_producer(ring_producer[PORTS*32-1:0]),
        .wr_ring_producer(ring_rings[PORTS-1:0]), .sts_ring_consumer(ring_consumer),
        .sts_ring_status_idle(ring_idle), .sts_ring_status_error(ring_error),
        .sts_ring_status_no_event(ring_no_event), .forget, .quiet(ring_quiet), .m_desc_valid(fetch_valid),
        .m_desc_ready(fetch_ready), .m_desc_address(fetch_address), .m_desc_length(fetch_length),
        .m_desc_tag(fetch_tag), .s_data_tvalid(rd_tvalid[0]), .s_data_tready(fetch_tready),
        .s_data_tdata(m_rd_data_tdata), .s_data_tlast(m_rd_data_tlast), .s_data_tuser(m_rd_data_tuser),
        .s_data_tag(rd_tag), .m_tx_segment_valid, .m_tx_segment_ready, .m_tx_segment, .m_tx_segment_data,
        .m_tx_segment_ends, .m_tx_segment_flush, .s_done_valid, .s_done_end, .s_done_status, .s_done_length,
        .s_read_idle, .s_fifo_idle, .s_lost_valid, .s_lost_ready, .s_lost_count, .s_lost_cookie,
        .m_room_queue(room_queue[24 +: PORTS*8]), .s_room(room[3 +: PORTS]), .m_event_valid(event_valid[3]),
        .m_event_ready(event_ready[3]), .m_event_queue(event_queue[24 +: 8]),
        .m_event_record(event_record[1536 +: 512]), .inc_packets, .inc_bytes, .inc_bad, .inc_read_failed
    );

    // The tag of a read of descriptors is its ring.
    wire [CLIENTS*8-1:0] read_func;
    assign read_func[7:0] = {5'd0, owners[fetch_tag[1:0]*3 +: 3]};
    generate
        for (genvar p = 0; p < PORTS; p = p + 1) begin : g_func
            assign read_func[(p+1)*8 +: 8] = {5'd0, owners[p*3 +: 3]};
        end
    endgenerate

    plx_rd_mux #(.CLIENTS(CLIENTS)) rd_mux (
        .clk, .rst,
        .s_desc_valid({s_rd_desc_valid, fetch_valid}), .s_desc_ready({s_rd_desc_ready, fetch_ready}),
        .s_desc_address({s_rd_desc_address, fetch_address}), .s_desc_length({s_rd_desc_length, fetch_length}),
        .s_desc_tag({{PORTS{4'd0}}, fetch_tag}), .s_desc_func(read_func),
        .m_desc_valid(m_rd_desc_valid), .m_desc_ready(m_rd_desc_ready), .m_desc_address(m_rd_desc_address),
        .m_desc_length(m_rd_desc_length), .m_desc_tag(m_rd_desc_tag), .m_desc_func(m_rd_desc_func),
        .s_data_tvalid(s_rd_data_tvalid), .s_data_tready(s_rd_data_tready), .s_data_tdata(s_rd_data_tdata),
        .s_data_tkeep(s_rd_data_tkeep), .s_data_tlast(s_rd_data_tlast), .s_data_tuser(s_rd_data_tuser),
        .s_status_tag(s_rd_status_tag), .m_data_tvalid(rd_tvalid), .m_data_tready({m_rd_data_tready, fetch_tready}),
        .m_data_tdata(m_rd_data_tdata), .m_data_tkeep(m_rd_data_tkeep), .m_data_tlast(m_rd_data_tlast),
        .m_data_tuser(m_rd_data_tuser), .m_data_tag(rd_tag)
    );

    assign m_rd_data_tvalid = rd_tvalid[CLIENTS-1:1];

    // Four counters of each ring, of which the second sums bytes.
    localparam TX_COUNTERS = PORTS * 4, TX_AMOUNT_W = 14;
    localparam TX_SUMS = {PORTS{4'd1 << regs_pkg::TX_BYTES_ROW / 8}};
    wire [TX_COUNTERS*TX_AMOUNT_W-1:0] tx_amount;
    generate
        for (genvar p = 0; p < PORTS; p = p + 1) begin : g_amount
            localparam AT = p * 4 * TX_AMOUNT_W;
            assign tx_amount[AT + regs_pkg::TX_PACKETS_ROW/8*TX_AMOUNT_W +: TX_AMOUNT_W]     = {13'd0, inc_packets[p]};
            assign tx_amount[AT + regs_pkg::TX_BYTES_ROW/8*TX_AMOUNT_W +: TX_AMOUNT_W]       = inc_bytes[p*14 +: 14];
            assign tx_amount[AT + regs_pkg::TX_BAD_ROW/8*TX_AMOUNT_W +: TX_AMOUNT_W]         = {13'd0, inc_bad[p]};
            assign tx_amount[AT + regs_pkg::TX_READ_FAILED_ROW/8*TX_AMOUNT_W +: TX_AMOUNT_W] = {13'd0, inc_read_failed[p]};
        end
    endgenerate

    plx_counters #(.COUNT(TX_COUNTERS), .AMOUNT_W(TX_AMOUNT_W), .SUMS(TX_SUMS)) tx_counters (
        .clk, .rst, .amount(tx_amount), .win_valid(tx_counters_valid), .win_write(tx_write),
        .win_addr({1'b0, tx_addr[6:2]}), .win_ready(tx_counters_ready), .win_rdata(tx_counters_rdata)
    );

    // ---- Events ---------------------------------------------------------------------------------

    assign event_valid[2]            = s_event_valid;
    assign s_event_ready             = event_ready[2];
    assign event_queue[16 +: 8]      = s_event_queue;
    assign room_queue[16 +: 8]       = s_room_queue;
    assign m_room                    = room[2];
    assign event_record[1024 +: 512] = s_event_record;

    // Lists and rings are their port's owner's, a fault its chunk's function's. The timing input is one for the whole
    // card, and function 0's like its registers: no other function has events of it.
    localparam [2:0]     TIMING_FUNC = 3'd0;
    wire [1:0]           list_port = event_record[layouts_pkg::EVENT_RECORD_STREAM_AT + 5 +: 2];
    wire [1:0]           ring_port = event_record[1536 + layouts_pkg::EVENT_RECORD_STREAM_AT +: 2];
    wire [SOURCES*3-1:0] event_func = {owners[ring_port*3 +: 3], TIMING_FUNC, fault_func, owners[list_port*3 +: 3]};

    logic        queue_valid, queue_ready, queue_write;
    logic [14:0] queue_addr;
    logic [31:0] queue_wdata, queue_rdata;
    logic [3:0]  queue_wstrb;

    plx_event_regs event_registers (
        .clk, .rst, .s_axil_awaddr(s_axil_addr), .s_axil_awvalid(s_axil_awvalid[EVENT]),
        .s_axil_awready(s_axil_awready[EVENT]), .s_axil_wdata, .s_axil_wstrb, .s_axil_wvalid(s_axil_wvalid[EVENT]),
        .s_axil_wready(s_axil_wready[EVENT]), .s_axil_bresp(), .s_axil_bvalid(s_axil_bvalid[EVENT]),
        .s_axil_bready(s_axil_bready[EVENT]), .s_axil_araddr(s_axil_addr), .s_axil_arvalid(s_axil_arvalid[EVENT]),
        .s_axil_arready(s_axil_arready[EVENT]), .s_axil_rdata(s_axil_rdata[EVENT*32 +: 32]), .s_axil_rresp(),
        .s_axil_rvalid(s_axil_rvalid[EVENT]), .s_axil_rready(s_axil_rready[EVENT]),
        .win_write(queue_write), .win_addr(queue_addr), .win_wdata(queue_wdata), .win_wstrb(queue_wstrb),
        .win_queue_valid(queue_valid), .win_queue_ready(queue_ready), .win_queue_rdata(queue_rdata)
    );
    /* verilator lint_on PINCONNECTEMPTY */

    plx_event_writer #(.SOURCES(SOURCES), .EVENT_QUEUES(EVENT_QUEUES), .ASKERS(ASKERS)) event_writer (
        .clk, .rst, .now_cycle_ts, .win_valid(queue_valid), .win_ready(queue_ready), .win_write(queue_write),
        .win_addr(queue_addr[13:0]), .win_wdata(queue_wdata), .win_wstrb(queue_wstrb), .win_rdata(queue_rdata),
        .m_owner_queue, .s_owner, .resetting, .s_room_queue(room_queue), .m_room(room),
        .s_event_valid(event_valid), .s_event_ready(event_ready), .s_event_queue(event_queue),
        .s_event_func(event_func), .s_event_record(event_record), .m_desc_valid, .m_desc_ready, .m_desc_address,
        .m_desc_length, .m_desc_func, .m_data_tvalid, .m_data_tready, .m_data_tdata, .m_data_tlast, .m_accepted,
        .m_irq_valid, .m_irq_queue, .inc_discarded(inc_events_discarded), .rest(event_rest)
    );

    wire unused = &{1'b0, queue_addr[14], tlb_addr[12:5], tx_addr[10:7], tx_addr[1:0]};
endmodule
