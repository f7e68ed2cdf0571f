//! Drivers, one module each. docs/ports.md lists the options and features of each; it is generated
//! from the drivers' [descriptions](crate::driver::Description).

#[cfg(feature = "af_packet")]
pub mod af_packet;
#[cfg(feature = "af_xdp")]
pub mod af_xdp;
#[cfg(feature = "card")]
pub mod card;
#[cfg(any(feature = "af_packet", feature = "dpdk", feature = "unix"))]
mod chain;
#[cfg(any(feature = "pci", feature = "vhost-user"))]
pub mod dma;
pub mod dpdk;
#[cfg(feature = "e1000e")]
pub mod e1000e;
#[cfg(feature = "igb")]
pub mod igb;
#[cfg(feature = "igb")]
pub mod igbvf;
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
pub mod rps;
#[cfg(any(
    feature = "af_packet",
    feature = "af_xdp",
    feature = "tap",
    feature = "unix"
))]
mod step;
#[cfg(feature = "tap")]
pub mod tap;
#[cfg(feature = "unix")]
pub mod unix;
#[cfg(feature = "vhost-user")]
pub mod vhost_user;
#[cfg(any(feature = "vhost-user", feature = "virtio"))]
pub mod virtio;
#[cfg(all(any(feature = "vhost-user", feature = "virtio"), any(test, fuzzing)))]
#[doc(hidden)]
pub use virtio::hostile as hostile_virtio;

use crate::registry::Registry;

/// Optional drivers: name in a spec, cargo feature, and whether it is enabled.
const OPTIONAL: [(&str, &str, bool); 7] = [
    ("pcap", "pcap", cfg!(feature = "pcap")),
    ("af_packet", "af_packet", cfg!(feature = "af_packet")),
    ("tap", "tap", cfg!(feature = "tap")),
    ("af_xdp", "af_xdp", cfg!(feature = "af_xdp")),
    ("unix", "unix", cfg!(feature = "unix")),
    ("vhost-user", "vhost-user", cfg!(feature = "vhost-user")),
    ("pci", "e1000e, igb, virtio or card", cfg!(feature = "pci")),
];

impl Registry {
    /// The drivers of this crate. Ports whose device or peer process writes into packet memory open
    /// only with a [grant](Self::granting).
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
        #[cfg(feature = "unix")]
        registry.register(unix::DESCRIPTION, unix::open);
        #[cfg(feature = "vhost-user")]
        registry.register_either(vhost_user::DESCRIPTION, vhost_user::open);
        #[cfg(feature = "pci")]
        registry.register_granted(pci::DESCRIPTION, |spec, grant| pci::open(&[], spec, grant));
        registry.register_granted(dpdk::DESCRIPTION, dpdk::open);
        for (driver, feature, is_built) in OPTIONAL {
            if !is_built {
                registry.mark_absent(driver, feature);
            }
        }
        registry
    }
}
