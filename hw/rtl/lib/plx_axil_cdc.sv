// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Register accesses from one clock to another, one at a time. The access is stable during its
// request, and its response while it is read, so that only two levels cross (four phases: request,
// acknowledge, request off, acknowledge off). A reset of the near side, of at least five edges of the far
// clock, withdraws the access. One of the far side alone repeats it, and may repeat one that has just been
// answered: where that matters it is within one of the near side, as that of the ports is.

module plx_axil_cdc #(
    parameter ADDR_W = 14  // address bits
) (
    // Source of the accesses.
    input  logic              s_clk,
    input  logic              s_rst,
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

    // Destination of the accesses. Errors there are ignored.
    input  logic              m_clk,
    input  logic              m_rst,
    output logic [ADDR_W-1:0] m_axil_awaddr,
    output logic              m_axil_awvalid,
    input  logic              m_axil_awready,
    output logic [31:0]       m_axil_wdata,
    output logic [3:0]        m_axil_wstrb,
    output logic              m_axil_wvalid,
    input  logic              m_axil_wready,
    input  logic [1:0]        m_axil_bresp,
    input  logic              m_axil_bvalid,
    output logic              m_axil_bready,
    output logic [ADDR_W-1:0] m_axil_araddr,
    output logic              m_axil_arvalid,
    input  logic              m_axil_arready,
    input  logic [31:0]       m_axil_rdata,
    input  logic [1:0]        m_axil_rresp,
    input  logic              m_axil_rvalid,
    output logic              m_axil_rready
);
    logic              acc_valid, acc_write, acc_ready;
    logic [ADDR_W-1:0] acc_addr;
    logic [31:0]       acc_wdata, rdata;
    logic [3:0]        acc_wstrb;

    plx_axil_slave #(.ADDR_W(ADDR_W)) slave (
        .clk(s_clk), .rst(s_rst),
        .s_axil_awaddr(s_axil_awaddr), .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready),
        .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb),
        .s_axil_wvalid(s_axil_wvalid), .s_axil_wready(s_axil_wready),
        .s_axil_bresp(s_axil_bresp), .s_axil_bvalid(s_axil_bvalid), .s_axil_bready(s_axil_bready),
        .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid), .s_axil_arready(s_axil_arready),
        .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp),
        .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready),
        .acc_valid(acc_valid), .acc_write(acc_write), .acc_addr(acc_addr), .acc_wdata(acc_wdata),
        .acc_wstrb(acc_wstrb), .acc_ready(acc_ready), .acc_rdata(rdata)
    );

    // Near side: request until acknowledged, and again only when the acknowledge is off.
    logic ask, answer, ask_seen, answer_seen;

    assign acc_ready = ask && answer_seen;
    always_ff @(posedge s_clk) begin
        if (s_rst) ask <= 1'b0;
        else ask <= ask ? !answer_seen : acc_valid && !answer_seen;
    end

    plx_sync_bit asking (.clk(m_clk), .rst(m_rst), .d(ask), .q(ask_seen));
    plx_sync_bit answering (.clk(s_clk), .rst(s_rst), .d(answer), .q(answer_seen));

    // Far side: one access for each request; a withdrawn one is not acknowledged.
    logic busy, stale;
    wire  begin_access = ask_seen && !busy && !answer;
    wire  end_access = (m_axil_bvalid && m_axil_bready) || (m_axil_rvalid && m_axil_rready);
    wire  unused = &{1'b0, m_axil_bresp, m_axil_rresp};

    assign m_axil_bready = 1'b1;
    assign m_axil_rready = 1'b1;

    always_ff @(posedge m_clk) begin
        if (begin_access) begin
            m_axil_awaddr <= acc_addr;
            m_axil_araddr <= acc_addr;
            m_axil_wdata  <= acc_wdata;
            m_axil_wstrb  <= acc_wstrb;
        end
        if (end_access) rdata <= m_axil_rdata;

        m_axil_awvalid <= m_axil_awvalid ? !m_axil_awready : begin_access && acc_write;
        m_axil_wvalid  <= m_axil_wvalid ? !m_axil_wready : begin_access && acc_write;
        m_axil_arvalid <= m_axil_arvalid ? !m_axil_arready : begin_access && !acc_write;
        busy           <= busy ? !end_access : begin_access;
        stale          <= busy && (stale || !ask_seen);
        answer         <= ask_seen && (answer || (busy && end_access && !stale));
        if (m_rst) begin
            m_axil_awvalid <= 1'b0;
            m_axil_wvalid  <= 1'b0;
            m_axil_arvalid <= 1'b0;
            busy           <= 1'b0;
            stale          <= 1'b0;
            answer         <= 1'b0;
        end
    end
endmodule
