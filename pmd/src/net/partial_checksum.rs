//! Completes partial checksums in software, for ports without checksum offload.

use pollux_mempool::Mbuf;

use super::Checksum;

/// Completes the checksum that a frame leaves to its device ([`Mbuf::checksum_request`]), so that
/// any port can send it, at the price of one read of the frame. Returns `false`, with the frame
/// unchanged, if the field is not in the frame's first segment.
#[must_use = "a frame that cannot be finished is not to be sent"]
pub fn finish_checksum(mbuf: &mut Mbuf) -> bool {
    let Some(request) = mbuf.checksum_request() else {
        return true;
    };
    let finished = finish_checksum_at(mbuf, request.start(), request.field());
    if finished {
        mbuf.set_checksum_request(None);
    }
    finished
}

/// As [`finish_checksum`], with start and field given by the caller.
pub(crate) fn finish_checksum_at(mbuf: &mut Mbuf, start: usize, field: usize) -> bool {
    let mut skip = start;
    let mut sum = Checksum::new();
    for segment in mbuf.segments() {
        let (before, summed) = segment.split_at(skip.min(segment.len()));
        skip -= before.len();
        sum.add(summed);
    }
    // A computed zero is sent as all ones, which is the same sum: in UDP, zero means no checksum
    // (RFC 768).
    let sum = sum.finish_udp().to_be_bytes();
    let field = field
        .checked_sub(start)
        .and(mbuf.data_mut().get_mut(field..));
    let place = field.and_then(<[u8]>::first_chunk_mut);
    place.map(|place| *place = sum).is_some()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::net::{ParseOptions, Parsed, UdpTemplate, classify};
    use pollux_mempool::{ChecksumRequest, Mempool, PoolConfig};
    use pollux_pmd_testkit::frames::Frame;

    /// A datagram in buffers of so many bytes, with the partial checksum of the pseudo header.
    fn partial(data_room: usize, payload: &[u8]) -> (Mempool, Mbuf, Vec<u8>) {
        let pool = Mempool::new(PoolConfig {
            buffers: 64,
            data_room,
            ..PoolConfig::default()
        });
        let pool = pool.unwrap();
        let whole = Frame::udp(payload).bytes();
        let mut left = whole.clone();
        let len = (whole.len() - 34) as u16;
        let (src, dst) = (&whole[26..30], &whole[30..34]);
        let quad = |ip: &[u8]| <[u8; 4]>::try_from(ip).unwrap().into();
        let pseudo = Checksum::pseudo_v4(quad(src), quad(dst), 17, len);
        left[40..42].copy_from_slice(&pseudo.partial().to_be_bytes());
        let mbuf = pool.cache(32).unwrap().alloc_from(&left).unwrap();
        (pool, mbuf, whole)
    }

    #[test]
    fn a_finished_frame_is_as_its_sender_would_have_made_it() {
        for data_room in [64, 65, 2048] {
            for len in [0, 1, 30, 999] {
                let payload = vec![7; len];
                let (_pool, mut mbuf, whole) = partial(data_room, &payload);
                mbuf.set_checksum_request(UdpTemplate::checksum_request(0));
                assert!(finish_checksum(&mut mbuf));
                assert_eq!(mbuf.checksum_request(), None);
                let bytes: Vec<u8> = mbuf.segments().flatten().copied().collect();
                assert_eq!(bytes, whole);
                let found = classify(&mbuf, &ParseOptions::default());
                assert!(matches!(found, Ok(Parsed::Udp(_))));
                assert!(finish_checksum(&mut mbuf), "nothing is left to be done");
            }
        }
    }

    #[test]
    fn a_field_that_is_not_there_changes_nothing() {
        let (_pool, mut mbuf, _) = partial(64, &[1; 200]);
        let before = mbuf.data().to_vec();
        let request = ChecksumRequest::new(34, 63);
        mbuf.set_checksum_request(request);
        assert!(!finish_checksum(&mut mbuf), "half of it is in the next");
        assert!(!finish_checksum_at(&mut mbuf, 34, 33));
        assert!(!finish_checksum_at(&mut mbuf, usize::MAX, usize::MAX));
        assert_eq!(
            (mbuf.data(), mbuf.checksum_request()),
            (&before[..], request)
        );
    }
}
