//! Messages of all kinds between two endpoints.

use pollux_rdma::{
    Access, Done, Event, Get, Message, Mtu, Operation, Payload, Put, QpKind, QueuePair, Receive,
    Received, Status,
};

use crate::rig::{Pair, memory, path};

const SIZES: [u32; 11] = [0, 1, 3, 4, 255, 256, 257, 4096, 4097, 65_536, 1_000_001];

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|n| (n as u8).wrapping_mul(31) ^ (n >> 8) as u8 ^ seed)
        .collect()
}

fn done(qp: &QueuePair, operation: Operation, bytes: u32, cookie: u64) -> Event {
    Event::Done(Done {
        qp: qp.number(),
        cookie,
        operation,
        bytes,
        status: Status::Ok,
    })
}

fn received(
    qp: &QueuePair,
    cookie: u64,
    bytes: u32,
    immediate: Option<u32>,
    is_put: bool,
) -> Event {
    Event::Received(Received {
        qp: qp.number(),
        cookie,
        bytes,
        immediate,
        is_put,
        missed: 0,
        status: Status::Ok,
    })
}

/// PUT, PUT with immediate, SEND and GET of every size, at every MTU.
fn all_kinds(kind: QpKind, mtu: Mtu) {
    let mut pair = Pair::new();
    let size = 1 << 20;
    let memories = [memory(size), memory(size)];
    let buffers = [0, 1].map(|n| pair.hosts[n].register(&memories[n], Access::ALL));
    let [mut a, mut b] = pair.connect(kind, &path(mtu));
    for (n, bytes) in SIZES.into_iter().enumerate() {
        let cookie = n as u64;
        let data = pattern(bytes as usize, n as u8);
        let offset = n * 7;
        memories[0].write(offset, &data).unwrap();
        let payload = Payload::Indirect(buffers[0].part(offset as u64, bytes));
        let to = buffers[1].remote().at(13);
        let is_there = |at: usize| {
            let mut found = vec![0; data.len()];
            memories[1].read(at, &mut found).unwrap();
            memories[1].write(at, &vec![0xee; data.len()]).unwrap();
            found == data
        };

        let put = |immediate| Put {
            cookie,
            payload,
            to,
            immediate,
        };
        a.put(put(None)).unwrap();
        a.doorbell();
        assert_eq!(pair.event(&mut a), done(&a, Operation::Put, bytes, cookie));
        pair.settle();
        assert!(is_there(13), "PUT of {bytes} B");

        b.post_receive(Receive {
            cookie: 77,
            to: buffers[1].part(0, 0),
        })
        .unwrap();
        b.doorbell();
        a.put(put(Some(5 + n as u32))).unwrap();
        a.doorbell();
        let immediate = Some(5 + n as u32);
        assert_eq!(pair.event(&mut b), received(&b, 77, bytes, immediate, true));
        assert_eq!(pair.event(&mut a), done(&a, Operation::Put, bytes, cookie));
        assert!(is_there(13), "PUT of {bytes} B with immediate");

        for immediate in [None, Some(9)] {
            b.post_receive(Receive {
                cookie: 78,
                to: buffers[1].part(17, bytes + 3),
            })
            .unwrap();
            b.doorbell();
            a.send(Message {
                cookie,
                payload,
                immediate,
            })
            .unwrap();
            a.doorbell();
            assert_eq!(
                pair.event(&mut b),
                received(&b, 78, bytes, immediate, false)
            );
            assert_eq!(pair.event(&mut a), done(&a, Operation::Send, bytes, cookie));
            assert!(is_there(17), "SEND of {bytes} B");
        }

        if bytes as usize <= QueuePair::IMMEDIATE {
            let payload = Payload::Immediate(&data);
            a.put(Put {
                payload,
                ..put(None)
            })
            .unwrap();
            a.doorbell();
            assert_eq!(pair.event(&mut a), done(&a, Operation::Put, bytes, cookie));
            pair.settle();
            assert!(is_there(13), "PUT of {bytes} B in the descriptor");
        }

        if kind == QpKind::Reliable {
            b.get(Get {
                cookie,
                from: buffers[0].remote().at(offset as u64),
                to: buffers[1].part(29, bytes),
            })
            .unwrap();
            b.doorbell();
            assert_eq!(pair.event(&mut b), done(&b, Operation::Get, bytes, cookie));
            assert!(is_there(29), "GET of {bytes} B");
        }
    }
    for host in &pair.hosts {
        assert_eq!(host.counts().retransmitted, 0);
        let balance = host.balance();
        assert_eq!(balance.dropped_total(), 0, "{balance}");
    }
    drop((a, b));
    pair.stop();
}

/// Within one memory, so that it takes no more of it: to a range that begins a little earlier, which is
/// written behind what is read.
#[test]
#[ignore = "two gigabytes of memory, and a minute"]
fn messages_of_2_gib() {
    const BYTES: usize = 1 << 31;
    const BEFORE: usize = 2 << 20;
    for kind in [QpKind::Reliable, QpKind::Unreliable] {
        let mut pair = Pair::new();
        let all = memory(BYTES + BEFORE);
        let range = BEFORE..BEFORE + BYTES;
        let own = pair.hosts[0]
            .endpoint
            .register_buffer(&all, range, Access::LOCAL)
            .unwrap();
        let remote = pair.hosts[1].register(&all, Access::WRITE);
        let marks = || (0..BYTES).step_by(65_537).chain([BYTES - 4]);
        for at in marks() {
            own.write(at, &(at as u32).to_le_bytes()).unwrap();
        }
        let [mut a, b] = pair.connect(kind, &path(Mtu::B4096));
        let (cookie, immediate) = (1, None);
        let payload = Payload::Indirect(own.part(0, 1 << 31));
        let to = remote.remote();
        a.put(Put {
            cookie,
            payload,
            to,
            immediate,
        })
        .unwrap();
        a.doorbell();
        assert_eq!(
            pair.event(&mut a),
            done(&a, Operation::Put, 1 << 31, cookie)
        );
        pair.settle();
        for at in marks() {
            let mut found = [0; 4];
            remote.read(at, &mut found).unwrap();
            assert_eq!(u32::from_le_bytes(found), at as u32);
        }
        drop((a, b));
        pair.stop();
    }
}

#[test]
fn reliable_messages_of_all_kinds() {
    for mtu in Mtu::ALL {
        all_kinds(QpKind::Reliable, mtu);
    }
}

#[test]
fn unreliable_messages_of_all_kinds() {
    for mtu in [Mtu::B256, Mtu::B4096] {
        all_kinds(QpKind::Unreliable, mtu);
    }
}
