//! Virtual functions (VFs) of the first NIC, each in a process of its own; the second NIC is a third
//! party on the same wire.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use pollux_pmd::Ledger;
use pollux_pmd::net::MacAddr;

use super::Test;
use crate::bench::Bench;
use crate::machine::Owner;
use crate::nic::{Nic, wait_until};
use crate::reflector::Reflector;
use crate::rig::{End, Setup, check_books, pool};

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
];

const COUNT: u64 = 3000;

/// Who shows this may have a virtual function of a port of ours.
const TOKEN: &str = ",vf_token=6e1ba6ea-3a01-4f0c-8b8c-0a1b2c3d4e5f";
/// Of the port on the physical function.
const TWO: &str = ",vfs=2,vf-macs=02:00:00:00:01:01+02:00:00:00:01:02";
const GIVEN: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 1, 1]), MacAddr([2, 0, 0, 0, 1, 2])];

/// The virtual functions that there are of a NIC.
fn functions(of: &Nic) -> Result<[Nic; 2]> {
    let function = |number: u32| {
        let link = of.folder().join(format!("virtfn{number}"));
        let target = fs::read_link(&link).with_context(|| format!("no {}", link.display()))?;
        let address = target.file_name().context("a link to nothing")?;
        let address = address.to_string_lossy().into_owned();
        anyhow::Ok(Nic { address })
    };
    Ok([function(0)?, function(1)?])
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
    check_books(&pool, &ledger)
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
    // The kernel's administrator has to say so.
    fs::write("/sys/module/vfio_pci/parameters/enable_sriov", "1")?;
    Reflector::start(bench.machine, &bench.a, &format!("{TWO}{more}{TOKEN}"))
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
