// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The nodes: column of each, which are excluded, and the columns that have others.

module plx_evb_nodes #(
    parameter COLUMNS = 32,   // columns, at most
    parameter NODES   = 1024  // nodes, at most, a power of two
) (
    input  logic                       clk,
    input  logic                       rst,
    input  logic [15:0]                cfg_nodes,

    // Set-up: begins, and a cycle for each node and buffer. The node of the buffer of that number.
    input  logic                       setup,
    input  logic                       clear,
    input  logic [15:0]                clear_number,
    output logic [$clog2(NODES)-1:0]   buffer_node,
    output logic [$clog2(COLUMNS)-1:0] buffer_column,

    // Column of a node, for software.
    input  logic                       w_node,
    input  logic [$clog2(NODES)-1:0]   look_node,
    input  logic [$clog2(COLUMNS)-1:0] node_data,
    output logic [$clog2(COLUMNS)-1:0] look_node_column,

    // A node of a command, and what is done with it in a later cycle.
    input  logic [$clog2(NODES)-1:0]   member,
    output logic [$clog2(COLUMNS)-1:0] member_column,
    output logic                       member_excluded,
    input  logic                       excludes,
    input  logic                       readmits,
    input  logic [$clog2(NODES)-1:0]   op_node,
    input  logic [$clog2(COLUMNS)-1:0] op_column,

    // A node that sent feedback.
    input  logic [$clog2(NODES)-1:0]   sender,
    output logic                       sender_excluded,

    // Columns with nodes that take part: two cycles after a change.
    output logic [COLUMNS-1:0]         live
);
    localparam CW = $clog2(COLUMNS), NW = $clog2(NODES);

    logic [CW-1:0] columns    [0:NODES-1];
    logic          excluded   [0:NODES-1];
    logic [NW:0]   live_nodes [0:COLUMNS-1];

    // A node joins or leaves its column, one cycle later.
    logic          joins, leaves;
    logic [CW-1:0] column;
    wire [COLUMNS-1:0] column_bit = {{(COLUMNS - 1) {1'b0}}, 1'b1} << column;
    wire [NW:0]   lives = live[column] ? live_nodes[column] : '0;

    assign buffer_column    = columns[buffer_node];
    assign look_node_column = columns[look_node];
    assign member_column    = columns[member];
    assign member_excluded  = excluded[member];
    assign sender_excluded  = excluded[sender];

    always_ff @(posedge clk) begin
        if (w_node) columns[look_node] <= node_data;
        if (clear) excluded[clear_number[NW-1:0]] <= 1'b0;
        else if (excludes || readmits) excluded[op_node] <= excludes;
        column <= clear ? buffer_column : op_column;
        joins  <= (clear && clear_number < cfg_nodes) || readmits;
        leaves <= excludes;
        if (joins || leaves) live_nodes[column] <= lives + (joins ? {{NW{1'b0}}, 1'b1} : {(NW + 1){1'b1}});
        if (joins) live <= live | column_bit;
        else if (leaves && lives == 1) live <= live & ~column_bit;
        if (clear) buffer_node <= {{(17 - NW) {1'b0}}, buffer_node} + 1'b1 >= {1'b0, cfg_nodes} ? '0 : buffer_node + 1'b1;
        if (rst || setup) begin
            live        <= '0;
            joins       <= 1'b0;
            leaves      <= 1'b0;
            buffer_node <= '0;
        end
    end
endmodule
