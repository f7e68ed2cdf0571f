// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Vectors of MSI-X (PCIe 4.0, 6.1.4 and 7.7.2): the table, from 0 of BAR 2 on, and the pending bits,
// from 0x1000 on. A requested interrupt is pending until its write is offered; a masked vector keeps
// it, and further requests merge with it. The write enters the order of all writes after those that
// were accepted before the request. Latency 3 cycles.
//
// Vectors with a request wait in a queue, each once. The one in front is offered, if it may be, else it stays
// pending: vectors are looked at one after the other, a cycle each, and one that is pending and not masked
// waits again. So at most VECTORS - 1 others are offered before one that may be.

module plx_msix #(
    parameter VECTORS = 256  // 1 to 256
) (
    input  logic               clk,
    input  logic               rst,

    // All sources of interrupts are being reset: none is pending, the table is kept.
    input  logic               clear,

    // The owner of a vector, in the same cycle.
    output logic [7:0]         m_owner_vector,
    input  logic [2:0]         s_owner,

    // Of each function: MSI-X is on; all vectors are masked.
    input  logic [7:0]         cfg_msix_enable,
    input  logic [7:0]         cfg_msix_mask,

    // An interrupt request of a vector, for one cycle.
    input  logic               s_irq_valid,
    input  logic [7:0]         s_irq_vector,

    // BAR 2, by whole words: other accesses have no effect (7.7.2). A function sees its own pending bits.
    // Forget: the access is the reset of a function, which masks a vector; it is not pending then.
    input  logic [2:0]         s_axil_func,
    input  logic               s_axil_forget,
    input  logic [12:0]        s_axil_addr,
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

    // Writes to the host, of 4 bytes each. Busy: one is offered, or about to be.
    output logic               m_desc_valid,
    input  logic               m_desc_ready,
    output logic [63:0]        m_desc_address,
    output logic [7:0]         m_desc_func,
    output logic [31:0]        m_desc_immediate_data,
    output logic               busy,

    // One cycle for each write.
    output logic               inc_interrupts
);
    localparam W     = VECTORS < 2 ? 1 : $clog2(VECTORS);
    localparam DEPTH = 1 << W;
    // Of an entry: words of 32 bits.
    localparam [1:0] LOW = 2'd0, HIGH = 2'd1, DATA = 2'd2, CONTROL = 2'd3;

    generate
        if (VECTORS < 1 || VECTORS > 256) VECTORS_must_be_1_to_256 parameter_error ();
    endgenerate

    // ---- Accesses -----------------------------------------------------------------------------------

    logic        acc_valid, acc_write, acc_ready;
    logic [12:0] acc_addr;
    logic [31:0] acc_wdata, acc_rdata;
    logic [3:0]  acc_wstrb;

    /* verilator lint_off PINCONNECTEMPTY */
    plx_axil_slave #(.ADDR_W(13)) slave (
        .clk, .rst,
        .s_axil_awaddr(s_axil_addr), .s_axil_awvalid, .s_axil_awready, .s_axil_wdata, .s_axil_wstrb, .s_axil_wvalid,
        .s_axil_wready, .s_axil_bresp(), .s_axil_bvalid, .s_axil_bready, .s_axil_araddr(s_axil_addr), .s_axil_arvalid,
        .s_axil_arready, .s_axil_rdata, .s_axil_rresp(), .s_axil_rvalid, .s_axil_rready,
        .acc_valid, .acc_write, .acc_addr, .acc_wdata, .acc_wstrb, .acc_ready, .acc_rdata
    );
    /* verilator lint_on PINCONNECTEMPTY */

    // In the first cycle the entry is read; a word of pending bits takes one cycle for each bit.
    logic         begun, looks;
    logic [4:0]   bits;
    wire  [4:0]   next_bits = !begun ? 5'd0 : bits + 5'(!looks);
    logic [31:0]  seen;
    wire  [7:0]   entry_wide = acc_addr[11:4];
    wire  [W-1:0] entry      = entry_wide[W-1:0];
    wire  [1:0]   word       = acc_addr[3:2];
    wire          known      = !acc_addr[12] && {1'b0, entry_wide} < VECTORS;
    wire          is_pending = acc_addr[12] && acc_addr[11:5] == 0;
    wire          write      = acc_valid && begun && acc_write && known && &acc_wstrb;

    // ---- The table ----------------------------------------------------------------------------------

    logic             pop;
    logic [W-1:0]     front, read;
    logic [95:0]      fields;
    logic [DEPTH-1:0] masked, pending, queued;
    // What is looked at: the vector that was in front, or else the one of a pending bit. From a register, because its
    // owner comes late.
    logic [7:0]       either;
    wire  [W-1:0]     vector = either[W-1:0];

    // Software's read comes first.
    wire reads_entry = acc_valid && !begun && known;
    assign read = reads_entry ? entry : front;

    genvar n;
    generate
        for (n = 0; n < 3; n = n + 1) begin : g_word
            plx_ram_sdp #(
                .WIDTH(32),
                .DEPTH(DEPTH)
            ) words (
                .clk,
                .w_enable(write && word == 2'(n)),
                .w_address(entry),
                .w_data(n == 0 ? {acc_wdata[31:2], 2'b00} : acc_wdata),
                .r_enable(reads_entry || pop),
                .r_address(read),
                .r_data(fields[n*32 +: 32])
            );
        end
    endgenerate

    logic done_bits;
    always_ff @(posedge clk) begin
        begun     <= acc_valid && !acc_ready;
        done_bits <= begun && !acc_ready && (done_bits || bits == 5'd31 && !looks);
        bits      <= next_bits;
        either    <= pop ? 8'(front) : {acc_addr[4:2], next_bits};
        // The lowest is the first.
        if (begun && !looks) seen <= {pending[vector] && {1'b0, either} < VECTORS && s_owner == s_axil_func, seen[31:1]};
        if (rst) begun <= 1'b0;
    end

    assign acc_ready = begun && (is_pending && !acc_write ? done_bits : 1'b1);
    assign acc_rdata = is_pending ? seen : !known ? 32'd0 : word == LOW ? fields[31:0] : word == HIGH ? fields[63:32]
                     : word == DATA ? fields[95:64] : {31'd0, masked[entry]};

    wire control = write && word == CONTROL;

    // ---- Interrupts -----------------------------------------------------------------------------------

    // The vector that is looked at, and the one before: whether it is pending and does not wait.
    logic [W-1:0] scanned, late;
    logic         found;
    wire          again  = found && !s_irq_valid;
    // The one that was in front has left the queue.
    wire          left   = looks && vector == s_irq_vector[W-1:0];
    wire          asks   = s_irq_valid && (!queued[s_irq_vector[W-1:0]] || left);
    wire  [W-1:0] comes  = s_irq_valid ? s_irq_vector[W-1:0] : late;
    logic         waits, forgets;
    logic [W-1:0] forgotten;

    /* verilator lint_off PINCONNECTEMPTY */
    plx_fifo_sync #(.WIDTH(W), .DEPTH(DEPTH)) waiting (
        .clk, .rst(rst || clear), .s_valid(asks || again), .s_ready(), .s_data(comes),
        .m_valid(waits), .m_ready(pop), .m_data(front), .level()
    );
    /* verilator lint_on PINCONNECTEMPTY */

    // The one in front is read, then it is known whether it may be offered.
    assign pop            = waits && !looks && !m_desc_valid && !reads_entry;
    assign m_owner_vector = either;
    assign busy           = m_desc_valid || looks;

    wire [7:0] allowed = cfg_msix_enable & ~cfg_msix_mask;
    wire       may     = pending[vector] && !masked[vector] && allowed[s_owner];
    wire       offers  = looks && may;

    assign inc_interrupts = m_desc_valid && m_desc_ready;

    always_ff @(posedge clk) begin
        forgets   <= control && s_axil_forget;
        forgotten <= entry;
        looks     <= pop;
        if (!s_irq_valid) begin
            scanned <= scanned == W'(VECTORS - 1) ? '0 : scanned + 1'b1;
            late    <= scanned;
            found   <= pending[scanned] && !queued[scanned] && !masked[scanned] && !(found && late == scanned);
        end else if (s_irq_vector[W-1:0] == late) found <= 1'b0;
        if (m_desc_ready) m_desc_valid <= 1'b0;
        if (offers) m_desc_valid <= 1'b1;
        if (rst || clear) begin
            looks        <= 1'b0;
            forgets      <= 1'b0;
            scanned      <= '0;
            found        <= 1'b0;
            m_desc_valid <= 1'b0;
        end
    end

    // By comparisons: assignments to a selected bit would become shifts. A vector that waits already stays as it is;
    // one that is forgotten is masked since the cycle before.
    generate
        for (n = 0; n < DEPTH; n = n + 1) begin : g_vector
            always_ff @(posedge clk) begin
                if (control && entry == W'(n)) masked[n] <= acc_wdata[0];
                if (looks && vector == W'(n)) queued[n] <= 1'b0;
                if ((s_irq_valid || again) && comes == W'(n)) queued[n] <= 1'b1;
                if (offers && vector == W'(n)) pending[n] <= 1'b0;
                if (s_irq_valid && s_irq_vector[W-1:0] == W'(n)) pending[n] <= 1'b1;
                if (forgets && forgotten == W'(n)) pending[n] <= 1'b0;
                if (rst || clear) begin
                    queued[n]  <= 1'b0;
                    pending[n] <= 1'b0;
                end
                if (rst) masked[n] <= 1'b1;
            end
        end
    endgenerate

    always_ff @(posedge clk) if (looks) begin
        m_desc_address        <= fields[63:0];
        m_desc_immediate_data <= fields[95:64];
        m_desc_func           <= {5'd0, s_owner};
    end

    wire unused = &{1'b0, acc_addr[1:0], s_irq_vector};
endmodule
