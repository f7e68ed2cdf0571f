// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Packets of a ring that were lost behind plx_tx_fifo, back to clk_core: how many since the last
// report, and the cookie of the last of them. While reports wait, losses are added up.

module plx_tx_lost (
    // A packet was lost; one waits for its report.
    input  logic        clk_net,
    input  logic        rst_net,
    input  logic        s_lost_valid,
    input  logic [31:0] s_lost_cookie,
    output logic        busy,

    // Reports.
    input  logic        clk_core,
    input  logic        rst_core,
    output logic        m_lost_valid,
    input  logic        m_lost_ready,
    output logic [15:0] m_lost_count,
    output logic [31:0] m_lost_cookie
);
    logic [15:0] count;
    logic [31:0] cookie;
    logic        ready;
    wire         pending = count != 0;
    wire         passes  = pending && ready;

    assign busy = s_lost_valid || pending;

    always_ff @(posedge clk_net) begin
        if (rst_net) count <= 16'd0;
        else if (passes) count <= {15'd0, s_lost_valid};
        else if (s_lost_valid && !(&count)) count <= count + 16'd1;
    end

    always_ff @(posedge clk_net) if (s_lost_valid) cookie <= s_lost_cookie;

    plx_fifo_async #(.WIDTH(48), .DEPTH(4)) crossing (
        .w_clk(clk_net), .w_rst(rst_net), .s_valid(pending), .s_ready(ready), .s_data({count, cookie}),
        .r_clk(clk_core), .r_rst(rst_core), .m_valid(m_lost_valid), .m_ready(m_lost_ready),
        .m_data({m_lost_count, m_lost_cookie})
    );
endmodule
