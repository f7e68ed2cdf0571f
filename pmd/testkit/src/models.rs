//! Models of the devices whose drivers `pollux-pmd` has, register by register, and runs of these
//! drivers against an [adversary](crate::adversary).

// Of all the registers; and a device is made, it is not the default of anything.
#![allow(clippy::wildcard_imports, clippy::new_without_default)]

pub mod card;
mod checksum;
pub mod e1000e;
pub mod igb;
pub mod virtio_net;
