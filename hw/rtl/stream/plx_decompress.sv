// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Payloads of form 2 are containers of compressed hits, and leave as hits of one width
// (docs/formats/rich-hits.md, "Expanded form"); others pass through in one cycle. The last word
// reports errors of a container: tuser 1 bad before, 2 malformed, 3 of another version.
//
// Each cycle produces a word of the expanded form, so that containers with hits are accepted at the
// rate of the wire. Events without hits grow fourfold, and are accepted at up to 4 Gb/s; if they
// arrive faster for long, plx_rx_fifo overflows.

module plx_decompress (
    input  logic         clk,
    input  logic         rst,

    // Payloads and their metadata, which are valid with the first word and accepted with it.
    input  logic         s_axis_payload_tvalid,
    output logic         s_axis_payload_tready,
    input  logic [63:0]  s_axis_payload_tdata,
    input  logic [7:0]   s_axis_payload_tkeep,
    input  logic         s_axis_payload_tlast,
    input  logic         s_axis_payload_tuser,
    input  logic         s_axis_meta_tvalid,
    output logic         s_axis_meta_tready,
    input  logic [168:0] s_axis_meta_tdata,

    // The same, expanded.
    output logic         m_axis_payload_tvalid,
    input  logic         m_axis_payload_tready,
    output logic [63:0]  m_axis_payload_tdata,
    output logic [7:0]   m_axis_payload_tkeep,
    output logic         m_axis_payload_tlast,
    output logic [1:0]   m_axis_payload_tuser,
    output logic         m_axis_meta_tvalid,
    input  logic         m_axis_meta_tready,
    output logic [168:0] m_axis_meta_tdata
);
    localparam [1:0] GOOD = 2'd0, BAD = 2'd1;
    localparam FORM = layouts_pkg::RX_META_FORM_AT;
    localparam LENGTH = layouts_pkg::RX_META_LENGTH_AT;
    localparam KNOWN = layouts_pkg::RX_META_LENGTH_KNOWN_AT;

    // The current payload. Its metadata must leave before the next payload begins.
    logic       inside_one, expanding;
    wire        first     = !inside_one;
    wire        meta_free = !m_axis_meta_tvalid || m_axis_meta_tready;
    wire        begins    = first && s_axis_payload_tvalid && s_axis_meta_tvalid && meta_free;
    wire        expands   = first ? s_axis_meta_tdata[FORM +: 2] == 2'd2 : expanding;

    // The container's words go to `hits`, others to the output.
    wire        out_free  = !m_axis_payload_tvalid || m_axis_payload_tready;
    logic        hits_ready, hits_busy, hits_valid, hits_last;
    logic [63:0] hits_data;
    logic [1:0]  hits_user;

    wire        may       = inside_one ? s_axis_payload_tvalid : begins && !hits_busy;
    wire        take      = may && (expands ? hits_ready : out_free);

    assign s_axis_payload_tready = take;
    assign s_axis_meta_tready    = take && first;

    // Bounds: see rich-hits.md; a container that is too short still has an end.
    wire [15:0] length  = s_axis_meta_tdata[LENGTH +: 16];
    wire [15:0] longest = length < 16'd24 ? 16'd24 : {length[13:0], 2'b00} - 16'd72;

    always_ff @(posedge clk) begin
        if (m_axis_meta_tready) m_axis_meta_tvalid <= 1'b0;
        if (take) begin
            inside_one <= !s_axis_payload_tlast;
            if (first) m_axis_meta_tvalid <= 1'b1;
        end
        if (rst) begin
            inside_one         <= 1'b0;
            m_axis_meta_tvalid <= 1'b0;
        end
    end

    always_ff @(posedge clk) if (take && first) begin
        expanding         <= expands;
        m_axis_meta_tdata <= s_axis_meta_tdata;
        if (expands) begin
            m_axis_meta_tdata[LENGTH +: 16] <= longest;
            m_axis_meta_tdata[KNOWN]        <= 1'b0;
        end
    end

    plx_hits_expand expander (
        .clk, .rst, .busy(hits_busy),
        .s_valid(may && expands), .s_ready(hits_ready), .s_data(s_axis_payload_tdata), .s_keep(s_axis_payload_tkeep),
        .s_last(s_axis_payload_tlast), .s_bad(s_axis_payload_tuser),
        .m_valid(hits_valid), .m_ready(out_free), .m_data(hits_data), .m_last(hits_last), .m_user(hits_user)
    );

    always_ff @(posedge clk) begin
        if (out_free) m_axis_payload_tvalid <= hits_valid || (take && !expands);
        if (rst) m_axis_payload_tvalid <= 1'b0;
    end

    always_ff @(posedge clk) if (out_free) begin
        m_axis_payload_tdata <= hits_valid ? hits_data : s_axis_payload_tdata;
        m_axis_payload_tkeep <= hits_valid ? 8'hFF : s_axis_payload_tkeep;
        m_axis_payload_tlast <= hits_valid ? hits_last : s_axis_payload_tlast;
        m_axis_payload_tuser <= hits_valid ? hits_user : s_axis_payload_tuser ? BAD : GOOD;
    end
endmodule
