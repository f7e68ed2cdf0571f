// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Any two requests, by their functions 5 and 6, among any others: each leaves once, unchanged, and in the order
// in which they came, except that a doorbell may leave before a read. So neither a read nor a write passes a
// doorbell, and a doorbell passes no write. One that was accepted is offered as one until it has left.
// formal: aiger
// formal: bounded 16
// formal: cover 12
// mutant: wire read  = full && sop && eop && !header[layouts_pkg::HIF_WRITE_AT]; => wire read  = full && sop && eop;
// mutant: read_valid ? read_header : full ? header : hif_rx_req_header => full ? header : read_valid ? read_header : hif_rx_req_header
// mutant: first = m_req_ready && !read_valid; => first = m_req_ready;
// mutant: .s_valid(read && !first) => .s_valid(read)
// mutant: || m_bell_ready && m_bell_valid || => ||
// mutant: || read && aside_ready); => || read);
// mutant: assign read_ready       = m_req_ready; => assign read_ready       = m_req_ready || m_bell_ready;
// mutant: && first_be == 4'hF; => ;
// mutant: !offset[5] && offset[3:2] == 2'd3; => offset[3:2] == 2'd3;
// mutant: m_bell_valid  = full && sop && eop => m_bell_valid  = full && sop

// A queue of three words in registers, whose words are seen.
module plx_fifo_first #(
    parameter WIDTH = 128,
    parameter DEPTH = 2
) (
    input  logic             clk,
    input  logic             rst,
    input  logic             s_valid,
    output logic             s_ready,
    input  logic [WIDTH-1:0] s_data,
    output logic             m_valid,
    input  logic             m_ready,
    output logic [WIDTH-1:0] m_data
);
    logic [1:0]       count;
    logic [WIDTH-1:0] word_0, word_1, word_2;
    wire              push = s_valid && s_ready, pull = m_valid && m_ready;
    wire  [1:0]       next = count - {1'b0, pull};

    assign s_ready = count != 3;
    assign m_valid = count != 0;
    assign m_data  = word_0;

    always_ff @(posedge clk) begin
        count  <= rst ? 2'd0 : next + {1'b0, push};
        word_0 <= push && next == 0 ? s_data : pull ? word_1 : word_0;
        word_1 <= push && next == 1 ? s_data : pull ? word_2 : word_1;
        word_2 <= push && next == 2 ? s_data : word_2;
    end
endmodule

module plx_csr_requests_formal (
    input logic         clk,
    input logic         rst,
    input logic         hif_rx_req_valid,
    input logic         hif_rx_req_sop,
    input logic         hif_rx_req_eop,
    input logic [28:0]  any,
    input logic         dword,
    input logic         m_req_ready,
    input logic         m_bell_ready,
    input logic [1:0]   is_a
);
    wire  [255:0] hif_rx_req_data = {255'd0, dword};
    // Function, poisoned, write, BAR, enabled bytes, length, offset; bits that nothing depends on are 0.
    wire  [127:0] hif_rx_req_header = {24'd0, any[28:25], 10'd0, any[24], 3'd0, any[23], 1'b0, any[22], 1'b0, 4'd0,
                                       any[21:18], 8'd0, any[17:16], 32'd0, 14'd0, any[15:0], 2'd0};
    logic         hif_rx_req_ready, m_req_valid, m_req_sop, m_req_eop, m_bell_valid;
    logic [127:0] m_req_header;
    logic [255:0] m_req_data;
    logic [2:0]   m_bell_block, m_bell_func;
    logic [16:0]  m_bell_offset;
    logic [31:0]  m_bell_data;

    plx_csr_requests #(.READS(2)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb assume (rst == !running);

    // Whole requests come; whole ones are accepted, and no doorbell in the middle of one.
    logic inside = 0, cut = 0;
    wire  taken = hif_rx_req_valid && hif_rx_req_ready;
    wire  comes = taken && hif_rx_req_sop;
    wire  left  = m_req_valid && m_req_ready;
    wire  rings = m_bell_valid && m_bell_ready;

    always_comb begin
        if (hif_rx_req_valid) assume (hif_rx_req_sop == !inside);
        assume (!(m_bell_ready && (m_req_ready || cut)));
    end

    // The two: 0 has function 5, 1 has function 6 and comes later.
    logic [1:0]   in = 0, out = 0;
    (* anyconst *) logic [28:0]  one_any, other_any;
    (* anyconst *) logic         one_data, other_data;
    wire [127:0]  one_header = {24'd0, one_any[28:25], 10'd0, one_any[24], 3'd0, one_any[23], 1'b0, one_any[22], 5'd0,
                                one_any[21:18], 8'd0, one_any[17:16], 46'd0, one_any[15:0], 2'd0};
    wire [127:0]  other_header = {24'd0, other_any[28:25], 10'd0, other_any[24], 3'd0, other_any[23], 1'b0, other_any[22],
                                  5'd0, other_any[21:18], 8'd0, other_any[17:16], 46'd0, other_any[15:0], 2'd0};
    wire [1:0]    enters = {is_a == 2, is_a == 1} & {2{comes && hif_rx_req_valid}};
    wire [7:0]    func   = hif_rx_req_header[107:100];
    wire [1:0]    leaves = left && m_req_sop ? {m_req_header[107:100] == 6, m_req_header[107:100] == 5}
                         : rings ? {m_bell_func == 6, m_bell_func == 5} : 2'b00;

    always_comb if (comes) begin
        assume (is_a == 1 ? func == 5 && in == 0 : is_a == 2 ? func == 6 && in == 2'b01 : func != 5 && func != 6);
        if (is_a == 1) assume (any == one_any && dword == one_data);
        if (is_a == 2) assume (any == other_any && dword == other_data);
    end

    always_ff @(posedge clk) if (running) begin
        if (taken) inside <= !hif_rx_req_eop;
        if (left) cut <= !m_req_eop;
        in  <= in | enters;
        out <= out | leaves;
    end

    // As hw/rdl has it.
    wire [31:0]  at     = {other_header[31:2], 2'b00};
    wire [31:0]  queue  = at - 32'h14000, ring = at - 32'h6100, list = at - 32'hA000;
    wire         one    = other_header[85:82] == 4'b1000 && !other_header[89] && other_header[77:64] == {4'hF, 10'd1};
    wire         of_event = queue < 32'h4000 && (queue[5:0] == 6'h0C || queue[5:0] == 6'h1C);
    wire         of_tx    = ring < 32'h100 && ring[5:0] == 6'h0C;
    wire         of_clop  = list < 32'h4000 && list[5:0] == 6'h1C;

    // A doorbell of one word.
    logic whole;
    always_ff @(posedge clk) if (enters[1]) whole <= hif_rx_req_eop;

    // Where the two are: in the words that were set aside, or in the last one.
    (* hierconn *) wire [127:0] \dut.header , \dut.reads.word_0 , \dut.reads.word_1 , \dut.reads.word_2 ;
    (* hierconn *) wire [255:0] \dut.data ;
    (* hierconn *) wire [1:0]   \dut.reads.count ;
    (* hierconn *) wire         \dut.full , \dut.sop , \dut.eop ;
    wire [127:0] last = \dut.header ;
    wire [383:0] words = {\dut.reads.word_2 , \dut.reads.word_1 , \dut.reads.word_0 };
    wire [255:0] last_data = \dut.data ;
    wire [1:0]   count = \dut.reads.count ;
    wire         full = \dut.full , sop = \dut.sop , eop = \dut.eop ;
    logic [3:0]  of_one, of_other;

    always_comb begin
        for (int n = 0; n < 3; n = n + 1) begin
            of_one[n]   = n < count && words[n*128 + 100 +: 8] == 5;
            of_other[n] = n < count && words[n*128 + 100 +: 8] == 6;
        end
        of_one[3]   = full && sop && last[107:100] == 5;
        of_other[3] = full && sop && last[107:100] == 6;
    end

    always_comb if (!running) assert (in == 0 && out == 0 && !inside && !cut);

    always_ff @(posedge clk) if (running) begin
        assert ((of_one & (of_one - 1'b1)) == 0 && (of_one != 0) == (in[0] && !out[0]));
        assert ((of_other & (of_other - 1'b1)) == 0 && (of_other != 0) == (in[1] && !out[1]));
        if (of_one != 0 && of_other != 0) assert (of_one < of_other);
        for (int n = 0; n < 3; n = n + 1) begin
            if (n < count) assert (!words[n*128 + 85]);
            if (of_one[n]) assert (words[n*128 +: 128] == one_header);
            if (of_other[n]) assert (words[n*128 +: 128] == other_header && whole);
        end
        if (of_one[3]) assert (last == one_header && last_data[0] == one_data);
        if (of_other[3]) assert (last == other_header && last_data[0] == other_data && eop == whole);
        assert (in != 2'b10 && (out & ~in) == 0 && (!out[1] || out[0] || !one_header[85]));
        assert (one_header[107:100] == 5 || in == 0);
        assert (other_header[107:100] == 6 || !in[1]);
        assert (!cut || count == 0);
        assert (full ? eop == !inside && sop == !cut : inside == cut);
    end

    always_ff @(posedge clk) if (running) begin
        if (m_req_valid) assert (m_req_sop == !cut);
        for (int n = 0; n < 2; n = n + 1) begin
            if (leaves[n]) assert ((in[n] || enters[n]) && !out[n]);
            // Nothing is lost.
            if (in[n] && !out[n]) assert (m_req_valid);
        end
        if (leaves[0] && left) assert (m_req_header == one_header && (!one_header[85] || m_req_data[0] == one_data));
        if (leaves[1] && left) assert (m_req_header == other_header && (!other_header[85] || m_req_data[0] == other_data));
        if (leaves[1] && !out[0]) assert (rings && !one_header[85]);
        if (leaves[1] && rings) begin
            assert (one && whole && m_bell_block == {of_clop, of_tx, of_event} && m_bell_block != 0);
            assert (m_bell_offset == at[16:0] && at < 32'h20000 && m_bell_data[0] == other_data);
        end
        if (in[1] && !out[1] && one && whole && (of_event || of_tx || of_clop)) assert (m_bell_valid && m_bell_func == 6);
        cover (leaves[1] && rings && in[0] && !out[0] && out == 0 && !m_req_header[85] && m_req_header[107:100] == 0);
        cover (leaves[0] && out[1]);
    end
endmodule
