// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// One list of three buffers of any size, through any operations in the order that clop guarantees. A
// payload's space is in the current buffer, after the committed payloads, bare or with records; no
// buffer is written before its reader has returned it; an announcement is of a buffer with
// payloads, with room for the event, and covers exactly the payloads committed since the one
// before; none that is due is delayed. For any buffers that a host returns without owning them,
// addresses stay in the buffers. Clocks have fewer bits here, and addresses 33. An operation takes two
// cycles, and the next one begins after it.
// formal: aiger
// formal: induction 3
// formal: cover 16
// mutant: fits         <= over[32] => fits         <= 1'b1
// mutant: with_reader >= {15'd0, put_count} => with_reader > {15'd0, put_count}
// mutant: with_reader + 1'b1 >= => with_reader >=
// mutant: fits_more    <= beyond[32] => fits_more    <= 1'b1
// mutant: !adds ? {1'b0, least} => 1'b1 ? {1'b0, least}

module plx_clop_next_state_formal (
    input logic        clk,
    input logic [2:0]  op,
    input logic        off,
    input logic [15:0] any_length,
    input logic [33:0] any_stamp,
    input logic        any_stamp_valid,
    input logic [31:0] placed_at,
    input logic [3:0]  how,
    input logic        flush,
    input logic        room,
    input logic [31:0] time_now,
    input logic [1:0]  returned,
    input logic [31:0] invented
);
    localparam SELECT = 3'd1, COMMIT = 3'd2, LOOK = 3'd3, BEGIN = 3'd4;
    localparam STATE_W = 491;
    localparam [31:0] COUNT = 3;

    // Settings, stable while the list is enabled; and whether the host returns only buffers it owns.
    (* anyconst *) logic [31:0] low_base;
    (* anyconst *) logic [30:0] size;
    (* anyconst *) logic        bare;
    (* anyconst *) logic [15:0] stride;
    (* anyconst *) logic [30:0] timeout;
    (* anyconst *) logic        honest;

    // The second cycle of an operation; its inputs are those of the first.
    logic late = 0;
    localparam IN_W = 3 + 16 + 34 + 1 + 32 + 4 + 1 + 32 + 32;
    logic [IN_W-1:0] before;
    wire  [IN_W-1:0] given = {op, any_length, any_stamp, any_stamp_valid, placed_at, how, flush, time_now, invented};

    always_ff @(posedge clk) begin
        late   <= !late;
        before <= given;
    end
    always_comb if (late) assume (given == before);

    logic               begun = 0, enable = 0, open = 0, live, placing;
    logic [31:0]        honest_released = 0;
    logic [STATE_W-1:0] state;
    logic [15:0]        bound;
    logic [63:0]        wire_stamp;
    logic               wire_stamp_valid;

    wire [31:0] released = honest ? honest_released : invented;
    wire [15:0] length   = any_length;
    wire [63:0] timestamp_ns    = do_commit ? wire_stamp : {30'd0, any_stamp};
    wire        timestamp_valid = do_commit ? wire_stamp_valid : any_stamp_valid;
    wire [63:0] base     = {32'd0, low_base};
    wire [95:0] stages   = {64'd0, placed_at};
    wire [63:0] now      = {32'd0, time_now};
    wire        do_select = op == SELECT, do_commit = op == COMMIT, do_look = op == LOOK, do_begin = op == BEGIN;
    wire [3:0]  status  = !live && how <= 4'd4 ? 4'd5 : how;

    logic [STATE_W-1:0] next_state;
    logic [31:0]        sts_serial, sts_sequence;
    logic [30:0]        sts_used;
    logic [2:0]         select_status;
    logic [63:0]        select_address;
    logic               possible, wanted, flushed;
    logic [511:0]       record;

    plx_clop_next_state #(.STATE_W(STATE_W)) dut (.*, .count(17'd3), .advance(!late));

    // The fields of the state.
    wire [63:0] is_start;
    wire [30:0] is_used;
    wire [15:0] is_index;
    wire [31:0] is_serial, is_number, is_first, is_last;
    wire [26:0] is_payloads;
    wire [224:0] rest;
    assign {is_start, is_used, is_index, is_serial, is_number, is_payloads, is_first, is_last, rest} = state;

    // Guarantees of clop: one payload at a time is open, a scan is of a list with none, and a payload
    // without space is not committed as placed.
    always_comb begin
        assume (op <= BEGIN);
        if (!begun) assume (op == BEGIN || op == 0);
        if (do_select || do_look) assume (!open);
        if (do_begin) assume (!enable);
        if (do_commit) begin
            assume (open && how <= 4'd8 && how != 4'd5);
            if (how == 0) assume (placing && length <= bound);
        end
        assume ({30'd0, returned} <= is_serial - honest_released);
    end

    // The model of the list: the current buffer, and the payloads that were committed to it.
    logic [63:0] start;
    logic [1:0]  index;
    logic [31:0] serial, number, first, last;
    logic [30:0] used;
    logic [26:0] payloads;

    wire [16:0] padded = ({1'b0, length} + 17'd31) & ~17'd15;
    wire [31:0] space  = bare ? {12'd0, stride, 4'd0} : {15'd0, padded};
    wire [16:0] open_padded = ({1'b0, bound} + 17'd31) & ~17'd15;
    wire [31:0] open_space  = bare ? {12'd0, stride, 4'd0} : {15'd0, open_padded};
    wire        adds   = do_commit && status == 0;
    wire [30:0] now_used     = used + (adds ? space[30:0] : 31'd0);
    wire [26:0] now_payloads = payloads + {26'd0, adds};
    wire [1:0]  next_index   = index == 2 ? 2'd0 : index + 1'b1;
    wire [63:0] next_start   = index == 2 ? base : start + {33'd0, size};

    always_ff @(posedge clk) if (late) begin
        if (op != 0) state <= next_state;
        if (off) enable <= 1'b0;
        honest_released <= honest_released + {30'd0, returned};
        if (wanted) begin
            start  <= next_start;
            index  <= next_index;
            serial <= serial + 1'b1;
        end
        used     <= wanted ? '0 : now_used;
        payloads <= wanted ? '0 : now_payloads;
        if (do_commit) begin
            open <= 1'b0;
            if (status <= 4) number <= number + 1'b1;
        end
        if (adds) last <= number;
        if (adds && payloads == 0) first <= number;
        if (do_select) begin
            open             <= 1'b1;
            live             <= 1'b1;
            placing          <= select_status == 0;
            bound            <= any_length;
            wire_stamp       <= {30'd0, any_stamp};
            wire_stamp_valid <= any_stamp_valid;
        end
        if (do_begin) begin
            begun           <= 1'b1;
            enable          <= 1'b1;
            live            <= 1'b0;
            start           <= base;
            index           <= 2'd0;
            serial          <= '0;
            number          <= '0;
            used            <= '0;
            payloads        <= '0;
            honest_released <= '0;
        end
    end

    // The state equals the model.
    always_comb if (begun) begin
        assert (is_start == start && is_index == {14'd0, index} && is_serial == serial && is_number == number);
        assert (is_used == used && is_payloads == payloads);
        if (payloads != 0) assert (is_first == first && is_last == last);
        assert (index < 3 && start == (index == 0 ? base : index == 1 ? base + {33'd0, size} : base + {32'd0, size, 1'b0}));
        assert (used <= size && {payloads, 4'd0} <= used && (payloads != 0) == (used != 0));
        if (honest) assert (serial - honest_released <= (payloads != 0 ? COUNT - 1 : COUNT));
        if (open && live && placing) begin
            assert ({1'b0, used} + open_space <= {1'b0, size} && open_space != 0);
            if (bare) assert ({16'd0, bound} <= open_space);
            if (honest) assert (serial - honest_released <= COUNT - 1);
        end
    end

    // The result of a select.
    wire [31:0] serial_then = serial + {31'd0, wanted};
    wire [63:0] offset      = select_address - (wanted ? next_start : start);

    always_comb if (late && begun && do_select) begin
        if (select_status == 0) begin
            assert (enable && offset == {33'd0, wanted ? 31'd0 : used});
            assert ({1'b0, offset[30:0]} + space <= {1'b0, size});
            if (honest) assert (serial_then - honest_released < COUNT);
        end
        if (select_status == 2) assert (!room && payloads != 0);
        if (select_status == 1 && honest) assert (serial_then - honest_released == COUNT);
        if (select_status == 3) assert (space > {1'b0, size} || (bare && (stride == 0 || {16'd0, length} > space)));
    end

    // Announcements.
    wire [31:0] waited = now[31:0] - (payloads == 0 ? stages[31:0] : rest[127:96]);

    always_comb if (late && begun) begin
        if (wanted) begin
            assert (possible);
            assert (enable && room && now_payloads != 0 && (do_select || do_commit || do_look));
            assert (record[layouts_pkg::EVENT_RECORD_LENGTH_AT +: 32] == {1'b0, now_used});
            assert (record[layouts_pkg::CLOP_BUFFER_PAYLOADS_AT +: 32] == {5'd0, now_payloads});
            assert (record[layouts_pkg::CLOP_BUFFER_FIRST_AT +: 32] == (payloads == 0 ? number : first));
            assert (record[layouts_pkg::CLOP_BUFFER_LAST_AT +: 32] == (adds ? number : last));
            assert (record[layouts_pkg::EVENT_RECORD_INDEX_AT +: 16] == {14'd0, index});
            assert (record[layouts_pkg::EVENT_RECORD_SEQUENCE_AT +: 32] == serial);
        end
        if ((do_commit || do_look) && enable && room && now_payloads != 0) begin
            if (flush || waited >= {1'b0, timeout}) assert (wanted);
            if ({1'b0, now_used} + (bare ? {12'd0, stride, 4'd0} : 32'd16) > {1'b0, size}) assert (wanted);
        end
        cover (wanted && do_select && payloads == 2 && serial == 1 && honest);
        cover (wanted && do_look && payloads == 1);
        cover (do_select && select_status == 1 && honest);
    end
endmodule
