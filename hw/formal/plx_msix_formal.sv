// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// No interrupt is lost: a request is pending until its write is offered, or its function is reset, and where it
// is allowed and the host takes writes it is offered soon. None is spurious: a write belongs to a
// vector that was pending and allowed by its owner, with the values of its entry, as its owner. An offer is
// stable until accepted.
// formal: aiger
// formal: bounded 32
// formal: cover 20
// mutant: if (s_irq_valid && s_irq_vector[W-1:0] == W'(n)) pending[n] => if (s_irq_valid && !offers && s_irq_vector[W-1:0] == W'(n)) pending[n]
// mutant: allowed[s_owner] => allowed[0]
// mutant: {5'd0, s_owner}; => '0;
// mutant: pending[scanned] && !queued[scanned] => !queued[scanned] && 1'b0
// mutant: pending[vector] && !masked[vector] => !masked[vector]
// mutant: control && s_axil_forget => control

module plx_msix_formal (
    input logic        clk,
    input logic        rst,
    input logic        clear,
    input logic [7:0]  cfg_msix_enable,
    input logic [7:0]  cfg_msix_mask,
    input logic        s_axil_forget,
    input logic        s_irq_valid,
    input logic        irq_which,
    input logic [12:0] s_axil_addr,
    input logic        s_axil_awvalid,
    input logic [31:0] s_axil_wdata,
    input logic        m_desc_ready
);
    wire  [2:0]  s_axil_func = '0;
    wire  [7:0]  s_irq_vector = {7'd0, irq_which};
    wire  [3:0]  s_axil_wstrb = 4'hF;
    wire         s_axil_wvalid = s_axil_awvalid;
    wire         s_axil_arvalid = 1'b0;
    wire         s_axil_bready = 1'b1, s_axil_rready = 1'b1;
    logic        s_axil_awready, s_axil_wready, s_axil_bvalid, s_axil_arready, s_axil_rvalid, busy;
    logic [31:0] s_axil_rdata;
    logic        m_desc_valid, inc_interrupts;
    logic [63:0] m_desc_address;
    logic [7:0]  m_desc_func, m_owner_vector;
    logic [31:0] m_desc_immediate_data;

    // Any owners, which do not change.
    (* anyconst *) logic [5:0] owners;
    wire  [2:0]  s_owner = m_owner_vector[0] ? owners[5:3] : owners[2:0];

    plx_msix #(.VECTORS(2)) dut (.*);

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire        \dut.write , \dut.offers , \dut.vector ;
    (* hierconn *) wire [1:0]  \dut.pending ;
    (* hierconn *) wire [12:0] \dut.acc_addr ;
    (* hierconn *) wire [31:0] \dut.acc_wdata ;
    wire        writes = \dut.write , offers = \dut.offers , offered = \dut.vector ;
    wire [1:0]  pending = \dut.pending ;
    wire [12:0] at = \dut.acc_addr ;
    wire [31:0] value = \dut.acc_wdata ;

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb assume (rst == !running);
    always_comb if (rst) assume (clear);

    // Any one vector, its last written values, and whether a write is due.
    (* anyconst *) logic who;
    wire  [2:0]  owner = who ? owners[5:3] : owners[2:0];
    wire         mine = writes && at[4] == who;
    wire         allowed = cfg_msix_enable[owner] && !cfg_msix_mask[owner];
    logic        masked = 1, known = 0, due = 0, forgotten = 0;
    logic [31:0] data;

    always_ff @(posedge clk) begin
        if (mine && at[3:2] == 2'd3) masked <= value[0];
        if (rst) masked <= 1'b1;
        if (mine && at[3:2] == 2'd2) begin
            data  <= value;
            known <= 1'b1;
        end
        // A cycle after it was masked.
        forgotten <= running && !clear && mine && at[3:2] == 2'd3 && s_axil_forget;
        due <= running && !clear && !forgotten
               && (s_irq_valid && irq_which == who || due && !(offers && offered == who));
    end

    // Values that an offer has were read two cycles before. Cycles in which nothing hinders it, and no request comes.
    logic        may, known_then, known_before;
    logic [31:0] then, before;
    logic        of_mine = 0;
    logic [4:0]  waits = 0;
    always_ff @(posedge clk) begin
        may          <= due && !masked && allowed;
        before       <= data;
        then         <= before;
        known_before <= known;
        known_then   <= known_before;
        of_mine      <= running && offers && offered == who && !clear;
        waits        <= running && due && !masked && allowed && m_desc_ready && !clear
                        && !(offers && offered == who) ? waits + 5'(!s_irq_valid) : '0;
    end

    always_ff @(posedge clk) if (running) begin
        assert (due == pending[who]);
        if (of_mine) begin
            assert (m_desc_valid && may && m_desc_func == {5'd0, owner});
            if (known_then) assert (m_desc_immediate_data == then);
        end
        if (m_desc_valid && $past(!m_desc_valid)) assert ($past(offers));
        assert (waits <= 16);
        if ($past(running && m_desc_valid && !m_desc_ready && !clear))
            assert (m_desc_valid && $stable(m_desc_address) && $stable(m_desc_immediate_data));
        if (m_desc_valid && m_desc_ready) assert (inc_interrupts);
        cover (of_mine && known_then && $past(waits) > 4);
    end
endmodule
