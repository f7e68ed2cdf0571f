//! The loops of the example `embed` stay on their configured cores, as the kernel reports it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pollux_pmd::lcore::{allowed_cpus, parse_cpu_list};

/// Cargo builds examples with the tests, when it builds all targets.
fn embed() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2)?.join("examples/embed");
    if !path.exists() {
        println!("skipped: {} is not built", path.display());
        return None;
    }
    Some(path)
}

/// Runs the example, and reads the state of its threads continuously. A thread counts from the
/// moment at which it has been pinned; from then on it must never run elsewhere. Returns how often
/// each was observed on its core.
fn watch(embed: &Path, sender: usize, receiver: usize) -> (BTreeMap<String, usize>, Output) {
    let mut child = Command::new(embed)
        .args(["--cores", &format!("{sender},{receiver}")])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let tasks = format!("/proc/{}/task", child.id());
    let mut seen = BTreeMap::new();
    while child.try_wait().unwrap().is_none() {
        for task in fs::read_dir(&tasks).into_iter().flatten().flatten() {
            // A thread may end between two readings.
            let Some((name, allowed, cpu)) = look(&task.path()) else {
                continue;
            };
            let given = match name.as_str() {
                "sender" => sender,
                "receiver" => receiver,
                _ => continue,
            };
            if allowed == [given] && cpu == given {
                *seen.entry(name).or_insert(0) += 1;
            } else {
                let pinned = seen.contains_key(&name);
                assert!(!pinned, "{name}: on {cpu}, may run on {allowed:?}");
            }
        }
    }
    (seen, child.wait_with_output().unwrap())
}

/// A thread's name, the CPUs it may run on, and the one it ran on last.
fn look(task: &Path) -> Option<(String, Vec<usize>, usize)> {
    let read = |file| fs::read_to_string(task.join(file)).ok();
    let (name, status, stat) = (read("comm")?, read("status")?, read("stat")?);
    let allowed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    // Field 39 of stat, proc_pid_stat(5); the first two are the number and the name in brackets.
    let cpu = stat.rsplit_once(')')?.1.split_whitespace().nth(36)?;
    Some((
        name.trim().into(),
        parse_cpu_list(allowed),
        cpu.parse().ok()?,
    ))
}

#[test]
fn every_loop_stays_on_its_core() {
    let Some(embed) = embed() else { return };
    let cpus = allowed_cpus();
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    // In both directions, so that the placement of a thread is no accident. A run is short, and
    // this thread shares the cores with the loops: it repeats until it has observed both.
    for (sender, receiver) in [(first, last), (last, first)] {
        let mut seen = BTreeMap::new();
        for _ in 0..20 {
            let (more, output) = watch(&embed, sender, receiver);
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{text}");
            assert!(text.contains(" frames from the wire = "), "{text}");
            for (name, n) in more {
                *seen.entry(name).or_insert(0) += n;
            }
            if seen.len() == 2 {
                break;
            }
        }
        assert_eq!(
            seen.len(),
            2,
            "not seen on cores {sender},{receiver}: {seen:?}"
        );
    }
}

#[test]
fn a_core_that_is_not_there_is_refused() {
    let Some(embed) = embed() else { return };
    let output = Command::new(embed)
        .args(["--cores", "99999,0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("99999"), "{text}");
}
