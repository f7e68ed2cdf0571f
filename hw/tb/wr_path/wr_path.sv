// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Writers on the way to the host bus, as in plx_host_bus: plx_wr_mux, and plx_dma_wr behind it.

module wr_path #(
    parameter INPUTS = 4
) (
    input  logic                  clk,
    input  logic                  rst,

    // As in a reset by register: no descriptor is accepted; none is pending; the writers, and plx_wr_mux, are reset.
    input  logic                  cfg_quiesce,
    output logic                  idle,
    input  logic                  clear,

    // Descriptors and data of each writer.
    input  logic [INPUTS-1:0]     s_desc_valid,
    output logic [INPUTS-1:0]     s_desc_ready,
    input  logic [INPUTS*64-1:0]  s_desc_address,
    input  logic [INPUTS*13-1:0]  s_desc_length,
    input  logic [INPUTS-1:0]     s_data_tvalid,
    output logic [INPUTS-1:0]     s_data_tready,
    input  logic [INPUTS*256-1:0] s_data_tdata,
    input  logic [INPUTS-1:0]     s_data_tlast,

    // Posted writes.
    output logic                  hif_wr_req_valid,
    input  logic                  hif_wr_req_ready,
    output logic                  hif_wr_req_sop,
    output logic                  hif_wr_req_eop,
    output logic [127:0]          hif_wr_req_header,
    output logic [255:0]          hif_wr_req_data
);
    logic         desc_valid, desc_ready, desc_immediate, data_valid, data_ready;
    logic [63:0]  desc_address;
    logic [12:0]  desc_length;
    logic [7:0]   desc_func;
    logic [31:0]  desc_immediate_data;
    logic [255:0] data;

    plx_wr_mux #(.INPUTS(INPUTS)) wr_mux (
        .clk, .rst(rst || clear), .s_desc_valid, .s_desc_ready, .s_desc_address, .s_desc_length, .s_desc_func('0),
        .s_desc_immediate('0), .s_desc_immediate_data('0), .s_data_tvalid, .s_data_tready, .s_data_tdata,
        .s_data_tlast, .m_accepted(), .m_desc_valid(desc_valid), .m_desc_ready(desc_ready),
        .m_desc_address(desc_address), .m_desc_length(desc_length), .m_desc_func(desc_func),
        .m_desc_immediate(desc_immediate), .m_desc_immediate_data(desc_immediate_data),
        .m_data_tvalid(data_valid), .m_data_tready(data_ready), .m_data_tdata(data)
    );

    plx_dma_wr dma_wr (
        .clk, .rst, .cfg_max_payload(3'd1), .cfg_bus_master(8'hFF), .cfg_quiesce, .idle, .clear,
        .s_desc_valid(desc_valid), .s_desc_ready(desc_ready), .s_desc_address(desc_address),
        .s_desc_length(desc_length), .s_desc_func(desc_func), .s_desc_immediate(desc_immediate),
        .s_desc_immediate_data(desc_immediate_data), .s_data_tvalid(data_valid), .s_data_tready(data_ready),
        .s_data_tdata(data), .hif_wr_req_valid, .hif_wr_req_ready, .hif_wr_req_sop, .hif_wr_req_eop,
        .hif_wr_req_header, .hif_wr_req_data, .inc_writes(), .inc_wr_discarded(), .ended()
    );
endmodule
