// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// No other words or descriptors are between those of one write; each write is reported once, after its
// acceptance; an input waits for at most INPUTS - 1 writes of others.
// formal: aiger
// formal: always 10
// formal: cover 10
// mutant: data_accepted && last || desc_accepted && immediate => data_accepted && last

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
    logic [2:0]   s_desc_ready, s_data_tready, m_accepted;
    logic         m_desc_valid, m_desc_immediate, m_data_tvalid;
    logic [63:0]  m_desc_address;
    logic [12:0]  m_desc_length;
    logic [7:0]   m_desc_func;
    logic [31:0]  m_desc_immediate_data;
    logic [255:0] m_data_tdata;

    plx_wr_mux #(.INPUTS(3)) dut (
        .*,
        .s_desc_address(192'd0),
        .s_desc_length(39'd0),
        .s_desc_func(24'd0),
        .s_desc_immediate_data(96'd0),
        .s_data_tdata(768'd0)
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

    always_comb if (running && !rst) begin
        assert (others <= 2'd2);
        if (others == 2'd2 && desc != 0) assert (desc[who]);
    end
endmodule
