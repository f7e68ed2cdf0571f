// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// No interrupt is lost: a request is pending until its write is offered, and while its vector is
// allowed, at most VECTORS - 1 others are offered before it. None is spurious: a write belongs to a
// vector that was pending and allowed by its owner, with the values of its entry, as its owner. A function
// sees no pending bit of another. An offer is stable until accepted.
// formal: aiger
// formal: always 10
// formal: cover 14
// mutant: pending <= ((pending & ~turn) | s_irq) & ~forget; => pending <= (pending | s_irq) & ~turn & ~forget;
// mutant: cfg_msix_enable[owner] => cfg_msix_enable[0]
// mutant: func | (cfg_owner[v*3 +: 3] & {3{turn[v]}}) => cfg_owner[2:0]

module plx_msix_formal (
    input logic        clk,
    input logic        rst,
    input logic        clear,
    input logic [7:0]  cfg_msix_enable,
    input logic [7:0]  cfg_msix_mask,
    input logic [2:0]  forget,
    input logic [2:0]  s_axil_func,
    input logic [2:0]  s_irq,
    input logic [11:0] s_axil_addr,
    input logic        s_axil_awvalid,
    input logic [31:0] s_axil_wdata,
    input logic        m_desc_ready
);
    wire  [3:0]  s_axil_wstrb = 4'hF;
    wire         s_axil_wvalid = s_axil_awvalid;
    wire         s_axil_arvalid = 1'b0;
    wire         s_axil_bready = 1'b1, s_axil_rready = 1'b1;
    logic        s_axil_awready, s_axil_wready, s_axil_bvalid, s_axil_arready, s_axil_rvalid;
    logic [31:0] s_axil_rdata;
    logic        m_desc_valid, inc_interrupts;
    logic [63:0] m_desc_address;
    logic [7:0]  m_desc_func;
    logic [31:0] m_desc_immediate_data;

    // Any owners, which do not change.
    (* anyconst *) logic [8:0] cfg_owner;

    plx_msix #(.VECTORS(3)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb assume (rst == !running);
    always_comb if (rst) assume (clear);

    // Any one vector and its last written values. A write counts in the cycle after its
    // acceptance.
    (* anyconst *) logic [1:0] who;
    always_comb assume (who < 3);
    logic        writes = 0, masked = 1, known = 0;
    logic [11:0] at;
    logic [31:0] value, data;
    always_ff @(posedge clk) begin
        writes <= running && s_axil_awvalid && s_axil_awready && &s_axil_wstrb;
        at     <= s_axil_addr;
        value  <= s_axil_wdata;
        if (writes && at[11:2] == {6'd0, who, 2'd3}) masked <= value[0];
        if (writes && at[11:2] == {6'd0, who, 2'd2}) begin
            data  <= value;
            known <= 1'b1;
        end
    end

    // Where all others stay masked, writes belong to this vector: at most as many as requests, allowed,
    // with its entry's values.
    logic        alone = 1, may = 0;
    wire  [2:0]  owner = cfg_owner[who*3 +: 3];
    // Requests without a write yet, up to 3 of them.
    logic [1:0]  owed = 0;
    wire         wrote = running && m_desc_valid && m_desc_ready;
    logic [31:0] told;
    logic        told_known;
    always_ff @(posedge clk) begin
        if (writes && at[3:2] == 2'd3 && at[11:4] != {6'd0, who}) alone <= 1'b0;
        owed       <= owed + {1'b0, running && s_irq[who] && (owed != 3 || wrote)} - {1'b0, wrote};
        may        <= running && !masked && cfg_msix_enable[owner] && !cfg_msix_mask[owner];
        told       <= data;
        told_known <= known;
    end

    always_ff @(posedge clk) if (running) begin
        if (m_desc_valid && $past(!m_desc_valid || m_desc_ready)) begin
            assert (!alone || may);
            if (alone && told_known) assert (m_desc_immediate_data == told);
        end
        if (alone && m_desc_valid) assert (owed != 0 && m_desc_func == {5'd0, owner});
        if ($past(running && m_desc_valid && !m_desc_ready && !clear))
            assert (m_desc_valid && $stable(m_desc_address) && $stable(m_desc_immediate_data));
        if (m_desc_valid && m_desc_ready) assert (inc_interrupts);
        cover (m_desc_valid && m_desc_ready && alone && told_known && $past(m_desc_valid && m_desc_ready, 2));
    end
endmodule
