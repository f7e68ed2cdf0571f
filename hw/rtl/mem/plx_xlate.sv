// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Translates the virtual addresses of all masters of the card to bus addresses, in chunks that lie in
// 4 KiB, so that what a master accesses may be in pages of any sizes that do not follow each other. A
// chunk is allowed if an entry of its function covers it and has its key and right.
//
// A chunk without an entry is reported by an event and held until software enters its page, or
// until the timeout: then, and at once where key or right do not agree, it is a fault. A held
// chunk delays its own master only. The event is that of the chunk's function, in the queue that this
// function has named. Each master has a place for one, in which it waits for space in its queue, so that no queue
// holds up the events of other masters. A function in reset has no events, and its chunks are not held any longer.
//
// Unmapping: software makes entries invalid and then writes a number to `invalidate`. Later lookups
// belong to the other epoch; when none of the former is in use any more, and all writes of before
// have left the card, `invalidated` shows the number. No master stops for it.
//
//   cycle 0  a request is accepted
//   cycle 3  its response: it is allowed, or a fault, or held

module plx_xlate #(
    parameter MASTERS      = 4,    // requesters
    parameter ENTRIES      = 128,  // pages, a power of two
    parameter FLIGHT_W     = 6     // bits of the number of chunks in use: as many as all masters may use
) (
    input  logic                    clk,
    input  logic                    rst,

    // Registers: of each function, an event for each chunk without a page, and its queue; cycles that one is held.
    // Functions in reset.
    input  logic [7:0]              cfg_event_fault,
    input  logic [63:0]             cfg_fault_queue,
    input  logic [31:0]             cfg_timeout_cycles,
    input  logic [7:0]              resetting,

    // A number, written after entries were made invalid; the last one for which no chunk is in use.
    input  logic [31:0]             cfg_invalidate,
    input  logic                    wr_invalidate,
    output logic [31:0]             sts_invalidated,

    // Entries.
    input  logic                    win_entry_valid,
    output logic                    win_entry_ready,
    input  logic                    win_write,
    input  logic [12:0]             win_addr,
    input  logic [31:0]             win_wdata,
    input  logic [3:0]              win_wstrb,
    output logic [31:0]             win_entry_rdata,

    // A chunk: its first byte, its bytes (1 and more, none beyond 4 KiB), its function and key; to be
    // written, or read; a number for the event. It stands until its response. `accepted`: it is looked up.
    input  logic [MASTERS-1:0]      s_req_valid,
    input  logic [MASTERS*64-1:0]   s_req_address,
    input  logic [MASTERS*13-1:0]   s_req_length,
    input  logic [MASTERS*8-1:0]    s_req_func,
    input  logic [MASTERS*32-1:0]   s_req_key,
    input  logic [MASTERS-1:0]      s_req_write,
    input  logic [MASTERS*7-1:0]    s_req_index,
    output logic [MASTERS-1:0]      m_req_accepted,

    // The response. An allowed chunk is in use until its master says so, with its epoch: until its last
    // write has been accepted by the host bus, or its last read is complete.
    output logic [MASTERS-1:0]      m_rsp_valid,
    output logic                    m_rsp_hit,
    output logic [63:0]             m_rsp_address,
    output logic                    m_rsp_epoch,
    input  logic [MASTERS-1:0]      s_done,
    input  logic [MASTERS-1:0]      s_done_epoch,

    // Writes accepted before this have left the card: held until `done`.
    output logic                    m_fence,
    input  logic                    s_fence_done,

    // An event of a function, to a queue with room: the queue, and in the next cycle whether it has.
    input  logic [63:0]             now_cycle_ts,
    output logic [7:0]              m_room_queue,
    input  logic                    s_room,
    output logic                    m_event_valid,
    input  logic                    m_event_ready,
    output logic [7:0]              m_event_queue,
    output logic [2:0]              m_event_func,
    output logic [511:0]            m_event_record,

    // Counters: held, faults, events whose master's place was not free.
    output logic                    inc_misses,
    output logic                    inc_faults,
    output logic                    inc_events_lost
);
    localparam FAULT_W = 32 + 64 + 8 + 2 + 13 + 7;

    generate
        if (MASTERS < 1) MASTERS_must_be_at_least_1 parameter_error ();
    endgenerate

    // ---- Requests -------------------------------------------------------------------------------

    // Of each master: looked up; held until an entry is made; neither; reported; held for long enough; an
    // entry was made since the lookup.
    logic [MASTERS-1:0] busy, held, free, told, expired, stale, grant;
    logic               entered;

    // The arbiter needs two requesters.
    localparam ASKERS = MASTERS < 2 ? 2 : MASTERS;
    logic [ASKERS-1:0] turn;

    plx_arb_rr #(.N(ASKERS)) arbiter (
        .clk, .rst, .request(ASKERS'(s_req_valid & free)), .grant(turn), .done(1'b1)
    );

    assign grant          = turn[MASTERS-1:0];
    assign m_req_accepted = grant;

    logic [63:0] address;
    logic [12:0] length;
    logic [7:0]  func;
    logic [31:0] key;
    logic        write;
    logic [6:0]  index;

    integer m;
    always_comb begin
        address = '0;
        length  = '0;
        func    = '0;
        key     = '0;
        write   = |(s_req_write & grant);
        index   = '0;
        for (m = 0; m < MASTERS; m = m + 1) begin
            address = address | (s_req_address[m*64 +: 64] & {64{grant[m]}});
            length  = length | (s_req_length[m*13 +: 13] & {13{grant[m]}});
            func    = func | (s_req_func[m*8 +: 8] & {8{grant[m]}});
            key     = key | (s_req_key[m*32 +: 32] & {32{grant[m]}});
            index   = index | (s_req_index[m*7 +: 7] & {7{grant[m]}});
        end
    end

    logic        covered, permitted;
    logic [63:0] bus;

    plx_xlate_table #(.ENTRIES(ENTRIES)) pages (
        .clk, .rst, .win_entry_valid, .win_entry_ready, .win_write, .win_addr, .win_wdata, .win_wstrb,
        .win_entry_rdata, .entered, .s_address(address), .s_func(func), .s_key(key), .s_write(write),
        .m_covered(covered), .m_permitted(permitted), .m_address(bus)
    );

    // The request beside the table: cycles 1 to 3.
    localparam REQ_W = 64 + 13 + 8 + 7;
    logic [REQ_W-1:0]   then_1, then_2, then_3;
    logic [MASTERS-1:0] who_1, who_2, who;
    logic               epoch, epoch_1, epoch_2, of_epoch, crosses;

    wire [63:0] of_address = then_3[REQ_W-1 -: 64];
    wire [12:0] of_length  = then_3[15 +: 13];
    wire [7:0]  of_func    = then_3[7 +: 8];
    wire [6:0]  of_index   = then_3[6:0];
    wire [13:0] beyond     = {2'd0, then_2[28 +: 12]} + {1'b0, then_2[15 +: 13]};

    always_ff @(posedge clk) begin
        then_1   <= {address, length, func, index};
        then_2   <= then_1;
        then_3   <= then_2;
        epoch_1  <= epoch;
        epoch_2  <= epoch_1;
        of_epoch <= epoch_2;
        crosses  <= beyond > 14'd4096;
        who_1    <= rst ? '0 : grant;
        who_2    <= rst ? '0 : who_1;
        who      <= rst ? '0 : who_2;
    end

    // ---- Responses ------------------------------------------------------------------------------

    // A chunk is not held at all.
    logic at_once;
    always_ff @(posedge clk) at_once <= cfg_timeout_cycles == 0;

    wire is_last   = |(who & expired) || at_once;
    wire missing   = !covered && !crosses;
    wire holds     = |who && missing && !is_last;
    wire fault     = |who && !m_rsp_hit && !holds;
    wire known     = |(who & told);
    wire reports   = (holds || fault) && !known;

    assign m_rsp_hit     = covered && permitted && !crosses;
    assign m_rsp_valid   = who & {MASTERS{!holds}};
    assign m_rsp_address = bus;
    assign m_rsp_epoch   = of_epoch;

    // Counted and reported in the cycle after.
    always_ff @(posedge clk) begin
        inc_misses <= !rst && holds && !known;
        inc_faults <= !rst && fault;
    end

    genvar i;
    generate
        for (i = 0; i < MASTERS; i = i + 1) begin : g_master
            logic [31:0] left;
            // Its function is in reset, which waits for the chunk.
            logic        func_in_reset;
            wire  [2:0]  func_of = s_req_func[i*8 +: 3];
            wire         again = entered || stale[i];
            wire         stays = busy[i] && !who[i];
            wire         waits = who[i] ? holds && !again : held[i] && !entered && !expired[i];

            always_ff @(posedge clk) begin
                busy[i]  <= grant[i] || stays;
                held[i]  <= waits;
                free[i]  <= !grant[i] && !stays && !waits;
                stale[i] <= !grant[i] && again && busy[i];
                if (who[i]) told[i] <= holds;
                func_in_reset <= resetting[func_of];
                if (!told[i]) left <= cfg_timeout_cycles;
                else if (left != 0) left <= left - 1'b1;
                if (m_rsp_valid[i]) expired[i] <= 1'b0;
                else if (told[i] && (left == 0 || func_in_reset)) expired[i] <= 1'b1;
                if (rst) begin
                    busy[i]    <= 1'b0;
                    held[i]    <= 1'b0;
                    free[i]    <= 1'b1;
                    told[i]    <= 1'b0;
                    expired[i] <= 1'b0;
                end
            end
        end
    endgenerate

    // ---- Chunks in use, and unmapping -----------------------------------------------------------

    // Of each epoch: lookups, and allowed chunks. Those that begin are counted a cycle late, and those that end
    // later: `gone` one cycle ago, and `ended` two.
    logic [2*FLIGHT_W-1:0] flying, ended;
    logic                  asked, draining;
    logic [31:0]           number;

    genvar f;
    generate
        for (f = 0; f < 2; f = f + 1) begin : g_epoch
            logic [MASTERS:0]    gone;
            logic [FLIGHT_W-1:0] sum;
            wire [FLIGHT_W-1:0]  now   = flying[f*FLIGHT_W +: FLIGHT_W];
            wire [FLIGHT_W-1:0]  less  = ended[f*FLIGHT_W +: FLIGHT_W];
            wire                 adds  = |who_1 && epoch_1 == f;

            integer d;
            always_comb begin
                sum = '0;
                for (d = 0; d <= MASTERS; d = d + 1) sum = sum + {{(FLIGHT_W-1){1'b0}}, gone[d]};
            end

            always_ff @(posedge clk) begin
                gone <= rst ? '0 : {|who && !m_rsp_hit && of_epoch == f, s_done & (f == 1 ? s_done_epoch : ~s_done_epoch)};
                ended[f*FLIGHT_W +: FLIGHT_W]  <= rst ? '0 : sum;
                flying[f*FLIGHT_W +: FLIGHT_W] <= rst ? '0 : now + {{(FLIGHT_W-1){1'b0}}, adds} - less;
            end
        end
    endgenerate

    wire [FLIGHT_W-1:0] old  = epoch ? flying[0 +: FLIGHT_W] : flying[FLIGHT_W +: FLIGHT_W];
    wire                more = |who_1 && epoch_1 != epoch;
    wire                flip = asked && !draining;

    always_ff @(posedge clk) begin
        if (wr_invalidate) asked <= 1'b1;
        else if (flip) asked <= 1'b0;
        if (flip) begin
            epoch    <= !epoch;
            draining <= 1'b1;
            number   <= cfg_invalidate;
        end
        if (draining && old == 0 && !more) m_fence <= 1'b1;
        if (m_fence && s_fence_done) begin
            m_fence         <= 1'b0;
            draining        <= 1'b0;
            sts_invalidated <= number;
        end
        if (rst) begin
            asked           <= 1'b0;
            epoch           <= 1'b0;
            draining        <= 1'b0;
            m_fence         <= 1'b0;
            sts_invalidated <= '0;
        end
    end

    // ---- Events ---------------------------------------------------------------------------------

    localparam MW = MASTERS < 2 ? 1 : $clog2(MASTERS);

    // Functions whose chunks are reported. The card has eight; known a cycle ahead whether the chunk's is one.
    logic [7:0]         on;
    logic               exists;
    wire [1:0]          reason = crosses ? 2'd1 : covered ? 2'd2 : 2'd0;

    // A report, and its master. It goes to that one's place, if no other waits there.
    logic               report_valid;
    logic [MASTERS-1:0] report_who;
    logic [MW-1:0]      report_to;
    logic [FAULT_W-1:0] report, next;
    logic [FAULT_W-1:0] places [0:MASTERS-1];
    // Those with a report.
    logic [MASTERS-1:0] waiting;
    wire  [2:0]         report_func = report[22 +: 3];
    wire                report_live = report_valid && on[report_func];
    wire                occupied    = |(waiting & report_who);

    integer w;
    always_comb begin
        report_to = '0;
        for (w = 0; w < MASTERS; w = w + 1) report_to = report_to | (MW'(w) & {MW{report_who[w]}});
    end

    always_ff @(posedge clk) begin
        on           <= rst ? 8'd0 : cfg_event_fault & ~resetting;
        exists       <= then_2[14:10] == 0;
        report_valid <= !rst && reports && exists;
        report_who   <= who;
        report       <= {now_cycle_ts[31:0], of_address, of_func, reason, of_length, of_index};
        if (report_live && !occupied) places[report_to] <= report;
    end

    assign inc_events_lost = report_live && occupied;

    // One place after the other is looked at: its report is read, then what is of its function, room is asked for, and
    // it is known. If there is none, the report stays until the next turn. No queue is asked about while an
    // event is offered: that one would not have been seen.
    localparam [1:0] LOOK = 0, READ = 1, ASK = 2, DECIDE = 3;
    logic [1:0]    step;
    logic [MW-1:0] turn_of;
    // The report that was read is still the one that waits: no other has come after it was forgotten.
    logic          same;
    wire  [2:0]    next_func = next[22 +: 3];
    wire           send      = step == DECIDE && same && waiting[turn_of] && s_room;
    wire           passes    = step == DECIDE || step == LOOK && !waiting[turn_of];

    // Events of each function are numbered: from 0 where its bit is not set.
    logic [31:0]   numbers [0:7];
    logic [31:0]   sequence_number;
    logic [7:0]    numbered;

    generate
        for (i = 0; i < MASTERS; i = i + 1) begin : g_place
            logic [2:0] whose;
            wire        stored = report_live && report_who[i] && !occupied;
            wire        sent   = send && turn_of == i;
            always_ff @(posedge clk) begin
                if (stored) whose <= report_func;
                waiting[i] <= !rst && (stored || waiting[i] && !sent && on[whose]);
            end
        end
    endgenerate

    always_ff @(posedge clk) begin
        case (step)
            LOOK:    if (waiting[turn_of] && !m_event_valid) step <= READ;
            READ:    step <= ASK;
            ASK:     step <= DECIDE;
            default: step <= LOOK;
        endcase
        if (passes) turn_of <= turn_of == MW'(MASTERS - 1) ? '0 : turn_of + 1'b1;
        same <= (step == LOOK || same) && waiting[turn_of];
        if (m_event_ready) m_event_valid <= 1'b0;
        if (send) m_event_valid <= 1'b1;
        for (int n = 0; n < 8; n = n + 1) numbered[n] <= !rst && !resetting[n] && (numbered[n] || send && next_func == 3'(n));
        if (rst) begin
            step          <= LOOK;
            turn_of       <= '0;
            m_event_valid <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        if (step == LOOK) next <= places[turn_of];
        if (step == READ) begin
            m_room_queue    <= 8'(cfg_fault_queue >> {next_func, 3'd0});
            sequence_number <= numbered[next_func] ? numbers[next_func] : 32'd0;
        end
        if (send) numbers[next_func] <= sequence_number + 32'd1;
    end

    always_ff @(posedge clk) if (send) begin
        m_event_queue  <= m_room_queue;
        m_event_func   <= next_func;
        m_event_record <= '0;
        m_event_record[layouts_pkg::EVENT_RECORD_INDEX_AT +: 7]     <= next[6:0];
        m_event_record[layouts_pkg::EVENT_RECORD_LENGTH_AT +: 13]   <= next[19:7];
        m_event_record[layouts_pkg::TLB_FAULT_REASON_AT +: 2]       <= next[21:20];
        m_event_record[layouts_pkg::TLB_FAULT_FUNCTION_AT +: 8]     <= next[29:22];
        m_event_record[layouts_pkg::TLB_FAULT_ADDRESS_AT +: 64]     <= next[93:30];
        m_event_record[layouts_pkg::TLB_FAULT_STAGES_AT + 64 +: 32] <= next[125:94];
        m_event_record[layouts_pkg::EVENT_RECORD_SEQUENCE_AT +: 32] <= sequence_number;
        m_event_record[layouts_pkg::EVENT_RECORD_KIND_AT +: 8]      <= layouts_pkg::TLB_FAULT_KIND;
    end

    wire unused = &{1'b0, now_cycle_ts[63:32]};
endmodule
