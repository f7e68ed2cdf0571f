// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Writes and reads of the host bus to requests of the block (PG213, "Requester Request Interface"): a
// descriptor of 4 DWs, and the data of a write behind it. Writes and reads take turns, for a whole TLP
// each. A read waits for a tag and for a credit that no other read in the block needs, and writes
// pass it meanwhile, so the block never holds a write behind a read that has no credit. What a function
// without bus mastering sends is dropped, and such a read is answered as an unsupported request: the reads of all
// functions end in order, and would wait for its timeout. One is kept until then, without a tag or a credit; the
// reads behind it wait. Latency 1 cycle.

module plx_pcie_rq #(
    parameter W        = 5,  // bits of a tag at the block
    parameter MOST     = 12, // reads in the block that have not left it: fewer than its queue holds, at most 15
    parameter FIRST_VF = 4   // number of the first virtual function at the block
) (
    input  logic          clk,
    input  logic          rst,

    // The card is reset: it does not know its reads any more.
    input  logic          flush,

    // No TLP begins; none is under way when idle. Bus mastering of each function is on.
    input  logic          hold,
    output logic          idle,
    input  logic [7:0]    bus_master,

    // Posted writes.
    input  logic          hif_wr_req_valid,
    output logic          hif_wr_req_ready,
    input  logic          hif_wr_req_sop,
    input  logic          hif_wr_req_eop,
    input  logic [127:0]  hif_wr_req_header,
    input  logic [255:0]  hif_wr_req_data,

    // Reads, and a tag for each.
    input  logic          hif_rd_req_valid,
    output logic          hif_rd_req_ready,
    input  logic [127:0]  hif_rd_req_header,
    input  logic          s_tag_valid,
    output logic          s_tag_ready,
    input  logic [W-1:0]  s_tag,

    // A read that is refused: tag, function, attributes and traffic class, for its completion.
    output logic          m_refused_valid,
    input  logic          m_refused_ready,
    output logic [23:0]   m_refused,

    // Requests to the block.
    output logic          m_axis_rq_tvalid,
    input  logic          m_axis_rq_tready,
    output logic [255:0]  m_axis_rq_tdata,
    output logic [7:0]    m_axis_rq_tkeep,
    output logic [61:0]   m_axis_rq_tuser,
    output logic          m_axis_rq_tlast,

    // Sequence numbers of requests that have left the block; non-posted credits of the link.
    input  logic [5:0]    pcie_rq_seq_num0,
    input  logic          pcie_rq_seq_num_vld0,
    input  logic [5:0]    pcie_rq_seq_num1,
    input  logic          pcie_rq_seq_num_vld1,
    input  logic [7:0]    cfg_fc_nph,

    // One cycle for each dropped request.
    output logic          inc_rq_dropped
);
    localparam [3:0] READ = 0, WRITE = 1;
    // Sequence numbers: a read has its function in the lower bits.
    localparam [5:0] A_WRITE = 0;
    localparam [2:0] A_READ = 1;

    // ---- Reads in the block ------------------------------------------------------------------------

    // Those that have not left it, of all functions and of each, and whether one more may enter. The block
    // forgets the reads of a function without bus mastering; a scan finds them, of one function in each cycle.
    logic [4:0]  pending, gone;
    logic [31:0] count;
    logic [7:0]  sent, left_0, left_1, forget, forgets;
    logic [2:0]  timeout_scan;
    logic [3:0]  forgotten;
    logic        took_0, took_1, may_read;
    wire         sends_read;
    wire  [2:0]  read_func;
    wire  [7:0]  accept_0, accept_1;
    wire  [31:0] lapsing;

    generate
        for (genvar f = 0; f < 8; f = f + 1) begin : g_count
            localparam [2:0] FUNC = f;
            wire [3:0] now = count[f*4 +: 4];
            assign accept_0[f] = left_0[f] && now != 0 && !forgets[f];
            assign accept_1[f] = left_1[f] && now > {3'd0, accept_0[f]} && !forgets[f];
            assign lapsing[f*4 +: 4] = forgets[f] ? now : 4'd0;
            // Up or down: by one, or by two at once.
            wire       by_two = accept_0[f] && accept_1[f];
            wire       by_one = accept_0[f] != accept_1[f];
            wire [3:0] step   = by_two ? sent[f] ? 4'd15 : 4'd14 : by_one ? sent[f] ? 4'd0 : 4'd15 : {3'd0, sent[f]};
            always_ff @(posedge clk) begin
                sent[f]         <= !rst && sends_read && read_func == FUNC;
                left_0[f]       <= !rst && pcie_rq_seq_num_vld0 && pcie_rq_seq_num0 == {A_READ, FUNC};
                left_1[f]       <= !rst && pcie_rq_seq_num_vld1 && pcie_rq_seq_num1 == {A_READ, FUNC};
                count[f*4 +: 4] <= rst ? 4'd0 : (forgets[f] ? 4'd0 : now) + step;
                forget[f]       <= !rst && (!bus_master[f] || forget[f] && !forgets[f]);
                forgets[f]      <= !rst && forget[f] && timeout_scan == FUNC;
            end
        end
    endgenerate

    always_ff @(posedge clk) begin
        timeout_scan <= timeout_scan + 3'd1;
        took_0       <= |accept_0;
        took_1       <= |accept_1;
        forgotten <= lapsing[3:0] | lapsing[7:4] | lapsing[11:8] | lapsing[15:12] | lapsing[19:16] | lapsing[23:20]
                     | lapsing[27:24] | lapsing[31:28];
        gone      <= {1'b0, forgotten} + {4'd0, took_0} + {4'd0, took_1};
        pending   <= pending + {4'd0, sends_read} - gone;
        // `pending` has a read a cycle after it was sent.
        may_read  <= {3'd0, pending} < cfg_fc_nph && pending < MOST && !sends_read;
        if (rst) begin
            timeout_scan <= 3'd0;
            took_0       <= 1'b0;
            took_1       <= 1'b0;
            forgotten <= 4'd0;
            gone      <= 5'd0;
            pending   <= 5'd0;
            may_read  <= 1'b0;
        end
    end

    // ---- Whose turn it is --------------------------------------------------------------------------

    // Inside a write, that is sent or dropped; the last TLP was a write. A write yields to a read that could have been
    // sent, or refused, in the cycle before: a register, as the card's long paths begin with the grant of a write.
    logic in_tlp, drops, turn, yields;
    wire  room;

    wire [2:0] write_func = hif_wr_req_header[layouts_pkg::HIF_FUNC_AT +: 3];
    wire       read_on    = bus_master[read_func];
    wire       write_on   = bus_master[write_func];
    assign     read_func  = hif_rd_req_header[layouts_pkg::HIF_FUNC_AT +: 3];

    // `reads`: if a TLP is sent, or refused, it is a read.
    wire can_read     = hif_rd_req_valid && (read_on ? s_tag_valid && may_read : !m_refused_valid);
    wire grants_write = !in_tlp && !hold && !yields;
    wire reads        = !in_tlp && (yields || !hif_wr_req_valid);
    wire picks_write  = grants_write && hif_wr_req_valid;
    wire picks_read   = reads && !hold && can_read;
    wire begins       = picks_write && room;
    wire begins_read  = picks_read && room;

    // Of a write: DWs that are not sent, and half of its last word, which is not sent; whether more than that is left.
    logic [10:0]  left;
    logic [127:0] kept;
    logic         needs;
    wire [9:0]    write_length = hif_wr_req_header[layouts_pkg::HIF_LENGTH_AT +: 10];
    wire [10:0]   dws    = {write_length == 0, write_length};
    wire          short  = dws[10:3] == 0 && dws[2:0] <= 3'd4;
    wire          last   = left[10:3] == 0 || left == 11'd8;
    wire          follows = in_tlp && !drops && (!needs || hif_wr_req_valid);

    assign hif_rd_req_ready = begins_read;
    assign s_tag_ready      = begins_read && read_on;
    assign sends_read       = s_tag_ready;
    wire   refuses          = begins_read && !read_on;
    assign hif_wr_req_ready = room && (in_tlp ? drops || needs : grants_write);
    assign idle             = !in_tlp && !m_axis_rq_tvalid;

    wire accepted = hif_wr_req_valid && hif_wr_req_ready;

    always_ff @(posedge clk) begin
        if (begins) begin
            drops  <= !write_on;
            in_tlp <= write_on ? !short : !hif_wr_req_eop;
        end else if (in_tlp && room) begin
            if (drops ? accepted && hif_wr_req_eop : follows && last) in_tlp <= 1'b0;
        end
        if (begins_read) turn <= 1'b0;
        if (begins) turn <= 1'b1;
        yields         <= can_read && !begins_read && (turn || begins);
        inc_rq_dropped <= begins && !write_on || refuses;
        if (m_refused_ready) m_refused_valid <= 1'b0;
        if (refuses) begin
            m_refused_valid <= 1'b1;
            m_refused       <= hif_rd_req_header[layouts_pkg::HIF_TAG_AT +: 24];
        end
        if (rst) begin
            in_tlp         <= 1'b0;
            turn           <= 1'b0;
            yields         <= 1'b0;
            inc_rq_dropped <= 1'b0;
        end
        if (rst || flush) m_refused_valid <= 1'b0;
    end

    always_ff @(posedge clk) begin
        if (begins) begin
            left  <= dws - 11'd4;
            needs <= dws > 11'd8;
        end else if (follows && room) begin
            left  <= left - 11'd8;
            needs <= left > 11'd12;
        end
        if (accepted) kept <= hif_wr_req_data[255:128];
    end

    // ---- To the block ------------------------------------------------------------------------------

    wire [127:0] header = reads ? hif_rd_req_header : hif_wr_req_header;
    wire [9:0]   length = header[layouts_pkg::HIF_LENGTH_AT +: 10];
    wire [2:0]   attr   = header[layouts_pkg::HIF_ATTRIBUTES_AT +: 3];
    wire [2:0]   tc     = header[layouts_pkg::HIF_TRAFFIC_CLASS_AT +: 3];
    wire [2:0]   func   = header[layouts_pkg::HIF_FUNC_AT +: 3];
    wire [7:0]   tag    = reads ? {{(8 - W) {1'b0}}, s_tag} : 8'd0;
    wire [5:0]   number = reads ? {A_READ, read_func} : A_WRITE;
    wire [3:0]   kind   = reads ? READ : WRITE;

    // The block's number of the function: plx_pcie_func, reversed.
    localparam [7:0] BEFORE_VFS = FIRST_VF - 1;
    wire [7:0]   block_func = func == 0 ? 8'd0 : {5'd0, func} + BEFORE_VFS;

    // The block inserts its bus number: the enable of the requester id, bit 120, is 0.
    wire [127:0] descriptor = {1'b0, attr, tc, 1'b0, 16'd0, tag, 8'd0, block_func, 1'b0, kind, length == 0, length,
                               header[layouts_pkg::HIF_ADDRESS_AT + 2 +: 62], 2'b00};
    wire [127:0] second = hif_wr_req_data[127:0] & {128{in_tlp ? needs : !reads}};
    wire [255:0] data   = in_tlp ? {second, kept} : {second, descriptor};
    wire [7:0]   few    = in_tlp ? 8'hFF >> (3'd0 - left[2:0]) : {~(4'hF << dws[2:0]), 4'hF};
    wire [7:0]   keep   = reads ? 8'h0F : (in_tlp ? last : short) ? few : 8'hFF;
    wire         ends   = reads || (in_tlp ? last : short);
    wire [7:0]   bytes  = in_tlp ? 8'd0 : header[layouts_pkg::HIF_FIRST_BE_AT +: 8];
    wire         sends  = follows || picks_read && read_on || picks_write && write_on;
    wire [7:0]   out_bytes;
    wire [5:0]   out_number;

    plx_skid #(.WIDTH(279)) slice (
        .clk,
        .rst,
        .s_valid(sends),
        .s_ready(room),
        .s_data({number, bytes, ends, keep, data}),
        .m_valid(m_axis_rq_tvalid),
        .m_ready(m_axis_rq_tready),
        .m_data({out_number, out_bytes, m_axis_rq_tlast, m_axis_rq_tkeep, m_axis_rq_tdata})
    );

    assign m_axis_rq_tuser = {out_number[5:4], 32'd0, out_number[3:0], 12'd0, 4'd0, out_bytes};

    wire unused = &{1'b0, header, hif_wr_req_sop};
endmodule
