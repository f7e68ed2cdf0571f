// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Three columns of four buffers, in any order of the operations that plx_evb_engine begins; the invariants are in
// the module. A buffer is in one place: outside, in the queue of its column, or on offer; none is lost, and
// none is there twice. Buffers of a column leave in the order in which they came. An offered buffer is of
// another column than the last one, if there are several with nodes. In turns, a column with free buffers that
// may follow is passed by each other column at most once.
// formal: aiger
// formal: always 6
// formal: cover 24
// mutant: if (take) last <= ready_bit; => if (take && several) last <= last;
// mutant: if (take || drop || give_back) ready <= 1'b0; => if (take || give_back) ready <= 1'b0;
// mutant: from_0 <= beyond; => from_0 <= '1;
// mutant: give_back ? heads[op_column] : op_buffer; => op_buffer;
// mutant: ready ? ready_bit : last => last
// mutant: ~cfg_partition & (last_one ? surely : surely | perhaps) => ~cfg_partition & (surely | perhaps)

module plx_evb_columns_formal (
    input logic       clk,
    input logic       rst,
    input logic       cfg_wait,
    input logic [2:0] any_live,
    input logic [2:0] operation,
    input logic [1:0] any_column,
    input logic [1:0] any_buffer
);
    localparam COLUMNS = 3, BUFFERS = 4;
    localparam PUSH = 3'd1, TAKE = 3'd2, GIVE_BACK = 3'd3, CHOOSE = 3'd4, LIVE = 3'd5, DROP = 3'd6, POP = 3'd7;

    logic [2:0]  live = 3'b111;
    logic        rests, picks, reading, ready, fresh, may_follow;
    logic [1:0]  head, ready_buffer;
    logic [1:0]  ready_column;
    logic [15:0] look_weight;
    logic [2:0]  look_used;
    logic [5:0]  inc_passed;

    // Each operation when the one before is done; a buffer is popped, and known one cycle later.
    logic        running = 0, pops = 0, popped = 0, waits_one = 0;
    wire         free = rests && !picks && !rst && !waits_one && !pops && !popped;
    wire         calm = free && !fresh;
    logic [3:0]  f_free;
    wire         push = calm && operation == PUSH && any_column < COLUMNS && !f_free[any_buffer];
    wire         pop  = calm && operation == POP && any_column < COLUMNS && look_used != 0;
    wire         take = free && ready && operation == TAKE;
    wire         give_back = calm && operation == GIVE_BACK && ready && !may_follow;
    wire         choose = calm && operation == CHOOSE && !ready;
    wire         drop = calm && operation == DROP && ready;

    plx_evb_columns #(
        .COLUMNS(COLUMNS),
        .BUFFERS(BUFFERS)
    ) dut (
        .clk, .rst, .cfg_discipline(2'd0), .cfg_wait, .cfg_live(live), .cfg_partition(3'd0),
        .w_weight(1'b0), .look_column(any_column), .weight_data(16'd0), .look_weight, .look_used,
        .push, .pop, .op_column(give_back ? ready_column : any_column),
        .op_buffer(give_back ? ready_buffer : any_buffer), .give_back, .drop, .choose,
        .rests, .picks, .reading, .head, .ready, .fresh, .ready_buffer, .ready_column, .may_follow, .take, .f_free,
        .inc_passed
    );

    always_comb if (!running) assume (rst);

    always_ff @(posedge clk) begin
        running   <= 1'b1;
        waits_one <= calm && operation == LIVE;
        pops      <= pop;
        popped    <= pops;
        if (calm && operation == LIVE) live <= any_live;
        if (rst) begin
            {pops, popped} <= 2'd0;
            live           <= 3'b111;
        end
    end

    always_ff @(posedge clk) if (running && !rst) begin
        cover (ready && f_free == 4'h7);
        cover (give_back);
        cover (popped && f_free == 4'h3);
    end

    wire unused = &{1'b0, reading, head, ready_buffer, ready_column, look_weight, inc_passed};
endmodule
