// Made by scripts/regen from hw/rdl/layouts.toml: do not edit.

//! Events of queue pairs. `hw/docs/layouts.md` has them as tables.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use pollux_pmd::event::EventKind;

/// A request of a queue pair is done (pmd/rdma). Index: the queue pair; length: bytes of the
/// request; stream: 0. Requests are done in the order in which they were posted.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RdmaDone {
    /// Of the request.
    pub cookie: U64,
    /// 0 PUT, 1 GET, 2 SEND.
    pub operation: U32,
    /// 0 ok; 1 flushed: the queue pair had failed; 2 retries exceeded; 3 the peer was not ready for
    /// too long; 4 refused by the peer: access; 5 refused by the peer: invalid request; 6 the peer
    /// failed; 7 own memory not registered; 8 data longer than the buffer; 9 the peer is gone.
    pub status: U32,
    /// 0.
    pub reserved: U64,
    /// 0, 0, 0; then: event written.
    pub stages: [U32; 4],
}

impl RdmaDone {
    /// Kind of the event.
    pub(super) const KIND: EventKind = EventKind(5);
}

const _: () = {
    assert!(size_of::<RdmaDone>() == 40);
    assert!(core::mem::offset_of!(RdmaDone, cookie) == 0);
    assert!(core::mem::offset_of!(RdmaDone, operation) == 8);
    assert!(core::mem::offset_of!(RdmaDone, status) == 12);
    assert!(core::mem::offset_of!(RdmaDone, reserved) == 16);
    assert!(core::mem::offset_of!(RdmaDone, stages) == 24);
};

/// A message was received, or a PUT with immediate; or a receive was flushed (pmd/rdma). Index:
/// the queue pair; length: bytes of the message; stream: 0. The receive with the cookie is used
/// up.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RdmaReceived {
    /// Of the receive.
    pub cookie: U64,
    /// Valid with flag 0.
    pub immediate: U32,
    /// Packets that sequence numbers say were missed since the last event of the queue pair;
    /// unreliable connections only.
    pub missed: U32,
    /// Bit 0: there is an immediate; bit 1: a PUT, whose data are not in the receive's buffer.
    pub flags: U32,
    /// As of RdmaDone.
    pub status: U32,
    /// 0, 0, 0; then: event written.
    pub stages: [U32; 4],
}

impl RdmaReceived {
    /// Kind of the event.
    pub(super) const KIND: EventKind = EventKind(6);
}

const _: () = {
    assert!(size_of::<RdmaReceived>() == 40);
    assert!(core::mem::offset_of!(RdmaReceived, cookie) == 0);
    assert!(core::mem::offset_of!(RdmaReceived, immediate) == 8);
    assert!(core::mem::offset_of!(RdmaReceived, missed) == 12);
    assert!(core::mem::offset_of!(RdmaReceived, flags) == 16);
    assert!(core::mem::offset_of!(RdmaReceived, status) == 20);
    assert!(core::mem::offset_of!(RdmaReceived, stages) == 24);
};

/// A queue pair has failed (pmd/rdma): its requests and receives are flushed, and it takes no
/// more. Index: the queue pair; length: 0; stream: 0.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RdmaFailed {
    /// As of RdmaDone: what failed first.
    pub status: U32,
    /// Sequence number of the packet.
    pub psn: U32,
    /// 0.
    pub reserved: [U32; 4],
    /// 0, 0, 0; then: event written.
    pub stages: [U32; 4],
}

impl RdmaFailed {
    /// Kind of the event.
    pub(super) const KIND: EventKind = EventKind(7);
}

const _: () = {
    assert!(size_of::<RdmaFailed>() == 40);
    assert!(core::mem::offset_of!(RdmaFailed, status) == 0);
    assert!(core::mem::offset_of!(RdmaFailed, psn) == 4);
    assert!(core::mem::offset_of!(RdmaFailed, reserved) == 8);
    assert!(core::mem::offset_of!(RdmaFailed, stages) == 24);
};
