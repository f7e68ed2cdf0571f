//! What happens to the rest when a part fails or goes.

use pollux_rdma::{
    Access, ConnectError, Event, Key, Operation, PathOptions, Payload, QpOptions, RemoteBuffer,
    Status,
};

use crate::rig::{A, B, Fixture, Rig, Side, contents, memory, pair, pattern};

pub(crate) fn a_range_is_taken_away_while_it_is_used<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let bytes = 1 << 20;
    let own = rig.buffer(A, bytes, Access::LOCAL);
    own.write(0, &pattern(1, bytes)).unwrap();
    let all = memory(bytes);
    let [_, end] = rig.fixture.ends();
    let remote = end.register_buffer(&all, 0..bytes, Access::ALL).unwrap();
    let at = remote.remote();
    for cookie in 0..16 {
        rig.sides[A].put(cookie, own.part(0, bytes as u32), at);
    }
    // Some of them are on their way.
    rig.sides[A].take();
    rig.fixture.poll();
    rig.fixture.ends()[B].unregister_buffer(remote);
    // From here on none of its bytes changes any more.
    let mut then = vec![0; bytes];
    all.read(0, &mut then).unwrap();
    let mut has_failed = false;
    for cookie in 0..16 {
        let event = match rig.event(A) {
            Event::Failed(failed) => {
                assert_eq!(failed.status, Status::RemoteAccess);
                rig.event(A)
            }
            event => event,
        };
        let Event::Done(done) = event else {
            panic!("{event:?}");
        };
        assert_eq!(done.cookie, cookie);
        let expected = match (done.status, has_failed) {
            (Status::Ok, false) => Status::Ok,
            (_, false) => Status::RemoteAccess,
            (_, true) => Status::Flushed,
        };
        assert_eq!(done.status, expected);
        has_failed |= done.status != Status::Ok;
    }
    let mut now = vec![0; bytes];
    all.read(0, &mut now).unwrap();
    assert!(now == then);
    if !has_failed {
        // They had all been executed: the next one is refused.
        rig.sides[A].put(16, own.part(0, 1), at);
        rig.expect_failure(A, Some((16, Status::RemoteAccess)), &[]);
    }
}

/// A request with a key that there is not.
fn fail(side: &mut Side, own: &pollux_rdma::Buffer) {
    let (address, key) = (0, Key(0xdead_beef));
    side.put(99, own.part(0, 1), RemoteBuffer { address, key });
}

pub(crate) fn a_failed_queue_pair_flushes_and_its_neighbour_goes_on<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let neighbours = pair(&mut rig.fixture, &QpOptions::default());
    let own = rig.buffer(A, 1000, Access::LOCAL);
    let remote = rig.buffer(B, 1000, Access::ALL);
    own.write(0, &pattern(1, 1000)).unwrap();
    for cookie in [11, 12] {
        rig.sides[A].receive(cookie, own.part(0, 0));
    }
    fail(&mut rig.sides[A], &own);
    rig.sides[A].send(1, Payload::Immediate(b"never"));
    rig.sides[A].put(2, own.part(0, 100), remote.remote());
    rig.expect_failure(A, Some((99, Status::RemoteAccess)), &[1, 2, 11, 12]);
    // It takes no more, and says so.
    rig.sides[A].put(3, own.part(0, 100), remote.remote());
    let done = rig.done(A);
    assert_eq!((done.cookie, done.status), (3, Status::Flushed));
    assert!(contents(&remote) == [0; 1000]);

    let failed = std::mem::replace(&mut rig.sides, neighbours);
    rig.sides[A].put(4, own.part(0, 1000), remote.remote());
    rig.expect_done(A, 4, Operation::Put, 1000);
    rig.sides[A].receive(5, own.part(0, 100));
    rig.sides[B].send(6, Payload::Immediate(b"here"));
    assert_eq!(rig.received(A).cookie, 5);
    rig.expect_done(B, 6, Operation::Send, 4);
    let path = PathOptions::default();
    let [a, b] = &failed;
    let refused = rig.fixture.ends()[A].connect(&a.qp, &b.qp.address(), &path);
    assert!(
        matches!(refused, Err(ConnectError::State(_))),
        "{refused:?}"
    );
    // Another one takes its place.
    drop(failed);
    rig.sides = pair(&mut rig.fixture, &QpOptions::default());
    rig.sides[A].put(7, own.part(0, 1000), remote.remote());
    rig.expect_done(A, 7, Operation::Put, 1000);
}

pub(crate) fn a_destroyed_queue_pair_ends_its_partner_alone<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let own = rig.buffer(A, 1000, Access::LOCAL);
    let into = rig.buffer(B, 1000, Access::ALL);
    for round in 0..20 {
        let [mut partner, gone] = pair(&mut rig.fixture, &QpOptions::default());
        // With a request under way, or without.
        if round % 2 == 0 {
            partner.send(1, Payload::Immediate(b"to be given up"));
        }
        drop(gone);
        // Its end does not concern the others.
        rig.sides[A].put(2, own.part(0, 100), into.remote());
        rig.expect_done(A, 2, Operation::Put, 100);
        drop(partner);
    }
    let old = rig.sides[A].qp.number();
    let [a, _] = pair(&mut rig.fixture, &QpOptions::default());
    assert_ne!(a.qp.number(), old);
}

/// A message whose event was taken is done, also if that was the last thing that its receiver did.
pub(crate) fn a_message_that_was_taken_is_done<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let into = rig.buffer(B, 100, Access::LOCAL);
    rig.sides[B].receive(1, into.part(0, 100));
    rig.sides[A].send(2, Payload::Immediate(b"last"));
    let event = loop {
        rig.fixture.poll();
        rig.sides[A].take();
        if let Some(event) = rig.sides[B].qp.poll_event() {
            break event;
        }
    };
    assert!(
        matches!(event, Event::Received(received) if received.status == Status::Ok),
        "{event:?}"
    );
    let [a, b] = rig.sides;
    drop(b);
    rig.sides = pair(&mut rig.fixture, &QpOptions::default());
    rig.sides[A] = a;
    rig.expect_done(A, 2, Operation::Send, 4);
}

pub(crate) fn a_second_connection_is_refused<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let path = PathOptions::default();
    let [end, other] = rig.fixture.ends();
    let peer = other.create_queue_pair(&QpOptions::default()).unwrap();
    let address = rig.sides[B].qp.address();
    for address in [address, peer.address()] {
        let refused = end.connect(&rig.sides[A].qp, &address, &path);
        assert!(
            matches!(refused, Err(ConnectError::State(_))),
            "{refused:?}"
        );
    }
    let refused = end.connect(&peer, &address, &path);
    assert!(
        matches!(refused, Err(ConnectError::Unknown(_))),
        "{refused:?}"
    );
    // The first one goes on.
    let into = rig.buffer(B, 100, Access::LOCAL);
    rig.sides[B].receive(1, into.part(0, 100));
    rig.sides[A].send(2, Payload::Immediate(b"first"));
    assert_eq!(rig.received(B).bytes, 5);
    rig.expect_done(A, 2, Operation::Send, 5);
}
