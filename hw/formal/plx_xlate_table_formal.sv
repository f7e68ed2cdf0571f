// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Isolation: an address is covered exactly if an entry of its own function covers it when all compare;
// it is permitted only with the key and the right of the lowest of these entries, and the address shown
// is as far from that entry's bus address as the one presented from its virtual address. An entry is
// valid only as a page that begins at a multiple of its size in both, and until one of them is written.
// For entries of any content, where software writes addresses at any time, changes size, function, key
// and rights only while the entry is not valid, and makes it valid when it has written all of it.
// Addresses have 20 bits here, and the others are 0.
// formal: aiger
// formal: bounded 26
// formal: cover 50
// mutant: owner == func && => 1'b1 &&
// mutant: key == then_3[96:65] && => 1'b1 &&
// mutant: then_3[64] ? !no_write : may_read => !no_write || may_read
// mutant: g_round[r-1].any[2*e] ? g_round => !g_round[r-1].any[2*e] ? g_round
// mutant: (low_bits & {page_mask, 1'b1}) == 0 => 1'b1
// mutant: virtual_bits[entry] | bus_bits => bus_bits
// mutant: virtual_bits[entry] | bus_bits => virtual_bits
// mutant: && !(&log2_page); => ;
// mutant: (low_bits & {page_mask, 1'b1}) => (low_bits & {page_mask, 1'b0})
// mutant: if (over) valid[e] <= 1'b0 => if (over) valid[e] <= valid[e]
// mutant: !read && !ready && entry_known && word < 3'd4; => ready && entry_known && word < 3'd4;

module plx_xlate_table_formal (
    input logic        clk,
    input logic        rst,
    input logic        win_entry_valid,
    input logic        win_write,
    input logic [3:0]  where,
    input logic [23:0] what,
    input logic [19:0] s_low,
    input logic [1:0]  s_low_func,
    input logic [1:0]  s_low_key,
    input logic        s_write
);
    wire  [12:0] win_addr = {7'd0, where, 2'd0};
    // Each word as far as it matters here.
    wire  [31:0] win_wdata = where[2:0] == 3'd0 || where[2:0] == 3'd2 ? {12'd0, what[19:12], 11'd0, what[0]}
                           : where[2:0] == 3'd4 ? {14'd0, what[17:16], 3'd0, what[12:8], 5'd0, what[2:0]}
                           : where[2:0] == 3'd5 ? {30'd0, what[1:0]} : 32'd0;
    wire  [3:0]  win_wstrb = 4'hF;
    wire  [63:0] s_address = {44'd0, s_low};
    wire  [7:0]  s_func = {6'd0, s_low_func};
    wire  [31:0] s_key = {30'd0, s_low_key};
    logic        win_entry_ready, entered, m_covered, m_permitted;
    logic [31:0] win_entry_rdata;
    logic [63:0] m_address;

    plx_xlate_table #(.ENTRIES(2)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb assume (rst == !running);

    // An access stands until it is ready.
    logic        stood = 0, write_then;
    logic [3:0]  where_then;
    logic [23:0] what_then;

    always_ff @(posedge clk) begin
        stood      <= running && win_entry_valid && !win_entry_ready;
        write_then <= win_write;
        where_then <= where;
        what_then  <= what;
    end

    always_comb if (stood) begin
        assume (win_entry_valid && win_write == write_then && where == where_then && what == what_then);
    end

    // The entries, as software knows them.
    logic [1:0]  valid = 0;
    logic [7:0]  tag_0 = 0, tag_1 = 0, bus_0 = 0, bus_1 = 0, mask_0 = 0, mask_1 = 0;
    // Below 4 KiB, of VIRTUAL and of BUS.
    logic [1:0]  odd_0 = 0, odd_1 = 0;
    logic [1:0]  func_0 = 0, func_1 = 0, key_0 = 0, key_1 = 0, right_0 = 0, right_1 = 0;
    wire         done = win_entry_valid && win_write && win_entry_ready;
    wire  [4:0]  log2 = what[12:8];
    // Bits of an address from 12 on that are in the page.
    wire  [7:0]  mask = log2 >= 5'd20 ? 8'hFF : ~(8'hFF << (log2 - 5'd12));
    wire  [7:0]  low_bits = where[3] ? tag_1 | bus_1 : tag_0 | bus_0;
    wire         odd   = where[3] ? odd_1 != 0 : odd_0 != 0;
    wire         legal = log2 >= 5'd12 && log2 <= 5'd30 && (low_bits & mask) == 0 && !odd;

    // With the first cycle of a write of an address its entry ends.
    wire         ends = win_entry_valid && win_write && !stood && where[2:0] < 3'd4;

    // A control takes effect in the cycle after its access.
    logic       made = 0, made_which, made_valid, made_page;
    logic [1:0] made_func, made_right;
    logic [7:0] made_mask;

    always_ff @(posedge clk) begin
        made       <= running && done && where[2:0] == 3'd4;
        made_which <= where[3];
        made_valid <= what[0];
        made_page  <= legal;
        made_func  <= what[17:16];
        made_right <= what[2:1];
        made_mask  <= mask;
        if (made) begin
            valid[made_which] <= made_valid && made_page;
            if (made_which) func_1 <= made_func;
            else func_0 <= made_func;
            if (made_valid && made_which) {right_1, mask_1} <= {made_right, made_mask};
            if (made_valid && !made_which) {right_0, mask_0} <= {made_right, made_mask};
        end
        if (running && ends) valid[where[3]] <= 1'b0;
    end

    always_ff @(posedge clk) if (running && done) begin
        case (where)
            4'd0: {tag_0, odd_0[0]} <= {what[19:12], what[0]};
            4'd2: {bus_0, odd_0[1]} <= {what[19:12], what[0]};
            4'd5: key_0 <= what[1:0];
            4'd8: {tag_1, odd_1[0]} <= {what[19:12], what[0]};
            4'd10: {bus_1, odd_1[1]} <= {what[19:12], what[0]};
            4'd13: key_1 <= what[1:0];
            default: ;
        endcase
    end

    // Words of each that have been written.
    logic [15:0] seen = 0;

    always_ff @(posedge clk) if (running && done) seen[where] <= 1'b1;

    // Size and key change only while it is not valid.
    always_comb if (win_entry_valid && win_write) begin
        if (where[2:0] == 3'd4 && what[0]) assume (((where[3] ? seen[15:8] : seen[7:0]) & 8'h2F) == 8'h2F);
        if (valid[where[3]]) assume (where[2:0] < 3'd4 || where[2:0] == 3'd4 && !what[0]);
    end

    // The request, and which entries cover it in the cycle after it.
    logic [19:0] low_1, low_2, low_3;
    logic [1:0]  of_1, key_then_1, key_then_2, key_then_3, covers_2, covers_3;
    logic        write_1, write_2, write_3;
    logic [2:0]  since = 0;

    wire [1:0] covers = {valid[1] && func_1 == of_1 && ((low_1[19:12] ^ tag_1) & ~mask_1) == 0,
                         valid[0] && func_0 == of_1 && ((low_1[19:12] ^ tag_0) & ~mask_0) == 0};

    always_ff @(posedge clk) begin
        {low_1, low_2, low_3}                <= {s_low, low_1, low_2};
        {key_then_1, key_then_2, key_then_3} <= {s_low_key, key_then_1, key_then_2};
        {write_1, write_2, write_3}          <= {s_write, write_1, write_2};
        of_1                                 <= s_low_func;
        {covers_2, covers_3}                 <= {covers, covers_2};
        since                                <= !running ? 3'd0 : since == 3'd4 ? since : since + 1'b1;
    end

    wire       first = covers_3[0];
    wire [7:0] bus   = first ? bus_0 : bus_1;
    wire [7:0] start = first ? tag_0 : tag_1;
    wire [1:0] right = first ? right_0 : right_1;
    wire [1:0] key   = first ? key_0 : key_1;

    always_comb if (running && since == 4) assert (m_covered == (covers_3 != 0));
    always_comb if (running && since == 4 && m_covered) begin
        assert (m_permitted == (key == key_then_3 && (write_3 ? !right[1] : right[0])));
    end
    always_comb if (running && since == 4 && m_covered) begin
        assert (m_address[19:12] == bus + (low_3[19:12] - start));
    end
    always_comb if (running && since == 4) begin
        assert (m_address[11:0] == low_3[11:0]);
        cover (m_covered && m_permitted && covers_3 == 2'b11 && mask_1 != mask_0 && bus_1 != bus_0);
        cover (m_covered && !m_permitted && !write_3);
    end
endmodule
