// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The card: ports, memory, host bus, time, wired. hw/docs/operations.md describes the data path.

module plx_card #(
    parameter PORTS          = 4,       // 1, 2 or 4
    parameter STREAMS        = 16,      // of each port, besides the default list
    parameter RX_FIFO_WORDS  = 2048,    // 64-bit words of a receive fifo
    parameter RX_FIFO_FRAMES = 256,     // frames whose metadata it holds
    parameter TX_FIFO_WORDS  = 512,     // 256-bit words of a transmit fifo: at least a jumbo frame
    parameter TLB_ENTRIES    = 128,     // pages
    parameter EVENT_QUEUES   = 256,     // each with its own MSI-X vector
    parameter RD_TAGS        = 128,     // open read requests
    parameter ARP_ENTRIES    = 256,     // neighbours of each port
    parameter GIT_HASH       = 160'h0   // commit of the build, in printed order
) (
    // Clocks: of the ports, 156.25 MHz; of the core and the host bus, 250 MHz. Resets of everything.
    input  logic                clk_net,
    input  logic                rst_net,
    input  logic                clk_core,
    input  logic                rst_core,

    // XGMII of the ports (IEEE 802.3, clause 46), lane 0 in the lowest bits of each.
    input  logic [PORTS*64-1:0] xgmii_rxd,
    input  logic [PORTS*8-1:0]  xgmii_rxc,
    output logic [PORTS*64-1:0] xgmii_txd,
    output logic [PORTS*8-1:0]  xgmii_txc,

    // PCS of the ports, in clk_net: the test pattern; their state and counts (pcs_pkg), 0 without a PCS.
    output logic [PORTS-1:0]    cfg_prbs31_tx,
    output logic [PORTS-1:0]    cfg_prbs31_rx,
    input  logic [PORTS*pcs_pkg::STS_W-1:0] sts_pcs,
    input  logic [PORTS*pcs_pkg::INC_W-1:0] inc_pcs,

    // Timing input: external clock, start and end of burst, trigger. Any clock; rising edges count.
    input  logic                ttc_clock,
    input  logic                ttc_start,
    input  logic                ttc_end,
    input  logic                ttc_trigger,

    // Host bus: posted writes.
    output logic                hif_wr_req_valid,
    input  logic                hif_wr_req_ready,
    output logic                hif_wr_req_sop,
    output logic                hif_wr_req_eop,
    output logic [127:0]        hif_wr_req_header,
    output logic [255:0]        hif_wr_req_data,

    // Host bus: reads, and their completions.
    output logic                hif_rd_req_valid,
    input  logic                hif_rd_req_ready,
    output logic [127:0]        hif_rd_req_header,
    input  logic                hif_rx_cpl_valid,
    output logic                hif_rx_cpl_ready,
    input  logic                hif_rx_cpl_sop,
    input  logic                hif_rx_cpl_eop,
    input  logic [127:0]        hif_rx_cpl_header,
    input  logic [255:0]        hif_rx_cpl_data,

    // Host bus: accesses of registers, and their completions.
    input  logic                hif_rx_req_valid,
    output logic                hif_rx_req_ready,
    input  logic                hif_rx_req_sop,
    input  logic                hif_rx_req_eop,
    input  logic [127:0]        hif_rx_req_header,
    input  logic [255:0]        hif_rx_req_data,
    output logic                hif_tx_cpl_valid,
    input  logic                hif_tx_cpl_ready,
    output logic                hif_tx_cpl_sop,
    output logic                hif_tx_cpl_eop,
    output logic [127:0]        hif_tx_cpl_header,
    output logic [255:0]        hif_tx_cpl_data,

    // Function 0, as configured by the host: 128 B << n (PCIe 4.0, 7.5.3.4). A bit for each function: bus
    // mastering is on; MSI-X is on, all of its vectors are masked; a function level reset is requested,
    // until it is done.
    input  logic [2:0]          cfg_max_payload,
    input  logic [2:0]          cfg_max_read,
    input  logic [7:0]          cfg_bus_master,
    input  logic [7:0]          cfg_msix_enable,
    input  logic [7:0]          cfg_msix_mask,
    input  logic [7:0]          cfg_flr,
    output logic [7:0]          flr_done
);
    generate
        if (PORTS != 1 && PORTS != 2 && PORTS != 4) PORTS_must_be_1_2_or_4 parameter_error ();
    endgenerate

    // Resets of all but the host bus logic; the time in cycles in both clocks, and in nanoseconds.
    logic        net_rst, others_rst, net_clear, net_in_reset, now_timestamp_valid;
    logic [63:0] now_cycle_ts, core_cycle_ts, now_timestamp_ns;

    // ---- Host bus -------------------------------------------------------------------------------

    // Blocks: timing, event, tlb, tx, clop, ports. Writers: ports, events.
    localparam BLOCKS = PORTS + 5, TIMING = 0, MEMORY = 1, PORT_0 = 5, EVENTS = PORTS, WRITERS = PORTS + 1;
    logic [16:0]            addr;
    logic [2:0]             func;
    logic [31:0]            wdata;
    logic [3:0]             wstrb;
    logic [BLOCKS-1:0]      awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready;
    logic [BLOCKS*32-1:0]   rdata;
    logic [WRITERS-1:0]     desc_valid, desc_ready, data_valid, data_ready, data_last, wr_accepted;
    logic [WRITERS*64-1:0]  desc_address;
    logic [WRITERS*13-1:0]  desc_length;
    logic [WRITERS*8-1:0]   desc_func;
    logic [WRITERS*256-1:0] data;
    logic                   rd_valid, rd_ready, rd_tvalid, rd_tready, rd_tlast, rd_tuser, inc_events_discarded, fence,
                            fence_done;
    logic [63:0]            rd_address;
    logic [15:0]            rd_length;
    logic [7:0]             rd_tag, rd_func, rd_status_tag;
    logic [255:0]           rd_tdata;
    logic [31:0]            rd_tkeep;
    logic                   irq_valid;
    logic [7:0]             irq_queue, asked_queue;
    logic [2:0]             asked_owner;
    logic [PORTS*3-1:0]     port_owner;
    logic [7:0]             resetting;
    logic [PORTS-1:0]       placing, ring_quiet, port_idle, forget;
    logic [2:0]             event_rest;
    logic [7:0]             event_fault;
    logic [63:0]            fault_queue;

    plx_host_bus #(
        .PORTS(PORTS), .STREAMS(STREAMS), .RX_FIFO_WORDS(RX_FIFO_WORDS), .TLB_ENTRIES(TLB_ENTRIES),
        .EVENT_QUEUES(EVENT_QUEUES), .RD_TAGS(RD_TAGS), .ARP_ENTRIES(ARP_ENTRIES), .GIT_HASH(GIT_HASH)
    ) host_bus (
        .clk_net, .rst_net, .clk_core, .rst_core, .others_rst, .net_rst, .net_clear, .net_in_reset,
        .now_cycle_ts(core_cycle_ts), .cfg_max_payload, .cfg_max_read, .cfg_bus_master, .cfg_msix_enable,
        .cfg_msix_mask, .cfg_flr, .flr_done, .port_owner, .s_owner_queue(asked_queue), .m_owner(asked_owner),
        .resetting_functions(resetting), .s_placing(placing), .s_ring_quiet(ring_quiet & port_idle),
        .s_event_rest(event_rest), .cfg_event_fault(event_fault), .cfg_fault_queue(fault_queue), .hif_wr_req_valid,
        .hif_wr_req_ready, .hif_wr_req_sop, .hif_wr_req_eop, .hif_wr_req_header, .hif_wr_req_data, .hif_rd_req_valid,
        .hif_rd_req_ready, .hif_rd_req_header, .hif_rx_cpl_valid, .hif_rx_cpl_ready, .hif_rx_cpl_sop,
        .hif_rx_cpl_eop, .hif_rx_cpl_header, .hif_rx_cpl_data, .hif_rx_req_valid, .hif_rx_req_ready, .hif_rx_req_sop,
        .hif_rx_req_eop, .hif_rx_req_header, .hif_rx_req_data, .hif_tx_cpl_valid, .hif_tx_cpl_ready, .hif_tx_cpl_sop,
        .hif_tx_cpl_eop, .hif_tx_cpl_header, .hif_tx_cpl_data, .m_axil_func(func), .m_axil_addr(addr),
        .m_axil_awvalid(awvalid), .m_axil_awready(awready), .m_axil_wdata(wdata), .m_axil_wstrb(wstrb),
        .m_axil_wvalid(wvalid), .m_axil_wready(wready), .m_axil_bvalid(bvalid), .m_axil_bready(bready),
        .m_axil_arvalid(arvalid), .m_axil_arready(arready), .m_axil_rdata(rdata), .m_axil_rvalid(rvalid),
        .m_axil_rready(rready), .s_wr_desc_valid(desc_valid), .s_wr_desc_ready(desc_ready),
        .s_wr_desc_address(desc_address), .s_wr_desc_length(desc_length), .s_wr_desc_func(desc_func),
        .s_wr_data_tvalid(data_valid), .s_wr_data_tready(data_ready), .s_wr_data_tdata(data),
        .s_wr_data_tlast(data_last), .m_wr_accepted(wr_accepted), .s_rd_desc_valid(rd_valid),
        .s_rd_desc_ready(rd_ready), .s_rd_desc_address(rd_address), .s_rd_desc_length(rd_length),
        .s_rd_desc_tag(rd_tag), .s_rd_desc_func(rd_func), .m_rd_data_tvalid(rd_tvalid), .m_rd_data_tready(rd_tready),
        .m_rd_data_tdata(rd_tdata), .m_rd_data_tkeep(rd_tkeep), .m_rd_data_tlast(rd_tlast),
        .m_rd_data_tuser(rd_tuser), .m_rd_status_tag(rd_status_tag), .s_irq_valid(irq_valid),
        .s_irq_queue(irq_queue), .inc_events_discarded, .s_fence(fence), .m_fence_done(fence_done)
    );

    // ---- Memory ---------------------------------------------------------------------------------

    logic [PORTS-1:0]    select_valid, select_ready, select_timestamp_valid, answer_valid;
    logic [PORTS*7-1:0]  select_list, xlate_list;
    logic [PORTS*16-1:0] select_length, commit_length;
    logic [PORTS*64-1:0] select_timestamp_ns, commit_timestamp_ns, xlate_address;
    logic [2:0]          answer_status;
    logic [63:0]         answer_address, bus_address;
    logic [31:0]         answer_sequence;
    logic                answer_bare, bus_hit, bus_epoch;
    logic [15:0]         answer_stride;
    logic [7:0]          answer_func;
    // `xlate_accepted`: for simulations, which measure lookups.
    /* verilator lint_off UNUSEDSIGNAL */
    logic [PORTS-1:0]    xlate_accepted;
    /* verilator lint_on UNUSEDSIGNAL */
    logic [PORTS-1:0]    xlate_valid, bus_valid, bus_done, bus_done_epoch, commit_valid, commit_ready,
                         commit_timestamp_valid;
    logic [PORTS*13-1:0] xlate_length;
    logic [PORTS*8-1:0]  xlate_func;
    logic [PORTS*4-1:0]  commit_status;
    logic [PORTS*32-1:0] commit_mac, commit_parsed, commit_placed;
    logic [PORTS-1:0]    tx_segment_valid, tx_segment_ready, tx_segment_flush, done_valid, done_end, read_idle,
                         fifo_idle;
    logic [PORTS*256-1:0] tx_segment;
    logic [PORTS*2-1:0]  done_status;
    logic [PORTS-1:0]    tx_segment_data, tx_segment_ends, lost_valid, lost_ready;
    logic [PORTS*16-1:0] lost_count;
    logic [PORTS*32-1:0] lost_cookie;
    logic [PORTS*16-1:0] done_length, tx_read_length;
    logic [PORTS-1:0]    tx_read_valid, tx_read_ready, tx_read_tvalid, tx_read_tready;
    logic [PORTS*64-1:0] tx_read_address;
    logic [255:0]        tx_read_tdata;
    logic [31:0]         tx_read_tkeep;
    logic                tx_read_tlast, tx_read_tuser;
    logic                edge_valid, edge_ready, room;
    logic [7:0]          edge_queue, room_queue;
    logic [511:0]        edge_record;

    plx_memory #(.PORTS(PORTS), .TLB_ENTRIES(TLB_ENTRIES), .EVENT_QUEUES(EVENT_QUEUES)) memory (
        .clk(clk_core), .rst(others_rst), .now_cycle_ts(core_cycle_ts),
        .cfg_port_owner(port_owner), .m_owner_queue(asked_queue), .s_owner(asked_owner), .resetting, .placing, .ring_quiet, .event_rest,
        .cfg_event_fault(event_fault), .cfg_fault_queue(fault_queue),
        .s_axil_func(func), .s_axil_addr(addr[14:0]), .s_axil_awvalid(awvalid[MEMORY +: 4]), .s_axil_awready(awready[MEMORY +: 4]),
        .s_axil_wdata(wdata), .s_axil_wstrb(wstrb), .s_axil_wvalid(wvalid[MEMORY +: 4]),
        .s_axil_wready(wready[MEMORY +: 4]), .s_axil_bvalid(bvalid[MEMORY +: 4]), .s_axil_bready(bready[MEMORY +: 4]),
        .s_axil_arvalid(arvalid[MEMORY +: 4]), .s_axil_arready(arready[MEMORY +: 4]),
        .s_axil_rdata(rdata[MEMORY*32 +: 128]), .s_axil_rvalid(rvalid[MEMORY +: 4]),
        .s_axil_rready(rready[MEMORY +: 4]),
        .s_select_valid(select_valid), .s_select_ready(select_ready), .s_select_list(select_list),
        .s_select_length(select_length), .s_select_timestamp_ns(select_timestamp_ns),
        .s_select_timestamp_valid(select_timestamp_valid), .m_select_valid(answer_valid),
        .m_select_status(answer_status), .m_select_address(answer_address), .m_select_sequence(answer_sequence),
        .m_select_bare(answer_bare), .m_select_stride(answer_stride), .m_select_func(answer_func),
        .s_xlate_valid(xlate_valid), .m_xlate_accepted(xlate_accepted), .s_xlate_address(xlate_address),
        .s_xlate_length(xlate_length), .s_xlate_func(xlate_func), .s_xlate_list(xlate_list),
        .m_xlate_valid(bus_valid), .m_xlate_hit(bus_hit), .m_xlate_address(bus_address), .m_xlate_epoch(bus_epoch),
        .s_xlate_done(bus_done), .s_xlate_done_epoch(bus_done_epoch), .m_fence(fence), .s_fence_done(fence_done),
        .s_commit_valid(commit_valid), .s_commit_ready(commit_ready), .s_commit_status(commit_status),
        .s_commit_length(commit_length), .s_commit_timestamp_ns(commit_timestamp_ns),
        .s_commit_timestamp_valid(commit_timestamp_valid), .s_commit_cycle_ts_mac(commit_mac),
        .s_commit_cycle_ts_parsed(commit_parsed), .s_commit_cycle_ts_placed(commit_placed),
        .s_event_valid(edge_valid), .s_event_ready(edge_ready), .s_event_queue(edge_queue),
        .s_event_record(edge_record), .s_room_queue(room_queue), .m_room(room), .m_desc_valid(desc_valid[EVENTS]),
        .m_desc_ready(desc_ready[EVENTS]), .m_desc_address(desc_address[EVENTS*64 +: 64]),
        .m_desc_length(desc_length[EVENTS*13 +: 13]), .m_desc_func(desc_func[EVENTS*8 +: 8]),
        .m_data_tvalid(data_valid[EVENTS]), .m_data_tready(data_ready[EVENTS]),
        .m_data_tdata(data[EVENTS*256 +: 256]), .m_data_tlast(data_last[EVENTS]), .m_accepted(wr_accepted[EVENTS]),
        .inc_events_discarded, .m_irq_valid(irq_valid), .m_irq_queue(irq_queue),
        .m_tx_segment_valid(tx_segment_valid), .m_tx_segment_ready(tx_segment_ready), .m_tx_segment(tx_segment),
        .m_tx_segment_data(tx_segment_data), .m_tx_segment_ends(tx_segment_ends),
        .m_tx_segment_flush(tx_segment_flush), .s_done_valid(done_valid), .s_done_end(done_end),
        .s_done_status(done_status), .s_done_length(done_length), .s_read_idle(read_idle), .s_fifo_idle(fifo_idle),
        .s_lost_valid(lost_valid), .s_lost_ready(lost_ready), .s_lost_count(lost_count), .s_lost_cookie(lost_cookie),
        .s_rd_desc_valid(tx_read_valid), .s_rd_desc_ready(tx_read_ready), .s_rd_desc_address(tx_read_address),
        .s_rd_desc_length(tx_read_length), .m_rd_data_tvalid(tx_read_tvalid), .m_rd_data_tready(tx_read_tready),
        .m_rd_data_tdata(tx_read_tdata), .m_rd_data_tkeep(tx_read_tkeep), .m_rd_data_tlast(tx_read_tlast),
        .m_rd_data_tuser(tx_read_tuser), .m_rd_desc_valid(rd_valid), .m_rd_desc_ready(rd_ready),
        .m_rd_desc_address(rd_address), .m_rd_desc_length(rd_length), .m_rd_desc_tag(rd_tag),
        .m_rd_desc_func(rd_func), .s_rd_data_tvalid(rd_tvalid), .s_rd_data_tready(rd_tready),
        .s_rd_data_tdata(rd_tdata), .s_rd_data_tkeep(rd_tkeep), .s_rd_data_tlast(rd_tlast),
        .s_rd_data_tuser(rd_tuser), .s_rd_status_tag(rd_status_tag)
    );

    // ---- Time -----------------------------------------------------------------------------------

    plx_timing_block timing (
        .clk_net, .rst_net(net_rst), .clk_core, .rst_core(others_rst), .net_clear, .net_in_reset, .ttc_clock,
        .ttc_start, .ttc_end, .ttc_trigger, .now_cycle_ts, .now_timestamp_ns, .now_timestamp_valid, .core_cycle_ts,
        .s_axil_addr(addr[8:0]), .s_axil_awvalid(awvalid[TIMING]), .s_axil_awready(awready[TIMING]),
        .s_axil_wdata(wdata), .s_axil_wstrb(wstrb), .s_axil_wvalid(wvalid[TIMING]), .s_axil_wready(wready[TIMING]),
        .s_axil_bvalid(bvalid[TIMING]), .s_axil_bready(bready[TIMING]), .s_axil_arvalid(arvalid[TIMING]),
        .s_axil_arready(arready[TIMING]), .s_axil_rdata(rdata[TIMING*32 +: 32]), .s_axil_rvalid(rvalid[TIMING]),
        .s_axil_rready(rready[TIMING]), .m_room_queue(room_queue), .s_room(room), .m_event_valid(edge_valid), .m_event_ready(edge_ready),
        .m_event_queue(edge_queue), .m_event_record(edge_record)
    );

    // ---- Ports ----------------------------------------------------------------------------------

    logic [PORTS-1:0]    looped, paired;
    logic [PORTS*64-1:0] mac_txd, mac_rxd;
    logic [PORTS*8-1:0]  mac_txc, mac_rxc;

    // Ports of different functions do not hear each other.
    logic [PORTS-1:0] same_owner;
    generate
        for (genvar p = 0; p < PORTS; p = p + 1) begin : g_pair
            localparam OTHER = PORTS > 1 ? p ^ 1 : p;
            always_ff @(posedge clk_core) begin
                same_owner[p] <= port_owner[p*3 +: 3] == port_owner[OTHER*3 +: 3];
                forget[p]     <= resetting[port_owner[p*3 +: 3]];
            end
        end
    endgenerate

    plx_sync_bit #(.WIDTH(PORTS)) pairs (.clk(clk_net), .rst(net_rst), .d(same_owner), .q(paired));

    plx_xgmii_loop #(.PORTS(PORTS)) xgmii_loop (
        .clk(clk_net), .cfg_loop(looped & paired), .mac_txd, .mac_txc, .mac_rxd, .mac_rxc, .xgmii_rxd, .xgmii_rxc, .xgmii_txd,
        .xgmii_txc
    );

    generate
        for (genvar p = 0; p < PORTS; p = p + 1) begin : g_port
            localparam AXIL = PORT_0 + p, STS_W = pcs_pkg::STS_W, INC_W = pcs_pkg::INC_W;

            plx_port #(
                .PORT(p), .PORTS(PORTS), .STREAMS(STREAMS), .RX_FIFO_WORDS(RX_FIFO_WORDS),
                .RX_FIFO_FRAMES(RX_FIFO_FRAMES), .TX_FIFO_WORDS(TX_FIFO_WORDS), .ARP_ENTRIES(ARP_ENTRIES)
            ) port (
                .clk_net, .rst_net(net_rst), .clk_core, .rst_core(others_rst), .net_clear, .net_in_reset, .now_cycle_ts,
                .now_timestamp_ns, .now_timestamp_valid, .core_cycle_ts, .xgmii_rxd(mac_rxd[p*64 +: 64]),
                .xgmii_rxc(mac_rxc[p*8 +: 8]), .xgmii_txd(mac_txd[p*64 +: 64]), .xgmii_txc(mac_txc[p*8 +: 8]),
                .cfg_loop(looped[p]), .cfg_prbs31_tx(cfg_prbs31_tx[p]), .cfg_prbs31_rx(cfg_prbs31_rx[p]),
                .sts_pcs(sts_pcs[p*STS_W +: STS_W]), .inc_pcs(inc_pcs[p*INC_W +: INC_W]),
                .s_axil_addr(addr[12:0]), .s_axil_awvalid(awvalid[AXIL]),
                .s_axil_awready(awready[AXIL]), .s_axil_wdata(wdata), .s_axil_wstrb(wstrb),
                .s_axil_wvalid(wvalid[AXIL]), .s_axil_wready(wready[AXIL]), .s_axil_bvalid(bvalid[AXIL]),
                .s_axil_bready(bready[AXIL]), .s_axil_arvalid(arvalid[AXIL]), .s_axil_arready(arready[AXIL]),
                .s_axil_rdata(rdata[AXIL*32 +: 32]), .s_axil_rvalid(rvalid[AXIL]), .s_axil_rready(rready[AXIL]),
                .m_select_valid(select_valid[p]), .m_select_ready(select_ready[p]),
                .m_select_list(select_list[p*7 +: 7]), .m_select_length(select_length[p*16 +: 16]),
                .m_select_timestamp_ns(select_timestamp_ns[p*64 +: 64]),
                .m_select_timestamp_valid(select_timestamp_valid[p]), .s_select_valid(answer_valid[p]),
                .s_select_status(answer_status), .s_select_address(answer_address),
                .s_select_sequence(answer_sequence), .s_select_bare(answer_bare), .s_select_stride(answer_stride),
                .s_select_func(answer_func), .m_commit_valid(commit_valid[p]), .m_commit_ready(commit_ready[p]),
                .m_commit_status(commit_status[p*4 +: 4]),
                .m_commit_length(commit_length[p*16 +: 16]), .m_commit_timestamp_ns(commit_timestamp_ns[p*64 +: 64]),
                .m_commit_timestamp_valid(commit_timestamp_valid[p]), .m_commit_cycle_ts_mac(commit_mac[p*32 +: 32]),
                .m_commit_cycle_ts_parsed(commit_parsed[p*32 +: 32]),
                .m_commit_cycle_ts_placed(commit_placed[p*32 +: 32]), .m_xlate_valid(xlate_valid[p]),
                .m_xlate_address(xlate_address[p*64 +: 64]), .m_xlate_length(xlate_length[p*13 +: 13]),
                .m_xlate_func(xlate_func[p*8 +: 8]), .m_xlate_list(xlate_list[p*7 +: 7]),
                .s_xlate_valid(bus_valid[p]), .s_xlate_hit(bus_hit), .s_xlate_address(bus_address),
                .s_xlate_epoch(bus_epoch), .m_xlate_done(bus_done[p]), .m_xlate_done_epoch(bus_done_epoch[p]),
                .m_desc_valid(desc_valid[p]), .m_desc_ready(desc_ready[p]), .m_desc_address(desc_address[p*64 +: 64]),
                .m_desc_length(desc_length[p*13 +: 13]), .m_desc_func(desc_func[p*8 +: 8]),
                .m_data_tvalid(data_valid[p]), .m_data_tready(data_ready[p]), .m_data_tdata(data[p*256 +: 256]),
                .m_data_tlast(data_last[p]), .m_accepted(wr_accepted[p]),
                .s_tx_segment_valid(tx_segment_valid[p]), .s_tx_segment_ready(tx_segment_ready[p]),
                .s_tx_segment(tx_segment[p*256 +: 256]), .s_tx_segment_data(tx_segment_data[p]),
                .s_tx_segment_ends(tx_segment_ends[p]), .s_tx_segment_flush(tx_segment_flush[p]),
                .m_done_valid(done_valid[p]), .m_done_end(done_end[p]), .m_done_status(done_status[p*2 +: 2]),
                .m_done_length(done_length[p*16 +: 16]), .m_read_idle(read_idle[p]), .m_fifo_idle(fifo_idle[p]),
                .forget(forget[p]), .m_port_idle(port_idle[p]), .m_lost_valid(lost_valid[p]),
                .m_lost_ready(lost_ready[p]), .m_lost_count(lost_count[p*16 +: 16]),
                .m_lost_cookie(lost_cookie[p*32 +: 32]), .m_rd_desc_valid(tx_read_valid[p]),
                .m_rd_desc_ready(tx_read_ready[p]), .m_rd_desc_address(tx_read_address[p*64 +: 64]),
                .m_rd_desc_length(tx_read_length[p*16 +: 16]), .s_rd_data_tvalid(tx_read_tvalid[p]),
                .s_rd_data_tready(tx_read_tready[p]), .s_rd_data_tdata(tx_read_tdata), .s_rd_data_tkeep(tx_read_tkeep),
                .s_rd_data_tlast(tx_read_tlast), .s_rd_data_tuser(tx_read_tuser)
            );
        end
    endgenerate

    wire unused = &{1'b0, addr[16:15]};
endmodule
