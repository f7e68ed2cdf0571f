// Made by scripts/regen from hw/rdl/evb.rdl: do not edit.
// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Scheduler: registers.
//
// cfg_* are settings, sts_* are read values, set_* sets a flag, flag_* is a flag, pulse_* and wr_* are
// high for one cycle after a write; arrays of fields are concatenated. Other modules hold the tables:
// win_* is a request until ready, in the same cycle or later.
module plx_evb_regs (
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
    output logic cfg_enable,
    output logic [1:0] cfg_trigger_select_source,
    output logic cfg_trigger_enable,
    input  logic [1:0] sts_state_state,
    output logic cfg_mode,
    input  logic [31:0] sts_ring_errors,
    output logic pulse_hand_trigger_trigger,
    input  logic sts_overflow_pending,
    input  logic sts_overflow_arrivals,
    input  logic sts_overflow_feedback,
    input  logic sts_overflow_returned,
    input  logic [31:0] sts_event,
    input  logic [31:0] sts_passed,
    input  logic [3:0] sts_pending_peak_peak,
    input  logic [7:0] sts_input_used,
    input  logic [7:0] sts_output_used,
    input  logic [15:0] sts_copies_used,
    input  logic [7:0] sts_returned_used,
    input  logic [31:0] sts_pending_used,
    output logic [31:0] cfg_run,
    output logic [15:0] cfg_nodes,
    output logic [16:0] cfg_descriptors,
    output logic [31:0] cfg_feeders,
    output logic [1:0] cfg_discipline_discipline,
    output logic [31:0] cfg_partition,
    output logic [7:0] cfg_loops,
    output logic [30:0] cfg_ring_timeout_cycles,
    output logic [15:0] cfg_pending_limit,
    output logic [31:0] cfg_trigger_period_cycles,
    output logic pulse_setup_start,
    output logic [15:0] cfg_command_member,
    output logic [1:0] cfg_command_kind,
    output logic wr_command,
    input  logic sts_busy,
    input  logic [31:0] sts_members,
    // Tables.
    output logic win_write,
    output logic [12:0] win_addr,
    output logic [31:0] win_wdata,
    output logic [3:0] win_wstrb,
    output logic win_counters_valid,
    input  logic win_counters_ready,
    input  logic [31:0] win_counters_rdata,
    output logic win_column_valid,
    input  logic win_column_ready,
    input  logic [31:0] win_column_rdata,
    output logic win_node_valid,
    input  logic win_node_ready,
    input  logic [31:0] win_node_rdata
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
    wire in_counters = acc_addr[12:8] == 5'd1;
    wire in_column = acc_addr[12:8] == 5'd4;
    wire in_node = acc_addr[12:12] == 1'd1;
    wire here = acc_valid && !done && !in_counters && !in_column && !in_node;
    wire write = here && acc_write;
    wire whole = write && &acc_wstrb;
    wire unused = &{1'b0, acc_addr[1:0], keep, put, hold, high, write, whole};
    assign win_write = acc_write;
    assign win_addr = acc_addr;
    assign win_wdata = acc_wdata;
    assign win_wstrb = acc_wstrb;
    assign win_counters_valid = acc_valid && in_counters;
    assign win_column_valid = acc_valid && in_column;
    assign win_node_valid = acc_valid && in_node;
    assign acc_ready = done || (in_counters && win_counters_ready) || (in_column && win_column_ready) || (in_node && win_node_ready);
    assign acc_rdata = in_node ? win_node_rdata : in_column ? win_column_rdata : in_counters ? win_counters_rdata : rdata;

    // 64 bits: the low half waits for the high one. Bytes alone do nothing.
    always_ff @(posedge clk) if (whole) hold <= acc_wdata;

    always_ff @(posedge clk) begin
        if (rst) cfg_enable <= 1'h0;
        else if (write && word == 11'h4) cfg_enable <= (cfg_enable & keep[0]) | put[0];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_trigger_select_source <= 2'h0;
        else if (write && word == 11'h5) cfg_trigger_select_source <= (cfg_trigger_select_source & keep[1:0]) | put[1:0];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_trigger_enable <= 1'h0;
        else if (write && word == 11'h6) cfg_trigger_enable <= (cfg_trigger_enable & keep[0]) | put[0];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_mode <= 1'h0;
        else if (write && word == 11'h8) cfg_mode <= (cfg_mode & keep[0]) | put[0];
    end

    always_ff @(posedge clk) begin
        pulse_hand_trigger_trigger <= !rst && write && word == 11'ha && put[0];
    end

    logic [31:0] store_feedback_address;
    always_ff @(posedge clk) begin
        if (rst) store_feedback_address <= 32'h0;
        else if (write && word == 11'h15) store_feedback_address <= (store_feedback_address & keep) | put;
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_run <= 32'h0;
        else if (write && word == 11'h20) cfg_run <= (cfg_run & keep) | put;
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_nodes <= 16'h0;
        else if (write && word == 11'h21) cfg_nodes <= (cfg_nodes & keep[15:0]) | put[15:0];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_descriptors <= 17'h0;
        else if (write && word == 11'h22) cfg_descriptors <= (cfg_descriptors & keep[16:0]) | put[16:0];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_feeders <= 32'h0;
        else if (write && word == 11'h23) cfg_feeders <= (cfg_feeders & keep) | put;
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_discipline_discipline <= 2'h0;
        else if (write && word == 11'h24) cfg_discipline_discipline <= (cfg_discipline_discipline & keep[1:0]) | put[1:0];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_partition <= 32'h0;
        else if (write && word == 11'h25) cfg_partition <= (cfg_partition & keep) | put;
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_loops <= 8'h0;
        else if (write && word == 11'h26) cfg_loops <= (cfg_loops & keep[7:0]) | put[7:0];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_ring_timeout_cycles <= 31'h2625a0;
        else if (write && word == 11'h27) cfg_ring_timeout_cycles <= (cfg_ring_timeout_cycles & keep[30:0]) | put[30:0];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_pending_limit <= 16'h100;
        else if (write && word == 11'h28) cfg_pending_limit <= (cfg_pending_limit & keep[15:0]) | put[15:0];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_trigger_period_cycles <= 32'hfa;
        else if (write && word == 11'h29) cfg_trigger_period_cycles <= (cfg_trigger_period_cycles & keep) | put;
    end

    always_ff @(posedge clk) begin
        pulse_setup_start <= !rst && write && word == 11'h2a && put[0];
    end

    always_ff @(posedge clk) begin
        if (rst) cfg_command_member <= 16'h0;
        else if (write && word == 11'h2b) cfg_command_member <= (cfg_command_member & keep[15:0]) | put[15:0];
        if (rst) cfg_command_kind <= 2'h0;
        else if (write && word == 11'h2b) cfg_command_kind <= (cfg_command_kind & keep[17:16]) | put[17:16];
        wr_command <= !rst && write && word == 11'h2b;
    end

    always_ff @(posedge clk) begin
        done <= !rst && here;
        case (word)
            11'h0: rdata <= {8'd0, 8'h1, 16'h9};
            11'h1: rdata <= 32'h0;
            11'h4: rdata <= {31'd0, cfg_enable};
            11'h5: rdata <= {30'd0, cfg_trigger_select_source};
            11'h6: rdata <= {31'd0, cfg_trigger_enable};
            11'h7: rdata <= {30'd0, sts_state_state};
            11'h8: rdata <= {31'd0, cfg_mode};
            11'h9: rdata <= sts_ring_errors;
            11'ha: rdata <= {31'd0, 1'd0};
            11'hb: rdata <= {28'd0, sts_overflow_returned, sts_overflow_feedback, sts_overflow_arrivals, sts_overflow_pending};
            11'hc: rdata <= sts_event;
            11'hd: rdata <= sts_passed;
            11'he: rdata <= {28'd0, sts_pending_peak_peak};
            11'hf: rdata <= {24'd0, sts_input_used};
            11'h10: rdata <= {24'd0, sts_output_used};
            11'h11: rdata <= {16'd0, sts_copies_used};
            11'h12: rdata <= {24'd0, sts_returned_used};
            11'h13: rdata <= sts_pending_used;
            11'h15: rdata <= store_feedback_address;
            11'h20: rdata <= cfg_run;
            11'h21: rdata <= {16'd0, cfg_nodes};
            11'h22: rdata <= {15'd0, cfg_descriptors};
            11'h23: rdata <= cfg_feeders;
            11'h24: rdata <= {30'd0, cfg_discipline_discipline};
            11'h25: rdata <= cfg_partition;
            11'h26: rdata <= {24'd0, cfg_loops};
            11'h27: rdata <= {1'd0, cfg_ring_timeout_cycles};
            11'h28: rdata <= {16'd0, cfg_pending_limit};
            11'h29: rdata <= cfg_trigger_period_cycles;
            11'h2a: rdata <= {31'd0, 1'd0};
            11'h2b: rdata <= {14'd0, cfg_command_kind, cfg_command_member};
            11'h2c: rdata <= {31'd0, sts_busy};
            11'h2d: rdata <= sts_members;
            default: rdata <= 32'd0;
        endcase
        high <= 32'd0;
    end

endmodule
