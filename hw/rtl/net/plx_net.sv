// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A port's UDP, IPv4, ARP and ICMP, wired: received frames to payloads, payloads to frames, and
// answers without the host.

module plx_net #(
    parameter STREAMS       = 16,    // besides the default list
    parameter ARP_ENTRIES   = 256,   // neighbours
    parameter ARP_TICK_BITS = 20,    // a unit of their age is 2 to the power of this cycles
    parameter ECHO_WORDS    = 2048   // space for pings that are answered, 8 bytes each
) (
    input  logic         clk,
    input  logic         rst,

    // From the MAC: frames, from the destination address on, without FCS, and the time of their start.
    input  logic         s_axis_rx_tvalid,
    input  logic [63:0]  s_axis_rx_tdata,
    input  logic [7:0]   s_axis_rx_tkeep,
    input  logic         s_axis_rx_tlast,
    input  logic         s_axis_rx_tuser,
    input  logic [31:0]  s_axis_rx_cycle_ts,
    input  logic [63:0]  s_axis_rx_timestamp_ns,
    input  logic         s_axis_rx_timestamp_valid,

    // Payloads and whole frames for the host, RX_META with the first word.
    output logic         m_axis_payload_tvalid,
    output logic [63:0]  m_axis_payload_tdata,
    output logic [7:0]   m_axis_payload_tkeep,
    output logic         m_axis_payload_tlast,
    output logic         m_axis_payload_tuser,
    output logic         m_axis_meta_tvalid,
    output logic [layouts_pkg::RX_META_W-1:0] m_axis_meta_tdata,

    // Packets of the host or the generator, TX_META no later than the first word.
    input  logic         s_axis_tx_tvalid,
    output logic         s_axis_tx_tready,
    input  logic [63:0]  s_axis_tx_tdata,
    input  logic [7:0]   s_axis_tx_tkeep,
    input  logic         s_axis_tx_tlast,
    input  logic         s_axis_meta_tvalid,
    output logic         s_axis_meta_tready,
    input  logic [layouts_pkg::TX_META_W-1:0] s_axis_meta_tdata,

    // To the MAC.
    output logic         m_axis_tx_tvalid,
    input  logic         m_axis_tx_tready,
    output logic [63:0]  m_axis_tx_tdata,
    output logic [7:0]   m_axis_tx_tkeep,
    output logic         m_axis_tx_tlast,

    // The present time, in cycles.
    input  logic [31:0]  now_cycle_ts,

    // Settings of the port.
    input  logic [47:0]  cfg_mac,
    input  logic [31:0]  cfg_ip,
    input  logic         cfg_promiscuous,
    input  logic         cfg_multicast,
    input  logic         cfg_arp,
    input  logic         cfg_echo,
    input  logic         cfg_checksum,
    input  logic [13:0]  cfg_max_frame,
    input  logic [31:0]  cfg_destination_ip,
    input  logic [15:0]  cfg_destination_port,
    input  logic [15:0]  cfg_source_port,
    input  logic [7:0]   cfg_ttl,
    input  logic [7:0]   cfg_tos,

    // Streams, and the kinds that the default list accepts.
    input  logic [16*STREAMS-1:0] cfg_stream_port,
    input  logic [2*STREAMS-1:0]  cfg_stream_form,
    input  logic [STREAMS-1:0]    cfg_stream_enable,
    input  logic         cfg_catch_udp,
    input  logic         cfg_catch_other,

    // Neighbours: cycles that a packet waits for one; ages at which a request and a neighbour expire;
    // remove all; the table.
    input  logic [31:0]  cfg_arp_wait_cycles,
    input  logic [15:0]  cfg_arp_retry,
    input  logic [15:0]  cfg_arp_expiry,
    input  logic         arp_flush,
    input  logic         win_valid,
    output logic         win_ready,
    input  logic         win_write,
    input  logic [$clog2(ARP_ENTRIES)+3:0] win_addr,
    input  logic [31:0]  win_wdata,
    input  logic [3:0]   win_wstrb,
    output logic [31:0]  win_rdata,

    // Counts.
    output logic         inc_drop_address,
    output logic         inc_drop_malformed,
    output logic         inc_drop_checksum,
    output logic         inc_drop_fragment,
    output logic         inc_drop_unsupported,
    output logic         inc_drop_miss,
    output logic         inc_drop_answer,
    output logic         inc_arp_frames,
    output logic         inc_echo_frames,
    output logic         inc_tx_unresolved,

    // A packet that was lost so, and its cookie.
    output logic         m_lost_valid,
    output logic [31:0]  m_lost_cookie,

    // Packets to be sent are thrown away, until none waits.
    input  logic         discard,

    // A received frame has not been output yet; a frame to be sent is pending; a packet of a ring.
    output logic         rx_busy,
    output logic         tx_busy,
    output logic         ring_busy
);
    // ---- Receive --------------------------------------------------------------------------------

    logic        lookup_valid, lookup_udp, lookup_hit;
    logic [15:0] lookup_port;
    logic [4:0]  lookup_stream;
    logic [1:0]  lookup_delivery_mode;

    logic        open_valid, open_echo, open_whole, open_upper, end_valid, end_bad;
    logic [4:0]  open_stream, open_skip;
    logic [1:0]  open_delivery_mode;
    logic [15:0] open_length, open_source_port;

    logic        view_valid, arp_valid, arp_tagged, parse_busy, udp_rx_busy, echo_valid;
    logic [2:0]  view_index;
    logic [63:0] view_data;
    logic [15:0] arp_tag;

    plx_parse parse (
        .clk,
        .rst,
        .s_axis_rx_tvalid,
        .s_axis_rx_tdata,
        .s_axis_rx_tkeep,
        .s_axis_rx_tlast,
        .s_axis_rx_tuser,
        .m_lookup_valid(lookup_valid),
        .m_lookup_udp(lookup_udp),
        .m_lookup_port(lookup_port),
        .s_lookup_hit(lookup_hit),
        .s_lookup_stream(lookup_stream),
        .s_lookup_delivery_mode(lookup_delivery_mode),
        .m_open_valid(open_valid),
        .m_open_echo(open_echo),
        .m_open_whole(open_whole),
        .m_open_stream(open_stream),
        .m_open_delivery_mode(open_delivery_mode),
        .m_open_length(open_length),
        .m_open_source_port(open_source_port),
        .m_open_skip(open_skip),
        .m_open_upper(open_upper),
        .m_end_valid(end_valid),
        .m_end_bad(end_bad),
        .m_view_valid(view_valid),
        .m_view_index(view_index),
        .m_view_data(view_data),
        .m_arp_valid(arp_valid),
        .m_arp_tagged(arp_tagged),
        .m_arp_tag(arp_tag),
        .cfg_mac,
        .cfg_ip,
        .cfg_promiscuous,
        .cfg_multicast,
        .cfg_arp,
        .cfg_echo,
        .cfg_checksum,
        .cfg_max_frame,
        .inc_drop_address,
        .inc_drop_malformed,
        .inc_drop_checksum,
        .inc_drop_fragment,
        .inc_drop_unsupported,
        .inc_drop_miss,
        .busy(parse_busy)
    );

    plx_demux #(.STREAMS(STREAMS)) demux (
        .clk,
        .s_lookup_valid(lookup_valid),
        .s_lookup_udp(lookup_udp),
        .s_lookup_port(lookup_port),
        .m_lookup_hit(lookup_hit),
        .m_lookup_stream(lookup_stream),
        .m_lookup_delivery_mode(lookup_delivery_mode),
        .cfg_stream_port,
        .cfg_stream_form,
        .cfg_stream_enable,
        .cfg_catch_udp,
        .cfg_catch_other
    );

    plx_udp_rx udp_rx (
        .clk,
        .rst,
        .s_axis_rx_tvalid,
        .s_axis_rx_tdata,
        .s_axis_rx_tkeep,
        .s_axis_rx_tlast,
        .s_axis_rx_cycle_ts,
        .s_axis_rx_timestamp_ns,
        .s_axis_rx_timestamp_valid,
        .s_open_valid(open_valid),
        .s_open_echo(open_echo),
        .s_open_whole(open_whole),
        .s_open_stream(open_stream),
        .s_open_delivery_mode(open_delivery_mode),
        .s_open_length(open_length),
        .s_open_source_port(open_source_port),
        .s_open_skip(open_skip),
        .s_open_upper(open_upper),
        .s_end_valid(end_valid),
        .s_end_bad(end_bad),
        .m_axis_payload_tvalid,
        .m_axis_payload_tdata,
        .m_axis_payload_tkeep,
        .m_axis_payload_tlast,
        .m_axis_payload_tuser,
        .m_axis_meta_tvalid,
        .m_axis_meta_tdata,
        .m_echo_valid(echo_valid),
        .now_cycle_ts,
        .busy(udp_rx_busy)
    );

    assign rx_busy = parse_busy || udp_rx_busy;

    // ---- Answers and neighbours -----------------------------------------------------------------

    // Transmit order: packets, ARP, pings.
    localparam SENDERS = 3;
    logic [SENDERS-1:0]    tx_valid, tx_ready, tx_last;
    logic [64*SENDERS-1:0] tx_data;
    logic [8*SENDERS-1:0]  tx_keep;
    logic                  arp_drop, echo_drop, udp_tx_busy;

    logic        learn_valid, learn_new, request_valid, request_ready, requesting;
    logic [31:0] learn_ip, request_ip;
    logic [47:0] learn_mac;
    logic        neighbour_valid, neighbour_done, neighbour_hit;
    logic [31:0] neighbour_ip;
    logic [47:0] neighbour_mac;

    plx_arp arp (
        .clk,
        .rst,
        .s_view_valid(view_valid),
        .s_view_index(view_index),
        .s_view_data(view_data),
        .s_arp_valid(arp_valid),
        .s_arp_tagged(arp_tagged),
        .s_arp_tag(arp_tag),
        .m_learn_valid(learn_valid),
        .m_learn_new(learn_new),
        .m_learn_ip(learn_ip),
        .m_learn_mac(learn_mac),
        .s_request_valid(request_valid),
        .s_request_ready(request_ready),
        .s_request_ip(request_ip),
        .requesting,
        .discard,
        .m_axis_tx_tvalid(tx_valid[1]),
        .m_axis_tx_tready(tx_ready[1]),
        .m_axis_tx_tdata(tx_data[64+:64]),
        .m_axis_tx_tkeep(tx_keep[8+:8]),
        .m_axis_tx_tlast(tx_last[1]),
        .cfg_mac,
        .cfg_ip,
        .inc_frames(inc_arp_frames),
        .inc_drop_answer(arp_drop)
    );

    plx_arp_cache #(
        .ENTRIES(ARP_ENTRIES),
        .TICK_BITS(ARP_TICK_BITS)
    ) arp_cache (
        .clk,
        .rst,
        .s_lookup_valid(neighbour_valid),
        .s_lookup_ip(neighbour_ip),
        .m_lookup_done(neighbour_done),
        .m_lookup_hit(neighbour_hit),
        .m_lookup_mac(neighbour_mac),
        .abandon(discard),
        .s_learn_valid(learn_valid),
        .s_learn_new(learn_new),
        .s_learn_ip(learn_ip),
        .s_learn_mac(learn_mac),
        .m_request_valid(request_valid),
        .m_request_ready(request_ready),
        .m_request_ip(request_ip),
        .requesting,
        .win_valid,
        .win_ready,
        .win_write,
        .win_addr,
        .win_wdata,
        .win_wstrb,
        .win_rdata,
        .cfg_wait_cycles(cfg_arp_wait_cycles),
        .cfg_retry(cfg_arp_retry),
        .cfg_expiry(cfg_arp_expiry),
        .flush(arp_flush)
    );

    plx_icmp_echo #(.WORDS(ECHO_WORDS)) icmp_echo (
        .clk,
        .rst,
        .s_axis_echo_tvalid(echo_valid),
        .s_axis_echo_tdata(m_axis_payload_tdata),
        .s_axis_echo_tkeep(m_axis_payload_tkeep),
        .s_axis_echo_tlast(m_axis_payload_tlast),
        .s_axis_echo_tuser(m_axis_payload_tuser),
        .m_axis_tx_tvalid(tx_valid[2]),
        .m_axis_tx_tready(tx_ready[2]),
        .m_axis_tx_tdata(tx_data[128+:64]),
        .m_axis_tx_tkeep(tx_keep[16+:8]),
        .m_axis_tx_tlast(tx_last[2]),
        .cfg_mac,
        .cfg_ip,
        .cfg_ttl,
        .inc_frames(inc_echo_frames),
        .inc_drop_answer(echo_drop)
    );

    // Two counts in one cycle are spread over two.
    logic drop_owed;

    assign inc_drop_answer = arp_drop || echo_drop || drop_owed;

    always_ff @(posedge clk) begin
        if (rst) drop_owed <= 1'b0;
        else drop_owed <= (arp_drop && echo_drop) || (drop_owed && (arp_drop || echo_drop));
    end

    // ---- Transmit -------------------------------------------------------------------------------

    plx_udp_tx udp_tx (
        .clk,
        .rst,
        .s_axis_tx_tvalid,
        .s_axis_tx_tready,
        .s_axis_tx_tdata,
        .s_axis_tx_tkeep,
        .s_axis_tx_tlast,
        .s_axis_meta_tvalid,
        .s_axis_meta_tready,
        .s_axis_meta_tdata,
        .m_lookup_valid(neighbour_valid),
        .m_lookup_ip(neighbour_ip),
        .s_lookup_done(neighbour_done),
        .s_lookup_hit(neighbour_hit),
        .s_lookup_mac(neighbour_mac),
        .m_axis_tx_tvalid(tx_valid[0]),
        .m_axis_tx_tready(tx_ready[0]),
        .m_axis_tx_tdata(tx_data[0+:64]),
        .m_axis_tx_tkeep(tx_keep[0+:8]),
        .m_axis_tx_tlast(tx_last[0]),
        .cfg_mac,
        .cfg_ip,
        .cfg_destination_ip,
        .cfg_destination_port,
        .cfg_source_port,
        .cfg_ttl,
        .cfg_tos,
        .discard,
        .inc_unresolved(inc_tx_unresolved),
        .m_lost_valid,
        .m_lost_cookie,
        .busy(udp_tx_busy),
        .ring_busy
    );

    plx_tx_mux #(.N(SENDERS)) tx_mux (
        .clk,
        .rst,
        .s_axis_tx_tvalid(tx_valid),
        .s_axis_tx_tready(tx_ready),
        .s_axis_tx_tdata(tx_data),
        .s_axis_tx_tkeep(tx_keep),
        .s_axis_tx_tlast(tx_last),
        .m_axis_tx_tvalid,
        .m_axis_tx_tready,
        .m_axis_tx_tdata,
        .m_axis_tx_tkeep,
        .m_axis_tx_tlast
    );

    assign tx_busy = udp_tx_busy || |tx_valid || request_valid;
endmodule
