// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Empties the slots of plx_dma_rd: realigns words of the bus, which begin anywhere in a slot, to words of
// a descriptor, which begin with its first byte. A word a cycle, and one more after a descriptor whose
// last word of the bus has bytes for two.

module plx_dma_rd_out #(
    parameter W = 5  // bits of a tag
) (
    input  logic         clk,
    input  logic         rst,

    // A segment whose read has ended: accepted with its last word. `s_end` is its last byte in the slot.
    input  logic         s_valid,
    output logic         s_ready,
    input  logic [W-1:0] s_tag,
    input  logic [8:0]   s_at,
    input  logic [8:0]   s_end,
    input  logic         s_last,
    input  logic [7:0]   s_desc,
    input  logic [2:0]   s_error,

    // Memory of the slots; data are valid one cycle later, and stable.
    output logic         reads,
    output logic [W+3:0] read_at,
    input  logic [255:0] word,

    // Words of descriptors, with the status in the last one.
    output logic         m_data_tvalid,
    input  logic         m_data_tready,
    output logic [255:0] m_data_tdata,
    output logic [31:0]  m_data_tkeep,
    output logic         m_data_tlast,
    output logic         m_data_tuser,
    output logic [7:0]   m_status_tag,
    output logic [2:0]   m_status_error,
    output logic         busy
);
    // The word that is read: whether it begins a segment, a descriptor; the descriptor's first error.
    logic       inside_segment, inside_desc;
    logic [3:0] index;
    logic [2:0] failed;
    wire  [3:0] row   = inside_segment ? index : s_at[8:5];
    wire  [2:0] wrong = inside_desc && failed != 0 ? failed : s_error;
    wire        ends  = wrong != 0 || row == s_end[8:5];

    // The pipeline moves with the output, except for the second word of a bus word.
    logic       got, got_first, got_last, rest;
    logic [4:0] got_end, got_at, skip, rest_end;
    logic [2:0] got_wrong;
    logic [7:0] got_desc, rest_desc;
    wire        moves = !m_data_tvalid || m_data_tready;
    wire        step  = moves && !rest;

    assign reads   = step && s_valid;
    assign read_at = {s_tag, row};
    assign s_ready = step && ends;
    assign busy    = got || rest || m_data_tvalid;

    // Offset of this descriptor's words in those of the bus; whether the last gives one more.
    logic [255:0] kept;
    wire  [4:0]   shift = got_first && !rest ? got_at : skip;
    wire          more  = !got_first && got_end >= skip;
    wire  [255:0] low   = got_first && !rest ? word : kept;
    wire  [511:0] pair  = {rest ? 256'd0 : word, low} >> {shift, 3'd0};
    // Of a word that is not whole.
    wire  [4:0]   final_byte = (rest ? rest_end : got_end) - shift;
    wire          whole = !rest && (!got_last || more);
    wire          shows = rest || got && (got_wrong != 0 ? got_last : !got_first || got_last);

    always_ff @(posedge clk) begin
        if (moves) m_data_tvalid <= shows;
        if (moves && rest) rest <= 1'b0;
        if (step) begin
            got <= s_valid;
            if (got && got_last && got_wrong == 0 && more) rest <= 1'b1;
            if (s_valid) begin
                inside_segment <= !ends;
                if (ends) inside_desc <= !s_last;
                else inside_desc <= 1'b1;
            end
        end
        if (rst) begin
            m_data_tvalid  <= 1'b0;
            rest           <= 1'b0;
            got            <= 1'b0;
            inside_segment <= 1'b0;
            inside_desc    <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        if (step) begin
            index     <= row + 4'd1;
            got_first <= !inside_desc;
            got_last  <= ends && s_last;
            got_wrong <= wrong;
            got_at    <= s_at[4:0];
            got_end   <= s_end[4:0];
            got_desc  <= s_desc;
            rest_end  <= got_end;
            rest_desc <= got_desc;
            if (s_valid) failed <= wrong;
            if (got && got_first) skip <= got_at;
            if (got) kept <= word;
        end
        if (moves) begin
            m_data_tdata   <= pair[255:0];
            m_data_tkeep   <= whole || got_wrong != 0 && !rest ? 32'hFFFFFFFF : ~(32'hFFFFFFFE << final_byte);
            m_data_tlast   <= rest || got_last && (got_wrong != 0 || !more);
            m_data_tuser   <= !rest && got_wrong != 0;
            m_status_tag   <= rest ? rest_desc : got_desc;
            m_status_error <= rest ? 3'd0 : got_wrong;
        end
    end

    wire unused = &{1'b0, pair[511:256]};
endmodule
