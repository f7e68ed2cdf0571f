// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Pages of host memory, and which of them an address is in. An entry is a page of one function: its
// virtual and its bus address, its size, a key, and what the card may do with it. Two functions may
// have pages at the same virtual address. Of several entries of a function that cover an address, the
// lowest counts; its key and rights decide.
//
//   cycle 0  an address is presented
//   cycle 1  all entries compare
//   cycle 2  the lowest of the matching entries is found
//   cycle 3  its page is read, and shown

module plx_xlate_table #(
    parameter ENTRIES = 128  // pages, a power of two
) (
    input  logic         clk,
    input  logic         rst,

    // Entries: 32 bytes each.
    input  logic         win_entry_valid,
    output logic         win_entry_ready,
    input  logic         win_write,
    input  logic [12:0]  win_addr,
    input  logic [31:0]  win_wdata,
    input  logic [3:0]   win_wstrb,
    output logic [31:0]  win_entry_rdata,

    // An entry becomes valid: addresses presented from now on find it.
    output logic         entered,

    // An address, its function and key; to be written, or read.
    input  logic [63:0]  s_address,
    input  logic [7:0]   s_func,
    input  logic [31:0]  s_key,
    input  logic         s_write,

    // Three cycles later: an entry of the function covers it; key and right agree; the bus address.
    output logic         m_covered,
    output logic         m_permitted,
    output logic [63:0]  m_address
);
    localparam EW = $clog2(ENTRIES);

    generate
        if (ENTRIES < 2 || ENTRIES > 128 || ENTRIES != 1 << EW)
            ENTRIES_must_be_a_power_of_two_from_2_to_128 parameter_error ();
    endgenerate

    logic [63:12] address;
    logic [7:0]   func;

    always_ff @(posedge clk) begin
        address <= s_address[63:12];
        func    <= s_func;
    end

    // ---- Software -------------------------------------------------------------------------------

    // The offset bits of a page of 2^n bytes are a mask of bits 29 to 12.
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
    wire          stores      = entry_write && entry_known;

    assign entered = stores && word == 3'd4 && entry_data[0] && page_legal;

    logic [ENTRIES-1:0] valid, covers;

    genvar e;
    generate
        for (e = 0; e < ENTRIES; e = e + 1) begin : g_page
            logic [51:0] tag;
            logic [17:0] mask;
            logic [7:0]  owner;

            wire mine = stores && entry == e;

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
                covers[e] <= valid[e] && owner == func && ((address ^ tag) & ~{34'd0, mask}) == 0;
            end
        end
    endgenerate

    // The rest of an entry, by number. It stays when the entry is removed, for the accesses that it has
    // allowed already: writes of a new page are three cycles apart.
    logic [19:0] bus_low [0:ENTRIES-1];
    logic [31:0] bus_high [0:ENTRIES-1];
    // Those that decide are in look-up tables: a key is compared in the cycle in which it is read.
    (* ram_style = "distributed" *) logic [31:0] keys [0:ENTRIES-1];
    (* ram_style = "distributed" *) logic [19:0] others [0:ENTRIES-1];

    always_ff @(posedge clk) begin
        if (stores && word == 3'd2) bus_low[entry] <= entry_data[31:12];
        if (stores && word == 3'd3) bus_high[entry] <= entry_data;
        if (stores && word == 3'd5) keys[entry] <= entry_data;
        if (stores && word == 3'd4 && entry_data[0]) others[entry] <= {entry_data[2:1], page_mask};
    end

    // Software reads back its writes, but an entry reads as valid only while it is.
    logic        read_word4, read_valid;
    logic [31:0] read_data;

    plx_ram_sdp #(
        .WIDTH(32),
        .DEPTH(ENTRIES * 8)
    ) written (
        .clk,
        .w_enable(stores),
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
    assign win_entry_rdata = !entry_known || word > 3'd5 ? 32'd0
                           : read_word4 ? {read_data[31:1], read_valid} : read_data;

    integer b;
    always_ff @(posedge clk) begin
        for (b = 0; b < 4; b = b + 1) begin
            entry_data[b*8 +: 8] <= win_wstrb[b] ? win_wdata[b*8 +: 8] : win_entry_rdata[b*8 +: 8];
        end
    end

    // ---- Lookup ---------------------------------------------------------------------------------

    // Cycle 2: the lowest entry that covers the address, by halves: in each round two neighbours become
    // one.
    logic [EW-1:0] found;

    genvar r;
    generate
        for (r = 0; r <= EW; r = r + 1) begin : g_round
            logic [(ENTRIES >> r)-1:0]    any;
            logic [(ENTRIES >> r)*EW-1:0] lowest;
            for (e = 0; e < ENTRIES >> r; e = e + 1) begin : g_of
                if (r == 0) begin : g_leaf
                    assign any[e]              = covers[e];
                    assign lowest[e*EW +: EW]  = e;
                end else begin : g_pair
                    assign any[e]              = g_round[r-1].any[2*e] || g_round[r-1].any[2*e + 1];
                    assign lowest[e*EW +: EW]  = g_round[r-1].any[2*e] ? g_round[r-1].lowest[2*e*EW +: EW]
                                               : g_round[r-1].lowest[(2*e + 1)*EW +: EW];
                end
            end
        end
    endgenerate

    // The request beside the table: cycles 1, 2 and 3.
    logic [96:0] then_1, then_2, then_3;

    always_ff @(posedge clk) begin
        found     <= g_round[EW].lowest;
        m_covered <= g_round[EW].any;
        then_1    <= {s_key, s_write, s_address};
        then_2    <= then_1;
        then_3    <= then_2;
    end

    // Cycle 3: the page.
    wire [51:0] frame    = {bus_high[found], bus_low[found]};
    wire [31:0] key      = keys[found];
    wire [17:0] open     = others[found][17:0];
    wire        may_read = others[found][18];
    wire        no_write = others[found][19];

    assign m_permitted = key == then_3[96:65] && (then_3[64] ? !no_write : may_read);
    assign m_address   = {(frame & ~{34'd0, open}) | (then_3[63:12] & {34'd0, open}), then_3[11:0]};

    wire unused = &{1'b0, win_addr[12], win_addr[1:0]};
endmodule
