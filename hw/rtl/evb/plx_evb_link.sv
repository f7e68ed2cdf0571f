// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A link of the flow control ring: the sender adds a CRC, the receiver drops what is damaged. 2
// cycles; a physical link comes in between.

module plx_evb_link (
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
    localparam [31:0] POLYNOMIAL = 32'hEDB88320;

    // CRC-32 (IEEE 802.3, clause 3.2.9) of one wide word, bit 0 first. The state starts as all ones, so that a
    // word of zeros has a CRC too. Row i selects the bits of the word, with the state added to its first 32, that
    // make up bit i.
    function automatic [32*FLOW_W-1:0] matrix;
        input [31:0] polynomial;
        integer i, j;
        reg [31:0] column;
        begin
            column = polynomial;
            for (j = FLOW_W - 1; j >= 0; j = j - 1) begin
                for (i = 0; i < 32; i = i + 1) matrix[i*FLOW_W+j] = column[i];
                column = (column >> 1) ^ (column[0] ? polynomial : 32'd0);
            end
        end
    endfunction

    localparam [32*FLOW_W-1:0] ROWS = matrix(POLYNOMIAL);

    function automatic [31:0] crc;
        input [FLOW_W-1:0] data;
        integer i;
        reg [FLOW_W-1:0] word;
        begin
            word = data ^ {{(FLOW_W - 32) {1'b0}}, 32'hFFFFFFFF};
            for (i = 0; i < 32; i = i + 1) crc[i] = ~^(word & ROWS[i*FLOW_W+:FLOW_W]);
        end
    endfunction

    logic              sent_valid;
    logic [FLOW_W-1:0] sent;
    logic [31:0]       sent_crc;

    wire moves = !m_flow_valid || m_flow_ready;
    // The inverse of `m_flow_valid`, for `s_flow_ready` alone, which is on the path from a feeder to the one before.
    logic m_empty;

    assign s_flow_ready = !sent_valid || m_empty || m_flow_ready;

    // Bits of the CRC that differ; a tree over all of them.
    wire [31:0] differs = crc(sent) ^ sent_crc;

    // A CRC is only computed of a message that is there: the ring is simulated three times as fast.
    always_ff @(posedge clk) begin
        inc_damaged <= 1'b0;
        if (s_flow_ready) begin
            sent_valid <= s_flow_valid && !fault_lose;
            if (s_flow_valid) begin
                {sent_crc, sent} <= {crc(s_flow_data), s_flow_data} ^ ({{(FLOW_W + 31) {1'b0}}, fault_flip} << fault_bit);
            end
        end
        if (moves) begin
            m_flow_valid <= 1'b0;
            m_empty      <= 1'b1;
            if (sent_valid) begin
                m_flow_valid <= !(|differs);
                m_empty      <= |differs;
                m_flow_data  <= sent;
                inc_damaged  <= |differs;
            end
        end
        if (rst) begin
            sent_valid   <= 1'b0;
            m_flow_valid <= 1'b0;
            m_empty      <= 1'b1;
            inc_damaged  <= 1'b0;
        end
    end
endmodule
