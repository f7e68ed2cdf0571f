// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Register requests of the host in the order in which they came, and doorbells that may pass reads. A read
// that cannot be performed yet is set aside, so that the request behind it is seen: if that is a doorbell,
// it is offered as one as well. Nothing else passes a read, and nothing passes a write (PCIe 4.0, 2.4.1).
//
// Doorbells are writes of a whole DW to RING_PRODUCER, LIST_RELEASED, QUEUE_RELEASED and QUEUE_ARM. A request
// that finds nothing waiting goes through without a register.

module plx_csr_requests #(
    parameter READS = 4  // reads that are set aside, besides the next one: a power of two
) (
    input  logic         clk,
    input  logic         rst,

    // Requests of the host.
    input  logic         hif_rx_req_valid,
    output logic         hif_rx_req_ready,
    input  logic         hif_rx_req_sop,
    input  logic         hif_rx_req_eop,
    input  logic [127:0] hif_rx_req_header,
    input  logic [255:0] hif_rx_req_data,

    // The same, in order.
    output logic         m_req_valid,
    input  logic         m_req_ready,
    output logic         m_req_sop,
    output logic         m_req_eop,
    output logic [127:0] m_req_header,
    output logic [255:0] m_req_data,

    // A doorbell, as one that passes all reads before it; of the event queues, the rings, the lists.
    output logic         m_bell_valid,
    input  logic         m_bell_ready,
    output logic [2:0]   m_bell_block,
    output logic [2:0]   m_bell_func,
    output logic [16:0]  m_bell_offset,
    output logic [31:0]  m_bell_data
);
    // The word that was accepted last, if it waits.
    logic         full, sop, eop;
    logic [127:0] header;
    logic [255:0] data;

    // Reads that were set aside.
    logic         read_valid, read_ready, aside_ready;
    logic [127:0] read_header;

    wire first = m_req_ready && !read_valid;
    wire read  = full && sop && eop && !header[layouts_pkg::HIF_WRITE_AT];

    plx_fifo_first #(.WIDTH(128), .DEPTH(READS)) reads (
        .clk, .rst, .s_valid(read && !first), .s_ready(aside_ready), .s_data(header),
        .m_valid(read_valid), .m_ready(read_ready), .m_data(read_header)
    );

    assign read_ready       = m_req_ready;
    assign hif_rx_req_ready = !full;
    assign m_req_valid      = read_valid || full || hif_rx_req_valid;
    assign m_req_sop        = read_valid || (full ? sop : hif_rx_req_sop);
    assign m_req_eop        = read_valid || (full ? eop : hif_rx_req_eop);
    assign m_req_header     = read_valid ? read_header : full ? header : hif_rx_req_header;
    assign m_req_data       = full ? data : hif_rx_req_data;

    always_ff @(posedge clk) begin
        if (full) full <= !(first || m_bell_ready && m_bell_valid || read && aside_ready);
        else full <= hif_rx_req_valid && !first;
        if (!full) begin
            sop    <= hif_rx_req_sop;
            eop    <= hif_rx_req_eop;
            header <= hif_rx_req_header;
            data   <= hif_rx_req_data;
        end
        if (rst) full <= 1'b0;
    end

    // ---- Doorbells ------------------------------------------------------------------------------------

    // BAR 0, not poisoned, of a function that exists, one whole DW.
    wire  [9:0] length   = header[layouts_pkg::HIF_LENGTH_AT +: 10];
    wire  [3:0] first_be = header[layouts_pkg::HIF_FIRST_BE_AT +: 4];
    wire  [2:0] bar      = header[layouts_pkg::HIF_BAR_AT +: 3];
    wire  [7:0] func     = header[layouts_pkg::HIF_FUNC_AT +: 8];
    wire        plain    = header[layouts_pkg::HIF_WRITE_AT] && !header[layouts_pkg::HIF_POISONED_AT] && bar == 0
                           && func < 8'd8 && length == 10'd1 && first_be == 4'hF;
    wire [31:0] offset   = {header[layouts_pkg::HIF_OFFSET_AT + 2 +: 30], 2'b00};
    // QUEUE_RELEASED and QUEUE_ARM; RING_PRODUCER; LIST_RELEASED.
    wire in_event = offset >> regs_pkg::EVENT_ADDR_W == regs_pkg::EVENT_AT >> regs_pkg::EVENT_ADDR_W;
    wire in_tx    = offset >> regs_pkg::TX_ADDR_W == regs_pkg::TX_AT >> regs_pkg::TX_ADDR_W;
    wire in_clop  = offset >> regs_pkg::CLOP_ADDR_W == regs_pkg::CLOP_AT >> regs_pkg::CLOP_ADDR_W;
    wire of_event = in_event && offset[14] && !offset[5] && offset[3:2] == 2'd3;
    wire of_tx    = in_tx && offset[10:8] == 3'd1 && offset[5:2] == 4'd3;
    wire of_clop  = in_clop && offset[14] != offset[13] && offset[5:2] == 4'd7;

    assign m_bell_block  = {of_clop, of_tx, of_event};
    assign m_bell_valid  = full && sop && eop && plain && m_bell_block != 0;
    assign m_bell_func   = func[2:0];
    assign m_bell_offset = offset[16:0];
    assign m_bell_data   = data[31:0];
endmodule
