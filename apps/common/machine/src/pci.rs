//! PCI devices of the machine below this root, as pollux-pmd lists them.

use pollux_pmd::bus::pci::{Address, Sysfs};

use crate::Sys;

pub use pollux_pmd::bus::pci::{ALLOW_NO_IOMMU, Function};

/// The folder of all devices.
pub const DEVICES: &str = "/sys/bus/pci/devices";

/// The machine's PCI bus.
#[must_use]
pub fn bus(sys: &Sys) -> Sysfs {
    Sysfs::at(sys.path("/sys"))
}

/// All network controllers, by address.
#[must_use]
pub fn network(sys: &Sys) -> Vec<Function> {
    let mut all = bus(sys).functions();
    all.retain(Function::is_network);
    all
}

/// Path of a device in `sys`.
#[must_use]
pub fn folder(address: Address) -> String {
    format!("{DEVICES}/{address}")
}
