// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Register requests of the host to one AXI4-Lite access for each DW, one at a time and in order, and
// its reads completed in order, with one completion each. While a read waits for a block in another clock,
// doorbells behind it are performed (`plx_csr_requests`), and then what follows them in turn. Every request is completed: reads without a
// register return 0; an absent BAR gives an unsupported request, more than 64 bytes a completer
// abort (PCIe 4.0, 2.3.1). Such writes, and poisoned ones, are discarded. From a request to its
// access: 2 cycles. Blocks in reset are absent meanwhile.
//
// A function reaches what is its own, and what all may read (hw/docs/functions.md): `own`. Another
// access reads 0, writes nothing, and is counted. A page that a function other than 0 writes has the
// number of that function in it, so that it translates for no other. Resets of functions write registers
// in turn with the host.

module plx_csr #(
    parameter PORTS  = 4,         // ports of the card
    parameter QUEUES = 256,       // event queues
    parameter BLOCKS = PORTS + 9, // register blocks, in the order of `place`
    parameter READS  = 4          // reads that a doorbell may pass, besides two
) (
    input  logic                 clk,
    input  logic                 rst,

    // Blocks that are absent at present.
    input  logic [BLOCKS-1:0]    block_in_reset,

    // Owners: of ports, of groups of 16 pages; of an event queue, in the same cycle.
    input  logic [PORTS*3-1:0]   cfg_port_owner,
    input  logic [23:0]          cfg_page_owner,
    output logic [7:0]           m_owner_queue,
    input  logic [2:0]           s_owner,

    // Functions in reset, or about to be: they write nothing of their own. Writes for the reset of a function;
    // ready: all accesses before have been performed.
    input  logic [7:0]           resetting,
    input  logic                 s_write_valid,
    output logic                 s_write_ready,
    input  logic [2:0]           s_write_func,
    input  logic                 s_write_vector,
    input  logic [16:0]          s_write_offset,
    input  logic [31:0]          s_write_data,

    // Requests.
    input  logic                 hif_rx_req_valid,
    output logic                 hif_rx_req_ready,
    input  logic                 hif_rx_req_sop,
    input  logic                 hif_rx_req_eop,
    input  logic [127:0]         hif_rx_req_header,
    input  logic [255:0]         hif_rx_req_data,

    // Completions.
    output logic                 hif_tx_cpl_valid,
    input  logic                 hif_tx_cpl_ready,
    output logic                 hif_tx_cpl_sop,
    output logic                 hif_tx_cpl_eop,
    output logic [127:0]         hif_tx_cpl_header,
    output logic [255:0]         hif_tx_cpl_data,

    // Blocks: address, data and strobes are common to all. Their responses are all "okay". Forget: the access is
    // for the reset of a function.
    output logic [2:0]           m_axil_func,
    output logic                 m_axil_forget,
    output logic [16:0]          m_axil_addr,
    output logic [BLOCKS-1:0]    m_axil_awvalid,
    input  logic [BLOCKS-1:0]    m_axil_awready,
    output logic [31:0]          m_axil_wdata,
    output logic [3:0]           m_axil_wstrb,
    output logic [BLOCKS-1:0]    m_axil_wvalid,
    input  logic [BLOCKS-1:0]    m_axil_wready,
    input  logic [BLOCKS-1:0]    m_axil_bvalid,
    output logic [BLOCKS-1:0]    m_axil_bready,
    output logic [BLOCKS-1:0]    m_axil_arvalid,
    input  logic [BLOCKS-1:0]    m_axil_arready,
    input  logic [BLOCKS*32-1:0] m_axil_rdata,
    input  logic [BLOCKS-1:0]    m_axil_rvalid,
    output logic [BLOCKS-1:0]    m_axil_rready,

    // One cycle for each access that no block has answered, and for each request that is not supported.
    output logic                 inc_refused
);
    generate
        if (PORTS != 1 && PORTS != 2 && PORTS != 4) PORTS_must_be_1_2_or_4 parameter_error ();
        if (BLOCKS != PORTS + 9) BLOCKS_must_be_PORTS_and_9 parameter_error ();
        if (QUEUES < 1 || QUEUES > 256) QUEUES_must_be_1_to_256 parameter_error ();
    endgenerate

    // For each DW: its block is selected, accessed, and what it read is kept.
    localparam [2:0] TAKE = 0, SELECT = 1, ACCESS = 2, KEEP = 3, ANSWER = 4, CHECK = 5;
    localparam [2:0] UNSUPPORTED = 1, ABORT = 4;

    logic         req_valid, req_ready, req_sop, req_eop, bell_valid, bell_ready;
    logic [127:0] req_header;
    logic [255:0] req_data;
    logic [2:0]   bell_block, bell_func;
    logic [16:0]  bell_offset;
    logic [31:0]  bell_data;

    plx_csr_requests #(.READS(READS)) requests (
        .clk, .rst, .hif_rx_req_valid, .hif_rx_req_ready, .hif_rx_req_sop, .hif_rx_req_eop, .hif_rx_req_header,
        .hif_rx_req_data, .m_req_valid(req_valid), .m_req_ready(req_ready), .m_req_sop(req_sop), .m_req_eop(req_eop),
        .m_req_header(req_header), .m_req_data(req_data), .m_bell_valid(bell_valid), .m_bell_ready(bell_ready),
        .m_bell_block(bell_block), .m_bell_func(bell_func), .m_bell_offset(bell_offset), .m_bell_data(bell_data)
    );

    logic [2:0]   state;
    logic [127:0] head;
    logic [511:0] data;
    logic [3:0]   index;
    logic         second;

    // The access is that of a doorbell, in the middle of the current request, a read; its function. The request is
    // that of a reset.
    logic       bell, inserted;
    logic [2:0] func;

    // The request, and its errors.
    wire [9:0] length   = head[layouts_pkg::HIF_LENGTH_AT +: 10];
    wire [3:0] first_be = head[layouts_pkg::HIF_FIRST_BE_AT +: 4];
    wire [3:0] last_be  = length == 10'd1 ? first_be : head[layouts_pkg::HIF_LAST_BE_AT +: 4];
    wire       writes   = head[layouts_pkg::HIF_WRITE_AT];
    wire [2:0] bar      = head[layouts_pkg::HIF_BAR_AT +: 3];
    wire [7:0] from     = head[layouts_pkg::HIF_FUNC_AT +: 8];
    wire       wrong    = bar != 3'd0 && bar != 3'd2 || head[layouts_pkg::HIF_POISONED_AT] || from >= 8'd8;
    wire       write    = writes || bell;
    wire       long     = length == 0 || length > 10'd16;
    wire [2:0] status   = wrong ? UNSUPPORTED : long ? ABORT : 3'd0;

    // The current DW, and its block: card, host, functions, timing, event, tlb, tx, clop, ports, MSI-X.
    wire [3:0]  last_index = length[3:0] - 4'd1;
    wire        last       = index == last_index;
    wire [3:0]  be         = index == 0 ? first_be : last ? last_be : 4'hF;
    wire [31:0] offset     = {head[layouts_pkg::HIF_OFFSET_AT + 2 +: 30] + {26'd0, index}, 2'b00};
    wire [BLOCKS-1:0] place;

    assign place[0]        = offset >> regs_pkg::CARD_ADDR_W == regs_pkg::CARD_AT >> regs_pkg::CARD_ADDR_W;
    assign place[1]        = offset >> regs_pkg::HOST_ADDR_W == regs_pkg::HOST_AT >> regs_pkg::HOST_ADDR_W;
    assign place[2]        = offset >> regs_pkg::FUNCTIONS_ADDR_W == regs_pkg::FUNCTIONS_AT >> regs_pkg::FUNCTIONS_ADDR_W;
    assign place[3]        = offset >> regs_pkg::TIMING_ADDR_W == regs_pkg::TIMING_AT >> regs_pkg::TIMING_ADDR_W;
    assign place[4]        = offset >> regs_pkg::EVENT_ADDR_W == regs_pkg::EVENT_AT >> regs_pkg::EVENT_ADDR_W;
    assign place[5]        = offset >> regs_pkg::TLB_ADDR_W == regs_pkg::TLB_AT >> regs_pkg::TLB_ADDR_W;
    assign place[6]        = offset >> regs_pkg::TX_ADDR_W == regs_pkg::TX_AT >> regs_pkg::TX_ADDR_W;
    assign place[7]        = offset >> regs_pkg::CLOP_ADDR_W == regs_pkg::CLOP_AT >> regs_pkg::CLOP_ADDR_W;
    assign place[BLOCKS-1] = offset >> 13 == 0;
    generate
        for (genvar p = 0; p < PORTS; p = p + 1) begin : g_port
            localparam AT = regs_pkg::PORT_AT + p * regs_pkg::PORT_STEP;
            assign place[8+p] = offset >> regs_pkg::PORT_ADDR_W == AT >> regs_pkg::PORT_ADDR_W;
        end
    endgenerate

    // BAR 2 holds only the vectors.
    localparam [BLOCKS-1:0] VECTORS = 1 << (BLOCKS - 1);
    wire  [BLOCKS-1:0] selected = place & (bar[1] ? VECTORS : ~VECTORS);
    // The block of the address; and the one that is accessed, if the function may; that of the read, meanwhile.
    logic [BLOCKS-1:0] meant, picked, waiting;
    // A block that goes away in the middle is answered for.
    wire  [BLOCKS-1:0] block = picked & ~block_in_reset;

    // ---- Who may --------------------------------------------------------------------------------------

    // The owner of a row of each table, where the address is in one.
    logic [16:0] at;
    wire  [1:0]  ring         = at[10] ? at[6:5] : at[7:6];
    wire  [2:0]  ring_owner   = 3'(cfg_port_owner >> (4'd3 * ring));
    wire  [2:0]  list_owner   = 3'(cfg_port_owner >> (4'd3 * at[12:11]));
    wire  [2:0]  page_owner   = 3'(cfg_page_owner >> (5'd3 * at[11:9]));
    wire         in_rings     = at[10] ? at[9:7] == 0 : at[9:8] == 2'd1;
    wire         in_lists     = at[14:13] == 2'd1 || at[14:13] == 2'd2;
    wire         in_queues    = at[14];
    wire         in_faults    = at[7:5] == 3'd1;

    // The access is a write of a function that is being reset: it would outlive the reset's own write of that
    // register. No doorbell passes a write.
    logic        barred;
    wire         forgets       = inserted;
    // A queue, or its vector, is in `m_owner_queue`.
    wire         in_use        = {1'b0, m_owner_queue} < QUEUES && !barred;

    // Kind of a block and address of the next one are for all to read.
    wire              first = func == 0;
    wire              reads = !write;
    wire [BLOCKS-1:0] own, own_queue;
    assign own[0]        = first || reads;
    assign own[1]        = first || reads && at[regs_pkg::HOST_ADDR_W-1:3] == 0;
    assign own[2]        = reads || (in_faults ? (first || at[4:2] == func) && !barred
                                               : first || at[7:6] == 2'd1 && at[5:3] == func);
    assign own[3]        = first || reads && at[regs_pkg::TIMING_ADDR_W-1:3] == 0;
    assign own[4]        = !in_queues && (first || reads);
    assign own[5]        = at[12] ? page_owner == func && !barred : first || reads && at[11:3] == 0;
    assign own[6]        = in_rings ? ring_owner == func && !barred : first || reads;
    assign own[7]        = in_lists ? list_owner == func && !barred : first || reads;
    assign own[BLOCKS-1] = at[12] && reads;
    // Also where the queue is the function's, which is known late: it chooses last.
    assign own_queue     = own | {!at[12] && in_use, {PORTS{1'b0}}, 3'd0, in_queues && in_use, 4'd0};
    wire              is_owner = s_owner == func;
    wire              is_check = state == CHECK;
    wire [BLOCKS-1:0] may      = meant & own & {BLOCKS{is_check}};
    wire [BLOCKS-1:0] may_more = meant & own_queue & {BLOCKS{is_check}};
    generate
        for (genvar p = 0; p < PORTS; p = p + 1) begin : g_own
            assign own[8+p] = cfg_port_owner[p*3 +: 3] == func && !barred || reads && at[regs_pkg::PORT_ADDR_W-1:3] == 0;
        end
    endgenerate

    // The word of a page that has its function.
    wire captures_ts = meant[5] && at[12] && at[4:2] == 3'd4 && !first;

    // The access is over.
    wire done = state == ACCESS && (block == 0 || |(m_axil_bvalid & m_axil_bready) || |(m_axil_rvalid & m_axil_rready));
    logic [31:0]       wdata;
    logic [3:0]        wstrb;
    logic              is_last;
    // Channels of the access that are offered, each to its block, until accepted: so nothing but the block itself is
    // between a block's answer and the next offer.
    logic [BLOCKS-1:0] aw_open, w_open, ar_open;

    // A read that waits for another clock: timing and ports. It has been accepted there, so the address is not
    // needed any more. Its answer goes before the next doorbell.
    localparam [BLOCKS-1:0] NET = {1'b0, {PORTS{1'b1}}, 8'b0000_1000};
    assign bell_ready = state == ACCESS && !write && (block & NET & ~ar_open) != 0 && !done;
    wire   begins     = bell_ready && bell_valid;

    // What goes on of the access before.
    wire [BLOCKS-1:0] still_picked = is_check ? '0 : done ? (bell ? waiting & ~block_in_reset : '0)
                                     : begins ? '0 : picked;
    wire [BLOCKS-1:0] still_aw     = is_check ? '0 : aw_open & ~m_axil_awready & ~block_in_reset;
    wire [BLOCKS-1:0] still_w      = is_check ? '0 : w_open & ~m_axil_wready & ~block_in_reset;
    wire [BLOCKS-1:0] still_ar     = is_check ? '0 : ar_open & ~m_axil_arready & ~block_in_reset;

    always_ff @(posedge clk) begin
        if (begins) begin
            at    <= bell_offset;
            func  <= bell_func;
            barred <= resetting[bell_func];
            wdata <= bell_data;
            wstrb <= 4'hF;
            m_owner_queue <= bell_offset[13:6];
            meant <= {{(BLOCKS-8){1'b0}}, bell_block[2], bell_block[1], 1'b0, bell_block[0], 4'd0};
        end
        bell    <= bell ? !done : begins;
        waiting <= (bell ? waiting : picked) & ~block_in_reset;
        if (state == SELECT) begin
            at      <= offset[16:0];
            func    <= from[2:0];
            // A reset that begins in the next cycle writes behind this access.
            barred  <= writes && !forgets && resetting[from[2:0]];
            wdata   <= data[index*32 +: 32];
            wstrb   <= be;
            is_last <= last;
            // Selected a cycle ahead: its owner comes late.
            m_owner_queue <= bar[1] ? offset[11:4] : offset[13:6];
        end
        if (state == SELECT) meant <= status == 0 && be != 0 ? selected : '0;
        picked <= is_owner ? may_more | still_picked : may | still_picked;
        if (state == CHECK && captures_ts) begin
            wdata[23:16] <= {5'd0, func};
            wstrb[2]     <= 1'b1;
        end
        // Ended without a block: it is another function's, there is none, or it is in reset.
        inc_refused <= !rst && (state == ACCESS ? block == 0 && wstrb != 0 && !forgets : state == SELECT && status != 0);
        aw_open <= is_owner ? may_more & {BLOCKS{write}} | still_aw : may & {BLOCKS{write}} | still_aw;
        w_open  <= is_owner ? may_more & {BLOCKS{write}} | still_w : may & {BLOCKS{write}} | still_w;
        ar_open <= is_owner ? may_more & {BLOCKS{reads}} | still_ar : may & {BLOCKS{reads}} | still_ar;
        if (rst) begin
            picked  <= '0;
            bell    <= 1'b0;
            aw_open <= '0;
            w_open  <= '0;
            ar_open <= '0;
        end
    end

    // The access.
    assign m_axil_func    = func;
    assign m_axil_forget  = forgets;
    assign m_axil_addr    = at;
    assign m_axil_wdata   = wdata;
    assign m_axil_wstrb   = wstrb;
    assign m_axil_awvalid = aw_open & ~block_in_reset;
    assign m_axil_wvalid  = w_open & ~block_in_reset;
    assign m_axil_arvalid = ar_open & ~block_in_reset;
    assign m_axil_bready  = block & {BLOCKS{write}};
    assign m_axil_rready  = block & {BLOCKS{!write}};

    logic [31:0] answer, kept;
    always_comb begin
        answer = '0;
        for (int b = 0; b < PORTS + 9; b = b + 1) answer = answer | (m_axil_rdata[b*32 +: 32] & {32{block[b]}});
    end

    // Bytes from the first requested one to the last (PCIe 4.0, table 2-38).
    wire [1:0] lowest  = first_be[0] ? 2'd0 : first_be[1] ? 2'd1 : first_be[2] ? 2'd2 : first_be[3] ? 2'd3 : 2'd0;
    wire [1:0] highest = last_be[3] ? 2'd3 : last_be[2] ? 2'd2 : last_be[1] ? 2'd1 : 2'd0;
    wire [9:0] others  = length - 10'd1;
    wire [11:0] bytes  = {others, 2'b00} + {10'd0, highest} - {10'd0, lowest} + 12'd1;

    // A reset of a function and the host take turns, by whole requests.
    logic turned;
    wire  inserts = s_write_valid && !second && !(turned && req_valid);

    assign s_write_ready     = state == TAKE && !second && !(turned && req_valid);
    assign req_ready         = state == TAKE && !inserts;
    assign hif_tx_cpl_valid  = state == ANSWER;
    assign hif_tx_cpl_sop    = !second;
    assign hif_tx_cpl_eop    = second || status != 0 || length <= 10'd8;
    assign hif_tx_cpl_data   = second ? data[511:256] : data[255:0];

    // As the request: requester, tag, function, attributes, traffic class.
    wire [15:0] requester  = head[layouts_pkg::HIF_REQUESTER_AT +: 16];
    wire [23:0] returned   = head[layouts_pkg::HIF_TAG_AT +: 24];
    wire  [6:0] lower      = {head[layouts_pkg::HIF_LOWER_ADDRESS_AT + 2 +: 5], lowest};
    wire  [9:0] cpl_length = status != 0 ? 10'd0 : length;

    always_comb begin
        hif_tx_cpl_header = '0;
        hif_tx_cpl_header[layouts_pkg::HIF_LOWER_ADDRESS_AT +: 7] = lower;
        hif_tx_cpl_header[layouts_pkg::HIF_BYTE_COUNT_AT +: 12]    = bytes;
        hif_tx_cpl_header[layouts_pkg::HIF_REQUESTER_AT +: 16]     = requester;
        hif_tx_cpl_header[layouts_pkg::HIF_LENGTH_AT +: 10]        = cpl_length;
        hif_tx_cpl_header[layouts_pkg::HIF_STATUS_AT +: 3]         = status;
        hif_tx_cpl_header[layouts_pkg::HIF_TAG_AT +: 24]           = returned;
    end

    always_ff @(posedge clk) begin
        case (state)
            TAKE: if (inserts) begin
                turned   <= 1'b1;
                inserted <= 1'b1;
                head   <= '0;
                head[layouts_pkg::HIF_OFFSET_AT +: 32]   <= {15'd0, s_write_offset};
                head[layouts_pkg::HIF_LENGTH_AT +: 10]   <= 10'd1;
                head[layouts_pkg::HIF_FIRST_BE_AT +: 4] <= 4'hF;
                head[layouts_pkg::HIF_BAR_AT +: 3]       <= s_write_vector ? 3'd2 : 3'd0;
                head[layouts_pkg::HIF_WRITE_AT]            <= 1'b1;
                head[layouts_pkg::HIF_FUNC_AT +: 8]      <= {5'd0, s_write_func};
                data   <= {480'd0, s_write_data};
                state  <= SELECT;
            end else if (req_valid) begin
                turned   <= 1'b0;
                inserted <= 1'b0;
                second <= !req_eop;
                if (req_sop) head <= req_header;
                // Words after the second are not used.
                if (req_sop) data <= {256'd0, req_header[layouts_pkg::HIF_WRITE_AT] ? req_data : 256'd0};
                else data[511:256] <= req_data;
                if (req_eop) state <= SELECT;
            end
            SELECT: state <= status == 0 ? CHECK : writes ? TAKE : ANSWER;
            CHECK: state <= ACCESS;
            ACCESS: begin
                kept <= answer;
                if (begins) state <= CHECK;
                else if (done && !bell) state <= KEEP;
            end
            KEEP: begin
                if (!writes) begin
                    for (int b = 0; b < 16; b = b + 1) if (index == 4'(b)) data[b*32 +: 32] <= kept;
                end
                index <= index + 4'd1;
                state <= !is_last ? SELECT : writes ? TAKE : ANSWER;
            end
            default: if (hif_tx_cpl_ready) begin
                second <= !hif_tx_cpl_eop;
                if (hif_tx_cpl_eop) state <= TAKE;
            end
        endcase
        if (state == TAKE) index <= 4'd0;
        if (rst) begin
            state  <= TAKE;
            second <= 1'b0;
            turned <= 1'b0;
        end
    end

    wire unused = &{1'b0, head, offset[31:17]};

`ifdef FORMAL
    // What is offered is of the access; no access is outside of its state.
    always_ff @(posedge clk) if (!rst) begin
        assert (((aw_open | w_open | ar_open) & ~picked) == 0);
        assert (write ? ar_open == 0 : (aw_open | w_open) == 0);
        assert (state == ACCESS || picked == 0);
        if (state == CHECK && meant[4]) assert (m_owner_queue == at[13:6]);
        if (state == CHECK && meant[BLOCKS-1]) assert (m_owner_queue == at[11:4]);
    end
`endif
endmodule
