// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A queue from one clock to another, as plx_fifo_async, of which both sides see how many words wait: the
// writer never too few, the reader never too many. The oldest word is at the output. Latency: 1 cycle of
// w_clk, then 4 edges of r_clk. LUT RAM: for short queues.

module plx_fifo_level #(
    parameter WIDTH = 64,  // bits of a word
    parameter DEPTH = 16   // words, a power of two
) (
    // Words in, while fewer than DEPTH wait. Both resets must be held until each clock has sampled its own.
    input  logic                   w_clk,
    input  logic                   w_rst,
    input  logic                   s_valid,
    input  logic [WIDTH-1:0]       s_data,
    output logic [$clog2(DEPTH):0] s_level,

    // The oldest word, while any waits; it is taken.
    input  logic                   r_clk,
    input  logic                   r_rst,
    output logic [WIDTH-1:0]       m_data,
    output logic [$clog2(DEPTH):0] m_level,
    input  logic                   m_take
);
    localparam AW = $clog2(DEPTH);

    generate
        if (WIDTH < 1) WIDTH_must_be_at_least_1 parameter_error ();
        if (DEPTH < 4 || DEPTH != 1 << AW) DEPTH_must_be_a_power_of_two_at_least_4 parameter_error ();
    endgenerate

    (* ram_style = "distributed", ramstyle = "MLAB, no_rw_check" *)
    logic [WIDTH-1:0] memory [0:DEPTH-1];
    // One bit more than an address: distinguishes full and empty.
    logic [AW:0] tail, tail_gray, tail_seen, tail_bin, head, head_gray, head_seen, head_bin;
    wire  [AW:0] tail_next = tail + {{AW{1'b0}}, s_valid};
    wire  [AW:0] head_next = head + {{AW{1'b0}}, m_take};
    wire  [AW:0] tail_number, head_number;

    // Gray code to a number: each bit is the parity of those from it on.
    generate
        for (genvar b = 0; b <= AW; b = b + 1) begin : g_parity
            assign head_number[b] = ^head_seen[AW:b];
            assign tail_number[b] = ^tail_seen[AW:b];
        end
    endgenerate

    assign s_level = tail - head_bin;
    assign m_level = tail_bin - head;
    assign m_data  = memory[head[AW-1:0]];

    always_ff @(posedge w_clk) begin
        tail      <= w_rst ? '0 : tail_next;
        tail_gray <= w_rst ? '0 : tail_next ^ (tail_next >> 1);
        head_bin  <= w_rst ? '0 : head_number;
    end

    always_ff @(posedge w_clk) begin
        if (s_valid) memory[tail[AW-1:0]] <= s_data;
    end

    always_ff @(posedge r_clk) begin
        head      <= r_rst ? '0 : head_next;
        head_gray <= r_rst ? '0 : head_next ^ (head_next >> 1);
        tail_bin  <= r_rst ? '0 : tail_number;
    end

    plx_sync_bit #(.WIDTH(AW + 1)) to_read (.clk(r_clk), .rst(r_rst), .d(tail_gray), .q(tail_seen));
    plx_sync_bit #(.WIDTH(AW + 1)) to_write (.clk(w_clk), .rst(w_rst), .d(head_gray), .q(head_seen));

`ifdef FORMAL
    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire [2*AW+1:0] \to_read.stages , \to_write.stages ;
    (* gclk *) wire f_step;
    logic f_up, f_w_seen, f_r_seen;

    gray_pointers #(.AW(AW)) pointers (
        .w_clk, .w_rst, .r_clk, .r_rst, .tail, .tail_gray, .tail_stages(\to_read.stages ),
        .head, .head_gray, .head_stages(\to_write.stages ), .w_seen(f_w_seen), .r_seen(f_r_seen), .up(f_up)
    );

    // A word written while the tail is at any one slot is the word that is read while the
    // head is at that slot.
    (* anyconst *) logic [AW:0] f_place;
    logic [WIDTH-1:0] f_word;
    logic             f_held = 0;

    wire [AW:0] f_before = f_place - head;
    wire [AW:0] f_level  = tail - head;

    always_ff @(posedge f_step) begin
        if (w_clk && !w_rst && s_valid && tail == f_place) begin
            f_word <= s_data;
            f_held <= 1'b1;
        end
        if (r_clk && !r_rst && m_take && head == f_place) f_held <= 1'b0;
    end

    always_comb begin
        // Pointers that each side knows, from the oldest to the newest.
        if (f_up) begin
            assert (s_level <= DEPTH[AW:0] && s_level >= f_level && m_level <= f_level);
            assert (tail - head_number <= s_level && m_level <= tail_number - head);
        end
        if (f_w_seen && w_rst) assert (head_bin == 0);
        if (f_r_seen && r_rst) assert (tail_bin == 0);
        assert (f_held == (f_up && f_before < f_level));
        if (f_held) assert (memory[f_place[AW-1:0]] == f_word);
        if (f_up && m_level != 0 && head == f_place) assert (f_held && m_data == f_word);
    end
`endif
endmodule
