//! Drivers of PCI devices against models of their devices: `pollux_pmd_testkit::models`.

#![cfg(not(loom))]

mod card;
mod dma;
mod e1000e;
mod igb;
mod loopback;
mod pci;
mod sharing;
mod virtio_pci;
