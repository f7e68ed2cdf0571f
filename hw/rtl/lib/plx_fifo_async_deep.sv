// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A deep queue from one clock to another, in block RAM; see plx_fifo_async for short queues. The writer
// sees the number of free words, and writes only if there are any. The oldest word is valid at the
// output. Latency: 1 cycle of w_clk, then STAGES + 1 edges of r_clk.

module plx_fifo_async_deep #(
    parameter WIDTH  = 72,    // bits of a word
    parameter DEPTH  = 2048,  // words, a power of two
    parameter STAGES = 2      // registers of a synchroniser
) (
    // Words in, while words are free. Both resets must be held until each clock has sampled its own.
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

    (* ram_style = "block", ramstyle = "M20K, no_rw_check" *)
    logic [WIDTH-1:0] memory [0:DEPTH-1];
    // One bit more than an address: distinguishes full and empty.
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

    plx_sync_bit #(.WIDTH(AW + 1), .STAGES(STAGES)) to_read (
        .clk(r_clk), .rst(r_rst), .d(tail_gray), .q(tail_seen)
    );
    plx_sync_bit #(.WIDTH(AW + 1), .STAGES(STAGES)) to_write (
        .clk(w_clk), .rst(w_rst), .d(head_gray), .q(head_seen)
    );

`ifdef FORMAL
    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire [2*AW+1:0] \to_read.stages , \to_write.stages ;
    (* gclk *) wire f_step;
    logic f_up, f_r_seen;

    gray_pointers #(.AW(AW)) pointers (
        .w_clk, .w_rst, .r_clk, .r_rst, .tail, .tail_gray, .tail_stages(\to_read.stages ),
        .head, .head_gray, .head_stages(\to_write.stages ), .r_seen(f_r_seen), .up(f_up)
    );

    // A word written while the tail is at any one slot is the word that is fetched while the
    // head is at that slot, and then valid at the output.
    (* anyconst *) logic [AW:0] f_place;
    logic [WIDTH-1:0] f_word;
    logic             f_held = 0, f_shown = 0;

    wire [AW:0] f_before = f_place - head;
    wire [AW:0] f_level  = tail - head;

    always_ff @(posedge f_step) begin
        if (w_clk && !w_rst && s_valid && tail == f_place) begin
            f_word <= s_data;
            f_held <= 1'b1;
        end
        if (r_clk && !r_rst && (fetch || m_ready)) f_shown <= fetch && head == f_place;
        if (r_clk && !r_rst && fetch && head == f_place) f_held <= 1'b0;
    end

    always_comb begin
        // Never more than the queue holds.
        if (f_up) assert (s_free <= DEPTH[AW:0] - f_level);
        assert (f_held == (f_up && f_before < f_level));
        if (f_held) assert (memory[f_place[AW-1:0]] == f_word);
        assert (f_shown == (f_up && m_valid && f_before == {(AW + 1){1'b1}}));
        if (f_shown) assert (m_data == f_word);
        if (f_r_seen && r_rst) assert (!m_valid);
        if (!f_up || r_rst) assert (!f_shown);
    end
`endif
endmodule
