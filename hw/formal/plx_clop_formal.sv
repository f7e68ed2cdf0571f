// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The control around the lists, for any result of an operation (plx_clop_next_state has its own proof): at most
// one operation begins in a cycle, of one port; each select has one response, to its port, for its
// request; each commit is counted once, under its list; a list has at most one operation in flight, whatever
// the order of operations of ports, software and the scanner, so that no state is read which is about to
// be written; the state written back belongs to the list that was read; a list with an open payload
// is not announced. An announcement is stable until accepted, and is made only with room.
// Without a stalled announcement no requester waits for more than 12 cycles.
// formal: aiger
// formal: always 12
// formal: cover 22
// mutant: (is_slot_sw && which == list) => 1'b0
// mutant: hold ? late_slot_sw && which == late_list => hold ? 1'b0
// mutant: : our_go && which == our_list => : 1'b0
// mutant: && !(late_op != NOTHING && our_list == late_list) => && 1'b1
// mutant: if (announce) m_event_valid <= 1'b1; => if (announce && !m_event_ready) m_event_valid <= 1'b1;
// mutant: may_hold && possible && m_event_valid; => 1'b0;
// mutant: open <= stays | s_select_ready; => open <= stays;
// mutant: if (our_go || (!slot_sw && !hold)) => if (our_go || !slot_sw)
// mutant: late_list   <= list; => late_list    <= next_list;
// mutant: hold ? late_queue : queue; => queue;

module plx_clop_formal (
    input logic        clk,
    input logic        rst,
    input logic        win_list_valid,
    input logic        win_write,
    input logic [14:0] win_addr,
    input logic [1:0]  s_select_valid,
    input logic [13:0] s_select_list,
    input logic [31:0] s_select_length,
    input logic [1:0]  s_commit_valid,
    input logic [7:0]  s_commit_status,
    input logic        s_room,
    input logic        m_event_ready
);
    wire  [63:0]  now_cycle_ts = '0;
    wire          win_outcome_valid = 1'b0;
    wire  [31:0]  win_wdata = '0;
    wire  [3:0]   win_wstrb = '0;
    wire  [127:0] s_select_timestamp_ns = '0, s_commit_timestamp_ns = '0;
    wire  [1:0]   s_select_timestamp_valid = '0, s_commit_timestamp_valid = '0;
    wire  [31:0]  s_commit_length = '0;
    wire  [63:0]  s_commit_cycle_ts_mac = '0, s_commit_cycle_ts_parsed = '0, s_commit_cycle_ts_placed = '0;
    logic         win_list_ready, win_outcome_ready, m_select_bare, m_event_valid;
    logic [31:0]  win_list_rdata, win_outcome_rdata, m_select_sequence;
    logic [1:0]   s_select_ready, s_commit_ready, m_select_valid;
    logic [2:0]   m_select_status;
    logic [7:0]   m_event_queue, m_room_queue;
    logic [63:0]  m_select_address;
    logic [15:0]  m_select_stride;
    logic [7:0]   m_select_func;
    logic [511:0] m_event_record;

    plx_clop #(.PORTS(2)) dut (.*);

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire       \dut.hold , \dut.announce , \dut.operation.do_look , \dut.status_counts.count ,
                              \dut.begin_op , \dut.states.w_enable ;
    (* hierconn *) wire [6:0] \dut.list , \dut.status_counts.of_list , \dut.next_list , \dut.states.w_address ;
    (* hierconn *) wire [2:0] \dut.status_counts.status ;
    wire       hold = \dut.hold ;
    wire       announce = \dut.announce ;
    wire       looks = \dut.operation.do_look ;
    wire [6:0] at_list = \dut.list ;
    wire       begins = \dut.begin_op , writes = \dut.states.w_enable ;
    wire [6:0] begun_list = \dut.next_list , written_list = \dut.states.w_address ;

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb assume (rst == !running);

    // A port requests space, gets it, commits; both offers are stable until accepted.
    logic [1:0]  asking = 0, asked = 0, placed = 0, committing = 0, waits_0 = 0, waits_1 = 0;
    logic [13:0] list;
    logic [31:0] length;
    logic [7:0]  status;

    always_ff @(posedge clk) if (running) begin
        asking     <= s_select_valid & ~s_select_ready;
        asked      <= (asked | s_select_ready) & ~m_select_valid;
        placed     <= (placed | m_select_valid) & ~s_commit_ready;
        committing <= s_commit_valid & ~s_commit_ready;
        status     <= s_commit_status;
        if (!asking[0] && !asked[0] && !placed[0]) list[6:0] <= s_select_list[6:0];
        if (!asking[1] && !asked[1] && !placed[1]) list[13:7] <= s_select_list[13:7];
        if (!asking[0] && !asked[0] && !placed[0]) length[15:0] <= s_select_length[15:0];
        if (!asking[1] && !asked[1] && !placed[1]) length[31:16] <= s_select_length[31:16];
    end

    always_comb begin
        assume ((s_select_valid & (asked | placed)) == 0 && (asking & ~s_select_valid) == 0);
        assume ((s_commit_valid & ~placed) == 0 && (committing & ~s_commit_valid) == 0);
        assume (s_select_list[6:5] == 2'd0 && s_select_list[13:12] == 2'd1);
        if (asking[0]) assume (s_select_list[6:0] == list[6:0] && s_select_length[15:0] == length[15:0]);
        if (asking[1]) assume (s_select_list[13:7] == list[13:7] && s_select_length[31:16] == length[31:16]);
        if (committing[0]) assume (s_commit_status[3:0] == status[3:0]);
        if (committing[1]) assume (s_commit_status[7:4] == status[7:4]);
        assume (s_commit_status[3:0] <= 8 && s_commit_status[7:4] <= 8);
    end

    // Software's access is stable.
    logic        accessing = 0, writing;
    logic [14:0] at;
    always_ff @(posedge clk) begin
        accessing <= running && win_list_valid && !win_list_ready;
        writing   <= win_write;
        at        <= win_addr;
    end
    always_comb if (accessing) assume (win_list_valid && win_write == writing && win_addr == at);

    // Lists with an operation in the first and in the second stage.
    logic       in_1 = 0, in_2 = 0;
    logic [6:0] list_1, list_2;

    always_ff @(posedge clk) if (running && !hold) begin
        {in_1, in_2}     <= {begins, in_1};
        {list_1, list_2} <= {begun_list, list_1};
    end

    // A commit that is to be counted.
    logic       counts = 0, comes = 0;
    logic [6:0] of_list, coming_list;
    logic [3:0] how, coming_how;
    wire        counted = \dut.status_counts.count ;

    always_ff @(posedge clk) if (running) begin
        if (|s_commit_ready) begin
            coming_list <= s_commit_ready[0] ? list[6:0] : list[13:7];
            coming_how  <= s_commit_ready[0] ? s_commit_status[3:0] : s_commit_status[7:4];
        end
        comes <= |s_commit_ready || (comes && hold);
        if (!hold) {counts, of_list, how} <= {comes, coming_list, coming_how};
    end

    // Cycles of waiting without a stall.
    logic [3:0] port_waits = 0, software_waits = 0;
    (* anyconst *) logic who;

    always_ff @(posedge clk) begin
        if (!running || !(asking[who] || s_select_valid[who] || s_commit_valid[who])
            || s_select_ready[who] || s_commit_ready[who]) port_waits <= 0;
        else if (!hold) port_waits <= port_waits + 1'b1;
        if (!running || !win_list_valid || win_list_ready) software_waits <= 0;
        else if (!hold) software_waits <= software_waits + 1'b1;
    end

    logic       stood = 0, announced = 0;
    logic [7:0] stood_queue, asked_before, asked_then;
    logic       room_before;
    always_ff @(posedge clk) begin
        stood       <= running && m_event_valid && !m_event_ready;
        announced   <= running && announce;
        stood_queue <= m_event_queue;
        room_before <= s_room;
        // That was asked for two cycles before.
        asked_before <= m_room_queue;
        asked_then   <= asked_before;
    end

    always_comb if (running) begin
        assert ((s_select_ready | s_commit_ready) != 2'b11 && (s_select_ready & s_commit_ready) == 0);
        assert ((s_select_ready & ~s_select_valid) == 0 && (s_commit_ready & ~s_commit_valid) == 0);
        assert (m_select_valid != 2'b11 && (m_select_valid & ~asked) == 0);
        if (m_select_valid[0]) assert (m_select_stride[6:0] == list[6:0] && m_select_address[15:0] == length[15:0]);
        if (m_select_valid[1]) assert (m_select_stride[6:0] == list[13:7] && m_select_address[15:0] == length[31:16]);
        assert (counted == (counts && !hold && !how[3]));
        if (counted) assert (\dut.status_counts.of_list == of_list);
        if (counted) assert (\dut.status_counts.status == how[2:0] || (\dut.status_counts.status == 5 && how <= 4));
        // A list with an open payload is not changed.
        if (looks && (asked[0] || placed[0])) assert (at_list != list[6:0]);
        if (looks && (asked[1] || placed[1])) assert (at_list != list[13:7]);
        assert (!(begins && (hold || in_1 && begun_list == list_1 || in_2 && begun_list == list_2)));
        if (writes) assert (in_2 && written_list == list_2);
        assert (port_waits <= 12 && software_waits <= 12);
        if (stood) assert (m_event_valid && m_event_queue == stood_queue);
        assert (m_event_valid == (stood || announced) && !(announce && m_event_valid && !m_event_ready));
        if (announced) assert (m_event_queue == asked_then && room_before);
        cover (m_event_valid && hold && asked[1] && counts);
        cover (port_waits == 7 && |(s_select_ready | s_commit_ready));
        cover (software_waits == 7 && win_list_ready);
    end
endmodule

// Operations with every permitted behaviour; a response has the requested bound.
module plx_clop_next_state #(
    parameter STATE_W = 491
) (
    input  logic               clk, advance, do_select, do_commit, do_look, do_begin,
    input  logic [15:0]        length,
    input  logic [63:0]        timestamp_ns,
    input  logic               timestamp_valid,
    input  logic [95:0]        stages,
    input  logic [3:0]         status,
    input  logic               enable, flush,
    input  logic [63:0]        base,
    input  logic [30:0]        size,
    input  logic [16:0]        count,
    input  logic               bare,
    input  logic [15:0]        stride,
    input  logic [30:0]        timeout,
    input  logic [31:0]        released,
    input  logic [63:0]        now,
    input  logic [STATE_W-1:0] state,
    input  logic               room,
    output logic [STATE_W-1:0] next_state,
    output logic [31:0]        sts_serial,
    output logic [30:0]        sts_used,
    output logic [31:0]        sts_sequence,
    output logic [2:0]         select_status,
    output logic [63:0]        select_address,
    output logic               possible, wanted,
    output logic [511:0]       record,
    output logic               flushed
);
    (* anyseq *) wire any_wanted, any_possible;
    logic        acts;
    logic [15:0] bound;

    always_ff @(posedge clk) if (advance) begin
        acts  <= do_select || do_commit || do_look;
        bound <= length;
    end

    assign possible       = any_possible;
    assign wanted         = any_wanted && any_possible && room && acts;
    assign select_status = '0;
    assign select_address = {48'd0, bound};
    assign {next_state, sts_serial, sts_used, sts_sequence, record, flushed} = '0;
endmodule

// Settings of which only the queue matters; the stride is the number of the list that was read.
module plx_clop_settings (
    input  logic        clk, rst, read, write, flushed,
    input  logic [6:0]  read_list, flushed_list,
    input  logic [3:0]  write_word, write_strobe,
    input  logic [31:0] write_data,
    output logic [63:0] base,
    output logic [31:0] size, count, timeout,
    output logic        bare, enable, unfit, flush, begins,
    output logic [7:0]  to_queue,
    output logic [2:0]  func,
    output logic [15:0] stride,
    output logic [31:0] released
);
    (* anyseq *) wire       any_begins, any_unfit;
    logic [6:0] list;

    always_ff @(posedge clk) if (read) list <= read_list;

    assign func     = '0;
    assign stride   = {9'd0, list};
    assign to_queue = {1'b1, list};
    assign begins   = write && any_begins;
    assign {base, size, timeout, count, bare, flush, released} = '0;
    assign enable   = 1'b1;
    assign unfit    = any_unfit;
endmodule

// Counters that are cleared.
module plx_clop_status (
    input  logic        clk, rst, count, win_outcome_valid, win_write,
    input  logic [6:0]  of_list,
    input  logic [2:0]  status,
    input  logic [14:0] win_addr,
    output logic        ready, win_outcome_ready,
    output logic [31:0] win_outcome_rdata
);
    assign ready             = 1'b1;
    assign win_outcome_ready = 1'b0;
    assign win_outcome_rdata = '0;
endmodule

// The memory of states, of which only the addresses matter.
module plx_ram_sdp #(
    parameter WIDTH = 64,
    parameter DEPTH = 512
) (
    input  logic                     clk, w_enable, r_enable,
    input  logic [$clog2(DEPTH)-1:0] w_address, r_address,
    input  logic [WIDTH-1:0]         w_data,
    output logic [WIDTH-1:0]         r_data
);
    assign r_data = '0;
endmodule
