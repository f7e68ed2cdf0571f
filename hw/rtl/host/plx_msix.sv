// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Vectors of MSI-X (PCIe 4.0, 6.1.4 and 7.7.2): the table, from 0 of BAR 2 on, and the pending bits,
// from 0x800 on. A requested interrupt is pending until its write is offered; a masked vector keeps
// it, and further requests merge with it. The write enters the order of all writes after those that
// were accepted before the request. Latency 2 cycles.

module plx_msix #(
    parameter VECTORS = 8  // 1 to 32
) (
    input  logic               clk,
    input  logic               rst,

    // All sources of interrupts are being reset: none is pending, the table is kept.
    input  logic               clear,

    // The owner of each vector, and vectors whose owner is being reset: none of them is pending.
    input  logic [VECTORS*3-1:0] cfg_owner,
    input  logic [VECTORS-1:0] forget,

    // Of each function: MSI-X is on; all vectors are masked.
    input  logic [7:0]         cfg_msix_enable,
    input  logic [7:0]         cfg_msix_mask,

    // Interrupt requests, for one cycle.
    input  logic [VECTORS-1:0] s_irq,

    // BAR 2, by whole words: other accesses have no effect (7.7.2). A function sees its own pending bits.
    input  logic [2:0]         s_axil_func,
    input  logic [11:0]        s_axil_addr,
    input  logic               s_axil_awvalid,
    output logic               s_axil_awready,
    input  logic [31:0]        s_axil_wdata,
    input  logic [3:0]         s_axil_wstrb,
    input  logic               s_axil_wvalid,
    output logic               s_axil_wready,
    output logic               s_axil_bvalid,
    input  logic               s_axil_bready,
    input  logic               s_axil_arvalid,
    output logic               s_axil_arready,
    output logic [31:0]        s_axil_rdata,
    output logic               s_axil_rvalid,
    input  logic               s_axil_rready,

    // Writes to the host, of 4 bytes each.
    output logic               m_desc_valid,
    input  logic               m_desc_ready,
    output logic [63:0]        m_desc_address,
    output logic [7:0]         m_desc_func,
    output logic [31:0]        m_desc_immediate_data,

    // One cycle for each write.
    output logic               inc_interrupts
);
    localparam W = VECTORS < 2 ? 1 : $clog2(VECTORS);
    // Of an entry: words of 32 bits.
    localparam [1:0] LOW = 2'd0, HIGH = 2'd1, DATA = 2'd2, CONTROL = 2'd3;

    generate
        if (VECTORS < 1 || VECTORS > 32) VECTORS_must_be_1_to_32 parameter_error ();
    endgenerate

    // ---- The table ------------------------------------------------------------------------------

    logic        acc_valid, acc_write, acc_ready;
    logic [11:0] acc_addr;
    logic [31:0] acc_wdata, acc_rdata;
    logic [3:0]  acc_wstrb;

    /* verilator lint_off PINCONNECTEMPTY */
    plx_axil_slave #(.ADDR_W(12)) slave (
        .clk, .rst,
        .s_axil_awaddr(s_axil_addr), .s_axil_awvalid, .s_axil_awready, .s_axil_wdata, .s_axil_wstrb, .s_axil_wvalid,
        .s_axil_wready, .s_axil_bresp(), .s_axil_bvalid, .s_axil_bready, .s_axil_araddr(s_axil_addr), .s_axil_arvalid,
        .s_axil_arready, .s_axil_rdata, .s_axil_rresp(), .s_axil_rvalid, .s_axil_rready,
        .acc_valid, .acc_write, .acc_addr, .acc_wdata, .acc_wstrb, .acc_ready, .acc_rdata
    );
    /* verilator lint_on PINCONNECTEMPTY */

    logic [31:0] low [0:VECTORS-1];
    logic [31:0] high [0:VECTORS-1];
    logic [31:0] data [0:VECTORS-1];
    logic [VECTORS-1:0] masked, pending;

    wire [7:0]   entry_wide = acc_addr[11:4];
    wire [W-1:0] entry      = entry_wide[W-1:0];
    wire [1:0]   word       = acc_addr[3:2];
    wire         known      = entry_wide < VECTORS;
    wire         is_pending = acc_addr[11:2] == 10'h200;
    wire         write      = acc_valid && acc_write && known && &acc_wstrb;

    // Of each vector: the function that accesses owns it; its owner lets it write.
    wire [VECTORS-1:0] own, allowed;
    wire [VECTORS-1:0] pending_own = pending & own;
    generate
        for (genvar n = 0; n < VECTORS; n = n + 1) begin : g_vector
            wire [2:0] owner = cfg_owner[n*3 +: 3];
            assign own[n]     = owner == s_axil_func;
            assign allowed[n] = cfg_msix_enable[owner] && !cfg_msix_mask[owner];
        end
    endgenerate

    assign acc_ready = 1'b1;
    assign acc_rdata = is_pending ? 32'(pending_own) : !known ? 32'd0 : word == LOW ? low[entry] : word == HIGH ? high[entry]
                     : word == DATA ? data[entry] : {31'd0, masked[entry]};

    always_ff @(posedge clk) begin
        if (write && word == LOW) low[entry] <= {acc_wdata[31:2], 2'b00};
        if (write && word == HIGH) high[entry] <= acc_wdata;
        if (write && word == DATA) data[entry] <= acc_wdata;
    end

    always_ff @(posedge clk) begin
        if (write && word == CONTROL) masked[entry] <= acc_wdata[0];
        if (rst) masked <= '1;
    end

    // ---- Interrupts -----------------------------------------------------------------------------

    // The arbiter needs two requesters.
    localparam ASKERS = VECTORS < 2 ? 2 : VECTORS;
    // Every other cycle, so that the choice does not depend on what the reader decides.
    wire                free = !m_desc_valid;
    wire [VECTORS-1:0]  may  = pending & ~masked & allowed & {VECTORS{free}};
    logic [ASKERS-1:0]  grant;
    wire [VECTORS-1:0]  turn = grant[VECTORS-1:0];

    plx_arb_rr #(.N(ASKERS)) arbiter (.clk, .rst, .request(ASKERS'(may)), .grant, .done(1'b1));

    integer v;
    logic [2:0] func;
    logic [63:0] address;
    logic [31:0] message;
    always_comb begin
        address = '0;
        message = '0;
        func    = '0;
        for (v = 0; v < VECTORS; v = v + 1) begin
            address = address | ({high[v], low[v]} & {64{turn[v]}});
            message = message | (data[v] & {32{turn[v]}});
            func    = func | (cfg_owner[v*3 +: 3] & {3{turn[v]}});
        end
    end

    assign inc_interrupts = m_desc_valid && m_desc_ready;

    always_ff @(posedge clk) begin
        pending <= ((pending & ~turn) | s_irq) & ~forget;
        if (free) m_desc_valid <= |may;
        else if (m_desc_ready) m_desc_valid <= 1'b0;
        if (clear) begin
            pending      <= '0;
            m_desc_valid <= 1'b0;
        end
    end

    always_ff @(posedge clk) if (free) begin
        m_desc_address        <= address;
        m_desc_immediate_data <= message;
        m_desc_func           <= {5'd0, func};
    end

    wire unused = &{1'b0, acc_addr[1:0], grant};

`ifdef FORMAL
    // Any one vector: whether a write is due, and the writes of others while its own is allowed.
    (* anyconst *) logic [W-1:0] f_who;
    logic         f_owed = 0;
    logic [W-1:0] f_others = 0;
    wire          f_may  = allowed[f_who] && !masked[f_who];
    wire          f_mine = turn[f_who];

    always_ff @(posedge clk) begin
        f_owed <= !clear && !forget[f_who] && (s_irq[f_who] || f_owed && !f_mine);
        if (clear || forget[f_who] || !f_may || !f_owed || f_mine) f_others <= '0;
        else if (turn != 0) f_others <= f_others + 1'b1;
    end

    always_ff @(posedge clk) if (!rst) begin
        assume (f_who < VECTORS);
        assert (f_owed == pending[f_who]);
        // A write belongs to a vector whose write is due and allowed.
        if (f_mine) assert (f_owed && f_may && free);
        // Where the host accepts writes there is one in every other cycle, and no vector starves.
        if (f_owed && f_may && free) assert (turn != 0);
        if (f_owed && f_may && f_others == VECTORS - 1 && turn != 0) assert (f_mine);
        assert ((turn & (turn - 1'b1)) == 0);
        cover (f_mine && f_others == VECTORS - 1);
    end
`endif
endmodule
