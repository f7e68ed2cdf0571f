// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Resets of the card, and the state of the ports' clock, which may stand or be in reset at any time. The
// reset of the core resets everything; that of the ports resets them alone, and the other side of their
// fifos forgets what waits there. A reset by register excludes the host bus logic: first no new write
// begins, and the current one ends; then all other modules are reset, while open reads end, with data or
// by their timeout, and their data are discarded. So the host never receives a partial TLP, and no
// completion reaches another client.

module plx_resets (
    // Clocks, and resets from outside, of each or of both, from registers; they last at least one cycle
    // of their clock.
    input  logic clk_net,
    input  logic rst_net,
    input  logic clk_core,
    input  logic rst_core,

    // A function that has a port is being reset: if the ports' clock stands, or they are in reset, its writes of their
    // registers are lost, and so the ports are reset by the time that they are up again.
    input  logic forget,

    // A reset request, for one cycle; a reset is in progress.
    input  logic request,
    output logic resetting,

    // The host bus: no request may begin; read data are to be discarded; no request is pending.
    output logic quiesce,
    output logic discard,
    input  logic wr_idle,
    input  logic rd_idle,

    // Resets of the host bus logic, and of all other modules in both clocks.
    output logic host_rst,
    output logic others_rst,
    output logic net_rst,

    // The ports, in clk_core: they are in reset, and what waits for them is lost; their clock runs, and they
    // are not in reset; they were up, and are not any more.
    output logic net_clear,
    output logic net_up,
    output logic net_lost
);
    localparam [1:0] RUN = 2'd0, QUIESCE = 2'd1, CLEAR = 2'd2, SETTLE = 2'd3;
    // Long enough for each clock to detect a reset, and for both to have left it.
    localparam [4:0] LAST = 5'd31;

    logic [1:0] state;
    logic [4:0] count;

    // A synchroniser for each cause and clock, since logic before an asynchronous reset may have glitches.
    logic core_of_core, core_of_request, net_of_core, net_of_net, net_of_request, net_of_forget, forgets;

    plx_sync_reset core_by_core (.clk(clk_core), .rst_async(rst_core), .rst(core_of_core));
    plx_sync_reset core_by_request (.clk(clk_core), .rst_async(discard), .rst(core_of_request));
    plx_sync_reset net_by_core (.clk(clk_net), .rst_async(rst_core), .rst(net_of_core));
    plx_sync_reset net_by_net (.clk(clk_net), .rst_async(rst_net), .rst(net_of_net));
    plx_sync_reset net_by_request (.clk(clk_net), .rst_async(discard), .rst(net_of_request));

    plx_sync_reset net_by_forget (.clk(clk_net), .rst_async(forgets), .rst(net_of_forget));

    assign host_rst   = core_of_core;
    assign others_rst = core_of_core || core_of_request;

    // ---- The ports ------------------------------------------------------------------------------

    // Their own reset, and that for a function, begin four cycles late: the other side knows of it (4 cycles of clk_core at most)
    // before a pointer of theirs changes by it (2 cycles later at least).
    logic [3:0] late;

    always_ff @(posedge clk_net) late <= {late[2:0], net_of_net || net_of_forget};

    assign net_rst = net_of_core || net_of_request || late[3];

    // Each begins without clk_net, and ends when that has had edges with the reset. If its cause ends before the first
    // edge, late[3] begins at the edge at which it ends: late[1] covers both, which may be seen apart.
    logic [5:0] seen;
    logic       runs, was_up;

    plx_sync_bit #(.WIDTH(6)) net_resets (
        .clk(clk_core), .rst(1'b0), .d({late[1], net_of_forget, late[3], net_of_net, net_of_request, net_of_core}),
        .q(seen)
    );

    // An access under way when the clock stood is withdrawn, for which plx_axil_cdc needs five edges of the clock. A
    // clock that runs again just when it is said to stand has had some of these changes by then.
    plx_clock_watch #(.BEATS(5)) watch (.s_clk(clk_net), .s_rst(net_rst), .clk(clk_core), .rst(net_clear), .runs);

    assign net_up = runs && !net_clear;

    always_ff @(posedge clk_core) begin
        net_clear <= seen != 6'd0;
        forgets   <= forget && !net_up && !host_rst;
        was_up    <= net_up && !host_rst;
        net_lost  <= was_up && (!runs || seen[2] || seen[4]) && !host_rst;
    end

    // ---- A reset by register --------------------------------------------------------------------

    assign resetting = state != RUN;
    assign quiesce   = resetting;

    always_ff @(posedge clk_core) begin
        count <= state == CLEAR || state == SETTLE ? count + 5'd1 : 5'd0;
        case (state)
            RUN: if (request) state <= QUIESCE;
            QUIESCE: if (wr_idle) begin
                state   <= CLEAR;
                discard <= 1'b1;
            end
            CLEAR: if (count == LAST) begin
                // Not before all reads have ended.
                count <= rd_idle ? 5'd0 : LAST;
                if (rd_idle) begin
                    state   <= SETTLE;
                    discard <= 1'b0;
                end
            end
            default: if (count == LAST) state <= RUN;
        endcase
        if (host_rst) begin
            state   <= RUN;
            discard <= 1'b0;
        end
    end
endmodule
