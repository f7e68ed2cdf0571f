//! What the programs do once they are connected.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use pollux_pmd::lcore::StopFlag;
use pollux_rdma::{
    Event, Get, Message, Operation, Payload, Put, QueuePair, Received, RemoteBuffer, Status,
};

use super::area::Area;
use super::host::Poller;
use super::stop::expect_no_stop;

/// Bytes of a message that are kept.
const HEAD: usize = 16;
/// How long a PUT may take whose last byte is there.
const SETTLE: Duration = Duration::from_secs(1);
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
}

/// How long one end takes at most, and a flag that ends it early.
pub(super) struct Limits<'a> {
    pub(super) stop: &'a StopFlag,
    pub(super) patience: Duration,
}

/// One end of a program.
pub(super) struct Work<'a> {
    poller: &'a mut Poller,
    qp: &'a mut QueuePair,
    pub(super) area: &'a Area,
    pub(super) remote: RemoteBuffer,
    pub(super) count: u64,
    stop: &'a StopFlag,
    deadline: Instant,
    /// Requests posted and done, messages received.
    posted: u64,
    done: u64,
    received: u64,
    /// Messages that were waited for.
    taken: u64,
    /// Messages whose bytes were compared.
    checked: u64,
    /// Beginning of the last message.
    message: [u8; HEAD],
}

impl<'a> Work<'a> {
    pub(super) fn new(
        poller: &'a mut Poller,
        qp: &'a mut QueuePair,
        area: &'a Area,
        remote: RemoteBuffer,
        count: u64,
        limits: &Limits<'a>,
    ) -> Self {
        Self {
            poller,
            qp,
            area,
            remote,
            count,
            stop: limits.stop,
            deadline: Instant::now() + limits.patience,
            posted: 0,
            done: 0,
            received: 0,
            taken: 0,
            checked: 0,
            message: [0; HEAD],
        }
    }

    /// Messages that it has sent, fetched or received so far.
    pub(super) fn messages(&self) -> u64 {
        self.done.max(self.received)
    }

    /// Messages whose bytes were compared so far.
    pub(super) fn checked(&self) -> u64 {
        self.checked
    }

    /// Counts a message whose bytes were compared.
    pub(super) fn count_check(&mut self) {
        self.checked += 1;
    }

    pub(super) fn run(&mut self, job: Job) -> Result<()> {
        match job {
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
        let is_get = operation == Operation::Get;
        // What is fetched has a place of its own until it is checked.
        let depth = if is_get {
            depth.min(self.area.slots())
        } else {
            depth
        };
        while self.done < self.count {
            while self.posted < self.count && self.posted - self.done < depth {
                let own = match operation {
                    Operation::Get => self.area.slot(self.posted),
                    Operation::Put if self.posted + 1 == self.count => self.area.last(),
                    _ => self.area.own(),
                };
                self.post(operation, own)?;
            }
            self.qp.doorbell();
            let before = self.done;
            self.event()?;
            if is_get && self.done > before {
                self.check(self.area.slot(before), before)?;
            }
        }
        Ok(())
    }

    fn echo(&mut self, is_first: bool) -> Result<()> {
        let ahead = u64::from(is_first);
        while self.done < self.count || self.received < self.count {
            while self.posted < self.count.min(self.received + ahead) {
                self.post(Operation::Send, self.area.own())?;
            }
            self.qp.doorbell();
            self.event()?;
        }
        Ok(())
    }

    /// The last byte is the number of the PUT.
    fn putting(&mut self, is_first: bool) -> Result<()> {
        let last = self.area.bytes() as usize - 1;
        for number in 1..=self.count {
            if !is_first || number > 1 {
                self.await_put(last)?;
            }
            let own = self.area.own() as usize + last;
            self.area.buffer.write(own, &[number as u8])?;
            self.request(Operation::Put)?;
        }
        if is_first {
            self.await_put(last)?;
        }
        Ok(())
    }

    /// Waits for the peer's next PUT, whose last byte is `last`, and checks the others.
    fn await_put(&mut self, last: usize) -> Result<()> {
        let number = self.received + 1;
        let mut byte = [!(number as u8)];
        while byte != [number as u8] {
            self.area.buffer.read(last, &mut byte)?;
            self.poller.poll();
            self.expect_time(|| format!("the peer's PUT {number} did not come"))?;
        }
        self.received = number;
        if !self.area.contents().is_known() {
            return Ok(());
        }
        // The bytes of a packet have no order: the last one may be there first.
        let settled = Instant::now() + SETTLE;
        while let Err(wrong) = self.area.check_put(last) {
            ensure!(Instant::now() < settled, "PUT {number}: {wrong}");
            self.poller.poll();
        }
        self.count_check();
        Ok(())
    }

    /// Checks a message in a slot, which is then free for the next.
    fn check(&mut self, at: u64, number: u64) -> Result<()> {
        let checked = self.area.check_slot(at);
        checked.with_context(|| format!("message {number}"))?;
        if self.area.contents().is_known() {
            self.count_check();
        }
        Ok(())
    }

    fn post(&mut self, operation: Operation, own: u64) -> Result<()> {
        let own = self.area.buffer.part(own, self.area.bytes());
        let (payload, remote) = (Payload::Indirect(own), self.remote);
        let (cookie, immediate) = (0, None);
        let is_posted = match operation {
            Operation::Put => {
                let put = Put {
                    cookie,
                    payload,
                    to: remote,
                    immediate,
                };
                self.qp.put(put).is_ok()
            }
            Operation::Get => {
                let get = Get {
                    cookie,
                    from: remote,
                    to: own,
                };
                self.qp.get(get).is_ok()
            }
            Operation::Send => {
                let message = Message {
                    cookie,
                    payload,
                    immediate,
                };
                self.qp.send(message).is_ok()
            }
        };
        ensure!(is_posted, "a request was not taken");
        self.posted += 1;
        Ok(())
    }

    /// Makes a request with this end's own part, and waits until it is done.
    pub(super) fn request(&mut self, operation: Operation) -> Result<()> {
        self.post(operation, self.area.own())?;
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
        match self.next_event()? {
            Event::Done(done) if done.status == Status::Ok => self.done += 1,
            Event::Received(received) if received.status == Status::Ok => self.take(&received)?,
            Event::Done(done) => bail!("a request failed: {}", done.status),
            Event::Received(received) => bail!("a receive failed: {}", received.status),
            Event::Failed(failed) => bail!("the queue pair failed: {}", failed.status),
        }
        Ok(())
    }

    /// Polls until there is an event.
    fn next_event(&mut self) -> Result<Event> {
        loop {
            if let Some(event) = self.qp.poll_event() {
                return Ok(event);
            }
            self.poller.poll();
            self.expect_time(|| {
                let (done, received) = (self.done, self.received);
                format!(
                    "the peer is silent: {done} requests were done and {received} messages received"
                )
            })?;
        }
    }

    /// Takes a message, and posts its receive again.
    fn take(&mut self, received: &Received) -> Result<()> {
        let (at, number) = (self.area.slot(received.cookie), self.received);
        let head = (received.bytes as usize).min(HEAD);
        let message = &mut self.message[..head];
        self.area.buffer.read(at as usize, message)?;
        if self.area.contents().is_known() {
            let (bytes, wanted) = (received.bytes, self.area.bytes());
            ensure!(
                bytes == wanted,
                "message {number} has {bytes} B instead of {wanted}: give both ends the same size"
            );
            self.check(at, number)?;
        }
        self.received += 1;
        self.area.post_receive(self.qp, received.cookie)?;
        self.qp.doorbell();
        Ok(())
    }

    /// Refuses to wait any longer after a stop, and behind the deadline.
    fn expect_time(&self, what: impl FnOnce() -> String) -> Result<()> {
        expect_no_stop(self.stop)?;
        ensure!(Instant::now() < self.deadline, what());
        Ok(())
    }
}
