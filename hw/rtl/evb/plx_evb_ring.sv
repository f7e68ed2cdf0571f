// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A scheduler and its feeders in a ring: what hw/cosim simulates. Link n is before feeder n, the last
// one before the scheduler. A set-up clears all of them in one cycle: nothing of a run is left in the next one,
// even of the same number.

module plx_evb_ring #(
    parameter FEEDERS = 8,     // feeders
    parameter COLUMNS = 32,    // columns, at most
    parameter NODES   = 256,   // nodes, at most, a power of two
    parameter BUFFERS = 1024,  // receive buffers of all nodes, at most, a power of two
    parameter SLOTS   = 64     // events in flight, a power of two
) (
    input  logic                               clk,
    input  logic                               rst,

    // Registers of the scheduler.
    input  logic [12:0]                        s_axil_awaddr,
    input  logic                               s_axil_awvalid,
    output logic                               s_axil_awready,
    input  logic [31:0]                        s_axil_wdata,
    input  logic [3:0]                         s_axil_wstrb,
    input  logic                               s_axil_wvalid,
    output logic                               s_axil_wready,
    output logic [1:0]                         s_axil_bresp,
    output logic                               s_axil_bvalid,
    input  logic                               s_axil_bready,
    input  logic [12:0]                        s_axil_araddr,
    input  logic                               s_axil_arvalid,
    output logic                               s_axil_arready,
    output logic [31:0]                        s_axil_rdata,
    output logic [1:0]                         s_axil_rresp,
    output logic                               s_axil_rvalid,
    input  logic                               s_axil_rready,

    // A set-up: data and decisions from the next cycle on are of the new run, the first ones of event 0.
    output logic                               setup,

    // The scheduler: triggers, feedback, decisions.
    input  logic                               trigger,
    input  logic                               s_feedback_valid,
    input  logic [layouts_pkg::FEEDBACK_W-1:0] s_feedback_data,
    input  logic                               s_decided_valid,
    output logic                               s_decided_ready,
    input  logic [63:0]                        s_decided_data,

    // Settings and descriptor tables of the feeders.
    input  logic [15:0]                        cfg_slot,
    input  logic [15:0]                        cfg_bypass_above,
    input  logic                               w_table,
    input  logic [$clog2(BUFFERS)-1:0]         w_descriptor,
    input  logic [63:0]                        w_address,

    // Each feeder: data for its store, transfers.
    input  logic [FEEDERS-1:0]                 s_store_valid,
    output logic [FEEDERS-1:0]                 s_store_ready,
    input  logic [FEEDERS*16-1:0]              s_store_bytes,
    output logic [FEEDERS-1:0]                 m_transfer_valid,
    output logic [FEEDERS*64-1:0]              m_transfer_address,
    output logic [FEEDERS*16-1:0]              m_transfer_descriptor,
    output logic [FEEDERS*32-1:0]              m_transfer_number,
    output logic [FEEDERS*17-1:0]              m_transfer_bytes,
    output logic [FEEDERS-1:0]                 m_transfer_absent,
    output logic [FEEDERS-1:0]                 m_transfer_oversize,
    input  logic [FEEDERS-1:0]                 s_done,
    output logic [FEEDERS*32-1:0]              decided,
    output logic [FEEDERS*11-1:0]              inc,

    // Faults of the links.
    input  logic [FEEDERS:0]                   fault_lose,
    input  logic [FEEDERS:0]                   fault_flip,
    input  logic [8:0]                         fault_bit
);
    localparam FLOW_W = layouts_pkg::FLOW_W;

    generate
        if (FEEDERS < 1 || FEEDERS > 32) FEEDERS_must_be_1_to_32 parameter_error ();
    endgenerate

    // Ends of the links.
    logic [FEEDERS:0]            out_valid, out_ready, in_valid, in_ready, damaged;
    logic [(FEEDERS+1)*FLOW_W-1:0] out_data, in_data;
    logic [31:0]                 run;
    logic [16:0]                 descriptors;

    assign in_ready[FEEDERS] = 1'b1;

    plx_evb_sched #(
        .COLUMNS(COLUMNS),
        .NODES(NODES),
        .BUFFERS(BUFFERS),
        .SLOTS(SLOTS)
    ) scheduler (
        .clk, .rst,
        .s_axil_awaddr, .s_axil_awvalid, .s_axil_awready, .s_axil_wdata, .s_axil_wstrb, .s_axil_wvalid, .s_axil_wready,
        .s_axil_bresp, .s_axil_bvalid, .s_axil_bready, .s_axil_araddr, .s_axil_arvalid, .s_axil_arready,
        .s_axil_rdata, .s_axil_rresp, .s_axil_rvalid, .s_axil_rready,
        .trigger, .s_feedback_valid, .s_feedback_data, .s_decided_valid, .s_decided_ready, .s_decided_data,
        .m_flow_valid(out_valid[0]), .m_flow_ready(out_ready[0]), .m_flow_data(out_data[0 +: FLOW_W]),
        .s_flow_valid(in_valid[FEEDERS]), .s_flow_data(in_data[FEEDERS*FLOW_W +: FLOW_W]),
        .inc_damaged(damaged[FEEDERS]),
        .m_setup(setup), .cfg_run(run), .cfg_descriptors(descriptors)
    );

    generate
        for (genvar n = 0; n <= FEEDERS; n = n + 1) begin : g_link
            plx_evb_link link (
                .clk, .rst(rst || setup),
                .s_flow_valid(out_valid[n]), .s_flow_ready(out_ready[n]), .s_flow_data(out_data[n*FLOW_W +: FLOW_W]),
                .m_flow_valid(in_valid[n]), .m_flow_ready(in_ready[n]), .m_flow_data(in_data[n*FLOW_W +: FLOW_W]),
                .fault_lose(fault_lose[n]), .fault_flip(fault_flip[n]), .fault_bit, .inc_damaged(damaged[n])
            );
        end
        for (genvar n = 0; n < FEEDERS; n = n + 1) begin : g_feeder
            plx_evb_node #(
                .ID(n),
                .BUFFERS(BUFFERS),
                .SLOTS(SLOTS)
            ) feeder (
                .clk, .rst, .setup,
                .cfg_run(run), .cfg_descriptors(descriptors), .cfg_slot, .cfg_bypass_above,
                .w_table, .w_descriptor, .w_address,
                .s_store_valid(s_store_valid[n]), .s_store_ready(s_store_ready[n]),
                .s_store_bytes(s_store_bytes[n*16 +: 16]),
                .s_flow_valid(in_valid[n]), .s_flow_ready(in_ready[n]), .s_flow_data(in_data[n*FLOW_W +: FLOW_W]),
                .m_flow_valid(out_valid[n+1]), .m_flow_ready(out_ready[n+1]),
                .m_flow_data(out_data[(n+1)*FLOW_W +: FLOW_W]),
                .m_transfer_valid(m_transfer_valid[n]), .m_transfer_address(m_transfer_address[n*64 +: 64]),
                .m_transfer_descriptor(m_transfer_descriptor[n*16 +: 16]),
                .m_transfer_number(m_transfer_number[n*32 +: 32]), .m_transfer_bytes(m_transfer_bytes[n*17 +: 17]),
                .m_transfer_absent(m_transfer_absent[n]), .m_transfer_oversize(m_transfer_oversize[n]),
                .s_done(s_done[n]), .decided(decided[n*32 +: 32]), .inc(inc[n*11 +: 11])
            );
        end
    endgenerate

    // The damage that feeders see is theirs to count.
    wire unused = &{1'b0, damaged[FEEDERS-1:0]};
endmodule
