// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Pages of host memory, and which of them an address is in. An entry is a page of one function: its
// virtual and its bus address, its size, a key, and what the card may do with it. Two functions may
// have pages at the same virtual address. Of several entries of a function that cover an address, the
// lowest counts; its key and rights decide. A page begins at a multiple of its size in both addresses:
// software cannot make another one valid, and a write of an address makes its entry invalid.
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
    // Bits 29 to 12 that are set in either address of the entry, and whether any below is.
    logic [18:0]  low_bits;
    // (By a shift of the size itself, so that each bit is one look-up table.)
    wire [29:0]   size_below  = ~({30{1'b1}} << log2_page);
    wire [17:0]   page_mask   = size_below[29:12];
    wire          size_legal  = (log2_page[4] || &log2_page[3:2]) && !(&log2_page);
    wire          page_legal  = size_legal && (low_bits & {page_mask, 1'b1}) == 0;
    wire [18:0]   address_low = {entry_data[29:12], |entry_data[11:0]};
    wire          stores      = entry_write && entry_known;
    // An address is to be written: its entry ends before, so that lookups that have found it get the page
    // that they found.
    wire          ends        = win_entry_valid && win_write && !read && !ready && entry_known && word < 3'd4;

    // An entry's control takes effect in the cycle after the access.
    logic          makes, made_valid, made_page;
    logic [EW-1:0] made_entry;
    logic [17:0]   made_mask;
    logic [7:0]    made_owner;
    logic [1:0]    made_rights;

    always_ff @(posedge clk) begin
        makes       <= !rst && stores && word == 3'd4;
        made_entry  <= entry;
        made_valid  <= entry_data[0];
        made_page   <= page_legal;
        made_mask   <= page_mask;
        made_owner  <= entry_data[23:16];
        made_rights <= entry_data[2:1];
    end

    assign entered = makes && made_valid && made_page;

    // `refused`: software made the entry valid, and it is no page.
    logic [ENTRIES-1:0] valid, refused, covers;

    genvar e;
    generate
        for (e = 0; e < ENTRIES; e = e + 1) begin : g_page
            logic [51:0] tag;
            logic [17:0] mask;
            logic [7:0]  owner;

            wire mine = stores && entry == e;
            wire over = ends && entry == e;

            always_ff @(posedge clk) begin
                if (mine && word == 3'd0) tag[19:0] <= entry_data[31:12];
                if (mine && word == 3'd1) tag[51:20] <= entry_data;
                if (makes && made_entry == e) begin
                    valid[e]   <= made_valid && made_page;
                    refused[e] <= made_valid && !made_page;
                    mask       <= made_mask;
                    owner      <= made_owner;
                end
                if (over) valid[e] <= 1'b0;
                if (rst) begin
                    valid[e]   <= 1'b0;
                    refused[e] <= 1'b0;
                end
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
    // Those that say whether it is a page: read with the entry that is being written.
    (* ram_style = "distributed" *) logic [18:0] virtual_bits [0:ENTRIES-1];
    (* ram_style = "distributed" *) logic [18:0] bus_bits [0:ENTRIES-1];

    always_ff @(posedge clk) begin
        if (stores && word == 3'd0) virtual_bits[entry] <= address_low;
        if (stores && word == 3'd2) bus_bits[entry] <= address_low;
        if (stores && word == 3'd2) bus_low[entry] <= entry_data[31:12];
        if (stores && word == 3'd3) bus_high[entry] <= entry_data;
        if (stores && word == 3'd5) keys[entry] <= entry_data;
        if (entered) others[made_entry] <= {made_rights, made_mask};
        low_bits <= virtual_bits[entry] | bus_bits[entry];
    end

    // Software reads back its writes, but an entry reads as valid only while it is, or as refused.
    logic        read_word4, read_valid, read_refused;
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
        read         <= !rst && win_entry_valid && !read && !ready;
        ready        <= !rst && read;
        read_word4   <= word == 3'd4;
        // The access before may take effect in this cycle.
        read_valid   <= makes && made_entry == entry ? made_valid && made_page : valid[entry];
        read_refused <= makes && made_entry == entry ? made_valid && !made_page : refused[entry];
    end

    assign win_entry_ready = ready;
    assign win_entry_rdata = !entry_known || word > 3'd5 ? 32'd0
                           : read_word4 ? {read_data[31:4], read_refused, read_data[2:1], read_valid} : read_data;

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
    assign m_address   = {frame | (then_3[63:12] & {34'd0, open}), then_3[11:0]};

    wire unused = &{1'b0, win_addr[12], win_addr[1:0], size_below[11:0]};
endmodule
