//! Two linked endpoints, and two connected queue pairs of them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use pollux_mempool::region::{MemoryRegion, PageSize};
use pollux_rdma::{
    Access, Buffer, Done, Endpoint, Event, Failed, Get, Local, Memory, Message, Operation,
    PathOptions, Payload, Put, QpKind, QpOptions, QueuePair, Receive, Received, RemoteBuffer,
    Status,
};

/// Longer than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// A back end: two endpoints that are linked.
pub(crate) trait Fixture: Sized + Send {
    fn new() -> Self;

    /// The endpoints.
    fn ends(&mut self) -> [&mut Endpoint; 2];

    /// Drives what has no thread of its own.
    fn poll(&mut self);

    /// Its name in messages.
    fn name() -> &'static str;
}

/// A queue pair, and its events that were not looked at.
pub(crate) struct Side {
    pub(crate) qp: QueuePair,
    pub(crate) events: VecDeque<Event>,
}

impl Side {
    pub(crate) fn new(qp: QueuePair) -> Self {
        let events = VecDeque::new();
        Self { qp, events }
    }

    /// Takes the events that are there.
    pub(crate) fn take(&mut self) {
        self.events
            .extend(std::iter::from_fn(|| self.qp.poll_event()));
    }

    pub(crate) fn receive(&mut self, cookie: u64, to: Local) {
        self.qp.post_receive(Receive { cookie, to }).unwrap();
        self.qp.doorbell();
    }

    pub(crate) fn put(&mut self, cookie: u64, from: Local, to: RemoteBuffer) {
        let payload = Payload::Indirect(from);
        let immediate = None;
        let put = Put {
            cookie,
            payload,
            to,
            immediate,
        };
        self.qp.put(put).unwrap();
        self.qp.doorbell();
    }

    pub(crate) fn get(&mut self, cookie: u64, from: RemoteBuffer, to: Local) {
        self.qp.get(Get { cookie, from, to }).unwrap();
        self.qp.doorbell();
    }

    pub(crate) fn send(&mut self, cookie: u64, payload: Payload<'_>) {
        let immediate = None;
        let message = Message {
            cookie,
            payload,
            immediate,
        };
        self.qp.send(message).unwrap();
        self.qp.doorbell();
    }
}

/// Two connected queue pairs.
pub(crate) struct Rig<F> {
    pub(crate) fixture: F,
    pub(crate) sides: [Side; 2],
}

/// The sides of a rig.
pub(crate) const A: usize = 0;
pub(crate) const B: usize = 1;

impl<F: Fixture> Rig<F> {
    pub(crate) fn new() -> Self {
        Self::with(&QpOptions::default())
    }

    pub(crate) fn unreliable() -> Self {
        let kind = QpKind::Unreliable;
        let options = QpOptions::default();
        Self::with(&QpOptions { kind, ..options })
    }

    pub(crate) fn with(options: &QpOptions) -> Self {
        let mut fixture = F::new();
        let sides = pair(&mut fixture, options);
        Self { fixture, sides }
    }

    /// One turn of everything; events are kept.
    pub(crate) fn turn(&mut self) {
        self.fixture.poll();
        for side in &mut self.sides {
            side.take();
        }
    }

    /// The next event of a side, for which everything is driven.
    pub(crate) fn event(&mut self, side: usize) -> Event {
        let start = Instant::now();
        loop {
            if let Some(event) = self.sides[side].events.pop_front() {
                return event;
            }
            assert!(start.elapsed() < LONG, "{}: no event", F::name());
            self.turn();
        }
    }

    pub(crate) fn done(&mut self, side: usize) -> Done {
        match self.event(side) {
            Event::Done(done) => done,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn received(&mut self, side: usize) -> Received {
        match self.event(side) {
            Event::Received(received) => received,
            other => panic!("{other:?}"),
        }
    }

    /// The next event is that of a request that is done.
    pub(crate) fn expect_done(
        &mut self,
        side: usize,
        cookie: u64,
        operation: Operation,
        bytes: u32,
    ) {
        let qp = self.sides[side].qp.number();
        let status = Status::Ok;
        let expected = Done {
            qp,
            cookie,
            operation,
            bytes,
            status,
        };
        assert_eq!(self.done(side), expected);
    }

    /// The events of a failure: of the request if `request`, of the queue pair, and of all that was posted.
    pub(crate) fn expect_failure(
        &mut self,
        side: usize,
        request: Option<(u64, Status)>,
        flushed: &[u64],
    ) {
        let mut failed = None;
        if let Some((cookie, status)) = request {
            let done = self.done(side);
            assert_eq!((done.cookie, done.status), (cookie, status));
            failed = Some(status);
        }
        let status = self.failed(side).status;
        assert_eq!(status, failed.unwrap_or(status));
        for &cookie in flushed {
            let (of, status) = match self.event(side) {
                Event::Done(done) => (done.cookie, done.status),
                Event::Received(received) => (received.cookie, received.status),
                Event::Failed(failed) => panic!("{failed:?}"),
            };
            assert_eq!((of, status), (cookie, Status::Flushed));
        }
    }

    pub(crate) fn failed(&mut self, side: usize) -> Failed {
        match self.event(side) {
            Event::Failed(failed) => failed,
            other => panic!("{other:?}"),
        }
    }

    /// Drives everything until something is so.
    pub(crate) fn until(&mut self, is_so: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < LONG, "{}: it is never so", F::name());
            self.turn();
        }
    }

    /// Nothing more comes within some turns.
    pub(crate) fn expect_nothing(&mut self, side: usize) {
        for _ in 0..100 {
            self.turn();
        }
        assert_eq!(self.sides[side].events, []);
    }

    /// Registered memory of a side.
    pub(crate) fn buffer(&mut self, side: usize, bytes: usize, access: Access) -> Buffer {
        let memory = memory(bytes);
        let ends = self.fixture.ends();
        ends[side]
            .register_buffer(&memory, 0..bytes, access)
            .unwrap()
    }
}

/// Two connected queue pairs of a fixture.
pub(crate) fn pair<F: Fixture>(fixture: &mut F, options: &QpOptions) -> [Side; 2] {
    let mut ends = fixture.ends();
    let mut create = |n: usize| ends[n].create_queue_pair(options).unwrap();
    let (a, b) = (create(A), create(B));
    let path = PathOptions::default();
    ends[A].connect(&a, &b.address(), &path).unwrap();
    ends[B].connect(&b, &a.address(), &path).unwrap();
    [Side::new(a), Side::new(b)]
}

pub(crate) fn memory(bytes: usize) -> Memory {
    let pages = PageSize::Kib4;
    Memory::new(
        MemoryRegion::builder(bytes.max(1))
            .pages(pages)
            .build()
            .unwrap(),
    )
}

/// Bytes that are different for each seed and position.
pub(crate) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(next).collect()
}

pub(crate) fn contents(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len()];
    buffer.read(0, &mut bytes).unwrap();
    bytes
}
