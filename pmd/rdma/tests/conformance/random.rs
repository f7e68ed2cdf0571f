//! Requests of all kinds and sizes in any order, both ways at once, beside a model of the memory.

use std::collections::VecDeque;

use pollux_rdma::{
    Access, Buffer, Done, Event, Get, Message, Operation, Payload, Put, QueuePair, Receive,
    Received, Status,
};

use crate::rig::{A, B, Fixture, Rig, contents, pattern};

const REQUESTS: u64 = 400;
const RECEIVES: u64 = 8;
/// Bytes of the memory that requests write and read.
const ROOM: usize = 1 << 16;

/// Random numbers: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % end
    }

    /// A range of the room; short ones and those near a limit more often than they would be.
    fn range(&mut self) -> (usize, usize) {
        let len = match self.below(5) {
            0 => self.below(10),
            1 => 4090 + self.below(12),
            2 => 1020 + self.below(8),
            3 => self.below(QueuePair::IMMEDIATE + 1),
            _ => self.below(ROOM),
        };
        (self.below(ROOM - len + 1), len)
    }
}

/// What one side asks for. What a GET reads and writes no other request writes or reads: the model reads
/// memory when a request is posted.
struct Asker {
    random: Random,
    /// What PUTs and messages read, and where GETs write.
    source: Buffer,
    target: Buffer,
    /// Where PUTs write, and what GETs read, of the peer.
    put: Buffer,
    get: Buffer,
    /// What should be where GETs and PUTs write.
    got: Vec<u8>,
    put_there: Vec<u8>,
    posted: u64,
    done: u64,
    /// Requests of which the event is to come, and messages: their data and immediates.
    requests: VecDeque<(Operation, usize)>,
    messages: VecDeque<(Option<Vec<u8>>, Option<u32>)>,
}

impl Asker {
    fn new<F: Fixture>(rig: &mut Rig<F>, side: usize, seed: u64) -> Self {
        let mut buffer = |side: usize, access| rig.buffer(side, ROOM, access);
        let asker = Self {
            random: Random((seed << 32) | (side as u64 + 1)),
            source: buffer(side, Access::LOCAL),
            target: buffer(side, Access::LOCAL),
            put: buffer(1 - side, Access::WRITE),
            get: buffer(1 - side, Access::READ),
            got: vec![0; ROOM],
            put_there: vec![0; ROOM],
            posted: 0,
            done: 0,
            requests: VecDeque::new(),
            messages: VecDeque::new(),
        };
        asker.source.write(0, &pattern(seed, ROOM)).unwrap();
        asker.get.write(0, &pattern(seed + 1, ROOM)).unwrap();
        asker
    }

    /// Posts a random request, unless the queue is full.
    fn post(&mut self, qp: &mut QueuePair) {
        let (random, cookie) = (&mut self.random, self.posted);
        let ((from, len), is_short) = (random.range(), random.below(2) == 0);
        let to = random.below(ROOM - len + 1);
        let immediate = (random.below(3) == 0).then_some(cookie as u32);
        let operation = [Operation::Put, Operation::Get, Operation::Send][random.below(3)];
        let mut data = vec![0; len];
        let of = if operation == Operation::Get {
            &self.get
        } else {
            &self.source
        };
        of.read(from, &mut data).unwrap();
        let payload = if is_short && len <= QueuePair::IMMEDIATE {
            Payload::Immediate(&data)
        } else {
            Payload::Indirect(self.source.part(from as u64, len as u32))
        };
        let is_posted = match operation {
            Operation::Put => {
                let to = self.put.remote().at(to as u64);
                let put = Put {
                    cookie,
                    payload,
                    to,
                    immediate,
                };
                qp.put(put).is_ok()
            }
            Operation::Get => {
                let from = self.get.remote().at(from as u64);
                let to = self.target.part(to as u64, len as u32);
                qp.get(Get { cookie, from, to }).is_ok()
            }
            Operation::Send => {
                let message = Message {
                    cookie,
                    payload,
                    immediate,
                };
                qp.send(message).is_ok()
            }
        };
        if !is_posted {
            return;
        }
        self.posted += 1;
        self.requests.push_back((operation, len));
        match operation {
            Operation::Put => {
                self.put_there[to..to + len].copy_from_slice(&data);
                let message = immediate.map(|_| (None, immediate));
                self.messages.extend(message);
            }
            Operation::Get => self.got[to..to + len].copy_from_slice(&data),
            Operation::Send => self.messages.push_back((Some(data), immediate)),
        }
    }

    /// A request is done: the oldest.
    fn finish(&mut self, done: &Done) {
        let (operation, len) = self.requests.pop_front().unwrap();
        let expected = (self.done, operation, Status::Ok);
        assert_eq!((done.cookie, done.operation, done.status), expected);
        assert_eq!(done.bytes as usize, len);
        self.done += 1;
    }

    /// A message of this one has come: the oldest.
    fn arrive(&mut self, received: &Received, into: &Buffer) {
        let (data, immediate) = self.messages.pop_front().unwrap();
        assert_eq!(
            (received.status, received.immediate),
            (Status::Ok, immediate)
        );
        assert_eq!(received.is_put, data.is_none());
        let Some(data) = data else { return };
        assert_eq!(received.bytes as usize, data.len());
        let mut now = vec![0; data.len()];
        into.read(received.cookie as usize * ROOM, &mut now)
            .unwrap();
        assert!(now == data, "a message of {} B", data.len());
    }

    fn is_done(&self) -> bool {
        self.done == REQUESTS && self.messages.is_empty()
    }
}

pub(crate) fn requests_of_all_kinds_both_ways<F: Fixture>() {
    for seed in 1..4 {
        let mut rig = Rig::<F>::new();
        let mut askers = [A, B].map(|side| Asker::new(&mut rig, side, seed));
        let slots = RECEIVES as usize * ROOM;
        let into = [A, B].map(|side| rig.buffer(side, slots, Access::LOCAL));
        let slot = |side: usize, cookie: u64| into[side].part(cookie * ROOM as u64, ROOM as u32);
        for side in [A, B] {
            for cookie in 0..RECEIVES {
                rig.sides[side].receive(cookie, slot(side, cookie));
            }
        }
        let mut turns = 0;
        while !askers.iter().all(Asker::is_done) {
            turns += 1;
            assert!(turns < 10_000_000, "{}: it stops", F::name());
            for side in [A, B] {
                let asker = &mut askers[side];
                let burst = asker.random.below(6) as u64;
                for _ in 0..burst.min(REQUESTS - asker.posted) {
                    asker.post(&mut rig.sides[side].qp);
                }
                // Also shows the receives that were posted again.
                rig.sides[side].qp.doorbell();
            }
            rig.turn();
            for side in [A, B] {
                while let Some(event) = rig.sides[side].events.pop_front() {
                    match event {
                        Event::Done(done) => askers[side].finish(&done),
                        Event::Received(received) => {
                            askers[1 - side].arrive(&received, &into[side]);
                            let (cookie, to) = (received.cookie, slot(side, received.cookie));
                            let again = Receive { cookie, to };
                            rig.sides[side].qp.post_receive(again).unwrap();
                        }
                        Event::Failed(failed) => panic!("{failed:?}"),
                    }
                }
            }
        }
        for asker in &askers {
            assert!(contents(&asker.put) == asker.put_there, "seed {seed}");
            assert!(contents(&asker.target) == asker.got, "seed {seed}");
        }
    }
}
