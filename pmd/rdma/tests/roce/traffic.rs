//! Random requests of two ends of a connection, and checks of every byte.

use std::collections::VecDeque;

use pollux_rdma::{
    Access, Buffer, Done, Event, Get, Memory, Message, Mtu, Operation, PathOptions, Payload, Put,
    QpKind, QueuePair, Receive, Received, Status,
};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::hub::Hub;
use crate::rig::{address, memory};

/// Most bytes of a message.
const LARGEST: usize = 1 << 16;
/// Places of messages in flight.
const SLOTS: usize = QueuePair::REQUESTS;

/// Bytes of a message.
fn contents(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// A memory of a place for each request, and its buffer.
struct Places(Memory, Buffer);

impl Places {
    fn at(cookie: u64) -> usize {
        cookie as usize % SLOTS * LARGEST
    }

    fn read(&self, cookie: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.read(Self::at(cookie), &mut bytes).unwrap();
        bytes
    }
}

/// A request in flight.
struct Posted {
    cookie: u64,
    operation: Operation,
    /// The peer gets an event.
    is_message: bool,
    len: usize,
}

/// One end.
struct End {
    qp: QueuePair,
    /// Where data are sent from, where the peer puts, receives, where the peer gets from, and where to.
    source: Places,
    target: Places,
    receives: Places,
    library: Places,
    fetched: Places,
    rng: Xoshiro256PlusPlus,
    in_flight: VecDeque<Posted>,
    posted: u64,
    /// Messages that the peer has to receive: cookie, bytes, whether it is a PUT.
    sent: VecDeque<(u64, usize, bool)>,
    received: u64,
    missed: u64,
}

impl End {
    fn new(hub: &mut Hub, n: usize, kind: QpKind, numbers: [(u32, u32); 2], seed: u64) -> Self {
        let host = &mut hub.hosts[n];
        let mut places = || {
            let memory = memory(LARGEST * SLOTS);
            let buffer = host.register(&memory, Access::ALL);
            Places(memory, buffer)
        };
        let [source, target, receives, library, fetched] = [(); 5].map(|()| places());
        let all = contents(99, library.0.len());
        library.0.write(0, &all).unwrap();
        let qp = host.queue_pair(kind, numbers[n].0, numbers[n].1);
        let peer = address(1 - n, numbers[1 - n].0, numbers[1 - n].1);
        let path = PathOptions {
            mtu: Mtu::B1024,
            timeout: 5,
            rnr_timer: 1,
            ..PathOptions::default()
        };
        host.endpoint.connect(&qp, &peer, &path).unwrap();
        let mut end = Self {
            qp,
            source,
            target,
            receives,
            library,
            fetched,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed * 2 + n as u64),
            in_flight: VecDeque::new(),
            posted: 0,
            sent: VecDeque::new(),
            received: 0,
            missed: 0,
        };
        for cookie in 0..SLOTS as u64 {
            end.post_receive(cookie);
        }
        end
    }

    fn post_receive(&mut self, cookie: u64) {
        let at = Places::at(cookie) as u64;
        let to = self.receives.1.part(at, LARGEST as u32);
        self.qp.post_receive(Receive { cookie, to }).unwrap();
        self.qp.doorbell();
    }

    fn post(&mut self, peer: &End) {
        let cookie = self.posted;
        let at = Places::at(cookie);
        let rng = &mut self.rng;
        let len = match rng.random_range(0..40) {
            0..20 => rng.random_range(0..=64),
            20..39 => rng.random_range(0..=4096),
            _ => rng.random_range(0..=LARGEST),
        };
        let kinds = match self.qp.kind() {
            QpKind::Reliable => 4,
            QpKind::Unreliable => 3,
        };
        let (operation, is_message) = match rng.random_range(0..kinds) {
            0 => (Operation::Put, false),
            1 => (Operation::Put, true),
            2 => (Operation::Send, true),
            _ => (Operation::Get, false),
        };
        let data = contents(cookie, len);
        let payload = if len <= QueuePair::IMMEDIATE && rng.random() {
            Payload::Immediate(&data)
        } else {
            self.source.0.write(at, &data).unwrap();
            Payload::Indirect(self.source.1.part(at as u64, len as u32))
        };
        let immediate = Some(cookie as u32).filter(|_| is_message);
        let is_posted = match operation {
            Operation::Put => {
                let to = peer.target.1.remote().at(at as u64);
                let put = Put {
                    cookie,
                    payload,
                    to,
                    immediate,
                };
                self.qp.put(put).is_ok()
            }
            Operation::Send => {
                let message = Message {
                    cookie,
                    payload,
                    immediate,
                };
                self.qp.send(message).is_ok()
            }
            Operation::Get => {
                let from = peer.library.1.remote().at(at as u64);
                let to = self.fetched.1.part(at as u64, len as u32);
                self.qp.get(Get { cookie, from, to }).is_ok()
            }
        };
        assert!(is_posted);
        self.qp.doorbell();
        self.posted += 1;
        self.in_flight.push_back(Posted {
            cookie,
            operation,
            is_message,
            len,
        });
        if is_message {
            let is_put = operation == Operation::Put;
            self.sent.push_back((cookie, len, is_put));
        }
    }

    /// A request is done: each once, in order, with its bytes in place.
    fn check_done(&mut self, done: &Done, peer: &End) {
        let Posted {
            cookie,
            operation,
            is_message,
            len,
        } = self.in_flight.pop_front().unwrap();
        let expected = (cookie, operation, len as u32, Status::Ok);
        assert_eq!(
            (done.cookie, done.operation, done.bytes, done.status),
            expected
        );
        if self.qp.kind() == QpKind::Unreliable {
            return;
        }
        match operation {
            Operation::Put if !is_message => peer.check_target(cookie, len),
            Operation::Get => {
                let found = self.fetched.read(cookie, len);
                assert!(found == peer.library.read(cookie, len), "GET of {len} B");
            }
            _ => {}
        }
    }

    /// What was put; then cleared, so that it shows if it were put again.
    fn check_target(&self, cookie: u64, len: usize) {
        let found = self.target.read(cookie, LARGEST);
        assert!(found[..len] == contents(cookie, len), "PUT of {len} B");
        assert!(found[len..].iter().all(|&byte| byte == 0), "PUT twice");
        let zeros = vec![0; LARGEST];
        self.target.0.write(Places::at(cookie), &zeros).unwrap();
    }

    /// A message has come: each once, in order, with its bytes in place.
    fn check_received(&mut self, received: &Received, peer: &mut End) {
        assert_eq!(
            (received.cookie, received.status),
            (self.received, Status::Ok)
        );
        self.missed += u64::from(received.missed);
        let number = received.immediate.unwrap();
        let (cookie, len, is_put) = loop {
            let sent = peer.sent.pop_front().unwrap();
            // An unreliable one may have been lost.
            if self.qp.kind() == QpKind::Reliable || sent.0 as u32 == number {
                break sent;
            }
        };
        let expected = (cookie as u32, len as u32, is_put);
        assert_eq!((number, received.bytes, received.is_put), expected);
        if !is_put {
            let found = self.receives.read(self.received, len);
            assert!(found == contents(cookie, len), "SEND of {len} B");
        } else if self.qp.kind() == QpKind::Reliable {
            self.check_target(cookie, len);
        } else {
            // Bytes behind may be those of a message that was discarded.
            let found = self.target.read(cookie, len);
            assert!(found == contents(cookie, len), "PUT of {len} B");
        }
        self.post_receive(self.received + SLOTS as u64);
        self.received += 1;
    }
}

impl End {
    fn run(&mut self, peer: &mut End, limit: u64) {
        // Two of the same place are not in flight at the same time: neither at the peer.
        let oldest = self.sent.front().map_or(self.posted, |sent| sent.0);
        let is_apart =
            self.qp.kind() == QpKind::Unreliable || self.posted < oldest + SLOTS as u64 - 1;
        if self.posted < limit && self.in_flight.len() < SLOTS && is_apart {
            self.post(peer);
        }
        while let Some(event) = self.qp.poll_event() {
            match event {
                Event::Done(done) => self.check_done(&done, peer),
                Event::Received(received) => self.check_received(&received, peer),
                Event::Failed(failed) => panic!("{failed:?}"),
            }
        }
    }
}

/// The two ends of a connection.
pub(crate) struct Traffic {
    ends: [End; 2],
    /// Requests that each end posts.
    pub(crate) limit: u64,
}

impl Traffic {
    /// Connects queue pairs of these numbers and first sequence numbers.
    pub(crate) fn new(hub: &mut Hub, kind: QpKind, numbers: [(u32, u32); 2], seed: u64) -> Self {
        Self {
            ends: [0, 1].map(|n| End::new(hub, n, kind, numbers, seed)),
            limit: 0,
        }
    }

    /// Takes events, and posts requests while there is room.
    pub(crate) fn run(&mut self) {
        let [a, b] = &mut self.ends;
        a.run(b, self.limit);
        b.run(a, self.limit);
    }

    /// Whether all requests are done, and all messages have come.
    pub(crate) fn is_done(&self) -> bool {
        self.ends.iter().all(|end| {
            let all_came = end.sent.is_empty() || end.qp.kind() == QpKind::Unreliable;
            end.posted == self.limit && end.in_flight.is_empty() && all_came
        })
    }

    /// Messages that have come, and missed packets that their events told.
    pub(crate) fn unreliable(&self) -> (u64, u64) {
        let all = self.ends.iter();
        all.fold((0, 0), |sum, end| {
            (sum.0 + end.received, sum.1 + end.missed)
        })
    }
}
