//! `pollux doctor` as its users meet it: on this machine, on a made-up one, on a hostile one.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::text;

fn pollux(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
    command.arg("doctor").args(args).env_remove("RUST_LOG");
    command
}

/// The findings, which are complete whatever they are.
fn findings(output: &Output) -> Vec<Value> {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], 1);
    let findings = report["findings"].as_array().unwrap().clone();
    for level in ["ok", "note", "warn", "bad"] {
        let of_level = findings.iter().filter(|finding| finding["level"] == level);
        assert_eq!(report["levels"][level], of_level.count(), "{level}");
    }
    for finding in &findings {
        for field in ["topic", "check", "found", "why"] {
            let text = finding[field].as_str().unwrap();
            assert!(!text.is_empty() && !text.contains('\u{1b}'), "{finding}");
        }
        assert!(finding["why"].as_str().unwrap().ends_with('.'), "{finding}");
        let mends = finding.get("mend").is_some();
        match finding["level"].as_str().unwrap() {
            "ok" => assert!(!mends, "{finding}"),
            // Or it could not be looked at.
            "note" => {}
            _ => assert!(mends, "{finding}"),
        }
    }
    let status = output.status.code();
    let bad = report["levels"]["bad"] != 0;
    assert_eq!(status, Some(i32::from(bad)), "{}", text(&output.stderr));
    findings
}

/// A file or a folder.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    path: PathBuf,
    /// Kind and rights.
    mode: u32,
    /// Time of the last change, of whatever kind.
    changed: (i64, i64),
    content: Vec<u8>,
}

/// All that is below a folder.
fn everything_in(folder: &Path) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            found.push(Entry {
                path,
                mode: metadata.mode(),
                changed: (metadata.ctime(), metadata.ctime_nsec()),
                content,
            });
        }
    }
    found.sort();
    found
}

/// The findings on a made-up machine, which stays as it is.
fn findings_at(root: &Path) -> Vec<Value> {
    let before = everything_in(root);
    let output = pollux(&["--json", "--root", root.to_str().unwrap()]).output();
    let findings = findings(&output.unwrap());
    assert!(before == everything_in(root), "{findings:#?}");
    findings
}

fn of<'a>(findings: &'a [Value], check: &str) -> Vec<&'a Value> {
    findings
        .iter()
        .filter(|finding| finding["check"] == check)
        .collect()
}

fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[test]
fn this_machine_is_examined() {
    let findings = findings(&pollux(&["--json"]).output().unwrap());
    for check in [
        "hugepages",
        "memlock",
        "isolation",
        "governor",
        "tsc",
        "clocksource",
        "loop-clock",
        "iommu",
        "cap-net-raw",
    ] {
        assert!(!of(&findings, check).is_empty(), "{check}");
    }
    assert!(of(&findings, "jitter").is_empty());
}

#[test]
fn an_unprivileged_user_may_run_it() {
    let output = pollux(&["--json"]).uid(65_534).gid(65_534).output();
    let Ok(output) = output else {
        println!("skipped: another user may not execute the program");
        return;
    };
    let findings = findings(&output);
    let raw = of(&findings, "cap-net-raw")[0];
    assert_eq!(raw["level"], "warn");
    assert!(
        raw["mend"]["run"]
            .as_str()
            .unwrap()
            .starts_with("setcap cap_net_raw,cap_net_admin,cap_bpf"),
        "{raw}"
    );
}

#[test]
fn jitter_is_measured_for_the_cores_that_are_named() {
    let cpu = pollux_pmd::lcore::allowed_cpus()[0].to_string();
    let output = pollux(&["--json", "--cores", &cpu, "--jitter", "0.05"])
        .output()
        .unwrap();
    let findings = findings(&output);
    let jitter = of(&findings, "jitter");
    assert_eq!(jitter.len(), 1);
    assert_eq!(jitter[0]["subject"], format!("cpu {cpu}"));
}

#[test]
fn a_good_machine_has_nothing_to_mend() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (path, content) in [
        (
            "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
            "256",
        ),
        (
            "sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages",
            "256",
        ),
        ("sys/devices/system/cpu/online", "0-3"),
        ("sys/devices/system/cpu/isolated", "2-3"),
        ("sys/devices/system/cpu/nohz_full", "2-3"),
        (
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "tsc",
        ),
        ("sys/kernel/iommu_groups/3/devices/0000:03:00.0/x", ""),
        ("sys/bus/pci/drivers/vfio-pci/x", ""),
        ("sys/bus/pci/devices/0000:03:00.0/class", "0x020000"),
        ("proc/cmdline", "iommu=pt"),
        ("proc/cpuinfo", "flags : constant_tsc nonstop_tsc"),
        ("proc/swaps", "Filename Type"),
        (
            "proc/self/status",
            "CapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-3",
        ),
        ("proc/1/comm", "init"),
        ("proc/irq/1/smp_affinity_list", "0"),
    ] {
        write(root, path, content);
    }
    std::os::unix::fs::symlink(
        "drivers/vfio-pci",
        root.join("sys/bus/pci/devices/0000:03:00.0/driver"),
    )
    .unwrap();
    let findings = findings_at(root);
    let others: Vec<_> = findings
        .iter()
        .filter(|finding| finding["level"] != "ok")
        .collect();
    assert!(others.is_empty(), "{others:#?}");
    let people = pollux(&["--root", root.to_str().unwrap()])
        .output()
        .unwrap();
    let people = text(&people.stdout);
    assert!(
        people.ends_with(&format!("{} ok, 0 note, 0 warn, 0 bad\n", findings.len())),
        "{people}"
    );
}

#[test]
fn an_empty_root_is_not_bad() {
    let folder = tempfile::tempdir().unwrap();
    let findings = findings_at(folder.path());
    assert!(
        findings.iter().all(|finding| finding["level"] != "bad"),
        "{findings:#?}"
    );
    assert!(
        of(&findings, "tsc")[0]["found"]
            .as_str()
            .unwrap()
            .contains("/proc/cpuinfo")
    );
}

#[test]
fn no_content_is_a_panic() {
    let long = vec![b'9'; 70_000];
    let contents: [&[u8]; 7] = [
        b"",
        b"\0\0\xff\xfe",
        b"-1",
        b"99999999999999999999999",
        b"0-4294967295,7-,-",
        b"\x1b[2J = : x",
        &long,
    ];
    let paths = [
        "proc/cmdline",
        "proc/cpuinfo",
        "proc/swaps",
        "proc/self/status",
        "proc/self/limits",
        "proc/7/comm",
        "proc/irq/9/smp_affinity_list",
        "proc/sys/kernel/numa_balancing",
        "proc/sys/kernel/sched_rt_runtime_us",
        "proc/sys/kernel/nmi_watchdog",
        "proc/sys/net/core/rmem_max",
        "proc/sys/vm/swappiness",
        "sys/kernel/mm/transparent_hugepage/enabled",
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
        "sys/devices/system/cpu/online",
        "sys/devices/system/cpu/isolated",
        "sys/devices/system/cpu/nohz_full",
        "sys/devices/system/cpu/smt/active",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "sys/devices/system/cpu/cpu0/cpuidle/state0/latency",
        "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "sys/bus/pci/devices/0000:03:00.0/class",
        "sys/bus/pci/devices/0000:03:00.0/numa_node",
        "sys/bus/pci/devices/0000:03:00.0/current_link_speed",
        "sys/class/net/eth0/flags",
        "sys/class/net/eth0/statistics/rx_missed_errors",
        "sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
    ];
    let mut levels = HashSet::new();
    for content in contents {
        let folder = tempfile::tempdir().unwrap();
        for path in paths {
            write(folder.path(), path, content);
        }
        // These have to be right for what lies behind them to be looked at.
        write(folder.path(), "sys/class/net/eth0/type", "1");
        let findings = findings_at(folder.path());
        levels.extend(findings.iter().map(|finding| finding["level"].to_string()));
    }
    // So that what mends a warning, and what is bad, was there to be looked for.
    assert_eq!(levels.len(), 4, "not all levels were seen: {levels:?}");
}

#[test]
fn wrong_options_are_told() {
    let refused = |args: &[&str]| {
        let output = pollux(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    for list in ["", "x", "1,x", "-", "1;2"] {
        let message = refused(&[&format!("--cores={list}")]);
        assert!(message.contains("--cores"), "{list}: {message}");
    }
    assert!(refused(&["--jitter", "0"]).contains("above 0"));
    assert!(refused(&["--jitter", "3600"]).contains("at most 600"));
    assert!(refused(&["--jitter", "1", "--root", "/x"]).contains("cannot be used with"));
    for args in [
        &["--cores", "99999", "--jitter", "0.01"][..],
        &["--cores=0,99998-99999"],
    ] {
        let message = refused(args);
        assert!(message.contains("9999"), "{message}");
        assert!(message.contains("this machine runs"), "{message}");
        assert!(!message.contains("taskset"), "{message}");
    }
}

#[test]
fn help_tells_the_exit_status() {
    let help = text(&pollux(&["--help"]).output().unwrap().stdout);
    for part in ["--json", "--jitter", "Exit status"] {
        assert!(help.contains(part), "no {part} in {help}");
    }
    assert!(!help.contains("Port specs"), "it takes none");
}

#[test]
fn a_report_that_cannot_be_written_is_an_error() {
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = pollux(&[]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot write to standard output: No space left"));
}
