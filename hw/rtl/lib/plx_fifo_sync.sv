// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A queue within one clock. The oldest word is valid at the output. A word that is accepted in one
// cycle is offered in the next: latency 1. The memory is read without a register (LUT RAM), so
// this is for short queues; plx_fifo_frame is for deep ones.

module plx_fifo_sync #(
    parameter WIDTH = 64,  // bits of a word
    parameter DEPTH = 16   // words, a power of two
) (
    input  logic                     clk,
    input  logic                     rst,

    // Words in.
    input  logic                     s_valid,
    output logic                     s_ready,
    input  logic [WIDTH-1:0]         s_data,

    // Words out, in the same order.
    output logic                     m_valid,
    input  logic                     m_ready,
    output logic [WIDTH-1:0]         m_data,

    // Words held.
    output logic [$clog2(DEPTH):0]   level
);
    localparam AW = $clog2(DEPTH);

    generate
        if (WIDTH < 1) WIDTH_must_be_at_least_1 parameter_error ();
        if (DEPTH < 2 || DEPTH != 1 << AW) DEPTH_must_be_a_power_of_two_at_least_2 parameter_error ();
    endgenerate

    logic [WIDTH-1:0] memory [0:DEPTH-1];
    // One bit more than an address: distinguishes full and empty.
    logic [AW:0] head, tail;

    assign level   = tail - head;
    assign s_ready = !level[AW];
    assign m_valid = level != 0;
    assign m_data  = memory[head[AW-1:0]];

    always_ff @(posedge clk) begin
        if (s_valid && s_ready) tail <= tail + 1'b1;
        if (m_valid && m_ready) head <= head + 1'b1;
        if (rst) begin
            head <= '0;
            tail <= '0;
        end
    end

    always_ff @(posedge clk) begin
        if (s_valid && s_ready) memory[tail[AW-1:0]] <= s_data;
    end

`ifdef FORMAL
    // A word written while the tail is at any one slot is the word that is read while the
    // head is at that slot.
    (* anyconst *) logic [AW:0] f_place;
    logic [WIDTH-1:0] f_word;
    logic             f_held = 0;

    wire [AW:0] f_before = f_place - head;

    always_ff @(posedge clk) begin
        if (s_valid && s_ready && tail == f_place) begin
            f_word <= s_data;
            f_held <= 1'b1;
        end
        if (m_valid && m_ready && head == f_place) f_held <= 1'b0;
        if (rst) f_held <= 1'b0;
    end

    always_ff @(posedge clk) if (!rst) begin
        assert (level <= DEPTH);
        assert (f_held == (f_before < level));
        if (f_held) assert (memory[f_place[AW-1:0]] == f_word);
        if (m_valid && head == f_place) assert (m_data == f_word);
    end
`endif
endmodule
