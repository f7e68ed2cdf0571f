//! Checks of interrupts on the CPUs of loops.

use pollux_pmd::lcore::parse_cpu_list;

use super::finding::{Check, Finding};
use super::machine::{Machine, named};
use pollux_machine::cpu_list;

/// Command that shows how /proc is mounted: a container may see a part of it only.
const MOUNTED: &str = "findmnt /proc";

const BALANCE: Check = Check {
    name: "irqbalance",
    why: "It moves interrupts to other CPUs by itself, also to those that were kept free of them.",
};

/// Whether the irqbalance daemon runs.
pub(super) fn balance(machine: &Machine) -> Vec<Finding> {
    let tasks: Vec<_> = machine
        .sys
        .names("/proc")
        .into_iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .collect();
    if tasks.is_empty() {
        return vec![BALANCE.note("/proc shows no process").look(MOUNTED)];
    }
    let runs = |pid: &String| {
        machine
            .sys
            .text(&format!("/proc/{pid}/comm"))
            .is_ok_and(|name| name == "irqbalance")
    };
    vec![match tasks.iter().find(|pid| runs(pid)) {
        Some(pid) => BALANCE
            .warn(format!("runs as process {pid}"))
            .run("systemctl disable --now irqbalance"),
        None => BALANCE.ok("does not run"),
    }]
}

const AFFINITY: Check = Check {
    name: "irq-affinity",
    why: "An interrupt takes the CPU from its loop for microseconds, and more with what it sets off.",
};

/// Interrupts that may be delivered to the CPUs of loops. Without such CPUs there is no finding.
pub(super) fn affinity(machine: &Machine) -> Vec<Finding> {
    const FOLDER: &str = "/proc/irq";
    if !machine.cores_are_chosen {
        return Vec::new();
    }
    let numbers = machine.sys.numbered(FOLDER, "");
    if numbers.is_empty() {
        return vec![
            AFFINITY
                .note(format!("{FOLDER} shows no interrupt"))
                .look(MOUNTED),
        ];
    }
    let mut near = Vec::new();
    let mut unread = None;
    for number in numbers {
        // The effective affinity; older kernels show only the permitted one.
        let read = |file: &str| machine.sys.text(&format!("{FOLDER}/{number}/{file}"));
        match read("effective_affinity_list").or_else(|_| read("smp_affinity_list")) {
            Ok(list) => {
                if parse_cpu_list(&list)
                    .iter()
                    .any(|cpu| machine.cores.contains(cpu))
                {
                    near.push(number);
                }
            }
            Err(why) => unread = Some(why),
        }
    }
    let elsewhere = cpu_list(&machine.housekeeping());
    vec![match (near.as_slice(), unread) {
        ([], Some(why)) => AFFINITY.unread(&why),
        ([], None) => AFFINITY.ok(format!("none on {}", named(&machine.cores))),
        (_, _) if elsewhere.is_empty() => AFFINITY
            .note("no CPU is left for interrupts")
            .look("lscpu -e"),
        (near, _) => {
            let numbers: Vec<_> = near.iter().map(usize::to_string).collect();
            AFFINITY
                .warn(format!(
                    "{} on {}: {}",
                    near.len(),
                    named(&machine.cores),
                    cpu_list(near)
                ))
                .run(format!(
                    "for irq in {}; do echo {elsewhere} > {FOLDER}/$irq/smp_affinity_list; done",
                    numbers.join(" ")
                ))
        }
    }]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::finding::{Level, Remedy};
    use super::super::testing::{Case, findings, levels};
    use super::*;
    use pollux_machine::testing::Tree;

    #[test]
    fn the_daemon_is_found_by_its_name() {
        Case::of(balance).is("irqbalance\n", "/proc/812/comm", Level::Warn);
        Case::of(balance).is("irqbalancer\n", "/proc/812/comm", Level::Ok);
        let tree = Tree::new();
        tree.unreadable("/proc/1/comm");
        assert_eq!(levels(balance, &tree), [Level::Ok]);
        assert_eq!(levels(balance, &Tree::new()), [Level::Note]);
    }

    #[test]
    fn interrupts_near_loops_are_sent_elsewhere() {
        let tree = Tree::new();
        assert!(levels(affinity, &tree).is_empty(), "no CPU is for loops");
        tree.file("/sys/devices/system/cpu/isolated", "2-3")
            .file("/sys/devices/system/cpu/online", "0-3");
        assert_eq!(levels(affinity, &tree), [Level::Note]);
        tree.file("/proc/irq/24/smp_affinity_list", "0-1\n")
            .file("/proc/irq/25/smp_affinity_list", "0-3\n")
            .file("/proc/irq/25/effective_affinity_list", "1\n");
        assert_eq!(levels(affinity, &tree), [Level::Ok]);
        tree.file("/proc/irq/26/smp_affinity_list", "0-3\n")
            .file("/proc/irq/27/smp_affinity_list", "3\n")
            .unreadable("/proc/irq/28/smp_affinity_list");
        let found = findings(affinity, &tree);
        assert_eq!(found[0].found, "2 on cpus 2-3: 26-27");
        let command = "for irq in 26 27; do echo 0-1 > /proc/irq/$irq/smp_affinity_list; done";
        assert_eq!(found[0].remedy, Some(Remedy::Run(command.into())));
        let unreadable = Tree::new();
        unreadable
            .file("/sys/devices/system/cpu/isolated", "2")
            .unreadable("/proc/irq/28/smp_affinity_list");
        assert_eq!(levels(affinity, &unreadable), [Level::Note]);
    }
}
