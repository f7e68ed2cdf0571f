// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Requester completions of the block (PG213, "Requester Completion Interface", not straddled) to
// completions on the host bus. The block's error code decides: what belongs to no open request, or to another
// function than asked, goes on as a completion of a tag that does not exist, which `plx_dma_rd` counts as
// unexpected; a request that the block has given up is left to the timeout of `plx_dma_rd`; one that ended by
// the reset of its function is a completer abort, so that the reset need not wait for that. A completion that
// the block discontinues in its last beat has no end on the host bus, and a completer abort of its tag follows.
// A read that the shim refuses ends between two of them, by an unsupported request.
// From the beat with the last DW of a word to its offer: 3 cycles.

module plx_pcie_rc #(
    parameter CW       = 5,  // bits of the card's tags
    parameter FIRST_VF = 4   // number of the first virtual function at the block
) (
    input  logic          clk,
    input  logic          rst,

    // Completions from the block.
    input  logic          s_axis_rc_tvalid,
    output logic          s_axis_rc_tready,
    input  logic [255:0]  s_axis_rc_tdata,
    input  logic [74:0]   s_axis_rc_tuser,
    input  logic          s_axis_rc_tlast,

    // A read that is refused: tag, function, attributes and traffic class of its completion.
    input  logic          s_refused_valid,
    output logic          s_refused_ready,
    input  logic [23:0]   s_refused,

    // Completions to the card.
    output logic          hif_rx_cpl_valid,
    input  logic          hif_rx_cpl_ready,
    output logic          hif_rx_cpl_sop,
    output logic          hif_rx_cpl_eop,
    output logic [127:0]  hif_rx_cpl_header,
    output logic [255:0]  hif_rx_cpl_data,

    // plx_pcie_tags: a tag is looked up, and the answer; the end of a request.
    output logic          look,
    output logic [7:0]    look_tag,
    output logic [7:0]    look_func,
    input  logic [CW-1:0] card_tag,
    input  logic          current,
    output logic          return_valid,
    output logic          return_late,

    // One cycle for each discontinued completion.
    output logic          inc_rc_discontinued
);
    // Error codes (PG213, requester completion descriptor), and what is made of them.
    localparam [3:0] NORMAL = 0, POISONED = 1, BAD_STATUS = 2, BAD_LENGTH = 3, FLR = 8, TIMEOUT = 9;
    localparam [1:0] PASS = 0, FAIL = 1, STRANGE = 2, SILENT = 3;
    localparam [2:0] UNSUPPORTED = 1, ABORT = 4;

    // ---- Beats of the block to words of the host bus ----------------------------------------------

    // A beat, one cycle late. The completion's descriptor; 5 DWs of its last beat, which are a word of
    // their own at the end; its DWs that no word has had; words that it has had.
    logic         came, came_last, came_broken, in_tlp, begun, rest;
    logic [255:0] came_data;
    logic [95:0]  kept_head;
    logic [1:0]   kept_kind;
    logic [159:0] kept;
    logic [10:0]  left;

    // Words move, unless a refused read ends: as soon as the card has the whole completion that it has begun. So no
    // completion of a former read of its tag begins between.
    logic         unfinished;
    wire          room = !hif_rx_cpl_valid || hif_rx_cpl_ready;
    wire          step = room && !s_refused_ready;
    assign        s_refused_ready = s_refused_valid && room && !unfinished;
    wire          take = step && !rest;
    wire          beat = came && take;
    wire          first = beat && !in_tlp;
    wire [95:0]   head  = in_tlp ? kept_head : came_data[95:0];
    wire [10:0]   have  = in_tlp ? left : came_data[42:32];

    wire [3:0]    code  = came_data[15:12];
    logic [1:0]   judged;
    always_comb begin
        case (code)
            NORMAL, POISONED: judged = PASS;
            BAD_STATUS, BAD_LENGTH, FLR: judged = FAIL;
            TIMEOUT: judged = SILENT;
            default: judged = STRANGE;
        endcase
    end
    wire [1:0]    kind   = in_tlp ? kept_kind : judged;
    wire          passes = kind == PASS;
    wire          broken = came_last && came_broken && passes;
    wire          long   = have[10:4] != 0 || have[3] && have[2:0] != 0;
    wire          more   = in_tlp && came_last && !came_broken && passes && long;

    assign s_axis_rc_tready = take;
    assign look             = first;
    assign look_tag         = came_data[71:64];
    plx_pcie_func #(.FIRST_VF(FIRST_VF)) function_number (.block(came_data[55:48]), .card(look_func));

    // The block says so, or has an error that ends the request; its tag rests after an error that leaves
    // completions under way.
    wire ended_by_block     = code == FLR || code == TIMEOUT;
    assign return_valid     = first && (came_data[30] || ended_by_block);
    assign return_late      = ended_by_block || judged == STRANGE;

    always_ff @(posedge clk) begin
        if (take) came <= s_axis_rc_tvalid;
        if (beat) begin
            in_tlp <= !came_last;
            begun  <= in_tlp;
        end
        if (step) rest <= beat && more;
        inc_rc_discontinued <= beat && broken;
        if (rst) begin
            came                <= 1'b0;
            in_tlp              <= 1'b0;
            rest                <= 1'b0;
            inc_rc_discontinued <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        if (take) begin
            came_data   <= s_axis_rc_tdata;
            came_last   <= s_axis_rc_tlast;
            came_broken <= s_axis_rc_tuser[42];
        end
        if (beat) begin
            kept_head <= head;
            kept_kind <= kind;
            kept      <= came_data[255:96];
            left      <= in_tlp ? have - 11'd8 : have;
        end
    end

    // ---- Words, with the answer of plx_pcie_tags ---------------------------------------------------

    logic         word, word_sop, word_eop, word_again, word_strange, word_broken;
    logic [3:0]   word_dws;
    logic [95:0]  word_head;
    logic [255:0] word_data;

    // A word of a completion that passes: complete with this beat, or the rest; otherwise one word.
    wire          full   = passes && (in_tlp || came_last);
    wire          answer = !passes && kind != SILENT && !in_tlp;

    always_ff @(posedge clk) begin
        if (step) word <= rest || beat && (full || answer);
        if (rst) word <= 1'b0;
    end

    wire [255:0] joined = {came_data[95:0], in_tlp ? kept : came_data[255:96]};
    wire [3:0]   few    = left[3:0];
    always_ff @(posedge clk) if (step) begin
        word_sop     <= !rest && (!in_tlp || !begun || broken);
        word_eop     <= rest || answer || came_last && !more;
        word_again   <= rest || in_tlp && begun;
        word_strange <= !rest && kind == STRANGE;
        word_broken  <= !rest && (broken || kind == FAIL);
        word_dws     <= rest ? few : !passes || broken ? 4'd0 : long ? 4'd8 : have[3:0];
        word_data    <= rest ? {96'd0, kept} : joined;
        word_head    <= rest ? kept_head : head;
    end

    // ---- To the card -------------------------------------------------------------------------------

    // Words of a completion of another read, or of none, are replaced by the first one: its abort, too.
    logic passing;
    wire  strange = word_strange || !current;
    wire  shows   = word && (!word_again || passing);
    wire  last    = word_eop || word_sop && strange;

    wire [2:0]  status   = word_head[45:43];
    wire [2:0]  reported = word_broken && (status == 0 || word_head[15:12] != BAD_STATUS) ? ABORT : status;
    wire        empty    = strange || word_broken;
    wire [9:0]  tag      = strange ? 10'h3FF : {{(10 - CW) {1'b0}}, card_tag};
    wire        poisoned = word_head[46] && !word_broken;
    wire [7:0]  func;
    plx_pcie_func #(.FIRST_VF(FIRST_VF)) word_function (.block(word_head[55:48]), .card(func));

    wire [255:0] masked;
    generate
        for (genvar d = 0; d < 8; d = d + 1) begin : g_dw
            localparam [3:0] DW = d;
            assign masked[d*32 +: 32] = word_dws > DW ? word_data[d*32 +: 32] : 32'd0;
        end
    endgenerate

    always_ff @(posedge clk) begin
        if (step) begin
            hif_rx_cpl_valid <= shows;
            if (word && word_sop) passing <= !strange;
            if (shows) unfinished <= !last;
        end
        if (s_refused_ready) hif_rx_cpl_valid <= 1'b1;
        if (rst) begin
            hif_rx_cpl_valid <= 1'b0;
            unfinished           <= 1'b0;
            passing          <= 1'b0;
        end
    end

    always_ff @(posedge clk) if (room) begin
        hif_rx_cpl_sop    <= word_sop || s_refused_ready;
        hif_rx_cpl_eop    <= last || s_refused_ready;
        hif_rx_cpl_data   <= masked;
        hif_rx_cpl_header <= '0;
        if (s_refused_ready) begin
            hif_rx_cpl_header[layouts_pkg::HIF_STATUS_AT +: 3] <= UNSUPPORTED;
            hif_rx_cpl_header[layouts_pkg::HIF_TAG_AT +: 24]   <= s_refused;
        end else begin
            hif_rx_cpl_header[layouts_pkg::HIF_LOWER_ADDRESS_AT +: 7] <= word_head[6:0];
            hif_rx_cpl_header[layouts_pkg::HIF_BYTE_COUNT_AT +: 12]   <= word_head[27:16];
            hif_rx_cpl_header[layouts_pkg::HIF_LENGTH_AT +: 10]       <= empty ? 10'd0 : word_head[41:32];
            hif_rx_cpl_header[layouts_pkg::HIF_STATUS_AT +: 3]        <= strange ? 3'd0 : reported;
            hif_rx_cpl_header[layouts_pkg::HIF_POISONED_AT]             <= poisoned;
            hif_rx_cpl_header[layouts_pkg::HIF_TAG_AT +: 10]          <= tag;
            hif_rx_cpl_header[layouts_pkg::HIF_FUNC_AT +: 8]          <= func;
            hif_rx_cpl_header[layouts_pkg::HIF_ATTRIBUTES_AT +: 3]    <= word_head[94:92];
            hif_rx_cpl_header[layouts_pkg::HIF_TRAFFIC_CLASS_AT +: 3] <= word_head[91:89];
        end
    end

    wire unused = &{1'b0, s_axis_rc_tuser[74:43], s_axis_rc_tuser[41:0], came_data[31], word_head};
endmodule
