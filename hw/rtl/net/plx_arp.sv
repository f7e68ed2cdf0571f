// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// ARP (RFC 826): answers requests for the port's address, reports to the cache the addresses that
// neighbours announce, and requests the addresses that the cache needs. A request passes the answers
// that wait, but one: no flood of requests to the port keeps its own back. Answers keep the VLAN tag of
// the request; requests have none. The MAC pads.

module plx_arp (
    input  logic        clk,
    input  logic        rst,

    // A frame without its tag, word by word; then, if that was valid ARP, a pulse and the tag.
    input  logic        s_view_valid,
    input  logic [2:0]  s_view_index,
    input  logic [63:0] s_view_data,
    input  logic        s_arp_valid,
    input  logic        s_arp_tagged,
    input  logic [15:0] s_arp_tag,

    // A neighbour and its address; new ones are stored only if they send to this port.
    output logic        m_learn_valid,
    output logic        m_learn_new,
    output logic [31:0] m_learn_ip,
    output logic [47:0] m_learn_mac,

    // An address to resolve; its request was accepted, and has not left.
    input  logic        s_request_valid,
    output logic        s_request_ready,
    input  logic [31:0] s_request_ip,
    output logic        requesting,

    // The port's function is being reset: answers that wait are thrown away.
    input  logic        discard,

    // Frames to send.
    output logic        m_axis_tx_tvalid,
    input  logic        m_axis_tx_tready,
    output logic [63:0] m_axis_tx_tdata,
    output logic [7:0]  m_axis_tx_tkeep,
    output logic        m_axis_tx_tlast,

    // Settings.
    input  logic [47:0] cfg_mac,
    input  logic [31:0] cfg_ip,

    // Counts: consumed frames; requests without space for the answer.
    output logic        inc_frames,
    output logic        inc_drop_answer
);
    localparam [15:0] REQUEST = 16'd1, REPLY = 16'd2;
    localparam        ANSWERS = 4;  // answers that may wait

    // Fields of the frame.
    wire  [15:0] lane0 = {s_view_data[7:0], s_view_data[15:8]};
    wire  [15:0] lane1 = {s_view_data[23:16], s_view_data[31:24]};
    wire  [15:0] lane2 = {s_view_data[39:32], s_view_data[47:40]};
    wire  [15:0] lane3 = {s_view_data[55:48], s_view_data[63:56]};
    logic [15:0] operation;
    logic [47:0] sender_mac;
    logic [31:0] sender_ip, target_ip;

    always_ff @(posedge clk) begin
        if (s_view_valid && s_view_index == 2) {operation, sender_mac[47:32]} <= {lane2, lane3};
        if (s_view_valid && s_view_index == 3) {sender_mac[31:0], sender_ip} <= {lane0, lane1, lane2, lane3};
        if (s_view_valid && s_view_index == 4) target_ip[31:16] <= lane3;
        if (s_view_valid && s_view_index == 5) target_ip[15:0] <= lane0;
    end

    // A group is no valid sender; nor is the port itself. A probe has no address yet, and is
    // answered all the same (RFC 5227, 2.1.1).
    wire announced = s_arp_valid && !sender_mac[40] && sender_mac != cfg_mac;
    wire to_us     = target_ip == cfg_ip;
    wire ask_us    = announced && to_us && operation == REQUEST;

    assign m_learn_valid = announced && sender_ip != 0;
    assign m_learn_new   = to_us;
    assign m_learn_ip    = sender_ip;
    assign m_learn_mac   = sender_mac;

    logic        answer_ready, answer_valid, answer_accepted, answer_tagged;
    logic [15:0] answer_tag;
    logic [47:0] answer_mac;
    logic [31:0] answer_ip;

    /* verilator lint_off PINCONNECTEMPTY */
    plx_fifo_sync #(
        .WIDTH(97),
        .DEPTH(ANSWERS)
    ) answers (
        .clk,
        .rst(rst || discard),
        .s_valid(ask_us),
        .s_ready(answer_ready),
        .s_data({s_arp_tagged, s_arp_tag, sender_mac, sender_ip}),
        .m_valid(answer_valid),
        .m_ready(answer_accepted),
        .m_data({answer_tagged, answer_tag, answer_mac, answer_ip}),
        .level()
    );
    /* verilator lint_on PINCONNECTEMPTY */

    always_ff @(posedge clk) begin
        inc_frames      <= !rst && s_arp_valid && !(ask_us && !answer_ready);
        inc_drop_answer <= !rst && ask_us && !answer_ready;
    end

    // The transmitted frame, first byte in the highest bits: 42 bytes, or 46 with a tag.
    localparam [2:0] WORDS = 3'd6;
    logic [64*WORDS-1:0] frame;
    logic [2:0]          left;
    logic                has_tag, idle;  // idle: none is left
    logic                answered;       // the last was an answer
    wire                 answers_next = answer_valid && !(answered && s_request_valid);
    wire  [223:0]        body = {16'd1, 16'h0800, 16'h0604, answers_next ? REPLY : REQUEST, cfg_mac, cfg_ip,
        answers_next ? {answer_mac, answer_ip} : {48'd0, s_request_ip}};

    assign answer_accepted = idle && answers_next;
    assign s_request_ready = idle && !answers_next;

    always_ff @(posedge clk) begin
        if (idle && (answer_valid || s_request_valid)) begin
            left       <= WORDS;
            idle       <= 1'b0;
            answered   <= answers_next;
            requesting <= !answers_next;
        end else if (m_axis_tx_tvalid && m_axis_tx_tready) begin
            left <= left - 3'd1;
            idle <= m_axis_tx_tlast;
            if (m_axis_tx_tlast) requesting <= 1'b0;
        end
        if (rst) begin
            idle       <= 1'b1;
            answered   <= 1'b0;
            requesting <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        if (idle) begin
            has_tag <= answers_next && answer_tagged;
            frame  <= answers_next && answer_tagged
                ? {answer_mac, cfg_mac, 16'h8100, answer_tag, 16'h0806, body, 16'd0}
                : {answers_next ? answer_mac : {48{1'b1}}, cfg_mac, 16'h0806, body, 48'd0};
        end
        else if (m_axis_tx_tready) frame <= frame << 64;
    end

    assign m_axis_tx_tvalid = !idle;
    assign m_axis_tx_tlast  = left == 1;
    assign m_axis_tx_tkeep  = !m_axis_tx_tlast ? 8'hFF : has_tag ? 8'h3F : 8'h03;

    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_byte
            assign m_axis_tx_tdata[8*i+:8] = frame[64*WORDS-8*(i+1)+:8];
        end
    endgenerate
endmodule
