// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Interrupt moderation of the event queues: an armed queue requests its interrupt once, after `count`
// records that its consumer has not seen, or `hold` cycles after the first of them, whichever is
// first; at once if the consumer armed it with old records pending. Records count from their
// acceptance by the host bus, so that an interrupt follows its record.

module plx_event_irq #(
    parameter EVENT_QUEUES = 8  // queues
) (
    input  logic                       clk,
    input  logic                       rst,

    // Registers of the queues, and records written.
    input  logic [EVENT_QUEUES-1:0]    cfg_queue_ctrl_enable,
    input  logic [EVENT_QUEUES*16-1:0] cfg_queue_count,
    input  logic [EVENT_QUEUES*32-1:0] cfg_queue_hold_cycles,
    input  logic [EVENT_QUEUES*32-1:0] cfg_queue_arm_seen,
    input  logic [EVENT_QUEUES-1:0]    wr_queue_arm,
    input  logic [EVENT_QUEUES*32-1:0] sts_queue_produced,

    // An interrupt request of each queue, for one cycle.
    output logic [EVENT_QUEUES-1:0]    m_irq
);
    genvar q;
    generate
        if (EVENT_QUEUES < 1) EVENT_QUEUES_must_be_at_least_1 parameter_error ();

        for (q = 0; q < EVENT_QUEUES; q = q + 1) begin : queue
            logic        armed;
            logic [31:0] seen, waited;

            wire [31:0] unseen = sts_queue_produced[q*32 +: 32] - seen;
            wire        enough = unseen >= {16'd0, cfg_queue_count[q*16 +: 16]};
            wire        late   = waited >= cfg_queue_hold_cycles[q*32 +: 32];
            // Records before the arming were missed by the consumer: they interrupt at once.
            logic       behind;

            assign m_irq[q] = armed && unseen != 0 && (behind || enough || late);

            always_ff @(posedge clk) begin
                waited <= armed && unseen != 0 ? waited + 1'b1 : '0;
                behind <= 1'b0;
                if (m_irq[q]) armed <= 1'b0;
                if (wr_queue_arm[q]) begin
                    armed  <= 1'b1;
                    seen   <= cfg_queue_arm_seen[q*32 +: 32];
                    behind <= 1'b1;
                    waited <= '0;
                end
                if (rst || !cfg_queue_ctrl_enable[q]) armed <= 1'b0;
            end
        end
    endgenerate
endmodule
