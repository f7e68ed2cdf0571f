//! What an adversary decides by.

/// Where choices come from. Zero is the harmless one, everywhere.
pub enum Choices {
    /// A seed.
    Seeded(u64),
    /// A fuzzer's bytes, and zeros behind them.
    Bytes(std::vec::IntoIter<u8>),
}

impl Choices {
    /// Any number: few are large, as in descriptors and registers.
    pub fn number(&mut self) -> u64 {
        let bits = self.below(65) as u32;
        let word = match self {
            Self::Seeded(state) => split_mix(state),
            Self::Bytes(bytes) => (0..bits.div_ceil(8)).fold(0, |word, _| {
                word << 8 | u64::from(bytes.next().unwrap_or(0))
            }),
        };
        word & u64::MAX.checked_shr(64 - bits).unwrap_or(0)
    }

    /// A number below `n`; zero if there is none.
    pub fn below(&mut self, n: usize) -> usize {
        let word = match self {
            Self::Seeded(state) => split_mix(state) >> 32,
            Self::Bytes(bytes) => {
                let mut byte = || u64::from(bytes.next().unwrap_or(0));
                let low = byte();
                if n > 256 { byte() << 8 | low } else { low }
            }
        };
        (word as usize).checked_rem(n).unwrap_or(0)
    }

    /// Once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        n > 0 && self.below(n) == n - 1
    }

    /// Whether a fuzzer's bytes have come to their end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Bytes(bytes) if bytes.as_slice().is_empty())
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_do_no_harm_and_seeds_repeat() {
        let mut zeros = Choices::Bytes(Vec::new().into_iter());
        assert!(zeros.is_over() && !zeros.once_in(2) && !zeros.once_in(1000));
        assert_eq!((zeros.number(), zeros.below(0), zeros.below(7)), (0, 0, 0));
        let some = |seed| {
            let mut choices = Choices::Seeded(seed);
            (0..100).map(|_| choices.number()).collect::<Vec<_>>()
        };
        assert_eq!(some(1), some(1));
        assert_ne!(some(1), some(2));
        assert!(some(1).iter().any(|&n| n > u64::MAX / 2));
        assert!(some(1).iter().any(|&n| n < 256));
    }
}
