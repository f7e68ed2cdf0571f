// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Tags of reads at the block. The block may still hold a tag that the card has given up: so a read has
// a tag of its own here, which is free when the block says that the request is completed, and leads to
// the card's tag while that belongs to the same read. So no tag that the block holds is used again, and
// no completion of an old read reaches a new one. A completion for another function than that of the read
// is none of it, and frees nothing. A tag that the block never mentions again is free after 2 to 4 periods
// of 2^PERIOD_LOG2 cycles. A read takes a tag from LOW on only while the host allows more than that (plx_pcie_ext_tag).

module plx_pcie_tags #(
    parameter TAGS        = 256, // at the block, a power of two
    parameter LOW         = 32,  // of them those that any host allows, a power of two
    parameter CARD_TAGS   = 32,  // of the card, a power of two
    parameter PERIOD_LOG2 = 24   // of 250 MHz: 67 ms, longer than the block's default completion timeout
) (
    input  logic                         clk,
    input  logic                         rst,

    // All reads are forgotten by the card.
    input  logic                         flush,

    // The host allows all tags: what is offered follows in the next cycle.
    input  logic                         allow_all,

    // A free tag; a read takes it. The card's tag and function of the read that waits for that; the tag of the one
    // behind, or the same.
    output logic                         m_tag_valid,
    input  logic                         m_tag_ready,
    output logic [$clog2(TAGS)-1:0]      m_tag,
    input  logic                         s_read_valid,
    input  logic [$clog2(CARD_TAGS)-1:0] s_read_tag,
    input  logic [2:0]                   s_read_func,
    input  logic                         s_next_valid,
    input  logic [$clog2(CARD_TAGS)-1:0] s_next_tag,

    // A completion is looked up, for a function of the card; from the next cycle on: its tag in the card, and
    // whether that still belongs to the same read, of this function.
    input  logic                         s_look_valid,
    input  logic [7:0]                   s_look_tag,
    input  logic [7:0]                   s_look_func,
    output logic [$clog2(CARD_TAGS)-1:0] m_card_tag,
    output logic                         m_current,

    // It is the last one of its request; more may come nevertheless, so that the tag rests. With the look.
    input  logic                         s_return_valid,
    input  logic                         s_return_late,

    // One cycle for each tag that the block has lost.
    output logic                         inc_tag_lost
);
    localparam W = $clog2(TAGS), CW = $clog2(CARD_TAGS);

    generate
        if (CARD_TAGS < 2 || CARD_TAGS != 1 << CW) CARD_TAGS_must_be_a_power_of_two_at_least_2 parameter_error ();
        if (TAGS > 256) TAGS_must_be_at_most_256 parameter_error ();
    endgenerate

    // Periods, and one tag looked at in each cycle: whether it is to be given up is known in the next one.
    logic [PERIOD_LOG2-1:0] time_in_period;
    logic                   tick, scanned_worn;
    logic [W-1:0]           timeout_scan, scanned;

    // Tags held by the block, those that it held when the last period ended, those that it has held for
    // more than a period, and those for a read of the card.
    wire  [TAGS-1:0] open;
    logic [TAGS-1:0] old, worn, live;

    // What was looked up; the function of its read, and that of the completion.
    logic         looked_live, looked_ends, looked_late;
    logic [W-1:0] looked;
    logic [2:0]   looked_func;
    logic [7:0]   func;
    wire          fits = func == {5'd0, looked_func};

    // A return by the block, in the cycle after the look, or by the scan. The pool has it one cycle later: a choice
    // among the bits of 256 tags is half a cycle.
    wire          known     = {1'b0, s_look_tag} < TAGS;
    wire          returns   = looked_ends && fits;
    wire  [W-1:0] returned  = looked;
    wire          gives_up  = !returns && scanned_worn;
    wire          take      = m_tag_valid && m_tag_ready;
    logic         ends, ends_late;
    logic [W-1:0] ends_tag;
    wire          unexpected;

    plx_tag_pool #(.N(TAGS), .LOW(LOW < TAGS ? LOW : TAGS)) pool (
        .clk,
        .rst,
        .allow_all,
        .m_tag_valid,
        .m_tag_ready,
        .m_tag,
        .s_return_valid(ends),
        .s_return_tag(ends_tag),
        .s_return_late(ends_late),
        .event_unexpected(unexpected),
        .tick,
        .open
    );

    // The read has ended; its tag leaves the pool.
    wire [TAGS-1:0] accepted = {{(TAGS - 1) {1'b0}}, take} << m_tag;
    wire [TAGS-1:0] over     = {{(TAGS - 1) {1'b0}}, returns || gives_up} << (returns ? returned : scanned);
    wire [TAGS-1:0] ended    = {{(TAGS - 1) {1'b0}}, ends} << ends_tag;

    always_ff @(posedge clk) begin
        time_in_period <= time_in_period + 1'b1;
        tick           <= &time_in_period;
        timeout_scan   <= timeout_scan + 1'b1;
        scanned        <= timeout_scan;
        scanned_worn   <= worn[timeout_scan] && !(returns && returned == timeout_scan)
                          && !(ends && ends_tag == timeout_scan);
        ends           <= returns || gives_up;
        ends_tag       <= returns ? returned : scanned;
        ends_late      <= returns ? looked_late : 1'b1;
        old            <= (tick ? open : old) & ~ended;
        worn           <= (tick ? old : worn) & ~ended;
        live           <= ((live | accepted) & ~over) & ~{TAGS{flush}};
        inc_tag_lost   <= gives_up;
        looked_ends    <= s_return_valid && known && open[s_look_tag[W-1:0]];
        looked_late    <= s_return_late;
        if (rst) begin
            time_in_period <= '0;
            tick           <= 1'b0;
            timeout_scan   <= '0;
            scanned_worn   <= 1'b0;
            ends           <= 1'b0;
            old            <= '0;
            worn           <= '0;
            live           <= '0;
            inc_tag_lost   <= 1'b0;
            looked_ends    <= 1'b0;
        end
    end

    // The card's tag and function of each tag, and the latest tag of each of the card's.
    logic [CW-1:0] card_of [0:TAGS-1];
    logic [2:0]    func_of [0:TAGS-1];
    logic [W-1:0]  latest [0:CARD_TAGS-1];

    always_ff @(posedge clk) if (take) begin
        card_of[m_tag]     <= s_read_tag;
        func_of[m_tag]     <= s_read_func;
        latest[s_read_tag] <= m_tag;
    end

    // The one before may just have ended the same request.
    wire ended_now = returns && returned == s_look_tag[W-1:0];
    always_ff @(posedge clk) begin
        looked_live <= s_look_valid ? live[s_look_tag[W-1:0]] && known && !ended_now : m_current;
        if (s_look_valid) begin
            m_card_tag  <= card_of[s_look_tag[W-1:0]];
            looked_func <= func_of[s_look_tag[W-1:0]];
            looked      <= s_look_tag[W-1:0];
            func        <= s_look_func;
        end
    end

    // A read that waits has its tag in the card already. Once it is not current, the answer stays so: the
    // tag may be in use again.
    assign m_current = looked_live && fits && latest[m_card_tag] == looked && !(s_read_valid && s_read_tag == m_card_tag)
                       && !(s_next_valid && s_next_tag == m_card_tag);

    wire unused = &{1'b0, unexpected, s_look_tag};

`ifdef FORMAL
    // What is remembered of a tag is of one that the block holds.
    always_comb begin
        if (!rst) begin
            assert ((live & ~open) == 0);
            assert ((old & ~open) == 0);
            assert ((worn & ~old) == 0);
        end
    end
`endif
endmodule
