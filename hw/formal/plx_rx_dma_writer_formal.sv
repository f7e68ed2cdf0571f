// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Payloads of any length and end, at any times, at the beginning or the end of 4 KiB (an abstraction
// replaces plx_rx_dma_ring). A write is in the 4 KiB of the translation in use and in the payload's space,
// is of at most 256 B, and has as many words as its length requires; nothing of a refused payload is
// written. A translation is in use until all of its writes were accepted. A payload committed
// as placed has each 16 B of its space written once, its record included, and no more.
// Each payload is committed once, with its status, after all of its writes were accepted. No more is
// taken from the ring than the payload has. Offers are stable until accepted.
// formal: aiger
// formal: bounded 13
// formal: cover 20
// mutant: (one_left && m_accepted) => one_left
// mutant: 16'd1 + {15'd0, |bound[3:0]} => {15'd0, |bound[3:0]}
// mutant: early && enough => early && held != 0
// mutant: rest ? !exceeds : fits => rest || fits
// mutant: closed && settled => closed && ended
// mutant: !trails && space == {11'd0, need} => 1'b0
// mutant: = too_long || missed || => = too_long ||
// mutant: && free && !elsewhere => && free
// mutant: && none_left; => ;
// mutant: && !(brim && beyond) => && 1'b1

module plx_rx_dma_writer_formal (
    input logic        clk,
    input logic        rst,
    input logic        s_axis_meta_tvalid,
    input logic [9:0]  bound,
    input logic        known,
    input logic        m_select_ready,
    input logic        s_select_valid,
    input logic [1:0]  select_status,
    input logic        s_select_bare,
    input logic [5:0]  stride,
    input logic [3:0]  offset,
    input logic        near,
    input logic        s_xlate_valid,
    input logic        s_xlate_hit,
    input logic        s_xlate_epoch,
    input logic [1:0]  frame,
    input logic        m_desc_ready,
    input logic        m_data_tready,
    input logic        m_accepted,
    input logic        m_commit_ready
);
    wire  [63:0]  now_cycle_ts = '0;
    wire          s_axis_payload_tvalid = 1'b0, s_axis_payload_tlast = 1'b0;
    wire  [63:0]  s_axis_payload_tdata = '0;
    wire  [7:0]   s_axis_payload_tkeep = '0;
    wire  [1:0]   s_axis_payload_tuser = '0;
    wire  [168:0] s_axis_meta_tdata = (169'(bound) << layouts_pkg::RX_META_LENGTH_AT)
                                    | (169'(known) << layouts_pkg::RX_META_LENGTH_KNOWN_AT);
    wire  [2:0]   s_select_status = {1'b0, select_status};
    // In the first or the last 256 B of 4 KiB.
    wire  [63:0]  s_select_address = {52'd0, {4{near}}, offset, 4'd0};
    wire  [31:0]  s_select_sequence = '0;
    wire  [15:0]  s_select_stride = {10'd0, stride};
    wire  [7:0]   s_select_func = '0;

    logic         s_axis_meta_tready, s_axis_payload_tready, m_select_valid, m_select_timestamp_valid, m_xlate_valid,
                  m_xlate_done, m_xlate_done_epoch, m_desc_valid, m_data_tvalid, m_data_tlast, m_commit_valid,
                  m_commit_timestamp_valid, idle;
    logic [6:0]   m_select_list, m_xlate_list;
    logic [15:0]  m_select_length, m_commit_length;
    logic [63:0]  m_select_timestamp_ns, m_xlate_address, m_desc_address, m_commit_timestamp_ns;
    logic [7:0]   m_xlate_func, m_desc_func;
    logic [12:0]  m_xlate_length, m_desc_length;
    logic [255:0] m_data_tdata;
    logic [3:0]   m_commit_status;
    logic [31:0]  m_commit_cycle_ts_mac, m_commit_cycle_ts_parsed, m_commit_cycle_ts_placed;

    wire  [63:0]  s_xlate_address = {50'd0, frame, m_xlate_address[11:0]};

    plx_rx_dma_writer #(.FRAMES(2)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb assume (rst == !running);

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire        \dut.ring.over ;
    (* hierconn *) wire [10:0] \dut.ring.got ;
    (* hierconn *) wire [1:0]  \dut.ring.user ;
    wire        over = \dut.ring.over ;
    wire [10:0] got  = \dut.ring.got ;
    wire [1:0]  user = \dut.ring.user ;

    // The current payload: its metadata, its space, in units of 16 B.
    logic        selecting = 0, placed = 0, refused = 0, bare, is_known;
    logic [15:0] length;
    logic [1:0]  why;
    logic        missed;
    logic [9:0]  place, space;
    logic [5:0]  pitch;

    // The translation in use: its 4 KiB, virtual and on the bus, and its epoch; cycles of the request.
    logic        used = 0, used_epoch;
    logic [1:0]  used_page, used_frame;
    logic [1:0]  standing = 0;
    wire  [6:0]  bound_units = (length[10:0] + 11'd15) >> 4;
    wire  [6:0]  end_units   = (got + 11'd15) >> 4;

    // Metadata inside, of which the first are the payload's.
    logic        known_0, known_1;
    logic [1:0]  metas = 0;
    wire         commits  = m_commit_valid && m_commit_ready;
    wire         meta_in  = s_axis_meta_tvalid && s_axis_meta_tready;

    always_ff @(posedge clk) if (running) begin
        metas <= metas + {1'b0, meta_in} - {1'b0, commits};
        if (commits) known_0 <= known_1;
        if (meta_in) begin
            if (metas == {1'b0, commits}) known_0 <= known;
            else known_1 <= known;
        end
        if (m_select_valid && m_select_ready) begin
            selecting <= 1'b1;
            length    <= m_select_length;
        end
        if (s_select_valid) begin
            selecting <= 1'b0;
            placed    <= select_status == 0;
            refused   <= select_status != 0;
            why       <= select_status;
            missed    <= 1'b0;
            bare      <= s_select_bare;
            pitch     <= stride;
            place     <= {2'd0, {4{near}}, offset};
            space     <= s_select_bare ? {4'd0, stride} : {3'd0, bound_units} + 10'd1;
        end
        standing <= !m_xlate_valid || s_xlate_valid ? 2'd0 : standing == 3 ? standing : standing + 1'b1;
        if (m_xlate_done) used <= 1'b0;
        if (s_xlate_valid) begin
            used       <= s_xlate_hit;
            used_page  <= m_xlate_address[13:12];
            used_frame <= frame;
            used_epoch <= s_xlate_epoch;
            if (!s_xlate_hit) begin
                placed  <= 1'b0;
                missed  <= 1'b1;
                refused <= 1'b1;
            end
        end
        if (commits) begin
            placed  <= 1'b0;
            refused <= 1'b0;
        end
    end

    always_comb begin
        assume (bound <= 600);
        // As many as FRAMES.
        if (metas == 2) assume (!s_axis_meta_tvalid);
        if (s_select_valid) assume (selecting);
        if (s_select_valid && s_select_bare) assume ({1'b0, stride} >= bound_units && stride != 0);
        // A response takes three cycles.
        if (s_xlate_valid) assume (m_xlate_valid && standing == 3);
        // A good payload of known length has that length.
        if (over && user == 0 && known_0 && metas != 0 && placed) assume (got == length[10:0]);
    end

    // The host bus accepts a descriptor, and with it or later its words; then reports it.
    logic       under_way = 0, ended;
    logic [2:0] untold = 0;
    logic [3:0] words;
    wire        takes = m_desc_valid && m_desc_ready;
    wire        word  = m_data_tvalid && m_data_tready;

    always_comb begin
        if (m_desc_ready) assume (!under_way);
        if (m_data_tready) assume (under_way || takes);
        if (m_accepted) assume (untold != 0);
    end

    wire  [3:0] of = m_desc_length[8:5] + {3'd0, m_desc_length[4]};
    wire  [3:0] left = under_way ? words : of;

    // Number of writes of a unit of the space.
    (* anyconst *) logic [6:0] one;
    logic [1:0] times = 0, chunks = 0;
    wire  [9:0] at   = {used_page, m_desc_address[11:4]} - place;
    wire  [9:0] many = {1'b0, m_desc_length[12:4]};
    wire        hits = {3'd0, one} >= at && {3'd0, one} < at + many;

    always_ff @(posedge clk) if (running) begin
        under_way <= (under_way || takes) && !(word && m_data_tlast);
        if (takes || word) words <= left - {3'd0, word};
        untold <= untold + {2'd0, word && m_data_tlast} - {2'd0, m_accepted};
        if (s_select_valid) chunks <= '0;
        else if (takes && chunks != 3) chunks <= chunks + 1'b1;
        if (s_select_valid) times <= '0;
        else if (takes && hits && times != 3) times <= times + 1'b1;
    end

    // Offers in the previous cycle.
    logic desc_stood = 0, data_stood = 0, commit_stood = 0, select_stood = 0, xlate_stood = 0, last_then;
    logic [63:0] asked_then;
    logic [9:0]  address_then;
    logic [12:0] length_then;
    logic [3:0]  outcome_then;
    always_ff @(posedge clk) begin
        desc_stood   <= running && m_desc_valid && !m_desc_ready;
        data_stood   <= running && m_data_tvalid && !m_data_tready;
        commit_stood <= running && m_commit_valid && !m_commit_ready;
        select_stood <= running && m_select_valid && !m_select_ready;
        xlate_stood  <= running && m_xlate_valid && !s_xlate_valid;
        asked_then   <= m_xlate_address;
        address_then <= m_desc_address[13:4];
        length_then  <= m_desc_length;
        last_then    <= m_data_tlast;
        outcome_then <= m_commit_status;
    end

    wire [6:0] total = bare ? {1'b0, pitch} : end_units + 7'd1;
    wire [3:0] truth = user == 1 ? 4'd8 : user == 2 ? 4'd6 : user == 3 ? 4'd7 : missed ? 4'd4 : why != 0 ? {2'd0, why}
                     : {5'd0, got} > length ? 4'd3 : 4'd0;

    always_comb if (running) begin
        if (m_select_valid) assert (!selecting && !placed && !refused && !used);
        if (m_xlate_valid && s_select_valid) begin
            assert (select_status == 0 && !used && m_xlate_address == s_select_address);
        end else if (m_xlate_valid) begin
            assert (placed && !used && m_xlate_address[63:14] == 0 && m_xlate_address[3:0] == 0);
            assert (m_xlate_address[13:4] >= place && m_xlate_address[13:4] - place < space);
        end
        if (m_xlate_valid) assert (m_xlate_length == 13'd4096 - {1'b0, m_xlate_address[11:0]});
        if (m_xlate_done) begin
            assert (used && m_xlate_done_epoch == used_epoch);
            assert (untold == {2'd0, m_accepted} && !under_way && !m_desc_valid && !m_data_tvalid);
        end
        if (m_desc_valid) begin
            assert (placed && used && m_desc_address[13:12] == used_frame && m_desc_length != 0 && m_desc_length <= 256 && m_desc_length[3:0] == 0);
            assert (m_desc_address[63:14] == 0 && m_desc_address[3:0] == 0);
            assert ({used_page, m_desc_address[11:4]} >= place && at + many <= space);
            assert ({2'd0, m_desc_address[11:4]} + many <= 10'd256);
        end
        if (word) assert (m_data_tlast == (left == 1));
        if (m_data_tvalid) assert (under_way || m_desc_valid);
        if (m_commit_valid) begin
            assert (over && (placed || refused) && untold == {2'd0, m_accepted} && !under_way && !m_desc_valid
                    && !m_data_tvalid);
            assert (m_commit_status == truth);
            if (m_commit_status == 0) begin
                assert (m_commit_length == {5'd0, got});
                assert (times == {1'b0, one < total});
            end
        end
        if (desc_stood) assert (m_desc_valid && m_desc_address[13:4] == address_then && m_desc_length == length_then);
        if (data_stood) assert (m_data_tvalid && m_data_tlast == last_then);
        if (commit_stood) assert (m_commit_valid && m_commit_status == outcome_then);
        if (select_stood) assert (m_select_valid);
        if (xlate_stood) assert (m_xlate_valid && m_xlate_address == asked_then);
        // A record after its payload; a payload in three chunks; one that was longer than announced.
        cover (commits && m_commit_status == 0 && !known_0 && !bare && got > 240);
        cover (commits && m_commit_status == 0 && known_0 && !bare && chunks == 3);
        cover (commits && m_commit_status == 3 && times == 1);
        // In two pages, and back to the first for its record.
        cover (m_xlate_valid && m_xlate_address[13:12] == 1);
    end
endmodule

// Guarantees of plx_rx_dma_ring: units of the first payload, in order, then its end.
module plx_rx_dma_ring #(
    parameter FRAMES = 8,
    parameter UNITS  = 64
) (
    input  logic         clk, rst, s_axis_payload_tvalid, s_axis_payload_tlast, discard, next, load, use_0, use_1,
    output logic         s_axis_payload_tready, ended,
    input  logic [63:0]  s_axis_payload_tdata,
    input  logic [7:0]   s_axis_payload_tkeep,
    input  logic [1:0]   s_axis_payload_tuser,
    output logic [6:0]   held,
    output logic [127:0] unit_0, unit_1,
    output logic [15:0]  gathered, end_bytes,
    output logic [1:0]   end_user
);
    // Of the first payload: bytes so far, units consumed; of the incoming payload, and after it.
    logic [10:0] got;
    logic [6:0]  used;
    logic        over;
    logic [1:0]  user;
    (* anyseq *) wire [9:0]  comes;
    (* anyseq *) wire        ends;
    (* anyseq *) wire [1:0]  how;
    (* anyseq *) wire [15:0] others;

    wire [6:0] units = over ? (got + 11'd15) >> 4 : got >> 4;
    wire [6:0] consumed = load ? {6'd0, use_0} + {6'd0, use_1} : 7'd0;

    always_comb begin
        assume (comes <= 512 && units - used <= 64);
        assume (got <= 1000);
        if (!rst) begin
            assert (consumed <= units - used && (consumed == 0 || !discard));
            if (next) assert (over && (discard || consumed == units - used));
        end
    end

    always_ff @(posedge clk) begin
        if (rst || next) begin
            got  <= rst ? 11'd0 : {1'b0, comes};
            over <= !rst && ends;
            used <= '0;
            user <= how;
        end else begin
            if (!over) begin
                got  <= got + {1'b0, comes};
                over <= ends;
            end
            used <= discard ? units : used + consumed;
        end
    end

    assign s_axis_payload_tready = 1'b1;
    assign held      = units - used;
    assign gathered  = over ? others : {5'd0, got};
    assign ended     = over;
    assign end_bytes = {5'd0, got};
    assign end_user  = user;
    assign {unit_0, unit_1} = '0;
endmodule
