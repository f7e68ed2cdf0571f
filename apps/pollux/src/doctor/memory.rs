//! Checks of hugepages, and of the limit on locked memory.

use super::finding::{Check, Finding, Level};
use super::machine::Machine;
use pollux_machine::Unread;
use pollux_machine::process::{self, CAP_IPC_LOCK};

const HUGEPAGES: Check = Check {
    name: "hugepages",
    why: "Packet buffers in normal pages cost the processor a translation for every few frames.",
};

/// Memory of pools of the usual size, with some reserve.
const ENOUGH_2M: u64 = 256;

/// Hugepages per NUMA node and size.
pub(super) fn hugepages(machine: &Machine) -> Vec<Finding> {
    const WHOLE: &str = "/sys/kernel/mm/hugepages";
    let nodes = machine.nodes().into_iter();
    let mut places: Vec<_> = nodes
        .map(|node| {
            (
                format!("node {node}"),
                format!("/sys/devices/system/node/node{node}/hugepages"),
            )
        })
        .filter(|(_, folder)| machine.sys.exists(folder))
        .collect();
    if places.is_empty() {
        places.push(("machine".into(), WHOLE.into()));
    }
    let mut found = Vec::new();
    for (place, folder) in places {
        found.extend(on_node(machine, &place, &folder));
    }
    if found.is_empty() {
        found.push(
            HUGEPAGES
                .warn(format!(
                    "{WHOLE} shows no size: the kernel has no hugepages"
                ))
                .boot("hugepagesz=2M hugepages=256"),
        );
    }
    found
}

fn on_node(machine: &Machine, place: &str, folder: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut any = false;
    for name in machine.sys.names(folder) {
        let kib = name
            .strip_prefix("hugepages-")
            .and_then(|name| name.strip_suffix("kB"));
        let Some(kib) = kib.and_then(|kib| kib.parse::<u64>().ok()) else {
            continue;
        };
        let path = format!("{folder}/{name}");
        let count = |what: &str| {
            machine
                .sys
                .parse::<u64>(&format!("{path}/{what}_hugepages"))
        };
        let subject = format!("{place}, {}", size(kib));
        found.push(
            match (count("nr"), count("free")) {
                // One size is enough, so a lack of this size alone needs no remedy.
                (Ok(0), _) => HUGEPAGES.note("none reserved"),
                (Ok(total), Ok(0)) => {
                    HUGEPAGES
                        .warn(format!("all {total} are in use"))
                        .run(format!(
                            "echo {} > {path}/nr_hugepages",
                            total.saturating_mul(2)
                        ))
                }
                (Ok(total), Ok(free)) => {
                    any = true;
                    HUGEPAGES.ok(format!("{free} of {total} free"))
                }
                (Err(unread), _) | (_, Err(unread)) => HUGEPAGES.unread(&unread),
            }
            .of(subject),
        );
    }
    let reserved_elsewhere = |finding: &Finding| finding.level == Level::Warn;
    if !any && !found.iter().any(reserved_elsewhere) {
        // The smallest size is the one that can be allocated at any time.
        if let Some(first) = found
            .iter_mut()
            .find(|finding| finding.found == "none reserved")
        {
            let path = format!("{folder}/hugepages-2048kB/nr_hugepages");
            let warning = HUGEPAGES
                .warn("none reserved")
                .run(format!("echo {ENOUGH_2M} > {path}"));
            *first = Finding {
                subject: first.subject.take(),
                ..warning
            };
        }
    }
    found
}

fn size(kib: u64) -> String {
    match kib {
        _ if kib >= 1 << 20 => format!("{} GiB", kib >> 20),
        _ if kib >= 1 << 10 => format!("{} MiB", kib >> 10),
        _ => format!("{kib} KiB"),
    }
}

const MEMLOCK: Check = Check {
    name: "memlock",
    why: "Memory that may not be locked can be swapped out or moved, and no device may write it.",
};

/// Limit on the memory that this process may lock (getrlimit(2): RLIMIT_MEMLOCK).
pub(super) fn memlock(machine: &Machine) -> Vec<Finding> {
    const PATH: &str = "/proc/self/limits";
    /// One pool of the usual size, with little reserve.
    const LITTLE: u64 = 64 << 20;
    if process::capabilities(&machine.sys).is_ok_and(|set| process::has(set, CAP_IPC_LOCK)) {
        return vec![MEMLOCK.ok("no limit, by CAP_IPC_LOCK")];
    }
    let text = match machine.sys.text(PATH) {
        Ok(text) => text,
        Err(unread) => return vec![MEMLOCK.unread(&unread)],
    };
    let soft = text
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))
        .and_then(|rest| rest.split_whitespace().next());
    let command = "sudo prlimit --memlock=unlimited --pid $$";
    vec![match soft.map(|soft| (soft, soft.parse::<u64>())) {
        Some(("unlimited", _)) => MEMLOCK.ok("no limit"),
        Some((_, Ok(bytes))) if bytes < LITTLE => MEMLOCK
            .warn(format!("{} KiB may be locked", bytes >> 10))
            .run(command),
        Some((_, Ok(bytes))) => MEMLOCK.ok(format!("{} MiB may be locked", bytes >> 20)),
        _ => MEMLOCK.unread(&Unread::Missing(format!(
            "limit of locked memory in {PATH}"
        ))),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::finding::Remedy;
    use super::super::testing::{Case, findings, levels};
    use super::*;
    use pollux_machine::testing::Tree;

    fn pages(tree: &Tree, folder: &str, kib: u64, total: &str, free: &str) {
        let folder = format!("{folder}/hugepages-{kib}kB");
        tree.file(&format!("{folder}/nr_hugepages"), total)
            .file(&format!("{folder}/free_hugepages"), free);
    }

    #[test]
    fn hugepages_are_counted_per_node_and_size() {
        let tree = Tree::new();
        let node = |n| format!("/sys/devices/system/node/node{n}/hugepages");
        pages(&tree, &node(0), 2048, "256\n", "200\n");
        pages(&tree, &node(0), 1 << 20, "0\n", "0\n");
        pages(&tree, &node(1), 2048, "0\n", "0\n");
        pages(&tree, &node(1), 1 << 20, "0\n", "0\n");
        pages(&tree, &node(2), 2048, "8\n", "0\n");
        let found = findings(hugepages, &tree);
        let of = |i: usize| {
            (
                found[i].subject.as_deref().unwrap_or(""),
                found[i].level,
                found[i].found.as_str(),
            )
        };
        assert_eq!(of(0), ("node 0, 2 MiB", Level::Ok, "200 of 256 free"));
        assert_eq!(of(1), ("node 0, 1 GiB", Level::Note, "none reserved"));
        assert_eq!(of(2), ("node 1, 2 MiB", Level::Warn, "none reserved"));
        assert_eq!(of(3), ("node 1, 1 GiB", Level::Note, "none reserved"));
        assert_eq!(of(4), ("node 2, 2 MiB", Level::Warn, "all 8 are in use"));
        let command = |i: usize| found[i].remedy.clone();
        let path = |n| format!("{}/hugepages-2048kB/nr_hugepages", node(n));
        assert_eq!(
            command(2),
            Some(Remedy::Run(format!("echo 256 > {}", path(1))))
        );
        assert_eq!(
            command(4),
            Some(Remedy::Run(format!("echo 16 > {}", path(2))))
        );
    }

    #[test]
    fn hugepages_of_a_machine_without_nodes_or_without_any() {
        let tree = Tree::new();
        assert_eq!(levels(hugepages, &tree), [Level::Warn]);
        pages(&tree, "/sys/kernel/mm/hugepages", 2048, "4", "4");
        let found = findings(hugepages, &tree);
        assert_eq!((found.len(), found[0].level), (1, Level::Ok));
        let strange = Tree::new();
        pages(
            &strange,
            "/sys/kernel/mm/hugepages",
            2048,
            "many",
            "18446744073709551616",
        );
        strange.folder("/sys/kernel/mm/hugepages/hugepages-kB");
        assert_eq!(levels(hugepages, &strange), [Level::Note]);
        let full = Tree::new();
        pages(
            &full,
            "/sys/kernel/mm/hugepages",
            2048,
            "18446744073709551615",
            "0",
        );
        assert_eq!(levels(hugepages, &full), [Level::Warn]);
    }

    #[test]
    fn the_right_to_lock() {
        let at = "/proc/self/limits";
        let limit = |soft: &str| {
            format!("Max locked memory         {soft}              8388608              bytes\n")
        };
        Case::of(memlock).is(&limit("8388608"), at, Level::Warn);
        Case::of(memlock).is(&limit("unlimited"), at, Level::Ok);
        Case::of(memlock).is(&limit("68719476736"), at, Level::Ok);
        Case::of(memlock).is("rubbish", at, Level::Note);
        Case::of(memlock).is(&limit("-1"), at, Level::Note);
        Case::of(memlock)
            .file("/proc/self/status", "CapEff:\t0000000000004000")
            .is(&limit("0"), at, Level::Ok);
        assert_eq!(levels(memlock, &Tree::new()), [Level::Note]);
    }
}
