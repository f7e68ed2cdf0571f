//! The drivers, one module each.

pub mod af_packet;
mod chain;
pub mod loopback;
pub mod null;
pub mod pcap;

use crate::registry::Registry;

/// Adds the drivers of this crate.
pub(crate) fn register(registry: &mut Registry) {
    registry.register("loopback", loopback::USAGE, loopback::check, loopback::open);
    registry.register("null", null::USAGE, null::check, null::open);
    registry.register("pcap", pcap::USAGE, pcap::check, pcap::open);
    registry.register(
        "af_packet",
        af_packet::USAGE,
        af_packet::check,
        af_packet::open,
    );
}
