//! Functions on the PCI bus, as the kernel shows them to everybody (its
//! Documentation/ABI/testing/sysfs-bus-pci). Nothing here needs rights, and nothing is believed: an
//! attribute may be missing, unreadable, or hold anything.

mod address;
mod function;
mod sysfs;

pub use address::{Address, BadAddress};
pub use function::{Function, LinkStatus};
pub use sysfs::Sysfs;
