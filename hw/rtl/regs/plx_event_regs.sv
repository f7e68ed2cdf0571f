// Made by scripts/regen from hw/rdl/event.rdl: do not edit.
// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Event queues: registers.
//
// cfg_* are settings, sts_* are read values, set_* sets a flag, flag_* is a flag, pulse_* and wr_* are
// high for one cycle after a write; arrays of fields are concatenated. Other modules hold the tables:
// win_* is a request until ready, in the same cycle or later.
module plx_event_regs (
    // Clock and reset.
    input  logic clk,
    input  logic rst,
    // Register accesses.
    input  logic [9:0] s_axil_awaddr,
    input  logic s_axil_awvalid,
    output logic s_axil_awready,
    input  logic [31:0] s_axil_wdata,
    input  logic [3:0] s_axil_wstrb,
    input  logic s_axil_wvalid,
    output logic s_axil_wready,
    output logic [1:0] s_axil_bresp,
    output logic s_axil_bvalid,
    input  logic s_axil_bready,
    input  logic [9:0] s_axil_araddr,
    input  logic s_axil_arvalid,
    output logic s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [1:0] s_axil_rresp,
    output logic s_axil_rvalid,
    input  logic s_axil_rready,
    input  logic [2:0] s_axil_func,
    // Fields.
    output logic [511:0] cfg_queue_base,
    output logic [7:0] cfg_queue_ctrl_enable,
    output logic [39:0] cfg_queue_ctrl_log2_size,
    output logic [255:0] cfg_queue_released,
    input  logic [255:0] sts_queue_produced,
    output logic [127:0] cfg_queue_count,
    output logic [255:0] cfg_queue_hold_cycles,
    output logic [255:0] cfg_queue_arm_seen,
    output logic [7:0] wr_queue_arm
);

    logic acc_valid, acc_write, acc_ready, done;
    logic [9:0] acc_addr;
    logic [31:0] acc_wdata, acc_rdata, rdata, high, hold;
    logic [31:0] highs [0:7];
    logic [31:0] holds [0:7];
    logic [3:0] acc_wstrb;

    plx_axil_slave #(.ADDR_W(10)) slave (
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

    wire [7:0] word = acc_addr[9:2];
    wire [31:0] mask = {{8{acc_wstrb[3]}}, {8{acc_wstrb[2]}}, {8{acc_wstrb[1]}}, {8{acc_wstrb[0]}}};
    wire [31:0] keep = ~mask;
    wire [31:0] put = acc_wdata & mask;
    wire here = acc_valid && !done;
    wire write = here && acc_write;
    wire whole = write && &acc_wstrb;
    wire unused = &{1'b0, acc_addr[1:0], keep, put, hold, high, write, whole};
    assign acc_ready = done;
    assign acc_rdata = rdata;

    // 64 bits: the low half waits for the high one. Bytes alone do nothing.
    // Of each function: another one may access the block between the halves.
    assign hold = holds[s_axil_func];
    assign high = highs[s_axil_func];
    always_ff @(posedge clk) if (whole) holds[s_axil_func] <= acc_wdata;

    always_ff @(posedge clk) begin
        if (rst) cfg_queue_base[63:0] <= 64'h0;
        else if (whole && word == 8'h41) cfg_queue_base[63:0] <= {acc_wdata[31:0], hold};
        if (rst) cfg_queue_base[127:64] <= 64'h0;
        else if (whole && word == 8'h51) cfg_queue_base[127:64] <= {acc_wdata[31:0], hold};
        if (rst) cfg_queue_base[191:128] <= 64'h0;
        else if (whole && word == 8'h61) cfg_queue_base[191:128] <= {acc_wdata[31:0], hold};
        if (rst) cfg_queue_base[255:192] <= 64'h0;
        else if (whole && word == 8'h71) cfg_queue_base[255:192] <= {acc_wdata[31:0], hold};
        if (rst) cfg_queue_base[319:256] <= 64'h0;
        else if (whole && word == 8'h81) cfg_queue_base[319:256] <= {acc_wdata[31:0], hold};
        if (rst) cfg_queue_base[383:320] <= 64'h0;
        else if (whole && word == 8'h91) cfg_queue_base[383:320] <= {acc_wdata[31:0], hold};
        if (rst) cfg_queue_base[447:384] <= 64'h0;
        else if (whole && word == 8'ha1) cfg_queue_base[447:384] <= {acc_wdata[31:0], hold};
        if (rst) cfg_queue_base[511:448] <= 64'h0;
        else if (whole && word == 8'hb1) cfg_queue_base[511:448] <= {acc_wdata[31:0], hold};
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_queue_ctrl_enable[0] <= 1'h0;
        else if (write && word == 8'h42) cfg_queue_ctrl_enable[0] <= (cfg_queue_ctrl_enable[0] & keep[0]) | put[0];
        if (rst) cfg_queue_ctrl_enable[1] <= 1'h0;
        else if (write && word == 8'h52) cfg_queue_ctrl_enable[1] <= (cfg_queue_ctrl_enable[1] & keep[0]) | put[0];
        if (rst) cfg_queue_ctrl_enable[2] <= 1'h0;
        else if (write && word == 8'h62) cfg_queue_ctrl_enable[2] <= (cfg_queue_ctrl_enable[2] & keep[0]) | put[0];
        if (rst) cfg_queue_ctrl_enable[3] <= 1'h0;
        else if (write && word == 8'h72) cfg_queue_ctrl_enable[3] <= (cfg_queue_ctrl_enable[3] & keep[0]) | put[0];
        if (rst) cfg_queue_ctrl_enable[4] <= 1'h0;
        else if (write && word == 8'h82) cfg_queue_ctrl_enable[4] <= (cfg_queue_ctrl_enable[4] & keep[0]) | put[0];
        if (rst) cfg_queue_ctrl_enable[5] <= 1'h0;
        else if (write && word == 8'h92) cfg_queue_ctrl_enable[5] <= (cfg_queue_ctrl_enable[5] & keep[0]) | put[0];
        if (rst) cfg_queue_ctrl_enable[6] <= 1'h0;
        else if (write && word == 8'ha2) cfg_queue_ctrl_enable[6] <= (cfg_queue_ctrl_enable[6] & keep[0]) | put[0];
        if (rst) cfg_queue_ctrl_enable[7] <= 1'h0;
        else if (write && word == 8'hb2) cfg_queue_ctrl_enable[7] <= (cfg_queue_ctrl_enable[7] & keep[0]) | put[0];
        if (rst) cfg_queue_ctrl_log2_size[4:0] <= 5'h3;
        else if (write && word == 8'h42) cfg_queue_ctrl_log2_size[4:0] <= (cfg_queue_ctrl_log2_size[4:0] & keep[12:8]) | put[12:8];
        if (rst) cfg_queue_ctrl_log2_size[9:5] <= 5'h3;
        else if (write && word == 8'h52) cfg_queue_ctrl_log2_size[9:5] <= (cfg_queue_ctrl_log2_size[9:5] & keep[12:8]) | put[12:8];
        if (rst) cfg_queue_ctrl_log2_size[14:10] <= 5'h3;
        else if (write && word == 8'h62) cfg_queue_ctrl_log2_size[14:10] <= (cfg_queue_ctrl_log2_size[14:10] & keep[12:8]) | put[12:8];
        if (rst) cfg_queue_ctrl_log2_size[19:15] <= 5'h3;
        else if (write && word == 8'h72) cfg_queue_ctrl_log2_size[19:15] <= (cfg_queue_ctrl_log2_size[19:15] & keep[12:8]) | put[12:8];
        if (rst) cfg_queue_ctrl_log2_size[24:20] <= 5'h3;
        else if (write && word == 8'h82) cfg_queue_ctrl_log2_size[24:20] <= (cfg_queue_ctrl_log2_size[24:20] & keep[12:8]) | put[12:8];
        if (rst) cfg_queue_ctrl_log2_size[29:25] <= 5'h3;
        else if (write && word == 8'h92) cfg_queue_ctrl_log2_size[29:25] <= (cfg_queue_ctrl_log2_size[29:25] & keep[12:8]) | put[12:8];
        if (rst) cfg_queue_ctrl_log2_size[34:30] <= 5'h3;
        else if (write && word == 8'ha2) cfg_queue_ctrl_log2_size[34:30] <= (cfg_queue_ctrl_log2_size[34:30] & keep[12:8]) | put[12:8];
        if (rst) cfg_queue_ctrl_log2_size[39:35] <= 5'h3;
        else if (write && word == 8'hb2) cfg_queue_ctrl_log2_size[39:35] <= (cfg_queue_ctrl_log2_size[39:35] & keep[12:8]) | put[12:8];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_queue_released[31:0] <= 32'h0;
        else if (write && word == 8'h43) cfg_queue_released[31:0] <= (cfg_queue_released[31:0] & keep) | put;
        if (rst) cfg_queue_released[63:32] <= 32'h0;
        else if (write && word == 8'h53) cfg_queue_released[63:32] <= (cfg_queue_released[63:32] & keep) | put;
        if (rst) cfg_queue_released[95:64] <= 32'h0;
        else if (write && word == 8'h63) cfg_queue_released[95:64] <= (cfg_queue_released[95:64] & keep) | put;
        if (rst) cfg_queue_released[127:96] <= 32'h0;
        else if (write && word == 8'h73) cfg_queue_released[127:96] <= (cfg_queue_released[127:96] & keep) | put;
        if (rst) cfg_queue_released[159:128] <= 32'h0;
        else if (write && word == 8'h83) cfg_queue_released[159:128] <= (cfg_queue_released[159:128] & keep) | put;
        if (rst) cfg_queue_released[191:160] <= 32'h0;
        else if (write && word == 8'h93) cfg_queue_released[191:160] <= (cfg_queue_released[191:160] & keep) | put;
        if (rst) cfg_queue_released[223:192] <= 32'h0;
        else if (write && word == 8'ha3) cfg_queue_released[223:192] <= (cfg_queue_released[223:192] & keep) | put;
        if (rst) cfg_queue_released[255:224] <= 32'h0;
        else if (write && word == 8'hb3) cfg_queue_released[255:224] <= (cfg_queue_released[255:224] & keep) | put;
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_queue_count[15:0] <= 16'h1;
        else if (write && word == 8'h45) cfg_queue_count[15:0] <= (cfg_queue_count[15:0] & keep[15:0]) | put[15:0];
        if (rst) cfg_queue_count[31:16] <= 16'h1;
        else if (write && word == 8'h55) cfg_queue_count[31:16] <= (cfg_queue_count[31:16] & keep[15:0]) | put[15:0];
        if (rst) cfg_queue_count[47:32] <= 16'h1;
        else if (write && word == 8'h65) cfg_queue_count[47:32] <= (cfg_queue_count[47:32] & keep[15:0]) | put[15:0];
        if (rst) cfg_queue_count[63:48] <= 16'h1;
        else if (write && word == 8'h75) cfg_queue_count[63:48] <= (cfg_queue_count[63:48] & keep[15:0]) | put[15:0];
        if (rst) cfg_queue_count[79:64] <= 16'h1;
        else if (write && word == 8'h85) cfg_queue_count[79:64] <= (cfg_queue_count[79:64] & keep[15:0]) | put[15:0];
        if (rst) cfg_queue_count[95:80] <= 16'h1;
        else if (write && word == 8'h95) cfg_queue_count[95:80] <= (cfg_queue_count[95:80] & keep[15:0]) | put[15:0];
        if (rst) cfg_queue_count[111:96] <= 16'h1;
        else if (write && word == 8'ha5) cfg_queue_count[111:96] <= (cfg_queue_count[111:96] & keep[15:0]) | put[15:0];
        if (rst) cfg_queue_count[127:112] <= 16'h1;
        else if (write && word == 8'hb5) cfg_queue_count[127:112] <= (cfg_queue_count[127:112] & keep[15:0]) | put[15:0];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_queue_hold_cycles[31:0] <= 32'h0;
        else if (write && word == 8'h46) cfg_queue_hold_cycles[31:0] <= (cfg_queue_hold_cycles[31:0] & keep) | put;
        if (rst) cfg_queue_hold_cycles[63:32] <= 32'h0;
        else if (write && word == 8'h56) cfg_queue_hold_cycles[63:32] <= (cfg_queue_hold_cycles[63:32] & keep) | put;
        if (rst) cfg_queue_hold_cycles[95:64] <= 32'h0;
        else if (write && word == 8'h66) cfg_queue_hold_cycles[95:64] <= (cfg_queue_hold_cycles[95:64] & keep) | put;
        if (rst) cfg_queue_hold_cycles[127:96] <= 32'h0;
        else if (write && word == 8'h76) cfg_queue_hold_cycles[127:96] <= (cfg_queue_hold_cycles[127:96] & keep) | put;
        if (rst) cfg_queue_hold_cycles[159:128] <= 32'h0;
        else if (write && word == 8'h86) cfg_queue_hold_cycles[159:128] <= (cfg_queue_hold_cycles[159:128] & keep) | put;
        if (rst) cfg_queue_hold_cycles[191:160] <= 32'h0;
        else if (write && word == 8'h96) cfg_queue_hold_cycles[191:160] <= (cfg_queue_hold_cycles[191:160] & keep) | put;
        if (rst) cfg_queue_hold_cycles[223:192] <= 32'h0;
        else if (write && word == 8'ha6) cfg_queue_hold_cycles[223:192] <= (cfg_queue_hold_cycles[223:192] & keep) | put;
        if (rst) cfg_queue_hold_cycles[255:224] <= 32'h0;
        else if (write && word == 8'hb6) cfg_queue_hold_cycles[255:224] <= (cfg_queue_hold_cycles[255:224] & keep) | put;
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_queue_arm_seen[31:0] <= 32'h0;
        else if (write && word == 8'h47) cfg_queue_arm_seen[31:0] <= (cfg_queue_arm_seen[31:0] & keep) | put;
        if (rst) cfg_queue_arm_seen[63:32] <= 32'h0;
        else if (write && word == 8'h57) cfg_queue_arm_seen[63:32] <= (cfg_queue_arm_seen[63:32] & keep) | put;
        if (rst) cfg_queue_arm_seen[95:64] <= 32'h0;
        else if (write && word == 8'h67) cfg_queue_arm_seen[95:64] <= (cfg_queue_arm_seen[95:64] & keep) | put;
        if (rst) cfg_queue_arm_seen[127:96] <= 32'h0;
        else if (write && word == 8'h77) cfg_queue_arm_seen[127:96] <= (cfg_queue_arm_seen[127:96] & keep) | put;
        if (rst) cfg_queue_arm_seen[159:128] <= 32'h0;
        else if (write && word == 8'h87) cfg_queue_arm_seen[159:128] <= (cfg_queue_arm_seen[159:128] & keep) | put;
        if (rst) cfg_queue_arm_seen[191:160] <= 32'h0;
        else if (write && word == 8'h97) cfg_queue_arm_seen[191:160] <= (cfg_queue_arm_seen[191:160] & keep) | put;
        if (rst) cfg_queue_arm_seen[223:192] <= 32'h0;
        else if (write && word == 8'ha7) cfg_queue_arm_seen[223:192] <= (cfg_queue_arm_seen[223:192] & keep) | put;
        if (rst) cfg_queue_arm_seen[255:224] <= 32'h0;
        else if (write && word == 8'hb7) cfg_queue_arm_seen[255:224] <= (cfg_queue_arm_seen[255:224] & keep) | put;
        wr_queue_arm[0] <= !rst && write && word == 8'h47;
        wr_queue_arm[1] <= !rst && write && word == 8'h57;
        wr_queue_arm[2] <= !rst && write && word == 8'h67;
        wr_queue_arm[3] <= !rst && write && word == 8'h77;
        wr_queue_arm[4] <= !rst && write && word == 8'h87;
        wr_queue_arm[5] <= !rst && write && word == 8'h97;
        wr_queue_arm[6] <= !rst && write && word == 8'ha7;
        wr_queue_arm[7] <= !rst && write && word == 8'hb7;
    end

    always_ff @(posedge clk) begin
        done <= !rst && here;
        case (word)
            8'h0: rdata <= {8'd0, 8'h1, 16'h4};
            8'h1: rdata <= 32'h4000;
            8'h40: begin
                rdata <= cfg_queue_base[31:0];
                if (here) highs[s_axil_func] <= cfg_queue_base[63:32];
            end
            8'h41: rdata <= high;
            8'h50: begin
                rdata <= cfg_queue_base[95:64];
                if (here) highs[s_axil_func] <= cfg_queue_base[127:96];
            end
            8'h51: rdata <= high;
            8'h60: begin
                rdata <= cfg_queue_base[159:128];
                if (here) highs[s_axil_func] <= cfg_queue_base[191:160];
            end
            8'h61: rdata <= high;
            8'h70: begin
                rdata <= cfg_queue_base[223:192];
                if (here) highs[s_axil_func] <= cfg_queue_base[255:224];
            end
            8'h71: rdata <= high;
            8'h80: begin
                rdata <= cfg_queue_base[287:256];
                if (here) highs[s_axil_func] <= cfg_queue_base[319:288];
            end
            8'h81: rdata <= high;
            8'h90: begin
                rdata <= cfg_queue_base[351:320];
                if (here) highs[s_axil_func] <= cfg_queue_base[383:352];
            end
            8'h91: rdata <= high;
            8'ha0: begin
                rdata <= cfg_queue_base[415:384];
                if (here) highs[s_axil_func] <= cfg_queue_base[447:416];
            end
            8'ha1: rdata <= high;
            8'hb0: begin
                rdata <= cfg_queue_base[479:448];
                if (here) highs[s_axil_func] <= cfg_queue_base[511:480];
            end
            8'hb1: rdata <= high;
            8'h42: rdata <= {19'd0, cfg_queue_ctrl_log2_size[4:0], 7'd0, cfg_queue_ctrl_enable[0]};
            8'h52: rdata <= {19'd0, cfg_queue_ctrl_log2_size[9:5], 7'd0, cfg_queue_ctrl_enable[1]};
            8'h62: rdata <= {19'd0, cfg_queue_ctrl_log2_size[14:10], 7'd0, cfg_queue_ctrl_enable[2]};
            8'h72: rdata <= {19'd0, cfg_queue_ctrl_log2_size[19:15], 7'd0, cfg_queue_ctrl_enable[3]};
            8'h82: rdata <= {19'd0, cfg_queue_ctrl_log2_size[24:20], 7'd0, cfg_queue_ctrl_enable[4]};
            8'h92: rdata <= {19'd0, cfg_queue_ctrl_log2_size[29:25], 7'd0, cfg_queue_ctrl_enable[5]};
            8'ha2: rdata <= {19'd0, cfg_queue_ctrl_log2_size[34:30], 7'd0, cfg_queue_ctrl_enable[6]};
            8'hb2: rdata <= {19'd0, cfg_queue_ctrl_log2_size[39:35], 7'd0, cfg_queue_ctrl_enable[7]};
            8'h43: rdata <= cfg_queue_released[31:0];
            8'h53: rdata <= cfg_queue_released[63:32];
            8'h63: rdata <= cfg_queue_released[95:64];
            8'h73: rdata <= cfg_queue_released[127:96];
            8'h83: rdata <= cfg_queue_released[159:128];
            8'h93: rdata <= cfg_queue_released[191:160];
            8'ha3: rdata <= cfg_queue_released[223:192];
            8'hb3: rdata <= cfg_queue_released[255:224];
            8'h44: rdata <= sts_queue_produced[31:0];
            8'h54: rdata <= sts_queue_produced[63:32];
            8'h64: rdata <= sts_queue_produced[95:64];
            8'h74: rdata <= sts_queue_produced[127:96];
            8'h84: rdata <= sts_queue_produced[159:128];
            8'h94: rdata <= sts_queue_produced[191:160];
            8'ha4: rdata <= sts_queue_produced[223:192];
            8'hb4: rdata <= sts_queue_produced[255:224];
            8'h45: rdata <= {16'd0, cfg_queue_count[15:0]};
            8'h55: rdata <= {16'd0, cfg_queue_count[31:16]};
            8'h65: rdata <= {16'd0, cfg_queue_count[47:32]};
            8'h75: rdata <= {16'd0, cfg_queue_count[63:48]};
            8'h85: rdata <= {16'd0, cfg_queue_count[79:64]};
            8'h95: rdata <= {16'd0, cfg_queue_count[95:80]};
            8'ha5: rdata <= {16'd0, cfg_queue_count[111:96]};
            8'hb5: rdata <= {16'd0, cfg_queue_count[127:112]};
            8'h46: rdata <= cfg_queue_hold_cycles[31:0];
            8'h56: rdata <= cfg_queue_hold_cycles[63:32];
            8'h66: rdata <= cfg_queue_hold_cycles[95:64];
            8'h76: rdata <= cfg_queue_hold_cycles[127:96];
            8'h86: rdata <= cfg_queue_hold_cycles[159:128];
            8'h96: rdata <= cfg_queue_hold_cycles[191:160];
            8'ha6: rdata <= cfg_queue_hold_cycles[223:192];
            8'hb6: rdata <= cfg_queue_hold_cycles[255:224];
            8'h47: rdata <= cfg_queue_arm_seen[31:0];
            8'h57: rdata <= cfg_queue_arm_seen[63:32];
            8'h67: rdata <= cfg_queue_arm_seen[95:64];
            8'h77: rdata <= cfg_queue_arm_seen[127:96];
            8'h87: rdata <= cfg_queue_arm_seen[159:128];
            8'h97: rdata <= cfg_queue_arm_seen[191:160];
            8'ha7: rdata <= cfg_queue_arm_seen[223:192];
            8'hb7: rdata <= cfg_queue_arm_seen[255:224];
            default: rdata <= 32'd0;
        endcase
    end

endmodule
