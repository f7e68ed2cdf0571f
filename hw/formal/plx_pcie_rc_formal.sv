// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Each completion of the block that does not end silently becomes one on the host bus, in order: whole, each DW in its
// place; or one word without data, of no tag where it is strange or its read is not current, and an error where it
// failed. One that is discontinued ends by an abort of its tag. A read that is refused ends once, by its header, and
// never between the words of another completion. Offers are stable.
// formal: aiger
// formal: bounded 11
// formal: cover 12
// mutant: s_refused_valid && room && !unfinished => s_refused_valid && room
// mutant: step = room && !s_refused_ready; => step = room;
// mutant: if (shows) unfinished <= !last; => if (shows) unfinished <= 1'b0;
// mutant: if (s_refused_ready) hif_rx_cpl_valid <= 1'b1; => if (1'b0) hif_rx_cpl_valid <= 1'b1;
// mutant: have[10:4] != 0 || have[3] && have[2:0] != 0; => have[10:4] != 0;
// mutant: left      <= in_tlp ? have - 11'd8 : have; => left      <= have;
// mutant: word_strange || !current; => word_strange;
// mutant: came_last && came_broken && passes; => 1'b0;
// mutant: word_dws > DW ? => 4'd8 > DW ?
// mutant: passing <= !strange; => passing <= 1'b1;
// mutant: (!word_again || passing) => (word_sop || passing)
// mutant: BAD_STATUS, BAD_LENGTH, FLR: judged => BAD_STATUS, BAD_LENGTH: judged
// mutant: wire          take = step && !rest; => wire          take = step;

module plx_pcie_rc_formal (
    input logic       clk,
    input logic       rst,
    input logic       s_axis_rc_tvalid,
    input logic [4:0] dws,
    input logic [3:0] code,
    input logic [2:0] status,
    input logic       vf,
    input logic       completed,
    input logic       discontinue,
    input logic       s_refused_valid,
    input logic [1:0] refused_tag,
    input logic       hif_rx_cpl_ready,
    input logic       next_current,
    input logic [1:0] next_card
);
    localparam [3:0] POISONED = 1, BAD_STATUS = 2, FLR = 8, TIMEOUT = 9;
    localparam [2:0] UNSUPPORTED = 1, ABORT = 4;
    localparam [9:0] NONE = 10'h3FF;

    logic         s_axis_rc_tready, s_refused_ready, hif_rx_cpl_valid, hif_rx_cpl_sop, hif_rx_cpl_eop;
    logic         look, return_valid, return_late, inc_rc_discontinued;
    logic [7:0]   look_tag, look_func;
    logic [127:0] hif_rx_cpl_header;
    logic [255:0] hif_rx_cpl_data;

    // ---- Completions of the block: up to 18 DWs, each of which is its number and that of the completion --------------

    logic [4:0]   in_at, kept_dws;
    logic [3:0]   kept_code, in_number = 0;
    logic         in_tlp = 0;
    wire  [4:0]   now_dws  = in_tlp ? kept_dws : dws;
    wire  [3:0]   now_code = in_tlp ? kept_code : code;
    wire  [4:0]   at       = in_tlp ? in_at : 5'd0;
    wire  [4:0]   total    = now_dws + 5'd3;
    wire          tlast    = total - at <= 8;
    wire          takes    = s_axis_rc_tvalid && s_axis_rc_tready;
    wire  [255:0] s_axis_rc_tdata;
    wire  [95:0]  head = {24'd0, 4'd0, in_number, 8'd0, 5'd0, vf, 2'd0, 1'b0, code == POISONED, status, 6'd0, dws,
                          1'b0, completed, 2'd0, 8'd0, in_number, code, 12'd0};

    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_in
            localparam [4:0] LANE = i;
            wire [4:0] place = at + LANE;
            if (i < 3) begin : g_head
                assign s_axis_rc_tdata[i*32 +: 32] = !in_tlp ? head[i*32 +: 32] :
                                                     place < total ? {23'd1, place, in_number} : 32'hFFFF_FFFF;
            end else begin : g_data
                assign s_axis_rc_tdata[i*32 +: 32] = place < total ? {23'd1, place, in_number} : 32'hFFFF_FFFF;
            end
        end
    endgenerate

    // ---- plx_pcie_tags: an answer from the cycle after the look on, which may end being current ----------------------

    logic       current = 0;
    logic [1:0] card_tag;
    always_ff @(posedge clk) begin
        current <= next_current && (look || current);
        if (look) card_tag <= next_card;
    end

    wire [23:0] s_refused = {1'b1, 21'd0, refused_tag};

    plx_pcie_rc #(.CW(2)) dut (
        .*, .s_axis_rc_tlast(tlast), .s_axis_rc_tuser({32'd0, discontinue, 42'd0})
    );

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb begin
        if (!running) assume (rst);
        assume (dws <= 18);
        // What the block finds good has a good status.
        assume (status == 0 || code > POISONED);
        if (discontinue) assume (tlast);
    end

    // ---- What has come, and what has left ----------------------------------------------------------------------------

    // Any one of the completions: its fields; whether its read was current when it was looked up, and is.
    (* anyconst *) logic [3:0] watched;
    logic       w_broken = 0, w_first, w_current, w_asked = 0;
    logic [4:0] w_dws;
    logic [3:0] w_code;
    logic [2:0] w_status;
    logic [1:0] w_card;
    logic       looked = 0, w_vf;

    logic         out_tlp = 0, owed = 0, stood = 0, stood_in = 0, stood_refused = 0;
    logic [3:0]   out_number = 0;
    logic [4:0]   out_at;
    logic [23:0]  told;
    logic [1:0]   stood_tag;
    logic [385:0] stood_out, stood_beat;
    wire  [385:0] now_out = {hif_rx_cpl_sop, hif_rx_cpl_eop, hif_rx_cpl_header & {128{hif_rx_cpl_sop}}, hif_rx_cpl_data};
    wire  [385:0] now_in  = {371'd0, discontinue, vf, completed, status, code, dws};

    wire          out     = hif_rx_cpl_valid && hif_rx_cpl_ready;
    wire          refusal = hif_rx_cpl_sop && hif_rx_cpl_header[113];
    wire  [9:0]   tag     = hif_rx_cpl_header[99:90];
    wire  [2:0]   said    = hif_rx_cpl_header[88:86];
    wire  [3:0]   number  = hif_rx_cpl_header[10:7];
    wire  [4:0]   place   = hif_rx_cpl_sop ? 5'd0 : out_at;

    always_ff @(posedge clk) begin
        stood         <= !rst && hif_rx_cpl_valid && !hif_rx_cpl_ready;
        stood_out     <= now_out;
        stood_in      <= !rst && s_axis_rc_tvalid && !s_axis_rc_tready;
        stood_beat    <= now_in;
        stood_refused <= !rst && s_refused_valid && !s_refused_ready;
        stood_tag     <= refused_tag;
        if (takes) begin
            in_tlp    <= !tlast;
            in_at     <= at + 5'd8;
            kept_dws  <= now_dws;
            kept_code <= now_code;
            if (tlast && now_code != TIMEOUT) in_number <= in_number + 4'd1;
            if (in_number == watched && now_code != TIMEOUT) begin
                if (!in_tlp) begin
                    w_asked  <= 1'b1;
                    w_dws    <= dws;
                    w_code   <= code;
                    w_status <= status;
                    w_vf     <= vf;
                end
                if (tlast) w_broken <= discontinue && now_code <= POISONED;
            end
        end
        looked <= look && look_tag[3:0] == watched;
        if (look && look_tag[3:0] == watched) begin
            w_first   <= next_current;
            w_current <= next_current;
            w_card    <= next_card;
        end else if (!next_current) w_current <= 1'b0;
        if (s_refused_valid && s_refused_ready) begin
            owed <= 1'b1;
            told <= s_refused;
        end else if (out && refusal) owed <= 1'b0;
        if (out && !refusal) begin
            out_tlp <= !hif_rx_cpl_eop;
            out_at  <= place + 5'd8;
            if (hif_rx_cpl_eop) out_number <= out_number + 4'd1;
        end
        if (rst) begin
            in_tlp     <= 1'b0;
            in_number  <= 4'd0;
            out_tlp    <= 1'b0;
            out_number <= 4'd0;
            owed       <= 1'b0;
            w_asked    <= 1'b0;
            w_broken   <= 1'b0;
        end
    end

    wire passes  = w_code <= POISONED;
    wire strange = !(w_code <= 3 || w_code == FLR);

    always_comb if (running && !rst) begin
        if (stood_in) assume (s_axis_rc_tvalid && (in_tlp ? now_in[13] == stood_beat[13] : now_in == stood_beat));
        if (stood_refused) assume (s_refused_valid && refused_tag == stood_tag);
        if (stood) assert (hif_rx_cpl_valid && now_out == stood_out);
        if (return_valid) assert (look);
        // A refused read: at once, and once.
        if (hif_rx_cpl_valid && refusal) begin
            assert (owed && !out_tlp && hif_rx_cpl_eop);
            assert (hif_rx_cpl_header[113:90] == told && said == UNSUPPORTED && hif_rx_cpl_header[73:64] == 0);
        end
        if (owed) assert (hif_rx_cpl_valid && refusal);
        if (out && !refusal) begin
            assert (out_number != in_number || in_tlp);
            // Only a completion that is discontinued begins within one: its abort, or none if its read is over.
            if (out_tlp && hif_rx_cpl_sop) assert (hif_rx_cpl_eop && (said == ABORT || tag == NONE));
            if (!out_tlp) assert (hif_rx_cpl_sop);
            if (hif_rx_cpl_sop) assert (number == out_number);
        end
        if (out && !refusal && out_number == watched) begin
            assert (w_asked);
            if (hif_rx_cpl_sop) begin
                if (strange || !w_first) assert (tag == NONE);
                else assert (tag == {8'd0, w_card} || !w_current);
                assert (tag == NONE || tag == {8'd0, w_card});
                assert (hif_rx_cpl_header[107:100] == {7'd0, w_vf});
                if (tag == NONE) begin
                    assert (hif_rx_cpl_eop);
                    assert (said == 0);
                    assert (hif_rx_cpl_header[73:64] == 0);
                end else if (said != 0) begin
                    assert (hif_rx_cpl_eop && hif_rx_cpl_header[73:64] == 0 && (!passes || w_broken));
                    assert (said == (w_code == BAD_STATUS && w_status != 0 ? w_status : ABORT));
                end else begin
                    assert (passes && hif_rx_cpl_header[73:64] == {5'd0, w_dws});
                    assert (hif_rx_cpl_header[89] == (w_code == POISONED));
                end
            end
            // Its words, to the last one.
            if (!hif_rx_cpl_sop || tag != NONE && said == 0) begin
                assert (passes && hif_rx_cpl_eop == (w_dws <= place + 5'd8));
                if (hif_rx_cpl_eop) assert (!w_broken);
            end
        end
        cover (out && hif_rx_cpl_eop && !hif_rx_cpl_sop && out_at == 16 && out_number == 1);
        cover (out && refusal && out_number == 2 && in_tlp);
        cover (out && out_tlp && hif_rx_cpl_sop);
    end

    generate
        for (genvar l = 0; l < 8; l = l + 1) begin : g_out
            localparam [4:0] LANE = l;
            wire [31:0] lane = hif_rx_cpl_data[l*32 +: 32];
            wire [4:0]  here = place + LANE;
            always_comb if (running && !rst && out && !refusal && out_number == watched) begin
                if (!hif_rx_cpl_sop || tag != NONE && said == 0)
                    assert (lane == (here < w_dws ? {23'd1, here + 5'd3, watched} : 32'd0));
            end
        end
    endgenerate
endmodule
