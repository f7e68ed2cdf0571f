// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Three columns of five buffers, columns in turn, in any order of the operations that evb_engine begins.
// Any one buffer is in one place: outside, in the queue of its column, or on offer; none is lost, and
// none is there twice. Buffers of a column leave in the order in which they came. An offered buffer is
// of another column than the last one, if there are several with nodes. A column with free buffers that
// may follow is passed by each other column at most once.
// formal: aiger
// formal: bounded 15
// formal: cover 24
// mutant: if (take) last <= ready_bit; => if (take && several) last <= last;
// mutant: if (take || drop || give_back) ready <= 1'b0; => if (take || give_back) ready <= 1'b0;
// mutant: from_0 <= above; => from_0 <= '1;

module evb_columns_formal (
    input logic       clk,
    input logic       rst,
    input logic       cfg_wait,
    input logic [2:0] any_live,
    input logic [2:0] operation,
    input logic [1:0] any_column,
    input logic [2:0] any_buffer
);
    localparam COLUMNS = 3, BUFFERS = 8, USED = 5;
    localparam PUSH = 3'd1, TAKE = 3'd2, GIVE_BACK = 3'd3, CHOOSE = 3'd4, LIVE = 3'd5, DROP = 3'd6;

    // The buffer and the column that are looked at, and another buffer of that column.
    (* anyconst *) logic [2:0] which, other;
    (* anyconst *) logic [1:0] mine;

    logic [2:0]  live = 3'b111;
    logic        idle, reading, ready, fresh, may_follow;
    logic [2:0]  head, ready_buffer;
    logic [1:0]  ready_column;
    logic [15:0] look_weight;
    logic [3:0]  look_used;
    logic [5:0]  inc_passed;

    // Each operation when the one before is done.
    logic        running = 0, waits_one = 0;
    wire         calm = idle && !fresh && !rst && !waits_one;
    logic [7:0]  held = 0;
    wire         push = calm && operation == PUSH && any_buffer < USED && !held[any_buffer] && any_column < COLUMNS
                     && (any_buffer != which && any_buffer != other || any_column == mine);
    wire         take = idle && !rst && !waits_one && ready && operation == TAKE;
    wire         give_back = calm && operation == GIVE_BACK && ready && !may_follow;
    wire         choose = calm && operation == CHOOSE && !ready;
    wire         drop = calm && operation == DROP && ready;

    evb_columns #(
        .COLUMNS(COLUMNS),
        .BUFFERS(BUFFERS)
    ) dut (
        .clk, .rst, .cfg_discipline(2'd0), .cfg_wait, .cfg_live(live), .cfg_partition(3'd0),
        .w_weight(1'b0), .look_column(mine), .weight_data(16'd0), .look_weight, .look_used,
        .push, .pop(1'b0), .op_column(any_column), .op_buffer(any_buffer), .give_back, .drop, .choose,
        .idle, .reading, .head, .ready, .fresh, .ready_buffer, .ready_column, .may_follow, .take, .inc_passed
    );

    always_comb begin
        if (!running) assume (rst);
        assume (mine < COLUMNS && which < USED && other < USED && which != other);
    end

    // The buffer and the other one are free, and which came first; free buffers of the column; the column
    // of the last event.
    logic       here = 0, there = 0, first = 0;
    logic [2:0] count = 0;
    logic [1:0] last = 3;
    wire        gone = take || drop;

    always_ff @(posedge clk) begin
        running   <= 1'b1;
        waits_one <= calm && operation == LIVE;
        if (calm && operation == LIVE) live <= any_live;
        if (push) held[any_buffer] <= 1'b1;
        if (gone) held[ready_buffer] <= 1'b0;
        if (push && any_buffer == which) begin
            here  <= 1'b1;
            first <= !there;
        end
        if (push && any_buffer == other) there <= 1'b1;
        if (gone && ready_buffer == which) here <= 1'b0;
        if (gone && ready_buffer == other) begin
            there <= 1'b0;
            first <= 1'b1;
        end
        if (push && any_column == mine) count <= count + 1'b1;
        if (gone && ready_column == mine) count <= count - 1'b1;
        if (take) last <= ready_column;
        if (rst) begin
            held  <= 0;
            here  <= 0;
            there <= 0;
            count <= 0;
            last  <= 3;
            live  <= 3'b111;
        end
    end

    wire [2:0] others = live & ~(3'd1 << ready_column);
    wire       offered = ready && !fresh && ready_column == mine;

    always_ff @(posedge clk) if (running && !rst) begin
        // None is lost, and none is in two places.
        assert (look_used + {3'd0, offered} == {1'b0, count});
        if (ready) begin
            assert (held[ready_buffer]);
            if (ready_buffer == which || ready_buffer == other) assert (ready_column == mine);
            // In order.
            if (here && there && ready_buffer == which) assert (first);
            if (here && there && ready_buffer == other) assert (!first);
            // Not the same column again, unless there is no other.
            if (fresh && last == ready_column) assert (others == 0);
        end
        cover (ready && here && there && ready_buffer == which);
        cover (give_back);
    end

    wire unused = &{1'b0, reading, head, look_weight, inc_passed};
endmodule
