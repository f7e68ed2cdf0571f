// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// For any address `who`, whatever else is looked up, announced, aged and written by software:
// - A lookup is answered once, in its own time, and by what the table has of its own address: by the static entry
//   that software wrote, else by the MAC that was announced last. Groups are answered at once, without a request.
// - An answer without a neighbour is given for `abandon`, after cfg_wait_cycles in which no request of the card waited
//   or left, or for an address that was requested before and is younger than cfg_retry.
// - An address is requested once for a lookup, unchanged, if it is not in the table, and never for `abandon`.
// - The card stores an address in its own set, in one place; a new one takes an empty place, else one that was
//   requested in vain, and never a static one, which neither age nor announcement changes.
// - Entries are removed by age alone, at cfg_retry and cfg_expiry, by a new address, software and a flush.
// - Nothing but its wait for the neighbour, requests and a flush delays a lookup for more than 5 cycles; an
//   announcement is stored within 5 cycles, and an access behind it is done within 5.
// formal: aiger
// formal: induction 2
// formal: cover 16
// mutant: running <= pick_valid && !(pick == LEARN && s_learn_valid); => running <= pick_valid;
// mutant: learnt && !(|fixed_same) => learnt
// mutant: m_request_ready || abandon => m_request_ready
// mutant: ip == wanted; => ip[28:0] == wanted[28:0];
// mutant: same[w]       = state != 0 && => same[w]       =
// mutant: doing = running && !clearing; => doing = running;
// mutant: '0 : written), => written : written),
// mutant: {17'd0, ASKED, 48'd0, s_lookup_ip} => {17'd0, KNOWN, 48'd0, s_lookup_ip}
// mutant: {17'd0, KNOWN, learn_mac, learn_ip} => {17'd1, KNOWN, learn_mac, learn_ip}
// mutant: place = |fixed_same ? '0 : same & movable => place = same & movable
// mutant: if (|same) place = => if (1'b0) place =
// mutant: if (|silent) place = => if (1'b0) place =
// mutant: if (|empty) place = => if (1'b0) place =
// mutant: (|same || learn_new) => 1'b1
// mutant: movable = ~static_one; => movable = '1;
// mutant: ? static_one[v] : v < w_at && !silent[v])) => ? static_one[w_at] : v < w_at && !silent[v]))
// mutant: older >= cfg_retry => older > cfg_retry
// mutant: cfg_expiry != 0 && older => older
// mutant: state != 0 && !static_one[w]; => state != 0;
// mutant: learnt = doing && operation == LEARN && waiting && learn_ip == s_lookup_ip; => learnt = doing && operation == LEARN && waiting;
// mutant: asked && left && timer == 0 => asked && timer == 0
// mutant: asked && !m_request_valid && !requesting; => asked && !m_request_valid;
// mutant: asked && !m_request_valid && !requesting; => asked && !requesting;
// mutant: !left ? cfg_wait_cycles : timer - 32'd1; => !left ? cfg_wait_cycles : timer - 32'd2;
// mutant: || waiting && abandon; => ;
// mutant: waiting && !asked && !m_request_valid && !abandon; => waiting && !m_request_valid && !abandon;
// mutant: waiting && !asked && !m_request_valid && !abandon; => waiting && !asked && !abandon;
// mutant: waiting && !asked && !m_request_valid && !abandon; => waiting && !asked && !m_request_valid;
// mutant: if (s_lookup_valid && !waiting && !to_all && => if (s_lookup_valid && !waiting && !win_valid && !to_all &&
// mutant: else if (learn) {pick, pick_at} => else if (learn && !win_valid) {pick, pick_at}
// mutant: pick_valid      = pick_valid && aging; => pick_valid      = pick_valid;
// mutant: if (doing && operation == LEARN) learn <= 1'b0; => if (running && operation == LEARN) learn <= 1'b0;
// mutant: if (m_lookup_done) waiting <= 1'b0; => if (learnt || give_up && !abandon) waiting <= 1'b0;
// mutant: win_write && full && win_word == 3 => win_write && win_word == 3
// mutant: && win_word == 3 && win_way == WAY; => && win_word == 3;
// mutant: win_word == 3 ? high_read => win_word == 3 ? {13'd0, high}
// mutant: {24'h01005E, 1'b0, s_lookup_ip[22:0]} => {24'h01005E, 1'b0, s_lookup_ip[30:8]}
// mutant: if (ask) m_request_ip <= s_lookup_ip; => if (waiting) m_request_ip <= s_lookup_ip;

// Addresses have 5 bits here, and MACs 2, each of which stands for several: broadcast, groups and others in two sets.
`define IP_OF(x) {{3{x[4]}}, {20{x[3]}}, x[2], {6{x[3]}}, x[1:0]}
`define MAC_OF(x) {{16{x[1]}}, {32{x[0]}}}

// The words of one set, any, without the bits that repeat others; other words read as anything.
module plx_ram_sdp #(
    parameter WIDTH = 64,
    parameter DEPTH = 512
) (
    input  logic                     clk,
    input  logic                     w_enable,
    input  logic [$clog2(DEPTH)-1:0] w_address,
    input  logic [WIDTH-1:0]         w_data,
    input  logic                     r_enable,
    input  logic [$clog2(DEPTH)-1:0] r_address,
    output logic [WIDTH-1:0]         r_data
);
    (* anyconst *) logic [$clog2(DEPTH)-1:0] watched;
    (* anyseq *) wire [25:0] any;
    logic [25:0] word, last;
    wire         put = w_enable && w_address == watched;
    wire  [98:0] w_bits = w_data;
    wire  [4:0]  w_ip = {w_bits[31], w_bits[9], w_bits[8], w_bits[1:0]}, ip = last[4:0];
    wire  [1:0]  w_mac = {w_bits[79], w_bits[32]}, mac = last[6:5];

    assign r_data = {last[25:7], `MAC_OF(mac), `IP_OF(ip)};

    always_ff @(posedge clk) begin
        if (put) word <= {w_bits[98:80], w_mac, w_ip};
        if (r_enable) last <= r_address == watched ? word : any;
    end

    // Nothing is lost.
    always_comb if (put) assert (w_bits[79:0] == {`MAC_OF(w_mac), `IP_OF(w_ip)});
endmodule

module plx_arp_cache_formal (
    input logic        clk,
    input logic        rst,
    input logic        s_lookup_valid,
    input logic [4:0]  lookup_ip,
    input logic        abandon,
    input logic        s_learn_valid,
    input logic        s_learn_new,
    input logic [4:0]  learn_ip,
    input logic [1:0]  learn_mac,
    input logic        m_request_ready,
    input logic        requesting,
    input logic        win_valid,
    input logic        win_write,
    input logic [6:0]  win_addr,
    input logic [4:0]  win_ip,
    input logic [1:0]  win_mac,
    input logic [2:0]  win_state,
    input logic [3:0]  win_wstrb,
    input logic        flush
);
    localparam [1:0] ASKED = 2'd1, KNOWN = 2'd2;
    localparam [1:0] LOOKUP = 2'd0, LEARN = 2'd1, ACCESS = 2'd2, AGE = 2'd3;

    logic        m_lookup_done, m_lookup_hit, m_request_valid, win_ready;
    logic [47:0] m_lookup_mac, s_learn_mac;
    logic [31:0] m_request_ip, win_rdata, s_lookup_ip, s_learn_ip, win_wdata;
    wire  [47:0] software_mac = mac_of(win_mac);

    assign s_lookup_ip = ip_of(lookup_ip);
    assign s_learn_ip  = ip_of(learn_ip);
    assign s_learn_mac = mac_of(learn_mac);
    always_comb case (win_addr[3:2])
        0: win_wdata = ip_of(win_ip);
        2: win_wdata = software_mac[31:0];
        default: win_wdata = {13'd0, win_state, software_mac[47:32]};
    endcase

    // Settings are constant; the wait is short.
    (* anyconst *) logic [2:0]  cfg_wait;
    (* anyconst *) logic [15:0] cfg_retry, cfg_expiry;
    // Any one address, and its set.
    (* anyconst *) logic [4:0] who;

    function automatic [31:0] ip_of(input [4:0] x);
        ip_of = `IP_OF(x);
    endfunction

    function automatic [47:0] mac_of(input [1:0] x);
        mac_of = `MAC_OF(x);
    endfunction

    wire set = who[0] ^ who[2];

    plx_arp_cache #(.ENTRIES(8), .TICK_BITS(4)) dut (.*, .cfg_wait_cycles({29'd0, cfg_wait}));

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire        \dut.clearing , \dut.running , \dut.waiting , \dut.asked , \dut.left , \dut.learn ;
    (* hierconn *) wire        \dut.clear_at , \dut.at , \dut.age_at , \dut.aging , \dut.learn_new ;
    (* hierconn *) wire [1:0]  \dut.operation ;
    (* hierconn *) wire [2:0]  \dut.tick ;
    (* hierconn *) wire [3:0]  \dut.turn ;
    (* hierconn *) wire [31:0] \dut.timer , \dut.learn_ip , \dut.low_ip , \dut.low_mac , \dut.high_read ;
    (* hierconn *) wire [47:0] \dut.learn_mac ;
    (* hierconn *) wire        \dut.g_way[0].entries.watched , \dut.g_way[1].entries.watched ;
    (* hierconn *) wire        \dut.g_way[2].entries.watched , \dut.g_way[3].entries.watched ;
    (* hierconn *) wire        \dut.g_way[0].entries.put , \dut.g_way[1].entries.put ;
    (* hierconn *) wire        \dut.g_way[2].entries.put , \dut.g_way[3].entries.put ;
    (* hierconn *) wire [25:0] \dut.g_way[0].entries.word , \dut.g_way[1].entries.word ;
    (* hierconn *) wire [25:0] \dut.g_way[2].entries.word , \dut.g_way[3].entries.word ;
    (* hierconn *) wire [98:0] \dut.g_way[0].entries.w_data , \dut.g_way[1].entries.w_data ;
    (* hierconn *) wire [98:0] \dut.g_way[2].entries.w_data , \dut.g_way[3].entries.w_data ;
    (* hierconn *) wire [25:0] \dut.g_way[0].entries.last , \dut.g_way[1].entries.last ;
    (* hierconn *) wire [25:0] \dut.g_way[2].entries.last , \dut.g_way[3].entries.last ;
    wire [3:0]   put = {\dut.g_way[3].entries.put , \dut.g_way[2].entries.put , \dut.g_way[1].entries.put ,
                        \dut.g_way[0].entries.put };
    wire [103:0] words = {\dut.g_way[3].entries.word , \dut.g_way[2].entries.word , \dut.g_way[1].entries.word ,
                          \dut.g_way[0].entries.word };
    wire [395:0] written = {\dut.g_way[3].entries.w_data , \dut.g_way[2].entries.w_data , \dut.g_way[1].entries.w_data ,
                            \dut.g_way[0].entries.w_data };
    wire [103:0] read = {\dut.g_way[3].entries.last , \dut.g_way[2].entries.last , \dut.g_way[1].entries.last ,
                         \dut.g_way[0].entries.last };
    wire [3:0]   watched = {\dut.g_way[3].entries.watched , \dut.g_way[2].entries.watched ,
                            \dut.g_way[1].entries.watched , \dut.g_way[0].entries.watched };

    wire       clearing = \dut.clearing , waiting = \dut.waiting , asked = \dut.asked , left = \dut.left ;
    wire       at = \dut.at ;
    wire [1:0] operation = \dut.operation ;

    // ---- What happens -----------------------------------------------------------------------------

    // Operations are done; of the watched set.
    wire doing   = \dut.running && !clearing;
    wire looks   = doing && operation == LOOKUP;
    wire learns  = doing && operation == LEARN;
    wire ages    = doing && operation == AGE;
    wire access  = win_valid && win_ready;
    wire full    = access && win_write && &win_wstrb;
    wire puts    = full && win_addr[3:2] == 2'd3;
    wire here    = at == set;
    wire group   = lookup_ip[4] && (!lookup_ip[3] || lookup_ip == 5'h1F);
    wire table_answers = looks && m_lookup_done;
    wire misses  = looks && !m_lookup_done;
    wire forgets = rst || flush || clearing;
    wire of_who  = lookup_ip == who;

    // Of the last cycle.
    logic        started = 0, was_pending = 0, was_done = 0, was_abandon, was_missed, was_asked, was_waited = 0;
    logic        was_win = 0, was_write, was_request = 0, was_requesting = 0, was_accepted = 0;
    logic [31:0] was_wdata, was_request_ip;
    logic [4:0]  was_ip;
    logic [6:0]  was_addr;
    logic [3:0]  was_wstrb;
    wire         accepted = m_request_valid && m_request_ready;

    always_ff @(posedge clk) begin
        started        <= 1'b1;
        was_pending    <= !rst && s_lookup_valid && !m_lookup_done;
        was_done       <= !rst && m_lookup_done;
        was_ip         <= lookup_ip;
        was_abandon    <= abandon;
        was_missed     <= missed;
        was_asked      <= requested;
        was_win        <= !rst && win_valid && !win_ready;
        was_write      <= win_write;
        was_addr       <= win_addr;
        was_wdata      <= win_wdata;
        was_wstrb      <= win_wstrb;
        was_request    <= !rst && m_request_valid && !m_request_ready && !abandon;
        was_request_ip <= m_request_ip;
        was_accepted   <= !rst && accepted;
        was_requesting <= !rst && requesting;
    end

    // The last announcement; it is not stored yet.
    logic        heard = 0, p_new;
    logic [4:0]  p_ip;
    logic [1:0]  p_mac;
    always_ff @(posedge clk) begin
        if (learns) heard <= 1'b0;
        if (s_learn_valid) {heard, p_new, p_ip, p_mac} <= {1'b1, s_learn_new, learn_ip, learn_mac};
        if (rst) heard <= 1'b0;
    end

    // ---- The table, as it should be ---------------------------------------------------------------

    // What software wrote last: the parts of an entry. The watched set: its static entries.
    logic [4:0]  low_ip;
    logic        low_mac;
    logic [31:0] high;
    logic        high_known = 0;
    logic [3:0]  fixed = 0;
    logic [19:0] fixed_ip;
    logic [7:0]  fixed_mac;
    // Of `who`: it is in the table; it has answered; its MAC; how often its set has been aged since.
    logic        there = 0, known;
    logic [1:0]  mac;
    logic [15:0] age;

    wire [3:0] who_fixed, who_there, empty, silent;
    wire [3:0] good_mac;
    wire [18:0] highs [0:3];
    generate
        for (genvar w = 0; w < 4; w = w + 1) begin : g_way
            localparam [1:0] WAY = w;
            wire [25:0] kept = words[26*w +: 26];
            wire [15:0] its_age = kept[25:10];
            wire        is_fixed = kept[9] && kept[8:7] == KNOWN;
            wire [82:0] word = {kept[9:7], mac_of(kept[6:5]), ip_of(kept[4:0])};
            wire        its_put = puts && win_addr[6] == set && win_addr[5:4] == WAY;
            assign who_fixed[w] = fixed[w] && fixed_ip[5*w +: 5] == who;
            assign good_mac[w]  = who_fixed[w] && m_lookup_mac == mac_of(fixed_mac[2*w +: 2]);
            assign highs[w]     = win_addr[5:4] == WAY ? word[82:64] : 19'd0;
            assign empty[w]     = word[81:80] == 0;
            assign silent[w]    = word[81:80] == ASKED;
            assign who_there[w] = !empty[w] && !is_fixed && kept[4:0] == who;

            always_ff @(posedge clk) begin
                if (its_put) begin
                    fixed[w]             <= win_wdata[18:16] == {1'b1, KNOWN};
                    fixed_ip[5*w +: 5]   <= low_ip;
                    fixed_mac[2*w +: 2]  <= {win_mac[1], low_mac};
                end
                if (forgets) fixed[w] <= 1'b0;
            end

            // The table is as the checker's, unless it waits to be cleared.
            always_comb if (started && !rst && (!clearing || \dut.clear_at > set)) begin
                assert (is_fixed == fixed[w]);
                if (fixed[w]) assert (kept[6:0] == {fixed_mac[2*w +: 2], fixed_ip[5*w +: 5]});
                if (who_there[w]) begin
                    assert (there && its_age == age && word[81:80] == (known ? KNOWN : ASKED));
                    if (known) assert (kept[6:5] == mac);
                end
            end
            always_comb if (started && !rst) begin
                if (\dut.running && here) assert (read[26*w +: 26] == kept);
                // An address in its set; a place that may be taken.
                if (doing && put[w] && operation <= LEARN) begin
                    assert ((written[99*w] ^ written[99*w + 8]) == set);
                    if (word[31:0] != written[99*w +: 32] && !empty[w])
                        assert (!is_fixed && empty == 0 && (silent[w] || silent == 0));
                end
                if (access) assert (put[w] == its_put);
                if (its_put) assert (written[99*w +: 99] == {16'd0, win_wdata[18:0], {32{low_mac}}, ip_of(low_ip)});
                if (access && !win_write && win_addr[6:4] == {set, WAY}) begin
                    if (win_addr[3:2] == 0) assert (win_rdata == word[31:0]);
                    if (win_addr[3:2] == 2) assert (win_rdata == word[63:32]);
                end
            end
        end
    endgenerate

    wire [15:0] older   = age + 16'd1;
    wire        expires = known ? cfg_expiry != 0 && older >= cfg_expiry : older >= cfg_retry;
    wire        stores  = learns && p_ip == who && who_fixed == 0;
    wire        evicted = |(put & who_there) && !(doing && operation == AGE) && !stores;
    wire        space   = fixed != 4'hF;

    always_ff @(posedge clk) begin
        if (full && win_addr[3:2] == 0) low_ip <= win_ip;
        if (full && win_addr[3:2] == 2) low_mac <= win_mac[0];
        if (access && !win_write && win_addr[3:2] == 2) begin
            high_known <= win_addr[6] == set;
            high       <= {13'd0, highs[3] | highs[2] | highs[1] | highs[0]};
        end
        if (ages && here) begin
            age <= older;
            if (expires) there <= 1'b0;
        end
        if (evicted) there <= 1'b0;
        if (misses && of_who) begin
            there <= space;
            known <= 1'b0;
            age   <= 16'd0;
        end
        if (stores) begin
            if (p_new) there <= there || space;
            known <= 1'b1;
            mac   <= p_mac;
            age   <= 16'd0;
        end
        if (forgets) there <= 1'b0;
        if (rst) high_known <= 1'b0;
    end

    // ---- The lookup -------------------------------------------------------------------------------

    // It is not in the table; its request has been made, has left since as many cycles; cycles that it was delayed,
    // but by requests and a flush.
    logic       missed = 0, requested = 0;
    logic [3:0] since = 0, delayed = 0;
    wire        out = m_request_valid || requesting;

    always_ff @(posedge clk) begin
        missed    <= missed || misses;
        requested <= requested || missed && !requested && !m_request_valid;
        if (requested && !out) since <= since + 4'd1;
        delayed <= clearing || flush ? 4'd0 : delayed + {3'd0, !out};
        if (rst || m_lookup_done || !s_lookup_valid) begin
            {missed, requested} <= 2'b00;
            {since, delayed}    <= 8'd0;
        end
    end

    // Cycles that the announcement, an access behind it have waited.
    logic [2:0] late = 0, access_late = 0;
    always_ff @(posedge clk) begin
        late        <= rst || clearing || flush || !heard || learns || s_learn_valid ? 3'd0 : late + 3'd1;
        access_late <= rst || clearing || flush || heard || s_learn_valid || !win_valid || win_ready ? 3'd0
            : access_late + 3'd1;
    end

    // Ageing: one of the two sets, in turn, in 8 cycles.
    logic [2:0] cycles = 0;
    logic       due = 0, next_set = 0;
    always_ff @(posedge clk) begin
        cycles <= rst ? 3'd0 : cycles + 3'd1;
        due    <= !rst && (cycles == 7 || due) && !ages;
        next_set <= !rst && (next_set ^ ages);
    end

    // ---- Assumptions ------------------------------------------------------------------------------

    always_comb begin
        // What software has written before the reset is some address and MAC.
        if (!started) assume (rst && !win_valid && !\dut.running && \dut.low_ip == ip_of(low_ip)
                              && \dut.low_mac == {32{low_mac}});
        assume (!(who[4] && (!who[3] || who == 5'h1F)) && watched == {4{set}});
        // plx_udp_tx: a lookup stands until its answer, and the next one begins a cycle later.
        if (was_pending) assume (s_lookup_valid && lookup_ip == was_ip);
        if (was_done) assume (!s_lookup_valid);
        // plx_arp: one request at a time, which has not left from when it was accepted.
        if (m_request_ready) assume (!requesting);
        if (was_accepted) assume (requesting);
        else if (!was_requesting) assume (!requesting);
        // An access stands. Software makes no entry of `who` that is not static.
        if (was_win) assume (win_valid && win_write == was_write && win_addr == was_addr && win_wdata == was_wdata
                             && win_wstrb == was_wstrb);
        if (puts && low_ip == who) assume (win_wdata[17:16] == 0 || win_wdata[18:16] == {1'b1, KNOWN});
    end

    // ---- What is claimed --------------------------------------------------------------------------

    always_comb if (started && !rst) begin
        if (m_lookup_done) assert (s_lookup_valid);
        if (s_lookup_valid && group) begin
            assert (m_lookup_done && m_lookup_hit);
            assert (m_lookup_mac == (s_lookup_ip == 32'hFFFFFFFF ? 48'hFFFFFFFFFFFF
                                     : {24'h01005E, s_lookup_ip[23:0] & 24'h7FFFFF}));
        end
        if (m_lookup_done && of_who) begin
            if (m_lookup_hit) begin
                if (who_fixed != 0) assert (good_mac != 0);
                else if (learns && p_ip == who) assert (m_lookup_mac == mac_of(p_mac));
                else assert (there && known && m_lookup_mac == mac_of(mac) && (cfg_expiry == 0 || age < cfg_expiry));
            end else if (missed) assert (abandon || requested && since > cfg_wait);
            else assert (there && !known && who_fixed == 0 && (age < cfg_retry || age == 0));
        end
        // It is not in the table; an announcement, and `abandon`, end the wait.
        if (misses && of_who) assert (!there && who_fixed == 0);
        if (missed && learns && p_ip == lookup_ip) assert (m_lookup_done && m_lookup_hit);
        if (missed && abandon) assert (m_lookup_done);
        assert (delayed <= cfg_wait + 5);

        if (m_request_valid && !was_request)
            assert (m_request_ip == ip_of(was_ip) && was_missed && !was_asked && !was_abandon);
        if (was_request) assert (m_request_valid && m_request_ip == was_request_ip);
        if (was_abandon && !was_accepted) assert (!m_request_valid);

        assert (((who_there & (who_there - 4'd1)) == 0 && (who_there != 0) == there) || clearing);
        if (ages) assert (due && at == next_set);

        if (win_ready) assert (win_valid);
        if (access && !win_write && win_addr[3:2] == 1) assert (win_rdata == 0);
        if (access && !win_write && win_addr[3:2] == 3 && high_known) assert (win_rdata == high);
        assert (late <= 4 && access_late <= 4);

        cover (m_lookup_done && of_who && m_lookup_hit && !learns && who_fixed != 0 && there && known);
        cover (m_lookup_done && of_who && m_lookup_hit && learns && who_fixed != 0);
        cover (m_lookup_done && of_who && m_lookup_hit && !learns && who_fixed == 0);
        cover (m_lookup_done && of_who && !m_lookup_hit && missed && !abandon && cfg_wait == 2);
        cover (m_lookup_done && of_who && !m_lookup_hit && !missed && age == 1);
        cover (ages && here && there && known && expires && age == 0 && cfg_expiry == 1);
        cover (evicted && known && learns);
        cover (evicted && !known && misses);
        cover (m_lookup_done && delayed == 5 + cfg_wait);
        cover (learns && late == 4);
        cover (access && access_late == 4);
    end

    // ---- What makes it inductive ------------------------------------------------------------------

    wire eligible = s_lookup_valid && !waiting && !group;
    always_comb if (started) begin
        assert (\dut.learn == heard);
        if (heard) assert ({\dut.learn_new , \dut.learn_ip , \dut.learn_mac } == {p_new, ip_of(p_ip), mac_of(p_mac)});
        assert (clearing || \dut.clear_at == 0);
        if (clearing) assert (fixed == 0 && !there);
        if (\dut.running ) case (operation)
            LOOKUP: assert (eligible && at == (lookup_ip[0] ^ lookup_ip[2]));
            LEARN:  assert (heard && at == (p_ip[0] ^ p_ip[2]));
            ACCESS: assert (win_valid && at == win_addr[6]);
            AGE:    assert (\dut.aging && at == \dut.age_at );
        endcase
        assert (missed == waiting && requested == asked);
        if (missed) assert (s_lookup_valid && !group);
        if (asked) assert (waiting);
        assert (\dut.turn != 0 && (\dut.turn & (\dut.turn - 4'd1)) == 0);
        if (left && asked) assert (!out && since != 0 && \dut.timer == cfg_wait + 4'd1 - since && since <= cfg_wait + 1);
        if (left && !asked) assert (!waiting && !looks);
        if (asked && !left) assert (since == 0);
        if (!asked) assert (since == 0);
        if (there) assert (known ? cfg_expiry == 0 || age < cfg_expiry : age < cfg_retry || age == 0);
        if (high_known) assert (\dut.high_read == high);
        assert (\dut.low_ip == ip_of(low_ip) && \dut.low_mac == {32{low_mac}});
        assert (\dut.tick == cycles && \dut.aging == due && \dut.age_at == next_set);
        // How late each may be.
        if (s_lookup_valid && !clearing) begin
            if (!waiting) assert (delayed <= (!\dut.running ? 1 : operation == LOOKUP ? 2 : 0));
            else if (!asked) assert (delayed <= 3);
            else assert (delayed <= 4 + since);
        end
        if (heard && !clearing)
            assert (late <= (\dut.running ? operation == LEARN ? 4 : operation == LOOKUP ? 2 : 0 : eligible ? 1 : 3));
        if (win_valid && !heard && !clearing) assert (access_late
            <= (\dut.running ? operation == ACCESS ? 4 : operation == LOOKUP ? 2 : 0 : eligible ? 1 : 3));
    end
endmodule
