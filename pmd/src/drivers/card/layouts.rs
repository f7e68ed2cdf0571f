// Made by scripts/regen from hw/rdl/layouts.toml: do not edit.

//! Descriptors and events of the card. `hw/docs/layouts.md` has them as tables.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::event::EventKind;

/// Packets of a ring were read: their memory is the host's again. One that was not passed on
/// has an event of its own, asked for or not: all others since the last event were. Index:
/// descriptors done since the ring was enabled, wrapping; length: payload of the last packet;
/// stream: the ring.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct TxSent {
    /// Since the last event of the ring.
    pub packets: U32,
    /// Of the last: 0 passed on; 1 its descriptors contradict themselves; 2 it could not be read; 3
    /// the ring has stopped: descriptors could not be read, or more were posted than it has; the
    /// last of its events, and of no packet.
    pub status: U32,
    /// Of the last descriptor; 0 before there was one.
    pub cookie: U32,
    /// 0.
    pub reserved: U32,
    /// Payload of those of them that were passed on.
    pub bytes: U64,
    /// Stamps of the last descriptor: doorbell before it was asked for, fetched, last byte read;
    /// then: event written.
    pub stages: [U32; 4],
}

impl TxSent {
    /// Kind of the event.
    pub(super) const KIND: EventKind = EventKind(2);
}

const _: () = {
    assert!(size_of::<TxSent>() == 40);
    assert!(core::mem::offset_of!(TxSent, packets) == 0);
    assert!(core::mem::offset_of!(TxSent, status) == 4);
    assert!(core::mem::offset_of!(TxSent, cookie) == 8);
    assert!(core::mem::offset_of!(TxSent, reserved) == 12);
    assert!(core::mem::offset_of!(TxSent, bytes) == 16);
    assert!(core::mem::offset_of!(TxSent, stages) == 24);
};

/// A payload had no place that it may be written to, and was dropped. Index: the list; length:
/// bytes that were to be written; stream: 0.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct TlbFault {
    /// Virtual.
    pub address: U64,
    /// Who wanted to write.
    pub function: U32,
    /// 0 no entry, 1 goes on behind the end of the page, 2 the page is another function's.
    pub reason: U32,
    /// 0.
    pub reserved: U64,
    /// 0, 0, stamp of the access; then: event written.
    pub stages: [U32; 4],
}

impl TlbFault {
    /// Kind of the event.
    pub(super) const KIND: EventKind = EventKind(3);
}

const _: () = {
    assert!(size_of::<TlbFault>() == 40);
    assert!(core::mem::offset_of!(TlbFault, address) == 0);
    assert!(core::mem::offset_of!(TlbFault, function) == 8);
    assert!(core::mem::offset_of!(TlbFault, reason) == 12);
    assert!(core::mem::offset_of!(TlbFault, reserved) == 16);
    assert!(core::mem::offset_of!(TlbFault, stages) == 24);
};

/// Something came by the timing input. Index: the burst; length: 0; stream: 0; wire: the time
/// stamp that was latched.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct TimingEdge {
    /// 0 start of burst, 1 end, 2 trigger, 3 a flag.
    pub edge: U32,
    /// As the register `FLAGS` is now.
    pub flags: U32,
    /// External clocks so far.
    pub clocks: U64,
    /// Triggers so far.
    pub triggers: U64,
    /// 0, 0, stamp of the edge; then: event written.
    pub stages: [U32; 4],
}

impl TimingEdge {
    /// Kind of the event.
    pub(super) const KIND: EventKind = EventKind(4);
}

const _: () = {
    assert!(size_of::<TimingEdge>() == 40);
    assert!(core::mem::offset_of!(TimingEdge, edge) == 0);
    assert!(core::mem::offset_of!(TimingEdge, flags) == 4);
    assert!(core::mem::offset_of!(TimingEdge, clocks) == 8);
    assert!(core::mem::offset_of!(TimingEdge, triggers) == 16);
    assert!(core::mem::offset_of!(TimingEdge, stages) == 24);
};

/// A piece of a packet to send. Of a packet's descriptors the first says all but address,
/// length, `LAST` and `EVENT`. They contradict each other where one does not begin a packet and
/// none is open, or begins one within another; where the lengths do not add up to `total`, one
/// of them is 0, or `total` is out of bounds; with both checksum flags, or one of them beside
/// `RAW`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct TxDescriptor {
    /// Of the piece, on the bus; any byte.
    pub address: U64,
    /// Bytes of the piece, 1 to 65535; 0 only in a packet without payload.
    pub length: U32,
    /// The constants below.
    pub flags: U16,
    /// Bytes of all pieces: payload, up to 9000; raw, 14 to 9596.
    pub total: U16,
    /// 0: as the port's registers say, ports too; its first byte is the highest.
    pub destination_ip: U32,
    /// Destination port.
    pub destination_port: U16,
    /// Source port.
    pub source_port: U16,
    /// As it would stand in the header, most significant byte first.
    pub checksum: U16,
    /// 0.
    pub reserved: U16,
    /// Comes back in the event.
    pub cookie: U32,
}

impl TxDescriptor {
    /// The packet begins.
    pub(super) const FIRST: u16 = 0x1;
    /// The packet ends.
    pub(super) const LAST: u16 = 0x2;
    /// An event when this descriptor is done; counts with `LAST` only.
    pub(super) const EVENT: u16 = 0x4;
    /// A whole frame, without FCS: the card puts nothing in front of it.
    pub(super) const RAW: u16 = 0x8;
    /// The UDP checksum is `checksum`.
    pub(super) const CHECKSUM_GIVEN: u16 = 0x10;
    /// The card computes the UDP checksum; with neither it is 0, which says that there is none.
    pub(super) const CHECKSUM_CARD: u16 = 0x20;
}

const _: () = {
    assert!(size_of::<TxDescriptor>() == 32);
    assert!(core::mem::offset_of!(TxDescriptor, address) == 0);
    assert!(core::mem::offset_of!(TxDescriptor, length) == 8);
    assert!(core::mem::offset_of!(TxDescriptor, flags) == 12);
    assert!(core::mem::offset_of!(TxDescriptor, total) == 14);
    assert!(core::mem::offset_of!(TxDescriptor, destination_ip) == 16);
    assert!(core::mem::offset_of!(TxDescriptor, destination_port) == 20);
    assert!(core::mem::offset_of!(TxDescriptor, source_port) == 22);
    assert!(core::mem::offset_of!(TxDescriptor, checksum) == 24);
    assert!(core::mem::offset_of!(TxDescriptor, reserved) == 26);
    assert!(core::mem::offset_of!(TxDescriptor, cookie) == 28);
};
