//! Checks of the privileges of the process: capabilities(7).

use super::finding::{Check, Finding};
use super::machine::Machine;
use pollux_machine::process::{self, CAP_BPF, CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN};

const NET_RAW: Check = Check {
    name: "cap-net-raw",
    why: "Without it no port of the kinds af_packet and af_xdp can be opened.",
};
const NET_ADMIN: Check = Check {
    name: "cap-net-admin",
    why: "Without it there are no stamps of the NIC, no taps, and no steering of flows to queues.",
};
const BPF: Check = Check {
    name: "cap-bpf",
    why: "Without it no program can be loaded that hands frames to an af_xdp port.",
};
const SYS_ADMIN: Check = Check {
    name: "cap-sys-admin",
    why: "Without it physical addresses are not shown, which devices without an IOMMU need.",
};

/// Capabilities that ports on interfaces need.
const NAMES: &str = "cap_net_raw,cap_net_admin,cap_bpf";

/// Capabilities that kinds of ports need. setcap replaces the capabilities of a file, so one
/// command covers all ports of the machine.
pub(super) fn examine(machine: &Machine) -> Vec<Finding> {
    let set = process::capabilities(&machine.sys);
    // A device behind an IOMMU needs no physical addresses, and this capability is almost that of
    // root.
    let addresses = machine.sys.names("/sys/kernel/iommu_groups").is_empty();
    let names = [NAMES, if addresses { ",cap_sys_admin" } else { "" }].concat();
    let checks = [
        (NET_RAW, CAP_NET_RAW),
        (NET_ADMIN, CAP_NET_ADMIN),
        (BPF, CAP_BPF),
        (SYS_ADMIN, CAP_SYS_ADMIN),
    ];
    let judged = checks.into_iter().map(|(check, bit)| {
        let lacking = "the process does not have it";
        let finding = match set {
            Err(ref unread) => return check.unread(unread),
            Ok(set) if process::has(set, bit) => return check.ok("the process has it"),
            // Most ports of most machines need it.
            Ok(_) if bit == CAP_NET_RAW => check.warn(lacking),
            Ok(_) if bit == CAP_SYS_ADMIN && !addresses => {
                return check.note(format!("{lacking}; with an IOMMU no device needs it"));
            }
            Ok(_) => check.note(lacking),
        };
        finding.run(format!("setcap {names}+ep $(command -v pollux)"))
    });
    judged.collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level::{Note, Ok, Warn};
    use super::super::finding::Remedy;
    use super::super::testing::{findings, levels};
    use super::*;
    use pollux_machine::testing::Tree;

    #[test]
    fn rights_are_read_bit_by_bit() {
        let of = |set: &str| {
            let tree = Tree::new();
            tree.file("/proc/self/status", format!("Name:\tx\nCapEff:\t{set}\n"));
            levels(examine, &tree)
        };
        assert_eq!(of("000001ffffffffff"), [Ok; 4]);
        assert_eq!(of("0000000000000000"), [Warn, Note, Note, Note]);
        assert_eq!(of("0000000000003000"), [Ok, Ok, Note, Note]);
        assert_eq!(of("0000000000200000"), [Warn, Note, Ok, Ok]);
        assert_eq!(of("0000008000000000"), [Warn, Note, Ok, Note]);
        assert_eq!(of("xyz"), [Note; 4]);
        assert_eq!(levels(examine, &Tree::new()), [Note; 4]);
    }

    #[test]
    fn one_command_gives_all_rights() {
        let commands = |tree: &Tree| {
            let found = findings(examine, tree);
            let remedies = found.into_iter().filter_map(|finding| finding.remedy);
            remedies.collect::<Vec<_>>()
        };
        let one = |names: &str| {
            let command = format!("setcap {names}+ep $(command -v pollux)");
            Remedy::Run(command)
        };
        let all = one("cap_net_raw,cap_net_admin,cap_bpf,cap_sys_admin");
        for (set, lacking) in [("0", 4), ("3000", 2), ("2000", 3), ("8000000000", 3)] {
            let tree = Tree::new();
            tree.file("/proc/self/status", format!("CapEff:\t{set}\n"));
            assert_eq!(commands(&tree), vec![all.clone(); lacking], "{set}");
        }
        let tree = Tree::new();
        tree.file("/proc/self/status", "CapEff:\t0\n")
            .folder("/sys/kernel/iommu_groups/0");
        let without_root = one("cap_net_raw,cap_net_admin,cap_bpf");
        assert_eq!(commands(&tree), vec![without_root; 3]);
    }
}
