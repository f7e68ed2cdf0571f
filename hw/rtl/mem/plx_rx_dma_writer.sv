// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Writes the payloads of one port to their lists. A ring gathers words while the address is
// requested; gathered words leave in chunks, which end at multiples of 256 B of their address, so
// that a payload is written while its tail is still on the wire. A payload's record is written with
// its first chunk if its length is known by then, otherwise after its last one. After the host bus
// has accepted the last chunk the payload is committed; a bad one is committed as bad, and its
// bytes stay beyond the list's write pointer. One payload at a time has an address; the ring gathers
// the next ones meanwhile.
//
// Each 4 KiB of a payload are translated when the first chunk in them is due: its pages need not
// follow each other. A chunk never crosses 4 KiB. One translation is in use at a time, until all
// chunks in it are accepted; that of the first 4 KiB is requested again for a record that follows.

module plx_rx_dma_writer #(
    parameter PORT   = 0,  // 0 to 3
    parameter FRAMES = 8   // payloads that may be gathered or written at a time, a power of two
) (
    input  logic         clk,
    input  logic         rst,
    input  logic [63:0]  now_cycle_ts,

    // Payloads, and their metadata (RX_META). tuser: 0 good, 1 bad, 2 malformed, 3 bad version.
    input  logic         s_axis_meta_tvalid,
    output logic         s_axis_meta_tready,
    input  logic [168:0] s_axis_meta_tdata,
    input  logic         s_axis_payload_tvalid,
    output logic         s_axis_payload_tready,
    input  logic [63:0]  s_axis_payload_tdata,
    input  logic [7:0]   s_axis_payload_tkeep,
    input  logic         s_axis_payload_tlast,
    input  logic [1:0]   s_axis_payload_tuser,

    // Address request.
    output logic         m_select_valid,
    input  logic         m_select_ready,
    output logic [6:0]   m_select_list,
    output logic [15:0]  m_select_length,
    output logic [63:0]  m_select_timestamp_ns,
    output logic         m_select_timestamp_valid,
    input  logic         s_select_valid,
    input  logic [2:0]   s_select_status,
    input  logic [63:0]  s_select_address,
    input  logic [31:0]  s_select_sequence,
    input  logic         s_select_bare,
    input  logic [15:0]  s_select_stride,
    input  logic [7:0]   s_select_func,

    // Translation to a bus address, up to the end of 4 KiB; the translation is not used any more.
    output logic         m_xlate_valid,
    output logic [63:0]  m_xlate_address,
    output logic [12:0]  m_xlate_length,
    output logic [7:0]   m_xlate_func,
    output logic [6:0]   m_xlate_list,
    input  logic         s_xlate_valid,
    input  logic         s_xlate_hit,
    input  logic [63:0]  s_xlate_address,
    input  logic         s_xlate_epoch,
    output logic         m_xlate_done,
    output logic         m_xlate_done_epoch,

    // Writes to the host, up to 256 B each; `m_accepted`: the last word of one was accepted.
    output logic         m_desc_valid,
    input  logic         m_desc_ready,
    output logic [63:0]  m_desc_address,
    output logic [12:0]  m_desc_length,
    output logic [7:0]   m_desc_func,
    output logic         m_data_tvalid,
    input  logic         m_data_tready,
    output logic [255:0] m_data_tdata,
    output logic         m_data_tlast,
    input  logic         m_accepted,

    // Outcome.
    output logic         m_commit_valid,
    input  logic         m_commit_ready,
    output logic [3:0]   m_commit_status,
    output logic [15:0]  m_commit_length,
    output logic [63:0]  m_commit_timestamp_ns,
    output logic         m_commit_timestamp_valid,
    output logic [31:0]  m_commit_cycle_ts_mac,
    output logic [31:0]  m_commit_cycle_ts_parsed,
    output logic [31:0]  m_commit_cycle_ts_placed,

    // No payload is in this module.
    output logic         idle
);
    localparam META_W = layouts_pkg::RX_META_W;
    localparam SELECT = 3'd0, ANSWER = 3'd1, TRANSLATE = 3'd2, WRITE = 3'd3, THROW = 3'd4, COMMIT = 3'd5;

    generate
        if (PORT < 0 || PORT > 3) PORT_must_be_0_to_3 parameter_error ();
    endgenerate

    // Metadata of payloads that have begun, the current one first.
    logic              meta_valid;
    logic [META_W-1:0] meta;
    // It is complete: its status was accepted a cycle ago.
    logic              next;

    plx_fifo_first #(.WIDTH(META_W), .DEPTH(FRAMES)) metas (
        .clk, .rst,
        .s_valid(s_axis_meta_tvalid), .s_ready(s_axis_meta_tready), .s_data(s_axis_meta_tdata),
        .m_valid(meta_valid), .m_ready(next), .m_data(meta)
    );

    wire [15:0] bound           = meta[layouts_pkg::RX_META_LENGTH_AT +: 16];
    wire        known           = meta[layouts_pkg::RX_META_LENGTH_KNOWN_AT];
    wire [6:0]  list            = {PORT[1:0], meta[layouts_pkg::RX_META_STREAM_AT +: 5]};
    wire [63:0] timestamp_ns    = meta[layouts_pkg::RX_META_TIMESTAMP_NS_AT +: 64];
    wire        timestamp_valid = meta[layouts_pkg::RX_META_TIMESTAMP_VALID_AT];
    wire [15:0] source_port     = meta[layouts_pkg::RX_META_SOURCE_PORT_AT +: 16];

    // Gathered units of 16 B of the current payload, and its end; it is discarded.
    logic [2:0]   state, next_state;
    // Registers of their own, as what answers a request comes late.
    // `no_answer`: the complement of `answering`.
    logic         answering, translating, no_answer;
    logic [6:0]   held;
    logic [127:0] unit_0, unit_1;
    logic         load, use_0, use_1, ended;
    logic [15:0]  gathered, end_bytes;
    logic [1:0]   end_user;
    wire          discard = state == THROW;

    plx_rx_dma_ring #(.FRAMES(FRAMES)) ring (
        .clk, .rst,
        .s_axis_payload_tvalid, .s_axis_payload_tready, .s_axis_payload_tdata, .s_axis_payload_tkeep,
        .s_axis_payload_tlast, .s_axis_payload_tuser,
        .held, .unit_0, .unit_1, .load, .use_0, .use_1, .discard, .gathered,
        .ended, .end_bytes, .end_user, .next
    );

    // The payload that has an address: virtual, of its record or its first unit.
    logic [63:4] address;
    logic [31:0] sequence_number, placed;
    logic        bare;
    logic [15:0] stride, space_known;
    logic [7:0]  func;
    logic [3:0]  status;
    // The chunks whose writes have not been accepted: there are none, there is one.
    logic [7:0]  on_the_way;
    logic        none_left, one_left;

    assign m_select_valid           = state == SELECT && meta_valid && !next;
    assign m_select_list            = list;
    assign m_select_length          = bound;
    assign m_select_timestamp_ns    = timestamp_ns;
    assign m_select_timestamp_valid = timestamp_valid;

    // Where the next chunk begins: 4 KiB, unit in them. The first chunk of all; the record follows, and
    // is not in these 4 KiB. The present translation: it is in use, its bus address, it is not that of the
    // next chunk (`ask`), not that of the record (`record_elsewhere`).
    logic [51:0] page, frame;
    logic [7:0]  at;
    logic        fresh, back, holds, epoch, ask, record_elsewhere;
    wire  [7:0]  unit = back ? address[11:4] : at;

    // The first one is requested in the cycle in which the address comes.
    wire         answers = answering && s_select_valid;
    wire         has_space = answers && s_select_status == 0;
    wire  [63:4] asked   = answering ? s_select_address[63:4] : {back ? address[63:12] : page, unit};

    // By a register of its own, so that the answer, which comes late, is the last gate before the arbiter.
    assign m_xlate_valid      = translating || !no_answer && s_select_valid && s_select_status == 0;
    assign m_xlate_address    = {asked, 4'd0};
    assign m_xlate_length     = {9'd256 - {1'b0, asked[11:4]}, 4'd0};
    assign m_xlate_func       = answering ? s_select_func : func;
    assign m_xlate_list       = list;
    assign m_xlate_done_epoch = epoch;

    // It is longer than announced, as known one cycle ago: an end is noticed one cycle late.
    // Or it has no page.
    logic too_long, settled, missed;
    wire  lost = too_long || missed || (ended && end_user != 0);

    always_ff @(posedge clk) begin
        // Units of the record and of the payload.
        space_known <= {3'd0, bound[15:4]} + 16'd1 + {15'd0, |bound[3:0]};
        too_long    <= ended ? end_bytes > bound : gathered > bound;
        settled     <= ended;
    end

    // Its chunks. The first one reaches to the next multiple of 256 B of the address, or is all of the
    // payload if one chunk is enough and does not cross 4 KiB; the others are 256 B, or the rest. `reach`:
    // units up to there; `need`: those of them that are the payload's; `space`: its units that are not
    // written yet; `fits`: they are as many as `need` or more. `brim`: this is the first chunk, and 4 KiB end
    // where it reaches to.
    logic        first, trails, closed, brim, fits;
    logic [4:0]  reach, need;
    logic [15:0] space;
    // The length is known, and one chunk is enough.
    logic        alone;

    // More units are held than are needed, or as many. Bit by bit: a carry would come before the decision.
    wire  [4:0]  over     = held[4:0] & ~need, under = ~held[4:0] & need;
    wire         beyond   = held[6:5] != 0 || over[4] || !under[4] && (over[3] || !under[3]
                            && (over[2] || !under[2] && (over[1] || !under[1] && over[0])));
    wire         enough   = beyond || (over | under) == 0;

    // More are held than there is space for.
    wire    ample = space[15:7] != 0;
    integer b;
    logic   exceeds;
    always_comb begin
        exceeds = 1'b0;
        for (b = 0; b < 7; b = b + 1) exceeds = exceeds ? held[b] || !space[b] : held[b] && !space[b];
        if (ample) exceeds = 1'b0;
    end

    // The record leads, or, after the last unit, follows.
    logic        record;
    wire         none     = held == 0;
    wire         leads    = record || (!bare && none);
    wire         follows  = !bare && none && !record;

    // Ended: all of the rest, or up to `reach`.
    wire         rest     = bare ? space[15:5] == 0 && (!space[4] || space[3:0] == 0) && !(brim && fits)
                                 : held[6:5] == 0 && (!held[4] || (held[3:0] == 0 && !record))
                                   && !(brim && beyond);
    wire         to_end   = ended && rest;
    wire         last_cut = ended && !closed && (bare || follows || (rest ? !exceeds : fits));
    // Not ended: up to `reach` if all of that is there. Without a known length the record does not lead.
    wire         early    = !ended && (bare || trails || known) && !(first && alone);
    wire         next_cut = early && enough && fits;

    // Units of this chunk, and of it when one word has left.
    wire [4:0]   held_and_1 = held[4:0] + 1'b1;
    wire [4:0]   want     = !to_end ? reach : bare ? space[4:0] : leads ? held_and_1 : held[4:0];
    logic        busy;
    logic [4:0]  units_left;
    wire [4:0]   held_less_1 = held[4:0] - 5'd1;
    wire [4:0]   held_less_2 = held[4:0] - 5'd2;
    wire [4:0]   after    = busy ? units_left - 5'd2 : !to_end ? reach - 5'd2 : bare ? space[4:0] - 5'd2
                          : leads ? held_less_1 : held_less_2;
    wire         more_than_1 = |units_left[4:1];
    wire         more_than_2 = |units_left[4:2] || &units_left[1:0];
    // Both outputs have room, which does not depend on whether the host bus accepts in this cycle.
    logic        free, desc_free;
    wire         writes   = state == WRITE && !lost && !busy && desc_free;
    // The translation is another's. Where no unit is held only the record may be next.
    wire         only_record = none && !bare;
    wire         elsewhere   = only_record ? record_elsewhere : ask;
    wire         turn     = state == WRITE && !lost && !busy && !closed && elsewhere && (ended || !only_record)
                         && none_left;
    wire         cut      = (last_cut || next_cut) && writes && free && !elsewhere;
    // A chunk is complete before the length is known: the record's space is left out.
    wire         skip     = state == WRITE && !lost && !ended && !known && !bare && !trails && |held[6:4];
    wire         jump     = reach == 5'd1;

    // Its complement increments: two sums, and not one that waits for the decision.
    wire [7:0]   one_more = on_the_way + 1'b1;
    wire [7:0]   one_less = ~on_the_way + 1'b1;

    // The next 32 B of a chunk, zeros behind the payload. What they are does not depend on whether a
    // chunk begins.
    wire         one_only = to_end ? (bare ? space[3:0] == 4'd1 && !space[4] : none || (held == 7'd1 && !leads)) : jump;
    wire         two      = busy ? more_than_1 : !one_only;
    // The chunk ends with them. Each comparison by itself, as `to_end` comes late.
    wire         end_two  = bare ? space[4:0] == 5'd1 || space[4:0] == 5'd2
                          : none || (leads ? held[4:0] == 5'd1 : held == 7'd1 || held[4:0] == 5'd2);
    wire         last     = busy ? !more_than_2 : to_end ? end_two : jump || reach == 5'd2;
    wire         is_record = !busy && leads;
    wire         two_held = |held[6:1];
    wire [127:0] the_record = {timestamp_valid ? timestamp_ns[31:0] : 32'd0, sequence_number, 15'd0, timestamp_valid,
                               source_port, 16'd0, ended ? end_bytes : bound};
    wire [127:0] of_ring  = none ? 128'd0 : unit_0;

    assign load  = cut || (busy && free);
    assign use_0 = !none && (two || !is_record);
    assign use_1 = two_held && two && !is_record;

    always_ff @(posedge clk) begin
        if (load) begin
            busy       <= !last;
            units_left <= after;
        end
        if (rst) busy <= 1'b0;
    end

    wire [127:0] low  = is_record ? the_record : of_ring;
    wire [127:0] high = is_record && two ? of_ring : use_1 ? unit_1 : 128'd0;

    plx_skid #(.WIDTH(257)) data (
        .clk, .rst, .s_valid(load), .s_ready(free), .s_data({last, high, low}),
        .m_valid(m_data_tvalid), .m_ready(m_data_tready), .m_data({m_data_tlast, m_data_tdata})
    );

    wire [7:0] of_chunk = follows && ended ? address[11:4] : at;

    plx_skid #(.WIDTH(52 + 8 + 5 + 8)) desc (
        .clk, .rst, .s_valid(cut), .s_ready(desc_free), .s_data({frame, of_chunk, want, func}),
        .m_valid(m_desc_valid), .m_ready(m_desc_ready),
        .m_data({m_desc_address[63:4], m_desc_length[8:4], m_desc_func})
    );

    assign m_desc_address[3:0]  = 4'd0;
    assign m_desc_length[12:9]  = 4'd0;
    assign m_desc_length[3:0]   = 4'd0;

    // The chunk after this one.
    always_ff @(posedge clk) begin
        if (translating && fresh) begin
            first  <= 1'b1;
            trails <= 1'b0;
            closed <= 1'b0;
            reach  <= 5'd16 - {1'b0, address[7:4]};
            need   <= 5'd16 - {1'b0, address[7:4]} - {4'd0, !bare};
            record <= !bare;
            space  <= bare ? stride : space_known - 1'b1;
            brim   <= &address[11:8];
            // Of the values of the cycle before: a translation takes several.
            fits   <= space >= {11'd0, need};
            alone  <= known && space[15:5] == 0 && (!space[4] || (space[3:0] == 0 && bare))
                   && !(brim && space > {11'd0, need});
        end
        if (cut) begin
            first  <= 1'b0;
            brim   <= 1'b0;
            record <= 1'b0;
            reach  <= 5'd16;
            need   <= 5'd16;
            space  <= space - {11'd0, need};
            fits   <= space >= {11'd0, need} + 16'd16;
            // Also if there is no more space, though the end has not been seen.
            if (to_end ? !trails || follows : !trails && space == {11'd0, need}) closed <= 1'b1;
        end
        if (skip) begin
            trails <= 1'b1;
            record <= 1'b0;
            brim   <= brim && !jump;
            reach  <= jump ? 5'd16 : need;
            need   <= jump ? 5'd16 : need;
            if (jump) fits <= |space[15:4];
        end
    end

    // Its address, and the translation.
    wire crosses = cut ? &at[7:4] : skip && &at;

    assign m_xlate_done = holds && (turn || next);

    always_ff @(posedge clk) begin
        if (answers) begin
            {page, at} <= s_select_address[63:4];
            fresh      <= 1'b1;
            back       <= 1'b0;
        end
        if (cut) at <= {at[7:4] + 1'b1, 4'd0};
        if (skip) at <= at + 1'b1;
        if (crosses) page <= page + 1'b1;
        if (turn) back <= only_record;
        if (crosses) ask <= 1'b1;
        if (s_xlate_valid && translating) begin
            frame            <= s_xlate_address[63:12];
            epoch            <= s_xlate_epoch;
            fresh            <= 1'b0;
            ask              <= 1'b0;
            record_elsewhere <= !fresh && !back;
        end
        // Without an enable, as the answer comes late.
        holds <= !rst && (s_xlate_valid && translating && s_xlate_hit || holds && !m_xlate_done);
    end

    always_comb begin
        next_state = state;
        case (state)
            SELECT: if (m_select_valid && m_select_ready) next_state = ANSWER;
            ANSWER: if (answers) next_state = has_space ? TRANSLATE : THROW;
            TRANSLATE: if (s_xlate_valid) next_state = WRITE;
            WRITE: if (!busy) next_state = lost ? THROW : turn ? TRANSLATE : closed && settled ? COMMIT : WRITE;
            THROW: if (ended) next_state = COMMIT;
            default: if (m_commit_valid && m_commit_ready) next_state = SELECT;
        endcase
        if (rst) next_state = SELECT;
    end

    always_ff @(posedge clk) begin
        state       <= next_state;
        // Each without what decides of the commit, which comes late.
        answering   <= !rst && (state == SELECT ? m_select_valid && m_select_ready : answering && !answers);
        no_answer   <= rst || (state == SELECT ? !m_select_valid || !m_select_ready : no_answer || s_select_valid);
        translating <= !rst && (state == WRITE ? !busy && !lost && turn
                                : answering ? answers && has_space : translating && !s_xlate_valid);
        if (cut != m_accepted) begin
            on_the_way <= cut ? one_more : ~one_less;
            none_left  <= !cut && one_left;
            one_left   <= cut ? none_left : on_the_way == 8'd2;
        end
        next   <= m_commit_valid && m_commit_ready;
        missed <= s_xlate_valid && translating && !s_xlate_hit;
        if (rst) begin
            on_the_way <= '0;
            none_left  <= 1'b1;
            one_left   <= 1'b0;
            next       <= 1'b0;
            missed     <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        if (answers) begin
            status          <= {1'b0, s_select_status};
            address         <= s_select_address[63:4];
            sequence_number <= s_select_sequence;
            bare            <= s_select_bare;
            stride          <= s_select_stride;
            func            <= s_select_func;
            placed          <= now_cycle_ts[31:0];
        end
        if (missed) status <= 4'd4;
        if (m_accepted) placed <= now_cycle_ts[31:0];
    end

    // All is written in the cycle that reports the last chunk. An upstream error has priority over a missing
    // address.
    assign m_commit_valid  = state == COMMIT && (none_left || (one_left && m_accepted));
    assign m_commit_status = end_user == 2'd1 ? 4'd8 : end_user == 2'd2 ? 4'd6 : end_user == 2'd3 ? 4'd7
                                 : status == 0 && too_long ? 4'd3 : status;
    assign m_commit_length          = end_bytes;
    assign m_commit_timestamp_ns    = timestamp_ns;
    assign m_commit_timestamp_valid = timestamp_valid;
    assign m_commit_cycle_ts_mac    = meta[layouts_pkg::RX_META_CYCLE_TS_MAC_AT +: 32];
    assign m_commit_cycle_ts_parsed = meta[layouts_pkg::RX_META_CYCLE_TS_PARSED_AT +: 32];
    assign m_commit_cycle_ts_placed = m_accepted ? now_cycle_ts[31:0] : placed;

    assign idle = !meta_valid;

    wire unused = &{1'b0, now_cycle_ts[63:32], meta[layouts_pkg::RX_META_DELIVERY_MODE_AT +: 2], s_select_address[3:0],
                    s_xlate_address[11:0]};
endmodule
