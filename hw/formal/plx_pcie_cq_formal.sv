// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Each request of the block leaves once, behind its last beat, with its fields, and the data of a write each DW in
// its place, up to 64 bytes; what the card cannot do as one read of BAR 7, counted once. A message or a write that
// the block discontinues never leaves, and is counted once. `np_accepted` once for each request that has a
// completion. While held nothing is accepted, and nothing is offered but the second word of a write.
// formal: aiger
// formal: bounded 10
// formal: cover 10
// mutant: COLLECT: if (ends) state => COLLECT: if (accept) state
// mutant: if (ends) state <= OFFER; => if (ends) state <= SECOND;
// mutant: beats == 2'd3 ? 2'd3 : beats + 2'd1; => beats + 2'd1;
// mutant: kind == WRITE && !broken; => kind == WRITE;
// mutant: kind == READ && !broken; => kind == READ;
// mutant: kind <= LOCKED); => kind < LOCKED);
// mutant: dropped = !write && !read && !refused; => dropped = 1'b0;
// mutant: && BIT < aperture; => && BIT <= aperture;
// mutant: plain ? offset : 32'd0; => offset;
// mutant: plain ? length[9:0] : 10'd1; => length[9:0];
// mutant: plain ? enables : 8'h0F; => enables;
// mutant: write && length > 11'd8; => write && length >= 11'd8;
// mutant: state == COLLECT && !hold; => state == COLLECT;
// mutant: && !(hold && state == OFFER); => ;
// mutant: hif_rx_req_eop && !write; => hif_rx_req_eop;
// mutant: write || read ? bar : 3'd7; => bar;
// mutant: {locked, tag}; => {1'b0, tag};
// mutant: data[511:256] : data[255:0]; => data[255:0] : data[255:0];
// mutant: np_accepted && !read; => np_accepted;
// mutant: state != COLLECT && dropped; => dropped;
// mutant: data[383:128] <= s_axis_cq_tdata; => data[255:128] <= s_axis_cq_tdata;
// mutant: broken <= s_axis_cq_tuser[41]; => broken <= s_axis_cq_tuser[40];

module plx_pcie_cq_formal (
    input logic         clk,
    input logic         rst,
    input logic         hold,
    input logic         s_axis_cq_tvalid,
    input logic [127:0] first,
    input logic [7:0]   enables,
    input logic         mark,
    input logic [4:0]   payload,
    input logic         discontinue,
    input logic         hif_rx_req_ready
);
    localparam [3:0] READ = 0, WRITE = 1, LOCKED = 7;

    logic         s_axis_cq_tready, hif_rx_req_valid, hif_rx_req_sop, hif_rx_req_eop, np_accepted;
    logic         inc_cq_refused, inc_cq_dropped;
    logic [127:0] hif_rx_req_header;
    logic [255:0] hif_rx_req_data, s_axis_cq_tdata;

    // ---- Requests of the block: a descriptor, and DWs, each its place and a mark of its request -----------------------

    logic         in_tlp = 0, its_mark;
    logic [5:0]   at, size;
    logic [127:0] its;
    logic [7:0]   its_enables;
    wire          now_mark = in_tlp ? its_mark : mark;
    wire  [5:0]   now_at   = in_tlp ? at : 6'd0;
    wire  [5:0]   total    = in_tlp ? size : {1'b0, payload} + 6'd4;
    wire          last     = total - now_at <= 8;

    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_in
            localparam [5:0] LANE = i, BEFORE = i - 4;
            wire [5:0] place = now_at + LANE - 6'd4;
            if (i < 4) begin : g_head
                assign s_axis_cq_tdata[i*32 +: 32] = in_tlp ? {25'd3, now_mark, place} : first[i*32 +: 32];
            end else begin : g_data
                assign s_axis_cq_tdata[i*32 +: 32] = {25'd3, now_mark, place};
            end
        end
    endgenerate

    plx_pcie_cq dut (
        .*, .s_axis_cq_tuser({46'd0, discontinue, 33'd0, enables}), .s_axis_cq_tlast(last)
    );

    // ---- What has come, and is to leave ------------------------------------------------------------------------------

    logic       running = 0, was_rst = 1, here = 0, broken, second = 0, told_refused = 0, told_dropped = 0;
    wire        accept = s_axis_cq_tvalid && s_axis_cq_tready;
    wire        out    = hif_rx_req_valid && hif_rx_req_ready;
    wire [3:0]  kind   = its[78:75];
    wire [10:0] length = its[74:64];
    wire        good   = !broken && kind <= WRITE;
    wire        write  = good && kind == WRITE;
    wire        drops  = kind >= 8 || broken && kind == WRITE;
    wire        plain  = kind <= WRITE || kind == LOCKED;
    wire [63:0] below  = (64'd1 << its[120:115]) - 64'd1;
    wire [7:0]  number = its[111:104];
    wire [7:0]  func   = number == 0 ? 8'd0 : number >= 4 && number <= 10 ? number - 8'd3 : number | 8'h80;
    wire [31:0] offset = {its[31:2], 2'd0} & below[31:0];

    always_ff @(posedge clk) begin
        running <= 1'b1;
        was_rst <= rst;
        if (accept) begin
            in_tlp <= !last;
            at     <= now_at + 6'd8;
            size   <= total;
            if (!in_tlp) begin
                its         <= first;
                its_enables <= enables;
                its_mark    <= mark;
            end
            here   <= last;
            broken <= discontinue;
        end
        if (out) second <= !hif_rx_req_eop;
        if (out && hif_rx_req_eop || here && drops) here <= 1'b0;
        told_refused <= out && hif_rx_req_eop && !good;
        told_dropped <= here && drops;
        if (rst) {in_tlp, here, second, told_refused, told_dropped} <= '0;
    end

    logic         stood = 0;
    logic [136:0] stood_in;
    logic [385:0] stood_out;
    wire  [136:0] now_in  = {first, enables, mark};
    wire  [385:0] now_out = {hif_rx_req_sop, hif_rx_req_eop, hif_rx_req_header, hif_rx_req_data};
    always_ff @(posedge clk) begin
        stood     <= !rst && hif_rx_req_valid && !hif_rx_req_ready;
        stood_out <= now_out;
        stood_in  <= now_in;
    end

    always_comb begin
        if (!running) assume (rst);
        // The length of a write is that of its data; a read has none. What is discontinued ends there.
        if (!in_tlp && first[78:75] == WRITE) assume (first[74:64] == {6'd0, payload} && payload != 0);
        if (!in_tlp && first[78:75] == READ) assume (payload == 0);
        if (discontinue) assume (last);
    end

    always_comb if (running && !was_rst) begin
        assert (inc_cq_refused == told_refused && inc_cq_dropped == told_dropped);
        assert (np_accepted == (out && hif_rx_req_eop && !write));
        assert (s_axis_cq_tready == (!hold && !here));
        assert (hif_rx_req_valid == (here && !drops && (second || !hold)));
        if (stood && (second || !hold)) assert (hif_rx_req_valid && now_out == stood_out);
        if (hif_rx_req_valid) begin
            assert (hif_rx_req_sop == !second && hif_rx_req_eop == (second || !write || length <= 8));
            assert (hif_rx_req_header[31:0] == (plain ? offset : 32'd0));
            assert (hif_rx_req_header[47:32] == its[95:80]);
            assert (hif_rx_req_header[73:64] == (plain ? length[9:0] : 10'd1));
            assert (hif_rx_req_header[81:74] == (plain ? its_enables : 8'h0F));
            assert (hif_rx_req_header[84:82] == (good ? its[114:112] : 3'd7));
            assert (hif_rx_req_header[85] == write);
            assert (hif_rx_req_header[99:90] == {1'b0, kind == LOCKED, its[103:96]});
            assert (hif_rx_req_header[107:100] == func);
            assert (hif_rx_req_header[110:108] == its[126:124] && hif_rx_req_header[113:111] == its[123:121]);
            assert (hif_rx_req_header[63:48] == 0 && hif_rx_req_header[89:86] == 0 && hif_rx_req_header[127:114] == 0);
        end
        cover (out && second && length == 16);
        cover (out && second && length == 31);
        cover (inc_cq_refused && !inc_cq_dropped);
        cover (inc_cq_dropped);
    end

    generate
        for (genvar l = 0; l < 8; l = l + 1) begin : g_out
            localparam [5:0] LANE = l;
            wire [5:0] place = second ? LANE + 6'd8 : LANE;
            always_comb if (running && !was_rst && hif_rx_req_valid && write && place < length)
                assert (hif_rx_req_data[l*32 +: 32] == {25'd3, its_mark, place});
        end
    endgenerate
endmodule
