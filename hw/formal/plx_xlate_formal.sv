// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The control around the table, with no page in it: one port is granted at a time; an access has its
// response three cycles after its grant, and only then; it is not allowed, and is counted; its
// event is offered where there was room, and is stable until accepted. The bench covers the pages:
// comparing addresses of 64 bits is too much for the solver.
// formal: aiger
// formal: always 8
// formal: cover 13
// mutant: waiting && !m_event_valid && room[cfg_queue] => waiting && !m_event_valid

module plx_tlb_formal (
    input logic         clk,
    input logic         rst,
    input logic [1:0]   s_req_valid,
    input logic [127:0] s_req_address,
    input logic [41:0]  s_req_length,
    input logic [15:0]  s_req_func,
    input logic [1:0]   room,
    input logic         m_event_ready
);
    wire          win_entry_valid = 1'b0, win_write = 1'b0;
    wire  [12:0]  win_addr = '0;
    wire  [31:0]  win_wdata = '0;
    wire  [3:0]   win_wstrb = '0;
    wire  [13:0]  s_req_list = '0;
    wire  [63:0]  now_stamp = '0;
    wire          cfg_event_fault = 1'b1;
    wire  [2:0]   cfg_queue = 3'd1;
    logic         win_entry_ready, m_rsp_hit, m_event_valid, inc_faults, inc_events_lost;
    logic [31:0]  win_entry_rdata;
    logic [1:0]   s_req_ready, m_rsp_valid;
    logic [63:0]  m_rsp_address;
    logic [2:0]   m_event_queue;
    logic [511:0] m_event_record;

    plx_tlb #(.PORTS(2), .ENTRIES(2), .EVENT_QUEUES(2), .FAULTS(2)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb assume (rst == !running);

    // Those granted, of the three cycles before.
    logic [5:0] asked = 0;

    always_ff @(posedge clk) asked <= rst ? 6'd0 : {asked[3:0], s_req_ready};

    always_ff @(posedge clk) if (running) begin
        assert (s_req_ready != 2'b11 && (s_req_ready & ~s_req_valid) == 0);
        assert (m_rsp_valid == asked[5:4]);
        assert (!(|m_rsp_valid) || !m_rsp_hit);
        assert (inc_faults == |m_rsp_valid);
        if ($past(running && m_event_valid && !m_event_ready)) begin
            assert (m_event_valid && $stable(m_event_record) && $stable(m_event_queue));
        end
        if ($past(running && !m_event_valid) && m_event_valid) assert ($past(room[1]));
        cover (m_event_valid && $past(m_event_valid && m_event_ready, 2));
    end
endmodule
