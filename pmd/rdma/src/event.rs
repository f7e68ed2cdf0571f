//! What an event record of a queue pair says (`hw/docs/layouts.md`, kinds 5 to 7).

use std::fmt;

use pollux_pmd::event::EventRecord;
use zerocopy::{FromBytes, IntoBytes};

use crate::address::{Psn, QpNumber};
use crate::layouts::{RdmaDone, RdmaFailed, RdmaReceived};

/// How a request or a receive ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum Status {
    /// All of its data are where they should be.
    Ok = 0,
    /// It was not executed, since the queue pair had failed or was destroyed.
    Flushed = 1,
    /// The peer did not answer, however often it was asked.
    RetryExceeded = 2,
    /// The peer had no receive for it, however often it was asked.
    RnrRetryExceeded = 3,
    /// The peer refused it: a wrong key, or no right to the range.
    RemoteAccess = 4,
    /// The peer refused it: a request that it does not execute, or a message longer than its receive.
    RemoteInvalidRequest = 5,
    /// The peer failed while it executed it.
    RemoteOperation = 6,
    /// Its own memory is not registered, or ends before the range.
    LocalAccess = 7,
    /// The message is longer than the receive.
    LocalLength = 8,
    /// The peer is gone.
    PeerGone = 9,
}

impl Status {
    /// All.
    pub const ALL: [Self; 10] = [
        Self::Ok,
        Self::Flushed,
        Self::RetryExceeded,
        Self::RnrRetryExceeded,
        Self::RemoteAccess,
        Self::RemoteInvalidRequest,
        Self::RemoteOperation,
        Self::LocalAccess,
        Self::LocalLength,
        Self::PeerGone,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Flushed => "flushed",
            Self::RetryExceeded => "retry-exceeded",
            Self::RnrRetryExceeded => "rnr-retry-exceeded",
            Self::RemoteAccess => "remote-access",
            Self::RemoteInvalidRequest => "remote-invalid-request",
            Self::RemoteOperation => "remote-operation",
            Self::LocalAccess => "local-access",
            Self::LocalLength => "local-length",
            Self::PeerGone => "peer-gone",
        }
    }

    fn from_code(code: u32) -> Option<Self> {
        Self::ALL.get(code as usize).copied()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Operation {
    /// PUT, RDMA WRITE.
    Put = 0,
    /// GET, RDMA READ.
    Get = 1,
    /// NAP, SEND.
    Send = 2,
}

impl Operation {
    const ALL: [Self; 3] = [Self::Put, Self::Get, Self::Send];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Send => "send",
        }
    }
}

/// A request is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The queue pair.
    pub qp: QpNumber,
    /// The request's cookie.
    pub cookie: u64,
    /// Its kind.
    pub operation: Operation,
    /// Its bytes.
    pub bytes: u32,
    /// How it ended.
    pub status: Status,
}

/// A receive is used up: by a message, by a PUT with immediate, or since it was flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The queue pair.
    pub qp: QpNumber,
    /// The receive's cookie.
    pub cookie: u64,
    /// Bytes of the message.
    pub bytes: u32,
    /// Its immediate.
    pub immediate: Option<u32>,
    /// A PUT, whose data are where it put them, and not in the receive's buffer.
    pub is_put: bool,
    /// Packets that sequence numbers say were missed since the last event of the queue pair. Of
    /// unreliable connections only: the messages that lack them were discarded.
    pub missed: u32,
    /// How it ended.
    pub status: Status,
}

/// A queue pair has failed. Its requests and receives are flushed, and it takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The queue pair.
    pub qp: QpNumber,
    /// What failed first.
    pub status: Status,
    /// Sequence number of the packet with which it failed.
    pub psn: Psn,
}

/// An event of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request is done.
    Done(Done),
    /// A receive is used up.
    Received(Received),
    /// The queue pair has failed.
    Failed(Failed),
}

const IMMEDIATE: u32 = 1;
const PUT: u32 = 2;

impl Event {
    /// Its record; `sequence` numbers the records of its kind.
    #[must_use]
    pub fn to_record(self, sequence: u32) -> EventRecord {
        let mut record = EventRecord {
            sequence,
            ..EventRecord::default()
        };
        match self {
            Self::Done(done) => {
                record.kind = RdmaDone::KIND;
                (record.index, record.length) = (done.qp.get(), done.bytes);
                let fields = RdmaDone {
                    cookie: done.cookie.into(),
                    operation: (done.operation as u32).into(),
                    status: (done.status as u32).into(),
                    ..RdmaDone::default()
                };
                record.payload.copy_from_slice(fields.as_bytes());
            }
            Self::Received(received) => {
                record.kind = RdmaReceived::KIND;
                (record.index, record.length) = (received.qp.get(), received.bytes);
                let immediate = received.immediate.map_or(0, |_| IMMEDIATE);
                let put = if received.is_put { PUT } else { 0 };
                let fields = RdmaReceived {
                    cookie: received.cookie.into(),
                    immediate: received.immediate.unwrap_or(0).into(),
                    missed: received.missed.into(),
                    flags: (immediate | put).into(),
                    status: (received.status as u32).into(),
                    ..RdmaReceived::default()
                };
                record.payload.copy_from_slice(fields.as_bytes());
            }
            Self::Failed(failed) => {
                record.kind = RdmaFailed::KIND;
                record.index = failed.qp.get();
                let fields = RdmaFailed {
                    status: (failed.status as u32).into(),
                    psn: failed.psn.get().into(),
                    ..RdmaFailed::default()
                };
                record.payload.copy_from_slice(fields.as_bytes());
            }
        }
        record
    }

    /// The event of a record; `None` if the record is of another kind, or has a field that no such
    /// event has.
    #[must_use]
    pub fn from_record(record: &EventRecord) -> Option<Self> {
        let qp = QpNumber::new(record.index)?;
        match record.kind {
            RdmaDone::KIND => {
                let fields = RdmaDone::ref_from_bytes(&record.payload).ok()?;
                let operation = Operation::ALL.get(fields.operation.get() as usize)?;
                Some(Self::Done(Done {
                    qp,
                    cookie: fields.cookie.get(),
                    operation: *operation,
                    bytes: record.length,
                    status: Status::from_code(fields.status.get())?,
                }))
            }
            RdmaReceived::KIND => {
                let fields = RdmaReceived::ref_from_bytes(&record.payload).ok()?;
                let flags = fields.flags.get();
                let immediate = fields.immediate.get();
                Some(Self::Received(Received {
                    qp,
                    cookie: fields.cookie.get(),
                    bytes: record.length,
                    immediate: (flags & IMMEDIATE != 0).then_some(immediate),
                    is_put: flags & PUT != 0,
                    missed: fields.missed.get(),
                    status: Status::from_code(fields.status.get())?,
                }))
            }
            RdmaFailed::KIND => {
                let fields = RdmaFailed::ref_from_bytes(&record.payload).ok()?;
                Some(Self::Failed(Failed {
                    qp,
                    status: Status::from_code(fields.status.get())?,
                    psn: Psn::new(fields.psn.get()),
                }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_those_of_their_records() {
        let qp = QpNumber::new(0x12_3456).unwrap();
        let mut all = Vec::new();
        for status in Status::ALL {
            for operation in Operation::ALL {
                let (cookie, bytes) = (u64::MAX - 1, 1 << 31);
                all.push(Event::Done(Done {
                    qp,
                    cookie,
                    operation,
                    bytes,
                    status,
                }));
            }
            for (immediate, is_put) in [(None, false), (Some(0), true), (Some(u32::MAX), false)] {
                all.push(Event::Received(Received {
                    qp,
                    cookie: 7,
                    bytes: 5,
                    immediate,
                    is_put,
                    missed: 9,
                    status,
                }));
            }
            let psn = Psn::new(0xff_ffff);
            all.push(Event::Failed(Failed { qp, status, psn }));
        }
        for event in all {
            let record = event.to_record(3);
            let record = EventRecord::from_bytes(&record.to_bytes());
            assert_eq!(Event::from_record(&record), Some(event));
            // A device may write anything.
            for n in 0..40 {
                let mut wrong = record;
                wrong.payload[n] ^= 0xff;
                let _ = Event::from_record(&wrong);
            }
            let index = 1 << 24;
            assert_eq!(Event::from_record(&EventRecord { index, ..record }), None);
        }
        assert_eq!(Event::from_record(&EventRecord::default()), None);
    }
}
