//! The hot-path guard on a port whose device is a [fake](crate::fake): after the start, a poll loop
//! neither allocates, nor frees, nor enters the kernel, nor reads a register. Work of the device
//! itself is not counted.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)] // a panic is how a test fails

use pollux_mempool::{Burst, Mbuf};
use pollux_pmd::clock::{ClockChoice, TscClock};
use pollux_pmd::driver::Driver;
use pollux_pmd::ledger::{Ledger, Tally};
use pollux_pmd::net::MacAddr;
use pollux_pmd::port::{Port, PortConfig, RxState, StartedPort};

use crate::fake::{FakeDevice, Model, register_reads};
use crate::guard::listen;
use crate::ports::pool;

/// Longest frame, in several buffers.
const LONGEST: usize = 9000;

/// Runs a port in a loop that receives and sends: frames of all lengths, in one buffer and in
/// several, of its pool and of another; bursts that are empty, rings that are full, a pool that is
/// empty. `open` takes frames of `LONGEST` bytes; `arrive` has one arrive.
pub fn assert_only_work<M: Model>(
    device: &FakeDevice<M>,
    open: impl FnOnce() -> Box<dyn Driver>,
    arrive: impl Fn(&FakeDevice<M>, &[u8]) + Sync,
) {
    let reads = register_reads_of_a_run(device, open, arrive);
    assert_eq!(reads, 0, "polls read registers");
}

/// As [`assert_only_work`], for a device whose polls have to read registers, since its rings have no
/// descriptors in memory.
pub fn assert_only_work_and_reads<M: Model>(
    device: &FakeDevice<M>,
    open: impl FnOnce() -> Box<dyn Driver>,
    arrive: impl Fn(&FakeDevice<M>, &[u8]) + Sync,
) {
    register_reads_of_a_run(device, open, arrive);
}

/// Runs the port; returns the number of register reads by its polls.
fn register_reads_of_a_run<M: Model>(
    device: &FakeDevice<M>,
    open: impl FnOnce() -> Box<dyn Driver>,
    arrive: impl Fn(&FakeDevice<M>, &[u8]) + Sync,
) -> u64 {
    if TscClock::select(ClockChoice::Tsc).is_err() {
        println!(
            "skipped: the kernel's clock is in use, as neither CPU nor kernel trusts the other"
        );
        return 0;
    }
    let (pool, other) = (pool(512, 2048), pool(512, 2048));
    let config = PortConfig {
        ring: 64,
        ..PortConfig::new(pool.clone())
    };
    // Before the thread is observed, as the driver may start threads of its own.
    let port = Port::new("quiet", open()).configure(config).unwrap();
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = port.start().unwrap();
    assert!(
        rx[0].is_padded() && tx[0].is_padded(),
        "queues share cache lines"
    );
    let MacAddr(station) = port.capabilities().mac.unwrap();
    let (mut ledger, mut sink) = (Ledger::new(), Tally::new());
    ledger.add("rx", rx[0].tally());
    ledger.add("sink", sink.view());
    let sent = tx[0].sent();
    let ((taken, reads), noise) = listen(|ear| {
        let (mut cache, mut others) = (pool.cache(64).unwrap(), other.cache(64).unwrap());
        let frames = [60, 64, 333, 1514, 2048, 2049, LONGEST].map(|len| {
            let mut frame = vec![0x5a; len];
            frame[..6].copy_from_slice(&station);
            frame
        });
        let mut burst = Burst::<32>::new();
        let mut taken = 0;
        let read_before = register_reads();
        ear.during(|| {
            for round in 0..2000_usize {
                crate::guard::aside(|| {
                    // Now and then more than there is room for, and then nothing.
                    let count = match round % 50 {
                        0 => 200,
                        1..4 => 0,
                        _ => 1 + round % 5,
                    };
                    for n in 0..count {
                        arrive(device, &frames[(round + n) % frames.len()]);
                    }
                    // A driver that read registers at a period would read them now.
                    device.with(|_, world| world.now += 20_000_000);
                });
                let mut kept = Burst::<512>::new();
                if round % 100 == 99 {
                    cache.alloc_burst(&mut kept, 512);
                }
                while rx[0].rx(&mut cache, &mut burst) > 0 {
                    sink.count_delivered(burst.len() as u64);
                    cache.free_burst(&mut burst);
                }
                assert_eq!(rx[0].state(), RxState::Live);
                cache.free_burst(&mut kept);
                for n in 0..round % 33 {
                    let bytes = &frames[(round * 7 + n) % frames.len()];
                    let cache = if n % 8 == 7 { &mut others } else { &mut cache };
                    let frame: Option<Mbuf> = cache.alloc_from(bytes);
                    if let Some(Err(frame)) = frame.map(|frame| burst.push(frame)) {
                        cache.free(frame);
                    }
                }
                taken += tx[0].tx(&mut cache, &mut burst) as u64;
                burst.clear();
            }
        });
        (taken, register_reads() - read_before)
    });
    noise.assert_none();
    let read_before = register_reads();
    let _ = port.link();
    assert!(register_reads() > read_before, "reads are counted");
    port.stop(rx, tx).unwrap();
    assert_eq!(sent.packets() + sent.errors(), taken);
    let balance = ledger.check().unwrap();
    assert!(balance.delivered > 3000 && taken > 3000, "{balance}");
    for pool in [pool, other] {
        assert_eq!(pool.available(), pool.buffers());
    }
    reads
}
