// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The transmit path of the card from the doorbell of each ring to XGMII, wired as in plx_card, for
// its bench. The neighbour of every address is known.

module tx_path #(
    parameter PORTS = 2,   // ports
    parameter TAGS  = 32,  // open read requests
    parameter WORDS = 512  // words of a transmit fifo
) (
    input  logic                 clk_net,
    input  logic                 rst_net,
    input  logic                 clk_core,
    input  logic                 rst_core,
    input  logic [63:0]          now_cycle_ts,

    // Registers.
    input  logic [PORTS*64-1:0]  cfg_ring_base,
    input  logic [PORTS-1:0]     cfg_ring_ctrl_enable,
    input  logic [PORTS*5-1:0]   cfg_ring_ctrl_log2_size,
    input  logic [PORTS*8-1:0]   cfg_ring_ctrl_queue,
    input  logic [PORTS*32-1:0]  cfg_ring_producer,
    input  logic [PORTS-1:0]     wr_ring_producer,
    output logic [PORTS*32-1:0]  sts_ring_consumer,
    output logic [PORTS-1:0]     sts_ring_status_idle,
    output logic [PORTS-1:0]     sts_ring_status_error,
    input  logic [2:0]           cfg_max_read,
    input  logic [31:0]          cfg_timeout_cycles,
    input  logic [47:0]          cfg_mac,
    input  logic [31:0]          cfg_ip,
    input  logic [47:0]          cfg_neighbour,
    input  logic [PORTS-1:0]     cfg_tx_enable,

    // Host bus.
    output logic                 hif_rd_req_valid,
    input  logic                 hif_rd_req_ready,
    output logic [127:0]         hif_rd_req_header,
    input  logic                 hif_rx_cpl_valid,
    output logic                 hif_rx_cpl_ready,
    input  logic                 hif_rx_cpl_sop,
    input  logic                 hif_rx_cpl_eop,
    input  logic [127:0]         hif_rx_cpl_header,
    input  logic [255:0]         hif_rx_cpl_data,

    // Events, counts.
    output logic                 m_event_valid,
    input  logic                 m_event_ready,
    output logic [511:0]         m_event_record,
    output logic [PORTS-1:0]     inc_packets,
    output logic [PORTS*14-1:0]  inc_bytes,
    output logic [PORTS-1:0]     inc_bad,
    output logic [PORTS-1:0]     inc_read_failed,

    // Ports.
    output logic [PORTS*64-1:0]  xgmii_txd,
    output logic [PORTS*8-1:0]   xgmii_txc,
    output logic [PORTS-1:0]     aborted,
    output logic [PORTS-1:0]     busy
);
    localparam CLIENTS = PORTS + 1;

    logic [CLIENTS-1:0]    ask_valid, ask_ready, data_valid, data_ready;
    logic [CLIENTS*64-1:0] ask_address;
    logic [CLIENTS*16-1:0] ask_length;
    logic [3:0]            ask_tag, data_tag;
    logic [255:0]          data;
    logic [31:0]           data_keep;
    logic                  data_last, data_user;
    logic [PORTS-1:0]      tx_segment_data, tx_segment_ends, tx_segment_valid, tx_segment_ready, tx_segment_flush, done_valid, done_end, read_idle, fifo_idle;
    logic [PORTS*256-1:0]  piece;
    logic [PORTS*2-1:0]    done_status;
    logic [PORTS*16-1:0]   done_length;

    plx_tx_ring #(.PORTS(PORTS)) rings (
        .clk(clk_core), .rst(rst_core), .now_cycle_ts, .cfg_ring_base, .cfg_ring_ctrl_enable, .cfg_ring_ctrl_log2_size,
        .cfg_ring_ctrl_queue, .cfg_ring_producer, .wr_ring_producer, .sts_ring_consumer, .sts_ring_status_idle,
        .sts_ring_status_error, .sts_ring_status_no_event(), .forget('0), .quiet(), .m_desc_valid(ask_valid[0]), .m_desc_ready(ask_ready[0]),
        .m_desc_address(ask_address[63:0]), .m_desc_length(ask_length[15:0]), .m_desc_tag(ask_tag),
        .s_data_tvalid(data_valid[0]), .s_data_tready(data_ready[0]), .s_data_tdata(data), .s_data_tlast(data_last),
        .s_data_tuser(data_user), .s_data_tag(data_tag), .m_tx_segment_valid(tx_segment_valid),
        .m_tx_segment_ready(tx_segment_ready), .m_tx_segment(piece), .m_tx_segment_data(tx_segment_data),
        .m_tx_segment_ends(tx_segment_ends), .m_tx_segment_flush(tx_segment_flush), .s_done_valid(done_valid),
        .s_done_end(done_end), .s_done_status(done_status), .s_done_length(done_length), .s_read_idle(read_idle),
        .s_fifo_idle(fifo_idle), .s_lost_valid('0), .s_lost_ready(), .s_lost_count('0), .s_lost_cookie('0),
        .m_room_queue(), .s_room({PORTS{1'b1}}), .m_event_valid, .m_event_ready, .m_event_queue(), .m_event_record,
        .inc_packets, .inc_bytes, .inc_bad, .inc_read_failed
    );

    logic         desc_valid, desc_ready, rd_valid, rd_ready, rd_last, rd_user, out_valid, out_ready, out_last, out_user;
    logic [63:0]  desc_address;
    logic [15:0]  desc_length;
    logic [7:0]   desc_tag, desc_func, rd_tag, out_tag;
    logic [255:0] rd_data, out_data;
    logic [31:0]  rd_keep, out_keep;

    plx_rd_mux #(.CLIENTS(CLIENTS)) mux (
        .clk(clk_core), .rst(rst_core), .s_desc_valid(ask_valid), .s_desc_ready(ask_ready),
        .s_desc_address(ask_address), .s_desc_length(ask_length), .s_desc_tag({{PORTS{4'd0}}, ask_tag}),
        .s_desc_func({CLIENTS{8'd0}}), .m_desc_valid(desc_valid), .m_desc_ready(desc_ready),
        .m_desc_address(desc_address), .m_desc_length(desc_length), .m_desc_tag(desc_tag), .m_desc_func(desc_func),
        .s_data_tvalid(rd_valid), .s_data_tready(rd_ready), .s_data_tdata(rd_data), .s_data_tkeep(rd_keep),
        .s_data_tlast(rd_last), .s_data_tuser(rd_user), .s_status_tag(rd_tag), .m_data_tvalid(data_valid),
        .m_data_tready(data_ready), .m_data_tdata(data), .m_data_tkeep(data_keep), .m_data_tlast(data_last),
        .m_data_tuser(data_user), .m_data_tag(data_tag)
    );

    plx_dma_rd #(.TAGS(TAGS)) reader (
        .clk(clk_core), .rst(rst_core), .cfg_max_read, .cfg_bus_master(8'hFF), .cfg_quiesce(1'b0), .cfg_timeout_cycles,
        .cfg_quarantine_cycles(32'd100), .idle(), .s_desc_valid(desc_valid), .s_desc_ready(desc_ready),
        .s_desc_address(desc_address), .s_desc_length(desc_length), .s_desc_tag(desc_tag), .s_desc_func(desc_func),
        .hif_rd_req_valid, .hif_rd_req_ready, .hif_rd_req_header, .hif_rx_cpl_valid, .hif_rx_cpl_ready,
        .hif_rx_cpl_sop, .hif_rx_cpl_eop, .hif_rx_cpl_header, .hif_rx_cpl_data, .m_data_tvalid(out_valid),
        .m_data_tready(out_ready), .m_data_tdata(out_data), .m_data_tkeep(out_keep), .m_data_tlast(out_last),
        .m_data_tuser(out_user), .m_status_tag(out_tag), .m_status_error(), .inc_reads(), .inc_rd_timeout(),
        .inc_rd_discarded(), .inc_rd_unsupported(), .inc_rd_abort(), .inc_rd_poisoned(), .inc_rd_unexpected()
    );

    plx_skid_through #(.WIDTH(298)) read_data (
        .clk(clk_core), .rst(rst_core), .s_valid(out_valid), .s_ready(out_ready),
        .s_data({out_tag, out_user, out_last, out_keep, out_data}), .m_valid(rd_valid), .m_ready(rd_ready),
        .m_data({rd_tag, rd_user, rd_last, rd_keep, rd_data})
    );

    genvar p;
    generate
        for (p = 0; p < PORTS; p = p + 1) begin : port
            logic         w_valid, w_last, w_user, f_valid, f_ready, f_last, f_meta_valid, f_meta_ready;
            logic [255:0] w_data;
            logic [31:0]  w_keep;
            logic [layouts_pkg::TX_META_W-1:0] w_meta, f_meta;
            logic [63:0]  f_data, t_data;
            logic [7:0]   f_keep, t_keep;
            logic [$clog2(WORDS):0] free;
            logic         asked, answered, t_valid, t_ready, t_last, fifo_busy, net_busy, mac_busy;

            plx_tx_read #(.WORDS(WORDS)) read (
                .clk(clk_core), .rst(rst_core), .s_tx_segment_valid(tx_segment_valid[p]),
                .s_tx_segment_ready(tx_segment_ready[p]), .s_tx_segment(piece[p*256 +: 256]),
                .s_tx_segment_data(tx_segment_data[p]), .s_tx_segment_ends(tx_segment_ends[p]),
                .s_tx_segment_flush(tx_segment_flush[p]), .m_done_valid(done_valid[p]), .m_done_end(done_end[p]),
                .m_done_status(done_status[p*2 +: 2]), .m_done_length(done_length[p*16 +: 16]),
                .m_desc_valid(ask_valid[p+1]), .m_desc_ready(ask_ready[p+1]),
                .m_desc_address(ask_address[(p+1)*64 +: 64]), .m_desc_length(ask_length[(p+1)*16 +: 16]),
                .s_data_tvalid(data_valid[p+1]), .s_data_tready(data_ready[p+1]), .s_data_tdata(data),
                .s_data_tkeep(data_keep), .s_data_tlast(data_last), .s_data_tuser(data_user),
                .m_axis_tx_tvalid(w_valid), .m_axis_tx_tdata(w_data), .m_axis_tx_tkeep(w_keep),
                .m_axis_tx_tlast(w_last), .m_axis_tx_tuser(w_user), .m_axis_meta_tdata(w_meta), .s_free(free),
                .idle(read_idle[p])
            );

            plx_tx_fifo #(.WORDS(WORDS)) fifo (
                .clk_core, .rst_core, .clear(1'b0), .s_axis_tx_tvalid(w_valid), .s_axis_tx_tdata(w_data), .s_axis_tx_tkeep(w_keep),
                .s_axis_tx_tlast(w_last), .s_axis_tx_tuser(w_user), .s_axis_meta_tdata(w_meta), .discard(1'b0), .s_free(free),
                .idle(fifo_idle[p]), .clk_net, .rst_net, .m_axis_tx_tvalid(f_valid), .m_axis_tx_tready(f_ready),
                .m_axis_tx_tdata(f_data), .m_axis_tx_tkeep(f_keep), .m_axis_tx_tlast(f_last),
                .m_axis_meta_tvalid(f_meta_valid), .m_axis_meta_tready(f_meta_ready), .m_axis_meta_tdata(f_meta),
                .busy(fifo_busy)
            );

            always_ff @(posedge clk_net) answered <= !rst_net && asked && !answered;

            plx_udp_tx udp (
                .clk(clk_net), .rst(rst_net), .s_axis_tx_tvalid(f_valid), .s_axis_tx_tready(f_ready),
                .s_axis_tx_tdata(f_data), .s_axis_tx_tkeep(f_keep), .s_axis_tx_tlast(f_last),
                .s_axis_meta_tvalid(f_meta_valid), .s_axis_meta_tready(f_meta_ready), .s_axis_meta_tdata(f_meta),
                .m_lookup_valid(asked), .m_lookup_ip(), .s_lookup_done(answered), .s_lookup_hit(1'b1),
                .s_lookup_mac(cfg_neighbour), .m_axis_tx_tvalid(t_valid), .m_axis_tx_tready(t_ready),
                .m_axis_tx_tdata(t_data), .m_axis_tx_tkeep(t_keep), .m_axis_tx_tlast(t_last), .cfg_mac, .cfg_ip,
                .cfg_destination_ip(32'd0), .cfg_destination_port(16'd0), .cfg_source_port(16'd0), .cfg_ttl(8'd64),
                .cfg_tos(8'd0), .discard(1'b0), .inc_unresolved(), .m_lost_valid(), .m_lost_cookie(), .busy(net_busy),
                .ring_busy()
            );

            plx_mac_tx mac (
                .clk(clk_net), .rst(rst_net), .s_axis_tx_tvalid(t_valid), .s_axis_tx_tready(t_ready),
                .s_axis_tx_tdata(t_data), .s_axis_tx_tkeep(t_keep), .s_axis_tx_tlast(t_last), .s_axis_tx_tuser(1'b0),
                .xgmii_txd(xgmii_txd[p*64 +: 64]), .xgmii_txc(xgmii_txc[p*8 +: 8]), .cfg_enable(cfg_tx_enable[p]),
                .pause(1'b0), .local_fault(1'b0), .remote_fault(1'b0), .inc_frames(), .inc_bytes(),
                .inc_aborted(aborted[p]), .inc_fault(), .inc_paused(), .busy(mac_busy)
            );

            assign busy[p] = fifo_busy || net_busy || mac_busy;
        end
    endgenerate
endmodule
