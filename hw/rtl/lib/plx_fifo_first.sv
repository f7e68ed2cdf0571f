// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A queue within one clock whose oldest word is in a register, so that nothing is between the
// output and the logic that reads it. Otherwise as plx_fifo_sync, latency 1 included: a word that
// finds the queue empty goes to the register directly.

module plx_fifo_first #(
    parameter WIDTH = 64,  // bits of a word
    parameter DEPTH = 16   // words behind the first one, a power of two
) (
    input  logic             clk,
    input  logic             rst,

    // Words in.
    input  logic             s_valid,
    output logic             s_ready,
    input  logic [WIDTH-1:0] s_data,

    // Words out, in the same order.
    output logic             m_valid,
    input  logic             m_ready,
    output logic [WIDTH-1:0] m_data
);
    localparam AW = $clog2(DEPTH);

    generate
        if (WIDTH < 1) WIDTH_must_be_at_least_1 parameter_error ();
        if (DEPTH < 2 || DEPTH != 1 << AW) DEPTH_must_be_a_power_of_two_at_least_2 parameter_error ();
    endgenerate

    logic [WIDTH-1:0] memory [0:DEPTH-1];
    // The head is kept inverted, or tools read the memory at the next one, which comes late.
    logic [AW-1:0]    past, tail;
    wire  [AW-1:0]    head = ~past;
    // Words in the memory; there are some.
    logic [AW:0]      level;
    logic             some;

    wire put   = s_valid && s_ready;
    wire free  = !m_valid || m_ready;
    wire push  = put && !(free && !some);
    wire fetch = free && some;
    // What follows `free`, which comes late, is a choice of what is known.
    wire [AW:0] one_more = level + 1'b1, one_less = level - 1'b1;
    wire        one      = level == 1;

    assign s_ready = !level[AW];

    always_ff @(posedge clk) begin
        if (free) m_valid <= some || put;
        if (push) tail <= tail + 1'b1;
        if (fetch) past <= past - 1'b1;
        if (push != fetch) level <= fetch ? one_less : one_more;
        if (push != fetch) some <= !fetch || !one;
        if (rst) begin
            m_valid <= 1'b0;
            some    <= 1'b0;
            level   <= '0;
            past    <= '1;
            tail    <= '0;
        end
    end

    always_ff @(posedge clk) begin
        if (push) memory[tail] <= s_data;
        if (free) m_data <= some ? memory[head] : s_data;
    end

`ifdef FORMAL
    // Any one word, by its number: it is in the register, or in the memory, and leaves in its turn.
    (* anyconst *) logic [AW+1:0] f_one;
    logic [AW+1:0]    f_in = 0, f_out = 0;
    logic [WIDTH-1:0] f_word;

    wire [AW+1:0] f_before = f_one - f_out, f_held = f_in - f_out;
    wire [AW+1:0] f_behind = f_before - 1'b1;
    wire [AW-1:0] f_place  = head + f_behind[AW-1:0];

    always_ff @(posedge clk) begin
        if (put) f_in <= f_in + 1'b1;
        if (m_valid && m_ready) f_out <= f_out + 1'b1;
        if (put && f_in == f_one) f_word <= s_data;
        if (rst) begin
            f_in  <= '0;
            f_out <= '0;
        end
    end

    always_ff @(posedge clk) if (!rst) begin
        assert (level <= DEPTH && some == (level != 0) && tail == head + level[AW-1:0]);
        assert (m_valid || !some);
        assert (f_held == {1'b0, level} + {{(AW + 1) {1'b0}}, m_valid});
        if (f_before < f_held) assert ((f_before == 0 ? m_data : memory[f_place]) == f_word);
        if (level[AW]) assert (!s_ready);
    end
`endif
endmodule
