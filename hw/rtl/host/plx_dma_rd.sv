// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Descriptors to memory reads on the host bus, and their completions back to one stream in the order
// of the descriptors. Each request has a tag and a slot of 512 bytes, in which its data have the
// alignment of the bus; slots are emptied in order. For any behaviour of the host each descriptor ends:
// with its data, or with an error. The tag of a read that timed out is quarantined, so that late
// completions match no open tag. From a descriptor to its request: 3 cycles.
// A completion for another function than that of its tag's read is discarded, as one of a tag that is not open.
// A completion is looked at in two cycles: it is compared with the state of its tag, which is then written.

module plx_dma_rd #(
    parameter TAGS = 32  // open requests, a power of two
) (
    input  logic         clk,
    input  logic         rst,

    // Longest request, 128 B << n, of which up to 512 B are used; reads of a function without bus mastering fail;
    // `cfg_quiesce`: no new descriptor is accepted. Cycles until a read has failed, and minimum cycles
    // until its tag is reused. No read is open when idle.
    input  logic [2:0]   cfg_max_read,
    input  logic [7:0]   cfg_bus_master,
    input  logic         cfg_quiesce,
    input  logic [31:0]  cfg_timeout_cycles,
    input  logic [31:0]  cfg_quarantine_cycles,
    output logic         idle,

    // Descriptors: at least one byte, at any address.
    input  logic         s_desc_valid,
    output logic         s_desc_ready,
    input  logic [63:0]  s_desc_address,
    input  logic [15:0]  s_desc_length,
    input  logic [7:0]   s_desc_tag,
    input  logic [7:0]   s_desc_func,

    // Requests, and their completions, which never stall.
    output logic         hif_rd_req_valid,
    input  logic         hif_rd_req_ready,
    output logic [127:0] hif_rd_req_header,
    input  logic         hif_rx_cpl_valid,
    output logic         hif_rx_cpl_ready,
    input  logic         hif_rx_cpl_sop,
    input  logic         hif_rx_cpl_eop,
    input  logic [127:0] hif_rx_cpl_header,
    input  logic [255:0] hif_rx_cpl_data,

    // Read data. After an error fewer words than requested, the last of them bad and void.
    output logic         m_data_tvalid,
    input  logic         m_data_tready,
    output logic [255:0] m_data_tdata,
    output logic [31:0]  m_data_tkeep,
    output logic         m_data_tlast,
    output logic         m_data_tuser,
    output logic [7:0]   m_status_tag,
    output logic [2:0]   m_status_error,

    // One cycle for each.
    output logic         inc_reads,
    output logic         inc_rd_discarded,
    output logic         inc_rd_timeout,
    output logic         inc_rd_unsupported,
    output logic         inc_rd_abort,
    output logic         inc_rd_poisoned,
    output logic         inc_rd_unexpected
);
    localparam W = $clog2(TAGS);
    localparam [2:0] NONE = 0, UNSUPPORTED = 1, ABORT = 2, POISONED = 3, TIMEOUT = 4, OFF = 5;

    // The current segment, its tag, and the output register of its request.
    wire         tx_segment_valid, segment_last, cut_ready, cut_idle, tag_valid;
    wire [63:0]  address;
    wire [12:0]  length;
    wire [7:0]   func, desc_tag;
    wire [W-1:0] tag;
    wire         free  = !hif_rd_req_valid || hif_rd_req_ready;
    wire         issue = tx_segment_valid && tag_valid && free;
    wire         master = cfg_bus_master[func[2:0]];
    wire         sends = issue && master;

    plx_dma_cut #(.LENGTH_W(16), .ALIGN(1), .MOST(2), .USER_W(16)) cut (
        .clk,
        .rst,
        .cfg_limit(cfg_max_read),
        .s_valid(s_desc_valid && !cfg_quiesce),
        .s_ready(cut_ready),
        .s_address(s_desc_address),
        .s_length(s_desc_length),
        .s_user({s_desc_func, s_desc_tag}),
        .m_valid(tx_segment_valid),
        .m_ready(tag_valid && free),
        .m_address(address),
        .m_length(length),
        .m_last(segment_last),
        .m_user({func, desc_tag}),
        .idle(cut_idle)
    );

    assign s_desc_ready = cut_ready && !cfg_quiesce;

    // A tag is open until its slot is empty. A tick ends a period of quarantine.
    logic            returns, return_late;
    logic [W-1:0]    return_tag;
    logic            tick;
    logic [31:0]     period;
    wire             unexpected_return;
    wire  [TAGS-1:0] open;

    plx_tag_pool #(.N(TAGS)) tags (
        .clk,
        .rst,
        .allow_all(1'b1),
        .m_tag_valid(tag_valid),
        .m_tag_ready(tx_segment_valid && free),
        .m_tag(tag),
        .s_return_valid(returns),
        .s_return_tag(return_tag),
        .s_return_late(return_late),
        .event_unexpected(unexpected_return),
        .tick,
        .open
    );

    // Bytes of the first and the last DW (PCIe 4.0, 2.2.5).
    wire [12:0] end_byte = length + {11'd0, address[1:0]};
    wire [12:0] dws_wide = end_byte + 13'd3;
    wire [10:0] dws      = dws_wide[12:2];
    wire [3:0]  head_be  = 4'hF << address[1:0];
    wire [3:0]  tail_be  = end_byte[1:0] == 2'd0 ? 4'hF : ~(4'hF << end_byte[1:0]);
    wire        single   = dws == 11'd1;

    always_ff @(posedge clk) begin
        tick   <= !tick && period >= cfg_quarantine_cycles;
        period <= tick ? 32'd0 : period + 32'd1;
        if (free) hif_rd_req_valid <= sends;
        inc_reads <= sends;
        if (rst) begin
            tick             <= 1'b0;
            period           <= 32'd0;
            hif_rd_req_valid <= 1'b0;
            inc_reads        <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        if (free) begin
            hif_rd_req_header <= '0;
            hif_rd_req_header[layouts_pkg::HIF_ADDRESS_AT +: 64] <= {address[63:2], 2'b00};
            hif_rd_req_header[layouts_pkg::HIF_LENGTH_AT +: 10]  <= dws[9:0];
            hif_rd_req_header[layouts_pkg::HIF_FIRST_BE_AT +: 4] <= single ? head_be & tail_be : head_be;
            hif_rd_req_header[layouts_pkg::HIF_LAST_BE_AT +: 4]  <= single ? 4'd0 : tail_be;
            hif_rd_req_header[layouts_pkg::HIF_TAG_AT +: W]      <= tag;
            hif_rd_req_header[layouts_pkg::HIF_FUNC_AT +: 8]     <= func;
        end
    end

    // Reads of each tag: waiting for data; status; time of the request; its function; offset in the slot of the
    // next byte, bytes outstanding with those before it in its DW, and DWs outstanding: at the request, and after
    // the latest completion if there was one. Each memory has one writer, so that it needs no register for each tag.
    localparam [TAGS-1:0] ONE = 1;
    logic [TAGS-1:0] waiting, begun;
    wire  [TAGS-1:0] of_tag = ONE << tag;
    logic [2:0]      error [0:TAGS-1];
    logic [26:0]     asked [0:TAGS-1];
    logic [26:0]     after [0:TAGS-1];
    logic [31:0]     sent [0:TAGS-1];
    logic [7:0]      func_of [0:TAGS-1];
    logic [31:0]     now;

    // A completion, one cycle late: the state of its tag is read, and compared with it.
    logic         came, came_sop, came_eop;
    logic [127:0] came_head;
    logic [255:0] came_data;
    // Its bytes, with those before them in their DW; 4 times its DWs, if it has all that are outstanding.
    logic [12:0]  came_whole, came_end;
    wire  [W-1:0] came_tag = came_head[layouts_pkg::HIF_TAG_AT +: W];
    wire   [9:0]  came_length = came_head[layouts_pkg::HIF_LENGTH_AT +: 10];
    wire  [10:0]  came_dws    = {came_length == 0, came_length};
    wire  [11:0]  came_bytes  = came_head[layouts_pkg::HIF_BYTE_COUNT_AT +: 12];
    wire   [6:0]  came_at     = came_head[layouts_pkg::HIF_LOWER_ADDRESS_AT +: 7];
    wire   [2:0]  came_status = came_head[layouts_pkg::HIF_STATUS_AT +: 3];
    wire   [7:0]  came_func   = came_head[layouts_pkg::HIF_FUNC_AT +: 8];
    // It is for a tag of the card, and for the function whose read has it, or had it last.
    wire          came_fits   = came_head[layouts_pkg::HIF_TAG_AT +: 10] < TAGS && came_func == func_of[came_tag];

    // Its first beat, two cycles late, with that state; `fits`: they agree; `sound`: it has no more DWs than
    // bytes outstanding.
    logic         beat, beat_sop, beat_eop, open_tag, success, aborted, fits, sound;
    logic [7:0]   cpl_dws;
    logic [127:0] head;
    logic [255:0] data;
    logic [8:0]   cpl_at;
    logic [9:0]   cpl_whole;
    logic [7:0]   dws_left;
    wire  [W-1:0] cpl_tag    = head[layouts_pkg::HIF_TAG_AT +: W];
    wire          cpl_bad    = head[layouts_pkg::HIF_POISONED_AT];
    wire          refused    = beat && beat_sop && open_tag && !success;
    wire          begins     = beat && beat_sop && open_tag && success && fits && sound;
    wire          all        = cpl_dws == dws_left;

    // Destination of the beat, in DWs; state of its read with the last one.
    logic         taking, completes;
    logic [W-1:0] taking_tag;
    logic [6:0]   taking_at;
    logic [7:0]   taking_dws;
    wire          writes   = beat && (beat_sop ? begins : taking);
    wire  [W-1:0] to       = beat_sop ? cpl_tag : taking_tag;
    wire  [6:0]   first    = beat_sop ? cpl_at[8:2] : taking_at;
    wire  [7:0]   more     = beat_sop ? cpl_dws : taking_dws;
    wire          finished = writes && beat_eop && (beat_sop ? all : completes);

    // The state after a completion, which the next one of the same tag may need at once.
    wire  [8:0]   next_at    = {cpl_at[8:2] + cpl_dws[6:0], 2'b00};
    wire  [9:0]   next_whole = all ? 10'd0 : cpl_whole - {cpl_dws, 2'b00};
    wire  [7:0]   next_dws   = dws_left - cpl_dws;
    wire          same       = came_tag == to;
    wire          ends       = refused || finished;
    wire  [26:0]  next_state = {next_at, next_whole, next_dws};
    wire          started    = begun[came_tag];
    wire  [26:0]  state_0    = asked[came_tag];
    wire  [26:0]  state_1    = after[came_tag];

    // Whether a completion agrees with either state: bytes outstanding, offset. Both say how many DWs those are.
    wire          agrees_0   = came_whole == {3'd0, state_0[17:8]} && came_at == state_0[24:18];
    wire          agrees_1   = came_whole == {3'd0, state_1[17:8]} && came_at == state_1[24:18];

    // Or with the next one: it has those bytes that were outstanding, without those of the DWs before it. A sum
    // is compared without its carries: the bits that it needs in one place are those that the one below gives.
    wire  [11:0]  those      = {2'd0, cpl_dws, 2'b00};
    wire  [11:0]  whole      = {2'd0, cpl_whole};
    wire  [11:0]  need_bytes = came_bytes ^ those ^ whole;
    wire  [11:0]  give_bytes = came_bytes & those | (came_bytes | those) & ~whole;
    wire  [4:0]   need_at    = cpl_at[6:2] ^ cpl_dws[4:0] ^ came_at[6:2];
    wire  [4:0]   give_at    = cpl_at[6:2] & cpl_dws[4:0] | (cpl_at[6:2] | cpl_dws[4:0]) & ~came_at[6:2];
    wire          agrees_2   = need_bytes == {give_bytes[10:0], 1'b0} && need_at == {give_at[3:0], 1'b0}
                               && came_at[1:0] == 2'd0 && !all;

    // A scan for timeouts looks at one tag a cycle, in three steps; not at that of a completion that is under way.
    // (A tag that ends meanwhile is not asked for again so soon.)
    logic [W-1:0] timeout_scan, aging, aged;
    logic         was_waiting, waited, old;
    logic [31:0]  age;
    wire          expired = waited && waiting[aged] && old
                            && !(came && came_tag == aged) && !(beat && to == aged) && !(taking && taking_tag == aged);

    assign hif_rx_cpl_ready = 1'b1;

    always_ff @(posedge clk) begin
        now          <= now + 32'd1;
        timeout_scan <= timeout_scan + 1'b1;
        aging        <= timeout_scan;
        aged         <= aging;
        age          <= now - sent[timeout_scan];
        was_waiting  <= waiting[timeout_scan];
        waited       <= was_waiting;
        old          <= age >= cfg_timeout_cycles;
        came         <= hif_rx_cpl_valid;
        beat         <= came;
        if (beat) taking <= writes && !beat_eop;
        waiting <= (waiting | of_tag & {TAGS{sends}}) & ~(ONE << to & {TAGS{ends}}) & ~(ONE << aged & {TAGS{expired}});
        begun   <= begun & ~(of_tag & {TAGS{issue}}) | ONE << cpl_tag & {TAGS{begins}};
        inc_rd_discarded   <= !rst && issue && !master;
        inc_rd_timeout     <= expired;
        inc_rd_unsupported <= refused && !aborted;
        inc_rd_abort       <= refused && aborted;
        inc_rd_poisoned    <= begins && cpl_bad;
        inc_rd_unexpected  <= beat && beat_sop && !refused && !begins;
        if (rst) begin
            now          <= 32'd0;
            timeout_scan <= '0;
            was_waiting  <= 1'b0;
            waited       <= 1'b0;
            came         <= 1'b0;
            beat         <= 1'b0;
            taking       <= 1'b0;
            waiting      <= '0;
        end
    end

    always_ff @(posedge clk) begin
        came_sop  <= hif_rx_cpl_sop;
        came_eop  <= hif_rx_cpl_eop;
        came_data <= hif_rx_cpl_data;
        if (hif_rx_cpl_sop) begin
            came_head  <= hif_rx_cpl_header;
            came_whole <= {1'b0, hif_rx_cpl_header[layouts_pkg::HIF_BYTE_COUNT_AT +: 12]}
                          + {11'd0, hif_rx_cpl_header[layouts_pkg::HIF_LOWER_ADDRESS_AT +: 2]};
            came_end   <= {1'b0, hif_rx_cpl_header[layouts_pkg::HIF_BYTE_COUNT_AT +: 12]}
                          + {11'd0, hif_rx_cpl_header[layouts_pkg::HIF_LOWER_ADDRESS_AT +: 2]} + 13'd3;
        end
        beat_sop <= came_sop;
        beat_eop <= came_eop;
        data     <= came_data;
        head     <= came_head;
        success  <= came_status == 3'd0;
        aborted  <= came_status == 3'd4;
        fits     <= same && begins ? agrees_2 : started ? agrees_1 : agrees_0;
        sound    <= came_dws <= came_end[12:2];
        cpl_dws  <= came_dws[7:0];
        open_tag <= came_fits && waiting[came_tag] && !(same && ends) && !(expired && aged == came_tag);
        {cpl_at, cpl_whole, dws_left} <= same && begins ? next_state : started ? state_1 : state_0;
        if (issue) error[tag] <= master ? NONE : OFF;
        if (refused) error[cpl_tag] <= aborted ? ABORT : UNSUPPORTED;
        if (expired) error[aged] <= TIMEOUT;
        if (begins) begin
            if (cpl_bad) error[cpl_tag] <= POISONED;
            completes  <= all;
            taking_tag <= cpl_tag;
        end
        if (writes) begin
            taking_at  <= first + 7'd8;
            taking_dws <= more - 8'd8;
        end
    end

    always_ff @(posedge clk) if (issue) begin
        asked[tag] <= {address[8:0], end_byte[9:0], dws[7:0]};
        sent[tag]  <= now;
        func_of[tag] <= func;
    end

    always_ff @(posedge clk) if (begins) after[cpl_tag] <= next_state;

    // The slots: a bank for each DW of a word, so that a beat at any offset is written in one cycle.
    wire          reads;
    wire [W+3:0]  read_at;
    wire [255:0]  word;
    wire [511:0]  twice   = {data, data} << {first[2:0], 5'd0};
    wire [255:0]  rotated = twice[511:256];
    wire [3:0]    next    = first[6:3] + 4'd1;

    generate
        for (genvar b = 0; b < 8; b = b + 1) begin : g_bank
            localparam [2:0] BANK = b;
            wire [2:0] nth   = BANK - first[2:0];
            wire       wraps = {1'b0, BANK} < {1'b0, first[2:0]};
            plx_ram_sdp #(.WIDTH(32), .DEPTH(TAGS * 16)) ram (
                .clk,
                .w_enable(writes && {5'd0, nth} < more),
                .w_address({to, wraps ? next : first[6:3]}),
                .w_data(rotated[b*32 +: 32]),
                .r_enable(reads),
                .r_address(read_at),
                .r_data(word[b*32 +: 32])
            );
        end
    endgenerate

    // Segments in the order of their requests: tag, range of bytes, and client. Those whose read has ended
    // go on to the output.
    localparam ORDER_W = W + 27;
    wire               head_valid, push_ready, ended_ready;
    wire [ORDER_W-1:0] segment;
    wire [W-1:0]       head_tag = segment[ORDER_W-1 -: W];
    wire [8:0]         last_byte = ~(address[8:0] ^ length[8:0]) + {address[7:0] | length[7:0], 1'b0};  // the sum, less 1
    wire               leaves    = head_valid && !waiting[head_tag];

    plx_fifo_first #(.WIDTH(ORDER_W), .DEPTH(TAGS)) order (
        .clk,
        .rst,
        .s_valid(issue),
        .s_ready(push_ready),
        .s_data({tag, address[8:0], last_byte, segment_last, desc_tag}),
        .m_valid(head_valid),
        .m_ready(leaves && ended_ready),
        .m_data(segment)
    );

    wire         out_valid, out_last, pop, out_busy;
    wire [W-1:0] out_tag;
    wire [8:0]   out_at, out_end;
    wire [7:0]   out_desc;
    wire [2:0]   out_error;

    plx_skid #(.WIDTH(ORDER_W + 3)) ended (
        .clk,
        .rst,
        .s_valid(leaves),
        .s_ready(ended_ready),
        .s_data({segment, error[head_tag]}),
        .m_valid(out_valid),
        .m_ready(pop),
        .m_data({out_tag, out_at, out_end, out_last, out_desc, out_error})
    );

    plx_dma_rd_out #(.W(W)) out (
        .clk,
        .rst,
        .s_valid(out_valid),
        .s_ready(pop),
        .s_tag(out_tag),
        .s_at(out_at),
        .s_end(out_end),
        .s_last(out_last),
        .s_desc(out_desc),
        .s_error(out_error),
        .reads,
        .read_at,
        .word,
        .m_data_tvalid,
        .m_data_tready,
        .m_data_tdata,
        .m_data_tkeep,
        .m_data_tlast,
        .m_data_tuser,
        .m_status_tag,
        .m_status_error,
        .busy(out_busy)
    );

    // The tag is free when its slot is empty.
    always_ff @(posedge clk) begin
        returns     <= !rst && out_valid && pop;
        return_tag  <= out_valid ? out_tag : {W{1'b0}};
        return_late <= out_error == TIMEOUT;
    end

    assign idle = cut_idle && !hif_rd_req_valid && !head_valid && !out_valid && !out_busy && !returns;

    wire unused = &{1'b0, open, unexpected_return, push_ready, twice[255:0], dws_wide[1:0],
                    head, dws[10], came_end[1:0], cpl_at[1:0], give_bytes[11], give_at[4]};
endmodule
