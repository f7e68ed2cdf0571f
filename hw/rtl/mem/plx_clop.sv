// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The lists of persistent buffers of all ports (docs/formats/clop.md): placement of payloads, and
// announcement of buffers. One operation begins in each cycle:
//
//   cycle 0  an operation is selected, the list's state and settings are read
//   cycle 1  first stage of plx_clop_next_state; software's write of a setting
//   cycle 2  its second stage; the state is written back; an announcement is offered
//   cycle 3  the response of a select
//
// Operations of one list are three cycles apart, those of a port as well, so that each finds the state
// that the one before has left. An operation of a list with payloads stalls in cycle 2, and all
// others before it, while another announcement is still on offer: clop has one event in flight. In
// one of four cycles software or the scanner, which checks one list after the other, has its slot; so
// each list is checked every PORTS x 17 x 4 cycles, and ports have at least three of four cycles in which
// no operation stalls for an announcement.

module plx_clop #(
    parameter PORTS = 4  // 1, 2 or 4
) (
    input  logic                    clk,
    input  logic                    rst,
    input  logic [63:0]             now_cycle_ts,

    // Registers: lists, and counts by status.
    input  logic                    win_list_valid,
    output logic                    win_list_ready,
    output logic [31:0]             win_list_rdata,
    input  logic                    win_outcome_valid,
    output logic                    win_outcome_ready,
    output logic [31:0]             win_outcome_rdata,
    input  logic                    win_write,
    input  logic [14:0]             win_addr,
    input  logic [31:0]             win_wdata,
    input  logic [3:0]              win_wstrb,

    // A payload begins: one of each port, until its commit. A request is noticed a cycle late.
    input  logic [PORTS-1:0]        s_select_valid,
    output logic [PORTS-1:0]        s_select_ready,
    input  logic [PORTS*7-1:0]      s_select_list,
    input  logic [PORTS*16-1:0]     s_select_length,
    input  logic [PORTS*64-1:0]     s_select_timestamp_ns,
    input  logic [PORTS-1:0]        s_select_timestamp_valid,

    // Its address.
    output logic [PORTS-1:0]        m_select_valid,
    output logic [2:0]              m_select_status,
    output logic [63:0]             m_select_address,
    output logic [31:0]             m_select_sequence,
    output logic                    m_select_bare,
    output logic [15:0]             m_select_stride,
    output logic [7:0]              m_select_func,

    // That payload has been written to the host bus, or dropped.
    input  logic [PORTS-1:0]        s_commit_valid,
    output logic [PORTS-1:0]        s_commit_ready,
    input  logic [PORTS*4-1:0]      s_commit_status,
    input  logic [PORTS*16-1:0]     s_commit_length,
    input  logic [PORTS*64-1:0]     s_commit_timestamp_ns,
    input  logic [PORTS-1:0]        s_commit_timestamp_valid,
    input  logic [PORTS*32-1:0]     s_commit_cycle_ts_mac,
    input  logic [PORTS*32-1:0]     s_commit_cycle_ts_parsed,
    input  logic [PORTS*32-1:0]     s_commit_cycle_ts_placed,

    // Announcements, to queues that have room: a queue, and in the next cycle whether it has.
    output logic [7:0]              m_room_queue,
    input  logic                    s_room,
    output logic                    m_event_valid,
    input  logic                    m_event_ready,
    output logic [7:0]              m_event_queue,
    output logic [511:0]            m_event_record
);
    localparam STATE_W = 491;
    localparam ARGS_W  = 7 + 16 + 64 + 1 + 96 + 4 + 1;
    localparam STREAMS = 17;
    localparam NOTHING = 3'd0, SELECT = 3'd1, COMMIT = 3'd2, LOOK = 3'd3, ACCESS = 3'd4;

    generate
        if (PORTS != 1 && PORTS != 2 && PORTS != 4) PORTS_must_be_1_2_or_4 parameter_error ();
    endgenerate

    // Payloads that are selected and not committed, and whether their list has not restarted meanwhile; the
    // list of each port: of that payload, or else of the request of a cycle ago.
    logic [PORTS-1:0]   open, live;
    logic [PORTS*7-1:0] port_list;

    // Cycle 1, and cycle 2.
    logic [2:0]       op, late_op;
    logic [PORTS-1:0] op_port, late_port;
    logic [6:0]       list, late_list;
    logic             hold, done;

    // Cycle 0: arbitration. A list with an operation in cycle 1 or 2 cannot be read. One of four cycles is for
    // software or the scanner.
    logic             counters_ready;
    logic [3:0]       slot;
    logic [1:0]       scan_port;
    logic [4:0]       scan_stream;

    wire              slot_sw  = slot[0];
    wire              access   = win_list_valid && op != ACCESS && late_op != ACCESS;
    wire [6:0]        our_list = access ? win_addr[12:6] : {scan_port, scan_stream};
    wire              our_go   = slot_sw && !hold && !(op != NOTHING && our_list == list)
                               && !(late_op != NOTHING && our_list == late_list);

    // Software or the scanner is in cycle 1, in cycle 2.
    wire is_slot_sw   = op == ACCESS || op == LOOK;
    wire late_slot_sw = late_op == ACCESS || late_op == LOOK;

    // What a port's turn depends on is known a cycle ahead, but for its commit, which comes late: its request has
    // stood for a cycle; software or the scanner is at its list.
    wire  [PORTS-1:0]        closes = {PORTS{done && late_op == COMMIT}} & late_port;
    wire  [PORTS-1:0]        stays  = open & ~closes;
    wire                     go     = counters_ready && !slot_sw && !hold;
    logic [PORTS-1:0]        selects, clash, asks, grant;
    logic [ARGS_W-1:0]       args, chosen;
    logic [PORTS*ARGS_W-1:0] port_args;

    genvar p;
    generate
        for (p = 0; p < PORTS; p = p + 1) begin : port
            wire       commit = s_commit_valid[p];
            wire [6:0] which  = stays[p] ? port_list[p*7 +: 7] : s_select_list[p*7 +: 7];

            always_ff @(posedge clk) begin
                port_list[p*7 +: 7] <= which;
                selects[p]          <= !rst && s_select_valid[p] && !s_select_ready[p];
                // The lists of a port are its own: only its own operations, software and the scanner use them.
                clash[p]            <= (is_slot_sw && which == list)
                                    || (hold ? late_slot_sw && which == late_list : our_go && which == our_list);
            end

            assign asks[p] = go && (commit || selects[p]) && !op_port[p] && !late_port[p] && !clash[p];
            assign port_args[p*ARGS_W +: ARGS_W] = {
                port_list[p*7 +: 7],
                commit ? s_commit_length[p*16 +: 16] : s_select_length[p*16 +: 16],
                commit ? s_commit_timestamp_ns[p*64 +: 64] : s_select_timestamp_ns[p*64 +: 64],
                commit ? s_commit_timestamp_valid[p] : s_select_timestamp_valid[p],
                s_commit_cycle_ts_placed[p*32 +: 32], s_commit_cycle_ts_parsed[p*32 +: 32],
                s_commit_cycle_ts_mac[p*32 +: 32],
                s_commit_status[p*4 +: 4],
                live[p]
            };
        end
    endgenerate

    // The arbiter needs two requesters.
    localparam ASKERS = PORTS < 2 ? 2 : PORTS;
    logic [ASKERS-1:0] turn;

    plx_arb_rr #(.N(ASKERS)) arbiter (.clk, .rst, .request(ASKERS'(asks)), .grant(turn), .done(1'b1));

    assign grant          = turn[PORTS-1:0];
    assign s_select_ready = grant & ~s_commit_valid;
    assign s_commit_ready = grant & s_commit_valid;

    integer i;
    always_comb begin
        chosen = '0;
        for (i = 0; i < PORTS; i = i + 1) chosen = chosen | (port_args[i*ARGS_W +: ARGS_W] & {ARGS_W{grant[i]}});
    end

    wire [6:0] chosen_list = chosen[ARGS_W-1 -: 7];
    wire       begin_op    = our_go || |grant;
    wire [6:0] next_list   = our_go ? our_list : chosen_list;

    always_ff @(posedge clk) begin
        if (!hold) begin
            op      <= our_go ? (access ? ACCESS : LOOK) : |s_commit_ready ? COMMIT : |grant ? SELECT : NOTHING;
            op_port <= grant;
            list    <= next_list;
            args    <= chosen;
        end
        if (our_go || (!slot_sw && !hold)) slot <= {slot[0], slot[3:1]};
        if (our_go && !access) begin
            scan_stream <= scan_stream == STREAMS - 1 ? '0 : scan_stream + 1'b1;
            if (scan_stream == STREAMS - 1) scan_port <= {1'b0, scan_port} == PORTS - 1 ? '0 : scan_port + 1'b1;
        end
        if (rst) begin
            op          <= NOTHING;
            op_port     <= '0;
            slot        <= 4'd1;
            scan_port   <= '0;
            scan_stream <= '0;
        end
    end

    // Cycle 1.
    wire [15:0] length          = args[ARGS_W-8 -: 16];
    wire [63:0] timestamp_ns    = args[ARGS_W-24 -: 64];
    wire        timestamp_valid = args[ARGS_W-88];
    wire [95:0] stages          = args[100:5];
    wire        is_live         = args[0];
    wire [3:0]  how             = args[4:1];
    // Placed in a list that has been disabled and enabled since.
    wire [3:0]  status     = !is_live && how <= 4'd4 ? 4'd5 : how;

    logic [63:0]        base;
    logic [31:0]        size, count, timeout;
    logic [30:0]        sts_used;
    logic               bare, enable, unfit, flush, begins, possible, wanted, flushed;
    logic [2:0]         select_status, func;
    logic [7:0]         queue;
    logic [15:0]        stride;
    logic [31:0]        released, sts_serial, sts_sequence;
    logic [63:0]        select_address;
    logic [511:0]       record;
    logic [STATE_W-1:0] state, next_state;

    // As registers show them.
    logic [8*32-1:0]    words, late_words;

    // Cycle 2.
    logic        may_hold, late_count, late_begins, late_bare;
    logic [2:0]  late_status, late_func;
    logic [15:0] late_stride;
    logic [7:0]  late_queue;

    // A list with an open payload is not changed until its commit.
    logic list_open;
    integer j;
    always_comb begin
        list_open = 1'b0;
        for (j = 0; j < PORTS; j = j + 1) begin
            if (open[j] && port_list[j*7 +: 7] == list) list_open = 1'b1;
        end
    end

    // Cycle 2. Whether it stalls does not depend on what it decides.
    assign done   = late_op != NOTHING && !hold;
    wire announce = done && wanted;

    // Of the operation that is in cycle 2 then.
    assign m_room_queue = hold ? late_queue : queue;
    assign hold = may_hold && possible && m_event_valid;

    plx_clop_settings settings (
        .clk, .rst,
        .read(begin_op), .read_list(next_list),
        .base, .size, .count, .bare, .to_queue(queue), .func, .stride, .timeout, .released, .enable, .flush,
        .unfit, .write(!hold && op == ACCESS && win_write), .write_word(win_addr[5:2]), .write_data(win_wdata),
        .write_strobe(win_wstrb), .begins,
        .flushed(done && flushed), .flushed_list(late_list)
    );

    plx_ram_sdp #(
        .WIDTH(STATE_W),
        .DEPTH(128)
    ) states (
        .clk,
        .w_enable(done && (late_op != ACCESS || late_begins)),
        .w_address(late_list),
        .w_data(next_state),
        .r_enable(begin_op),
        .r_address(next_list),
        .r_data(state)
    );

    plx_clop_next_state #(.STATE_W(STATE_W)) operation (
        .clk, .advance(!hold),
        .do_select(op == SELECT), .do_commit(op == COMMIT), .do_look(op == LOOK && !list_open), .do_begin(begins),
        .length, .timestamp_ns, .timestamp_valid, .stages, .status,
        .enable(enable && !unfit), .flush, .base, .size(size[30:0]), .count(count[16:0]), .bare, .stride,
        .timeout(timeout[30:0]), .released,
        .now(now_cycle_ts), .state,
        .room(s_room), .next_state, .sts_serial, .sts_used, .sts_sequence,
        .select_status, .select_address, .possible, .wanted, .record, .flushed
    );

    plx_clop_status status_counts (
        .clk, .rst, .ready(counters_ready),
        .count(done && late_count), .of_list(late_list), .status(late_status),
        .win_outcome_valid, .win_outcome_ready, .win_write, .win_addr, .win_outcome_rdata
    );

    always_ff @(posedge clk) begin
        open <= stays | s_select_ready;
        if (rst) open <= '0;
    end

    generate
        for (p = 0; p < PORTS; p = p + 1) begin : opened
            always_ff @(posedge clk) begin
                if (done && late_op == SELECT && late_port[p]) live[p] <= 1'b1;
                if (done && late_begins && port_list[p*7 +: 7] == late_list) live[p] <= 1'b0;
            end
        end
    endgenerate

    always_ff @(posedge clk) begin
        if (!hold) begin
            late_op     <= op;
            may_hold    <= op != NOTHING && op != ACCESS;
            late_port   <= op_port;
            late_list   <= list;
            late_queue  <= queue;
            late_count  <= op == COMMIT && !status[3];
            late_status <= status[2:0];
            late_begins <= begins;
            late_bare   <= bare;
            late_stride <= stride;
            late_func   <= func;
            late_words  <= words;
        end
        if (rst) begin
            late_op   <= NOTHING;
            may_hold  <= 1'b0;
            late_port <= '0;
        end
    end

    // Responses.
    always_ff @(posedge clk) begin
        m_select_valid <= late_port & {PORTS{done && late_op == SELECT && !rst}};
        if (done) begin
            m_select_status   <= select_status;
            m_select_address  <= select_address;
            m_select_sequence <= sts_sequence;
            m_select_bare     <= late_bare;
            m_select_stride   <= late_stride;
            m_select_func     <= {5'd0, late_func};
        end
    end

    always_ff @(posedge clk) begin
        if (m_event_ready) m_event_valid <= 1'b0;
        if (announce) m_event_valid <= 1'b1;
        if (rst) m_event_valid <= 1'b0;
    end

    always_ff @(posedge clk) if (announce) begin
        m_event_queue  <= late_queue;
        m_event_record <= record;
        m_event_record[layouts_pkg::EVENT_RECORD_STREAM_AT +: 7] <= late_list;
    end

    // Accesses of software.
    assign words = {released, {30'd0, flush, enable}, timeout, {stride, queue, 1'b0, func, 3'd0, bare}, count, size, base};

    wire [11*32-1:0] all_words = {sts_sequence, {1'b0, sts_used}, sts_serial, late_words};
    wire [3:0]       word      = win_addr[5:2];

    assign win_list_ready = done && late_op == ACCESS;
    assign win_list_rdata = word > 4'd10 ? 32'd0 : all_words[word*32 +: 32];

    wire unused = &{1'b0, win_addr[14:13], win_addr[1:0]};
endmodule
