// Made by scripts/regen from hw/rdl: do not edit.
// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Where blocks are (_AT, _STEP), how many address bits they have (_ADDR_W); and for tables where a
// register is in its row (_ROW, bytes) and a field in that (_LSB, _W).
package regs_pkg;
    /* verilator lint_off UNUSEDPARAM */

    // Card.
    localparam CARD_AT = 0, CARD_ADDR_W = 7;

    // Host bus.
    localparam HOST_AT = 4096, HOST_ADDR_W = 9;
    localparam HOST_WRITES_ROW = 0;
    localparam HOST_READS_ROW = 8;
    localparam HOST_WR_DISCARDED_ROW = 16;
    localparam HOST_RD_TIMEOUT_ROW = 24;
    localparam HOST_RD_UNSUPPORTED_ROW = 32;
    localparam HOST_RD_ABORT_ROW = 40;
    localparam HOST_RD_POISONED_ROW = 48;
    localparam HOST_RD_UNEXPECTED_ROW = 56;
    localparam HOST_INTERRUPTS_ROW = 64;
    localparam HOST_EVENTS_DISCARDED_ROW = 72;
    localparam HOST_REFUSED_ROW = 80;
    localparam HOST_RD_DISCARDED_ROW = 88;

    // Functions.
    localparam FUNCTIONS_AT = 6144, FUNCTIONS_ADDR_W = 8;
    localparam FUNCTIONS_FAULT_CTRL_ROW = 0;
    localparam FUNCTIONS_FAULT_CTRL_EVENT_FAULT_LSB = 0, FUNCTIONS_FAULT_CTRL_EVENT_FAULT_W = 1;
    localparam FUNCTIONS_FAULT_CTRL_QUEUE_LSB = 8, FUNCTIONS_FAULT_CTRL_QUEUE_W = 8;
    localparam FUNCTIONS_QUEUE_OWNERS_ROW = 0;
    localparam FUNCTIONS_QUEUE_OWNERS_QUEUE0_LSB = 0, FUNCTIONS_QUEUE_OWNERS_QUEUE0_W = 3;
    localparam FUNCTIONS_QUEUE_OWNERS_QUEUE1_LSB = 4, FUNCTIONS_QUEUE_OWNERS_QUEUE1_W = 3;
    localparam FUNCTIONS_QUEUE_OWNERS_QUEUE2_LSB = 8, FUNCTIONS_QUEUE_OWNERS_QUEUE2_W = 3;
    localparam FUNCTIONS_QUEUE_OWNERS_QUEUE3_LSB = 12, FUNCTIONS_QUEUE_OWNERS_QUEUE3_W = 3;
    localparam FUNCTIONS_QUEUE_OWNERS_QUEUE4_LSB = 16, FUNCTIONS_QUEUE_OWNERS_QUEUE4_W = 3;
    localparam FUNCTIONS_QUEUE_OWNERS_QUEUE5_LSB = 20, FUNCTIONS_QUEUE_OWNERS_QUEUE5_W = 3;
    localparam FUNCTIONS_QUEUE_OWNERS_QUEUE6_LSB = 24, FUNCTIONS_QUEUE_OWNERS_QUEUE6_W = 3;
    localparam FUNCTIONS_QUEUE_OWNERS_QUEUE7_LSB = 28, FUNCTIONS_QUEUE_OWNERS_QUEUE7_W = 3;

    // Timing.
    localparam TIMING_AT = 8192, TIMING_ADDR_W = 9;
    localparam TIMING_CLOCKS_ROW = 0;
    localparam TIMING_TRIGGERS_ROW = 8;
    localparam TIMING_EARLY_ROW = 16;
    localparam TIMING_LOST_ROW = 24;
    localparam TIMING_UNPAIRED_ROW = 32;
    localparam TIMING_EVENTS_LOST_ROW = 40;

    // TLB.
    localparam TLB_AT = 16384, TLB_ADDR_W = 13;
    localparam TLB_FAULTS_ROW = 0;
    localparam TLB_EVENTS_LOST_ROW = 8;
    localparam TLB_MISSES_ROW = 16;
    localparam TLB_ENTRY_VIRTUAL_ROW = 0;
    localparam TLB_ENTRY_BUS_ROW = 8;
    localparam TLB_ENTRY_CTRL_ROW = 16;
    localparam TLB_ENTRY_CTRL_VALID_LSB = 0, TLB_ENTRY_CTRL_VALID_W = 1;
    localparam TLB_ENTRY_CTRL_READ_LSB = 1, TLB_ENTRY_CTRL_READ_W = 1;
    localparam TLB_ENTRY_CTRL_NO_WRITE_LSB = 2, TLB_ENTRY_CTRL_NO_WRITE_W = 1;
    localparam TLB_ENTRY_CTRL_ILLEGAL_LSB = 3, TLB_ENTRY_CTRL_ILLEGAL_W = 1;
    localparam TLB_ENTRY_CTRL_LOG2_PAGE_LSB = 8, TLB_ENTRY_CTRL_LOG2_PAGE_W = 5;
    localparam TLB_ENTRY_CTRL_FUNC_LSB = 16, TLB_ENTRY_CTRL_FUNC_W = 8;
    localparam TLB_ENTRY_KEY_ROW = 20;

    // Transmit rings.
    localparam TX_AT = 24576, TX_ADDR_W = 11;
    localparam TX_PACKETS_ROW = 0;
    localparam TX_BYTES_ROW = 8;
    localparam TX_BAD_ROW = 16;
    localparam TX_READ_FAILED_ROW = 24;

    // Lists of buffers.
    localparam CLOP_AT = 32768, CLOP_ADDR_W = 15;
    localparam CLOP_LIST_BASE_ROW = 0;
    localparam CLOP_LIST_SIZE_ROW = 8;
    localparam CLOP_LIST_COUNT_ROW = 12;
    localparam CLOP_LIST_MODE_ROW = 16;
    localparam CLOP_LIST_MODE_BARE_LSB = 0, CLOP_LIST_MODE_BARE_W = 1;
    localparam CLOP_LIST_MODE_FUNC_LSB = 4, CLOP_LIST_MODE_FUNC_W = 3;
    localparam CLOP_LIST_MODE_QUEUE_LSB = 8, CLOP_LIST_MODE_QUEUE_W = 8;
    localparam CLOP_LIST_MODE_STRIDE_LSB = 16, CLOP_LIST_MODE_STRIDE_W = 16;
    localparam CLOP_LIST_TIMEOUT_ROW = 20;
    localparam CLOP_LIST_CTRL_ROW = 24;
    localparam CLOP_LIST_CTRL_ENABLE_LSB = 0, CLOP_LIST_CTRL_ENABLE_W = 1;
    localparam CLOP_LIST_CTRL_FLUSH_LSB = 1, CLOP_LIST_CTRL_FLUSH_W = 1;
    localparam CLOP_LIST_RELEASED_ROW = 28;
    localparam CLOP_LIST_SERIAL_ROW = 32;
    localparam CLOP_LIST_USED_ROW = 36;
    localparam CLOP_LIST_USED_VALUE_LSB = 0, CLOP_LIST_USED_VALUE_W = 31;
    localparam CLOP_LIST_SEQUENCE_ROW = 40;
    localparam CLOP_OUTCOME_PLACED_ROW = 0;
    localparam CLOP_OUTCOME_NO_BUFFER_ROW = 8;
    localparam CLOP_OUTCOME_NO_EVENT_ROW = 16;
    localparam CLOP_OUTCOME_OVERSIZE_ROW = 24;
    localparam CLOP_OUTCOME_FAULT_ROW = 32;
    localparam CLOP_OUTCOME_OFF_ROW = 40;
    localparam CLOP_OUTCOME_MALFORMED_ROW = 48;
    localparam CLOP_OUTCOME_BAD_VERSION_ROW = 56;

    // Event queues.
    localparam EVENT_AT = 65536, EVENT_ADDR_W = 15;
    localparam EVENT_QUEUE_BASE_ROW = 0;
    localparam EVENT_QUEUE_CTRL_ROW = 8;
    localparam EVENT_QUEUE_CTRL_ENABLE_LSB = 0, EVENT_QUEUE_CTRL_ENABLE_W = 1;
    localparam EVENT_QUEUE_CTRL_MISALIGNED_LSB = 1, EVENT_QUEUE_CTRL_MISALIGNED_W = 1;
    localparam EVENT_QUEUE_CTRL_LOG2_SIZE_LSB = 8, EVENT_QUEUE_CTRL_LOG2_SIZE_W = 5;
    localparam EVENT_QUEUE_RELEASED_ROW = 12;
    localparam EVENT_QUEUE_PRODUCED_ROW = 16;
    localparam EVENT_QUEUE_COUNT_ROW = 20;
    localparam EVENT_QUEUE_COUNT_VALUE_LSB = 0, EVENT_QUEUE_COUNT_VALUE_W = 16;
    localparam EVENT_QUEUE_HOLD_ROW = 24;
    localparam EVENT_QUEUE_ARM_ROW = 28;

    // Port.
    localparam PORT_AT = 98304, PORT_STEP = 8192, PORT_ADDR_W = 13;
    localparam PORT_RX_FRAMES_ROW = 0;
    localparam PORT_RX_BYTES_ROW = 8;
    localparam PORT_RX_FCS_ROW = 16;
    localparam PORT_RX_SYMBOL_ROW = 24;
    localparam PORT_RX_RUNT_ROW = 32;
    localparam PORT_RX_OVERSIZE_ROW = 40;
    localparam PORT_RX_PAUSE_ROW = 48;
    localparam PORT_DROP_ADDRESS_ROW = 56;
    localparam PORT_DROP_MALFORMED_ROW = 64;
    localparam PORT_DROP_CHECKSUM_ROW = 72;
    localparam PORT_DROP_FRAGMENT_ROW = 80;
    localparam PORT_DROP_UNSUPPORTED_ROW = 88;
    localparam PORT_DROP_MISS_ROW = 96;
    localparam PORT_DROP_ANSWER_ROW = 104;
    localparam PORT_DROP_OVERFLOW_ROW = 112;
    localparam PORT_ARP_FRAMES_ROW = 120;
    localparam PORT_ECHO_FRAMES_ROW = 128;
    localparam PORT_TX_FRAMES_ROW = 136;
    localparam PORT_TX_BYTES_ROW = 144;
    localparam PORT_TX_ABORTED_ROW = 152;
    localparam PORT_TX_UNRESOLVED_ROW = 160;
    localparam PORT_TX_PAUSED_ROW = 168;
    localparam PORT_GEN_PACKETS_ROW = 176;
    localparam PORT_TX_FAULT_ROW = 184;
    localparam PORT_PCS_BER_ROW = 192;
    localparam PORT_PCS_ERRORED_BLOCKS_ROW = 200;
    localparam PORT_PCS_PRBS31_ERRORS_ROW = 208;
    localparam PORT_PCS_DELETED_ROW = 216;
    localparam PORT_PCS_INSERTED_ROW = 224;
    localparam PORT_PCS_OVERFLOW_ROW = 232;
    localparam PORT_PCS_UNDERFLOW_ROW = 240;
    localparam PORT_PCS_TX_ERRORS_ROW = 248;
    localparam PORT_ARP_IP_ROW = 0;
    localparam PORT_ARP_MAC_ROW = 8;
    localparam PORT_ARP_MAC_MAC_LSB = 0, PORT_ARP_MAC_MAC_W = 48;
    localparam PORT_ARP_MAC_STATE_LSB = 48, PORT_ARP_MAC_STATE_W = 2;
    localparam PORT_ARP_MAC_FIXED_LSB = 50, PORT_ARP_MAC_FIXED_W = 1;

    /* verilator lint_on UNUSEDPARAM */
endpackage
