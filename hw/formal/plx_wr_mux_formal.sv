// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// No other words or descriptors are between those of one write; each write is reported once, after its
// acceptance; an input waits for at most INPUTS - 1 writes of others. Descriptors and words leave in the order of
// acceptance, each descriptor with the function and address of its own input, each word as that input's.
// formal: aiger
// formal: always 10
// formal: cover 10
// mutant: data_accepted && last || desc_accepted && immediate => data_accepted && last
// mutant: s_desc_func[i*8 +: 8], => s_desc_func[7:0],
// mutant: {s_desc_address[i*64 +: 64], => {s_desc_address[63:0],
// mutant: (s_data_tdata[i*256 +: 256] => (s_data_tdata[255:0]

module plx_wr_mux_formal (
    input logic       clk,
    input logic       rst,
    input logic [2:0] s_desc_valid,
    input logic [2:0] s_desc_immediate,
    input logic [2:0] s_data_tvalid,
    input logic [2:0] s_data_tlast,
    input logic       m_desc_ready,
    input logic       m_data_tready
);
    // Any of eight functions for each input, and any page of eight; its words are as the page.
    (* anyconst *) logic [8:0] func, page;

    logic [2:0]   s_desc_ready, s_data_tready, m_accepted;
    logic         m_desc_valid, m_desc_immediate, m_data_tvalid;
    logic [63:0]  m_desc_address;
    logic [12:0]  m_desc_length;
    logic [7:0]   m_desc_func;
    logic [31:0]  m_desc_immediate_data;
    logic [255:0] m_data_tdata;

    plx_wr_mux #(.INPUTS(3)) dut (
        .*,
        .s_desc_address({49'd0, page[8:6], 12'd0, 49'd0, page[5:3], 12'd0, 49'd0, page[2:0], 12'd0}),
        .s_desc_length(39'd0),
        .s_desc_func({5'd0, func[8:6], 5'd0, func[5:3], 5'd0, func[2:0]}),
        .s_desc_immediate_data(96'd0),
        .s_data_tdata({253'd0, page[8:6], 253'd0, page[5:3], 253'd0, page[2:0]})
    );

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);

    wire [2:0] desc = s_desc_valid & s_desc_ready;
    wire [2:0] word = s_data_tvalid & s_data_tready;
    wire [2:0] ends = word & s_data_tlast | desc & s_desc_immediate;

    // The input whose write is in progress, its descriptor accepted.
    logic [2:0] under_way = 0, ended = 0, ended_before = 0, waited = 0, immediate;
    always_ff @(posedge clk) begin
        under_way    <= rst ? 3'd0 : (under_way | desc) & ~ends;
        ended        <= rst ? 3'd0 : ends;
        ended_before <= rst ? 3'd0 : ended;
        waited       <= rst ? 3'd0 : s_desc_valid & ~s_desc_ready;
        immediate    <= s_desc_immediate;
    end

    // Any one input: writes of others since it waits.
    (* anyconst *) logic [1:0] who;
    logic [1:0] others = 0;
    always_comb assume (who < 3);
    always_ff @(posedge clk) begin
        if (rst || !s_desc_valid[who] || desc[who] || under_way[who]) others <= 2'd0;
        else if (desc != 0) others <= others + 1'b1;
    end

    always_comb if (running && !rst) begin
        // A descriptor is stable until accepted.
        assume ((waited & ~s_desc_valid) == 0 && (waited & (immediate ^ s_desc_immediate)) == 0);
        assert ((desc & (desc - 1'b1)) == 0 && (word & (word - 1'b1)) == 0);
        if (under_way != 0) assert (desc == 0 && (word & ~under_way) == 0);
        else assert ((word & ~desc) == 0);
        assert ((under_way & (under_way - 1'b1)) == 0);
        assert (m_accepted == ended);
        cover (ends == 3'd4 && ended == 3'd2 && ended_before == 3'd1);
    end

    // Queues of two: the function and page of each descriptor that has not left; words.
    logic [5:0] first, second, taken;
    logic [2:0] first_word, second_word, taken_word;
    logic [1:0] inside = 0, words = 0;
    wire        left = m_desc_valid && m_desc_ready, left_word = m_data_tvalid && m_data_tready;
    always_comb begin
        taken      = desc[2] ? {func[8:6], page[8:6]} : desc[1] ? {func[5:3], page[5:3]} : {func[2:0], page[2:0]};
        taken_word = word[2] ? page[8:6] : word[1] ? page[5:3] : page[2:0];
    end
    always_ff @(posedge clk) begin
        inside <= rst ? 2'd0 : inside + {1'b0, |desc} - {1'b0, left};
        words  <= rst ? 2'd0 : words + {1'b0, |word} - {1'b0, left_word};
        if (left) first <= second;
        if (left_word) first_word <= second_word;
        if (|desc && inside == {1'b0, left}) first <= taken;
        else if (|desc) second <= taken;
        if (|word && words == {1'b0, left_word}) first_word <= taken_word;
        else if (|word) second_word <= taken_word;
    end

    always_comb if (running && !rst) begin
        assert (inside <= 2 && m_desc_valid == (inside != 0));
        assert (words <= 2 && m_data_tvalid == (words != 0));
        if (m_desc_valid) assert ({m_desc_func, m_desc_address} == {5'd0, first[5:3], 49'd0, first[2:0], 12'd0});
        if (m_data_tvalid) assert (m_data_tdata == {253'd0, first_word});
        assert (others <= 2'd2);
        if (others == 2'd2 && desc != 0) assert (desc[who]);
    end
endmodule
