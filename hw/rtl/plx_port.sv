// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The modules of one port, wired: MAC, protocols, fifos, its writer to memory, registers, counters.

module plx_port #(
    parameter PORT           = 0,     // number of this port
    parameter PORTS          = 4,     // number of ports
    parameter STREAMS        = 16,    // besides the default list
    parameter RX_FIFO_WORDS  = 2048,  // 64-bit words of the receive fifo
    parameter RX_FIFO_FRAMES = 256,   // frames whose metadata it holds
    parameter TX_FIFO_WORDS  = 512,   // 256-bit words of the transmit fifo
    parameter ARP_ENTRIES    = 256    // neighbours
) (
    input  logic         clk_net,
    input  logic         rst_net,
    input  logic         clk_core,
    input  logic         rst_core,

    // The other clock's modules, in clk_core: they are in reset, and what waits for them is lost; they are in
    // reset, or their clock stands.
    input  logic         net_clear,
    input  logic         net_in_reset,

    // Cycles for both clocks, and the timestamp of frames.
    input  logic [63:0]  now_cycle_ts,
    input  logic [63:0]  now_timestamp_ns,
    input  logic         now_timestamp_valid,
    input  logic [63:0]  core_cycle_ts,

    // XGMII, lane 0 in the lowest bits; whether the port is looped to another.
    input  logic [63:0]  xgmii_rxd,
    input  logic [7:0]   xgmii_rxc,
    output logic [63:0]  xgmii_txd,
    output logic [7:0]   xgmii_txc,
    output logic         cfg_loop,

    // The port's PCS, if it has one, in clk_net: the test pattern; state and counts (pcs_pkg).
    output logic         cfg_prbs31_tx,
    output logic         cfg_prbs31_rx,
    input  logic [pcs_pkg::STS_W-1:0] sts_pcs,
    input  logic [pcs_pkg::INC_W-1:0] inc_pcs,

    // Registers, in clk_core.
    input  logic [12:0]  s_axil_addr,
    input  logic         s_axil_awvalid,
    output logic         s_axil_awready,
    input  logic [31:0]  s_axil_wdata,
    input  logic [3:0]   s_axil_wstrb,
    input  logic         s_axil_wvalid,
    output logic         s_axil_wready,
    output logic         s_axil_bvalid,
    input  logic         s_axil_bready,
    input  logic         s_axil_arvalid,
    output logic         s_axil_arready,
    output logic [31:0]  s_axil_rdata,
    output logic         s_axil_rvalid,
    input  logic         s_axil_rready,

    // Lists: the space of a payload, and its status.
    output logic         m_select_valid,
    input  logic         m_select_ready,
    output logic [6:0]   m_select_list,
    output logic [15:0]  m_select_length,
    output logic [63:0]  m_select_timestamp_ns,
    output logic         m_select_timestamp_valid,
    input  logic         s_select_valid,
    input  logic [2:0]   s_select_status,
    input  logic [63:0]  s_select_address,
    input  logic [31:0]  s_select_sequence,
    input  logic         s_select_bare,
    input  logic [15:0]  s_select_stride,
    input  logic [7:0]   s_select_func,
    output logic         m_commit_valid,
    input  logic         m_commit_ready,
    output logic [3:0]   m_commit_status,
    output logic [15:0]  m_commit_length,
    output logic [63:0]  m_commit_timestamp_ns,
    output logic         m_commit_timestamp_valid,
    output logic [31:0]  m_commit_cycle_ts_mac,
    output logic [31:0]  m_commit_cycle_ts_parsed,
    output logic [31:0]  m_commit_cycle_ts_placed,

    // Translation to a bus address.
    output logic         m_xlate_valid,
    output logic [63:0]  m_xlate_address,
    output logic [12:0]  m_xlate_length,
    output logic [7:0]   m_xlate_func,
    output logic [6:0]   m_xlate_list,
    input  logic         s_xlate_valid,
    input  logic         s_xlate_hit,
    input  logic [63:0]  s_xlate_address,
    input  logic         s_xlate_epoch,
    output logic         m_xlate_done,
    output logic         m_xlate_done_epoch,

    // Writes to memory.
    output logic         m_desc_valid,
    input  logic         m_desc_ready,
    output logic [63:0]  m_desc_address,
    output logic [12:0]  m_desc_length,
    output logic [7:0]   m_desc_func,
    output logic         m_data_tvalid,
    input  logic         m_data_tready,
    output logic [255:0] m_data_tdata,
    output logic         m_data_tlast,
    input  logic         m_accepted,

    // Descriptors to send, and their completion; state of the packets in flight.
    input  logic         s_tx_segment_valid,
    output logic         s_tx_segment_ready,
    input  logic [255:0] s_tx_segment,
    input  logic         s_tx_segment_data,
    input  logic         s_tx_segment_ends,
    input  logic         s_tx_segment_flush,
    output logic         m_done_valid,
    output logic         m_done_end,
    output logic [1:0]   m_done_status,
    output logic [15:0]  m_done_length,
    output logic         m_read_idle,
    output logic         m_fifo_idle,

    // The port's function is being reset: packets to send are thrown away. None is left, nothing is on its way
    // to memory, and nothing to the wire, or it cannot go on.
    input  logic         forget,
    output logic         m_port_idle,

    // Packets that no neighbour was found for: their number, and the cookie of the last one.
    output logic         m_lost_valid,
    input  logic         m_lost_ready,
    output logic [15:0]  m_lost_count,
    output logic [31:0]  m_lost_cookie,

    // Reads of memory, and their data.
    output logic         m_rd_desc_valid,
    input  logic         m_rd_desc_ready,
    output logic [63:0]  m_rd_desc_address,
    output logic [15:0]  m_rd_desc_length,
    input  logic         s_rd_data_tvalid,
    output logic         s_rd_data_tready,
    input  logic [255:0] s_rd_data_tdata,
    input  logic [31:0]  s_rd_data_tkeep,
    input  logic         s_rd_data_tlast,
    input  logic         s_rd_data_tuser
);
    localparam META_W = layouts_pkg::RX_META_W, TX_W = layouts_pkg::TX_META_W;

    // ---- Registers ------------------------------------------------------------------------------

    logic [12:0] awaddr, araddr, win_addr;
    logic        awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready;
    logic [31:0] wdata, rdata, win_wdata;
    logic [3:0]  wstrb, win_wstrb;
    logic [1:0]  bresp, rresp;

    /* verilator lint_off PINCONNECTEMPTY */
    plx_axil_cdc #(.ADDR_W(13)) crossing (
        .s_clk(clk_core), .s_rst(rst_core || net_in_reset),
        .s_axil_awaddr(s_axil_addr), .s_axil_awvalid, .s_axil_awready, .s_axil_wdata, .s_axil_wstrb, .s_axil_wvalid,
        .s_axil_wready, .s_axil_bresp(), .s_axil_bvalid, .s_axil_bready, .s_axil_araddr(s_axil_addr), .s_axil_arvalid,
        .s_axil_arready, .s_axil_rdata, .s_axil_rresp(), .s_axil_rvalid, .s_axil_rready,
        .m_clk(clk_net), .m_rst(rst_net),
        .m_axil_awaddr(awaddr), .m_axil_awvalid(awvalid), .m_axil_awready(awready), .m_axil_wdata(wdata),
        .m_axil_wstrb(wstrb), .m_axil_wvalid(wvalid), .m_axil_wready(wready), .m_axil_bresp(bresp),
        .m_axil_bvalid(bvalid), .m_axil_bready(bready), .m_axil_araddr(araddr), .m_axil_arvalid(arvalid),
        .m_axil_arready(arready), .m_axil_rdata(rdata), .m_axil_rresp(rresp), .m_axil_rvalid(rvalid),
        .m_axil_rready(rready)
    );
    /* verilator lint_on PINCONNECTEMPTY */

    localparam NEXT = PORT + 1 < PORTS ? regs_pkg::PORT_AT + (PORT + 1) * regs_pkg::PORT_STEP : 0;
    logic         rx_enable, tx_enable, promiscuous, multicast, honours_pause, answers_arp, answers_echo, checksum,
                  catch_udp, catch_other, arp_flush, local_fault, remote_fault, paused, rx_idle, tx_idle, gen_start,
                  gen_stop, gen_running, win_write, counters_valid, counters_ready, arp_valid, arp_ready;
    logic [13:0]  max_frame, gen_size;
    logic [47:0]  mac;
    logic [31:0]  ip, destination_ip, arp_wait_cycles, gen_count, gen_gap, counters_rdata, arp_rdata;
    logic [15:0]  destination_port, source_port, arp_retry, arp_expiry, gen_destination, gen_source, stream_enable;
    logic [7:0]   ttl, tos;
    logic [255:0] stream_port;
    logic [31:0]  stream_delivery_mode;

    plx_port_regs registers (
        .clk(clk_net), .rst(rst_net),
        .s_axil_awaddr(awaddr), .s_axil_awvalid(awvalid), .s_axil_awready(awready), .s_axil_wdata(wdata),
        .s_axil_wstrb(wstrb), .s_axil_wvalid(wvalid), .s_axil_wready(wready), .s_axil_bresp(bresp),
        .s_axil_bvalid(bvalid), .s_axil_bready(bready), .s_axil_araddr(araddr), .s_axil_arvalid(arvalid),
        .s_axil_arready(arready), .s_axil_rdata(rdata), .s_axil_rresp(rresp), .s_axil_rvalid(rvalid),
        .s_axil_rready(rready),
        .sts_block_instance(PORT[7:0]), .sts_next_offset(NEXT[31:0]),
        .cfg_mac_ctrl_rx_enable(rx_enable), .cfg_mac_ctrl_tx_enable(tx_enable), .cfg_mac_ctrl_loop(cfg_loop),
        .cfg_mac_ctrl_promiscuous(promiscuous), .cfg_mac_ctrl_multicast(multicast), .cfg_mac_ctrl_pause(honours_pause),
        .sts_mac_status_link(!local_fault && !remote_fault), .sts_mac_status_local_fault(local_fault),
        .sts_mac_status_remote_fault(remote_fault), .sts_mac_status_rx_idle(rx_idle),
        .sts_mac_status_tx_idle(tx_idle), .sts_mac_status_paused(paused),
        .cfg_max_frame(max_frame), .cfg_mac(mac), .cfg_ip(ip), .cfg_net_ctrl_arp(answers_arp),
        .cfg_net_ctrl_echo(answers_echo), .cfg_net_ctrl_checksum(checksum), .cfg_net_ctrl_catch_udp(catch_udp),
        .cfg_net_ctrl_catch_other(catch_other), .cfg_destination_ip(destination_ip),
        .cfg_destination_ports_destination(destination_port), .cfg_destination_ports_source(source_port),
        .cfg_ip_send_ttl(ttl), .cfg_ip_send_tos(tos), .pulse_arp_ctrl_flush(arp_flush),
        .cfg_arp_wait_cycles(arp_wait_cycles), .cfg_pcs_ctrl_prbs31_tx(cfg_prbs31_tx),
        .cfg_pcs_ctrl_prbs31_rx(cfg_prbs31_rx), .sts_pcs_status_present(sts_pcs[0]),
        .sts_pcs_status_signal_ok(sts_pcs[1]), .sts_pcs_status_block_lock(sts_pcs[2]),
        .sts_pcs_status_hi_ber(sts_pcs[3]), .cfg_arp_retry(arp_retry), .cfg_arp_expiry(arp_expiry),
        .pulse_gen_ctrl_start(gen_start), .pulse_gen_ctrl_stop(gen_stop), .sts_gen_status_running(gen_running),
        .cfg_gen_size(gen_size), .cfg_gen_count(gen_count), .cfg_gen_gap(gen_gap),
        .cfg_gen_ports_destination(gen_destination), .cfg_gen_ports_source(gen_source),
        .cfg_stream_port(stream_port), .cfg_stream_form(stream_delivery_mode), .cfg_stream_enable(stream_enable),
        .win_write, .win_addr, .win_wdata, .win_wstrb, .win_counters_valid(counters_valid),
        .win_counters_ready(counters_ready), .win_counters_rdata(counters_rdata), .win_arp_valid(arp_valid),
        .win_arp_ready(arp_ready), .win_arp_rdata(arp_rdata)
    );

    // ---- Counters -------------------------------------------------------------------------------

    // Those of the PCS are the last, in the order of inc_pcs, of which some may be more than 1 in a cycle.
    localparam PCS = regs_pkg::PORT_PCS_BER_ROW / 8, COUNTERS = PCS + 8, AMOUNT_W = 14;
    localparam SUMS = 1 << regs_pkg::PORT_RX_BYTES_ROW / 8 | 1 << regs_pkg::PORT_TX_BYTES_ROW / 8
        | 1 << regs_pkg::PORT_PCS_BER_ROW / 8 | 1 << regs_pkg::PORT_PCS_ERRORED_BLOCKS_ROW / 8
        | 1 << regs_pkg::PORT_PCS_PRBS31_ERRORS_ROW / 8 | 1 << regs_pkg::PORT_PCS_DELETED_ROW / 8
        | 1 << regs_pkg::PORT_PCS_OVERFLOW_ROW / 8;
    wire [PCS-1:0]               inc;
    wire [COUNTERS*AMOUNT_W-1:0] amount;
    logic [AMOUNT_W-1:0]         rx_bytes, tx_bytes;
    wire                         pcs_tx_error, pcs_underflow, pcs_inserted;
    wire [1:0]                   pcs_overflow, pcs_deleted, pcs_errored_blocks, pcs_ber;
    wire [7:0]                   pcs_prbs31_errors;

    generate
        for (genvar i = 0; i < PCS; i = i + 1) begin : g_amount
            assign amount[i*AMOUNT_W +: AMOUNT_W] = i == regs_pkg::PORT_RX_BYTES_ROW / 8 ? rx_bytes
                : i == regs_pkg::PORT_TX_BYTES_ROW / 8 ? tx_bytes : {{(AMOUNT_W - 1) {1'b0}}, inc[i]};
        end
    endgenerate

    assign {pcs_tx_error, pcs_underflow, pcs_overflow, pcs_inserted, pcs_deleted, pcs_prbs31_errors,
            pcs_errored_blocks, pcs_ber} = inc_pcs;
    assign amount[PCS*AMOUNT_W +: 8*AMOUNT_W] = {
        14'(pcs_tx_error), 14'(pcs_underflow), 14'(pcs_overflow), 14'(pcs_inserted), 14'(pcs_deleted),
        14'(pcs_prbs31_errors), 14'(pcs_errored_blocks), 14'(pcs_ber)
    };

    plx_counters #(.COUNT(COUNTERS), .AMOUNT_W(AMOUNT_W), .SUMS(SUMS)) counters (
        .clk(clk_net), .rst(rst_net), .amount, .win_valid(counters_valid), .win_write, .win_addr(win_addr[7:2]),
        .win_ready(counters_ready), .win_rdata(counters_rdata)
    );

    // ---- MAC ------------------------------------------------------------------------------------

    logic        rx_valid, rx_last, rx_bad, rx_timestamp_valid, pause_valid, rx_mac_busy, rx_frame, tx_frame;
    logic [63:0] rx_data, rx_timestamp_ns;
    logic [7:0]  rx_keep;
    logic [31:0] rx_cycle_ts;
    logic [15:0] pause_quanta;
    logic [13:0] rx_frame_bytes, tx_frame_bytes;
    logic        tx_valid, tx_ready, tx_last, tx_mac_busy;
    logic [63:0] tx_data;
    logic [7:0]  tx_keep;

    plx_mac_rx mac_rx (
        .clk(clk_net), .rst(rst_net), .xgmii_rxd, .xgmii_rxc,
        .m_axis_rx_tvalid(rx_valid), .m_axis_rx_tdata(rx_data), .m_axis_rx_tkeep(rx_keep), .m_axis_rx_tlast(rx_last),
        .m_axis_rx_tuser(rx_bad), .m_axis_rx_cycle_ts(rx_cycle_ts), .m_axis_rx_timestamp_ns(rx_timestamp_ns),
        .m_axis_rx_timestamp_valid(rx_timestamp_valid), .now_cycle_ts(now_cycle_ts[31:0]), .now_timestamp_ns,
        .now_timestamp_valid, .cfg_enable(rx_enable), .cfg_max_frame(max_frame), .cfg_mac(mac), .pause_valid,
        .pause_quanta, .inc_frames(rx_frame), .inc_bytes(rx_frame_bytes),
        .inc_symbol(inc[regs_pkg::PORT_RX_SYMBOL_ROW/8]), .inc_oversize(inc[regs_pkg::PORT_RX_OVERSIZE_ROW/8]),
        .inc_runt(inc[regs_pkg::PORT_RX_RUNT_ROW/8]), .inc_fcs(inc[regs_pkg::PORT_RX_FCS_ROW/8]),
        .inc_pause(inc[regs_pkg::PORT_RX_PAUSE_ROW/8]), .busy(rx_mac_busy)
    );

    plx_pause pause (
        .clk(clk_net), .rst(rst_net), .pause_valid, .pause_quanta, .cfg_pause(honours_pause), .paused
    );

    plx_link_fault link_fault (.clk(clk_net), .rst(rst_net), .xgmii_rxd, .xgmii_rxc, .local_fault, .remote_fault);

    // A frame that `plx_net` has begun is never withdrawn.
    plx_mac_tx mac_tx (
        .clk(clk_net), .rst(rst_net),
        .s_axis_tx_tvalid(tx_valid), .s_axis_tx_tready(tx_ready), .s_axis_tx_tdata(tx_data), .s_axis_tx_tkeep(tx_keep),
        .s_axis_tx_tlast(tx_last), .s_axis_tx_tuser(1'b0), .xgmii_txd, .xgmii_txc,
        .cfg_enable(tx_enable), .pause(paused), .local_fault, .remote_fault, .inc_frames(tx_frame),
        .inc_bytes(tx_frame_bytes), .inc_aborted(inc[regs_pkg::PORT_TX_ABORTED_ROW/8]),
        .inc_fault(inc[regs_pkg::PORT_TX_FAULT_ROW/8]), .inc_paused(inc[regs_pkg::PORT_TX_PAUSED_ROW/8]),
        .busy(tx_mac_busy)
    );

    assign inc[regs_pkg::PORT_RX_FRAMES_ROW/8] = rx_frame;
    assign inc[regs_pkg::PORT_TX_FRAMES_ROW/8] = tx_frame;
    assign inc[regs_pkg::PORT_RX_BYTES_ROW/8]  = 1'b0;
    assign inc[regs_pkg::PORT_TX_BYTES_ROW/8]  = 1'b0;
    assign rx_bytes = rx_frame ? rx_frame_bytes : '0;
    assign tx_bytes = tx_frame ? tx_frame_bytes : '0;

    // ---- Protocols ------------------------------------------------------------------------------

    logic              p_valid, p_last, p_bad, p_meta_valid, rx_net_busy, tx_net_busy, ring_net_busy, discard, lost_busy;
    logic [63:0]       p_data;
    logic [7:0]        p_keep;
    logic [META_W-1:0] p_meta;
    logic              s_valid, s_ready, s_last, s_meta_valid, s_meta_ready;
    logic [63:0]       s_data;
    logic [7:0]        s_keep;
    logic [TX_W-1:0]   s_meta;
    logic              lost_valid;
    logic [31:0]       lost_cookie;

    plx_net #(.STREAMS(STREAMS), .ARP_ENTRIES(ARP_ENTRIES)) net (
        .clk(clk_net), .rst(rst_net),
        .s_axis_rx_tvalid(rx_valid), .s_axis_rx_tdata(rx_data), .s_axis_rx_tkeep(rx_keep), .s_axis_rx_tlast(rx_last),
        .s_axis_rx_tuser(rx_bad), .s_axis_rx_cycle_ts(rx_cycle_ts), .s_axis_rx_timestamp_ns(rx_timestamp_ns),
        .s_axis_rx_timestamp_valid(rx_timestamp_valid),
        .m_axis_payload_tvalid(p_valid), .m_axis_payload_tdata(p_data), .m_axis_payload_tkeep(p_keep),
        .m_axis_payload_tlast(p_last), .m_axis_payload_tuser(p_bad), .m_axis_meta_tvalid(p_meta_valid),
        .m_axis_meta_tdata(p_meta),
        .s_axis_tx_tvalid(s_valid), .s_axis_tx_tready(s_ready), .s_axis_tx_tdata(s_data), .s_axis_tx_tkeep(s_keep),
        .s_axis_tx_tlast(s_last), .s_axis_meta_tvalid(s_meta_valid), .s_axis_meta_tready(s_meta_ready),
        .s_axis_meta_tdata(s_meta),
        .m_axis_tx_tvalid(tx_valid), .m_axis_tx_tready(tx_ready), .m_axis_tx_tdata(tx_data), .m_axis_tx_tkeep(tx_keep),
        .m_axis_tx_tlast(tx_last), .now_cycle_ts(now_cycle_ts[31:0]),
        .cfg_mac(mac), .cfg_ip(ip), .cfg_promiscuous(promiscuous), .cfg_multicast(multicast), .cfg_arp(answers_arp),
        .cfg_echo(answers_echo), .cfg_checksum(checksum), .cfg_max_frame(max_frame),
        .cfg_destination_ip(destination_ip), .cfg_destination_port(destination_port), .cfg_source_port(source_port),
        .cfg_ttl(ttl), .cfg_tos(tos), .cfg_stream_port(stream_port[16*STREAMS-1:0]),
        .cfg_stream_form(stream_delivery_mode[2*STREAMS-1:0]), .cfg_stream_enable(stream_enable[STREAMS-1:0]),
        .cfg_catch_udp(catch_udp), .cfg_catch_other(catch_other), .cfg_arp_wait_cycles(arp_wait_cycles),
        .cfg_arp_retry(arp_retry), .cfg_arp_expiry(arp_expiry), .arp_flush,
        .win_valid(arp_valid), .win_ready(arp_ready), .win_write, .win_addr(win_addr[$clog2(ARP_ENTRIES)+3:0]),
        .win_wdata, .win_wstrb, .win_rdata(arp_rdata),
        .inc_drop_address(inc[regs_pkg::PORT_DROP_ADDRESS_ROW/8]),
        .inc_drop_malformed(inc[regs_pkg::PORT_DROP_MALFORMED_ROW/8]),
        .inc_drop_checksum(inc[regs_pkg::PORT_DROP_CHECKSUM_ROW/8]),
        .inc_drop_fragment(inc[regs_pkg::PORT_DROP_FRAGMENT_ROW/8]),
        .inc_drop_unsupported(inc[regs_pkg::PORT_DROP_UNSUPPORTED_ROW/8]),
        .inc_drop_miss(inc[regs_pkg::PORT_DROP_MISS_ROW/8]), .inc_drop_answer(inc[regs_pkg::PORT_DROP_ANSWER_ROW/8]),
        .inc_arp_frames(inc[regs_pkg::PORT_ARP_FRAMES_ROW/8]), .inc_echo_frames(inc[regs_pkg::PORT_ECHO_FRAMES_ROW/8]),
        .inc_tx_unresolved(inc[regs_pkg::PORT_TX_UNRESOLVED_ROW/8]), .m_lost_valid(lost_valid), .m_lost_cookie(lost_cookie),
        .discard, .rx_busy(rx_net_busy), .tx_busy(tx_net_busy), .ring_busy(ring_net_busy)
    );

    plx_tx_lost tx_lost (
        .clk_net, .rst_net, .s_lost_valid(lost_valid), .s_lost_cookie(lost_cookie), .busy(lost_busy),
        .clk_core, .rst_core(rst_core || net_clear), .m_lost_valid, .m_lost_ready, .m_lost_count, .m_lost_cookie
    );

    // ---- From the wire to memory ----------------------------------------------------------------

    logic              f_valid, f_ready, f_last, f_bad, f_meta_valid, f_meta_ready;
    logic [63:0]       f_data, d_data;
    logic [7:0]        f_keep, d_keep;
    logic [META_W-1:0] f_meta, d_meta;
    logic              d_valid, d_ready, d_last, d_meta_valid, d_meta_ready, placed_all;
    logic [1:0]        d_user;

    plx_rx_fifo #(.WORDS(RX_FIFO_WORDS), .METAS(RX_FIFO_FRAMES)) rx_fifo (
        .clk_net, .rst_net, .s_axis_payload_tvalid(p_valid), .s_axis_payload_tdata(p_data),
        .s_axis_payload_tkeep(p_keep), .s_axis_payload_tlast(p_last), .s_axis_payload_tuser(p_bad),
        .s_axis_meta_tvalid(p_meta_valid), .s_axis_meta_tdata(p_meta),
        .inc_overflow(inc[regs_pkg::PORT_DROP_OVERFLOW_ROW/8]),
        .clk_core, .rst_core, .clear(net_clear), .m_axis_payload_tvalid(f_valid), .m_axis_payload_tready(f_ready),
        .m_axis_payload_tdata(f_data), .m_axis_payload_tkeep(f_keep), .m_axis_payload_tlast(f_last),
        .m_axis_payload_tuser(f_bad), .m_axis_meta_tvalid(f_meta_valid), .m_axis_meta_tready(f_meta_ready),
        .m_axis_meta_tdata(f_meta)
    );

    plx_decompress decompress (
        .clk(clk_core), .rst(rst_core), .s_axis_payload_tvalid(f_valid), .s_axis_payload_tready(f_ready),
        .s_axis_payload_tdata(f_data), .s_axis_payload_tkeep(f_keep), .s_axis_payload_tlast(f_last),
        .s_axis_payload_tuser(f_bad), .s_axis_meta_tvalid(f_meta_valid), .s_axis_meta_tready(f_meta_ready),
        .s_axis_meta_tdata(f_meta), .m_axis_payload_tvalid(d_valid), .m_axis_payload_tready(d_ready),
        .m_axis_payload_tdata(d_data), .m_axis_payload_tkeep(d_keep), .m_axis_payload_tlast(d_last),
        .m_axis_payload_tuser(d_user), .m_axis_meta_tvalid(d_meta_valid), .m_axis_meta_tready(d_meta_ready),
        .m_axis_meta_tdata(d_meta)
    );

    plx_rx_dma_writer #(.PORT(PORT)) rx_dma_writer (
        .clk(clk_core), .rst(rst_core), .now_cycle_ts(core_cycle_ts),
        .s_axis_meta_tvalid(d_meta_valid), .s_axis_meta_tready(d_meta_ready), .s_axis_meta_tdata(d_meta),
        .s_axis_payload_tvalid(d_valid), .s_axis_payload_tready(d_ready), .s_axis_payload_tdata(d_data),
        .s_axis_payload_tkeep(d_keep), .s_axis_payload_tlast(d_last), .s_axis_payload_tuser(d_user),
        .m_select_valid, .m_select_ready, .m_select_list, .m_select_length, .m_select_timestamp_ns,
        .m_select_timestamp_valid, .s_select_valid, .s_select_status, .s_select_address, .s_select_sequence,
        .s_select_bare, .s_select_stride, .s_select_func, .m_xlate_valid, .m_xlate_address, .m_xlate_length,
        .m_xlate_func, .m_xlate_list, .s_xlate_valid, .s_xlate_hit, .s_xlate_address, .s_xlate_epoch, .m_xlate_done,
        .m_xlate_done_epoch, .m_desc_valid, .m_desc_ready, .m_desc_address, .m_desc_length,
        .m_desc_func, .m_data_tvalid, .m_data_tready, .m_data_tdata, .m_data_tlast, .m_accepted,
        .m_commit_valid, .m_commit_ready, .m_commit_status, .m_commit_length, .m_commit_timestamp_ns,
        .m_commit_timestamp_valid, .m_commit_cycle_ts_mac, .m_commit_cycle_ts_parsed, .m_commit_cycle_ts_placed,
        .idle(placed_all)
    );

    // A payload's metadata are in the fifo, in `plx_decompress`, or in `plx_rx_dma_writer` until its commit. A write
    // to the fifo is visible there, and that is visible here, within the required idle time.
    logic       core_idle, core_idle_seen;
    logic [3:0] quiet;

    always_ff @(posedge clk_core) core_idle <= !f_meta_valid && !d_meta_valid && placed_all;

    plx_sync_bit idle_seen (.clk(clk_net), .rst(rst_net), .d(core_idle), .q(core_idle_seen));

    assign rx_idle = &quiet;
    always_ff @(posedge clk_net) begin
        if (rst_net || rx_mac_busy || rx_net_busy || p_valid || !core_idle_seen) quiet <= 4'd0;
        else if (!rx_idle) quiet <= quiet + 4'd1;
    end

    // ---- To the wire ----------------------------------------------------------------------------

    logic              r_valid, r_last, r_back;
    logic [255:0]      r_data;
    logic [31:0]       r_keep;
    logic [TX_W-1:0]   r_meta, h_meta;
    logic              h_valid, h_ready, h_last, h_meta_valid, h_meta_ready, tx_fifo_busy;
    logic [63:0]       h_data;
    logic [7:0]        h_keep;
    logic [$clog2(TX_FIFO_WORDS):0] tx_free;
    logic              fifo_idle;

    plx_tx_read #(.WORDS(TX_FIFO_WORDS)) tx_read (
        .clk(clk_core), .rst(rst_core), .s_tx_segment_valid, .s_tx_segment_ready, .s_tx_segment, .s_tx_segment_data,
        .s_tx_segment_ends, .s_tx_segment_flush, .m_done_valid, .m_done_end, .m_done_status, .m_done_length,
        .m_desc_valid(m_rd_desc_valid), .m_desc_ready(m_rd_desc_ready), .m_desc_address(m_rd_desc_address),
        .m_desc_length(m_rd_desc_length), .s_data_tvalid(s_rd_data_tvalid), .s_data_tready(s_rd_data_tready),
        .s_data_tdata(s_rd_data_tdata), .s_data_tkeep(s_rd_data_tkeep), .s_data_tlast(s_rd_data_tlast),
        .s_data_tuser(s_rd_data_tuser), .m_axis_tx_tvalid(r_valid), .m_axis_tx_tdata(r_data),
        .m_axis_tx_tkeep(r_keep), .m_axis_tx_tlast(r_last), .m_axis_tx_tuser(r_back), .m_axis_meta_tdata(r_meta),
        .s_free(tx_free), .idle(m_read_idle)
    );

    // Packets of a reset: of each only that it is withdrawn.
    plx_tx_fifo #(.WORDS(TX_FIFO_WORDS)) tx_fifo (
        .clk_core, .rst_core, .clear(net_clear), .s_axis_tx_tvalid(r_valid && (!forget || r_last)),
        .s_axis_tx_tdata(r_data), .s_axis_tx_tkeep(r_keep), .s_axis_tx_tlast(r_last),
        .s_axis_tx_tuser(r_back || forget), .s_axis_meta_tdata(r_meta), .s_free(tx_free), .discard(forget), .idle(fifo_idle), .clk_net, .rst_net, .m_axis_tx_tvalid(h_valid), .m_axis_tx_tready(h_ready),
        .m_axis_tx_tdata(h_data), .m_axis_tx_tkeep(h_keep), .m_axis_tx_tlast(h_last),
        .m_axis_meta_tvalid(h_meta_valid), .m_axis_meta_tready(h_meta_ready), .m_axis_meta_tdata(h_meta),
        .busy(tx_fifo_busy)
    );

    plx_generator generator (
        .clk(clk_net), .rst(rst_net), .cfg_size(gen_size), .cfg_count(gen_count), .cfg_gap(gen_gap),
        .cfg_destination_ip(destination_ip), .cfg_destination_port(gen_destination), .cfg_source_port(gen_source),
        .start(gen_start), .stop(gen_stop), .running(gen_running),
        .s_axis_tx_tvalid(h_valid), .s_axis_tx_tready(h_ready), .s_axis_tx_tdata(h_data), .s_axis_tx_tkeep(h_keep),
        .s_axis_tx_tlast(h_last), .s_axis_meta_tvalid(h_meta_valid), .s_axis_meta_tready(h_meta_ready),
        .s_axis_meta_tdata(h_meta),
        .m_axis_tx_tvalid(s_valid), .m_axis_tx_tready(s_ready), .m_axis_tx_tdata(s_data), .m_axis_tx_tkeep(s_keep),
        .m_axis_tx_tlast(s_last), .m_axis_meta_tvalid(s_meta_valid), .m_axis_meta_tready(s_meta_ready),
        .m_axis_meta_tdata(s_meta), .inc_packets(inc[regs_pkg::PORT_GEN_PACKETS_ROW/8])
    );

    assign tx_idle = !gen_running && !tx_fifo_busy && !tx_net_busy && !tx_mac_busy;

    // What is on its way from one module to the next, or to the other clock, is there within the required idle time.
    logic [2:0] ring_still, still;
    logic       ring_quiet, all_quiet, ring_passed, passed;

    always_ff @(posedge clk_net) begin
        ring_quiet <= &ring_still && !rst_net;
        all_quiet  <= &still && !rst_net;
        ring_still <= tx_fifo_busy || ring_net_busy || lost_busy ? 3'd0 : ring_still + 3'(!(&ring_still));
        still      <= !tx_idle || lost_busy ? 3'd0 : still + 3'(!(&still));
        if (rst_net) {ring_still, still} <= '0;
    end

    plx_sync_bit #(.WIDTH(2)) idle_core (
        .clk(clk_core), .rst(rst_core), .d({ring_quiet, all_quiet}), .q({ring_passed, passed})
    );

    plx_sync_bit forgets (.clk(clk_net), .rst(rst_net), .d(forget), .q(discard));

    assign m_fifo_idle = fifo_idle && ring_passed;
    assign m_port_idle = net_in_reset || fifo_idle && passed && core_idle;

    wire unused = &{1'b0, now_cycle_ts[63:32], win_addr[12:8], stream_port, stream_delivery_mode, stream_enable};
endmodule
