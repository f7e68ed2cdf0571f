// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A function reaches its own registers and no other's: for any owners and any requests, an access that is
// offered to a block is of a queue, ring, list, port, vector or page of its function, or of what all may
// read; only function 0 writes what has no owner. A page that another function writes has its number. The
// function is that of the request, or of the reset, that was accepted last, and a completion has it too; or that
// of a doorbell, which is accepted only while a read waits for timing or ports, and then at once. No access is
// offered before a write has ended, nor before a read has, but a doorbell. The order of requests and doorbells
// is `plx_csr_requests`'s.
// formal: aiger
// formal: always 12
// formal: cover 16
// mutant: may      = meant & own & => may      = meant &
// mutant: in_queues && in_use, 4'd0 => in_queues, 4'd0
// mutant: offset[11:4] : offset[13:6]; => offset[11:4] : offset[14:7];
// mutant: <= bell_offset[13:6]; => <= bell_offset[14:7];
// mutant: < QUEUES && !barred; => < QUEUES;
// mutant: page_owner == func && !barred : => page_owner == func :
// mutant: ring_owner == func && !barred : => ring_owner == func :
// mutant: list_owner == func && !barred : => list_owner == func :
// mutant: == func && !barred || reads => == func || reads
// mutant: barred <= resetting[bell_func]; => barred <= 1'b0;
// mutant: resetting[from[2:0]]; => resetting[from[3:1]];
// mutant: (5'd3 * at[11:9]) => (5'd3 * at[10:8])
// mutant: (4'd3 * at[12:11]) => (4'd3 * at[11:10])
// mutant: at[10] ? at[6:5] : at[7:6]; => at[7:6];
// mutant: wstrb[2]     <= 1'b1; => wstrb[3]     <= 1'b1;
// mutant: = at[12] && reads; => = reads;
// mutant: is_owner = s_owner == func; => is_owner = 1'b1;
// mutant: at[7:6] == 2'd1 && at[5:3] == func); => at[6] && at[5:3] == func);
// mutant: (first || at[4:2] == func) && !barred => (first || at[4:2] == func)
// mutant: (first || at[4:2] == func) && !barred => (first || at[5:3] == func) && !barred
// mutant: at[7:5] == 3'd1; => at[7:5] == 3'd0;
// mutant: func  <= bell_func; => func  <= func;
// mutant: (block & NET & ~ar_open) != 0 => (block & ~ar_open) != 0
// mutant: (block & NET & ~ar_open) != 0 => (block & NET) != 0
// mutant: (bell ? waiting & ~block_in_reset : '0) => '0
// mutant: may & {BLOCKS{reads}} | still_ar => may & {BLOCKS{reads || bell}} | still_ar
// mutant: aw_open & ~m_axil_awready & ~block_in_reset; => aw_open & ~m_axil_awready;
// mutant: begins ? '0 : picked => begins ? picked : picked
// mutant: writes || bell; => writes;
// mutant: = state == ACCESS && !write && => = state == ACCESS && picked == 0 && !write &&

// Requests as they come, and any doorbells, which this one has in the data.
module plx_csr_requests #(
    parameter READS = 4
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         hif_rx_req_valid,
    output logic         hif_rx_req_ready,
    input  logic         hif_rx_req_sop,
    input  logic         hif_rx_req_eop,
    input  logic [127:0] hif_rx_req_header,
    input  logic [255:0] hif_rx_req_data,
    output logic         m_req_valid,
    input  logic         m_req_ready,
    output logic         m_req_sop,
    output logic         m_req_eop,
    output logic [127:0] m_req_header,
    output logic [255:0] m_req_data,
    output logic         m_bell_valid,
    input  logic         m_bell_ready,
    output logic [2:0]   m_bell_block,
    output logic [2:0]   m_bell_func,
    output logic [16:0]  m_bell_offset,
    output logic [31:0]  m_bell_data
);
    assign hif_rx_req_ready = m_req_ready;
    assign m_req_valid      = hif_rx_req_valid;
    assign m_req_sop        = hif_rx_req_sop;
    assign m_req_eop        = hif_rx_req_eop;
    assign m_req_header     = hif_rx_req_header;
    assign m_req_data       = '0;
    assign m_bell_valid     = hif_rx_req_data[0];
    assign m_bell_block     = hif_rx_req_data[3:1];
    assign m_bell_func      = hif_rx_req_data[6:4];
    assign m_bell_offset    = hif_rx_req_data[23:7];
    assign m_bell_data      = '0;
endmodule

module plx_csr_formal (
    input logic         clk,
    input logic         rst,
    input logic [10:0]  block_in_reset,
    input logic [2:0]   any_owner,
    input logic         s_write_valid,
    input logic [2:0]   s_write_func,
    input logic         s_write_vector,
    input logic [16:0]  s_write_offset,
    input logic [31:0]  s_write_data,
    input logic         hif_rx_req_valid,
    input logic         hif_rx_req_sop,
    input logic         hif_rx_req_eop,
    input logic [127:0] hif_rx_req_header,
    input logic [23:0]  bell_any,
    input logic         hif_tx_cpl_ready,
    input logic [10:0]  m_axil_awready,
    input logic [10:0]  m_axil_wready,
    input logic [10:0]  m_axil_bvalid,
    input logic [10:0]  m_axil_arready,
    input logic [10:0]  m_axil_rvalid
);
    wire  [255:0] hif_rx_req_data = {232'd0, bell_any};
    wire  [351:0] m_axil_rdata = '0;
    logic         hif_rx_req_ready, s_write_ready, hif_tx_cpl_valid, hif_tx_cpl_sop, hif_tx_cpl_eop, inc_refused;
    logic [127:0] hif_tx_cpl_header;
    logic [255:0] hif_tx_cpl_data;
    logic [2:0]   m_axil_func;
    logic [16:0]  m_axil_addr;
    logic [31:0]  m_axil_wdata;
    logic [3:0]   m_axil_wstrb;
    logic [10:0]  m_axil_awvalid, m_axil_wvalid, m_axil_bready, m_axil_arvalid, m_axil_rready;

    // Any owners, which do not change.
    (* anyconst *) logic [5:0]  cfg_port_owner;
    // Of any one queue, and of all others at any time; functions in reset.
    (* anyconst *) logic [7:0]  who;
    (* anyconst *) logic [2:0]  whose;
    (* anyconst *) logic [7:0]  resetting;
    logic [7:0] m_owner_queue;
    logic       m_axil_forget;
    wire  [2:0] s_owner = m_owner_queue == who ? whose : any_owner;
    (* anyconst *) logic [23:0] cfg_page_owner;

    plx_csr #(.PORTS(2), .QUEUES(256)) dut (.*);

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire \dut.bell_ready , \dut.bell ;
    wire bell_ready = \dut.bell_ready , bell = \dut.bell ;
    (* hierconn *) wire [10:0] \dut.picked , \dut.waiting , \dut.meant , \dut.aw_open , \dut.w_open , \dut.ar_open ;
    (* hierconn *) wire [2:0] \dut.state , \dut.func ;
    (* hierconn *) wire [127:0] \dut.head ;
    wire [2:0]  state  = \dut.state ;
    wire [10:0] picked = \dut.picked , waiting = \dut.waiting , meant = \dut.meant , aw_open = \dut.aw_open ,
                w_open = \dut.w_open , ar_open = \dut.ar_open ;

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb assume (rst == !running);

    // The host offers whole requests; the function of the last request.
    logic       inside = 0;
    logic [7:0] func;
    logic       inserted;
    wire        taken = hif_rx_req_valid && hif_rx_req_ready;
    always_comb if (hif_rx_req_valid) assume (hif_rx_req_sop == !inside);
    always_ff @(posedge clk) if (running) begin
        if (taken) inside <= !hif_rx_req_eop;
        if (taken && hif_rx_req_sop) {inserted, func} <= {1'b0, hif_rx_req_header[107:100]};
        if (s_write_valid && s_write_ready) {inserted, func} <= {1'b1, 5'd0, s_write_func};
    end

    // The access, in the terms of hw/rdl: blocks are card, host, functions, timing, event, tlb, tx, clop,
    // two ports, vectors.
    wire [10:0] writes = m_axil_awvalid | m_axil_wvalid;
    wire [10:0] block  = writes | m_axil_arvalid;
    wire        write  = writes != 0;
    wire [17:0] at     = {1'b0, m_axil_addr};
    wire [17:0] queue  = (at - 18'h14000) >> 6;
    wire [17:0] page   = (at - 18'h5000) >> 9;
    wire [17:0] ring   = at < 18'h6400 ? (at - 18'h6100) >> 6 : (at - 18'h6400) >> 5;
    wire [17:0] list   = ((at - 18'hA000) & 18'h1FFF) >> 11;
    wire [17:0] vector = at >> 4;
    wire        of_rings = at >= 18'h6100 && at < 18'h6200 || at >= 18'h6400 && at < 18'h6480;
    wire        of_faults = at >= 18'h1820 && at < 18'h1840;
    wire        of_lists = at >= 18'hA000 && at < 18'hE000;
    wire [2:0]  of_page   = cfg_page_owner[3*page[2:0] +: 3];
    wire [2:0]  of_ring   = ring[1:0] < 2 ? cfg_port_owner[3*ring[0] +: 3] : 3'd0;
    wire [2:0]  of_list   = list[1:0] < 2 ? cfg_port_owner[3*list[0] +: 3] : 3'd0;
    wire [2:0]  me        = bell ? bell_func : func[2:0];

    // A doorbell: a register of its block, and the function, of the one that was accepted last.
    wire         rings = bell_ready && bell_any[0];
    wire [17:0]  bell_at = {1'b0, bell_any[23:7]};
    logic [2:0]  bell_func;
    logic [16:0] bell_offset;
    always_comb begin
        assume (bell_any[3:1] == 1 || bell_any[3:1] == 2 || bell_any[3:1] == 4);
        if (bell_any[1]) assume (bell_at >= 18'h14000 && bell_at < 18'h18000);
        if (bell_any[2]) assume (bell_at >= 18'h6100 && bell_at < 18'h6200);
        if (bell_any[3]) assume (bell_at >= 18'hA000 && bell_at < 18'hE000);
    end

    // Accesses that were offered and have not ended: a write, a read that was accepted. Blocks answer what they
    // have accepted: of a write, address and data.
    logic [10:0] write_open = 0, read_open = 0, aw_gone = 0, w_gone = 0;
    logic        rung = 0;
    wire  [10:0] net = 11'b01100001000;
    always_comb assume ((m_axil_rvalid & ~read_open) == 0 && (m_axil_bvalid & ~(aw_gone & w_gone)) == 0);
    always_ff @(posedge clk) if (running) begin
        write_open <= (writes | write_open) & ~(m_axil_bvalid & m_axil_bready) & ~block_in_reset;
        aw_gone    <= (m_axil_awvalid & m_axil_awready | aw_gone) & ~(m_axil_bvalid & m_axil_bready) & ~block_in_reset;
        w_gone     <= (m_axil_wvalid & m_axil_wready | w_gone) & ~(m_axil_bvalid & m_axil_bready) & ~block_in_reset;
        read_open  <= (m_axil_arvalid & m_axil_arready | read_open) & ~(m_axil_rvalid & m_axil_rready)
                      & ~block_in_reset;
        if (rings) {bell_func, bell_offset} <= {bell_any[6:4], bell_any[23:7]};
        if (rings) rung <= 1'b1;
    end

    // What the module knows of them: whose the request is; where a block that is meant is; each channel of the access
    // is offered or has been accepted.
    wire [7:0] whole = \dut.head [107:100];
    always_ff @(posedge clk) if (running) begin
        if (state != 3'd0 || inside) assert (whole == func);
        if (state == 3'd5 || picked != 0 || bell) assert (func < 8);
        if (state == 3'd5 || block != 0) assert (\dut.func == me);
        if (bell) assert ((state == 3'd5 || state == 3'd2) && m_axil_addr == bell_offset && !\dut.head [85]);
        if (state == 3'd5) begin
            if (meant[2]) assert (at[17:8] == 10'h18);
            if (meant[4]) assert (at >= 18'h10000 && at < 18'h18000);
            if (meant[5]) assert (at >= 18'h4000 && at < 18'h6000);
            if (meant[6]) assert (at >= 18'h6000 && at < 18'h7000);
            if (meant[7]) assert (at >= 18'h8000 && at < 18'h10000);
            if (meant[8]) assert (at[17:13] == 5'h0C);
            if (meant[9]) assert (at[17:13] == 5'h0D);
            if (meant[10]) assert (at[17:13] == 0);
            if (bell) assert ((meant & ~11'b00011010000) == 0);
        end
        assert ((picked & (picked - 1'b1)) == 0);
        if (state == 3'd5) assert ((meant & (meant - 1'b1)) == 0);
        if (bell) assert ((waiting & (waiting - 1'b1)) == 0);
        assert ((aw_open & aw_gone) == 0 && (w_open & w_gone) == 0 && (ar_open & read_open) == 0);
        if (aw_open != 0 || aw_gone != 0) assert ((aw_open | aw_gone) == picked && (w_open | w_gone) == picked && ar_open == 0);
        else assert (w_open == 0 && w_gone == 0 && write_open == 0);
        assert ((write_open & ~picked) == 0);
        if (bell) assert (ar_open == 0 && read_open == waiting);
        else if (ar_open != 0 || read_open != 0) assert ((ar_open | read_open) == picked && aw_open == 0 && aw_gone == 0);
    end

    always_ff @(posedge clk) if (running) begin
        assert ((block & (block - 1'b1)) == 0);
        if (block != 0) assert (func < 8 && m_axil_func == me);
        if (bell && block != 0) assert (writes == block && m_axil_addr == bell_offset && (block & 11'b00011010000) != 0);
        // One at a time, but for doorbells; the answer of the read goes before the next one.
        if (write_open != 0) assert ((block & ~write_open) == 0);
        if (read_open != 0) assert (block == 0 || bell);
        if (rings) assert ((read_open & net & ~block_in_reset) != 0 && (m_axil_rvalid & read_open) == 0);
        if ((read_open & net & ~block_in_reset) != 0 && !bell && (m_axil_rvalid & read_open) == 0) assert (bell_ready);
        if ((read_open & ~block_in_reset) != 0 && !bell) assert ((m_axil_rready & read_open & ~block_in_reset) != 0);
        if (hif_tx_cpl_valid) assert (read_open == 0);
        if (block[0] && me != 0) assert (!write);
        if (block[1] && me != 0) assert (!write && at < 18'h1008);
        if (block[2] && me != 0 && write)
            assert (of_faults ? at - 18'h1820 >> 2 == me : at >= 18'h1840 && at - 18'h1840 >> 3 == me);
        if (block[3] && me != 0) assert (!write && at < 18'h2008);
        if (block[4] && at >= 18'h14000) assert (queue != who || whose == me);
        else if (block[4] && me != 0) assert (!write);
        // A function in reset changes nothing of its own, but its reset does.
        if (m_axil_forget && block != 0) assert (inserted && !bell);
        if (write && (block[2] && of_faults || block[4] && at >= 18'h14000 || block[5] && at >= 18'h5000 || block[6] && of_rings || block[7] && of_lists
                      || block[8] || block[9] || block[10]))
            assert (m_axil_forget || !resetting[me]);
        if (block[5] && at >= 18'h5000) assert (of_page == me);
        else if (block[5] && me != 0) assert (!write && at < 18'h4008);
        if (block[6] && of_rings) assert (of_ring == me);
        else if (block[6] && me != 0) assert (!write);
        if (block[7] && of_lists) assert (of_list == me);
        else if (block[7] && me != 0) assert (!write);
        if (block[8]) assert (at >= 18'h18000 && at < 18'h1A000 && (cfg_port_owner[2:0] == me || !write && at < 18'h18008));
        if (block[9]) assert (at >= 18'h1A000 && at < 18'h1C000 && (cfg_port_owner[5:3] == me || !write && at < 18'h1A008));
        if (block[10]) assert (at < 18'h1000 && (vector != who || whose == me) || at >= 18'h1000 && at < 18'h2000 && !write);
        if (block[5] && write && at >= 18'h5000 && at[4:0] == 5'h10 && me != 0)
            assert (m_axil_wdata[23:16] == {5'd0, me} && m_axil_wstrb[2]);
        if (hif_tx_cpl_valid && hif_tx_cpl_sop) assert (hif_tx_cpl_header[107:100] == func);
        cover (block[4] && me == 3 && write && at == 18'h17FCC && who == 255);
        cover (inc_refused);
        cover (hif_tx_cpl_valid && rung && hif_tx_cpl_header[73:64] == 1);
        cover (block[5] && write && me == 2 && at == 18'h5010);
    end
endmodule
