//! PCI bus scan through sysfs (the kernel's Documentation/ABI/testing/sysfs-bus-pci). It needs no
//! privileges, and trusts nothing: an attribute may be missing, unreadable, or hold any text.

mod address;
mod bar;
mod config;
mod function;
mod names;
mod sysfs;

pub use address::{Address, BadAddress};
pub use bar::{Bar, BarKind};
pub use config::{Capability, ConfigSpace, Express, MsiX, SrIov};
pub use function::{Function, LinkStatus};
pub use names::Names;
pub use sysfs::{ALLOW_NO_IOMMU, Sysfs};
