//! Data of requests: where they should be, and nowhere else.

use pollux_rdma::{Access, Event, Message, Operation, Payload, Put, QueuePair, Received, Status};

use crate::rig::{A, B, Fixture, Rig, contents, pattern};

const SIZES: [usize; 9] = [0, 1, 7, 127, 128, 4096, 4099, 100_003, 1 << 20];
/// Bytes around the data, which stay as they are.
const MARGIN: usize = 64;

pub(crate) fn puts_and_gets_of_all_sizes<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let room = (1 << 20) + 2 * MARGIN;
    let own = rig.buffer(A, room, Access::LOCAL);
    let remote = rig.buffer(B, room, Access::ALL);
    for (n, bytes) in SIZES.into_iter().enumerate() {
        let cookie = n as u64;
        let (mut here, mut there) = (pattern(cookie, room), pattern(cookie + 100, room));
        own.write(0, &here).unwrap();
        remote.write(0, &there).unwrap();
        // Offsets that are no multiple of a word, for some.
        let (from, to) = (MARGIN + n % 3, MARGIN + n % 2);
        let local = own.part(from as u64, bytes as u32);
        let at = remote.remote().at(to as u64);
        rig.sides[A].put(cookie, local, at);
        rig.expect_done(A, cookie, Operation::Put, bytes as u32);
        there[to..to + bytes].copy_from_slice(&here[from..from + bytes]);
        assert!(contents(&remote) == there, "PUT of {bytes} B");
        assert!(contents(&own) == here, "PUT of {bytes} B");

        there = pattern(cookie + 200, room);
        remote.write(0, &there).unwrap();
        rig.sides[A].get(cookie, at, local);
        rig.expect_done(A, cookie, Operation::Get, bytes as u32);
        here[from..from + bytes].copy_from_slice(&there[to..to + bytes]);
        assert!(contents(&own) == here, "GET of {bytes} B");
        assert!(contents(&remote) == there, "GET of {bytes} B");
    }
    rig.expect_nothing(B);
}

pub(crate) fn messages_of_all_sizes<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let room = (1 << 20) + 2 * MARGIN;
    let own = rig.buffer(A, room, Access::LOCAL);
    let into = rig.buffer(B, room, Access::LOCAL);
    for (n, bytes) in SIZES.into_iter().enumerate() {
        let cookie = n as u64;
        let (here, mut there) = (pattern(cookie, room), pattern(cookie + 100, room));
        own.write(0, &here).unwrap();
        into.write(0, &there).unwrap();
        let (from, to) = (MARGIN + n % 3, MARGIN + n % 2);
        // The receive is longer than the message, for some.
        let receive = into.part(to as u64, (bytes + n % 2 * MARGIN) as u32);
        rig.sides[B].receive(cookie + 1000, receive);
        let local = own.part(from as u64, bytes as u32);
        rig.sides[A].send(cookie, Payload::Indirect(local));
        let received = rig.received(B);
        let expected = Received {
            qp: rig.sides[B].qp.number(),
            cookie: cookie + 1000,
            bytes: bytes as u32,
            immediate: None,
            is_put: false,
            missed: 0,
            status: Status::Ok,
        };
        assert_eq!(received, expected);
        rig.expect_done(A, cookie, Operation::Send, bytes as u32);
        there[to..to + bytes].copy_from_slice(&here[from..from + bytes]);
        assert!(contents(&into) == there, "SEND of {bytes} B");
    }
}

pub(crate) fn immediate_payloads<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let remote = rig.buffer(B, 4096, Access::WRITE);
    for bytes in [0, 1, 8, 100, QueuePair::IMMEDIATE] {
        let data = pattern(bytes as u64 + 1, bytes);
        let payload = Payload::Immediate(&data);
        let put = Put {
            cookie: 1,
            payload,
            to: remote.remote().at(3),
            immediate: None,
        };
        remote.write(0, &[0xee; 4096]).unwrap();
        rig.sides[A].qp.put(put).unwrap();
        rig.sides[A].qp.doorbell();
        rig.expect_done(A, 1, Operation::Put, bytes as u32);
        let mut expected = vec![0xee; 4096];
        expected[3..3 + bytes].copy_from_slice(&data);
        assert!(contents(&remote) == expected, "PUT of {bytes} B");

        remote.write(0, &[0xee; 4096]).unwrap();
        rig.sides[B].receive(2, remote.part(3, 4000));
        rig.sides[A].send(3, payload);
        assert_eq!(rig.received(B).bytes, bytes as u32);
        rig.expect_done(A, 3, Operation::Send, bytes as u32);
        assert!(contents(&remote) == expected, "SEND of {bytes} B");
    }
}

pub(crate) fn immediates<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let own = rig.buffer(A, 1 << 16, Access::LOCAL);
    let remote = rig.buffer(B, 1 << 16, Access::WRITE);
    for (n, bytes) in [0, 5, 4096, 60_000].into_iter().enumerate() {
        let (cookie, immediate) = (n as u64, u32::MAX - n as u32);
        let data = pattern(cookie + 7, bytes);
        own.write(0, &data).unwrap();
        let payload = Payload::Indirect(own.part(0, bytes as u32));
        // A receive of no length does for a PUT.
        rig.sides[B].receive(10, remote.part(0, 0));
        let to = remote.remote();
        let put = Put {
            cookie,
            payload,
            to,
            immediate: Some(immediate),
        };
        rig.sides[A].qp.put(put).unwrap();
        rig.sides[A].qp.doorbell();
        let received = rig.received(B);
        assert_eq!((received.cookie, received.bytes), (10, bytes as u32));
        assert_eq!(
            (received.immediate, received.is_put),
            (Some(immediate), true)
        );
        assert!(contents(&remote)[..bytes] == data, "{bytes} B");
        rig.expect_done(A, cookie, Operation::Put, bytes as u32);

        rig.sides[B].receive(11, remote.part(0, 1 << 16));
        let message = Message {
            cookie,
            payload,
            immediate: Some(0),
        };
        rig.sides[A].qp.send(message).unwrap();
        rig.sides[A].qp.doorbell();
        let received = rig.received(B);
        assert_eq!((received.cookie, received.bytes), (11, bytes as u32));
        assert_eq!((received.immediate, received.is_put), (Some(0), false));
        rig.expect_done(A, cookie, Operation::Send, bytes as u32);
    }
}

pub(crate) fn both_sides_get_at_once<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let bytes = 300_000;
    let sources = [A, B].map(|side| rig.buffer(side, bytes, Access::READ));
    let targets = [A, B].map(|side| rig.buffer(side, bytes, Access::LOCAL));
    for side in [A, B] {
        let data = pattern(side as u64 + 1, bytes);
        sources[side].write(0, &data).unwrap();
    }
    for cookie in 0..5 {
        for side in [A, B] {
            let to = targets[side].part(0, bytes as u32);
            rig.sides[side].get(cookie, sources[1 - side].remote(), to);
        }
    }
    for side in [A, B] {
        for cookie in 0..5 {
            rig.expect_done(side, cookie, Operation::Get, bytes as u32);
        }
        assert!(contents(&targets[side]) == contents(&sources[1 - side]));
    }
}

pub(crate) fn an_unreliable_connection_has_put_and_send<F: Fixture>() {
    let mut rig = Rig::<F>::unreliable();
    let remote = rig.buffer(B, 1 << 16, Access::WRITE);
    let own = rig.buffer(A, 1 << 16, Access::LOCAL);
    let data = pattern(1, 1 << 16);
    own.write(0, &data).unwrap();
    rig.sides[A].put(1, own.part(0, 10_000), remote.remote());
    rig.expect_done(A, 1, Operation::Put, 10_000);
    // Its end here says nothing of the other side.
    rig.until(|| contents(&remote)[..10_000] == data[..10_000]);
    rig.sides[B].receive(2, remote.part(20_000, 10_000));
    rig.turn();
    rig.sides[A].send(3, Payload::Indirect(own.part(20_000, 10_000)));
    rig.expect_done(A, 3, Operation::Send, 10_000);
    let received = rig.received(B);
    assert_eq!((received.bytes, received.missed), (10_000, 0));
    assert!(contents(&remote)[20_000..30_000] == data[20_000..30_000]);
    // Without a receive a message is lost, and the next one that is not says so.
    rig.sides[A].send(4, Payload::Immediate(b"lost"));
    rig.expect_done(A, 4, Operation::Send, 4);
    rig.expect_nothing(B);
    rig.sides[B].receive(5, remote.part(0, 100));
    rig.turn();
    rig.sides[A].send(6, Payload::Immediate(b"here"));
    rig.expect_done(A, 6, Operation::Send, 4);
    let Event::Received(received) = rig.event(B) else {
        panic!("no message");
    };
    assert_eq!((received.cookie, received.bytes), (5, 4));
    assert!(contents(&remote).starts_with(b"here"));
}
