// Made by scripts/regen from hw/rdl/layouts.toml: do not edit.
// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Layouts in memory and of sideband signals: of each the bits, of each field the lowest bit (_AT)
// and how many there are (_W).
package layouts_pkg;
    /* verilator lint_off UNUSEDPARAM */

    // An event of the card, one cache line (docs/formats/event-record.md).
    localparam EVENT_RECORD_W = 512;
    localparam EVENT_RECORD_WIRE_AT = 0, EVENT_RECORD_WIRE_W = 64;
    localparam EVENT_RECORD_INDEX_AT = 64, EVENT_RECORD_INDEX_W = 32;
    localparam EVENT_RECORD_LENGTH_AT = 96, EVENT_RECORD_LENGTH_W = 32;
    localparam EVENT_RECORD_PAYLOAD_AT = 128, EVENT_RECORD_PAYLOAD_W = 320;
    localparam EVENT_RECORD_SEQUENCE_AT = 448, EVENT_RECORD_SEQUENCE_W = 32;
    localparam EVENT_RECORD_STREAM_AT = 480, EVENT_RECORD_STREAM_W = 16;
    localparam EVENT_RECORD_KIND_AT = 496, EVENT_RECORD_KIND_W = 8;
    localparam EVENT_RECORD_FLAGS_AT = 504, EVENT_RECORD_FLAGS_W = 8;

    // A buffer is announced (docs/formats/clop.md).
    localparam CLOP_BUFFER_W = 320;
    localparam CLOP_BUFFER_KIND = 1;
    localparam CLOP_BUFFER_PAYLOADS_AT = 128, CLOP_BUFFER_PAYLOADS_W = 32;
    localparam CLOP_BUFFER_FIRST_AT = 160, CLOP_BUFFER_FIRST_W = 32;
    localparam CLOP_BUFFER_LAST_AT = 192, CLOP_BUFFER_LAST_W = 32;
    localparam CLOP_BUFFER_REASON_AT = 224, CLOP_BUFFER_REASON_W = 32;
    localparam CLOP_BUFFER_OLDEST_AT = 256, CLOP_BUFFER_OLDEST_W = 64;
    localparam CLOP_BUFFER_STAGES_AT = 320, CLOP_BUFFER_STAGES_W = 128;

    // Packets of a ring were read, and their memory returns to the host.
    localparam TX_SENT_W = 320;
    localparam TX_SENT_KIND = 2;
    localparam TX_SENT_PACKETS_AT = 128, TX_SENT_PACKETS_W = 32;
    localparam TX_SENT_STATUS_AT = 160, TX_SENT_STATUS_W = 32;
    localparam TX_SENT_COOKIE_AT = 192, TX_SENT_COOKIE_W = 32;
    localparam TX_SENT_RESERVED_AT = 224, TX_SENT_RESERVED_W = 32;
    localparam TX_SENT_BYTES_AT = 256, TX_SENT_BYTES_W = 64;
    localparam TX_SENT_STAGES_AT = 320, TX_SENT_STAGES_W = 128;

    // A chunk of a payload has no page, and waits for one or is a fault; or it may not be written.
    localparam TLB_FAULT_W = 320;
    localparam TLB_FAULT_KIND = 3;
    localparam TLB_FAULT_ADDRESS_AT = 128, TLB_FAULT_ADDRESS_W = 64;
    localparam TLB_FAULT_FUNCTION_AT = 192, TLB_FAULT_FUNCTION_W = 32;
    localparam TLB_FAULT_REASON_AT = 224, TLB_FAULT_REASON_W = 32;
    localparam TLB_FAULT_RESERVED_AT = 256, TLB_FAULT_RESERVED_W = 64;
    localparam TLB_FAULT_STAGES_AT = 320, TLB_FAULT_STAGES_W = 128;

    // An edge of the timing input.
    localparam TIMING_EDGE_W = 320;
    localparam TIMING_EDGE_KIND = 4;
    localparam TIMING_EDGE_EDGE_AT = 128, TIMING_EDGE_EDGE_W = 32;
    localparam TIMING_EDGE_FLAGS_AT = 160, TIMING_EDGE_FLAGS_W = 32;
    localparam TIMING_EDGE_CLOCKS_AT = 192, TIMING_EDGE_CLOCKS_W = 64;
    localparam TIMING_EDGE_TRIGGERS_AT = 256, TIMING_EDGE_TRIGGERS_W = 64;
    localparam TIMING_EDGE_STAGES_AT = 320, TIMING_EDGE_STAGES_W = 128;

    // A request of a queue pair is done (pmd/rdma).
    localparam RDMA_DONE_W = 320;
    localparam RDMA_DONE_KIND = 5;
    localparam RDMA_DONE_COOKIE_AT = 128, RDMA_DONE_COOKIE_W = 64;
    localparam RDMA_DONE_OPERATION_AT = 192, RDMA_DONE_OPERATION_W = 32;
    localparam RDMA_DONE_STATUS_AT = 224, RDMA_DONE_STATUS_W = 32;
    localparam RDMA_DONE_RESERVED_AT = 256, RDMA_DONE_RESERVED_W = 64;
    localparam RDMA_DONE_STAGES_AT = 320, RDMA_DONE_STAGES_W = 128;

    // A message was received, or a PUT with immediate; or a receive was flushed (pmd/rdma).
    localparam RDMA_RECEIVED_W = 320;
    localparam RDMA_RECEIVED_KIND = 6;
    localparam RDMA_RECEIVED_COOKIE_AT = 128, RDMA_RECEIVED_COOKIE_W = 64;
    localparam RDMA_RECEIVED_IMMEDIATE_AT = 192, RDMA_RECEIVED_IMMEDIATE_W = 32;
    localparam RDMA_RECEIVED_MISSED_AT = 224, RDMA_RECEIVED_MISSED_W = 32;
    localparam RDMA_RECEIVED_FLAGS_AT = 256, RDMA_RECEIVED_FLAGS_W = 32;
    localparam RDMA_RECEIVED_STATUS_AT = 288, RDMA_RECEIVED_STATUS_W = 32;
    localparam RDMA_RECEIVED_STAGES_AT = 320, RDMA_RECEIVED_STAGES_W = 128;

    // A queue pair has failed (pmd/rdma): its requests and receives are flushed, and it takes no more.
    localparam RDMA_FAILED_W = 320;
    localparam RDMA_FAILED_KIND = 7;
    localparam RDMA_FAILED_STATUS_AT = 128, RDMA_FAILED_STATUS_W = 32;
    localparam RDMA_FAILED_PSN_AT = 160, RDMA_FAILED_PSN_W = 32;
    localparam RDMA_FAILED_RESERVED_AT = 192, RDMA_FAILED_RESERVED_W = 128;
    localparam RDMA_FAILED_STAGES_AT = 320, RDMA_FAILED_STAGES_W = 128;

    // In front of each payload in a buffer with records (docs/formats/clop.md).
    localparam CLOP_RECORD_W = 128;
    localparam CLOP_RECORD_LENGTH_AT = 0, CLOP_RECORD_LENGTH_W = 32;
    localparam CLOP_RECORD_SOURCE_PORT_AT = 32, CLOP_RECORD_SOURCE_PORT_W = 16;
    localparam CLOP_RECORD_FLAGS_AT = 48, CLOP_RECORD_FLAGS_W = 16;
    localparam CLOP_RECORD_SEQUENCE_AT = 64, CLOP_RECORD_SEQUENCE_W = 32;
    localparam CLOP_RECORD_STAMP_AT = 96, CLOP_RECORD_STAMP_W = 32;

    // A segment of a packet to send.
    localparam TX_DESCRIPTOR_W = 256;
    localparam TX_DESCRIPTOR_ADDRESS_AT = 0, TX_DESCRIPTOR_ADDRESS_W = 64;
    localparam TX_DESCRIPTOR_LENGTH_AT = 64, TX_DESCRIPTOR_LENGTH_W = 32;
    localparam TX_DESCRIPTOR_FLAGS_AT = 96, TX_DESCRIPTOR_FLAGS_W = 16;
    localparam TX_DESCRIPTOR_TOTAL_AT = 112, TX_DESCRIPTOR_TOTAL_W = 16;
    localparam TX_DESCRIPTOR_DESTINATION_IP_AT = 128, TX_DESCRIPTOR_DESTINATION_IP_W = 32;
    localparam TX_DESCRIPTOR_DESTINATION_PORT_AT = 160, TX_DESCRIPTOR_DESTINATION_PORT_W = 16;
    localparam TX_DESCRIPTOR_SOURCE_PORT_AT = 176, TX_DESCRIPTOR_SOURCE_PORT_W = 16;
    localparam TX_DESCRIPTOR_CHECKSUM_AT = 192, TX_DESCRIPTOR_CHECKSUM_W = 16;
    localparam TX_DESCRIPTOR_RESERVED_AT = 208, TX_DESCRIPTOR_RESERVED_W = 16;
    localparam TX_DESCRIPTOR_COOKIE_AT = 224, TX_DESCRIPTOR_COOKIE_W = 32;
    localparam TX_DESCRIPTOR_FIRST = 1;  // the packet begins
    localparam TX_DESCRIPTOR_LAST = 2;  // the packet ends
    localparam TX_DESCRIPTOR_EVENT = 4;  // an event when this descriptor is done; counts with `LAST` only
    localparam TX_DESCRIPTOR_RAW = 8;  // a whole frame, without FCS: the card adds no headers
    localparam TX_DESCRIPTOR_CHECKSUM_GIVEN = 16;  // the UDP checksum is `checksum`
    localparam TX_DESCRIPTOR_INLINE = 64;  // the packet is in the slots of the ring behind this descriptor, up to 64 bytes of it in one or two slots, and not at `address`; together with `FIRST` and `LAST` only
    localparam TX_DESCRIPTOR_CHECKSUM_CARD = 32;  // the card computes the UDP checksum; with neither it is 0, which means no checksum

    // Metadata of a received payload, from `plx_udp_rx` to `plx_rx_dma_writer`.
    localparam RX_META_W = 169;
    localparam RX_META_TIMESTAMP_NS_AT = 0, RX_META_TIMESTAMP_NS_W = 64;
    localparam RX_META_CYCLE_TS_MAC_AT = 64, RX_META_CYCLE_TS_MAC_W = 32;
    localparam RX_META_CYCLE_TS_PARSED_AT = 96, RX_META_CYCLE_TS_PARSED_W = 32;
    localparam RX_META_LENGTH_AT = 128, RX_META_LENGTH_W = 16;
    localparam RX_META_SOURCE_PORT_AT = 144, RX_META_SOURCE_PORT_W = 16;
    localparam RX_META_STREAM_AT = 160, RX_META_STREAM_W = 5;
    localparam RX_META_DELIVERY_MODE_AT = 165, RX_META_DELIVERY_MODE_W = 2;
    localparam RX_META_LENGTH_KNOWN_AT = 167, RX_META_LENGTH_KNOWN_W = 1;
    localparam RX_META_TIMESTAMP_VALID_AT = 168, RX_META_TIMESTAMP_VALID_W = 1;

    // Metadata of a payload to be sent, to `plx_udp_tx`.
    localparam TX_META_W = 132;
    localparam TX_META_DESTINATION_IP_AT = 0, TX_META_DESTINATION_IP_W = 32;
    localparam TX_META_DESTINATION_PORT_AT = 32, TX_META_DESTINATION_PORT_W = 16;
    localparam TX_META_SOURCE_PORT_AT = 48, TX_META_SOURCE_PORT_W = 16;
    localparam TX_META_LENGTH_AT = 64, TX_META_LENGTH_W = 16;
    localparam TX_META_CHECKSUM_AT = 80, TX_META_CHECKSUM_W = 16;
    localparam TX_META_CHECKSUM_MODE_AT = 96, TX_META_CHECKSUM_MODE_W = 2;
    localparam TX_META_RAW_AT = 98, TX_META_RAW_W = 1;
    localparam TX_META_COOKIE_AT = 99, TX_META_COOKIE_W = 32;
    localparam TX_META_NOTIFY_AT = 131, TX_META_NOTIFY_W = 1;

    // The header of a TLP on the host bus; [interfaces](interfaces.md#host-bus-hif) has which side sets which field.
    localparam HIF_W = 128;
    localparam HIF_ADDRESS_AT = 0, HIF_ADDRESS_W = 64;
    localparam HIF_OFFSET_AT = 0, HIF_OFFSET_W = 32;
    localparam HIF_LOWER_ADDRESS_AT = 0, HIF_LOWER_ADDRESS_W = 7;
    localparam HIF_BYTE_COUNT_AT = 7, HIF_BYTE_COUNT_W = 12;
    localparam HIF_REQUESTER_AT = 32, HIF_REQUESTER_W = 16;
    localparam HIF_LENGTH_AT = 64, HIF_LENGTH_W = 10;
    localparam HIF_FIRST_BE_AT = 74, HIF_FIRST_BE_W = 4;
    localparam HIF_LAST_BE_AT = 78, HIF_LAST_BE_W = 4;
    localparam HIF_BAR_AT = 82, HIF_BAR_W = 3;
    localparam HIF_WRITE_AT = 85, HIF_WRITE_W = 1;
    localparam HIF_STATUS_AT = 86, HIF_STATUS_W = 3;
    localparam HIF_POISONED_AT = 89, HIF_POISONED_W = 1;
    localparam HIF_TAG_AT = 90, HIF_TAG_W = 10;
    localparam HIF_FUNC_AT = 100, HIF_FUNC_W = 8;
    localparam HIF_ATTRIBUTES_AT = 108, HIF_ATTRIBUTES_W = 3;
    localparam HIF_TRAFFIC_CLASS_AT = 111, HIF_TRAFFIC_CLASS_W = 3;

    // A message of the flow control ring (docs/formats/farm.md), between `plx_evb_sched` and `plx_evb_node`.
    localparam FLOW_W = 234;
    localparam FLOW_RUN_AT = 0, FLOW_RUN_W = 32;
    localparam FLOW_NUMBER_AT = 32, FLOW_NUMBER_W = 32;
    localparam FLOW_DECIDED_AT = 64, FLOW_DECIDED_W = 32;
    localparam FLOW_GENERATION_AT = 96, FLOW_GENERATION_W = 32;
    localparam FLOW_DESCRIPTOR_AT = 128, FLOW_DESCRIPTOR_W = 16;
    localparam FLOW_ATTEMPT_AT = 144, FLOW_ATTEMPT_W = 16;
    localparam FLOW_LOOPS_AT = 160, FLOW_LOOPS_W = 8;
    localparam FLOW_HOLD_AT = 168, FLOW_HOLD_W = 1;
    localparam FLOW_EVENT_AT = 169, FLOW_EVENT_W = 1;
    localparam FLOW_MEMBERS_AT = 170, FLOW_MEMBERS_W = 32;
    localparam FLOW_PENDING_AT = 202, FLOW_PENDING_W = 32;

    // A node has a free receive buffer, to `plx_evb_sched`.
    localparam FEEDBACK_W = 120;
    localparam FEEDBACK_RUN_AT = 0, FEEDBACK_RUN_W = 32;
    localparam FEEDBACK_NUMBER_AT = 32, FEEDBACK_NUMBER_W = 32;
    localparam FEEDBACK_GENERATION_AT = 64, FEEDBACK_GENERATION_W = 32;
    localparam FEEDBACK_DESCRIPTOR_AT = 96, FEEDBACK_DESCRIPTOR_W = 16;
    localparam FEEDBACK_COLUMN_AT = 112, FEEDBACK_COLUMN_W = 8;

    /* verilator lint_on UNUSEDPARAM */
endpackage
