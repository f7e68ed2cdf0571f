// Made by scripts/regen from hw/rdl/port.rdl: do not edit.
// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Port: registers.
//
// cfg_* are settings, sts_* are read values, set_* sets a flag, flag_* is a flag, pulse_* and wr_* are
// high for one cycle after a write; arrays of fields are concatenated. Other modules hold the tables:
// win_* is a request until ready, in the same cycle or later.
module plx_port_regs (
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
    input  logic [7:0] sts_block_instance,
    input  logic [31:0] sts_next_offset,
    output logic cfg_mac_ctrl_rx_enable,
    output logic cfg_mac_ctrl_tx_enable,
    output logic cfg_mac_ctrl_loop,
    output logic cfg_mac_ctrl_promiscuous,
    output logic cfg_mac_ctrl_multicast,
    output logic cfg_mac_ctrl_pause,
    input  logic sts_mac_status_link,
    input  logic sts_mac_status_local_fault,
    input  logic sts_mac_status_remote_fault,
    input  logic sts_mac_status_rx_idle,
    input  logic sts_mac_status_tx_idle,
    input  logic sts_mac_status_paused,
    output logic [13:0] cfg_max_frame,
    output logic [47:0] cfg_mac,
    output logic [31:0] cfg_ip,
    output logic cfg_net_ctrl_arp,
    output logic cfg_net_ctrl_echo,
    output logic cfg_net_ctrl_checksum,
    output logic cfg_net_ctrl_catch_udp,
    output logic cfg_net_ctrl_catch_other,
    output logic [31:0] cfg_destination_ip,
    output logic [15:0] cfg_destination_ports_destination,
    output logic [15:0] cfg_destination_ports_source,
    output logic [7:0] cfg_ip_send_ttl,
    output logic [7:0] cfg_ip_send_tos,
    output logic pulse_arp_ctrl_flush,
    output logic [15:0] cfg_arp_retry,
    output logic [15:0] cfg_arp_expiry,
    output logic pulse_gen_ctrl_start,
    output logic pulse_gen_ctrl_stop,
    input  logic sts_gen_status_running,
    output logic [13:0] cfg_gen_size,
    output logic [31:0] cfg_gen_count,
    output logic [31:0] cfg_gen_gap,
    output logic [15:0] cfg_gen_ports_destination,
    output logic [15:0] cfg_gen_ports_source,
    output logic [31:0] cfg_arp_wait_cycles,
    output logic cfg_pcs_ctrl_prbs31_tx,
    output logic cfg_pcs_ctrl_prbs31_rx,
    input  logic sts_pcs_status_present,
    input  logic sts_pcs_status_signal_ok,
    input  logic sts_pcs_status_block_lock,
    input  logic sts_pcs_status_hi_ber,
    output logic [255:0] cfg_stream_port,
    output logic [31:0] cfg_stream_form,
    output logic [15:0] cfg_stream_enable,
    // Tables.
    output logic win_write,
    output logic [12:0] win_addr,
    output logic [31:0] win_wdata,
    output logic [3:0] win_wstrb,
    output logic win_counters_valid,
    input  logic win_counters_ready,
    input  logic [31:0] win_counters_rdata,
    output logic win_arp_valid,
    input  logic win_arp_ready,
    input  logic [31:0] win_arp_rdata
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
    wire in_counters = acc_addr[12:8] == 5'd4;
    wire in_arp = acc_addr[12:12] == 1'd1;
    wire here = acc_valid && !done && !in_counters && !in_arp;
    wire write = here && acc_write;
    wire whole = write && &acc_wstrb;
    wire unused = &{1'b0, acc_addr[1:0], keep, put, hold, high, write, whole};
    assign win_write = acc_write;
    assign win_addr = acc_addr;
    assign win_wdata = acc_wdata;
    assign win_wstrb = acc_wstrb;
    assign win_counters_valid = acc_valid && in_counters;
    assign win_arp_valid = acc_valid && in_arp;
    assign acc_ready = done || (in_counters && win_counters_ready) || (in_arp && win_arp_ready);
    assign acc_rdata = in_arp ? win_arp_rdata : in_counters ? win_counters_rdata : rdata;

    // 64 bits: the low half waits for the high one. Bytes alone do nothing.
    always_ff @(posedge clk) if (whole) hold <= acc_wdata;

    always_ff @(posedge clk) begin
        if (rst) cfg_mac_ctrl_rx_enable <= 1'h0;
        else if (write && word == 11'h2) cfg_mac_ctrl_rx_enable <= (cfg_mac_ctrl_rx_enable & keep[0]) | put[0];
        if (rst) cfg_mac_ctrl_tx_enable <= 1'h0;
        else if (write && word == 11'h2) cfg_mac_ctrl_tx_enable <= (cfg_mac_ctrl_tx_enable & keep[1]) | put[1];
        if (rst) cfg_mac_ctrl_loop <= 1'h0;
        else if (write && word == 11'h2) cfg_mac_ctrl_loop <= (cfg_mac_ctrl_loop & keep[2]) | put[2];
        if (rst) cfg_mac_ctrl_promiscuous <= 1'h0;
        else if (write && word == 11'h2) cfg_mac_ctrl_promiscuous <= (cfg_mac_ctrl_promiscuous & keep[3]) | put[3];
        if (rst) cfg_mac_ctrl_multicast <= 1'h0;
        else if (write && word == 11'h2) cfg_mac_ctrl_multicast <= (cfg_mac_ctrl_multicast & keep[4]) | put[4];
        if (rst) cfg_mac_ctrl_pause <= 1'h1;
        else if (write && word == 11'h2) cfg_mac_ctrl_pause <= (cfg_mac_ctrl_pause & keep[5]) | put[5];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_max_frame <= 14'h5f2;
        else if (write && word == 11'h4) cfg_max_frame <= (cfg_max_frame & keep[13:0]) | put[13:0];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_mac <= 48'h0;
        else if (whole && word == 11'h7) cfg_mac <= {acc_wdata[15:0], hold};
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_ip <= 32'h0;
        else if (write && word == 11'h8) cfg_ip <= (cfg_ip & keep) | put;
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_net_ctrl_arp <= 1'h1;
        else if (write && word == 11'h9) cfg_net_ctrl_arp <= (cfg_net_ctrl_arp & keep[0]) | put[0];
        if (rst) cfg_net_ctrl_echo <= 1'h1;
        else if (write && word == 11'h9) cfg_net_ctrl_echo <= (cfg_net_ctrl_echo & keep[1]) | put[1];
        if (rst) cfg_net_ctrl_checksum <= 1'h1;
        else if (write && word == 11'h9) cfg_net_ctrl_checksum <= (cfg_net_ctrl_checksum & keep[2]) | put[2];
        if (rst) cfg_net_ctrl_catch_udp <= 1'h0;
        else if (write && word == 11'h9) cfg_net_ctrl_catch_udp <= (cfg_net_ctrl_catch_udp & keep[4]) | put[4];
        if (rst) cfg_net_ctrl_catch_other <= 1'h0;
        else if (write && word == 11'h9) cfg_net_ctrl_catch_other <= (cfg_net_ctrl_catch_other & keep[5]) | put[5];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_destination_ip <= 32'h0;
        else if (write && word == 11'ha) cfg_destination_ip <= (cfg_destination_ip & keep) | put;
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_destination_ports_destination <= 16'h0;
        else if (write && word == 11'hb) cfg_destination_ports_destination <= (cfg_destination_ports_destination & keep[15:0]) | put[15:0];
        if (rst) cfg_destination_ports_source <= 16'h0;
        else if (write && word == 11'hb) cfg_destination_ports_source <= (cfg_destination_ports_source & keep[31:16]) | put[31:16];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_ip_send_ttl <= 8'h40;
        else if (write && word == 11'hc) cfg_ip_send_ttl <= (cfg_ip_send_ttl & keep[7:0]) | put[7:0];
        if (rst) cfg_ip_send_tos <= 8'h0;
        else if (write && word == 11'hc) cfg_ip_send_tos <= (cfg_ip_send_tos & keep[15:8]) | put[15:8];
    end

    always_ff @(posedge clk) begin
        pulse_arp_ctrl_flush <= !rst && write && word == 11'hd && put[8];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_arp_retry <= 16'h3;
        else if (write && word == 11'he) cfg_arp_retry <= (cfg_arp_retry & keep[15:0]) | put[15:0];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_arp_expiry <= 16'h22ed;
        else if (write && word == 11'hf) cfg_arp_expiry <= (cfg_arp_expiry & keep[15:0]) | put[15:0];
    end

    always_ff @(posedge clk) begin
        pulse_gen_ctrl_start <= !rst && write && word == 11'h10 && put[0];
        pulse_gen_ctrl_stop <= !rst && write && word == 11'h10 && put[1];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_gen_size <= 14'h12;
        else if (write && word == 11'h12) cfg_gen_size <= (cfg_gen_size & keep[13:0]) | put[13:0];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_gen_count <= 32'h0;
        else if (write && word == 11'h13) cfg_gen_count <= (cfg_gen_count & keep) | put;
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_gen_gap <= 32'h0;
        else if (write && word == 11'h14) cfg_gen_gap <= (cfg_gen_gap & keep) | put;
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_gen_ports_destination <= 16'h0;
        else if (write && word == 11'h15) cfg_gen_ports_destination <= (cfg_gen_ports_destination & keep[15:0]) | put[15:0];
        if (rst) cfg_gen_ports_source <= 16'h0;
        else if (write && word == 11'h15) cfg_gen_ports_source <= (cfg_gen_ports_source & keep[31:16]) | put[31:16];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_arp_wait_cycles <= 32'h3d09;
        else if (write && word == 11'h16) cfg_arp_wait_cycles <= (cfg_arp_wait_cycles & keep) | put;
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_pcs_ctrl_prbs31_tx <= 1'h0;
        else if (write && word == 11'h17) cfg_pcs_ctrl_prbs31_tx <= (cfg_pcs_ctrl_prbs31_tx & keep[0]) | put[0];
        if (rst) cfg_pcs_ctrl_prbs31_rx <= 1'h0;
        else if (write && word == 11'h17) cfg_pcs_ctrl_prbs31_rx <= (cfg_pcs_ctrl_prbs31_rx & keep[1]) | put[1];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_stream_port[15:0] <= 16'h0;
        else if (write && word == 11'h80) cfg_stream_port[15:0] <= (cfg_stream_port[15:0] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_port[31:16] <= 16'h0;
        else if (write && word == 11'h81) cfg_stream_port[31:16] <= (cfg_stream_port[31:16] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_port[47:32] <= 16'h0;
        else if (write && word == 11'h82) cfg_stream_port[47:32] <= (cfg_stream_port[47:32] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_port[63:48] <= 16'h0;
        else if (write && word == 11'h83) cfg_stream_port[63:48] <= (cfg_stream_port[63:48] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_port[79:64] <= 16'h0;
        else if (write && word == 11'h84) cfg_stream_port[79:64] <= (cfg_stream_port[79:64] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_port[95:80] <= 16'h0;
        else if (write && word == 11'h85) cfg_stream_port[95:80] <= (cfg_stream_port[95:80] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_port[111:96] <= 16'h0;
        else if (write && word == 11'h86) cfg_stream_port[111:96] <= (cfg_stream_port[111:96] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_port[127:112] <= 16'h0;
        else if (write && word == 11'h87) cfg_stream_port[127:112] <= (cfg_stream_port[127:112] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_port[143:128] <= 16'h0;
        else if (write && word == 11'h88) cfg_stream_port[143:128] <= (cfg_stream_port[143:128] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_port[159:144] <= 16'h0;
        else if (write && word == 11'h89) cfg_stream_port[159:144] <= (cfg_stream_port[159:144] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_port[175:160] <= 16'h0;
        else if (write && word == 11'h8a) cfg_stream_port[175:160] <= (cfg_stream_port[175:160] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_port[191:176] <= 16'h0;
        else if (write && word == 11'h8b) cfg_stream_port[191:176] <= (cfg_stream_port[191:176] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_port[207:192] <= 16'h0;
        else if (write && word == 11'h8c) cfg_stream_port[207:192] <= (cfg_stream_port[207:192] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_port[223:208] <= 16'h0;
        else if (write && word == 11'h8d) cfg_stream_port[223:208] <= (cfg_stream_port[223:208] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_port[239:224] <= 16'h0;
        else if (write && word == 11'h8e) cfg_stream_port[239:224] <= (cfg_stream_port[239:224] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_port[255:240] <= 16'h0;
        else if (write && word == 11'h8f) cfg_stream_port[255:240] <= (cfg_stream_port[255:240] & keep[15:0]) | put[15:0];
        if (rst) cfg_stream_form[1:0] <= 2'h0;
        else if (write && word == 11'h80) cfg_stream_form[1:0] <= (cfg_stream_form[1:0] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_form[3:2] <= 2'h0;
        else if (write && word == 11'h81) cfg_stream_form[3:2] <= (cfg_stream_form[3:2] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_form[5:4] <= 2'h0;
        else if (write && word == 11'h82) cfg_stream_form[5:4] <= (cfg_stream_form[5:4] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_form[7:6] <= 2'h0;
        else if (write && word == 11'h83) cfg_stream_form[7:6] <= (cfg_stream_form[7:6] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_form[9:8] <= 2'h0;
        else if (write && word == 11'h84) cfg_stream_form[9:8] <= (cfg_stream_form[9:8] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_form[11:10] <= 2'h0;
        else if (write && word == 11'h85) cfg_stream_form[11:10] <= (cfg_stream_form[11:10] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_form[13:12] <= 2'h0;
        else if (write && word == 11'h86) cfg_stream_form[13:12] <= (cfg_stream_form[13:12] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_form[15:14] <= 2'h0;
        else if (write && word == 11'h87) cfg_stream_form[15:14] <= (cfg_stream_form[15:14] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_form[17:16] <= 2'h0;
        else if (write && word == 11'h88) cfg_stream_form[17:16] <= (cfg_stream_form[17:16] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_form[19:18] <= 2'h0;
        else if (write && word == 11'h89) cfg_stream_form[19:18] <= (cfg_stream_form[19:18] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_form[21:20] <= 2'h0;
        else if (write && word == 11'h8a) cfg_stream_form[21:20] <= (cfg_stream_form[21:20] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_form[23:22] <= 2'h0;
        else if (write && word == 11'h8b) cfg_stream_form[23:22] <= (cfg_stream_form[23:22] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_form[25:24] <= 2'h0;
        else if (write && word == 11'h8c) cfg_stream_form[25:24] <= (cfg_stream_form[25:24] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_form[27:26] <= 2'h0;
        else if (write && word == 11'h8d) cfg_stream_form[27:26] <= (cfg_stream_form[27:26] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_form[29:28] <= 2'h0;
        else if (write && word == 11'h8e) cfg_stream_form[29:28] <= (cfg_stream_form[29:28] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_form[31:30] <= 2'h0;
        else if (write && word == 11'h8f) cfg_stream_form[31:30] <= (cfg_stream_form[31:30] & keep[17:16]) | put[17:16];
        if (rst) cfg_stream_enable[0] <= 1'h0;
        else if (write && word == 11'h80) cfg_stream_enable[0] <= (cfg_stream_enable[0] & keep[31]) | put[31];
        if (rst) cfg_stream_enable[1] <= 1'h0;
        else if (write && word == 11'h81) cfg_stream_enable[1] <= (cfg_stream_enable[1] & keep[31]) | put[31];
        if (rst) cfg_stream_enable[2] <= 1'h0;
        else if (write && word == 11'h82) cfg_stream_enable[2] <= (cfg_stream_enable[2] & keep[31]) | put[31];
        if (rst) cfg_stream_enable[3] <= 1'h0;
        else if (write && word == 11'h83) cfg_stream_enable[3] <= (cfg_stream_enable[3] & keep[31]) | put[31];
        if (rst) cfg_stream_enable[4] <= 1'h0;
        else if (write && word == 11'h84) cfg_stream_enable[4] <= (cfg_stream_enable[4] & keep[31]) | put[31];
        if (rst) cfg_stream_enable[5] <= 1'h0;
        else if (write && word == 11'h85) cfg_stream_enable[5] <= (cfg_stream_enable[5] & keep[31]) | put[31];
        if (rst) cfg_stream_enable[6] <= 1'h0;
        else if (write && word == 11'h86) cfg_stream_enable[6] <= (cfg_stream_enable[6] & keep[31]) | put[31];
        if (rst) cfg_stream_enable[7] <= 1'h0;
        else if (write && word == 11'h87) cfg_stream_enable[7] <= (cfg_stream_enable[7] & keep[31]) | put[31];
        if (rst) cfg_stream_enable[8] <= 1'h0;
        else if (write && word == 11'h88) cfg_stream_enable[8] <= (cfg_stream_enable[8] & keep[31]) | put[31];
        if (rst) cfg_stream_enable[9] <= 1'h0;
        else if (write && word == 11'h89) cfg_stream_enable[9] <= (cfg_stream_enable[9] & keep[31]) | put[31];
        if (rst) cfg_stream_enable[10] <= 1'h0;
        else if (write && word == 11'h8a) cfg_stream_enable[10] <= (cfg_stream_enable[10] & keep[31]) | put[31];
        if (rst) cfg_stream_enable[11] <= 1'h0;
        else if (write && word == 11'h8b) cfg_stream_enable[11] <= (cfg_stream_enable[11] & keep[31]) | put[31];
        if (rst) cfg_stream_enable[12] <= 1'h0;
        else if (write && word == 11'h8c) cfg_stream_enable[12] <= (cfg_stream_enable[12] & keep[31]) | put[31];
        if (rst) cfg_stream_enable[13] <= 1'h0;
        else if (write && word == 11'h8d) cfg_stream_enable[13] <= (cfg_stream_enable[13] & keep[31]) | put[31];
        if (rst) cfg_stream_enable[14] <= 1'h0;
        else if (write && word == 11'h8e) cfg_stream_enable[14] <= (cfg_stream_enable[14] & keep[31]) | put[31];
        if (rst) cfg_stream_enable[15] <= 1'h0;
        else if (write && word == 11'h8f) cfg_stream_enable[15] <= (cfg_stream_enable[15] & keep[31]) | put[31];
    end

    always_ff @(posedge clk) begin
        done <= !rst && here;
        case (word)
            11'h0: rdata <= {sts_block_instance, 8'h1, 16'h8};
            11'h1: rdata <= sts_next_offset;
            11'h2: rdata <= {26'd0, cfg_mac_ctrl_pause, cfg_mac_ctrl_multicast, cfg_mac_ctrl_promiscuous, cfg_mac_ctrl_loop, cfg_mac_ctrl_tx_enable, cfg_mac_ctrl_rx_enable};
            11'h3: rdata <= {26'd0, sts_mac_status_paused, sts_mac_status_tx_idle, sts_mac_status_rx_idle, sts_mac_status_remote_fault, sts_mac_status_local_fault, sts_mac_status_link};
            11'h4: rdata <= {18'd0, cfg_max_frame};
            11'h6: begin
                rdata <= cfg_mac[31:0];
                if (here) high <= {16'd0, cfg_mac[47:32]};
            end
            11'h7: rdata <= high;
            11'h8: rdata <= cfg_ip;
            11'h9: rdata <= {26'd0, cfg_net_ctrl_catch_other, cfg_net_ctrl_catch_udp, 1'd0, cfg_net_ctrl_checksum, cfg_net_ctrl_echo, cfg_net_ctrl_arp};
            11'ha: rdata <= cfg_destination_ip;
            11'hb: rdata <= {cfg_destination_ports_source, cfg_destination_ports_destination};
            11'hc: rdata <= {16'd0, cfg_ip_send_tos, cfg_ip_send_ttl};
            11'hd: rdata <= {23'd0, 1'd0, 8'd0};
            11'he: rdata <= {16'd0, cfg_arp_retry};
            11'hf: rdata <= {16'd0, cfg_arp_expiry};
            11'h10: rdata <= {30'd0, 1'd0, 1'd0};
            11'h11: rdata <= {31'd0, sts_gen_status_running};
            11'h12: rdata <= {18'd0, cfg_gen_size};
            11'h13: rdata <= cfg_gen_count;
            11'h14: rdata <= cfg_gen_gap;
            11'h15: rdata <= {cfg_gen_ports_source, cfg_gen_ports_destination};
            11'h16: rdata <= cfg_arp_wait_cycles;
            11'h17: rdata <= {30'd0, cfg_pcs_ctrl_prbs31_rx, cfg_pcs_ctrl_prbs31_tx};
            11'h18: rdata <= {28'd0, sts_pcs_status_hi_ber, sts_pcs_status_block_lock, sts_pcs_status_signal_ok, sts_pcs_status_present};
            11'h80: rdata <= {cfg_stream_enable[0], 13'd0, cfg_stream_form[1:0], cfg_stream_port[15:0]};
            11'h81: rdata <= {cfg_stream_enable[1], 13'd0, cfg_stream_form[3:2], cfg_stream_port[31:16]};
            11'h82: rdata <= {cfg_stream_enable[2], 13'd0, cfg_stream_form[5:4], cfg_stream_port[47:32]};
            11'h83: rdata <= {cfg_stream_enable[3], 13'd0, cfg_stream_form[7:6], cfg_stream_port[63:48]};
            11'h84: rdata <= {cfg_stream_enable[4], 13'd0, cfg_stream_form[9:8], cfg_stream_port[79:64]};
            11'h85: rdata <= {cfg_stream_enable[5], 13'd0, cfg_stream_form[11:10], cfg_stream_port[95:80]};
            11'h86: rdata <= {cfg_stream_enable[6], 13'd0, cfg_stream_form[13:12], cfg_stream_port[111:96]};
            11'h87: rdata <= {cfg_stream_enable[7], 13'd0, cfg_stream_form[15:14], cfg_stream_port[127:112]};
            11'h88: rdata <= {cfg_stream_enable[8], 13'd0, cfg_stream_form[17:16], cfg_stream_port[143:128]};
            11'h89: rdata <= {cfg_stream_enable[9], 13'd0, cfg_stream_form[19:18], cfg_stream_port[159:144]};
            11'h8a: rdata <= {cfg_stream_enable[10], 13'd0, cfg_stream_form[21:20], cfg_stream_port[175:160]};
            11'h8b: rdata <= {cfg_stream_enable[11], 13'd0, cfg_stream_form[23:22], cfg_stream_port[191:176]};
            11'h8c: rdata <= {cfg_stream_enable[12], 13'd0, cfg_stream_form[25:24], cfg_stream_port[207:192]};
            11'h8d: rdata <= {cfg_stream_enable[13], 13'd0, cfg_stream_form[27:26], cfg_stream_port[223:208]};
            11'h8e: rdata <= {cfg_stream_enable[14], 13'd0, cfg_stream_form[29:28], cfg_stream_port[239:224]};
            11'h8f: rdata <= {cfg_stream_enable[15], 13'd0, cfg_stream_form[31:30], cfg_stream_port[255:240]};
            default: rdata <= 32'd0;
        endcase
    end

endmodule
