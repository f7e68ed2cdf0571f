//! A device that does what it likes, and a run of a driver against it: for tests and fuzzing.
//!
//! An [`Adversary`] stands before an honest [`Model`]. Whenever the driver touches a register or
//! lets time pass it may do harm: write over descriptors, lengths, indices and the bytes of frames,
//! set registers, answer anything, lose a write, interrupt, or be unplugged. [`run`] has a driver
//! receive, send, stop and start with it, and holds it to what it owes its user whatever the
//! device does.

use pollux_mempool::{Burst, ChecksumRequest, Mempool, PoolCache};

use super::fake::{FakeDevice, Model, World};
use super::{Device as _, Ids};
use crate::driver::Driver;
use crate::ledger::{Balance, Cause};
use crate::port::{Configured, Port, PortConfig, PortError, RxQueue, StartedPort, TxQueue};

/// Where choices come from. Zero is the harmless one, everywhere.
pub enum Choices {
    /// A seed.
    Seeded(u64),
    /// A fuzzer's bytes, and zeros behind them.
    Bytes(std::vec::IntoIter<u8>),
}

impl Choices {
    /// Any number: few are large, as in descriptors and registers.
    pub fn number(&mut self) -> u64 {
        let bits = self.below(65) as u32;
        let word = match self {
            Self::Seeded(state) => split_mix(state),
            Self::Bytes(bytes) => (0..bits.div_ceil(8)).fold(0, |word, _| {
                word << 8 | u64::from(bytes.next().unwrap_or(0))
            }),
        };
        word & u64::MAX.checked_shr(64 - bits).unwrap_or(0)
    }

    /// A number below `n`; zero if there is none.
    pub fn below(&mut self, n: usize) -> usize {
        let word = match self {
            Self::Seeded(state) => split_mix(state) >> 32,
            Self::Bytes(bytes) => {
                let mut byte = || u64::from(bytes.next().unwrap_or(0));
                let low = byte();
                if n > 256 { byte() << 8 | low } else { low }
            }
        };
        (word as usize).checked_rem(n).unwrap_or(0)
    }

    /// Once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        n > 0 && self.below(n) == n - 1
    }

    /// Whether a fuzzer's bytes have come to their end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Bytes(bytes) if bytes.as_slice().is_empty())
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A model, and a will of its own.
pub struct Adversary<M> {
    /// The device that it would be.
    pub honest: M,
    /// What it decides by.
    pub choices: Choices,
    /// Acts that were meant to do harm.
    pub deeds: u64,
    unplugged: bool,
}

impl<M: Model> Adversary<M> {
    /// A device that is not to be trusted.
    pub fn new(honest: M, choices: Choices) -> Self {
        Self {
            honest,
            choices,
            deeds: 0,
            unplugged: false,
        }
    }

    /// Does some harm, or none.
    pub fn act(&mut self, world: &mut World) {
        let choices = &mut self.choices;
        if self.unplugged {
            return;
        }
        self.deeds += 1;
        match choices.below(16) {
            0..5 => {
                self.honest.tick(world);
                self.deeds -= 1;
            }
            // A word or two somewhere, as a descriptor has them.
            5..11 => {
                let words = [choices.number(), choices.number()].map(u64::to_le_bytes);
                let len = 8 << choices.below(2);
                if let Some(at) = self.somewhere(world) {
                    world.write(at & !7, &words.as_flattened()[..len]);
                }
            }
            11 => {
                let bytes = choices.number().to_le_bytes();
                let len = choices.below(9);
                if let Some(at) = self.somewhere(world) {
                    world.write(at, &bytes[..len]);
                }
            }
            12 => world.interrupt(choices.below(8) as u16),
            13 | 14 => {
                let (bar, len) = self.window();
                let at = self.choices.below(len / 4) * 4;
                let value = self.choices.number() as u32;
                self.honest.write(world, bar, at, 4, value);
            }
            _ if choices.once_in(64) => self.unplugged = true,
            _ => self.honest.reset(world),
        }
    }

    /// An address in mapped memory. Rings are small and pools are large, so the region is chosen
    /// first: every other harm is done to descriptors.
    fn somewhere(&mut self, world: &World) -> Option<u64> {
        let reachable = world.reachable();
        let &(start, len) = reachable.get(self.choices.below(reachable.len()))?;
        // Rings begin at the front of their page; a byte is one of 65536 at most.
        let steps = len.div_ceil(1 << 16);
        let into = self.choices.below(steps) << 16;
        let into = into + self.choices.below((len - into).min(1 << 16));
        Some(start + into as u64)
    }

    fn window(&mut self) -> (u8, usize) {
        let there = |(bar, len): (u8, usize)| (len > 0).then_some((bar, len));
        let bars: Vec<_> = (0..).zip(self.honest.bars()).filter_map(there).collect();
        let chosen = self.choices.below(bars.len());
        bars.get(chosen).copied().unwrap_or_default()
    }
}

impl<M: Model> Model for Adversary<M> {
    fn ids(&self) -> Ids {
        self.honest.ids()
    }

    fn bars(&self) -> [usize; 6] {
        self.honest.bars()
    }

    fn config(&mut self, at: u16) -> Option<u32> {
        let honest = self.honest.config(at);
        if self.choices.once_in(64) {
            honest.map(|_| self.choices.number() as u32)
        } else {
            honest
        }
    }

    fn set_config(&mut self, at: u16, value: u32) {
        self.honest.set_config(at, value);
    }

    fn vectors(&self) -> u16 {
        self.honest.vectors()
    }

    fn set_virtual_functions(&mut self, count: u16) -> bool {
        self.honest.set_virtual_functions(count)
    }

    fn read(&mut self, world: &mut World, bar: u8, at: usize, width: usize) -> u32 {
        let mood = self.choices.below(256);
        if (216..248).contains(&mood) {
            self.act(world);
        }
        if self.unplugged {
            return u32::MAX;
        }
        let honest = self.honest.read(world, bar, at, width);
        if mood < 248 {
            return honest;
        }
        self.deeds += 1;
        match mood % 4 {
            0 => 0,
            1 => u32::MAX,
            2 => honest ^ 1 << self.choices.below(32),
            _ => self.choices.number() as u32,
        }
    }

    fn write(&mut self, world: &mut World, bar: u8, at: usize, width: usize, value: u32) {
        let mood = self.choices.below(256);
        if (223..255).contains(&mood) {
            self.act(world);
        }
        if !self.unplugged && mood < 255 {
            self.honest.write(world, bar, at, width, value);
        }
    }

    fn tick(&mut self, world: &mut World) {
        if self.choices.once_in(8) {
            self.act(world);
        }
        if !self.unplugged {
            self.honest.tick(world);
        }
    }

    fn reset(&mut self, world: &mut World) {
        if !self.unplugged {
            self.honest.reset(world);
        }
    }
}

/// What [`run`] runs.
pub struct Trial<'a, M> {
    /// Makes a device.
    pub model: &'a dyn Fn() -> M,
    /// Opens the driver.
    pub open: &'a dyn Fn(FakeDevice<Adversary<M>>) -> Result<Box<dyn Driver>, PortError>,
    /// Has frames arrive at the device.
    pub arrive: &'a dyn Fn(&mut M, &mut World, &mut Choices),
    /// What frames are received into; nobody else uses it, and it is full.
    pub pool: &'a Mempool,
}

/// What became of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Times that the port was started.
    pub starts: u64,
    /// Times that it was refused, or that stopping it failed.
    pub failures: u64,
    /// Acts of the device that were meant to do harm.
    pub deeds: u64,
    /// Received.
    pub received: Balance,
    /// Sent, by the driver's count.
    pub sent: u64,
    /// Frames that the device did not send, by the driver's count.
    pub errors: u64,
}

impl Outcome {
    /// Frames that were lost as the device's fault, both ways.
    #[must_use]
    pub fn violations(&self) -> u64 {
        self.received.dropped_for(Cause::DeviceError) + self.errors
    }
}

/// Receives, sends, stops and starts for as many steps, against an adversary that decides by
/// `choices`, or until a fuzzer's bytes have come to their end.
///
/// # Panics
/// If the driver breaks a promise: a frame that is counted twice or not at all, a buffer that is
/// lost, a frame of no length, a queue that takes more than there is.
pub fn run<M: Model>(trial: &Trial<'_, M>, choices: Choices, steps: usize) -> Outcome {
    let mut outcome = Outcome::default();
    let mut device = FakeDevice::new(Adversary::new((trial.model)(), choices));
    let mut configured: Option<Port<Configured>> = None;
    let mut left = steps;
    while left > 0 && !device.with(|adversary, _| adversary.choices.is_over()) {
        left -= 1;
        let unplugged = device.with(|adversary, _| adversary.unplugged) || device.is_gone();
        if unplugged {
            configured = None;
            device = replaced(&device, (trial.model)());
        }
        let port = match configured.take() {
            Some(port) => Ok(port),
            None => (trial.open)(device.clone()).and_then(|driver| {
                let port = Port::new("adversary", driver);
                let offered = port.capabilities();
                let queues = |most: u16| {
                    device.with(|adversary, _| adversary.choices.below(most.into()) as u16 + 1)
                };
                port.configure(PortConfig {
                    rx_queues: queues(offered.max_rx_queues),
                    tx_queues: queues(offered.max_tx_queues),
                    ring: 32,
                    pool: trial.pool.clone(),
                    checksum_offload: offered.checksum_offload && queues(2) > 1,
                })
            }),
        };
        match port.and_then(Port::start) {
            Ok(started) => configured = live(trial, &device, started, &mut left, &mut outcome),
            Err(_) => outcome.failures += 1,
        }
        assert_eq!(trial.pool.available(), trial.pool.buffers(), "buffers lost");
    }
    outcome.deeds = device.with(|adversary, _| adversary.deeds);
    outcome
}

/// The next device in the slot, with the will of the last.
fn replaced<M: Model>(old: &FakeDevice<Adversary<M>>, honest: M) -> FakeDevice<Adversary<M>> {
    old.with(|adversary, _| {
        let none = Choices::Bytes(Vec::new().into_iter());
        let choices = std::mem::replace(&mut adversary.choices, none);
        let deeds = adversary.deeds;
        FakeDevice::new(Adversary {
            deeds,
            ..Adversary::new(honest, choices)
        })
    })
}

/// From a start to the stop.
#[expect(clippy::expect_used, reason = "a test's tool")]
fn live<M: Model>(
    trial: &Trial<'_, M>,
    device: &FakeDevice<Adversary<M>>,
    started: StartedPort,
    left: &mut usize,
    outcome: &mut Outcome,
) -> Option<Port<Configured>> {
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = started;
    outcome.starts += 1;
    let below = |n| device.with(|adversary, _| adversary.choices.below(n));
    let mut cache = trial.pool.cache(64).expect("a cache");
    let mut burst = Burst::<32>::new();
    let (mut delivered, mut taken) = (0, 0);
    while *left > 0 && !device.with(|adversary, _| adversary.choices.is_over()) {
        *left -= 1;
        match below(64) {
            0..16 => device.with(|adversary, world| {
                (trial.arrive)(&mut adversary.honest, world, &mut adversary.choices);
            }),
            16..36 => {
                let chosen = below(rx.len());
                let queue = &mut rx[chosen];
                let before = queue.tally().balance();
                let n = queue.rx_up_to(&mut cache, &mut burst, 1 + below(32));
                let after = queue.tally().balance();
                assert_eq!(n, burst.len(), "frames received");
                let fate = n as u64 + after.dropped_total() - before.dropped_total();
                assert_eq!(after.from_wire - before.from_wire, fate, "frames counted");
                burst.iter().for_each(look_at);
                delivered += n as u64;
                cache.free_burst(&mut burst);
            }
            36..52 => {
                fill(&mut burst, &mut cache, below);
                let chosen = below(tx.len());
                let before = burst.len();
                let n = tx[chosen].tx(&mut cache, &mut burst);
                assert_eq!(before - burst.len(), n, "frames taken");
                taken += n as u64;
                cache.free_burst(&mut burst);
            }
            52 => rx.iter_mut().for_each(RxQueue::sync_counters),
            53 => drop((port.link(), port.statistics())),
            54 if below(16) == 15 => break,
            55 if below(256) == 255 => device.unplug(),
            _ => device.with(Adversary::act),
        }
    }
    let received: Vec<_> = rx.iter().map(RxQueue::tally).collect();
    let sent: Vec<_> = tx.iter().map(TxQueue::sent).collect();
    drop(cache);
    let stopped = port.stop(rx, tx);
    let mut balance = Balance::default();
    for view in received {
        balance.add(&view.balance());
    }
    // A device may take some by itself.
    balance.delivered += delivered;
    assert!(balance.is_balanced(), "{balance}");
    outcome.received.add(&balance);
    let (packets, errors) = sent.iter().fold((0, 0), |(packets, errors), view| {
        (packets + view.packets(), errors + view.errors())
    });
    assert_eq!(packets + errors, taken, "frames sent");
    outcome.sent += packets;
    outcome.errors += errors;
    outcome.failures += u64::from(stopped.is_err());
    stopped.ok()
}

/// Reads each byte of a frame.
fn look_at(frame: &pollux_mempool::Mbuf) {
    assert!(!frame.is_empty(), "a frame of no length");
    let bytes: usize = frame.segments().map(<[u8]>::len).sum();
    assert_eq!(bytes, frame.total_len(), "bytes of a frame");
    let sum: u64 = frame.segments().flatten().map(|&b| u64::from(b)).sum();
    std::hint::black_box(sum);
}

/// Frames of all sorts, empty ones and chains among them.
fn fill(burst: &mut Burst<32>, cache: &mut PoolCache, below: impl Fn(usize) -> usize) {
    for _ in 0..below(33) {
        let len = match below(8) {
            0..6 => 60 + below(256),
            6 => below(60),
            _ => below(10_000),
        };
        // None while all buffers are posted.
        if let Some(mut frame) = cache.alloc_from(&vec![0x5a; len]) {
            if below(4) == 0 {
                frame.set_checksum_request(ChecksumRequest::new(below(100), below(200)));
            }
            drop(burst.push(frame));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_do_no_harm_and_seeds_repeat() {
        let mut zeros = Choices::Bytes(Vec::new().into_iter());
        assert!(zeros.is_over() && !zeros.once_in(2) && !zeros.once_in(1000));
        assert_eq!((zeros.number(), zeros.below(0), zeros.below(7)), (0, 0, 0));
        let some = |seed| {
            let mut choices = Choices::Seeded(seed);
            (0..100).map(|_| choices.number()).collect::<Vec<_>>()
        };
        assert_eq!(some(1), some(1));
        assert_ne!(some(1), some(2));
        assert!(some(1).iter().any(|&n| n > u64::MAX / 2));
        assert!(some(1).iter().any(|&n| n < 256));
    }
}
