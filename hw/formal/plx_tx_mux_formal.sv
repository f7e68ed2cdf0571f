// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Each word on the output is that of one source, unchanged, and is accepted from that source alone; no word of
// another source is inside a frame; an offer is stable until accepted. There is no latency, and a source waits
// for at most N - 1 frames of others.
// formal: aiger
// formal: always 8
// formal: cover 8
// mutant: m_axis_tx_tready && m_axis_tx_tlast) => m_axis_tx_tready)
// mutant: .done(m_axis_tx_tvalid && m_axis_tx_tready => .done(m_axis_tx_tvalid
// mutant: = grant & {N{m_axis_tx_tready}}; => = {N{m_axis_tx_tready}};
// mutant: = |(grant & s_axis_tx_tvalid); => = |s_axis_tx_tvalid;
// mutant: = |(grant & s_axis_tx_tlast); => = |s_axis_tx_tlast;
// mutant: s_axis_tx_tdata[64*i+:64] & {64{grant[i]}} => s_axis_tx_tdata[64*i+:64]
// mutant: s_axis_tx_tkeep[8*i+:8] & => s_axis_tx_tkeep[7:0] &
// mutant: .request(s_axis_tx_tvalid), => .request(s_axis_tx_tvalid[0] ? 'd1 : s_axis_tx_tvalid),

module plx_tx_mux_formal (
    input logic         clk,
    input logic         rst,
    input logic [2:0]   s_axis_tx_tvalid,
    input logic [191:0] s_axis_tx_tdata,
    input logic [23:0]  s_axis_tx_tkeep,
    input logic [2:0]   s_axis_tx_tlast,
    input logic         m_axis_tx_tready
);
    logic [2:0]  s_axis_tx_tready;
    logic        m_axis_tx_tvalid, m_axis_tx_tlast;
    logic [63:0] m_axis_tx_tdata;
    logic [7:0]  m_axis_tx_tkeep;

    plx_tx_mux #(.N(3)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);

    wire [2:0] accepted = s_axis_tx_tvalid & s_axis_tx_tready;
    wire       leaves   = m_axis_tx_tvalid && m_axis_tx_tready;

    // Sources whose frame has begun; offers of the previous cycle.
    logic [2:0]  inside = 0, waited = 0, last;
    logic        stood = 0, stood_last;
    logic [63:0] stood_data;
    logic [7:0]  stood_keep;
    logic [191:0] data;
    logic [23:0]  keep;
    always_ff @(posedge clk) begin
        inside     <= rst ? 3'd0 : (inside | accepted) & ~(accepted & s_axis_tx_tlast);
        waited     <= rst ? 3'd0 : s_axis_tx_tvalid & ~s_axis_tx_tready;
        last       <= s_axis_tx_tlast;
        data       <= s_axis_tx_tdata;
        keep       <= s_axis_tx_tkeep;
        stood      <= !rst && m_axis_tx_tvalid && !m_axis_tx_tready;
        stood_data <= m_axis_tx_tdata;
        stood_keep <= m_axis_tx_tkeep;
        stood_last <= m_axis_tx_tlast;
    end

    // Any one source; frames of others that begin while it waits.
    (* anyconst *) logic [1:0] who;
    logic [1:0]  others = 0;
    wire  [71:0] current = {s_axis_tx_tkeep[8*who +: 8], s_axis_tx_tdata[64*who +: 64]};
    wire         begins  = leaves && inside == 0;
    always_comb assume (who < 3);
    always_ff @(posedge clk) begin
        if (rst || !s_axis_tx_tvalid[who] || accepted[who] || inside[who]) others <= 2'd0;
        else if (begins) others <= others + 1'b1;
    end

    always_comb if (running && !rst) begin
        // A word is stable until accepted.
        assume ((waited & ~s_axis_tx_tvalid) == 0 && (waited & (last ^ s_axis_tx_tlast)) == 0);
        for (int i = 0; i < 3; i = i + 1) if (waited[i])
            assume (s_axis_tx_tdata[64*i +: 64] == data[64*i +: 64] && s_axis_tx_tkeep[8*i +: 8] == keep[8*i +: 8]);
        assert ((accepted & (accepted - 1'b1)) == 0 && (accepted != 0) == leaves);
        assert ((inside & (inside - 1'b1)) == 0);
        if (accepted[who])
            assert (m_axis_tx_tdata == current[63:0] && m_axis_tx_tkeep == current[71:64]
                    && m_axis_tx_tlast == s_axis_tx_tlast[who]);
        if (inside != 0) assert ((accepted & ~inside) == 0 && m_axis_tx_tvalid == |(s_axis_tx_tvalid & inside));
        // No latency: an idle arbiter offers what a source offers, and accepts it with the MAC.
        if (inside == 0) assert (m_axis_tx_tvalid == (s_axis_tx_tvalid != 0));
        if (stood)
            assert (m_axis_tx_tvalid && m_axis_tx_tlast == stood_last && m_axis_tx_tdata == stood_data
                    && m_axis_tx_tkeep == stood_keep);
        assert (others <= 2);
        if (others == 2 && begins) assert (accepted[who]);
        cover (others == 2 && accepted[who]);
    end
endmodule
