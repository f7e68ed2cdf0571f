//! Checks of kernel settings by their value alone.

use super::finding::{Check, Finding, Level};
use super::machine::Machine;
use pollux_machine::{Unread, malformed};

/// A file with one value.
struct Setting {
    check: Check,
    path: &'static str,
    /// Whether a value is good; `None` if the kernel has no such value.
    is_good: fn(&str) -> Option<bool>,
    /// Severity of another value.
    otherwise: Level,
    command: &'static str,
}

fn number(text: &str, is_good: impl Fn(i64) -> bool) -> Option<bool> {
    text.parse().ok().map(is_good)
}

const SETTINGS: &[Setting] = &[
    Setting {
        check: Check {
            name: "transparent-hugepages",
            why: "With `always` the kernel stops tasks to gather and move pages, also those of loops.",
        },
        path: "/sys/kernel/mm/transparent_hugepage/enabled",
        is_good: |text| match text {
            _ if text.contains("[always]") => Some(false),
            _ if text.contains("[madvise]") || text.contains("[never]") => Some(true),
            _ => None,
        },
        otherwise: Level::Note,
        command: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    },
    Setting {
        check: Check {
            name: "numa-balancing",
            why: "To see who uses which memory the kernel takes pages away from loops for a while.",
        },
        path: "/proc/sys/kernel/numa_balancing",
        is_good: |text| number(text, |n| n == 0),
        otherwise: Level::Warn,
        command: "sysctl -w kernel.numa_balancing=0",
    },
    Setting {
        check: Check {
            name: "real-time-throttling",
            why: "A loop with a real-time priority (SCHED_FIFO) is stopped for the rest of each \
                  second; loops of normal priority are not.",
        },
        path: "/proc/sys/kernel/sched_rt_runtime_us",
        is_good: |text| number(text, |n| !(0..1_000_000).contains(&n)),
        otherwise: Level::Note,
        command: "sysctl -w kernel.sched_rt_runtime_us=-1",
    },
    Setting {
        check: Check {
            name: "nmi-watchdog",
            why: "It interrupts every CPU, loops included, and takes one of its counters.",
        },
        path: "/proc/sys/kernel/nmi_watchdog",
        is_good: |text| number(text, |n| n == 0),
        otherwise: Level::Warn,
        command: "sysctl -w kernel.nmi_watchdog=0",
    },
    Setting {
        check: Check {
            name: "timer-migration",
            why: "Without it timers stay on the CPUs where they were set, also on those of loops.",
        },
        path: "/proc/sys/kernel/timer_migration",
        is_good: |text| number(text, |n| n != 0),
        otherwise: Level::Warn,
        command: "sysctl -w kernel.timer_migration=1",
    },
    Setting {
        check: Check {
            name: "socket-buffers",
            why: "Programs that use the kernel's sockets, as the emulator can, lose bursts that do \
                  not fit into a receive buffer; ports do not depend on it.",
        },
        path: "/proc/sys/net/core/rmem_max",
        is_good: |text| number(text, |n| n >= 16 << 20),
        otherwise: Level::Note,
        command: "sysctl -w net.core.rmem_max=67108864",
    },
    Setting {
        check: Check {
            name: "backlog",
            why: "Frames that one core gives to another (RPS, veth) wait in this queue, and are \
                  lost before af_packet sees them when it is full.",
        },
        path: "/proc/sys/net/core/netdev_max_backlog",
        is_good: |text| number(text, |n| n >= 10_000),
        otherwise: Level::Note,
        command: "sysctl -w net.core.netdev_max_backlog=30000",
    },
    Setting {
        check: TURBO,
        path: "/sys/devices/system/cpu/intel_pstate/no_turbo",
        is_good: |text| number(text, |n| n == 1),
        otherwise: Level::Note,
        command: "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo",
    },
    Setting {
        check: TURBO,
        path: "/sys/devices/system/cpu/cpufreq/boost",
        is_good: |text| number(text, |n| n == 0),
        otherwise: Level::Note,
        command: "echo 0 > /sys/devices/system/cpu/cpufreq/boost",
    },
];

const TURBO: Check = Check {
    name: "turbo",
    why: "A core's frequency then depends on what the others do, so that two measurements differ.",
};

/// All settings that this kernel has.
pub(super) fn examine(machine: &Machine) -> Vec<Finding> {
    SETTINGS
        .iter()
        .filter_map(|setting| setting.examine(machine))
        .collect()
}

impl Setting {
    fn examine(&self, machine: &Machine) -> Option<Finding> {
        let check = &self.check;
        let text = match machine.sys.text(self.path) {
            Ok(text) => text,
            // The kernel was built without it, or the namespace does not have it.
            Err(Unread::Missing(_)) => return None,
            Err(unread) => return Some(check.unread(&unread)),
        };
        let found = format!("{} is {text}", self.path);
        Some(match (self.is_good)(&text) {
            Some(true) => check.ok(found),
            Some(false) => {
                let mut finding = check.note(found).run(self.command);
                finding.level = self.otherwise;
                finding
            }
            None => check.unread(&malformed(self.path, &text)),
        })
    }
}

const SWAP: Check = Check {
    name: "swap",
    why: "A page that was swapped out is a gap of milliseconds for the loop that needs it.",
};

/// Swappiness, if there is swap space.
pub(super) fn swap(machine: &Machine) -> Vec<Finding> {
    const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
    let areas = match machine.sys.text("/proc/swaps") {
        // The first line is a heading.
        Ok(text) => text.lines().skip(1).count(),
        Err(unread) => return vec![SWAP.unread(&unread)],
    };
    if areas == 0 {
        return vec![SWAP.ok("there is no swap space")];
    }
    vec![match machine.sys.parse::<u32>(SWAPPINESS) {
        Ok(n @ 0..=10) => SWAP.ok(format!("{areas} in use, vm.swappiness is {n}")),
        Ok(n) => SWAP
            .warn(format!("{areas} in use, vm.swappiness is {n}"))
            .run("sysctl -w vm.swappiness=1"),
        Err(unread) => SWAP.unread(&unread),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Case, levels};
    use super::*;
    use pollux_machine::testing::Tree;

    #[test]
    fn every_setting_is_judged() {
        let cases = [
            (
                "transparent-hugepages",
                0,
                "always [madvise] never",
                "[always] madvise never",
            ),
            ("numa-balancing", 1, "0", "1"),
            ("real-time-throttling", 2, "-1", "950000"),
            ("nmi-watchdog", 3, "0", "1"),
            ("timer-migration", 4, "1", "0"),
            ("socket-buffers", 5, "67108864", "212992"),
            ("backlog", 6, "30000", "1000"),
            ("turbo", 7, "1", "0"),
            ("turbo", 8, "0", "1"),
        ];
        assert_eq!(cases.len(), SETTINGS.len(), "a test for each");
        for (name, i, good, other) in cases {
            let setting = &SETTINGS[i];
            assert_eq!(setting.check.name, name);
            Case::of(examine).is(good, setting.path, Level::Ok);
            Case::of(examine).is(other, setting.path, setting.otherwise);
            Case::of(examine).is("\u{1b}[2Jrubbish", setting.path, Level::Note);
            let unreadable = Tree::new();
            unreadable.unreadable(setting.path);
            assert_eq!(levels(examine, &unreadable), [Level::Note]);
        }
        assert_eq!(levels(examine, &Tree::new()), []);
    }

    #[test]
    fn swap_matters_where_there_is_some() {
        let none = "Filename\tType\n";
        let one = "Filename\tType\n/dev/sda2 partition 1 0 -2\n";
        let at = "/proc/swaps";
        Case::of(swap).is(none, at, Level::Ok);
        Case::of(swap).is(one, at, Level::Note);
        Case::of(swap)
            .file("/proc/sys/vm/swappiness", "60")
            .is(one, at, Level::Warn);
        Case::of(swap)
            .file("/proc/sys/vm/swappiness", "1")
            .is(one, at, Level::Ok);
        assert_eq!(levels(swap, &Tree::new()), [Level::Note]);
    }
}
