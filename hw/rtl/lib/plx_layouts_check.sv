// Made by scripts/regen from hw/rdl/layouts.toml: do not edit.
// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Does not elaborate where fields in memory overlap, leave a hole, or end elsewhere than they should.
module plx_layouts_check;
    generate
        if (layouts_pkg::EVENT_RECORD_WIRE_AT != 0) EventRecord_has_a_hole layout_error ();
        if (layouts_pkg::EVENT_RECORD_INDEX_AT != layouts_pkg::EVENT_RECORD_WIRE_AT + layouts_pkg::EVENT_RECORD_WIRE_W) EventRecord_has_a_hole layout_error ();
        if (layouts_pkg::EVENT_RECORD_LENGTH_AT != layouts_pkg::EVENT_RECORD_INDEX_AT + layouts_pkg::EVENT_RECORD_INDEX_W) EventRecord_has_a_hole layout_error ();
        if (layouts_pkg::EVENT_RECORD_PAYLOAD_AT != layouts_pkg::EVENT_RECORD_LENGTH_AT + layouts_pkg::EVENT_RECORD_LENGTH_W) EventRecord_has_a_hole layout_error ();
        if (layouts_pkg::EVENT_RECORD_SEQUENCE_AT != layouts_pkg::EVENT_RECORD_PAYLOAD_AT + layouts_pkg::EVENT_RECORD_PAYLOAD_W) EventRecord_has_a_hole layout_error ();
        if (layouts_pkg::EVENT_RECORD_STREAM_AT != layouts_pkg::EVENT_RECORD_SEQUENCE_AT + layouts_pkg::EVENT_RECORD_SEQUENCE_W) EventRecord_has_a_hole layout_error ();
        if (layouts_pkg::EVENT_RECORD_KIND_AT != layouts_pkg::EVENT_RECORD_STREAM_AT + layouts_pkg::EVENT_RECORD_STREAM_W) EventRecord_has_a_hole layout_error ();
        if (layouts_pkg::EVENT_RECORD_FLAGS_AT != layouts_pkg::EVENT_RECORD_KIND_AT + layouts_pkg::EVENT_RECORD_KIND_W) EventRecord_has_a_hole layout_error ();
        if (0 + layouts_pkg::EVENT_RECORD_W != layouts_pkg::EVENT_RECORD_FLAGS_AT + layouts_pkg::EVENT_RECORD_FLAGS_W) EventRecord_has_a_hole layout_error ();
        if (layouts_pkg::CLOP_BUFFER_PAYLOADS_AT != 128) ClopBuffer_has_a_hole layout_error ();
        if (layouts_pkg::CLOP_BUFFER_FIRST_AT != layouts_pkg::CLOP_BUFFER_PAYLOADS_AT + layouts_pkg::CLOP_BUFFER_PAYLOADS_W) ClopBuffer_has_a_hole layout_error ();
        if (layouts_pkg::CLOP_BUFFER_LAST_AT != layouts_pkg::CLOP_BUFFER_FIRST_AT + layouts_pkg::CLOP_BUFFER_FIRST_W) ClopBuffer_has_a_hole layout_error ();
        if (layouts_pkg::CLOP_BUFFER_REASON_AT != layouts_pkg::CLOP_BUFFER_LAST_AT + layouts_pkg::CLOP_BUFFER_LAST_W) ClopBuffer_has_a_hole layout_error ();
        if (layouts_pkg::CLOP_BUFFER_OLDEST_AT != layouts_pkg::CLOP_BUFFER_REASON_AT + layouts_pkg::CLOP_BUFFER_REASON_W) ClopBuffer_has_a_hole layout_error ();
        if (layouts_pkg::CLOP_BUFFER_STAGES_AT != layouts_pkg::CLOP_BUFFER_OLDEST_AT + layouts_pkg::CLOP_BUFFER_OLDEST_W) ClopBuffer_has_a_hole layout_error ();
        if (128 + layouts_pkg::CLOP_BUFFER_W != layouts_pkg::CLOP_BUFFER_STAGES_AT + layouts_pkg::CLOP_BUFFER_STAGES_W) ClopBuffer_has_a_hole layout_error ();
        if (layouts_pkg::TX_SENT_PACKETS_AT != 128) TxSent_has_a_hole layout_error ();
        if (layouts_pkg::TX_SENT_STATUS_AT != layouts_pkg::TX_SENT_PACKETS_AT + layouts_pkg::TX_SENT_PACKETS_W) TxSent_has_a_hole layout_error ();
        if (layouts_pkg::TX_SENT_COOKIE_AT != layouts_pkg::TX_SENT_STATUS_AT + layouts_pkg::TX_SENT_STATUS_W) TxSent_has_a_hole layout_error ();
        if (layouts_pkg::TX_SENT_RESERVED_AT != layouts_pkg::TX_SENT_COOKIE_AT + layouts_pkg::TX_SENT_COOKIE_W) TxSent_has_a_hole layout_error ();
        if (layouts_pkg::TX_SENT_BYTES_AT != layouts_pkg::TX_SENT_RESERVED_AT + layouts_pkg::TX_SENT_RESERVED_W) TxSent_has_a_hole layout_error ();
        if (layouts_pkg::TX_SENT_STAGES_AT != layouts_pkg::TX_SENT_BYTES_AT + layouts_pkg::TX_SENT_BYTES_W) TxSent_has_a_hole layout_error ();
        if (128 + layouts_pkg::TX_SENT_W != layouts_pkg::TX_SENT_STAGES_AT + layouts_pkg::TX_SENT_STAGES_W) TxSent_has_a_hole layout_error ();
        if (layouts_pkg::TLB_FAULT_ADDRESS_AT != 128) TlbFault_has_a_hole layout_error ();
        if (layouts_pkg::TLB_FAULT_FUNCTION_AT != layouts_pkg::TLB_FAULT_ADDRESS_AT + layouts_pkg::TLB_FAULT_ADDRESS_W) TlbFault_has_a_hole layout_error ();
        if (layouts_pkg::TLB_FAULT_REASON_AT != layouts_pkg::TLB_FAULT_FUNCTION_AT + layouts_pkg::TLB_FAULT_FUNCTION_W) TlbFault_has_a_hole layout_error ();
        if (layouts_pkg::TLB_FAULT_RESERVED_AT != layouts_pkg::TLB_FAULT_REASON_AT + layouts_pkg::TLB_FAULT_REASON_W) TlbFault_has_a_hole layout_error ();
        if (layouts_pkg::TLB_FAULT_STAGES_AT != layouts_pkg::TLB_FAULT_RESERVED_AT + layouts_pkg::TLB_FAULT_RESERVED_W) TlbFault_has_a_hole layout_error ();
        if (128 + layouts_pkg::TLB_FAULT_W != layouts_pkg::TLB_FAULT_STAGES_AT + layouts_pkg::TLB_FAULT_STAGES_W) TlbFault_has_a_hole layout_error ();
        if (layouts_pkg::TIMING_EDGE_EDGE_AT != 128) TimingEdge_has_a_hole layout_error ();
        if (layouts_pkg::TIMING_EDGE_FLAGS_AT != layouts_pkg::TIMING_EDGE_EDGE_AT + layouts_pkg::TIMING_EDGE_EDGE_W) TimingEdge_has_a_hole layout_error ();
        if (layouts_pkg::TIMING_EDGE_CLOCKS_AT != layouts_pkg::TIMING_EDGE_FLAGS_AT + layouts_pkg::TIMING_EDGE_FLAGS_W) TimingEdge_has_a_hole layout_error ();
        if (layouts_pkg::TIMING_EDGE_TRIGGERS_AT != layouts_pkg::TIMING_EDGE_CLOCKS_AT + layouts_pkg::TIMING_EDGE_CLOCKS_W) TimingEdge_has_a_hole layout_error ();
        if (layouts_pkg::TIMING_EDGE_STAGES_AT != layouts_pkg::TIMING_EDGE_TRIGGERS_AT + layouts_pkg::TIMING_EDGE_TRIGGERS_W) TimingEdge_has_a_hole layout_error ();
        if (128 + layouts_pkg::TIMING_EDGE_W != layouts_pkg::TIMING_EDGE_STAGES_AT + layouts_pkg::TIMING_EDGE_STAGES_W) TimingEdge_has_a_hole layout_error ();
        if (layouts_pkg::RDMA_DONE_COOKIE_AT != 128) RdmaDone_has_a_hole layout_error ();
        if (layouts_pkg::RDMA_DONE_OPERATION_AT != layouts_pkg::RDMA_DONE_COOKIE_AT + layouts_pkg::RDMA_DONE_COOKIE_W) RdmaDone_has_a_hole layout_error ();
        if (layouts_pkg::RDMA_DONE_STATUS_AT != layouts_pkg::RDMA_DONE_OPERATION_AT + layouts_pkg::RDMA_DONE_OPERATION_W) RdmaDone_has_a_hole layout_error ();
        if (layouts_pkg::RDMA_DONE_RESERVED_AT != layouts_pkg::RDMA_DONE_STATUS_AT + layouts_pkg::RDMA_DONE_STATUS_W) RdmaDone_has_a_hole layout_error ();
        if (layouts_pkg::RDMA_DONE_STAGES_AT != layouts_pkg::RDMA_DONE_RESERVED_AT + layouts_pkg::RDMA_DONE_RESERVED_W) RdmaDone_has_a_hole layout_error ();
        if (128 + layouts_pkg::RDMA_DONE_W != layouts_pkg::RDMA_DONE_STAGES_AT + layouts_pkg::RDMA_DONE_STAGES_W) RdmaDone_has_a_hole layout_error ();
        if (layouts_pkg::RDMA_RECEIVED_COOKIE_AT != 128) RdmaReceived_has_a_hole layout_error ();
        if (layouts_pkg::RDMA_RECEIVED_IMMEDIATE_AT != layouts_pkg::RDMA_RECEIVED_COOKIE_AT + layouts_pkg::RDMA_RECEIVED_COOKIE_W) RdmaReceived_has_a_hole layout_error ();
        if (layouts_pkg::RDMA_RECEIVED_MISSED_AT != layouts_pkg::RDMA_RECEIVED_IMMEDIATE_AT + layouts_pkg::RDMA_RECEIVED_IMMEDIATE_W) RdmaReceived_has_a_hole layout_error ();
        if (layouts_pkg::RDMA_RECEIVED_FLAGS_AT != layouts_pkg::RDMA_RECEIVED_MISSED_AT + layouts_pkg::RDMA_RECEIVED_MISSED_W) RdmaReceived_has_a_hole layout_error ();
        if (layouts_pkg::RDMA_RECEIVED_STATUS_AT != layouts_pkg::RDMA_RECEIVED_FLAGS_AT + layouts_pkg::RDMA_RECEIVED_FLAGS_W) RdmaReceived_has_a_hole layout_error ();
        if (layouts_pkg::RDMA_RECEIVED_STAGES_AT != layouts_pkg::RDMA_RECEIVED_STATUS_AT + layouts_pkg::RDMA_RECEIVED_STATUS_W) RdmaReceived_has_a_hole layout_error ();
        if (128 + layouts_pkg::RDMA_RECEIVED_W != layouts_pkg::RDMA_RECEIVED_STAGES_AT + layouts_pkg::RDMA_RECEIVED_STAGES_W) RdmaReceived_has_a_hole layout_error ();
        if (layouts_pkg::RDMA_FAILED_STATUS_AT != 128) RdmaFailed_has_a_hole layout_error ();
        if (layouts_pkg::RDMA_FAILED_PSN_AT != layouts_pkg::RDMA_FAILED_STATUS_AT + layouts_pkg::RDMA_FAILED_STATUS_W) RdmaFailed_has_a_hole layout_error ();
        if (layouts_pkg::RDMA_FAILED_RESERVED_AT != layouts_pkg::RDMA_FAILED_PSN_AT + layouts_pkg::RDMA_FAILED_PSN_W) RdmaFailed_has_a_hole layout_error ();
        if (layouts_pkg::RDMA_FAILED_STAGES_AT != layouts_pkg::RDMA_FAILED_RESERVED_AT + layouts_pkg::RDMA_FAILED_RESERVED_W) RdmaFailed_has_a_hole layout_error ();
        if (128 + layouts_pkg::RDMA_FAILED_W != layouts_pkg::RDMA_FAILED_STAGES_AT + layouts_pkg::RDMA_FAILED_STAGES_W) RdmaFailed_has_a_hole layout_error ();
        if (layouts_pkg::CLOP_RECORD_LENGTH_AT != 0) ClopRecord_has_a_hole layout_error ();
        if (layouts_pkg::CLOP_RECORD_SOURCE_PORT_AT != layouts_pkg::CLOP_RECORD_LENGTH_AT + layouts_pkg::CLOP_RECORD_LENGTH_W) ClopRecord_has_a_hole layout_error ();
        if (layouts_pkg::CLOP_RECORD_FLAGS_AT != layouts_pkg::CLOP_RECORD_SOURCE_PORT_AT + layouts_pkg::CLOP_RECORD_SOURCE_PORT_W) ClopRecord_has_a_hole layout_error ();
        if (layouts_pkg::CLOP_RECORD_SEQUENCE_AT != layouts_pkg::CLOP_RECORD_FLAGS_AT + layouts_pkg::CLOP_RECORD_FLAGS_W) ClopRecord_has_a_hole layout_error ();
        if (layouts_pkg::CLOP_RECORD_STAMP_AT != layouts_pkg::CLOP_RECORD_SEQUENCE_AT + layouts_pkg::CLOP_RECORD_SEQUENCE_W) ClopRecord_has_a_hole layout_error ();
        if (0 + layouts_pkg::CLOP_RECORD_W != layouts_pkg::CLOP_RECORD_STAMP_AT + layouts_pkg::CLOP_RECORD_STAMP_W) ClopRecord_has_a_hole layout_error ();
        if (layouts_pkg::TX_DESCRIPTOR_ADDRESS_AT != 0) TxDescriptor_has_a_hole layout_error ();
        if (layouts_pkg::TX_DESCRIPTOR_LENGTH_AT != layouts_pkg::TX_DESCRIPTOR_ADDRESS_AT + layouts_pkg::TX_DESCRIPTOR_ADDRESS_W) TxDescriptor_has_a_hole layout_error ();
        if (layouts_pkg::TX_DESCRIPTOR_FLAGS_AT != layouts_pkg::TX_DESCRIPTOR_LENGTH_AT + layouts_pkg::TX_DESCRIPTOR_LENGTH_W) TxDescriptor_has_a_hole layout_error ();
        if (layouts_pkg::TX_DESCRIPTOR_TOTAL_AT != layouts_pkg::TX_DESCRIPTOR_FLAGS_AT + layouts_pkg::TX_DESCRIPTOR_FLAGS_W) TxDescriptor_has_a_hole layout_error ();
        if (layouts_pkg::TX_DESCRIPTOR_DESTINATION_IP_AT != layouts_pkg::TX_DESCRIPTOR_TOTAL_AT + layouts_pkg::TX_DESCRIPTOR_TOTAL_W) TxDescriptor_has_a_hole layout_error ();
        if (layouts_pkg::TX_DESCRIPTOR_DESTINATION_PORT_AT != layouts_pkg::TX_DESCRIPTOR_DESTINATION_IP_AT + layouts_pkg::TX_DESCRIPTOR_DESTINATION_IP_W) TxDescriptor_has_a_hole layout_error ();
        if (layouts_pkg::TX_DESCRIPTOR_SOURCE_PORT_AT != layouts_pkg::TX_DESCRIPTOR_DESTINATION_PORT_AT + layouts_pkg::TX_DESCRIPTOR_DESTINATION_PORT_W) TxDescriptor_has_a_hole layout_error ();
        if (layouts_pkg::TX_DESCRIPTOR_CHECKSUM_AT != layouts_pkg::TX_DESCRIPTOR_SOURCE_PORT_AT + layouts_pkg::TX_DESCRIPTOR_SOURCE_PORT_W) TxDescriptor_has_a_hole layout_error ();
        if (layouts_pkg::TX_DESCRIPTOR_RESERVED_AT != layouts_pkg::TX_DESCRIPTOR_CHECKSUM_AT + layouts_pkg::TX_DESCRIPTOR_CHECKSUM_W) TxDescriptor_has_a_hole layout_error ();
        if (layouts_pkg::TX_DESCRIPTOR_COOKIE_AT != layouts_pkg::TX_DESCRIPTOR_RESERVED_AT + layouts_pkg::TX_DESCRIPTOR_RESERVED_W) TxDescriptor_has_a_hole layout_error ();
        if (0 + layouts_pkg::TX_DESCRIPTOR_W != layouts_pkg::TX_DESCRIPTOR_COOKIE_AT + layouts_pkg::TX_DESCRIPTOR_COOKIE_W) TxDescriptor_has_a_hole layout_error ();
    endgenerate
endmodule
