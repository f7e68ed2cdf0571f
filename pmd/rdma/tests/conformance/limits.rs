//! What a program can do with keys, ranges, and the life of things.

use pollux_rdma::{Access, Event, Key, Local, Operation, Payload, QpOptions, RemoteBuffer, Status};

use crate::rig::{A, B, Fixture, Rig, contents, memory, pair, pattern};

const BYTES: usize = 10_000;

/// The next registration takes the place of the last, and its key is another one.
pub(crate) fn an_old_key_opens_nothing_new<F: Fixture>() {
    for operation in [Operation::Put, Operation::Get] {
        let mut rig = Rig::<F>::new();
        let own = rig.buffer(A, BYTES, Access::LOCAL);
        let all = memory(BYTES);
        let [_, end] = rig.fixture.ends();
        let first = end.register_buffer(&all, 0..BYTES, Access::ALL).unwrap();
        let old = first.remote();
        end.unregister_buffer(first);
        let next = end.register_buffer(&all, 0..BYTES, Access::ALL).unwrap();
        assert_ne!(next.key(), old.key);
        let side = &mut rig.sides[A];
        match operation {
            Operation::Get => side.get(1, old, own.part(0, 8)),
            _ => side.put(1, own.part(0, 8), old),
        }
        rig.expect_failure(A, Some((1, Status::RemoteAccess)), &[]);
        assert!(contents(&next) == [0; BYTES] && contents(&own) == [0; BYTES]);
    }
}

/// A request's own memory is that of its endpoint: the peer's key is none of it, whatever its rights.
pub(crate) fn a_key_of_the_other_end_is_no_local_one<F: Fixture>() {
    for operation in [Operation::Put, Operation::Get, Operation::Send] {
        let mut rig = Rig::<F>::new();
        let theirs = rig.buffer(B, BYTES, Access::ALL);
        rig.sides[B].receive(1, theirs.part(0, 100));
        rig.turn();
        let (local, remote) = (theirs.part(0, 8), theirs.remote());
        let side = &mut rig.sides[A];
        match operation {
            Operation::Put => side.put(1, local, remote),
            Operation::Get => side.get(1, remote, local),
            Operation::Send => side.send(1, Payload::Indirect(local)),
        }
        rig.expect_failure(A, Some((1, Status::LocalAccess)), &[]);
        assert!(contents(&theirs) == [0; BYTES]);
    }
}

#[allow(clippy::reversed_empty_ranges)] // a program may
pub(crate) fn ranges_of_nothing_and_of_too_much<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let all = memory(4096);
    let [end, _] = rig.fixture.ends();
    for range in [0..0, 4096..4096, 5..3] {
        let buffer = end.register_buffer(&all, range, Access::ALL).unwrap();
        assert!(buffer.is_empty() && buffer.read(0, &mut [0]).is_err());
        assert_eq!(buffer.write(0, &[]), Ok(()));
    }
    for range in [
        4097..4097,
        0..4097,
        4095..4097,
        usize::MAX..usize::MAX,
        1..usize::MAX,
        0..usize::MAX,
    ] {
        assert!(
            end.register_buffer(&all, range.clone(), Access::ALL)
                .is_err(),
            "{range:?}"
        );
    }
    let buffer = end.register_buffer(&all, 10..20, Access::ALL).unwrap();
    assert!(buffer.write(9, &[1, 1]).is_err() && buffer.write(usize::MAX, &[1]).is_err());
    assert!(buffer.read(10, &mut [0]).is_err() && buffer.read(11, &mut []).is_err());
    // What is around it is untouched.
    buffer.write(0, &[7; 10]).unwrap();
    let mut found = [0; 30];
    all.read(0, &mut found).unwrap();
    assert_eq!(
        [&found[..10], &found[10..20], &found[20..]],
        [&[0; 10], &[7; 10], &[0; 10]]
    );
}

/// Of the longest message that there is, no byte is moved if the last one has no place.
pub(crate) fn a_request_beyond_its_memory_moves_nothing<F: Fixture>() {
    for (len, offset) in [
        (1 << 31, 0),
        (1 << 31, 1),
        (BYTES as u32 + 1, 0),
        (1, u64::MAX),
        (1 << 31, u64::MAX),
    ] {
        let mut rig = Rig::<F>::new();
        let own = rig.buffer(A, BYTES, Access::LOCAL);
        let remote = rig.buffer(B, BYTES, Access::ALL);
        let key = own.key();
        rig.sides[A].put(1, Local { key, offset, len }, remote.remote());
        let done = rig.done(A);
        // Which of the two is looked at first is the back end's choice.
        assert!(
            matches!(done.status, Status::LocalAccess | Status::RemoteAccess),
            "{done:?}"
        );
        assert!(contents(&remote) == [0; BYTES]);
    }
}

/// Of four buffers that requests use, in all orders and at any moment.
pub(crate) fn buffers_are_dropped_at_any_moment<F: Fixture>() {
    for moment in 0..24 {
        let mut rig = Rig::<F>::new();
        let bytes = 100_000;
        let mut buffers: Vec<_> = [
            (A, Access::LOCAL),
            (A, Access::ALL),
            (B, Access::ALL),
            (B, Access::LOCAL),
        ]
        .map(|(side, access)| Some(rig.buffer(side, bytes, access)))
        .into();
        let parts: Vec<_> = buffers
            .iter()
            .flatten()
            .map(|buffer| buffer.part(0, bytes as u32))
            .collect();
        let remote = buffers[2].as_ref().unwrap().remote();
        rig.sides[B].receive(9, parts[3]);
        rig.sides[A].put(0, parts[0], remote);
        rig.sides[A].get(1, remote, parts[1]);
        rig.sides[A].send(2, Payload::Indirect(parts[0]));
        for _ in 0..moment / 4 {
            rig.turn();
        }
        for n in 0..4 {
            buffers[(n + moment) % 4] = None;
            rig.turn();
        }
        // All requests come to an end, those after a failure by being flushed.
        let mut has_failed = false;
        for cookie in 0..3 {
            let done = loop {
                match rig.event(A) {
                    Event::Done(done) => break done,
                    Event::Failed(_) => assert!(!std::mem::replace(&mut has_failed, true)),
                    Event::Received(received) => panic!("{received:?}"),
                }
            };
            assert_eq!(done.cookie, cookie);
            assert!(!has_failed || done.status == Status::Flushed, "{done:?}");
        }
    }
}

/// One end goes with requests of both in flight; the other finds out, and its neighbours go on.
pub(crate) fn queue_pairs_are_dropped_at_any_moment<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let own = [A, B].map(|side| rig.buffer(side, 100_000, Access::ALL));
    own[A].write(0, &pattern(1, 100_000)).unwrap();
    for moment in 0..40 {
        let [mut first, mut second] = pair(&mut rig.fixture, &QpOptions::default());
        for (n, side) in [&mut first, &mut second].into_iter().enumerate() {
            side.receive(0, own[n].part(0, 100));
            side.put(1, own[n].part(0, 100_000), own[1 - n].remote());
            side.get(2, own[1 - n].remote(), own[n].part(0, 100_000));
            side.send(3, Payload::Immediate(b"last"));
        }
        for _ in 0..moment / 2 {
            rig.turn();
        }
        drop(if moment % 2 == 0 { first } else { second });
        rig.turn();
    }
    let nowhere = RemoteBuffer {
        address: 0,
        key: Key(0),
    };
    rig.sides[A].put(5, own[A].part(0, 0), nowhere);
    rig.expect_done(A, 5, Operation::Put, 0);
}
