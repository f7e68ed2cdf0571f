// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Around any table (an abstraction replaces plx_xlate_table): one lookup in a cycle, of a request
// that stands; its response or its hold comes three cycles later. The table is asked for the function, key, right
// and address of the master that was accepted, whatever another asks for, and what it says goes to that master. A
// chunk is allowed only where an entry covers it and permits it, and only if it lies in 4 KiB. One that is refused
// is not held; one that is held is looked up again once an entry is made. `invalidated` shows a number only when no
// chunk is in use or looked up that was taken before the number was written, and after the fence; later chunks do
// not matter. An event is offered where there was room, and is stable until accepted: for the function of its chunk's
// master, in the queue of that, and of a chunk that was looked up since the function had events and was in no reset.
// formal: aiger
// formal: bounded 18
// formal: cover 20
// mutant: (s_req_func[m*8 +: 8] => (s_req_func[7:0]
// mutant: (s_req_key[m*32 +: 32] => (s_req_key[31:0]
// mutant: |(s_req_write & grant) => |s_req_write
// mutant: (s_req_address[m*64 +: 64] => (s_req_address[63:0]
// mutant: = who & {MASTERS{!holds}}; => = {MASTERS{|who && !holds}};
// mutant: assign m_rsp_address = bus; => assign m_rsp_address = of_address;
// mutant: {now_cycle_ts[31:0], of_address, of_func, => {now_cycle_ts[31:0], of_address, func,
// mutant: covered && permitted && !crosses => covered && !crosses
// mutant: covered && permitted && !crosses => covered && permitted
// mutant: |who_1 && epoch_1 == f => 1'b0 && epoch_1 == f
// mutant: draining && old == 0 && !more => draining && !more
// mutant: draining && old == 0 && !more => draining && old == 0
// mutant: holds && !again => holds
// mutant: same && waiting[turn_of] && s_room => same && waiting[turn_of]
// mutant: waiting[turn_of] && !m_event_valid) step => waiting[turn_of]) step
// mutant: !sent && on[whose]) => !sent)
// mutant: same && waiting[turn_of] && s_room => waiting[turn_of] && s_room
// mutant: && on[report_func]; => ;
// mutant: m_event_func   <= next_func; => m_event_func   <= m_event_func;

module plx_xlate_formal (
    input logic         clk,
    input logic         rst,
    input logic [1:0]   s_req_valid,
    input logic [1:0]   near,
    input logic [1:0]   done,
    input logic [1:0]   patience,
    input logic         wr_invalidate,
    input logic         s_fence_done,
    input logic         s_room,
    input logic         m_event_ready,
    input logic [1:0]   any_fault,
    input logic [1:0]   any_reset
);
    // Chunks of 16 B: 4 KiB end in the middle, or do not.
    // Any of two functions, pages, keys and rights for each master.
    (* anyconst *) wire [1:0] func, page, key, right;
    wire  [127:0] s_req_address = {51'd0, page[1], near[1] ? 12'hFF8 : 12'h000,
                                   51'd0, page[0], near[0] ? 12'hFF8 : 12'h000};
    wire  [25:0]  s_req_length = {2{13'd16}};
    wire  [15:0]  s_req_func = {7'd0, func[1], 7'd0, func[0]};
    wire  [63:0]  s_req_key = {31'd0, key[1], 31'd0, key[0]};
    wire  [1:0]   s_req_write = right;
    // The number of the master, for the event.
    wire  [13:0]  s_req_index = {7'd1, 7'd0};
    wire          win_entry_valid = 1'b0, win_write = 1'b0;
    wire  [12:0]  win_addr = '0;
    wire  [31:0]  win_wdata = '0;
    wire  [3:0]   win_wstrb = '0;
    logic [4:0]   cycle = 0;
    always_ff @(posedge clk) cycle <= cycle + 5'd1;
    wire  [63:0]  now_cycle_ts = {59'd0, cycle};
    wire  [7:0]   cfg_event_fault = {6'd0, any_fault}, resetting = {6'd0, any_reset};
    wire  [63:0]  cfg_fault_queue = 64'h0705;
    wire  [31:0]  cfg_timeout_cycles = {30'd0, patience};
    logic         win_entry_ready, m_rsp_hit, m_rsp_epoch, m_fence, m_event_valid, inc_misses, inc_faults, inc_events_lost;
    logic [31:0]  win_entry_rdata, sts_invalidated;
    logic [1:0]   m_req_accepted, m_rsp_valid;
    logic [63:0]  m_rsp_address;
    logic [7:0]   m_event_queue, m_room_queue;
    logic [2:0]   m_event_func;
    logic [511:0] m_event_record;

    // Numbers that are written, each higher than the one before.
    logic [2:0]   written = 0;
    wire  [2:0]   to_write = written + {2'd0, wr_invalidate};
    wire  [31:0]  cfg_invalidate = {29'd0, to_write};

    logic [1:0]   used = 0, used_epoch;
    wire  [1:0]   s_done = done & used, s_done_epoch = used_epoch;

    plx_xlate #(.MASTERS(2), .ENTRIES(2), .FLIGHT_W(3)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb begin
        assume (rst == !running);
        if (wr_invalidate) assume (running && written != 7);
        if (s_fence_done) assume (m_fence);
    end

    // A request stands until its response. A master has one chunk in use; then it requests none.
    logic [1:0] stood = 0, near_then;
    always_ff @(posedge clk) begin
        stood     <= running ? s_req_valid & ~m_rsp_valid : 2'd0;
        near_then <= near;
        if (running) written <= to_write;
    end
    always_comb for (int m = 0; m < 2; m = m + 1) begin
        if (stood[m]) assume (s_req_valid[m] && near[m] == near_then[m]);
        if (used[m]) assume (!s_req_valid[m]);
    end

    // What the table said, in the cycle of its answer; an entry made since a lookup.
    (* hierconn *) wire \dut.pages.covers ;
    (* hierconn *) wire \dut.pages.allows ;
    (* hierconn *) wire \dut.pages.made ;
    (* hierconn *) wire \dut.pages.s_write ;
    (* hierconn *) wire [7:0] \dut.pages.s_func ;
    (* hierconn *) wire [31:0] \dut.pages.s_key ;
    (* hierconn *) wire [63:0] \dut.pages.s_address , \dut.pages.m_address ;
    wire covers = \dut.pages.covers ;
    wire allows = \dut.pages.allows ;
    wire made   = \dut.pages.made ;

    // Lookups of the three cycles before; chunks looked up or in use that were taken before a number
    // was written; of one such number, any.
    (* anyconst *) logic [2:0] one;
    logic [1:0] taken_1 = 0, taken_2 = 0, taken_3 = 0, old = 0, missed = 0, lies = 0, owed = 0;
    logic [3:0] since = 0;
    wire  [1:0] ends = (taken_3 & ~(m_rsp_valid & {2{m_rsp_hit}})) | s_done;
    wire  [1:0] busy = m_req_accepted | taken_1 | taken_2 | taken_3 | used;
    wire        marks = wr_invalidate && to_write == one;

    always_ff @(posedge clk) if (running) begin
        taken_1 <= m_req_accepted;
        taken_2 <= taken_1;
        taken_3 <= taken_2;
        used    <= (used | (m_rsp_valid & {2{m_rsp_hit}})) & ~s_done;
        for (int m = 0; m < 2; m = m + 1) if (m_rsp_valid[m] && m_rsp_hit) used_epoch[m] <= m_rsp_epoch;
        old     <= (marks ? busy : old) & ~ends;
        // An entry is made during a lookup, or while a chunk is held: it is looked up again soon.
        missed  <= (missed | {2{made}} & (taken_1 | taken_2)) & ~taken_3;
        lies    <= (lies | taken_3 & ~m_rsp_valid) & ~m_req_accepted;
        owed    <= (owed | taken_3 & ~m_rsp_valid & (missed | {2{made}}) | lies & {2{made}}) & ~m_req_accepted;
        for (int m = 0; m < 2; m = m + 1) since[2*m +: 2] <= owed[m] ? since[2*m +: 2] + 2'd1 : 2'd0;
    end

    // The timeout counts a cycle late.
    logic [1:0] patience_then;
    always_ff @(posedge clk) patience_then <= patience;

    // The latest cycle in which each function had no events, as of three cycles ago: what has begun since is known too
    // late for an event that is offered now.
    logic [9:0] silent_1 = 0, silent_2 = 0, silent = 0;
    wire  [1:0] has_none = ~any_fault | any_reset;
    always_ff @(posedge clk) if (running) begin
        for (int f = 0; f < 2; f = f + 1) if (has_none[f]) silent_1[5*f +: 5] <= cycle;
        silent_2 <= silent_1;
        silent   <= silent_2;
    end
    wire  [4:0] access = m_event_record[layouts_pkg::TLB_FAULT_STAGES_AT + 64 +: 5];

    logic fenced = 0;
    always_ff @(posedge clk) if (running) fenced <= m_fence && s_fence_done;

    always_ff @(posedge clk) if (running) begin
        assert (m_req_accepted != 2'b11 && (m_req_accepted & ~s_req_valid) == 0);
        for (int m = 0; m < 2; m = m + 1) if (m_req_accepted[m]) begin
            assert (\dut.pages.s_func == func[m] && \dut.pages.s_key == key[m] && \dut.pages.s_write == right[m]);
            assert (\dut.pages.s_address == s_req_address[64*m +: 64]);
        end
        if (m_rsp_valid != 0 && m_rsp_hit) assert (m_rsp_address == \dut.pages.m_address );
        assert ((m_req_accepted & (taken_1 | taken_2 | taken_3)) == 0);
        assert ((m_rsp_valid & ~taken_3) == 0);
        if (m_rsp_valid != 0 && m_rsp_hit) assert (covers && allows && (near & taken_3) == 0);
        if (taken_3 != 0 && m_rsp_valid == 0) assert (!covers && patience_then != 0 && (near & taken_3) == 0);
        assert (since[1:0] != 3 && since[3:2] != 3);
        // The number is shown, or a later one.
        if (sts_invalidated[2:0] >= one && one != 0 && written >= one) assert (old == 0);
        if (!fenced && !$past(rst)) assert ($stable(sts_invalidated));
        if ($past(running && m_event_valid && !m_event_ready)) begin
            assert (m_event_valid && $stable(m_event_record) && $stable(m_event_queue));
        end
        if ($past(running && !m_event_valid) && m_event_valid) begin
            assert ($past(s_room) && m_event_queue == $past(m_room_queue, 2));
            assert (m_event_func < 2 && m_event_queue == (m_event_func == 1 ? 8'd7 : 8'd5));
            assert (m_event_record[layouts_pkg::TLB_FAULT_FUNCTION_AT +: 8] == {5'd0, m_event_func});
            assert (m_event_func[0] == func[m_event_record[layouts_pkg::EVENT_RECORD_INDEX_AT]]);
            assert (access > (m_event_func[0] ? silent[9:5] : silent[4:0]));
        end
        cover (sts_invalidated == 2 && used != 0);
        cover (m_event_valid && $past(m_event_valid && m_event_ready, 5));
        cover (m_rsp_valid[1] && m_rsp_hit && $past(taken_3[1], 4));
    end
endmodule

// Any table.
module plx_xlate_table #(
    parameter ENTRIES = 2
) (
    input  logic         clk, rst, win_entry_valid, win_write, s_write,
    output logic         win_entry_ready, entered, m_covered, m_permitted,
    input  logic [12:0]  win_addr,
    input  logic [31:0]  win_wdata, s_key,
    input  logic [3:0]   win_wstrb,
    output logic [31:0]  win_entry_rdata,
    input  logic [63:0]  s_address,
    input  logic [7:0]   s_func,
    output logic [63:0]  m_address
);
    (* anyseq *) wire covers;
    (* anyseq *) wire allows;
    (* anyseq *) wire made;
    (* anyseq *) wire place;

    assign win_entry_ready = 1'b0;
    assign win_entry_rdata = '0;
    assign m_covered   = covers;
    assign m_permitted = allows;
    assign entered     = made && !rst;
    assign m_address   = {63'd0, place};
endmodule
