// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// One function is in reset at a time. A request is kept until a reset of its function has ended, also during that of
// another; none begins without one, and a function level reset is reported once, at its end. In a reset
// plx_function_clear writes the registers of that function alone; then plx_function_drain looks whether it has come
// to rest, at its ports alone; and when that says so it ends. Each of the two has its own proof, and takes any time
// here. Owners do not change meanwhile. Where TLB faults of a function are reported is as it was last written, none
// other's write changes it, and it is 0 in a reset of it, but for the first cycle.
// formal: aiger
// formal: induction 4
// formal: cover 20
// mutant: resetting <= resetting | lowest; => resetting <= resetting | asked;
// mutant: |lowest[7:4], |lowest[7:6] => |lowest[7:4], |lowest[7:5]
// mutant: asked      <= asked | s_reset => asked      <= s_reset
// mutant: s_reset | (s_flr & ~flr_before); => s_reset;
// mutant: asked | s_reset | (s_flr & ~flr_before); => asked | s_reset | s_flr;
// mutant: m_due      <= asked; => m_due      <= resetting;
// mutant: m_flr_done[who] <= s_flr[who]; => m_flr_done[who] <= 1'b1;
// mutant: asked[who]      <= 1'b0; => asked           <= '0;
// mutant: CLEAR: if (cleared) => CLEAR: if (!cleared)
// mutant: .run(state == CLEAR) => .run(state != IDLE)
// mutant: .run(state == DRAIN) => .run(state != IDLE)
// mutant: default: if (drained) begin => default: begin
// mutant: cfg_port_owner[p*3 +: 3] != who; => cfg_port_owner[p*3 +: 3] == who;
// mutant: if (rst || resetting[n]) begin => if (rst) begin
// mutant: win_write && win_addr[4:2] == n; => win_write && win_addr[3:2] == 2'(n);
// mutant: if (writes && win_wstrb[1]) => if (writes)
// mutant: {win_addr[4:2], 3'd0} => {win_addr[3:2], 3'd0}

// The registers of a function are written after any time: until `run` falls.
module plx_function_clear #(parameter PORTS = 4, parameter EVENT_QUEUES = 256, parameter TLB_ENTRIES = 128) (
    input  logic               clk,
    input  logic               rst,
    input  logic               run,
    input  logic [2:0]         who,
    output logic               done,
    input  logic [PORTS*3-1:0] cfg_port_owner,
    input  logic [23:0]        cfg_page_owner,
    output logic [7:0]         m_owner_queue,
    input  logic [2:0]         s_owner,
    output logic               m_write_valid,
    input  logic               m_write_ready,
    output logic [2:0]         m_write_func,
    output logic               m_write_vector,
    output logic [16:0]        m_write_offset,
    output logic [31:0]        m_write_data
);
    (* anyseq *) wire end_it, write;
    always_ff @(posedge clk) done <= run && !rst && (done || end_it);
    assign m_write_valid = run && !done && write, m_write_func = who;
    assign m_owner_queue = '0, m_write_vector = '0, m_write_offset = '0, m_write_data = '0;
    wire unused = &{1'b0, cfg_port_owner, cfg_page_owner, s_owner, m_write_ready};
endmodule

// A function comes to rest after any time: until `run` falls.
module plx_function_drain #(parameter PORTS = 4, parameter COUNT_W = 16) (
    input  logic             clk,
    input  logic             rst,
    input  logic             run,
    output logic             done,
    input  logic [PORTS-1:0] foreign,
    input  logic [PORTS-1:0] s_placing,
    input  logic [PORTS-1:0] s_ring_quiet,
    input  logic [2:0]       s_event_rest,
    input  logic             s_irq_busy,
    input  logic             s_accepted,
    input  logic             s_ended
);
    (* anyseq *) wire end_it;
    always_ff @(posedge clk) done <= run && !rst && (done || end_it);
    wire unused = &{1'b0, foreign, s_placing, s_ring_quiet, s_event_rest, s_irq_busy, s_accepted, s_ended};
endmodule

module plx_functions_formal (
    input logic       clk,
    input logic       rst,
    input logic [7:0] s_reset,
    input logic [7:0] s_flr,
    input logic       win_fault_valid,
    input logic       win_write,
    input logic [4:0] win_addr,
    input logic [3:0] win_wstrb,
    input logic [8:0] fault
);
    // Any owners.
    (* anyconst *) wire [5:0] cfg_port_owner;

    logic [7:0]  m_flr_done, resetting, m_due;
    logic        m_write_valid;
    logic [2:0]  m_write_func;

    // Of a write of FAULT_CTRL, what it has fields for.
    logic        win_fault_ready;
    wire  [31:0] win_wdata = {16'd0, fault[8:1], 7'd0, fault[0]};
    logic [31:0] win_fault_rdata;
    logic [7:0]  cfg_event_fault;
    logic [63:0] cfg_fault_queue;

    plx_functions #(.PORTS(2), .EVENT_QUEUES(2), .TLB_ENTRIES(32), .COUNT_W(4)) dut (
        .*, .cfg_page_owner(24'd0), .m_owner_queue(), .s_owner(3'd0), .m_write_ready(1'b1), .m_write_vector(),
        .m_write_offset(), .m_write_data(), .s_placing(2'd0), .s_ring_quiet(2'd0), .s_event_rest(3'd0),
        .s_irq_busy(1'b0), .s_accepted(1'b0), .s_ended(1'b0)
    );

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);
    wire on = running && !rst;

    // The cycle before.
    logic [7:0] was_resetting = 0, was_flr = 0;
    always_ff @(posedge clk) begin
        was_resetting <= rst ? 8'd0 : resetting;
        was_flr       <= rst ? 8'd0 : s_flr;
    end

    // ---- The course of a reset --------------------------------------------------------------------

    (* hierconn *) wire [1:0] \dut.state ;
    (* hierconn *) wire [2:0] \dut.who ;
    (* hierconn *) wire \dut.clear.run , \dut.clear.done , \dut.drain.run , \dut.drain.done ;
    (* hierconn *) wire [1:0] \dut.drain.foreign ;
    wire any = resetting != 0, any_begins = any && was_resetting == 0, any_ends = !any && was_resetting != 0;
    logic cleared = 0, drained = 0, was_clearing = 0, was_draining = 0;
    always_ff @(posedge clk) begin
        was_clearing <= on && \dut.clear.run ;
        was_draining <= on && \dut.drain.run ;
        cleared      <= on && \dut.clear.run && \dut.clear.done ;
        drained      <= on && \dut.drain.run && \dut.drain.done ;
    end
    always_comb if (on) begin
        // One at a time, from the first write to the end.
        assert ((resetting & (resetting - 8'd1)) == 0);
        if (any) assert (resetting == 8'd1 << \dut.who );
        if (any && was_resetting != 0) assert (resetting == was_resetting);
        if (m_write_valid) assert (resetting == 8'd1 << m_write_func);
        // First its registers, then its rest, then its end, each once the one before is done.
        assert (any == (\dut.clear.run || \dut.drain.run ) && !(\dut.clear.run && \dut.drain.run ));
        assert (\dut.clear.run == (any_begins || was_clearing && !cleared));
        assert (\dut.drain.run == (cleared || was_draining && !drained));
        assert (any_ends == drained);
        if (\dut.drain.run )
            assert (\dut.drain.foreign == {!resetting[cfg_port_owner[5:3]], !resetting[cfg_port_owner[2:0]]});
        // For the solver.
        assert (\dut.state != 3);
    end

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
        cover (\dut.clear.run && \dut.who == 5 && was_flr[5] && wanted && f == 2);
        cover (begins && m_flr_done == 0 && f == 2);
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
