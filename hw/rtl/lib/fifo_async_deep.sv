// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A deep queue from one clock to another, in block RAM; see fifo_async, which is for short ones. The
// writer sees how many words are free, and writes only then. The oldest word is shown before it is
// taken. Latency: 1 cycle of w_clk, then STAGES + 1 edges of r_clk.

module fifo_async_deep #(
    parameter WIDTH  = 72,    // bits of a word
    parameter DEPTH  = 2048,  // words, a power of two
    parameter STAGES = 2      // registers of a synchroniser
) (
    // Words in, while some are free. Both resets must be held until each clock has seen its own.
    input  logic                   w_clk,
    input  logic                   w_rst,
    input  logic                   s_valid,
    input  logic [WIDTH-1:0]       s_data,
    output logic [$clog2(DEPTH):0] s_free,

    // Words out, in the same order.
    input  logic                   r_clk,
    input  logic                   r_rst,
    output logic                   m_valid,
    input  logic                   m_ready,
    output logic [WIDTH-1:0]       m_data
);
    localparam AW = $clog2(DEPTH);

    generate
        if (WIDTH < 1) WIDTH_must_be_at_least_1 parameter_error ();
        if (DEPTH < 4 || DEPTH != 1 << AW) DEPTH_must_be_a_power_of_two_at_least_4 parameter_error ();
    endgenerate

    logic [WIDTH-1:0] memory [0:DEPTH-1];
    // One bit more than an address: full and empty differ.
    logic [AW:0] tail, tail_gray, tail_seen, head, head_gray, head_seen, head_bin;

    wire [AW:0] tail_next = tail + {{AW{1'b0}}, s_valid};
    wire        fetch     = head_gray != tail_seen && (!m_valid || m_ready);
    wire [AW:0] head_next = head + {{AW{1'b0}}, fetch};

    // Gray code to a number: each bit is the parity of those from it on.
    genvar b;
    generate
        for (b = 0; b <= AW; b = b + 1) begin : parity
            assign head_bin[b] = ^head_seen[AW:b];
        end
    endgenerate

    assign s_free = DEPTH[AW:0] - (tail - head_bin);

    always_ff @(posedge w_clk) begin
        tail      <= w_rst ? '0 : tail_next;
        tail_gray <= w_rst ? '0 : tail_next ^ (tail_next >> 1);
    end

    always_ff @(posedge w_clk) begin
        if (s_valid) memory[tail[AW-1:0]] <= s_data;
    end

    always_ff @(posedge r_clk) begin
        head      <= r_rst ? '0 : head_next;
        head_gray <= r_rst ? '0 : head_next ^ (head_next >> 1);
        m_valid   <= !r_rst && (fetch || (m_valid && !m_ready));
    end

    always_ff @(posedge r_clk) begin
        if (fetch) m_data <= memory[head[AW-1:0]];
    end

    sync_bit #(.WIDTH(AW + 1), .STAGES(STAGES)) to_read (
        .clk(r_clk), .rst(r_rst), .d(tail_gray), .q(tail_seen)
    );
    sync_bit #(.WIDTH(AW + 1), .STAGES(STAGES)) to_write (
        .clk(w_clk), .rst(w_rst), .d(head_gray), .q(head_seen)
    );
endmodule
