//! Headers of fragments in a row: those of one MEP differ in the feeder alone, if the feeders have as
//! much data.
//!
//! A CRC is linear. Headers that differ in one byte have CRCs that differ by what the difference of the
//! two bytes gives, so neither the CRC nor another field is computed or checked anew.

use super::header::Fields;
use super::{HEADER, WireError, decode, encode, payload};
use crate::message::{Fragment, Message};
use crate::topology::{Descriptor, Feeders, MAX_FEEDERS};

/// Place of the CRC and of the feeder in a header.
const CRC: usize = core::mem::offset_of!(Fields, crc);
const FEEDER: usize = core::mem::offset_of!(Fields, member);

/// What the CRC changes by, by the difference of the numbers of two feeders.
const CHANGES: [u32; MAX_FEEDERS] = {
    let mut changes = [0; MAX_FEEDERS];
    let mut difference = 0;
    while difference < MAX_FEEDERS {
        let mut crc = difference as u32;
        let mut bit = 0;
        while bit < 8 * (HEADER - FEEDER) {
            // The polynomial of IEEE 802.3, reflected.
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
            bit += 1;
        }
        changes[difference] = crc;
        difference += 1;
    }
    changes
};

/// The fragment before, and its header.
pub(crate) struct Series {
    fragment: Fragment,
    header: Words,
}

/// A header in words. Single bytes are not changed in memory: what is written in pieces is read as a whole
/// only when all that was stored before is in the cache.
type Words = [u64; HEADER / 8];

/// Place of the word that ends with the feeder, and of its bits.
const FEEDER_WORD: usize = FEEDER / 8;
const FEEDER_SHIFT: u32 = 24;

impl Default for Series {
    fn default() -> Self {
        let fragment = Fragment {
            run: 0,
            feeder: 0,
            mep: 0,
            event: 0,
            count: 1,
            descriptor: Descriptor(0),
            generation: 0,
            attempt: 0,
            part: 0,
            members: Feeders::only(0),
            absent: 0,
            bytes: 0,
            payload_crc: None,
        };
        let header = words(&encode(&Message::Fragment(fragment)));
        Self { fragment, header }
    }
}

impl Series {
    /// The fragment before, of another feeder that takes part: with its header.
    #[inline]
    fn next(&mut self, feeder: u8) {
        let difference = self.fragment.feeder ^ feeder;
        let change = CHANGES[usize::from(difference) % MAX_FEEDERS];
        self.header[0] ^= u64::from(change) << 32;
        self.header[FEEDER_WORD] ^= u64::from(difference) << FEEDER_SHIFT;
        self.fragment.feeder = feeder;
    }

    /// The header of a fragment.
    #[inline]
    pub(crate) fn encode(&mut self, fragment: &Fragment) -> [u8; HEADER] {
        let (last, feeder) = (&self.fragment, fragment.feeder);
        let has_both = last.members.has(feeder) && last.members.has(last.feeder);
        let is_next = has_both && *fragment == Fragment { feeder, ..*last };
        if is_next {
            self.next(feeder);
        } else {
            self.fragment = *fragment;
            self.header = words(&encode(&Message::Fragment(*fragment)));
        }
        zerocopy::transmute!(self.header.map(u64::to_le))
    }

    /// Reads a message with its payload from the start of bytes that may have more messages behind it,
    /// and checks both. Returns the bytes of the payload: 0 but for a fragment.
    ///
    /// # Errors
    /// Bytes that are no message, or a payload that differs from its header.
    #[inline]
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(Message, usize), WireError> {
        let next = bytes.first_chunk().filter(|header| self.precedes(header));
        if let Some(header) = next {
            self.next(header[FEEDER]);
        } else {
            let message = decode(bytes)?;
            let (Message::Fragment(fragment), Some(header)) = (message, bytes.first_chunk()) else {
                return Ok((message, 0));
            };
            self.fragment = fragment;
            self.header = words(header);
        }
        let (length, behind) = (self.fragment.bytes as usize, &bytes[HEADER..]);
        payload::check(&self.fragment, behind.get(..length).unwrap_or(behind))?;
        Ok((Message::Fragment(self.fragment), length))
    }

    /// The feeders of fragments at the start of bytes which differ from the one before in the feeder alone,
    /// if they are in order, and how many bytes these are. What is wrong ends them.
    #[inline]
    pub(crate) fn following(&mut self, bytes: &[u8]) -> (Feeders, usize) {
        let distance = HEADER + self.fragment.bytes as usize;
        let (mut feeders, mut last) = (Feeders::NONE, self.fragment.feeder);
        for message in bytes.chunks_exact(distance) {
            let Some((header, payload)) = message.split_first_chunk() else {
                break;
            };
            let feeder = header[FEEDER];
            let follows = feeder > last && self.precedes(header);
            if !follows || payload::check(&self.fragment, payload).is_err() {
                break;
            }
            feeders = feeders.with(Feeders::only(feeder));
            last = feeder;
        }
        self.next(last);
        (feeders, feeders.len() * distance)
    }

    /// Whether a fragment is the one before.
    #[inline]
    pub(crate) fn is_last(&self, fragment: &Fragment) -> bool {
        self.fragment == *fragment
    }

    /// Whether a header is that of the fragment before with another feeder that takes part, and the
    /// CRC that follows.
    #[inline]
    fn precedes(&self, header: &[u8; HEADER]) -> bool {
        let word = |n: usize| word(header, n) ^ self.header[n];
        let (crc, feeder) = (word(0) >> 32, word(FEEDER_WORD));
        let others = word(0) << 32
            | word(1)
            | feeder & !(0xFF << FEEDER_SHIFT)
            | word(3)
            | word(4)
            | word(5)
            | word(6)
            | word(7);
        let difference = (feeder >> FEEDER_SHIFT) as usize % MAX_FEEDERS;
        others == 0
            && self.fragment.members.has(header[FEEDER])
            && crc == u64::from(CHANGES[difference])
    }
}

/// A word of a header.
#[inline]
fn word(header: &[u8; HEADER], n: usize) -> u64 {
    u64::from_le_bytes(header.as_chunks().0[n])
}

/// The words of a header.
#[inline]
fn words(header: &[u8; HEADER]) -> Words {
    std::array::from_fn(|n| word(header, n))
}

const _: () = assert!(CRC == 4 && FEEDER % 8 * 8 == FEEDER_SHIFT as usize && FEEDER_WORD == 2);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Fragments of few MEPs, of which some are wrong.
    fn fragment() -> impl Strategy<Value = Fragment> {
        let small = (0..3_u64, 0..70_u8, 1..3_u16, any::<bool>(), 0..2_u16);
        small.prop_map(|(mep, feeder, count, has_crc, absent)| Fragment {
            mep,
            feeder,
            count,
            event: mep * 2,
            members: Feeders(0x8000_FFFF_FFFF_0F0F),
            payload_crc: has_crc.then_some(feeder.into()),
            absent,
            bytes: payload::table_len(count),
            ..Series::default().fragment
        })
    }

    proptest! {
        #[test]
        fn headers_are_those_of_single_messages(
            all in prop::collection::vec((fragment(), 0..4_u8, any::<prop::sample::Index>()), 1..50),
        ) {
            let (mut written, mut read) = (Series::default(), Series::default());
            for (fragment, damage, bit) in all {
                let message = Message::Fragment(fragment);
                let header = written.encode(&fragment);
                prop_assert_eq!(header, encode(&message));
                let mut bytes = [0; HEADER + 8];
                bytes[..HEADER].copy_from_slice(&header);
                bytes[HEADER..][..usize::from(fragment.absent) * 4].fill(0xFF);
                if damage == 0 {
                    let bit = bit.index(HEADER * 8);
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
                let expected = decode(&bytes).and_then(|message| match &message {
                    Message::Fragment(fragment) => {
                        let length = fragment.bytes as usize;
                        payload::check(fragment, &bytes[HEADER..][..length])?;
                        Ok((message, length))
                    }
                    _ => Ok((message, 0)),
                });
                prop_assert_eq!(read.read(&bytes), expected);
            }
        }

        #[test]
        fn fragments_that_follow_are_those_that_are_read(
            all in prop::collection::vec((fragment(), 0..30_u8, any::<prop::sample::Index>()), 1..30),
        ) {
            let mut bytes = Vec::new();
            for (mut fragment, damage, bit) in all {
                // Many in a row differ in the feeder alone.
                (fragment.mep, fragment.event, fragment.payload_crc) = (0, 0, None);
                fragment.absent = fragment.absent.min(u16::from(damage & 1));
                let start = bytes.len();
                bytes.extend(encode(&Message::Fragment(fragment)));
                let absent = usize::from(fragment.absent) * 4;
                bytes.extend((0..fragment.bytes as usize).map(|n| if n < absent { 0xFF } else { 0 }));
                if damage == 0 {
                    let bit = start * 8 + bit.index(8 * (bytes.len() - start));
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
            }
            let [mut one, mut other] = [Series::default(), Series::default()];
            let (mut at, mut expected) = (0, Vec::new());
            while let Ok((message, length)) = one.read(&bytes[at..]) {
                expected.push((at, message));
                at += HEADER + length;
            }
            let (mut at, mut found) = (0, Vec::new());
            while let Ok((message, length)) = other.read(&bytes[at..]) {
                found.push((at, message));
                at += HEADER + length;
                let Message::Fragment(first) = message else { continue };
                prop_assert!(other.is_last(&first));
                let (feeders, follows) = other.following(&bytes[at..]);
                let end = at + follows;
                for feeder in feeders.iter() {
                    found.push((at, Message::Fragment(Fragment { feeder, ..first })));
                    at += HEADER + length;
                }
                prop_assert_eq!(at, end);
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn what_is_no_message_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(Series::default().read(&bytes).err(), decode(&bytes).err());
        }
    }
}
