// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Tags of requests that complete out of order, or never. A free tag is offered, in turn the one that
// was free for longest; it is open until it is returned. An abandoned tag is quarantined for one to
// two periods of `tick`, so that a late completion matches no open tag. Latency from a return to
// the offer: 3 cycles.

module tag_pool #(
    parameter N = 32  // tags, a power of two
) (
    input  logic                 clk,
    input  logic                 rst,

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
    endgenerate

    // In quarantine: before the first tick, and after it.
    logic [N-1:0] fresh, stale;

    // The tag that is offered, and the one that is offered next, as one bit each.
    logic [N-1:0] offered, next;
    wire          take     = m_tag_valid && m_tag_ready;
    wire          moves    = take || !m_tag_valid;
    wire  [N-1:0] taken    = offered & {N{take}};
    wire          returns  = s_return_valid && open[s_return_tag];
    wire  [N-1:0] returned = {{(N - 1) {1'b0}}, returns} << s_return_tag;

    // The next free tag above the last one, or the lowest; it and those below.
    logic [N-1:0] above;
    wire  [N-1:0] free  = ~(open | fresh | stale | offered | next);
    wire  [N-1:0] first = |(free & above) ? free & above : free;
    wire  [N-1:0] up_to = first ^ (first - 1'b1);
    wire  [N-1:0] pick  = first & up_to;

    // The number of the next: bit i is set for tags whose number has bit i.
    logic [W-1:0] number;
    generate
        for (genvar i = 0; i < W; i = i + 1) begin : g_number
            wire [N-1:0] having;
            for (genvar j = 0; j < N; j = j + 1) begin : g_tag
                assign having[j] = next[j] && ((j >> i) & 1) != 0;
            end
            assign number[i] = |having;
        end
    endgenerate

    always_ff @(posedge clk) begin
        open             <= (open | taken) & ~returned;
        fresh            <= (tick ? '0 : fresh) | (s_return_late ? returned : '0);
        stale            <= tick ? fresh : stale;
        event_unexpected <= s_return_valid && !open[s_return_tag];
        if (moves) begin
            m_tag_valid <= next != 0;
            offered     <= next;
            if (next != 0) m_tag <= number;
        end
        if (moves || next == 0) begin
            next <= pick;
            if (free != 0) above <= ~up_to;
        end
        if (rst) begin
            open             <= '0;
            fresh            <= '0;
            stale            <= '0;
            above            <= '0;
            m_tag_valid      <= 1'b0;
            offered          <= '0;
            next             <= '0;
            m_tag            <= '0;
            event_unexpected <= 1'b0;
        end
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

    always_ff @(posedge clk) if (!rst) begin
        assert ((open & fresh) == 0 && (open & stale) == 0 && (fresh & stale) == 0);
        assert (((offered | next) & (open | fresh | stale)) == 0 && (offered & next) == 0);
        assert ((next & (next - 1'b1)) == 0 && offered == {{(N - 1) {1'b0}}, m_tag_valid} << m_tag);
        assert (f_used == open[f_tag]);
        assert (f_shut == (fresh[f_tag] || stale[f_tag]));
        if (f_shut) assert (stale[f_tag] == f_period);
        if (m_tag_valid && m_tag == f_tag) assert (!f_used && !f_shut);
        cover (f_shut && f_period && m_tag_valid && (open | stale) == {N{1'b1}} - offered);
    end
`endif
endmodule
