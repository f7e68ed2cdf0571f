//! Queues with a hostile kernel, whose part the caller plays: for tests and fuzzing.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pollux_mempool::{BurstMut, Mempool, PoolCache};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::attachment::Attachment;

use super::quarantine::UmemQuarantine;
use super::ring::kernel::Side;
use super::ring::{Consumer, Entry, Layout, Producer};
use super::rx::{self, Rx};
use super::socket::Socket;
use super::steer::Rules;
use super::tx::{self, Tx};
use super::umem::{Posted, Umem};
use crate::driver::{Origin, RxDriver, TxDriver};
use crate::drivers::interface::{Control, Interface, Watch};
use crate::ledger::{Sent, Tally};

/// Entries of each ring.
const SIZE: u32 = 8;

/// Longest frame that the interface carries, with its header.
const FRAME: usize = 9018;

const LAYOUT: Layout = Layout {
    producer: 0,
    consumer: 64,
    flags: 128,
    entries: 192,
};

fn memory() -> Option<OwnedFd> {
    let memory = memfd_create("ring", MemfdFlags::CLOEXEC).ok()?;
    ftruncate(&memory, 4096).ok()?;
    Some(memory)
}

/// This side of a ring, and the kernel's.
fn ring<T: Entry, R>(
    map: impl FnOnce(std::os::fd::BorrowedFd<'_>, u64, Layout, u32) -> std::io::Result<R>,
) -> Option<(R, Side<T>)> {
    let memory = memory()?;
    let ours = map(memory.as_fd(), 0, LAYOUT, SIZE).ok()?;
    let kernels = Side::map(memory.as_fd(), LAYOUT, SIZE).ok()?;
    Some((ours, kernels))
}

/// The shared state of queues without a kernel, and a link that is up.
fn shared() -> Option<(Arc<Attachment>, Arc<Watch>)> {
    let control = Control::new().ok()?;
    let lo = Interface::find(&control, "lo").ok()?;
    let rules = Rules::insert(&lo, 0, &[]).ok()?;
    let sockets = vec![Socket::dummy(memory()?)];
    let quarantine = Arc::new(UmemQuarantine::new("hostile", "lo", lo.index));
    let attachment = Attachment::new(sockets, None, rules, quarantine);
    Some((Arc::new(attachment), Arc::new(Watch::new(control, lo))))
}

/// A receive queue over untrusted rings.
pub struct HostileRing {
    queue: Rx,
    ring: Side<libc::xdp_desc>,
    fill: Side<u64>,
    filled: u32,
}

impl HostileRing {
    /// The queue; `None` if a memory file or a socket is not available.
    #[must_use]
    pub fn new(pool: &Mempool) -> Option<Self> {
        let umem = Umem::new(pool).ok()?;
        let (ours, ring) = ring(Consumer::map)?;
        let (filled_by_us, fill) = self::ring(Producer::map)?;
        let (shared, link) = shared()?;
        let mode = rx::Mode {
            busy_poll: false,
            trust_checksums: false,
            pieces: true,
        };
        let buffers = (Posted::new(umem), SIZE as usize);
        let queue = Rx::new((ours, filled_by_us), buffers, mode, (shared, 0), link);
        Some(Self {
            queue,
            ring,
            fill,
            filled: 0,
        })
    }

    /// The next address that was posted, taken as by a correct kernel.
    pub fn take_posted(&mut self) -> Option<u64> {
        let posted = self.fill.producer().load(Ordering::Acquire);
        (posted != self.filled).then(|| {
            let address = self.fill.read(self.filled);
            self.filled = self.filled.wrapping_add(1);
            self.fill.consumer().store(self.filled, Ordering::Release);
            address
        })
    }

    /// Reports a fragment of a frame, as the kernel does; `false` if the ring is full.
    pub fn receive(&mut self, addr: u64, len: u32, options: u32) -> bool {
        let produced = self.ring.producer().load(Ordering::Relaxed);
        let consumed = self.ring.consumer().load(Ordering::Acquire);
        if produced.wrapping_sub(consumed) >= SIZE {
            return false;
        }
        let desc = libc::xdp_desc { addr, len, options };
        self.ring.write(produced, desc);
        let next = produced.wrapping_add(1);
        self.ring.producer().store(next, Ordering::Release);
        true
    }

    /// Adds to the kernel's indices, of RX or of FILL, and sets the flags.
    pub fn lie(&mut self, of_fill: bool, by: u32, flags: u32) {
        if of_fill {
            self.filled = self.filled.wrapping_add(by);
            self.fill.consumer().store(self.filled, Ordering::Release);
        } else {
            self.ring.producer().fetch_add(by, Ordering::Release);
        }
        self.fill.flags().store(flags, Ordering::Relaxed);
    }

    /// Polls the queue.
    pub fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        self.queue.rx(cache, out, origin, tally)
    }

    /// The last call.
    pub fn finish(&mut self, tally: &mut Tally) {
        self.queue.finish(tally);
    }
}

/// A transmit queue over untrusted rings.
pub struct HostileTxRing {
    queue: Tx,
    ring: Side<libc::xdp_desc>,
    completion: Side<u64>,
}

impl HostileTxRing {
    /// Maximum number of segments in flight.
    pub const SIZE: u32 = SIZE;

    /// The queue; `None` if a memory file or a socket is not available.
    #[must_use]
    pub fn new(pool: &Mempool) -> Option<Self> {
        let umem = Umem::new(pool).ok()?;
        let (ours, ring) = ring(Producer::map)?;
        let (completed, completion) = self::ring(Consumer::map)?;
        let (shared, link) = shared()?;
        let mode = tx::Mode {
            need_wakeup: true,
            pieces: true,
            mtu: FRAME - 18,
        };
        let posted = Posted::new(umem);
        let queue = Tx::new((ours, completed), posted, mode, (shared, 0), link);
        Some(Self {
            queue,
            ring,
            completion,
        })
    }

    /// The address in an entry of TX.
    #[must_use]
    pub fn address(&self, index: u32) -> u64 {
        self.ring.read(index).addr
    }

    /// Sets the kernel's index of TX, and the flags.
    pub fn consume(&mut self, index: u32, flags: u32) {
        self.ring.consumer().store(index, Ordering::Release);
        self.ring.flags().store(flags, Ordering::Relaxed);
    }

    /// Reports a segment as sent, correct or not, and moves the index of COMPLETION.
    pub fn complete(&mut self, address: u64, by: u32) {
        let produced = self.completion.producer().load(Ordering::Relaxed);
        self.completion.write(produced, address);
        let next = produced.wrapping_add(by);
        self.completion.producer().store(next, Ordering::Release);
    }

    /// Sends.
    pub fn tx(
        &mut self,
        cache: &mut PoolCache,
        burst: &mut BurstMut<'_>,
        sent: &mut Sent,
    ) -> usize {
        self.queue.tx(cache, burst, sent)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use pollux_mempool::Burst;
    use proptest::prelude::*;

    use super::*;
    use pollux_pmd_testkit::ports::pool;

    const BUFFERS: usize = 64;

    #[test]
    fn an_honest_kernel_is_believed() {
        let pool = pool(BUFFERS, 2048);
        let mut cache = pool.cache(16).unwrap();
        let mut queue = HostileRing::new(&pool).unwrap();
        let (mut origin, mut tally) = (Origin::new(0, 0), Tally::new());
        for len in 1..=100 {
            let address = queue.take_posted().unwrap();
            assert!(queue.receive(address | 256 << 48, len, 0));
            let mut burst = Burst::<4>::new();
            let n = queue.rx(&mut cache, &mut burst.as_mut(), &mut origin, &mut tally);
            assert_eq!(
                (n, burst[0].len(), burst[0].headroom()),
                (1, len as usize, 256)
            );
            assert_eq!(burst[0].data_offset() as u64, address + 256);
            // The same address again: it is no longer posted.
            assert!(queue.receive(address | 256 << 48, len, 0));
            let mut none = Burst::<4>::new();
            let n = queue.rx(&mut cache, &mut none.as_mut(), &mut origin, &mut tally);
            assert_eq!(n, 0);
        }
        let balance = tally.view().balance();
        assert_eq!((balance.from_wire, balance.dropped_total()), (200, 100));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Honest { skip: u64, len: u32, more: bool },
        Descriptor { addr: u64, len: u32, options: u32 },
        Lie { of_fill: bool, by: u32, flags: u32 },
        Poll,
    }

    fn step() -> impl Strategy<Value = Step> {
        let index = prop_oneof![0..20_u32, any::<u32>()];
        let address = prop_oneof![0..200_000_u64, any::<u64>()];
        let len = prop_oneof![0..3000_u32, any::<u32>()];
        prop_oneof![
            (0..600_u64, 0..2300_u32, any::<bool>())
                .prop_map(|(skip, len, more)| { Step::Honest { skip, len, more } }),
            (address, len, 0..4_u32).prop_map(|(addr, len, options)| Step::Descriptor {
                addr,
                len,
                options
            }),
            (any::<bool>(), index, 0..4_u32).prop_map(|(of_fill, by, flags)| Step::Lie {
                of_fill,
                by,
                flags
            }),
            Just(Step::Poll),
            Just(Step::Poll),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Whatever the kernel reports, no buffer is returned twice, each frame is counted once,
        /// and all buffers are back at the end.
        #[test]
        fn lying_rings_are_survived(steps in prop::collection::vec(step(), 1..120)) {
            let pool = pool(BUFFERS, 2048);
            let mut cache = pool.cache(8).unwrap();
            let mut queue = HostileRing::new(&pool).unwrap();
            let (mut origin, mut tally) = (Origin::new(0, 0), Tally::new());
            let (mut held, mut delivered) = (Burst::<16>::new(), 0);
            for step in steps {
                match step {
                    Step::Honest { skip, len, more } => {
                        if let Some(address) = queue.take_posted() {
                            queue.receive(address | skip << 48, len, u32::from(more));
                        }
                    }
                    Step::Descriptor { addr, len, options } => {
                        queue.receive(addr, len, options);
                    }
                    Step::Lie { of_fill, by, flags } => queue.lie(of_fill, by, flags),
                    Step::Poll => {
                        if held.is_full() {
                            cache.free_burst(&mut held);
                        }
                        let out = &mut held.as_mut();
                        delivered += queue.rx(&mut cache, out, &mut origin, &mut tally);
                        let mut numbers: Vec<_> = held.iter().map(pollux_mempool::Mbuf::index).collect();
                        numbers.sort_unstable();
                        numbers.dedup();
                        prop_assert_eq!(numbers.len(), held.len());
                        for mbuf in held.iter() {
                            let bytes: usize = mbuf.segments().map(<[u8]>::len).sum();
                            prop_assert_eq!(bytes, mbuf.total_len());
                        }
                    }
                }
            }
            queue.finish(&mut tally);
            let balance = tally.view().balance();
            prop_assert_eq!(balance.from_wire, balance.dropped_total() + delivered as u64);
            drop((queue, held, cache));
            prop_assert_eq!(pool.available(), BUFFERS);
        }

        /// Whatever the kernel reports as sent, no buffer that it owns is freed, none is freed
        /// twice, and all are back at the end.
        #[test]
        fn lying_completions_are_survived(
            steps in prop::collection::vec((0..5_u8, any::<u32>(), any::<u64>()), 1..120),
        ) {
            let pool = pool(BUFFERS, 2048);
            let mut cache = pool.cache(8).unwrap();
            let mut queue = HostileTxRing::new(&pool).unwrap();
            let mut sent = Sent::new();
            let mut taken = 0;
            for (kind, number, address) in steps {
                match kind {
                    0 => queue.consume(number, number >> 30),
                    1 => queue.complete(address, number % 12),
                    2 => queue.complete(address % 200_000, number),
                    3 => queue.complete(queue.address(number), 1),
                    _ => {
                        let mut burst = Burst::<4>::new();
                        for len in [60, number as usize % 9100] {
                            if let Some(mbuf) = cache.alloc_from(&vec![1; len]) {
                                drop(burst.push(mbuf));
                            }
                        }
                        taken += queue.tx(&mut cache, &mut burst.as_mut(), &mut sent);
                    }
                }
            }
            let view = sent.view();
            prop_assert!(view.packets() + view.errors() <= taken as u64);
            drop((queue, cache));
            prop_assert_eq!(pool.available(), BUFFERS);
        }
    }
}
