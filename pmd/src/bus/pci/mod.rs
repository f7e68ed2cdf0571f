//! Functions on the PCI bus, as the kernel shows them to everybody (its
//! Documentation/ABI/testing/sysfs-bus-pci). Nothing here needs rights, and nothing is believed: an
//! attribute may be missing, unreadable, or hold anything.

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
