// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The transmit fifo of a port, where packets cross from clk_core to clk_net: 256 bits in, 64 bits
// out. A packet is kept until it is complete, so that it leaves without a gap, or is withdrawn; the
// sum of its payload is known by then, for a UDP checksum that the card inserts.
//
// Only the metadata cross, which follow the last word of a good packet: the words before it
// are in the memory by then, and their number is in the metadata. So a withdrawn packet's pointer,
// which is set back, is visible on one side only.

module plx_tx_fifo #(
    parameter WORDS = 512  // words of 256 bits, a power of two; the maximum of a packet
) (
    // Packets of at least one word, accepted on arrival, because the writer checks `s_free` before it
    // begins one. With the last word TX_META, and whether the packet is withdrawn: then that word
    // is ignored. `idle`: all have left. Clear: the other clock's side is in reset. What waits is lost, with
    // the rest of a packet that arrives, and no word is free.
    input  logic         clk_core,
    input  logic         rst_core,
    input  logic         clear,
    input  logic         s_axis_tx_tvalid,
    input  logic [255:0] s_axis_tx_tdata,
    input  logic [31:0]  s_axis_tx_tkeep,
    input  logic         s_axis_tx_tlast,
    input  logic         s_axis_tx_tuser,
    input  logic [layouts_pkg::TX_META_W-1:0] s_axis_meta_tdata,
    output logic [$clog2(WORDS):0] s_free,

    // What arrives is withdrawn, and all words count as free. The fifo is empty when that ends.
    input  logic         discard,
    output logic         idle,

    // Complete packets, without gaps, and TX_META no later than the first word.
    input  logic         clk_net,
    input  logic         rst_net,
    output logic         m_axis_tx_tvalid,
    input  logic         m_axis_tx_tready,
    output logic [63:0]  m_axis_tx_tdata,
    output logic [7:0]   m_axis_tx_tkeep,
    output logic         m_axis_tx_tlast,
    output logic         m_axis_meta_tvalid,
    input  logic         m_axis_meta_tready,
    output logic [layouts_pkg::TX_META_W-1:0] m_axis_meta_tdata,
    output logic         busy
);
    localparam AW = $clog2(WORDS);
    localparam META_W = layouts_pkg::TX_META_W;
    localparam SUM_AT = layouts_pkg::TX_META_CHECKSUM_AT;
    localparam MODE_AT = layouts_pkg::TX_META_CHECKSUM_MODE_AT;
    localparam LENGTH_AT = layouts_pkg::TX_META_LENGTH_AT;
    localparam [1:0] OF_PAYLOAD = 2'd2;  // the mode that requests the sum

    generate
        if (WORDS < 4 || WORDS != 1 << AW) WORDS_must_be_a_power_of_two_at_least_4 parameter_error ();
    endgenerate

    // ---- clk_core: words into the memory ----------------------------------------------------------

    (* ram_style = "block", ramstyle = "M20K, no_rw_check" *)
    logic [255:0] memory [0:WORDS-1];
    // One bit more than an address: distinguishes full and empty. Whole packets end before `committed`.
    logic [AW:0] tail, committed, head, head_gray, head_seen, head_bin;

    // In a packet; up to its end, it is lost.
    logic open, lost;
    wire  rst   = rst_core || clear;
    wire  skip  = clear || lost;
    wire  word  = s_axis_tx_tvalid && !skip;
    wire  good  = s_axis_tx_tlast && !s_axis_tx_tuser;
    wire  write = word && (good || !s_axis_tx_tlast);
    wire  stays = s_axis_tx_tvalid ? !s_axis_tx_tlast : open;

    always_ff @(posedge clk_core) begin
        open <= stays && !rst_core;
        lost <= skip && stays && !rst_core;
        if (write) tail <= tail + 1'b1;
        if (word && s_axis_tx_tlast) begin
            if (good) committed <= tail + 1'b1;
            else tail <= committed;
        end
        if (rst) begin
            tail      <= '0;
            committed <= '0;
        end
    end

    always_ff @(posedge clk_core) if (write) memory[tail[AW-1:0]] <= s_axis_tx_tdata;

    plx_sync_bit #(.WIDTH(AW + 1)) to_core (.clk(clk_core), .rst, .d(head_gray), .q(head_seen));

    // Gray code to a number: each bit is the parity of those from it on.
    generate
        for (genvar b = 0; b <= AW; b = b + 1) begin : g_parity
            assign head_bin[b] = ^head_seen[AW:b];
        end
    endgenerate

    // Free words one cycle ago, without the word of that cycle: WORDS plus the difference. For a packet that begins in
    // the first cycle of a clear there was room, as for one of before: more is free afterwards.
    wire  [AW:0] unread = head_bin + ~tail + {{AW{1'b0}}, !write};

    always_ff @(posedge clk_core) begin
        s_free <= discard ? {1'b1, {AW{1'b0}}} : skip ? '0 : {!unread[AW], unread[AW-1:0]};
    end

    // The sum of the payload, in two stages: that of a word, then that of all words so far.
    logic              word_valid, word_last, word_good, meta_valid;
    logic [31:0]       word_sum, word_next, sum, sum_next;
    logic [15:0]       folded;
    logic [META_W-1:0] word_meta, meta;

    plx_checksum #(.BYTES(32)) of_word (.state(32'd0), .data(s_axis_tx_tdata), .keep(s_axis_tx_tkeep), .next(word_next));

    // `fresh`: `sum` is that of a packet that has ended. Byte 0 of a word is the high one.
    logic fresh;

    plx_checksum #(.BYTES(4)) of_all (
        .state(fresh ? 32'd0 : sum),
        .data({word_sum[23:16], word_sum[31:24], word_sum[7:0], word_sum[15:8]}),
        .keep(4'hF),
        .next(sum_next)
    );

    plx_checksum_fold fold (.state(sum), .sum(folded));

    wire asked = meta[MODE_AT +: 2] == OF_PAYLOAD;

    always_ff @(posedge clk_core) begin
        word_valid <= word;
        meta_valid <= word_valid && word_last && word_good;
        if (word_valid) fresh <= word_last;
        if (rst) begin
            word_valid <= 1'b0;
            meta_valid <= 1'b0;
            fresh      <= 1'b1;
        end
    end

    always_ff @(posedge clk_core) begin
        word_sum  <= word_next;
        word_last <= s_axis_tx_tlast;
        word_good <= !s_axis_tx_tuser;
        word_meta <= s_axis_meta_tdata;
        meta      <= word_meta;
        if (word_valid) sum <= sum_next;
    end

    assign idle = tail == head_bin && !word_valid && !meta_valid;

    // ---- The crossing -----------------------------------------------------------------------------

    logic [META_W-1:0] filled, told;
    logic              told_valid, told_ready;

    always_comb begin
        filled = meta;
        if (asked) filled[SUM_AT +: 16] = folded;
    end

    // Each packet has at least one word, so that there are never more metadata than words.
    /* verilator lint_off PINCONNECTEMPTY */
    plx_fifo_async_deep #(.WIDTH(META_W), .DEPTH(WORDS)) metas (
        .w_clk(clk_core), .w_rst(rst), .s_valid(meta_valid), .s_data(filled), .s_free(),
        .r_clk(clk_net), .r_rst(rst_net), .m_valid(told_valid), .m_ready(told_ready), .m_data(told)
    );
    /* verilator lint_on PINCONNECTEMPTY */

    // ---- clk_net: words out of the memory ---------------------------------------------------------

    // The packet whose words are read, and its unread bytes; the word that was read last;
    // the leaving packet, 8 bytes at a time.
    logic         reading, next_valid, next_last, line_valid, line_last;
    logic [15:0]  left;
    logic [255:0] next, line;
    logic [5:0]   next_count, line_count;

    wire accepted = m_axis_tx_tvalid && m_axis_tx_tready;
    wire ends  = line_count <= 6'd8;
    wire moves = next_valid && (!line_valid || accepted && ends);
    wire fetch = reading && (!next_valid || moves);
    wire final_one = left <= 16'd32;
    // The previous packet's metadata have been accepted, so these do not follow their first word.
    assign told_ready = !reading && (!m_axis_meta_tvalid || m_axis_meta_tready);

    wire [AW:0] head_next = head + {{AW{1'b0}}, fetch};

    assign m_axis_tx_tvalid = line_valid;
    assign m_axis_tx_tdata  = line[63:0];
    assign m_axis_tx_tkeep  = ends ? ~(8'hFF << line_count[3:0]) : 8'hFF;
    assign m_axis_tx_tlast  = line_last && ends;
    assign busy             = told_valid || m_axis_meta_tvalid || reading || next_valid || line_valid;

    always_ff @(posedge clk_net) begin
        head      <= rst_net ? '0 : head_next;
        head_gray <= rst_net ? '0 : head_next ^ (head_next >> 1);
        if (m_axis_meta_tready) m_axis_meta_tvalid <= 1'b0;
        if (told_valid && told_ready) begin
            m_axis_meta_tvalid <= 1'b1;
            reading            <= 1'b1;
        end
        if (fetch && final_one) reading <= 1'b0;
        next_valid <= fetch || next_valid && !moves;
        line_valid <= moves || line_valid && !(accepted && ends);
        if (rst_net) begin
            m_axis_meta_tvalid <= 1'b0;
            reading            <= 1'b0;
            next_valid         <= 1'b0;
            line_valid         <= 1'b0;
        end
    end

    always_ff @(posedge clk_net) begin
        if (told_ready) begin
            m_axis_meta_tdata <= told;
            left              <= told[LENGTH_AT +: 16];
        end
        if (fetch) begin
            next       <= memory[head[AW-1:0]];
            next_last  <= final_one;
            next_count <= final_one ? left[5:0] : 6'd32;
            left       <= left - 16'd32;
        end
        if (moves) begin
            line       <= next;
            line_last  <= next_last;
            line_count <= next_count;
        end else if (accepted) begin
            line       <= line >> 64;
            line_count <= line_count - 6'd8;
        end
    end
endmodule
