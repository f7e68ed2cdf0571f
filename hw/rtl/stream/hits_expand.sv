// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Expands a container of compressed hits (docs/formats/rich-hits.md). Bytes enter a window of 24,
// are read from its start, and go to an output window, from which words leave. Each cycle reads the
// input of one output word: the head of an event, four indices, or eight fine times. The last word
// leaves when all of the container has been read, and reports its validity.

module hits_expand (
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

    // Bytes in: those of the window, all of the container; the last has arrived.
    logic [191:0] window;
    logic [4:0]   held;
    logic [15:0]  total;
    logic         ended, was_bad;

    // Bytes out.
    logic [127:0] made;
    logic [4:0]   count;

    // State of the reader.
    logic [2:0]   state;
    logic [1:0]   head_word;
    logic [15:0]  events, payload_length, next_index;
    logic [63:0]  first_timestamp;
    logic [31:0]  slot;
    logic         first_event, no_magic, other_version, wrong;
    logic [7:0]   hits, left;

    // The next bytes.
    wire [7:0]  byte_0  = window[7:0];
    wire [7:0]  byte_1  = window[15:8];
    wire [7:0]  byte_2  = window[23:16];
    wire        long    = byte_0[7];
    wire [13:0] gap     = {long ? byte_1[6:0] : 7'd0, byte_0[6:0]};
    wire        overlong = long && byte_1[7];
    wire [4:0]  code    = long ? 5'd2 : 5'd1;
    wire [7:0]  n       = long ? byte_2 : byte_1;
    wire [31:0] at_slot = first_event ? 32'd0 : slot + 32'd1 + {18'd0, gap};
    wire [4:0]  some    = held < 5'd8 ? held : 5'd8;
    wire [4:0]  times   = {1'b0, left} < {4'd0, some} ? left[4:0] : some;

    // Codes of indices: as many as have arrived and belong to the event, at most four.
    wire  [63:0] codes = window[63:0];
    logic [63:0] code_rest, indices;
    logic [7:0]  code_0, code_1, code_left;
    logic [6:0]  low, high;
    logic [4:0]  code_end, index_bytes;
    logic [15:0] number, index_next;
    logic [2:0]  found;
    logic        code_there, refused;
    integer c;
    always_comb begin
        code_rest   = codes;
        code_left   = left;
        code_there  = 1'b1;
        index_bytes = '0;
        index_next  = next_index;
        indices     = '0;
        found       = '0;
        refused     = 1'b0;
        for (c = 0; c < 4; c = c + 1) begin
            code_0     = 8'(code_rest);
            code_1     = code_0 < 8'h80 ? 8'd0 : 8'(code_rest >> 8);
            code_end   = index_bytes + (code_0 < 8'h80 ? 5'd1 : 5'd2);
            low        = 7'(code_0);
            high       = 7'(code_1);
            number     = index_next + {2'd0, high, low};
            code_there = code_there && held >= code_end && code_left != 0;
            if (code_there) begin
                code_rest   = code_0 < 8'h80 ? code_rest >> 8 : code_rest >> 16;
                code_left   = code_left - 8'd1;
                index_bytes = code_end;
                index_next  = number + 16'd1;
                indices     = indices | (64'(number) << (16 * c));
                found       = found + 3'd1;
                refused     = refused || code_1 >= 8'h80 || number >= INDICES;
            end
        end
    end

    // One step: bytes read, and bytes written, up to 8.
    wire        can     = count <= 5'd8 || m_ready;
    wire [4:0]  wanted  = state == HEAD ? 5'd8 : state == EVENT ? code + 5'd1 : state == INDEX ? code : 5'd1;
    wire        there   = held >= wanted;
    wire        none    = state == EVENT && events == 0;
    wire        step    = busy && can && state != FINISH && there && !none && !(wrong || other_version || no_magic);
    wire        stuck   = busy && state != FINISH && (none || wrong || other_version || no_magic || (ended && !there));
    wire        all_out = state == FINISH && ended && held == 0;

    logic [4:0]  reads, writes;
    logic [63:0] adds;
    logic        ends_event;
    always_comb begin
        reads      = '0;
        writes     = '0;
        adds       = '0;
        ends_event = 1'b0;
        if (step) begin
            case (state)
                HEAD: begin
                    reads  = 5'd8;
                    writes = 5'd8;
                    adds   = head_word == 0 ? with_version : first_word;
                end
                EVENT: begin
                    reads  = code + 5'd1;
                    writes = 5'd8;
                    adds   = {16'd0, 8'd0, n, at_slot};
                end
                INDEX: begin
                    reads  = index_bytes;
                    writes = {1'b0, found, 1'b0};
                    adds   = indices;
                end
                default: begin
                    reads      = times;
                    writes     = times;
                    adds       = first_word & ~(64'hFFFFFFFFFFFFFFFF << {times, 3'd0});
                    ends_event = {3'd0, times} == left;
                end
            endcase
        end else if (state == FINISH) begin
            reads = held;
        end
    end

    wire [63:0] first_word   = window[63:0];
    wire [63:0] with_version = {window[63:40], EXPANDED, window[31:0]};

    // The window of bytes in.
    logic [3:0]   comes;
    integer k;
    always_comb begin
        comes = '0;
        for (k = 0; k < 8; k = k + 1) comes = comes + {3'd0, s_keep[k]};
    end

    assign s_ready = held <= 5'd16 && !ended;

    wire         take     = s_valid && s_ready;
    wire [4:0]   rest     = held - reads;
    wire [191:0] shifted  = window >> {reads, 3'd0};
    wire [191:0] incoming = {128'd0, s_data} & ~({192{1'b1}} << {comes, 3'd0});

    always_ff @(posedge clk) begin
        held   <= rest + (take ? {1'b0, comes} : 5'd0);
        window <= shifted | (take ? incoming << {rest, 3'd0} : 192'd0);
        if (take) begin
            total   <= total + {12'd0, comes};
            ended   <= s_last;
            was_bad <= s_bad;
        end
        if (rst || !busy) begin
            held   <= take && !rst ? {1'b0, comes} : '0;
            window <= incoming;
            total  <= {12'd0, comes};
        end
        if (rst || (m_valid && m_ready && m_last)) ended <= 1'b0;
    end

    // The window of bytes out: the last word stays until it is known to be the last.
    wire         sends  = m_valid && m_ready;
    wire [4:0]   kept   = sends ? (count <= 5'd8 ? 5'd0 : count - 5'd8) : count;
    wire [127:0] behind = sends ? made >> 64 : made;
    wire [4:0]   filled = kept + writes;

    assign m_valid = busy && (count > 5'd8 || all_out);
    assign m_data  = made[63:0];
    assign m_last  = all_out && count <= 5'd8;

    always_ff @(posedge clk) begin
        made  <= behind | ({64'd0, adds} << {kept, 3'd0});
        count <= ends_event ? (filled + 5'd7) & ~5'd7 : filled;
        if (rst || !busy) begin
            made  <= '0;
            count <= '0;
        end
    end

    // The reader.
    always_ff @(posedge clk) begin
        if (step) begin
            case (state)
                HEAD: begin
                    head_word <= head_word + 1'b1;
                    if (head_word == 0) begin
                        no_magic      <= first_word[31:0] != MAGIC;
                        other_version <= first_word[39:32] != VERSION;
                        wrong         <= first_word[63:56] != 0;
                    end
                    if (head_word == 1) {payload_length, events} <= first_word[63:32];
                    if (head_word == 2) begin
                        first_timestamp <= first_word;
                        state           <= EVENT;
                    end
                end
                EVENT: begin
                    events      <= events - 1'b1;
                    first_event <= 1'b0;
                    slot        <= at_slot;
                    next_index  <= '0;
                    hits        <= n;
                    left        <= n;
                    if (overlong || (first_event && gap != 0)) wrong <= 1'b1;
                    if (n != 0) state <= INDEX;
                end
                INDEX: begin
                    next_index <= index_next;
                    left       <= code_left == 0 ? hits : code_left;
                    if (refused) wrong <= 1'b1;
                    if (code_left == 0) state <= TIMES;
                end
                default: begin
                    left <= left - {3'd0, times};
                    if (ends_event) state <= EVENT;
                end
            endcase
        end else if (state == FINISH) begin
            // Bytes behind the last event.
            if (held != 0) wrong <= 1'b1;
        end else if (stuck) begin
            // All is read, or the container is invalid; the rest is discarded.
            state <= FINISH;
            if (!none) wrong <= 1'b1;
        end
        if (take && !busy) begin
            busy        <= 1'b1;
            state       <= HEAD;
            head_word   <= '0;
            first_event <= 1'b1;
            slot        <= '0;
            {no_magic, other_version, wrong} <= '0;
        end
        if (sends && m_last) busy <= 1'b0;
        if (rst) busy <= 1'b0;
    end

    // In the order of the software decoder's checks.
    wire [64:0] last_timestamp = {1'b0, first_timestamp} + {33'd0, slot};
    wire        short_of_head  = total < 16'd24;
    wire        contradicts    = wrong || total != payload_length + 16'd24 || last_timestamp[64];

    assign m_user = was_bad ? 2'd1 : short_of_head || no_magic ? 2'd2 : other_version ? 2'd3 : contradicts ? 2'd2 : 2'd0;

    wire unused = &{1'b0, last_timestamp[63:0]};
endmodule
