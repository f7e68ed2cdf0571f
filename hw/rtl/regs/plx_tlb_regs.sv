// Made by scripts/regen from hw/rdl/tlb.rdl: do not edit.
// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// TLB: registers.
//
// cfg_* are settings, sts_* are read values, set_* sets a flag, flag_* is a flag, pulse_* and wr_* are
// high for one cycle after a write; arrays of fields are concatenated. Other modules hold the tables:
// win_* is a request until ready, in the same cycle or later.
module plx_tlb_regs (
    // Clock and reset.
    input  logic clk,
    input  logic rst,
    // Register accesses.
    input  logic [12:0] s_axil_awaddr,
    input  logic s_axil_awvalid,
    output logic s_axil_awready,
    input  logic [31:0] s_axil_wdata,
    input  logic [3:0] s_axil_wstrb,
    input  logic s_axil_wvalid,
    output logic s_axil_wready,
    output logic [1:0] s_axil_bresp,
    output logic s_axil_bvalid,
    input  logic s_axil_bready,
    input  logic [12:0] s_axil_araddr,
    input  logic s_axil_arvalid,
    output logic s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [1:0] s_axil_rresp,
    output logic s_axil_rvalid,
    input  logic s_axil_rready,
    // Fields.
    output logic [31:0] cfg_invalidate,
    output logic wr_invalidate,
    input  logic [31:0] sts_invalidated,
    output logic [31:0] cfg_timeout_cycles,
    // Tables.
    output logic win_write,
    output logic [12:0] win_addr,
    output logic [31:0] win_wdata,
    output logic [3:0] win_wstrb,
    output logic win_counters_valid,
    input  logic win_counters_ready,
    input  logic [31:0] win_counters_rdata,
    output logic win_entry_valid,
    input  logic win_entry_ready,
    input  logic [31:0] win_entry_rdata
);

    logic acc_valid, acc_write, acc_ready, done;
    logic [12:0] acc_addr;
    logic [31:0] acc_wdata, acc_rdata, rdata, high, hold;
    logic [3:0] acc_wstrb;

    plx_axil_slave #(.ADDR_W(13)) slave (
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

    wire [10:0] word = acc_addr[12:2];
    wire [31:0] mask = {{8{acc_wstrb[3]}}, {8{acc_wstrb[2]}}, {8{acc_wstrb[1]}}, {8{acc_wstrb[0]}}};
    wire [31:0] keep = ~mask;
    wire [31:0] put = acc_wdata & mask;
    wire in_counters = acc_addr[12:5] == 8'd8;
    wire in_entry = acc_addr[12:12] == 1'd1;
    wire here = acc_valid && !done && !in_counters && !in_entry;
    wire write = here && acc_write;
    wire whole = write && &acc_wstrb;
    wire unused = &{1'b0, acc_addr[1:0], keep, put, hold, high, write, whole};
    assign win_write = acc_write;
    assign win_addr = acc_addr;
    assign win_wdata = acc_wdata;
    assign win_wstrb = acc_wstrb;
    assign win_counters_valid = acc_valid && in_counters;
    assign win_entry_valid = acc_valid && in_entry;
    assign acc_ready = done || (in_counters && win_counters_ready) || (in_entry && win_entry_ready);
    assign acc_rdata = in_entry ? win_entry_rdata : in_counters ? win_counters_rdata : rdata;

    // 64 bits: the low half waits for the high one. Bytes alone do nothing.
    always_ff @(posedge clk) if (whole) hold <= acc_wdata;

    always_ff @(posedge clk) begin
        if (rst) cfg_invalidate <= 32'h0;
        else if (write && word == 11'h3) cfg_invalidate <= (cfg_invalidate & keep) | put;
        wr_invalidate <= !rst && write && word == 11'h3;
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_timeout_cycles <= 32'h0;
        else if (write && word == 11'h5) cfg_timeout_cycles <= (cfg_timeout_cycles & keep) | put;
    end

    always_ff @(posedge clk) begin
        done <= !rst && here;
        case (word)
            11'h0: rdata <= {8'd0, 8'h1, 16'h5};
            11'h1: rdata <= 32'h6000;
            11'h3: rdata <= cfg_invalidate;
            11'h4: rdata <= sts_invalidated;
            11'h5: rdata <= cfg_timeout_cycles;
            default: rdata <= 32'd0;
        endcase
        high <= 32'd0;
    end

endmodule
