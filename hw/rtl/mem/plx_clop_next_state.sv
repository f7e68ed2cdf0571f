// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The next state of one list of buffers after one operation (docs/formats/clop.md), in two stages:
// sums and the payload's effect on the current buffer; then, in the next cycle, what becomes of the buffer.
// `plx_clop` reads the list's state and settings for the first stage, and writes back the outputs of the
// second; the list's next operation begins after that.
//
//   select  space for a payload: after the last one, or in the next buffer
//   commit  a payload has been written, or dropped: only now the write pointer advances
//   look    checks whether the oldest payload has timed out, or software requested a flush
//   begin   the list is enabled: buffer 0, number 0

module plx_clop_next_state #(
    parameter STATE_W = 491  // bits of a state
) (
    input  logic               clk,
    // The operation of the first stage, if there is one, enters the second.
    input  logic               advance,

    // First stage. The operation.
    input  logic               do_select,
    input  logic               do_commit,
    input  logic               do_look,
    input  logic               do_begin,

    // The payload: bytes (of a select: at most), timestamp, stages; its status.
    input  logic [15:0]        length,
    input  logic [63:0]        timestamp_ns,
    input  logic               timestamp_valid,
    input  logic [95:0]        stages,
    input  logic [3:0]         status,

    // Settings of the list; time.
    input  logic               enable,
    input  logic               flush,
    input  logic [63:0]        base,
    input  logic [30:0]        size,
    input  logic [16:0]        count,
    input  logic               bare,
    input  logic [15:0]        stride,
    input  logic [30:0]        timeout,
    input  logic [31:0]        released,
    input  logic [63:0]        now,

    // State before.
    input  logic [STATE_W-1:0] state,

    // Second stage. Room in the list's event queue.
    input  logic               room,

    // State after; the fields that registers show.
    output logic [STATE_W-1:0] next_state,
    output logic [31:0]        sts_serial,
    output logic [30:0]        sts_used,
    output logic [31:0]        sts_sequence,

    // Response of a select.
    output logic [2:0]         select_status,
    output logic [63:0]        select_address,

    // There are payloads that might be announced, whether the buffer is due or not. It is due, and
    // can be announced; its event, without list. The flush is done.
    output logic               possible,
    output logic               wanted,
    output logic [511:0]       record,
    output logic               flushed
);
    // The state: of the current buffer, and numbers.
    logic [63:0] start, first_timestamp_ns, oldest;
    logic [30:0] used;
    logic [15:0] index;
    logic [31:0] serial, number, first, last;
    logic [26:0] payloads;
    logic        stamped;
    logic [95:0] last_stages;

    generate
        if (STATE_W != 64 + 31 + 16 + 32 + 32 + 27 + 32 + 32 + 1 + 64 + 64 + 96)
            STATE_W_is_not_that_of_the_state parameter_error ();
    endgenerate

    assign {start, used, index, serial, number, payloads, first, last, stamped, first_timestamp_ns, oldest,
            last_stages} = state;

    // ---- First stage: sums, and the payload's effect on the buffer ----------------------------------

    // Space of the payload: after a record, to the next multiple of 16 B, or a stride.
    wire [16:0] padded = ({1'b0, length} + 17'd31) & ~17'd15;
    wire [19:0] pitch  = {stride, 4'd0};
    wire [20:0] space  = bare ? {1'b0, pitch} : {4'd0, padded};
    wire [20:0] least  = bare ? {1'b0, pitch} : 21'd16;

    // A written payload belongs to the buffer; every offered payload has a number.
    wire        adds   = do_commit && status == 4'd0;
    wire        opens  = adds && payloads == 0;
    wire [31:0] age    = now[31:0] - stages[31:0];

    // Whether it fits after the others, and whether another payload fits then: the used bytes and these,
    // less the size of the buffer, in one sum.
    wire [17:0] padded_and_16 = {1'b0, padded} + 18'd16;
    wire [21:0] both          = !adds ? {1'b0, least} : bare ? {1'b0, pitch, 1'b0} : {4'd0, padded_and_16};
    wire [32:0] held          = {2'd0, used};
    wire [32:0] limit         = ~{2'd0, size};
    wire [32:0] one           = {12'd0, space};
    wire [32:0] two           = {11'd0, both};
    wire [32:0] one_carry     = (held & one) | ((held | one) & limit);
    wire [32:0] two_carry     = (held & two) | ((held | two) & limit);
    wire [32:0] over          = (held ^ one ^ limit) + {one_carry[31:0], 1'b0};
    wire [32:0] beyond        = (held ^ two ^ limit) + {two_carry[31:0], 1'b0};

    wire [63:0] distance = timestamp_ns - first_timestamp_ns;

    logic        selects, looks, begins, is_on, flushes, fits, fits_more, too_large, no_pitch, too_long, apart, has_some,
                 put_some, put_stamped, untimed;
    logic [63:0] put_start, put_base, put_timestamp_ns, put_oldest;
    logic [32:0] reach;
    logic [30:0] put_used, put_size, put_timeout;
    logic [15:0] put_index;
    logic [16:0] put_count;
    logic [31:0] put_serial, put_number, put_first, put_last, waited, with_reader;
    logic [26:0] put_payloads;
    logic [95:0] put_stages;

    always_ff @(posedge clk) if (advance) begin
        selects      <= do_select;
        looks        <= do_commit || do_look;
        begins       <= do_begin;
        is_on        <= enable;
        flushes      <= flush;
        too_large    <= {11'd0, space} > {1'b0, size};
        no_pitch     <= bare && pitch == 0;
        too_long     <= bare && {4'd0, length} > pitch;
        // A sum from 0 on: more than the size.
        fits         <= over[32];
        fits_more    <= beyond[32];
        // 32 bits suffice for the payload's timestamp, or else it is apart from the first one.
        untimed          <= !timestamp_valid || !stamped;
        reach            <= distance[63:31];
        has_some         <= payloads != 0;
        put_some         <= adds || payloads != 0;
        put_start        <= start;
        put_base         <= base;
        put_size         <= size;
        put_count        <= count;
        put_timeout      <= timeout;
        put_index        <= index;
        put_serial       <= serial;
        put_number       <= number + {31'd0, do_commit && status <= 4'd4};
        put_used         <= adds ? used + {10'd0, space} : used;
        put_payloads     <= payloads + {26'd0, adds};
        put_first        <= opens ? number : first;
        put_last         <= adds ? number : last;
        put_stamped      <= stamped || (adds && timestamp_valid);
        put_timestamp_ns <= adds && !stamped ? timestamp_ns : first_timestamp_ns;
        put_oldest       <= opens ? now - {32'd0, age} : oldest;
        put_stages       <= adds ? stages : last_stages;
        waited           <= opens ? age : now[31:0] - oldest[31:0];
        with_reader      <= serial - released;
    end

    // ---- Second stage: what becomes of the buffer ----------------------------------------------------

    assign sts_serial   = put_serial;
    assign sts_used     = put_used;
    assign sts_sequence = put_number;

    assign apart = !untimed && reach != 0 && !(&reach);

    wire oversize = too_large || no_pitch || too_long;
    wire crowded  = has_some && !(fits && !apart);

    // Whether the buffer is due. Full: no further payload fits.
    wire no_more = !fits_more;
    wire late = waited >= {1'b0, put_timeout};
    wire due  = put_some && (no_more || late || flushes);

    assign possible = is_on && put_some;
    assign wanted   = is_on && room && ((selects && !oversize && crowded) || (looks && due));
    assign flushed  = looks && (!put_some || wanted);

    // The next buffer.
    wire        last_buffer  = {1'b0, put_index} + 17'd1 >= put_count;
    wire [63:0] behind       = put_start + {33'd0, put_size};
    wire [63:0] other_start  = last_buffer ? put_base : behind;
    wire [63:0] here         = put_start + {33'd0, put_used};
    wire [15:0] other_index  = last_buffer ? 16'd0 : put_index + 1'b1;
    wire [31:0] other_serial = put_serial + 1'b1;

    assign next_state = begins ? {put_base, {(STATE_W-64){1'b0}}}
                      : {wanted ? other_start : put_start, wanted ? 31'd0 : put_used, wanted ? other_index : put_index,
                         wanted ? other_serial : put_serial, put_number, wanted ? 27'd0 : put_payloads, put_first,
                         put_last, put_stamped && !wanted, put_timestamp_ns, put_oldest, put_stages};

    // The reader may still own an empty buffer. A release beyond the announced buffers releases
    // none: it gives more than `count` owned by the reader.
    wire none_free  = with_reader >= {15'd0, put_count};
    wire none_other = with_reader + 1'b1 >= {15'd0, put_count};
    wire not_mine   = wanted ? none_other : !put_some && none_free;

    assign select_status  = !is_on ? 3'd5 : oversize ? 3'd3 : crowded && !room ? 3'd2 : not_mine ? 3'd1 : 3'd0;
    assign select_address = wanted ? other_start : here;

    wire unused = &{1'b0, distance[30:0], over[31:0], beyond[31:0], one_carry[32], two_carry[32]};

    wire [1:0] reason = selects || no_more ? 2'd0 : late ? 2'd1 : 2'd2;

    always_comb begin
        record = '0;
        record[layouts_pkg::EVENT_RECORD_WIRE_AT +: 64]     = put_stamped ? put_timestamp_ns : 64'd0;
        record[layouts_pkg::EVENT_RECORD_INDEX_AT +: 16]    = put_index;
        record[layouts_pkg::EVENT_RECORD_LENGTH_AT +: 31]   = put_used;
        record[layouts_pkg::CLOP_BUFFER_PAYLOADS_AT +: 27]  = put_payloads;
        record[layouts_pkg::CLOP_BUFFER_FIRST_AT +: 32]     = put_first;
        record[layouts_pkg::CLOP_BUFFER_LAST_AT +: 32]      = put_last;
        record[layouts_pkg::CLOP_BUFFER_REASON_AT +: 2]     = reason;
        record[layouts_pkg::CLOP_BUFFER_OLDEST_AT +: 64]    = put_oldest;
        record[layouts_pkg::CLOP_BUFFER_STAGES_AT +: 96]    = put_stages;
        record[layouts_pkg::EVENT_RECORD_SEQUENCE_AT +: 32] = put_serial;
        record[layouts_pkg::EVENT_RECORD_KIND_AT +: 8]      = layouts_pkg::CLOP_BUFFER_KIND;
        record[layouts_pkg::EVENT_RECORD_FLAGS_AT]          = put_stamped;
    end
endmodule
