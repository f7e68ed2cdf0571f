// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The writer, for any words and any level of the queue, until that is full: what is neither idles nor an
// ordered set is written once; and behind the end of a frame is a column of idles, if it came with one. The
// reader: its words are those of the queue, and only behind idles or an ordered set there are more. The queue
// has a proof of its own, and may have any words and levels here.
// formal: induction 2
// formal: cover 24
// mutant: low == IDLE_COLUMN && !last_end => low == IDLE_COLUMN
// mutant: high == IDLE_COLUMN && ends[3:0] == 4'd0 => high == IDLE_COLUMN
// mutant: held         <= odd || delete_low => held         <= delete_low
// mutant: if (take) gap <= r_gap; => if (take) gap <= 1'b1;

module plx_pcs_elastic_formal (
    input logic        clk,
    input logic        rst,
    input logic [63:0] s_xgmii_rxd,
    input logic [7:0]  s_xgmii_rxc
);
    logic [63:0] m_xgmii_rxd;
    logic [7:0]  m_xgmii_rxc;
    logic        flows, inc_overflow, inc_underflow, inc_deleted, inc_inserted;

    plx_pcs_elastic #(.DEPTH(8), .MOST(5)) dut (
        .clk_rx_net(clk), .rst_rx(rst), .s_xgmii_rxd, .s_xgmii_rxc, .clk_net(clk), .rst_net(rst), .m_xgmii_rxd,
        .m_xgmii_rxc, .flows, .inc_overflow, .inc_underflow, .inc_deleted, .inc_inserted
    );

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);

    always_ff @(posedge clk) if (running && !rst) begin
        cover (inc_deleted);
        cover (inc_inserted);
        cover (inc_overflow);
        cover (inc_underflow);
    end
endmodule

module plx_fifo_level #(
    parameter WIDTH = 64,
    parameter DEPTH = 16
) (
    input  logic                   w_clk,
    input  logic                   w_rst,
    input  logic                   s_valid,
    input  logic [WIDTH-1:0]       s_data,
    output logic [$clog2(DEPTH):0] s_level,
    input  logic                   r_clk,
    input  logic                   r_rst,
    output logic [WIDTH-1:0]       m_data,
    output logic [$clog2(DEPTH):0] m_level,
    input  logic                   m_take
);
    (* anyseq *) wire [WIDTH-1:0]       word;
    (* anyseq *) wire [$clog2(DEPTH):0] written, seen;

    assign m_data  = word;
    assign s_level = written;
    assign m_level = seen;
endmodule
