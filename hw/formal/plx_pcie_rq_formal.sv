// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// TLPs leave whole, as many as were accepted, each with its DWs in their places and no other, and with its byte
// enables; of each stream in order; a read only with a tag and while a credit is free; none without bus mastering,
// but each such read is refused once, by its header, unless the card is reset; and neither stream waits for more than
// one TLP of the other, nor a write for more than a cycle of none. No TLP begins while they are held.
// formal: aiger
// formal: bounded 9
// formal: cover 10
// mutant: left[10:3] == 0 || left == 11'd8; => left[10:3] == 0;
// mutant: needs <= dws > 11'd8; => needs <= dws > 11'd9;
// mutant: needs <= left > 11'd12; => needs <= left > 11'd11;
// mutant: && pending < MOST && !sends_read; => && pending < MOST;
// mutant: (yields || !hif_wr_req_valid) => !hif_wr_req_valid
// mutant: !in_tlp && !hold && !yields => !in_tlp && !yields
// mutant: reads && !hold && can_read => reads && can_read
// mutant: begins_read && (turn || begins); => begins_read;
// mutant: in_tlp ? 8'd0 : header[layouts_pkg::HIF_FIRST_BE_AT +: 8]; => in_tlp ? 8'd0 : 8'hFF;
// mutant: kept <= hif_wr_req_data[255:128]; => kept <= hif_wr_req_data[127:0];
// mutant: s_tag_valid && may_read : !m_refused_valid); => s_tag_valid && may_read : 1'b1);
// mutant: s_tag_valid && may_read : !m_refused_valid); => may_read : !m_refused_valid);
// mutant: m_refused       <= hif_rd_req_header[layouts_pkg::HIF_TAG_AT +: 24]; => m_refused       <= {hif_rd_req_header[113:91], 1'b0};
// mutant: if (m_refused_ready) m_refused_valid => if (1'b0) m_refused_valid
// mutant: if (rst || flush) m_refused_valid => if (rst) m_refused_valid
// mutant: write_on   = bus_master[write_func]; => write_on   = bus_master[0];

module plx_pcie_rq_formal (
    input logic       clk,
    input logic       rst,
    input logic       hold,
    input logic       flush,
    input logic       m_refused_ready,
    input logic [2:0] read_tag,
    input logic       write_vf,
    input logic       read_vf,
    input logic       left_vf,
    input logic       hif_wr_req_valid,
    input logic [4:0] dws,
    input logic       hif_rd_req_valid,
    input logic       s_tag_valid,
    input logic       m_axis_rq_tready,
    input logic       pcie_rq_seq_num_vld0,
    input logic [7:0] cfg_fc_nph
);
    logic         hif_wr_req_ready, hif_wr_req_sop, hif_wr_req_eop, hif_rd_req_ready, s_tag_ready, idle;
    logic         m_axis_rq_tvalid, m_axis_rq_tlast, inc_rq_dropped;
    logic [255:0] hif_wr_req_data, m_axis_rq_tdata;
    logic [7:0]   m_axis_rq_tkeep;
    logic         m_refused_valid;
    logic [23:0]  m_refused;
    logic [61:0]  m_axis_rq_tuser;

    // A write of up to 18 DWs; each DW is its number in the TLP, its lower 3 bits the number of the write.
    logic [4:0]   length, sent;
    logic [2:0]   write_number = 0;
    logic         inside = 0;
    wire  [4:0]   now = inside ? length : dws;
    wire  [4:0]   at  = inside ? sent : 5'd0;
    logic         inside_vf;
    wire          write_now = inside ? inside_vf : write_vf;

    assign hif_wr_req_sop = !inside;
    assign hif_wr_req_eop = now - at <= 8;
    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_dw
            wire [4:0] number = at + i;
            assign hif_wr_req_data[i*32 +: 32] = number < now ? {24'd1, number, write_number} : 32'd0;
        end
    endgenerate

    // The byte enables of the writes by their numbers: any.
    (* anyconst *) logic [63:0] enables;

    // Two functions, the second with bus mastering or without.
    (* anyconst *) logic vf_on;
    wire drops_write = write_now && !vf_on;
    wire drops_read  = read_vf && !vf_on;

    plx_pcie_rq #(.W(2), .MOST(2)) dut (
        .*,
        .bus_master({6'd0, vf_on, 1'b1}),
        .hif_wr_req_header({27'd0, write_vf, 18'd0, enables[{write_number, 3'd0} +: 8], 5'd0, now, 61'd0, write_number}),
        .hif_rd_req_header({27'd0, read_vf, 7'd0, read_tag, 8'd0, 8'h0F, 10'd1, 64'd8}),
        .s_tag(2'd2),
        .pcie_rq_seq_num0({5'd4, left_vf}),
        .pcie_rq_seq_num1(6'd0),
        .pcie_rq_seq_num_vld1(1'b0)
    );

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb begin
        if (!running) assume (rst);
        assume (dws >= 1 && dws <= 18);
        // Within a TLP there is no gap.
        if (inside) assume (hif_wr_req_valid);
    end

    wire takes_write = hif_wr_req_valid && hif_wr_req_ready;
    wire takes_read  = hif_rd_req_valid && hif_rd_req_ready;
    wire out         = m_axis_rq_tvalid && m_axis_rq_tready;

    // Offers are stable, but a tag may be withdrawn. What leaves: where in a TLP, whether that is a write, and which.
    logic       stood_write = 0, stood_read = 0, stood_write_vf, stood_read_vf, was_free;
    logic [4:0] stood_dws;
    logic       out_inside = 0, out_write;
    logic [4:0] out_at, out_length;
    logic [2:0] out_number, next_number = 0;
    logic [2:0] reads_in = 0, reads_out = 0;
    logic [1:0] in_block_pf = 0, in_block_vf = 0;
    wire  [2:0] in_block = {1'b0, in_block_pf} + {1'b0, in_block_vf};
    logic [1:0] reads_since = 0;
    logic [2:0] writes_since = 0;
    logic [1:0] stuck = 0;
    wire        sent_read = takes_read && !drops_read;
    wire        able = hif_rd_req_valid && s_tag_valid && in_block == 0 && cfg_fc_nph > 1 && !hold
                         && !(drops_read && m_refused_valid);

    // The read that is refused.
    logic       refused = 0, refused_vf;
    logic [2:0] refused_tag, stood_read_tag;

    wire        starts  = out && !out_inside;
    wire        is_read = m_axis_rq_tdata[78:75] == 0;
    wire [4:0]  first   = starts ? 5'd0 : out_at;
    wire [4:0]  whole   = starts ? is_read ? 5'd4 : m_axis_rq_tdata[68:64] + 5'd4 : out_length;
    wire [2:0]  number  = starts ? m_axis_rq_tdata[4:2] : out_number;
    wire        of_vf   = m_axis_rq_tdata[87:80] == 8'd4;
    wire        leaves  = pcie_rq_seq_num_vld0 && (left_vf ? in_block_vf : in_block_pf) != 0;

    always_ff @(posedge clk) begin
        stood_write <= !rst && hif_wr_req_valid && !hif_wr_req_ready && !inside;
        stood_read  <= !rst && hif_rd_req_valid && !hif_rd_req_ready;
        stood_dws   <= dws;
        was_free    <= in_block < cfg_fc_nph;
        stood_write_vf <= write_vf;
        stood_read_vf  <= read_vf;
        stood_read_tag <= read_tag;
        if (m_refused_ready) refused <= 1'b0;
        if (takes_read && drops_read) begin
            refused     <= 1'b1;
            refused_vf  <= read_vf;
            refused_tag <= read_tag;
        end
        if (rst || flush) refused <= 1'b0;
        if (takes_write) begin
            inside    <= !hif_wr_req_eop;
            inside_vf <= write_now;
            length <= now;
            sent   <= at + 5'd8;
            if (hif_wr_req_eop && !drops_write) write_number <= write_number + 3'd1;
        end
        if (out) begin
            out_inside <= !m_axis_rq_tlast;
            out_write  <= starts ? !is_read : out_write;
            out_at     <= first + 5'd8;
            out_length <= whole;
            out_number <= number;
            if (m_axis_rq_tlast && !(starts && is_read)) next_number <= next_number + 3'd1;
            if (starts && is_read) reads_out <= reads_out + 3'd1;
        end
        if (sent_read) reads_in <= reads_in + 3'd1;
        in_block_pf <= in_block_pf + {1'b0, sent_read && !read_vf} - {1'b0, leaves && !left_vf};
        in_block_vf <= in_block_vf + {1'b0, sent_read && read_vf} - {1'b0, leaves && left_vf};
        if (!able || takes_read) writes_since <= 3'd0;
        else if (takes_write && !inside) writes_since <= writes_since + 3'd1;
        if (!hif_wr_req_valid || takes_write) reads_since <= 2'd0;
        else if (takes_read) reads_since <= reads_since + 2'd1;
        // A write waits for a read that is sent, or a cycle for one that could have been.
        stuck <= hif_wr_req_valid && !takes_write && !takes_read && !hold && !m_axis_rq_tvalid ? stuck + 2'd1 : 2'd0;
        if (rst) begin
            stuck        <= 2'd0;
            inside       <= 1'b0;
            write_number <= 3'd0;
            next_number  <= 3'd0;
            out_inside   <= 1'b0;
            reads_in     <= 3'd0;
            reads_out    <= 3'd0;
            in_block_pf  <= 2'd0;
            in_block_vf  <= 2'd0;
            reads_since  <= 2'd0;
            writes_since <= 3'd0;
        end
    end

    always_comb if (running && !rst) begin
        // The number of a write is in the address, in bits 4:2.
        if (stood_write) assume (hif_wr_req_valid && dws == stood_dws && write_vf == stood_write_vf);
        if (stood_read) assume (hif_rd_req_valid && read_vf == stood_read_vf && read_tag == stood_read_tag);
        if (pcie_rq_seq_num_vld0) assume (leaves);
        if (sent_read) assert (s_tag_valid && s_tag_ready && in_block < 2 && was_free);
        if (takes_read && drops_read) assert (!s_tag_ready && !refused);
        assert (m_refused_valid == refused);
        if (refused) assert (m_refused == {13'd0, refused_vf, 7'd0, refused_tag});
        if (hold) assert (!takes_read && !(takes_write && !inside));
        assert (reads_since <= 1 && writes_since <= 4 && stuck <= 1);
        assert (reads_out + {2'd0, 1'b0} <= reads_in);
        if (out) begin
            assert (m_axis_rq_tlast == (whole - first <= 8));
            if (starts) assert (m_axis_rq_tuser[7:0] == (is_read ? 8'h0F : enables[{next_number, 3'd0} +: 8]));
            if (starts) assert (of_vf ? vf_on : m_axis_rq_tdata[87:80] == 0);
            if (starts && is_read) assert (m_axis_rq_tuser[27:24] == {3'd4, of_vf});
        end
        cover (out && m_axis_rq_tlast && out_inside && out_length == 22 && reads_out == 1);
    end

    generate
        for (genvar l = 0; l < 8; l = l + 1) begin : g_lane
            localparam [4:0] LANE = l;
            wire [4:0] place = first + LANE;
            wire [4:0] number = place - 5'd4;
            wire [7:0] low   = m_axis_rq_tdata[l*32 +: 8];
            always_comb if (running && !rst && out) begin
                assert (m_axis_rq_tkeep[l] == (place < whole));
                if (place < whole && !(starts && l < 4)) assert (low == {number, next_number});
            end
        end
    endgenerate
endmodule
