// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Completions of register reads to the block (PG213, "Completer Completion Interface"): a descriptor
// of 3 DWs, and the data behind it. It holds one whole completion of up to 64 bytes, so the card never
// waits for the block with one; and grants the block one non-posted request at a time, the next when
// this completion has left. So a posted write never waits for a completion to leave, which could be a
// deadlock (PCIe 4.0, 2.4.1). From the last word to the first beat: 1 cycle.

module plx_pcie_cc #(
    parameter FIRST_VF = 4  // number of the first virtual function at the block
) (
    input  logic         clk,
    input  logic         rst,

    // The card is in reset: what it was asked for has no completion.
    input  logic         flush,

    // Completions from the card.
    input  logic         hif_tx_cpl_valid,
    output logic         hif_tx_cpl_ready,
    input  logic         hif_tx_cpl_sop,
    input  logic         hif_tx_cpl_eop,
    input  logic [127:0] hif_tx_cpl_header,
    input  logic [255:0] hif_tx_cpl_data,

    // Completions to the block.
    output logic         m_axis_cc_tvalid,
    input  logic         m_axis_cc_tready,
    output logic [255:0] m_axis_cc_tdata,
    output logic [7:0]   m_axis_cc_tkeep,
    output logic [32:0]  m_axis_cc_tuser,
    output logic         m_axis_cc_tlast,

    // The card has accepted a request that is to be completed; the block may deliver one more.
    input  logic         np_accepted,
    output logic [1:0]   pcie_cq_np_req
);
    // The completion, and its next beat.
    logic         full;
    logic [1:0]   beat;
    logic [127:0] header;
    logic [511:0] data;

    wire accept = hif_tx_cpl_valid && hif_tx_cpl_ready;
    wire sent   = m_axis_cc_tvalid && m_axis_cc_tready;
    wire leaves = sent && m_axis_cc_tlast;

    // Fields of the header. `plx_csr` copies bit 8 of the tag, by which plx_pcie_cq marks a locked read.
    wire [6:0]  lower     = header[layouts_pkg::HIF_LOWER_ADDRESS_AT +: 7];
    wire [11:0] bytes     = header[layouts_pkg::HIF_BYTE_COUNT_AT +: 12];
    wire [15:0] requester = header[layouts_pkg::HIF_REQUESTER_AT +: 16];
    wire [9:0]  length    = header[layouts_pkg::HIF_LENGTH_AT +: 10];
    wire [2:0]  status    = header[layouts_pkg::HIF_STATUS_AT +: 3];
    wire [7:0]  tag       = header[layouts_pkg::HIF_TAG_AT +: 8];
    wire        locked    = header[layouts_pkg::HIF_TAG_AT + 8];
    wire [7:0]  func      = header[layouts_pkg::HIF_FUNC_AT +: 8];
    wire [2:0]  attr      = header[layouts_pkg::HIF_ATTRIBUTES_AT +: 3];
    wire [2:0]  tc        = header[layouts_pkg::HIF_TRAFFIC_CLASS_AT +: 3];

    // The block's number of the function: plx_pcie_func, reversed.
    localparam [7:0] BEFORE_VFS = FIRST_VF - 1;
    wire [7:0] block_func = func[7] ? {1'b0, func[6:0]} : func == 0 ? 8'd0 : func + BEFORE_VFS;

    // The block inserts bus and device of the completer: the enable in bit 88 is 0.
    wire [95:0] descriptor = {1'b0, attr, tc, 1'b0, 8'd0, block_func, tag,
                              requester, 2'b00, status, 1'b0, length,
                              2'b00, locked, bytes == 0, bytes, 9'd0, lower};

    // DWs with the descriptor, up to 19: the last beat, and the DWs in it.
    wire [4:0]   total = {1'b0, length[3:0]} + (length[4] ? 5'd19 : 5'd3);
    wire [4:0]   past  = total - 5'd1;
    wire         last  = beat == past[4:3];
    wire [7:0]   few   = 8'hFF >> ~past[2:0];
    wire [607:0] whole = {data, descriptor};

    assign hif_tx_cpl_ready = !full;
    assign m_axis_cc_tvalid = full;
    assign m_axis_cc_tlast  = last;
    assign m_axis_cc_tkeep  = last ? few : 8'hFF;
    assign m_axis_cc_tuser  = 33'd0;
    assign m_axis_cc_tdata  = beat == 2'd0 ? whole[255:0] : beat == 2'd1 ? whole[511:256] : {160'd0, whole[607:512]};

    // The next request of the block: granted; being answered. A reset of the card forgets one whose completion may be
    // here and has not left: the next one waits for that.
    logic granted, asked;
    wire  grant = !granted && !asked && !full && !flush;

    always_ff @(posedge clk) begin
        if (accept && hif_tx_cpl_eop) full <= 1'b1;
        if (leaves) full <= 1'b0;
        if (sent) beat <= last ? 2'd0 : beat + 2'd1;
        pcie_cq_np_req <= {1'b0, grant};
        if (grant) granted <= 1'b1;
        if (np_accepted) begin
            granted <= 1'b0;
            asked   <= 1'b1;
        end
        if (leaves || flush) asked <= 1'b0;
        if (rst) begin
            full           <= 1'b0;
            beat           <= 2'd0;
            granted        <= 1'b0;
            asked          <= 1'b0;
            pcie_cq_np_req <= 2'b00;
        end
    end

    always_ff @(posedge clk) if (accept) begin
        if (hif_tx_cpl_sop) begin
            header        <= hif_tx_cpl_header;
            data          <= {256'd0, hif_tx_cpl_data};
        end else begin
            data[511:256] <= hif_tx_cpl_data;
        end
    end

    wire unused = &{1'b0, header, length[9:5]};
endmodule
