// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Record n of a queue goes to slot n mod 2^k, with the phase of its pass, and only while it is less than 2^k
// ahead of the consumer's released number: no unread record is overwritten. Nothing is written to a queue at an
// address that is no multiple of 64. Where sources observe room, none is discarded, but of a function that does
// not own the queue. No write is counted before it was accepted, and none is forgotten. An offer to the host bus
// is stable until accepted. Software and another queue take their turns.
// formal: aiger
// formal: bounded 24
// formal: cover 34
// mutant: !passes[0]; => passes[0];
// mutant: exists && s_owner == func; => exists;
// mutant: l_enable && l_whole && l_large => l_enable && l_large
// mutant: fits ? l_more => fits ? l_accepted
// mutant: (late_op != NOTHING && late_queue == pick) => (1'b0)

// The rows of two queues: where they are cleared, they are of 4 records each, enabled, at a multiple of 64, or all
// of them 32 bytes behind one.
module plx_ram_sdp #(
    parameter WIDTH = 64,
    parameter DEPTH = 512
) (
    input  logic                     clk,
    input  logic                     w_enable,
    input  logic [$clog2(DEPTH)-1:0] w_address,
    input  logic [WIDTH-1:0]         w_data,
    input  logic                     r_enable,
    input  logic [$clog2(DEPTH)-1:0] r_address,
    output logic [WIDTH-1:0]         r_data
);
    (* anyconst *) logic off;
    logic [WIDTH-1:0] row_0, row_1;
    wire  [WIDTH-1:0] put = w_data != 0 ? w_data : {47'd0, w_address, 10'd0, off, 5'd0, 1'b1, 5'd2, 210'd0};
    always_ff @(posedge clk) begin
        if (w_enable && !w_address[0]) row_0 <= put;
        if (w_enable && w_address[0]) row_1 <= put;
        if (r_enable) r_data <= r_address[0] ? row_1 : row_0;
    end
endmodule

module plx_event_queues_formal (
    input logic         clk,
    input logic         rst,
    input logic [1:0]   want,
    input logic         m_desc_ready,
    input logic         m_data_tready,
    input logic         release_one,
    input logic         other_access,
    input logic [7:0]   resetting
);
    wire  [63:0]   now_cycle_ts = '0;
    (* anyconst *) logic [2:0] second_func;
    logic          win_valid = 0, win_ready;
    wire           win_write = 1'b1;
    logic          win_other = 0;
    wire  [13:0]   win_addr = win_other ? 14'h4C : 14'h0C;
    logic [31:0]   released = 0;
    wire  [31:0]   win_wdata = win_other ? 32'd0 : released;
    wire  [3:0]    win_wstrb = 4'hF;
    logic [31:0]   win_rdata;
    logic [7:0]    m_owner_queue, m_irq_queue;
    wire  [2:0]    s_owner = 3'd5;
    wire  [15:0]   s_room_queue = '0;
    logic [1:0]    s_event_valid, s_event_ready, m_room;
    wire  [15:0]   s_event_queue = '0;
    wire  [5:0]    s_event_func = {second_func, 3'd5};
    wire  [1023:0] s_event_record = '0;
    logic          m_desc_valid, m_data_tvalid, m_data_tlast, inc_discarded, m_irq_valid;
    logic [2:0]    rest;
    logic [63:0]   m_desc_address;
    logic [12:0]   m_desc_length;
    logic [7:0]    m_desc_func;
    logic [255:0]  m_data_tdata;
    logic          m_accepted;

    plx_event_writer #(.SOURCES(2), .EVENT_QUEUES(2), .ASKERS(2), .ROOM(2)) dut (.*);

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire         \dut.written , \dut.written_ready , \dut.clearing ;
    (* hierconn *) wire [255:0] \dut.second ;
    wire written = \dut.written , counted = \dut.written_ready ;
    wire [255:0] second = \dut.second ;

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb assume (rst == !running);

    // What the memory of rooms held before the reset is shown until the last row has been cleared: no source has an
    // event so early.
    wire        clearing = \dut.clearing ;
    logic [1:0] cleared = 0;
    always_ff @(posedge clk) cleared <= {cleared[0], running && !clearing};

    // Sources offer where there was room while they had no event in flight; offers are stable.
    logic [1:0] offered = 0;
    assign s_event_valid = offered;
    always_ff @(posedge clk) if (running) begin
        offered <= (offered & ~s_event_ready) | (want & m_room & ~offered & {2{cleared[1]}});
    end

    // The host bus accepts the descriptor, then two words, then reports it.
    logic       under_way = 0, told = 0;
    assign m_accepted = told;
    always_ff @(posedge clk) begin
        told <= running && m_data_tvalid && m_data_tready && m_data_tlast;
        if (running && m_desc_valid && m_desc_ready) under_way <= 1'b1;
        if (m_data_tvalid && m_data_tready && m_data_tlast) under_way <= 1'b0;
    end
    always_comb if (m_data_tready) assume (under_way);
    always_comb if (m_desc_ready) assume (!under_way);

    // Records that had space, were output, accepted, and counted; the consumer releases accepted ones.
    logic [31:0] taken = 0, written_out = 0, accepted = 0, count = 0, seen = 0;
    always_ff @(posedge clk) if (running) begin
        if (|s_event_ready && !inc_discarded) taken <= taken + 1'b1;
        if (m_desc_valid && m_desc_ready) written_out <= written_out + 1'b1;
        if (told) accepted <= accepted + 1'b1;
        if (counted) count <= count + 1'b1;
        if (win_valid && win_ready) begin
            win_valid <= 1'b0;
            if (!win_other) seen <= released;
        end
        if (!win_valid && release_one && released != accepted) begin
            released  <= released + 1'b1;
            win_valid <= 1'b1;
            win_other <= 1'b0;
        end else if (!win_valid && other_access) begin
            win_valid <= 1'b1;
            win_other <= 1'b1;
        end
    end

    wire [31:0] last = written_out;

    always_ff @(posedge clk) if (running) begin
        assert (s_event_ready != 2'b11 && (s_event_ready & ~s_event_valid) == 0);
        if (inc_discarded) assert (s_event_ready[1] && second_func != 5);
        if (m_desc_valid) begin
            assert (m_desc_address == {47'd0, 1'b0, 16'd0} + {56'd0, last[1:0], 6'd0} && m_desc_length == 64);
            assert (m_desc_func == 5 && last - released < 4);
        end
        if (m_data_tvalid && !m_data_tlast && m_desc_valid) assert (second[255] == !last[2]);
        // None is forgotten, and none is counted too early.
        assert (count <= accepted && !(told && written && !counted));
        if ($past(running && m_desc_valid && !m_desc_ready)) assert (m_desc_valid && $stable(m_desc_address));
        if ($past(running && m_data_tvalid && !m_data_tready)) begin
            assert (m_data_tvalid && $stable(m_data_tdata) && $stable(m_data_tlast));
        end
        cover (count == 2 && seen == 1);
        cover (inc_discarded);
    end
endmodule
