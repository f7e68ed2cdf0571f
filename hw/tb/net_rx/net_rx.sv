// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// What a received frame passes: parse, demux, plx_udp_rx. Counts side by side.

module net_rx (
    input  logic         clk,
    input  logic         rst,
    input  logic         s_axis_rx_tvalid,
    input  logic [63:0]  s_axis_rx_tdata,
    input  logic [7:0]   s_axis_rx_tkeep,
    input  logic         s_axis_rx_tlast,
    input  logic         s_axis_rx_tuser,
    input  logic [31:0]  s_axis_rx_cycle_ts,
    input  logic [63:0]  s_axis_rx_timestamp_ns,
    input  logic         s_axis_rx_timestamp_valid,
    output logic         m_axis_payload_tvalid,
    output logic [63:0]  m_axis_payload_tdata,
    output logic [7:0]   m_axis_payload_tkeep,
    output logic         m_axis_payload_tlast,
    output logic         m_axis_payload_tuser,
    output logic         m_axis_meta_tvalid,
    output logic [168:0] m_axis_meta_tdata,
    output logic         m_echo_valid,
    input  logic [31:0]  now_cycle_ts,
    input  logic [47:0]  cfg_mac,
    input  logic [31:0]  cfg_ip,
    input  logic         cfg_promiscuous,
    input  logic         cfg_multicast,
    input  logic         cfg_arp,
    input  logic         cfg_echo,
    input  logic         cfg_checksum,
    input  logic [13:0]  cfg_max_frame,
    input  logic [255:0] cfg_stream_port,
    input  logic [31:0]  cfg_stream_form,
    input  logic [15:0]  cfg_stream_enable,
    input  logic         cfg_catch_udp,
    input  logic         cfg_catch_other,
    // ARP, miss, unsupported, fragment, checksum, malformed, address.
    output logic [6:0]   counts,
    output logic         busy
);
    logic        lookup_valid, lookup_udp, hit;
    logic [15:0] lookup_port, open_length, open_source_port;
    logic [4:0]  stream, open_stream, open_skip;
    logic [1:0]  form, open_delivery_mode;
    logic        open_valid, open_echo, open_whole, open_upper, end_valid, end_bad, parse_busy, rx_busy;

    assign busy = parse_busy || rx_busy;

    plx_parse parser (
        .m_lookup_valid(lookup_valid), .m_lookup_udp(lookup_udp), .m_lookup_port(lookup_port),
        .s_lookup_hit(hit), .s_lookup_stream(stream), .s_lookup_delivery_mode(form),
        .m_open_valid(open_valid), .m_open_echo(open_echo), .m_open_whole(open_whole), .m_open_stream(open_stream),
        .m_open_delivery_mode(open_delivery_mode), .m_open_length(open_length), .m_open_source_port(open_source_port),
        .m_open_skip(open_skip), .m_open_upper(open_upper), .m_end_valid(end_valid), .m_end_bad(end_bad),
        .m_view_valid(), .m_view_index(), .m_view_data(), .m_arp_valid(counts[6]), .m_arp_tagged(), .m_arp_tag(),
        .inc_drop_address(counts[0]), .inc_drop_malformed(counts[1]), .inc_drop_checksum(counts[2]),
        .inc_drop_fragment(counts[3]), .inc_drop_unsupported(counts[4]), .inc_drop_miss(counts[5]),
        .busy(parse_busy), .*
    );

    plx_demux table_of_streams (
        .s_lookup_valid(lookup_valid), .s_lookup_udp(lookup_udp), .s_lookup_port(lookup_port),
        .m_lookup_hit(hit), .m_lookup_stream(stream), .m_lookup_delivery_mode(form), .*
    );

    plx_udp_rx receiver (
        .s_open_valid(open_valid), .s_open_echo(open_echo), .s_open_whole(open_whole), .s_open_stream(open_stream),
        .s_open_delivery_mode(open_delivery_mode), .s_open_length(open_length), .s_open_source_port(open_source_port),
        .s_open_skip(open_skip), .s_open_upper(open_upper), .s_end_valid(end_valid), .s_end_bad(end_bad),
        .busy(rx_busy), .*
    );
endmodule
