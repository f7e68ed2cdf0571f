//! PCI devices of the machine below this root, as pollux-pmd lists them.

use pollux_pmd::bus::pci::{Address, Sysfs};

use super::Sys;

pub(crate) use pollux_pmd::bus::pci::{ALLOW_NO_IOMMU, Function};

pub(crate) const DEVICES: &str = "/sys/bus/pci/devices";

/// The machine's PCI bus.
pub(crate) fn bus(sys: &Sys) -> Sysfs {
    Sysfs::at(sys.path("/sys"))
}

/// All network controllers, by address.
pub(crate) fn network(sys: &Sys) -> Vec<Function> {
    let mut all = bus(sys).functions();
    all.retain(Function::is_network);
    all
}

/// Path of a device in `sys`.
pub(crate) fn folder(address: Address) -> String {
    format!("{DEVICES}/{address}")
}
