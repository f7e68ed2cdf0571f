//! Virtual functions (VFs) of the first NIC, each in a process of its own; the second NIC is a third
//! party on the same wire.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::mempool::Burst;
use pollux_pmd::net::MacAddr;
use pollux_pmd::{Ledger, Tally};

use super::life::reset_under_traffic;
use super::trespass::Trespasser;
use crate::bench::Bench;
use crate::nic::Owner;
use crate::nic::{Nic, PATIENCE, run, wait_until};
use crate::reflector::Reflector;
use crate::rig::{Direction, End, Rig, Setup, check_ledger, pool};
use crate::test::Test;
use crate::wire::{Sender, plain};

pub(crate) const SRIOV: &[Test] = &[
    Test {
        name: "kernel-pf",
        shows: "of the kernel's physical function: two processes, each with a virtual one",
        run: kernel_pf,
    },
    Test {
        name: "our-pf",
        shows: "of ours: three processes; the virtual functions have what it gives them",
        run: our_pf,
    },
    Test {
        name: "vf-isolated",
        shows: "a virtual function receives what is for its address in its VLANs, and nothing else",
        run: isolated,
    },
    Test {
        name: "vf-restarts",
        shows: "one in a VLAN loses nothing while its neighbour is killed and starts, again and again",
        run: restarts,
    },
    Test {
        name: "vf-reset",
        shows: "one that is reset under traffic costs frames but no buffer, and its neighbour nothing",
        run: reset,
    },
    Test {
        name: "vf-seven",
        shows: "of seven, as many as there can be, the first and the last",
        run: seven,
    },
    Test {
        name: "pf-leaves",
        shows: "a physical function that is stopped under traffic takes the link of the others along",
        run: leaves,
    },
    Test {
        name: "pf-leaves-alone",
        shows: "one does not wait for ever for a process that keeps its function, and comes back",
        run: leaves_alone,
    },
    Test {
        name: "vf-trespass",
        shows: "a function has neither the memory nor the address of another, which goes on undisturbed",
        run: trespass,
    },
];

const COUNT: u64 = 3000;

/// Who shows this may have a virtual function of a port of ours.
const TOKEN: &str = ",vf_token=6e1ba6ea-3a01-4f0c-8b8c-0a1b2c3d4e5f";
/// Of the port on the physical function.
const TWO: &str = ",vfs=2,vf-macs=02:00:00:00:01:01+02:00:00:00:01:02";
const GIVEN: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 1, 1]), MacAddr([2, 0, 0, 0, 1, 2])];

/// A virtual function of a NIC.
fn function(of: &Nic, number: u32) -> Result<Nic> {
    let link = of.folder().join(format!("virtfn{number}"));
    let target = fs::read_link(&link).with_context(|| format!("no {}", link.display()))?;
    let address = target.file_name().context("a link to nothing")?;
    let address = address.to_string_lossy().into_owned();
    Ok(Nic { address })
}

/// The first two of them.
fn functions(of: &Nic) -> Result<[Nic; 2]> {
    Ok([function(of, 0)?, function(of, 1)?])
}

/// Frames to the port of another process, all of which come back.
fn exchange(near: &Nic, options: &str, station: MacAddr) -> Result<()> {
    let setup = Setup {
        options,
        ..Setup::default()
    };
    let (pool, mut ledger) = (pool(setup.buffers)?, Ledger::new());
    let mut end = End::open(Owner::Program, near, &pool, setup)?;
    end.exchange_with_reflector(station, &pool, &mut ledger, COUNT)?;
    end.stop_and_compare()?;
    check_ledger(&pool, &ledger)
}

/// Virtual functions that the kernel has made; they go with this.
struct Made<'a>(&'a Nic);

impl<'a> Made<'a> {
    fn two(of: &'a Nic) -> Result<Self> {
        fs::write(of.folder().join("sriov_numvfs"), "2")?;
        Ok(Self(of))
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        let _ = fs::write(self.0.folder().join("sriov_numvfs"), "0");
    }
}

fn kernel_pf(bench: &Bench) -> Result<()> {
    bench.a.give_to(Owner::Kernel)?;
    bench.a.bring_up()?;
    let _made = Made::two(&bench.a)?;
    let [near, far] = functions(&bench.a)?;
    for function in [&near, &far] {
        function.give_to(Owner::Program)?;
    }
    let other = Reflector::start(bench.machine, &far, "")?;
    exchange(&near, "", other.station)?;
    other.end()
}

/// A process with the physical function, of which two virtual ones are made.
fn start_pf(bench: &Bench, more: &str) -> Result<Reflector> {
    start_pf_with(bench, &format!("{TWO}{more}"))
}

fn start_pf_with(bench: &Bench, options: &str) -> Result<Reflector> {
    // The kernel's administrator has to say so.
    fs::write("/sys/module/vfio_pci/parameters/enable_sriov", "1")?;
    Reflector::start(bench.machine, &bench.a, &format!("{options}{TOKEN}"))
}

/// Ends that process; its virtual functions go with it.
fn end_pf(bench: &Bench, pf: Reflector) -> Result<()> {
    pf.end()?;
    let first: &Path = &bench.a.folder().join("virtfn0");
    wait_until("the virtual functions are gone", || !first.exists())
}

fn our_pf(bench: &Bench) -> Result<()> {
    let pf = start_pf(bench, "")?;
    let [near, far] = functions(&bench.a)?;
    let other = Reflector::start(bench.machine, &far, TOKEN)?;
    ensure!(
        other.station == GIVEN[1],
        "the other process was given {}, not {}",
        other.station,
        GIVEN[1]
    );
    for station in [other.station, pf.station] {
        exchange(&near, TOKEN, station)?;
    }
    other.end()?;
    end_pf(bench, pf)
}

/// A frame, in a VLAN.
fn tagged(mut frame: Vec<u8>, vlan: u16) -> Vec<u8> {
    let [high, low] = vlan.to_be_bytes();
    frame.splice(12..12, [0x81, 0x00, high, low]);
    frame
}

/// The other process has the first function, this one has the second, and the third party.
fn isolated(bench: &Bench) -> Result<()> {
    let pf = start_pf(bench, "")?;
    let [first, second] = functions(&bench.a)?;
    ensure!(
        first.group()? != second.group()?,
        "both functions are in one IOMMU group, with one set of tables"
    );
    let other = Reflector::start(bench.machine, &first, &format!(",vlans=100{TOKEN}"))?;
    let setup = Setup::default();
    let pool = pool(setup.buffers)?;
    let options = &format!(",vlans=200{TOKEN}");
    let a = End::open(Owner::Program, &second, &pool, Setup { options, ..setup })?;
    let b = End::open(Owner::Program, &bench.b, &pool, setup)?;
    let (own, third) = (a.mac()?, b.mac()?);
    let mut rig = Rig::of(a, b, pool);
    let to = |station| plain(station, third);
    let for_other = [
        to(other.station),
        tagged(to(other.station), 100),
        tagged(to(MacAddr::BROADCAST), 100),
    ];
    let for_us = [tagged(to(own), 200), tagged(to(MacAddr::BROADCAST), 200)];
    let for_none = [tagged(to(other.station), 200), tagged(to(own), 100)];
    let sent = [&for_none[..], &for_other, &for_us].concat();
    let came = rig.pass(Direction::BtoA, &sent)?;
    ensure!(
        came.iter().map(|it| &it.bytes).eq(&for_us),
        "{} frames came of {} that are for this function, or others came",
        came.len(),
        for_us.len()
    );
    // What the other one sends back shows what it received.
    let mut came = Vec::new();
    let began = Instant::now();
    while came.len() < for_other.len() {
        came.extend(rig.pass(Direction::AtoB, &[])?);
        ensure!(
            began.elapsed() < PATIENCE,
            "the other function received {} frames, not {}",
            came.len(),
            for_other.len()
        );
    }
    let back = for_other.into_iter().map(|mut frame| {
        frame[..6].copy_from_slice(&third.0);
        frame[6..12].copy_from_slice(&other.station.0);
        frame
    });
    ensure!(
        came.into_iter().map(|it| it.bytes).eq(back),
        "the other function received what was not for it"
    );
    rig.finish()?;
    other.end()?;
    end_pf(bench, pf)
}

/// The third party gets their frames with the tags that the device puts on, and sends them back
/// with those: without one, none would come back.
fn restarts(bench: &Bench) -> Result<()> {
    /// Of the neighbour, at least.
    const TIMES: usize = 4;
    let pf = start_pf(bench, ",vf-vlans=100+200")?;
    let [near, far] = functions(&bench.a)?;
    let third = Reflector::start(bench.machine, &bench.b, "")?;
    let over = StopFlag::new();
    thread::scope(|scope| {
        let neighbour = scope.spawn(|| -> Result<()> {
            for time in 0.. {
                if time >= TIMES && over.is_set() {
                    break;
                }
                let process = Reflector::start(bench.machine, &far, TOKEN)?;
                if time % 2 == 0 {
                    process.kill()?;
                } else {
                    process.end()?;
                }
            }
            Ok(())
        });
        let mut exchanged = Ok(());
        while exchanged.is_ok() && !(over.is_set() && neighbour.is_finished()) {
            exchanged = exchange(&near, TOKEN, third.station);
            over.stop();
        }
        let neighbour = neighbour.join();
        ensure!(matches!(neighbour, Ok(Ok(()))), "{neighbour:?}");
        exchanged
    })?;
    exchange(&far, TOKEN, third.station)?;
    third.end()?;
    end_pf(bench, pf)
}

/// This process has the first function, and the third party; another process has the second.
fn reset(bench: &Bench) -> Result<()> {
    let pf = start_pf(bench, "")?;
    let [near, far] = functions(&bench.a)?;
    let other = Reflector::start(bench.machine, &far, TOKEN)?;
    let setup = Setup::default();
    for _ in 0..2 {
        let pool = pool(setup.buffers)?;
        let options = TOKEN;
        let a = End::open(Owner::Program, &near, &pool, Setup { options, ..setup })?;
        let b = End::open(Owner::Program, &bench.b, &pool, setup)?;
        let mut rig = Rig::of(a, b, pool);
        reset_under_traffic(&mut rig, &near)?;
        rig.close()?;
    }
    exchange(&near, TOKEN, other.station)?;
    other.end()?;
    end_pf(bench, pf)
}

fn seven(bench: &Bench) -> Result<()> {
    let pf = start_pf_with(bench, ",vfs=7")?;
    let (first, last) = (function(&bench.a, 0)?, function(&bench.a, 6)?);
    let other = Reflector::start(bench.machine, &last, TOKEN)?;
    exchange(&first, TOKEN, other.station)?;
    other.end()?;
    end_pf(bench, pf)
}

fn leaves(bench: &Bench) -> Result<()> {
    let pf = start_pf(bench, "")?;
    let [near, _] = functions(&bench.a)?;
    let setup = Setup {
        options: TOKEN,
        ..Setup::default()
    };
    let (pool, mut ledger) = (pool(setup.buffers)?, Ledger::new());
    let mut end = End::open(Owner::Program, &near, &pool, setup)?;
    end.exchange_with_reflector(pf.station, &pool, &mut ledger, COUNT)?;
    let mut tally = Tally::new();
    ledger.add("loop", tally.view());
    let mut sender = Sender::new(pf.station, end.mac()?);
    thread::scope(|scope| {
        // It waits until its virtual functions are free.
        let leaving = scope.spawn(|| end_pf(bench, pf));
        let (mut cache, mut burst) = (pool.cache(256)?, Burst::<32>::new());
        let told = wait_until("the link is down", || {
            sender.send(&mut end.tx[0], &mut cache);
            tally.count_delivered(end.rx[0].rx(&mut cache, &mut burst) as u64);
            cache.free_burst(&mut burst);
            !end.port.link().up
        });
        drop((sender, cache));
        drop(end.stop()?);
        told?;
        let left = leaving.join();
        ensure!(matches!(left, Ok(Ok(()))), "{left:?}");
        Ok(())
    })?;
    check_ledger(&pool, &ledger)
}

/// A process keeps its function, whatever the physical function requests.
fn leaves_alone(bench: &Bench) -> Result<()> {
    let pf = start_pf(bench, "")?;
    let [kept, _] = functions(&bench.a)?;
    let setup = Setup {
        options: TOKEN,
        ..Setup::default()
    };
    let (pool, mut ledger) = (pool(setup.buffers)?, Ledger::new());
    let end = End::open(Owner::Program, &kept, &pool, setup)?;
    let _tally = end.count_into(&mut ledger);
    pf.end()?;
    wait_until("the link is down", || !end.port.link().up)?;
    ensure!(kept.folder().exists(), "the function went all the same");
    drop(end.stop()?);
    check_ledger(&pool, &ledger)?;
    our_pf(bench)
}

/// Descriptors with addresses that only the other process has mapped.
fn trespass(bench: &Bench) -> Result<()> {
    let pf = start_pf(bench, "")?;
    let [first, second] = functions(&bench.a)?;
    let other = Reflector::start(bench.machine, &first, TOKEN)?;
    let (pool, mut ledger) = (pool(2048)?, Ledger::new());
    let mut third = End::open(Owner::Program, &bench.b, &pool, Setup::default())?;
    let _tally = third.count_into(&mut ledger);
    let own = pool.region();
    let start = own.as_ptr().addr().get() as u64;
    ensure!(
        !(start..start + own.len() as u64).contains(&other.memory),
        "both processes have their pools at {start:#x}: run it again"
    );
    let faulted = |how: &str| {
        let page = format!("fault addr {:#x}", other.memory);
        let fault = |line: &str| line.contains(how) && line.contains(&page);
        wait_until(&format!("the IOMMU tells of a {how} at {page}"), || {
            run(&["dmesg"]).is_ok_and(|said| said.lines().any(fault))
        })
    };
    let token = TOKEN.trim_start_matches(",vf_token=");
    let mut trespasser = Trespasser::new(&second, token, &pool)?;
    let mut cache = pool.cache(8)?;
    let mut burst = Burst::<1>::new();
    // Frames for it are to be written there.
    trespasser.receive_to(other.memory)?;
    let frame = plain(trespasser.station, third.mac()?);
    drop(burst.push(cache.alloc_from(&frame).context("the pool is empty")?));
    third.tx[0].tx(&mut cache, &mut burst);
    faulted("DMA Write")?;
    // What is there is to be sent.
    trespasser.send_from(other.memory)?;
    faulted("DMA Read")?;
    let came = third.rx[0].rx(&mut cache, &mut burst);
    ensure!(came == 0, "something of the other process came out");
    // Nor is it given the other's address.
    trespasser.is_not_given(other.station)?;
    drop((trespasser, cache));
    drop(third.stop()?);
    check_ledger(&pool, &ledger)?;
    exchange(&second, TOKEN, other.station)?;
    other.end()?;
    end_pf(bench, pf)
}
