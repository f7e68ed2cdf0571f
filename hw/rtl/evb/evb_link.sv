// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A link of the flow control ring: the sender adds a CRC, the receiver drops what is damaged. 2
// cycles; a physical link comes in between.

module evb_link (
    input  logic                           clk,
    input  logic                           rst,

    // Messages in.
    input  logic                           s_flow_valid,
    output logic                           s_flow_ready,
    input  logic [layouts_pkg::FLOW_W-1:0] s_flow_data,

    // Messages out, as they came in.
    output logic                           m_flow_valid,
    input  logic                           m_flow_ready,
    output logic [layouts_pkg::FLOW_W-1:0] m_flow_data,

    // A fault of the link, for tests: the message that is sent in this cycle is lost, or one bit of it changes.
    input  logic                           fault_lose,
    input  logic                           fault_flip,
    input  logic [8:0]                     fault_bit,

    // A damaged message was dropped.
    output logic                           inc_damaged
);
    localparam FLOW_W = layouts_pkg::FLOW_W;

    logic              sent_valid;
    logic [FLOW_W-1:0] sent;
    logic [31:0]       sent_crc, crc, found;

    wire                 moves = !m_flow_valid || m_flow_ready;
    wire [FLOW_W+32-1:0] fault = {{(FLOW_W + 31) {1'b0}}, fault_flip} << fault_bit;

    evb_crc #(.WIDTH(FLOW_W)) sender (.data(s_flow_data), .crc);
    evb_crc #(.WIDTH(FLOW_W)) receiver (.data(sent), .crc(found));

    assign s_flow_ready = !sent_valid || moves;

    always_ff @(posedge clk) begin
        inc_damaged <= 1'b0;
        if (s_flow_ready) begin
            sent_valid       <= s_flow_valid && !fault_lose;
            {sent_crc, sent} <= {crc, s_flow_data} ^ fault;
        end
        if (moves) begin
            m_flow_valid <= sent_valid && found == sent_crc;
            m_flow_data  <= sent;
            inc_damaged  <= sent_valid && found != sent_crc;
        end
        if (rst) begin
            sent_valid   <= 1'b0;
            m_flow_valid <= 1'b0;
            inc_damaged  <= 1'b0;
        end
    end
endmodule
