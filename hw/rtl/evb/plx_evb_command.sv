// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Commands of software: exclusion and readmission of nodes and feeders. The buffers of an excluded node
// leave their queue and are unknown, and its events wait for others. That takes 4 cycles for each buffer
// in the column's queue, 1 for each of the node's, 2 for each undecided event.

module plx_evb_command #(
    parameter COLUMNS = 32,    // columns, at most
    parameter NODES   = 1024,  // nodes, at most, a power of two
    parameter BUFFERS = 4096,  // receive buffers of all nodes, at most, a power of two
    parameter SLOTS   = 256    // events in flight, a power of two
) (
    input  logic                       clk,
    input  logic                       rst,
    input  logic [15:0]                cfg_nodes,
    input  logic [16:0]                cfg_descriptors,
    input  logic [31:0]                cfg_feeders,

    // A command: 0 excludes a node, 1 readmits it, 2 excludes a feeder, 3 readmits it; that it waits; its
    // turn, and the last cycle of it.
    input  logic                       command,
    input  logic [1:0]                 command_kind,
    input  logic [15:0]                command_member,
    output logic                       waits,
    input  logic                       start,
    output logic                       done,

    // The node; feeders that leave or join.
    output logic [$clog2(NODES)-1:0]   node,
    output logic [$clog2(COLUMNS)-1:0] column,
    input  logic [$clog2(COLUMNS)-1:0] node_column,
    input  logic                       node_excluded,
    output logic                       excludes,
    output logic                       readmits,
    output logic [31:0]                leaves,
    output logic [31:0]                joins,

    // The column's queue: buffers in it; the first is taken, and is the head one cycle later; the node of
    // that buffer comes after another cycle; a buffer goes back to the end.
    output logic                       looks,
    input  logic [$clog2(BUFFERS):0]   used,
    output logic                       pop,
    input  logic [$clog2(BUFFERS)-1:0] head,
    input  logic [$clog2(NODES)-1:0]   head_node,
    output logic                       push,
    output logic [$clog2(BUFFERS)-1:0] buffer,

    // Buffers of the node, all of them.
    output logic                       forgets,
    output logic [$clog2(BUFFERS)-1:0] forgotten,

    // Undecided events: of each the slot, a cycle ahead; read with `reads`; one cycle later, whether it is the
    // node's. The slot is also that of the event which is reassigned, as of the cycle before.
    input  logic [31:0]                decided,
    input  logic [31:0]                unsent,
    output logic                       reads,
    output logic [$clog2(SLOTS)-1:0]   slot,
    input  logic                       is_open,
    input  logic [$clog2(NODES)-1:0]   event_node,
    output logic                       reassigns,

    // Events that wait again, first in, first out.
    output logic                       again_valid,
    input  logic                       again_take,
    output logic [31:0]                again_number
);
    localparam NW = $clog2(NODES), BW = $clog2(BUFFERS), SW = $clog2(SLOTS);
    localparam REST = 4'd0, LOOK = 4'd1, ACT = 4'd2, TAKE = 4'd3, HEAD = 4'd4, KEEP = 4'd5, BACK = 4'd6, FORGET = 4'd7,
               READ = 4'd8, EVENT = 4'd9, SETTLE = 4'd11, DONE = 4'd10;

    logic [3:0]  state;
    logic [1:0]  kind;
    logic [15:0] member;
    logic        is_node, is_excluded, is_feeder, is_its;
    logic [BW:0] left;
    logic [16:0] forget;
    logic [31:0] number;

    wire [31:0]  coming = number + {31'd0, state == EVENT};
    wire [31:0]  feeder = (32'd1 << member[4:0]) & {32{state == ACT && is_feeder}};

    logic                 again_room;
    logic [$clog2(SLOTS):0] again_level;

    plx_fifo_sync #(.WIDTH(32), .DEPTH(SLOTS)) again (
        .clk, .rst,
        .s_valid(reassigns), .s_ready(again_room), .s_data(number),
        .m_valid(again_valid), .m_ready(again_take), .m_data(again_number), .level(again_level)
    );

    assign slot      = coming[SW-1:0];
    assign node      = member[NW-1:0];
    assign looks     = state == ACT;
    assign excludes  = state == ACT && kind == 2'd0 && is_node && !is_excluded;
    assign readmits  = state == ACT && kind == 2'd1 && is_node && is_excluded;
    assign leaves    = feeder & {32{kind == 2'd2}};
    assign joins     = feeder & {32{kind == 2'd3}};
    assign pop       = state == TAKE && left != 0;
    assign push      = state == BACK && !is_its;
    assign forgets   = state == FORGET && forget < cfg_descriptors;
    assign forgotten = forget[BW-1:0];
    assign reads     = state == READ;
    assign reassigns = state == EVENT && is_open && event_node == node;
    assign done      = state == DONE;

    always_ff @(posedge clk) begin
        // One at a time.
        if (command && !waits && state == REST) begin
            waits  <= 1'b1;
            kind   <= command_kind;
            member <= command_member;
        end else if (start) begin
            waits <= 1'b0;
        end

        case (state)
            REST: if (start) state <= LOOK;
            LOOK: begin
                is_node     <= member < cfg_nodes;
                is_excluded <= node_excluded;
                is_feeder   <= member < 16'd32 && |(cfg_feeders & (32'd1 << member[4:0]));
                column      <= node_column;
                state       <= ACT;
            end
            ACT: begin
                left   <= used;
                forget <= {1'b0, member};
                number <= decided;
                state  <= excludes ? TAKE : SETTLE;
            end
            // Columns with nodes change two cycles after a node.
            SETTLE: state <= DONE;
            TAKE: state <= left == 0 ? FORGET : HEAD;
            HEAD: begin
                buffer <= head;
                state  <= KEEP;
            end
            KEEP: begin
                is_its <= head_node == node;
                state  <= BACK;
            end
            BACK: begin
                left  <= left - 1'b1;
                state <= TAKE;
            end
            FORGET: begin
                forget <= forget + {1'b0, cfg_nodes};
                if (!forgets) state <= READ;
            end
            READ: state <= number == unsent ? DONE : EVENT;
            EVENT: begin
                number <= number + 1'b1;
                state  <= READ;
            end
            default: state <= REST;
        endcase

        if (rst) begin
            state <= REST;
            waits <= 1'b0;
        end
    end

    wire unused = &{1'b0, again_room, again_level, coming[31:SW]};
endmodule
