// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// State of each receive buffer, against which feedback is checked: unknown, free, or assigned to an
// event; and how often it has been assigned. Feedback takes three cycles: its buffer is read with
// `read`, `compare`, `judge`, and then `frees` and others are valid.

module plx_evb_buffers #(
    parameter COLUMNS = 32,    // columns, at most
    parameter NODES   = 1024,  // nodes, at most, a power of two
    parameter BUFFERS = 4096,  // receive buffers of all nodes, at most, a power of two
    parameter SLOTS   = 256    // events in flight, a power of two
) (
    input  logic                               clk,
    input  logic [31:0]                        cfg_run,
    input  logic [16:0]                        cfg_descriptors,

    // Set-up: node and column of a buffer, which is unknown then.
    input  logic                               clear,
    input  logic [$clog2(BUFFERS)-1:0]         clear_buffer,
    input  logic [$clog2(NODES)-1:0]           clear_node,
    input  logic [$clog2(COLUMNS)-1:0]         clear_column,

    // A buffer is read; one cycle later: its next generation, node and column.
    input  logic                               read,
    input  logic [$clog2(BUFFERS)-1:0]         read_buffer,
    output logic [31:0]                        generation,
    output logic [$clog2(NODES)-1:0]           node,
    output logic [$clog2(COLUMNS)-1:0]         column,

    // A buffer is assigned, with its next generation. A buffer of an excluded node is unknown.
    input  logic                               assigns,
    input  logic [$clog2(BUFFERS)-1:0]         assigned_buffer,
    input  logic [31:0]                        assigned_generation,
    input  logic [31:0]                        assigned_number,
    input  logic                               forgets,
    input  logic [$clog2(BUFFERS)-1:0]         forgotten,

    // Feedback, and the events in flight.
    input  logic [layouts_pkg::FEEDBACK_W-1:0] feedback,
    input  logic                               compare,
    input  logic                               judge,
    input  logic                               free,
    input  logic [31:0]                        oldest,
    input  logic [$clog2(SLOTS):0]             in_flight,
    output logic [$clog2(NODES)-1:0]           sender,
    input  logic                               sender_excluded,

    // The buffer is new, or its event is finished and in flight; what is counted: new, finished, free
    // before, assigned since, another event, out of range, wrong column, excluded, other run.
    output logic                               is_new,
    output logic                               is_finished,
    output logic                               is_in_flight,
    output logic [8:0]                         verdict
);
    localparam NW = $clog2(NODES), CW = $clog2(COLUMNS), BW = $clog2(BUFFERS), SW = $clog2(SLOTS);
    localparam UNKNOWN = 2'd0, FREE = 2'd1, ASSIGNED = 2'd2;

    wire [31:0]   said_number     = feedback[layouts_pkg::FEEDBACK_NUMBER_AT +: 32];
    wire [31:0]   said_generation = feedback[layouts_pkg::FEEDBACK_GENERATION_AT +: 32];
    wire [15:0]   descriptor      = feedback[layouts_pkg::FEEDBACK_DESCRIPTOR_AT +: 16];
    wire [BW-1:0] buffer          = descriptor[BW-1:0];

    logic        is_run, in_range, right_column, same_number, excluded, equal, later;
    logic [1:0]  state;
    // `ahead`: the generation of feedback, less the next one of the buffer: -1 is the buffer's own.
    logic [31:0] ahead, after;
    logic [33:0] assigned;

    wire valid    = is_run && in_range && right_column && !excluded;
    wire repeated = valid && state == FREE && equal;
    wire stale    = valid && state != UNKNOWN && !equal && !later;
    wire frees    = free && (is_new || is_finished);
    wire renews   = free && is_new && later;

    assign is_new      = valid && state == UNKNOWN;
    assign is_finished = valid && state == ASSIGNED && equal && same_number;
    assign verdict     = {!is_run, is_run && in_range && right_column && excluded, is_run && in_range && !right_column,
                          is_run && !in_range, valid && !is_new && !is_finished && !repeated && !stale, stale, repeated,
                          is_finished, is_new};

    plx_ram_sdp #(.WIDTH(32), .DEPTH(BUFFERS)) generations (
        .clk,
        .w_enable(clear || assigns || renews),
        .w_address(clear ? clear_buffer : renews ? buffer : assigned_buffer),
        .w_data(clear ? 32'd1 : (renews ? said_generation : assigned_generation) + 1'b1),
        .r_enable(read), .r_address(read_buffer), .r_data(generation)
    );

    plx_ram_sdp #(.WIDTH(34), .DEPTH(BUFFERS)) states (
        .clk,
        .w_enable(clear || assigns || frees || forgets),
        .w_address(clear ? clear_buffer : frees ? buffer : forgets ? forgotten : assigned_buffer),
        .w_data({clear || forgets ? UNKNOWN : frees ? FREE : ASSIGNED, assigned_number}),
        .r_enable(read), .r_address(read_buffer), .r_data(assigned)
    );

    plx_ram_sdp #(.WIDTH(NW + CW), .DEPTH(BUFFERS)) places (
        .clk,
        .w_enable(clear), .w_address(clear_buffer), .w_data({clear_node, clear_column}),
        .r_enable(read), .r_address(read_buffer), .r_data({node, column})
    );

    always_ff @(posedge clk) begin
        if (compare) begin
            is_run       <= feedback[layouts_pkg::FEEDBACK_RUN_AT +: 32] == cfg_run;
            in_range     <= {1'b0, descriptor} < cfg_descriptors;
            right_column <= feedback[layouts_pkg::FEEDBACK_COLUMN_AT +: 8] == {{(8 - CW) {1'b0}}, column};
            same_number  <= assigned[31:0] == said_number;
            state        <= assigned[33:32];
            ahead        <= said_generation - generation;
            after        <= said_number - oldest;
            sender       <= node;
        end
        if (judge) begin
            excluded     <= sender_excluded;
            equal        <= ahead == 32'hFFFF_FFFF;
            later        <= !ahead[31] && ahead != 32'h7FFF_FFFF;
            is_in_flight <= after < {{(31 - SW) {1'b0}}, in_flight};
        end
    end
endmodule
