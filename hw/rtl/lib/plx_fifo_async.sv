// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A queue from one clock to another. Each side sees the other's pointer in Gray code, of which one
// bit changes at a time, through two registers: late, never wrong. The oldest word is valid at the
// output. Latency: 1 cycle of w_clk, then STAGES + 1 edges of r_clk. LUT RAM: for short queues.

module plx_fifo_async #(
    parameter WIDTH  = 64,  // bits of a word
    parameter DEPTH  = 16,  // words, a power of two
    parameter STAGES = 2    // registers of a synchroniser
) (
    // Words in. Both resets must be held until each clock has sampled its own.
    input  logic             w_clk,
    input  logic             w_rst,
    input  logic             s_valid,
    output logic             s_ready,
    input  logic [WIDTH-1:0] s_data,

    // Words out, in the same order.
    input  logic             r_clk,
    input  logic             r_rst,
    output logic             m_valid,
    input  logic             m_ready,
    output logic [WIDTH-1:0] m_data
);
    localparam AW = $clog2(DEPTH);

    generate
        if (WIDTH < 1) WIDTH_must_be_at_least_1 parameter_error ();
        if (DEPTH < 4 || DEPTH != 1 << AW) DEPTH_must_be_a_power_of_two_at_least_4 parameter_error ();
    endgenerate

    (* ram_style = "distributed", ramstyle = "MLAB, no_rw_check" *)
    logic [WIDTH-1:0] memory [0:DEPTH-1];
    // One bit more than an address: distinguishes full and empty.
    logic [AW:0] tail, tail_gray, tail_seen, head, head_gray, head_seen;

    wire          write     = s_valid && s_ready;
    wire [AW:0]   tail_next = tail + {{AW{1'b0}}, write};
    wire          take      = m_valid && m_ready;
    wire [AW:0]   head_next = head + {{AW{1'b0}}, take};

    // Full: one pass ahead, which in Gray code is the two upper bits inverted.
    assign s_ready = tail_gray != {~head_seen[AW:AW-1], head_seen[AW-2:0]};
    assign m_valid = head_gray != tail_seen;
    assign m_data  = memory[head[AW-1:0]];

    always_ff @(posedge w_clk) begin
        tail      <= w_rst ? '0 : tail_next;
        tail_gray <= w_rst ? '0 : tail_next ^ (tail_next >> 1);
    end

    always_ff @(posedge w_clk) begin
        if (write) memory[tail[AW-1:0]] <= s_data;
    end

    always_ff @(posedge r_clk) begin
        head      <= r_rst ? '0 : head_next;
        head_gray <= r_rst ? '0 : head_next ^ (head_next >> 1);
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

    // A word written while the tail is at any one slot is the word that is read while the
    // head is at that slot.
    (* anyconst *) logic [AW:0] f_place;
    logic [WIDTH-1:0] f_word;
    logic             f_held = 0;

    wire [AW:0] f_before = f_place - head;
    wire [AW:0] f_level  = tail - head;

    always_ff @(posedge f_step) begin
        if (w_clk && !w_rst && write && tail == f_place) begin
            f_word <= s_data;
            f_held <= 1'b1;
        end
        if (r_clk && !r_rst && take && head == f_place) f_held <= 1'b0;
    end

    always_comb begin
        assert (f_held == (f_up && f_before < f_level));
        if (f_held) assert (memory[f_place[AW-1:0]] == f_word);
        if (f_up && m_valid && head == f_place) assert (f_held && m_data == f_word);
    end
`endif
endmodule
