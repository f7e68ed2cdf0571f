//! Sets of sources, as wide as a detector needs.

use std::fmt::Debug;

/// A set of the sources 0 to [`MAX`](Self::MAX) - 1: an unsigned integer, or [`Wide`].
pub trait SourceSet: Copy + Debug + Default + PartialEq + Send + 'static {
    /// How many sources it can tell apart.
    const MAX: usize;

    /// Adds a source; whether it was not there. `source` is below [`MAX`](Self::MAX).
    fn insert(&mut self, source: usize) -> bool;

    /// Takes a source out.
    fn remove(&mut self, source: usize);

    /// Whether a source is there.
    #[must_use]
    fn contains(&self, source: usize) -> bool;

    /// The sources, in order.
    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..Self::MAX).filter(|&source| self.contains(source))
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl SourceSet for $integer {
            const MAX: usize = <$integer>::BITS as usize;

            #[inline]
            fn insert(&mut self, source: usize) -> bool {
                let bit = 1 << source;
                let new = *self & bit == 0;
                *self |= bit;
                new
            }

            #[inline]
            fn remove(&mut self, source: usize) {
                *self &= !(1 << source);
            }

            #[inline]
            fn contains(&self, source: usize) -> bool {
                *self >> source & 1 == 1
            }
        }
    )*};
}

integers! { u16 u32 u64 u128 }

/// A set of 64 sources for each word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wide<const WORDS: usize>([u64; WORDS]);

/// A set of up to 1024 sources.
pub type Sources1024 = Wide<16>;

impl<const WORDS: usize> Default for Wide<WORDS> {
    fn default() -> Self {
        Self([0; WORDS])
    }
}

impl<const WORDS: usize> SourceSet for Wide<WORDS> {
    const MAX: usize = 64 * WORDS;

    #[inline]
    fn insert(&mut self, source: usize) -> bool {
        self.0[source / 64].insert(source % 64)
    }

    #[inline]
    fn remove(&mut self, source: usize) {
        self.0[source / 64].remove(source % 64);
    }

    #[inline]
    fn contains(&self, source: usize) -> bool {
        self.0[source / 64].contains(source % 64)
    }
}
