// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Outputs the payload of a UDP datagram, or a whole frame. All words of all frames enter a ring;
// as soon as `plx_parse` has opened a frame, its words are read from there: payloads from their first
// word on, shifted to byte 0 and cut at the length of the datagram, whole frames from the start.
// Frames that are not opened are overwritten. The last word waits for the verdict, so that padding
// after the payload, and the frame check after that, count as well. There is no back-pressure:
// the ring is read as fast as it is written.

module plx_udp_rx (
    input  logic         clk,
    input  logic         rst,

    // Frames, and the time of their start, as output by plx_mac_rx.
    input  logic         s_axis_rx_tvalid,
    input  logic [63:0]  s_axis_rx_tdata,
    input  logic [7:0]   s_axis_rx_tkeep,
    input  logic         s_axis_rx_tlast,
    input  logic [31:0]  s_axis_rx_cycle_ts,
    input  logic [63:0]  s_axis_rx_timestamp_ns,
    input  logic         s_axis_rx_timestamp_valid,

    // From parse: a frame has a destination; it has ended, and its verdict.
    input  logic         s_open_valid,
    input  logic         s_open_echo,
    input  logic         s_open_whole,
    input  logic [4:0]   s_open_stream,
    input  logic [1:0]   s_open_delivery_mode,
    input  logic [15:0]  s_open_length,
    input  logic [15:0]  s_open_source_port,
    input  logic [4:0]   s_open_skip,
    input  logic         s_open_upper,
    input  logic         s_end_valid,
    input  logic         s_end_bad,

    // Payloads. tuser, with tlast: withdrawn, and counted.
    output logic         m_axis_payload_tvalid,
    output logic [63:0]  m_axis_payload_tdata,
    output logic [7:0]   m_axis_payload_tkeep,
    output logic         m_axis_payload_tlast,
    output logic         m_axis_payload_tuser,

    // RX_META of a payload, with its first word.
    output logic         m_axis_meta_tvalid,
    output logic [layouts_pkg::RX_META_W-1:0] m_axis_meta_tdata,

    // Pings to be answered: whole frames, with the same data.
    output logic         m_echo_valid,

    // The present time, in cycles.
    input  logic [31:0]  now_cycle_ts,

    // A frame with a destination is in this module.
    output logic         busy
);
    // A frame is opened 3 cycles after word 10 at the latest (VLAN, 15 words of IPv4 header), and its end is
    // known 3 cycles after its last word, so at most 18 words wait. Frames that are opened have four words
    // or more.
    localparam AW     = 5;
    localparam FRAMES = 8;
    localparam OPEN_W = 2 + 64 + 32 + 16 + 5 + 2 + 16 + 2 + AW;

    // The ring.
    logic [72:0]   ring [0:(1<<AW)-1];
    logic [AW-1:0] tail, frame_at;
    logic          first;

    always_ff @(posedge clk) begin
        if (s_axis_rx_tvalid) begin
            tail  <= tail + 1'b1;
            first <= s_axis_rx_tlast;
        end
        if (rst) begin
            tail  <= '0;
            first <= 1'b1;
        end
    end

    // The time of the frame of the latest word; of the one before, where the frame is that is opened.
    logic [96:0]   stamped, open_stamped;
    logic [AW-1:0] open_at;

    always_ff @(posedge clk) begin
        if (s_axis_rx_tvalid) begin
            ring[tail] <= {s_axis_rx_tlast, s_axis_rx_tkeep, s_axis_rx_tdata};
            stamped    <= {s_axis_rx_timestamp_valid, s_axis_rx_timestamp_ns, s_axis_rx_cycle_ts};
            if (first) frame_at <= tail;
        end
        open_stamped <= stamped;
        open_at      <= frame_at;
    end

    // Open frames, in order; the one that is read stays until its end. If none waits, a frame is read from the
    // cycle on in which it is opened.
    logic              open_waits, final_word;
    logic [OPEN_W-1:0] open_data, waiting_data;
    wire  [OPEN_W-1:0] opened = {open_stamped, s_open_echo, s_open_whole, s_open_upper,
        open_at + (s_open_whole ? '0 : s_open_skip), s_open_length, s_open_source_port, s_open_stream,
        s_open_delivery_mode};
    wire               open   = open_waits || s_open_valid;
    logic              echo, whole, upper, timestamp_valid;
    logic [AW-1:0]     start;
    logic [63:0]       timestamp_ns;
    logic [31:0]       cycle_ts_mac;
    logic [15:0]       length, source_port;
    logic [4:0]        stream;
    logic [1:0]        delivery_mode;

    assign open_data = open_waits ? waiting_data : opened;
    assign {timestamp_valid, timestamp_ns, cycle_ts_mac, echo, whole, upper, start, length, source_port, stream,
            delivery_mode} = open_data;

    /* verilator lint_off PINCONNECTEMPTY */
    plx_fifo_sync #(
        .WIDTH(OPEN_W),
        .DEPTH(FRAMES)
    ) opens (
        .clk,
        .rst,
        .s_valid(s_open_valid && (open_waits || !final_word)),
        .s_ready(),
        .s_data(opened),
        .m_valid(open_waits),
        .m_ready(final_word),
        .m_data(waiting_data),
        .level()
    );

    // Their ends, in the same order: the reader may need one in the cycle of s_end_valid.
    logic end_waits, end_waits_bad;
    wire  known     = end_waits || s_end_valid;
    wire  known_bad = end_waits ? end_waits_bad : s_end_bad;

    plx_fifo_sync #(
        .WIDTH(1),
        .DEPTH(FRAMES)
    ) ends (
        .clk,
        .rst,
        .s_valid(s_end_valid && (end_waits || !final_word)),
        .s_ready(),
        .s_data(s_end_bad),
        .m_valid(end_waits),
        .m_ready(final_word),
        .m_data(end_waits_bad),
        .level()
    );
    /* verilator lint_on PINCONNECTEMPTY */

    // The reader. Only a frame that is withdrawn may be shorter than its length: it is cut when its end is known.
    logic          reading;
    logic [AW-1:0] next_place;
    logic [15:0]   next_left;
    wire  [AW-1:0] place  = reading ? next_place : start;
    wire  [15:0]   left   = reading ? next_left : length;
    wire  [AW-1:0] above  = place + 1'b1;
    wire  [AW-1:0] waiting = tail - place;
    wire  [72:0]   low    = ring[place];
    wire  [47:0]   high   = ring[above][47:0];

    wire           cut    = known && known_bad;
    wire           at_end = whole ? waiting != 0 && low[72] : left <= 16'd8;
    wire           ends_here = at_end && known;
    wire           ready  = ends_here || (!at_end && (whole ? waiting != 0 : waiting > 1));
    wire           step   = open && (ready || cut);

    assign final_word = open && (ends_here || cut);

    always_ff @(posedge clk) begin
        if (rst) reading <= 1'b0;
        else if (step) reading <= !final_word;
    end

    always_ff @(posedge clk) begin
        if (step) begin
            next_place <= place + 1'b1;
            next_left  <= left - 16'd8;
        end
    end

    always_ff @(posedge clk) begin
        m_axis_payload_tvalid <= !rst && step && !echo;
        m_axis_meta_tvalid    <= !rst && step && !echo && !reading;
        m_echo_valid          <= !rst && step && echo;
    end

    logic [31:0] meta_cycle_ts;
    logic [63:0] meta_timestamp_ns;
    logic [15:0] meta_length, meta_source_port;
    logic [4:0]  meta_stream;
    logic [1:0]  meta_delivery_mode;
    logic        meta_whole, meta_timestamp_valid;

    always_ff @(posedge clk) begin
        m_axis_payload_tdata <= whole ? low[63:0] : upper ? {high, low[63:48]} : {high[15:0], low[63:16]};
        m_axis_payload_tkeep <= whole ? low[71:64] : left > 16'd8 ? 8'hFF : ~(8'hFF << left[3:0]);
        m_axis_payload_tlast <= final_word;
        m_axis_payload_tuser <= cut;
        meta_cycle_ts        <= cycle_ts_mac;
        meta_timestamp_ns    <= timestamp_ns;
        meta_timestamp_valid <= timestamp_valid;
        meta_length          <= length;
        meta_source_port     <= source_port;
        meta_stream          <= stream;
        meta_delivery_mode   <= delivery_mode;
        meta_whole           <= whole;
    end

    // The second timestamp is of the cycle in which the first word is offered.
    assign m_axis_meta_tdata[layouts_pkg::RX_META_TIMESTAMP_NS_AT+:layouts_pkg::RX_META_TIMESTAMP_NS_W]
        = meta_timestamp_ns;
    assign m_axis_meta_tdata[layouts_pkg::RX_META_CYCLE_TS_MAC_AT+:layouts_pkg::RX_META_CYCLE_TS_MAC_W] = meta_cycle_ts;
    assign m_axis_meta_tdata[layouts_pkg::RX_META_CYCLE_TS_PARSED_AT+:layouts_pkg::RX_META_CYCLE_TS_PARSED_W]
        = now_cycle_ts;
    assign m_axis_meta_tdata[layouts_pkg::RX_META_LENGTH_AT+:layouts_pkg::RX_META_LENGTH_W] = meta_length;
    assign m_axis_meta_tdata[layouts_pkg::RX_META_SOURCE_PORT_AT+:layouts_pkg::RX_META_SOURCE_PORT_W]
        = meta_source_port;
    assign m_axis_meta_tdata[layouts_pkg::RX_META_STREAM_AT+:layouts_pkg::RX_META_STREAM_W] = meta_stream;
    assign m_axis_meta_tdata[layouts_pkg::RX_META_DELIVERY_MODE_AT+:layouts_pkg::RX_META_DELIVERY_MODE_W]
        = meta_delivery_mode;
    assign m_axis_meta_tdata[layouts_pkg::RX_META_LENGTH_KNOWN_AT+:layouts_pkg::RX_META_LENGTH_KNOWN_W] = !meta_whole;
    assign m_axis_meta_tdata[layouts_pkg::RX_META_TIMESTAMP_VALID_AT+:layouts_pkg::RX_META_TIMESTAMP_VALID_W]
        = meta_timestamp_valid;

    assign busy = open || m_axis_payload_tvalid || m_echo_valid;
endmodule
