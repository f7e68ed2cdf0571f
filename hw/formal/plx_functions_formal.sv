// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// One function is in reset at a time. Only its registers are written, whatever any other owns, and as that
// function; each of them is, before it ends. A request is kept until a reset of its function has ended, also during
// that of another; none begins without one, and a function level reset is reported once, at its end. Owners do not
// change meanwhile. Where TLB faults of a function are reported is as it was last written, none other's write changes
// it, and it is 0 in a reset of it, but for the first cycle. When a reset ends is not proved: its sources, and
// the writes under way. Mutants are of a request, and of the first 64 steps of a walk: a search up to
// the end of a reset takes too long.
// formal: aiger
// formal: induction 4
// formal: cover 66
// mutant: m_write_valid <= wanted && owner == who; => m_write_valid <= wanted;
// mutant: m_write_func   <= who; => m_write_func   <= '0;
// mutant: list  = {port, item[4:0]}; => list  = {port, 5'd0};
// mutant: 3'(cfg_port_owner >> (4'd3 * port)); => 3'(cfg_port_owner >> 4'd3);
// mutant: resetting <= resetting | lowest; => resetting <= resetting | asked;
// mutant: number        <= ends ? '0 : number + 1'b1; => number        <= ends ? '0 : number + 2'd2;
// mutant: asked      <= asked | s_reset => asked      <= s_reset
// mutant: s_reset | (s_flr & ~flr_before); => s_reset;
// mutant: m_flr_done <= '0; => m_flr_done <= s_flr & ~flr_before;
// mutant: PCS: offset = port_at + PCS_CTRL; => PCS: wanted = 1'b0;
// mutant: if (rst || resetting[n]) begin => if (rst) begin
// mutant: win_write && win_addr[4:2] == n; => win_write && win_addr[3:2] == 2'(n);
// mutant: if (writes && win_wstrb[1]) => if (writes)
// mutant: {win_addr[4:2], 3'd0} => {win_addr[3:2], 3'd0}

module plx_functions_formal (
    input logic       clk,
    input logic       rst,
    input logic [7:0] s_reset,
    input logic [7:0] s_flr,
    input logic       m_write_ready,
    input logic [1:0] s_placing,
    input logic [1:0] s_ring_quiet,
    input logic [2:0] s_event_rest,
    input logic       s_irq_busy,
    input logic       s_accepted,
    input logic       s_ended,
    input logic       win_fault_valid,
    input logic       win_write,
    input logic [4:0] win_addr,
    input logic [3:0] win_wstrb,
    input logic [8:0] fault
);
    // Any owners.
    (* anyconst *) wire [5:0]  cfg_port_owner, queue_owner;
    (* anyconst *) wire [23:0] cfg_page_owner;

    logic [7:0]  m_owner_queue, m_flr_done, resetting, m_due;
    logic        m_write_valid, m_write_vector;
    logic [2:0]  m_write_func;
    logic [16:0] m_write_offset;
    logic [31:0] m_write_data;

    // Of a write of FAULT_CTRL, what it has fields for.
    logic        win_fault_ready;
    wire  [31:0] win_wdata = {16'd0, fault[8:1], 7'd0, fault[0]};
    logic [31:0] win_fault_rdata;
    logic [7:0]  cfg_event_fault;
    logic [63:0] cfg_fault_queue;

    plx_functions #(.PORTS(2), .EVENT_QUEUES(2), .TLB_ENTRIES(128), .COUNT_W(4)) dut (
        .*, .s_owner(queue_owner[3*m_owner_queue[0] +: 3])
    );

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);
    wire on = running && !rst;

    // ---- Writes of registers ----------------------------------------------------------------------

    // The owner of a register, by its address alone: blocks of ports, lists, rings, queues and pages; vectors.
    wire [16:0] at = m_write_offset;
    logic       port, known;
    logic [2:0] owner;
    always_comb begin
        known = 1'b1;
        port  = 1'b0;
        owner = 3'd0;
        if (m_write_vector) begin
            owner = queue_owner[3*at[4] +: 3];
            known = at < 32 && at[3:0] == 12;
        end else if (at >= regs_pkg::PORT_AT && at < regs_pkg::PORT_AT + 'h4000) begin
            port  = 1'((at - regs_pkg::PORT_AT) >> 13);
            owner = cfg_port_owner[3*port +: 3];
        end else if (at >= regs_pkg::CLOP_AT + 'h2018 && at < regs_pkg::CLOP_AT + 'h3018) begin
            port  = 1'((at - regs_pkg::CLOP_AT - 'h2018) >> 11);
            owner = cfg_port_owner[3*port +: 3];
        end else if (at >= regs_pkg::TX_AT + 'h108 && at < regs_pkg::TX_AT + 'h188) begin
            port  = 1'((at - regs_pkg::TX_AT - 'h108) >> 6);
            owner = cfg_port_owner[3*port +: 3];
        end else if (at == regs_pkg::EVENT_AT + 'h4008 || at == regs_pkg::EVENT_AT + 'h4048) begin
            owner = queue_owner[3*(at == regs_pkg::EVENT_AT + 'h4048) +: 3];
        end else if (at >= regs_pkg::TLB_AT + 'h1010 && at < regs_pkg::TLB_AT + 'h2010) begin
            owner = cfg_page_owner[3*3'((at - regs_pkg::TLB_AT - 'h1010) >> 9) +: 3];
        end else known = 1'b0;
    end

    // The cycle before: an offer, what is in reset; one has begun, or ended.
    logic        stood = 0;
    logic [52:0] offer;
    logic [7:0]  was_resetting = 0, was_flr = 0;
    wire         any_begins = (resetting & ~was_resetting) != 0, ended = (was_resetting & ~resetting) != 0;
    wire  [52:0] this_offer = {m_write_func, m_write_vector, m_write_offset, m_write_data};
    always_ff @(posedge clk) begin
        stood         <= on && m_write_valid && !m_write_ready;
        offer         <= this_offer;
        was_resetting <= rst ? 8'd0 : resetting;
        was_flr       <= rst ? 8'd0 : s_flr;
    end

    always_comb if (on) begin
        assert ((resetting & (resetting - 8'd1)) == 0);
        if (stood) assert (m_write_valid && offer == this_offer);
        if (m_write_valid) assert (resetting == 8'd1 << m_write_func && known && owner == m_write_func);
    end

    // Any one register of the walk, by its step: it is written before the reset of its owner ends. In a port's steps:
    // streams, lists, then the controls of the PCS, parser, neighbours, generator, MAC and ring.
    (* anyconst *) wire [1:0] t_kind;
    (* anyconst *) wire [7:0] t_number;
    wire  [5:0]  item = t_number[5:0];
    logic        t_known, written = 0;
    logic [16:0] t_at;
    logic [2:0]  t_owner;
    always_comb begin
        t_known = 1'b1;
        t_at    = 17'(regs_pkg::PORT_AT + 'h2000 * t_number[6]);
        t_owner = cfg_port_owner[3*t_number[6] +: 3];
        case (t_kind)
            2'd0: begin
                if (t_number[7]) t_known = 1'b0;
                else if (item < 16) t_at = 17'(t_at + 'h200 + 4 * item);
                else if (item >= 32 && item < 49)
                    t_at = 17'(regs_pkg::CLOP_AT + 'h2018 + 'h800 * t_number[6] + 'h40 * item[4:0]);
                else if (item == 58) t_at = t_at + 17'h5C;
                else if (item == 59) t_at = t_at + 17'h24;
                else if (item == 60) t_at = t_at + 17'h34;
                else if (item == 61) t_at = t_at + 17'h40;
                else if (item == 62) t_at = t_at + 17'h8;
                else if (item == 63) t_at = 17'(regs_pkg::TX_AT + 'h108 + 'h40 * t_number[6]);
                else t_known = 1'b0;
            end
            2'd1: begin
                t_known = t_number < 8 && !t_number[1];
                t_owner = queue_owner[3*t_number[2] +: 3];
                t_at    = t_number[0] ? 17'(12 + 16 * t_number[2]) : 17'(regs_pkg::EVENT_AT + 'h4008 + 'h40 * t_number[2]);
            end
            default: begin
                t_known = t_kind == 2 && !t_number[7];
                t_owner = cfg_page_owner[3*t_number[6:4] +: 3];
                t_at    = 17'(regs_pkg::TLB_AT + 'h1010 + 'h20 * t_number[6:0]);
            end
        endcase
    end
    wire is_target = m_write_valid && at == t_at && m_write_vector == (t_kind == 1 && t_number[0]);
    always_ff @(posedge clk) written <= !rst && !any_begins && (written || is_target && m_write_ready);

    // The walk, for the solver: what is behind it is written, or offered.
    (* hierconn *) wire [2:0] \dut.state , \dut.who ;
    (* hierconn *) wire [1:0] \dut.kind ;
    (* hierconn *) wire [9:0] \dut.number ;
    wire [2:0] state = \dut.state ;
    wire        passed = state > 1 || \dut.kind > t_kind || \dut.kind == t_kind && \dut.number > {2'd0, t_number};
    always_comb if (on && t_known && resetting[t_owner]) begin
        if (state != 0 && passed) assert (written || is_target);
    end
    always_comb if (on) begin
        assert (state <= 4 && \dut.kind <= 2 + 2'(state != 1));
        if (state == 1) assert (\dut.number <= (\dut.kind == 0 ? 10'd255 : \dut.kind == 1 ? 10'd7 : 10'd127));
        assert (resetting == (state == 0 ? 8'd0 : 8'd1 << \dut.who ));
        if (state != 1 && state != 2) assert (!m_write_valid);
        if (any_begins) assert (state == 1 && \dut.kind == 0 && \dut.number == 0 && !m_write_valid);
    end
    always_comb if (on && t_known && ended && was_resetting[t_owner]) assert (written);

    // ---- Requests ---------------------------------------------------------------------------------

    (* hierconn *) wire [7:0] \dut.asked , \dut.flr_before ;

    // Any one function: it wants a reset, until one of it has ended.
    (* anyconst *) wire [2:0] f;
    logic wants = 0, wanted = 0;
    wire  begins = resetting[f] && !was_resetting[f], finished = !resetting[f] && was_resetting[f];
    // One that comes in the last cycle is for the reset that ends.
    wire  still = wants && !finished;
    always_ff @(posedge clk) begin
        wants  <= !rst && (still || s_reset[f] || s_flr[f] && !was_flr[f]);
        wanted <= !rst && still;
    end
    always_comb if (on) begin
        assert (\dut.asked [f] == still && \dut.flr_before == was_flr);
        if (begins) assert (wants);
        if (resetting[f]) assert (wants);
        if (wanted && still) assert (m_due[f]);
        assert (m_flr_done[f] == (finished && was_flr[f]));
        cover (m_write_valid && m_write_func == 5 && was_flr[5] && wanted && f == 2);
        cover (is_target && t_kind == 0 && t_number == 58);
    end

    // ---- Reports of TLB faults --------------------------------------------------------------------

    logic       event_then = 0;
    logic [7:0] queue_then = 0;
    wire        puts = win_fault_valid && win_fault_ready && win_write && win_addr[4:2] == f;
    always_ff @(posedge clk) begin
        event_then <= !rst && !resetting[f] && (puts && win_wstrb[0] ? fault[0] : event_then);
        queue_then <= rst || resetting[f] ? 8'd0 : puts && win_wstrb[1] ? fault[8:1] : queue_then;
    end
    always_comb if (on) begin
        assert (cfg_event_fault[f] == event_then && cfg_fault_queue[8*f +: 8] == queue_then);
        if (win_addr[4:2] == f) assert (win_fault_rdata == {16'd0, queue_then, 7'd0, event_then});
        cover (event_then && queue_then == 8'h5A && f == 6);
    end
endmodule
