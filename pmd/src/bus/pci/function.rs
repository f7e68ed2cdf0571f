//! What sysfs tells of one function.

use std::path::{Path, PathBuf};

use super::sysfs::{hex, link, names, number, text};
use super::{Address, Sysfs};
use crate::bus::Ids;

/// Base classes (PCI Code and ID Assignment, section 1).
const NETWORK: u32 = 0x02;
const BRIDGE: u32 = 0x06;

/// A function of a PCI device, as it was when it was looked at; zeros where the kernel does not
/// tell.
#[derive(Clone, Debug)]
pub struct Function {
    /// Where it sits.
    pub address: Address,
    /// Base class, sub-class and interface.
    pub class: u32,
    /// What it is.
    pub ids: Ids,
    /// The driver that it is bound to.
    pub driver: Option<String>,
    /// The one driver that may take it, where somebody has chosen.
    pub driver_override: Option<String>,
    /// NUMA node; none where the firmware does not tell.
    pub numa_node: Option<u32>,
    /// Its IOMMU group; none where no IOMMU translates its addresses.
    pub group: Option<u32>,
    /// Network interfaces that it has in this network namespace.
    pub interfaces: Vec<String>,
    /// Its link, if it is a PCI Express device that has one.
    pub link: Option<LinkStatus>,
    folder: PathBuf,
}

/// Speed and width of a PCI Express link: now, and at most.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkStatus {
    /// GT/s of one lane.
    pub speed: f64,
    /// The most that the device can.
    pub max_speed: f64,
    /// Lanes.
    pub width: u32,
    /// The most that the device has.
    pub max_width: u32,
}

impl Function {
    pub(super) fn look(sysfs: &Sysfs, address: Address) -> Option<Self> {
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
            // -1 where the firmware does not tell.
            numa_node: number(&of("numa_node")),
            group: link(&of("iommu_group")).and_then(|group| group.parse().ok()),
            interfaces: interfaces(&folder),
            link: link_status(&folder),
            folder,
        })
    }

    /// Where sysfs has it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it is a network controller.
    #[must_use]
    pub fn is_network(&self) -> bool {
        self.class >> 16 == NETWORK
    }

    /// Whether it is a bridge, which need not be given away with the devices of its group.
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

    /// The name of its own file in /dev/vfio/devices: `vfio0`, where the kernel has such files.
    #[must_use]
    pub fn vfio_device(&self) -> Option<String> {
        names(&self.folder.join("vfio-dev")).next()
    }

    /// Whether its group is one that VFIO has made up, because no IOMMU holds the device back.
    #[must_use]
    pub fn has_no_iommu(&self) -> bool {
        let name = text(&self.folder.join("iommu_group/name"));
        self.group.is_none() || name.is_some_and(|name| name == "vfio-noiommu")
    }

    /// The other functions of its IOMMU group that are held by a driver of the kernel: a group is
    /// handed to a program as a whole (the kernel's Documentation/driver-api/vfio.rst).
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

/// Interfaces lie in the device's own folder, or in that of a device on a bus inside it (virtio).
fn interfaces(device: &Path) -> Vec<String> {
    let mut found: Vec<_> = names(&device.join("net")).collect();
    for inner in names(device).map(|name| device.join(name)) {
        // The links in a device's folder (subsystem, driver, iommu_group) lead away from it.
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
