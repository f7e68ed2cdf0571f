// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Gathers the payloads of one port, one word in each cycle, in units of 16 B, two of which are read
// together at any alignment. Each payload begins with a new unit, and its last unit is padded with
// zeros. A queue holds the ends of payloads.

module plx_rx_dma_ring #(
    parameter FRAMES = 8,  // payloads whose end may wait, a power of two
    parameter UNITS  = 64  // units, a power of two, 8 at least
) (
    input  logic         clk,
    input  logic         rst,

    // Payloads.
    input  logic         s_axis_payload_tvalid,
    output logic         s_axis_payload_tready,
    input  logic [63:0]  s_axis_payload_tdata,
    input  logic [7:0]   s_axis_payload_tkeep,
    input  logic         s_axis_payload_tlast,
    input  logic [1:0]   s_axis_payload_tuser,

    // Whole units of the first payload that are held, from two cycles after `next` on; the next two;
    // of them one or two are consumed where `load`.
    output logic [$clog2(UNITS):0] held,
    output logic [127:0] unit_0,
    output logic [127:0] unit_1,
    input  logic         load,
    input  logic         use_0,
    input  logic         use_1,

    // The rest of the first payload is discarded.
    input  logic         discard,

    // Bytes so far of the incoming payload; it is the first one if there is no end.
    output logic [15:0]  gathered,

    // End of the first payload: its bytes, its error. It is complete.
    output logic         ended,
    output logic [15:0]  end_bytes,
    output logic [1:0]   end_user,
    input  logic         next
);
    localparam AW = $clog2(UNITS);

    generate
        if (UNITS < 8 || UNITS != 1 << AW) UNITS_must_be_a_power_of_two_from_8 parameter_error ();
    endgenerate

    // Units, one bit more than an address; whether half of the next unit is held; space for a word.
    logic [AW:0] head, tail, end_tail;
    logic        half, room, end_room, renewed;
    logic [15:0] bytes;
    logic [3:0]  count;
    logic [63:0] word;

    wire [7:0] keep = s_axis_payload_tkeep;

    // Bytes are kept from the first one on.
    assign count = {keep[7], keep[3] && !keep[7], (keep[1] && !keep[3]) || (keep[5] && !keep[7]),
                    |(keep & ~{1'b0, keep[7:1]} & 8'h55)};

    integer k;
    always_comb begin
        for (k = 0; k < 8; k = k + 1) word[k*8 +: 8] = s_axis_payload_tdata[k*8 +: 8] & {8{keep[k]}};
    end

    assign bytes                 = gathered + {12'd0, count};
    assign s_axis_payload_tready = room && end_room;

    wire         take     = s_axis_payload_tvalid && s_axis_payload_tready;
    wire         ends     = take && s_axis_payload_tlast;
    wire         store    = take && keep[0];
    // A unit is complete with its second word, or with the end of its payload.
    wire         whole    = (store && (half || s_axis_payload_tlast)) || (ends && half);
    wire [AW:0]  new_tail = tail + {{AW{1'b0}}, whole};
    wire [AW:0]  filled   = tail - head;

    // What a step may change is known before it is decided whether there is one: without sums, of which
    // one would be made whose operands are selected, and that would wait for the decision.
    wire         mine     = whole && !ended;
    wire  [AW:0] more_1, less_1, less_2;
    wire  [AW:0] first = (ended ? end_tail : tail) - head;

    generate
        for (genvar b = 0; b <= AW; b = b + 1) begin : g_held
            localparam [AW:0] BELOW = (1 << b) - 1, BUT_0 = BELOW & ~1;
            assign more_1[b] = held[b] != ((held & BELOW) == BELOW);
            assign less_1[b] = held[b] != ((held & BELOW) == 0);
            assign less_2[b] = b == 0 ? held[b] : held[b] != ((held & BUT_0) == 0);
        end
    endgenerate

    // Whether there is a step comes last, and chooses.
    wire [AW:0]  anew     = mine ? first + 1'b1 : first;
    wire [AW:0]  stays    = mine ? more_1 : held;
    wire [AW:0]  loaded   = use_0 && use_1 ? (mine ? less_1 : less_2) : use_0 || use_1 ? (mine ? held : less_1) : stays;

    wire [AW:0]  head_1   = head + 1'b1;
    wire [AW:0]  ahead_2  = ~head - {{(AW - 1){1'b0}}, 2'd2};

    always_ff @(posedge clk) begin
        tail <= new_tail;
        if (store) half <= !half;
        if (take) gathered <= ends ? '0 : bytes;
        if (ends) half <= 1'b0;
        // As it was a cycle ago, less what that cycle may add.
        room    <= filled < UNITS - 2;
        renewed <= next;
        // The discarded part ends where the payload ends, if that is known.
        if (discard) head <= ended ? end_tail : tail;
        else if (load && (use_0 || use_1)) head <= use_0 && use_1 ? ~ahead_2 : head_1;
        held <= renewed ? anew : load ? loaded : stays;
        if (rst) begin
            tail     <= '0;
            head     <= '0;
            held     <= '0;
            half     <= 1'b0;
            gathered <= '0;
            room     <= 1'b0;
            renewed  <= 1'b0;
        end
    end

    plx_fifo_first #(.WIDTH(16 + 2 + AW + 1), .DEPTH(FRAMES)) tails (
        .clk, .rst,
        .s_valid(ends), .s_ready(end_room), .s_data({bytes, s_axis_payload_tuser, new_tail}),
        .m_valid(ended), .m_ready(next), .m_data({end_bytes, end_user, end_tail})
    );

    // Even and odd units, first and second words; a first word clears the second.
    logic [63:0] even_0 [0:UNITS/2-1];
    logic [63:0] even_1 [0:UNITS/2-1];
    logic [63:0] odd_0 [0:UNITS/2-1];
    logic [63:0] odd_1 [0:UNITS/2-1];

    wire [AW-2:0] row = tail[AW-1:1];

    always_ff @(posedge clk) begin
        if (store && !tail[0] && !half) even_0[row] <= word;
        if (store && !tail[0]) even_1[row] <= half ? word : 64'd0;
        if (store && tail[0] && !half) odd_0[row] <= word;
        if (store && tail[0]) odd_1[row] <= half ? word : 64'd0;
    end

    wire [AW-2:0]  odd_row  = head[AW-1:1];
    wire [AW-2:0]  even_row = head[AW-1:1] + {{(AW-2){1'b0}}, head[0]};
    wire [127:0]   even     = {even_1[even_row], even_0[even_row]};
    wire [127:0]   odd      = {odd_1[odd_row], odd_0[odd_row]};

    assign unit_0 = head[0] ? odd : even;
    assign unit_1 = head[0] ? even : odd;

`ifdef FORMAL
    // A unit written while the tail is at any one slot stays there until the head has passed it.
    (* anyconst *) logic [AW:0] f_place;
    logic [127:0] f_unit;

    wire [AW:0]   f_before = f_place - head;
    wire [AW-2:0] f_row    = f_place[AW-1:1];
    wire [127:0]  f_there  = f_place[0] ? {odd_1[f_row], odd_0[f_row]} : {even_1[f_row], even_0[f_row]};

    always_ff @(posedge clk) if (store && tail == f_place) f_unit <= half ? {word, f_unit[63:0]} : {64'd0, word};

    always_ff @(posedge clk) if (!rst) begin
        assert (filled < UNITS && (filled < UNITS - 1 || !room));
        if (f_before < filled || (f_before == filled && half)) assert (f_there == f_unit);
        if (filled > 0 && head == f_place) assert (unit_0 == f_unit);
        if (filled > 1 && head + 1'b1 == f_place) assert (unit_1 == f_unit);
    end
`endif
endmodule
