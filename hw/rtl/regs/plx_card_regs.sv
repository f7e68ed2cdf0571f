// Made by scripts/regen from hw/rdl/card.rdl: do not edit.
// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Card: registers.
//
// cfg_* are settings, sts_* are read values, set_* sets a flag, flag_* is a flag, pulse_* and wr_* are
// high for one cycle after a write; arrays of fields are concatenated. Other modules hold the tables:
// win_* is a request until ready, in the same cycle or later.
module plx_card_regs (
    // Clock and reset.
    input  logic clk,
    input  logic rst,
    // Register accesses.
    input  logic [6:0] s_axil_awaddr,
    input  logic s_axil_awvalid,
    output logic s_axil_awready,
    input  logic [31:0] s_axil_wdata,
    input  logic [3:0] s_axil_wstrb,
    input  logic s_axil_wvalid,
    output logic s_axil_wready,
    output logic [1:0] s_axil_bresp,
    output logic s_axil_bvalid,
    input  logic s_axil_bready,
    input  logic [6:0] s_axil_araddr,
    input  logic s_axil_arvalid,
    output logic s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [1:0] s_axil_rresp,
    output logic s_axil_rvalid,
    input  logic s_axil_rready,
    // Fields.
    input  logic [159:0] sts_git_hash,
    input  logic [7:0] sts_has_ports,
    input  logic [7:0] sts_has_streams,
    input  logic [7:0] sts_has_tx_rings,
    input  logic [15:0] sts_entries_tlb,
    input  logic [15:0] sts_entries_arp,
    input  logic [15:0] sts_sizes_rx_fifo,
    input  logic [7:0] sts_sizes_read_tags,
    input  logic [7:0] sts_sizes_functions,
    output logic pulse_ctrl_reset,
    input  logic sts_status_resetting,
    input  logic sts_status_net,
    input  logic set_flags_net_lost,
    output logic flag_flags_net_lost,
    input  logic [63:0] sts_stamp,
    input  logic [7:0] sts_function,
    input  logic [15:0] sts_event_queues
);

    logic acc_valid, acc_write, acc_ready, done;
    logic [6:0] acc_addr;
    logic [31:0] acc_wdata, acc_rdata, rdata, high, hold;
    logic [3:0] acc_wstrb;

    plx_axil_slave #(.ADDR_W(7)) slave (
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

    wire [4:0] word = acc_addr[6:2];
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
    always_ff @(posedge clk) if (whole) hold <= acc_wdata;

    logic [31:0] store_scratch;
    always_ff @(posedge clk) begin
        if (rst) store_scratch <= 32'h0;
        else if (write && word == 5'hc) store_scratch <= (store_scratch & keep) | put;
    end

    always_ff @(posedge clk) begin
        pulse_ctrl_reset <= !rst && write && word == 5'hd && put[0];
    end

    always_ff @(posedge clk) begin
        if (rst) flag_flags_net_lost <= 1'h0;
        else flag_flags_net_lost <= (flag_flags_net_lost & ~({1{write && word == 5'hf}} & put[0])) | set_flags_net_lost;
    end

    always_ff @(posedge clk) begin
        done <= !rst && here;
        case (word)
            5'h0: rdata <= {8'd0, 8'h1, 16'h1};
            5'h1: rdata <= 32'h1000;
            5'h2: rdata <= 32'h58554c50;
            5'h3: rdata <= {16'h3, 16'h0};
            5'h4: rdata <= sts_git_hash[31:0];
            5'h5: rdata <= sts_git_hash[63:32];
            5'h6: rdata <= sts_git_hash[95:64];
            5'h7: rdata <= sts_git_hash[127:96];
            5'h8: rdata <= sts_git_hash[159:128];
            5'h9: rdata <= {sts_has_tx_rings, 8'd0, sts_has_streams, sts_has_ports};
            5'ha: rdata <= {sts_entries_arp, sts_entries_tlb};
            5'hb: rdata <= {sts_sizes_functions, sts_sizes_read_tags, sts_sizes_rx_fifo};
            5'hc: rdata <= store_scratch;
            5'hd: rdata <= {31'd0, 1'd0};
            5'he: rdata <= {30'd0, sts_status_net, sts_status_resetting};
            5'hf: rdata <= {31'd0, flag_flags_net_lost};
            5'h10: rdata <= 32'h3d090;
            5'h11: rdata <= 32'h2625a;
            5'h12: begin
                rdata <= sts_stamp[31:0];
                if (here) high <= sts_stamp[63:32];
            end
            5'h13: rdata <= high;
            5'h14: rdata <= {24'd0, sts_function};
            5'h15: rdata <= {16'd0, sts_event_queues};
            default: rdata <= 32'd0;
        endcase
    end

endmodule
