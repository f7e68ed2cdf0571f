// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Payloads of up to 120 bytes, with any times and ends: a unit written to any one slot is
// offered in order, with zeros after its payload, and is not overwritten before; each end is
// reported in order and unchanged. A discard affects only the first payload, as far as it has
// arrived. The reader consumes no more than the first payload holds, and completes it
// when nothing of it is left, as plx_rx_dma_writer_formal asserts.
// formal: aiger
// formal: induction 3
// formal: cover 20
// mutant: odd_1[row] <= half ? word : 64'd0 => odd_1[row] <= word
// mutant: head <= ended ? end_tail : tail => head <= tail
// mutant: filled < UNITS - 2 => filled < UNITS - 1
// mutant: (store && (half || s_axis_payload_tlast)) || (ends && half) => (store && (half || s_axis_payload_tlast))
// mutant: whole && !ended => whole
// mutant: renewed <= next => renewed <= 1'b0

module plx_rx_dma_ring_formal (
    input logic       clk,
    input logic       rst,
    input logic       s_axis_payload_tvalid,
    input logic       s_axis_payload_tlast,
    input logic [3:0] bytes,
    input logic [7:0] bits,
    input logic [1:0] s_axis_payload_tuser,
    input logic       load,
    input logic       use_0,
    input logic       use_1,
    input logic       discard,
    input logic       next
);
    // A byte is one bit: the others behave the same.
    logic [63:0] s_axis_payload_tdata;
    logic [7:0]  s_axis_payload_tkeep;
    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_byte
            assign s_axis_payload_tdata[i*8 +: 8] = {7'd0, bits[i]};
            assign s_axis_payload_tkeep[i]        = i < bytes;
        end
    endgenerate

    logic         s_axis_payload_tready, ended;
    logic [3:0]   held;
    logic [127:0] unit_0, unit_1;
    logic [15:0]  gathered, end_bytes;
    logic [1:0]   end_user;

    plx_rx_dma_ring #(.FRAMES(2), .UNITS(8)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb assume (rst == !running);

    // Ended payloads, the first of them, and the incoming one: their bytes.
    logic [1:0] ends = 0, user_0, user_1;
    logic [6:0] bytes_0, bytes_1, coming = 0;
    // Of the first payload: consumed units.
    logic [3:0] used = 0;

    wire        take   = s_axis_payload_tvalid && s_axis_payload_tready;
    wire        closes = take && s_axis_payload_tlast;
    wire  [6:0] longer = coming + {3'd0, bytes};
    wire  [3:0] whole_0 = (8'(bytes_0) + 8'd15) >> 4;
    wire  [3:0] whole_1 = (8'(bytes_1) + 8'd15) >> 4;
    wire  [3:0] first  = ends != 0 ? whole_0 : {1'b0, coming[6:4]};
    wire  [3:0] left   = first - used;
    wire  [3:0] consumed = load ? {3'd0, use_0} + {3'd0, use_1} : 4'd0;
    wire  [5:0] behind = (ends == 0 ? 6'd0 : {3'd0, coming[6:4]}) + (ends == 2 ? {2'd0, whole_1} : 6'd0);

    always_comb begin
        // Full words except the last, which may be empty.
        assume (bytes <= 8 && (s_axis_payload_tlast || bytes == 8));
        if (s_axis_payload_tvalid) assume (longer < 120 || s_axis_payload_tlast && longer == 120);
        assume (consumed <= left && (consumed == 0 || !discard));
        // Nothing is consumed before the held units of the next payload are counted.
        if (renewed) assume (!load && !next);
        if (next) assume (ends != 0 && (discard || consumed == left));
    end

    always_ff @(posedge clk) if (running) begin
        if (take) coming <= s_axis_payload_tlast ? 7'd0 : longer;
        ends <= ends + {1'b0, closes} - {1'b0, next};
        used <= next ? 4'd0 : discard ? first : used + consumed;
        if (next) {bytes_0, user_0} <= {bytes_1, user_1};
        if (closes) begin
            if (ends == {1'b0, next}) {bytes_0, user_0} <= {longer, s_axis_payload_tuser};
            else {bytes_1, user_1} <= {longer, s_axis_payload_tuser};
        end
    end

    // The rest of the first payload has been discarded; the ring was empty a cycle ago, too.
    logic thrown = 0, emptied = 0;
    always_ff @(posedge clk) begin
        thrown  <= running && !next && (discard || thrown);
        emptied <= running && filled == 0;
    end

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire [3:0]  \dut.head ;
    (* hierconn *) wire        \dut.half ;
    (* hierconn *) wire [1:0]  \dut.tails.level ;
    (* hierconn *) wire [21:0] \dut.tails.word_0 ;
    (* hierconn *) wire [21:0] \dut.tails.word_1 ;
    (* hierconn *) wire [3:0]  \dut.tail ;
    (* hierconn *) wire        \dut.renewed ;
    (* hierconn *) wire        \dut.room ;
    wire        half    = \dut.half ;
    wire        renewed = \dut.renewed ;
    wire        room    = \dut.room ;
    wire [3:0]  filled  = \dut.tail - \dut.head ;
    wire [1:0]  level   = \dut.tails.level ;
    wire [3:0]  place_0 = \dut.head + left;
    wire [21:0] end_0   = \dut.tails.word_0 ;
    wire [21:0] end_1   = \dut.tails.word_1 ;

    always_comb if (running) begin
        assert ({2'd0, filled} == {2'd0, left} + behind);
        if (!renewed && !thrown) assert (held == left);
        assert (gathered == {9'd0, coming});
        assert (ended == (ends != 0));
        if (ended) assert (end_bytes == {9'd0, bytes_0} && end_user == user_0);
        // The module's state, as far as the model above determines it.
        assert (half == coming[3] && coming < 120 && coming[2:0] == 0 && used <= first && ends <= 2 && level == ends);
        if (ends != 0) assert (bytes_0 <= 120 && end_0 == {9'd0, bytes_0, user_0, place_0});
        if (ends == 2) assert (bytes_1 <= 120 && end_1 == {9'd0, bytes_1, user_1, place_0 + whole_1});
        // Space for a payload: a reader that has consumed all can continue.
        if (emptied && filled == 0 && ends < 2) assert (s_axis_payload_tready);
        cover (filled == 6 && !s_axis_payload_tready && ends == 1 && coming != 0);
        cover (ended && discard && behind != 0 && left > 1);
        cover (!ended && discard && left != 0);
        cover (ends == 2 && end_bytes == 0);
    end
endmodule

// Guarantees of plx_fifo_first, which has its own proof: two words, in order.
module plx_fifo_first #(
    parameter WIDTH = 8,
    parameter DEPTH = 16
) (
    input  logic             clk, rst, s_valid, m_ready,
    output logic             s_ready, m_valid,
    input  logic [WIDTH-1:0] s_data,
    output logic [WIDTH-1:0] m_data
);
    logic [1:0]       level;
    logic [WIDTH-1:0] word_0, word_1;

    assign s_ready = level != 2;
    assign m_valid = level != 0;
    assign m_data  = word_0;

    wire put = s_valid && s_ready, take = m_valid && m_ready;

    always_ff @(posedge clk) begin
        level <= rst ? 2'd0 : level + {1'b0, put} - {1'b0, take};
        if (take) word_0 <= word_1;
        if (put && level == {1'b0, take}) word_0 <= s_data;
        else if (put) word_1 <= s_data;
    end
endmodule
