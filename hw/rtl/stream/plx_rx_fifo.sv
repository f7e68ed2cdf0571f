// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The receive fifo of a port, which crosses to clk_core, and the only place where the card can be
// too slow for the wire. A payload that finds fewer than two free words, or no space for its
// metadata, at its first word leaves nothing. One that finds the fifo full later ends there: the
// last free word is an end with tuser = 1, and the rest is discarded. Both are counted once, at the
// payload's last word, unless the payload is bad itself: then it was counted before.

module plx_rx_fifo #(
    parameter WORDS = 2048,  // words of 64 bits, a power of two
    parameter METAS = 256    // payloads that it may hold, a power of two
) (
    // Payloads and their metadata, with the first word; a word is accepted in every cycle.
    input  logic         clk_net,
    input  logic         rst_net,
    input  logic         s_axis_payload_tvalid,
    input  logic [63:0]  s_axis_payload_tdata,
    input  logic [7:0]   s_axis_payload_tkeep,
    input  logic         s_axis_payload_tlast,
    input  logic         s_axis_payload_tuser,
    input  logic         s_axis_meta_tvalid,
    input  logic [168:0] s_axis_meta_tdata,

    // A payload was lost here.
    output logic         inc_overflow,

    // Payloads that are not lost. Metadata are accepted before their payload's last word, or with it. Clear: the
    // other clock's side is in reset. What waits is lost, and the payload that was begun ends bad.
    input  logic         clk_core,
    input  logic         rst_core,
    input  logic         clear,
    output logic         m_axis_payload_tvalid,
    input  logic         m_axis_payload_tready,
    output logic [63:0]  m_axis_payload_tdata,
    output logic [7:0]   m_axis_payload_tkeep,
    output logic         m_axis_payload_tlast,
    output logic         m_axis_payload_tuser,
    output logic         m_axis_meta_tvalid,
    input  logic         m_axis_meta_tready,
    output logic [168:0] m_axis_meta_tdata
);
    localparam META_W = layouts_pkg::RX_META_W;
    // A word, its number of bytes, last, bad.
    localparam WORD_W = 64 + 4 + 1 + 1;
    localparam AW = $clog2(WORDS);
    localparam MW = $clog2(METAS);

    // In a payload; the rest of it is discarded.
    logic        inside_one, cut_off;
    logic [AW:0] free;
    logic [MW:0] free_metas;

    wire first  = s_axis_payload_tvalid && !inside_one;
    wire refuse = first && (free < 2 || free_metas == 0);
    wire lost   = refuse || cut_off;
    wire write  = s_axis_payload_tvalid && !lost;
    // The last free word must be an end.
    wire full   = write && free < 2 && !s_axis_payload_tlast;

    logic [3:0] count;
    integer k;
    always_comb begin
        count = '0;
        for (k = 0; k < 8; k = k + 1) count = count + {3'd0, s_axis_payload_tkeep[k]};
    end

    always_ff @(posedge clk_net) begin
        inc_overflow <= 1'b0;
        if (s_axis_payload_tvalid) begin
            inside_one <= !s_axis_payload_tlast;
            cut_off    <= !s_axis_payload_tlast && (lost || full);
            if (s_axis_payload_tlast) inc_overflow <= lost && !s_axis_payload_tuser;
        end
        if (rst_net) begin
            inside_one   <= 1'b0;
            cut_off      <= 1'b0;
            inc_overflow <= 1'b0;
        end
    end

    wire bad = full || (s_axis_payload_tlast && s_axis_payload_tuser);

    logic              word_valid, word_ready, meta_valid, meta_ready, word_last, word_bad, ends;
    logic [63:0]       word;
    logic [3:0]        word_count;

    plx_fifo_async_deep #(.WIDTH(WORD_W), .DEPTH(WORDS)) words (
        .w_clk(clk_net), .w_rst(rst_net),
        .s_valid(write), .s_data({bad, s_axis_payload_tlast || full, count, s_axis_payload_tdata}), .s_free(free),
        .r_clk(clk_core), .r_rst(rst_core || ends),
        .m_valid(word_valid), .m_ready(word_ready), .m_data({word_bad, word_last, word_count, word})
    );

    plx_fifo_async_deep #(.WIDTH(META_W), .DEPTH(METAS)) metas (
        .w_clk(clk_net), .w_rst(rst_net),
        .s_valid(first && !refuse), .s_data(s_axis_meta_tdata), .s_free(free_metas),
        .r_clk(clk_core), .r_rst(rst_core || ends),
        .m_valid(meta_valid), .m_ready(meta_ready), .m_data(m_axis_meta_tdata)
    );

    // The metadata of the leaving payload have been accepted: no word is offered before its metadata,
    // and no metadata before the last word of the previous payload. They were offered, and not accepted.
    logic meta_accepted, offered, ending;
    wire  meta_there = ends ? offered : meta_valid;

    // Until what was begun has ended, with one byte instead of its last word.
    assign ends                  = clear || ending;
    assign m_axis_meta_tvalid    = meta_there && !meta_accepted;
    assign meta_ready            = m_axis_meta_tready && !meta_accepted;
    assign m_axis_payload_tvalid = (ends || word_valid) && (meta_accepted || meta_there);
    assign word_ready            = m_axis_payload_tready && (meta_accepted || meta_there);
    assign m_axis_payload_tdata  = word;
    assign m_axis_payload_tkeep  = ends ? 8'h01 : ~(8'hFF << word_count);
    assign m_axis_payload_tlast  = ends || word_last;
    assign m_axis_payload_tuser  = ends || word_bad;

    always_ff @(posedge clk_core) begin
        if (m_axis_meta_tvalid && m_axis_meta_tready) meta_accepted <= 1'b1;
        if (m_axis_payload_tvalid && m_axis_payload_tready && m_axis_payload_tlast) meta_accepted <= 1'b0;
        offered <= m_axis_meta_tvalid && !m_axis_meta_tready;
        ending  <= ends && (clear || meta_accepted || offered);
        if (rst_core) begin
            meta_accepted <= 1'b0;
            offered       <= 1'b0;
            ending     <= 1'b0;
        end
    end

    wire unused = &{1'b0, s_axis_meta_tvalid};

`ifdef FORMAL
    always_comb if (!rst_net) begin
        if (write) assert (free != 0);
        if (first && !refuse) assert (free_metas != 0);
    end
`endif
endmodule
