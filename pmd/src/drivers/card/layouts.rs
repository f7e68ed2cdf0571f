// Made by scripts/regen from hw/rdl/layouts.toml: do not edit.

//! Descriptors and events of the card. `hw/docs/layouts.md` has them as tables.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::event::EventKind;

/// Packets of a ring were read, and their memory returns to the host. A packet that was not
/// passed on has a separate event, requested or not; all other packets since the last event
/// were passed on. Index: descriptors done since the ring was enabled, wrapping; length:
/// payload of the last packet; stream: the ring.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct TxSent {
    /// Since the last event of the ring whose status is not 4.
    pub packets: U32,
    /// Of the last: 0 passed on; 1 inconsistent descriptors; 2 read failed; 3 the ring has stopped:
    /// descriptors could not be read, or more were posted than it has; this is its last event but
    /// for those of status 4, and belongs to no packet; 4 unresolved: `packets` packets that
    /// earlier events reported or later ones will report as passed on were lost, because no
    /// neighbour has their address.
    pub status: U32,
    /// Of the last descriptor; 0 before the first one; with status 4, of the first descriptor of
    /// the last lost packet.
    pub cookie: U32,
    /// 0.
    pub reserved: U32,
    /// Payload of the packets that were passed on; 0 with status 4.
    pub bytes: U64,
    /// Stamps of the last descriptor: doorbell before its request, fetched, last byte read; then:
    /// event written.
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

/// A chunk of a payload has no page, and waits for one or is a fault; or it may not be written.
/// Index: the list; length: bytes of the chunk, to the end of its 4 KiB; stream: 0; sequence:
/// of the function's faults.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct TlbFault {
    /// Virtual.
    pub address: U64,
    /// Function of the write.
    pub function: U32,
    /// 0 no entry of the function, 1 the chunk crosses 4 KiB, 2 key or right do not agree.
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

/// An edge of the timing input. Index: the burst; length: 0; stream: 0; wire: the latched time
/// stamp.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct TimingEdge {
    /// 0 start of burst, 1 end, 2 trigger, 3 a flag.
    pub edge: U32,
    /// Present value of the register `FLAGS`.
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

/// A segment of a packet to send. The first descriptor of a packet has all fields; the others
/// count only by address, length, `LAST` and `EVENT`. Descriptors are inconsistent where one
/// does not begin a packet and none is open, or begins one within another; where the lengths do
/// not add up to `total`, one of them is 0, or `total` is out of bounds; with both checksum
/// flags, or one of them together with `RAW`; with `INLINE` and more than 64 bytes, or without
/// `FIRST` or `LAST`. A descriptor with `INLINE` ends its packet. It is followed by a slot for
/// 1 to 32 bytes of `length`, two for 33 to 64, none for any other; they count as descriptors
/// in `RING_PRODUCER` and in events.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct TxDescriptor {
    /// Of the segment, on the bus; any byte.
    pub address: U64,
    /// Bytes of the segment, 1 to 65535; 0 only in a packet without payload.
    pub length: U32,
    /// The constants below.
    pub flags: U16,
    /// Bytes of all segments: payload, up to 9000; raw, 14 to 9596.
    pub total: U16,
    /// 0: from the port's registers, ports too; its first byte is the highest.
    pub destination_ip: U32,
    /// Destination port.
    pub destination_port: U16,
    /// Source port.
    pub source_port: U16,
    /// As in the header, most significant byte first.
    pub checksum: U16,
    /// 0.
    pub reserved: U16,
    /// Returned in the event.
    pub cookie: U32,
}

impl TxDescriptor {
    /// The packet begins.
    pub(super) const FIRST: u16 = 0x1;
    /// The packet ends.
    pub(super) const LAST: u16 = 0x2;
    /// An event when this descriptor is done; counts with `LAST` only.
    pub(super) const EVENT: u16 = 0x4;
    /// A whole frame, without FCS: the card adds no headers.
    pub(super) const RAW: u16 = 0x8;
    /// The UDP checksum is `checksum`.
    pub(super) const CHECKSUM_GIVEN: u16 = 0x10;
    /// The packet is in the slots of the ring behind this descriptor, up to 64 bytes of it in one
    /// or two slots, and not at `address`; together with `FIRST` and `LAST` only.
    pub(super) const INLINE: u16 = 0x40;
    /// The card computes the UDP checksum; with neither it is 0, which means no checksum.
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
