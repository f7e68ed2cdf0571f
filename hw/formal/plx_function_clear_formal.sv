// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Only registers of the function are written, whatever any other owns, and as that function; each of them is,
// with the value that disables it, before `done`, and the last write has taken effect then. Owners do not change meanwhile.
// formal: aiger
// formal: induction 4
// formal: cover 176
// mutant: !settling && (!m_write_valid || m_write_ready) => !settling
// mutant: m_write_valid <= wanted && owner == who; => m_write_valid <= wanted;
// mutant: m_write_func   <= who; => m_write_func   <= '0;
// mutant: list  = {port, item[4:0]}; => list  = {port, 5'd0};
// mutant: 3'(cfg_port_owner >> (4'd3 * port)); => 3'(cfg_port_owner >> 4'd3);
// mutant: number        <= ends ? '0 : number + 1'b1; => number        <= ends ? '0 : number + 2'd2;
// mutant: PCS: offset = port_at + PCS_CTRL; => PCS: wanted = 1'b0;
// mutant: data   = FLUSH; => data   = '0;
// mutant: vector_step ? MASKED : 32'd0; => 32'd0;
// mutant: if (settling && m_write_ready) m_write_valid <= 1'b0; => if (settling) m_write_valid <= 1'b0;
// mutant: done <= settling && m_write_ready && !m_write_valid; => done <= settling && m_write_ready;
// mutant: done <= settling && m_write_ready && !m_write_valid; => done <= settling && !m_write_valid;
// mutant: 3'(cfg_page_owner >> (5'd3 * group)); => 3'(cfg_page_owner);
// mutant: settling      <= ends && kind == OF_PAGE; => settling      <= ends && kind == OF_QUEUE;

module plx_function_clear_formal (
    input logic clk,
    input logic rst,
    input logic run,
    input logic m_write_ready
);
    // Any owners, any function.
    (* anyconst *) wire [5:0]  cfg_port_owner, queue_owner;
    (* anyconst *) wire [23:0] cfg_page_owner;
    (* anyconst *) wire [2:0]  who;

    logic [7:0]  m_owner_queue;
    logic        done, m_write_valid, m_write_vector;
    logic [2:0]  m_write_func;
    logic [16:0] m_write_offset;
    logic [31:0] m_write_data;

    plx_function_clear #(.PORTS(2), .EVENT_QUEUES(2), .TLB_ENTRIES(32)) dut (
        .*, .s_owner(queue_owner[3*m_owner_queue[0] +: 3])
    );

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);
    wire on = running && !rst;

    // `run` falls behind `done` only, or a reset.
    logic ran = 0, was_done = 0;
    always_ff @(posedge clk) begin
        ran      <= run && !rst;
        was_done <= done && run && !rst;
    end
    always_comb if (on && ran && !was_done) assume (run);

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
        end else if (at >= regs_pkg::TLB_AT + 'h1010 && at < regs_pkg::TLB_AT + 'h1410) begin
            owner = cfg_page_owner[3*3'((at - regs_pkg::TLB_AT - 'h1010) >> 9) +: 3];
        end else known = 1'b0;
    end

    // The cycle before: an offer; nothing was offered, and the last write had taken effect.
    logic        stood = 0, effective = 0;
    logic [52:0] offer;
    wire  [52:0] this_offer = {m_write_func, m_write_vector, m_write_offset, m_write_data};
    always_ff @(posedge clk) begin
        stood     <= on && m_write_valid && !m_write_ready;
        effective <= on && !m_write_valid && m_write_ready;
        offer     <= this_offer;
    end

    always_comb if (on) begin
        if (stood) assert (m_write_valid && offer == this_offer);
        if (m_write_valid) assert (run && m_write_func == who && known && owner == who);
        if (run && done) assert (!m_write_valid && effective);
    end

    // Any one register of the walk, by its step: it is written before `done` if it is the function's. In a port's steps:
    // streams, lists, then the controls of the PCS, parser, neighbours, generator, MAC and ring.
    (* anyconst *) wire [1:0] t_kind;
    (* anyconst *) wire [7:0] t_number;
    wire  [5:0]  item = t_number[5:0];
    logic        t_known, written = 0;
    logic [16:0] t_at;
    logic [31:0] t_data;
    logic [2:0]  t_owner;
    always_comb begin
        t_known = 1'b1;
        t_data  = 32'd0;
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
                else if (item == 60) {t_at, t_data} = {t_at + 17'h34, 32'h104};
                else if (item == 61) {t_at, t_data} = {t_at + 17'h40, 32'h2};
                else if (item == 62) {t_at, t_data} = {t_at + 17'h8, 32'h22};
                else if (item == 63) {t_at, t_data} = {17'(regs_pkg::TX_AT + 'h108 + 'h40 * t_number[6]), 32'h300};
                else t_known = 1'b0;
            end
            2'd1: begin
                t_known = t_number < 8 && !t_number[1];
                t_owner = queue_owner[3*t_number[2] +: 3];
                t_data  = {31'd0, t_number[0]};
                t_at    = t_number[0] ? 17'(12 + 16 * t_number[2]) : 17'(regs_pkg::EVENT_AT + 'h4008 + 'h40 * t_number[2]);
            end
            default: begin
                t_known = t_kind == 2 && t_number < 32;
                t_owner = cfg_page_owner[3*t_number[4] +: 3];
                t_at    = 17'(regs_pkg::TLB_AT + 'h1010 + 'h20 * t_number[4:0]);
            end
        endcase
    end
    wire is_target = m_write_valid && at == t_at && m_write_data == t_data && m_write_vector == (t_kind == 1 && t_number[0]);
    always_ff @(posedge clk) written <= run && !rst && (written || is_target && m_write_ready);

    always_comb if (on && run && done && t_known && t_owner == who) assert (written);
    always_comb if (on) begin
        cover (run && done && written && t_kind == 2 && t_number == 31);
        cover (is_target && t_kind == 0 && t_number == 58);
    end

    // The walk, for the solver: what is behind it is written, or offered.
    (* hierconn *) wire       \dut.settling ;
    (* hierconn *) wire [1:0] \dut.kind ;
    (* hierconn *) wire [9:0] \dut.number ;
    wire passed = \dut.settling || \dut.kind > t_kind || \dut.kind == t_kind && \dut.number > {2'd0, t_number};
    always_comb if (on) begin
        if (ran && run && t_known && t_owner == who && passed) assert (written || is_target);
        if (!\dut.settling ) begin
            assert (\dut.kind <= 2);
            assert (\dut.number <= (\dut.kind == 0 ? 10'd127 : \dut.kind == 1 ? 10'd7 : 10'd31));
        end
        if (!ran && run) assert (!\dut.settling && \dut.kind == 0 && \dut.number == 0);
        if (done) assert (ran);
        if (done && run) assert (\dut.settling );
    end
endmodule
