//! The drivers, one module each. The options of their specs and what they can do: docs/ports.md,
//! which is made from their [descriptions](crate::driver::Description).

pub mod af_packet;
pub mod af_xdp;
pub mod card;
mod chain;
mod dma;
pub mod dpdk;
mod e1000e;
mod igb;
mod igbvf;
mod intel;
mod interface;
pub mod loopback;
pub mod null;
pub mod pcap;
pub mod pci;
#[cfg(test)]
mod quiet;
mod step;
pub mod tap;
pub mod vhost_user;
mod virtio;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use card::hostile as hostile_card;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use e1000e::hostile as hostile_e1000e;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use igb::hostile as hostile_igb;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use virtio::{hostile as hostile_virtio, pci::hostile as hostile_virtio_pci};

use crate::registry::Registry;

impl Registry {
    /// The drivers of this crate. Ports that have a device or another process write into packet
    /// memory open with a [grant](Self::granting) alone.
    #[must_use]
    pub fn builtin() -> Self {
        let mut registry = Self::empty();
        registry.register(loopback::DESCRIPTION, |spec| Ok(loopback::open(spec)));
        registry.register(null::DESCRIPTION, null::open);
        registry.register(pcap::DESCRIPTION, pcap::open);
        registry.register(af_packet::DESCRIPTION, af_packet::open);
        registry.register(tap::DESCRIPTION, tap::open);
        registry.register(af_xdp::DESCRIPTION, af_xdp::open);
        registry.register_either(vhost_user::DESCRIPTION, vhost_user::open);
        registry.register_granted(pci::DESCRIPTION, pci::open);
        registry.register_granted(dpdk::DESCRIPTION, dpdk::open);
        registry
    }
}
