// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Neighbours by address. The table has one entry for each address: its two lowest bytes, XORed; a new
// neighbour replaces an older one, unless software has made that static. The response to a lookup
// arrives after two cycles if the neighbour is known; else ARP requests its address until it answers,
// or the tries are used up. Entries age and expire.

module plx_arp_cache #(
    parameter ENTRIES   = 256,  // a power of two
    parameter TICK_BITS = 20    // an entry ages by 1 in 2 to the power of this cycles
) (
    input  logic        clk,
    input  logic        rst,

    // A lookup, stable until the response, one cycle of done.
    input  logic        s_lookup_valid,
    input  logic [31:0] s_lookup_ip,
    output logic        m_lookup_done,
    output logic        m_lookup_hit,
    output logic [47:0] m_lookup_mac,

    // An address that a neighbour announced.
    input  logic        s_learn_valid,
    input  logic        s_learn_new,
    input  logic [31:0] s_learn_ip,
    input  logic [47:0] s_learn_mac,

    // An address to request.
    output logic        m_request_valid,
    input  logic        m_request_ready,
    output logic [31:0] m_request_ip,

    // Register accesses to the table: 16 bytes an entry. Writes of less than 32 bits do nothing.
    input  logic        win_valid,
    output logic        win_ready,
    input  logic        win_write,
    input  logic [$clog2(ENTRIES)+3:0] win_addr,
    input  logic [31:0] win_wdata,
    input  logic [3:0]  win_wstrb,
    output logic [31:0] win_rdata,

    // Settings: requests, cycles between them, age at which an entry expires (0: never); a
    // pulse that removes all.
    input  logic [3:0]  cfg_tries,
    input  logic [31:0] cfg_retry_cycles,
    input  logic [15:0] cfg_expiry,
    input  logic        flush
);
    localparam AW = $clog2(ENTRIES);
    localparam EW = 16 + 1 + 2 + 48 + 32;
    localparam [1:0] ASKED = 2'd1, KNOWN = 2'd2;
    localparam [2:0] LOOKUP = 3'd0, FAIL = 3'd1, LEARN = 3'd2, ACCESS = 3'd3, AGE = 3'd4;

    generate
        if (AW < 2 || AW > 16 || ENTRIES != 1 << AW) ENTRIES_must_be_a_power_of_two_from_4_to_65536 parameter_error ();
        if (TICK_BITS <= AW + 2) TICK_BITS_must_exceed_those_of_ENTRIES_by_3 parameter_error ();
    endgenerate

    // All entries are cleared after a reset and a flush. Then one operation at a time: its entry is
    // read in one cycle, and used and written in the next.
    logic          clearing, running;
    logic [AW-1:0] clear_at;
    logic [2:0]    operation, pick;
    logic          pick_valid;
    logic [AW-1:0] pick_at, at;
    logic          write;
    logic [EW-1:0] entry, written;

    logic [15:0]   age;
    logic          fixed;
    logic [1:0]    state;
    logic [47:0]   mac;
    logic [31:0]   ip;

    assign {age, fixed, state, mac, ip} = entry;

    plx_ram_sdp #(
        .WIDTH(EW),
        .DEPTH(ENTRIES)
    ) entries (
        .clk,
        .w_enable(clearing || write),
        .w_address(clearing ? clear_at : at),
        .w_data(clearing ? '0 : written),
        .r_enable(pick_valid),
        .r_address(pick_at),
        .r_data(entry)
    );

    // The lookup. Groups need no neighbour: broadcast, and IPv4 multicast (RFC 1112, 6.4).
    wire         to_all   = s_lookup_ip == '1;
    wire         to_group = s_lookup_ip[31:28] == 4'hE;
    logic        waiting;     // waiting for an answer by ARP
    logic [3:0]  tries;
    logic [31:0] timer;
    wire         due      = waiting && timer == 0;
    wire         give_up  = due && tries == 0;
    wire         ask      = due && tries != 0 && !m_request_valid;

    // An announced address, until it is stored.
    logic        learn, learn_new;
    logic [31:0] learn_ip;
    logic [47:0] learn_mac;

    // The software's access: address and lower half of an entry, until the higher half is written.
    logic [31:0] low_ip, low_mac, high_read;
    wire         full   = &win_wstrb;

    // Ageing: one entry at a time.
    logic [TICK_BITS-AW-1:0] tick;
    logic                    aging;
    logic [AW-1:0]           age_at;

    wire [AW-1:0] lookup_at = s_lookup_ip[AW-1:0] ^ s_lookup_ip[2*AW-1:AW];
    wire [AW-1:0] win_at    = win_addr[AW+3:4];
    wire [AW-1:0] learn_at  = learn_ip[AW-1:0] ^ learn_ip[2*AW-1:AW];

    always_comb begin
        pick_valid = !clearing && !running;
        if (give_up) {pick, pick_at} = {FAIL, lookup_at};
        else if (s_lookup_valid && !waiting && !to_all && !to_group) {pick, pick_at} = {LOOKUP, lookup_at};
        else if (learn) {pick, pick_at} = {LEARN, learn_at};
        else if (win_valid) {pick, pick_at} = {ACCESS, win_at};
        else begin
            {pick, pick_at} = {AGE, age_at};
            pick_valid      = pick_valid && aging;
        end
    end

    // The next state of the entry.
    wire         doing      = running && !clearing;
    wire         known      = state == KNOWN && ip == s_lookup_ip;
    wire         learnt     = doing && operation == LEARN && waiting && learn_ip == s_lookup_ip;
    wire         of_learnt  = state != 0 && ip == learn_ip;
    wire         old        = cfg_expiry != 0 && age + 16'd1 >= cfg_expiry;
    wire  [1:0]  win_word   = win_addr[3:2];
    wire  [50:0] win_high   = {win_wdata[18], win_wdata[17:16], win_wdata[15:0], low_mac};

    always_comb begin
        write   = 1'b0;
        written = entry;
        case (operation)
            LOOKUP: begin
                write   = doing && !known && !(fixed && state == KNOWN);
                written = {17'd0, ASKED, 48'd0, s_lookup_ip};
            end
            FAIL: begin
                write   = doing && state == ASKED && ip == s_lookup_ip;
                written = '0;
            end
            LEARN: begin
                write   = doing && (of_learnt || learn_new) && !(fixed && state == KNOWN);
                written = {17'd0, KNOWN, learn_mac, learn_ip};
            end
            ACCESS: begin
                write   = doing && win_write && full && win_word == 3;
                written = {16'd0, win_high, low_ip};
            end
            default: begin
                write   = doing && state == KNOWN && !fixed;
                written = old ? '0 : {age + 16'd1, fixed, state, mac, ip};
            end
        endcase
    end

    assign m_lookup_done = (s_lookup_valid && (to_all || to_group)) || (doing && operation == LOOKUP && known)
        || (doing && operation == FAIL) || learnt;
    assign m_lookup_hit  = !(doing && operation == FAIL);
    assign m_lookup_mac  = to_all ? '1 : to_group ? {24'h01005E, 1'b0, s_lookup_ip[22:0]} : learnt ? learn_mac : mac;

    assign win_ready = doing && operation == ACCESS;
    assign win_rdata = win_word == 0 ? ip : win_word == 2 ? mac[31:0] : win_word == 3 ? high_read : 32'd0;

    always_ff @(posedge clk) begin
        running <= pick_valid;
        if (clearing) begin
            clear_at <= clear_at + 1'b1;
            if (&clear_at) clearing <= 1'b0;
        end
        if (flush) clearing <= 1'b1;

        if (doing && operation == LOOKUP && !known) waiting <= 1'b1;
        if (m_lookup_done) waiting <= 1'b0;
        if (m_request_ready) m_request_valid <= 1'b0;
        if (ask) m_request_valid <= 1'b1;

        if (doing && operation == LEARN) learn <= 1'b0;
        if (s_learn_valid) learn <= 1'b1;

        tick <= tick + 1'b1;
        if (&tick) aging <= 1'b1;
        if (doing && operation == AGE) begin
            aging  <= 1'b0;
            age_at <= age_at + 1'b1;
        end
        if (rst) begin
            running         <= 1'b0;
            clearing        <= 1'b1;
            clear_at        <= '0;
            waiting         <= 1'b0;
            m_request_valid <= 1'b0;
            learn           <= 1'b0;
            tick            <= '0;
            aging           <= 1'b0;
            age_at          <= '0;
        end
    end

    always_ff @(posedge clk) begin
        if (pick_valid) begin
            operation <= pick;
            at        <= pick_at;
        end
        if (!waiting) begin
            tries <= cfg_tries;
            timer <= '0;
        end
        else if (ask) begin
            tries <= tries - 4'd1;
            timer <= cfg_retry_cycles;
        end
        else if (timer != 0) timer <= timer - 32'd1;
        if (ask) m_request_ip <= s_lookup_ip;
        if (s_learn_valid) {learn_new, learn_ip, learn_mac} <= {s_learn_new, s_learn_ip, s_learn_mac};
        if (win_ready && win_write && full && win_word == 0) low_ip <= win_wdata;
        if (win_ready && win_write && full && win_word == 2) low_mac <= win_wdata;
        if (win_ready && !win_write && win_word == 2) high_read <= {13'd0, fixed, state, mac[47:32]};
    end

    // The word address selects the field of an entry.
    wire unused = &{1'b0, win_addr[1:0]};
endmodule
