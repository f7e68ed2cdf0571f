// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The receive path of the card from the fifo of each port to the writers of the host bus, wired as
// in plx_card, for its bench.

module rx_path #(
    parameter PORTS = 4,    // ports
    parameter WORDS = 256,  // words of a receive fifo
    parameter METAS = 64    // payloads of a receive fifo
) (
    input  logic                 clk_net,
    input  logic                 rst_net,
    input  logic                 clk_core,
    input  logic                 rst_core,
    input  logic [63:0]          now_cycle_ts,

    // From the wire.
    input  logic [PORTS-1:0]     s_valid,
    input  logic [PORTS*64-1:0]  s_data,
    input  logic [PORTS*8-1:0]   s_keep,
    input  logic [PORTS-1:0]     s_last,
    input  logic [PORTS-1:0]     s_bad,
    input  logic [PORTS-1:0]     s_first,
    input  logic [PORTS*169-1:0] s_meta,
    output logic [PORTS-1:0]     inc_overflow,

    // Registers.
    input  logic                 win_entry_valid,
    output logic                 win_entry_ready,
    output logic [31:0]          win_entry_rdata,
    input  logic                 win_list_valid,
    output logic                 win_list_ready,
    output logic [31:0]          win_list_rdata,
    input  logic                 win_outcome_valid,
    output logic                 win_outcome_ready,
    output logic [31:0]          win_outcome_rdata,
    input  logic                 win_write,
    input  logic [14:0]          win_addr,
    input  logic [31:0]          win_wdata,
    input  logic [3:0]           win_wstrb,
    input  logic                 win_queue_valid,
    output logic                 win_queue_ready,
    output logic [31:0]          win_queue_rdata,

    // Writers: ports, then events.
    output logic [PORTS:0]       m_desc_valid,
    input  logic [PORTS:0]       m_desc_ready,
    output logic [(PORTS+1)*64-1:0]  m_desc_address,
    output logic [(PORTS+1)*13-1:0]  m_desc_length,
    output logic [PORTS:0]       m_data_tvalid,
    input  logic [PORTS:0]       m_data_tready,
    output logic [(PORTS+1)*256-1:0] m_data_tdata,
    output logic [PORTS:0]       m_data_tlast,
    input  logic [PORTS:0]       m_accepted,
    output logic [PORTS-1:0]     idle
);
    logic [PORTS-1:0]     select_valid, select_ready, select_timestamp_valid, answer_valid;
    logic [PORTS*7-1:0]   select_list, xlate_list;
    logic [PORTS*16-1:0]  select_length, commit_length;
    logic [PORTS*64-1:0]  select_timestamp_ns, commit_timestamp_ns, xlate_address;
    logic [2:0]           answer_status;
    logic [63:0]          answer_address, bus_address;
    logic [31:0]          answer_sequence;
    logic                 answer_bare, bus_hit;
    logic [15:0]          answer_stride;
    logic [7:0]           answer_func;
    logic [PORTS-1:0]     xlate_valid, bus_valid, bus_done, bus_done_epoch, commit_valid, commit_ready, commit_timestamp_valid;
    logic                 bus_epoch;
    logic [PORTS*13-1:0]  xlate_length;
    logic [PORTS*8-1:0]   xlate_func;
    logic [PORTS*4-1:0]   commit_status;
    logic [PORTS*32-1:0]  commit_mac, commit_parsed, commit_placed;

    genvar p;
    generate
        for (p = 0; p < PORTS; p = p + 1) begin : port
            logic         f_valid, f_ready, f_last, f_bad, f_meta_valid, f_meta_ready;
            logic [63:0]  f_data, d_data;
            logic [7:0]   f_keep, d_keep;
            logic [168:0] f_meta, d_meta;
            logic         d_valid, d_ready, d_last, d_meta_valid, d_meta_ready;
            logic [1:0]   d_user;

            plx_rx_fifo #(.WORDS(WORDS), .METAS(METAS)) fifo (
                .clk_net, .rst_net, .s_axis_payload_tvalid(s_valid[p]), .s_axis_payload_tdata(s_data[p*64 +: 64]),
                .s_axis_payload_tkeep(s_keep[p*8 +: 8]), .s_axis_payload_tlast(s_last[p]),
                .s_axis_payload_tuser(s_bad[p]), .s_axis_meta_tvalid(s_first[p]),
                .s_axis_meta_tdata(s_meta[p*169 +: 169]), .inc_overflow(inc_overflow[p]),
                .clk_core, .rst_core, .clear(1'b0), .m_axis_payload_tvalid(f_valid), .m_axis_payload_tready(f_ready),
                .m_axis_payload_tdata(f_data), .m_axis_payload_tkeep(f_keep), .m_axis_payload_tlast(f_last),
                .m_axis_payload_tuser(f_bad), .m_axis_meta_tvalid(f_meta_valid),
                .m_axis_meta_tready(f_meta_ready), .m_axis_meta_tdata(f_meta)
            );

            plx_decompress expand (
                .clk(clk_core), .rst(rst_core), .s_axis_payload_tvalid(f_valid), .s_axis_payload_tready(f_ready),
                .s_axis_payload_tdata(f_data), .s_axis_payload_tkeep(f_keep), .s_axis_payload_tlast(f_last),
                .s_axis_payload_tuser(f_bad), .s_axis_meta_tvalid(f_meta_valid),
                .s_axis_meta_tready(f_meta_ready), .s_axis_meta_tdata(f_meta),
                .m_axis_payload_tvalid(d_valid), .m_axis_payload_tready(d_ready), .m_axis_payload_tdata(d_data),
                .m_axis_payload_tkeep(d_keep), .m_axis_payload_tlast(d_last), .m_axis_payload_tuser(d_user),
                .m_axis_meta_tvalid(d_meta_valid), .m_axis_meta_tready(d_meta_ready), .m_axis_meta_tdata(d_meta)
            );

            plx_rx_dma_writer #(.PORT(p)) writer (
                .clk(clk_core), .rst(rst_core), .now_cycle_ts,
                .s_axis_meta_tvalid(d_meta_valid), .s_axis_meta_tready(d_meta_ready), .s_axis_meta_tdata(d_meta),
                .s_axis_payload_tvalid(d_valid), .s_axis_payload_tready(d_ready), .s_axis_payload_tdata(d_data),
                .s_axis_payload_tkeep(d_keep), .s_axis_payload_tlast(d_last), .s_axis_payload_tuser(d_user),
                .m_select_valid(select_valid[p]), .m_select_ready(select_ready[p]),
                .m_select_list(select_list[p*7 +: 7]), .m_select_length(select_length[p*16 +: 16]),
                .m_select_timestamp_ns(select_timestamp_ns[p*64 +: 64]),
                .m_select_timestamp_valid(select_timestamp_valid[p]), .s_select_valid(answer_valid[p]),
                .s_select_status(answer_status), .s_select_address(answer_address), .s_select_sequence(answer_sequence),
                .s_select_bare(answer_bare), .s_select_stride(answer_stride), .s_select_func(answer_func),
                .m_xlate_valid(xlate_valid[p]), .m_xlate_address(xlate_address[p*64 +: 64]),
                .m_xlate_length(xlate_length[p*13 +: 13]), .m_xlate_func(xlate_func[p*8 +: 8]),
                .m_xlate_list(xlate_list[p*7 +: 7]),
                .s_xlate_valid(bus_valid[p]), .s_xlate_hit(bus_hit), .s_xlate_address(bus_address),
                .s_xlate_epoch(bus_epoch), .m_xlate_done(bus_done[p]), .m_xlate_done_epoch(bus_done_epoch[p]),
                .m_desc_valid(m_desc_valid[p]), .m_desc_ready(m_desc_ready[p]),
                .m_desc_address(m_desc_address[p*64 +: 64]), .m_desc_length(m_desc_length[p*13 +: 13]),
                .m_desc_func(), .m_data_tvalid(m_data_tvalid[p]), .m_data_tready(m_data_tready[p]),
                .m_data_tdata(m_data_tdata[p*256 +: 256]), .m_data_tlast(m_data_tlast[p]), .m_accepted(m_accepted[p]),
                .m_commit_valid(commit_valid[p]), .m_commit_ready(commit_ready[p]),
                .m_commit_status(commit_status[p*4 +: 4]),
                .m_commit_length(commit_length[p*16 +: 16]), .m_commit_timestamp_ns(commit_timestamp_ns[p*64 +: 64]),
                .m_commit_timestamp_valid(commit_timestamp_valid[p]), .m_commit_cycle_ts_mac(commit_mac[p*32 +: 32]),
                .m_commit_cycle_ts_parsed(commit_parsed[p*32 +: 32]),
                .m_commit_cycle_ts_placed(commit_placed[p*32 +: 32]), .idle(idle[p])
            );
        end
    endgenerate

    logic [1:0]    event_valid, event_ready, room;
    logic [15:0]   event_queue, room_queue;
    logic [1023:0] event_record;

    plx_clop #(.PORTS(PORTS)) lists (
        .clk(clk_core), .rst(rst_core), .now_cycle_ts,
        .win_list_valid, .win_list_ready, .win_list_rdata, .win_outcome_valid, .win_outcome_ready,
        .win_outcome_rdata, .win_write, .win_addr, .win_wdata, .win_wstrb,
        .s_select_valid(select_valid), .s_select_ready(select_ready), .s_select_list(select_list),
        .s_select_length(select_length), .s_select_timestamp_ns(select_timestamp_ns),
        .s_select_timestamp_valid(select_timestamp_valid), .m_select_valid(answer_valid),
        .m_select_status(answer_status), .m_select_address(answer_address), .m_select_sequence(answer_sequence),
        .m_select_bare(answer_bare), .m_select_stride(answer_stride), .m_select_func(answer_func),
        .s_commit_valid(commit_valid), .s_commit_ready(commit_ready),
        .s_commit_status(commit_status), .s_commit_length(commit_length), .s_commit_timestamp_ns(commit_timestamp_ns),
        .s_commit_timestamp_valid(commit_timestamp_valid), .s_commit_cycle_ts_mac(commit_mac),
        .s_commit_cycle_ts_parsed(commit_parsed), .s_commit_cycle_ts_placed(commit_placed),
        .m_room_queue(room_queue[7:0]), .s_room(room[0]),
        .m_event_valid(event_valid[0]), .m_event_ready(event_ready[0]), .m_event_queue(event_queue[7:0]),
        .m_event_record(event_record[511:0])
    );

    plx_xlate #(.MASTERS(PORTS), .ENTRIES(16)) pages (
        .clk(clk_core), .rst(rst_core), .cfg_event_fault(8'd1), .cfg_fault_queue(64'd1), .cfg_timeout_cycles(32'd0),
        .resetting('0), .cfg_invalidate(32'd0), .wr_invalidate(1'b0), .sts_invalidated(), .m_fence(),
        .s_fence_done(1'b0), .win_entry_valid, .win_entry_ready, .win_write, .win_addr(win_addr[12:0]), .win_wdata,
        .win_wstrb, .win_entry_rdata,
        .s_req_valid(xlate_valid), .s_req_address(xlate_address), .s_req_length(xlate_length),
        .s_req_func(xlate_func), .s_req_key('0), .s_req_write({PORTS{1'b1}}), .s_req_index(xlate_list),
        .m_req_accepted(), .m_rsp_valid(bus_valid), .m_rsp_hit(bus_hit), .m_rsp_address(bus_address),
        .m_rsp_epoch(bus_epoch), .s_done(bus_done), .s_done_epoch(bus_done_epoch), .now_cycle_ts,
        .m_room_queue(room_queue[15:8]), .s_room(room[1]), .m_event_valid(event_valid[1]),
        .m_event_ready(event_ready[1]), .m_event_queue(event_queue[15:8]), .m_event_func(),
        .m_event_record(event_record[1023:512]),
        .inc_misses(), .inc_faults(), .inc_events_lost()
    );

    plx_event_writer #(.SOURCES(2), .EVENT_QUEUES(2), .ASKERS(2)) events (
        .clk(clk_core), .rst(rst_core), .now_cycle_ts,
        .win_valid(win_queue_valid), .win_ready(win_queue_ready), .win_write, .win_addr(win_addr[13:0]), .win_wdata,
        .win_wstrb, .win_rdata(win_queue_rdata), .m_owner_queue(), .s_owner('0), .resetting('0),
        .s_room_queue(room_queue), .m_room(room), .m_irq_valid(), .m_irq_queue(), .s_event_valid(event_valid),
        .s_event_ready(event_ready), .s_event_queue(event_queue), .s_event_record(event_record), .s_event_func('0),
        .rest(), .m_desc_valid(m_desc_valid[PORTS]), .m_desc_ready(m_desc_ready[PORTS]),
        .m_desc_address(m_desc_address[PORTS*64 +: 64]), .m_desc_length(m_desc_length[PORTS*13 +: 13]),
        .m_desc_func(), .m_data_tvalid(m_data_tvalid[PORTS]), .m_data_tready(m_data_tready[PORTS]),
        .m_data_tdata(m_data_tdata[PORTS*256 +: 256]), .m_data_tlast(m_data_tlast[PORTS]),
        .m_accepted(m_accepted[PORTS]), .inc_discarded()
    );
endmodule
