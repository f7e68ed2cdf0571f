//! Several loops that receive for one chain.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Burst, Mempool, PoolCache};
use pollux_pmd::endpoint::{Classifier, Lane, LaneFrame, ReceiveLoop, Receiver, StreamFrame};
use pollux_pmd::net::ParseOptions;
use pollux_pmd::port::{Port, Started, StartedPort};
use pollux_pmd::stream::{DemuxBuilder, StreamId};
use pollux_pmd::{Cause, Ledger, Registry, TxQueue};
use pollux_pmd_testkit::frames::Frame;
use pollux_pmd_testkit::guard::listen;
use pollux_pmd_testkit::threads::Ends;

use crate::common::{config, pool};

const QUEUES: u16 = 3;

/// A loopback port: what is sent by a queue comes by the receive queue with its number.
struct Rig {
    port: Port<Started>,
    pool: Mempool,
    cache: PoolCache,
    tx: Vec<TxQueue>,
    loops: Vec<ReceiveLoop>,
    lanes: Vec<Lane>,
    receiver: Receiver,
    ledger: Ledger,
}

fn rig(loops: usize) -> Rig {
    let pool = pool(4096);
    let port = Registry::builtin().open("loopback").unwrap();
    let configured = port.configure(config(&pool, QUEUES, QUEUES)).unwrap();
    let StartedPort { port, rx, tx } = configured.start().unwrap();
    let mut ledger = Ledger::new();
    let classifier = || Classifier::new(ParseOptions::default());
    let mut loops: Vec<_> = (0..loops)
        .map(|_| ReceiveLoop::new(classifier(), pool.cache(64).unwrap(), 32, false))
        .collect();
    let mut lanes = Vec::new();
    for (n, rx) in rx.into_iter().enumerate() {
        ledger.add("queue", rx.tally());
        let of = n % loops.len();
        lanes.push(loops[of].add(rx, 0).unwrap());
    }
    for receive in &loops {
        ledger.add("loop", receive.view());
    }
    let demux = DemuxBuilder::new().port(2000, StreamId(0)).build().unwrap();
    let receiver = Receiver::new(classifier(), demux, None);
    ledger.add("receiver", receiver.view());
    Rig {
        cache: pool.cache(256).unwrap(),
        port,
        pool,
        tx,
        loops,
        lanes,
        receiver,
        ledger,
    }
}

/// A frame of the stream whose payload is a number.
fn numbered(n: u32) -> Vec<u8> {
    Frame::udp(&n.to_be_bytes()).bytes()
}

impl Rig {
    fn send(&mut self, queue: usize, frame: &[u8]) {
        let mut burst = Burst::<1>::new();
        burst.push(self.cache.alloc_from(frame).unwrap()).unwrap();
        assert_eq!(self.tx[queue].tx(&mut self.cache, &mut burst), 1);
    }

    /// Takes what a lane has; the numbers of its frames.
    fn take(&mut self, lane: usize) -> Vec<u32> {
        let (receiver, cache) = (&mut self.receiver, &mut self.cache);
        let mut numbers = Vec::new();
        self.lanes[lane].take(|LaneFrame { frame, .. }| {
            let taken = receiver.route(frame, Ns(0), 0, &mut [], cache);
            if let Some(frame) = taken {
                numbers.push(number(&frame));
                receiver.tally().count_delivered(1);
                cache.free(frame.mbuf);
            }
        });
        numbers
    }

    /// Every frame is accounted for, and no buffer is missing.
    fn end(self) -> pollux_pmd::Balance {
        let rx = self.loops.into_iter().flat_map(ReceiveLoop::finish);
        self.port.stop(rx.collect(), self.tx).unwrap();
        drop((self.cache, self.lanes));
        assert_eq!(self.pool.available(), self.pool.buffers());
        self.ledger.check().unwrap()
    }
}

fn number(frame: &StreamFrame) -> u32 {
    let start = usize::from(frame.offset);
    let payload = frame.mbuf.data()[start..].first_chunk().unwrap();
    u32::from_be_bytes(*payload)
}

#[test]
fn a_lane_keeps_the_order_of_its_queue_and_bad_frames_end_in_their_loop() {
    let mut rig = rig(2);
    for n in 0..100 {
        for queue in 0..u32::from(QUEUES) {
            rig.send(queue as usize, &numbered(1000 * queue + n));
        }
        rig.send(1, &numbered(n)[..30]);
        rig.send(2, &Frame::ip(6, vec![0; 40]).bytes());
    }
    let counts: Vec<_> = rig.loops.iter().map(ReceiveLoop::counts).collect();
    let mut taken = vec![Vec::new(); usize::from(QUEUES)];
    for _ in 0..20 {
        for receive in &mut rig.loops {
            receive.poll(Tsc(0), Ns(0));
        }
        for (lane, taken) in taken.iter_mut().enumerate() {
            let numbers = rig.take(lane);
            taken.extend(numbers);
        }
    }
    for (queue, taken) in (0..).zip(&taken) {
        assert!(taken.iter().copied().eq(1000 * queue..1000 * queue + 100));
    }
    // Queues 0 and 2 are the first loop's; what is no datagram is for the receiver to judge.
    assert_eq!(counts[0].frames.get(), 300);
    assert_eq!(counts[1].frames.get(), 100);
    let malformed = rig.loops[1].view().balance().dropped_for(Cause::Malformed);
    assert_eq!(malformed, 100);
    let balance = rig.end();
    assert_eq!(balance.delivered, 300);
    assert_eq!(balance.dropped_for(Cause::NotForUs), 100);
}

#[test]
fn a_full_lane_leaves_frames_in_the_receive_ring() {
    let mut rig = rig(1);
    let sent = (Lane::FRAMES + 40) as u32;
    (0..sent).for_each(|n| rig.send(0, &numbered(n)));
    let counts = rig.loops[0].counts();
    for _ in 0..10 {
        rig.loops[0].poll(Tsc(0), Ns(0));
    }
    assert_eq!(counts.frames.get(), Lane::FRAMES as u64);
    assert_eq!(counts.stops.get(), 6, "four batches, then none");
    let mut taken = Vec::new();
    for _ in 0..10 {
        taken.extend(rig.take(0));
        rig.loops[0].poll(Tsc(0), Ns(0));
    }
    assert!(taken.into_iter().eq(0..sent));
    assert_eq!(counts.stops.get(), 6);
    // What the chain has not taken when it ends is dropped by it, and counted.
    (0..10).for_each(|n| rig.send(0, &numbered(n)));
    rig.loops[0].poll(Tsc(0), Ns(0));
    let (receiver, cache) = (&mut rig.receiver, &mut rig.cache);
    assert!(rig.lanes[0].take(|item| {
        receiver
            .tally()
            .count_dropped(Cause::Aborted, item.frame.frames);
        cache.free(item.frame.mbuf);
    }));
    assert_eq!(rig.end().dropped_for(Cause::Aborted), 10);
}

#[test]
fn a_lane_tells_a_waiting_queue_from_a_loop_that_is_behind() {
    let mut rig = rig(1);
    assert!(rig.take(0).is_empty());
    assert!(!rig.lanes[0].is_waiting(), "the loop has not polled yet");
    rig.loops[0].poll(Tsc(0), Ns(0));
    assert!(rig.take(0).is_empty() && rig.lanes[0].is_waiting());
    rig.send(0, &numbered(7));
    rig.loops[0].poll(Tsc(0), Ns(0));
    rig.loops[0].poll(Tsc(0), Ns(0));
    assert_eq!(rig.take(0), [7]);
    assert!(!rig.lanes[0].is_waiting());
    assert!(rig.take(0).is_empty() && rig.lanes[0].is_waiting());
    assert!(!rig.lanes[0].has_ended() && !rig.loops[0].has_ended());
    // Frames that were passed on before the loop left are still there.
    rig.send(0, &numbered(8));
    rig.loops[0].poll(Tsc(0), Ns(0));
    let rx = rig.loops.remove(0).finish();
    assert_eq!(rig.take(0), [8]);
    assert!(!rig.lanes[0].has_ended());
    assert!(rig.take(0).is_empty() && rig.lanes[0].has_ended());
    rig.port.stop(rx, rig.tx).unwrap();
    assert!(rig.ledger.check().is_ok());
}

#[test]
fn loops_on_threads_pass_every_frame_on_in_order_and_do_nothing_but_work() {
    const FRAMES: u32 = 20_000;
    let mut rig = rig(2);
    let stop = AtomicBool::new(false);
    let mut taken = vec![Vec::with_capacity(FRAMES as usize); usize::from(QUEUES)];
    let (loops, noise) = std::thread::scope(|scope| {
        let stop = &stop;
        let mut loops = std::mem::take(&mut rig.loops).into_iter();
        let guarded = loops.next().unwrap();
        let guarded = scope.spawn(move || {
            listen(move |ear| {
                let mut receive = guarded;
                ear.during(|| {
                    while !stop.load(Ordering::Acquire) {
                        receive.poll(Tsc(0), Ns(0));
                        std::hint::spin_loop();
                    }
                });
                receive
            })
        });
        let others = loops.map(|mut receive| {
            scope.spawn(move || {
                while !stop.load(Ordering::Acquire) {
                    receive.poll(Tsc(0), Ns(0));
                    std::thread::yield_now();
                }
                receive
            })
        });
        let others: Vec<_> = others.collect();
        let ends = Ends(stop);
        let check = || {
            let failed = guarded.is_finished() || others.iter().any(ScopedJoinHandle::is_finished);
            assert!(!failed, "a loop failed");
        };
        for n in 0..FRAMES {
            let queue = (n % u32::from(QUEUES)) as usize;
            let mut burst = Burst::<1>::new();
            burst
                .push(rig.cache.alloc_from(&numbered(n)).unwrap())
                .unwrap();
            while rig.tx[queue].tx(&mut rig.cache, &mut burst) == 0 {
                check();
                for (lane, taken) in taken.iter_mut().enumerate() {
                    taken.extend(rig.take(lane));
                }
            }
        }
        while taken.iter().map(Vec::len).sum::<usize>() < FRAMES as usize {
            for (lane, taken) in taken.iter_mut().enumerate() {
                taken.extend(rig.take(lane));
            }
            check();
            std::thread::yield_now();
        }
        drop(ends);
        let (first, noise) = guarded.join().unwrap();
        let mut loops = vec![first];
        loops.extend(others.into_iter().map(|thread| thread.join().unwrap()));
        (loops, noise)
    });
    noise.assert_none();
    for (queue, taken) in (0..).zip(&taken) {
        let expected = (0..FRAMES).filter(|n| n % u32::from(QUEUES) == queue);
        assert!(taken.iter().copied().eq(expected), "queue {queue}");
    }
    rig.loops = loops;
    assert_eq!(rig.end().delivered, u64::from(FRAMES));
}
