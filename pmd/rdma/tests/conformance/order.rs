//! Order of requests and events, and how many there can be.

use pollux_rdma::{
    Access, Buffer, Event, Get, Message, Operation, Payload, Put, QpOptions, QueuePair, Refusal,
    Status,
};

use crate::rig::{A, B, Fixture, Rig, Side, contents, pattern};

const LIMIT: u64 = QueuePair::REQUESTS as u64;

fn message(cookie: u64, data: &[u8]) -> Message<'_> {
    Message {
        cookie,
        payload: Payload::Immediate(data),
        immediate: Some(cookie as u32),
    }
}

pub(crate) fn requests_are_done_in_order<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let (bytes, parts) = (200_000, 10);
    let own = rig.buffer(A, 2 * bytes, Access::LOCAL);
    let remote = rig.buffer(B, bytes, Access::ALL);
    let into = rig.buffer(B, 64, Access::LOCAL);
    own.write(0, &pattern(1, bytes)).unwrap();
    for n in 0..parts {
        rig.sides[B].receive(n, into.part(0, 64));
    }
    // Large and small ones in turn: a GET reads what the PUT before it has written.
    let len = (bytes as u64 / parts) as u32;
    for n in 0..parts {
        let at = n * u64::from(len);
        let payload = Payload::Indirect(own.part(at, len));
        let (to, immediate) = (remote.remote().at(at), None);
        let put = Put {
            cookie: 3 * n,
            payload,
            to,
            immediate,
        };
        let get = Get {
            cookie: 3 * n + 1,
            from: to,
            to: own.part(bytes as u64 + at, len),
        };
        let qp = &mut rig.sides[A].qp;
        qp.put(put).unwrap();
        qp.get(get).unwrap();
        qp.send(message(3 * n + 2, &n.to_ne_bytes())).unwrap();
    }
    rig.sides[A].qp.doorbell();
    for n in 0..parts {
        rig.expect_done(A, 3 * n, Operation::Put, len);
        rig.expect_done(A, 3 * n + 1, Operation::Get, len);
        rig.expect_done(A, 3 * n + 2, Operation::Send, 8);
    }
    for n in 0..parts {
        let received = rig.received(B);
        assert_eq!((received.cookie, received.bytes), (n, 8));
        assert_eq!(received.immediate, Some(3 * n as u32 + 2));
    }
    let all = contents(&own);
    assert!(all[..bytes] == all[bytes..] && all[..bytes] == contents(&remote));
}

/// One packet, and more than the window of a requester.
const BEHIND_A_GET: [usize; 4] = [64, 4096, 100_000, 1 << 20];

fn fill(buffer: &Buffer, at: usize, byte: u8, len: usize) {
    buffer.write(at, &vec![byte; len]).unwrap();
}

/// Whether all of `len` bytes from `at` on are `byte`.
fn is_all(buffer: &Buffer, at: usize, byte: u8, len: usize) -> bool {
    contents(buffer)[at..at + len].iter().all(|&is| is == byte)
}

pub(crate) fn a_get_has_nothing_of_a_later_put<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    for len in BEHIND_A_GET {
        let own = rig.buffer(A, 2 * len, Access::LOCAL);
        let remote = rig.buffer(B, len, Access::ALL);
        fill(&own, len, 2, len);
        fill(&remote, 0, 1, len);
        let get = Get {
            cookie: 1,
            from: remote.remote(),
            to: own.part(0, len as u32),
        };
        rig.sides[A].qp.get(get).unwrap();
        let later = own.part(len as u64, len as u32);
        rig.sides[A].put(2, later, remote.remote());
        rig.expect_done(A, 1, Operation::Get, len as u32);
        rig.expect_done(A, 2, Operation::Put, len as u32);
        assert!(is_all(&own, 0, 1, len), "{} {len}", F::name());
        assert!(is_all(&remote, 0, 2, len));
    }
}

pub(crate) fn a_put_sends_what_the_get_before_it_has_read<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    for len in BEHIND_A_GET {
        let own = rig.buffer(A, len, Access::LOCAL);
        let remote = rig.buffer(B, 2 * len, Access::ALL);
        fill(&own, 0, 5, len);
        fill(&remote, 0, 7, len);
        let get = Get {
            cookie: 1,
            from: remote.remote(),
            to: own.part(0, len as u32),
        };
        rig.sides[A].qp.get(get).unwrap();
        let to = remote.remote().at(len as u64);
        rig.sides[A].put(2, own.part(0, len as u32), to);
        rig.expect_done(A, 1, Operation::Get, len as u32);
        rig.expect_done(A, 2, Operation::Put, len as u32);
        assert!(is_all(&remote, len, 7, len), "{} {len}", F::name());
    }
}

/// A message tells the peer that its memory has been read: it writes there.
pub(crate) fn a_message_behind_a_get_comes_after_it<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let (into, from) = (rig.buffer(B, 64, Access::LOCAL), b"released");
    for len in BEHIND_A_GET {
        let own = rig.buffer(A, len, Access::LOCAL);
        let remote = rig.buffer(B, len, Access::READ);
        fill(&remote, 0, 1, len);
        rig.sides[B].receive(3, into.part(0, 64));
        let get = Get {
            cookie: 1,
            from: remote.remote(),
            to: own.part(0, len as u32),
        };
        rig.sides[A].qp.get(get).unwrap();
        rig.sides[A].send(2, Payload::Immediate(from));
        assert_eq!(rig.received(B).cookie, 3);
        fill(&remote, 0, 3, len);
        rig.expect_done(A, 1, Operation::Get, len as u32);
        rig.expect_done(A, 2, Operation::Send, from.len() as u32);
        assert!(is_all(&own, 0, 1, len), "{} {len}", F::name());
    }
}

/// As many GETs as there can be, with one request of another kind between them.
pub(crate) fn a_put_between_gets_is_executed_between_them<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let (len, half) = (10_000, LIMIT as usize / 2);
    let own = rig.buffer(A, (2 * half + 1) * len, Access::LOCAL);
    let remote = rig.buffer(B, len, Access::ALL);
    let part = |n: usize| own.part((n * len) as u64, len as u32);
    fill(&remote, 0, 1, len);
    fill(&own, 2 * half * len, 2, len);
    for n in 0..2 * half {
        let (cookie, from) = (n as u64, remote.remote());
        if n == half {
            rig.sides[A].put(cookie, part(2 * half), from);
        } else {
            rig.sides[A].get(cookie, from, part(n));
        }
    }
    for n in 0..2 * half {
        let is_put = n == half;
        let operation = [Operation::Get, Operation::Put][usize::from(is_put)];
        rig.expect_done(A, n as u64, operation, len as u32);
        let byte = 1 + u8::from(n > half);
        assert!(is_put || is_all(&own, n * len, byte, len), "{n}");
    }
}

pub(crate) fn the_32nd_request_is_the_last<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let into = rig.buffer(B, 64, Access::LOCAL);
    for round in 0..3 {
        for n in 0..LIMIT {
            rig.sides[A].qp.send(message(n, b"full")).unwrap();
        }
        for n in [LIMIT, LIMIT + 1] {
            let refused = rig.sides[A].qp.send(message(n, b"back")).unwrap_err();
            assert_eq!(refused.refusal, Refusal::Full);
            assert_eq!(refused.request, message(n, b"back"));
            if round == 1 {
                rig.sides[A].qp.doorbell();
            }
        }
        rig.sides[A].qp.doorbell();
        for n in 0..LIMIT {
            rig.sides[B].receive(n, into.part(0, 64));
        }
        for n in 0..LIMIT {
            assert_eq!(rig.received(B).immediate, Some(n as u32));
            rig.expect_done(A, n, Operation::Send, 4);
        }
    }
    rig.expect_nothing(A);
    rig.expect_nothing(B);
}

pub(crate) fn one_doorbell_for_several<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let remote = rig.buffer(B, 4096, Access::WRITE);
    for n in 0..LIMIT {
        let data = [n as u8 + 1; 100];
        let payload = Payload::Immediate(&data);
        let (to, immediate) = (remote.remote().at(n * 100), None);
        let put = Put {
            cookie: n,
            payload,
            to,
            immediate,
        };
        rig.sides[A].qp.put(put).unwrap();
    }
    rig.sides[A].qp.doorbell();
    for n in 0..LIMIT {
        rig.expect_done(A, n, Operation::Put, 100);
    }
    let now = contents(&remote);
    assert!((0..LIMIT as usize * 100).all(|n| now[n] == (n / 100) as u8 + 1));
}

pub(crate) fn nothing_before_the_doorbell<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let remote = rig.buffer(B, 4096, Access::WRITE);
    let payload = Payload::Immediate(b"early");
    let (to, immediate) = (remote.remote(), None);
    let put = Put {
        cookie: 1,
        payload,
        to,
        immediate,
    };
    rig.sides[A].qp.put(put).unwrap();
    rig.sides[A].qp.send(message(2, b"early")).unwrap();
    rig.expect_nothing(A);
    assert!(contents(&remote).iter().all(|&byte| byte == 0));
    rig.sides[A].qp.doorbell();
    rig.expect_done(A, 1, Operation::Put, 5);
    // A receive is not there before its doorbell either.
    let (cookie, to) = (3, remote.part(8, 100));
    let receive = pollux_rdma::Receive { cookie, to };
    rig.sides[B].qp.post_receive(receive).unwrap();
    rig.expect_nothing(B);
    rig.sides[B].qp.doorbell();
    assert_eq!(rig.received(B).cookie, 3);
    rig.expect_done(A, 2, Operation::Send, 5);
}

pub(crate) fn data_are_there_before_their_event<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let bytes = 50_000;
    let own = rig.buffer(A, bytes, Access::LOCAL);
    let remote = rig.buffer(B, bytes, Access::WRITE);
    for round in 0..50 {
        let data = pattern(round, bytes);
        own.write(0, &data).unwrap();
        rig.sides[B].receive(round, remote.part(0, 0));
        let half = bytes as u32 / 2;
        rig.sides[A].put(1, own.part(0, half), remote.remote());
        let put = Put {
            cookie: 2,
            payload: Payload::Indirect(own.part(half.into(), half)),
            to: remote.remote().at(half.into()),
            immediate: Some(round as u32),
        };
        rig.sides[A].qp.put(put).unwrap();
        rig.sides[A].qp.doorbell();
        assert_eq!(rig.received(B).immediate, Some(round as u32));
        assert!(contents(&remote) == data, "round {round}");
        rig.expect_done(A, 1, Operation::Put, half);
        rig.expect_done(A, 2, Operation::Put, half);
    }
}

/// Posts a message with its number, of 200, unless the queue is full.
fn post(side: &mut Side, posted: &mut u64) {
    let data = posted.to_ne_bytes();
    if *posted < 200 && side.qp.send(message(*posted, &data)).is_ok() {
        *posted += 1;
        side.qp.doorbell();
    }
}

pub(crate) fn events_that_are_not_taken_stop_and_lose_nothing<F: Fixture>() {
    let options = QpOptions {
        receives: 256,
        events: 16,
        ..QpOptions::default()
    };
    let mut rig = Rig::<F>::with(&options);
    let into = rig.buffer(B, 4096, Access::LOCAL);
    for n in 0..200 {
        rig.sides[B].receive(n, into.part(n * 8, 8));
    }
    // The other side takes none of its events; what can be sent is sent.
    let (mut posted, mut done) = (0, 0);
    for _ in 0..2000 {
        rig.fixture.poll();
        rig.sides[A].take();
        while let Some(event) = rig.sides[A].events.pop_front() {
            assert!(matches!(event, Event::Done(done) if done.status == Status::Ok));
            done += 1;
        }
        post(&mut rig.sides[A], &mut posted);
    }
    assert!(posted < 200 && done <= posted, "{posted}, {done}");
    // It takes them: all are there, in order.
    for n in 0..200 {
        while rig.sides[B].events.is_empty() {
            post(&mut rig.sides[A], &mut posted);
            rig.turn();
        }
        let received = rig.received(B);
        assert_eq!((received.cookie, received.bytes), (n, 8));
        assert_eq!(received.immediate, Some(n as u32));
    }
    for n in done..200 {
        rig.expect_done(A, n, Operation::Send, 8);
    }
    let now = contents(&into);
    assert!((0..200_u64).all(|n| now[n as usize * 8..][..8] == n.to_ne_bytes()));
}

pub(crate) fn a_message_waits_for_its_receive<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let remote = rig.buffer(B, 4096, Access::WRITE);
    rig.sides[A].qp.send(message(1, b"one")).unwrap();
    rig.sides[A].qp.doorbell();
    // The request after it waits with it.
    let payload = Payload::Immediate(b"two");
    let (to, immediate) = (remote.remote(), None);
    let put = Put {
        cookie: 2,
        payload,
        to,
        immediate,
    };
    rig.sides[A].qp.put(put).unwrap();
    rig.sides[A].qp.doorbell();
    rig.expect_nothing(A);
    assert!(contents(&remote).iter().all(|&byte| byte == 0));
    rig.sides[B].receive(3, remote.part(100, 8));
    assert_eq!(rig.received(B).cookie, 3);
    rig.expect_done(A, 1, Operation::Send, 3);
    rig.expect_done(A, 2, Operation::Put, 3);
    let now = contents(&remote);
    assert!(now.starts_with(b"two") && now[100..].starts_with(b"one"));
}
