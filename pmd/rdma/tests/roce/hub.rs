//! A wire with faults between two endpoints.

use pollux_faults::{
    Behind, BottleneckOptions, Counts, FaultRates, Frame, Injector, mark_congestion,
};
use pollux_mempool::time::Ns;
use pollux_mempool::{Burst, PoolCache};
use pollux_pmd::driver::Megabits;
use pollux_pmd::{RxQueue, TxQueue};

use crate::rig::{Host, Link, link};

/// A frame on its way.
struct OnWire {
    bytes: Vec<u8>,
    due: Ns,
}

impl Frame for OnWire {
    fn due(&self) -> Ns {
        self.due
    }

    fn set_due(&mut self, due: Ns) {
        self.due = due;
    }

    fn len_on_link(&self) -> usize {
        self.bytes.len()
    }

    fn mark(&mut self) -> bool {
        mark_congestion(&mut self.bytes)
    }

    fn corrupt(&mut self, pick: impl FnOnce(usize) -> Option<(usize, u8)>) -> bool {
        let picked = pick(self.bytes.len());
        if let Some((at, flips)) = picked {
            self.bytes[at] ^= flips;
        }
        picked.is_some()
    }
}

/// Frames that may be on their way.
const ROOM: usize = 1 << 14;

/// One direction.
struct Way {
    injector: Injector<OnWire>,
    from: usize,
}

/// Two hosts, each on a link of its own, and what is between the links.
pub(crate) struct Hub {
    pub(crate) hosts: [Host; 2],
    pub(crate) now: Ns,
    links: [Link; 2],
    ends: [(RxQueue, TxQueue, PoolCache); 2],
    ways: [Way; 2],
}

impl Hub {
    pub(crate) fn new(rates: FaultRates, seed: u64) -> Self {
        Self::with_speed(rates, seed, None)
    }

    fn with_speed(rates: FaultRates, seed: u64, speed: Option<Megabits>) -> Self {
        rates.check().unwrap();
        let ((first, [a, hub_a]), (second, [b, hub_b])) = (link(8192), link(8192));
        let links = [first, second];
        let host = |n, queues| Host::with_speed(n, &links[n], queues, speed);
        let hosts = [host(0, a), host(1, b)];
        let end = |(rx, tx), link: &Link| (rx, tx, link.pool.cache(64).unwrap());
        let ends = [end(hub_a, &links[0]), end(hub_b, &links[1])];
        let way = |from| Way {
            injector: Injector::new(rates, Behind::Frames(3), seed + from as u64, ROOM),
            from,
        };
        Self {
            hosts,
            now: Ns(0),
            links,
            ends,
            ways: [0, 1].map(way),
        }
    }

    /// Without faults, with a slow link from the first host to the second, whose ports tell their speed.
    pub(crate) fn with_bottleneck(options: BottleneckOptions, speed: Megabits) -> Self {
        let mut hub = Self::with_speed(FaultRates::default(), 0, Some(speed));
        let injector = Injector::new(FaultRates::default(), Behind::Frames(0), 0, ROOM);
        hub.ways[0].injector = injector.with_bottleneck(options).unwrap();
        hub
    }

    /// No faults from now on. What was on its way is lost.
    pub(crate) fn mend(&mut self) {
        for way in &mut self.ways {
            way.injector = Injector::new(FaultRates::default(), Behind::Frames(0), 0, ROOM);
        }
    }

    pub(crate) fn faults(&self) -> [Counts; 2] {
        [0, 1].map(|n| self.ways[n].injector.counts())
    }

    /// One poll of each host, and of the wire, a microsecond later.
    pub(crate) fn step(&mut self) {
        self.now.0 += 1000;
        for host in &mut self.hosts {
            host.poll.poll(self.now);
        }
        for way in &mut self.ways {
            let (rx, _, cache) = &mut self.ends[way.from];
            let mut burst = Burst::<32>::new();
            while rx.rx(cache, &mut burst) > 0 {
                for mbuf in burst.iter() {
                    let (bytes, due) = (mbuf.data().to_vec(), self.now);
                    let copy = |frame: &OnWire| {
                        let (bytes, due) = (frame.bytes.clone(), frame.due);
                        Some(OnWire { bytes, due })
                    };
                    drop(way.injector.push(OnWire { bytes, due }, copy));
                }
                cache.free_burst(&mut burst);
            }
            let (_, tx, cache) = &mut self.ends[1 - way.from];
            while way.injector.peek(Some(Ns(self.now.0 + 1))).is_some() {
                let frame = way.injector.pop().unwrap();
                burst.push(cache.alloc_from(&frame.bytes).unwrap()).unwrap();
                assert_eq!(tx.tx(cache, &mut burst), 1);
            }
        }
    }

    /// Stops everything: the ledgers balance and all buffers are back.
    pub(crate) fn stop(self) {
        let Self {
            hosts, links, ends, ..
        } = self;
        for ((host, link), (rx, tx, cache)) in hosts.into_iter().zip(links).zip(ends) {
            drop(cache);
            host.balance();
            let own = host.poll.into_queues();
            link.stop([own, (rx, Some(tx))]);
        }
    }
}
