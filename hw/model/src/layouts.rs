// Made by scripts/regen from hw/rdl/layouts.toml: do not edit.

//! Offsets in what the card reads and writes in memory. `hw/docs/layouts.md` has them as tables.

#![allow(missing_docs, reason = "the descriptions are in hw/docs/layouts.md")]

pub const EVENT_RECORD_SIZE: usize = 64;
pub const EVENT_RECORD_WIRE: usize = 0;
pub const EVENT_RECORD_INDEX: usize = 8;
pub const EVENT_RECORD_LENGTH: usize = 12;
pub const EVENT_RECORD_PAYLOAD: usize = 16;
pub const EVENT_RECORD_SEQUENCE: usize = 56;
pub const EVENT_RECORD_STREAM: usize = 60;
pub const EVENT_RECORD_KIND: usize = 62;
pub const EVENT_RECORD_FLAGS: usize = 63;

pub const CLOP_BUFFER_SIZE: usize = 40;
pub const CLOP_BUFFER_KIND: u8 = 1;
pub const CLOP_BUFFER_PAYLOADS: usize = 16;
pub const CLOP_BUFFER_FIRST: usize = 20;
pub const CLOP_BUFFER_LAST: usize = 24;
pub const CLOP_BUFFER_REASON: usize = 28;
pub const CLOP_BUFFER_OLDEST: usize = 32;
pub const CLOP_BUFFER_STAGES: usize = 40;

pub const TX_SENT_SIZE: usize = 40;
pub const TX_SENT_KIND: u8 = 2;
pub const TX_SENT_PACKETS: usize = 16;
pub const TX_SENT_STATUS: usize = 20;
pub const TX_SENT_COOKIE: usize = 24;
pub const TX_SENT_RESERVED: usize = 28;
pub const TX_SENT_BYTES: usize = 32;
pub const TX_SENT_STAGES: usize = 40;

pub const TLB_FAULT_SIZE: usize = 40;
pub const TLB_FAULT_KIND: u8 = 3;
pub const TLB_FAULT_ADDRESS: usize = 16;
pub const TLB_FAULT_FUNCTION: usize = 24;
pub const TLB_FAULT_REASON: usize = 28;
pub const TLB_FAULT_RESERVED: usize = 32;
pub const TLB_FAULT_STAGES: usize = 40;

pub const TIMING_EDGE_SIZE: usize = 40;
pub const TIMING_EDGE_KIND: u8 = 4;
pub const TIMING_EDGE_EDGE: usize = 16;
pub const TIMING_EDGE_FLAGS: usize = 20;
pub const TIMING_EDGE_CLOCKS: usize = 24;
pub const TIMING_EDGE_TRIGGERS: usize = 32;
pub const TIMING_EDGE_STAGES: usize = 40;

pub const RDMA_DONE_SIZE: usize = 40;
pub const RDMA_DONE_KIND: u8 = 5;
pub const RDMA_DONE_COOKIE: usize = 16;
pub const RDMA_DONE_OPERATION: usize = 24;
pub const RDMA_DONE_STATUS: usize = 28;
pub const RDMA_DONE_RESERVED: usize = 32;
pub const RDMA_DONE_STAGES: usize = 40;

pub const RDMA_RECEIVED_SIZE: usize = 40;
pub const RDMA_RECEIVED_KIND: u8 = 6;
pub const RDMA_RECEIVED_COOKIE: usize = 16;
pub const RDMA_RECEIVED_IMMEDIATE: usize = 24;
pub const RDMA_RECEIVED_MISSED: usize = 28;
pub const RDMA_RECEIVED_FLAGS: usize = 32;
pub const RDMA_RECEIVED_STATUS: usize = 36;
pub const RDMA_RECEIVED_STAGES: usize = 40;

pub const RDMA_FAILED_SIZE: usize = 40;
pub const RDMA_FAILED_KIND: u8 = 7;
pub const RDMA_FAILED_STATUS: usize = 16;
pub const RDMA_FAILED_PSN: usize = 20;
pub const RDMA_FAILED_RESERVED: usize = 24;
pub const RDMA_FAILED_STAGES: usize = 40;

pub const CLOP_RECORD_SIZE: usize = 16;
pub const CLOP_RECORD_LENGTH: usize = 0;
pub const CLOP_RECORD_SOURCE_PORT: usize = 4;
pub const CLOP_RECORD_FLAGS: usize = 6;
pub const CLOP_RECORD_SEQUENCE: usize = 8;
pub const CLOP_RECORD_STAMP: usize = 12;

pub const TX_DESCRIPTOR_SIZE: usize = 32;
pub const TX_DESCRIPTOR_ADDRESS: usize = 0;
pub const TX_DESCRIPTOR_LENGTH: usize = 8;
pub const TX_DESCRIPTOR_FLAGS: usize = 12;
pub const TX_DESCRIPTOR_TOTAL: usize = 14;
pub const TX_DESCRIPTOR_DESTINATION_IP: usize = 16;
pub const TX_DESCRIPTOR_DESTINATION_PORT: usize = 20;
pub const TX_DESCRIPTOR_SOURCE_PORT: usize = 22;
pub const TX_DESCRIPTOR_CHECKSUM: usize = 24;
pub const TX_DESCRIPTOR_RESERVED: usize = 26;
pub const TX_DESCRIPTOR_COOKIE: usize = 28;
pub const TX_DESCRIPTOR_FIRST: u16 = 0x1;
pub const TX_DESCRIPTOR_LAST: u16 = 0x2;
pub const TX_DESCRIPTOR_EVENT: u16 = 0x4;
pub const TX_DESCRIPTOR_RAW: u16 = 0x8;
pub const TX_DESCRIPTOR_CHECKSUM_GIVEN: u16 = 0x10;
pub const TX_DESCRIPTOR_INLINE: u16 = 0x40;
pub const TX_DESCRIPTOR_CHECKSUM_CARD: u16 = 0x20;
