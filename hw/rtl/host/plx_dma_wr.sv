// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Descriptors and their data to posted writes on the host bus: split at 4 KiB and at the maximum
// payload, in order, without a gap within a write, and without one between writes. A descriptor begins
// and ends at any byte: its first and its last DW are written by byte enables. Data begin with the
// first DW of each write in bits 31:0, so after a split they are shifted by DWs. From a descriptor to
// its first beat: 3 cycles.

module plx_dma_wr (
    input  logic         clk,
    input  logic         rst,

    // Longest payload, 128 B << n; writes of a function without bus mastering are accepted and discarded;
    // `cfg_quiesce`: no new descriptor is accepted. No write is pending when idle.
    input  logic [2:0]   cfg_max_payload,
    input  logic [7:0]   cfg_bus_master,
    input  logic         cfg_quiesce,
    output logic         idle,

    // The writers are reset, while it is idle: words whose descriptor has not been accepted are forgotten.
    input  logic         clear,

    // Descriptors; an immediate is a DW.
    input  logic         s_desc_valid,
    output logic         s_desc_ready,
    input  logic [63:0]  s_desc_address,
    input  logic [12:0]  s_desc_length,
    input  logic [7:0]   s_desc_func,
    input  logic         s_desc_immediate,
    input  logic [31:0]  s_desc_immediate_data,

    // Their data, from the DW of the first byte on: the byte for address 4n + i is byte i of its DW. All
    // are available with the descriptor; the length implies `tlast`.
    input  logic         s_data_tvalid,
    output logic         s_data_tready,
    input  logic [255:0] s_data_tdata,

    // Posted writes.
    output logic         hif_wr_req_valid,
    input  logic         hif_wr_req_ready,
    output logic         hif_wr_req_sop,
    output logic         hif_wr_req_eop,
    output logic [127:0] hif_wr_req_header,
    output logic [255:0] hif_wr_req_data,

    // One cycle for each write sent, or discarded; for each descriptor whose last write the host bus has
    // accepted, or was discarded.
    output logic         inc_writes,
    output logic         inc_wr_discarded,
    output logic         ended
);
    // The current write.
    wire        tx_segment_valid, segment_last;
    wire [63:0] segment_address;
    wire [12:0] segment_length;
    wire [7:0]  func;
    wire        immediate;
    wire [31:0] immediate_data;
    wire        step, last;
    wire        cut_ready, cut_idle;

    // In whole DWs, with the bytes of the first and of the last one.
    wire [12:0] reach_bytes = s_desc_length + {11'd0, s_desc_address[1:0]};
    wire [10:0] whole_dws   = reach_bytes[12:2] + {10'd0, |reach_bytes[1:0]};
    wire [3:0]  head_be     = 4'hF << s_desc_address[1:0];
    wire [3:0]  tail_be     = 4'hF >> (2'd0 - reach_bytes[1:0]);
    wire [3:0]  first_be, last_be;

    plx_dma_cut #(.USER_W(49)) cut (
        .clk,
        .rst,
        .cfg_limit(cfg_max_payload),
        .s_valid(s_desc_valid && !cfg_quiesce),
        .s_ready(cut_ready),
        .s_address({s_desc_address[63:2], 2'd0}),
        .s_length({whole_dws, 2'd0}),
        .s_user({head_be, tail_be, s_desc_immediate_data, s_desc_immediate, s_desc_func}),
        .m_valid(tx_segment_valid),
        .m_ready(step && last),
        .m_address(segment_address),
        .m_length(segment_length),
        .m_last(segment_last),
        .m_user({first_be, last_be, immediate_data, immediate, func}),
        .idle(cut_idle)
    );

    // Words wait here until their descriptor, which takes a cycle more, has made its segment: the writer
    // is ahead by as many, so that the next write is known when one ends.
    wire         word_valid, word_ready;
    wire [255:0] word;

    /* verilator lint_off PINCONNECTEMPTY */
    plx_fifo_sync #(.WIDTH(256), .DEPTH(4)) words (
        .clk, .rst(rst || clear),
        .s_valid(s_data_tvalid), .s_ready(s_data_tready), .s_data(s_data_tdata),
        .m_valid(word_valid), .m_ready(word_ready), .m_data(word), .level()
    );
    /* verilator lint_on PINCONNECTEMPTY */

    assign s_desc_ready = cut_ready && !cfg_quiesce;
    assign idle         = cut_idle && !hif_wr_req_valid;

    // DWs of it that remain, whether they are one beat, and those in this beat. It is not the first of its
    // descriptor; the beat on the bus is the last of one.
    logic        begun, thrown, later, ends, rest_small;
    logic [10:0] rest;
    wire  [10:0] dws      = segment_length[12:2];
    wire  [10:0] left     = begun ? rest : dws;
    wire  [3:0]  now      = last ? left[3:0] : 4'd8;
    wire         throwing = begun ? thrown : !cfg_bus_master[func[2:0]];
    assign       last     = begun ? rest_small : dws[10:3] == 0 || dws == 11'd8;

    // The first `skip` DWs of the kept word have been sent; 0: none is kept.
    logic [2:0]   skip;
    logic [255:0] kept;
    wire  [2:0]   reach = skip + now[2:0];
    // A beat of 8 DWs needs the next word, also if one is kept; not by `now`, which comes late.
    wire          over  = {1'b0, skip} + left[3:0] > 4'd8;
    wire          reads = !immediate && (skip == 0 || !last || over);
    wire          free  = !hif_wr_req_valid || hif_wr_req_ready;

    assign ended      = ends && free;
    assign step       = tx_segment_valid && free && (!reads || word_valid);
    assign word_ready = tx_segment_valid && free && reads;

    // Bytes of the first and of the last DW of this write.
    wire         one_dw   = dws == 11'd1;
    wire [3:0]   begin_be = later ? 4'hF : first_be;
    wire [3:0]   end_be   = segment_last ? last_be : 4'hF;

    wire [255:0] low     = skip == 0 ? word : kept;
    wire [511:0] joined  = {word, low} >> {skip, 5'd0};
    wire [255:0] ones    = {256{1'b1}};
    wire [255:0] aligned = joined[255:0] & ~(ones << {now, 5'd0});

    always_ff @(posedge clk) begin
        if (free) hif_wr_req_valid <= step && !throwing;
        if (free) ends <= step && last && segment_last;
        if (step) begin
            begun <= !last;
            later <= last ? !segment_last : later;
            skip  <= immediate || last && segment_last ? 3'd0 : reach;
        end
        inc_writes       <= step && last && !throwing;
        inc_wr_discarded <= step && last && throwing;
        if (rst) begin
            hif_wr_req_valid <= 1'b0;
            begun            <= 1'b0;
            later            <= 1'b0;
            ends             <= 1'b0;
            skip             <= 3'd0;
            inc_writes       <= 1'b0;
            inc_wr_discarded <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        if (step) begin
            rest       <= left - 11'd8;
            rest_small <= left[10:4] == 0 || left == 11'd16;
            thrown     <= throwing;
        end
        if (step && reads) kept <= word;
        if (free) begin
            hif_wr_req_sop    <= !begun;
            hif_wr_req_eop    <= last;
            // No traffic class, attributes, tag; the bytes of a last DW are enabled only if that is not the
            // first (PCIe 4.0, 2.2.5).
            hif_wr_req_header <= '0;
            hif_wr_req_header[layouts_pkg::HIF_ADDRESS_AT +: 64] <= segment_address;
            hif_wr_req_header[layouts_pkg::HIF_LENGTH_AT +: 10]  <= dws[9:0];
            hif_wr_req_header[layouts_pkg::HIF_FIRST_BE_AT +: 4] <= one_dw ? begin_be & end_be : begin_be;
            hif_wr_req_header[layouts_pkg::HIF_LAST_BE_AT +: 4]  <= one_dw ? 4'h0 : end_be;
            hif_wr_req_header[layouts_pkg::HIF_FUNC_AT +: 8]     <= func;
            hif_wr_req_data   <= immediate ? {224'd0, immediate_data} : aligned;
        end
    end

    wire unused = &{1'b0, joined[511:256], segment_length[1:0]};
endmodule
