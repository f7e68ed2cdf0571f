// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Reset of one function, by register or by a function level reset (PCIe 4.0, 6.6.2), while the others
// go on: hw/docs/functions.md. One at a time:
//
//   CLEAR  the function's requests are thrown away from here on, and its ports, lists, rings, queues,
//          vectors and pages are disabled, by writes of its registers like those of software
//   QUIET  each of its sources has been at rest once since
//   DRAIN  each write that had been accepted by then has ended
//
// A reset of the card, or of everything, ends it: then nothing is left to forget.
//
// Where the TLB faults of each function are reported is held here too: that of a function in reset is 0.

module plx_functions #(
    parameter PORTS        = 4,   // ports of the card
    parameter EVENT_QUEUES = 256, // its event queues
    parameter TLB_ENTRIES  = 128, // its pages
    parameter COUNT_W      = 16   // bits of the counts of writes: more than can be on their way
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
    localparam [2:0] IDLE = 0, CLEAR = 1, SETTLE = 2, QUIET = 3, DRAIN = 4;
    // A step of CLEAR: {kind, number, item}.
    localparam [1:0] OF_PORT = 0, OF_QUEUE = 1, OF_PAGE = 2;
    // The last numbers of their kinds.
    localparam [9:0] LAST_OF_PORT = 10'd255, LAST_OF_QUEUE = 10'(4 * EVENT_QUEUES - 1), LAST_OF_PAGE = 10'd127;

    logic [2:0] state, who;
    logic [7:0] asked, flr_before;
    // Of a step: which registers, and of which one.
    logic [1:0] kind;
    logic [9:0] number;

    // The lowest of those that wait: a bit.
    integer f;
    logic [7:0] lowest;
    always_comb begin
        for (f = 0; f < 8; f = f + 1) lowest[f] = asked[f] && (asked & ((8'd1 << f) - 8'd1)) == 0;
    end

    // ---- The write of a step ------------------------------------------------------------------------

    // Registers: offsets in their blocks and windows, of the first of an array (hw/rdl).
    localparam MAC_CTRL = 'h08, NET_CTRL = 'h24, ARP_CTRL = 'h34, GEN_CTRL = 'h40, PCS_CTRL = 'h5C, STREAM = 'h200,
               RING_CTRL = 'h108, LIST_CTRL = 'h2018, QUEUE_CTRL = 'h4008, VECTOR_CTRL = 'hC, ENTRY_CTRL = 'h1010;
    // Their values after a reset, where not 0; but a frame that has begun still leaves, pause frames
    // count, ARP entries go, and a generator stops.
    localparam [31:0] SEND = 32'h22, FLUSH = 32'h104, STOP = 32'h2, SIZE_OF_8 = 32'h300, MASKED = 32'h1;
    // Items of a port: streams from 0 on, lists from 32 on, then these.
    localparam [5:0] STREAMS = 16, LISTS_AT = 32, LISTS_END = 49, PCS = 58, NET = 59, ARP = 60, GEN = 61,
                     MAC = 62, RING = 63;

    wire [1:0]  port  = number[7:6];
    wire [5:0]  item  = number[5:0];
    wire [7:0]  queue = number[9:2];
    // Of a queue: its control, then its vector, so that the queue asks for no interrupt behind that.
    wire        vector_step = number[0], is_step = !number[1];
    wire [6:0]  page  = number[6:0];
    wire [2:0]  group = page[6:4];
    wire [6:0]  list  = {port, item[4:0]};

    wire [16:0] port_at  = regs_pkg::PORT_AT + {2'd0, port, 13'd0};
    wire [16:0] list_at  = regs_pkg::CLOP_AT + LIST_CTRL + {4'd0, list, 6'd0};
    wire [16:0] ring_at  = regs_pkg::TX_AT + RING_CTRL + {9'd0, port, 6'd0};
    wire [16:0] queue_at = regs_pkg::EVENT_AT + QUEUE_CTRL + {3'd0, queue, 6'd0};
    wire [16:0] entry_at = regs_pkg::TLB_AT + ENTRY_CTRL + {5'd0, page, 5'd0};

    logic        wanted, vector;
    logic [2:0]  owner;
    logic [16:0] offset;
    logic [31:0] data;

    always_comb begin
        wanted = 1'b1;
        vector = 1'b0;
        data   = '0;
        case (kind)
            OF_PORT: begin
                owner = 3'(cfg_port_owner >> (4'd3 * port));
                if (item < STREAMS) offset = port_at + STREAM + {9'd0, item, 2'd0};
                else if (item >= LISTS_AT && item < LISTS_END) offset = list_at;
                else begin
                    offset = port_at;
                    case (item)
                        PCS: offset = port_at + PCS_CTRL;
                        NET: offset = port_at + NET_CTRL;
                        ARP: begin
                            offset = port_at + ARP_CTRL;
                            data   = FLUSH;
                        end
                        GEN: begin
                            offset = port_at + GEN_CTRL;
                            data   = STOP;
                        end
                        MAC: begin
                            offset = port_at + MAC_CTRL;
                            data   = SEND;
                        end
                        RING: begin
                            offset = ring_at;
                            data   = SIZE_OF_8;
                        end
                        default: wanted = 1'b0;
                    endcase
                end
                if ({1'b0, port} >= PORTS) wanted = 1'b0;
            end
            OF_QUEUE: begin
                wanted = is_step;
                owner  = s_owner;
                vector = vector_step;
                offset = vector_step ? {5'd0, queue, 4'd0} + VECTOR_CTRL : queue_at;
                data   = vector_step ? MASKED : 32'd0;
            end
            default: begin
                wanted = {1'b0, page} < TLB_ENTRIES;
                owner  = 3'(cfg_page_owner >> (5'd3 * group));
                offset = entry_at;
            end
        endcase
    end

    assign m_owner_queue = queue;

    // ---- The reset ------------------------------------------------------------------------------------

    // Sources that have not been at rest since; writes, and the last one that counts.
    localparam EVENTS = 2 * PORTS, SOURCES = EVENTS + 4;
    logic [SOURCES-1:0] left;
    // At rest a cycle ago: what would begin anew has been disabled long before.
    logic [SOURCES-1:0] rested;
    // Events of others may follow without end: places of a record rest one after the other.
    wire  [2:0]         turn  = {left[EVENTS +: 2] == 0, !left[EVENTS], 1'b1};
    wire  [SOURCES-1:0] quiet = rested & {1'b1, turn, {EVENTS{1'b1}}};
    logic [COUNT_W-1:0] accepted, ended, target;
    wire  [COUNT_W-1:0] ahead = ended - target;
    // One cycle ago: a source is seen at rest as late.
    logic               was_accepted;

    wire  ends = number == (kind == OF_PORT ? LAST_OF_PORT : kind == OF_QUEUE ? LAST_OF_QUEUE : LAST_OF_PAGE);
    wire  [1:0] kind_next = state == CLEAR && ends ? kind + 1'b1 : kind;

    // Ports that are another function's need not rest.
    wire  [PORTS-1:0]   foreign;
    genvar p;
    generate
        for (p = 0; p < PORTS; p = p + 1) begin : g_port
            assign foreign[p] = cfg_port_owner[p*3 +: 3] != who;
        end
    endgenerate

    always_ff @(posedge clk) begin
        flr_before <= s_flr;
        asked      <= asked | s_reset | (s_flr & ~flr_before);
        m_due      <= asked | resetting;
        m_flr_done <= '0;
        was_accepted <= s_accepted;
        rested       <= {!s_irq_busy, s_event_rest, s_ring_quiet, ~s_placing};
        if (was_accepted) accepted <= accepted + 1'b1;
        if (s_ended) ended <= ended + 1'b1;
        case (state)
            IDLE: if (asked != 0) begin
                state     <= CLEAR;
                who       <= {|lowest[7:4], |lowest[7:6] || |lowest[3:2], lowest[7] || lowest[5] || lowest[3] || lowest[1]};
                resetting <= resetting | lowest;
                number    <= '0;
            end
            CLEAR: if (!m_write_valid || m_write_ready) begin
                m_write_valid <= wanted && owner == who;
                number        <= ends ? '0 : number + 1'b1;
                if (ends && kind == OF_PAGE) state <= SETTLE;
            end
            // The last write has been accepted, then it has taken effect.
            SETTLE: if (m_write_ready) begin
                m_write_valid <= 1'b0;
                if (!m_write_valid) state <= QUIET;
            end
            QUIET: if (left == 0) begin
                state  <= DRAIN;
                target <= accepted + {{(COUNT_W-1){1'b0}}, was_accepted};
            end
            default: if (!ahead[COUNT_W-1]) begin
                state          <= IDLE;
                resetting[who] <= 1'b0;
                // A request that came meanwhile is for what has just been done.
                asked[who]      <= 1'b0;
                m_flr_done[who] <= s_flr[who];
            end
        endcase
        // Whether the write is accepted comes late, and decides last.
        if (m_write_ready || !m_write_valid) kind <= kind_next;
        if (state == IDLE) kind <= OF_PORT;
        left <= state == QUIET ? left & ~quiet & ~{4'b0000, foreign, foreign} : '1;
        if (rst) begin
            state         <= IDLE;
            asked         <= '0;
            flr_before    <= '0;
            resetting     <= '0;
            m_due         <= '0;
            m_flr_done    <= '0;
            m_write_valid <= 1'b0;
            was_accepted  <= 1'b0;
            accepted      <= '0;
            ended         <= '0;
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

    // ---- Writes ---------------------------------------------------------------------------------------

    always_ff @(posedge clk) if (!m_write_valid || m_write_ready) begin
        m_write_func   <= who;
        m_write_vector <= vector;
        m_write_offset <= offset;
        m_write_data   <= data;
    end

    wire unused = &{1'b0, win_addr[1:0], win_wdata[31:16], win_wdata[7:1], win_wstrb[3:2]};
endmodule
