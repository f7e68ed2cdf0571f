//! Sequence of frame lengths.

use pollux_app::bytes_within;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Entries of a table of random sizes: more entries would make no measurable difference.
const RANDOM: usize = 4096;

/// Number of frames of each length in twelve: the simple IMIX of 40, 576 and 1500 bytes of IP
/// (7:4:1), with an Ethernet header and, for the shortest, padding.
const IMIX: [u16; 12] = [60, 590, 60, 590, 60, 1514, 60, 590, 60, 590, 60, 60];

/// Value of `--size`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    /// These, in turn.
    List(Vec<u16>),
    /// Uniformly distributed, both ends included.
    Range(u16, u16),
}

impl Sizes {
    /// Parses `64`, `64,1500`, `64-1500` or `imix`, for clap's `value_parser`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text == "imix" {
            return Ok(Self::List(IMIX.into()));
        }
        let size = |text: &str| {
            let size = bytes_within(text, 1..=u64::from(u16::MAX))
                .map_err(|error| format!("{error}; or several, 64,1500 or 64-1500, or imix"))?;
            Ok::<_, String>(size as u16)
        };
        match text.split_once('-') {
            Some((min, max)) => {
                let (min, max) = (size(min)?, size(max)?);
                if min > max {
                    return Err(format!("{min} is above {max}"));
                }
                Ok(Self::Range(min, max))
            }
            None => Ok(Self::List(
                text.split(',').map(size).collect::<Result<_, _>>()?,
            )),
        }
    }

    /// The shortest and the longest.
    pub(super) fn bounds(&self) -> (u16, u16) {
        match self {
            Self::List(sizes) => {
                let (min, max) = (sizes.iter().min(), sizes.iter().max());
                (min.copied().unwrap_or(0), max.copied().unwrap_or(0))
            }
            Self::Range(min, max) => (*min, *max),
        }
    }

    /// The lengths as a table for cyclic use.
    pub(super) fn table(&self, seed: u64) -> Box<[u16]> {
        match self {
            Self::List(sizes) => sizes.as_slice().into(),
            Self::Range(min, max) => {
                let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
                (0..RANDOM).map(|_| rng.random_range(*min..=*max)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(Sizes::parse("64"), Ok(Sizes::List(vec![64])));
        assert_eq!(Sizes::parse("64,1.5k"), Ok(Sizes::List(vec![64, 1500])));
        assert_eq!(Sizes::parse("64-1500"), Ok(Sizes::Range(64, 1500)));
        assert_eq!(Sizes::parse("imix").unwrap().bounds(), (60, 1514));
        for text in ["", "x", "64,", "70000", "9-1", "-", "64-"] {
            assert!(Sizes::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_is_used_up_to_its_ends() {
        let range = Sizes::Range(100, 103);
        let table = range.table(1);
        assert!((100..=103).all(|size| table.contains(&size)));
        assert!(table.iter().all(|size| (100..=103).contains(size)));
        assert_eq!(table, range.table(1));
        assert_ne!(table, range.table(2));
    }

    #[test]
    fn imix_is_seven_to_four_to_one() {
        let of = |size| IMIX.iter().filter(|&&other| other == size).count();
        assert_eq!((of(60), of(590), of(1514)), (7, 4, 1));
    }
}
