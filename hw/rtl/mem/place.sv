// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Writes the payloads of one port to their lists. A ring gathers words while the address is
// requested; gathered words leave in chunks, which end at multiples of 256 B of their address, so
// that a payload is written while its tail is still on the wire. A payload's record is written with
// its first chunk if its length is known by then, otherwise after its last one. After the host bus
// has accepted the last chunk the payload is committed; a bad one is committed as bad, and its
// bytes stay beyond the list's write pointer. One payload at a time has an address; the ring gathers
// the next ones meanwhile.

module place #(
    parameter PORT   = 0,  // 0 to 3
    parameter FRAMES = 8   // payloads that may be gathered or written at a time, a power of two
) (
    input  logic         clk,
    input  logic         rst,
    input  logic [63:0]  now_stamp,

    // Payloads, and their metadata (RX_META). tuser: 0 good, 1 bad, 2 malformed, 3 bad version.
    input  logic         s_axis_meta_tvalid,
    output logic         s_axis_meta_tready,
    input  logic [168:0] s_axis_meta_tdata,
    input  logic         s_axis_payload_tvalid,
    output logic         s_axis_payload_tready,
    input  logic [63:0]  s_axis_payload_tdata,
    input  logic [7:0]   s_axis_payload_tkeep,
    input  logic         s_axis_payload_tlast,
    input  logic [1:0]   s_axis_payload_tuser,

    // Address request.
    output logic         m_select_valid,
    input  logic         m_select_ready,
    output logic [6:0]   m_select_list,
    output logic [15:0]  m_select_length,
    output logic [63:0]  m_select_wire,
    output logic         m_select_wire_valid,
    input  logic         s_select_valid,
    input  logic [2:0]   s_select_outcome,
    input  logic [63:0]  s_select_address,
    input  logic [31:0]  s_select_sequence,
    input  logic         s_select_bare,
    input  logic [15:0]  s_select_stride,
    input  logic [7:0]   s_select_func,

    // Translation to a bus address.
    output logic         m_tlb_valid,
    input  logic         m_tlb_ready,
    output logic [63:0]  m_tlb_address,
    output logic [20:0]  m_tlb_length,
    output logic [7:0]   m_tlb_func,
    output logic [6:0]   m_tlb_list,
    input  logic         s_tlb_valid,
    input  logic         s_tlb_hit,
    input  logic [63:0]  s_tlb_address,

    // Writes to the host, up to 256 B each; `m_taken`: the last word of one was accepted.
    output logic         m_desc_valid,
    input  logic         m_desc_ready,
    output logic [63:0]  m_desc_address,
    output logic [12:0]  m_desc_length,
    output logic [7:0]   m_desc_func,
    output logic         m_data_tvalid,
    input  logic         m_data_tready,
    output logic [255:0] m_data_tdata,
    output logic         m_data_tlast,
    input  logic         m_taken,

    // Outcome.
    output logic         m_commit_valid,
    input  logic         m_commit_ready,
    output logic [6:0]   m_commit_list,
    output logic [3:0]   m_commit_outcome,
    output logic [15:0]  m_commit_length,
    output logic [63:0]  m_commit_wire,
    output logic         m_commit_wire_valid,
    output logic [31:0]  m_commit_stamp_mac,
    output logic [31:0]  m_commit_stamp_parsed,
    output logic [31:0]  m_commit_stamp_placed,

    // No payload is in this module.
    output logic         idle
);
    localparam META_W = layouts_pkg::RX_META_W;
    localparam SELECT = 3'd0, ANSWER = 3'd1, TRANSLATE = 3'd2, BUS = 3'd3, WRITE = 3'd4, THROW = 3'd5, COMMIT = 3'd6;

    generate
        if (PORT < 0 || PORT > 3) PORT_must_be_0_to_3 parameter_error ();
    endgenerate

    // Metadata of payloads that have begun, the current one first.
    logic              meta_valid;
    logic [META_W-1:0] meta;
    // It is complete.
    wire               next = m_commit_valid && m_commit_ready;

    /* verilator lint_off PINCONNECTEMPTY */
    fifo_sync #(.WIDTH(META_W), .DEPTH(FRAMES)) metas (
        .clk, .rst,
        .s_valid(s_axis_meta_tvalid), .s_ready(s_axis_meta_tready), .s_data(s_axis_meta_tdata),
        .m_valid(meta_valid), .m_ready(next), .m_data(meta), .level()
    );
    /* verilator lint_on PINCONNECTEMPTY */

    wire [15:0] bound       = meta[layouts_pkg::RX_META_LENGTH_AT +: 16];
    wire        known       = meta[layouts_pkg::RX_META_LENGTH_KNOWN_AT];
    wire [6:0]  list        = {PORT[1:0], meta[layouts_pkg::RX_META_STREAM_AT +: 5]};
    wire [63:0] stamp       = meta[layouts_pkg::RX_META_WIRE_AT +: 64];
    wire        stamp_valid = meta[layouts_pkg::RX_META_WIRE_VALID_AT];
    wire [15:0] source_port = meta[layouts_pkg::RX_META_SOURCE_PORT_AT +: 16];

    // Gathered words, in units of 16 B, and the ends of payloads.
    logic [6:0]   held, consumed;
    logic [127:0] unit_0, unit_1;
    logic         gathers_more, ended;
    logic [15:0]  gathered, end_bytes;
    logic [1:0]   end_user;
    wire          discard = state == THROW;

    place_ring #(.FRAMES(FRAMES)) ring (
        .clk, .rst,
        .s_axis_payload_tvalid, .s_axis_payload_tready, .s_axis_payload_tdata, .s_axis_payload_tkeep,
        .s_axis_payload_tlast, .s_axis_payload_tuser,
        .held, .unit_0, .unit_1, .consumed, .discard, .gathered, .more(gathers_more),
        .ended, .end_bytes, .end_user, .next
    );

    // The payload that has an address.
    logic [2:0]  state;
    logic [63:0] address;
    logic [31:0] sequence_number, placed;
    logic        bare;
    logic [15:0] stride;
    logic [7:0]  func, on_the_way;
    logic [3:0]  outcome;

    wire [16:0] bound_16 = ({1'b0, bound} + 17'd15) >> 4;

    assign m_select_valid      = state == SELECT && meta_valid;
    assign m_select_list       = list;
    assign m_select_length     = bound;
    assign m_select_wire       = stamp;
    assign m_select_wire_valid = stamp_valid;

    assign m_tlb_valid   = state == TRANSLATE;
    assign m_tlb_address = address;
    assign m_tlb_length  = bare ? {1'b0, stride, 4'd0} : {bound_16 + 17'd1, 4'd0};
    assign m_tlb_func    = func;
    assign m_tlb_list    = list;

    // Its length, once known: in units, with the record if that leads, or the stride.
    logic        begun, trails;
    logic [59:0] at;
    logic [15:0] done, read;
    wire         sure     = ended || known;
    wire [15:0]  length   = ended ? end_bytes : bound;
    wire [16:0]  units    = ({1'b0, length} + 17'd15) >> 4;
    wire         leads    = !bare && !trails;
    wire [15:0]  total    = bare ? stride : units[15:0] + {15'd0, leads};
    wire [15:0]  left     = total - done;
    wire [15:0]  unread   = units[15:0] - read;
    wire         too_long = ended ? end_bytes > bound : gathers_more && gathered > bound;
    wire         lost     = too_long || (ended && end_user != 0);

    // A chunk: to the next multiple of 256 B, or to the end; all of it if one is enough.
    wire [4:0]   reach    = 5'd16 - {1'b0, at[3:0]};
    wire         whole    = sure && done == 0 && total <= 16'd16;
    wire         to_end   = whole || (sure && left <= {11'd0, reach});
    wire [4:0]   want     = to_end ? left[4:0] : reach;
    wire         record   = leads && done == 0;
    wire [4:0]   need_all = want - {4'd0, record};
    wire [4:0]   need     = sure && unread < {11'd0, need_all} ? unread[4:0] : need_all;
    // Length unknown: an upper bound.
    wire         allowed  = sure || {1'b0, done} + {12'd0, want} <= (bare ? {1'b0, stride} : bound_16);
    wire         there    = to_end ? ended : held >= {2'd0, need};

    logic [4:0]  units_left;
    wire         free     = !m_data_tvalid || m_data_tready;
    wire         can_cut  = state == WRITE && !lost && units_left == 0 && free && (!m_desc_valid || m_desc_ready);
    wire         finished = sure && ended && left == 0;
    wire         cut      = can_cut && !finished && there && allowed && (bare || trails || sure);
    // The record is written last.
    wire         cut_last = can_cut && finished && trails && !begun;
    // A chunk is complete before the length is known: the record's space is left out.
    wire         skip     = state == WRITE && !lost && !sure && !bare && !trails && held >= 7'd16;

    // The next 32 B of a chunk.
    wire         load     = cut || cut_last || (units_left != 0 && free);
    wire [4:0]   of       = cut ? want : cut_last ? 5'd1 : units_left;
    wire         first_is_record = (cut && record) || cut_last;
    wire         have_0   = !sure || unread != 0;
    wire         have_1   = !sure || unread > 16'd1;
    wire         two      = of > 5'd1;
    wire         use_0    = first_is_record ? two && have_0 : have_0;
    wire         use_1    = !first_is_record && two && have_1;

    wire [127:0] the_record = {stamp_valid ? stamp[31:0] : 32'd0, sequence_number, 15'd0, stamp_valid, source_port,
                               16'd0, length};
    wire [127:0] low  = first_is_record ? the_record : use_0 ? unit_0 : 128'd0;
    wire [127:0] high = !two ? 128'd0 : first_is_record ? (use_0 ? unit_0 : 128'd0) : use_1 ? unit_1 : 128'd0;

    assign consumed = load && !cut_last ? {6'd0, use_0} + {6'd0, use_1} : 7'd0;

    always_ff @(posedge clk) begin
        if (m_desc_ready) m_desc_valid <= 1'b0;
        if (cut || cut_last) m_desc_valid <= 1'b1;
        if (free) m_data_tvalid <= load;
        if (load) units_left <= two ? of - 5'd2 : 5'd0;
        if (rst) begin
            m_desc_valid  <= 1'b0;
            m_data_tvalid <= 1'b0;
            units_left    <= '0;
        end
    end

    always_ff @(posedge clk) begin
        if (load) begin
            m_data_tdata <= {high, low};
            m_data_tlast <= of <= 5'd2;
        end
        if (cut || cut_last) begin
            m_desc_address <= cut_last ? address : {at, 4'd0};
            m_desc_length  <= cut_last ? 13'd16 : {4'd0, want, 4'd0};
            m_desc_func    <= func;
        end
    end

    // Units of it that are written.
    always_ff @(posedge clk) begin
        if (s_tlb_valid && state == BUS) begin
            at     <= s_tlb_address[63:4];
            done   <= '0;
            read   <= '0;
            trails <= 1'b0;
            begun  <= 1'b0;
        end else begin
            if (cut) begin
                at   <= at + {55'd0, want};
                done <= done + {11'd0, want};
            end
            read <= read + {9'd0, consumed};
            if (skip) begin
                at     <= at + 1'b1;
                trails <= 1'b1;
            end
            if (cut_last) begun <= 1'b1;
        end
    end

    wire written = finished && units_left == 0 && (!trails || begun);

    always_ff @(posedge clk) begin
        on_the_way <= on_the_way + {7'd0, cut || cut_last} - {7'd0, m_taken};
        case (state)
            SELECT: if (m_select_valid && m_select_ready) state <= ANSWER;
            ANSWER: if (s_select_valid) state <= s_select_outcome == 0 ? TRANSLATE : THROW;
            TRANSLATE: if (m_tlb_ready) state <= BUS;
            BUS: if (s_tlb_valid) state <= s_tlb_hit ? WRITE : THROW;
            WRITE: if (lost && units_left == 0) state <= THROW;
                   else if (written) state <= COMMIT;
            THROW: if (ended) state <= COMMIT;
            default: if (next) state <= SELECT;
        endcase
        if (rst) begin
            state      <= SELECT;
            on_the_way <= '0;
        end
    end

    always_ff @(posedge clk) begin
        if (s_select_valid && state == ANSWER) begin
            outcome         <= {1'b0, s_select_outcome};
            address         <= s_select_address;
            sequence_number <= s_select_sequence;
            bare            <= s_select_bare;
            stride          <= s_select_stride;
            func            <= s_select_func;
            placed          <= now_stamp[31:0];
        end
        if (s_tlb_valid && state == BUS) begin
            address <= s_tlb_address;
            if (!s_tlb_hit) outcome <= 4'd4;
        end
        if (m_taken) placed <= now_stamp[31:0];
    end

    // An upstream error has priority over a missing address.
    assign m_commit_valid        = state == COMMIT && on_the_way == 0;
    assign m_commit_list         = list;
    assign m_commit_outcome      = end_user == 2'd1 ? 4'd8 : end_user == 2'd2 ? 4'd6 : end_user == 2'd3 ? 4'd7
                                 : outcome == 0 && end_bytes > bound ? 4'd3 : outcome;
    assign m_commit_length       = end_bytes;
    assign m_commit_wire         = stamp;
    assign m_commit_wire_valid   = stamp_valid;
    assign m_commit_stamp_mac    = meta[layouts_pkg::RX_META_STAMP_MAC_AT +: 32];
    assign m_commit_stamp_parsed = meta[layouts_pkg::RX_META_STAMP_PARSED_AT +: 32];
    assign m_commit_stamp_placed = placed;

    assign idle = !meta_valid;

    wire unused = &{1'b0, now_stamp[63:32], meta[layouts_pkg::RX_META_FORM_AT +: 2], units[16]};
endmodule
