// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// One source at a time is accepted. Record n of a queue goes to slot n mod 2^k, with the phase of its
// pass, and only while it is less than 2^k ahead of the consumer's released number: no unread record
// is overwritten. Where sources observe `room`, none is discarded. An offer to the host bus is
// stable until accepted.
// formal: aiger
// formal: induction 3
// formal: cover 14
// mutant: = !passes[0]; => = passes[0];
// mutant: {1'b0, used} + ROOM <= => {1'b0, used} + 1'b1 <=
// mutant: if (m_taken) busy => if (m_desc_ready) busy

module plx_event_writer_formal (
    input logic         clk,
    input logic         rst,
    input logic [1:0]   want,
    input logic         m_desc_ready,
    input logic         m_data_tready,
    input logic         release_one
);
    wire  [63:0]   now_stamp = '0;
    wire  [127:0]  cfg_queue_base = {64'h10000, 64'h0};
    wire  [1:0]    cfg_queue_ctrl_enable = 2'b11;
    wire  [9:0]    cfg_queue_ctrl_log2_size = {5'd2, 5'd2};
    logic [31:0]   released = 0;
    wire  [63:0]   cfg_queue_released = {32'd0, released};
    logic [63:0]   sts_queue_produced;
    logic [1:0]    s_event_valid, s_event_ready, room;
    wire  [5:0]    s_event_queue = '0;
    wire  [5:0]    s_event_func = {3'd5, 3'd5};
    wire  [5:0]    cfg_queue_owner = {3'd2, 3'd5};
    wire  [1023:0] s_event_record = '0;
    logic          m_desc_valid, m_data_tvalid, m_data_tlast, inc_discarded, busy_now;
    logic [63:0]   m_desc_address;
    logic [12:0]   m_desc_length;
    logic [7:0]    m_desc_func;
    logic [255:0]  m_data_tdata;
    logic          m_taken;

    plx_event_writer #(.SOURCES(2), .EVENT_QUEUES(2), .ROOM(2)) dut (.*, .busy(busy_now));

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire         \dut.busy , \dut.arbiter.locked ;
    (* hierconn *) wire [2:0]   \dut.to ;
    (* hierconn *) wire [63:0]  \dut.accepted ;
    (* hierconn *) wire [255:0] \dut.second ;
    wire         busy = \dut.busy , locked = \dut.arbiter.locked ;
    wire [2:0]   to = \dut.to ;
    wire [63:0]  accepted = \dut.accepted ;
    wire [255:0] second = \dut.second ;

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb assume (rst == !running);

    // Sources offer where there was room while they had no event in flight; offers are stable.
    logic [1:0] offered = 0;
    assign s_event_valid = offered;
    always_ff @(posedge clk) if (running) begin
        offered <= (offered & ~s_event_ready) | (want & {2{room[0]}} & ~offered);
    end

    // The host bus accepts the descriptor, then two words, then reports it.
    logic       under_way = 0, told = 0;
    assign m_taken = told;
    always_ff @(posedge clk) begin
        told <= running && m_data_tvalid && m_data_tready && m_data_tlast;
        if (running && m_desc_valid && m_desc_ready) under_way <= 1'b1;
        if (m_data_tvalid && m_data_tready && m_data_tlast) under_way <= 1'b0;
    end
    always_comb if (m_data_tready) assume (under_way);
    always_comb if (m_desc_ready) assume (!under_way && !told);

    // Records accepted, and output.
    logic [31:0] taken = 0, written = 0;
    always_ff @(posedge clk) if (running) begin
        if (|s_event_ready) taken <= taken + 1'b1;
        if (m_desc_valid && m_desc_ready) written <= written + 1'b1;
        if (release_one && released != sts_queue_produced[31:0]) released <= released + 1'b1;
    end

    // The permitted states: a record is accepted, offered, on the bus, reported; then the next.
    wire [31:0] last    = taken - 1'b1;
    wire [31:0] waiting = taken - released + offered[0] + offered[1];

    always_comb if (!running) assert (taken == 0 && written == 0 && released == 0 && offered == 0 && !under_way && !told);

    always_comb if (running) begin
        assert (!locked && {1'b0, m_desc_valid} + under_way + told == {1'b0, busy});
        assert (m_data_tvalid == (m_desc_valid || under_way));
        if (m_desc_valid) assert (!m_data_tlast);
        assert (accepted == {32'd0, taken} && written == taken - m_desc_valid);
        assert (sts_queue_produced == {32'd0, taken - busy} && sts_queue_produced[31:0] - released <= 4);
        assert (waiting <= 4);
        if (busy) assert (to == 0);
        if (m_data_tvalid && !m_data_tlast) assert (second[255] == !last[2]);
    end

    always_ff @(posedge clk) if (running) begin
        assert (s_event_ready != 2'b11 && (s_event_ready & ~s_event_valid) == 0);
        assert (!inc_discarded);
        assert (taken - released <= 4);
        if (m_desc_valid) assert (m_desc_address == {last[1:0], 6'd0} && m_desc_length == 64 && m_desc_func == 5 && last - released < 4);
        if (m_data_tvalid && m_data_tlast) assert (m_data_tdata[255] == !last[2]);
        if ($past(running && m_desc_valid && !m_desc_ready)) assert (m_desc_valid && $stable(m_desc_address));
        if ($past(running && m_data_tvalid && !m_data_tready)) begin
            assert (m_data_tvalid && $stable(m_data_tdata) && $stable(m_data_tlast));
        end
        cover (written == 2 && released == 1);
    end
endmodule
