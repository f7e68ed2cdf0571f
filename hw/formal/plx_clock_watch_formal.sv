// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A clock that stands is known to stand within LIMIT + 4 cycles, in any phase; one that has an edge at least in
// every second cycle of the other is never said to stand; and one that has stood is said to run only behind
// 2 * BEATS - 4 edges of its own, and then within a bound. The watched clock is the slower one; its reset is inside
// that of the other.
// formal: edges
// formal: aiger
// formal: always 12
// formal: cover 60
// mutant: still == LIMIT[LW-1:0]; => still == LIMIT[LW-1:0] - 4'd5;
// mutant: if (change) still => if (seen) still
// mutant: && needed == 0; => && needed <= 1;
// mutant: if (stands) needed => if (!runs) needed
// mutant: needed <= needed - 1'b1; => needed <= '0;
// mutant: else if (!stands) still => else still
// mutant: runs   <= 1'b1; => runs   <= 1'b0;

module plx_clock_watch_formal (
    input logic s_clk,
    input logic s_rst,
    input logic clk,
    input logic rst
);
    logic runs;

    plx_clock_watch #(.LIMIT(8), .BEATS(4)) dut (.*);

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire [1:0] \dut.cycle , \dut.crossing.stages ;
    (* hierconn *) wire [3:0] \dut.still ;
    (* hierconn *) wire       \dut.seen , \dut.last ;
    wire [1:0] cycle = \dut.cycle , stages = \dut.crossing.stages ;
    wire [3:0] still = \dut.still ;
    wire       seen  = \dut.seen , latest = \dut.last ;

    (* gclk *) wire step;

    // Cycles of clk since an edge of s_clk; an edge of s_clk since one of clk; cycles behind the reset of s_clk.
    logic [3:0] quiet = 0;
    logic       had = 0;
    logic [1:0] since = 0;
    logic       was_rst = 1, was_s_rst = 1, was_clk = 0, was_s_clk = 0, begun = 0;
    // The clock has run since the last reset; it stood, and what it has done since then: edges, cycles.
    logic       steady = 0, stood = 0;
    logic [2:0] edges = 0;
    logic [4:0] back = 0;

    always_ff @(posedge step) begin
        was_rst   <= rst;
        was_s_rst <= s_rst;
        was_clk   <= clk;
        was_s_clk <= s_clk;
        begun     <= 1'b1;
        had       <= !clk && (had || s_clk);
        if (s_clk || rst && clk) quiet <= 4'd0;
        else if (clk && quiet != 4'd15) quiet <= quiet + 4'd1;
        if (s_rst) since <= 2'd0;
        else if (clk && since != 2'd3) since <= since + 2'd1;
        if (rst && clk) begin
            steady <= 1'b1;
            stood  <= 1'b0;
        end else begin
            if (quiet > 4'd1) steady <= 1'b0;
            stood <= !runs;
        end
        if (!stood) edges <= 3'd0;
        else if (s_clk && edges != 3'd6) edges <= edges + 3'd1;
        if (!stood || quiet > 4'd1) back <= 5'd0;
        else if (clk && back != 5'd31) back <= back + 5'd1;
    end

    always_comb begin
        assume (!(had && s_clk));
        if (!begun) assume (rst && s_rst);
        // A reset changes behind an edge of its clock; that of clk lasts until the other one has ended.
        if (!was_clk) assume (rst == was_rst);
        if (was_s_rst && !was_s_clk) assume (s_rst);
        if (s_rst || since < 2'd3) assume (rst);
        // Without an edge the level arrives, then each cycle counts.
        if (quiet >= 4'd1) assert (stages[0] == cycle[1]);
        if (quiet >= 4'd2) assert (stages[1] == stages[0]);
        if (quiet >= 4'd3) assert (latest == seen && (still >= 4'd8 || still >= quiet - 4'd3));
        if (begun && !was_rst) begin
            assert (still <= 4'd8);
            if (quiet >= 4'd12) assert (!runs);
            if (steady) assert (runs);
            if (back == 5'd30) assert (runs);
            if (stood && runs) assert (edges >= 3'd4);
        end
        cover (stood && runs && edges == 3'd5);
        cover (begun && quiet == 4'd11 && !runs);
    end
endmodule
