// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The event queues' state, a row of a block RAM each: their registers, what was accepted and written, and
// the moderation of their interrupt. One operation begins in each cycle:
//
//   cycle 0  an operation is selected, the row of its queue is read
//   cycle 1  differences of its numbers; software's word is put into the row
//   cycle 2  what follows from them; the row is written back
//
// Operations of one queue are three cycles apart, so that each finds what the one before has left. Of those that
// wait, a record goes before one that was written, and then that before all others; software and records take
// turns. In any other cycle one queue is looked at, one after the other, for interrupts whose time has come. After a reset all rows are cleared first.
//
// An armed queue requests its interrupt once, after COUNT records that its consumer has not seen, or HOLD cycles
// after the first of them, whichever is first; at once if the consumer armed it with old records pending.
// Records count from their acceptance by the host bus, so that an interrupt follows its record.

module plx_event_queues #(
    parameter EVENT_QUEUES = 256,  // queues, 1 to 256
    parameter ROOM         = 4     // records that are free while there is room, 2 or 4
) (
    input  logic        clk,
    input  logic        rst,

    // Rows are being cleared: no queue is enabled.
    output logic        clearing,

    // Registers of the queues.
    input  logic        win_valid,
    output logic        win_ready,
    input  logic        win_write,
    input  logic [13:0] win_addr,
    input  logic [31:0] win_wdata,
    input  logic [3:0]  win_wstrb,
    output logic [31:0] win_rdata,

    // The owner of a queue, in the same cycle.
    output logic [7:0]  m_owner_queue,
    input  logic [2:0]  s_owner,

    // A record of a function for a queue. Two cycles later: whether it has space there; where, and its phase.
    input  logic        s_event_valid,
    output logic        s_event_ready,
    input  logic [7:0]  s_event_queue,
    input  logic [2:0]  s_event_func,
    output logic        m_place_valid,
    output logic        m_place_fits,
    output logic [63:0] m_place_address,
    output logic        m_place_phase,

    // A record with space in a queue has been written. A queue is at its beginning: records that it took before do
    // not count.
    input  logic        s_written_valid,
    output logic        s_written_ready,
    input  logic [7:0]  s_written_queue,
    output logic        m_void_valid,
    output logic [7:0]  m_void_queue,

    // Room of a queue, as of now.
    output logic        m_room_valid,
    output logic [7:0]  m_room_queue,
    output logic        m_room,

    // An interrupt request of a queue, for one cycle.
    output logic        m_irq_valid,
    output logic [7:0]  m_irq_queue
);
    localparam QW    = EVENT_QUEUES < 2 ? 1 : $clog2(EVENT_QUEUES);
    localparam DEPTH = EVENT_QUEUES < 2 ? 2 : EVENT_QUEUES;
    localparam RW    = $clog2(ROOM);

    generate
        if (EVENT_QUEUES < 1 || EVENT_QUEUES > 256) EVENT_QUEUES_must_be_1_to_256 parameter_error ();
        if (ROOM != 2 && ROOM != 4) ROOM_must_be_2_or_4 parameter_error ();
    endgenerate

    localparam [2:0] NOTHING = 3'd0, CLEAR = 3'd1, WRITTEN = 3'd2, ACCESS = 3'd3, EVENT = 3'd4, LOOK = 3'd5;
    // Words of the registers of a queue (hw/rdl/event.rdl).
    localparam [3:0] LOW = 4'd0, HIGH = 4'd1, CTRL = 4'd2, RELEASED = 4'd3, PRODUCED = 4'd4, COUNT = 4'd5,
                     HOLD = 4'd6, ARM = 4'd7;

    // ---- Cycle 0: selection -------------------------------------------------------------------------

    logic [2:0]    op, late_op;
    logic [QW-1:0] queue, late_queue, looked, cleared, pick;

    wire known     = {1'b0, win_addr[13:6]} < EVENT_QUEUES;
    wire accesses  = win_valid && known && op != ACCESS && late_op != ACCESS;
    // Software was the last that went before a record; a record has gone before the one that was written.
    logic      turned, passed;
    wire [2:0] next = clearing ? CLEAR : s_written_valid && !(s_event_valid && !passed) ? WRITTEN
                    : accesses && !(s_event_valid && (turned || s_written_valid)) ? ACCESS
                    : s_event_valid ? EVENT : LOOK;

    wire [QW-1:0] of_written = s_written_queue[QW-1:0], of_access = win_addr[6 +: QW], of_event = s_event_queue[QW-1:0];
    always_comb begin
        case (next)
            CLEAR:   pick = cleared;
            WRITTEN: pick = of_written;
            ACCESS:  pick = of_access;
            EVENT:   pick = of_event;
            default: pick = looked;
        endcase
    end

    wire begins = !(op != NOTHING && queue == pick) && !(late_op != NOTHING && late_queue == pick);

    assign s_written_ready = next == WRITTEN && begins;
    assign s_event_ready   = next == EVENT && begins;

    wire [QW-1:0] last = QW'(EVENT_QUEUES - 1);

    always_ff @(posedge clk) begin
        op      <= begins ? next : NOTHING;
        queue   <= pick;
        late_op <= op;
        if (begins && (next == ACCESS || next == EVENT)) turned <= next == ACCESS;
        passed  <= s_written_valid && !s_written_ready && (passed || s_event_ready);
        if (next == LOOK) looked <= looked == last ? '0 : looked + 1'b1;
        if (next == CLEAR && begins) begin
            cleared <= cleared + 1'b1;
            if (cleared == last) clearing <= 1'b0;
        end
        if (rst) begin
            op       <= NOTHING;
            late_op  <= NOTHING;
            looked   <= '0;
            turned   <= 1'b0;
            passed   <= 1'b0;
            cleared  <= '0;
            clearing <= 1'b1;
        end
    end

    // ---- Cycle 1: differences -----------------------------------------------------------------------

    // A queue's row. `since`: when the first record came that its consumer has not seen.
    localparam ROW_W = 64 + 1 + 5 + 4*32 + 16 + 32 + 1 + 33;
    logic [ROW_W-1:0] row, new_row;
    logic [63:0]      base;
    logic             enable, armed;
    logic [4:0]       log2;
    logic [31:0]      released, accepted, produced, hold, seen;
    logic [15:0]      count;
    logic [32:0]      since, cycle;
    assign {base, enable, log2, released, accepted, produced, seen, count, hold, armed, since} = row;

    plx_ram_sdp #(
        .WIDTH(ROW_W),
        .DEPTH(DEPTH)
    ) rows (
        .clk,
        .w_enable(late_op != NOTHING),
        .w_address(late_queue),
        .w_data(new_row),
        .r_enable(begins),
        .r_address(pick),
        .r_data(row)
    );

    wire        writes = op == ACCESS && win_write;
    wire [3:0]  word   = win_addr[5:2];
    wire [31:0] mask   = {{8{win_wstrb[3]}}, {8{win_wstrb[2]}}, {8{win_wstrb[1]}}, {8{win_wstrb[0]}}};
    wire [31:0] put    = win_wdata & mask;
    // Words as software leaves them. Records are not written across their slots: with a base that is no
    // multiple of 64 a queue takes none.
    wire        wr_low      = writes && word == LOW;
    wire        wr_high     = writes && word == HIGH;
    wire        wr_ctrl     = writes && word == CTRL;
    wire        wr_released = writes && word == RELEASED;
    wire        wr_count    = writes && word == COUNT;
    wire        wr_hold     = writes && word == HOLD;
    wire        wr_arm      = writes && word == ARM;
    wire [31:0] released_now = wr_released ? released & ~mask | put : released;
    wire [31:0] seen_now     = wr_arm ? seen & ~mask | put : seen;
    wire [31:0] base_now     = wr_low ? base[31:0] & ~mask | put : base[31:0];
    wire        enable_now   = wr_ctrl && win_wstrb[0] ? win_wdata[0] : enable;
    // Records to an interrupt, of those before the one that is being counted.
    wire [15:0] count_now    = wr_count ? count & ~mask[15:0] | put[15:0] : count;
    wire [31:0] passes       = accepted >> log2;
    // Bits of a record's number that tell the pass.
    wire [4:0]  log2_now     = wr_ctrl && win_wstrb[1] ? win_wdata[12:8] : log2;

    logic [63:0] l_base;
    logic        l_enable, l_whole, l_large, l_armed, l_restarts, l_arms, l_fresh, l_phase, l_own;
    logic [4:0]  l_log2;
    logic [31:0] l_mask, l_released, l_accepted, l_more, l_produced, l_hold, l_seen, l_used, l_unseen, l_place;
    logic [15:0] l_count, l_least;
    logic [32:0] l_since, l_age;

    // A record's queue exists, and is its function's.
    assign m_owner_queue = 8'(queue);
    logic [2:0] func;
    logic       exists;

    always_ff @(posedge clk) begin
        cycle      <= cycle + 1'b1;
        func       <= s_event_func;
        exists     <= {1'b0, s_event_queue} < EVENT_QUEUES;
        late_queue <= queue;
        l_base     <= {wr_high ? base[63:32] & ~mask | put : base[63:32], base_now};
        l_enable   <= enable_now;
        l_whole    <= base_now[5:0] == 0;
        l_log2     <= log2_now;
        l_mask     <= 32'hFFFFFFFF << log2_now;
        l_large    <= log2_now >= 5'(RW);
        // As long as a queue is off, and when it is switched on, it is at its beginning.
        l_restarts <= wr_ctrl && !(enable && enable_now);
        l_released <= released_now;
        l_accepted <= accepted;
        l_more     <= accepted + 32'd1;
        l_produced <= op == WRITTEN ? produced + 32'd1 : produced;
        l_seen     <= seen_now;
        l_count    <= count_now;
        l_least    <= op == WRITTEN && count != 0 ? count - 16'd1 : count;
        l_hold     <= wr_hold ? hold & ~mask | put : hold;
        l_armed    <= armed || wr_arm && enable;
        l_arms     <= wr_arm;
        l_since    <= since;
        l_used     <= accepted - released_now;
        l_unseen   <= produced - seen_now;
        l_fresh    <= op == WRITTEN && produced == seen;
        l_age      <= cycle - since;
        l_place    <= accepted & ~(32'hFFFFFFFF << log2);
        l_phase    <= !passes[0];
        l_own      <= exists && s_owner == func;
        if (rst) cycle <= '0;
    end

    // ---- Cycle 2: what follows ----------------------------------------------------------------------

    // An impossible released number gives more than a queue's size used. In the last ROOM places the number
    // of those used has ones in all bits from RW on; in the first of them, there are ROOM left.
    wire        free = (l_used & l_mask) == 0;
    wire        tail = &(l_used[31:RW] | l_mask[31:RW]);
    wire        fits = late_op == EVENT && l_own && l_enable && l_whole && free;
    wire        room = free && !(tail && (fits || l_used[RW-1:0] != 0));

    assign m_room_valid    = late_op != NOTHING;
    assign m_room_queue    = 8'(late_queue);
    assign m_room          = late_op != CLEAR && l_enable && l_whole && l_large && (l_restarts || room);
    assign m_place_valid   = late_op == EVENT;
    assign m_place_fits    = fits;
    assign m_place_address = l_base + {26'd0, l_place, 6'd0};
    assign m_place_phase   = l_phase;

    // Records before the arming were missed by the consumer: they interrupt at once.
    wire some   = l_enable && l_armed && (late_op == WRITTEN ? !(&l_unseen) : l_unseen != 0);
    wire enough = l_unseen >= {16'd0, l_least};
    wire late   = l_fresh ? l_hold == 0 : l_age >= {1'b0, l_hold};
    wire due    = some && (late_op == ACCESS ? l_arms : (late_op == WRITTEN || late_op == LOOK) && (enough || late));

    always_ff @(posedge clk) begin
        m_irq_valid <= !rst && due;
        m_irq_queue <= 8'(late_queue);
    end

    wire   from_0 = l_restarts || !l_enable;
    assign m_void_valid = late_op == ACCESS && from_0;
    assign m_void_queue = 8'(late_queue);
    assign new_row = late_op == CLEAR ? '0 : {
        l_base, l_enable, l_log2, l_restarts ? 32'd0 : l_released,
        from_0 ? 32'd0 : fits ? l_more : l_accepted, from_0 ? 32'd0 : l_produced, l_seen, l_count, l_hold,
        l_armed && !due && !from_0, l_fresh ? cycle : l_since
    };

    // ---- Accesses -----------------------------------------------------------------------------------

    wire  [31:0] low = l_base[31:0], high = l_base[63:32];
    logic [31:0] value;
    always_comb begin
        case (word)
            LOW:      value = low;
            HIGH:     value = high;
            CTRL:     value = {19'd0, l_log2, 6'd0, !l_whole, l_enable};
            RELEASED: value = l_released;
            PRODUCED: value = l_produced;
            COUNT:    value = {16'd0, l_count};
            HOLD:     value = l_hold;
            ARM:      value = l_seen;
            default:  value = '0;
        endcase
    end

    assign win_ready = late_op == ACCESS || win_valid && !known;
    assign win_rdata = known ? value : 32'd0;

    wire unused = &{1'b0, win_addr[1:0], passes[31:1], s_written_queue, s_event_queue};
endmodule
