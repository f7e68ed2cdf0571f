//! Classification of a received buffer: its protocol, or the cause for which it is dropped.

use pollux_mempool::{Mbuf, MbufFlags};

use super::{ParseOptions, Parsed, parse};
use crate::ledger::Cause;

/// Parses a received frame and verifies its checksums, over all its segments. With
/// [`MbufFlags::CHECKSUM_TRUSTED`], the UDP checksum is not verified, whatever the options are.
///
/// The caller decides about frames that are not datagrams. A program that answers passes ARP and
/// ICMP echo to the [`Responder`](super::Responder); a program that only listens drops them as
/// [`Parsed::Other`], for [`Cause::NotForUs`].
///
/// # Errors
/// The cause to count when the frame is dropped.
#[inline]
pub fn classify(mbuf: &Mbuf, options: &ParseOptions) -> Result<Parsed, Cause> {
    let mut options = *options;
    options.udp_checksum &= !mbuf.flags().contains(MbufFlags::CHECKSUM_TRUSTED);
    let first = mbuf.data();
    let parsed = parse(first, mbuf.total_len(), &options)?;
    if let Parsed::Udp(udp) = parsed
        && options.udp_checksum
        && usize::from(udp.payload_offset) + usize::from(udp.payload_len) > first.len()
    {
        // `parse` sees one segment only, and does not verify a datagram that continues behind it.
        udp.verify(mbuf.segments())?;
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use pollux_pmd_testkit::frames::Frame;
    use pollux_pmd_testkit::ports::pool;

    fn classified(data_room: usize, frame: &[u8], flags: MbufFlags) -> Result<Parsed, Cause> {
        let pool = pool(64, data_room);
        let mut mbuf = pool.cache(32).unwrap().alloc_from(frame).unwrap();
        mbuf.add_flags(flags);
        classify(&mbuf, &ParseOptions::default())
    }

    #[test]
    fn a_checksum_is_verified_in_whichever_segment_the_error_is() {
        let good = Frame::udp(&[7; 1000]).bytes();
        for data_room in [64, 128, 1041, 1042, 2048] {
            for at in [None, Some(45), Some(500), Some(1041)] {
                let mut frame = good.clone();
                if let Some(at) = at {
                    frame[at] ^= 1;
                }
                let found = classified(data_room, &frame, MbufFlags::default());
                match at {
                    None => {
                        assert!(matches!(found, Ok(Parsed::Udp(udp)) if udp.payload_len == 1000));
                    }
                    Some(_) => assert_eq!(found, Err(Cause::BadChecksum), "{at:?}, {data_room} B"),
                }
                let trusted = classified(data_room, &frame, MbufFlags::CHECKSUM_TRUSTED);
                assert!(
                    matches!(trusted, Ok(Parsed::Udp(_))),
                    "{at:?}, {data_room} B"
                );
            }
        }
    }

    #[test]
    fn padding_in_a_segment_of_its_own_is_no_part_of_the_datagram() {
        let frame = Frame {
            padding: 30,
            ..Frame::udp(&[1; 30])
        }
        .bytes();
        assert!(matches!(
            classified(72, &frame, MbufFlags::default()),
            Ok(Parsed::Udp(_))
        ));
    }

    #[test]
    fn trust_in_the_udp_checksum_is_none_in_the_header() {
        let mut frame = Frame::udp(&[1; 30]).bytes();
        frame[22] ^= 1; // time to live
        let found = classified(2048, &frame, MbufFlags::CHECKSUM_TRUSTED);
        assert_eq!(found, Err(Cause::BadChecksum));
    }

    #[test]
    fn other_frames_have_their_kind_or_cause() {
        let none = MbufFlags::default();
        assert_eq!(
            classified(64, &Frame::ip(6, vec![0; 40]).bytes(), none),
            Ok(Parsed::Other)
        );
        let fragment = Frame {
            flags_offset: 0x2000,
            ..Frame::udp(&[1; 30])
        }
        .bytes();
        assert_eq!(classified(64, &fragment, none), Err(Cause::IpFragment));
        assert_eq!(classified(64, &fragment[..13], none), Err(Cause::Malformed));
    }
}
