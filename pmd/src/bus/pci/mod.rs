//! Functions on the PCI bus, as the kernel shows them to everybody (its
//! Documentation/ABI/testing/sysfs-bus-pci).

mod address;

pub use address::{Address, BadAddress};
