// Made by scripts/regen from hw/rdl/tx.rdl: do not edit.
// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Transmit rings: registers.
//
// cfg_* are settings, sts_* are read values, set_* sets a flag, flag_* is a flag, pulse_* and wr_* are
// high for one cycle after a write; arrays of fields are concatenated. Other modules hold the tables:
// win_* is a request until ready, in the same cycle or later.
module plx_tx_regs (
    // Clock and reset.
    input  logic clk,
    input  logic rst,
    // Register accesses.
    input  logic [10:0] s_axil_awaddr,
    input  logic s_axil_awvalid,
    output logic s_axil_awready,
    input  logic [31:0] s_axil_wdata,
    input  logic [3:0] s_axil_wstrb,
    input  logic s_axil_wvalid,
    output logic s_axil_wready,
    output logic [1:0] s_axil_bresp,
    output logic s_axil_bvalid,
    input  logic s_axil_bready,
    input  logic [10:0] s_axil_araddr,
    input  logic s_axil_arvalid,
    output logic s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [1:0] s_axil_rresp,
    output logic s_axil_rvalid,
    input  logic s_axil_rready,
    input  logic [2:0] s_axil_func,
    // Fields.
    output logic [255:0] cfg_ring_base,
    output logic [3:0] cfg_ring_ctrl_enable,
    output logic [19:0] cfg_ring_ctrl_log2_size,
    output logic [31:0] cfg_ring_ctrl_queue,
    output logic [127:0] cfg_ring_producer,
    output logic [3:0] wr_ring_producer,
    input  logic [127:0] sts_ring_consumer,
    input  logic [3:0] sts_ring_status_idle,
    input  logic [3:0] sts_ring_status_error,
    input  logic [3:0] sts_ring_status_no_event,
    // Tables.
    output logic win_write,
    output logic [10:0] win_addr,
    output logic [31:0] win_wdata,
    output logic [3:0] win_wstrb,
    output logic win_counters_valid,
    input  logic win_counters_ready,
    input  logic [31:0] win_counters_rdata
);

    logic acc_valid, acc_write, acc_ready, done;
    logic [10:0] acc_addr;
    logic [31:0] acc_wdata, acc_rdata, rdata, high, hold;
    logic [31:0] highs [0:7];
    logic [31:0] holds [0:7];
    logic [3:0] acc_wstrb;

    plx_axil_slave #(.ADDR_W(11)) slave (
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

    wire [8:0] word = acc_addr[10:2];
    wire [31:0] mask = {{8{acc_wstrb[3]}}, {8{acc_wstrb[2]}}, {8{acc_wstrb[1]}}, {8{acc_wstrb[0]}}};
    wire [31:0] keep = ~mask;
    wire [31:0] put = acc_wdata & mask;
    wire in_counters = acc_addr[10:7] == 4'd8;
    wire here = acc_valid && !done && !in_counters;
    wire write = here && acc_write;
    wire whole = write && &acc_wstrb;
    wire unused = &{1'b0, acc_addr[1:0], keep, put, hold, high, write, whole};
    assign win_write = acc_write;
    assign win_addr = acc_addr;
    assign win_wdata = acc_wdata;
    assign win_wstrb = acc_wstrb;
    assign win_counters_valid = acc_valid && in_counters;
    assign acc_ready = done || (in_counters && win_counters_ready);
    assign acc_rdata = in_counters ? win_counters_rdata : rdata;

    // 64 bits: the low half waits for the high one. Bytes alone do nothing.
    // Of each function: another one may access the block between the halves.
    assign hold = holds[s_axil_func];
    assign high = highs[s_axil_func];
    always_ff @(posedge clk) if (whole) holds[s_axil_func] <= acc_wdata;

    always_ff @(posedge clk) begin
        if (rst) cfg_ring_base[63:0] <= 64'h0;
        else if (whole && word == 9'h41) cfg_ring_base[63:0] <= {acc_wdata[31:0], hold};
        if (rst) cfg_ring_base[127:64] <= 64'h0;
        else if (whole && word == 9'h51) cfg_ring_base[127:64] <= {acc_wdata[31:0], hold};
        if (rst) cfg_ring_base[191:128] <= 64'h0;
        else if (whole && word == 9'h61) cfg_ring_base[191:128] <= {acc_wdata[31:0], hold};
        if (rst) cfg_ring_base[255:192] <= 64'h0;
        else if (whole && word == 9'h71) cfg_ring_base[255:192] <= {acc_wdata[31:0], hold};
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_ring_ctrl_enable[0] <= 1'h0;
        else if (write && word == 9'h42) cfg_ring_ctrl_enable[0] <= (cfg_ring_ctrl_enable[0] & keep[0]) | put[0];
        if (rst) cfg_ring_ctrl_enable[1] <= 1'h0;
        else if (write && word == 9'h52) cfg_ring_ctrl_enable[1] <= (cfg_ring_ctrl_enable[1] & keep[0]) | put[0];
        if (rst) cfg_ring_ctrl_enable[2] <= 1'h0;
        else if (write && word == 9'h62) cfg_ring_ctrl_enable[2] <= (cfg_ring_ctrl_enable[2] & keep[0]) | put[0];
        if (rst) cfg_ring_ctrl_enable[3] <= 1'h0;
        else if (write && word == 9'h72) cfg_ring_ctrl_enable[3] <= (cfg_ring_ctrl_enable[3] & keep[0]) | put[0];
        if (rst) cfg_ring_ctrl_log2_size[4:0] <= 5'h3;
        else if (write && word == 9'h42) cfg_ring_ctrl_log2_size[4:0] <= (cfg_ring_ctrl_log2_size[4:0] & keep[12:8]) | put[12:8];
        if (rst) cfg_ring_ctrl_log2_size[9:5] <= 5'h3;
        else if (write && word == 9'h52) cfg_ring_ctrl_log2_size[9:5] <= (cfg_ring_ctrl_log2_size[9:5] & keep[12:8]) | put[12:8];
        if (rst) cfg_ring_ctrl_log2_size[14:10] <= 5'h3;
        else if (write && word == 9'h62) cfg_ring_ctrl_log2_size[14:10] <= (cfg_ring_ctrl_log2_size[14:10] & keep[12:8]) | put[12:8];
        if (rst) cfg_ring_ctrl_log2_size[19:15] <= 5'h3;
        else if (write && word == 9'h72) cfg_ring_ctrl_log2_size[19:15] <= (cfg_ring_ctrl_log2_size[19:15] & keep[12:8]) | put[12:8];
        if (rst) cfg_ring_ctrl_queue[7:0] <= 8'h0;
        else if (write && word == 9'h42) cfg_ring_ctrl_queue[7:0] <= (cfg_ring_ctrl_queue[7:0] & keep[23:16]) | put[23:16];
        if (rst) cfg_ring_ctrl_queue[15:8] <= 8'h0;
        else if (write && word == 9'h52) cfg_ring_ctrl_queue[15:8] <= (cfg_ring_ctrl_queue[15:8] & keep[23:16]) | put[23:16];
        if (rst) cfg_ring_ctrl_queue[23:16] <= 8'h0;
        else if (write && word == 9'h62) cfg_ring_ctrl_queue[23:16] <= (cfg_ring_ctrl_queue[23:16] & keep[23:16]) | put[23:16];
        if (rst) cfg_ring_ctrl_queue[31:24] <= 8'h0;
        else if (write && word == 9'h72) cfg_ring_ctrl_queue[31:24] <= (cfg_ring_ctrl_queue[31:24] & keep[23:16]) | put[23:16];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_ring_producer[31:0] <= 32'h0;
        else if (write && word == 9'h43) cfg_ring_producer[31:0] <= (cfg_ring_producer[31:0] & keep) | put;
        if (rst) cfg_ring_producer[63:32] <= 32'h0;
        else if (write && word == 9'h53) cfg_ring_producer[63:32] <= (cfg_ring_producer[63:32] & keep) | put;
        if (rst) cfg_ring_producer[95:64] <= 32'h0;
        else if (write && word == 9'h63) cfg_ring_producer[95:64] <= (cfg_ring_producer[95:64] & keep) | put;
        if (rst) cfg_ring_producer[127:96] <= 32'h0;
        else if (write && word == 9'h73) cfg_ring_producer[127:96] <= (cfg_ring_producer[127:96] & keep) | put;
        wr_ring_producer[0] <= !rst && write && word == 9'h43;
        wr_ring_producer[1] <= !rst && write && word == 9'h53;
        wr_ring_producer[2] <= !rst && write && word == 9'h63;
        wr_ring_producer[3] <= !rst && write && word == 9'h73;
    end

    always_ff @(posedge clk) begin
        done <= !rst && here;
        case (word)
            9'h0: rdata <= {8'd0, 8'h1, 16'h6};
            9'h1: rdata <= 32'h8000;
            9'h40: begin
                rdata <= cfg_ring_base[31:0];
                if (here) highs[s_axil_func] <= cfg_ring_base[63:32];
            end
            9'h41: rdata <= high;
            9'h50: begin
                rdata <= cfg_ring_base[95:64];
                if (here) highs[s_axil_func] <= cfg_ring_base[127:96];
            end
            9'h51: rdata <= high;
            9'h60: begin
                rdata <= cfg_ring_base[159:128];
                if (here) highs[s_axil_func] <= cfg_ring_base[191:160];
            end
            9'h61: rdata <= high;
            9'h70: begin
                rdata <= cfg_ring_base[223:192];
                if (here) highs[s_axil_func] <= cfg_ring_base[255:224];
            end
            9'h71: rdata <= high;
            9'h42: rdata <= {8'd0, cfg_ring_ctrl_queue[7:0], 3'd0, cfg_ring_ctrl_log2_size[4:0], 7'd0, cfg_ring_ctrl_enable[0]};
            9'h52: rdata <= {8'd0, cfg_ring_ctrl_queue[15:8], 3'd0, cfg_ring_ctrl_log2_size[9:5], 7'd0, cfg_ring_ctrl_enable[1]};
            9'h62: rdata <= {8'd0, cfg_ring_ctrl_queue[23:16], 3'd0, cfg_ring_ctrl_log2_size[14:10], 7'd0, cfg_ring_ctrl_enable[2]};
            9'h72: rdata <= {8'd0, cfg_ring_ctrl_queue[31:24], 3'd0, cfg_ring_ctrl_log2_size[19:15], 7'd0, cfg_ring_ctrl_enable[3]};
            9'h43: rdata <= cfg_ring_producer[31:0];
            9'h53: rdata <= cfg_ring_producer[63:32];
            9'h63: rdata <= cfg_ring_producer[95:64];
            9'h73: rdata <= cfg_ring_producer[127:96];
            9'h44: rdata <= sts_ring_consumer[31:0];
            9'h54: rdata <= sts_ring_consumer[63:32];
            9'h64: rdata <= sts_ring_consumer[95:64];
            9'h74: rdata <= sts_ring_consumer[127:96];
            9'h45: rdata <= {29'd0, sts_ring_status_no_event[0], sts_ring_status_error[0], sts_ring_status_idle[0]};
            9'h55: rdata <= {29'd0, sts_ring_status_no_event[1], sts_ring_status_error[1], sts_ring_status_idle[1]};
            9'h65: rdata <= {29'd0, sts_ring_status_no_event[2], sts_ring_status_error[2], sts_ring_status_idle[2]};
            9'h75: rdata <= {29'd0, sts_ring_status_no_event[3], sts_ring_status_error[3], sts_ring_status_idle[3]};
            default: rdata <= 32'd0;
        endcase
    end

endmodule
