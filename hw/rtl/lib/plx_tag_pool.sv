// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Tags of requests that complete out of order, or never. A free tag is offered, in turn the one that
// was free for longest; it is open until it is returned. An abandoned tag is quarantined for one to
// two periods of `tick`, and at most N cycles more, so that a late completion matches no open tag.
// Latency from a return to the offer: 3 cycles. Free tags wait in a queue, as a choice among the bits of
// a hundred of them is too deep for a cycle; after a reset they come to it one by one.
//
// Tags from LOW on are offered only while the client is allowed them all. While it is not, a free one is kept with
// those whose quarantine is over, outside of the queue, so that the others do not wait behind it; one that is in the
// queue, or offered, leaves it for there. What is open stays so, and is returned as ever.

module plx_tag_pool #(
    parameter N   = 32,  // tags, a power of two
    parameter LOW = N    // of them those that may always be used, a power of two
) (
    input  logic                 clk,
    input  logic                 rst,

    // All tags may be used, not only those below LOW: what is offered follows in the next cycle.
    input  logic                 allow_all,

    // A free tag.
    output logic                 m_tag_valid,
    input  logic                 m_tag_ready,
    output logic [$clog2(N)-1:0] m_tag,

    // A tag is returned: completed, or abandoned. A tag that is not open is ignored.
    input  logic                 s_return_valid,
    input  logic [$clog2(N)-1:0] s_return_tag,
    input  logic                 s_return_late,
    output logic                 event_unexpected,

    // A period of quarantine ends.
    input  logic                 tick,

    // Tags that are open.
    output logic [N-1:0]         open
);
    localparam W = $clog2(N);

    generate
        if (N < 2 || N != 1 << W) N_must_be_a_power_of_two_at_least_2 parameter_error ();
        if (LOW < 1 || LOW > N || (LOW & (LOW - 1)) != 0) LOW_must_be_a_power_of_two_of_at_most_N parameter_error ();
    endgenerate

    // A tag that may not be used now.
    function automatic barred(input [W-1:0] tag, input all);
        barred = !all && {1'b0, tag} >= LOW;
    endfunction

    // In quarantine: before the first tick, after it, and after the second one; or kept, as it may not be used.
    logic [N-1:0] fresh, stale, due;

    // The queue of free tags, and those that it has had since the reset.
    logic [W-1:0] queue [0:N-1];
    logic [W:0]   head, tail, filled;
    wire          some  = head != tail;
    wire          take  = m_tag_valid && m_tag_ready;
    wire          moves = take || !m_tag_valid;

    // The tag that was to be offered, or was, is not: it is kept.
    wire  [W-1:0] next      = queue[head[W-1:0]];
    wire          withdraws = m_tag_valid && barred(m_tag, allow_all);
    logic         keeps;
    wire  [N-1:0] kept      = {{(N - 1) {1'b0}}, keeps} << m_tag;

    wire          returns  = s_return_valid && open[s_return_tag];
    wire  [N-1:0] accepted = {{(N - 1) {1'b0}}, take} << m_tag;
    wire  [N-1:0] returned = {{(N - 1) {1'b0}}, returns} << s_return_tag;

    // A tag that was returned in time, one cycle late; one whose quarantine is over, which a scan finds.
    logic         back;
    logic [W-1:0] back_tag, timeout_scan;
    wire          ready    = due[timeout_scan] && !barred(timeout_scan, allow_all);
    wire          releases = ready && !back;
    wire  [N-1:0] released = {{(N - 1) {1'b0}}, releases} << timeout_scan;
    wire          fills    = !filled[W] && !back && !ready && !barred(filled[W-1:0], allow_all);

    // One that was returned in time, and may not be used.
    wire          back_barred = back && barred(back_tag, allow_all);
    wire          adds        = back && !back_barred || releases || fills;
    wire  [N-1:0] back_kept   = {{(N - 1) {1'b0}}, back_barred} << back_tag;

    always_ff @(posedge clk) begin
        open             <= (open | accepted) & ~returned;
        fresh            <= (tick ? '0 : fresh) | (s_return_late ? returned : '0);
        stale            <= tick ? fresh : stale;
        due              <= (due & ~released) | (tick ? stale : '0) | kept | back_kept;
        event_unexpected <= s_return_valid && !open[s_return_tag];
        back             <= returns && !s_return_late;
        if (releases || !ready) timeout_scan <= timeout_scan + 1'b1;
        if (fills) filled <= filled + 1'b1;
        if (adds) tail <= tail + 1'b1;
        if (moves) begin
            m_tag_valid <= some && !barred(next, allow_all);
            keeps       <= some && barred(next, allow_all);
            if (some) head <= head + 1'b1;
        end else begin
            m_tag_valid <= !withdraws;
            keeps       <= withdraws;
        end
        if (rst) begin
            open             <= '0;
            fresh            <= '0;
            stale            <= '0;
            due              <= '0;
            back             <= 1'b0;
            keeps            <= 1'b0;
            timeout_scan     <= '0;
            filled           <= '0;
            head             <= '0;
            tail             <= '0;
            m_tag_valid      <= 1'b0;
            event_unexpected <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        back_tag <= s_return_tag;
        if (adds) queue[tail[W-1:0]] <= back ? back_tag : ready ? timeout_scan : filled[W-1:0];
        // Never a place of the queue that has had no tag: it is decoded for `kept` and `accepted`.
        if (moves && some) m_tag <= next;
        if (rst) m_tag <= '0;
    end

`ifdef FORMAL
    // Any one tag: whether a client holds it, and the periods that have ended since it was abandoned.
    (* anyconst *) logic [W-1:0] f_tag;
    logic       f_used = 0, f_shut = 0, f_period = 0;

    wire f_out = take && m_tag == f_tag;
    wire f_in  = s_return_valid && s_return_tag == f_tag && f_used;

    always_ff @(posedge clk) begin
        if (f_out) f_used <= 1'b1;
        if (f_in) f_used <= 1'b0;
        if (f_in && s_return_late) begin
            f_shut   <= 1'b1;
            f_period <= 1'b0;
        end else if (f_shut && tick) begin
            f_shut   <= !f_period;
            f_period <= 1'b1;
        end
        if (rst) begin
            f_used <= 1'b0;
            f_shut <= 1'b0;
        end
    end

    // Each tag is in one place.
    wire  [W:0] f_level = tail - head;
    logic [3:0] f_places [0:N-1];
    integer     f_of, f_slot;
    always_comb begin
        for (f_of = 0; f_of < N; f_of = f_of + 1) begin
            f_places[f_of] = {3'd0, open[f_of]} + {3'd0, fresh[f_of]} + {3'd0, stale[f_of]} + {3'd0, due[f_of]}
                             + {3'd0, filled <= f_of} + {3'd0, (m_tag_valid || keeps) && m_tag == f_of}
                             + {3'd0, back && back_tag == f_of};
            for (f_slot = 0; f_slot < N; f_slot = f_slot + 1)
                if (((f_slot - head) & (N - 1)) < f_level && queue[f_slot] == f_of) f_places[f_of] = f_places[f_of] + 4'd1;
        end
    end

    generate
        for (genvar t = 0; t < N; t = t + 1) begin : g_proof
            always_ff @(posedge clk) if (!rst) assert (f_places[t] == 4'd1);
        end
    endgenerate

    always_ff @(posedge clk) if (!rst) begin
        assert (filled <= N && f_level <= N);
        assert (f_used == open[f_tag]);
        assert (f_shut == (fresh[f_tag] || stale[f_tag]));
        if (f_shut) assert (stale[f_tag] == f_period);
        if (m_tag_valid && m_tag == f_tag) assert (!f_used && !f_shut);
        cover (f_shut && f_period && m_tag_valid && (open | stale | ({{(N - 1) {1'b0}}, 1'b1} << m_tag)) == {N{1'b1}});
    end
`endif
endmodule
