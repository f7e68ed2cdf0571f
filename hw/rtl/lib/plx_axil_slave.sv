// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// AXI4-Lite to single accesses: one at a time, writes first. An access is offered until it is ready;
// its response is always "okay" (AXI4 specification, A3.4.4): addresses without a register read 0.
module plx_axil_slave #(
    parameter ADDR_W = 12  // address bits of the block
) (
    // Clock and reset.
    input  logic              clk,
    input  logic              rst,
    // Register accesses.
    input  logic [ADDR_W-1:0] s_axil_awaddr,
    input  logic              s_axil_awvalid,
    output logic              s_axil_awready,
    input  logic [31:0]       s_axil_wdata,
    input  logic [3:0]        s_axil_wstrb,
    input  logic              s_axil_wvalid,
    output logic              s_axil_wready,
    output logic [1:0]        s_axil_bresp,
    output logic              s_axil_bvalid,
    input  logic              s_axil_bready,
    input  logic [ADDR_W-1:0] s_axil_araddr,
    input  logic              s_axil_arvalid,
    output logic              s_axil_arready,
    output logic [31:0]       s_axil_rdata,
    output logic [1:0]        s_axil_rresp,
    output logic              s_axil_rvalid,
    input  logic              s_axil_rready,
    // The access: stable until it is ready; read data are valid with ready.
    output logic              acc_valid,
    output logic              acc_write,
    output logic [ADDR_W-1:0] acc_addr,
    output logic [31:0]       acc_wdata,
    output logic [3:0]        acc_wstrb,
    input  logic              acc_ready,
    input  logic [31:0]       acc_rdata
);
    generate
        if (ADDR_W < 3 || ADDR_W > 32) ADDR_W_must_be_3_to_32 parameter_error ();
    endgenerate

    // Address and data of a write are accepted together.
    wire idle = !acc_valid && !s_axil_bvalid && !s_axil_rvalid;
    wire take_write = idle && s_axil_awvalid && s_axil_wvalid;
    wire take_read = idle && s_axil_arvalid && !take_write;

    assign s_axil_awready = take_write;
    assign s_axil_wready = take_write;
    assign s_axil_arready = take_read;
    assign s_axil_bresp = 2'b00;
    assign s_axil_rresp = 2'b00;

    always_ff @(posedge clk) begin
        if (take_write || take_read) begin
            acc_write <= take_write;
            acc_addr  <= take_write ? s_axil_awaddr : s_axil_araddr;
            acc_wdata <= s_axil_wdata;
            acc_wstrb <= s_axil_wstrb;
        end
        if (acc_valid && acc_ready) s_axil_rdata <= acc_rdata;

        acc_valid     <= acc_valid ? !acc_ready : take_write || take_read;
        s_axil_bvalid <= s_axil_bvalid ? !s_axil_bready : acc_valid && acc_ready && acc_write;
        s_axil_rvalid <= s_axil_rvalid ? !s_axil_rready : acc_valid && acc_ready && !acc_write;
        if (rst) begin
            acc_valid     <= 1'b0;
            s_axil_bvalid <= 1'b0;
            s_axil_rvalid <= 1'b0;
        end
    end
endmodule
