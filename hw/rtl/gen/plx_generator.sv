// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Packets without a host: a number of packets of one size, with or without a gap between them, and a
// word in every cycle. A payload begins with its packet's number, u32 from 0; byte i from the fifth on
// is number + i. Packets of the host pass while the generator does not run; it begins after those that
// have begun.

module plx_generator (
    input  logic        clk,
    input  logic        rst,

    // Settings: payload, B, up to 9000; packets, 0: until stopped; idle cycles between them; their
    // destination.
    input  logic [13:0] cfg_size,
    input  logic [31:0] cfg_count,
    input  logic [31:0] cfg_gap,
    input  logic [31:0] cfg_destination_ip,
    input  logic [15:0] cfg_destination_port,
    input  logic [15:0] cfg_source_port,

    // Starts; stops after the current packet; runs.
    input  logic        start,
    input  logic        stop,
    output logic        running,

    // Packets of the host, with TX_META no later than the first word.
    input  logic        s_axis_tx_tvalid,
    output logic        s_axis_tx_tready,
    input  logic [63:0] s_axis_tx_tdata,
    input  logic [7:0]  s_axis_tx_tkeep,
    input  logic        s_axis_tx_tlast,
    input  logic        s_axis_meta_tvalid,
    output logic        s_axis_meta_tready,
    input  logic [layouts_pkg::TX_META_W-1:0] s_axis_meta_tdata,

    // Packets to be sent.
    output logic        m_axis_tx_tvalid,
    input  logic        m_axis_tx_tready,
    output logic [63:0] m_axis_tx_tdata,
    output logic [7:0]  m_axis_tx_tkeep,
    output logic        m_axis_tx_tlast,
    output logic        m_axis_meta_tvalid,
    input  logic        m_axis_meta_tready,
    output logic [layouts_pkg::TX_META_W-1:0] m_axis_meta_tdata,

    // One cycle for each generated packet.
    output logic        inc_packets
);
    localparam META_W = layouts_pkg::TX_META_W;
    localparam [13:0] LONGEST = 14'd9000;

    // ---- Source of the packets -----------------------------------------------------------------

    // The host's: in_packet of one; its accepted metadata, less packets that have begun; an offer that
    // has not been accepted, which is stable.
    logic       chosen, in_packet, word_stood, meta_stood;
    logic [5:0] ahead;
    wire        asked         = running && !chosen;
    wire        begins        = s_axis_tx_tvalid && s_axis_tx_tready && !in_packet;
    wire        meta_accepted = s_axis_meta_tvalid && s_axis_meta_tready;
    wire        behind        = ahead[5];
    // Before the generator begins, the host's open packet ends.
    wire        word_passes = !chosen && (!asked || in_packet || word_stood || !behind && ahead != 0);
    wire        meta_passes = !chosen && (!asked || meta_stood || behind);

    always_ff @(posedge clk) begin
        if (s_axis_tx_tvalid && s_axis_tx_tready) in_packet <= !s_axis_tx_tlast;
        ahead      <= ahead + {5'd0, meta_accepted} - {5'd0, begins};
        word_stood <= word_passes && s_axis_tx_tvalid && !m_axis_tx_tready;
        meta_stood <= meta_passes && s_axis_meta_tvalid && !m_axis_meta_tready;
        chosen     <= running && (chosen || !in_packet && ahead == 0 && !(word_passes && s_axis_tx_tvalid)
                                  && !(meta_passes && s_axis_meta_tvalid));
        if (rst) begin
            in_packet     <= 1'b0;
            ahead      <= 6'd0;
            word_stood <= 1'b0;
            meta_stood <= 1'b0;
            chosen     <= 1'b0;
        end
    end

    // ---- Own packets ----------------------------------------------------------------------------

    logic        stopping, sends, first, meta_valid;
    logic [31:0] number, gap_left;
    logic [13:0] left;
    logic [7:0]  base;
    wire  [13:0] size    = cfg_size > LONGEST ? LONGEST : cfg_size;
    wire         last    = left <= 14'd8;
    wire         ends    = sends && m_axis_tx_tready && last;
    wire         busy    = sends && !ends;
    wire  [31:0] next    = number + {31'd0, ends};
    wire         enough  = stopping || stop || cfg_count != 0 && next == cfg_count;
    wire         in_time = ends ? cfg_gap == 0 : gap_left <= 32'd1;
    wire         free    = !meta_valid || m_axis_meta_tready;
    wire         go      = running && chosen && !busy && !enough && in_time && free;

    always_ff @(posedge clk) begin
        if (!running) begin
            running  <= start;
            stopping <= 1'b0;
            number   <= 32'd0;
            gap_left <= 32'd0;
        end else begin
            if (stop) stopping <= 1'b1;
            if (enough && !busy && free) running <= 1'b0;
            number   <= next;
            gap_left <= ends ? cfg_gap : gap_left == 0 ? 32'd0 : gap_left - 32'd1;
        end
        sends      <= go || busy;
        meta_valid <= go || meta_valid && !m_axis_meta_tready;
        if (rst) begin
            running    <= 1'b0;
            sends      <= 1'b0;
            meta_valid <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        if (go) begin
            first <= 1'b1;
            left  <= size;
            base  <= next[7:0];
        end else if (m_axis_tx_tready) begin
            first <= 1'b0;
            left  <= left - 14'd8;
            base  <= base + 8'd8;
        end
    end

    wire [63:0]       word;
    logic [META_W-1:0] meta;

    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_byte
            localparam [7:0] LANE = i;
            if (i < 4) assign word[i*8 +: 8] = first ? number[i*8 +: 8] : base + LANE;
            else assign word[i*8 +: 8] = base + LANE;
        end
    endgenerate

    // Checksum mode 0: no checksum.
    always_comb begin
        meta = '0;
        meta[layouts_pkg::TX_META_DESTINATION_IP_AT +: 32]   = cfg_destination_ip;
        meta[layouts_pkg::TX_META_DESTINATION_PORT_AT +: 16] = cfg_destination_port;
        meta[layouts_pkg::TX_META_SOURCE_PORT_AT +: 16]      = cfg_source_port;
        meta[layouts_pkg::TX_META_LENGTH_AT +: 14]           = size;
    end

    assign inc_packets        = ends;
    assign s_axis_tx_tready   = word_passes && m_axis_tx_tready;
    assign s_axis_meta_tready = meta_passes && m_axis_meta_tready;
    assign m_axis_tx_tvalid   = chosen ? sends : word_passes && s_axis_tx_tvalid;
    assign m_axis_tx_tdata    = chosen ? word : s_axis_tx_tdata;
    assign m_axis_tx_tkeep    = chosen ? (last ? ~(8'hFF << left[3:0]) : 8'hFF) : s_axis_tx_tkeep;
    assign m_axis_tx_tlast    = chosen ? last : s_axis_tx_tlast;
    assign m_axis_meta_tvalid = chosen ? meta_valid : meta_passes && s_axis_meta_tvalid;
    assign m_axis_meta_tdata  = chosen ? meta : s_axis_meta_tdata;
endmodule
