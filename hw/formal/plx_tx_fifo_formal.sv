// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Any one packet leaves whole, once, unchanged, in order, without a gap and no later than its metadata, which have
// its sum if they request one; one that is withdrawn leaves no trace, and neither does one that arrived before the
// end of a clear, which the ports' reset is within. `s_free` promises no word that is in use, nothing that waits is
// overwritten, and `idle` means that nothing waits in clk_core. The sum is one of marks, a bit in each word; the
// adders have benches of their own.
// formal: aiger
// formal: edges
// formal: bounded 15
// formal: cover 26
// mutant: wire  write = word && (good || !s_axis_tx_tlast); => wire  write = word;
// mutant: if (good) committed <= tail + 1'b1; => if (good) committed <= tail;
// mutant: else tail <= committed; => else tail <= tail;
// mutant: meta_valid <= word_valid && word_last && word_good; => meta_valid <= word_valid && word_last;
// mutant: lost <= skip && stays && !rst_core; => lost <= 1'b0;
// mutant: skip ? '0 : {!unread[AW] => 1'b0 ? '0 : {!unread[AW]
// mutant: {{AW{1'b0}}, !write}; => {{AW{1'b0}}, 1'b1};
// mutant: if (word_valid) fresh <= word_last; => if (word_valid) fresh <= 1'b0;
// mutant: if (asked) filled => filled
// mutant: tail == head_bin && !word_valid && !meta_valid; => !word_valid && !meta_valid;
// mutant: head_next ^ (head_next >> 1); => head_next;
// mutant: !reading && (!m_axis_meta_tvalid || m_axis_meta_tready); => !reading;
// mutant: final_one = left <= 16'd32; => final_one = left < 16'd32;
// mutant: (!line_valid || accepted && ends); => (!line_valid || accepted);
// mutant: line_count - 6'd8; => line_count - 6'd7;

// Counts the marks: a bit of each word, then those of all words.
module plx_checksum #(
    parameter BYTES = 8
) (
    input  logic [31:0]        state,
    input  logic [8*BYTES-1:0] data,
    input  logic [BYTES-1:0]   keep,
    output logic [31:0]        next
);
    assign next = BYTES == 32 ? {31'd0, data[15]} : {29'd0, state[2:0] + {2'd0, data[8]}};
endmodule

module plx_checksum_fold (
    input  logic [31:0] state,
    output logic [15:0] sum
);
    assign sum = {13'd0, state[2:0]};
endmodule

module plx_tx_fifo_formal (
    input logic       clk_core,
    input logic       rst_core,
    input logic       clear,
    input logic       s_axis_tx_tvalid,
    input logic       s_axis_tx_tlast,
    input logic       s_axis_tx_tuser,
    input logic       mark,
    input logic [5:0] part,
    input logic [1:0] mode,
    input logic       clk_net,
    input logic       rst_net,
    input logic       m_axis_tx_tready,
    input logic       m_axis_meta_tready
);
    localparam META_W = layouts_pkg::TX_META_W, LENGTH_AT = layouts_pkg::TX_META_LENGTH_AT;
    localparam SUM_AT = layouts_pkg::TX_META_CHECKSUM_AT, MODE_AT = layouts_pkg::TX_META_CHECKSUM_MODE_AT;
    localparam COOKIE_AT = layouts_pkg::TX_META_COOKIE_AT;

    // A word: in each 64 bits which they are, its index in the packet, the packet's number; a mark.
    logic [3:0]   coming = 0;
    logic [2:0]   index = 0;
    wire  [14:0]  id = {coming, index, 8'd0};
    wire  [255:0] s_axis_tx_tdata = {48'd0, 1'b0, id | 15'd192, 48'd0, 1'b0, id | 15'd128, 48'd0, 1'b0, id | 15'd64,
                                     48'd0, mark, id};
    // Its bytes so far, with those of the last word.
    wire  [7:0]   length = {index, 5'd0} + {2'd0, part};
    logic [META_W-1:0] s_axis_meta_tdata;
    always_comb begin
        s_axis_meta_tdata = '0;
        s_axis_meta_tdata[LENGTH_AT +: 8] = length;
        s_axis_meta_tdata[SUM_AT +: 16]   = 16'd8;
        s_axis_meta_tdata[MODE_AT +: 2]   = mode;
        s_axis_meta_tdata[COOKIE_AT +: 4] = coming;
    end

    logic              discard, idle, busy, m_axis_tx_tvalid, m_axis_tx_tlast, m_axis_meta_tvalid;
    logic [2:0]        s_free;
    logic [63:0]       m_axis_tx_tdata;
    logic [7:0]        m_axis_tx_tkeep;
    logic [META_W-1:0] m_axis_meta_tdata;

    plx_tx_fifo #(.WORDS(4)) dut (.*, .s_axis_tx_tkeep(32'd0));

    (* gclk *) wire step;
    (* anyconst *) logic [3:0] who;
    (* anyseq *) wire any_discard;
    assign discard = any_discard;

    // ---- Clocks and resets ------------------------------------------------------------------------

    // At first each clock samples its reset, the core's twice. Then the ports' reset is within a clear: it begins at most three edges
    // after the core has sampled that.
    logic       core_once = 0, core_seen = 0, net_seen = 0, was_clear = 0, net_done = 0;
    logic [1:0] late = 0;
    wire        up = core_seen && net_seen;
    always_ff @(posedge step) begin
        core_once <= core_once || clk_core;
        core_seen <= core_seen || core_once && clk_core;
        net_seen  <= net_seen || clk_net;
        net_done  <= was_clear && (net_done || clk_net && rst_net);
        late      <= !was_clear || net_done ? 2'd0 : late + 2'(clk_net && late != 3);
    end
    always_ff @(posedge clk_core) was_clear <= clear;
    always_comb begin
        assume (rst_core == !up);
        if (!up) assume (rst_net);
        else begin
            if (rst_net) assume (was_clear && clear);
            if (was_clear && (!net_done || rst_net)) assume (clear);
            if (late == 3 && clk_net && !net_done) assume (rst_net);
        end
    end

    // ---- Packets come -----------------------------------------------------------------------------

    // One begins only if its words are free; the last of a withdrawn one needs none.
    logic [2:0] promised;
    logic       was_discard = 0;
    wire  [2:0] room = index == 0 ? s_free : promised;
    wire        comes = up && s_axis_tx_tvalid, ends = comes && s_axis_tx_tlast, bad = s_axis_tx_tuser;

    // The observed one: it is all here; withdrawn; lost in a clear, and not in clk_net since; its marks, and what its
    // metadata have to be.
    logic       good = 0, withdrawn = 0, gone = 0, dead = 0;
    logic [2:0] marks = 0;
    logic [7:0] its_length;
    logic [1:0] its_mode;
    wire        its = coming == who;

    always_ff @(posedge clk_core) begin
        was_discard <= discard;
        if (comes) begin
            if (index == 0) promised <= s_free;
            index  <= s_axis_tx_tlast ? 3'd0 : index + 1'b1;
            coming <= coming + {3'd0, s_axis_tx_tlast};
            if (its) marks <= marks + {2'd0, mark};
        end
        if (ends && its) begin
            good       <= !bad;
            withdrawn  <= bad;
            its_length <= length;
            its_mode   <= mode;
        end
        if (clear && (good || its && (comes || index != 0))) gone <= 1'b1;
    end
    always_ff @(posedge clk_net) if (gone && rst_net) dead <= 1'b1;

    always_comb begin
        if (rst_core) assume (!s_axis_tx_tvalid);
        if (s_axis_tx_tvalid) begin
            assume (!bad || s_axis_tx_tlast);
            assume (room > index || bad && index != 0);
            assume (part <= 32 && (part != 0 || index == 0));
            // What arrives in a discard is withdrawn; that ends when all is idle.
            if (discard) assume (s_axis_tx_tlast && bad);
        end
        if (was_discard && up && !discard) assume (idle && !busy);
    end

    // ---- Packets leave ----------------------------------------------------------------------------

    // 8 bytes that have left of the one that is leaving; of the observed one, its words and metadata.
    logic [3:0] beat = 0;
    logic       left = 0, meta_left = 0;
    wire  [3:0] number = m_axis_tx_tdata[14:11];
    wire        word_leaves = !rst_net && m_axis_tx_tvalid && m_axis_tx_tready, is_who = m_axis_tx_tvalid && number == who;
    wire        is_meta = !rst_net && m_axis_meta_tvalid && m_axis_meta_tdata[COOKIE_AT +: 4] == who;
    wire  [7:0] rest = its_length - {1'b0, beat, 3'd0};

    // Offers of the step before.
    logic       stood = 0, inside = 0, meta_stood = 0;
    logic [18:0] word;
    logic [17:0] meta;
    wire  [18:0] this_word = {m_axis_tx_tlast, m_axis_tx_tkeep, m_axis_tx_tdata[15:6]};
    wire  [17:0] this_meta = {m_axis_meta_tdata[COOKIE_AT +: 4], m_axis_meta_tdata[MODE_AT +: 2],
                              m_axis_meta_tdata[SUM_AT +: 4], m_axis_meta_tdata[LENGTH_AT +: 8]};
    always_ff @(posedge step) begin
        stood      <= !rst_net && m_axis_tx_tvalid && !(clk_net && m_axis_tx_tready);
        meta_stood <= !rst_net && m_axis_meta_tvalid && !(clk_net && m_axis_meta_tready);
        word       <= this_word;
        meta       <= this_meta;
    end

    always_ff @(posedge clk_net) begin
        if (word_leaves) begin
            beat   <= m_axis_tx_tlast ? 4'd0 : beat + 1'b1;
            inside <= !m_axis_tx_tlast;
            if (is_who && m_axis_tx_tlast) left <= 1'b1;
        end
        if (is_meta && m_axis_meta_tready) meta_left <= 1'b1;
        if (rst_net) begin
            beat   <= 4'd0;
            inside <= 1'b0;
        end
    end

    always_comb if (up && !rst_net) begin
        if (stood) assert (m_axis_tx_tvalid && word == this_word);
        if (meta_stood) assert (m_axis_meta_tvalid && meta == this_meta);
        // Without a gap.
        if (inside) assert (m_axis_tx_tvalid);
        if (is_who) begin
            assert (good && !withdrawn && !dead && !left && (meta_left || is_meta));
            assert (m_axis_tx_tdata[10:6] == {1'b0, beat} && m_axis_tx_tlast == (rest <= 8));
            assert (m_axis_tx_tkeep == (rest < 8 ? ~(8'hFF << rest) : 8'hFF));
        end
        if (is_meta) begin
            assert (good && !withdrawn && !dead && !meta_left && m_axis_meta_tdata[LENGTH_AT +: 8] == its_length);
            assert (m_axis_meta_tdata[MODE_AT +: 2] == its_mode);
            assert (m_axis_meta_tdata[SUM_AT +: 4] == (its_mode == 2 ? {1'd0, marks} : 4'd8));
        end
        // In order: what is behind it leaves behind it, and nothing is left out.
        if (m_axis_tx_tvalid && number > who && good && !gone) assert (left);
        if (m_axis_meta_tvalid && m_axis_meta_tdata[COOKIE_AT +: 4] > who && good && !gone) assert (meta_left);
        cover (left && meta_left && who == 1 && its_length > 32 && its_mode == 2 && marks == 2);
        cover (dead && word_leaves && number > who && inside);
    end

    // ---- The core's side --------------------------------------------------------------------------

    always_comb if (up) begin
        assert (s_free <= 4);
        // All have left, or are in clk_net.
        if (idle && good && !gone && !left && !rst_net) assert (busy);
        if (was_clear) assert (s_free == 0 || was_discard);
    end
endmodule
