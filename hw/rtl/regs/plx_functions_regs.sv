// Made by scripts/regen from hw/rdl/functions.rdl: do not edit.
// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Functions: registers.
//
// cfg_* are settings, sts_* are read values, set_* sets a flag, flag_* is a flag, pulse_* and wr_* are
// high for one cycle after a write; arrays of fields are concatenated. Other modules hold the tables:
// win_* is a request until ready, in the same cycle or later.
module plx_functions_regs (
    // Clock and reset.
    input  logic clk,
    input  logic rst,
    // Register accesses.
    input  logic [7:0] s_axil_awaddr,
    input  logic s_axil_awvalid,
    output logic s_axil_awready,
    input  logic [31:0] s_axil_wdata,
    input  logic [3:0] s_axil_wstrb,
    input  logic s_axil_wvalid,
    output logic s_axil_wready,
    output logic [1:0] s_axil_bresp,
    output logic s_axil_bvalid,
    input  logic s_axil_bready,
    input  logic [7:0] s_axil_araddr,
    input  logic s_axil_arvalid,
    output logic s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [1:0] s_axil_rresp,
    output logic s_axil_rvalid,
    input  logic s_axil_rready,
    // Fields.
    output logic [2:0] cfg_ports_port0,
    output logic [2:0] cfg_ports_port1,
    output logic [2:0] cfg_ports_port2,
    output logic [2:0] cfg_ports_port3,
    output logic [2:0] cfg_pages_group0,
    output logic [2:0] cfg_pages_group1,
    output logic [2:0] cfg_pages_group2,
    output logic [2:0] cfg_pages_group3,
    output logic [2:0] cfg_pages_group4,
    output logic [2:0] cfg_pages_group5,
    output logic [2:0] cfg_pages_group6,
    output logic [2:0] cfg_pages_group7,
    output logic [7:0] pulse_function_ctrl_reset,
    input  logic [7:0] sts_function_status_resetting,
    input  logic [7:0] sts_function_status_bus_master,
    input  logic [7:0] sts_function_status_msix,
    // Tables.
    output logic win_write,
    output logic [7:0] win_addr,
    output logic [31:0] win_wdata,
    output logic [3:0] win_wstrb,
    output logic win_fault_valid,
    input  logic win_fault_ready,
    input  logic [31:0] win_fault_rdata,
    output logic win_queue_valid,
    input  logic win_queue_ready,
    input  logic [31:0] win_queue_rdata
);

    logic acc_valid, acc_write, acc_ready, done;
    logic [7:0] acc_addr;
    logic [31:0] acc_wdata, acc_rdata, rdata, high, hold;
    logic [3:0] acc_wstrb;

    plx_axil_slave #(.ADDR_W(8)) slave (
        .clk(clk),
        .rst(rst),
        .s_axil_awaddr(s_axil_awaddr),
        .s_axil_awvalid(s_axil_awvalid),
        .s_axil_awready(s_axil_awready),
        .s_axil_wdata(s_axil_wdata),
        .s_axil_wstrb(s_axil_wstrb),
        .s_axil_wvalid(s_axil_wvalid),
        .s_axil_wready(s_axil_wready),
        .s_axil_bresp(s_axil_bresp),
        .s_axil_bvalid(s_axil_bvalid),
        .s_axil_bready(s_axil_bready),
        .s_axil_araddr(s_axil_araddr),
        .s_axil_arvalid(s_axil_arvalid),
        .s_axil_arready(s_axil_arready),
        .s_axil_rdata(s_axil_rdata),
        .s_axil_rresp(s_axil_rresp),
        .s_axil_rvalid(s_axil_rvalid),
        .s_axil_rready(s_axil_rready),
        .acc_valid(acc_valid),
        .acc_write(acc_write),
        .acc_addr(acc_addr),
        .acc_wdata(acc_wdata),
        .acc_wstrb(acc_wstrb),
        .acc_ready(acc_ready),
        .acc_rdata(acc_rdata)
    );

    wire [5:0] word = acc_addr[7:2];
    wire [31:0] mask = {{8{acc_wstrb[3]}}, {8{acc_wstrb[2]}}, {8{acc_wstrb[1]}}, {8{acc_wstrb[0]}}};
    wire [31:0] keep = ~mask;
    wire [31:0] put = acc_wdata & mask;
    wire in_fault = acc_addr[7:5] == 3'd1;
    wire in_queue = acc_addr[7:7] == 1'd1;
    wire here = acc_valid && !done && !in_fault && !in_queue;
    wire write = here && acc_write;
    wire whole = write && &acc_wstrb;
    wire unused = &{1'b0, acc_addr[1:0], keep, put, hold, high, write, whole};
    assign win_write = acc_write;
    assign win_addr = acc_addr;
    assign win_wdata = acc_wdata;
    assign win_wstrb = acc_wstrb;
    assign win_fault_valid = acc_valid && in_fault;
    assign win_queue_valid = acc_valid && in_queue;
    assign acc_ready = done || (in_fault && win_fault_ready) || (in_queue && win_queue_ready);
    assign acc_rdata = in_queue ? win_queue_rdata : in_fault ? win_fault_rdata : rdata;

    // 64 bits: the low half waits for the high one. Bytes alone do nothing.
    always_ff @(posedge clk) if (whole) hold <= acc_wdata;

    always_ff @(posedge clk) begin
        if (rst) cfg_ports_port0 <= 3'h0;
        else if (write && word == 6'h2) cfg_ports_port0 <= (cfg_ports_port0 & keep[2:0]) | put[2:0];
        if (rst) cfg_ports_port1 <= 3'h0;
        else if (write && word == 6'h2) cfg_ports_port1 <= (cfg_ports_port1 & keep[6:4]) | put[6:4];
        if (rst) cfg_ports_port2 <= 3'h0;
        else if (write && word == 6'h2) cfg_ports_port2 <= (cfg_ports_port2 & keep[10:8]) | put[10:8];
        if (rst) cfg_ports_port3 <= 3'h0;
        else if (write && word == 6'h2) cfg_ports_port3 <= (cfg_ports_port3 & keep[14:12]) | put[14:12];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_pages_group0 <= 3'h0;
        else if (write && word == 6'h4) cfg_pages_group0 <= (cfg_pages_group0 & keep[2:0]) | put[2:0];
        if (rst) cfg_pages_group1 <= 3'h0;
        else if (write && word == 6'h4) cfg_pages_group1 <= (cfg_pages_group1 & keep[6:4]) | put[6:4];
        if (rst) cfg_pages_group2 <= 3'h0;
        else if (write && word == 6'h4) cfg_pages_group2 <= (cfg_pages_group2 & keep[10:8]) | put[10:8];
        if (rst) cfg_pages_group3 <= 3'h0;
        else if (write && word == 6'h4) cfg_pages_group3 <= (cfg_pages_group3 & keep[14:12]) | put[14:12];
        if (rst) cfg_pages_group4 <= 3'h0;
        else if (write && word == 6'h4) cfg_pages_group4 <= (cfg_pages_group4 & keep[18:16]) | put[18:16];
        if (rst) cfg_pages_group5 <= 3'h0;
        else if (write && word == 6'h4) cfg_pages_group5 <= (cfg_pages_group5 & keep[22:20]) | put[22:20];
        if (rst) cfg_pages_group6 <= 3'h0;
        else if (write && word == 6'h4) cfg_pages_group6 <= (cfg_pages_group6 & keep[26:24]) | put[26:24];
        if (rst) cfg_pages_group7 <= 3'h0;
        else if (write && word == 6'h4) cfg_pages_group7 <= (cfg_pages_group7 & keep[30:28]) | put[30:28];
    end

    always_ff @(posedge clk) begin
        pulse_function_ctrl_reset[0] <= !rst && write && word == 6'h10 && put[0];
        pulse_function_ctrl_reset[1] <= !rst && write && word == 6'h12 && put[0];
        pulse_function_ctrl_reset[2] <= !rst && write && word == 6'h14 && put[0];
        pulse_function_ctrl_reset[3] <= !rst && write && word == 6'h16 && put[0];
        pulse_function_ctrl_reset[4] <= !rst && write && word == 6'h18 && put[0];
        pulse_function_ctrl_reset[5] <= !rst && write && word == 6'h1a && put[0];
        pulse_function_ctrl_reset[6] <= !rst && write && word == 6'h1c && put[0];
        pulse_function_ctrl_reset[7] <= !rst && write && word == 6'h1e && put[0];
    end

    always_ff @(posedge clk) begin
        done <= !rst && here;
        case (word)
            6'h0: rdata <= {8'd0, 8'h1, 16'ha};
            6'h1: rdata <= 32'h2000;
            6'h2: rdata <= {17'd0, cfg_ports_port3, 1'd0, cfg_ports_port2, 1'd0, cfg_ports_port1, 1'd0, cfg_ports_port0};
            6'h4: rdata <= {1'd0, cfg_pages_group7, 1'd0, cfg_pages_group6, 1'd0, cfg_pages_group5, 1'd0, cfg_pages_group4, 1'd0, cfg_pages_group3, 1'd0, cfg_pages_group2, 1'd0, cfg_pages_group1, 1'd0, cfg_pages_group0};
            6'h10: rdata <= {31'd0, 1'd0};
            6'h12: rdata <= {31'd0, 1'd0};
            6'h14: rdata <= {31'd0, 1'd0};
            6'h16: rdata <= {31'd0, 1'd0};
            6'h18: rdata <= {31'd0, 1'd0};
            6'h1a: rdata <= {31'd0, 1'd0};
            6'h1c: rdata <= {31'd0, 1'd0};
            6'h1e: rdata <= {31'd0, 1'd0};
            6'h11: rdata <= {29'd0, sts_function_status_msix[0], sts_function_status_bus_master[0], sts_function_status_resetting[0]};
            6'h13: rdata <= {29'd0, sts_function_status_msix[1], sts_function_status_bus_master[1], sts_function_status_resetting[1]};
            6'h15: rdata <= {29'd0, sts_function_status_msix[2], sts_function_status_bus_master[2], sts_function_status_resetting[2]};
            6'h17: rdata <= {29'd0, sts_function_status_msix[3], sts_function_status_bus_master[3], sts_function_status_resetting[3]};
            6'h19: rdata <= {29'd0, sts_function_status_msix[4], sts_function_status_bus_master[4], sts_function_status_resetting[4]};
            6'h1b: rdata <= {29'd0, sts_function_status_msix[5], sts_function_status_bus_master[5], sts_function_status_resetting[5]};
            6'h1d: rdata <= {29'd0, sts_function_status_msix[6], sts_function_status_bus_master[6], sts_function_status_resetting[6]};
            6'h1f: rdata <= {29'd0, sts_function_status_msix[7], sts_function_status_bus_master[7], sts_function_status_resetting[7]};
            default: rdata <= 32'd0;
        endcase
        high <= 32'd0;
    end

endmodule
