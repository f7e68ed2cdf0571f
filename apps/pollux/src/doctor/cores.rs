//! Checks of the CPUs: isolation, frequency, idle states and SMT.

use super::finding::{Check, Finding};
use super::machine::{ISOLATED, Machine, cpus, named};
use pollux_machine::{Unread, cpu_list, process};

const CPUS: &str = "/sys/devices/system/cpu";

const ALLOWED: Check = Check {
    name: "cpus",
    why: "A loop can only be pinned to a CPU that runs and that this process may use.",
};

/// CPUs that the process may use, and requested CPUs.
pub(super) fn allowed(machine: &Machine) -> Vec<Finding> {
    let list = match process::status(&machine.sys, "Cpus_allowed_list") {
        Ok(list) => pollux_pmd::lcore::parse_cpu_list(&list),
        Err(unread) => return vec![ALLOWED.unread(&unread)],
    };
    let without = |these: &[usize], set: &[usize]| -> Vec<usize> {
        these
            .iter()
            .copied()
            .filter(|cpu| !set.contains(cpu))
            .collect()
    };
    let missing = without(&machine.cores, &list);
    let withheld = without(&machine.online(), &list);
    vec![if !missing.is_empty() {
        ALLOWED
            .bad(format!(
                "{} may not be used, only {}",
                named(&missing),
                cpu_list(&list)
            ))
            .run(format!("taskset -cp {} $$", cpu_list(&machine.cores)))
    } else if list.len() < 2 {
        ALLOWED
            .warn("there is one alone, which each loop shares with everything else")
            .run(format!("taskset -cp {} $$", cpu_list(&machine.online())))
    } else if withheld.is_empty() {
        ALLOWED.ok(cpu_list(&list))
    } else {
        ALLOWED
            .note(format!(
                "{}; {} may not be used (cpuset, taskset)",
                cpu_list(&list),
                named(&withheld)
            ))
            .run(format!("taskset -cp {} $$", cpu_list(&machine.online())))
    }]
}

const ISOLATION: Check = Check {
    name: "isolation",
    why: "Only from an isolated CPU does the scheduler keep other tasks away, so that a loop has it for itself.",
};
const TICK: Check = Check {
    name: "nohz-full",
    why: "Otherwise the scheduler's tick interrupts a loop hundreds of times a second.",
};
const RCU: Check = Check {
    name: "rcu-nocbs",
    why: "Otherwise the kernel frees its own memory (RCU callbacks) in the loop's time.",
};

/// Whether the kernel keeps its own work and other processes off the CPUs of loops.
pub(super) fn isolation(machine: &Machine) -> Vec<Finding> {
    let spare = machine.spare();
    let wanted = cpu_list(&spare);
    let judge = |check: &Check, covered: &[usize], parameter: &str| {
        let lacking: Vec<_> = spare
            .iter()
            .copied()
            .filter(|cpu| !covered.contains(cpu))
            .collect();
        if spare.is_empty() {
            check
                .note("there is no CPU to spare for it")
                .look("lscpu -e")
        } else if lacking.is_empty() {
            check.ok(named(&spare))
        } else {
            check
                .warn(format!("not for {}", named(&lacking)))
                .boot(format!("{parameter}={wanted}"))
        }
    };
    let isolated = match cpus(&machine.sys, ISOLATED) {
        Ok(isolated) => isolated,
        Err(Unread::Missing(_)) => machine.parameter_cpus("isolcpus"),
        Err(unread) => return vec![ISOLATION.unread(&unread)],
    };
    // The list is empty, or `(null)`, without isolated CPUs.
    let tickless = cpus(&machine.sys, &format!("{CPUS}/nohz_full"));
    let tickless = tickless.unwrap_or_else(|_| machine.parameter_cpus("nohz_full"));
    // nohz_full= implies rcu_nocbs= (the kernel's kernel-parameters.txt).
    let mut offloaded = machine.parameter_cpus("rcu_nocbs");
    if machine
        .parameter("rcu_nocbs")
        .iter()
        .any(|list| list == "all")
    {
        offloaded.clone_from(&spare);
    }
    offloaded.extend(&tickless);
    vec![
        judge(&ISOLATION, &isolated, "isolcpus"),
        judge(&TICK, &tickless, "nohz_full"),
        judge(&RCU, &offloaded, "rcu_nocbs"),
    ]
}

const GOVERNOR: Check = Check {
    name: "governor",
    why: "Another governor lowers the frequency of a core, and takes milliseconds to raise it again.",
};

/// Frequency governor of the CPUs of loops.
pub(super) fn governor(machine: &Machine) -> Vec<Finding> {
    let mut slow = Vec::new();
    let mut seen = Vec::new();
    for &cpu in &machine.cores {
        match machine
            .sys
            .text(&format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor"))
        {
            Ok(name) if name == "performance" => seen.push(cpu),
            Ok(name) => slow.push((cpu, name)),
            Err(Unread::Missing(_)) => {}
            Err(unread) => return vec![GOVERNOR.unread(&unread)],
        }
    }
    vec![match slow.first() {
        Some((_, name)) => {
            let cpus: Vec<_> = slow.iter().map(|(cpu, _)| *cpu).collect();
            GOVERNOR
                .warn(format!("{name:?} on {}", named(&cpus)))
                .run(format!(
                    "cpupower -c {} frequency-set -g performance",
                    cpu_list(&cpus)
                ))
        }
        None if seen.is_empty() => GOVERNOR.ok("the kernel does not change frequencies here"),
        None => GOVERNOR.ok(format!("performance on {}", named(&seen))),
    }]
}

const IDLE: Check = Check {
    name: "idle-states",
    why: "From a deep idle state a core takes this long to wake up, when it waits instead of polling.",
};

/// Idle states with a long exit latency.
pub(super) fn idle_states(machine: &Machine) -> Vec<Finding> {
    /// Microseconds; the shallow states take one or two.
    const LONG: u64 = 10;
    let mut deepest = (0, String::new());
    let mut states = 0;
    for &cpu in &machine.cores {
        let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
        for state in machine.sys.names(&folder) {
            let of = |what: &str| format!("{folder}/{state}/{what}");
            let read = |what: &str| machine.sys.parse::<u64>(&of(what));
            match (read("latency"), read("disable")) {
                (Ok(_), Ok(disabled)) if disabled != 0 => states += 1,
                (Ok(latency), _) => {
                    states += 1;
                    if latency > deepest.0 {
                        deepest = (latency, machine.sys.text(&of("name")).unwrap_or(state));
                    }
                }
                (Err(Unread::Missing(_)), _) => {}
                (Err(unread), _) => return vec![IDLE.unread(&unread)],
            }
        }
    }
    let (latency, name) = deepest;
    vec![if states == 0 {
        IDLE.ok("the kernel does not use any here")
    } else if latency <= LONG {
        IDLE.ok(format!("at most {latency} us to wake up"))
    } else {
        IDLE.warn(format!("{latency} us to wake up from {name:?}"))
            .run(format!(
                "cpupower -c {} idle-set -D {LONG}",
                cpu_list(&machine.cores)
            ))
    }]
}

const SMT: Check = Check {
    name: "smt",
    why: "Two hardware threads share the units and the first caches of a core, so that each slows the other.",
};

/// Whether other work can run on the sibling threads of the loops.
pub(super) fn smt(machine: &Machine) -> Vec<Finding> {
    let active = machine.sys.text(&format!("{CPUS}/smt/active"));
    match active.as_deref() {
        Ok("0") => return vec![SMT.ok("off: each CPU is a core")],
        Ok("1") | Err(Unread::Missing(_)) => {}
        Ok(other) => return vec![SMT.unread(&pollux_machine::malformed("smt/active", other))],
        Err(unread) => return vec![SMT.unread(unread)],
    }
    let mut shared = Vec::new();
    for &cpu in &machine.cores {
        if let Some(&other) = machine.siblings(cpu).iter().find(|&&other| other != cpu) {
            shared.push((cpu, other));
        }
    }
    let off = format!("echo off > {CPUS}/smt/control");
    vec![match shared.first() {
        None => SMT.ok("each CPU is a core"),
        Some((cpu, other)) if machine.cores_are_chosen => SMT
            .warn(format!(
                "{} of the loops' CPUs have a sibling, as cpu {cpu} has cpu {other}",
                shared.len()
            ))
            .run(off),
        Some((cpu, other)) => SMT
            .note(format!(
                "on: give loops one CPU of each core (cpus {cpu} and {other} are one)"
            ))
            .run(off),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::finding::{Level, Remedy};
    use super::super::testing::{Case, findings, levels};
    use super::*;
    use Level::{Bad, Note, Ok, Warn};
    use pollux_machine::Sys;
    use pollux_machine::testing::Tree;

    /// Four CPUs: two cores of two threads.
    fn machine() -> Tree {
        let tree = Tree::new();
        tree.file(&format!("{CPUS}/online"), "0-3\n")
            .file("/proc/self/status", "Cpus_allowed_list:\t0-3\n");
        for (cpu, siblings) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")] {
            tree.file(
                &format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"),
                siblings,
            );
        }
        tree
    }

    /// The boot parameters of the findings.
    fn boot(findings: &[Finding]) -> Vec<Option<&str>> {
        fn parameters(finding: &Finding) -> Option<&str> {
            match &finding.remedy {
                Some(Remedy::Boot(text)) => Some(text.as_str()),
                _ => None,
            }
        }
        findings.iter().map(parameters).collect()
    }

    #[test]
    fn cpus_that_are_asked_for_must_be_there() {
        let with =
            |sys: Sys, cores: Option<Vec<usize>>| allowed(&Machine::new(sys, cores))[0].level;
        let tree = machine();
        assert_eq!(with(tree.sys(), None), Ok);
        assert_eq!(with(tree.sys(), Some(vec![1, 3])), Ok);
        assert_eq!(with(tree.sys(), Some(vec![1, 4])), Bad);
        tree.file("/proc/self/status", "Cpus_allowed_list:\t1-2");
        assert_eq!(with(tree.sys(), None), Note);
        tree.file("/proc/self/status", "Cpus_allowed_list:\t1");
        assert_eq!(with(tree.sys(), None), Warn);
        tree.file("/proc/self/status", "nothing");
        assert_eq!(with(tree.sys(), None), Note);
    }

    #[test]
    fn isolation_is_asked_for_all_but_the_first_core() {
        let tree = machine();
        let found = findings(isolation, &tree);
        assert_eq!(
            boot(&found),
            [
                Some("isolcpus=1,3"),
                Some("nohz_full=1,3"),
                Some("rcu_nocbs=1,3")
            ]
        );
        tree.file(ISOLATED, "3\n")
            .file(&format!("{CPUS}/nohz_full"), "(null)\n");
        let found = findings(isolation, &tree);
        assert_eq!(
            boot(&found),
            [None, Some("nohz_full=3"), Some("rcu_nocbs=3")]
        );
        tree.file("/proc/cmdline", "quiet rcu_nocbs=2-3 x");
        assert_eq!(levels(isolation, &tree), [Ok, Warn, Ok]);
        tree.file(&format!("{CPUS}/nohz_full"), "2-3\n")
            .file("/proc/cmdline", "");
        assert_eq!(levels(isolation, &tree), [Ok, Ok, Ok]);
        let asked = isolation(&Machine::new(tree.sys(), Some(vec![1])));
        assert_eq!(boot(&asked)[0], Some("isolcpus=1"));
    }

    #[test]
    fn isolation_is_read_from_the_command_line_where_sysfs_has_none() {
        let tree = machine();
        tree.file(
            "/proc/cmdline",
            "isolcpus=domain,managed_irq,1,3 nohz_full=1,3",
        );
        assert_eq!(levels(isolation, &tree), [Ok; 3]);
        assert_eq!(levels(isolation, &Tree::new()), [Note; 3]);
        let unreadable = machine();
        unreadable.unreadable(ISOLATED);
        assert_eq!(levels(isolation, &unreadable), [Note]);
    }

    #[test]
    fn governors() {
        let at = |cpu| format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor");
        let tree = machine();
        assert_eq!(levels(governor, &tree), [Ok]);
        tree.file(&at(0), "performance")
            .file(&at(1), "performance\n");
        assert_eq!(levels(governor, &tree), [Ok]);
        tree.file(&at(3), "powersave\n").file(&at(2), "powersave");
        let found = findings(governor, &tree);
        assert_eq!(
            (found[0].level, found[0].found.as_str()),
            (Warn, "\"powersave\" on cpus 2-3")
        );
        tree.unreadable(&at(4))
            .file("/proc/self/status", "Cpus_allowed_list:\t4");
        assert_eq!(levels(governor, &tree), [Note]);
    }

    #[test]
    fn idle_states_that_take_long() {
        let tree = machine();
        assert_eq!(levels(idle_states, &tree), [Ok]);
        let state = |n, name, latency, disable| {
            let at = format!("{CPUS}/cpu1/cpuidle/state{n}");
            tree.file(&format!("{at}/name"), name)
                .file(&format!("{at}/latency"), latency)
                .file(&format!("{at}/disable"), disable);
        };
        state(0, "POLL", "0", "0");
        state(1, "C1", "2\n", "0\n");
        assert_eq!(levels(idle_states, &tree), [Ok]);
        state(2, "C6", "133\n", "1\n");
        assert_eq!(levels(idle_states, &tree), [Ok]);
        state(2, "C6", "133\n", "0\n");
        let found = findings(idle_states, &tree);
        assert_eq!(
            (found[0].level, found[0].found.as_str()),
            (Warn, "133 us to wake up from \"C6\"")
        );
        state(3, "C7", "soon", "0");
        assert_eq!(levels(idle_states, &tree), [Note]);
    }

    #[test]
    fn siblings_matter_most_where_loops_run() {
        let tree = machine();
        let active = format!("{CPUS}/smt/active");
        tree.file(&active, "1\n");
        assert_eq!(levels(smt, &tree), [Note]);
        assert_eq!(smt(&Machine::new(tree.sys(), Some(vec![1])))[0].level, Warn);
        tree.file(&active, "0");
        assert_eq!(levels(smt, &tree), [Ok]);
        assert_eq!(levels(smt, &Tree::new()), [Ok]);
        Case::of(smt).is("perhaps", &active, Note);
        let unreadable = Tree::new();
        unreadable.unreadable(&active);
        assert_eq!(levels(smt, &unreadable), [Note]);
    }
}
