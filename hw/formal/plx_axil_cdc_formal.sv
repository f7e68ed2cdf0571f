// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Any accesses between any two clocks, which may stand: each is made once, unchanged, one at a time and in order,
// and has one response, with its data, behind its end. What crosses has been stable for an edge of the reader.
// A reset of the near side withdraws an access, which then is made once or not at all and has no response: it has
// to last for five edges of the far clock, or three of a reset of the far side, which is always within one of the
// near side. But for the far side's own wait, an access takes less than 17 rounds, in each of which both clocks have
// an edge. A level that has changed in the last step of the solver arrives before or after an edge of the receiver.
// formal: edges
// formal: aiger
// formal: abstract plx_sync_bit
// formal: always 20
// formal: cover 40
// mutant: ask <= ask ? !answer_seen : acc_valid && !answer_seen; => ask <= ask ? !answer_seen : acc_valid;
// mutant: assign acc_ready = ask && answer_seen; => assign acc_ready = answer_seen;
// mutant: ask_seen && !busy && !answer; => ask_seen && !busy;
// mutant: ask_seen && !busy && !answer; => ask_seen && !answer;
// mutant: busy && (stale || !ask_seen); => 1'b0;
// mutant: busy && (stale || !ask_seen); => busy && !ask_seen;
// mutant: answer         <= ask_seen && (answer => answer         <= (answer
// mutant: (busy && end_access && !stale) => (busy && !stale)
// mutant: if (end_access) rdata <= m_axil_rdata; => rdata <= m_axil_rdata;
// mutant: m_axil_wvalid  <= m_axil_wvalid ? !m_axil_wready => m_axil_wvalid  <= m_axil_wvalid ? !m_axil_awready
// mutant: begin_access && !acc_write; => begin_access;
// mutant: m_axil_wstrb  <= acc_wstrb; => m_axil_wstrb  <= '1;

module plx_axil_cdc_formal (
    input logic s_clk,
    input logic s_rst,
    input logic s_axil_awvalid,
    input logic s_axil_wvalid,
    input logic s_axil_bready,
    input logic s_axil_arvalid,
    input logic s_axil_rready,
    input logic awaddr,
    input logic araddr,
    input logic wdata,
    input logic wstrb,
    input logic m_clk,
    input logic m_rst,
    input logic m_axil_awready,
    input logic m_axil_wready,
    input logic m_axil_bvalid,
    input logic m_axil_arready,
    input logic m_axil_rvalid,
    input logic far_rdata
);
    logic        s_axil_awready, s_axil_wready, s_axil_bvalid, s_axil_arready, s_axil_rvalid;
    logic        m_axil_awvalid, m_axil_wvalid, m_axil_bready, m_axil_arvalid, m_axil_rready;
    logic [1:0]  s_axil_bresp, s_axil_rresp;
    logic [2:0]  m_axil_awaddr, m_axil_araddr;
    logic [31:0] s_axil_rdata, m_axil_wdata;
    logic [3:0]  m_axil_wstrb;

    // One arbitrary bit of each field.
    plx_axil_cdc #(.ADDR_W(3)) dut (
        .*,
        .s_axil_awaddr({awaddr, 2'd0}), .s_axil_araddr({araddr, 2'd0}), .s_axil_wdata({31'd0, wdata}),
        .s_axil_wstrb({3'd0, wstrb}), .m_axil_bresp(2'd0), .m_axil_rresp(2'd0), .m_axil_rdata({31'd0, far_rdata})
    );

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire \dut.begin_access , \dut.acc_ready , \dut.acc_valid ;
    wire begin_access = \dut.begin_access , answered = \dut.acc_ready && \dut.acc_valid ;

    (* gclk *) wire step;

    // ---- Clocks and resets ------------------------------------------------------------------------

    // At first both are in reset. A reset of the near side lasts for edges of the far clock; one of the far side is
    // within it.
    logic [2:0] s_held = 0;
    logic [1:0] far_held = 0;
    logic       s_first = 0, up = 0;
    always_ff @(posedge step) begin
        s_first <= s_first || s_clk;
        up      <= up || s_first && m_clk;
        if (!s_rst) far_held <= 2'd0;
        else if (m_clk && m_rst && was_s_rst && far_held != 3) far_held <= far_held + 1'b1;
        if (!s_rst) s_held <= 3'd0;
        else if (s_first && m_clk && s_held != 5 && (s_held != 0 || was_s_rst)) s_held <= s_held + 1'b1;
    end
    // An edge of the near clock has sampled the reset.
    logic was_s_rst = 0, s_rst_on = 0;
    always_ff @(posedge step) s_rst_on <= s_rst;
    always_ff @(posedge s_clk) was_s_rst <= s_rst;
    always_comb begin
        if (!up) assume (s_rst && m_rst);
        if (s_rst_on && (!was_s_rst || s_held < 5 && far_held < 3)) assume (s_rst);
        if (m_rst) assume (s_rst);
        // Nothing is offered in a reset (AXI4 specification, A3.1.2).
        if (was_s_rst && s_rst) assume (!s_axil_awvalid && !s_axil_wvalid && !s_axil_arvalid);
    end

    // ---- The access -------------------------------------------------------------------------------

    wire wrote = s_clk && !s_rst && s_axil_awvalid && s_axil_awready;
    wire asked = s_clk && !s_rst && s_axil_arvalid && s_axil_arready;
    wire ends  = m_clk && !m_rst && (m_axil_bvalid && m_axil_bready || m_axil_rvalid && m_axil_rready);
    wire offer = m_axil_awvalid || m_axil_wvalid || m_axil_arvalid;

    // The last one that was accepted: not answered yet; made, since a reset of the far side; its data, once it has ended.
    logic       open = 0, made = 0, ended = 0, is_write, data;
    logic [2:0] item;
    // On the far side: one is being made, which is the one that is open; what of it has been accepted.
    logic       busy = 0, mine = 0, far_write, aw_done, w_done, ar_done;
    logic [2:0] far_item;

    wire begins = offer && !busy;

    always_ff @(posedge step) begin
        if (begins) begin
            busy      <= 1'b1;
            made      <= 1'b1;
            mine      <= open;
            far_write <= is_write;
            far_item  <= item;
            {aw_done, w_done, ar_done} <= 3'd0;
        end
        if (m_clk) begin
            if (m_axil_awvalid && m_axil_awready) aw_done <= 1'b1;
            if (m_axil_wvalid && m_axil_wready) w_done <= 1'b1;
            if (m_axil_arvalid && m_axil_arready) ar_done <= 1'b1;
            if (ends) busy <= 1'b0;
            if (ends && mine) begin
                ended <= 1'b1;
                data  <= far_rdata;
            end
            if (m_rst) {busy, mine, made} <= 3'd0;
        end
        if (s_clk && (s_rst || s_axil_bvalid && s_axil_bready || s_axil_rvalid && s_axil_rready)) begin
            open <= 1'b0;
            mine <= 1'b0;
        end
        if (wrote || asked) begin
            open     <= 1'b1;
            made     <= 1'b0;
            ended    <= 1'b0;
            is_write <= wrote;
            item     <= wrote ? {awaddr, wdata, wstrb} : {araddr, 2'd0};
        end
    end

    // The far side responds to what it has accepted.
    always_comb begin
        if (m_axil_bvalid) assume (busy && far_write && aw_done && w_done);
        if (m_axil_rvalid) assume (busy && !far_write && ar_done);
    end

    always_comb if (up) begin
        if (wrote || asked) assert (!open && !(wrote && asked));
        if (begins) begin
            assert (!made && m_axil_awvalid == is_write && m_axil_wvalid == is_write && m_axil_arvalid == !is_write);
            assert (item == (is_write ? {m_axil_awaddr[2], m_axil_wdata[0], m_axil_wstrb[0]} : {m_axil_araddr[2], 2'd0}));
        end
        if (busy) begin
            assert (m_axil_awvalid == (far_write && !aw_done) && m_axil_wvalid == (far_write && !w_done));
            assert (m_axil_arvalid == (!far_write && !ar_done));
            assert (far_item == (far_write ? {m_axil_awaddr[2], m_axil_wdata[0], m_axil_wstrb[0]}
                                           : {m_axil_araddr[2], 2'd0}));
        end
        if (s_axil_bvalid) assert (open && ended && is_write && !s_axil_rvalid);
        if (s_axil_rvalid) assert (open && ended && !is_write && s_axil_rdata[0] == data);
        cover (s_axil_rvalid && made && s_axil_rdata[0] && item[2]);
        cover (busy && !mine && open && aw_done && !w_done);
        cover (open && ended && busy);
    end

    // ---- What crosses is stable, and soon ---------------------------------------------------------

    // An edge of the reader since the access was accepted, since the far side wrote the data.
    logic was_stable = 0, data_stable = 0;
    // Edges of this round; rounds in which the access waits, but not for the far side.
    logic       s_had = 0, m_had = 0;
    logic [4:0] rounds = 0;
    wire        round = (s_had || s_clk) && (m_had || m_clk);

    always_ff @(posedge step) begin
        was_stable  <= !(wrote || asked) && (was_stable || m_clk);
        data_stable <= !ends && (data_stable || s_clk);
        s_had       <= !round && (s_had || s_clk);
        m_had       <= !round && (m_had || m_clk);
        if (!open || s_axil_bvalid || s_axil_rvalid || m_rst) rounds <= 5'd0;
        else if (round && !busy && rounds != 31) rounds <= rounds + 1'b1;
    end

    always_comb if (up) begin
        if (m_clk && !m_rst && begin_access) assert (was_stable);
        if (s_clk && !s_rst && answered && !is_write) assert (data_stable);
        assert (rounds < 17);
    end
endmodule
