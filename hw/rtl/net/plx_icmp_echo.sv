// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Answers pings (RFC 792, echo): the request returns to its sender, with its data, its VLAN tag and
// its identification. The checksums are updated for the changed fields without a new sum (RFC 1624).
// Requests arrive without IPv4 options, to this port, and checked except for their end.

module plx_icmp_echo #(
    parameter WORDS = 2048  // words of 8 bytes, space for requests; a power of two
) (
    input  logic        clk,
    input  logic        rst,

    // Requests, whole frames. tuser, with tlast: withdrawn, and counted.
    input  logic        s_axis_echo_tvalid,
    input  logic [63:0] s_axis_echo_tdata,
    input  logic [7:0]  s_axis_echo_tkeep,
    input  logic        s_axis_echo_tlast,
    input  logic        s_axis_echo_tuser,

    // Answers.
    output logic        m_axis_tx_tvalid,
    input  logic        m_axis_tx_tready,
    output logic [63:0] m_axis_tx_tdata,
    output logic [7:0]  m_axis_tx_tkeep,
    output logic        m_axis_tx_tlast,

    // Settings.
    input  logic [47:0] cfg_mac,
    input  logic [31:0] cfg_ip,
    input  logic [7:0]  cfg_ttl,

    // Counts: requests that will be answered; requests without space for the answer.
    output logic        inc_frames,
    output logic        inc_drop_answer
);
    // A word, the higher half of the one before; the next one is the input.
    logic [63:0] word;
    logic [31:0] past;
    logic [7:0]  keep;
    logic        valid, last, bad, has_tag;
    logic [2:0]  index, place;  // up to 7, of the next word and of this

    always_ff @(posedge clk) begin
        valid <= s_axis_echo_tvalid || (valid && !last);
        if (s_axis_echo_tvalid) index <= s_axis_echo_tlast ? '0 : index + {2'd0, index != '1};
        if (rst) begin
            valid <= 1'b0;
            index <= '0;
        end
    end

    wire [15:0] type_or_tag = s_axis_echo_tdata[47:32];
    wire        move        = valid && (s_axis_echo_tvalid || last);

    always_ff @(posedge clk) begin
        if (s_axis_echo_tvalid) begin
            word   <= s_axis_echo_tdata;
            past   <= word[63:32];
            keep   <= s_axis_echo_tkeep;
            last   <= s_axis_echo_tlast;
            bad    <= s_axis_echo_tuser;
            place  <= index;
            if (index == 1) has_tag <= type_or_tag == 16'h0081;
        end
    end

    // The checksum, in network order, after a field in its sum has changed: RFC 1624, 3.
    function [15:0] changed(input [15:0] checksum, input [15:0] from, input [15:0] to);
        logic [17:0] sum;
        logic [16:0] folded;
        begin
            sum     = {2'd0, ~checksum} + {2'd0, ~from} + {2'd0, to};
            folded  = {1'b0, sum[15:0]} + {15'd0, sum[17:16]};
            changed = ~(folded[15:0] + {15'd0, folded[16]});
        end
    endfunction

    // Fields of the answer, first byte lowest.
    wire [47:0] mac = {cfg_mac[7:0], cfg_mac[15:8], cfg_mac[23:16], cfg_mac[31:24], cfg_mac[39:32], cfg_mac[47:40]};
    wire [31:0] ip  = {cfg_ip[7:0], cfg_ip[15:8], cfg_ip[23:16], cfg_ip[31:24]};

    // IPv4: the time to live changes, and both addresses are swapped, which does not change sums.
    wire [15:0] life      = has_tag ? {word[23:16], word[31:24]} : {past[23:16], past[31:24]};
    wire [15:0] ip_field  = has_tag ? {word[39:32], word[47:40]} : {word[7:0], word[15:8]};
    wire [15:0] ip_sum    = changed(ip_field, life, {cfg_ttl, life[7:0]});
    // ICMP: type 8 becomes 0, code 0 is unchanged.
    wire [15:0] icmp_field = has_tag ? {word[7:0], word[15:8]} : {word[39:32], word[47:40]};
    wire [15:0] icmp_sum  = changed(icmp_field, 16'h0800, 16'h0000);

    // With a tag, IPv4 and ICMP begin half a word later.
    wire [3:0]  where  = {has_tag && place > 3'd1, place};
    wire [63:0] answer =
        where == 4'h0 ? {mac[15:0], s_axis_echo_tdata[31:0], word[63:48]} :
        where == 4'h1 ? {word[63:32], mac[47:16]} :
        where == 4'h2 ? {word[63:56], cfg_ttl, word[47:0]} :
        where == 4'h3 ? {word[31:16], ip, ip_sum[7:0], ip_sum[15:8]} :
        where == 4'h4 ? {word[63:48], icmp_sum[7:0], icmp_sum[15:8], word[31:24], 8'd0, past[15:0]} :
        where == 4'hB ? {ip[15:0], ip_sum[7:0], ip_sum[15:8], word[31:24], cfg_ttl, word[15:0]} :
        where == 4'hC ? {word[63:56], 8'd0, word[15:0], past[31:16], ip[31:16]} :
        where == 4'hD ? {word[63:16], icmp_sum[7:0], icmp_sum[15:8]} : word;

    logic no_room, was_bad, ended;

    plx_fifo_frame #(
        .WIDTH(72),
        .DEPTH(WORDS)
    ) answers (
        .clk,
        .rst,
        .s_valid(move),
        .s_last(last),
        .s_bad(bad),
        .s_data({keep, answer}),
        .m_valid(m_axis_tx_tvalid),
        .m_ready(m_axis_tx_tready),
        .m_last(m_axis_tx_tlast),
        .m_data({m_axis_tx_tkeep, m_axis_tx_tdata}),
        .event_full(no_room),
        .event_bad(was_bad)
    );

    always_ff @(posedge clk) ended <= !rst && move && last && !bad;

    // A bad request that did not fit either has been counted.
    assign inc_frames      = ended && !no_room && !was_bad;
    assign inc_drop_answer = ended && no_room;
endmodule
