// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Expands a container of compressed hits (docs/formats/rich-hits.md). Bytes enter a window of 24, and
// are read from its start. Each cycle reads the input of one output word: the head of an event, four
// indices, or eight fine times. Reading only finds where it ends; what it read becomes a word in the
// stages behind it:
//
//   codes    the codes of the word, one beside the other
//   pairs    sums of two of them
//   sums     of all before each
//   word     numbers of indices, of the slot
//
// and words go to an output window. All stages stand while that is full. The last word leaves when all
// of the container has been read and expanded, and reports its validity; after an error reading goes on
// for some cycles, within the bound that the container's length sets.

module plx_hits_expand (
    input  logic        clk,
    input  logic        rst,

    // A container, from its first word in to its last word out.
    output logic        busy,

    // Words in.
    input  logic        s_valid,
    output logic        s_ready,
    input  logic [63:0] s_data,
    input  logic [7:0]  s_keep,
    input  logic        s_last,
    input  logic        s_bad,

    // Words out. With the last one: 0 good, 1 bad before, 2 malformed, 3 another version.
    output logic        m_valid,
    input  logic        m_ready,
    output logic [63:0] m_data,
    output logic        m_last,
    output logic [1:0]  m_user
);
    localparam [31:0] MAGIC   = 32'h48525850;
    localparam [7:0]  VERSION = 8'd1, EXPANDED = 8'd129;
    localparam [15:0] INDICES = 16'd1952;
    localparam HEAD = 3'd0, EVENT = 3'd1, INDEX = 3'd2, TIMES = 3'd3, FINISH = 3'd4;
    localparam NOTHING = 3'd0, FIRST = 3'd1, COPY = 3'd2, OPENS = 3'd3, NUMBERS = 3'd4;

    // Bytes in: those of the window, and which of them there are; all of the container; the last has
    // arrived.
    logic [191:0] window;
    logic [23:0]  there;
    logic [4:0]   held;
    logic [15:0]  total;
    logic         ended, was_bad;

    // State of the reader: events, hits of the current one, those left, and whether there are at least
    // 1, 2, .. 9 left.
    logic [2:0]   state;
    logic [1:0]   head_word;
    logic [15:0]  events, payload_length;
    logic [63:0]  first_timestamp;
    logic         first_event, no_events;
    logic [7:0]   hits, left;
    logic [9:1]   some;
    logic         no_magic, other_version, wrong;

    // Bytes out. There is space for a word.
    logic [191:0] made;
    logic [4:0]   count;
    wire          go = count <= 5'd16;

    // Where the second, third and fourth code begin, and the fourth one ends, if the window has codes: one
    // bit for each byte. Known a cycle ahead.
    logic [8:0] second, third, fourth, behind;

    // Codes of indices that are there and belong to the event.
    wire [4:1] in_window = {|(behind[8:1] & there[7:0]), |(fourth[8:1] & there[7:0]), |(third[8:1] & there[7:0]),
                            |(second[8:1] & there[7:0])};
    wire [4:1] codes     = in_window & some[4:1];
    wire [8:0] codes_end = codes[4] ? behind : codes[3] ? fourth : codes[2] ? third : codes[1] ? second : 9'd1;
    wire       no_codes_left = |(codes & ~some[5:2]);

    // Times likewise.
    wire [8:1] times        = there[7:0] & some[8:1];
    wire       no_time_left = |(times & ~some[9:2]);

    // The head of an event: a code, and the number of hits.
    wire       long = window[7];
    wire [7:0] n    = long ? window[23:16] : window[15:8];

    // Bytes that are read now, as one bit.
    wire [8:0] of_head  = {there[7], 7'd0, !there[7]};
    wire       opens    = !no_events && (long ? there[2] : there[1]);
    wire [8:0] of_event = {5'd0, opens && long, opens && !long, 1'b0, !opens};
    wire [8:0] of_times = {times, 1'b1} & ~{1'b0, times};
    wire [8:0] reads    = state == HEAD ? of_head : state == EVENT ? of_event : state == INDEX ? codes_end : of_times;

    // As bit 0 of `reads`: codes are there from the first one on.
    wire nothing = state == HEAD ? !there[7] : state == EVENT ? !opens : state == INDEX ? !codes[1] : !times[1];
    wire step    = busy && state != FINISH && !reads[0];
    wire stuck   = busy && state != FINISH && (no_events && state == EVENT || wrong || other_version || no_magic
                                               || (ended && nothing));

    // The window of bytes in.
    // Bytes are kept from the first one on.
    wire [3:0] comes = {s_keep[7], s_keep[3] && !s_keep[7], (s_keep[1] && !s_keep[3]) || (s_keep[5] && !s_keep[7]),
                        |(s_keep & ~{1'b0, s_keep[7:1]} & 8'h55)};
    integer k;

    // Nothing moves, and so nothing is taken, without space for a word.
    wire         accepts  = !there[16] && !ended;
    wire         take     = s_valid && accepts && go;
    wire [4:0]   with_new = held + (s_valid && accepts ? {1'b0, comes} : 5'd0);

    assign s_ready = accepts && go;

    logic [63:0] arriving;
    always_comb begin
        for (k = 0; k < 8; k = k + 1) arriving[k*8 +: 8] = s_data[k*8 +: 8] & {8{s_keep[k]}};
    end

    // Whether a word comes is known later than its place.
    wire [191:0] filled_window = window | ({128'd0, arriving} << {held, 3'd0}) & {192{s_valid && accepts}};
    wire [23:0]  filled_there  = there | ({16'd0, s_keep} << held) & {24{s_valid && accepts}};

    logic [191:0] next_window;
    logic [23:0]  next_there;
    logic [3:0]   amount;
    always_comb begin
        next_window = '0;
        next_there  = '0;
        amount      = '0;
        for (k = 0; k <= 8; k = k + 1) begin
            next_window = next_window | ((filled_window >> (8 * k)) & {192{reads[k]}});
            next_there  = next_there | ((filled_there >> k) & {24{reads[k]}});
            amount      = amount | (4'(k) & {4{reads[k]}});
        end
    end

    // The last bit of a byte: its code has another one.
    logic [7:0] longs;
    logic [8:0] next_second, next_third, next_fourth, next_behind;
    wire        long_0 = next_window[7];
    always_comb begin
        for (k = 0; k < 8; k = k + 1) longs[k] = next_window[k*8 + 7];
        next_second = {6'd0, long_0, !long_0, 1'b0};
        next_third  = '0;
        next_fourth = '0;
        next_behind = '0;
        for (k = 2; k <= 4; k = k + 1) begin
            next_third[k] = (next_second[k-1] && !longs[k-1]) || (next_second[k-2] && longs[k-2]);
        end
        for (k = 3; k <= 6; k = k + 1) begin
            next_fourth[k] = (next_third[k-1] && !longs[k-1]) || (next_third[k-2] && longs[k-2]);
        end
        for (k = 4; k <= 8; k = k + 1) begin
            next_behind[k] = (next_fourth[k-1] && !longs[k-1]) || (next_fourth[k-2] && longs[k-2]);
        end
    end

    always_ff @(posedge clk) begin
        if (go) begin
            window <= next_window;
            there  <= next_there;
            held   <= with_new - {1'b0, amount};
            second <= next_second;
            third  <= next_third;
            fourth <= next_fourth;
            behind <= next_behind;
        end
        if (take) begin
            total   <= (busy ? total : 16'd0) + {12'd0, comes};
            ended   <= s_last;
            was_bad <= s_bad;
        end
        if (rst || (busy && state == FINISH)) begin
            window <= '0;
            there  <= '0;
            held   <= '0;
        end
        if (rst || (m_valid && m_ready && m_last)) ended <= 1'b0;
    end

    // The reader.
    // Hits left after what is read: for each number that is read at the side of the others.
    wire  [8:1] one_of = state == TIMES ? of_times[8:1] : {4'd0, codes & ~{1'b0, codes[4:2]}};
    logic [7:0] rest;
    logic [9:1] some_of_rest, some_of_n, some_of_hits;
    integer     d;
    always_comb begin
        rest         = '0;
        some_of_rest = '0;
        for (d = 1; d <= 8; d = d + 1) begin
            rest = rest | ((left - 8'(d)) & {8{one_of[d]}});
            for (k = 1; k <= 9; k = k + 1) some_of_rest[k] = some_of_rest[k] | (left >= 8'(k + d) && one_of[d]);
        end
        for (k = 1; k <= 9; k = k + 1) begin
            some_of_n[k]    = n >= 8'(k);
            some_of_hits[k] = hits >= 8'(k);
        end
    end

    // Words, and validity, at the end of the stages.
    logic refused, drained;

    always_ff @(posedge clk) begin
        if (go && step) begin
            case (state)
                HEAD: begin
                    head_word <= head_word + 1'b1;
                    if (head_word == 0) begin
                        no_magic      <= window[31:0] != MAGIC;
                        other_version <= window[39:32] != VERSION;
                        wrong         <= window[63:56] != 0;
                    end
                    if (head_word == 1) begin
                        {payload_length, events} <= window[63:32];
                        no_events                <= window[47:32] == 0;
                    end
                    if (head_word == 2) begin
                        first_timestamp <= window[63:0];
                        state           <= EVENT;
                    end
                end
                EVENT: begin
                    events      <= events - 1'b1;
                    no_events   <= events == 16'd1;
                    first_event <= 1'b0;
                    hits        <= n;
                    if (n != 0) state <= INDEX;
                end
                INDEX: if (no_codes_left) state <= TIMES;
                default: if (no_time_left) state <= EVENT;
            endcase
            if (state != HEAD) begin
                left <= state == EVENT ? n : state == INDEX && no_codes_left ? hits : rest;
                some <= state == EVENT ? some_of_n : state == INDEX && no_codes_left ? some_of_hits : some_of_rest;
            end
        end else if (go && stuck) begin
            // All is read, or the container is invalid; the rest is discarded.
            state <= FINISH;
            if (!(no_events && state == EVENT)) wrong <= 1'b1;
        end
        // Bytes behind the last event.
        if (busy && state == FINISH && (there[0] || (take && s_keep[0]))) wrong <= 1'b1;
        if (go && refused) wrong <= 1'b1;
        if (take && !busy) begin
            busy        <= 1'b1;
            state       <= HEAD;
            head_word   <= '0;
            first_event <= 1'b1;
            {no_magic, other_version, wrong} <= '0;
        end
        if (m_valid && m_ready && m_last) busy <= 1'b0;
        if (rst) busy <= 1'b0;
    end

    // What was read: the kind of word, its bytes; where its codes are, and which it has; its last byte
    // ends an event.
    logic [2:0]  a_kind, b_kind, c_kind, d_kind;
    logic [63:0] a_bytes, b_bytes, c_bytes, d_bytes;
    logic [8:0]  a_second, a_third, a_fourth;
    logic [4:1]  a_codes;
    logic        a_first;
    logic [3:0]  a_amount, b_amount, c_amount, d_amount;
    logic        a_ends, b_ends, c_ends, d_ends;

    always_ff @(posedge clk) if (go) begin
        a_kind   <= !step ? NOTHING : state == HEAD ? (head_word == 0 ? FIRST : COPY) : state == EVENT ? OPENS
                  : state == INDEX ? NUMBERS : COPY;
        for (k = 0; k < 8; k = k + 1) a_bytes[k*8 +: 8] <= window[k*8 +: 8] & {8{state != TIMES || times[k+1]}};
        a_second <= second;
        a_third  <= third;
        a_fourth <= fourth;
        a_codes  <= codes;
        a_first  <= first_event;
        a_amount <= state == TIMES ? amount : 4'd8;
        a_ends   <= state == TIMES && no_time_left;
        if (rst || !busy) a_kind <= NOTHING;
    end

    // Codes: the two bytes at each place; a code that is not there has gap 0.
    logic [55:0] b_gaps;
    logic        b_overlong;
    logic [2:0]  b_found;
    logic [15:0] code_1, code_2, code_3;
    logic [3:0]  too_long;
    wire  [63:0] at = {code_3, code_2, code_1, a_bytes[15:0]};
    integer c;
    always_comb begin
        code_1   = '0;
        code_2   = '0;
        code_3   = '0;
        too_long = '0;
        for (c = 1; c < 7; c = c + 1) begin
            code_1 = code_1 | (a_bytes[c*8 +: 16] & {16{a_second[c]}});
            code_2 = code_2 | (a_bytes[c*8 +: 16] & {16{a_third[c]}});
            code_3 = code_3 | (a_bytes[c*8 +: 16] & {16{a_fourth[c]}});
        end
        for (c = 0; c < 4; c = c + 1) too_long[c] = at[c*16 + 7] && at[c*16 + 15];
    end

    wire [4:1] a_has = a_kind == OPENS ? 4'b0001 : a_kind == NUMBERS ? a_codes : 4'b0000;

    always_ff @(posedge clk) if (go) begin
        b_kind  <= a_kind;
        b_bytes <= a_kind == FIRST ? {a_bytes[63:40], EXPANDED, a_bytes[31:0]}
                 : a_kind == OPENS ? {48'd0, 8'd0, a_bytes[7] ? a_bytes[23:16] : a_bytes[15:8]} : a_bytes;
        for (c = 0; c < 4; c = c + 1) begin
            b_gaps[c*14 +: 14] <= {at[c*16 + 8 +: 7] & {7{at[c*16 + 7]}}, at[c*16 +: 7]} & {14{a_has[c+1]}};
        end
        // The first event has no gap.
        b_overlong <= |(too_long & a_has) || (a_kind == OPENS && a_first && at[6:0] != 0)
                   || (a_kind == OPENS && a_first && at[7] && at[14:8] != 0);
        b_found    <= !a_codes[1] ? 3'd0 : a_codes[4] ? 3'd4 : a_codes[3] ? 3'd3 : a_codes[2] ? 3'd2 : 3'd1;
        b_amount   <= a_kind == NUMBERS ? (a_codes[4] ? 4'd8 : a_codes[3] ? 4'd6 : a_codes[2] ? 4'd4 : 4'd2) : a_amount;
        b_ends     <= a_ends;
        if (rst || !busy) b_kind <= NOTHING;
    end

    // Pairs: distances from the index before.
    logic [13:0] c_gap_0, c_gap_2;
    logic [14:0] c_pair_0, c_pair_2;
    logic [2:0]  c_found;
    logic        c_overlong, first_slot;

    always_ff @(posedge clk) if (go) begin
        c_kind     <= b_kind;
        c_bytes    <= b_bytes;
        c_gap_0    <= b_gaps[13:0];
        c_gap_2    <= b_gaps[41:28];
        c_pair_0   <= {1'b0, b_gaps[13:0]} + {1'b0, b_gaps[27:14]} + 15'd1;
        c_pair_2   <= {1'b0, b_gaps[41:28]} + {1'b0, b_gaps[55:42]} + 15'd1;
        c_found    <= b_found;
        c_overlong <= b_overlong;
        c_amount   <= b_amount;
        c_ends     <= b_ends;
        if (rst || !busy) c_kind <= NOTHING;
    end

    // Sums: from the index before to each, and to the one behind the last.
    logic [13:0] d_sum_0;
    logic [14:0] d_sum_1;
    logic [15:0] d_sum_2, d_sum_3;
    logic [2:0]  d_found;
    logic        d_overlong;

    always_ff @(posedge clk) if (go) begin
        d_kind     <= c_kind;
        d_bytes    <= c_bytes;
        d_sum_0    <= c_gap_0;
        d_sum_1    <= c_pair_0;
        d_sum_2    <= {1'b0, c_pair_0} + {2'd0, c_gap_2} + 16'd1;
        d_sum_3    <= {1'b0, c_pair_0} + {1'b0, c_pair_2} + 16'd1;
        d_found    <= c_found;
        d_overlong <= c_overlong;
        d_amount   <= c_amount;
        d_ends     <= c_ends;
        if (rst || !busy) d_kind <= NOTHING;
    end

    // The word: numbers. An event's slot is 1 + its gap behind the one before; the first one's is 0.
    logic [15:0] next_index;
    logic [31:0] slot;
    logic [63:0] adds, numbers;
    logic [3:0]  writes;
    logic [2:0]  phase;
    logic        e_overlong, e_numbers;

    // Behind an event, bytes up to a multiple of 8.
    wire [2:0]  d_phase = phase + d_amount[2:0];
    wire [3:0]  padding = {1'b0, 3'd0 - d_phase};
    wire [31:0] at_slot = first_slot ? 32'd0 : slot + {18'd0, d_sum_0} + 32'd1;
    wire [15:0] to_last = d_found == 3'd4 ? d_sum_3 : d_found == 3'd3 ? d_sum_2 : d_found == 3'd2 ? {1'b0, d_sum_1}
                        : {2'd0, d_sum_0};

    assign numbers = {next_index + d_sum_3, next_index + d_sum_2, next_index + {1'b0, d_sum_1}, next_index + {2'd0, d_sum_0}};

    always_ff @(posedge clk) if (go) begin
        adds       <= d_kind == OPENS ? {16'd0, d_bytes[15:0], at_slot}
                    : d_kind == NUMBERS ? numbers & ~(64'hFFFFFFFFFFFFFFFF << {d_found, 4'd0})
                    : d_kind == COPY || d_kind == FIRST ? d_bytes : 64'd0;
        writes     <= d_kind == NOTHING ? 4'd0 : d_ends ? d_amount + padding : d_amount;
        if (d_kind != NOTHING) phase <= d_ends ? 3'd0 : d_phase;
        e_overlong <= d_overlong && d_kind != NOTHING;
        e_numbers  <= d_kind == NUMBERS;
        if (d_kind == OPENS) begin
            slot       <= at_slot;
            first_slot <= 1'b0;
            next_index <= '0;
        end
        if (d_kind == NUMBERS) next_index <= next_index + to_last + 16'd1;
        if (rst || !busy) begin
            writes     <= '0;
            phase      <= '0;
            e_overlong <= 1'b0;
            e_numbers  <= 1'b0;
            slot       <= '0;
            first_slot <= 1'b1;
        end
    end

    integer w;
    always_comb begin
        refused = e_overlong;
        for (w = 0; w < 4; w = w + 1) begin
            refused = refused || (e_numbers && adds[w*16 +: 16] >= INDICES);
        end
    end

    // The window of bytes out: the last word stays until it is known to be the last.
    wire         sends  = m_valid && m_ready;
    wire [4:0]   kept   = count <= 5'd8 ? 5'd0 : count - 5'd8;
    wire [4:0]   filled = count + {1'b0, writes};
    wire [191:0] word   = {128'd0, adds & {64{go}}} << {count, 3'd0};
    wire [191:0] joined = made | word;

    assign m_valid = busy && (count > 5'd8 || drained);
    assign m_data  = made[63:0];
    assign m_last  = drained && count <= 5'd8;

    always_ff @(posedge clk) begin
        made  <= sends ? joined >> 64 : joined;
        count <= !go ? (sends ? kept : count) : !sends ? filled : count <= 5'd8 ? {1'b0, writes} : filled - 5'd8;
        if (rst || !busy) begin
            made  <= '0;
            count <= '0;
        end
    end

    // In the order of the software decoder's checks.
    wire [64:0] last_timestamp = {1'b0, first_timestamp} + {33'd0, slot};
    wire        short_of_head  = total < 16'd24;
    wire        contradicts    = total != payload_length + 16'd24;
    wire        empty = a_kind == NOTHING && b_kind == NOTHING && c_kind == NOTHING && d_kind == NOTHING
                        && writes == 0 && !there[0];
    logic       was_empty, bad_length, bad_head, too_late;

    // Everything has been expanded for a cycle: the verdict is final.
    always_ff @(posedge clk) begin
        bad_length <= contradicts;
        bad_head   <= short_of_head;
        too_late   <= last_timestamp[64];
        was_empty  <= state == FINISH && ended && empty && busy;
        drained    <= was_empty;
        if (rst || !busy || (sends && m_last)) {was_empty, drained} <= '0;
    end

    assign m_user = was_bad ? 2'd1 : bad_head || no_magic ? 2'd2 : other_version ? 2'd3
                  : wrong || bad_length || too_late ? 2'd2 : 2'd0;

    wire unused = &{1'b0, last_timestamp[63:0]};
endmodule
