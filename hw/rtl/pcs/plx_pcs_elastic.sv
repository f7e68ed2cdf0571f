// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Elastic buffer of a receiver: XGMII from the received clock to the card's, which may differ by 200 ppm
// (two ends, 100 ppm each). Where too many words wait, a column of idles is deleted, or one of two equal
// sequence ordered sets; where too few do, a word of idles is inserted behind a column of either (IEEE
// 802.3, 49.2.4.7 and 49.2.4.10). The column behind the end of a frame is never deleted, so that at least
// one separates frames. A received clock that stands still becomes local faults.

module plx_pcs_elastic #(
    parameter DEPTH  = 16,  // words, a power of two
    parameter TARGET = 2,   // words that the reader sees wait: at the start, and at least, before it inserts
    parameter MOST   = 12   // words that the writer sees wait, before it deletes
) (
    // XGMII in the received clock, lane 0 in the lowest bits.
    input  logic        clk_rx_net,
    input  logic        rst_rx,
    input  logic [63:0] s_xgmii_rxd,
    input  logic [7:0]  s_xgmii_rxc,

    // The same in the card's clock; its reset lasts until rst_rx has been sampled.
    input  logic        clk_net,
    input  logic        rst_net,
    output logic [63:0] m_xgmii_rxd,
    output logic [7:0]  m_xgmii_rxc,

    // Words arrive, in clk_net.
    output logic        flows,

    // Words lost, in clk_rx_net, which become errors; no word in time, in clk_net: errors, then faults.
    output logic        inc_overflow,
    output logic        inc_underflow,

    // A column deleted, in clk_rx_net; two inserted, in clk_net.
    output logic        inc_deleted,
    output logic        inc_inserted
);
    localparam [71:0] IDLES = {8'hFF, {8{pcs_pkg::IDLE}}}, ERRORS = {8'hFF, pcs_pkg::ERROR_WORD},
                      FAULTS = {8'h11, pcs_pkg::FAULT_WORD};
    localparam [35:0] IDLE_COLUMN = {4'hF, {4{pcs_pkg::IDLE}}};
    localparam AW = $clog2(DEPTH);
    // Cycles of the writer between deletions: longer than the reader's pointer takes to arrive.
    localparam [3:0] PAUSE = 4'd15;

    generate
        if (DEPTH < 8 || DEPTH != 1 << AW) DEPTH_must_be_a_power_of_two_at_least_8 parameter_error ();
        if (TARGET < 2 || MOST <= TARGET || MOST >= DEPTH) TARGET_and_MOST_must_fit_DEPTH parameter_error ();
    endgenerate

    logic        write, take;
    logic [71:0] w_word, r_word;
    logic [AW:0] w_level, r_level;
    wire         full = w_level == DEPTH[AW:0];

    plx_fifo_level #(.WIDTH(72), .DEPTH(DEPTH)) queue (
        .w_clk(clk_rx_net), .w_rst(rst_rx), .s_valid(write), .s_data(w_word), .s_level(w_level),
        .r_clk(clk_net), .r_rst(rst_net), .m_data(r_word), .m_level(r_level), .m_take(take)
    );

    // ---- The writer: columns, of which it may delete one of a word -----------------------------------

    wire [35:0] low  = {s_xgmii_rxc[3:0], s_xgmii_rxd[31:0]};
    wire [35:0] high = {s_xgmii_rxc[7:4], s_xgmii_rxd[63:32]};
    // The column before this word; it ends a frame.
    logic [35:0] last;
    logic        last_end;
    // A column that waits for the next one, since a word begins in the upper half.
    logic [35:0] held;
    logic        odd;
    logic [3:0]  pause;
    logic        lost;
    wire  [7:0]  ends;

    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_lane
            assign ends[i] = s_xgmii_rxc[i] && s_xgmii_rxd[i*8+:8] == pcs_pkg::TERMINATE;
        end
    endgenerate

    wire low_set    = s_xgmii_rxc[3:0] == 4'h1 && s_xgmii_rxd[7:0] == pcs_pkg::SEQUENCE;
    wire high_set   = s_xgmii_rxc[7:4] == 4'h1 && s_xgmii_rxd[39:32] == pcs_pkg::SEQUENCE;
    wire low_spare  = low == IDLE_COLUMN && !last_end || low_set && low == last;
    wire high_spare = high == IDLE_COLUMN && ends[3:0] == 4'd0 || high_set && high == low;
    wire crowded    = w_level >= MOST[AW:0] && pause == 0;
    wire delete_low  = crowded && low_spare;
    wire delete_high = crowded && high_spare && !low_spare;
    wire deletes     = delete_low || delete_high;

    // Words of the columns that remain. An overflow is seen as errors in the first word that has space.
    wire [35:0] only  = delete_low ? high : low;
    wire [71:0] words = odd ? {only[35:32], held[35:32], only[31:0], held[31:0]} : {s_xgmii_rxc, s_xgmii_rxd};

    assign write  = (odd || !deletes) && !full;
    assign w_word = lost ? ERRORS : words;

    always_ff @(posedge clk_rx_net) begin
        last         <= high;
        last_end     <= ends[7:4] != 4'd0;
        odd          <= odd ^ deletes;
        held         <= odd || delete_low ? high : low;
        pause        <= deletes ? PAUSE : pause - {3'd0, pause != 0};
        lost         <= full && (odd || !deletes) || lost && !write;
        inc_overflow <= full && (odd || !deletes);
        inc_deleted  <= deletes;
        if (rst_rx) begin
            odd          <= 1'b0;
            pause        <= PAUSE;
            lost         <= 1'b0;
            inc_overflow <= 1'b0;
            inc_deleted  <= 1'b0;
        end
    end

    // ---- The reader: words, before which it may insert one -------------------------------------------

    // The last column was of idles, or an ordered set; the words that were left a cycle ago.
    logic        gap;
    logic [AW:0] left;
    wire         r_gap   = {r_word[71:68], r_word[63:32]} == IDLE_COLUMN
        || r_word[71:68] == 4'h1 && r_word[39:32] == pcs_pkg::SEQUENCE;
    // A writer that stands still is no reason to insert.
    wire         inserts = flows && gap && r_level < TARGET[AW:0] && r_level != left;
    wire         starves = flows && r_level == 0;

    assign take = flows && !inserts && r_level != 0;

    always_ff @(posedge clk_net) begin
        left          <= r_level - {{AW{1'b0}}, take};
        flows         <= flows ? !starves : r_level >= TARGET[AW:0];
        inc_underflow <= starves;
        inc_inserted  <= inserts;
        if (take) gap <= r_gap;
        else if (!inserts) gap <= 1'b1;
        {m_xgmii_rxc, m_xgmii_rxd} <= take ? r_word : inserts ? IDLES : flows && !gap ? ERRORS : FAULTS;
        if (rst_net) begin
            flows         <= 1'b0;
            gap           <= 1'b1;
            inc_underflow <= 1'b0;
            inc_inserted  <= 1'b0;
            {m_xgmii_rxc, m_xgmii_rxd} <= FAULTS;
        end
    end

`ifdef FORMAL
    // Any one column that is neither idles nor an ordered set: how often it came, and was written.
    (* anyconst *) logic [35:0] f_column;
    logic [1:0] f_came = 0, f_wrote = 0;
    logic       f_full = 0, f_ended = 0;
    wire [35:0] f_low  = {w_word[67:64], w_word[31:0]};
    wire [35:0] f_high = {w_word[71:68], w_word[63:32]};

    function f_end(input [35:0] column);
        f_end = column[32] && column[7:0] == 8'hFD || column[33] && column[15:8] == 8'hFD
            || column[34] && column[23:16] == 8'hFD || column[35] && column[31:24] == 8'hFD;
    endfunction

    always_comb begin
        assume (f_column != IDLE_COLUMN && (f_column[35:32] != 4'h1 || f_column[7:0] != 8'h9C));
        // A frame is followed by a column of idles (46.3.2: five characters, the end among them).
        if (last_end) assume (low == IDLE_COLUMN);
        if (f_end(low)) assume (high == IDLE_COLUMN);
    end

    always_ff @(posedge clk_rx_net) begin
        f_came  <= f_came + {1'b0, low == f_column} + {1'b0, high == f_column};
        f_wrote <= f_wrote + {1'b0, write && f_low == f_column} + {1'b0, write && f_high == f_column};
        f_full  <= f_full || full;
        if (write) f_ended <= f_end(f_high);
        if (rst_rx) begin
            f_came  <= 2'd0;
            f_wrote <= 2'd0;
            f_full  <= 1'b0;
            f_ended <= 1'b0;
        end
    end

    // The last word that was not inserted ends in a column of idles, or an ordered set.
    logic        f_known = 0;
    logic [71:0] f_last;
    wire  [71:0] f_now = inc_inserted ? f_last : {m_xgmii_rxc, m_xgmii_rxd};
    wire         f_gap = {f_now[71:68], f_now[63:32]} == IDLE_COLUMN || f_now[71:68] == 4'h1 && f_now[39:32] == 8'h9C;

    always_ff @(posedge clk_net) begin
        f_last  <= f_now;
        f_known <= 1'b1;
        if (f_known) begin
            if (inc_inserted) assert ({m_xgmii_rxc, m_xgmii_rxd} == IDLES && f_gap);
            if (flows && gap) assert (f_gap);
        end
    end

    always_ff @(posedge clk_rx_net) begin
        if (!rst_rx && !f_full) begin
            assert (f_came == f_wrote + {1'b0, odd && held == f_column});
            // Behind an end there are idles.
            assert (!lost && (!odd || !f_end(held) || last_end) && (odd || !f_ended || last_end));
            if (odd && f_ended) assert (held == IDLE_COLUMN);
            if (write && f_ended) assert (f_low == IDLE_COLUMN);
            if (write && f_end(f_low)) assert (f_high == IDLE_COLUMN);
        end
    end
`endif
endmodule
