//! The trial of a driver against an adversary.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pollux_mempool::{Burst, ChecksumRequest, Mbuf, Mempool, PoolCache};
use pollux_pmd::bus::Device as _;
use pollux_pmd::driver::Driver;
use pollux_pmd::ledger::{Balance, Cause};
use pollux_pmd::port::{Configured, Port, PortConfig, PortError, RxQueue, StartedPort, TxQueue};

use super::canaries::Canaries;
use super::choices::Choices;
use super::device::{Adversary, FaultModel, FaultPlan};
use crate::fake::{FakeDevice, Model, World};

/// Parameters of [`run`].
pub struct Trial<'a, M> {
    /// Creates the model of a device.
    pub model: &'a dyn Fn() -> M,
    /// Opens the driver.
    pub open: &'a dyn Fn(FakeDevice<Adversary<M>>) -> Result<Box<dyn Driver>, PortError>,
    /// Has frames arrive at the device.
    pub arrive: &'a dyn Fn(&mut M, &mut World, &mut Choices),
    /// Pool for received frames. All its buffers are free, and it has no other user.
    pub pool: &'a Mempool,
    /// Length of the shortest frame that may arrive, in bytes. Empty frames are sent too.
    pub shortest: usize,
}

/// Result of a trial.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// Successful starts of the port.
    pub starts: u64,
    /// Failed starts and stops.
    pub failures: u64,
    /// Faults that the device injected.
    pub faults: u64,
    /// Balance of the receive side.
    pub received: Balance,
    /// Frames sent, by the driver's count.
    pub sent: u64,
    /// Frames that the device did not send, by the driver's count.
    pub errors: u64,
}

impl Outcome {
    /// Frames lost to faults of the device, in both directions.
    #[must_use]
    pub fn violations(&self) -> u64 {
        self.received.dropped_for(Cause::DeviceError) + self.errors
    }
}

/// Receives, sends, stops and starts against an adversary with this plan, for `steps` steps or
/// until a fuzzer's input is used up.
///
/// # Panics
/// If the driver breaks a promise: a frame counted twice or not at all, a lost buffer, an empty
/// frame, a queue that takes more frames than offered, or a buffer that a confined device has
/// written although it was not posted.
pub fn run<M: Model>(trial: &Trial<'_, M>, plan: impl Into<FaultPlan>, steps: usize) -> Outcome {
    let mut outcome = Outcome::default();
    let mut device = FakeDevice::new(Adversary::new((trial.model)(), plan));
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
                    checksum_offload: offered.checksum_offload && queues(2) > 1,
                    ..PortConfig::new(trial.pool.clone())
                })
            }),
        };
        match port.and_then(Port::start) {
            Ok(started) => {
                let live = || live(trial, &device, started, &mut left, &mut outcome);
                let fault_model = device.with(|adversary, _| adversary.fault_model);
                configured = match fault_model {
                    FaultModel::AnyTime => beside_a_spoiler(&device, trial.pool, live),
                    FaultModel::Confined | FaultModel::Free => live(),
                };
            }
            Err(_) => outcome.failures += 1,
        }
        assert_eq!(trial.pool.available(), trial.pool.buffers(), "buffers lost");
    }
    outcome.faults = device.with(|adversary, _| adversary.faults);
    outcome
}

/// A replacement device in the same slot, which continues the plan of the old one.
fn replaced<M: Model>(old: &FakeDevice<Adversary<M>>, honest: M) -> FakeDevice<Adversary<M>> {
    old.with(|adversary, _| {
        let none = Choices::Bytes(Vec::new().into_iter());
        let choices = std::mem::replace(&mut adversary.choices, none);
        let faults = adversary.faults;
        FakeDevice::new(Adversary {
            faults,
            ..Adversary::new(honest, adversary.fault_model.by(choices))
        })
    })
}

/// Runs `work` while a second thread overwrites the rings of the device.
fn beside_a_spoiler<M: Model, T>(
    device: &FakeDevice<Adversary<M>>,
    pool: &Mempool,
    work: impl FnOnce() -> T,
) -> T {
    /// Ends the second thread, also when `work` panics.
    struct Over<'a>(&'a AtomicBool);

    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    let seed = device.with(|adversary, _| adversary.choices.number());
    let (begun, over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut choices = Choices::Seeded(seed);
            while !over.load(Ordering::Relaxed) {
                device.with(|adversary, world| {
                    adversary.spoil(world, pool.region(), &mut choices);
                });
                begun.store(true, Ordering::Relaxed);
                // Slow enough that some frames are intact, so that the rest of the driver runs too.
                for _ in 0..choices.below(4096) {
                    std::hint::spin_loop();
                }
            }
        });
        let _over = Over(&over);
        while !begun.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        work()
    })
}

/// One session of the port, from start to stop.
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
    let confined = device.with(|adversary, _| adversary.fault_model == FaultModel::Confined);
    let mut canaries = Canaries::default();
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
                let accounted = n as u64 + after.dropped_total() - before.dropped_total();
                assert_eq!(
                    after.from_wire - before.from_wire,
                    accounted,
                    "frames counted"
                );
                burst
                    .iter()
                    .for_each(|frame| look_at(frame, trial.shortest));
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
            56 => {
                assert!(
                    !confined || canaries.is_intact(),
                    "a buffer that was not posted"
                );
                canaries.exchange(trial.pool);
            }
            55 if below(256) == 255 => device.unplug(),
            _ => device.with(Adversary::act),
        }
    }
    let received: Vec<_> = rx.iter().map(RxQueue::tally).collect();
    let sent: Vec<_> = tx.iter().map(TxQueue::sent).collect();
    drop(cache);
    let stopped = port.stop(rx, tx);
    assert!(
        !confined || canaries.is_intact(),
        "a buffer that was not posted"
    );
    drop(canaries);
    let mut balance = Balance::default();
    for view in received {
        balance.add(&view.balance());
    }
    // Added, as the driver may have counted deliveries of its own.
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
fn look_at(frame: &Mbuf, shortest: usize) {
    assert!(frame.total_len() >= shortest, "a frame of no length");
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
