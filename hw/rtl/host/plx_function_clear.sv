// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Writes what disables the ports, lists, rings, queues, vectors and pages of a function, one register after the
// other, by the writes that its software would use.

module plx_function_clear #(
    parameter PORTS        = 4,   // ports of the card
    parameter EVENT_QUEUES = 256, // its event queues
    parameter TLB_ENTRIES  = 128  // its pages
) (
    input  logic               clk,
    input  logic               rst,

    // The function, while `run`. done: all has been written, and the last write has taken effect for a cycle; until
    // `run` falls.
    input  logic               run,
    input  logic [2:0]         who,
    output logic               done,

    // Owners: of ports, and groups of 16 pages; of a queue, in the same cycle.
    input  logic [PORTS*3-1:0] cfg_port_owner,
    input  logic [23:0]        cfg_page_owner,
    output logic [7:0]         m_owner_queue,
    input  logic [2:0]         s_owner,

    // Writes of registers, as the function; ready: the one before has taken effect.
    output logic               m_write_valid,
    input  logic               m_write_ready,
    output logic [2:0]         m_write_func,
    output logic               m_write_vector,
    output logic [16:0]        m_write_offset,
    output logic [31:0]        m_write_data
);
    // A step: which registers, and of which one; the last numbers of their kinds.
    localparam [1:0] OF_PORT = 0, OF_QUEUE = 1, OF_PAGE = 2;
    localparam [9:0] LAST_OF_PORT = 10'(64 * PORTS - 1), LAST_OF_QUEUE = 10'(4 * EVENT_QUEUES - 1),
                     LAST_OF_PAGE = 10'(TLB_ENTRIES - 1);
    logic [1:0] kind;
    logic [9:0] number;
    wire        ends = number == (kind == OF_PORT ? LAST_OF_PORT : kind == OF_QUEUE ? LAST_OF_QUEUE : LAST_OF_PAGE);

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
            end
            OF_QUEUE: begin
                wanted = is_step;
                owner  = s_owner;
                vector = vector_step;
                offset = vector_step ? {5'd0, queue, 4'd0} + VECTOR_CTRL : queue_at;
                data   = vector_step ? MASKED : 32'd0;
            end
            default: begin
                owner  = 3'(cfg_page_owner >> (5'd3 * group));
                offset = entry_at;
            end
        endcase
    end

    assign m_owner_queue = queue;

    // Behind the last step.
    logic       settling;
    wire  [1:0] kind_next = !settling && ends ? kind + 1'b1 : kind;

    always_ff @(posedge clk) begin
        if (!settling && (!m_write_valid || m_write_ready)) begin
            m_write_valid <= wanted && owner == who;
            number        <= ends ? '0 : number + 1'b1;
            settling      <= ends && kind == OF_PAGE;
        end
        // The last write has been accepted, then it has taken effect.
        if (settling && m_write_ready) m_write_valid <= 1'b0;
        done <= settling && m_write_ready && !m_write_valid;
        // Whether the write is accepted comes late, and decides last.
        if (m_write_ready || !m_write_valid) kind <= kind_next;
        if (rst || !run) begin
            m_write_valid <= 1'b0;
            kind          <= OF_PORT;
            number        <= '0;
            settling      <= 1'b0;
            done          <= 1'b0;
        end
    end

    always_ff @(posedge clk) if (!m_write_valid || m_write_ready) begin
        m_write_func   <= who;
        m_write_vector <= vector;
        m_write_offset <= offset;
        m_write_data   <= data;
    end
endmodule
