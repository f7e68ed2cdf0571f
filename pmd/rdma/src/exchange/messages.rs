//! A stream of messages over a queue pair.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use pollux_pmd::mempool::region::{MemoryRegion, PageSize};

use super::patience::after;
use super::{ExchangeError, Stream};
use crate::Buffer;
use crate::access::Access;
use crate::endpoint::Endpoint;
use crate::event::{Event, Received, Status};
use crate::memory::Memory;
use crate::queue_pair::{QueuePair, Wait};
use crate::request::{Message, Payload, Receive};

/// Longest message.
const MESSAGE: u32 = 256;
/// Receives that are posted.
const RECEIVES: u64 = 8;

/// A reliable queue pair as a [`Stream`]: each write is a message, and reads take the bytes of the peer's
/// messages. The exchange of perftest with option -R goes over one
/// ([`Over::QueuePair`](super::perftest::Over)).
///
/// It waits for events of the queue pair: another thread polls the endpoint's loop meanwhile.
#[derive(Debug)]
pub struct Messages {
    qp: QueuePair,
    buffer: Buffer,
    patience: Cell<Duration>,
    /// Requests that are not done.
    sending: usize,
    /// Messages that have come, and are not read: the receive of each, and its bytes from and to.
    received: VecDeque<(u64, u32, u32)>,
}

impl Messages {
    /// A stream over a queue pair that is not connected yet: receives are posted here. The queue pair has
    /// to be made for 8 receives at least.
    ///
    /// # Errors
    /// Memory for messages cannot be had or registered, or the queue pair takes no receives.
    pub fn new(endpoint: &mut Endpoint, qp: QueuePair) -> Result<Self, ExchangeError> {
        let at = |source| ExchangeError::Io {
            step: "making a stream of messages",
            source,
        };
        let bytes = RECEIVES as usize * MESSAGE as usize;
        let region = MemoryRegion::builder(bytes).pages(PageSize::Kib4).build();
        let memory = Memory::new(region.map_err(|error| at(io::Error::other(error)))?);
        let buffer = endpoint
            .register_buffer(&memory, 0..bytes, Access::LOCAL)
            .map_err(|error| at(io::Error::other(error)))?;
        let mut this = Self {
            qp,
            buffer,
            patience: Cell::new(Duration::ZERO),
            sending: 0,
            received: VecDeque::new(),
        };
        for receive in 0..RECEIVES {
            this.post_receive(receive).map_err(at)?;
        }
        Ok(this)
    }

    /// The queue pair.
    #[must_use]
    pub fn queue_pair(&self) -> &QueuePair {
        &self.qp
    }

    fn post_receive(&mut self, receive: u64) -> io::Result<()> {
        let posted = self.qp.post_receive(Receive {
            cookie: receive,
            to: self.buffer.part(receive * u64::from(MESSAGE), MESSAGE),
        });
        posted.map_err(|refused| io::Error::other(refused.refusal))?;
        self.qp.doorbell();
        Ok(())
    }

    /// Takes an event, of those that it waits for.
    fn wait(&mut self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.qp.wait_event(Wait::Sleep(left)) {
            Some(Event::Done(done)) if done.status == Status::Ok => {
                self.sending = self.sending.saturating_sub(1);
            }
            Some(Event::Received(Received {
                cookie,
                bytes,
                status: Status::Ok,
                ..
            })) if cookie < RECEIVES => self.received.push_back((cookie, 0, bytes.min(MESSAGE))),
            Some(event) => {
                let what = format!("the queue pair has failed: {event:?}");
                return Err(io::Error::new(ErrorKind::ConnectionReset, what));
            }
            None => return Err(ErrorKind::TimedOut.into()),
        }
        Ok(())
    }

    fn deadline(&self) -> Instant {
        after(self.patience.get())
    }
}

impl Read for Messages {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let deadline = self.deadline();
        while !into.is_empty() {
            let Some((receive, from, to)) = self.received.pop_front() else {
                self.wait(deadline)?;
                continue;
            };
            let len = into.len().min((to - from) as usize);
            let at = receive as usize * MESSAGE as usize + from as usize;
            self.buffer
                .read(at, &mut into[..len])
                .map_err(io::Error::other)?;
            let from = from + len as u32;
            if from < to {
                self.received.push_front((receive, from, to));
            } else {
                self.post_receive(receive)?;
            }
            // An empty message is none.
            if len > 0 {
                return Ok(len);
            }
        }
        Ok(0)
    }
}

impl Write for Messages {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let deadline = self.deadline();
        while self.sending >= QueuePair::REQUESTS {
            self.wait(deadline)?;
        }
        let bytes = bytes.get(..MESSAGE as usize).unwrap_or(bytes);
        let message = Message {
            cookie: RECEIVES,
            payload: Payload::Immediate(bytes),
            immediate: None,
        };
        let sent = self.qp.send(message);
        sent.map_err(|refused| io::Error::other(refused.refusal))?;
        self.qp.doorbell();
        self.sending += 1;
        Ok(bytes.len())
    }

    /// Waits until the peer has taken all messages.
    fn flush(&mut self) -> io::Result<()> {
        let deadline = self.deadline();
        while self.sending > 0 {
            self.wait(deadline)?;
        }
        Ok(())
    }
}

impl Stream for Messages {
    fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.patience.set(patience);
        Ok(())
    }
}
