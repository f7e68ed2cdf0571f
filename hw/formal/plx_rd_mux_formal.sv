// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Requests leave in the order of acceptance, none is lost or doubled, each has the number of its
// client, its function and its address; one is accepted in a cycle, and an offer is stable. A client waits for at most
// CLIENTS - 1 others. Data go only to the client of their tag.
// formal: aiger
// formal: always 7
// formal: cover 7
// mutant: s_desc_valid & {CLIENTS{free}} => s_desc_valid
// mutant: s_desc_func[c*8 +: 8]}; => s_desc_func[7:0]};
// mutant: {s_desc_address[c*64 +: 64], => {s_desc_address[63:0],

module plx_rd_mux_formal (
    input logic       clk,
    input logic       rst,
    input logic [2:0] s_desc_valid,
    input logic [2:0] s_desc_mark,
    input logic       m_desc_ready,
    input logic       s_data_tvalid,
    input logic [7:0] s_status_tag,
    input logic [2:0] m_data_tready
);
    logic [2:0]   s_desc_ready, m_data_tvalid;
    logic         m_desc_valid, s_data_tready, m_data_tlast, m_data_tuser;
    logic [63:0]  m_desc_address;
    logic [15:0]  m_desc_length;
    logic [7:0]   m_desc_tag, m_desc_func;
    logic [255:0] m_data_tdata;
    logic [31:0]  m_data_tkeep;
    logic [3:0]   m_data_tag;

    // Any of eight functions for each client, and any page of eight.
    (* anyconst *) logic [8:0] func, page;

    // One arbitrary bit of each request accompanies it.
    plx_rd_mux #(.CLIENTS(3)) dut (
        .*,
        .s_desc_address({49'd0, page[8:6], 12'd0, 49'd0, page[5:3], 12'd0, 49'd0, page[2:0], 12'd0}),
        .s_desc_length(48'd0),
        .s_desc_tag({3'd0, s_desc_mark[2], 3'd0, s_desc_mark[1], 3'd0, s_desc_mark[0]}),
        .s_desc_func({5'd0, func[8:6], 5'd0, func[5:3], 5'd0, func[2:0]}),
        .s_data_tdata(256'd0),
        .s_data_tkeep(32'd0),
        .s_data_tlast(1'b0),
        .s_data_tuser(1'b0)
    );

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);

    wire [2:0]  taken = s_desc_valid & s_desc_ready;
    wire        left  = m_desc_valid && m_desc_ready;
    wire [5:0]  whose = taken[2] ? {func[8:6], page[8:6]} : taken[1] ? {func[5:3], page[5:3]} : {func[2:0], page[2:0]};
    wire [13:0] tag   = {whose, 2'd0, taken[2], taken[1], 3'd0, |(taken & s_desc_mark)};

    // The contents of a queue of two: functions, pages and tags of accepted requests that have not left.
    logic [13:0] first, second;
    logic [1:0] inside = 0;
    logic [2:0] waited = 0, mark;
    logic       stood = 0;
    logic [7:0] stood_tag;
    always_ff @(posedge clk) begin
        inside <= rst ? 2'd0 : inside + {1'b0, |taken} - {1'b0, left};
        if (left) first <= second;
        if (|taken) begin
            if (inside == {1'b0, left}) first <= tag;
            else second <= tag;
        end
        waited    <= rst ? 3'd0 : s_desc_valid & ~s_desc_ready;
        mark      <= s_desc_mark;
        stood     <= !rst && m_desc_valid && !m_desc_ready;
        stood_tag <= m_desc_tag;
    end

    // Any one client: requests of others since it waits.
    (* anyconst *) logic [1:0] who;
    logic [1:0] others = 0;
    always_comb assume (who < 3);
    always_ff @(posedge clk) begin
        if (rst || !s_desc_valid[who] || taken[who]) others <= 2'd0;
        else if (taken != 0) others <= others + 1'b1;
    end

    always_comb if (running && !rst) begin
        // A request is stable until accepted.
        assume ((waited & ~s_desc_valid) == 0 && (waited & (mark ^ s_desc_mark)) == 0);
        assert ((taken & (taken - 1'b1)) == 0);
        assert (inside <= 2);
        assert (m_desc_valid == (inside != 0));
        if (m_desc_valid) begin
            assert (m_desc_tag == first[7:0]);
            assert ({m_desc_func, m_desc_address} == {5'd0, first[13:11], 49'd0, first[10:8], 12'd0});
        end
        if (stood) assert (m_desc_valid && m_desc_tag == stood_tag);
        assert (others <= 2);
        if (others == 2 && taken != 0) assert (taken[who]);
        cover (others == 2 && taken[who] && inside == 1);
    end

    always_comb if (running && !rst) begin
        // Data have the tag of a request.
        if (s_data_tvalid) assume (s_status_tag[7:4] < 3);
        assert (m_data_tvalid == (s_data_tvalid ? 3'd1 << s_status_tag[5:4] : 3'd0));
        if (s_data_tvalid) assert (s_data_tready == m_data_tready[s_status_tag[5:4]]);
        assert (m_data_tag == s_status_tag[3:0]);
    end
endmodule
