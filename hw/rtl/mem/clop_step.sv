// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The next state of one list of buffers after one operation (docs/formats/clop.md): no registers.
// `clop` reads the list's state and settings, and writes the outputs back.
//
//   select  space for a payload: after the last one, or in the next buffer
//   commit  a payload has been written, or dropped: only now the write pointer advances
//   look    checks whether the oldest payload has timed out, or software requested a flush
//   begin   the list is enabled: buffer 0, number 0

module clop_step #(
    parameter STATE_W = 491  // bits of a state
) (
    // The operation.
    input  logic               do_select,
    input  logic               do_commit,
    input  logic               do_look,
    input  logic               do_begin,

    // The payload: bytes (of a select: at most), time stamp, stages; its outcome.
    input  logic [15:0]        length,
    input  logic [63:0]        stamp,
    input  logic               stamp_valid,
    input  logic [95:0]        stages,
    input  logic [3:0]         outcome,

    // Settings of the list; room in its event queue; time.
    input  logic               enable,
    input  logic               flush,
    input  logic [63:0]        base,
    input  logic [30:0]        size,
    input  logic [16:0]        count,
    input  logic               bare,
    input  logic [15:0]        stride,
    input  logic [30:0]        timeout,
    input  logic [31:0]        released,
    input  logic               room,
    input  logic [63:0]        now,

    // State before and after; the fields that registers show.
    input  logic [STATE_W-1:0] state,
    output logic [STATE_W-1:0] next_state,
    output logic [31:0]        sts_serial,
    output logic [30:0]        sts_used,
    output logic [31:0]        sts_sequence,

    // Response of a select.
    output logic [2:0]         select_outcome,
    output logic [63:0]        select_address,

    // The buffer is due, and can be announced; its event, without list. The flush is done.
    output logic               wanted,
    output logic [511:0]       record,
    output logic               flushed
);
    // The state: of the current buffer, and numbers.
    logic [63:0] start, first_stamp, oldest;
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

    assign {start, used, index, serial, number, payloads, first, last, stamped, first_stamp, oldest, last_stages} = state;

    assign sts_serial   = serial;
    assign sts_used     = used;
    assign sts_sequence = number;

    // Space of the payload: after a record, to the next multiple of 16 B, or a stride.
    wire [16:0] padded   = ({1'b0, length} + 17'd31) & ~17'd15;
    wire [19:0] pitch    = {stride, 4'd0};
    wire [31:0] space    = bare ? {12'd0, pitch} : {15'd0, padded};
    wire        oversize = space > {1'b0, size} || (bare && (pitch == 0 || {4'd0, length} > pitch));

    // Whether it fits after the others, and 32 bits suffice for its stamp (clop.md).
    wire        fits     = {1'b0, used} + space <= {1'b0, size};
    wire [63:0] distance = stamp - first_stamp;
    wire [32:0] reach    = distance[63:31];
    wire        told     = !stamp_valid || !stamped || reach == 0 || &reach;
    wire        crowded  = payloads != 0 && !(fits && told);

    // A written payload belongs to the buffer; every offered payload has a number.
    wire [31:0] age   = now[31:0] - stages[31:0];
    wire        adds  = do_commit && outcome == 4'd0;
    wire        opens = adds && payloads == 0;

    wire [31:0] put_number   = number + {31'd0, do_commit && outcome <= 4'd4};
    wire [30:0] put_used     = adds ? used + space[30:0] : used;
    wire [26:0] put_payloads = payloads + {26'd0, adds};
    wire [31:0] put_first    = opens ? number : first;
    wire [31:0] put_last     = adds ? number : last;
    wire        put_stamped  = stamped || (adds && stamp_valid);
    wire [63:0] put_stamp    = adds && !stamped ? stamp : first_stamp;
    wire [63:0] put_oldest   = opens ? now - {32'd0, age} : oldest;
    wire [95:0] put_stages   = adds ? stages : last_stages;

    // Whether the buffer is due. Full: no further payload fits.
    wire [31:0] least   = bare ? {12'd0, pitch} : 32'd16;
    wire        no_more = {1'b0, put_used} + least > {1'b0, size};
    wire [31:0] waited  = now[31:0] - put_oldest[31:0];
    wire        late    = waited >= {1'b0, timeout};
    wire        due     = put_payloads != 0 && (no_more || late || flush);

    assign wanted  = enable && room && ((do_select && !oversize && crowded) || ((do_commit || do_look) && due));
    assign flushed = (do_commit || do_look) && (put_payloads == 0 || wanted);

    // The next buffer.
    wire        last_buffer   = {1'b0, index} + 17'd1 >= count;
    wire [63:0] next_start    = !wanted ? start : last_buffer ? base : start + {33'd0, size};
    wire [15:0] next_index    = !wanted ? index : last_buffer ? 16'd0 : index + 1'b1;
    wire [31:0] next_serial   = serial + {31'd0, wanted};
    wire [30:0] next_used     = wanted ? '0 : put_used;
    wire [26:0] next_payloads = wanted ? '0 : put_payloads;

    assign next_state = do_begin ? {base, {(STATE_W-64){1'b0}}}
                      : {next_start, next_used, next_index, next_serial, put_number, next_payloads, put_first,
                         put_last, put_stamped && !wanted, put_stamp, put_oldest, put_stages};

    // The reader may still own an empty buffer. A release beyond the announced buffers releases
    // none: it gives more than `count` owned by the reader.
    wire [31:0] with_reader = next_serial - released;
    wire        not_mine    = next_payloads == 0 && with_reader >= {15'd0, count};

    assign select_outcome = !enable ? 3'd5 : oversize ? 3'd3 : crowded && !room ? 3'd2 : not_mine ? 3'd1 : 3'd0;
    assign select_address = next_start + {33'd0, next_used};

    wire unused = &{1'b0, distance[30:0]};

    wire [1:0] reason = do_select || no_more ? 2'd0 : late ? 2'd1 : 2'd2;

    always_comb begin
        record = '0;
        record[layouts_pkg::EVENT_RECORD_WIRE_AT +: 64]     = put_stamped ? put_stamp : 64'd0;
        record[layouts_pkg::EVENT_RECORD_INDEX_AT +: 16]    = index;
        record[layouts_pkg::EVENT_RECORD_LENGTH_AT +: 31]   = put_used;
        record[layouts_pkg::CLOP_BUFFER_PAYLOADS_AT +: 27]  = put_payloads;
        record[layouts_pkg::CLOP_BUFFER_FIRST_AT +: 32]     = put_first;
        record[layouts_pkg::CLOP_BUFFER_LAST_AT +: 32]      = put_last;
        record[layouts_pkg::CLOP_BUFFER_REASON_AT +: 2]     = reason;
        record[layouts_pkg::CLOP_BUFFER_OLDEST_AT +: 64]    = put_oldest;
        record[layouts_pkg::CLOP_BUFFER_STAGES_AT +: 96]    = put_stages;
        record[layouts_pkg::EVENT_RECORD_SEQUENCE_AT +: 32] = serial;
        record[layouts_pkg::EVENT_RECORD_KIND_AT +: 8]      = layouts_pkg::CLOP_BUFFER_KIND;
        record[layouts_pkg::EVENT_RECORD_FLAGS_AT]          = put_stamped;
    end
endmodule
