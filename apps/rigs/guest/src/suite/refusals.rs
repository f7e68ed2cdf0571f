//! What cannot be: each is refused with a message that says what to do.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::bench::Bench;
use crate::nic::Nic;
use crate::nic::Owner;
use crate::rig::{End, Setup, pool};
use crate::test::Test;

/// In a machine whose two NICs are functions of one device, in one IOMMU group.
pub(crate) const REFUSALS: &[Test] = &[
    Test {
        name: "absent",
        shows: "an address at which there is nothing",
        run: |_| refuse(&mut port("0000:77:00.0"), "there is no such PCI device"),
    },
    Test {
        name: "still-bound",
        shows: "a device that is bound to the kernel's driver",
        run: |bench| {
            bench.a.give_to(Owner::Kernel)?;
            let Nic { address } = &bench.a;
            refuse(&mut port(address), &format!("pollux bind {address}"))
        },
    },
    Test {
        name: "wrong-group",
        shows: "a device whose IOMMU group the kernel has a part of",
        run: |bench| {
            bench.b.give_to(Owner::Kernel)?;
            let Nic { address } = &bench.b;
            let expected = format!("bind these too: pollux bind {address}");
            refuse(&mut port(&bench.a.address), &expected)
        },
    },
    Test {
        name: "wrong-device",
        shows: "a device that no driver of ours knows",
        run: wrong_device,
    },
    Test {
        name: "taken",
        shows: "a device that another process has",
        run: taken,
    },
    Test {
        name: "no-permission",
        shows: "a user who may not open the group",
        run: |bench| {
            let group = bench.a.group()?;
            let expected = format!("chown USER /dev/vfio/{group}");
            refuse(port(&bench.a.address).uid(USER).gid(USER), &expected)
        },
    },
    Test {
        name: "memlock",
        shows: "a user who may not lock as much memory as the device needs",
        run: memlock,
    },
];

/// In a machine without an IOMMU.
pub(crate) const NO_IOMMU: &[Test] = &[
    Test {
        name: "bind-without-iommu",
        shows: "a device is not given to programs where no IOMMU holds it back",
        run: |bench| {
            let mut bind = Command::new("sh");
            bind.args(["/bin/bind", &bench.a.address]);
            refuse(&mut bind, "intel_iommu=on")
        },
    },
    Test {
        name: "port-without-iommu",
        shows: "nor is a port opened on it",
        run: |bench| refuse(&mut port(&bench.a.address), "intel_iommu=on"),
    },
];

/// In a machine without an IOMMU whose kernel hands out devices all the same.
pub(crate) const UNPROTECTED: &[Test] = &[
    Test {
        name: "not-asked-for",
        shows: "a port without an IOMMU is opened only where its specification says so",
        run: |bench| refuse(&mut port(&bench.a.address), "noiommu=on accepts"),
    },
    Test {
        name: "warned-of",
        shows: "who asks for it is warned of what the device can do",
        run: warned_of,
    },
    Test {
        name: "small-pages",
        shows: "nor without hugepages, which the kernel does not move",
        run: small_pages,
    },
];

/// In a machine whose kernel hands out devices by files of their own.
pub(crate) const OWN_FILES: &[Test] = &[
    Test {
        name: "own-file",
        shows: "a device is had by its own file and /dev/iommu, and by no group's",
        run: own_file,
    },
    Test {
        name: "own-file-taken",
        shows: "a device that another process has by its own file",
        run: taken,
    },
    Test {
        name: "own-file-memlock",
        shows: "a user who has the files, and may not lock as much memory as the device needs",
        run: |bench| {
            let own = bench.a.own_file()?;
            locks_too_little(bench, &["/dev/iommu", &own])
        },
    },
    Test {
        name: "own-file-no-permission",
        shows: "a user who may open neither the device's file nor the group's",
        run: |bench| {
            let group = bench.a.group()?;
            let expected = format!("chown USER /dev/vfio/{group}");
            refuse(port(&bench.a.address).uid(USER).gid(USER), &expected)
        },
    },
];

/// An unprivileged user.
const USER: u32 = 1000;

/// A program that opens the port on a device, with memory in ordinary pages.
fn port(address: &str) -> Command {
    let mut program = Command::new("pollux-interop");
    program.args(["receive", "--count", "1", "--seconds", "1"]);
    program.arg("--port").arg(format!("pci:{address}"));
    program
}

/// The program must end by itself, and say this at its end.
fn refuse(program: &mut Command, expected: &str) -> Result<()> {
    let output = program.output().context("cannot start it")?;
    let said = String::from_utf8_lossy(&output.stderr);
    print!("{said}");
    let last = said.trim().lines().last().unwrap_or_default();
    ensure!(
        output.status.code().is_some_and(|code| code > 0)
            && last.starts_with("error: ")
            && last.contains(expected),
        "{}, `{last}`, where `{expected}` was expected",
        output.status
    );
    Ok(())
}

/// The SATA controller of the chipset, for which the machine has no driver.
fn wrong_device(_: &Bench) -> Result<()> {
    let sata = Nic {
        address: "0000:00:1f.2".into(),
    };
    sata.give_to(Owner::Program)?;
    let expected = format!("pollux unbind {}", sata.address);
    let refused = refuse(&mut port(&sata.address), &expected);
    // The kernel has none either.
    let _ = sata.give_to(Owner::Kernel);
    refused
}

fn taken(bench: &Bench) -> Result<()> {
    let pool = pool(1024)?;
    let a = End::open(Owner::Program, &bench.a, &pool, Setup::default())?;
    refuse(&mut port(&bench.a.address), "another process has")?;
    drop(a.stop()?);
    Ok(())
}

fn memlock(bench: &Bench) -> Result<()> {
    let group = format!("/dev/vfio/{}", bench.a.group()?);
    locks_too_little(bench, &[&group])
}

/// A user has these files.
fn locks_too_little(bench: &Bench, files: &[&str]) -> Result<()> {
    let give_to = |user| {
        let mut files = files.iter();
        files.try_for_each(|file| {
            chown(file, Some(user), Some(user)).with_context(|| file.to_string())
        })
    };
    give_to(USER)?;
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -l 1024; exec \"$@\"", "sh"]);
    let program = port(&bench.a.address);
    limited.arg(program.get_program()).args(program.get_args());
    let refused = refuse(limited.uid(USER).gid(USER), "ulimit -l");
    give_to(0)?;
    refused
}

/// What becomes of the port is nothing to this test.
fn warned_of(bench: &Bench) -> Result<()> {
    let output = port(&format!("{},noiommu=on", bench.a.address)).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let address = &bench.a.address;
    let expected = format!("{address}: no IOMMU: it can write anywhere in memory");
    let is_warned = |line: &str| line.contains("WARN") && line.contains(&expected);
    ensure!(said.lines().any(is_warned), "no `{expected}` in: {said}");
    Ok(())
}

/// The machine's hugepages are gone behind it, as not all of them would come back: the last test.
fn small_pages(bench: &Bench) -> Result<()> {
    fs::write("/proc/sys/vm/nr_hugepages", "0")?;
    let mut program = port(&format!("{},noiommu=on", bench.a.address));
    refuse(&mut program, "/nr_hugepages")
}

/// By what this process has it, the links of its open files tell.
fn own_file(bench: &Bench) -> Result<()> {
    let pool = pool(1024)?;
    let a = End::open(Owner::Program, &bench.a, &pool, Setup::default())?;
    let mut open = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        // That of the folder itself is closed by now.
        open.extend(fs::read_link(entry?.path()));
    }
    let has = |file: &str| open.iter().any(|path| path == Path::new(file));
    let own = bench.a.own_file()?;
    ensure!(
        has(&own) && has("/dev/iommu"),
        "neither {own} nor /dev/iommu: {open:?}"
    );
    ensure!(!has("/dev/vfio/vfio"), "a container: {open:?}");
    drop(a.stop()?);
    Ok(())
}
