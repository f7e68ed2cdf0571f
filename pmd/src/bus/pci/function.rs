//! PCI functions, as sysfs describes them.

use std::path::{Path, PathBuf};

use super::sysfs::{hex, link, names, number, text};
use super::{Address, Sysfs};
use crate::bus::Ids;

/// Base classes (PCI Code and ID Assignment, section 1).
const NETWORK: u32 = 0x02;
const BRIDGE: u32 = 0x06;

/// A snapshot of a PCI function; zeros where the kernel supplies no value.
#[derive(Clone, Debug)]
pub struct Function {
    /// PCI address.
    pub address: Address,
    /// Base class, sub-class and interface.
    pub class: u32,
    /// Vendor and device IDs.
    pub ids: Ids,
    /// The driver bound to it.
    pub driver: Option<String>,
    /// The only driver that may bind to it, if one was configured.
    pub driver_override: Option<String>,
    /// NUMA node; `None` where the firmware does not report it.
    pub numa_node: Option<u32>,
    /// Its IOMMU group; `None` where no IOMMU translates its addresses.
    pub group: Option<u32>,
    /// Its network interfaces in this network namespace.
    pub interfaces: Vec<String>,
    /// Its link, for PCI Express devices with a link.
    pub link: Option<LinkStatus>,
    folder: PathBuf,
}

/// Current and maximum speed and width of a PCI Express link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkStatus {
    /// Speed of one lane in GT/s.
    pub speed: f64,
    /// Maximum speed of the device.
    pub max_speed: f64,
    /// Lanes.
    pub width: u32,
    /// Maximum of the device.
    pub max_width: u32,
}

impl Sysfs {
    /// All functions, in the order of their addresses.
    #[must_use]
    pub fn functions(&self) -> Vec<Function> {
        let mut found: Vec<Address> = names(&self.path("bus/pci/devices"))
            .filter_map(|name| name.parse().ok())
            .collect();
        found.sort_unstable();
        let look = |address| Function::look(self, address);
        found.into_iter().filter_map(look).collect()
    }

    /// The function with that address, if it exists.
    #[must_use]
    pub fn function(&self, address: Address) -> Option<Function> {
        Function::look(self, address)
    }
}

impl Function {
    fn look(sysfs: &Sysfs, address: Address) -> Option<Self> {
        let folder = sysfs.path(format!("bus/pci/devices/{address}"));
        if !folder.exists() {
            return None;
        }
        let of = |attribute: &str| folder.join(attribute);
        let id = |attribute| hex(&of(attribute)).unwrap_or_default();
        let ids = Ids {
            vendor: id("vendor") as u16,
            device: id("device") as u16,
            subsystem_vendor: id("subsystem_vendor") as u16,
            subsystem: id("subsystem_device") as u16,
            revision: id("revision") as u8,
        };
        Some(Self {
            address,
            class: id("class"),
            ids,
            driver: link(&of("driver")),
            driver_override: text(&of("driver_override")).filter(|name| name != "(null)"),
            // -1 where the firmware does not report it.
            numa_node: number(&of("numa_node")),
            group: link(&of("iommu_group")).and_then(|group| group.parse().ok()),
            interfaces: interfaces(&folder),
            link: link_status(&folder),
            folder,
        })
    }

    /// Its folder in sysfs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it is a network controller.
    #[must_use]
    pub fn is_network(&self) -> bool {
        self.class >> 16 == NETWORK
    }

    /// Whether it is a bridge, which may stay with the kernel when the devices of its group are
    /// handed to a program.
    #[must_use]
    pub fn is_bridge(&self) -> bool {
        self.class >> 16 == BRIDGE
    }

    /// Whether its driver hands it to a program.
    #[must_use]
    pub fn is_for_programs(&self) -> bool {
        let driver = self.driver.as_deref();
        self.is_on_vfio() || matches!(driver, Some("uio_pci_generic" | "igb_uio"))
    }

    /// Whether it is bound to VFIO: to vfio-pci, or to a vendor's variant of it (mlx5-vfio-pci).
    #[must_use]
    pub fn is_on_vfio(&self) -> bool {
        let driver = self.driver.as_deref();
        driver.is_some_and(|driver| driver.ends_with("vfio-pci"))
    }

    /// The name of its device file in /dev/vfio/devices: `vfio0`, where the kernel has such files.
    #[must_use]
    pub fn vfio_device(&self) -> Option<String> {
        names(&self.folder.join("vfio-dev")).next()
    }

    /// Its current virtual functions, in order.
    #[must_use]
    pub fn virtual_functions(&self) -> Vec<Address> {
        let address = |i: u32| link(&self.folder.join(format!("virtfn{i}")))?.parse().ok();
        let mut found: Vec<(u32, Address)> = names(&self.folder)
            .filter_map(|name| name.strip_prefix("virtfn")?.parse().ok())
            .filter_map(|i| Some((i, address(i)?)))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, address)| address).collect()
    }

    /// Whether VFIO created its group without an IOMMU (no-IOMMU mode).
    #[must_use]
    pub fn has_no_iommu(&self) -> bool {
        let name = text(&self.folder.join("iommu_group/name"));
        self.group.is_none() || name.is_some_and(|name| name == "vfio-noiommu")
    }

    /// The other functions of its IOMMU group that a kernel driver holds: a group is handed to a
    /// program as a whole (the kernel's Documentation/driver-api/vfio.rst).
    #[must_use]
    pub fn kept_back(&self, sysfs: &Sysfs) -> Vec<Self> {
        let Some(group) = self.group else {
            return Vec::new();
        };
        let members = names(&sysfs.path(format!("kernel/iommu_groups/{group}/devices")));
        let mut kept: Vec<_> = members
            .filter_map(|name| sysfs.function(name.parse().ok()?))
            .filter(|other| other.address != self.address)
            .filter(|other| {
                other.driver.is_some() && !other.is_for_programs() && !other.is_bridge()
            })
            .collect();
        kept.sort_by_key(|other| other.address);
        kept
    }
}

/// Interfaces are in the device's own folder, or in that of a device on a bus inside it (virtio).
fn interfaces(device: &Path) -> Vec<String> {
    let mut found: Vec<_> = names(&device.join("net")).collect();
    for inner in names(device).map(|name| device.join(name)) {
        // The links in a device's folder (subsystem, driver, iommu_group) point outside it.
        if !inner.is_symlink() {
            found.extend(names(&inner.join("net")));
        }
    }
    found.sort_unstable();
    found
}

fn link_status(device: &Path) -> Option<LinkStatus> {
    // "8.0 GT/s PCIe", "Unknown"
    let speed = |attribute| {
        let text = text(&device.join(attribute))?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    let width = |attribute| number::<u32>(&device.join(attribute)).filter(|&n| n > 0);
    Some(LinkStatus {
        speed: speed("current_link_speed")?,
        max_speed: speed("max_link_speed")?,
        width: width("current_link_width")?,
        max_width: width("max_link_width")?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const A: &str = "bus/pci/devices/0000:03:00.0";

    /// An Intel network controller, a virtio one, and a function that is neither.
    fn tree() -> (tempfile::TempDir, Sysfs) {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path().to_owned();
        let file = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (attribute, text) in [
            ("class", "0x020000\n"),
            ("vendor", "0x8086\n"),
            ("device", "0x1572\n"),
            ("subsystem_vendor", "0x8086\n"),
            ("subsystem_device", "0x0007\n"),
            ("revision", "0x02\n"),
            ("numa_node", "1\n"),
            ("driver_override", "(null)\n"),
            ("current_link_speed", "5.0 GT/s PCIe\n"),
            ("max_link_speed", "8.0 GT/s PCIe\n"),
            ("current_link_width", "4\n"),
            ("max_link_width", "8\n"),
            ("net/eth7/mtu", "1500\n"),
        ] {
            file(&format!("{A}/{attribute}"), text);
        }
        let link = |target: &str, name: &str| symlink(target, root.join(A).join(name)).unwrap();
        link("../../../bus/pci/drivers/i40e", "driver");
        link("../../../kernel/iommu_groups/17", "iommu_group");
        for (i, address) in ["0000:03:02.0", "0000:03:02.1", "0000:03:0f.7"]
            .iter()
            .enumerate()
        {
            link(
                &format!("../{address}"),
                &format!("virtfn{}", [0, 1, 10][i]),
            );
        }
        let b = "bus/pci/devices/0000:04:00.0";
        file(&format!("{b}/class"), "0x020000");
        file(&format!("{b}/numa_node"), "-1");
        file(&format!("{b}/virtio2/net/eth8/mtu"), "1500");
        file("bus/pci/devices/0000:00:1f.0/class", "0x060100");
        file("bus/pci/devices/0000:00:1e.0/class", "\u{1b}[2J");
        file("bus/pci/devices/junk/class", "0x020000");
        (tree, Sysfs::at(root))
    }

    #[test]
    fn functions_are_read_as_far_as_they_tell() {
        let (_tree, sysfs) = tree();
        let found = sysfs.functions();
        let addresses: Vec<_> = found.iter().map(|f| f.address.to_string()).collect();
        assert_eq!(
            addresses,
            [
                "0000:00:1e.0",
                "0000:00:1f.0",
                "0000:03:00.0",
                "0000:04:00.0"
            ]
        );
        assert!(found[1].is_bridge() && !found[0].is_network());
        let (nic, virtio) = (&found[2], &found[3]);
        let ids = Ids {
            vendor: 0x8086,
            device: 0x1572,
            subsystem_vendor: 0x8086,
            subsystem: 7,
            revision: 2,
        };
        assert_eq!(
            (nic.ids, nic.numa_node, nic.group),
            (ids, Some(1), Some(17))
        );
        assert_eq!(nic.driver.as_deref(), Some("i40e"));
        assert_eq!((&nic.driver_override, nic.is_on_vfio()), (&None, false));
        assert_eq!(nic.interfaces, ["eth7"]);
        let link = LinkStatus {
            speed: 5.0,
            max_speed: 8.0,
            width: 4,
            max_width: 8,
        };
        assert_eq!(nic.link, Some(link));
        let functions: Vec<_> = nic
            .virtual_functions()
            .iter()
            .map(Address::to_string)
            .collect();
        assert_eq!(functions, ["0000:03:02.0", "0000:03:02.1", "0000:03:0f.7"]);
        assert_eq!(virtio.interfaces, ["eth8"]);
        assert_eq!((virtio.numa_node, virtio.group), (None, None));
        assert!(virtio.has_no_iommu() && virtio.virtual_functions().is_empty());
        assert!(sysfs.function("05:00.0".parse().unwrap()).is_none());
    }

    #[test]
    fn what_the_kernel_keeps_of_a_group() {
        let (_tree, sysfs) = tree();
        let nic = sysfs.function("03:00.0".parse().unwrap()).unwrap();
        assert!(nic.kept_back(&sysfs).is_empty());
        let group = sysfs.path("kernel/iommu_groups/17/devices");
        for address in ["0000:03:00.0", "0000:00:1f.0", "0000:04:00.0", "junk"] {
            fs::create_dir_all(group.join(address)).unwrap();
        }
        assert!(nic.kept_back(&sysfs).is_empty(), "no driver has the others");
        for address in ["0000:00:1f.0", "0000:04:00.0"] {
            let driver = sysfs.path("bus/pci/devices").join(address).join("driver");
            symlink("../drivers/some", driver).unwrap();
        }
        let kept: Vec<_> = nic
            .kept_back(&sysfs)
            .iter()
            .map(|f| f.address.to_string())
            .collect();
        assert_eq!(kept, ["0000:04:00.0"], "a bridge does no harm");
    }
}
