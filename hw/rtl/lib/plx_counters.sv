// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A bank of 64-bit counters behind a register window. The counters are in a RAM that is scanned, one
// counter a cycle; increments meanwhile wait in a few bits beside it. So a value that is read is at
// most 2 x COUNT cycles old, no increment is lost, and no counter saturates: 64 bits wrap after
// centuries. A reset clears them.

module plx_counters #(
    parameter COUNT    = 8,   // counters
    parameter AMOUNT_W = 14,  // bits of an amount
    parameter SUMS     = 0    // bit i: counter i adds its amounts; else it counts cycles with one
) (
    input  logic                      clk,
    input  logic                      rst,

    // Increments of this cycle, for each; 0: none. Amounts of a counter that adds them must
    // stay below 2^(AMOUNT_W + 1) in any 2 x COUNT cycles.
    input  logic [COUNT*AMOUNT_W-1:0] amount,

    // Register window: an access is stable until it is ready, data are valid with ready; the address
    // is that of a 32-bit word. A read of a low half latches the high half for the read that follows.
    // Writes have no effect, and addresses beyond the last counter read 0.
    input  logic                      win_valid,
    input  logic                      win_write,
    input  logic [5:0]                win_addr,
    output logic                      win_ready,
    output logic [31:0]               win_rdata
);
    localparam W = $clog2(COUNT);

    generate
        if (COUNT < 3 || COUNT > 32) COUNT_must_be_3_to_32 parameter_error ();
        if (AMOUNT_W < 1) AMOUNT_W_must_be_at_least_1 parameter_error ();
    endgenerate

    // An access: the low half of a counter takes the slot of the scan.
    logic        asked;
    logic [31:0] high;
    wire  [5:0]  last  = 6'd2 * COUNT[5:0] - 6'd1;
    wire         there = COUNT == 32 || win_addr <= last;
    wire         low   = win_valid && !win_write && !win_addr[0] && there;
    wire         ask   = low && !asked;

    // The scan: a counter is read in one cycle, with what is to be added, and written in the next. In the
    // first pass it is 0.
    logic [W-1:0] turn, writing;
    logic         walked, first, first_write;
    wire  [63:0]  value, sum;
    wire          end_turn = turn == COUNT[W-1:0] - 1'b1;

    always_ff @(posedge clk) begin
        asked       <= ask;
        walked      <= !ask;
        writing     <= turn;
        first_write <= first;
        if (!ask) begin
            turn <= end_turn ? '0 : turn + 1'b1;
            if (end_turn) first <= 1'b0;
        end
        if (rst) begin
            asked  <= 1'b0;
            walked <= 1'b0;
            turn   <= '0;
            first  <= 1'b1;
        end
    end

    plx_ram_sdp #(.WIDTH(64), .DEPTH(COUNT)) ram (
        .clk,
        .w_enable(walked),
        .w_address(writing),
        .w_data(sum),
        .r_enable(1'b1),
        .r_address(ask ? win_addr[W:1] : turn),
        .r_data(value)
    );

    // Increments that wait for their slot.
    localparam PENDING_W = AMOUNT_W + 1 > W + 2 ? AMOUNT_W + 1 : W + 2;
    wire [COUNT*PENDING_W-1:0] pending;

    generate
        for (genvar i = 0; i < COUNT; i = i + 1) begin : g_pending
            localparam ADDS = (SUMS >> i) & 1;
            localparam BITS = ADDS != 0 ? AMOUNT_W + 1 : W + 2;
            wire  [AMOUNT_W-1:0] mine = amount[i*AMOUNT_W+:AMOUNT_W];
            wire  [BITS-1:0]     now;
            logic [BITS-1:0]     waiting;

            if (ADDS != 0) assign now = {1'b0, mine};
            else assign now = {{(BITS - 1) {1'b0}}, |mine};

            always_ff @(posedge clk) begin
                waiting <= now + (!ask && turn == i ? {BITS{1'b0}} : waiting);
                if (rst) waiting <= '0;
            end

            if (BITS == PENDING_W) assign pending[i*PENDING_W+:PENDING_W] = waiting;
            else assign pending[i*PENDING_W+:PENDING_W] = {{(PENDING_W - BITS) {1'b0}}, waiting};
        end
    endgenerate

    logic [PENDING_W-1:0] adding;

    always_ff @(posedge clk) adding <= pending[turn*PENDING_W+:PENDING_W];

    assign sum = (first_write ? 64'd0 : value) + {{(64 - PENDING_W) {1'b0}}, adding};

    always_ff @(posedge clk) if (asked) high <= first ? 32'd0 : value[63:32];

    assign win_ready = win_valid && (!low || asked);
    assign win_rdata = !there ? 32'd0 : win_addr[0] ? high : first ? 32'd0 : value[31:0];
endmodule
