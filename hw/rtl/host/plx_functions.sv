// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Reset of one function, by register or by a function level reset (PCIe 4.0, 6.6.2), while the others
// go on: hw/docs/functions.md. One at a time:
//
//   CLEAR  the function's requests are thrown away from here on, and its ports, lists, rings, queues,
//          vectors and pages are disabled, by writes of its registers like those of software
//   DRAIN  each of its sources has been at rest once since, and each write of before that has ended
//
// A reset of the card, or of everything, ends it: then nothing is left to forget.
//
// Where the TLB faults of each function are reported is held here too: that of a function in reset is 0.

module plx_functions #(
    parameter PORTS        = 4,   // ports of the card
    parameter EVENT_QUEUES = 256, // its event queues
    parameter TLB_ENTRIES  = 128, // its pages
    parameter COUNT_W      = 16   // bits of the counts of writes: of twice as many as can be on their way
) (
    input  logic                      clk,
    input  logic                      rst,

    // Owners: of ports, and groups of 16 pages; of a queue, in the same cycle.
    input  logic [PORTS*3-1:0]        cfg_port_owner,
    input  logic [23:0]               cfg_page_owner,
    output logic [7:0]                m_owner_queue,
    input  logic [2:0]                s_owner,

    // Registers of TLB faults, one for each function: an event for each, and its queue.
    input  logic                      win_fault_valid,
    output logic                      win_fault_ready,
    input  logic                      win_write,
    input  logic [4:0]                win_addr,
    input  logic [31:0]               win_wdata,
    input  logic [3:0]                win_wstrb,
    output logic [31:0]               win_fault_rdata,
    output logic [7:0]                cfg_event_fault,
    output logic [63:0]               cfg_fault_queue,

    // Requested resets: for one cycle, by register; until done, by the host. Functions in reset; those, and the
    // functions whose reset waits for that of another, a cycle later.
    input  logic [7:0]                s_reset,
    input  logic [7:0]                s_flr,
    output logic [7:0]                m_flr_done,
    output logic [7:0]                resetting,
    output logic [7:0]                m_due,

    // Writes of registers, as the function; ready: the one before has taken effect.
    output logic                      m_write_valid,
    input  logic                      m_write_ready,
    output logic [2:0]                m_write_func,
    output logic                      m_write_vector,
    output logic [16:0]               m_write_offset,
    output logic [31:0]               m_write_data,

    // Sources of each port: a payload is being placed; the ring has nothing fetched or to report, and the port
    // nothing to send. Those of all: events, as plx_event_writer; an interrupt is offered.
    input  logic [PORTS-1:0]          s_placing,
    input  logic [PORTS-1:0]          s_ring_quiet,
    input  logic [2:0]                s_event_rest,
    input  logic                      s_irq_busy,

    // One cycle for each: a write is accepted, and has ended, in the same order.
    input  logic                      s_accepted,
    input  logic                      s_ended
);
    localparam [1:0] IDLE = 0, CLEAR = 1, DRAIN = 2;

    logic [1:0] state;
    logic [2:0] who;
    logic [7:0] asked, flr_before;

    // The lowest of those that wait: a bit.
    integer f;
    logic [7:0] lowest;
    always_comb begin
        for (f = 0; f < 8; f = f + 1) lowest[f] = asked[f] && (asked & ((8'd1 << f) - 8'd1)) == 0;
    end

    // ---- The reset ------------------------------------------------------------------------------------

    // Ports of other functions.
    wire [PORTS-1:0] foreign;
    genvar p;
    generate
        for (p = 0; p < PORTS; p = p + 1) begin : g_port
            assign foreign[p] = cfg_port_owner[p*3 +: 3] != who;
        end
    endgenerate

    // Each register is written; each source has been at rest, and the writes have ended.
    logic cleared, drained;
    plx_function_clear #(.PORTS(PORTS), .EVENT_QUEUES(EVENT_QUEUES), .TLB_ENTRIES(TLB_ENTRIES)) clear (
        .*, .run(state == CLEAR), .done(cleared)
    );
    plx_function_drain #(.PORTS(PORTS), .COUNT_W(COUNT_W)) drain (.*, .run(state == DRAIN), .done(drained));

    always_ff @(posedge clk) begin
        flr_before <= s_flr;
        asked      <= asked | s_reset | (s_flr & ~flr_before);
        m_due      <= asked;
        m_flr_done <= '0;
        case (state)
            IDLE: if (asked != 0) begin
                state     <= CLEAR;
                who       <= {|lowest[7:4], |lowest[7:6] || |lowest[3:2], lowest[7] || lowest[5] || lowest[3] || lowest[1]};
                resetting <= resetting | lowest;
            end
            CLEAR: if (cleared) state <= DRAIN;
            default: if (drained) begin
                state           <= IDLE;
                resetting[who]  <= 1'b0;
                // A request that came meanwhile is for what has just been done.
                asked[who]      <= 1'b0;
                m_flr_done[who] <= s_flr[who];
            end
        endcase
        if (rst) begin
            state      <= IDLE;
            asked      <= '0;
            flr_before <= '0;
            resetting  <= '0;
            m_due      <= '0;
            m_flr_done <= '0;
        end
    end

    // ---- TLB faults of each function ------------------------------------------------------------------

    assign win_fault_ready = 1'b1;
    assign win_fault_rdata = {16'd0, 8'(cfg_fault_queue >> {win_addr[4:2], 3'd0}), 7'd0,
                              1'(cfg_event_fault >> win_addr[4:2])};

    generate
        for (genvar n = 0; n < 8; n = n + 1) begin : g_fault
            wire writes = win_fault_valid && win_write && win_addr[4:2] == n;
            always_ff @(posedge clk) begin
                if (writes && win_wstrb[0]) cfg_event_fault[n] <= win_wdata[0];
                if (writes && win_wstrb[1]) cfg_fault_queue[n*8 +: 8] <= win_wdata[15:8];
                if (rst || resetting[n]) begin
                    cfg_event_fault[n]        <= 1'b0;
                    cfg_fault_queue[n*8 +: 8] <= 8'd0;
                end
            end
        end
    endgenerate

    wire unused = &{1'b0, win_addr[1:0], win_wdata[31:16], win_wdata[7:1], win_wstrb[3:2]};
endmodule
