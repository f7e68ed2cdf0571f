// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The choice of a column by weight or by length of the queue: two walks over all columns. The first finds the
// highest score, of several the first one from the turn on; the second charges the balances and finds the
// columns that were passed. A column is read, scored and compared in one cycle each, one in each cycle; the
// second walk begins while the first one's last columns are scored:
//
//   cycles 1 to N    `walks`; N columns are read
//   cycle N+2        the second walk reads the first column
//   cycle N+3        `none`, or the first walk has found a column
//   cycle 2N+3       `done`

module plx_evb_walk #(
    parameter COLUMNS = 32,   // columns, at most
    parameter BUFFERS = 1024  // receive buffers, at most
) (
    input  logic                       clk,
    input  logic                       rst,

    // Settings: as of plx_evb_columns.
    input  logic [1:0]                 cfg_discipline,
    input  logic [COLUMNS-1:0]         cfg_live,
    input  logic [COLUMNS-1:0]         cfg_partition,

    // Weight of a column: written with `w_weight`.
    input  logic                       w_weight,
    input  logic [$clog2(COLUMNS)-1:0] look_column,
    input  logic [15:0]                weight_data,
    output logic [15:0]                look_weight,

    // Until `none` or `done`. The first column, as of the cycle before; the partition, its columns that may be chosen,
    // and those with free buffers.
    input  logic                       walks,
    input  logic [$clog2(COLUMNS)-1:0] turn,
    input  logic                       partition,
    input  logic [COLUMNS-1:0]         open,
    input  logic [COLUMNS-1:0]         free,

    // The column that is read, and the length of its queue.
    output logic [$clog2(COLUMNS)-1:0] column,
    input  logic [$clog2(BUFFERS):0]   length,

    // The first walk has found no column with a free buffer; both have ended, with this column.
    output logic                       none,
    output logic                       done,
    output logic [COLUMNS-1:0]         best_bit,

    // A column that would have come before the one that was found.
    output logic [COLUMNS-1:0]         ahead
);
    localparam CW = $clog2(COLUMNS), BW = $clog2(BUFFERS);
    localparam WEIGHTS = 2'd1, LENGTH = 2'd2;
    // Bits of a score: 32 weights of 16 bits, signed.
    localparam SW = 24;

    // Steps of the walks: no column is read in the PAUSE; the MIDDLE; the END.
    localparam PAUSE = COLUMNS, MIDDLE = COLUMNS + 2, LAST = 2 * COLUMNS, END = 2 * COLUMNS + 2;

    // The bit of a column.
    function automatic [COLUMNS-1:0] one;
        input [CW-1:0] number;
        integer i;
        for (i = 0; i < COLUMNS; i = i + 1) one[i] = {{(32 - CW) {1'b0}}, number} == i;
    endfunction

    generate
        if (COLUMNS < 2 || COLUMNS > 32) COLUMNS_must_be_2_to_32 parameter_error ();
    endgenerate

    logic [15:0]        weights  [0:COLUMNS-1];
    logic [SW-1:0]      balances [0:COLUMNS-1];
    logic [COLUMNS-1:0] balanced;

    logic               settles;
    logic [CW+1:0]      step;
    wire  [31:0]        step_number = {{(30 - CW) {1'b0}}, step};
    wire                middle      = walks && step_number == MIDDLE;
    wire                reads       = walks && step_number != PAUSE && step_number <= LAST;

    // A column as it was read.
    logic [CW-1:0]      walk, read_column;
    logic               read;
    logic [SW-1:0]      read_score;
    logic [15:0]        read_weight;
    wire  [COLUMNS-1:0] read_bit = one(read_column);

    // Its score: whether it is of the partition, may be chosen, has been found by the first walk.
    logic [CW-1:0]      at, best;
    logic               compares, is_mine, is_open, is_best;
    logic [15:0]        weight;
    logic [SW-1:0]      score;

    // What the first walk has found; the second one is behind that column.
    logic               found, behind;
    logic [SW-1:0]      best_score, total;
    wire                higher  = $signed(score) > $signed(best_score);
    wire                precedes = compares && settles && (higher || (score == best_score && !behind));
    wire  [SW-1:0]      charged = score - (total & {SW{is_best}});
    // More than the total, less than its negative.
    wire                beyond  = $signed(score) > $signed(is_best ? total << 1 : total);
    wire  [SW-1:0]      above   = score + (total & {SW{!is_best}});

    assign column      = walk;
    assign look_weight = weights[look_column];
    assign none        = middle && !(found && |(best_bit & free));
    assign done        = walks && step_number == END;
    assign best_bit    = one(best);
    assign ahead       = one(at) & {COLUMNS{precedes}};

    always_ff @(posedge clk) begin
        if (w_weight) weights[look_column] <= weight_data;
        if (compares && settles && is_mine && cfg_discipline == WEIGHTS) begin
            balances[at] <= beyond ? total : above[SW-1] ? -total : charged;
        end
    end

    always_ff @(posedge clk) begin
        if (middle && !none) settles <= 1'b1;
        step <= step + 1'b1;
        if (reads) walk <= {{(32 - CW) {1'b0}}, walk} == COLUMNS - 1 ? '0 : walk + 1'b1;

        read        <= reads;
        read_column <= walk;
        read_weight <= cfg_discipline == LENGTH ? '0 : weights[walk];
        read_score  <= cfg_discipline == LENGTH ? {{(SW - BW - 1) {1'b0}}, length}
                                                : balanced[walk] ? balances[walk] : '0;

        compares <= read && walks;
        at       <= read_column;
        score    <= read_score + {{(SW - 16) {1'b0}}, read_weight};
        weight   <= read_weight;
        is_mine  <= |(read_bit & cfg_live & (cfg_partition ^ {COLUMNS{!partition}}));
        is_open  <= |(read_bit & open);
        is_best  <= read_column == best;

        if (compares && !settles) begin
            if (is_mine) total <= total + {{(SW - 16) {1'b0}}, weight};
            if (is_open && (!found || higher)) begin
                found      <= 1'b1;
                best       <= at;
                best_score <= score;
            end
        end
        if (compares && settles) begin
            if (is_best) behind <= 1'b1;
            if (is_mine) balanced <= balanced | one(at);
        end
        if (!walks) begin
            settles <= 1'b0;
            step    <= '0;
            walk    <= turn;
            found   <= 1'b0;
            behind  <= 1'b0;
            total   <= '0;
        end
        if (rst) begin
            compares <= 1'b0;
            balanced <= '0;
        end
    end
endmodule
