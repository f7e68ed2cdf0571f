// Made by scripts/regen from hw/rdl/timing.rdl: do not edit.
// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Timing: registers.
//
// cfg_* are settings, sts_* are read values, set_* sets a flag, flag_* is a flag, pulse_* and wr_* are
// high for one cycle after a write; arrays of fields are concatenated. Other modules hold the tables:
// win_* is a request until ready, in the same cycle or later.
module plx_timing_regs (
    // Clock and reset.
    input  logic clk,
    input  logic rst,
    // Register accesses.
    input  logic [8:0] s_axil_awaddr,
    input  logic s_axil_awvalid,
    output logic s_axil_awready,
    input  logic [31:0] s_axil_wdata,
    input  logic [3:0] s_axil_wstrb,
    input  logic s_axil_wvalid,
    output logic s_axil_wready,
    output logic [1:0] s_axil_bresp,
    output logic s_axil_bvalid,
    input  logic s_axil_bready,
    input  logic [8:0] s_axil_araddr,
    input  logic s_axil_arvalid,
    output logic s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [1:0] s_axil_rresp,
    output logic s_axil_rvalid,
    input  logic s_axil_rready,
    // Fields.
    output logic cfg_ctrl_from_clock,
    output logic cfg_ctrl_set_on_start,
    output logic cfg_ctrl_event_burst,
    output logic cfg_ctrl_event_trigger,
    output logic cfg_ctrl_event_flag,
    output logic [7:0] cfg_ctrl_queue,
    input  logic set_flags_unexpected_start,
    output logic flag_flags_unexpected_start,
    input  logic set_flags_unexpected_end,
    output logic flag_flags_unexpected_end,
    input  logic set_flags_early,
    output logic flag_flags_early,
    input  logic set_flags_lost,
    output logic flag_flags_lost,
    input  logic set_flags_event,
    output logic flag_flags_event,
    output logic [31:0] cfg_period,
    output logic [15:0] cfg_watch_expect,
    output logic [15:0] cfg_watch_tolerance,
    input  logic [31:0] sts_bursts,
    input  logic sts_status_valid,
    input  logic sts_status_burst,
    input  logic [63:0] sts_now,
    output logic [63:0] cfg_set,
    output logic wr_set,
    output logic [63:0] cfg_preset,
    input  logic [63:0] sts_start,
    input  logic [63:0] sts_end,
    input  logic [63:0] sts_trigger,
    // Tables.
    output logic win_write,
    output logic [8:0] win_addr,
    output logic [31:0] win_wdata,
    output logic [3:0] win_wstrb,
    output logic win_counters_valid,
    input  logic win_counters_ready,
    input  logic [31:0] win_counters_rdata
);

    logic acc_valid, acc_write, acc_ready, done;
    logic [8:0] acc_addr;
    logic [31:0] acc_wdata, acc_rdata, rdata, high, hold;
    logic [3:0] acc_wstrb;

    plx_axil_slave #(.ADDR_W(9)) slave (
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

    wire [6:0] word = acc_addr[8:2];
    wire [31:0] mask = {{8{acc_wstrb[3]}}, {8{acc_wstrb[2]}}, {8{acc_wstrb[1]}}, {8{acc_wstrb[0]}}};
    wire [31:0] keep = ~mask;
    wire [31:0] put = acc_wdata & mask;
    wire in_counters = acc_addr[8:6] == 3'd4;
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
    always_ff @(posedge clk) if (whole) hold <= acc_wdata;

    always_ff @(posedge clk) begin
        if (rst) cfg_ctrl_from_clock <= 1'h0;
        else if (write && word == 7'h2) cfg_ctrl_from_clock <= (cfg_ctrl_from_clock & keep[0]) | put[0];
        if (rst) cfg_ctrl_set_on_start <= 1'h0;
        else if (write && word == 7'h2) cfg_ctrl_set_on_start <= (cfg_ctrl_set_on_start & keep[1]) | put[1];
        if (rst) cfg_ctrl_event_burst <= 1'h0;
        else if (write && word == 7'h2) cfg_ctrl_event_burst <= (cfg_ctrl_event_burst & keep[2]) | put[2];
        if (rst) cfg_ctrl_event_trigger <= 1'h0;
        else if (write && word == 7'h2) cfg_ctrl_event_trigger <= (cfg_ctrl_event_trigger & keep[3]) | put[3];
        if (rst) cfg_ctrl_event_flag <= 1'h0;
        else if (write && word == 7'h2) cfg_ctrl_event_flag <= (cfg_ctrl_event_flag & keep[4]) | put[4];
        if (rst) cfg_ctrl_queue <= 8'h0;
        else if (write && word == 7'h2) cfg_ctrl_queue <= (cfg_ctrl_queue & keep[15:8]) | put[15:8];
    end

    always_ff @(posedge clk) begin
        if (rst) flag_flags_unexpected_start <= 1'h0;
        else flag_flags_unexpected_start <= (flag_flags_unexpected_start & ~({1{write && word == 7'h3}} & put[0])) | set_flags_unexpected_start;
        if (rst) flag_flags_unexpected_end <= 1'h0;
        else flag_flags_unexpected_end <= (flag_flags_unexpected_end & ~({1{write && word == 7'h3}} & put[1])) | set_flags_unexpected_end;
        if (rst) flag_flags_early <= 1'h0;
        else flag_flags_early <= (flag_flags_early & ~({1{write && word == 7'h3}} & put[2])) | set_flags_early;
        if (rst) flag_flags_lost <= 1'h0;
        else flag_flags_lost <= (flag_flags_lost & ~({1{write && word == 7'h3}} & put[3])) | set_flags_lost;
        if (rst) flag_flags_event <= 1'h0;
        else flag_flags_event <= (flag_flags_event & ~({1{write && word == 7'h3}} & put[4])) | set_flags_event;
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_period <= 32'h190000;
        else if (write && word == 7'h4) cfg_period <= (cfg_period & keep) | put;
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_watch_expect <= 16'h0;
        else if (write && word == 7'h5) cfg_watch_expect <= (cfg_watch_expect & keep[15:0]) | put[15:0];
        if (rst) cfg_watch_tolerance <= 16'h0;
        else if (write && word == 7'h5) cfg_watch_tolerance <= (cfg_watch_tolerance & keep[31:16]) | put[31:16];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_set <= 64'h0;
        else if (whole && word == 7'hb) cfg_set <= {acc_wdata[31:0], hold};
        wr_set <= !rst && whole && word == 7'hb;
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_preset <= 64'h0;
        else if (whole && word == 7'hd) cfg_preset <= {acc_wdata[31:0], hold};
    end

    always_ff @(posedge clk) begin
        done <= !rst && here;
        case (word)
            7'h0: rdata <= {8'd0, 8'h1, 16'h3};
            7'h1: rdata <= 32'h4000;
            7'h2: rdata <= {16'd0, cfg_ctrl_queue, 3'd0, cfg_ctrl_event_flag, cfg_ctrl_event_trigger, cfg_ctrl_event_burst, cfg_ctrl_set_on_start, cfg_ctrl_from_clock};
            7'h3: rdata <= {27'd0, flag_flags_event, flag_flags_lost, flag_flags_early, flag_flags_unexpected_end, flag_flags_unexpected_start};
            7'h4: rdata <= cfg_period;
            7'h5: rdata <= {cfg_watch_tolerance, cfg_watch_expect};
            7'h6: rdata <= sts_bursts;
            7'h7: rdata <= {30'd0, sts_status_burst, sts_status_valid};
            7'h8: begin
                rdata <= sts_now[31:0];
                if (here) high <= sts_now[63:32];
            end
            7'h9: rdata <= high;
            7'ha: begin
                rdata <= cfg_set[31:0];
                if (here) high <= cfg_set[63:32];
            end
            7'hb: rdata <= high;
            7'hc: begin
                rdata <= cfg_preset[31:0];
                if (here) high <= cfg_preset[63:32];
            end
            7'hd: rdata <= high;
            7'he: begin
                rdata <= sts_start[31:0];
                if (here) high <= sts_start[63:32];
            end
            7'hf: rdata <= high;
            7'h10: begin
                rdata <= sts_end[31:0];
                if (here) high <= sts_end[63:32];
            end
            7'h11: rdata <= high;
            7'h12: begin
                rdata <= sts_trigger[31:0];
                if (here) high <= sts_trigger[63:32];
            end
            7'h13: rdata <= high;
            default: rdata <= 32'd0;
        endcase
    end

endmodule
