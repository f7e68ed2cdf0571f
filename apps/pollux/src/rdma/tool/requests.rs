//! What the programs do once they are connected.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use pollux_pmd::mempool::region::MemoryRegion;
use pollux_rdma::{
    Access, Buffer, Endpoint, Event, Get, Memory, Message, Operation, Payload, Put, QueuePair,
    Receive, RemoteBuffer, Status, Wait,
};

/// Bytes of a message that are kept.
const HEAD: usize = 16;
/// Most receives, and the most bytes of all of them.
const RECEIVES: usize = 64;
const RECEIVE_BYTES: usize = 64 << 20;

/// What one end of a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Messages to and fro; one end is the first.
    Echo { is_first: bool },
    /// Requests, so many at a time.
    Requests { operation: Operation, depth: u64 },
    /// Takes messages.
    Receive,
    /// PUTs to and fro, which the peer finds by looking at the last byte.
    Putting { is_first: bool },
    /// The peer does it all.
    Nothing,
}

/// Memory of a queue pair: what peers access, what requests send and fetch, and the receives.
pub(super) struct Area {
    pub(super) buffer: Buffer,
    bytes: u32,
    /// Distance of two of its parts.
    stride: u64,
    receives: u64,
}

impl Area {
    pub(super) fn new(endpoint: &mut Endpoint, bytes: u32, cycle: u32) -> Result<Self> {
        let stride = bytes.max(cycle) as usize;
        let receives = (RECEIVE_BYTES / stride).clamp(2, RECEIVES);
        let region = MemoryRegion::builder((2 + receives) * stride).build();
        let memory = Memory::new(region.context("no memory for messages")?);
        let len = memory.len();
        Ok(Self {
            buffer: endpoint.register_buffer(&memory, 0..len, Access::ALL)?,
            bytes,
            stride: stride as u64,
            receives: receives as u64,
        })
    }

    /// Bytes of a message.
    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Offsets of the two parts for requests and peers.
    pub(super) fn parts(&self) -> [usize; 2] {
        [0, self.stride as usize]
    }

    /// Posts all receives.
    pub(super) fn post_receives(&self, qp: &mut QueuePair) -> Result<()> {
        for cookie in 0..self.receives {
            self.post_receive(qp, cookie)?;
        }
        qp.doorbell();
        Ok(())
    }

    fn post_receive(&self, qp: &mut QueuePair, cookie: u64) -> Result<()> {
        let to = self.buffer.part(self.receive_at(cookie), self.bytes);
        qp.post_receive(Receive { cookie, to })?;
        Ok(())
    }

    fn receive_at(&self, cookie: u64) -> u64 {
        (2 + cookie) * self.stride
    }

    /// Posts a request; false if the queue is full.
    fn post(&self, qp: &mut QueuePair, operation: Operation, remote: RemoteBuffer) -> bool {
        let own = self.buffer.part(self.stride, self.bytes);
        let payload = Payload::Indirect(own);
        match operation {
            Operation::Put => {
                let put = Put {
                    cookie: 0,
                    payload,
                    to: remote,
                    immediate: None,
                };
                qp.put(put).is_ok()
            }
            Operation::Get => {
                let get = Get {
                    cookie: 0,
                    from: remote,
                    to: own,
                };
                qp.get(get).is_ok()
            }
            Operation::Send => {
                let message = Message {
                    cookie: 0,
                    payload,
                    immediate: None,
                };
                qp.send(message).is_ok()
            }
        }
    }
}

/// One end of a program.
pub(super) struct Work<'a> {
    pub(super) qp: &'a mut QueuePair,
    pub(super) area: &'a Area,
    pub(super) remote: RemoteBuffer,
    pub(super) count: u64,
    deadline: Instant,
    /// Requests posted and done, messages received.
    posted: u64,
    done: u64,
    received: u64,
    /// Messages that were waited for.
    taken: u64,
    /// Beginning of the last message.
    message: [u8; HEAD],
}

impl<'a> Work<'a> {
    pub(super) fn new(
        qp: &'a mut QueuePair,
        area: &'a Area,
        remote: RemoteBuffer,
        count: u64,
        patience: Duration,
    ) -> Self {
        Self {
            qp,
            area,
            remote,
            count,
            deadline: Instant::now() + patience,
            posted: 0,
            done: 0,
            received: 0,
            taken: 0,
            message: [0; HEAD],
        }
    }

    pub(super) fn run(&mut self, job: Job) -> Result<()> {
        match job {
            Job::Nothing => Ok(()),
            Job::Receive => {
                while self.received < self.count {
                    self.event()?;
                }
                Ok(())
            }
            Job::Requests { operation, depth } => self.requests(operation, depth),
            Job::Echo { is_first } => self.echo(is_first),
            Job::Putting { is_first } => self.putting(is_first),
        }
    }

    fn requests(&mut self, operation: Operation, depth: u64) -> Result<()> {
        while self.done < self.count {
            while self.posted < self.count && self.posted - self.done < depth {
                self.post(operation)?;
            }
            self.qp.doorbell();
            self.event()?;
        }
        Ok(())
    }

    fn echo(&mut self, is_first: bool) -> Result<()> {
        let ahead = u64::from(is_first);
        while self.done < self.count || self.received < self.count {
            while self.posted < self.count.min(self.received + ahead) {
                self.post(Operation::Send)?;
            }
            self.qp.doorbell();
            self.event()?;
        }
        Ok(())
    }

    /// The last byte is the number of the PUT.
    fn putting(&mut self, is_first: bool) -> Result<()> {
        let last = self.area.bytes as usize - 1;
        for number in 1..=self.count {
            if !is_first || number > 1 {
                self.await_byte(last, self.received as u8 + 1)?;
                self.received += 1;
            }
            let own = self.area.stride as usize + last;
            self.area.buffer.write(own, &[number as u8])?;
            self.request(Operation::Put)?;
        }
        if is_first {
            self.await_byte(last, self.count as u8)?;
        }
        Ok(())
    }

    fn await_byte(&self, at: usize, value: u8) -> Result<()> {
        let mut byte = [!value];
        while byte != [value] {
            self.area.buffer.read(at, &mut byte)?;
            ensure!(
                Instant::now() < self.deadline,
                "the peer's PUT {value} did not come"
            );
            std::thread::yield_now();
        }
        Ok(())
    }

    fn post(&mut self, operation: Operation) -> Result<()> {
        let is_posted = self.area.post(self.qp, operation, self.remote);
        ensure!(is_posted, "a request was not taken");
        self.posted += 1;
        Ok(())
    }

    /// Makes a request, and waits until it is done.
    pub(super) fn request(&mut self, operation: Operation) -> Result<()> {
        self.post(operation)?;
        self.await_done()
    }

    /// Sends a message from the descriptor, and waits until it is done.
    pub(super) fn tell(&mut self, message: &[u8]) -> Result<()> {
        let sent = self.qp.send(Message {
            cookie: 0,
            payload: Payload::Immediate(message),
            immediate: None,
        });
        ensure!(sent.is_ok(), "a message was not taken");
        self.posted += 1;
        self.await_done()
    }

    fn await_done(&mut self) -> Result<()> {
        self.qp.doorbell();
        while self.done < self.posted {
            self.event()?;
        }
        Ok(())
    }

    /// Waits for the next message, of which there is one at a time; its beginning.
    pub(super) fn await_message(&mut self) -> Result<[u8; HEAD]> {
        self.taken += 1;
        while self.received < self.taken {
            self.event()?;
        }
        Ok(self.message)
    }

    /// Waits for an event, and takes it.
    fn event(&mut self) -> Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let Some(event) = self.qp.wait_event(Wait::Sleep(left)) else {
            let (done, received) = (self.done, self.received);
            bail!("the peer is silent: {done} requests were done and {received} messages received");
        };
        match event {
            Event::Done(done) if done.status == Status::Ok => self.done += 1,
            Event::Received(received) if received.status == Status::Ok => {
                self.received += 1;
                let (at, bytes) = (self.area.receive_at(received.cookie), received.bytes);
                let head = (bytes as usize).min(HEAD);
                self.area
                    .buffer
                    .read(at as usize, &mut self.message[..head])?;
                self.area.post_receive(self.qp, received.cookie)?;
                self.qp.doorbell();
            }
            Event::Done(done) => bail!("a request failed: {}", done.status),
            Event::Received(received) => bail!("a receive failed: {}", received.status),
            Event::Failed(failed) => bail!("the queue pair failed: {}", failed.status),
        }
        Ok(())
    }
}
