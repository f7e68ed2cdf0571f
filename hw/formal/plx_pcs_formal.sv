// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// What joins the two clocks of a lane, around any halves, elastic buffer and counts, between any two clocks, of which
// each may stand. A reset begins in the received clock with the first edge in it of clk_net, whether the former runs
// or not, behind that of the other side of the queues, and ends four edges behind it; then clk_net's side ends within
// four edges, and not before it has had an edge in its own reset behind one of the other in its. XGMII has local
// faults in it, and no state is reported. Signal, lock, error rate and the mode of the test pattern cross in two to three
// edges; there is block lock only while words arrive. The reset of clk_net lasts for two edges: of one alone, behind
// another, the end of that one might still be on its way.
// formal: edges
// formal: aiger
// formal: abstract plx_sync_bit
// formal: abstract plx_sync_reset
// formal: always 14
// formal: cover 20
// mutant: .rst_async(rst_out) => .rst_async(1'b0)
// mutant: .rst_async(rst_out) => .rst_async(rst_net)
// mutant: .d({!rst_rx, rx_signal_ok, => .d({1'b1, rx_signal_ok,
// mutant: .rst_net(rst_net || !up), .m_xgmii_rxd => .rst_net, .m_xgmii_rxd
// mutant: .rst_net(rst_net || !up), .inc_ber => .rst_net, .inc_ber
// mutant: .rst_net(rst_net || !up), .inc_ber => .rst_net(!up), .inc_ber
// mutant: .clk(clk_net), .rst(rst_net), .d => .clk(clk_net), .rst(1'b0), .d
// mutant: locked_seen, sts_hi_ber}) => sts_hi_ber, locked_seen})
// mutant: locked_seen && flows; => locked_seen;
// mutant: locked_seen && flows; => flows;
// mutant: .q({signal, prbs31}) => .q({prbs31, signal})
// mutant: .rx_signal_ok(signal) => .rx_signal_ok
// mutant: .cfg_prbs31(prbs31) => .cfg_prbs31(cfg_prbs31_rx)
// mutant: .cfg_prbs31(cfg_prbs31_tx) => .cfg_prbs31(cfg_prbs31_rx)
// mutant: #(.WIDTH(2)) settings => #(.WIDTH(2), .STAGES(4)) settings
// mutant: #(.WIDTH(4)) state => #(.WIDTH(4), .STAGES(4)) state

module plx_pcs_tx (
    input  logic        clk,
    input  logic        rst,
    input  logic [63:0] xgmii_txd,
    input  logic [7:0]  xgmii_txc,
    output logic [1:0]  tx_header,
    output logic [63:0] tx_data,
    input  logic        cfg_prbs31,
    output logic        inc_error
);
    assign {tx_header, tx_data, inc_error} = '0;
endmodule

// Any state; no lock without a signal, and no error rate without lock.
module plx_pcs_rx #(
    parameter SLIP_CYCLES = 32,
    parameter BER_WINDOW  = 19531
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [1:0]  rx_header,
    input  logic [63:0] rx_data,
    input  logic        rx_signal_ok,
    output logic        rx_slip,
    output logic [63:0] xgmii_rxd,
    output logic [7:0]  xgmii_rxc,
    input  logic        cfg_prbs31,
    output logic [6:0]  prbs31_errors,
    output logic        locked,
    output logic        hi_ber,
    output logic        inc_header,
    output logic        inc_error
);
    (* anyseq *) wire lock, high;

    assign {rx_slip, xgmii_rxd, xgmii_rxc, prbs31_errors, inc_header, inc_error} = '0;
    always_ff @(posedge clk) begin
        locked <= !rst && !cfg_prbs31 && rx_signal_ok && lock;
        hi_ber <= !rst && locked && high;
    end
endmodule

// What a queue between the two clocks requires of its resets.
module queue_resets (
    input logic clk_rx_net,
    input logic rst_rx,
    input logic clk_net,
    input logic rst_net
);
    (* gclk *) wire step;

    // Each side's registers are in reset; the writer's have been, in this reset of the reader's, which has had an edge
    // since; ever.
    logic rx_in = 0, net_in = 0, was_net = 1, was_rx = 1, begun = 0, both = 0, up = 0;
    always_ff @(posedge clk_rx_net) rx_in <= rst_rx;
    always_ff @(posedge clk_net) net_in <= rst_net;
    always_ff @(posedge step) begin
        was_net <= rst_net;
        was_rx  <= rst_rx;
        begun   <= net_in && rst_net && !(rst_rx && !was_rx) && (begun || clk_rx_net && rst_rx);
        both    <= net_in && rst_net && !(rst_rx && !was_rx) && (both || begun && clk_net);
        up      <= up || both;
    end
    always_comb if (up) begin
        if (rst_rx && !was_rx) assert (net_in && rst_net);
        if (was_rx && !rst_rx) assert (rx_in);
        if (was_net && !rst_net) assert (both && net_in);
    end

    // Where the received clock has at most two edges from one of clk_net to the next, it has at most eight behind its
    // reset until the other side has left its own.
    logic [1:0] period = 0;
    logic [3:0] alone = 0;
    logic       slow = 1;
    always_ff @(posedge step) begin
        period <= (clk_net ? 2'd0 : period) + 2'(clk_rx_net && period != 3);
        slow   <= rst_rx || slow && !(clk_rx_net && period >= 2);
        alone  <= rst_rx || !net_in ? 4'd0 : alone + 4'(clk_rx_net && alone != 15);
    end
    always_comb if (up && slow && net_in) assert (alone <= 8);
endmodule

module plx_pcs_elastic #(
    parameter DEPTH  = 16,
    parameter TARGET = 2,
    parameter MOST   = 12
) (
    input  logic        clk_rx_net,
    input  logic        rst_rx,
    input  logic [63:0] s_xgmii_rxd,
    input  logic [7:0]  s_xgmii_rxc,
    input  logic        clk_net,
    input  logic        rst_net,
    output logic [63:0] m_xgmii_rxd,
    output logic [7:0]  m_xgmii_rxc,
    output logic        flows,
    output logic        inc_overflow,
    output logic        inc_underflow,
    output logic        inc_deleted,
    output logic        inc_inserted
);
    (* anyseq *) wire any;

    // In reset there are faults, and nothing flows.
    assign {inc_overflow, inc_underflow, inc_deleted, inc_inserted} = '0;
    always_ff @(posedge clk_net) begin
        flows                      <= !rst_net && any;
        {m_xgmii_rxc, m_xgmii_rxd} <= rst_net ? {8'h11, pcs_pkg::FAULT_WORD} : '0;
    end
    queue_resets resets (.*);
endmodule

module plx_pcs_counts (
    input  logic       clk_rx_net,
    input  logic       rst_rx,
    input  logic       s_ber,
    input  logic       s_errored_block,
    input  logic       s_deleted,
    input  logic       s_overflow,
    input  logic [6:0] s_prbs31_errors,
    input  logic       clk_net,
    input  logic       rst_net,
    output logic [1:0] inc_ber,
    output logic [1:0] inc_errored_blocks,
    output logic [1:0] inc_deleted,
    output logic [1:0] inc_overflow,
    output logic [7:0] inc_prbs31_errors
);
    assign {inc_ber, inc_errored_blocks, inc_deleted, inc_overflow, inc_prbs31_errors} = '0;
    queue_resets resets (.*);
endmodule

// A level crosses: the output has only values that the input had, and has one that stays behind three edges.
module crosses (
    input logic clk,
    input logic rst,
    input logic d,
    input logic q
);
    (* gclk *) wire step;

    logic       was, last, up = 0, in_rst = 0, changes = 0;
    logic [1:0] stays = 0;
    wire  [1:0] edges = d != was ? 2'd0 : stays;
    always_ff @(posedge clk) in_rst <= rst;
    always_ff @(posedge step) begin
        was     <= d;
        last    <= q;
        changes <= clk;
        up      <= up || clk && rst;
        stays   <= rst || in_rst ? 2'd0 : edges + 2'(clk && edges != 3);
    end
    always_comb if (up) begin
        if (in_rst) assert (!q);
        if (edges == 3) assert (q == d);
        // From a register.
        if (q != last) assert (changes);
        cover (edges == 3 && d);
    end
endmodule

module plx_pcs_formal (
    input logic clk_net,
    input logic rst_net,
    input logic clk_rx_net,
    input logic rx_signal_ok,
    input logic cfg_prbs31_tx,
    input logic cfg_prbs31_rx
);
    logic [63:0] xgmii_rxd, tx_data;
    logic [7:0]  xgmii_rxc, inc_prbs31_errors;
    logic [1:0]  tx_header, inc_ber, inc_errored_blocks, inc_deleted, inc_overflow;
    logic        rx_slip, sts_signal_ok, sts_block_lock, sts_hi_ber, inc_inserted, inc_underflow, inc_tx_error;

    plx_pcs dut (.*, .xgmii_txd(64'd0), .xgmii_txc(8'd0), .rx_header(2'd0), .rx_data(64'd0));

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire \dut.tx.cfg_prbs31 , \dut.rx.cfg_prbs31 , \dut.rx.rx_signal_ok , \dut.rx.rst , \dut.rx.locked ;
    (* hierconn *) wire \dut.rx.hi_ber , \dut.elastic.rst_net , \dut.elastic.flows , \dut.locked_seen ;
    wire rst_rx = \dut.rx.rst , rst_out = \dut.elastic.rst_net , locked = \dut.rx.locked , flows = \dut.elastic.flows ;

    (* gclk *) wire step;

    // ---- Resets -----------------------------------------------------------------------------------

    logic up = 0, net_in = 0, net_in_twice = 0, out_in = 0, was_rst = 1;
    // Edges: of the received clock since its reset's cause; of clk_net since its end.
    logic [2:0] rx_edges = 0, net_edges = 0;
    always_ff @(posedge clk_net) net_in <= rst_net;
    always_ff @(posedge clk_net) net_in_twice <= rst_net && net_in;
    always_ff @(posedge clk_net) out_in <= rst_out;
    always_ff @(posedge step) begin
        was_rst   <= rst_net;
        up        <= up || net_in;
        rx_edges  <= net_in ? 3'd0 : rx_edges + 3'(clk_rx_net && rx_edges != 7);
        net_edges <= rst_rx || rst_net ? 3'd0 : net_edges + 3'(clk_net && net_edges != 7);
    end
    always_comb begin
        if (!up) assume (rst_net);
        // Sampled twice before it ends, lest the end of the one before is still under way.
        if (was_rst && !net_in_twice) assume (rst_net);
    end

    always_comb if (up) begin
        assert (rst_rx == (net_in || rx_edges < 4));
        if (net_edges >= 3 && !rst_net) assert (!rst_out);
        if (out_in) assert (xgmii_rxc == 8'h11 && xgmii_rxd == pcs_pkg::FAULT_WORD && !sts_block_lock);
        if (net_in) assert (!sts_signal_ok && !sts_hi_ber && !sts_block_lock);
        cover (rx_edges == 4 && net_edges == 0 && !rst_net);
        cover (sts_block_lock && !sts_hi_ber);
    end

    // ---- States, modes ------------------------------------------------------------------------------

    crosses signal (.clk(clk_rx_net), .rst(rst_rx), .d(rx_signal_ok), .q(\dut.rx.rx_signal_ok ));
    crosses mode (.clk(clk_rx_net), .rst(rst_rx), .d(cfg_prbs31_rx), .q(\dut.rx.cfg_prbs31 ));
    crosses ok (.clk(clk_net), .rst(rst_net), .d(rx_signal_ok), .q(sts_signal_ok));
    crosses rate (.clk(clk_net), .rst(rst_net), .d(\dut.rx.hi_ber ), .q(sts_hi_ber));
    crosses lock (.clk(clk_net), .rst(rst_net), .d(locked), .q(\dut.locked_seen ));

    always_comb if (up) begin
        assert (\dut.tx.cfg_prbs31 == cfg_prbs31_tx);
        assert (sts_block_lock == (\dut.locked_seen  && flows));
    end
endmodule
