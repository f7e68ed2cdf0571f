// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Free receive buffers in queues by column, first come first served, and the choice of the next one.
// Each queue is a list in one memory that has a link for each buffer, so that no queue overflows.
//
// The next buffer is chosen before it is needed:
//
//   cycle 0  `take` or `choose`
//   cycle 1  the column: of several live ones not the last, in turn
//   cycle 2  the head of its queue is read
//   cycle 3  the buffer is offered, the queue moves on
//
// By weight or by length of the queue, plx_evb_walk comes between cycles 1 and 2. Partitions come in turn. One
// operation at a time.

module plx_evb_columns #(
    parameter COLUMNS = 32,   // columns, at most
    parameter BUFFERS = 1024  // receive buffers, at most
) (
    input  logic                       clk,
    input  logic                       rst,

    // Settings: discipline 0 turns, 1 weights, 2 length; busy columns are waited for; columns with
    // nodes, of the second partition. Those with nodes change two cycles before an operation at the latest.
    input  logic [1:0]                 cfg_discipline,
    input  logic                       cfg_wait,
    input  logic [COLUMNS-1:0]         cfg_live,
    input  logic [COLUMNS-1:0]         cfg_partition,

    // Weight of a column: written with `w_weight`, and the length of its queue.
    input  logic                       w_weight,
    input  logic [$clog2(COLUMNS)-1:0] look_column,
    input  logic [15:0]                weight_data,
    output logic [15:0]                look_weight,
    output logic [$clog2(BUFFERS):0]   look_used,

    // Operations: a buffer to the end of a queue; the first of a queue, which is `head` in the next cycle and
    // gone after it; the offered buffer back to the front, of which column and number are given as of others, or
    // dropped; a choice, while none is offered.
    input  logic                       push,
    input  logic                       pop,
    input  logic [$clog2(COLUMNS)-1:0] op_column,
    input  logic [$clog2(BUFFERS)-1:0] op_buffer,
    input  logic                       give_back,
    input  logic                       drop,
    input  logic                       choose,

    // No choice is under way, unless one has begun in the cycle before; the buffer whose head is read, and that
    // it is read.
    output logic                       rests,
    output logic                       picks,
    output logic                       reading,
    output logic [$clog2(BUFFERS)-1:0] head,

    // The next buffer, the first cycle of an offer, and whether its column may follow the last one.
    output logic                       ready,
    output logic                       fresh,
    output logic [$clog2(BUFFERS)-1:0] ready_buffer,
    output logic [$clog2(COLUMNS)-1:0] ready_column,
    output logic                       may_follow,
    input  logic                       take,

`ifdef FORMAL
    // Buffers in queues or on offer.
    output logic [BUFFERS-1:0]         f_free,
`endif

    // Busy columns that were passed.
    output logic [5:0]                 inc_passed
);
    localparam CW = $clog2(COLUMNS), BW = $clog2(BUFFERS);
    // The last bit: no choice is under way, as it is needed early.
    localparam RESTS = 2;
    localparam REST = 3'd4, FIX = 3'd5, WALK = 3'd1, POP = 3'd2;

    function automatic [2:0] count_4;
        input [3:0] bits;
        count_4 = {2'b0, bits[0]} + {2'b0, bits[1]} + {2'b0, bits[2]} + {2'b0, bits[3]};
    endfunction

    function automatic several_4;
        input [3:0] bits;
        several_4 = (bits[0] && bits[1]) || (bits[2] && bits[3]) || ((bits[0] || bits[1]) && (bits[2] || bits[3]));
    endfunction

    // The bit of a column.
    function automatic [COLUMNS-1:0] one;
        input [CW-1:0] number;
        integer i;
        for (i = 0; i < COLUMNS; i = i + 1) one[i] = {{(32 - CW) {1'b0}}, number} == i;
    endfunction

    generate
        if (COLUMNS < 2 || COLUMNS > 32) COLUMNS_must_be_2_to_32 parameter_error ();
        if (BUFFERS < 2 || BUFFERS > 65536) BUFFERS_must_be_2_to_65536 parameter_error ();
    endgenerate

    // Cycle 1 is `picks`, in rest, so that `take` is no part of the state's logic.
    logic [2:0]         state;

    // Queues: a column that is not free is empty, whatever its memories hold.
    logic [BW-1:0]      links    [0:BUFFERS-1];
    logic [BW-1:0]      heads    [0:COLUMNS-1];
    logic [BW-1:0]      tails    [0:COLUMNS-1];
    logic [BW:0]        lengths  [0:COLUMNS-1];
    logic [COLUMNS-1:0] free, last, ready_bit;

    // The columns of each partition from its turn on; the partition that is next.
    logic [COLUMNS-1:0] from_0, from_1;
    logic [CW-1:0]      turn_0, turn_1;
    logic               next_partition;

    // Cycle 1: a column in each partition. Those that may be chosen are known in the cycle before: at `take` the
    // offered column will be the last one, at `choose` none is offered.
    logic               several, two;
    logic [COLUMNS-1:0] open_0, open_1, pick_0, pick_1, free_next;
    wire [COLUMNS-1:0]  others     = cfg_live & ~((ready ? ready_bit : last) & {COLUMNS{several}});
    wire                any_0      = |open_0;
    wire                any_1      = |open_1;
    wire                select     = next_partition ? any_1 : !any_0 && any_1;

    plx_evb_pick #(.N(COLUMNS)) partition_0 (.members(open_0), .from(from_0), .first(pick_0));
    plx_evb_pick #(.N(COLUMNS)) partition_1 (.members(open_1), .from(from_1), .first(pick_1));

    // Columns with nodes by fours, by twelves: of each group whether there is one, and whether there are more.
    wire  [35:0] live_columns = {{(36 - COLUMNS) {1'b0}}, cfg_live};
    logic [8:0]  live_4, lives_4;
    logic [2:0]  live_12, lives_12;

    // The choice that is under way: the column; those behind it, as of the cycle before; its partition's columns but
    // for the last one, those that may be chosen, and the turn; whether it is in the part from the turn on.
    logic [COLUMNS-1:0] picked, above, beyond, open, passed;
    logic [COLUMNS-1:0] from;
    logic               partition, choice, ahead;
    logic [CW-1:0]      column, picked_number;
    wire  [COLUMNS-1:0] live_others = cfg_live & ~(last & {COLUMNS{several}});
    wire  [COLUMNS-1:0] mine        = live_others & (cfg_partition ^ {COLUMNS{!partition}});

    generate
        for (genvar i = 0; i < COLUMNS; i = i + 1) begin : g_behind
            localparam [COLUMNS-1:0] BEFORE = ({{(COLUMNS - 1) {1'b0}}, 1'b1} << i) - 1'b1;
            assign above[i] = |(picked & BEFORE);
        end
        for (genvar i = 0; i < 9; i = i + 1) begin : g_live_4
            wire [3:0] group = live_columns[i*4 +: 4];

            assign live_4[i]  = |group;
            assign lives_4[i] = several_4(group);
        end
        for (genvar i = 0; i < 3; i = i + 1) begin : g_live_12
            wire [2:0] any  = live_4[i*3 +: 3];
            wire [2:0] more = lives_4[i*3 +: 3];

            assign live_12[i]  = |any;
            assign lives_12[i] = |more || several_4({1'b0, any});
        end
        for (genvar i = 0; i < CW; i = i + 1) begin : g_number
            wire [COLUMNS-1:0] having;
            for (genvar j = 0; j < COLUMNS; j = j + 1) begin : g_column
                assign having[j] = picked[j] && ((j >> i) & 1) != 0;
            end
            assign picked_number[i] = |having;
        end
    endgenerate

    // Cycle 2.
    logic [CW-1:0]  pop_column;
    logic [BW-1:0]  link;
    wire            granted = !choice || |(picked & free);

    // Cycle 3: columns from the turn on, up to the one that was found.
    wire [COLUMNS-1:0] up_to     = ahead ? from & ~(picked | beyond) : from | ~(picked | beyond);
    wire [CW-1:0]      next_turn = {{(32 - CW) {1'b0}}, pop_column} == COLUMNS - 1 ? '0 : pop_column + 1'b1;

    assign column       = choice ? picked_number : pop_column;
    assign head         = heads[column];
    assign reading      = state == POP;
    assign rests        = state[RESTS];
    assign look_used    = free[look_column] ? lengths[look_column] : '0;

    // The walks.
    logic               walk_none, walk_done;
    logic [CW-1:0]      walk_column;
    logic [COLUMNS-1:0] best_bit, walk_ahead;

    plx_evb_walk #(.COLUMNS(COLUMNS), .BUFFERS(BUFFERS)) walking (
        .clk, .rst, .cfg_discipline, .cfg_live, .cfg_partition,
        .w_weight, .look_column, .weight_data, .look_weight,
        .walks(state == WALK), .turn(select ? turn_1 : turn_0), .partition, .open, .free,
        .column(walk_column), .length(free[walk_column] ? lengths[walk_column] : '0),
        .none(walk_none), .done(walk_done), .best_bit, .ahead(walk_ahead)
    );

    // Operations on a queue.
    wire [COLUMNS-1:0] queue_bit = one(op_column);
    wire           empty   = !(|(free & queue_bit));
    wire           add     = push || give_back;
    wire [BW-1:0]  link_at = give_back ? op_buffer : tails[op_column];
    wire [BW-1:0]  link_to = give_back ? heads[op_column] : op_buffer;
    wire           fix     = state == FIX;
    wire           last_one = lengths[pop_column] == 1;

    assign free_next = (free & ~(one(pop_column) & {COLUMNS{fix && last_one}})) | (queue_bit & {COLUMNS{add}});

    // The columns that may be chosen: whether the popped one has more is known last.
    wire [COLUMNS-1:0] emptied = one(pop_column) & {COLUMNS{fix}} & ~(queue_bit & {COLUMNS{add}}) & ~{COLUMNS{cfg_wait}};
    wire [COLUMNS-1:0] usable  = others & (free | (queue_bit & {COLUMNS{add}}) | {COLUMNS{cfg_wait}});
    wire [COLUMNS-1:0] surely  = usable & ~emptied;
    wire [COLUMNS-1:0] perhaps = usable & emptied;

    always_ff @(posedge clk) begin
        if (add && !empty) links[link_at] <= link_to;
        if (reading) link <= links[head];
    end

    always_ff @(posedge clk) begin
        if (fix) heads[pop_column] <= link;
        else if (give_back || (push && empty)) heads[op_column] <= op_buffer;
        if (push || (give_back && empty)) tails[op_column] <= op_buffer;
        if (fix) lengths[pop_column] <= lengths[pop_column] - 1'b1;
        else if (add) lengths[op_column] <= empty ? {{BW{1'b0}}, 1'b1} : lengths[op_column] + 1'b1;
    end

    always_ff @(posedge clk) begin
        several <= |lives_12 || several_4({1'b0, live_12});
        two     <= |cfg_partition;
        open_0  <= ~cfg_partition & (last_one ? surely : surely | perhaps);
        open_1  <= cfg_partition & (last_one ? surely : surely | perhaps);
        fresh   <= 1'b0;
        free    <= free_next;
        if (take || drop || give_back) ready <= 1'b0;
        if (take) last <= ready_bit;

        picks <= (take || choose) && !rst;
        if (picks) begin
            picked    <= select ? pick_1 : pick_0;
            open      <= select ? open_1 : open_0;
            from      <= select ? from_1 : from_0;
            partition <= select;
            ahead     <= select ? |(open_1 & from_1) : |(open_0 & from_0);
            // Columns of the partition whose turn it was.
            passed    <= live_others & (cfg_partition ^ {COLUMNS{!next_partition}})
                         & {COLUMNS{select != next_partition}};
            choice    <= 1'b1;
            state     <= !any_0 && !any_1 ? REST : cfg_discipline == 0 ? POP : WALK;
        end else case (state)
            WALK: begin
                passed <= passed | (walk_ahead & mine & ~free);
                if (walk_none) state <= REST;
                if (walk_done) begin
                    picked <= best_bit;
                    state  <= POP;
                end
            end
            POP: begin
                pop_column <= column;
                beyond     <= above;
                state      <= granted ? FIX : REST;
                if (choice) begin
                    ready        <= granted;
                    fresh        <= granted;
                    ready_buffer <= head;
                    ready_column <= column;
                    ready_bit    <= picked;
                end
                if (!(choice && granted)) passed <= '0;
            end
            FIX: begin
                if (choice) begin
                    next_partition <= two && !partition;
                    if (partition) begin
                        turn_1 <= next_turn;
                        from_1 <= beyond;
                    end else begin
                        turn_0 <= next_turn;
                        from_0 <= beyond;
                    end
                end
                // All before the one that was found are busy.
                if (cfg_discipline == 0) passed <= passed | (mine & up_to);
                state <= REST;
            end
            default: state <= REST;
        endcase

        if (pop) begin
            state      <= POP;
            choice     <= 1'b0;
            pop_column <= op_column;
        end
        if (rst) begin
            state          <= REST;
            ready          <= 1'b0;
            fresh          <= 1'b0;
            free           <= '0;
            last           <= '0;
            from_0         <= '1;
            from_1         <= '1;
            turn_0         <= '0;
            turn_1         <= '0;
            next_partition <= 1'b0;
        end
    end

    // The offered column's: no others live, or it was not the last.
    wire [COLUMNS-1:0] offered = state == POP && choice ? picked : ready_bit;

    always_ff @(posedge clk) may_follow <= !(|(last & offered)) || (cfg_live & ~offered) == 0;

    // Counted behind cycle 3, of a choice: by eights, then all.
    logic        counted, counts;
    logic [15:0] ones;
    wire  [31:0] of_choice = {{(32 - COLUMNS) {1'b0}}, passed};

    generate
        for (genvar i = 0; i < 4; i = i + 1) begin : g_ones
            wire [3:0] low  = of_choice[i*8 +: 4];
            wire [3:0] high = of_choice[i*8+4 +: 4];

            always_ff @(posedge clk) ones[i*4 +: 4] <= {1'b0, count_4(low)} + {1'b0, count_4(high)};
        end
    endgenerate

    wire [4:0] ones_low  = {1'b0, ones[3:0]} + {1'b0, ones[7:4]};
    wire [4:0] ones_high = {1'b0, ones[11:8]} + {1'b0, ones[15:12]};

    always_ff @(posedge clk) begin
        counted    <= fresh && !rst;
        counts     <= counted && !rst;
        inc_passed <= counts && !rst ? {1'b0, ones_low} + {1'b0, ones_high} : '0;
    end

`ifdef FORMAL
    // Each buffer that is in a queue: its column, its place from the first one on. Of a few buffers, as a proof
    // has them.
    localparam PW = BW + 1, FEW = BUFFERS > 8 ? 0 : BUFFERS;
    logic [BUFFERS-1:0]    f_in = 0;
    logic [BUFFERS*CW-1:0] f_column;
    logic [BUFFERS*PW-1:0] f_place;
    logic [CW-1:0]         f_last = 0;
    logic                  f_some = 0;
    wire  [PW-1:0]         f_end = give_back || empty ? '0 : lengths[op_column];
    // The one on offer.
    logic                  f_offered;
    logic [BW-1:0]         f_offer;
    wire                   f_leaves = fix && choice;

    assign f_free = f_in | ({{(BUFFERS - 1) {1'b0}}, ready} << ready_buffer);

    // No receive buffer is lost or in two places, and those of a column leave in the order in which they came:
    // a buffer comes to the last place, or back to the first one; the places of each queue are taken by one
    // buffer each, in the order of its links; the one of the first place leaves, and is on offer until it is
    // taken, dropped or given back.

    generate
        for (genvar b = 0; b < FEW; b = b + 1) begin : g_f_buffer
            wire [CW-1:0]  at_column = f_column[b*CW +: CW];
            wire [PW-1:0]  at_place  = f_place[b*PW +: PW];
            wire [BW-1:0]  behind_it = links[b];

            always_ff @(posedge clk) begin
                if (fix && at_column == pop_column) begin
                    if (at_place == 0) f_in[b] <= 1'b0;
                    f_place[b*PW +: PW] <= at_place - 1'b1;
                end
                if (give_back && at_column == op_column) f_place[b*PW +: PW] <= at_place + 1'b1;
                if (add && op_buffer == b) begin
                    f_in[b]              <= 1'b1;
                    f_column[b*CW +: CW] <= op_column;
                    f_place[b*PW +: PW]  <= f_end;
                end
                if (rst) f_in[b] <= 1'b0;
            end

            always_ff @(posedge clk) if (!rst) begin
                if (f_in[b]) assert (at_column < COLUMNS);
                if (fix && !last_one && head == b) assert (link == behind_it);
                if (ready && ready_buffer == b) assert (f_leaves || !f_in[b]);
            end
            for (genvar d = 0; d < FEW; d = d + 1) begin : g_behind
                always_ff @(posedge clk) if (!rst && f_in[b] && f_in[d] && at_column == f_column[d*CW +: CW]
                        && f_place[d*PW +: PW] == at_place + 1'b1) assert (behind_it == d);
            end
        end

        for (genvar c = 0; c < COLUMNS; c = c + 1) begin : g_f_column
            wire [BW-1:0] first_one  = heads[c];
            wire [BW-1:0] final_one  = tails[c];
            wire [PW-1:0] length     = lengths[c];

            always_ff @(posedge clk) if (!rst) begin
                if (free[c]) assert (length != 0 && length <= BUFFERS);
                if ((state == POP && !choice || fix) && pop_column == c) assert (free[c]);
            end
            for (genvar p = 0; p < FEW; p = p + 1) begin : g_place
                wire [BUFFERS-1:0] accepted;
                for (genvar b = 0; b < FEW; b = b + 1) begin : g_taken
                    assign accepted[b] = f_in[b] && f_column[b*CW +: CW] == c && f_place[b*PW +: PW] == p;
                    always_ff @(posedge clk) if (!rst && accepted[b]) begin
                        if (p == 0) assert (first_one == b);
                        if (p + 1 == length) assert (final_one == b);
                    end
                end
                always_ff @(posedge clk) if (!rst) begin
                    assert ((accepted & (accepted - 1'b1)) == 0 && (accepted != 0) == (free[c] && p < length));
                end
            end
        end
    endgenerate

    always_ff @(posedge clk) begin
        if (f_leaves) f_offer <= head;
        f_offered <= (f_offered || (state == POP && choice && granted)) && !(take || drop || give_back);
        if (take) begin
            f_last <= ready_column;
            f_some <= 1'b1;
        end
        if (rst) begin
            f_some    <= 1'b0;
            f_offered <= 1'b0;
        end
    end

    always_ff @(posedge clk) if (!rst) begin
        if (state == POP && !choice || fix) assert (pop_column < COLUMNS);
        assert (fresh == f_leaves);
        if (ready) assert (ready_column < COLUMNS && ready_bit == {{(COLUMNS - 1) {1'b0}}, 1'b1} << ready_column);
        assert (ready == f_offered);
        if (ready && !f_leaves) assert (ready_buffer == f_offer);
        if (f_leaves) assert (ready && ready_column == pop_column && ready_buffer == head);
    end

    // Of several columns with nodes the last one is not chosen again.
    wire f_chosen = state == POP && choice;
    wire [COLUMNS-1:0] f_open_now = live_others & (free | {COLUMNS{f_wait}});
    logic f_wait;

    always_ff @(posedge clk) f_wait <= cfg_wait;

    always_ff @(posedge clk) if (!rst) begin
        assert (last == (f_some ? {{(COLUMNS - 1) {1'b0}}, 1'b1} << f_last : '0));
        if (picks) assert (several == ((cfg_live & (cfg_live - 1'b1)) != 0));
        if (picks || state == WALK || f_chosen) assert (!ready);
        if (picks) assert (state == REST);
        if (picks) assert (open_0 == (f_open_now & ~cfg_partition) && open_1 == (f_open_now & cfg_partition));
        assert (state[RESTS] == (state == REST || state == FIX));
        if (state == WALK || f_chosen) begin
            assert (choice && (open & ~cfg_live) == 0);
            if ((open & last) != 0) assert ((cfg_live & ~last) == 0);
        end
        if (f_chosen) assert (picked != 0 && (picked & (picked - 1'b1)) == 0 && (picked & open) != 0);
        if (fresh && f_some && ready_column == f_last) assert ((cfg_live & ~ready_bit) == 0);
    end

    // In turns, any one column with free buffers that may be chosen is passed by each other at most once: the
    // columns from the next one on, up to this one, become fewer with each choice.
    (* anyconst *) logic [CW-1:0] f_mine;
    logic [CW:0]        f_passes = 0, f_next, f_ahead;
    wire                f_open   = open_0[f_mine];
    wire [COLUMNS-1:0]  f_from   = f_chosen ? above : f_leaves ? beyond : from_0;
    integer             f_d;

    always_comb begin
        f_next = '0;
        for (f_d = 0; f_d < COLUMNS; f_d = f_d + 1) f_next = f_next + !f_from[f_d];
        f_ahead = f_next == COLUMNS ? f_mine : f_mine >= f_next ? f_mine - f_next : f_mine + COLUMNS - f_next;
    end

    always_ff @(posedge clk) begin
        if (picks) f_passes <= !f_wait && f_open && any_0 && !pick_0[f_mine] ? f_passes + 1'b1 : '0;
        if (rst) f_passes <= '0;
    end

    always_ff @(posedge clk) if (!rst) begin
        if (f_mine < COLUMNS && cfg_discipline == 0 && !two && cfg_partition == 0) begin
            if (f_chosen) assert (above == ~(picked | (picked - 1'b1)));
            assert ((f_from | f_from << 1) == f_from && f_passes + f_ahead < COLUMNS);
        end
    end
`endif
endmodule
