//! Checks of network controllers: driver, NUMA node, slot, and IOMMU.

use super::finding::{Check, Finding};
use super::machine::{Machine, named};
use pollux_machine::{cpu_list, pci, pci::Function};

const DRIVER: Check = Check {
    name: "device-driver",
    why: "A device that the kernel drives is used through its interface; one that a program is to drive has to be bound to vfio-pci.",
};

/// Driver of each network controller.
pub(super) fn drivers(machine: &Machine) -> Vec<Finding> {
    let devices = pci::network(&machine.sys);
    if devices.is_empty() {
        return vec![
            DRIVER
                .note("no network controller on the PCI bus")
                .look("lspci -nn"),
        ];
    }
    let bus = pci::bus(&machine.sys);
    let safe = bus.has_iommu() || bus.allows_no_iommu();
    let judge = |device: &Function| {
        let ids = device.ids;
        let finding = match &device.driver {
            None => DRIVER
                .note(format!("{ids} has no driver"))
                .run(format!("pollux bind {}", device.address)),
            Some(driver) if driver == "vfio-pci" && !safe => DRIVER
                .bad(format!(
                    "{ids} is bound to {driver}, which gives no access without an IOMMU"
                ))
                .run(format!("echo Y > {}", pci::ALLOW_NO_IOMMU)),
            Some(driver) if device.is_for_programs() => {
                DRIVER.ok(format!("{ids} is bound to {driver}: for programs"))
            }
            Some(driver) => {
                let names = match device.interfaces.as_slice() {
                    [] => "no interface here".into(),
                    names => names.join(", "),
                };
                DRIVER.ok(format!("{ids} is bound to {driver}: {names}"))
            }
        };
        finding.of(device.address.to_string())
    };
    devices.iter().map(judge).collect()
}

const IOMMU: Check = Check {
    name: "iommu",
    why: "It holds a device to the memory that was given to it, and lets a program use it without being root.",
};

const GROUPS: &str = "/sys/kernel/iommu_groups";

/// Whether an IOMMU confines devices.
pub(super) fn iommu(machine: &Machine) -> Vec<Finding> {
    let groups = machine.sys.names(GROUPS).len();
    // Translation is on by default for AMD only.
    let parameters = match machine.sys.text("/proc/cpuinfo") {
        Ok(text) if text.contains("AuthenticAMD") => "iommu=pt",
        _ => "intel_iommu=on iommu=pt",
    };
    let passes = machine.parameter("iommu").iter().any(|value| value == "pt")
        || machine.sys.exists("/sys/kernel/iommu_groups/0/type")
            && machine
                .sys
                .text("/sys/kernel/iommu_groups/0/type")
                .is_ok_and(|kind| kind == "identity");
    vec![if !pci::bus(&machine.sys).has_iommu() {
        let guest = machine.is_guest() == Ok(true);
        let offered = if guest {
            "; in a guest, the hypervisor has to offer one too"
        } else {
            ""
        };
        IOMMU
            .warn(format!("there is none, or it is off{offered}"))
            .boot(parameters)
    } else if passes {
        IOMMU.ok(format!(
            "{groups} groups; the kernel's own drivers pass through it"
        ))
    } else {
        IOMMU
            .note(format!(
                "{groups} groups; the kernel's own drivers pay for its translation"
            ))
            .boot("iommu=pt")
    }]
}

const GROUP: Check = Check {
    name: "iommu-group",
    why: "A group is given to a program as a whole: what cannot be told apart by the IOMMU must have one owner.",
};

/// Devices in the IOMMU group of a network controller.
pub(super) fn groups(machine: &Machine) -> Vec<Finding> {
    let judge = |device: Function| {
        let group = device.group?;
        let others = device.kept_back(&pci::bus(&machine.sys));
        let finding = if others.is_empty() {
            GROUP.ok(format!("{group}: of its own"))
        } else {
            let list: Vec<_> = others
                .iter()
                .map(|other| other.address.to_string())
                .collect();
            let found = format!("{group}: shared with {}", list.join(", "));
            if device.is_for_programs() {
                GROUP
                    .bad(found)
                    .run(format!("pollux bind {}", list.join(" ")))
            } else {
                GROUP
                    .note(found)
                    .look(format!("ls {GROUPS}/{group}/devices"))
            }
        };
        Some(finding.of(device.address.to_string()))
    };
    pci::network(&machine.sys)
        .into_iter()
        .filter_map(judge)
        .collect()
}

const VFIO: Check = Check {
    name: "vfio",
    why: "The driver vfio-pci hands a PCI device to a program.",
};

/// Whether devices can be bound to vfio-pci.
pub(super) fn vfio(machine: &Machine) -> Vec<Finding> {
    vec![if !machine.sys.exists("/sys/bus/pci/drivers/vfio-pci") {
        VFIO.note("vfio-pci is not loaded").run("modprobe vfio-pci")
    } else if pci::bus(&machine.sys).has_iommu() {
        VFIO.ok("vfio-pci is there")
    } else if pci::bus(&machine.sys).allows_no_iommu() {
        VFIO.warn("without an IOMMU: a device can then write anywhere in memory")
            .boot("intel_iommu=on iommu=pt")
    } else {
        VFIO.note("vfio-pci is there, but there is no IOMMU, and use without one is not allowed")
            .run(format!("echo Y > {}", pci::ALLOW_NO_IOMMU))
    }]
}

const NODE: Check = Check {
    name: "numa",
    why: "From another node each frame and each register access crosses the link between the sockets.",
};

/// Whether the CPUs of loops are on the NUMA node of each network controller.
pub(super) fn nodes(machine: &Machine) -> Vec<Finding> {
    let nodes = machine.nodes();
    if nodes.len() < 2 {
        return vec![NODE.ok("there is one node")];
    }
    let judge = |device: Function| {
        let Some(node) = device.numa_node else {
            // Boards name the slot after the processor to which it is connected (SMBIOS type 9).
            return NODE
                .note("the firmware does not tell the node")
                .look("dmidecode -t slot")
                .of(device.address.to_string());
        };
        let near = machine.node_cpus(node as usize);
        let far: Vec<_> = machine
            .cores
            .iter()
            .copied()
            .filter(|cpu| !near.contains(cpu))
            .collect();
        let both = |cpu: &usize| near.contains(cpu) && machine.cores.contains(cpu);
        let usable: Vec<_> = machine.cores.iter().copied().filter(both).collect();
        let finding = if far.is_empty() {
            NODE.ok(format!("node {node}, as are the CPUs"))
        } else if machine.cores_are_chosen && usable.is_empty() {
            NODE.warn(format!("node {node}, but {} are elsewhere", named(&far)))
                .option(format!("--cores {}", cpu_list(&near)))
        } else {
            let use_these = if usable.is_empty() { &near } else { &usable };
            NODE.note(format!(
                "node {node}: for its loops use {}",
                named(use_these)
            ))
            .option(format!("--cores {}", cpu_list(use_these)))
        };
        finding.of(device.address.to_string())
    };
    pci::network(&machine.sys).into_iter().map(judge).collect()
}

const LINK: Check = Check {
    name: "pcie-link",
    why: "A slot that is slower or narrower than the device limits its rate, whatever its ports can do.",
};

/// Whether the slot has the speed and width of the device.
pub(super) fn links(machine: &Machine) -> Vec<Finding> {
    let judge = |device: Function| {
        let link = device.link?;
        let found = format!("{} GT/s x{}", link.speed, link.width);
        let finding = if link.speed < link.max_speed || link.width < link.max_width {
            LINK.note(format!(
                "{found}, of {} GT/s x{}: try another slot",
                link.max_speed, link.max_width
            ))
            .look(format!("lspci -vv -s {}", device.address))
        } else {
            LINK.ok(found)
        };
        Some(finding.of(device.address.to_string()))
    };
    pci::network(&machine.sys)
        .into_iter()
        .filter_map(judge)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::{Level, Remedy};
    use super::super::testing::{findings, levels};
    use super::*;
    use Level::{Bad, Note, Ok, Warn};
    use pollux_machine::testing::Tree;

    const A: &str = "0000:03:00.0";
    const B: &str = "0000:03:00.1";

    fn at(address: &str, attribute: &str) -> String {
        format!("{}/{address}/{attribute}", pci::DEVICES)
    }

    /// Two network controllers: one bound to a kernel driver, one unbound.
    fn machine() -> Tree {
        let tree = Tree::new();
        tree.file(&at(A, "class"), "0x020000")
            .file(&at(B, "class"), "0x020000")
            .link(&at(A, "driver"), "drivers/ixgbe")
            .folder(&at(A, "net/eth0"));
        tree
    }

    #[test]
    fn drivers_are_told() {
        let tree = machine();
        let found = findings(drivers, &tree);
        assert_eq!(found[0].found, "0000:0000 is bound to ixgbe: eth0");
        assert_eq!((found[0].level, found[1].level), (Ok, Note));
        tree.link(&at(B, "driver"), "drivers/vfio-pci");
        assert_eq!(levels(drivers, &tree), [Ok, Bad]);
        tree.file(pci::ALLOW_NO_IOMMU, "Y\n");
        assert_eq!(levels(drivers, &tree), [Ok, Ok]);
        assert_eq!(levels(drivers, &Tree::new()), [Note]);
        let strange = Tree::new();
        strange
            .file(&at("\u{7}", "class"), "0xffffffffff")
            .file(&at(A, "class"), "\u{0}");
        assert_eq!(levels(drivers, &strange), [Note]);
    }

    #[test]
    fn an_iommu_and_its_groups() {
        let tree = machine();
        let found = findings(iommu, &tree);
        assert_eq!(
            found[0].remedy,
            Some(Remedy::Boot("intel_iommu=on iommu=pt".into()))
        );
        tree.file(
            "/proc/cpuinfo",
            "vendor_id : AuthenticAMD\nflags : hypervisor",
        );
        let found = findings(iommu, &tree);
        assert_eq!(found[0].remedy, Some(Remedy::Boot("iommu=pt".into())));
        assert!(found[0].found.contains("hypervisor"));

        let group = "/sys/kernel/iommu_groups/7/devices";
        tree.folder(&format!("{group}/{A}"))
            .folder(&format!("{group}/{B}"))
            .link(&at(A, "iommu_group"), "iommu_groups/7")
            .link(&at(B, "iommu_group"), "iommu_groups/7");
        assert_eq!(levels(iommu, &tree), [Note]);
        tree.file("/proc/cmdline", "iommu=pt");
        assert_eq!(levels(iommu, &tree), [Ok]);
        // B shares its group with A, which is bound to ixgbe; B is unbound.
        assert_eq!(levels(groups, &tree), [Ok, Note]);
        tree.link(&at(B, "driver"), "drivers/vfio-pci");
        let found = findings(groups, &tree);
        assert_eq!(found[1].level, Bad);
        assert_eq!(
            found[1].remedy,
            Some(Remedy::Run(format!("pollux bind {A}")))
        );
        assert_eq!(levels(groups, &machine()), []);
    }

    #[test]
    fn vfio_needs_its_module_and_an_iommu() {
        let tree = Tree::new();
        assert_eq!(levels(vfio, &tree), [Note]);
        tree.folder("/sys/bus/pci/drivers/vfio-pci");
        assert_eq!(
            findings(vfio, &tree)[0].remedy,
            Some(Remedy::Run(format!("echo Y > {}", pci::ALLOW_NO_IOMMU)))
        );
        tree.file(pci::ALLOW_NO_IOMMU, "Y");
        assert_eq!(levels(vfio, &tree), [Warn]);
        tree.folder("/sys/kernel/iommu_groups/0");
        assert_eq!(levels(vfio, &tree), [Ok]);
    }

    #[test]
    fn loops_are_best_on_the_node_of_their_device() {
        let tree = machine();
        assert_eq!(levels(nodes, &tree), [Ok]);
        tree.file(&at(A, "numa_node"), "1")
            .file(&at(B, "numa_node"), "-1")
            .file("/sys/devices/system/node/node0/cpulist", "0-1")
            .file("/sys/devices/system/node/node1/cpulist", "2-3")
            .file("/proc/self/status", "Cpus_allowed_list: 0-3");
        let found = findings(nodes, &tree);
        assert_eq!((found[0].level, found[1].level), (Note, Note));
        assert_eq!(found[0].remedy, Some(Remedy::Option("--cores 2-3".into())));
        assert_eq!(
            found[1].remedy,
            Some(Remedy::Look("dmidecode -t slot".into()))
        );
        let with =
            |cores: &[usize]| nodes(&Machine::new(tree.sys(), Some(cores.to_vec())))[0].level;
        assert_eq!((with(&[0, 1]), with(&[1, 2]), with(&[2])), (Warn, Note, Ok));
        tree.unreadable("/sys/devices/system/node/node2/cpulist")
            .file(&at(A, "numa_node"), "2");
        assert_eq!(nodes(&Machine::new(tree.sys(), None))[0].level, Note);
    }

    #[test]
    fn slots_that_are_too_slow() {
        let tree = machine();
        assert_eq!(levels(links, &tree), []);
        let set = |attribute, text| tree.file(&at(A, attribute), text);
        set("current_link_speed", "8.0 GT/s PCIe").file(&at(A, "max_link_speed"), "8.0 GT/s PCIe");
        set("current_link_width", "8").file(&at(A, "max_link_width"), "8");
        assert_eq!(levels(links, &tree), [Ok]);
        set("current_link_width", "4");
        assert_eq!(
            findings(links, &tree)[0].found,
            "8 GT/s x4, of 8 GT/s x8: try another slot"
        );
        assert_eq!(
            findings(links, &tree)[0].remedy,
            Some(Remedy::Look(format!("lspci -vv -s {A}")))
        );
        set("current_link_speed", "Unknown");
        assert_eq!(levels(links, &tree), []);
    }
}
