// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The card's side of the host bus, wired: registers of the card and of the bus, access to all other
// registers, writes, interrupts, reads, resets.

module plx_host_bus #(
    parameter PORTS         = 4,           // ports of the card
    parameter STREAMS       = 16,          // of each, shown in registers
    parameter RX_FIFO_WORDS = 2048,        // of each, shown in registers
    parameter TLB_ENTRIES   = 128,         // shown in registers
    parameter EVENT_QUEUES  = 256,         // each with a vector
    parameter RD_TAGS       = 128,         // open read requests
    parameter ARP_ENTRIES   = 256,         // of each port, shown in registers
    parameter GIT_HASH      = 160'h0,      // in printed order
    parameter WRITERS       = PORTS + 1,   // writers to memory, besides interrupts
    parameter BLOCKS        = PORTS + 5    // register blocks outside this module
) (
    // Clocks, resets from outside, and resets of all other modules; in clk_core, the ports are in reset, and what
    // waits for them is lost; they are in reset, or their clock stands.
    input  logic                   clk_net,
    input  logic                   rst_net,
    input  logic                   clk_core,
    input  logic                   rst_core,
    output logic                   others_rst,
    output logic                   net_rst,
    output logic                   net_clear,
    output logic                   net_in_reset,
    input  logic [63:0]            now_cycle_ts,

    // As the host has configured the functions, a bit for each; the limits are those of function 0.
    input  logic [2:0]             cfg_max_payload,
    input  logic [2:0]             cfg_max_read,
    input  logic [7:0]             cfg_bus_master,
    input  logic [7:0]             cfg_msix_enable,
    input  logic [7:0]             cfg_msix_mask,

    // Function level resets requested until done, for one cycle.
    input  logic [7:0]             cfg_flr,
    output logic [7:0]             flr_done,

    // Owners of ports, that of a queue in the same cycle, functions in reset; sources that are not at rest.
    output logic [PORTS*3-1:0]     port_owner,
    input  logic [7:0]             s_owner_queue,
    output logic [2:0]             m_owner,
    output logic [7:0]             resetting_functions,
    input  logic [PORTS-1:0]       s_placing,
    input  logic [PORTS-1:0]       s_ring_quiet,
    input  logic [2:0]             s_event_rest,

    // Of each function: an event for each of its TLB faults, and its queue.
    output logic [7:0]             cfg_event_fault,
    output logic [63:0]            cfg_fault_queue,

    // The host bus.
    output logic                   hif_wr_req_valid,
    input  logic                   hif_wr_req_ready,
    output logic                   hif_wr_req_sop,
    output logic                   hif_wr_req_eop,
    output logic [127:0]           hif_wr_req_header,
    output logic [255:0]           hif_wr_req_data,
    output logic                   hif_rd_req_valid,
    input  logic                   hif_rd_req_ready,
    output logic [127:0]           hif_rd_req_header,
    input  logic                   hif_rx_cpl_valid,
    output logic                   hif_rx_cpl_ready,
    input  logic                   hif_rx_cpl_sop,
    input  logic                   hif_rx_cpl_eop,
    input  logic [127:0]           hif_rx_cpl_header,
    input  logic [255:0]           hif_rx_cpl_data,
    input  logic                   hif_rx_req_valid,
    output logic                   hif_rx_req_ready,
    input  logic                   hif_rx_req_sop,
    input  logic                   hif_rx_req_eop,
    input  logic [127:0]           hif_rx_req_header,
    input  logic [255:0]           hif_rx_req_data,
    output logic                   hif_tx_cpl_valid,
    input  logic                   hif_tx_cpl_ready,
    output logic                   hif_tx_cpl_sop,
    output logic                   hif_tx_cpl_eop,
    output logic [127:0]           hif_tx_cpl_header,
    output logic [255:0]           hif_tx_cpl_data,

    // Register blocks: timing, event, tlb, tx, clop, ports.
    output logic [2:0]             m_axil_func,
    output logic [16:0]            m_axil_addr,
    output logic [BLOCKS-1:0]      m_axil_awvalid,
    input  logic [BLOCKS-1:0]      m_axil_awready,
    output logic [31:0]            m_axil_wdata,
    output logic [3:0]             m_axil_wstrb,
    output logic [BLOCKS-1:0]      m_axil_wvalid,
    input  logic [BLOCKS-1:0]      m_axil_wready,
    input  logic [BLOCKS-1:0]      m_axil_bvalid,
    output logic [BLOCKS-1:0]      m_axil_bready,
    output logic [BLOCKS-1:0]      m_axil_arvalid,
    input  logic [BLOCKS-1:0]      m_axil_arready,
    input  logic [BLOCKS*32-1:0]   m_axil_rdata,
    input  logic [BLOCKS-1:0]      m_axil_rvalid,
    output logic [BLOCKS-1:0]      m_axil_rready,

    // Writes to memory.
    input  logic [WRITERS-1:0]     s_wr_desc_valid,
    output logic [WRITERS-1:0]     s_wr_desc_ready,
    input  logic [WRITERS*64-1:0]  s_wr_desc_address,
    input  logic [WRITERS*13-1:0]  s_wr_desc_length,
    input  logic [WRITERS*8-1:0]   s_wr_desc_func,
    input  logic [WRITERS-1:0]     s_wr_data_tvalid,
    output logic [WRITERS-1:0]     s_wr_data_tready,
    input  logic [WRITERS*256-1:0] s_wr_data_tdata,
    input  logic [WRITERS-1:0]     s_wr_data_tlast,
    output logic [WRITERS-1:0]     m_wr_accepted,

    // Reads of it.
    input  logic                   s_rd_desc_valid,
    output logic                   s_rd_desc_ready,
    input  logic [63:0]            s_rd_desc_address,
    input  logic [15:0]            s_rd_desc_length,
    input  logic [7:0]             s_rd_desc_tag,
    input  logic [7:0]             s_rd_desc_func,
    output logic                   m_rd_data_tvalid,
    input  logic                   m_rd_data_tready,
    output logic [255:0]           m_rd_data_tdata,
    output logic [31:0]            m_rd_data_tkeep,
    output logic                   m_rd_data_tlast,
    output logic                   m_rd_data_tuser,
    output logic [7:0]             m_rd_status_tag,

    // Interrupt requests; a discarded event record, which is counted here.
    input  logic                   s_irq_valid,
    input  logic [7:0]             s_irq_queue,
    input  logic                   inc_events_discarded,

    // Writes accepted before have left the card.
    input  logic                   s_fence,
    output logic                   m_fence_done
);
    // ---- Resets ---------------------------------------------------------------------------------

    logic host_rst, request, resetting, quiesce, discard, wr_idle, rd_idle, net_up, net_lost, port_forgets;

    plx_resets resets (
        .clk_net, .rst_net, .clk_core, .rst_core, .forget(port_forgets), .request, .resetting, .quiesce, .discard, .wr_idle, .rd_idle,
        .host_rst, .others_rst, .net_rst, .net_clear, .net_up, .net_lost
    );

    assign net_in_reset = !net_up;

    // A function is being reset that owns a port.
    always_comb begin
        port_forgets = 1'b0;
        for (int p = 0; p < PORTS; p = p + 1) begin
            port_forgets = port_forgets || resetting_functions[port_owner[p*3 +: 3]];
        end
    end

    // ---- Registers ------------------------------------------------------------------------------

    // Card, host, functions, all other blocks, vectors.
    localparam ALL = BLOCKS + 4;
    logic [ALL-1:0]    awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready;
    logic [ALL*32-1:0] rdata;

    // Blocks in the ports' clock: timing and ports.
    localparam [BLOCKS-1:0] IN_NET = {{PORTS{1'b1}}, 5'b00001};
    wire       [BLOCKS-1:0] block_in_reset   = {BLOCKS{others_rst}} | IN_NET & {BLOCKS{net_in_reset}};

    // A function in reset does not master the bus: its writes, interrupts among them, are discarded.
    logic [7:0]  master, functions_due;
    logic [23:0] page_owner;
    logic        write_valid, write_ready, write_vector, inc_refused, forgets;
    // Look-ups of owners of queues: of accesses, resets, interrupts, events.
    logic [31:0] asked;
    logic [11:0] owner;
    logic [2:0]  write_func;
    logic [16:0] write_offset;
    logic [31:0] write_data;
    assign master = cfg_bus_master & ~resetting_functions;

    plx_csr #(.PORTS(PORTS), .QUEUES(EVENT_QUEUES)) csr (
        .clk(clk_core), .rst(host_rst), .block_in_reset({1'b0, block_in_reset, 3'b000}),
        .cfg_port_owner(port_owner), .cfg_page_owner(page_owner), .m_owner_queue(asked[0 +: 8]), .s_owner(owner[0 +: 3]),
        .resetting(functions_due), .s_write_valid(write_valid), .s_write_ready(write_ready), .s_write_func(write_func),
        .s_write_vector(write_vector), .s_write_offset(write_offset), .s_write_data(write_data),
        .m_axil_func, .m_axil_forget(forgets), .inc_refused,
        .hif_rx_req_valid, .hif_rx_req_ready, .hif_rx_req_sop, .hif_rx_req_eop, .hif_rx_req_header, .hif_rx_req_data,
        .hif_tx_cpl_valid, .hif_tx_cpl_ready, .hif_tx_cpl_sop, .hif_tx_cpl_eop, .hif_tx_cpl_header, .hif_tx_cpl_data,
        .m_axil_addr, .m_axil_awvalid(awvalid), .m_axil_awready(awready), .m_axil_wdata, .m_axil_wstrb,
        .m_axil_wvalid(wvalid), .m_axil_wready(wready), .m_axil_bvalid(bvalid), .m_axil_bready(bready),
        .m_axil_arvalid(arvalid), .m_axil_arready(arready), .m_axil_rdata(rdata), .m_axil_rvalid(rvalid),
        .m_axil_rready(rready)
    );

    assign m_axil_awvalid = awvalid[3 +: BLOCKS];
    assign m_axil_wvalid  = wvalid[3 +: BLOCKS];
    assign m_axil_bready  = bready[3 +: BLOCKS];
    assign m_axil_arvalid = arvalid[3 +: BLOCKS];
    assign m_axil_rready  = rready[3 +: BLOCKS];
    assign awready[3 +: BLOCKS]  = m_axil_awready;
    assign wready[3 +: BLOCKS]   = m_axil_wready;
    assign bvalid[3 +: BLOCKS]   = m_axil_bvalid;
    assign arready[3 +: BLOCKS]  = m_axil_arready;
    assign rvalid[3 +: BLOCKS]   = m_axil_rvalid;
    assign rdata[96 +: BLOCKS*32] = m_axil_rdata;

    // The first byte of the hash is in the lowest bits of the first register.
    localparam [159:0] HASH = GIT_HASH;
    wire [159:0] git_hash;
    generate
        for (genvar i = 0; i < 20; i = i + 1) begin : g_hash
            assign git_hash[i*8 +: 8] = HASH[152 - i*8 +: 8];
        end
    endgenerate

    /* verilator lint_off PINCONNECTEMPTY */
    plx_card_regs card (
        .clk(clk_core), .rst(host_rst),
        .s_axil_awaddr(m_axil_addr[6:0]), .s_axil_awvalid(awvalid[0]), .s_axil_awready(awready[0]),
        .s_axil_wdata(m_axil_wdata), .s_axil_wstrb(m_axil_wstrb), .s_axil_wvalid(wvalid[0]),
        .s_axil_wready(wready[0]), .s_axil_bresp(), .s_axil_bvalid(bvalid[0]), .s_axil_bready(bready[0]),
        .s_axil_araddr(m_axil_addr[6:0]), .s_axil_arvalid(arvalid[0]), .s_axil_arready(arready[0]),
        .s_axil_rdata(rdata[0 +: 32]), .s_axil_rresp(), .s_axil_rvalid(rvalid[0]), .s_axil_rready(rready[0]),
        .sts_git_hash(git_hash), .sts_has_ports(PORTS[7:0]), .sts_has_streams(STREAMS[7:0]),
        .sts_event_queues(16'(EVENT_QUEUES)), .sts_has_tx_rings(PORTS[7:0]), .sts_entries_tlb(TLB_ENTRIES[15:0]),
        .sts_entries_arp(ARP_ENTRIES[15:0]), .sts_sizes_rx_fifo(RX_FIFO_WORDS[15:0]),
        .sts_sizes_read_tags(RD_TAGS[7:0]), .sts_sizes_functions(8'd8), .sts_function({5'd0, m_axil_func}),
        .pulse_ctrl_reset(request), .sts_status_resetting(resetting), .sts_status_net(net_up),
        .set_flags_net_lost(net_lost), .flag_flags_net_lost(), .sts_stamp(now_cycle_ts)
    );

    logic        quiesce_wanted, win_write, win_valid, win_ready;
    logic [31:0] timeout_cycles, quarantine_cycles, win_rdata;
    logic [8:0]  win_addr;

    plx_host_regs host (
        .clk(clk_core), .rst(host_rst),
        .s_axil_awaddr(m_axil_addr[8:0]), .s_axil_awvalid(awvalid[1]), .s_axil_awready(awready[1]),
        .s_axil_wdata(m_axil_wdata), .s_axil_wstrb(m_axil_wstrb), .s_axil_wvalid(wvalid[1]),
        .s_axil_wready(wready[1]), .s_axil_bresp(), .s_axil_bvalid(bvalid[1]), .s_axil_bready(bready[1]),
        .s_axil_araddr(m_axil_addr[8:0]), .s_axil_arvalid(arvalid[1]), .s_axil_arready(arready[1]),
        .s_axil_rdata(rdata[32 +: 32]), .s_axil_rresp(), .s_axil_rvalid(rvalid[1]), .s_axil_rready(rready[1]),
        .cfg_ctrl_quiesce(quiesce_wanted), .sts_status_idle(wr_idle && rd_idle),
        .sts_status_bus_master(cfg_bus_master[0]), .sts_status_msix(cfg_msix_enable[0]), .sts_status_max_payload(cfg_max_payload),
        .sts_status_max_read(cfg_max_read), .cfg_timeout_cycles(timeout_cycles),
        .cfg_quarantine_cycles(quarantine_cycles), .win_write, .win_addr, .win_wdata(), .win_wstrb(),
        .win_counters_valid(win_valid), .win_counters_ready(win_ready), .win_counters_rdata(win_rdata)
    );

    // ---- Functions ------------------------------------------------------------------------------

    logic         irq_valid, irq_ready, irq_busy, inc_interrupts;
    logic [63:0]  irq_address;
    logic [7:0]   irq_func;
    logic [31:0]  irq_data;
    logic [11:0]  port_owners;
    logic        owners_valid, owners_ready, fault_valid, fault_ready, functions_write;
    logic [7:0]  functions_addr;
    logic [31:0] functions_wdata, owners_rdata, fault_rdata;
    logic [3:0]  functions_wstrb;
    logic [7:0]  reset_function;
    logic        accepted, ended;
    assign port_owner  = port_owners[PORTS*3-1:0];

    plx_functions_regs functions_registers (
        .clk(clk_core), .rst(host_rst),
        .s_axil_awaddr(m_axil_addr[7:0]), .s_axil_awvalid(awvalid[2]), .s_axil_awready(awready[2]),
        .s_axil_wdata(m_axil_wdata), .s_axil_wstrb(m_axil_wstrb), .s_axil_wvalid(wvalid[2]),
        .s_axil_wready(wready[2]), .s_axil_bresp(), .s_axil_bvalid(bvalid[2]), .s_axil_bready(bready[2]),
        .s_axil_araddr(m_axil_addr[7:0]), .s_axil_arvalid(arvalid[2]), .s_axil_arready(arready[2]),
        .s_axil_rdata(rdata[64 +: 32]), .s_axil_rresp(), .s_axil_rvalid(rvalid[2]), .s_axil_rready(rready[2]),
        .cfg_ports_port0(port_owners[0 +: 3]), .cfg_ports_port1(port_owners[3 +: 3]),
        .cfg_ports_port2(port_owners[6 +: 3]), .cfg_ports_port3(port_owners[9 +: 3]),
        .cfg_pages_group0(page_owner[0 +: 3]), .cfg_pages_group1(page_owner[3 +: 3]),
        .cfg_pages_group2(page_owner[6 +: 3]), .cfg_pages_group3(page_owner[9 +: 3]),
        .cfg_pages_group4(page_owner[12 +: 3]), .cfg_pages_group5(page_owner[15 +: 3]),
        .cfg_pages_group6(page_owner[18 +: 3]), .cfg_pages_group7(page_owner[21 +: 3]),
        .pulse_function_ctrl_reset(reset_function), .sts_function_status_resetting(functions_due),
        .sts_function_status_bus_master(cfg_bus_master), .sts_function_status_msix(cfg_msix_enable),
        .win_write(functions_write), .win_addr(functions_addr), .win_wdata(functions_wdata),
        .win_wstrb(functions_wstrb), .win_fault_valid(fault_valid), .win_fault_ready(fault_ready),
        .win_fault_rdata(fault_rdata), .win_queue_valid(owners_valid), .win_queue_ready(owners_ready),
        .win_queue_rdata(owners_rdata)
    );
    /* verilator lint_on PINCONNECTEMPTY */

    plx_queue_owners #(.ASKERS(4)) queue_owners (
        .clk(clk_core), .rst(host_rst), .win_valid(owners_valid), .win_ready(owners_ready), .win_write(functions_write),
        .win_addr(functions_addr[6:0]), .win_wdata(functions_wdata), .win_wstrb(functions_wstrb),
        .win_rdata(owners_rdata), .s_queue(asked), .m_owner(owner)
    );

    assign asked[24 +: 8] = s_owner_queue;
    assign m_owner        = owner[9 +: 3];

    plx_functions #(.PORTS(PORTS), .EVENT_QUEUES(EVENT_QUEUES), .TLB_ENTRIES(TLB_ENTRIES)) functions (
        .clk(clk_core), .rst(others_rst), .cfg_port_owner(port_owner),
        .cfg_page_owner(page_owner), .m_owner_queue(asked[8 +: 8]), .s_owner(owner[3 +: 3]),
        .win_fault_valid(fault_valid), .win_fault_ready(fault_ready), .win_write(functions_write),
        .win_addr(functions_addr[4:0]), .win_wdata(functions_wdata), .win_wstrb(functions_wstrb),
        .win_fault_rdata(fault_rdata), .cfg_event_fault, .cfg_fault_queue, .s_reset(reset_function), .s_flr(cfg_flr),
        .m_flr_done(flr_done), .resetting(resetting_functions), .m_due(functions_due), .m_write_valid(write_valid),
        .m_write_ready(write_ready), .m_write_func(write_func), .m_write_vector(write_vector),
        .m_write_offset(write_offset), .m_write_data(write_data), .s_placing, .s_ring_quiet, .s_event_rest,
        .s_irq_busy(irq_busy), .s_accepted(accepted), .s_ended(ended)
    );

    // ---- Interrupts -----------------------------------------------------------------------------

    plx_msix #(.VECTORS(EVENT_QUEUES)) msix (
        .clk(clk_core), .rst(host_rst), .clear(others_rst), .m_owner_vector(asked[16 +: 8]), .s_owner(owner[6 +: 3]),
        .cfg_msix_enable, .cfg_msix_mask, .s_irq_valid, .s_irq_vector(s_irq_queue), .busy(irq_busy),
        .s_axil_func(m_axil_func), .s_axil_forget(forgets), .s_axil_addr(m_axil_addr[12:0]), .s_axil_awvalid(awvalid[ALL-1]), .s_axil_awready(awready[ALL-1]),
        .s_axil_wdata(m_axil_wdata), .s_axil_wstrb(m_axil_wstrb), .s_axil_wvalid(wvalid[ALL-1]),
        .s_axil_wready(wready[ALL-1]), .s_axil_bvalid(bvalid[ALL-1]), .s_axil_bready(bready[ALL-1]),
        .s_axil_arvalid(arvalid[ALL-1]), .s_axil_arready(arready[ALL-1]), .s_axil_rdata(rdata[(ALL-1)*32 +: 32]),
        .s_axil_rvalid(rvalid[ALL-1]), .s_axil_rready(rready[ALL-1]),
        .m_desc_valid(irq_valid), .m_desc_ready(irq_ready), .m_desc_address(irq_address), .m_desc_func(irq_func),
        .m_desc_immediate_data(irq_data), .inc_interrupts
    );

    // ---- Counters -------------------------------------------------------------------------------

    localparam COUNTERS = 12;
    logic inc_writes, inc_wr_discarded, inc_reads, inc_rd_timeout, inc_rd_unsupported, inc_rd_abort, inc_rd_poisoned,
          inc_rd_unexpected, inc_rd_discarded;
    wire [COUNTERS-1:0] amount;

    assign amount[regs_pkg::HOST_WRITES_ROW / 8]           = inc_writes;
    assign amount[regs_pkg::HOST_READS_ROW / 8]            = inc_reads;
    assign amount[regs_pkg::HOST_WR_DISCARDED_ROW / 8]     = inc_wr_discarded;
    assign amount[regs_pkg::HOST_RD_DISCARDED_ROW / 8]     = inc_rd_discarded;
    assign amount[regs_pkg::HOST_RD_TIMEOUT_ROW / 8]       = inc_rd_timeout;
    assign amount[regs_pkg::HOST_RD_UNSUPPORTED_ROW / 8]   = inc_rd_unsupported;
    assign amount[regs_pkg::HOST_RD_ABORT_ROW / 8]         = inc_rd_abort;
    assign amount[regs_pkg::HOST_RD_POISONED_ROW / 8]      = inc_rd_poisoned;
    assign amount[regs_pkg::HOST_RD_UNEXPECTED_ROW / 8]    = inc_rd_unexpected;
    assign amount[regs_pkg::HOST_INTERRUPTS_ROW / 8]       = inc_interrupts;
    assign amount[regs_pkg::HOST_EVENTS_DISCARDED_ROW / 8] = inc_events_discarded;
    assign amount[regs_pkg::HOST_REFUSED_ROW / 8]          = inc_refused;

    plx_counters #(.COUNT(COUNTERS), .AMOUNT_W(1)) counters (
        .clk(clk_core), .rst(host_rst), .amount, .win_valid, .win_write, .win_addr({1'b0, win_addr[6:2]}), .win_ready,
        .win_rdata
    );

    // ---- Writes ---------------------------------------------------------------------------------

    // Interrupts are the last of them. Typed, because Icarus 11 does not know the bound of the loop.
    localparam integer INPUTS = WRITERS + 1;
    logic         desc_valid, desc_ready, desc_immediate, data_valid, data_ready, irq_data_ready, irq_accepted;
    logic [63:0]  desc_address;
    logic [12:0]  desc_length;
    logic [7:0]   desc_func;
    logic [31:0]  desc_immediate_data;
    logic [255:0] data;

    plx_wr_mux #(.INPUTS(INPUTS)) wr_mux (
        .clk(clk_core), .rst(others_rst),
        .s_desc_valid({irq_valid, s_wr_desc_valid}), .s_desc_ready({irq_ready, s_wr_desc_ready}),
        .s_desc_address({irq_address, s_wr_desc_address}), .s_desc_length({13'd4, s_wr_desc_length}),
        .s_desc_func({irq_func, s_wr_desc_func}), .s_desc_immediate({1'b1, {WRITERS{1'b0}}}),
        .s_desc_immediate_data({irq_data, {WRITERS{32'd0}}}), .s_data_tvalid({1'b0, s_wr_data_tvalid}),
        .s_data_tready({irq_data_ready, s_wr_data_tready}), .s_data_tdata({256'd0, s_wr_data_tdata}),
        .s_data_tlast({1'b0, s_wr_data_tlast}), .m_accepted({irq_accepted, m_wr_accepted}),
        .m_desc_valid(desc_valid), .m_desc_ready(desc_ready), .m_desc_address(desc_address),
        .m_desc_length(desc_length), .m_desc_func(desc_func), .m_desc_immediate(desc_immediate),
        .m_desc_immediate_data(desc_immediate_data), .m_data_tvalid(data_valid), .m_data_tready(data_ready),
        .m_data_tdata(data)
    );

    assign accepted = irq_valid && irq_ready || |(s_wr_desc_valid & s_wr_desc_ready);

    plx_dma_wr dma_wr (
        .clk(clk_core), .rst(host_rst), .cfg_max_payload, .cfg_bus_master(master), .cfg_quiesce(quiesce || quiesce_wanted),
        .idle(wr_idle), .clear(others_rst), .s_desc_valid(desc_valid), .s_desc_ready(desc_ready), .s_desc_address(desc_address),
        .s_desc_length(desc_length), .s_desc_func(desc_func), .s_desc_immediate(desc_immediate),
        .s_desc_immediate_data(desc_immediate_data), .s_data_tvalid(data_valid), .s_data_tready(data_ready),
        .s_data_tdata(data), .hif_wr_req_valid, .hif_wr_req_ready, .hif_wr_req_sop, .hif_wr_req_eop,
        .hif_wr_req_header, .hif_wr_req_data, .inc_writes, .inc_wr_discarded, .ended
    );

    plx_wr_fence wr_fence (
        .clk(clk_core), .rst(others_rst), .accepted(|m_wr_accepted || irq_accepted), .ended, .s_fence,
        .m_done(m_fence_done)
    );

    // ---- Reads ----------------------------------------------------------------------------------

    // The cause of a failed read is counted here; the client gets only an error. Whether a client accepts a
    // word does not move dma_rd in the same cycle.
    logic         rd_valid, rd_ready, rd_last, rd_user, rd_done;
    logic [2:0]   rd_error;
    logic [7:0]   rd_tag;
    logic [31:0]  rd_keep;
    logic [255:0] rd_data;

    plx_dma_rd #(.TAGS(RD_TAGS)) dma_rd (
        .clk(clk_core), .rst(host_rst), .cfg_max_read, .cfg_bus_master(master), .cfg_quiesce(quiesce || quiesce_wanted),
        .cfg_timeout_cycles(timeout_cycles), .cfg_quarantine_cycles(quarantine_cycles), .idle(rd_done),
        .s_desc_valid(s_rd_desc_valid), .s_desc_ready(s_rd_desc_ready), .s_desc_address(s_rd_desc_address),
        .s_desc_length(s_rd_desc_length), .s_desc_tag(s_rd_desc_tag), .s_desc_func(s_rd_desc_func),
        .hif_rd_req_valid, .hif_rd_req_ready, .hif_rd_req_header, .hif_rx_cpl_valid, .hif_rx_cpl_ready,
        .hif_rx_cpl_sop, .hif_rx_cpl_eop, .hif_rx_cpl_header, .hif_rx_cpl_data,
        .m_data_tvalid(rd_valid), .m_data_tready(rd_ready), .m_data_tdata(rd_data), .m_data_tkeep(rd_keep),
        .m_data_tlast(rd_last), .m_data_tuser(rd_user), .m_status_tag(rd_tag), .m_status_error(rd_error),
        .inc_reads, .inc_rd_discarded, .inc_rd_timeout, .inc_rd_unsupported, .inc_rd_abort, .inc_rd_poisoned,
        .inc_rd_unexpected
    );

    plx_skid_through #(.WIDTH(298)) read_data (
        .clk(clk_core), .rst(host_rst), .s_valid(rd_valid), .s_ready(rd_ready),
        .s_data({rd_tag, rd_user, rd_last, rd_keep, rd_data}), .m_valid(m_rd_data_tvalid),
        .m_ready(m_rd_data_tready || discard),
        .m_data({m_rd_status_tag, m_rd_data_tuser, m_rd_data_tlast, m_rd_data_tkeep, m_rd_data_tdata})
    );

    assign rd_idle = rd_done && !m_rd_data_tvalid;

    wire unused = &{1'b0, functions_addr[7], win_addr[8:7], win_addr[1:0], irq_data_ready, rd_error};
endmodule
