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
// By weight or by length of the queue, two walks over the columns come between cycles 1 and 2: the
// first finds the column, the second charges it. Partitions come in turn. One operation at a time.

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

    // Operations: a buffer to the end of a queue; the first of a queue, which is `head` in this cycle and
    // gone after the next; the offered buffer back to the front, or dropped; a choice.
    input  logic                       push,
    input  logic                       pop,
    input  logic [$clog2(COLUMNS)-1:0] op_column,
    input  logic [$clog2(BUFFERS)-1:0] op_buffer,
    input  logic                       give_back,
    input  logic                       drop,
    input  logic                       choose,

    // No choice is under way; the buffer whose head is read, and that it is read.
    output logic                       idle,
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
    localparam WEIGHTS = 2'd1, LENGTH = 2'd2;
    // The last bit: no choice is under way, as `idle` needs it early.
    localparam RESTS = 3;
    localparam REST = 4'd8, FIX = 4'd9, SCAN = 4'd2, SETTLE = 4'd3, POP = 4'd4;
    // Bits of a score: 32 weights of 16 bits, signed.
    localparam SW = 24;

    function automatic [2:0] count_4;
        input [3:0] bits;
        count_4 = {2'b0, bits[0]} + {2'b0, bits[1]} + {2'b0, bits[2]} + {2'b0, bits[3]};
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
    logic [3:0]         state;
    logic               picks;

    // Queues: a column that is not free is empty, whatever its memories hold.
    logic [BW-1:0]      links    [0:BUFFERS-1];
    logic [BW-1:0]      heads    [0:COLUMNS-1];
    logic [BW-1:0]      tails    [0:COLUMNS-1];
    logic [BW:0]        lengths  [0:COLUMNS-1];
    logic [15:0]        weights  [0:COLUMNS-1];
    logic [SW-1:0]      balances [0:COLUMNS-1];
    logic [COLUMNS-1:0] free, last, ready_bit, balanced;

    // The columns of each partition from its turn on; the partition that is next.
    logic [COLUMNS-1:0] from_0, from_1;
    logic [CW-1:0]      turn_0, turn_1;
    logic               next_partition;

    // Cycle 1: a column in each partition. Columns with nodes, of each, as of the cycle before.
    logic               several, two;
    logic [COLUMNS-1:0] live_0, live_1, pick_0, pick_1;
    wire [COLUMNS-1:0]  mine_0     = live_0 & ~(last & {COLUMNS{several}});
    wire [COLUMNS-1:0]  mine_1     = live_1 & ~(last & {COLUMNS{several}});
    wire [COLUMNS-1:0]  open_0     = mine_0 & (free | {COLUMNS{cfg_wait}});
    wire [COLUMNS-1:0]  open_1     = mine_1 & (free | {COLUMNS{cfg_wait}});
    wire                any_0      = |open_0;
    wire                any_1      = |open_1;
    wire                select     = next_partition ? any_1 : !any_0 && any_1;

    plx_evb_pick #(.N(COLUMNS)) partition_0 (.members(open_0), .from(from_0), .first(pick_0));
    plx_evb_pick #(.N(COLUMNS)) partition_1 (.members(open_1), .from(from_1), .first(pick_1));

    // Columns that are not the first one with nodes.
    logic [COLUMNS-1:0] live_behind;

    // The choice that is under way: the column, which was found in each partition; those behind it, its partition's
    // candidates and turn; whether it is in the part from the turn on.
    logic [COLUMNS-1:0] picked_0, picked_1, above, mine, open, passed;
    logic [COLUMNS-1:0] from;
    logic               partition, choice, ahead;
    wire  [COLUMNS-1:0] picked = partition ? picked_1 : picked_0;
    logic [CW-1:0]      column, picked_number;

    generate
        for (genvar i = 0; i < COLUMNS; i = i + 1) begin : g_behind
            localparam [COLUMNS-1:0] BEFORE = ({{(COLUMNS - 1) {1'b0}}, 1'b1} << i) - 1'b1;
            assign above[i]       = |(picked & BEFORE);
            assign live_behind[i] = |(cfg_live & BEFORE);
        end
        for (genvar i = 0; i < CW; i = i + 1) begin : g_number
            wire [COLUMNS-1:0] having;
            for (genvar j = 0; j < COLUMNS; j = j + 1) begin : g_column
                assign having[j] = picked[j] && ((j >> i) & 1) != 0;
            end
            assign picked_number[i] = |having;
        end
    endgenerate

    // Cycle 3: columns from the turn on, up to the one that was found.
    wire [COLUMNS-1:0] beyond_it = partition ? from_1 : from_0;
    wire [COLUMNS-1:0] up_to     = ahead ? from & ~(ready_bit | beyond_it) : from | ~(ready_bit | beyond_it);

    // Cycle 2.
    logic [CW-1:0]  pop_column;
    logic [BW-1:0]  link;
    wire            granted = !choice || |(picked & free);
    wire [CW-1:0]   next_turn = {{(32 - CW) {1'b0}}, column} == COLUMNS - 1 ? '0 : column + 1'b1;

    assign column       = choice ? picked_number : pop_column;
    assign head         = heads[column];
    assign reading      = state == POP;
    assign idle         = state[RESTS] && !picks;
    assign look_weight  = weights[look_column];
    assign look_used    = free[look_column] ? lengths[look_column] : '0;

    // The walks: a column is read in one cycle, and compared in the next.
    logic [CW-1:0]      walk, at, best;
    logic [CW:0]        walked;
    logic               compares, found, behind;
    logic [SW-1:0]      score, best_score, total, weight_at;
    wire [SW-1:0]       balance = balanced[walk] ? balances[walk] : '0;
    wire [SW-1:0]       waiting = {{(SW - BW - 1) {1'b0}}, free[walk] ? lengths[walk] : {(BW + 1) {1'b0}}};
    wire [SW-1:0]       weight  = {{(SW - 16) {1'b0}}, weights[walk]};
    wire                walks   = (state == SCAN || state == SETTLE) && walked != COLUMNS;
    wire                ends    = (state == SCAN || state == SETTLE) && walked == COLUMNS && !compares;
    wire                higher  = $signed(score) > $signed(best_score);
    wire  [COLUMNS-1:0] best_bit = one(best);
    wire  [COLUMNS-1:0] at_bit  = one(at);
    wire                mine_at = |(at_bit & cfg_live & (cfg_partition ^ {COLUMNS{!partition}}));
    wire                open_at = |(at_bit & open);
    wire                passes  = compares && state == SETTLE && (higher || (score == best_score && !behind));
    wire [SW-1:0]       charged = score - (at == best ? total : '0);
    wire                beyond  = $signed(charged) > $signed(total);
    wire                below   = $signed(charged) < -$signed(total);

    // Operations on a queue.
    wire [CW-1:0]  queue   = give_back ? ready_column : op_column;
    wire [COLUMNS-1:0] queue_bit = one(queue);
    wire           empty   = !(|(free & queue_bit));
    wire           add     = push || give_back;
    wire [BW-1:0]  added   = give_back ? ready_buffer : op_buffer;
    wire [BW-1:0]  link_at = give_back ? ready_buffer : tails[queue];
    wire [BW-1:0]  link_to = give_back ? heads[queue] : op_buffer;
    wire           fix     = state == FIX;
    wire           last_one = lengths[pop_column] == 1;

    always_ff @(posedge clk) begin
        if (add && !empty) links[link_at] <= link_to;
        if (reading) link <= links[head];
    end

    always_ff @(posedge clk) begin
        if (fix) heads[pop_column] <= link;
        else if (give_back || (push && empty)) heads[queue] <= added;
        if (push || (give_back && empty)) tails[queue] <= added;
        if (fix) lengths[pop_column] <= lengths[pop_column] - 1'b1;
        else if (add) lengths[queue] <= empty ? {{BW{1'b0}}, 1'b1} : lengths[queue] + 1'b1;
        if (w_weight) weights[look_column] <= weight_data;
        if (compares && state == SETTLE && mine_at && cfg_discipline == WEIGHTS) begin
            balances[at] <= beyond ? total : below ? -total : charged;
        end
    end

    always_ff @(posedge clk) begin
        several <= cfg_live == 0 || |(cfg_live & live_behind);
        two     <= |cfg_partition;
        live_0  <= cfg_live & ~cfg_partition;
        live_1  <= cfg_live & cfg_partition;
        fresh   <= 1'b0;
        free    <= (free & ~(one(pop_column) & {COLUMNS{fix && last_one}})) | (queue_bit & {COLUMNS{add}});
        if (take || drop || give_back) ready <= 1'b0;
        if (take) last <= ready_bit;

        picks <= (take || choose) && !rst;
        if (picks) begin
            picked_0  <= pick_0;
            picked_1  <= pick_1;
            mine      <= select ? mine_1 : mine_0;
            open      <= select ? open_1 : open_0;
            from      <= select ? from_1 : from_0;
            partition <= select;
            ahead     <= select ? |(open_1 & from_1) : |(open_0 & from_0);
            // Columns of the partition whose turn it was.
            passed    <= select == next_partition ? '0 : next_partition ? mine_1 : mine_0;
            walk      <= select ? turn_1 : turn_0;
            choice    <= 1'b1;
            state     <= !any_0 && !any_1 ? REST : cfg_discipline == 0 ? POP : SCAN;
        end else case (state)
            SCAN: if (ends) state <= found && free[best] ? SETTLE : REST;
            SETTLE: if (ends) state <= POP;
            POP: begin
                pop_column <= column;
                state      <= granted ? FIX : REST;
                if (choice && granted) begin
                    ready        <= 1'b1;
                    fresh        <= 1'b1;
                    ready_buffer <= head;
                    ready_column <= column;
                    ready_bit    <= picked;
                    next_partition <= two && !partition;
                    if (partition) begin
                        turn_1 <= next_turn;
                        from_1 <= above;
                    end else begin
                        turn_0 <= next_turn;
                        from_0 <= above;
                    end
                end else begin
                    passed <= '0;
                end
            end
            FIX: begin
                // All before the one that was found are busy.
                if (cfg_discipline == 0) passed <= passed | (mine & up_to);
                state <= REST;
            end
            default: state <= REST;
        endcase

        // One column of a walk.
        compares <= walks;
        at       <= walk;
        score    <= cfg_discipline == LENGTH ? waiting : balance + weight;
        weight_at <= weight;
        if (walks) begin
            walk   <= {{(32 - CW) {1'b0}}, walk} == COLUMNS - 1 ? '0 : walk + 1'b1;
            walked <= walked + 1'b1;
        end
        if (compares && state == SCAN) begin
            if (mine_at) total <= total + weight_at;
            if (open_at && (!found || higher)) begin
                found      <= 1'b1;
                best       <= at;
                best_score <= score;
            end
        end
        if (compares && state == SETTLE) begin
            if (at == best) behind <= 1'b1;
            if (mine_at) balanced <= balanced | at_bit;
        end
        if (passes) passed <= passed | (at_bit & mine & ~free);
        if (picks || ends) begin
            walked <= '0;
            behind <= 1'b0;
        end
        if (picks) begin
            found <= 1'b0;
            total <= '0;
        end
        if (state == SETTLE && ends) {picked_1, picked_0} <= {best_bit, best_bit};

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
            compares       <= 1'b0;
            balanced       <= '0;
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
    wire  [PW-1:0]         f_end = give_back || empty ? '0 : lengths[queue];
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
                if (give_back && at_column == queue) f_place[b*PW +: PW] <= at_place + 1'b1;
                if (add && added == b) begin
                    f_in[b]              <= 1'b1;
                    f_column[b*CW +: CW] <= queue;
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
                wire [BUFFERS-1:0] taken;
                for (genvar b = 0; b < FEW; b = b + 1) begin : g_taken
                    assign taken[b] = f_in[b] && f_column[b*CW +: CW] == c && f_place[b*PW +: PW] == p;
                    always_ff @(posedge clk) if (!rst && taken[b]) begin
                        if (p == 0) assert (first_one == b);
                        if (p + 1 == length) assert (final_one == b);
                    end
                end
                always_ff @(posedge clk) if (!rst) begin
                    assert ((taken & (taken - 1'b1)) == 0 && (taken != 0) == (free[c] && p < length));
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

    always_ff @(posedge clk) if (!rst) begin
        assert (last == (f_some ? {{(COLUMNS - 1) {1'b0}}, 1'b1} << f_last : '0));
        if (picks) assert (several == (cfg_live == 0 || (cfg_live & (cfg_live - 1'b1)) != 0));
        if (picks || state == SCAN || state == SETTLE || f_chosen) assert (!ready);
        if (picks) assert (state == REST);
        if (picks) assert (live_0 == (cfg_live & ~cfg_partition) && live_1 == (cfg_live & cfg_partition));
        assert (state[RESTS] == (state == REST || state == FIX));
        if (state == SCAN || state == SETTLE || f_chosen) begin
            assert (choice && (open & ~cfg_live) == 0);
            if ((open & last) != 0) assert ((cfg_live & ~last) == 0);
        end
        if (state == SCAN && found) assert (open[best]);
        if (state == SETTLE) assert (open[best]);
        if (f_chosen) assert (picked != 0 && (picked & (picked - 1'b1)) == 0 && (picked & open) != 0);
        if (fresh && f_some && ready_column == f_last) assert ((cfg_live & ~ready_bit) == 0);
    end

    // In turns, any one column with free buffers that may be chosen is passed by each other at most once: the
    // columns from the next one on, up to this one, become fewer with each choice.
    (* anyconst *) logic [CW-1:0] f_mine;
    logic [CW:0]        f_passes = 0, f_next, f_ahead;
    wire                f_open   = open_0[f_mine];
    wire [COLUMNS-1:0]  f_from   = f_chosen ? above : from_0;
    integer             f_d;

    always_comb begin
        f_next = '0;
        for (f_d = 0; f_d < COLUMNS; f_d = f_d + 1) f_next = f_next + !f_from[f_d];
        f_ahead = f_next == COLUMNS ? f_mine : f_mine >= f_next ? f_mine - f_next : f_mine + COLUMNS - f_next;
    end

    always_ff @(posedge clk) begin
        if (picks) f_passes <= !cfg_wait && f_open && any_0 && !pick_0[f_mine] ? f_passes + 1'b1 : '0;
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
