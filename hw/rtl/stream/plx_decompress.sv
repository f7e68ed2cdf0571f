// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Payloads of form 2 are containers of compressed hits, and leave as hits of one width
// (docs/formats/rich-hits.md, "Expanded form"); others pass through in two cycles. The last word
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
    localparam FORM = layouts_pkg::RX_META_DELIVERY_MODE_AT;
    localparam LENGTH = layouts_pkg::RX_META_LENGTH_AT;
    localparam KNOWN = layouts_pkg::RX_META_LENGTH_KNOWN_AT;

    // A word in a register, the first one with its metadata.
    logic         between, come_ready, word_valid, take, word_last, word_bad;
    logic [63:0]  word;
    logic [7:0]   word_keep;
    logic [168:0] meta;
    wire          comes = s_axis_payload_tvalid && (!between || s_axis_meta_tvalid);

    // Each is ready by the valid of the other, not by its own.
    assign s_axis_payload_tready = come_ready && (!between || s_axis_meta_tvalid);
    assign s_axis_meta_tready    = come_ready && between && s_axis_payload_tvalid;

    always_ff @(posedge clk) begin
        if (comes && come_ready) between <= s_axis_payload_tlast;
        if (rst) between <= 1'b1;
    end

    plx_skid #(.WIDTH(243)) slice (
        .clk,
        .rst,
        .s_valid(comes),
        .s_ready(come_ready),
        .s_data({s_axis_meta_tdata, s_axis_payload_tdata, s_axis_payload_tkeep, s_axis_payload_tlast, s_axis_payload_tuser}),
        .m_valid(word_valid),
        .m_ready(take),
        .m_data({meta, word, word_keep, word_last, word_bad})
    );

    // The current payload. Its metadata must leave before the next payload begins.
    logic       inside_one, expanding;
    wire        first     = !inside_one;
    wire        meta_free = !m_axis_meta_tvalid || m_axis_meta_tready;
    wire        expands   = first ? meta[FORM +: 2] == 2'd2 : expanding;

    // The container's words go to `hits`, others to the output.
    wire        out_free  = !m_axis_payload_tvalid || m_axis_payload_tready;
    logic        hits_ready, hits_busy, hits_valid, hits_last;
    logic [63:0] hits_data;
    logic [1:0]  hits_user;

    wire        may       = word_valid && (inside_one || meta_free && !hits_busy);
    assign      take      = may && (expands ? hits_ready : out_free);

    // Bounds: see rich-hits.md; a container that is too short still has an end.
    wire [15:0] length  = meta[LENGTH +: 16];
    wire [15:0] longest = length < 16'd24 ? 16'd24 : {length[13:0], 2'b00} - 16'd72;

    always_ff @(posedge clk) begin
        if (m_axis_meta_tready) m_axis_meta_tvalid <= 1'b0;
        if (take) begin
            inside_one <= !word_last;
            if (first) m_axis_meta_tvalid <= 1'b1;
        end
        if (rst) begin
            inside_one         <= 1'b0;
            m_axis_meta_tvalid <= 1'b0;
        end
    end

    always_ff @(posedge clk) if (take && first) begin
        expanding         <= expands;
        m_axis_meta_tdata <= meta;
        if (expands) begin
            m_axis_meta_tdata[LENGTH +: 16] <= longest;
            m_axis_meta_tdata[KNOWN]        <= 1'b0;
        end
    end

    plx_hits_expand expander (
        .clk, .rst, .busy(hits_busy),
        .s_valid(may && expands), .s_ready(hits_ready), .s_data(word), .s_keep(word_keep), .s_last(word_last), .s_bad(word_bad),
        .m_valid(hits_valid), .m_ready(out_free), .m_data(hits_data), .m_last(hits_last), .m_user(hits_user)
    );

    always_ff @(posedge clk) begin
        if (out_free) m_axis_payload_tvalid <= hits_valid || (take && !expands);
        if (rst) m_axis_payload_tvalid <= 1'b0;
    end

    always_ff @(posedge clk) if (out_free) begin
        m_axis_payload_tdata <= hits_valid ? hits_data : word;
        m_axis_payload_tkeep <= hits_valid ? 8'hFF : word_keep;
        m_axis_payload_tlast <= hits_valid ? hits_last : word_last;
        m_axis_payload_tuser <= hits_valid ? hits_user : word_bad ? BAD : GOOD;
    end
endmodule
