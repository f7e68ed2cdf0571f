// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Between any two clocks, of which each may stand: each word of the queue, which has a proof of its own, is the
// events since the one before, up to the greatest values, and is written as soon as there are any; each one that the
// queue shows is counted at the next edge, once, and nothing else is. Where two periods of the received clock are
// longer than one of clk_net, no greatest value is exceeded, so that no event is lost. A reset of clk_net's side
// lasts from before that of the other begins until an edge behind its first, and not more than eight cycles of the
// received clock behind its end.
// formal: edges
// formal: aiger
// formal: abstract plx_sync_bit
// formal: always 24
// formal: cover 26
// mutant: {1'b0, flags[i] && rest != 2'd3} => {1'b0, flags[i]}
// mutant: flags[i] && rest != 2'd3 => flags[i] && rest != 2'd2
// mutant: take ? 2'd0 : waiting[2*i+:2]; => take && !flags[i] ? 2'd0 : waiting[2*i+:2];
// mutant: take ? 2'd0 : waiting[2*i+:2]; => any ? 2'd0 : waiting[2*i+:2];
// mutant: {1'b0, take ? 8'd0 : wrong} => {1'b0, wrong}
// mutant: more[8] ? 8'hFF : more[7:0]; => more[7:0];
// mutant: waiting != 0 || wrong != 0; => waiting != 0;
// mutant: wire       take = any && ready; => wire       take = any;
// mutant: .s_valid(any) => .s_valid(any && !ready)
// mutant: <= valid ? word : '0; => <= word;
// mutant: .m_ready(1'b1) => .m_ready(inc_ber == 2'd0)

module plx_pcs_counts_formal (
    input logic       clk_rx_net,
    input logic       rst_rx,
    input logic       s_ber,
    input logic       s_errored_block,
    input logic       s_deleted,
    input logic       s_overflow,
    input logic [6:0] s_prbs31_errors,
    input logic       clk_net,
    input logic       rst_net
);
    logic [1:0] inc_ber, inc_errored_blocks, inc_deleted, inc_overflow;
    logic [7:0] inc_prbs31_errors;

    plx_pcs_counts dut (.*);

    (* gclk *) wire step;

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire        \dut.any , \dut.ready , \dut.valid ;
    (* hierconn *) wire [15:0] \dut.word , \dut.queue.s_data ;
    (* hierconn *) wire [4:0]  \dut.queue.tail , \dut.queue.head ;
    wire [4:0] tail = \dut.queue.tail , head = \dut.queue.head ;

    // ---- Resets -----------------------------------------------------------------------------------

    // Each side's registers are in reset; the writer's have been, in this reset of the reader's, which has had an
    // edge since; ever. plx_pcs is proved to keep this.
    logic rx_in = 0, net_in = 0, begun = 0, both = 0, up = 0, net_before = 1, rx_before = 1;
    always_ff @(posedge clk_rx_net) rx_in <= rst_rx;
    always_ff @(posedge clk_net) net_in <= rst_net;
    always_ff @(posedge step) begin
        net_before <= rst_net;
        rx_before  <= rst_rx;
        begun      <= net_in && rst_net && !(rst_rx && !rx_before) && (begun || clk_rx_net && rst_rx);
        both       <= net_in && rst_net && !(rst_rx && !rx_before) && (both || begun && clk_net);
        up         <= up || both;
    end
    always_comb begin
        if (!up && !both) assume (rst_net && rst_rx);
        if (rst_rx && !rx_before) assume (net_in && rst_net);
        if (rx_before && !rx_in) assume (rst_rx);
        if (net_before && !(both && net_in)) assume (rst_net);
    end

    // ---- Clocks -----------------------------------------------------------------------------------

    // Edges of clk_rx_net since the last one of clk_net, with that of the same step: a third one before the next, or
    // at it, is one of a clock that is twice as fast. Behind a reset, up to eight until both sides run.
    logic [3:0] edges = 0;
    logic       slow = 1;
    wire        fast = clk_rx_net && !rst_rx && edges >= (net_in ? 8 : 2);
    always_ff @(posedge step) begin
        edges <= clk_rx_net && rst_rx ? 4'd0 : (clk_net && !rst_net ? 4'd0 : edges) + 4'(clk_rx_net && edges != 8);
        slow  <= clk_rx_net && rst_rx || slow && !fast && !(rst_net && !net_before);
    end

    // ---- Events, of any one kind, and wrong bits -----------------------------------------------------

    // An amount is written to the queue; one is at its output, and leaves.
    wire hands = clk_rx_net && !rst_rx && \dut.any && \dut.ready ;
    wire takes = clk_net && \dut.valid ;

    (* anyconst *) wire [1:0] kind;
    wire [3:0] event_of = {s_overflow, s_deleted, s_errored_block, s_ber};
    wire [7:0] inc_of   = {inc_overflow, inc_deleted, inc_errored_blocks, inc_ber};
    wire [1:0] inc      = inc_of[2*kind +: 2];

    // A word has 66 bits.
    always_comb assume (s_prbs31_errors <= 66);

    // Since the last amount was written: up to what is counted; more than that.
    logic [1:0] came = 0;
    logic [7:0] bits = 0;
    logic       beyond = 0;
    wire  [1:0] came_of  = hands ? 2'd0 : came;
    wire  [8:0] bits_sum = {1'b0, hands ? 8'd0 : bits} + {2'd0, s_prbs31_errors};
    wire        one      = event_of[kind];
    always_ff @(posedge clk_rx_net) begin
        came   <= came_of + 2'(one && came_of != 3);
        bits   <= bits_sum > 255 ? 8'd255 : bits_sum[7:0];
        beyond <= !rst_rx && (one && came_of == 3 || bits_sum > 255);
        if (rst_rx) begin
            came <= 2'd0;
            bits <= 8'd0;
        end
    end

    // The last edge of each clock: a word was written or left, and which.
    logic        wrote = 0, left = 0;
    logic [4:0]  last_tail, last_head;
    logic [15:0] last_word;
    always_ff @(posedge clk_rx_net) begin
        wrote     <= hands;
        last_tail <= tail;
    end
    always_ff @(posedge clk_net) begin
        left      <= takes;
        last_head <= head;
        last_word <= \dut.word ;
    end

    // The word that is written; that is seen: in the order of the outputs, with the kind that is looked at.
    wire [15:0] written = \dut.queue.s_data ;

    always_comb if (up) begin
        // Each amount is one word of the queue, and each word leaves at the edge at which it is seen.
        if (hands) assert (written[2*kind +: 2] == came && written[15:8] == bits);
        if (!rx_in) assert (tail == last_tail + 5'(wrote));
        if (!net_in) assert (head == last_head + 5'(left));
        assert ({inc_prbs31_errors, inc_of} == (left ? last_word : 16'd0));
        // An amount is written as soon as the queue has room.
        assert (\dut.any == |written);
        if (slow && (net_before || !rst_net)) assert (!beyond);
        cover (hands && came == 3 && bits == 255);
        cover (left && inc == 0 && inc_prbs31_errors == 1);
    end
endmodule
