// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The block is never granted a non-posted request before the completion of the one before has left, or was forgotten
// in a reset of the card, so a completion of the card always has room; a grant follows as soon as nothing is under
// way. Each completion leaves once, in the places of PG213, each DW of its data in its place. Offers are stable. The
// block's reset takes back its grants.
// formal: aiger
// formal: always 12
// formal: cover 16
// mutant: !asked && !full && !flush; => !asked && !flush;
// mutant: !asked && !full && !flush; => !asked && !full;
// mutant: !asked && !full && !flush; => !full && !flush;
// mutant: grant = !granted && => grant =
// mutant: if (leaves || flush) asked => if (leaves) asked
// mutant: asked   <= 1'b1; => asked   <= 1'b0;
// mutant: if (accept && hif_tx_cpl_eop) full => if (accept) full
// mutant: if (leaves) full <= 1'b0; => if (sent) full <= 1'b0;
// mutant: beat <= last ? 2'd0 : beat + 2'd1; => beat <= beat + 2'd1;
// mutant: length[4] ? 5'd19 : 5'd3 => length[4] ? 5'd18 : 5'd3
// mutant: 8'hFF >> ~past[2:0]; => 8'hFF >> ~total[2:0];
// mutant: {160'd0, whole[607:512]}; => {160'd0, whole[575:480]};
// mutant: data[511:256] <= hif_tx_cpl_data; => data[255:0] <= hif_tx_cpl_data;
// mutant: requester, 2'b00, status => requester, status, 2'b00
// mutant: bytes == 0, bytes => 1'b0, bytes
// mutant: attr, tc, 1'b0, 8'd0 => tc, attr, 1'b0, 8'd0
// mutant: func + BEFORE_VFS; => func;

module plx_pcie_cc_formal (
    input logic         clk,
    input logic         rst,
    input logic         flush,
    input logic         hif_tx_cpl_valid,
    input logic         hif_tx_cpl_sop,
    input logic         hif_tx_cpl_eop,
    input logic [127:0] hif_tx_cpl_header,
    input logic         mark,
    input logic         m_axis_cc_tready,
    input logic         np_accepted
);
    logic         hif_tx_cpl_ready, m_axis_cc_tvalid, m_axis_cc_tlast;
    logic [255:0] m_axis_cc_tdata, hif_tx_cpl_data;
    logic [7:0]   m_axis_cc_tkeep;
    logic [32:0]  m_axis_cc_tuser;
    logic [1:0]   pcie_cq_np_req;

    plx_pcie_cc dut (.*);

    // Each DW is its place, and a mark of its completion.
    logic half = 0, its_mark;
    wire  now_mark = half ? its_mark : mark;
    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_in
            localparam [2:0] LANE = i;
            assign hif_tx_cpl_data[i*32 +: 32] = {27'd5, now_mark, half, LANE};
        end
    endgenerate

    // ---- The block and the card -------------------------------------------------------------------

    // Grants that the block has not used; a request that the card has to answer; a completion that is here.
    logic         running = 0, was_rst = 1, was_flush = 0, owed = 0, here = 0, was_idle = 0;
    logic [1:0]   grants = 0;
    logic [127:0] header;
    logic [4:0]   at = 0;

    wire       accept = hif_tx_cpl_valid && hif_tx_cpl_ready;
    wire       sent   = m_axis_cc_tvalid && m_axis_cc_tready;
    wire       leaves = sent && m_axis_cc_tlast;
    // The card forgets in its reset, if between the words of a completion; until it ends, one may still come.
    wire       forgets = was_flush && !flush, due = owed && !forgets;
    wire [1:0] usable = grants + {1'b0, pcie_cq_np_req[0]};
    wire [9:0] dws    = hif_tx_cpl_header[layouts_pkg::HIF_LENGTH_AT +: 10];

    always_ff @(posedge clk) begin
        running   <= 1'b1;
        was_rst   <= rst;
        was_flush <= flush;
        grants    <= usable - {1'b0, np_accepted};
        owed      <= (owed || np_accepted) && !(accept && hif_tx_cpl_eop);
        was_idle  <= !flush && !rst && usable == 0 && !due && !here;
        if (accept) begin
            half <= !hif_tx_cpl_eop;
            if (hif_tx_cpl_sop) begin
                header   <= hif_tx_cpl_header;
                its_mark <= mark;
            end
            if (hif_tx_cpl_eop) here <= 1'b1;
        end
        if (leaves) here <= 1'b0;
        if (sent) at <= m_axis_cc_tlast ? 5'd0 : at + 5'd8;
        if (forgets) begin
            owed <= np_accepted;
            half <= 1'b0;
        end
        if (rst) {half, owed, here, at, grants} <= '0;
    end

    always_comb begin
        if (!running) assume (rst);
        if (np_accepted) assume (usable != 0 && !flush && !rst);
        // Completions of up to 16 DWs, of requests alone.
        if (hif_tx_cpl_valid) begin
            assume (due && hif_tx_cpl_sop == !half);
            if (hif_tx_cpl_sop) assume (dws <= 16 && hif_tx_cpl_eop == (dws <= 8));
            else assume (hif_tx_cpl_eop);
        end
    end

    // ---- What has to hold -------------------------------------------------------------------------

    logic         stood = 0;
    logic [297:0] stood_beat;
    wire  [297:0] beat = {m_axis_cc_tdata, m_axis_cc_tkeep, m_axis_cc_tuser, m_axis_cc_tlast};
    always_ff @(posedge clk) begin
        stood      <= !rst && m_axis_cc_tvalid && !m_axis_cc_tready;
        stood_beat <= beat;
    end

    wire [4:0] length = header[layouts_pkg::HIF_LENGTH_AT +: 5];
    wire [4:0] total  = length + 5'd3;
    wire [7:0] func   = header[layouts_pkg::HIF_FUNC_AT +: 8];
    wire [11:0] bytes = header[layouts_pkg::HIF_BYTE_COUNT_AT +: 12];

    always_comb if (running && !was_rst) begin
        assert ({1'b0, usable} + {2'd0, due} + {2'd0, here} <= 1);
        assert (!pcie_cq_np_req[1]);
        if (hif_tx_cpl_valid && !rst) assert (hif_tx_cpl_ready);
        if (stood) assert (m_axis_cc_tvalid && beat == stood_beat);
        assert (m_axis_cc_tvalid == here);
        if (here) begin
            assert (m_axis_cc_tuser == 0 && m_axis_cc_tlast == (total - at <= 8));
            if (at == 0) begin
                assert (m_axis_cc_tdata[6:0] == header[layouts_pkg::HIF_LOWER_ADDRESS_AT +: 7]);
                assert (m_axis_cc_tdata[15:7] == 0);
                assert (m_axis_cc_tdata[28:16] == (bytes == 0 ? 13'd4096 : {1'b0, bytes}));
                assert (m_axis_cc_tdata[29] == header[layouts_pkg::HIF_TAG_AT + 8]);
                assert (m_axis_cc_tdata[42:30] == {6'd0, length, 2'd0});
                assert (m_axis_cc_tdata[47:43] == {2'd0, header[layouts_pkg::HIF_STATUS_AT +: 3]});
                assert (m_axis_cc_tdata[63:48] == header[layouts_pkg::HIF_REQUESTER_AT +: 16]);
                assert (m_axis_cc_tdata[71:64] == header[layouts_pkg::HIF_TAG_AT +: 8]);
                assert (m_axis_cc_tdata[79:72] == (func == 0 ? 8'd0 : func[7] ? func & 8'h7F : func + 8'd3));
                assert (m_axis_cc_tdata[88:80] == 0);
                assert (m_axis_cc_tdata[91:89] == header[layouts_pkg::HIF_TRAFFIC_CLASS_AT +: 3]);
                assert (m_axis_cc_tdata[95:92] == {1'b0, header[layouts_pkg::HIF_ATTRIBUTES_AT +: 3]});
            end
        end
        // One is granted as soon as it may be: two cycles later it is at the block.
        if (was_idle) assert (usable != 0 || rst);
        cover (leaves && at == 16);
        cover (leaves && length == 16 && header[layouts_pkg::HIF_LOWER_ADDRESS_AT]);
        cover (here && usable == 0 && !stood && at == 8 && total == 16);
        cover (flush && owed && half);
    end

    generate
        for (genvar l = 0; l < 8; l = l + 1) begin : g_out
            localparam [4:0] LANE = l;
            wire [4:0] place = at + LANE, dw = place - 5'd3;
            always_comb if (running && !was_rst && here) begin
                assert (m_axis_cc_tkeep[l] == (place < total));
                if (place >= 3 && place < total) assert (m_axis_cc_tdata[l*32 +: 32] == {27'd5, its_mark, dw[3:0]});
            end
        end
    endgenerate
endmodule
