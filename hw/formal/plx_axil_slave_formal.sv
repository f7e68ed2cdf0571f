// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Every access is made once, is stable until it is ready, and has one response, which is stable until
// accepted; accesses do not overlap. The module adds no wait to those of the block and the master.
// formal: induction 4
// formal: cover 12
// mutant: acc_wstrb <= s_axil_wstrb; => acc_wstrb <= 4'hF;

module plx_axil_slave_formal (
    input logic        clk,
    input logic        rst,
    input logic [3:0]  s_axil_awaddr,
    input logic        s_axil_awvalid,
    input logic [31:0] s_axil_wdata,
    input logic [3:0]  s_axil_wstrb,
    input logic        s_axil_wvalid,
    input logic        s_axil_bready,
    input logic [3:0]  s_axil_araddr,
    input logic        s_axil_arvalid,
    input logic        s_axil_rready,
    input logic        acc_ready,
    input logic [31:0] acc_rdata
);
    logic        s_axil_awready, s_axil_wready, s_axil_bvalid, s_axil_arready, s_axil_rvalid;
    logic [1:0]  s_axil_bresp, s_axil_rresp;
    logic [31:0] s_axil_rdata, acc_wdata;
    logic        acc_valid, acc_write;
    logic [3:0]  acc_addr, acc_wstrb;

    plx_axil_slave #(.ADDR_W(4)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);

    wire wrote = s_axil_awvalid && s_axil_awready;
    wire asked = s_axil_arvalid && s_axil_arready;

    always_comb if (running && !rst) begin
        // An address and its data are accepted together, and not with a read.
        assert (wrote == (s_axil_wvalid && s_axil_wready));
        assert (!(wrote && asked));
        // One at a time: an access, or its response.
        assert (acc_valid + s_axil_bvalid + s_axil_rvalid <= 1);
        if (wrote || asked) assert (!acc_valid && !s_axil_bvalid && !s_axil_rvalid);
    end

    always_ff @(posedge clk) if (running && !rst && !$past(rst)) begin
        // An accepted access is offered to the block in the next cycle, and at no other time.
        assert (acc_valid == ($past(wrote) || $past(asked) || $past(acc_valid && !acc_ready)));
        if ($past(wrote))
            assert (acc_write && acc_addr == $past(s_axil_awaddr) && acc_wdata == $past(s_axil_wdata)
                    && acc_wstrb == $past(s_axil_wstrb));
        if ($past(asked)) assert (!acc_write && acc_addr == $past(s_axil_araddr));
        if ($past(acc_valid && !acc_ready))
            assert ($stable(acc_write) && $stable(acc_addr) && $stable(acc_wdata) && $stable(acc_wstrb));
        // Its response follows at once, of its kind, with its data, and is stable until accepted.
        assert (s_axil_bvalid == ($past(acc_valid && acc_ready && acc_write)
                                  || $past(s_axil_bvalid && !s_axil_bready)));
        assert (s_axil_rvalid == ($past(acc_valid && acc_ready && !acc_write)
                                  || $past(s_axil_rvalid && !s_axil_rready)));
        if ($past(acc_valid && acc_ready && !acc_write)) assert (s_axil_rdata == $past(acc_rdata));
        if ($past(s_axil_rvalid && !s_axil_rready)) assert ($stable(s_axil_rdata));
        // An idle slave accepts an offer.
        if (!acc_valid && !s_axil_bvalid && !s_axil_rvalid && s_axil_arvalid && !s_axil_awvalid) assert (s_axil_arready);
        cover (s_axil_rvalid && s_axil_rready && $past(s_axil_bvalid, 3));
    end
endmodule
