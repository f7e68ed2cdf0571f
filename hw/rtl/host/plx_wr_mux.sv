// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Merges all writes into the one order in which they reach the host: whole descriptors with their
// data, round robin. An accepted write precedes all writes accepted later, so `m_accepted` means
// "placed" and "event written". Latency 1 cycle; no idle cycle between writes.

module plx_wr_mux #(
    parameter INPUTS = 6  // writers
) (
    input  logic                  clk,
    input  logic                  rst,

    // Descriptors of each, stable until accepted.
    input  logic [INPUTS-1:0]     s_desc_valid,
    output logic [INPUTS-1:0]     s_desc_ready,
    input  logic [INPUTS*64-1:0]  s_desc_address,
    input  logic [INPUTS*13-1:0]  s_desc_length,
    input  logic [INPUTS*8-1:0]   s_desc_func,
    input  logic [INPUTS-1:0]     s_desc_immediate,
    input  logic [INPUTS*32-1:0]  s_desc_immediate_data,

    // Their data, none of an immediate.
    input  logic [INPUTS-1:0]     s_data_tvalid,
    output logic [INPUTS-1:0]     s_data_tready,
    input  logic [INPUTS*256-1:0] s_data_tdata,
    input  logic [INPUTS-1:0]     s_data_tlast,

    // One cycle, after the cycle in which the last word of a write was accepted.
    output logic [INPUTS-1:0]     m_accepted,

    // All writes, in order.
    output logic                  m_desc_valid,
    input  logic                  m_desc_ready,
    output logic [63:0]           m_desc_address,
    output logic [12:0]           m_desc_length,
    output logic [7:0]            m_desc_func,
    output logic                  m_desc_immediate,
    output logic [31:0]           m_desc_immediate_data,
    output logic                  m_data_tvalid,
    input  logic                  m_data_tready,
    output logic [255:0]          m_data_tdata
);
    generate
        if (INPUTS < 2) INPUTS_must_be_at_least_2 parameter_error ();
    endgenerate

    // The granted writer, until the last word of its write is accepted; its descriptor has been sent.
    logic [INPUTS-1:0] grant;
    logic              gone;
    wire               done;

    plx_arb_rr #(.N(INPUTS)) arbiter (.clk, .rst, .request(s_desc_valid), .grant, .done);

    integer i;
    logic         immediate, last;
    logic [116:0] rest;
    logic [255:0] word;
    always_comb begin
        immediate = |(grant & s_desc_immediate);
        last      = |(grant & s_data_tlast);
        rest      = '0;
        word      = '0;
        for (i = 0; i < INPUTS; i = i + 1) begin
            rest = rest | ({s_desc_address[i*64 +: 64], s_desc_length[i*13 +: 13], s_desc_func[i*8 +: 8],
                            s_desc_immediate_data[i*32 +: 32]} & {117{grant[i]}});
            word = word | (s_data_tdata[i*256 +: 256] & {256{grant[i]}});
        end
    end

    wire desc_free, data_free;
    wire desc_accepted = |(grant & s_desc_valid & s_desc_ready);
    wire data_accepted = |(grant & s_data_tvalid & s_data_tready);

    assign s_desc_ready  = grant & {INPUTS{desc_free && !gone}};
    // Of each by itself, as the grant comes late.
    assign s_data_tready = grant & ({INPUTS{data_free && gone}} | {INPUTS{data_free && desc_free}} & ~s_desc_immediate);
    assign done          = data_accepted && last || desc_accepted && immediate;

    always_ff @(posedge clk) begin
        gone       <= (gone || desc_accepted) && !done;
        m_accepted <= grant & {INPUTS{done}};
        if (rst) begin
            gone       <= 1'b0;
            m_accepted <= '0;
        end
    end

    plx_skid #(.WIDTH(118)) desc (
        .clk,
        .rst,
        .s_valid(desc_accepted),
        .s_ready(desc_free),
        .s_data({immediate, rest}),
        .m_valid(m_desc_valid),
        .m_ready(m_desc_ready),
        .m_data({m_desc_immediate, m_desc_address, m_desc_length, m_desc_func, m_desc_immediate_data})
    );

    plx_skid #(.WIDTH(256)) data (
        .clk,
        .rst,
        .s_valid(data_accepted),
        .s_ready(data_free),
        .s_data(word),
        .m_valid(m_data_tvalid),
        .m_ready(m_data_tready),
        .m_data(m_data_tdata)
    );
endmodule
