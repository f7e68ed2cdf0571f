//! A queue pair as the program has it: posts requests and receives, and gets events.

use std::fmt;
use std::time::{Duration, Instant};

use crate::access::{Key, RemoteBuffer};
use crate::address::{QpAddress, QpKind, QpNumber};
use crate::event::{Event, Operation};
use crate::request::{Get, Message, Payload, Put, Receive};
use crate::work_queue::{Descriptor, IMMEDIATE, Place};

/// Most bytes of a message (InfiniBand, 9.7.7).
const MAX_MESSAGE: u32 = 1 << 31;

/// What a back end has of a queue pair.
pub(crate) trait QueuePairDriver: Send {
    /// Takes a request, unless the queue is full.
    fn post(&mut self, descriptor: Descriptor, data: &[u8]) -> bool;

    /// Takes a receive, unless the queue is full.
    fn post_receive(&mut self, descriptor: Descriptor) -> bool;

    /// Has all that was posted executed.
    fn doorbell(&mut self);

    /// The next event.
    fn poll_event(&mut self) -> Option<Event>;

    /// Returns when there may be an event, at the latest after `timeout`; enters the kernel.
    fn sleep(&mut self, timeout: Option<Duration>);
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The queue is full: post again after an event.
    #[error("the queue is full: post again after an event")]
    Full,
    /// The data are longer than a descriptor, or than a message can be.
    #[error("{0} B: a descriptor has up to {IMMEDIATE} B of data, a message up to {MAX_MESSAGE} B")]
    TooLong(u64),
    /// An unreliable connection has no GET.
    #[error("an unreliable connection has no GET: make the queue pair reliable")]
    Unsupported,
}

/// Error: a request was not taken; it is handed back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{refusal}")]
pub struct Refused<T> {
    /// The request.
    pub request: T,
    /// Why.
    pub refusal: Refusal,
}

/// How long [`QueuePair::wait_event`] waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It polls, for so long at most; without entering the kernel.
    Poll(Duration),
    /// It sleeps until there is an event, for so long at most.
    Sleep(Duration),
}

/// One end of a connection. Requests are executed in order, each end on its own: a GET has nothing of a
/// later PUT, a PUT sends what an earlier GET has brought, and a message behind a GET comes after the peer's
/// memory has been read. Over a network each change from GETs to other requests costs a round trip.
///
/// Nothing that is posted is executed before the [`doorbell`](Self::doorbell): several requests need one.
pub struct QueuePair {
    driver: Box<dyn QueuePairDriver>,
    kind: QpKind,
    address: QpAddress,
}

impl QueuePair {
    /// Requests that are posted and not done (cHPP: 32 for each function).
    pub const REQUESTS: usize = 32;
    /// Most bytes of data in a descriptor.
    pub const IMMEDIATE: usize = IMMEDIATE;

    pub(crate) fn new(driver: Box<dyn QueuePairDriver>, kind: QpKind, address: QpAddress) -> Self {
        Self {
            driver,
            kind,
            address,
        }
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> QpNumber {
        self.address.number
    }

    /// Its service.
    #[must_use]
    pub fn kind(&self) -> QpKind {
        self.kind
    }

    /// What the peer has to know of it to connect.
    #[must_use]
    pub fn address(&self) -> QpAddress {
        self.address
    }

    /// Writes a range of the peer's memory.
    ///
    /// # Errors
    /// The queue is full, or the data are too long; the request is handed back.
    #[inline]
    pub fn put<'a>(&mut self, request: Put<'a>) -> Result<(), Refused<Put<'a>>> {
        let Put {
            cookie,
            payload,
            to,
            immediate,
        } = request;
        self.post(cookie, Operation::Put, payload, to, immediate)
            .map_err(|refusal| Refused { request, refusal })
    }

    /// Sends a message to the buffer of the peer's next receive.
    ///
    /// # Errors
    /// As of [`put`](Self::put).
    #[inline]
    pub fn send<'a>(&mut self, request: Message<'a>) -> Result<(), Refused<Message<'a>>> {
        let Message {
            cookie,
            payload,
            immediate,
        } = request;
        self.post(cookie, Operation::Send, payload, NOWHERE, immediate)
            .map_err(|refusal| Refused { request, refusal })
    }

    /// Reads a range of the peer's memory.
    ///
    /// # Errors
    /// The queue is full, the data are too long, or the connection is unreliable; the request is handed
    /// back.
    #[inline]
    pub fn get(&mut self, request: Get) -> Result<(), Refused<Get>> {
        let payload = Payload::Indirect(request.to);
        let posted = match self.kind {
            QpKind::Reliable => {
                self.post(request.cookie, Operation::Get, payload, request.from, None)
            }
            QpKind::Unreliable => Err(Refusal::Unsupported),
        };
        posted.map_err(|refusal| Refused { request, refusal })
    }

    #[inline]
    fn post(
        &mut self,
        cookie: u64,
        operation: Operation,
        payload: Payload<'_>,
        remote: RemoteBuffer,
        immediate: Option<u32>,
    ) -> Result<(), Refusal> {
        let (place, bytes, data) = match payload {
            Payload::Immediate(data) if data.len() > IMMEDIATE => {
                return Err(Refusal::TooLong(data.len() as u64));
            }
            Payload::Immediate(data) => (Place::Slot, data.len() as u32, data),
            Payload::Indirect(local) => {
                (Place::Buffer(local.key, local.offset), local.len, &[][..])
            }
        };
        if bytes > MAX_MESSAGE {
            return Err(Refusal::TooLong(u64::from(bytes)));
        }
        let descriptor = Descriptor {
            cookie,
            operation,
            bytes,
            immediate,
            place,
            remote,
        };
        let is_posted = self.driver.post(descriptor, data);
        is_posted.then_some(()).ok_or(Refusal::Full)
    }

    /// Gives a buffer for the next message. Messages take receives in order.
    ///
    /// # Errors
    /// As many receives as the queue pair was made for are posted; it is handed back.
    #[inline]
    pub fn post_receive(&mut self, receive: Receive) -> Result<(), Refused<Receive>> {
        let descriptor = Descriptor {
            cookie: receive.cookie,
            operation: Operation::Send,
            // No message is longer, and what has arrived of one is counted in 32 bits.
            bytes: receive.to.len.min(MAX_MESSAGE),
            immediate: None,
            place: Place::Buffer(receive.to.key, receive.to.offset),
            remote: NOWHERE,
        };
        let is_posted = self.driver.post_receive(descriptor);
        is_posted.then_some(()).ok_or(Refused {
            request: receive,
            refusal: Refusal::Full,
        })
    }

    /// Has all requests and receives executed that have been posted since the last doorbell.
    #[inline]
    pub fn doorbell(&mut self) {
        self.driver.doorbell();
    }

    /// The next event, if there is one. A queue pair whose events are not taken stops: it has no room for
    /// more.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.driver.poll_event()
    }

    /// The next event, for which it waits. Another thread has to poll the back end meanwhile, if that
    /// needs to be polled.
    ///
    /// What wakes a program that sleeps is the back end's own: an eventfd of the loop, or a futex in memory
    /// that the peer has too. The end of a peer that is known to have ended wakes it as well. There is no
    /// descriptor for another event loop: a program with several queue pairs polls them, or has a thread
    /// for each that sleeps.
    pub fn wait_event(&mut self, wait: Wait) -> Option<Event> {
        let (Wait::Poll(timeout) | Wait::Sleep(timeout)) = wait;
        let start = Instant::now();
        loop {
            if let Some(event) = self.poll_event() {
                return Some(event);
            }
            let left = timeout.checked_sub(start.elapsed())?;
            match wait {
                Wait::Poll(_) => std::hint::spin_loop(),
                Wait::Sleep(_) => self.driver.sleep(Some(left)),
            }
        }
    }
}

/// The peer's memory of a request that has none.
const NOWHERE: RemoteBuffer = RemoteBuffer {
    address: 0,
    key: Key(0),
};

impl fmt::Debug for QueuePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuePair")
            .field("kind", &self.kind)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
