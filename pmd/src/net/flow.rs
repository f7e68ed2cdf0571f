//! Distribution of flows over receive queues in software.

use std::net::IpAddr;

use super::Parsed;

/// The receive queue of a classified frame: by its UDP addresses and ports, so that a flow stays
/// together; the first queue for all other frames, fragments among them.
pub(crate) fn queue_of<E>(parsed: &Result<Parsed, E>, queues: u16) -> u16 {
    let Ok(Parsed::Udp(udp)) = parsed else {
        return 0;
    };
    let ports = u64::from(udp.src_port) << 16 | u64::from(udp.dst_port);
    let address = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => u64::from(ip.to_bits()),
        IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64 ^ ip.to_bits() as u64,
    };
    // Multiplicative hashing by 2^64 / golden ratio (Knuth, TAOCP vol. 3, 6.4): each step carries
    // the bits of its input to the top, from where the queue number is scaled down.
    let mut hash = 0_u64;
    for value in [
        ports,
        address(udp.addresses.src()),
        address(udp.addresses.dst()),
    ] {
        hash = (hash.rotate_left(32) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    ((u128::from(hash) * u128::from(queues)) >> 64) as u16
}
