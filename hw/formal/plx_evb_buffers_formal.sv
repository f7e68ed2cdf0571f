// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Feedback on four receive buffers of two nodes, assignments and exclusions between. Each message of feedback
// has one verdict. A free buffer is not freed again: it is new while it is unknown, and finished after its
// assignment, by a message that names the run, the column, the event and the generation of that assignment;
// such a message is accepted. The generation that is read is one more than any of before.
// formal: aiger
// formal: bounded 18
// formal: cover 18
// mutant: assign is_finished = valid && state == ASSIGNED && equal && same_number; => assign is_finished = valid && state != UNKNOWN && equal && same_number;
// mutant: assign is_finished = valid && state == ASSIGNED && equal && same_number; => assign is_finished = valid && state == ASSIGNED && same_number;
// mutant: .w_enable(clear || assigns || frees || forgets), => .w_enable(clear || assigns || forgets),
// mutant: wire repeated = valid && state == FREE && equal; => wire repeated = valid && state != UNKNOWN && equal;

module plx_evb_buffers_formal (
    input logic         clk,
    input logic         rst,
    input logic [1:0]   operation,
    input logic [1:0]   any_buffer,
    input logic [31:0]  any_number,
    input logic [127:0] any_feedback,
    input logic [31:0]  oldest,
    input logic [2:0]   in_flight,
    input logic         sender_excluded
);
    localparam COLUMNS = 2, NODES = 2, BUFFERS = 4, SLOTS = 4;
    localparam UNKNOWN = 2'd0, FREE = 2'd1, ASSIGNED = 2'd2;
    localparam FEEDBACK = 2'd1, ASSIGN = 2'd2, FORGET = 2'd3;
    localparam W = layouts_pkg::FEEDBACK_W;

    (* anyconst *) logic [31:0] cfg_run;

    // Set-up; then feedback, which takes four cycles, or an assignment with the generation that was read in
    // the cycle before, or a buffer that is forgotten.
    logic         running = 0, reads = 0, excluded = 0;
    logic [2:0]   clear_buffer = 0, step = 0;
    logic [W-1:0] feedback = 0;
    logic [1:0]   at = 0;
    wire          clear   = !rst && !clear_buffer[2];
    wire          calm    = !rst && !clear && step == 0 && !reads;
    wire          take    = calm && operation == FEEDBACK;
    wire          begins  = calm && operation == ASSIGN;
    wire          forgets = calm && operation == FORGET;
    wire          assigns = reads;
    wire          free    = step == 3;
    wire [15:0]   any_descriptor = any_feedback[layouts_pkg::FEEDBACK_DESCRIPTOR_AT +: 16];
    wire [15:0]   descriptor     = feedback[layouts_pkg::FEEDBACK_DESCRIPTOR_AT +: 16];
    wire [1:0]    buffer         = descriptor[1:0];

    logic [31:0] generation;
    logic        node, column, sender, is_new, is_finished, is_in_flight;
    logic [8:0]  verdict;

    plx_evb_buffers #(
        .COLUMNS(COLUMNS),
        .NODES(NODES),
        .BUFFERS(BUFFERS),
        .SLOTS(SLOTS)
    ) dut (
        .clk, .cfg_run, .cfg_descriptors(17'd4),
        .clear, .clear_buffer(clear_buffer[1:0]), .clear_node(clear_buffer[0]), .clear_column(clear_buffer[0]),
        .read(take || begins), .read_buffer(take ? any_descriptor[1:0] : any_buffer), .generation, .node, .column,
        .assigns, .assigned_buffer(at), .assigned_generation(generation), .assigned_number(any_number),
        .forgets, .forgotten(any_buffer),
        .feedback, .compare(step == 1), .judge(step == 2), .free,
        .oldest, .in_flight, .sender, .sender_excluded, .is_new, .is_finished, .is_in_flight, .verdict
    );

    // What is known of each buffer: its state, the next generation, the event.
    logic [1:0]  states  [0:BUFFERS-1];
    logic [31:0] nexts   [0:BUFFERS-1];
    logic [31:0] numbers [0:BUFFERS-1];
    wire  [31:0] said    = feedback[layouts_pkg::FEEDBACK_GENERATION_AT +: 32];
    wire  [31:0] number  = feedback[layouts_pkg::FEEDBACK_NUMBER_AT +: 32];
    wire  [31:0] ahead   = said - nexts[buffer];
    wire         can     = feedback[layouts_pkg::FEEDBACK_RUN_AT +: 32] == cfg_run && descriptor < 4
                        && feedback[layouts_pkg::FEEDBACK_COLUMN_AT +: 8] == {7'd0, buffer[0]} && !excluded;
    wire         may_end = can && states[buffer] == ASSIGNED && ahead == 32'hFFFF_FFFF && number == numbers[buffer];

    // Assignments need a free buffer.
    always_comb begin
        if (!running) assume (rst);
        if (begins) assume (states[any_buffer] == FREE);
    end

    always_ff @(posedge clk) begin
        running <= 1'b1;
        reads   <= begins;
        step    <= take ? 1 : step == 0 || step == 3 ? 0 : step + 1;
        if (take) feedback <= any_feedback[W-1:0];
        if (begins) at <= any_buffer;
        if (step == 2) excluded <= sender_excluded;
        if (clear) begin
            clear_buffer                <= clear_buffer + 1'b1;
            states[clear_buffer[1:0]]   <= UNKNOWN;
            nexts[clear_buffer[1:0]]    <= 1;
        end else if (assigns) begin
            states[at]  <= ASSIGNED;
            nexts[at]   <= generation + 1'b1;
            numbers[at] <= any_number;
        end else if (free && (is_new || is_finished)) begin
            states[buffer] <= FREE;
            if (is_new && !ahead[31] && ahead != 32'h7FFF_FFFF) nexts[buffer] <= said + 1'b1;
        end else if (forgets) begin
            states[any_buffer] <= UNKNOWN;
        end
        if (rst) begin
            clear_buffer <= 0;
            step         <= 0;
            reads        <= 0;
        end
    end

    always_ff @(posedge clk) if (running && !rst) begin
        if (free) begin
            assert ((verdict & (verdict - 1'b1)) == 0 && verdict != 0);
            assert (is_new == (can && states[buffer] == UNKNOWN));
            assert (is_finished == may_end);
            if (can) assert (sender == buffer[0]);
        end
        if (assigns) assert (generation == nexts[at]);
        cover (free && is_finished);
        cover (free && is_new && nexts[buffer] == 2);
        cover (free && verdict[2]);
    end

    wire unused = &{1'b0, node, column, is_in_flight};
endmodule
