//! Requests of a queue pair: executed here, by copies into and out of the peer's memory.
//!
//! A PUT and a GET are one copy between the two processes' memory. Messages, and immediates of PUTs, go
//! through the peer's inbox, and are done when the peer has taken them. Requests are executed in order: a
//! PUT or a GET waits until the messages before it are taken, since one of them may fail.

use crate::access::Access;
use crate::address::QpKind;
use crate::event::{Operation, Status};
use crate::registrations::Reader;
use crate::work_queue::{Descriptor, Place, Poster, Worker, work_queue};
use crate::{Done, QpNumber, QueuePair};

use super::inbox::{CHUNK, Entry, Inbox, MESSAGE, MORE, PUT, Progress, SLOTS};
use super::violation::Violation;

/// Most receives of a queue pair (`QpOptions`).
const MAX_RECEIVES: u32 = 1 << 12;

/// Lookup of registered ranges by one queue pair.
pub(super) struct Tables {
    /// Ranges of this endpoint.
    pub(super) own: Reader,
    /// Ranges of the peer that are mapped here.
    pub(super) remote: Reader,
}

/// What execution needs beside the requests.
pub(super) struct Environment<'a> {
    pub(super) tables: &'a mut Tables,
    /// The peer's inbox.
    pub(super) inbox: &'a Inbox,
    /// Progress of this queue pair's own inbox.
    pub(super) progress: Progress,
}

/// What became of a request.
enum Step {
    /// All of it is done here.
    Executed,
    /// A part of it.
    Moved,
    /// It has to wait for the peer.
    Waits,
}

/// Why a request cannot be executed.
enum Failure {
    /// By its own fault.
    Request(Status),
    /// The peer does not keep to the protocol.
    Peer(Violation),
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Self {
        Self::Peer(violation)
    }
}

/// Requests of a queue pair.
pub(super) struct Requester {
    kind: QpKind,
    pub(super) poster: Poster,
    worker: Worker,
    /// Requests that are done, and those after them that are executed.
    done: u32,
    executed: u32,
    /// Entries after which each request is done, by its number.
    ends: [u32; QueuePair::REQUESTS],
    /// Bytes of the next request that are copied.
    moved: u32,
    /// Entries written into the peer's inbox, and those that it has taken; counts wrap.
    sent: u32,
    taken: u32,
    /// Entries until the last message is taken, which a PUT or a GET waits for.
    awaited: Option<u32>,
    /// Receives that the peer has posted, those used up, and messages so far.
    posted: u32,
    used: u32,
    number: u32,
    /// How the request after those that are executed failed.
    pub(super) failed: Option<Status>,
    /// The last execution ended for want of time.
    pub(super) has_more: bool,
}

impl Requester {
    pub(super) fn new(kind: QpKind) -> Self {
        let (poster, worker) = work_queue(QueuePair::REQUESTS);
        Self {
            kind,
            poster,
            worker,
            done: 0,
            executed: 0,
            ends: [0; QueuePair::REQUESTS],
            moved: 0,
            sent: 0,
            taken: 0,
            awaited: None,
            posted: 0,
            used: 0,
            number: 0,
            failed: None,
            has_more: false,
        }
    }

    /// Whether anything was posted that is not done.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        self.worker.len() > 0
    }

    /// Whether any of it is not executed.
    #[inline]
    pub(super) fn has_requests(&self) -> bool {
        self.executed != self.worker.len()
    }

    /// What the peer says that it has done.
    #[inline]
    pub(super) fn learn(&mut self, progress: Progress) -> Result<(), Violation> {
        // What an entry says may be older than what was read before.
        let taken = progress.consumed().wrapping_sub(self.taken);
        if (taken as i32) > 0 {
            if taken > self.sent.wrapping_sub(self.taken) {
                return Err(Violation::Acknowledgement);
            }
            self.taken = progress.consumed();
            let is_reached = |end: u32| self.taken.wrapping_sub(end) as i32 >= 0;
            self.awaited = self.awaited.filter(|&end| !is_reached(end));
        }
        if progress.posted().wrapping_sub(self.posted) as i32 > 0 {
            if progress.posted().wrapping_sub(self.used) > MAX_RECEIVES {
                return Err(Violation::Receives);
            }
            self.posted = progress.posted();
        }
        Ok(())
    }

    /// Whether the peer's progress is what this knows.
    pub(super) fn knows(&self, progress: Progress) -> bool {
        progress.consumed() == self.taken && progress.posted() == self.posted
    }

    /// Executes requests, up to so many bytes. Returns whether the peer's inbox has new entries.
    #[inline]
    pub(super) fn execute(
        &mut self,
        environment: &mut Environment<'_>,
        mut budget: usize,
    ) -> Result<bool, Violation> {
        let sent = self.sent;
        self.has_more = false;
        while self.failed.is_none() {
            if self.executed == self.worker.len() {
                break;
            }
            if budget == 0 {
                self.has_more = true;
                break;
            }
            match self.step(environment, &mut budget) {
                Ok(Step::Executed) => {
                    let number = self.done.wrapping_add(self.executed);
                    self.ends[number as usize % QueuePair::REQUESTS] = self.sent;
                    self.executed += 1;
                    self.moved = 0;
                }
                Ok(Step::Moved) => {}
                Ok(Step::Waits) => break,
                Err(Failure::Request(status)) => self.failed = Some(status),
                Err(Failure::Peer(violation)) => return Err(violation),
            }
        }
        Ok(self.sent != sent)
    }

    /// Whether the oldest request is done.
    #[inline]
    fn is_oldest_done(&self) -> bool {
        let end = self.ends[self.done as usize % QueuePair::REQUESTS];
        let is_reached = self.taken.wrapping_sub(end) as i32 >= 0;
        self.executed > 0 && (is_reached || self.kind == QpKind::Unreliable)
    }

    /// Whether the oldest request is done, or one has failed.
    #[inline]
    pub(super) fn has_event(&self) -> bool {
        self.is_oldest_done() || self.failed.is_some()
    }

    /// The oldest request, if it is done.
    #[inline]
    pub(super) fn complete(&mut self, qp: QpNumber) -> Option<Done> {
        self.is_oldest_done().then(|| self.finish(qp, Status::Ok))?
    }

    /// Ends the oldest request.
    pub(super) fn finish(&mut self, qp: QpNumber, status: Status) -> Option<Done> {
        let (descriptor, _) = self.worker.get(0)?;
        let done = Done {
            qp,
            cookie: descriptor.cookie,
            operation: descriptor.operation,
            bytes: descriptor.bytes,
            status,
        };
        self.worker.finish();
        self.done = self.done.wrapping_add(1);
        self.executed = self.executed.saturating_sub(1);
        Some(done)
    }

    /// Whether the oldest request is a message that the peer has, or has a part of.
    pub(super) fn is_with_peer(&self) -> bool {
        self.executed > 0 || self.moved > 0
    }

    /// Whether a request that fails is the oldest.
    pub(super) fn is_failing(&self) -> Option<Status> {
        self.failed.filter(|_| self.executed == 0)
    }

    /// Executes the next request, or a part of it.
    #[inline]
    fn step(
        &mut self,
        environment: &mut Environment<'_>,
        budget: &mut usize,
    ) -> Result<Step, Failure> {
        let Some((&descriptor, _)) = self.worker.get(self.executed) else {
            return Ok(Step::Waits);
        };
        if descriptor.operation == Operation::Send {
            return self.send(&descriptor, environment, budget);
        }
        if self.kind == QpKind::Reliable && self.awaited.is_some() {
            self.learn(environment.inbox.progress())?;
            if self.awaited.is_some() {
                return Ok(Step::Waits);
            }
        }
        if self.moved < descriptor.bytes {
            let len = self.transfer(&descriptor, environment.tables, *budget);
            let len = len.map_err(Failure::Request)?;
            self.moved += len as u32;
            *budget -= len;
            if self.moved < descriptor.bytes {
                return Ok(Step::Moved);
            }
        }
        match descriptor.immediate {
            Some(immediate) => self.announce(&descriptor, immediate, environment),
            None => Ok(Step::Executed),
        }
    }

    /// Copies up to `budget` bytes of a PUT or a GET; returns how many.
    fn transfer(
        &self,
        descriptor: &Descriptor,
        tables: &mut Tables,
        budget: usize,
    ) -> Result<usize, Status> {
        let (bytes, moved) = (u64::from(descriptor.bytes), self.moved as usize);
        let len = (descriptor.bytes as usize - moved).min(budget);
        let needed = match descriptor.operation {
            Operation::Get => Access::READ,
            Operation::Put | Operation::Send => Access::WRITE,
        };
        let (own, remote) = (tables.own.enter(), tables.remote.enter());
        // All of both ranges is checked for every part: either may have been taken away meanwhile.
        let find_own = |key, offset| own.local(key, offset, bytes);
        let find_remote = || remote.remote(descriptor.remote, bytes, needed);
        match descriptor.place {
            Place::Slot => {
                let (_, data) = self.worker.get(self.executed).ok_or(Status::LocalAccess)?;
                let to = find_remote().map_err(|_| Status::RemoteAccess)?;
                to.part(moved, len).write(&data[moved..moved + len]);
            }
            Place::Buffer(key, offset) => {
                let own = find_own(key, offset).map_err(|_| Status::LocalAccess)?;
                let remote = find_remote().map_err(|_| Status::RemoteAccess)?;
                let (own, remote) = (own.part(moved, len), remote.part(moved, len));
                if needed.remote_write {
                    own.copy_to(&remote);
                } else {
                    remote.copy_to(&own);
                }
            }
        }
        Ok(len)
    }

    /// Tells the peer of a PUT whose data are there.
    fn announce(
        &mut self,
        descriptor: &Descriptor,
        immediate: u32,
        environment: &Environment<'_>,
    ) -> Result<Step, Failure> {
        if !self.has_receive(environment.inbox)? {
            return Ok(self.without_receive());
        }
        if !self.has_slot(environment.inbox)? {
            return Ok(Step::Waits);
        }
        let entry = Entry {
            kind: PUT,
            flags: 1,
            len: 0,
            total: descriptor.bytes,
            immediate,
            progress: environment.progress,
            number: self.number,
        };
        self.publish(environment.inbox, &entry);
        self.end_message();
        Ok(Step::Executed)
    }

    /// Writes a part of a message into the peer's inbox, if there is room.
    fn send(
        &mut self,
        descriptor: &Descriptor,
        environment: &mut Environment<'_>,
        budget: &mut usize,
    ) -> Result<Step, Failure> {
        let inbox = environment.inbox;
        if self.moved == 0 && !self.has_receive(inbox)? {
            return Ok(self.without_receive());
        }
        if !self.has_slot(inbox)? {
            return Ok(Step::Waits);
        }
        let moved = self.moved as usize;
        let len = (descriptor.bytes as usize - moved).min(CHUNK);
        let to = inbox.data(self.sent).part(0, len);
        let refused = Failure::Request(Status::LocalAccess);
        match descriptor.place {
            _ if len == 0 => {}
            Place::Slot => {
                let Some((_, data)) = self.worker.get(self.executed) else {
                    return Err(refused);
                };
                to.write(&data[moved..moved + len]);
            }
            Place::Buffer(key, offset) => {
                let session = environment.tables.own.enter();
                let Ok(own) = session.local(key, offset, descriptor.bytes.into()) else {
                    return Err(refused);
                };
                own.part(moved, len).copy_to(&to);
            }
        }
        let entry = Entry {
            kind: if moved == 0 { MESSAGE } else { MORE },
            flags: u8::from(descriptor.immediate.is_some()),
            len: len as u16,
            total: descriptor.bytes,
            immediate: descriptor.immediate.unwrap_or(0),
            progress: environment.progress,
            number: self.number,
        };
        self.publish(inbox, &entry);
        *budget = budget.saturating_sub(len);
        self.moved += len as u32;
        if self.moved < descriptor.bytes {
            return Ok(Step::Moved);
        }
        self.end_message();
        self.awaited = Some(self.sent);
        Ok(Step::Executed)
    }

    fn publish(&mut self, inbox: &Inbox, entry: &Entry) {
        inbox.publish(self.sent, entry);
        self.sent = self.sent.wrapping_add(1);
    }

    fn end_message(&mut self) {
        self.used = self.used.wrapping_add(1);
        self.number = self.number.wrapping_add(1);
    }

    /// Whether the peer has a receive for the next message.
    #[inline]
    fn has_receive(&mut self, inbox: &Inbox) -> Result<bool, Violation> {
        if self.posted == self.used {
            self.learn(inbox.progress())?;
        }
        Ok(self.posted != self.used)
    }

    /// A message for which the peer has no receive: of a reliable connection it waits, and of an unreliable
    /// one it is discarded. The peer misses its number.
    fn without_receive(&mut self) -> Step {
        if self.kind == QpKind::Reliable {
            return Step::Waits;
        }
        self.number = self.number.wrapping_add(1);
        Step::Executed
    }

    /// Whether the peer's inbox has room for an entry.
    #[inline]
    fn has_slot(&mut self, inbox: &Inbox) -> Result<bool, Violation> {
        if self.sent.wrapping_sub(self.taken) >= SLOTS {
            self.learn(inbox.progress())?;
        }
        Ok(self.sent.wrapping_sub(self.taken) < SLOTS)
    }
}
