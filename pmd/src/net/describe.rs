//! Metadata of a frame from its headers.

use pollux_mempool::{Mbuf, Network, Transport};

use super::headers::UdpHeader;
use super::parse::link_layer;
use super::{Addresses, ParseOptions, Parsed, classify};
use crate::ledger::Cause;

/// As [`classify`]; also sets protocols and header lengths of a UDP datagram in the frame's
/// [metadata](Mbuf::metadata), if its pool has any.
///
/// # Errors
/// The cause to count when the frame is dropped.
pub fn classify_and_describe(mbuf: &mut Mbuf, options: &ParseOptions) -> Result<Parsed, Cause> {
    let parsed = classify(mbuf, options)?;
    let Parsed::Udp(udp) = parsed else {
        return Ok(parsed);
    };
    let (_, l2_len) = link_layer(mbuf.data())?;
    if let Some(metadata) = mbuf.metadata_mut() {
        let l4_len = size_of::<UdpHeader>() as u16;
        metadata.l2_len = l2_len as u16;
        metadata.l4_len = l4_len;
        metadata.l3_len = udp
            .payload_offset
            .saturating_sub(metadata.l2_len)
            .saturating_sub(l4_len);
        metadata.network = Some(match udp.addresses {
            Addresses::V4 { .. } => Network::Ipv4,
            Addresses::V6 { .. } => Network::Ipv6,
        });
        metadata.transport = Some(Transport::Udp);
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use pollux_mempool::{Mempool, PoolConfig};
    use pollux_pmd_testkit::frames::Frame;

    use super::*;

    fn pool(metadata: bool) -> Mempool {
        Mempool::new(PoolConfig {
            buffers: 16,
            metadata,
            ..PoolConfig::default()
        })
        .unwrap()
    }

    #[test]
    fn header_lengths_are_those_of_the_frame() {
        let plain = Frame::udp(&[7; 100]).bytes();
        let mut tagged = plain.clone();
        tagged.splice(12..12, [0x81, 0, 0, 5]);
        let mut arp = plain.clone();
        arp[12..14].copy_from_slice(&[8, 6]);
        for (frame, l2_len) in [(&plain, Some(14)), (&tagged, Some(18)), (&arp, None)] {
            for has_metadata in [false, true] {
                let pool = pool(has_metadata);
                let mut mbuf = pool.cache(8).unwrap().alloc_from(frame).unwrap();
                let parsed = classify_and_describe(&mut mbuf, &ParseOptions::default()).unwrap();
                assert_eq!(matches!(parsed, Parsed::Udp(_)), l2_len.is_some());
                let found = mbuf.metadata().map(|found| {
                    assert_eq!(found.network, Some(Network::Ipv4));
                    assert_eq!(found.transport, Some(Transport::Udp));
                    (found.l2_len, found.l3_len, found.l4_len)
                });
                let expected = l2_len.filter(|_| has_metadata);
                assert_eq!(found, expected.map(|l2_len| (l2_len, 20, 8)));
            }
        }
    }
}
