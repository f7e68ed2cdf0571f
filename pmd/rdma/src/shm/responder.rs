//! Messages of the peer: taken out of the inbox, into the receives.

use std::collections::VecDeque;

use pollux_pmd::{Cause, Tally};

use super::inbox::{CHUNK, Entry, Inbox, MESSAGE, MORE, PUT, Progress, SLOTS, Turn};
use super::violation::Violation;
use crate::QpNumber;
use crate::access::Key;
use crate::address::QpKind;
use crate::event::{Received, Status};
use crate::registrations::Reader;
use crate::work_queue::{Descriptor, Place};

/// Entries that are taken before the peer is told.
const UNTOLD: u32 = SLOTS / 4;

/// A receive.
#[derive(Clone, Copy)]
struct Posted {
    cookie: u64,
    key: Key,
    offset: u64,
    len: u32,
}

/// A message of which a part was taken.
struct Message {
    total: u32,
    taken: u32,
    immediate: Option<u32>,
    is_put: bool,
    missed: u32,
}

/// What was in the inbox.
pub(super) enum Outcome {
    /// Nothing, or not all of a message.
    Nothing,
    /// A message.
    Received(Received),
    /// A message that could not be taken; the queue pair fails.
    Failed(Received),
    /// An entry that no queue pair writes; the queue pair fails.
    Violation(Violation),
}

/// Receives of a queue pair.
pub(super) struct Responder {
    kind: QpKind,
    receives: VecDeque<Posted>,
    /// As many as may be posted.
    capacity: usize,
    /// Of the posted ones, those that the doorbell has shown.
    shown: usize,
    /// What the peer may know, and what it was told last.
    progress: Progress,
    told: Progress,
    message: Option<Message>,
    /// Number of the next message.
    number: u32,
    tally: Tally,
    access: Cause,
}

impl Responder {
    pub(super) fn new(kind: QpKind, capacity: usize, tally: Tally, access: Cause) -> Self {
        Self {
            kind,
            receives: VecDeque::with_capacity(capacity),
            capacity,
            shown: 0,
            progress: Progress::default(),
            told: Progress::default(),
            message: None,
            number: 0,
            tally,
            access,
        }
    }

    /// Takes a receive, unless all are posted.
    pub(super) fn post(&mut self, descriptor: &Descriptor) -> bool {
        let Place::Buffer(key, offset) = descriptor.place else {
            return false;
        };
        let has_room = self.receives.len() < self.capacity;
        if has_room {
            self.receives.push_back(Posted {
                cookie: descriptor.cookie,
                key,
                offset,
                len: descriptor.bytes,
            });
        }
        has_room
    }

    /// Shows the posted receives to the peer. Returns whether there are new ones.
    pub(super) fn show(&mut self) -> bool {
        let new = self.receives.len() - self.shown;
        self.shown = self.receives.len();
        let posted = self.progress.posted().wrapping_add(new as u32);
        self.progress.set_posted(posted);
        new > 0
    }

    /// Progress for the peer.
    #[inline]
    pub(super) fn progress(&self) -> Progress {
        self.progress
    }

    /// The peer will read the progress in an entry.
    #[inline]
    pub(super) fn set_told(&mut self) {
        self.told = self.progress;
    }

    /// Whether there is progress that the peer was not told.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.told != self.progress
    }

    /// Tells the peer how far this is. Returns whether that is news.
    #[inline]
    pub(super) fn tell(&mut self, inbox: &Inbox) -> bool {
        let is_news = self.has_news();
        if is_news {
            inbox.set_progress(self.progress);
            self.told = self.progress;
        }
        is_news
    }

    /// Whether the inbox has an entry.
    #[inline]
    pub(super) fn has_entry(&self, inbox: &Inbox) -> bool {
        inbox.take(self.progress.consumed()) != Turn::Empty
    }

    /// Takes entries until a message is whole, at most all that fit into the inbox. `learn` is given the
    /// peer's progress.
    #[inline]
    pub(super) fn receive(
        &mut self,
        qp: QpNumber,
        inbox: &Inbox,
        reader: &mut Reader,
        mut learn: impl FnMut(Progress) -> Result<(), Violation>,
    ) -> Outcome {
        for _ in 0..SLOTS {
            let entry = match inbox.take(self.progress.consumed()) {
                Turn::Empty => break,
                Turn::Wrong => return self.violated(Violation::Turn),
                Turn::Entry(entry) => entry,
            };
            if let Err(violation) = learn(entry.progress) {
                return self.violated(violation);
            }
            let outcome = match self.accept(qp, &entry, inbox, reader) {
                Ok(outcome) => outcome,
                Err(violation) => return self.violated(violation),
            };
            let consumed = self.progress.consumed().wrapping_add(1);
            self.progress.set_consumed(consumed);
            if !matches!(outcome, Outcome::Nothing) {
                return outcome;
            }
            let untold = self.progress.consumed().wrapping_sub(self.told.consumed());
            if untold >= UNTOLD {
                self.tell(inbox);
            }
        }
        Outcome::Nothing
    }

    /// Takes an entry.
    #[inline]
    fn accept(
        &mut self,
        qp: QpNumber,
        entry: &Entry,
        inbox: &Inbox,
        reader: &mut Reader,
    ) -> Result<Outcome, Violation> {
        let Some(&receive) = self.receives.front().filter(|_| self.shown > 0) else {
            return Err(Violation::NoReceive);
        };
        self.begin(entry)?;
        let Some(message) = &mut self.message else {
            return Err(Violation::Entry);
        };
        let left = message.total - message.taken;
        let len = if message.is_put {
            0
        } else {
            left.min(CHUNK as u32)
        };
        if u32::from(entry.len) != len {
            return Err(Violation::Entry);
        }
        let mut status = Status::Ok;
        if !message.is_put && message.total > receive.len {
            status = Status::LocalLength;
        } else if len > 0 {
            let session = reader.enter();
            match session.local(receive.key, receive.offset, receive.len.into()) {
                Ok(to) => {
                    let (at, len) = (message.taken as usize, len as usize);
                    let from = inbox.data(self.progress.consumed()).part(0, len);
                    from.copy_to(&to.part(at, len));
                    message.taken += len as u32;
                }
                Err(_) => status = Status::LocalAccess,
            }
        }
        let is_whole = message.is_put || message.taken == message.total;
        if status == Status::Ok && !is_whole {
            return Ok(Outcome::Nothing);
        }
        let received = Received {
            qp,
            cookie: receive.cookie,
            bytes: message.total,
            immediate: message.immediate,
            is_put: message.is_put,
            missed: message.missed,
            status,
        };
        self.message = None;
        self.receives.pop_front();
        self.shown -= 1;
        match status {
            Status::Ok => self.tally.count_delivered(1),
            Status::LocalLength => self.tally.count_dropped(Cause::Oversize, 1),
            _ => self.tally.count_dropped(self.access, 1),
        }
        Ok(if status == Status::Ok {
            Outcome::Received(received)
        } else {
            Outcome::Failed(received)
        })
    }

    /// Begins a message with its first entry, or checks that an entry continues one.
    #[inline]
    fn begin(&mut self, entry: &Entry) -> Result<(), Violation> {
        match (entry.kind, &self.message) {
            (MORE, Some(_)) => return Ok(()),
            (MESSAGE | PUT, None) if entry.flags <= 1 && entry.total <= 1 << 31 => {}
            _ => return Err(Violation::Entry),
        }
        let missed = entry.number.wrapping_sub(self.number);
        if self.kind == QpKind::Reliable && missed != 0 {
            return Err(Violation::Entry);
        }
        self.tally.count_from_wire(1, entry.total.into());
        self.message = Some(Message {
            total: entry.total,
            taken: 0,
            immediate: (entry.flags == 1).then_some(entry.immediate),
            is_put: entry.kind == PUT,
            missed,
        });
        self.number = entry.number.wrapping_add(1);
        Ok(())
    }

    /// An entry that is none of a queue pair's, or begins a message that never ends.
    fn violated(&mut self, violation: Violation) -> Outcome {
        self.abandon(Cause::Malformed);
        Outcome::Violation(violation)
    }

    /// Gives up a message of which a part was taken.
    pub(super) fn abandon(&mut self, cause: Cause) {
        if self.message.take().is_some() {
            self.tally.count_dropped(cause, 1);
        }
    }

    /// The next receive, unused.
    pub(super) fn flush(&mut self, qp: QpNumber) -> Option<Received> {
        if self.shown == 0 {
            return None;
        }
        self.shown -= 1;
        let receive = self.receives.pop_front()?;
        Some(Received {
            qp,
            cookie: receive.cookie,
            bytes: 0,
            immediate: None,
            is_put: false,
            missed: 0,
            status: Status::Flushed,
        })
    }

    /// The tally, for the next queue pair.
    pub(super) fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }
}
