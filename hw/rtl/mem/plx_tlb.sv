// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Virtual to bus addresses. An access is allowed if one entry covers all of its bytes and belongs
// to the requesting function; any other access is a fault: it is counted, and reported to software
// by an event. Of several entries that cover an access, the lowest counts.
//
//   cycle 0  a request is accepted
//   cycle 1  all entries compare
//   cycle 2  the lowest of the matching entries is found
//   cycle 3  its page is read: the response

module plx_tlb #(
    parameter PORTS        = 4,    // requesters
    parameter ENTRIES      = 128,  // pages, a power of two
    parameter EVENT_QUEUES = 8,    // event queues of the card
    parameter FAULTS       = 8     // faults that wait for their event, a power of two
) (
    input  logic                    clk,
    input  logic                    rst,

    // Registers: an event for each fault, and its queue.
    input  logic                    cfg_event_fault,
    input  logic [2:0]              cfg_queue,

    // Entries: 32 bytes each.
    input  logic                    win_entry_valid,
    output logic                    win_entry_ready,
    input  logic                    win_write,
    input  logic [12:0]             win_addr,
    input  logic [31:0]             win_wdata,
    input  logic [3:0]              win_wstrb,
    output logic [31:0]             win_entry_rdata,

    // The write: its first byte, its bytes (1 and more), its list and function.
    input  logic [PORTS-1:0]        s_req_valid,
    output logic [PORTS-1:0]        s_req_ready,
    input  logic [PORTS*64-1:0]     s_req_address,
    input  logic [PORTS*21-1:0]     s_req_length,
    input  logic [PORTS*8-1:0]      s_req_func,
    input  logic [PORTS*7-1:0]      s_req_list,

    // The response, three cycles after the request was accepted.
    output logic [PORTS-1:0]        m_rsp_valid,
    output logic                    m_rsp_hit,
    output logic [63:0]             m_rsp_address,

    // An event for a fault, to a queue with room.
    input  logic [63:0]             now_stamp,
    input  logic [EVENT_QUEUES-1:0] room,
    output logic                    m_event_valid,
    input  logic                    m_event_ready,
    output logic [2:0]              m_event_queue,
    output logic [511:0]            m_event_record,

    // Counters.
    output logic                    inc_faults,
    output logic                    inc_events_lost
);
    localparam EW = $clog2(ENTRIES);
    localparam FAULT_W = 32 + 64 + 8 + 2 + 21 + 7;

    generate
        if (PORTS < 1) PORTS_must_be_at_least_1 parameter_error ();
        if (ENTRIES < 2 || ENTRIES > 128 || ENTRIES != 1 << EW)
            ENTRIES_must_be_a_power_of_two_from_2_to_128 parameter_error ();
        if (EVENT_QUEUES < 1 || EVENT_QUEUES > 8) EVENT_QUEUES_must_be_1_to_8 parameter_error ();
    endgenerate

    // Cycle 0: one request.
    logic [PORTS-1:0] grant, asked;
    logic [63:0]      chosen_address, address;
    logic [20:0]      chosen_length, length;
    logic [7:0]       chosen_func, func;
    logic [6:0]       chosen_list, list;

    // The arbiter needs two requesters.
    localparam ASKERS = PORTS < 2 ? 2 : PORTS;
    logic [ASKERS-1:0] turn;

    plx_arb_rr #(.N(ASKERS)) arbiter (.clk, .rst, .request(ASKERS'(s_req_valid)), .grant(turn), .done(1'b1));

    assign grant       = turn[PORTS-1:0];
    assign s_req_ready = grant;

    integer p;
    always_comb begin
        chosen_address = '0;
        chosen_length  = '0;
        chosen_func    = '0;
        chosen_list    = '0;
        for (p = 0; p < PORTS; p = p + 1) begin
            chosen_address = chosen_address | (s_req_address[p*64 +: 64] & {64{grant[p]}});
            chosen_length  = chosen_length | (s_req_length[p*21 +: 21] & {21{grant[p]}});
            chosen_func    = chosen_func | (s_req_func[p*8 +: 8] & {8{grant[p]}});
            chosen_list    = chosen_list | (s_req_list[p*7 +: 7] & {7{grant[p]}});
        end
    end

    always_ff @(posedge clk) begin
        asked   <= rst ? '0 : grant;
        address <= chosen_address;
        length  <= chosen_length;
        func    <= chosen_func;
        list    <= chosen_list;
    end

    // The entries. The offset bits of a page of 2^n bytes are a mask of bits 29 to 12.
    // An access takes three cycles: read, take the bytes of a write that it does not enable, write.
    logic         read, ready;
    logic [31:0]  entry_data;
    wire          entry_write = win_entry_valid && win_write && ready;
    wire [6:0]    entry_wide  = win_addr[11:5];
    wire          entry_known = {1'b0, entry_wide} < ENTRIES;
    wire [EW-1:0] entry       = entry_wide[EW-1:0];
    wire [2:0]    word        = win_addr[4:2];
    wire [4:0]    log2_page   = entry_data[12:8];
    wire          page_legal  = log2_page >= 5'd12 && log2_page <= 5'd30;
    wire [17:0]   page_mask   = ~({18{1'b1}} << (log2_page - 5'd12));

    logic [ENTRIES-1:0] valid, covers, owned;

    genvar e;
    generate
        for (e = 0; e < ENTRIES; e = e + 1) begin : page
            logic [51:0] tag;
            logic [17:0] mask;
            logic [7:0]  owner;

            wire mine = entry_write && entry_known && entry == e;

            always_ff @(posedge clk) begin
                if (mine && word == 3'd0) tag[19:0] <= entry_data[31:12];
                if (mine && word == 3'd1) tag[51:20] <= entry_data;
                if (mine && word == 3'd4) begin
                    valid[e] <= entry_data[0] && page_legal;
                    mask     <= page_mask;
                    owner    <= entry_data[23:16];
                end
                if (rst) valid[e] <= 1'b0;
            end

            always_ff @(posedge clk) begin
                covers[e] <= valid[e] && ((address[63:12] ^ tag) & ~{34'd0, mask}) == 0;
                owned[e]  <= owner == func;
            end
        end
    endgenerate

    // Bus address and mask, by number of the entry. They stay when it is removed, for the accesses that it
    // has allowed already: writes of a new page are three cycles apart.
    logic [19:0] bus_low [0:ENTRIES-1];
    logic [31:0] bus_high [0:ENTRIES-1];
    logic [17:0] masks [0:ENTRIES-1];

    always_ff @(posedge clk) begin
        if (entry_write && entry_known && word == 3'd2) bus_low[entry] <= entry_data[31:12];
        if (entry_write && entry_known && word == 3'd3) bus_high[entry] <= entry_data;
        if (entry_write && entry_known && word == 3'd4 && entry_data[0]) masks[entry] <= page_mask;
    end

    // Software reads back its writes, but an entry reads as valid only while it is.
    logic        read_word4, read_valid;
    logic [31:0] read_data;

    plx_ram_sdp #(
        .WIDTH(32),
        .DEPTH(ENTRIES * 8)
    ) written (
        .clk,
        .w_enable(entry_write && entry_known),
        .w_address({entry, word}),
        .w_data(entry_data),
        .r_enable(win_entry_valid),
        .r_address({entry, word}),
        .r_data(read_data)
    );

    always_ff @(posedge clk) begin
        read       <= !rst && win_entry_valid && !read && !ready;
        ready      <= !rst && read;
        read_word4 <= word == 3'd4;
        read_valid <= valid[entry];
    end

    assign win_entry_ready = ready;
    assign win_entry_rdata = !entry_known || word > 3'd4 ? 32'd0
                           : read_word4 ? {read_data[31:1], read_valid} : read_data;

    integer b;
    always_ff @(posedge clk) begin
        for (b = 0; b < 4; b = b + 1) begin
            entry_data[b*8 +: 8] <= win_wstrb[b] ? win_wdata[b*8 +: 8] : win_entry_rdata[b*8 +: 8];
        end
    end

    // The request beside the table: cycle 2 and 3. The bits of its last byte that differ from those of the
    // first: none of them may be above the page's size.
    localparam REQ_W = PORTS + 64 + 8 + 21 + 7;
    logic [REQ_W-1:0] compared, answered;
    logic [18:0]      moved;

    wire [29:0] compared_offset  = compared[65:36];
    wire [20:0] compared_length  = compared[27:7];
    wire [30:0] last             = {1'b0, compared_offset} + {10'd0, compared_length} - 31'd1;

    always_ff @(posedge clk) begin
        compared <= {asked, address, func, length, list};
        answered <= compared;
        moved    <= last[30:12] ^ {1'b0, compared_offset[29:12]};
        if (rst) begin
            compared[REQ_W-1 -: PORTS] <= '0;
            answered[REQ_W-1 -: PORTS] <= '0;
        end
    end

    // Cycle 2: the lowest entry that covers the address and belongs to the function, by halves: in each
    // round two neighbours become one.
    logic          covered, allowed;
    logic [EW-1:0] found;

    genvar r;
    generate
        for (r = 0; r <= EW; r = r + 1) begin : round
            logic [(ENTRIES >> r)-1:0]    any;
            logic [(ENTRIES >> r)*EW-1:0] lowest;
            for (e = 0; e < ENTRIES >> r; e = e + 1) begin : of
                if (r == 0) begin : leaf
                    assign any[e]              = covers[e] && owned[e];
                    assign lowest[e*EW +: EW]  = e;
                end else begin : pair
                    assign any[e]              = round[r-1].any[2*e] || round[r-1].any[2*e + 1];
                    assign lowest[e*EW +: EW]  = round[r-1].any[2*e] ? round[r-1].lowest[2*e*EW +: EW]
                                               : round[r-1].lowest[(2*e + 1)*EW +: EW];
                end
            end
        end
    endgenerate

    always_ff @(posedge clk) begin
        found   <= round[EW].lowest;
        covered <= |covers;
        allowed <= round[EW].any;
    end

    // Cycle 3: the page, the bus address, and whether the last byte is in the page.
    wire [51:0]      page_bus        = {bus_high[found], bus_low[found]};
    wire [17:0]      open            = masks[found];
    wire [PORTS-1:0] answer          = answered[REQ_W-1 -: PORTS];
    wire [63:0]      virtual_address = answered[99:36];
    wire [7:0]       who             = answered[35:28];
    wire [20:0]      bytes           = answered[27:7];
    wire [6:0]       for_list        = answered[6:0];
    wire [29:0]      offset          = virtual_address[29:0] & {open, 12'hFFF};
    wire             beyond          = |(moved & ~{1'b0, open});
    wire [51:0]      frame           = page_bus & ~{34'd0, open};

    assign m_rsp_valid   = answer;
    assign m_rsp_hit     = allowed && !beyond;
    assign m_rsp_address = {frame, 12'd0} | {34'd0, offset};

    // Faults, and their events.
    wire               fault  = |answer && !m_rsp_hit;
    wire [1:0]         reason = allowed ? 2'd1 : covered ? 2'd2 : 2'd0;
    logic              waiting_room, waiting;
    logic [FAULT_W-1:0] next;
    wire               send   = waiting && !m_event_valid && room[cfg_queue];
    logic [31:0]       sequence_number;

    assign inc_faults      = fault;
    assign inc_events_lost = fault && cfg_event_fault && !waiting_room;

    /* verilator lint_off PINCONNECTEMPTY */
    plx_fifo_sync #(
        .WIDTH(FAULT_W),
        .DEPTH(FAULTS)
    ) faults (
        .clk,
        .rst,
        .s_valid(fault && cfg_event_fault),
        .s_ready(waiting_room),
        .s_data({now_stamp[31:0], virtual_address, who, reason, bytes, for_list}),
        .m_valid(waiting),
        .m_ready(send),
        .m_data(next),
        .level()
    );
    /* verilator lint_on PINCONNECTEMPTY */

    always_ff @(posedge clk) begin
        if (m_event_ready) m_event_valid <= 1'b0;
        if (send) begin
            m_event_valid   <= 1'b1;
            sequence_number <= sequence_number + 1'b1;
        end
        if (rst) begin
            m_event_valid   <= 1'b0;
            sequence_number <= '0;
        end
    end

    wire [6:0]  f_list    = next[6:0];
    wire [20:0] f_bytes   = next[27:7];
    wire [1:0]  f_reason  = next[29:28];
    wire [7:0]  f_func    = next[37:30];
    wire [63:0] f_address = next[101:38];
    wire [31:0] f_stamp   = next[133:102];

    always_ff @(posedge clk) if (send) begin
        m_event_queue  <= cfg_queue;
        m_event_record <= '0;
        m_event_record[layouts_pkg::EVENT_RECORD_INDEX_AT +: 7]      <= f_list;
        m_event_record[layouts_pkg::EVENT_RECORD_LENGTH_AT +: 21]    <= f_bytes;
        m_event_record[layouts_pkg::TLB_FAULT_ADDRESS_AT +: 64]      <= f_address;
        m_event_record[layouts_pkg::TLB_FAULT_FUNCTION_AT +: 8]      <= f_func;
        m_event_record[layouts_pkg::TLB_FAULT_REASON_AT +: 2]        <= f_reason;
        m_event_record[layouts_pkg::TLB_FAULT_STAGES_AT + 64 +: 32]  <= f_stamp;
        m_event_record[layouts_pkg::EVENT_RECORD_SEQUENCE_AT +: 32]  <= sequence_number;
        m_event_record[layouts_pkg::EVENT_RECORD_KIND_AT +: 8]       <= layouts_pkg::TLB_FAULT_KIND;
    end

    wire unused = &{1'b0, win_addr[12], win_addr[1:0], now_stamp[63:32], last[11:0]};
endmodule
