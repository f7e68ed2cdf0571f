//! Devices on the PCI bus: the kernel's Documentation/ABI/testing/sysfs-bus-pci.

use super::Sys;

/// Class of network controllers (PCI Code and ID Assignment, section 1.3).
const NETWORK: u32 = 0x02;
/// Class of bridges, which need not be given away with the devices of their group.
const BRIDGE: u32 = 0x06;

/// A device.
#[derive(Clone, Debug)]
pub(crate) struct Pci {
    /// `domain:bus:device.function`.
    pub(crate) address: String,
    /// Base class, sub-class and interface.
    pub(crate) class: u32,
    pub(crate) vendor: u16,
    pub(crate) device: u16,
    pub(crate) driver: Option<String>,
    /// NUMA node; none where the firmware does not tell.
    pub(crate) node: Option<usize>,
    pub(crate) group: Option<u32>,
    /// Network interfaces that it has in this network namespace.
    pub(crate) interfaces: Vec<String>,
    pub(crate) link: Option<Link>,
}

/// Speed and width of its link: now, and at most.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    /// GT/s of one lane.
    pub(crate) speed: f64,
    pub(crate) max_speed: f64,
    pub(crate) width: u32,
    pub(crate) max_width: u32,
}

pub(crate) const DEVICES: &str = "/sys/bus/pci/devices";

/// All network controllers, by address.
pub(crate) fn network(sys: &Sys) -> Vec<Pci> {
    let addresses = sys.names(DEVICES).into_iter();
    addresses
        .map(|address| device(sys, &address))
        .filter(Pci::is_network)
        .collect()
}

/// What is known of a device; zeros where the kernel does not tell.
pub(crate) fn device(sys: &Sys, address: &str) -> Pci {
    let of = |attribute: &str| format!("{DEVICES}/{address}/{attribute}");
    let hex = |attribute: &str| {
        let text = sys.text(&of(attribute)).unwrap_or_default();
        u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or_default()
    };
    Pci {
        address: address.into(),
        class: hex("class"),
        vendor: hex("vendor") as u16,
        device: hex("device") as u16,
        driver: sys.link(&of("driver")),
        node: sys.parse(&of("numa_node")).ok(),
        group: sys.link(&of("iommu_group")).and_then(|n| n.parse().ok()),
        interfaces: interfaces(sys, &of("")),
        link: link(sys, &of),
    }
}

/// Interfaces lie in the device's own folder, or in that of a device on a bus inside it (virtio).
fn interfaces(sys: &Sys, device: &str) -> Vec<String> {
    let mut found = sys.names(&format!("{device}net"));
    for inner in sys.names(device) {
        // The links in a device's folder (subsystem, driver, iommu_group) lead away from it.
        if !sys.path(&format!("{device}{inner}")).is_symlink() {
            found.extend(sys.names(&format!("{device}{inner}/net")));
        }
    }
    found
}

fn link(sys: &Sys, of: &impl Fn(&str) -> String) -> Option<Link> {
    // "8.0 GT/s PCIe", "Unknown"
    let speed = |attribute| {
        let text = sys.text(&of(attribute)).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    let width = |attribute| sys.parse::<u32>(&of(attribute)).ok().filter(|&n| n > 0);
    Some(Link {
        speed: speed("current_link_speed")?,
        max_speed: speed("max_link_speed")?,
        width: width("current_link_width")?,
        max_width: width("max_link_width")?,
    })
}

impl Pci {
    /// Where sysfs has it.
    pub(crate) fn folder(&self) -> String {
        format!("{DEVICES}/{}", self.address)
    }

    pub(crate) fn is_network(&self) -> bool {
        self.class >> 16 == NETWORK
    }

    pub(crate) fn is_bridge(&self) -> bool {
        self.class >> 16 == BRIDGE
    }

    /// `8086:1572`
    pub(crate) fn ids(&self) -> String {
        format!("{:04x}:{:04x}", self.vendor, self.device)
    }

    /// Whether its driver hands it to a program.
    pub(crate) fn is_for_programs(&self) -> bool {
        let drivers = ["vfio-pci", "uio_pci_generic", "igb_uio"];
        self.driver
            .as_deref()
            .is_some_and(|driver| drivers.contains(&driver))
    }

    /// The other devices of its IOMMU group that are held by a driver of the kernel: a group is
    /// handed to a program as a whole (the kernel's Documentation/driver-api/vfio.rst).
    pub(crate) fn kept_back(&self, sys: &Sys) -> Vec<Pci> {
        let Some(group) = self.group else {
            return Vec::new();
        };
        let members = sys.names(&format!("/sys/kernel/iommu_groups/{group}/devices"));
        members
            .iter()
            .filter(|address| **address != self.address)
            .map(|address| device(sys, address))
            .filter(|other| {
                other.driver.is_some() && !other.is_for_programs() && !other.is_bridge()
            })
            .collect()
    }
}

/// Whether there is a unit that translates the addresses of devices.
pub(crate) fn has_iommu(sys: &Sys) -> bool {
    !sys.names("/sys/kernel/iommu_groups").is_empty() || !sys.names("/sys/class/iommu").is_empty()
}

/// Whether vfio may hand out devices that no IOMMU holds back.
pub(crate) fn noiommu_allowed(sys: &Sys) -> bool {
    sys.text(NOIOMMU).is_ok_and(|text| text == "Y")
}

/// Set to Y by whoever accepts that the device may then write anywhere.
pub(crate) const NOIOMMU: &str = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";

#[cfg(test)]
mod tests {
    use super::super::testing::Tree;
    use super::*;

    #[test]
    fn devices_are_read_as_far_as_they_tell() {
        let tree = Tree::new();
        let of = |attribute: &str| format!("{DEVICES}/0000:03:00.0/{attribute}");
        tree.file(&of("class"), "0x020000\n")
            .file(&of("vendor"), "0x8086\n")
            .file(&of("device"), "0x1572\n")
            .file(&of("numa_node"), "1\n")
            .file(&of("current_link_speed"), "5.0 GT/s PCIe\n")
            .file(&of("max_link_speed"), "8.0 GT/s PCIe\n")
            .file(&of("current_link_width"), "4\n")
            .file(&of("max_link_width"), "8\n")
            .folder(&of("net/eth7"))
            .link(&of("driver"), "../../../bus/pci/drivers/i40e")
            .link(&of("iommu_group"), "../../../kernel/iommu_groups/17")
            .file(&format!("{DEVICES}/0000:04:00.0/class"), "0x020000")
            .folder(&format!("{DEVICES}/0000:04:00.0/virtio2/net/eth8"))
            .file(&format!("{DEVICES}/0000:00:1f.0/class"), "0x060100")
            .unreadable(&format!("{DEVICES}/junk/class"));
        let found = network(&tree.sys());
        assert_eq!(found.len(), 2);
        let nic = &found[0];
        assert_eq!(
            (nic.ids().as_str(), nic.node, nic.group),
            ("8086:1572", Some(1), Some(17))
        );
        assert_eq!(nic.driver.as_deref(), Some("i40e"));
        assert_eq!(nic.interfaces, ["eth7"]);
        let link = Link {
            speed: 5.0,
            max_speed: 8.0,
            width: 4,
            max_width: 8,
        };
        assert_eq!(nic.link, Some(link));
        assert_eq!(
            (found[1].interfaces.as_slice(), found[1].node),
            (&["eth8".to_owned()][..], None)
        );
    }
}
