// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Prepends Ethernet, IPv4 (RFC 791) and UDP (RFC 768) headers to payloads, cut-through: lengths and
// checksums accompany the payload. The next frame's neighbour is looked up while one frame leaves.

module plx_udp_tx (
    input  logic        clk,
    input  logic        rst,

    // Payloads, and TX_META no later than the first word; without gaps once one has begun.
    input  logic        s_axis_tx_tvalid,
    output logic        s_axis_tx_tready,
    input  logic [63:0] s_axis_tx_tdata,
    input  logic [7:0]  s_axis_tx_tkeep,
    input  logic        s_axis_tx_tlast,
    input  logic        s_axis_meta_tvalid,
    output logic        s_axis_meta_tready,
    input  logic [layouts_pkg::TX_META_W-1:0] s_axis_meta_tdata,

    // The neighbour of an address: stable until done.
    output logic        m_lookup_valid,
    output logic [31:0] m_lookup_ip,
    input  logic        s_lookup_done,
    input  logic        s_lookup_hit,
    input  logic [47:0] s_lookup_mac,

    // Frames, without gaps.
    output logic        m_axis_tx_tvalid,
    input  logic        m_axis_tx_tready,
    output logic [63:0] m_axis_tx_tdata,
    output logic [7:0]  m_axis_tx_tkeep,
    output logic        m_axis_tx_tlast,

    // Settings: own addresses; default destination of packets; time to live, type of service.
    input  logic [47:0] cfg_mac,
    input  logic [31:0] cfg_ip,
    input  logic [31:0] cfg_destination_ip,
    input  logic [15:0] cfg_destination_port,
    input  logic [15:0] cfg_source_port,
    input  logic [7:0]  cfg_ttl,
    input  logic [7:0]  cfg_tos,

    // Packets are thrown away, but one that has begun; no neighbour is needed for them. It lasts until none waits.
    input  logic        discard,

    // Count of packets lost because their address had no neighbour; whether a ring is to report this
    // one, and its cookie.
    output logic        inc_unresolved,
    output logic        m_lost_valid,
    output logic [31:0] m_lost_cookie,

    // A packet is in progress; one that a ring would report.
    output logic        busy,
    output logic        ring_busy
);
    localparam [7:0] UDP = 8'd17;
    localparam [1:0] NONE = 2'd0, GIVEN = 2'd1;  // checksum modes; else the sum of the payload is given

    // Words that wait for their headers: as many as arrive while a header leaves, and more.
    logic        word_valid, word_ready, word_last;
    logic [7:0]  word_keep;
    logic [63:0] word;

    /* verilator lint_off PINCONNECTEMPTY */
    plx_fifo_sync #(
        .WIDTH(73),
        .DEPTH(16)
    ) words (
        .clk,
        .rst,
        .s_valid(s_axis_tx_tvalid),
        .s_ready(s_axis_tx_tready),
        .s_data({s_axis_tx_tlast, s_axis_tx_tkeep, s_axis_tx_tdata}),
        .m_valid(word_valid),
        .m_ready(word_ready),
        .m_data({word_last, word_keep, word}),
        .level()
    );
    /* verilator lint_on PINCONNECTEMPTY */

    // ---- The next packet: its neighbour and its sums --------------------------------------------

    wire [31:0] meta_ip   = s_axis_meta_tdata[layouts_pkg::TX_META_DESTINATION_IP_AT+:32];
    wire [15:0] meta_to   = s_axis_meta_tdata[layouts_pkg::TX_META_DESTINATION_PORT_AT+:16];
    wire [15:0] meta_from = s_axis_meta_tdata[layouts_pkg::TX_META_SOURCE_PORT_AT+:16];

    logic        next_valid, resolved, found, raw;
    logic [47:0] peer_mac;
    logic [31:0] destination_ip;
    logic [15:0] destination_port, source_port, length, checksum_given;
    logic [1:0]  checksum_mode;
    logic [31:0] cookie;
    logic        notify, start;

    assign s_axis_meta_tready = !next_valid;
    assign m_lookup_valid     = next_valid && !resolved;
    assign m_lookup_ip        = destination_ip;

    always_ff @(posedge clk) begin
        if (!next_valid) begin
            next_valid <= s_axis_meta_tvalid;
            resolved   <= s_axis_meta_tdata[layouts_pkg::TX_META_RAW_AT] || discard;
        end
        else if (m_lookup_valid && s_lookup_done) resolved <= 1'b1;
        if (start || rst) next_valid <= 1'b0;
    end

    always_ff @(posedge clk) begin
        if (!next_valid) begin
            raw              <= s_axis_meta_tdata[layouts_pkg::TX_META_RAW_AT];
            destination_ip   <= meta_ip == 0 ? cfg_destination_ip : meta_ip;
            destination_port <= meta_ip == 0 ? cfg_destination_port : meta_to;
            source_port      <= meta_ip == 0 ? cfg_source_port : meta_from;
            length           <= s_axis_meta_tdata[layouts_pkg::TX_META_LENGTH_AT+:16];
            checksum_given   <= s_axis_meta_tdata[layouts_pkg::TX_META_CHECKSUM_AT+:16];
            checksum_mode    <= s_axis_meta_tdata[layouts_pkg::TX_META_CHECKSUM_MODE_AT+:2];
            cookie           <= s_axis_meta_tdata[layouts_pkg::TX_META_COOKIE_AT+:32];
            notify           <= s_axis_meta_tdata[layouts_pkg::TX_META_NOTIFY_AT];
        end
        if (s_lookup_done) begin
            found    <= s_lookup_hit;
            peer_mac <= s_lookup_mac;
        end
    end

    wire [15:0]  ip_length  = length + 16'd28;
    wire [15:0]  udp_length = length + 16'd8;
    // Never fragmented, so the identification has no meaning (RFC 6864, 4.1).
    wire [79:0]  ip_head    = {8'h45, cfg_tos, ip_length, 16'd0, 16'h4000, cfg_ttl, UDP};
    wire [63:0]  addresses  = {cfg_ip, destination_ip};
    wire [47:0]  udp_head   = {source_port, destination_port, udp_length};
    logic [31:0] ip_sum, ip_sum_next, udp_sum, udp_sum_next;
    logic [15:0] ip_folded, udp_folded;

    // Sums take bytes in stream order; the halves of a sum may be swapped (RFC 1071, 2 B).
    plx_checksum #(.BYTES(18)) ip_step (
        .state(32'd0),
        .data({ip_head, addresses}),
        .keep({18{1'b1}}),
        .next(ip_sum_next)
    );

    plx_checksum #(.BYTES(18)) udp_step (
        .state({16'd0, checksum_given[7:0], checksum_given[15:8]}),
        .data({addresses, 8'd0, UDP, udp_length, udp_head}),
        .keep({18{1'b1}}),
        .next(udp_sum_next)
    );

    always_ff @(posedge clk) begin
        ip_sum  <= ip_sum_next;
        udp_sum <= udp_sum_next;
    end

    plx_checksum_fold ip_fold (.state(ip_sum), .sum(ip_folded));
    plx_checksum_fold udp_fold (.state(udp_sum), .sum(udp_folded));

    wire [15:0] ip_checksum  = ~{ip_folded[7:0], ip_folded[15:8]};
    wire [15:0] udp_computed = ~{udp_folded[7:0], udp_folded[15:8]};
    // RFC 768: a computed zero is sent as ones, because zero means no checksum.
    wire [15:0] udp_checksum = checksum_mode == NONE ? 16'd0 : checksum_mode == GIVEN ? checksum_given
        : udp_computed == 0 ? 16'hFFFF : udp_computed;

    // ---- The leaving packet ---------------------------------------------------------------------

    // 42 bytes of headers: 5 words, and 2 bytes in front of the first 6 of the payload.
    localparam HEAD = 42;
    logic [8*HEAD-1:0] head_next, head;
    wire  [8*HEAD-1:0] network = {peer_mac, cfg_mac, 16'h0800, ip_head, ip_checksum, addresses, udp_head, udp_checksum};

    generate
        for (genvar i = 0; i < HEAD; i = i + 1) begin : g_byte
            assign head_next[8*i+:8] = network[8*(HEAD-1-i)+:8];
        end
    endgenerate

    logic       active, sends_raw, discards, counts, event_req, tail;
    logic [2:0] heads;   // remaining words of headers
    logic [31:0] lost;   // cookie of the packet
    logic [7:0] tail_keep;

    wire        free     = m_axis_tx_tready || !m_axis_tx_tvalid;
    wire        heading  = active && heads != 0;
    wire        passing  = active && heads == 0 && !tail && word_valid;
    // The payload's last word has bytes that do not fit after the two that remain of the previous word.
    wire        spills   = word_keep[6] && !sends_raw;
    wire        step     = free && (heading || passing || tail);
    wire        final_word = !discards && step && (tail || (passing && word_last && !spills));

    assign start      = next_valid && resolved && !active;
    assign word_ready = passing && (discards || free);

    always_ff @(posedge clk) begin
        inc_unresolved <= !rst && word_ready && word_last && discards && counts;
        m_lost_valid   <= !rst && word_ready && word_last && discards && event_req;
        if (start) active <= 1'b1;
        if (final_word || (word_ready && word_last && discards)) active <= 1'b0;
        if (start) heads <= raw || !found || discard ? 3'd0 : 3'd5;
        else if (heading && free) heads <= heads - 3'd1;
        if (free) tail <= passing && word_last && spills && !discards;
        if (free) m_axis_tx_tvalid <= step && !discards;
        if (rst) begin
            active           <= 1'b0;
            tail             <= 1'b0;
            m_axis_tx_tvalid <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        if (start) begin
            sends_raw <= raw;
            discards  <= discard || !raw && !found;
            counts    <= !discard;
            event_req <= notify && !discard;
            lost      <= cookie;
            head      <= head_next;
        end
        else if (step && heading) head <= head >> 64;
        else if (step) head[15:0] <= word[63:48];
        m_lost_cookie <= lost;
        if (free) begin
            m_axis_tx_tdata <= heading ? head[63:0] : tail ? {48'd0, head[15:0]} : sends_raw ? word
                : {word[47:0], head[15:0]};
            m_axis_tx_tkeep <= heading ? 8'hFF : tail ? tail_keep : sends_raw ? word_keep
                : {word_keep[5:0], 2'b11};
            m_axis_tx_tlast <= tail || (passing && word_last && !spills);
            tail_keep       <= {6'd0, word_keep[7:6]};
        end
    end

    assign busy      = next_valid || active || word_valid || m_axis_tx_tvalid;
    assign ring_busy = next_valid && notify || active && event_req;
endmodule
