//! Programs of several threads, and what is dropped before what it came from.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pollux_mempool::time::Ns;
use pollux_pmd_testkit::threads::Ends;
use pollux_rdma::roce::RoceLoop;
use pollux_rdma::{
    Access, Event, Mtu, PathOptions, Payload, Put, QpKind, QpOptions, QueuePair, Status, Wait,
};

use crate::rig::{Host, Pair, memory, path};

/// Polls loops until it is told to stop.
fn drive(mut loops: [RoceLoop; 2], is_over: &AtomicBool) -> [RoceLoop; 2] {
    let mut now = Ns(0);
    while !is_over.load(Ordering::Acquire) {
        now.0 += 1000;
        for poll in &mut loops {
            poll.poll(now);
        }
        std::thread::yield_now();
    }
    loops
}

const BYTES: usize = 20_000;
const LONG: Duration = Duration::from_secs(20);

/// While three threads put, a fourth takes the ranges away: no byte of one changes from then on.
#[test]
fn ranges_come_and_go_under_requests_of_several_threads() {
    let Pair {
        hosts: [a, b],
        link,
        ..
    } = Pair::new();
    let controls = [a.control.clone(), b.control.clone()];
    let loops = [a, b].map(Host::without_control);
    let is_over = AtomicBool::new(false);
    let loops = std::thread::scope(|scope| {
        let driver = scope.spawn(|| drive(loops, &is_over));
        let ends = Ends(&is_over);
        let threads = [1_u8, 2, 3].map(|thread| {
            let [near, far] = controls.clone();
            scope.spawn(move || {
                let (mut near, mut far) = (near.endpoint(), far.endpoint());
                let memories = [memory(BYTES), memory(BYTES)];
                let own = near
                    .register_buffer(&memories[0], 0..BYTES, Access::LOCAL)
                    .unwrap();
                own.write(0, &vec![thread; BYTES]).unwrap();
                for round in 0..40 {
                    let [mut qp, peer] = [&mut near, &mut far]
                        .map(|end| end.create_queue_pair(&QpOptions::default()).unwrap());
                    let options = path(Mtu::B1024);
                    near.connect(&qp, &peer.address(), &options).unwrap();
                    far.connect(&peer, &qp.address(), &options).unwrap();
                    let target = far
                        .register_buffer(&memories[1], 0..BYTES, Access::WRITE)
                        .unwrap();
                    let payload = Payload::Indirect(own.part(0, BYTES as u32));
                    let (to, immediate) = (target.remote(), None);
                    for cookie in 0..QueuePair::REQUESTS as u64 {
                        qp.put(Put {
                            cookie,
                            payload,
                            to,
                            immediate,
                        })
                        .unwrap();
                    }
                    qp.doorbell();
                    if round % 2 == 0 {
                        qp.wait_event(Wait::Poll(LONG)).unwrap();
                    }
                    far.unregister_buffer(target);
                    memories[1].write(0, &vec![0; BYTES]).unwrap();
                    // All end, by the poll and by sleep.
                    let mut left = QueuePair::REQUESTS - usize::from(round % 2 == 0);
                    while left > 0 {
                        match qp.wait_event(Wait::Sleep(LONG)).expect("an event") {
                            Event::Done(_) => left -= 1,
                            Event::Failed(failed) => {
                                assert_eq!(failed.status, Status::RemoteAccess);
                            }
                            Event::Received(received) => panic!("{received:?}"),
                        }
                    }
                    let mut found = vec![1; BYTES];
                    memories[1].read(0, &mut found).unwrap();
                    assert!(found.iter().all(|&byte| byte == 0), "written after its end");
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        drop(ends);
        driver.join().unwrap()
    });
    drop(controls);
    link.stop(loops.map(RoceLoop::into_queues));
}

/// Endpoints, then loops, then queue pairs, buffers and memory; and other orders.
#[test]
fn what_is_dropped_first_takes_nothing_with_it() {
    for order in 0..6 {
        let mut pair = Pair::new();
        let options = PathOptions {
            timeout: 4,
            ..path(Mtu::B256)
        };
        let [mut a, b] = pair.connect(QpKind::Reliable, &options);
        let all = memory(BYTES);
        let buffer = pair.hosts[1].register(&all, Access::ALL);
        let own = pair.hosts[0].register(&memory(BYTES), Access::LOCAL);
        let payload = Payload::Indirect(own.part(0, BYTES as u32));
        let (cookie, to, immediate) = (0, buffer.remote(), None);
        let put = Put {
            cookie,
            payload,
            to,
            immediate,
        };
        a.put(put).unwrap();
        a.doorbell();
        (0..order).for_each(|_| pair.step());
        let Pair {
            hosts,
            link,
            mut now,
        } = pair;
        // The endpoints go first; their queue pairs and buffers stay.
        let mut loops = hosts.map(Host::without_control);
        let mut poll = |loops: &mut [RoceLoop; 2]| {
            for _ in 0..2000 {
                now.0 += 1000;
                for one in loops.iter_mut() {
                    one.poll(now);
                }
            }
        };
        let mut kept = (Some((buffer, own)), Some(b), Some(all));
        match order % 3 {
            0 => kept.0 = None,
            1 => kept.1 = None,
            _ => kept.2 = None,
        }
        poll(&mut loops);
        assert!(matches!(a.poll_event(), Some(Event::Done(_))), "{order}");
        // The loops go: what is posted then stays where it is, and nothing hangs.
        link.stop(loops.map(RoceLoop::into_queues));
        while a.poll_event().is_some() {}
        let posted = (0..100).filter(|_| a.put(put).is_ok()).count();
        assert!(posted <= QueuePair::REQUESTS);
        a.doorbell();
        assert_eq!(a.wait_event(Wait::Sleep(Duration::from_millis(1))), None);
        drop((kept, a));
    }
}
