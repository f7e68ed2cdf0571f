//! Accounting under random operations: no buffer is lost, none is freed twice, and the ledger
//! balances.

use std::any::Any;
use std::collections::VecDeque;

use pollux_mempool::{Burst, Mbuf, Mempool, PoolCache, PoolConfig};
use pollux_pmd::ledger::SentView;
use pollux_pmd::{Cause, Ledger, PortConfig, Registry, RxQueue, StartedPort, Tally, TxQueue};
use proptest::prelude::*;

const BUFFERS: usize = 96;
const QUEUES: u16 = 3;
const RING: usize = 8;

/// A frame is identified by its number, which fills it: the tests need no other oracle.
fn pattern(number: u32, len: usize) -> impl Iterator<Item = u8> {
    number.to_le_bytes().into_iter().cycle().take(len)
}

#[derive(Clone, Debug)]
enum Op {
    /// Sends a number of frames of one length; frames that do not fit the ring are dropped.
    Send {
        queue: usize,
        frames: usize,
        len: usize,
    },
    /// Receives at most a number of frames, and applies one action to each.
    Receive {
        queue: usize,
        most: usize,
        then: Then,
    },
    /// Drops the oldest kept frame.
    Release(usize),
    /// Sends the oldest kept frame again.
    Resend(usize),
}

#[derive(Clone, Copy, Debug)]
enum Then {
    Free,
    Drop,
    Keep,
    Freeze,
    Share,
    Bytes,
    Split,
    Truncate(usize),
    /// Chains the next frame behind this one.
    Chain,
    /// Forwards it through the same queue.
    Forward,
    Thread,
}

fn op() -> impl Strategy<Value = Op> {
    let queue = 0..usize::from(QUEUES);
    let then = prop_oneof![
        Just(Then::Free),
        Just(Then::Drop),
        Just(Then::Keep),
        Just(Then::Freeze),
        Just(Then::Share),
        Just(Then::Bytes),
        Just(Then::Split),
        (0..300usize).prop_map(Then::Truncate),
        Just(Then::Chain),
        Just(Then::Forward),
        Just(Then::Thread),
    ];
    prop_oneof![
        4 => (queue.clone(), 1..20usize, 4..400usize)
            .prop_map(|(queue, frames, len)| Op::Send { queue, frames, len }),
        4 => (queue.clone(), 1..16usize, then)
            .prop_map(|(queue, most, then)| Op::Receive { queue, most, then }),
        1 => (1..8usize).prop_map(Op::Release),
        1 => queue.prop_map(Op::Resend),
    ]
}

/// A frame that its consumer has retained.
enum Retained {
    Mbuf(Mbuf),
    /// Read-only, possibly with other owners.
    Shared(#[expect(dead_code, reason = "held for its ownership alone")] Box<dyn Any>),
}

/// A loopback port, its one consumer, and the expected frames of each queue.
struct Rig {
    rx: Vec<RxQueue>,
    tx: Vec<TxQueue>,
    cache: PoolCache,
    consumer: Tally,
    next: u32,
    expected: Vec<VecDeque<(u32, usize)>>,
    retained: VecDeque<Retained>,
}

impl Rig {
    fn send(&mut self, queue: usize, frames: usize, len: usize) {
        let mut burst = Burst::<32>::new();
        for n in 0..frames {
            let bytes: Vec<u8> = pattern(self.next + n as u32, len).collect();
            match self.cache.alloc_from(&bytes) {
                Some(mbuf) => burst.push(mbuf).unwrap(),
                None => break,
            }
        }
        let before = burst.len();
        let taken = self.tx[queue].tx(&mut self.cache, &mut burst);
        assert_eq!(burst.len(), before - taken);
        for n in 0..taken as u32 {
            self.expected[queue].push_back((self.next + n, len));
        }
        self.next += frames as u32;
        self.cache.free_burst(&mut burst);
    }

    /// Sends a frame whose content the test has changed.
    fn resend(&mut self, queue: usize, mut mbuf: Mbuf) {
        let number = self.next;
        self.next += 1;
        while let Some(rest) = mbuf.split_off() {
            self.cache.free(rest);
        }
        let len = mbuf.len();
        let bytes = pattern(number, len);
        mbuf.data_mut()
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = from);
        let mut burst = Burst::<1>::new();
        burst.push(mbuf).unwrap();
        if self.tx[queue].tx(&mut self.cache, &mut burst) == 1 {
            self.expected[queue].push_back((number, len));
        }
    }

    fn receive(&mut self, queue: usize, most: usize, then: Then) {
        let mut burst = Burst::<16>::new();
        // Frames that are already in a burst leave less room.
        let fillers = self.cache.alloc_burst(&mut burst, 16 - most);
        let n = self.rx[queue].rx(&mut self.cache, &mut burst);
        assert_eq!(burst.len(), fillers + n);
        burst.take_front(fillers, drop);
        let mut frames = VecDeque::new();
        burst.take_all(|mbuf| frames.push_back(mbuf));
        for mbuf in &frames {
            let (number, len) = self.expected[queue].pop_front().unwrap();
            assert_eq!(mbuf.total_len(), len);
            let bytes: Vec<u8> = mbuf.segments().flatten().copied().collect();
            assert!(bytes.into_iter().eq(pattern(number, len)), "frame {number}");
        }
        self.consumer.count_delivered(n as u64);
        while let Some(mbuf) = frames.pop_front() {
            self.dispose(queue, mbuf, then, &mut frames);
        }
    }

    fn dispose(&mut self, queue: usize, mut mbuf: Mbuf, then: Then, more: &mut VecDeque<Mbuf>) {
        match then {
            Then::Free => self.cache.free(mbuf),
            Then::Drop => drop(mbuf),
            Then::Keep => self.retained.push_back(Retained::Mbuf(mbuf)),
            Then::Freeze => self
                .retained
                .push_back(Retained::Shared(Box::new(mbuf.freeze()))),
            Then::Share => {
                let frozen = mbuf.freeze();
                self.retained
                    .push_back(Retained::Shared(Box::new(frozen.clone())));
                let frozen = frozen.try_thaw().unwrap_err();
                self.retained.push_front(Retained::Shared(Box::new(frozen)));
            }
            Then::Bytes => {
                let frozen = mbuf.freeze();
                for bytes in frozen.segment_bytes() {
                    self.retained.push_back(Retained::Shared(Box::new(bytes)));
                }
            }
            Then::Split => {
                let rest = mbuf.split_off();
                self.cache.free(mbuf);
                self.retained.extend(rest.map(Retained::Mbuf));
            }
            Then::Truncate(len) => {
                mbuf.truncate(len);
                assert_eq!(mbuf.segment_count(), mbuf.segments().count());
                self.retained.push_back(Retained::Mbuf(mbuf));
            }
            Then::Chain => {
                if let Some(tail) = more.pop_front() {
                    mbuf.chain(tail).unwrap();
                }
                self.retained.push_back(Retained::Mbuf(mbuf));
            }
            Then::Forward => self.resend(queue, mbuf),
            Then::Thread => std::thread::spawn(move || drop(mbuf)).join().unwrap(),
        }
    }
}

proptest! {
    // Twice as many as usual, or as `PROPTEST_CASES` says.
    #![proptest_config(ProptestConfig::with_cases(2 * ProptestConfig::default().cases))]

    #[test]
    fn no_buffer_and_no_frame_is_lost(
        ops in proptest::collection::vec(op(), 0..60),
        data_room in prop_oneof![Just(64usize), Just(100), Just(2048)],
        cache in 2..40usize,
        stopped in any::<bool>(),
    ) {
        let pool = Mempool::new(PoolConfig {
            buffers: BUFFERS, data_room, ..PoolConfig::default()
        }).unwrap();
        let config = PortConfig {
            rx_queues: QUEUES, tx_queues: QUEUES, ring: RING,
            ..PortConfig::new(pool.clone())
        };
        let port = Registry::builtin().open("loopback").unwrap();
        let StartedPort { port, rx, tx } = port.configure(config).unwrap().start().unwrap();
        let mut ledger = Ledger::new();
        for queue in &rx {
            ledger.add("rx", queue.tally());
        }
        let sent: Vec<_> = tx.iter().map(TxQueue::sent).collect();
        let consumer = Tally::new();
        ledger.add("consumer", consumer.view());
        let mut rig = Rig {
            rx, tx, consumer,
            cache: pool.cache(cache).unwrap(),
            next: 0,
            expected: vec![VecDeque::new(); usize::from(QUEUES)],
            retained: VecDeque::new(),
        };
        for op in ops {
            match op {
                Op::Send { queue, frames, len } => rig.send(queue, frames, len),
                Op::Receive { queue, most, then } => rig.receive(queue, most, then),
                Op::Release(n) => drop(rig.retained.drain(..n.min(rig.retained.len()))),
                Op::Resend(queue) => {
                    if let Some(Retained::Mbuf(mbuf)) = rig.retained.pop_front() {
                        rig.resend(queue, mbuf);
                    }
                }
            }
        }
        let queued: usize = rig.expected.iter().map(VecDeque::len).sum();
        let Rig { rx, tx, cache, retained, .. } = rig;
        if stopped {
            port.stop(rx, tx).unwrap();
            let sum = ledger.check().unwrap();
            prop_assert_eq!(sum.dropped_for(Cause::Aborted), queued as u64);
            prop_assert_eq!(sum.dropped_total(), queued as u64);
            prop_assert_eq!(sum.from_wire, sent.iter().map(SentView::packets).sum::<u64>());
            prop_assert_eq!(sum.bytes, sent.iter().map(SentView::bytes).sum::<u64>());
        } else {
            drop((port, rx, tx));
        }
        drop((cache, retained));
        prop_assert_eq!(pool.available(), BUFFERS);
    }
}

/// The operations page lists all causes of this crate, with their texts, in their order.
#[test]
fn causes_are_documented() {
    let page = include_str!("../../../docs/operations.md");
    let (_, page) = page.split_once("### Causes of loss").unwrap();
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| ---"))
        .skip(1);
    let rows: Vec<_> = rows.take_while(|line| line.starts_with('|')).collect();
    let last = Cause::all()
        .position(|cause| cause == Cause::Aborted)
        .unwrap();
    let expected = Cause::all().take(last + 1);
    let expected: Vec<_> = expected
        .map(|cause| format!("| `{}` | {} |", cause.name(), cause.text()))
        .collect();
    assert_eq!(rows, expected);
}

/// A cause that is declared while tallies exist is counted, summed and shown by its name.
#[test]
fn a_declared_cause_is_one_of_all() {
    let (mut tally, mut ledger) = (Tally::new(), Ledger::new());
    ledger.add("stage", tally.view());
    let own = Cause::declare("wrong-geometry", "of another geometry").unwrap();
    tally.count_from_wire(3, 192);
    tally.count_dropped(own, 1);
    tally.count_dropped(Cause::Late, 2);
    let sum = ledger.check().unwrap();
    assert_eq!(
        sum.drops().collect::<Vec<_>>(),
        [(Cause::Late, 2), (own, 1)]
    );
    assert!(
        sum.to_string()
            .ends_with("3 dropped (2 late, 1 wrong-geometry)"),
        "{sum}"
    );
}
