//! Requests that are refused, and what they leave as it was.

use pollux_rdma::{
    Access, Get, Key, Local, Message, Operation, Payload, Put, QpOptions, QueuePair, Receive,
    Refusal, RemoteBuffer, Status,
};

use crate::rig::{A, B, Fixture, Rig, contents, memory, pattern};

const BYTES: usize = 10_000;

/// A request that its peer refuses: nothing is written on either side, and the queue pair fails.
fn is_refused<F: Fixture>(
    operation: Operation,
    access: Access,
    at: impl Fn(RemoteBuffer) -> RemoteBuffer,
    bytes: u32,
) {
    let mut rig = Rig::<F>::new();
    let own = rig.buffer(A, BYTES, Access::LOCAL);
    // Around the range there is memory that is not registered.
    let all = memory(3 * BYTES);
    let data = pattern(1, 3 * BYTES);
    all.write(0, &data).unwrap();
    let [_, end] = rig.fixture.ends();
    let remote = end.register_buffer(&all, BYTES..2 * BYTES, access).unwrap();
    let remote = at(remote.remote());
    own.write(0, &[0xee; BYTES]).unwrap();
    let local = own.part(0, bytes);
    match operation {
        Operation::Get => rig.sides[A].get(7, remote, local),
        _ => rig.sides[A].put(7, local, remote),
    }
    rig.sides[A].put(8, own.part(0, 1), remote);
    rig.expect_failure(A, Some((7, Status::RemoteAccess)), &[8]);
    let mut now = vec![0; 3 * BYTES];
    all.read(0, &mut now).unwrap();
    assert!(now == data);
    assert!(contents(&own) == [0xee; BYTES]);
}

pub(crate) fn a_wrong_key<F: Fixture>() {
    for bit in [0, 7, 8, 31] {
        for operation in [Operation::Put, Operation::Get] {
            let wrong = |at: RemoteBuffer| RemoteBuffer {
                key: Key(at.key.0 ^ 1 << bit),
                ..at
            };
            is_refused::<F>(operation, Access::ALL, wrong, 1);
        }
    }
}

pub(crate) fn a_range_that_ends_one_byte_late<F: Fixture>() {
    for operation in [Operation::Put, Operation::Get] {
        for (offset, bytes) in [(1, BYTES), (BYTES - 1, 2), (BYTES, 1), (BYTES + 1, 1)] {
            let late = |at: RemoteBuffer| at.at(offset as u64);
            is_refused::<F>(operation, Access::ALL, late, bytes as u32);
        }
        let early = |at: RemoteBuffer| at.at(u64::MAX);
        is_refused::<F>(operation, Access::ALL, early, 2);
    }
}

pub(crate) fn an_address_that_wraps<F: Fixture>() {
    for operation in [Operation::Put, Operation::Get] {
        for address in [u64::MAX, u64::MAX - 4000, 0] {
            let wraps = |at: RemoteBuffer| RemoteBuffer { address, ..at };
            is_refused::<F>(operation, Access::ALL, wraps, 5000);
        }
    }
}

pub(crate) fn rights_are_needed<F: Fixture>() {
    let same = |at: RemoteBuffer| at;
    for access in [Access::LOCAL, Access::READ] {
        is_refused::<F>(Operation::Put, access, same, 100);
    }
    for access in [Access::LOCAL, Access::WRITE] {
        is_refused::<F>(Operation::Get, access, same, 100);
    }
    // With its right each is executed.
    let mut rig = Rig::<F>::new();
    let own = rig.buffer(A, 100, Access::LOCAL);
    for access in [Access::WRITE, Access::ALL] {
        let remote = rig.buffer(B, 100, access);
        rig.sides[A].put(1, own.part(0, 100), remote.remote());
        rig.expect_done(A, 1, Operation::Put, 100);
    }
    for access in [Access::READ, Access::ALL] {
        let remote = rig.buffer(B, 100, access);
        rig.sides[A].get(1, remote.remote(), own.part(0, 100));
        rig.expect_done(A, 1, Operation::Get, 100);
    }
}

pub(crate) fn no_byte_needs_no_key<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let own = rig.buffer(A, 100, Access::LOCAL);
    let key = Key(0x1234_5678);
    let nowhere = RemoteBuffer { address: 3, key };
    rig.sides[A].put(1, own.part(0, 0), nowhere);
    rig.expect_done(A, 1, Operation::Put, 0);
    rig.sides[A].get(2, nowhere, own.part(0, 0));
    rig.expect_done(A, 2, Operation::Get, 0);
}

pub(crate) fn own_memory_that_is_not_registered<F: Fixture>() {
    for (key, offset, len) in [(1, 0, 1), (0, 1, 100), (0, 100, 1), (0, u64::MAX, 2)] {
        for operation in 0..3 {
            let mut rig = Rig::<F>::new();
            let own = rig.buffer(A, 100, Access::ALL);
            let remote = rig.buffer(B, 1000, Access::ALL);
            rig.sides[B].receive(1, remote.part(0, 1000));
            rig.turn();
            let key = Key(own.key().0 ^ key << 20);
            let local = Local { key, offset, len };
            match operation {
                0 => rig.sides[A].put(7, local, remote.remote()),
                1 => rig.sides[A].get(7, remote.remote(), local),
                _ => rig.sides[A].send(7, Payload::Indirect(local)),
            }
            rig.expect_failure(A, Some((7, Status::LocalAccess)), &[]);
            assert!(contents(&own) == [0; 100] && contents(&remote) == [0; 1000]);
        }
    }
}

pub(crate) fn a_message_longer_than_its_receive<F: Fixture>() {
    for bytes in [101, 5000, 100_000] {
        let mut rig = Rig::<F>::new();
        let own = rig.buffer(A, 100_000, Access::LOCAL);
        own.write(0, &vec![0xee; 100_000]).unwrap();
        let remote = rig.buffer(B, 100_000, Access::WRITE);
        rig.sides[B].receive(1, remote.part(0, 100));
        rig.sides[B].receive(2, remote.part(0, 100_000));
        rig.sides[A].send(3, Payload::Indirect(own.part(0, bytes)));
        rig.sides[A].put(4, own.part(0, 8), remote.remote().at(500));
        let received = rig.received(B);
        assert_eq!((received.cookie, received.status), (1, Status::LocalLength));
        assert_eq!(rig.failed(B).status, Status::LocalLength);
        assert_eq!(rig.received(B).status, Status::Flushed);
        rig.expect_failure(A, Some((3, Status::RemoteInvalidRequest)), &[4]);
        assert!(contents(&remote)[100..].iter().all(|&byte| byte == 0));
    }
}

pub(crate) fn what_cannot_be_posted<F: Fixture>() {
    let mut rig = Rig::<F>::new();
    let own = rig.buffer(A, 100, Access::LOCAL);
    let long = [0; QueuePair::IMMEDIATE + 1];
    let message = Message {
        cookie: 1,
        payload: Payload::Immediate(&long),
        immediate: None,
    };
    let refused = rig.sides[A].qp.send(message).unwrap_err();
    assert_eq!(refused.refusal, Refusal::TooLong(long.len() as u64));
    let local = Local {
        len: (1 << 31) + 1,
        ..own.part(0, 0)
    };
    let put = Put {
        cookie: 1,
        payload: Payload::Indirect(local),
        to: own.remote(),
        immediate: None,
    };
    let refused = rig.sides[A].qp.put(put).unwrap_err();
    assert_eq!(refused.refusal, Refusal::TooLong((1 << 31) + 1));
    let receives = QpOptions::default().receives as u64;
    for cookie in 0..=receives {
        let (to, side) = (own.part(0, 0), &mut rig.sides[A]);
        let taken = side.qp.post_receive(Receive { cookie, to });
        assert_eq!(taken.is_ok(), cookie < receives);
    }
    let mut rig = Rig::<F>::unreliable();
    let (from, to) = (own.remote(), own.part(0, 1));
    let cookie = 1;
    let refused = rig.sides[A].qp.get(Get { cookie, from, to }).unwrap_err();
    assert_eq!(refused.refusal, Refusal::Unsupported);
}

pub(crate) fn what_cannot_be_registered<F: Fixture>() {
    let mut fixture = F::new();
    let [end, _] = fixture.ends();
    let all = memory(4096);
    for range in [0..4097, 4096..4097, 4000..usize::MAX] {
        let refused = end.register_buffer(&all, range, Access::LOCAL);
        assert!(refused.is_err());
    }
    let mut buffers = Vec::new();
    let refused = loop {
        match end.register_buffer(&all, 0..1, Access::LOCAL) {
            Ok(buffer) => buffers.push(buffer),
            Err(refused) => break refused,
        }
    };
    assert_eq!(buffers.len(), 256);
    assert!(
        refused.to_string().contains("unregister buffers"),
        "{refused}"
    );
    let mut keys: Vec<_> = buffers.iter().map(|buffer| buffer.key().0).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 256);
    drop(buffers);
    assert!(end.register_buffer(&all, 0..1, Access::LOCAL).is_ok());
}
