// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Reads the segments of a port's packets, at any address and alignment, and joins them to one stream
// without gaps. Requests run ahead of the data, also across packets, but no packet begins before
// plx_tx_fifo has space for all of it, so data are accepted on arrival. A packet whose descriptors are
// inconsistent, or that cannot be read, is withdrawn in plx_tx_fifo. Data in slots of the ring itself
// take the place of data that were read.
// From a descriptor to its request: 2 cycles.

module plx_tx_read #(
    parameter WORDS = 512,  // words of plx_tx_fifo, at least a longest packet
    parameter AHEAD = 32    // descriptors that wait for their data, a power of two
) (
    input  logic         clk,
    input  logic         rst,

    // Descriptors, and slots with data behind them, in order; data: it is such a slot; ends: the last of
    // its packet; flush: none follows, and an open packet ends.
    input  logic         s_tx_segment_valid,
    output logic         s_tx_segment_ready,
    input  logic [255:0] s_tx_segment,
    input  logic         s_tx_segment_data,
    input  logic         s_tx_segment_ends,
    input  logic         s_tx_segment_flush,

    // A descriptor is done, its memory the host's; its packet has ended, also without a descriptor where
    // the next one begins too early: 0 passed on, 1 inconsistent, 2 read failed.
    output logic         m_done_valid,
    output logic         m_done_end,
    output logic [1:0]   m_done_status,
    output logic [15:0]  m_done_length,

    // Requests, and their data.
    output logic         m_desc_valid,
    input  logic         m_desc_ready,
    output logic [63:0]  m_desc_address,
    output logic [15:0]  m_desc_length,
    input  logic         s_data_tvalid,
    output logic         s_data_tready,
    input  logic [255:0] s_data_tdata,
    input  logic [31:0]  s_data_tkeep,
    input  logic         s_data_tlast,
    input  logic         s_data_tuser,

    // Packets, accepted on arrival; with the last word TX_META. Free words for them.
    output logic         m_axis_tx_tvalid,
    output logic [255:0] m_axis_tx_tdata,
    output logic [31:0]  m_axis_tx_tkeep,
    output logic         m_axis_tx_tlast,
    output logic         m_axis_tx_tuser,
    output logic [layouts_pkg::TX_META_W-1:0] m_axis_meta_tdata,
    input  logic [$clog2(WORDS):0] s_free,

    // No request is pending, and no packet is open.
    output logic         idle
);
    localparam FW = $clog2(WORDS) + 1;
    localparam META_W = layouts_pkg::TX_META_W;
    localparam LENGTH_AT = layouts_pkg::TX_META_LENGTH_AT;
    localparam [15:0] MOST_PAYLOAD = 16'd9000, LEAST_RAW = 16'd14, MOST_RAW = 16'd9596;
    localparam [31:0] MOST_INLINE = 32'd64;
    localparam [1:0] NO_SUM = 2'd0, GIVEN = 2'd1, OF_PAYLOAD = 2'd2;
    localparam [1:0] SENT = 2'd0, BAD = 2'd1, FAILED = 2'd2;

    generate
        if (WORDS < 300) WORDS_must_hold_a_packet_of_9596_bytes parameter_error ();
    endgenerate

    // ---- The current descriptor ---------------------------------------------------------------------

    // It is taken apart in one cycle, and compared with the open packet in the next.
    wire         whole_valid, whole_accepted;
    wire [255:0] tx_segment;
    wire         tx_segment_data, tx_segment_ends;

    plx_skid #(.WIDTH(258)) slice (
        .clk,
        .rst,
        .s_valid(s_tx_segment_valid),
        .s_ready(s_tx_segment_ready),
        .s_data({s_tx_segment_data, s_tx_segment_ends, s_tx_segment}),
        .m_valid(whole_valid),
        .m_ready(whole_accepted),
        .m_data({tx_segment_data, tx_segment_ends, tx_segment})
    );

    wire [31:0] p_length   = tx_segment[layouts_pkg::TX_DESCRIPTOR_LENGTH_AT +: 32];
    wire [15:0] flags      = tx_segment[layouts_pkg::TX_DESCRIPTOR_FLAGS_AT +: 16];
    wire [15:0] p_total    = tx_segment[layouts_pkg::TX_DESCRIPTOR_TOTAL_AT +: 16];
    wire [15:0] p_checksum = tx_segment[layouts_pkg::TX_DESCRIPTOR_CHECKSUM_AT +: 16];
    wire        p_last     = |(flags & layouts_pkg::TX_DESCRIPTOR_LAST);
    wire        p_raw      = |(flags & layouts_pkg::TX_DESCRIPTOR_RAW);
    wire        given      = |(flags & layouts_pkg::TX_DESCRIPTOR_CHECKSUM_GIVEN);
    wire        p_first    = !tx_segment_data && |(flags & layouts_pkg::TX_DESCRIPTOR_FIRST);
    wire        p_inline   = |(flags & layouts_pkg::TX_DESCRIPTOR_INLINE);
    wire        card       = |(flags & layouts_pkg::TX_DESCRIPTOR_CHECKSUM_CARD);
    wire        bad_flags  = p_inline && (!p_last || p_length == 0 || p_length > MOST_INLINE)
                             || given && card || p_raw && (given || card)
                             || (p_raw ? p_total < LEAST_RAW || p_total > MOST_RAW : p_total > MOST_PAYLOAD);

    logic              tx_segment_valid;
    wire               tx_segment_accepted;
    logic [63:0]       address;
    logic [15:0]       length;
    logic              first, last, bad_first, empty, huge, fetches, is_data;
    wire               inline_free;
    logic [META_W-1:0] says;
    logic [FW-1:0]     needs;

    assign whole_accepted = (!tx_segment_valid || tx_segment_accepted) && inline_free;

    always_ff @(posedge clk) begin
        if (whole_accepted || tx_segment_accepted) tx_segment_valid <= whole_valid && whole_accepted;
        if (rst) tx_segment_valid <= 1'b0;
    end

    // Of a packet's first descriptor: what it says of the packet, whether that is consistent and agrees with
    // its own length, and the words that the packet needs. The checksum's first byte is the higher one.
    always_ff @(posedge clk) if (whole_accepted) begin
        address   <= tx_segment[layouts_pkg::TX_DESCRIPTOR_ADDRESS_AT +: 64];
        // A slot with data has its bytes from its descriptor.
        length    <= tx_segment_data ? 16'd0 : p_length[15:0];
        huge      <= !tx_segment_data && (p_length[31:16] != 0 || p_inline && !p_first);
        empty     <= !tx_segment_data && p_length == 0;
        fetches   <= !tx_segment_data && !p_inline && p_length != 0;
        is_data   <= tx_segment_data;
        first     <= p_first;
        last      <= tx_segment_ends;
        says      <= {1'b1, tx_segment[layouts_pkg::TX_DESCRIPTOR_COOKIE_AT +: 32], p_raw, given ? GIVEN : card ? OF_PAYLOAD : NO_SUM,
                      p_checksum[7:0], p_checksum[15:8], p_total,
                      tx_segment[layouts_pkg::TX_DESCRIPTOR_SOURCE_PORT_AT +: 16],
                      tx_segment[layouts_pkg::TX_DESCRIPTOR_DESTINATION_PORT_AT +: 16],
                      tx_segment[layouts_pkg::TX_DESCRIPTOR_DESTINATION_IP_AT +: 32]};
        bad_first <= bad_flags || p_length == 0 && p_total != 0
                     || (p_last ? p_length != {16'd0, p_total} : p_length > {16'd0, p_total});
        needs     <= {{(FW - 9) {1'b0}}, p_total[13:5]} + {{(FW - 1) {1'b0}}, p_total == 0 || p_total[4:0] != 0};
    end

    // The open packet: inconsistent; bytes that it lacks, and whether it has any; words reserved for it.
    logic              open, wrong, some;
    logic [15:0]       lacks;
    logic [FW-1:0]     holds;
    logic [META_W-1:0] kept;

    wire [META_W-1:0] meta  = first ? says : kept;
    wire              bad   = first ? bad_first : !open || wrong || huge || empty && some
                              || (last ? length != lacks : length > lacks);
    wire              reads = !bad && fetches;

    // A packet begins when there is space for all of it: words that are free, and not reserved.
    logic [FW-1:0] promised;
    wire           begins = first && !bad_first;
    wire  [FW-1:0] more_promised = promised + needs;
    wire           room   = !begins || s_free >= more_promised;
    wire  [FW-1:0] has    = !first ? holds : begins ? needs : '0;

    // An open packet ends by one that begins, or by a flush.
    wire cuts   = open && (tx_segment_valid ? first : s_tx_segment_flush && !whole_valid);
    wire queue_free, request_free;
    wire pushes = queue_free && (cuts || tx_segment_valid && room && request_free);
    assign tx_segment_accepted = pushes && !cuts;

    // The reservation of a packet ends when its last word is in plx_tx_fifo.
    logic [FW-1:0] frees;

    always_ff @(posedge clk) begin
        promised <= (tx_segment_accepted && begins ? more_promised : promised) - frees;
        if (pushes) begin
            open  <= !cuts && !last;
            wrong <= bad;
            lacks <= (first ? says[LENGTH_AT +: 16] : lacks) - length;
            some  <= first ? says[LENGTH_AT +: 16] != 0 : some;
            kept  <= meta;
            holds <= has;
            if (cuts || last) begin
                kept  <= '0;
                holds <= '0;
            end
        end
        if (rst) begin
            promised <= '0;
            open     <= 1'b0;
            kept     <= '0;
            holds    <= '0;
        end
    end

    plx_skid #(.WIDTH(80)) requests (
        .clk,
        .rst,
        .s_valid(tx_segment_accepted && reads),
        .s_ready(request_free),
        .s_data({address, length}),
        .m_valid(m_desc_valid),
        .m_ready(m_desc_ready),
        .m_data({m_desc_address, m_desc_length})
    );

    // ---- Descriptors that wait for their data -------------------------------------------------------

    // Whether its data are inline, or read; one descriptor less; the packet ends, and is inconsistent.
    wire              e_valid, e_inline, e_reads, e_desc, e_end, e_bad, e_done;
    wire [FW-1:0]     e_holds;
    wire [META_W-1:0] e_meta;

    plx_fifo_first #(.WIDTH(META_W + FW + 5), .DEPTH(AHEAD)) queue (
        .clk,
        .rst,
        .s_valid(pushes),
        .s_ready(queue_free),
        .s_data(cuts ? {kept, holds, 5'b00011} : {meta, has, is_data, reads, 1'b1, last, bad}),
        .m_valid(e_valid),
        .m_ready(e_done),
        .m_data({e_meta, e_holds, e_inline, e_reads, e_desc, e_end, e_bad})
    );

    // Slots with data, also of packets that turn out to be bad.
    wire [255:0] inline_data;
    wire         inline_valid;
    wire [$clog2(AHEAD):0] inline_level;

    plx_fifo_sync #(.WIDTH(256), .DEPTH(AHEAD)) inlines (
        .clk,
        .rst,
        .s_valid(whole_valid && tx_segment_data && (!tx_segment_valid || tx_segment_accepted)),
        .s_ready(inline_free),
        .s_data(tx_segment),
        .m_valid(inline_valid),
        .m_ready(e_done && e_inline),
        .m_data(inline_data),
        .level(inline_level)
    );

    // ---- The next word ------------------------------------------------------------------------------

    // Bytes of a read word, which are contiguous: bit b is set where a group of 2^b bytes is the last one
    // that there is, and is odd.
    wire [63:0] tkeep_above = {32'd0, s_data_tkeep};
    integer b, k;
    logic [5:0] count;
    always_comb begin
        count = '0;
        for (b = 0; b < 6; b = b + 1) begin
            for (k = 1; k <= 32; k = k + 1) begin
                if (k % (2 << b) == 1 << b) count[b] = count[b] || (s_data_tkeep[k-1] && !tkeep_above[k-1+(1<<b)]);
            end
        end
    end

    // An entry of the queue with the next of its words, or without one.
    logic              b_valid, b_word, b_user, b_done, b_end, b_bad, more;
    logic [5:0]        b_count;
    logic [255:0]      b_data;
    logic [META_W-1:0] b_meta;
    logic [FW-1:0]     b_holds;
    wire  [4:0]        e_rest  = e_meta[LENGTH_AT +: 5];
    wire               advance = !b_valid || !more;
    wire               loads   = e_valid && advance && (!e_reads || s_data_tvalid);

    assign s_data_tready = e_valid && e_reads && advance;
    assign e_done        = loads && (!e_reads || s_data_tlast);

    always_ff @(posedge clk) begin
        if (advance) b_valid <= loads;
        if (rst) b_valid <= 1'b0;
    end

    always_ff @(posedge clk) if (advance) begin
        b_word  <= e_reads || e_inline && !e_bad;
        b_count <= e_reads ? count : {!e_end || e_rest == 0, e_end ? e_rest : 5'd0};
        b_data  <= e_reads ? s_data_tdata : inline_data;
        b_user  <= e_reads && s_data_tuser;
        b_done  <= e_done && e_desc;
        b_end   <= e_done && e_end;
        b_bad   <= e_bad;
        b_meta  <= e_meta;
        b_holds <= e_holds;
    end

    // ---- Data to packets ----------------------------------------------------------------------------

    // Bytes that wait for more: `have` of a word. The current packet could not be read. Its last
    // word did not hold all of the rest: there is one `more`.
    logic [255:0] rest;
    logic [4:0]   have;
    logic         failed;
    logic [FW-1:0] out_holds;

    wire       now    = b_valid && !more;
    wire       word   = now && b_word;
    wire       fails  = failed || word && b_user;
    wire [5:0] filled = {1'b0, have} + (b_word ? b_count : 6'd0);
    wire       full   = filled[5];
    wire       ended  = now && b_end;
    wire       good   = !fails && !b_bad;
    wire       over   = ended && good && full && filled[4:0] != 0;

    assign frees = m_axis_tx_tvalid && m_axis_tx_tlast ? out_holds : '0;

    // The word rotated so that its first byte follows the waiting ones; surplus bytes are in front.
    wire [511:0] twice  = {b_data, b_data} << {have, 3'd0};
    wire [255:0] turned = twice[511:256];
    wire [255:0] below  = ~({256{1'b1}} << {have, 3'd0});
    wire [255:0] joined = turned & ~below | rest & below;

    always_ff @(posedge clk) begin
        m_axis_tx_tvalid <= ended || more || word && full && !fails;
        m_done_valid     <= now && b_done;
        m_done_end       <= ended;
        more             <= over;
        if (word || ended) failed <= fails && !ended;
        if (word) have <= filled[4:0];
        if (ended && !over || more) have <= '0;
        if (rst) begin
            m_axis_tx_tvalid <= 1'b0;
            m_done_valid     <= 1'b0;
            m_done_end       <= 1'b0;
            more             <= 1'b0;
            failed           <= 1'b0;
            have             <= '0;
        end
    end

    always_ff @(posedge clk) begin
        m_done_status   <= b_bad ? BAD : fails ? FAILED : SENT;
        m_done_length   <= b_meta[LENGTH_AT +: 16];
        m_axis_tx_tlast <= ended && !over || more;
        m_axis_tx_tuser <= !more && !good;
        m_axis_tx_tdata <= more ? rest : joined;
        m_axis_tx_tkeep <= more ? ~({32{1'b1}} << have) : full ? {32{1'b1}} : ~({32{1'b1}} << filled[4:0]);
        if (ended) begin
            m_axis_meta_tdata <= b_meta;
            out_holds         <= b_holds;
        end
        if (word) rest <= full ? turned : joined;
    end

    assign idle = !whole_valid && !tx_segment_valid && !open && !e_valid && !b_valid && !more && !m_axis_tx_tvalid
                  && !m_done_valid && !m_done_end;

    wire unused = &{1'b0, flags, twice[255:0], inline_valid, inline_level};
endmodule
