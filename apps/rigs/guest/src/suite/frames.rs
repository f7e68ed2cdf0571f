//! Frames of all kinds, both ways.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use pollux_interop::frames::{Frames, Kind, Returned};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::mempool::region::PageSize;
use pollux_pmd::mempool::{Burst, Mempool, PoolConfig};
use pollux_pmd::{Cause, Ledger, Tally};
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::SplitMix64;

use crate::bench::Bench;
use crate::nic::PATIENCE;
use crate::rig::{DIRECTIONS, End, IP_A, IP_B, Rig, Setup, check_ledger, endpoint, pool};
use crate::test::Test;
use crate::wire::{in_pieces, plain, reflect};

/// Shortest frame on Ethernet, and the longest that all of these devices take, with frame check
/// sequence.
const SIZES: std::ops::RangeInclusive<usize> = 64..=9018;

pub(crate) const FRAMES: &[Test] = &[
    Test {
        name: "sizes",
        shows: "frames of 64 bytes to 9 KB arrive whole, both ways",
        run: |bench| exchange(bench, Setup::default(), 2000, &sizes()),
    },
    Test {
        name: "random-sizes",
        shows: "frames of random sizes arrive whole",
        run: |bench| exchange(bench, Setup::default(), 4000, &random_sizes()),
    },
    Test {
        name: "wrap",
        shows: "rings of 64 descriptors go round a hundred times",
        run: |bench| {
            let ring = 64;
            exchange(
                bench,
                Setup {
                    ring,
                    ..Setup::default()
                },
                6400,
                &[64],
            )
        },
    },
    Test {
        name: "both-ways",
        shows: "two loops on two CPUs: one sends and checks, one sends back",
        run: both_ways,
    },
    Test {
        name: "vlan",
        shows: "tags of IEEE 802.1Q and 802.1ad arrive as they were sent",
        run: vlan,
    },
    Test {
        name: "checksums",
        shows: "a datagram with a wrong checksum is seen as such, and those around it are right",
        run: checksums,
    },
    Test {
        name: "short",
        shows: "frames below the shortest arrive padded",
        run: short,
    },
];

pub(crate) const QUEUES: &[Test] = &[Test {
    name: "queues",
    shows: "frames go out by all queues, and flows are shared out to all",
    run: queues,
}];

/// Where the kernel has been told to set such a page aside.
pub(crate) const LARGE_PAGE: &[Test] = &[Test {
    name: "large-page",
    shows: "frames arrive in a pool that is one page of 1 GiB",
    run: large_page,
}];

pub(crate) const FULL: &[Test] = &[Test {
    name: "full",
    shows: "of bursts that a ring has no room for the rest is refused; full rings lose nothing in silence",
    run: full,
}];

fn sizes() -> Vec<usize> {
    vec![
        64, 65, 66, 67, 127, 128, 256, 1024, 1514, 1518, 2047, 2048, 2049, 4096, 8192, 9018,
    ]
}

fn random_sizes() -> Vec<usize> {
    let mut random = SplitMix64::seed_from_u64(1);
    (0..512).map(|_| random.random_range(SIZES)).collect()
}

fn exchange(bench: &Bench, setup: Setup<'_>, count: u64, sizes: &[usize]) -> Result<()> {
    let mut rig = Rig::open(bench, setup)?;
    for direction in DIRECTIONS {
        rig.exchange(direction, count, sizes)?;
    }
    rig.finish()
}

fn large_page(bench: &Bench) -> Result<()> {
    let pool = Mempool::new(PoolConfig {
        pages: PageSize::Gib1,
        ..PoolConfig::default()
    })?;
    let setup = Setup::default();
    let [a, b] = End::open_both(bench, &pool, setup)?;
    let mut rig = Rig::of(a, b, pool);
    for direction in DIRECTIONS {
        rig.exchange(direction, 1000, &sizes())?;
    }
    rig.finish()
}

/// Of many stations: not every device looks at the ports of UDP.
fn queues(bench: &Bench) -> Result<()> {
    let queues = bench.machine.queues;
    let setup = Setup {
        queues,
        ..Setup::default()
    };
    let mut rig = Rig::open(bench, setup)?;
    for direction in DIRECTIONS {
        for station in 2..34 {
            let near = Ipv4Addr::new(10, 77, station, station);
            rig.exchange_from(near, direction, 100, &[64, 1518, 333, 9018, 64])?;
        }
    }
    let mut sent = Vec::new();
    for end in [&rig.a, &rig.b] {
        let spec = end.port.spec();
        for queue in &end.rx {
            let received = queue.tally().balance().from_wire;
            let number = queue.queue();
            ensure!(received > 0, "{spec}: queue {number} received nothing");
        }
        let queues = end.tx.iter();
        sent.extend(queues.map(|queue| (spec.to_owned(), queue.queue(), queue.sent())));
    }
    rig.finish()?;
    // The last ones count at the stop.
    for (spec, number, sent) in sent {
        ensure!(sent.packets() > 0, "{spec}: queue {number} sent nothing");
    }
    Ok(())
}

fn both_ways(bench: &Bench) -> Result<()> {
    let queues = bench.machine.queues;
    let setup = Setup {
        queues,
        ..Setup::default()
    };
    let pool = pool(setup.buffers)?;
    let [mut a, mut b] = End::open_both(bench, &pool, setup)?;
    let station = b.mac()?;
    let (mut ledger, mut ledger_of_b) = (Ledger::new(), Ledger::new());
    let stop = StopFlag::new();
    let ended = thread::scope(|scope| {
        let other = scope.spawn(|| reflect(&mut b, &pool, &mut ledger_of_b, &stop));
        let ended = a.exchange_with_reflector(station, &pool, &mut ledger, 10_000);
        stop.stop();
        (ended, other.join())
    });
    ended
        .0
        .with_context(|| format!("the other end: {}", ledger_of_b.balance()))?;
    ensure!(
        matches!(ended.1, Ok(Ok(()))),
        "the other end: {:?}",
        ended.1
    );
    a.stop_and_compare()?;
    b.stop_and_compare()?;
    check_ledger(&pool, &ledger_of_b)?;
    check_ledger(&pool, &ledger)
}

/// The receiver pauses. Behind a full ring QEMU keeps frames, which pass each other then. A burst
/// needs more descriptors than there are: QEMU's 82574 has sent what is in its ring when the write
/// of its tail returns, so that nothing else would fill it.
fn full(bench: &Bench) -> Result<()> {
    /// Below the 10000 frames that QEMU keeps.
    const COUNT: u32 = 4000;
    let ring = 64;
    let mut rig = Rig::open(
        bench,
        Setup {
            ring,
            ..Setup::default()
        },
    )?;
    for direction in DIRECTIONS {
        let mut tally = Tally::new();
        rig.ledger.add("judge", tally.view());
        let mut cache = rig.pool.cache(128)?;
        let (from, to) = direction.of(&mut rig.a, &mut rig.b);
        let mut frame = plain(to.mac()?, from.mac()?);
        let (mut out, mut burst) = (Burst::<32>::new(), Burst::<32>::new());
        let (mut sent, mut refused, mut stuck, mut seen) = (0, 0, 0, HashSet::new());
        let port = to.rx[0].tally();
        let dropped = || port.balance().dropped_total();
        let dropped_before = dropped();
        let began = Instant::now();
        while (seen.len() as u64) + dropped() - dropped_before < u64::from(COUNT) {
            while sent < COUNT && !out.is_full() {
                frame[14..18].copy_from_slice(&sent.to_be_bytes());
                let Some(mbuf) = in_pieces(&frame, &mut cache) else {
                    break;
                };
                let _ = out.push(mbuf);
                sent += 1;
            }
            let took = from.tx[0].tx(&mut cache, &mut out);
            refused += u32::from(!out.is_empty());
            stuck += u32::from(took == 0 && !out.is_empty());
            // Until all is sent, or the sender's ring stays full too.
            if (sent < COUNT || !out.is_empty()) && stuck < 1000 {
                continue;
            }
            to.rx[0].rx(&mut cache, &mut burst);
            for mbuf in burst.iter() {
                tally.count_delivered(1);
                let number = mbuf.data().get(14..).and_then(|rest| rest.first_chunk());
                let number = number.map_or(u32::MAX, |bytes| u32::from_be_bytes(*bytes));
                ensure!(
                    number < COUNT,
                    "{direction:?}: a frame came that was not sent"
                );
                ensure!(
                    seen.insert(number),
                    "{direction:?}: frame {number} came twice"
                );
            }
            cache.free_burst(&mut burst);
            to.rx[0].sync_counters();
            ensure!(
                began.elapsed() < PATIENCE,
                "{direction:?}: of {COUNT} frames {} came, {} were dropped; the sender's ring had \
                 no room {refused} times",
                seen.len(),
                dropped() - dropped_before
            );
        }
        println!("{direction:?}: the ring of the sender had no room {refused} times");
        ensure!(
            refused > 0,
            "{direction:?}: the ring of the sender has never been full"
        );
        cache.free_burst(&mut out);
    }
    rig.close()
}

fn vlan(bench: &Bench) -> Result<()> {
    let mut rig = Rig::open(bench, Setup::default())?;
    for direction in DIRECTIONS {
        let (from, to) = direction.of(&rig.a, &rig.b);
        let mut sent = Vec::new();
        for (length, tags) in [
            (60, &[[0x81, 0x00, 0x00, 0x01]][..]),
            (64, &[[0x81, 0x00, 0xef, 0xff]]),
            (1514, &[[0x81, 0x00, 0x60, 0x00]]),
            (1510, &[[0x88, 0xa8, 0x00, 0x0a], [0x81, 0x00, 0x00, 0x14]]),
        ] {
            let mut frame = plain(to.mac()?, from.mac()?);
            frame.extend((60..length).map(|at| at as u8));
            for tag in tags.iter().rev() {
                frame.splice(12..12, *tag);
            }
            sent.push(frame);
        }
        let received: Vec<_> = rig
            .pass(direction, &sent)?
            .into_iter()
            .map(|it| it.bytes)
            .collect();
        ensure!(
            received == sent,
            "{direction:?}: {received:02x?} came of {sent:02x?}"
        );
    }
    rig.finish()
}

fn checksums(bench: &Bench) -> Result<()> {
    /// Of an IPv4 header, and of UDP behind one without options.
    const PLACES: [usize; 2] = [24, 40];
    let mut rig = Rig::open(bench, Setup::default())?;
    for direction in DIRECTIONS {
        let (from, to) = direction.of(&rig.a, &rig.b);
        let ends = (endpoint(from.mac()?, IP_A), endpoint(to.mac()?, IP_B));
        let mut frames = Frames::new(ends, Kind::Udp, 1, &sizes(), Returned::Same)?;
        let mut sent = Vec::new();
        for number in 0..96 {
            let mut frame = frames.make(number).to_vec();
            // Every second one is left right.
            if number % 2 == 1 {
                frame[PLACES[(number / 2 % 2) as usize]] ^= 0x10;
            }
            sent.push(frame);
        }
        let (_, to) = direction.of(&rig.a, &rig.b);
        let port = to.rx[0].tally();
        let dropped = || port.balance().dropped_for(Cause::BadChecksum);
        let dropped_before = dropped();
        let received = rig.pass(direction, &sent)?;
        // The device drops and counts frames with wrong checksums, or marks them.
        let (good, bad): (Vec<_>, Vec<_>) = received.iter().partition(|it| it.parsed.is_ok());
        let told = bad
            .iter()
            .filter(|it| it.parsed == Err(Cause::BadChecksum))
            .count() as u64;
        ensure!(
            told + dropped() - dropped_before == 48,
            "{direction:?}: of 48 wrong frames {told} were told, {} dropped",
            dropped() - dropped_before
        );
        let right = sent.iter().step_by(2);
        ensure!(
            good.iter().map(|it| &it.bytes).eq(right),
            "{direction:?}: {} of 48 right frames came, or they were changed",
            good.len()
        );
    }
    rig.finish_with_drops().map(drop)
}

/// Frames that are shorter than Ethernet's shortest are padded by the sender (IEEE 802.3 section
/// 4.2.3.3).
fn short(bench: &Bench) -> Result<()> {
    let mut rig = Rig::open(bench, Setup::default())?;
    for direction in DIRECTIONS {
        let (from, to) = direction.of(&rig.a, &rig.b);
        let whole = plain(to.mac()?, from.mac()?);
        let sent: Vec<_> = [14, 15, 42, 59]
            .map(|length| whole[..length].to_vec())
            .into();
        for (it, sent) in rig.pass(direction, &sent)?.iter().zip(&sent) {
            let (head, padding) = it.bytes.split_at(sent.len().min(it.bytes.len()));
            ensure!(
                head == sent && padding.iter().all(|&byte| byte == 0),
                "{direction:?}: {:02x?} came of {sent:02x?}",
                it.bytes
            );
        }
    }
    rig.finish()
}
