// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Neighbours by address, in sets of four: the set of an address is its two lowest bytes, XORed, modulo
// the number of sets. A new neighbour takes an empty place of its set, else one that was requested in
// vain, else one after the other; never one that software has made static. The response to a lookup
// arrives after two cycles if the neighbour is known, or was requested recently and has not answered:
// so a silent address delays a packet once. For any other, ARP requests it, and the lookup waits a
// limited time for the answer, which begins when the request has left: a pause of the link is no fault of
// the neighbour. Entries age and expire; an address that expires may be requested again. Of several
// entries of an address a static one counts, which nothing learnt changes.

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

    // Lookups do not wait, and nothing is requested: a request that waits is withdrawn. Its address then counts as
    // requested, until a flush, which a reset of the port's function has.
    input  logic        abandon,

    // An address that a neighbour announced.
    input  logic        s_learn_valid,
    input  logic        s_learn_new,
    input  logic [31:0] s_learn_ip,
    input  logic [47:0] s_learn_mac,

    // An address to request; the request was accepted, and has not left.
    output logic        m_request_valid,
    input  logic        m_request_ready,
    output logic [31:0] m_request_ip,
    input  logic        requesting,

    // Register accesses to the table: 16 bytes an entry, sets of four in a row. Writes of less than 32
    // bits do nothing.
    input  logic        win_valid,
    output logic        win_ready,
    input  logic        win_write,
    input  logic [$clog2(ENTRIES)+3:0] win_addr,
    input  logic [31:0] win_wdata,
    input  logic [3:0]  win_wstrb,
    output logic [31:0] win_rdata,

    // Settings: cycles that a lookup waits for an answer; ages at which a requested address and a
    // neighbour expire (0: a neighbour never); a pulse that removes all.
    input  logic [31:0] cfg_wait_cycles,
    input  logic [15:0] cfg_retry,
    input  logic [15:0] cfg_expiry,
    input  logic        flush
);
    localparam WAYS = 4;
    localparam SETS = ENTRIES / WAYS;
    localparam SW = $clog2(SETS);
    localparam EW = 16 + 1 + 2 + 48 + 32;
    localparam [1:0] ASKED = 2'd1, KNOWN = 2'd2;
    localparam [1:0] LOOKUP = 2'd0, LEARN = 2'd1, ACCESS = 2'd2, AGE = 2'd3;

    generate
        if (SW < 1 || SW > 16 || ENTRIES != WAYS << SW) ENTRIES_must_be_a_power_of_two_from_8_to_262144 parameter_error ();
        if (TICK_BITS <= SW + 2) TICK_BITS_must_exceed_those_of_sets_by_3 parameter_error ();
    endgenerate

    // All entries are cleared after a reset and a flush. Then one operation at a time: the entries of
    // its set are read in one cycle, and used and written in the next.
    logic          clearing, running;
    logic [SW-1:0] clear_at;
    logic [1:0]    operation, pick;
    logic          pick_valid;
    logic [SW-1:0] pick_at, at;

    // The lookup. Groups need no neighbour: broadcast, and IPv4 multicast (RFC 1112, 6.4).
    wire         to_all   = s_lookup_ip == '1;
    wire         to_group = s_lookup_ip[31:28] == 4'hE;
    logic        waiting, asked, left;  // for an answer by ARP; it is to be requested; the request has left
    logic [31:0] timer;
    wire         ask      = waiting && !asked && !m_request_valid && !abandon;
    wire         give_up  = asked && left && timer == 0 || waiting && abandon;

    // An announced address, until it is stored.
    logic        learn, learn_new;
    logic [31:0] learn_ip;
    logic [47:0] learn_mac;

    // The software's access: address and lower half of an entry, until the higher half is written.
    logic [31:0] low_ip, low_mac, high_read;
    wire         full = &win_wstrb;
    wire  [18:0] win_wdata_high = win_wdata[18:0];

    // Ageing: one set at a time.
    logic [TICK_BITS-SW-1:0] tick;
    logic                    aging;
    logic [SW-1:0]           age_at;

    wire [SW-1:0] lookup_at = s_lookup_ip[SW-1:0] ^ s_lookup_ip[8 +: SW];
    wire [SW-1:0] learn_at  = learn_ip[SW-1:0] ^ learn_ip[8 +: SW];
    wire [SW-1:0] win_at    = win_addr[SW+5:6];
    wire [1:0]    win_way   = win_addr[5:4];

    always_comb begin
        pick_valid = !clearing && !running;
        if (s_lookup_valid && !waiting && !to_all && !to_group) {pick, pick_at} = {LOOKUP, lookup_at};
        else if (learn) {pick, pick_at} = {LEARN, learn_at};
        else if (win_valid) {pick, pick_at} = {ACCESS, win_at};
        else begin
            {pick, pick_at} = {AGE, age_at};
            pick_valid      = pick_valid && aging;
        end
    end

    // ---- The entries of a set -------------------------------------------------------------------

    wire             doing = running && !clearing;
    wire [31:0]      wanted = operation == LEARN ? learn_ip : s_lookup_ip;
    // Of each: it is the wanted address; empty; requested; static; to be replaced; written.
    wire  [WAYS-1:0] same, empty, silent, static_one, write;
    logic [WAYS-1:0] place;
    wire  [WAYS*48-1:0] macs;
    wire  [WAYS*32-1:0] win_read;
    wire  [WAYS*19-1:0] win_high;
    wire  [1:0]      win_word = win_addr[3:2];
    logic [WAYS-1:0] turn;

    // The entries that a lookup takes the neighbour from: static ones, else known ones; the first of them.
    // Which of two would be taken depends on their states alone, which are known before their addresses are compared.
    wire  [WAYS-1:0] fixed_same = same & static_one;
    logic [WAYS-1:0] first;

    integer v, w_at;
    always_comb begin
        for (w_at = 0; w_at < WAYS; w_at = w_at + 1) begin
            first[w_at] = same[w_at] && !silent[w_at];
            for (v = 0; v < WAYS; v = v + 1) begin
                if (same[v] && (static_one[v] != static_one[w_at] ? static_one[v] : v < w_at && !silent[v]))
                    first[w_at] = 1'b0;
            end
        end
    end

    // Its own place, unless a static one is its; else an empty one; one that was requested in vain; the next in turn.
    wire  [WAYS-1:0] movable = ~static_one;
    always_comb begin
        place = turn & movable;
        if (place == 0) place = movable & (~movable + 1'b1);
        if (|silent) place = silent & (~silent + 1'b1);
        if (|empty) place = empty & (~empty + 1'b1);
        if (|same) place = |fixed_same ? '0 : same & movable;
    end

    // A lookup stores the request of an address, an announcement that of its sender.
    wire is_new = operation == LOOKUP ? same == 0 : operation == LEARN && (|same || learn_new);

    generate
        for (genvar w = 0; w < WAYS; w = w + 1) begin : g_way
            localparam [1:0] WAY = w;
            logic [EW-1:0] entry, written;
            wire  [15:0]   age;
            wire           fixed;
            wire  [1:0]    state;
            wire  [47:0]   mac;
            wire  [31:0]   ip;
            assign {age, fixed, state, mac, ip} = entry;

            plx_ram_sdp #(.WIDTH(EW), .DEPTH(SETS)) entries (
                .clk, .w_enable(clearing || write[w]), .w_address(clearing ? clear_at : at),
                .w_data(clearing ? '0 : written), .r_enable(pick_valid), .r_address(pick_at), .r_data(entry)
            );

            wire [15:0] older   = age + 16'd1;
            wire        expires = state == ASKED ? older >= cfg_retry : cfg_expiry != 0 && older >= cfg_expiry;
            wire        ages    = operation == AGE && state != 0 && !static_one[w];
            wire        chosen  = operation == ACCESS && win_write && full && win_word == 3 && win_way == WAY;

            assign same[w]       = state != 0 && ip == wanted;
            assign empty[w]      = state == 0;
            assign silent[w]     = state == ASKED;
            assign static_one[w] = fixed && state == KNOWN;
            assign write[w]      = doing && (ages || chosen || is_new && place[w]);
            assign macs[w*48 +: 48]     = mac & {48{first[w]}};
            assign win_read[w*32 +: 32] = (win_word == 0 ? ip : mac[31:0]) & {32{win_way == WAY}};
            assign win_high[w*19 +: 19] = {fixed, state, mac[47:32]} & {19{win_way == WAY}};

            always_comb begin
                case (operation)
                    LOOKUP:  written = {17'd0, ASKED, 48'd0, s_lookup_ip};
                    LEARN:   written = {17'd0, KNOWN, learn_mac, learn_ip};
                    ACCESS:  written = {16'd0, win_wdata_high, low_mac, low_ip};
                    default: written = expires ? '0 : {older, fixed, state, mac, ip};
                endcase
            end
        end
    endgenerate

    integer i;
    logic [47:0] mac_found;
    logic [31:0] read;
    logic [18:0] high;
    always_comb begin
        mac_found = '0;
        read      = '0;
        high      = '0;
        for (i = 0; i < WAYS; i = i + 1) begin
            mac_found = mac_found | macs[i*48 +: 48];
            read      = read | win_read[i*32 +: 32];
            high      = high | win_high[i*19 +: 19];
        end
    end

    // ---- Responses ------------------------------------------------------------------------------

    wire looked = doing && operation == LOOKUP;
    wire known  = |(same & ~silent);
    wire learnt = doing && operation == LEARN && waiting && learn_ip == s_lookup_ip;
    // The MAC is that of the announcement, unless software has made the entry static meanwhile.
    wire as_announced = learnt && !(|fixed_same);

    assign m_lookup_done = s_lookup_valid && (to_all || to_group) || looked && |same || learnt || give_up;
    assign m_lookup_hit  = to_all || to_group || looked && known || learnt;
    assign m_lookup_mac  = to_all ? '1 : to_group ? {24'h01005E, 1'b0, s_lookup_ip[22:0]} : as_announced ? learn_mac
        : mac_found;

    assign win_ready = doing && operation == ACCESS;
    assign win_rdata = win_word == 3 ? high_read : win_word == 1 ? 32'd0 : read;

    always_ff @(posedge clk) begin
        // An announcement is not stored in the set of another, which it replaces in this cycle.
        running <= pick_valid && !(pick == LEARN && s_learn_valid);
        if (clearing) begin
            clear_at <= clear_at + 1'b1;
            if (&clear_at) clearing <= 1'b0;
        end
        if (flush) clearing <= 1'b1;

        if (looked && same == 0) waiting <= 1'b1;
        if (m_lookup_done) waiting <= 1'b0;
        asked <= waiting && !m_lookup_done && (asked || ask);
        left  <= asked && !m_request_valid && !requesting;
        if (m_request_ready || abandon) m_request_valid <= 1'b0;
        if (ask) m_request_valid <= 1'b1;

        if (doing && operation == LEARN) learn <= 1'b0;
        if (s_learn_valid) learn <= 1'b1;
        if (doing && is_new && !(|same)) turn <= {turn[WAYS-2:0], turn[WAYS-1]};

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
            asked           <= 1'b0;
            left            <= 1'b0;
            m_request_valid <= 1'b0;
            learn           <= 1'b0;
            turn            <= 4'd1;
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
        timer <= !left ? cfg_wait_cycles : timer - 32'd1;
        if (ask) m_request_ip <= s_lookup_ip;
        if (s_learn_valid) {learn_new, learn_ip, learn_mac} <= {s_learn_new, s_learn_ip, s_learn_mac};
        if (win_ready && win_write && full && win_word == 0) low_ip <= win_wdata;
        if (win_ready && win_write && full && win_word == 2) low_mac <= win_wdata;
        if (win_ready && !win_write && win_word == 2) high_read <= {13'd0, high};
    end

    // The word address selects the field of an entry.
    wire unused = &{1'b0, win_addr[1:0]};
endmodule
