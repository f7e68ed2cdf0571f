// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Round-robin arbiter that grants for a whole frame, in the cycle of the request: no latency.
// A requester waits for at most N - 1 frames of others.

module plx_arb_rr #(
    parameter N = 4  // requesters
) (
    input  logic         clk,
    input  logic         rst,

    // Requests: of each requester with a frame to begin, until it is granted.
    input  logic [N-1:0] request,

    // At most one bit; stable until `done`: the frame of the grant ends in this cycle.
    output logic [N-1:0] grant,
    input  logic         done
);
    generate
        if (N < 2) N_must_be_at_least_2 parameter_error ();
    endgenerate

    // A frame is in progress; its owner; requesters with priority: all above the last one.
    logic         locked;
    logic [N-1:0] owner, above;

    // The first of these, or the first of all. Without sums, whose carries would be long.
    wire  [N-1:0] prior = request & above;
    logic [N-1:0] pick, behind;
    logic         any_prior, any;
    integer       i;
    always_comb begin
        any_prior = 1'b0;
        any       = 1'b0;
        for (i = 0; i < N; i = i + 1) begin
            pick[i]   = |prior ? prior[i] && !any_prior : request[i] && !any;
            behind[i] = |prior ? any_prior : any;
            any_prior = any_prior || prior[i];
            any       = any || request[i];
        end
    end

    assign grant = locked ? owner : pick;

    always_ff @(posedge clk) begin
        if (|grant) locked <= !done;
        if (!locked) begin
            owner <= pick;
            if (any) above <= behind;
        end
        if (rst) begin
            locked <= 1'b0;
            above  <= '0;
        end
    end

`ifdef FORMAL
    // Any one requester requests until it is granted; frames of others that begin meanwhile are counted.
    (* anyconst *) logic [$clog2(N)-1:0] f_who;
    logic                 f_waits = 0;
    logic [$clog2(N)-1:0] f_others = 0;

    wire         f_begins = !locked && grant != 0;
    wire [N-1:0] f_below  = ({{(N - 1) {1'b0}}, 1'b1} << f_who) - 1'b1;
    // Requesters that can still precede it.
    wire [N-1:0] f_before = above[f_who] ? above & f_below : (above | f_below);
    logic [$clog2(N):0] f_count;
    integer f_i;

    always_comb begin
        f_count = 0;
        for (f_i = 0; f_i < N; f_i = f_i + 1) if (f_before[f_i]) f_count = f_count + 1'b1;
    end

    always_ff @(posedge clk) begin
        f_waits <= !rst && request[f_who] && !grant[f_who];
        if (rst || !request[f_who] || grant[f_who]) f_others <= '0;
        else if (f_begins) f_others <= f_others + 1'b1;
    end

    always_ff @(posedge clk) if (!rst) begin
        if (f_waits) assume (request[f_who]);
        // The bits above one bit.
        assert ((above & ~(above >> 1) & ~({{(N - 1) {1'b0}}, 1'b1} << (N - 1))) == 0);
        assert (!above[0]);
        if (locked) assert (owner != 0 && (owner & (owner - 1'b1)) == 0);
        assert ((grant & (grant - 1'b1)) == 0);
        if (f_begins) assert ((grant & ~request) == 0);
        assert (locked || (grant == 0) == (request == 0));
        assert ({1'b0, f_others} + f_count <= N - 1);
        if (f_others == N - 1 && f_begins) assert (grant[f_who]);
        cover (f_others == N - 1 && f_begins);
    end
`endif
endmodule
