//! The drivers, one module each. The options of their specs and what they can do: docs/ports.md,
//! which is made from their [descriptions](crate::driver::Description).

#[cfg(feature = "af_packet")]
pub mod af_packet;
#[cfg(feature = "af_xdp")]
pub mod af_xdp;
#[cfg(feature = "card")]
pub mod card;
#[cfg(any(feature = "af_packet", feature = "dpdk"))]
mod chain;
#[cfg(any(
    feature = "card",
    feature = "e1000e",
    feature = "igb",
    feature = "vhost-user",
    feature = "virtio"
))]
mod dma;
pub mod dpdk;
#[cfg(feature = "e1000e")]
mod e1000e;
#[cfg(feature = "igb")]
mod igb;
#[cfg(feature = "igb")]
mod igbvf;
#[cfg(any(feature = "e1000e", feature = "igb"))]
mod intel;
#[cfg(any(feature = "af_packet", feature = "af_xdp", feature = "tap"))]
mod interface;
pub mod loopback;
pub mod null;
#[cfg(feature = "pcap")]
pub mod pcap;
#[cfg(feature = "pci")]
pub mod pci;
#[cfg(test)]
mod quiet;
#[cfg(any(feature = "af_packet", feature = "af_xdp", feature = "tap"))]
mod step;
#[cfg(feature = "tap")]
pub mod tap;
#[cfg(feature = "vhost-user")]
pub mod vhost_user;
#[cfg(any(feature = "vhost-user", feature = "virtio"))]
mod virtio;
#[cfg(all(feature = "card", any(test, fuzzing)))]
#[doc(hidden)]
pub use card::hostile as hostile_card;
#[cfg(all(feature = "e1000e", any(test, fuzzing)))]
#[doc(hidden)]
pub use e1000e::hostile as hostile_e1000e;
#[cfg(all(feature = "igb", any(test, fuzzing)))]
#[doc(hidden)]
pub use igb::hostile as hostile_igb;
#[cfg(all(any(feature = "vhost-user", feature = "virtio"), any(test, fuzzing)))]
#[doc(hidden)]
pub use virtio::hostile as hostile_virtio;
#[cfg(all(feature = "virtio", any(test, fuzzing)))]
#[doc(hidden)]
pub use virtio::pci::hostile as hostile_virtio_pci;

use crate::registry::Registry;

/// Drivers that a build may lack: the name in a spec, the feature that has it built, and whether it is.
const OPTIONAL: [(&str, &str, bool); 6] = [
    ("pcap", "pcap", cfg!(feature = "pcap")),
    ("af_packet", "af_packet", cfg!(feature = "af_packet")),
    ("tap", "tap", cfg!(feature = "tap")),
    ("af_xdp", "af_xdp", cfg!(feature = "af_xdp")),
    ("vhost-user", "vhost-user", cfg!(feature = "vhost-user")),
    ("pci", "e1000e, igb, virtio or card", cfg!(feature = "pci")),
];

impl Registry {
    /// The drivers of this crate. Ports that have a device or another process write into packet
    /// memory open with a [grant](Self::granting) alone.
    #[must_use]
    pub fn builtin() -> Self {
        let mut registry = Self::empty();
        registry.register(loopback::DESCRIPTION, |spec| Ok(loopback::open(spec)));
        registry.register(null::DESCRIPTION, null::open);
        #[cfg(feature = "pcap")]
        registry.register(pcap::DESCRIPTION, pcap::open);
        #[cfg(feature = "af_packet")]
        registry.register(af_packet::DESCRIPTION, af_packet::open);
        #[cfg(feature = "tap")]
        registry.register(tap::DESCRIPTION, tap::open);
        #[cfg(feature = "af_xdp")]
        registry.register(af_xdp::DESCRIPTION, af_xdp::open);
        #[cfg(feature = "vhost-user")]
        registry.register_either(vhost_user::DESCRIPTION, vhost_user::open);
        #[cfg(feature = "pci")]
        registry.register_granted(pci::DESCRIPTION, pci::open);
        registry.register_granted(dpdk::DESCRIPTION, dpdk::open);
        for (driver, feature, is_built) in OPTIONAL {
            if !is_built {
                registry.lacks(driver, feature);
            }
        }
        registry
    }
}
