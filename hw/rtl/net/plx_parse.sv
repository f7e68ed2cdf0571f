// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Parses the headers of passing frames, and decides the destination of each: Ethernet
// (IEEE 802.3, 3.2), one VLAN tag (IEEE 802.1Q, 9.6), IPv4 (RFC 791), UDP (RFC 768), ICMP (RFC 792),
// ARP (RFC 826). A frame that is lost here is counted at its last word, once. The verdict on the
// headers follows the word with the UDP destination port by two cycles, that on the whole frame its
// last word by three.

module plx_parse (
    input  logic        clk,
    input  logic        rst,

    // Frames, from the destination address on, without FCS. tuser, with tlast: bad and counted.
    input  logic        s_axis_rx_tvalid,
    input  logic [63:0] s_axis_rx_tdata,
    input  logic [7:0]  s_axis_rx_tkeep,
    input  logic        s_axis_rx_tlast,
    input  logic        s_axis_rx_tuser,

    // Lookup of the stream; the response is valid in the next cycle.
    output logic        m_lookup_valid,
    output logic        m_lookup_udp,
    output logic [15:0] m_lookup_port,
    input  logic        s_lookup_hit,
    input  logic [4:0]  s_lookup_stream,
    input  logic [1:0]  s_lookup_delivery_mode,

    // The frame has a destination: the ping responder, or the host. Start of its payload: the
    // word, and in it byte 6 or byte 2. Whole frames: all words, at most `length` bytes.
    output logic        m_open_valid,
    output logic        m_open_echo,
    output logic        m_open_whole,
    output logic [4:0]  m_open_stream,
    output logic [1:0]  m_open_delivery_mode,
    output logic [15:0] m_open_length,
    output logic [15:0] m_open_source_port,
    output logic [4:0]  m_open_skip,
    output logic        m_open_upper,

    // The end of a frame with a destination, never before its opening: whether it is withdrawn.
    output logic        m_end_valid,
    output logic        m_end_bad,

    // Words without the VLAN tag, and their number up to 7; then, if it was valid ARP, a pulse.
    output logic        m_view_valid,
    output logic [2:0]  m_view_index,
    output logic [63:0] m_view_data,
    output logic        m_arp_valid,
    output logic        m_arp_tagged,
    output logic [15:0] m_arp_tag,

    // Settings: accepted addresses, enabled answers and checks; the length that no frame exceeds.
    input  logic [47:0] cfg_mac,
    input  logic [31:0] cfg_ip,
    input  logic        cfg_promiscuous,
    input  logic        cfg_multicast,
    input  logic        cfg_arp,
    input  logic        cfg_echo,
    input  logic        cfg_checksum,
    input  logic [13:0] cfg_max_frame,

    // Counts of lost frames.
    output logic        inc_drop_address,
    output logic        inc_drop_malformed,
    output logic        inc_drop_checksum,
    output logic        inc_drop_fragment,
    output logic        inc_drop_unsupported,
    output logic        inc_drop_miss,

    // Between the first and the last word of a frame.
    output logic        busy
);
    localparam [15:0] IPV4 = 16'h0800, ARP = 16'h0806, VLAN = 16'h8100;  // EtherTypes
    localparam [7:0]  ICMP = 8'd1, UDP = 8'd17;                          // IANA protocol numbers

    localparam [2:0] TAKEN = 3'd0, ADDRESS = 3'd1, MALFORMED = 3'd2, CHECKSUM = 3'd3, FRAGMENT = 3'd4,
        UNSUPPORTED = 3'd5, MISS = 3'd6;

    // ---- The incoming word ----------------------------------------------------------------------

    // Its number in the frame; no acceptable frame has more words than this counts.
    logic [10:0] index;
    logic [31:0] above;
    logic        vlan;

    // The frame as if it had no tag: after a tag, words are shifted by half a word.
    logic        behind_tag;
    wire  [63:0] view       = behind_tag ? {s_axis_rx_tdata[31:0], above} : s_axis_rx_tdata;
    wire  [10:0] view_index = index - {10'd0, behind_tag};

    // Its bytes, which are contiguous.
    wire  [7:0]  ends  = s_axis_rx_tkeep & ~{1'b0, s_axis_rx_tkeep[7:1]};
    wire  [3:0]  count = {ends[7], |ends[6:3], |ends[6:5] || |ends[2:1], ends[6] || ends[4] || ends[2] || ends[0]};

    // 16-bit fields, in network order.
    wire  [15:0] lane0 = {view[7:0], view[15:8]};
    wire  [15:0] lane1 = {view[23:16], view[31:24]};
    wire  [15:0] lane2 = {view[39:32], view[47:40]};
    wire  [15:0] lane3 = {view[55:48], view[63:56]};

    // Ethernet: to all, to this port, to others; EtherType.
    logic        addressed, own, from_group, ipv4, arp;
    logic [15:0] tag;
    wire  [47:0] destination = {lane0, lane1, lane2};

    // IPv4. A header has at least 5 words of 32 bits; the search for its end starts there.
    logic [7:0]  version_ihl, protocol;
    logic [15:0] total;
    logic [31:0] destination_ip;
    logic        fragment;
    wire  [3:0]  version = version_ihl[7:4];
    wire         too_short = version_ihl[3:0] < 4'd5;
    wire  [3:0]  ihl  = too_short ? 4'd5 : version_ihl[3:0];
    // The word of the view with bytes 2 and 3 after the header: bytes 16 + 4 * ihl and on. Known one
    // cycle after the length of the header, which is two words before.
    logic        even;
    logic [10:0] port_at, above_port;

    // UDP's source port, or ICMP's type and code; UDP's length.
    logic [15:0] lane3_before, head, udp_length;

    // ARP.
    logic        arp_hardware, arp_sound;

    // The same of the frame as received, with its tag; whether UDP's checksum, 4 bytes on, is zero.
    wire  [4:0]  quads = {1'b0, ihl} + {4'd0, vlan};
    logic        odd, unsummed;
    logic [10:0] l4_at, l4_above;

    // The headers are complete for a verdict with this word, of the frame as received.
    logic [10:0] headers_at;
    wire         headers = s_axis_rx_tvalid && index == headers_at;

    assign m_lookup_valid = headers;
    assign m_lookup_udp   = ipv4 && protocol == UDP;
    assign m_lookup_port  = even ? lane0 : lane2;

    always_ff @(posedge clk) begin
        if (rst) index <= '0;
        else if (s_axis_rx_tvalid) index <= s_axis_rx_tlast ? '0 : index + {10'd0, index != '1};
        if (rst) behind_tag <= 1'b0;
        else if (s_axis_rx_tvalid) behind_tag <= !s_axis_rx_tlast && (index == 1 ? lane2 == VLAN : index != 0 && vlan);
    end

    always_ff @(posedge clk) begin
        if (s_axis_rx_tvalid) begin
            above        <= s_axis_rx_tdata[63:32];
            lane3_before <= lane3;
            if (index == 0) begin
                from_group <= view[48];
                own        <= destination == cfg_mac;
                addressed  <= destination == cfg_mac || destination == '1 || (cfg_multicast && view[0])
                    || cfg_promiscuous;
            end
            if (index == 1) begin
                vlan <= lane2 == VLAN;
                tag  <= lane3;
            end
            if (view_index == 1) begin
                ipv4         <= lane2 == IPV4;
                arp          <= lane2 == ARP;
                version_ihl  <= lane3[15:8];
                arp_hardware <= lane3 == 16'd1;
            end
            if (view_index == 2) begin
                total     <= lane0;
                // More fragments, or an offset.
                fragment  <= lane2[13:0] != 0;
                protocol  <= lane3[7:0];
                // IPv4 addresses of 4 bytes, of neighbours with MAC addresses of 6.
                arp_sound <= arp_hardware && lane0 == IPV4 && lane1 == 16'h0604;
            end
            if (view_index == 3) destination_ip[31:16] <= lane3;
            if (view_index == 4) destination_ip[15:0] <= lane0;
            if (view_index == port_at) begin
                head       <= even ? lane3_before : lane1;
                udp_length <= even ? lane1 : lane3;
            end
            if (odd && index == l4_above) unsummed <= s_axis_rx_tdata[15:0] == 0;
            if (!odd && index == l4_at) unsummed <= s_axis_rx_tdata[47:32] == 0;
        end
        even       <= !ihl[0];
        port_at    <= 11'd2 + {8'd0, ihl[3:1]};
        above_port <= 11'd1 + {8'd0, ihl[3:1]};
        headers_at <= 11'd2 + {8'd0, ipv4 ? ihl[3:1] : 3'd1} + {10'd0, vlan};
        odd        <= quads[0];
        l4_at      <= 11'd2 + {7'd0, quads[4:1]};
        l4_above   <= 11'd3 + {7'd0, quads[4:1]};
    end

    // ---- One cycle later: sum of the header, what the verdict depends on ------------------------

    logic        valid, last, bad, judging;
    logic [63:0] word;
    logic [10:0] number;
    logic [13:0] bytes;
    logic [7:0]  header_keep;

    always_ff @(posedge clk) begin
        valid   <= s_axis_rx_tvalid && !rst;
        judging <= headers && !rst;
    end

    always_ff @(posedge clk) begin
        last   <= s_axis_rx_tlast;
        bad    <= s_axis_rx_tuser;
        word   <= s_axis_rx_tdata;
        number <= index;
        bytes  <= {index, 3'd0} + {10'd0, count};
        m_view_data  <= view;
        m_view_index <= view_index > 11'd7 ? 3'd7 : view_index[2:0];
        // The IPv4 header, in the view: from byte 14 to the last one before its payload.
        header_keep  <= view_index == 1 ? 8'b11000000 : view_index == port_at ? {6'd0, {2{!even}}}
            : view_index == above_port && even ? 8'b00111111 : 8'b11111111;
    end

    assign m_view_valid = valid;

    // RFC 791, 3.1: header checksum.
    logic [31:0] header_sum, header_sum_next;

    plx_checksum header_step (
        .state(m_view_index == 1 ? 32'd0 : header_sum),
        .data(m_view_data),
        .keep(header_keep),
        .next(header_sum_next)
    );

    always_ff @(posedge clk) if (valid) header_sum <= header_sum_next;

    wire header_correct = &(header_sum[31:16] ^ header_sum[15:0]) || &header_sum;

    // Payload of the IPv4 datagram, one cycle after its length.
    wire  [15:0] ip_bytes = {10'd0, ihl, 2'd0};
    logic [15:0] room;
    logic        no_room;
    wire         is_udp   = protocol == UDP;
    // No answer to a group (RFC 1122, 3.2.2.6).
    wire         is_echo  = cfg_echo && protocol == ICMP && head == 16'h0800 && ihl == 4'd5 && own && !from_group
        && destination_ip == cfg_ip;
    wire         for_arp  = arp && cfg_arp && !ipv4;
    // All of the datagram; all of ARP in the view, which the shortest frame has (4.4.2).
    wire  [16:0] needed   = ipv4 ? 17'd14 + {14'd0, vlan, 2'd0} + {1'b0, total} : for_arp ? 17'd60 : 17'd0;

    // With _2: two cycles after the word; with _3: three.
    logic        valid_2, last_2, bad_2, judging_2, addressed_2, ipv4_2, for_arp_2, sound_2, malformed_2, fragment_2,
                 to_us_2, length_2, udp_2, echo_2, hit_2, truncated_2, unsummed_2, odd_2, tagged_2;
    logic [1:0]  delivery_mode_2;
    logic [4:0]  stream_2, skip_2;
    logic [15:0] head_2, payload_2, tag_2;

    always_ff @(posedge clk) begin
        valid_2   <= valid && !rst;
        judging_2 <= judging && !rst;
    end

    always_ff @(posedge clk) begin
        room        <= total - ip_bytes;
        no_room     <= total < ip_bytes;
        last_2      <= last;
        bad_2       <= bad;
        addressed_2 <= addressed;
        ipv4_2      <= ipv4;
        for_arp_2   <= for_arp;
        sound_2     <= arp_sound;
        malformed_2 <= version != 4'd4 || too_short || no_room;
        fragment_2  <= fragment;
        to_us_2     <= destination_ip == cfg_ip || destination_ip == '1 || cfg_promiscuous
            || (cfg_multicast && destination_ip[31:28] == 4'hE);
        // RFC 768: the length includes the 8 bytes of the header.
        length_2    <= is_udp ? udp_length >= 16'd8 && udp_length <= room : !is_echo || room >= 16'd8;
        udp_2       <= is_udp;
        echo_2      <= ipv4 && is_echo;
        hit_2       <= s_lookup_hit;
        delivery_mode_2      <= s_lookup_delivery_mode;
        stream_2    <= s_lookup_stream;
        // The payload begins at byte 22 + 4 * quads.
        skip_2      <= l4_at[4:0] + {4'd0, odd};
        odd_2       <= odd;
        head_2      <= ipv4 && is_udp ? head : 16'd0;
        payload_2   <= udp_length - 16'd8;
        truncated_2 <= {3'd0, bytes} < needed;
        // RFC 768: zero means that the sender has computed none.
        unsummed_2  <= is_udp && unsummed;
        tagged_2    <= vlan;
        tag_2       <= tag;
    end

    // RFC 768, RFC 792: the checksum after the IPv4 header, UDP's with a pseudo-header
    // of both addresses, the protocol, and the length once more. Over the frame as received:
    // the data after the IPv4 header begin in word l4_at at byte 2, or in the one before at byte 6.
    logic [7:0]  l4_keep;
    logic [15:0] l4_left, l4_extra;
    wire  [15:0] l4_twice  = odd ? word[63:48] : word[31:16];
    logic [31:0] l4_sum, l4_sum_next;
    wire  [15:0] l4_length = is_udp ? udp_length : room;
    // Bytes of it from the start of this word on.
    wire  [15:0] l4_now    = number == l4_at ? l4_length - 16'd2
        : number == l4_above && odd ? l4_length - 16'd6 : l4_left;
    wire  [7:0]  l4_tail   = l4_now >= 16'd8 ? 8'hFF : ~(8'hFF << l4_now[2:0]);

    always_comb begin
        if (number > l4_at) l4_keep = l4_tail;
        else if (number == l4_at) l4_keep = odd ? 8'b11111100 : l4_tail;
        else l4_keep = number + 11'd1 == l4_at && !odd ? 8'b11000000 : 8'b00000000;
        if (is_udp && number == 3) l4_keep = l4_keep | (vlan ? 8'b11000000 : 8'b11111100);
        if (is_udp && number == 4) l4_keep = l4_keep | (vlan ? 8'b00111111 : 8'b00000011);
        l4_extra = 16'd0;
        if (is_udp && number == 3) l4_extra = {UDP, 8'd0};
        if (is_udp && number == l4_at) l4_extra = l4_twice;
    end

    logic [79:0] l4_data;
    logic [9:0]  l4_select;
    logic        l4_first;

    always_ff @(posedge clk) begin
        if (valid) l4_left <= l4_now >= 16'd8 ? l4_now - 16'd8 : 16'd0;
        l4_data   <= {l4_extra, word};
        l4_select <= {2'b11, number < 11'd3 ? 8'd0 : l4_keep};
        l4_first  <= number < 11'd3;
    end

    // ---- Two cycles later: verdict on the headers, sum of the datagram --------------------------

    plx_checksum #(.BYTES(10)) l4_step (
        .state(l4_first ? 32'd0 : l4_sum),
        .data(l4_data),
        .keep(l4_select),
        .next(l4_sum_next)
    );

    always_ff @(posedge clk) if (valid_2) l4_sum <= l4_sum_next;

    wire l4_correct = &(l4_sum[31:16] ^ l4_sum[15:0]) || &l4_sum;

    logic [2:0] verdict;

    always_comb begin
        if (!addressed_2) verdict = ADDRESS;
        else if (for_arp_2) verdict = sound_2 ? TAKEN : MALFORMED;
        else if (!ipv4_2) verdict = hit_2 ? TAKEN : UNSUPPORTED;
        else if (malformed_2) verdict = MALFORMED;
        else if (!header_correct) verdict = CHECKSUM;
        else if (fragment_2) verdict = FRAGMENT;
        else if (!to_us_2) verdict = ADDRESS;
        else if (!length_2) verdict = MALFORMED;
        else if (echo_2 || hit_2) verdict = TAKEN;
        else verdict = udp_2 ? MISS : UNSUPPORTED;
    end

    assign m_open_valid         = valid_2 && judging_2 && verdict == TAKEN && !for_arp_2;
    assign m_open_echo          = echo_2;
    assign m_open_whole         = echo_2 || delivery_mode_2 == 2'd1;
    assign m_open_stream        = stream_2;
    assign m_open_delivery_mode = delivery_mode_2;
    assign m_open_length        = m_open_whole ? {2'd0, cfg_max_frame} : payload_2;
    assign m_open_source_port   = head_2;
    assign m_open_skip          = skip_2;
    assign m_open_upper         = !odd_2;

    // ---- Three cycles later: verdict on the frame -----------------------------------------------

    logic        judged, over_3, bad_3, judged_3, check_3, truncated_3, unsummed_3, for_arp_3, tagged_3;
    logic [2:0]  verdict_3, status;
    logic [15:0] tag_3;

    always_ff @(posedge clk) begin
        over_3 <= valid_2 && last_2 && !rst;
        if (valid_2) judged <= (judging_2 || judged) && !last_2;
        if (rst) judged <= 1'b0;
    end

    always_ff @(posedge clk) begin
        bad_3       <= bad_2;
        truncated_3 <= truncated_2;
        unsummed_3  <= unsummed_2;
        for_arp_3   <= for_arp_2;
        tagged_3    <= tagged_2;
        tag_3       <= tag_2;
        judged_3    <= judging_2 || judged;
        if (judging_2) begin
            verdict_3 <= verdict;
            check_3   <= ipv4_2 && (udp_2 ? cfg_checksum : echo_2);
        end
    end

    always_comb begin
        if (!judged_3) status = MALFORMED;
        else if (verdict_3 != TAKEN && verdict_3 != MISS && verdict_3 != UNSUPPORTED) status = verdict_3;
        // Truncated before the stream lookup.
        else if (truncated_3) status = MALFORMED;
        else if (verdict_3 != TAKEN) status = verdict_3;
        else if (check_3 && !l4_correct && !unsummed_3) status = CHECKSUM;
        else status = TAKEN;
    end

    assign m_end_valid = over_3 && judged_3 && verdict_3 == TAKEN && !for_arp_3;
    assign m_end_bad   = bad_3 || status != TAKEN;

    wire counted = over_3 && !bad_3;

    always_ff @(posedge clk) begin
        inc_drop_address     <= !rst && counted && status == ADDRESS;
        inc_drop_malformed   <= !rst && counted && status == MALFORMED;
        inc_drop_checksum    <= !rst && counted && status == CHECKSUM;
        inc_drop_fragment    <= !rst && counted && status == FRAGMENT;
        inc_drop_unsupported <= !rst && counted && status == UNSUPPORTED;
        inc_drop_miss        <= !rst && counted && status == MISS;
        m_arp_valid          <= !rst && counted && status == TAKEN && for_arp_3;
    end

    always_ff @(posedge clk) begin
        m_arp_tagged <= tagged_3;
        m_arp_tag    <= tag_3;
    end

    assign busy = index != 0 || valid || valid_2 || over_3;
endmodule
