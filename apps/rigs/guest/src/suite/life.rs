//! Links that go, ports that stop, processes and devices that vanish.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Result, ensure};
use pollux_pmd::mempool::Burst;
use pollux_pmd::net::MacAddr;
use pollux_pmd::{Ledger, Tally};
use serde_json::json;

use crate::bench::Bench;
use crate::control::Control;
use crate::nic::{Nic, PATIENCE, wait_until};
use crate::reflector::Reflector;
use crate::rig::{DIRECTIONS, Direction, End, IP_A, IP_B, Rig, Setup, check_ledger, pool};
use crate::test::Test;
use crate::wake;
use crate::wire::{Sender, plain};

pub(crate) const LINK: &[Test] = &[Test {
    name: "link",
    shows: "a link that goes down and comes back is reported, and carries frames again",
    run: link,
}];

pub(crate) const SLEEP: &[Test] = &[Test {
    name: "sleep",
    shows: "a loop that sleeps is woken by the frame that comes, and has it",
    run: sleep,
}];

pub(crate) const LIFE: &[Test] = &[
    Test {
        name: "restart",
        shows: "a port stops and starts 100 times, with traffic each time (igb: each tenth)",
        run: restart,
    },
    Test {
        name: "killed",
        shows: "a process is killed in the middle of traffic, which goes on: its device can be used again",
        run: killed,
    },
    Test {
        name: "two-processes",
        shows: "a process on each of the two devices, traffic both ways",
        run: two_processes,
    },
    Test {
        name: "reset",
        shows: "a device that is reset under traffic costs frames but no buffer, and starts again",
        run: reset,
    },
];

pub(crate) const OVERRUN: &[Test] = &[Test {
    name: "overrun",
    shows: "a port that is not polled for a while goes on, and has lost no buffer",
    run: overrun,
}];

pub(crate) const UNPLUG: &[Test] = &[Test {
    name: "unplug",
    shows: "a device that is unplugged under traffic is noticed; plugged in again, it works",
    run: unplug,
}];

fn link(bench: &Bench) -> Result<()> {
    let mut control = Control::open()?;
    let mut rig = Rig::open(bench, Setup::default())?;
    for round in 0..3 {
        let before = rig.a.port.link().changes;
        control.set_link("a", false)?;
        wait_until("the link of `a` is down", || !rig.a.port.link().up)?;
        control.set_link("a", true)?;
        wait_until("the link of `a` is up", || rig.a.port.link().up)?;
        let changes = rig.a.port.link().changes - before;
        ensure!(
            changes == 2,
            "round {round}: {changes} changes were counted, not 2"
        );
        for direction in DIRECTIONS {
            rig.exchange(direction, 500, &[64, 1518])?;
        }
    }
    rig.finish()
}

fn restart(bench: &Bench) -> Result<()> {
    let mut rig = Rig::open(bench, Setup::default())?;
    // QEMU's 82576 brings its link up half a second after each reset.
    let times = if bench.machine.name == "igb" { 10 } else { 1 };
    for _ in 0..100 / times {
        rig = rig.restart_a(times)?;
        for direction in DIRECTIONS {
            rig.exchange(direction, 50, &[64, 1518])?;
        }
    }
    rig.close()
}

/// How long it took is in the machine's log.
fn sleep(bench: &Bench) -> Result<()> {
    const COUNT: usize = 25;
    let pool = pool(Setup::default().buffers)?;
    let [mut a, mut b] = End::open_both(bench, &pool, Setup::default())?;
    for _ in DIRECTIONS {
        let mut ledger = Ledger::new();
        let (times, sleeps) = wake::measure(&mut a, &mut b, &pool, &mut ledger, COUNT)?;
        println!("{}; {sleeps} sleeps", wake::show(&times));
        ensure!(
            sleeps >= COUNT as u64,
            "the loop has slept {sleeps} times, for {COUNT} frames"
        );
        println!("{}", ledger.check()?);
        (a, b) = (b, a);
    }
    a.stop_and_compare()?;
    b.stop_and_compare()?;
    ensure!(
        pool.available() == pool.buffers(),
        "buffers are missing after the stop"
    );
    Ok(())
}

/// Drops the frames in flight, and has the ports carry frames. What QEMU keeps behind a full
/// ring a later frame may pass, but not what is in the ring: nothing is kept when nothing comes first.
fn carries_frames(rig: &mut Rig) -> Result<()> {
    for direction in DIRECTIONS {
        while !rig.pass(direction, &[])?.is_empty() {}
    }
    for direction in DIRECTIONS {
        rig.exchange(direction, 1000, &[64, 1518])?;
    }
    Ok(())
}

/// Address of `a`, as `scripts/qemu-test` gives it.
const A: [u8; 6] = [2, 0, 0, 0, 0, 0x0a];

fn killed(bench: &Bench) -> Result<()> {
    const ENOUGH: u64 = 1000;
    /// Frames for the dead: below the 10000 that QEMU keeps for a device that does not receive.
    const LATE: usize = 1000;
    let owner = bench.machine.owner;
    for _ in 0..3 {
        let pool = pool(Setup::default().buffers)?;
        let mut b = End::open(owner, &bench.b, &pool, Setup::default())?;
        let mut tally = Tally::new();
        let near = format!("{}/{IP_A}:9000", MacAddr(A));
        let far = format!("{}/{IP_B}:9000", b.mac()?);
        let mut child = Command::new("pollux-interop")
            .args([
                "send",
                "--count",
                "1000000000",
                "--near",
                &near,
                "--far",
                &far,
            ])
            .args(["--port", &owner.spec(&bench.a)?])
            .spawn()?;
        let mut cache = pool.cache(64)?;
        let mut burst = Burst::<32>::new();
        let mut received = 0;
        let came = wait_until("the process sends", || {
            let n = b.rx[0].rx(&mut cache, &mut burst) as u64;
            cache.free_burst(&mut burst);
            tally.count_delivered(n);
            received += n;
            received >= ENOUGH
        });
        child.kill()?;
        child.wait()?;
        came?;
        // The device has no owner now, and the sender continues.
        let late = plain(MacAddr(A), b.mac()?);
        let (mut sender, mut took, mut refused) = (Sender::of(late.clone()), 0, 0);
        let began = Instant::now();
        // Behind a device that does not receive, QEMU's virtio-net takes no more from its ring.
        while took < LATE && refused < 1000 && began.elapsed() < PATIENCE {
            let more = sender.send(&mut b.tx[0], &mut cache);
            took += more;
            refused = if more == 0 { refused + 1 } else { 0 };
            tally.count_delivered(b.rx[0].rx(&mut cache, &mut burst) as u64);
            cache.free_burst(&mut burst);
        }
        ensure!(took > 0, "nothing was sent to the dead");
        drop((sender, cache));
        let a = End::open(owner, &bench.a, &pool, Setup::default())?;
        let mut rig = Rig::of(a, b, pool);
        rig.ledger.add("before", tally.view());
        // What the wire has kept comes now, whole, or never. Of QEMU's none has kept any so far, not
        // even virtio-net's, which takes no more than its ring's worth until there is a receiver.
        let came = rig.pass(Direction::BtoA, &[])?;
        println!("{} of {took} frames came late", came.len());
        ensure!(
            came.iter().all(|frame| frame.bytes == late),
            "of {} frames that came late some are not those that were sent",
            came.len()
        );
        carries_frames(&mut rig)?;
        rig.close()?;
    }
    Ok(())
}

fn two_processes(bench: &Bench) -> Result<()> {
    let other = Reflector::start(bench.machine, &bench.b, "")?;
    let setup = Setup {
        queues: bench.machine.queues,
        ..Setup::default()
    };
    let (pool, mut ledger) = (pool(setup.buffers)?, Ledger::new());
    let mut a = End::open(bench.machine.owner, &bench.a, &pool, setup)?;
    a.exchange_with_reflector(other.station, &pool, &mut ledger, 10_000)?;
    a.stop_and_compare()?;
    other.end()?;
    check_ledger(&pool, &ledger)
}

/// Traffic both ways while something happens to `a`, and for as long as it says.
fn under_traffic(rig: &mut Rig, mut done: impl FnMut(&Rig) -> Result<bool>) -> Result<()> {
    let mut tally = Tally::new();
    rig.ledger.add("loop", tally.view());
    let mut cache = rig.pool.cache(256)?;
    let mut senders = [
        Sender::new(rig.b.mac()?, rig.a.mac()?),
        Sender::new(rig.a.mac()?, rig.b.mac()?),
    ];
    let mut burst = Burst::<32>::new();
    while !done(rig)? {
        for (end, sender) in [&mut rig.a, &mut rig.b].into_iter().zip(&mut senders) {
            sender.send(&mut end.tx[0], &mut cache);
            tally.count_delivered(end.rx[0].rx(&mut cache, &mut burst) as u64);
            cache.free_burst(&mut burst);
        }
    }
    Ok(())
}

fn received(end: &End) -> u64 {
    end.rx[0].tally().balance().from_wire
}

/// Traffic both ways, in the middle of which the NIC of `a` is reset.
pub(super) fn reset_under_traffic(rig: &mut Rig, nic: &Nic) -> Result<()> {
    let path = nic.folder().join("reset");
    let mut resetting = None;
    let mut rounds = 0;
    under_traffic(rig, |rig| {
        // From another thread: it takes its time.
        if resetting.is_none() && received(&rig.a).min(received(&rig.b)) > 1000 {
            let path = path.clone();
            resetting = Some(thread::spawn(move || fs::write(path, "1")));
        }
        let over = resetting
            .as_ref()
            .is_some_and(thread::JoinHandle::is_finished);
        rounds += u32::from(over);
        Ok(rounds > 1000)
    })?;
    let ended = resetting.map(thread::JoinHandle::join);
    let written = matches!(ended, Some(Ok(Ok(()))));
    ensure!(written, "cannot write {}: {ended:?}", path.display());
    Ok(())
}

fn reset(bench: &Bench) -> Result<()> {
    for _ in 0..3 {
        let mut rig = Rig::open(bench, Setup::default())?;
        reset_under_traffic(&mut rig, &bench.a)?;
        rig.close()?;
        let mut rig = Rig::open(bench, Setup::default())?;
        carries_frames(&mut rig)?;
        rig.close()?;
    }
    Ok(())
}

/// What was lost is in no ledger: not every device counts it.
fn overrun(bench: &Bench) -> Result<()> {
    const COUNT: u64 = 4000;
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
        rig.ledger.add("loop", tally.view());
        let mut cache = rig.pool.cache(256)?;
        let (from, to) = direction.of(&mut rig.a, &mut rig.b);
        let mut sender = Sender::new(to.mac()?, from.mac()?);
        let sent = from.tx[0].sent();
        wait_until("more is sent than a ring holds", || {
            sender.send(&mut from.tx[0], &mut cache);
            sent.packets() >= COUNT
        })?;
        let mut burst = Burst::<32>::new();
        while to.rx[0].rx(&mut cache, &mut burst) > 0 {
            tally.count_delivered(burst.len() as u64);
            cache.free_burst(&mut burst);
        }
        let came = received(to);
        ensure!(
            came >= ring as u64 - 1,
            "{direction:?}: the ring held {came} frames, not {ring}"
        );
    }
    carries_frames(&mut rig)?;
    rig.close()
}

fn unplug(bench: &Bench) -> Result<()> {
    let mut control = Control::open()?;
    for _ in 0..2 {
        let mut rig = Rig::open(bench, Setup::default())?;
        let began = Instant::now();
        let mut asked = false;
        under_traffic(&mut rig, |rig| {
            if !asked && received(&rig.a).min(received(&rig.b)) > 1000 {
                control.monitor("device_del", &json!({"id": "a"}))?;
                asked = true;
            }
            ensure!(
                began.elapsed() < PATIENCE,
                "the port's device is still there after it was asked for"
            );
            Ok(asked && rig.a.port.link().gone)
        })?;
        rig.close()?;
        let folder = bench.a.folder();
        wait_until("the device is gone", || !folder.exists())?;
        control.monitor("device_add", &json!({"id": "a"}))?;
        wait_until("the kernel has the device again", || {
            bench.a.interface().is_ok()
        })?;
        let again = Bench::set_up(bench.machine)?;
        let mut rig = Rig::open(&again, Setup::default())?;
        carries_frames(&mut rig)?;
        rig.close()?;
    }
    Ok(())
}
