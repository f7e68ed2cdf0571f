// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// What is in reset, and when. That of the core resets everything, at once, and is the only one of the host bus
// logic; one by register waits for the write on its way out, and discards until all reads have ended. The ports do
// not hold up the core: of two cards with the same core, whose ports have any clocks and resets, all that the host
// bus sees is equal. Where clk_net is not faster, the other side knows that the ports are in reset before a register
// of theirs changes by it, and until they have left it; and the ports are reset, before they are up again, if a
// function was reset without them. Each bit that has changed since the last step of the solver crosses for itself.
// formal: edges
// formal: aiger
// formal: abstract plx_sync_bit
// formal: abstract plx_sync_reset
// formal: always 20
// formal: cover 72
// mutant: .rst_async(rst_core), .rst(core_of_core) => .rst_async(rst_net), .rst(core_of_core)
// mutant: .rst_async(rst_core), .rst(net_of_core) => .rst_async(1'b0), .rst(net_of_core)
// mutant: .rst_async(rst_net), .rst(net_of_net) => .rst_async(1'b0), .rst(net_of_net)
// mutant: .rst_async(discard), .rst(net_of_request) => .rst_async(1'b0), .rst(net_of_request)
// mutant: .rst_async(forgets), .rst(net_of_forget) => .rst_async(1'b0), .rst(net_of_forget)
// mutant: = core_of_core || core_of_request; => = core_of_request;
// mutant: net_of_request || late[3]; => net_of_request || late[1];
// mutant: net_clear <= seen != 6'd0; => net_clear <= seen[4:0] != 5'd0;
// mutant: plx_clock_watch #(.BEATS(5)) => plx_clock_watch #(.BEATS(4))
// mutant: net_clear <= seen != 6'd0; => net_clear <= {seen[5], seen[3:0]} != 5'd0;
// mutant: (!runs || seen[2] || seen[4]) => (!runs || seen[2])
// mutant: (!runs || seen[2] || seen[4]) => (!runs || seen[4])
// mutant: (!runs || seen[2] || seen[4]) => (seen[2] || seen[4])
// mutant: QUIESCE: if (wr_idle) begin => QUIESCE: begin
// mutant: QUIESCE: if (wr_idle) begin => QUIESCE: if (wr_idle && !net_clear) begin
// mutant: if (rd_idle) begin => begin
// mutant: default: if (count == LAST) state <= RUN; => default: if (count == 5'd2) state <= RUN;

// Any clock: it stands at will, runs behind a reset, and runs again behind several of its edges.
module plx_clock_watch #(
    parameter LIMIT = 63,
    parameter BEATS = 4
) (
    input  logic s_clk,
    input  logic s_rst,
    input  logic clk,
    input  logic rst,
    output logic runs
);
    (* gclk *) wire step;
    (* anyseq *) wire any;
    localparam LEAST = 2 * BEATS - 4;
    logic [3:0] edges;

    always_ff @(posedge clk) runs <= rst || any && (runs || edges == LEAST);
    always_ff @(posedge step) edges <= runs ? 4'd0 : edges + 4'(s_clk && edges != LEAST);
endmodule

module plx_resets_formal (
    input logic       clk_core,
    input logic       rst_core,
    input logic [1:0] clk_net,
    input logic [1:0] rst_net,
    input logic [1:0] forget,
    input logic       request,
    input logic       wr_idle,
    input logic       rd_idle
);
    // The card that is observed, and another one with the same core.
    logic [1:0] resetting, quiesce, discard, host_rst, others_rst, net_rst, net_clear, net_up, net_lost;

    plx_resets dut (
        .clk_net(clk_net[0]), .rst_net(rst_net[0]), .clk_core, .rst_core, .forget(forget[0]), .request,
        .resetting(resetting[0]), .quiesce(quiesce[0]), .discard(discard[0]), .wr_idle, .rd_idle,
        .host_rst(host_rst[0]), .others_rst(others_rst[0]), .net_rst(net_rst[0]), .net_clear(net_clear[0]),
        .net_up(net_up[0]), .net_lost(net_lost[0])
    );
    plx_resets other (
        .clk_net(clk_net[1]), .rst_net(rst_net[1]), .clk_core, .rst_core, .forget(forget[1]), .request,
        .resetting(resetting[1]), .quiesce(quiesce[1]), .discard(discard[1]), .wr_idle, .rd_idle,
        .host_rst(host_rst[1]), .others_rst(others_rst[1]), .net_rst(net_rst[1]), .net_clear(net_clear[1]),
        .net_up(net_up[1]), .net_lost(net_lost[1])
    );

    (* gclk *) wire step;

    // Edges with the first reset; then it is there.
    logic [2:0] first = 0;
    wire        begun = first == 4;
    always_ff @(posedge step) first <= first + 3'(clk_core && !begun);
    always_comb if (!begun) assume (rst_core);

    // ---- The core ---------------------------------------------------------------------------------

    // The same, whatever the ports do.
    always_comb if (begun) begin
        assert (resetting[0] == resetting[1] && quiesce[0] == quiesce[1] && discard[0] == discard[1]);
        assert (host_rst[0] == host_rst[1] && others_rst[0] == others_rst[1]);
    end

    // Edges of clk_core since a reset of the core, a discard; of clk_net since either; of clk_net since any cause.
    logic [2:0] core_before = 0, discard_before = 4, both_before = 0;
    logic [3:0] any_before = 0;
    wire        both = rst_core || discard[0], any = both || rst_net[0] || forgets;
    wire  [2:0] since_core    = rst_core ? 3'd0 : core_before;
    wire  [2:0] since_discard = discard[0] ? 3'd0 : discard_before;
    wire  [2:0] since_both    = both ? 3'd0 : both_before;
    wire  [3:0] since_any     = any ? 4'd0 : any_before;
    always_ff @(posedge step) begin
        core_before    <= since_core + 3'(clk_core && !rst_core && since_core != 4);
        discard_before <= since_discard + 3'(clk_core && !discard[0] && since_discard != 4);
        both_before    <= since_both + 3'(clk_net[0] && !both && since_both != 4);
        any_before     <= since_any + 4'(clk_net[0] && !any && since_any != 8);
    end

    // The cycle before, of clk_core; cycles of a discard, and behind it.
    logic       asked = 0, in_quiesce = 0, in_discard = 0, wrote = 0, was_read = 0, held = 1;
    logic [5:0] discards = 0, settles = 0;
    always_ff @(posedge clk_core) begin
        asked      <= request;
        in_quiesce <= quiesce[0];
        in_discard <= discard[0];
        wrote      <= wr_idle;
        was_read   <= rd_idle;
        held       <= host_rst[0];
        discards   <= discard[0] ? discards + 6'(discards != 63) : 6'd0;
        settles    <= quiesce[0] && !discard[0] && (in_discard || settles != 0) ? settles + 6'(settles != 63) : 6'd0;
    end

    always_comb if (begun) begin
        assert (host_rst[0] == (since_core < 4));
        assert (others_rst[0] == (since_core < 4 || since_discard < 4));
        if (since_both < 4) assert (net_rst[0]);
        assert (quiesce[0] == resetting[0]);
        // What is not the host bus is reset only while that is quiet.
        if (others_rst[0] && !host_rst[0]) assert (quiesce[0]);
        if (since_core == 4 && !held) begin
            if (!in_quiesce) assert (quiesce[0] == asked && !discard[0]);
            // A write ends first, and nothing else is waited for.
            if (!in_discard && discard[0]) assert (in_quiesce && wrote);
            if (in_quiesce && !in_discard && settles == 0 && wrote) assert (discard[0]);
            if (in_discard && !discard[0]) assert (discards >= 32 && was_read);
            if (in_discard && discards >= 33 && was_read) assert (!discard[0]);
            // All have left their resets before a request begins.
            if (in_quiesce && !quiesce[0]) assert (settles == 32 && !others_rst[0]);
            assert (settles <= 32);
        end
    end

    // ---- The ports --------------------------------------------------------------------------------

    // Their clock is not faster: an edge at most between two of the core, and one at once with the first. Their
    // reset lasts for a cycle. Their registers are in reset; they owe one for a function; cycles that they are up
    // meanwhile.
    logic       had = 0, in_reset = 1, owed = 0, was_rst = 1, was_net = 0, was_rst_core = 1, was_core = 0;
    logic [2:0] overdue = 0;
    always_ff @(posedge step) begin
        had      <= !clk_core && (had || clk_net[0]);
        was_rst  <= rst_net[0];
        was_net  <= clk_net[0];
        was_rst_core <= rst_core;
        was_core <= clk_core;
        if (clk_net[0]) in_reset <= net_rst[0];
        if (clk_core && misses) owed <= 1'b1;
        else if (clk_net[0] && net_rst[0] || !begun) owed <= 1'b0;
        if (!owed || !net_up[0]) overdue <= 3'd0;
        else if (clk_core && overdue != 7) overdue <= overdue + 1'b1;
    end

    // The reset of the near side of a plx_axil_cdc, which the core has sampled; edges of clk_net in it, and with the
    // ports' reset.
    wire        near = others_rst[0] || !net_up[0];
    logic       was_near = 0, near_seen = 0;
    logic [2:0] net_edges = 0;
    logic [1:0] reset_edges = 0;
    always_ff @(posedge clk_core) near_seen <= near;
    always_ff @(posedge step) begin
        was_near <= near;
        if (!near) {net_edges, reset_edges} <= 5'd0;
        else if (clk_net[0] && near_seen) begin
            net_edges   <= net_edges + 3'(net_edges != 5);
            reset_edges <= reset_edges + 2'(net_rst[0] && reset_edges != 3);
        end
    end

    // The core's cycles before: up; a function is reset without the ports.
    wire        misses = forget[0] && !net_up[0] && !host_rst[0];
    logic [1:0] up = 0, held_others = 3;
    logic [2:0] calm = 0;
    logic       forgets = 0;
    always_ff @(posedge clk_core) begin
        // All but the host bus is in reset; cycles since any reset of the ports.
        held_others <= {held_others[0], others_rst[0]};
        calm        <= since_any < 8 ? 3'd0 : calm + 3'(calm != 4);
        up      <= {up[0], net_up[0] && !host_rst[0]};
        forgets <= misses;
    end

    always_comb begin
        assume (!(had && clk_net[0]));
        if (was_rst && !was_net) assume (rst_net[0]);
        if (was_rst_core && !was_core) assume (rst_core);
    end
    always_comb if (begun) begin
        if (in_reset && net_rst[0]) assert (net_clear[0] || others_rst[0]);
        if (net_up[0]) assert (!net_clear[0]);
        if (net_rst[0]) assert (since_any < 8);
        assert (overdue < 5);
        // Each loss is reported, and nothing else.
        if (net_lost[0]) assert (up != 0);
        if (up == 2 && held_others == 0) assert (net_lost[0]);
        if (calm == 4) assert (!net_clear[0]);
        // That of a plx_axil_cdc ends when it has been long enough, and not before that of the ports.
        if (was_near && !near) assert (net_edges == 5 || reset_edges == 3);
        if (net_rst[0] && in_reset) assert (near);
        cover (net_lost[0] && up == 2 && net_clear[0]);
        cover (net_up[0] && settles == 10);
        cover (overdue == 3);
    end
endmodule
