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

use std::io;

use crate::quarantine::Quarantine;
use crate::registry::Registry;

/// A step of setting a port up that the system refused, in words.
type Step = (&'static str, io::Error);

/// A line of the statistics of a port whose device writes into our memory: buffers of queues that
/// have ended, kept until the device is proven to be at rest.
fn quarantined(quarantine: &Quarantine) -> (std::borrow::Cow<'static, str>, u64) {
    ("quarantined_buffers".into(), quarantine.buffers() as u64)
}

/// Adds the drivers of this crate.
pub(crate) fn register(registry: &mut Registry) {
    registry.register(loopback::DESCRIPTION, |spec| Ok(loopback::open(spec)));
    registry.register(null::DESCRIPTION, null::open);
    registry.register(pcap::DESCRIPTION, pcap::open);
    registry.register(af_packet::DESCRIPTION, af_packet::open);
    registry.register(tap::DESCRIPTION, tap::open);
    registry.register(af_xdp::DESCRIPTION, af_xdp::open);
    registry.register_either(vhost_user::DESCRIPTION, vhost_user::open);
    registry.register_granted(pci::DESCRIPTION, pci::open);
    registry.register_granted(dpdk::DESCRIPTION, dpdk::open);
}
