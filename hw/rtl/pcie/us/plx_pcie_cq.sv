// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Completer requests of the block (PG213, "Completer Request Interface") to register requests on the
// host bus. A request is offered when its last beat is here, so one that the block discontinues leaves
// no trace. What the card has no answer for (I/O, atomic operations, locked reads, a discontinued
// read) is offered as a read of BAR 7, which `plx_csr` completes as an unsupported request (PCIe 4.0,
// 2.3.1); a discontinued write and a message are dropped. Data beyond 64 bytes are not passed on: such
// a write is discarded by its length. From the last beat to the offer: 1 cycle.

module plx_pcie_cq #(
    parameter FIRST_VF = 4  // number of the first virtual function at the block
) (
    input  logic         clk,
    input  logic         rst,

    // No request is accepted, or offered anew.
    input  logic         hold,

    // Requests from the block.
    input  logic         s_axis_cq_tvalid,
    output logic         s_axis_cq_tready,
    input  logic [255:0] s_axis_cq_tdata,
    input  logic [87:0]  s_axis_cq_tuser,
    input  logic         s_axis_cq_tlast,

    // Requests to the card; a locked read has bit 8 of its tag set.
    output logic         hif_rx_req_valid,
    input  logic         hif_rx_req_ready,
    output logic         hif_rx_req_sop,
    output logic         hif_rx_req_eop,
    output logic [127:0] hif_rx_req_header,
    output logic [255:0] hif_rx_req_data,

    // A request that will be completed has been accepted by the card.
    output logic         np_accepted,

    // One cycle for each: a request answered as unsupported; a posted one dropped.
    output logic         inc_cq_refused,
    output logic         inc_cq_dropped
);
    localparam [3:0] READ = 0, WRITE = 1, IO_READ = 2, LOCKED = 7;
    localparam [1:0] COLLECT = 0, OFFER = 1, SECOND = 2;

    // The request: descriptor, byte enables, up to 16 DWs, how many beats there have been (up to 3).
    logic [1:0]   state;
    logic [1:0]   beats;
    logic [127:0] descriptor;
    logic [7:0]   enables;
    logic [511:0] data;
    logic         broken;

    wire accept = s_axis_cq_tvalid && s_axis_cq_tready;
    wire ends   = accept && s_axis_cq_tlast;

    // Fields of the descriptor.
    wire [63:0] address   = {descriptor[63:2], 2'b00};
    wire [10:0] length    = descriptor[74:64];
    wire [3:0]  kind      = descriptor[78:75];
    wire [15:0] requester = descriptor[95:80];
    wire [7:0]  tag       = descriptor[103:96];
    wire [7:0]  target    = descriptor[111:104];
    wire [2:0]  bar       = descriptor[114:112];
    wire [5:0]  aperture  = descriptor[120:115];
    wire [2:0]  tc        = descriptor[123:121];
    wire [2:0]  attr      = descriptor[126:124];

    wire [7:0] func;
    plx_pcie_func #(.FIRST_VF(FIRST_VF)) function_number (.block(target), .card(func));

    // A write is taken from its first beat: its data are there with the header.
    wire write   = kind == WRITE && !broken;
    wire read    = kind == READ && !broken;
    wire locked  = kind == LOCKED;
    wire refused = !write && (kind == READ || kind >= IO_READ && kind <= LOCKED);
    wire dropped = !write && !read && !refused;

    // Offset in the BAR: address bits below its aperture.
    wire [31:0] offset;
    generate
        for (genvar i = 0; i < 32; i = i + 1) begin : g_offset
            localparam [5:0] BIT = i;
            assign offset[i] = address[i] && BIT < aperture;
        end
    endgenerate

    // What is neither a read nor a write of memory has a completion of 4 bytes from 0 (PCIe 4.0, 2.2.9).
    wire        plain  = write || kind == READ || locked;
    wire [31:0] at     = plain ? offset : 32'd0;
    wire [9:0]  dws    = plain ? length[9:0] : 10'd1;
    wire [7:0]  bytes  = plain ? enables : 8'h0F;
    wire        two    = write && length > 11'd8;

    assign s_axis_cq_tready  = state == COLLECT && !hold;
    assign hif_rx_req_valid  = state != COLLECT && !dropped && !(hold && state == OFFER);
    assign hif_rx_req_sop    = state != SECOND;
    assign hif_rx_req_eop    = state == SECOND || !two;
    wire  [2:0] region = write || read ? bar : 3'd7;

    always_comb begin
        hif_rx_req_header = '0;
        hif_rx_req_header[layouts_pkg::HIF_OFFSET_AT +: 32]        = at;
        hif_rx_req_header[layouts_pkg::HIF_REQUESTER_AT +: 16]     = requester;
        hif_rx_req_header[layouts_pkg::HIF_LENGTH_AT +: 10]        = dws;
        hif_rx_req_header[layouts_pkg::HIF_FIRST_BE_AT +: 8]       = bytes;
        hif_rx_req_header[layouts_pkg::HIF_BAR_AT +: 3]            = region;
        hif_rx_req_header[layouts_pkg::HIF_WRITE_AT]                 = write;
        hif_rx_req_header[layouts_pkg::HIF_TAG_AT +: 9]            = {locked, tag};
        hif_rx_req_header[layouts_pkg::HIF_FUNC_AT +: 8]           = func;
        hif_rx_req_header[layouts_pkg::HIF_ATTRIBUTES_AT +: 3]     = attr;
        hif_rx_req_header[layouts_pkg::HIF_TRAFFIC_CLASS_AT +: 3]  = tc;
    end

    assign hif_rx_req_data = state == SECOND ? data[511:256] : data[255:0];
    assign np_accepted     = hif_rx_req_valid && hif_rx_req_ready && hif_rx_req_eop && !write;

    always_ff @(posedge clk) begin
        case (state)
            COLLECT: if (ends) state <= OFFER;
            default: if (hif_rx_req_valid && hif_rx_req_ready || dropped) state <= hif_rx_req_eop ? COLLECT : SECOND;
        endcase
        if (accept) beats <= ends ? 2'd0 : beats == 2'd3 ? 2'd3 : beats + 2'd1;
        inc_cq_refused <= np_accepted && !read;
        inc_cq_dropped <= state != COLLECT && dropped;
        if (rst) begin
            state          <= COLLECT;
            beats          <= 2'd0;
            inc_cq_refused <= 1'b0;
            inc_cq_dropped <= 1'b0;
        end
    end

    always_ff @(posedge clk) if (accept) begin
        broken <= s_axis_cq_tuser[41];
        if (beats == 2'd0) begin
            descriptor <= s_axis_cq_tdata[127:0];
            enables    <= s_axis_cq_tuser[7:0];
            data       <= {384'd0, s_axis_cq_tdata[255:128]};
        end
        if (beats == 2'd1) data[383:128] <= s_axis_cq_tdata;
        if (beats == 2'd2) data[511:384] <= s_axis_cq_tdata[127:0];
    end

    wire unused = &{1'b0, descriptor[127], descriptor[79], descriptor[1:0], address[63:32], length[10],
                    s_axis_cq_tuser[87:42], s_axis_cq_tuser[40:8]};
endmodule
