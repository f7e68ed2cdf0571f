//! Sets of sources: one word for few, several for a farm.

use std::fmt::Debug;

/// A set of the sources 0 to [`MAX`](Self::MAX) - 1: an unsigned integer, or [`Wide`].
///
/// A `source` is below [`MAX`](Self::MAX) in all methods.
pub trait SourceSet: Copy + Debug + Default + PartialEq + Send + Sync + 'static {
    /// How many sources it can tell apart.
    const MAX: usize;

    /// A value for each source. For an integer it is an array: its length is known when it is
    /// compiled, and an index into it is checked once.
    type Each<T: Copy + Send>: AsRef<[T]> + AsMut<[T]> + Send;

    /// The same value for each source.
    #[must_use]
    fn each<T: Copy + Send>(value: T) -> Self::Each<T>;

    /// Adds a source; whether it was not there.
    fn insert(&mut self, source: usize) -> bool;

    /// Takes a source out.
    fn remove(&mut self, source: usize);

    /// Whether a source is there.
    #[must_use]
    fn contains(&self, source: usize) -> bool;

    /// Whether there is none.
    #[must_use]
    fn is_empty(&self) -> bool;

    /// Number of sources.
    #[must_use]
    fn count(&self) -> usize;

    /// Those that are not in `others`.
    #[must_use]
    fn without(&self, others: &Self) -> Self;

    /// The sources, in order.
    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..Self::MAX).filter(|&source| self.contains(source))
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl SourceSet for $integer {
            const MAX: usize = <$integer>::BITS as usize;

            type Each<T: Copy + Send> = [T; <$integer>::BITS as usize];

            #[inline]
            fn each<T: Copy + Send>(value: T) -> Self::Each<T> {
                [value; _]
            }

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

            #[inline]
            fn is_empty(&self) -> bool {
                *self == 0
            }

            #[inline]
            fn count(&self) -> usize {
                self.count_ones() as usize
            }

            #[inline]
            fn without(&self, others: &Self) -> Self {
                self & !others
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

    type Each<T: Copy + Send> = Box<[T]>;

    fn each<T: Copy + Send>(value: T) -> Box<[T]> {
        vec![value; Self::MAX].into()
    }

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

    #[inline]
    fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    #[inline]
    fn count(&self) -> usize {
        self.0.iter().map(SourceSet::count).sum()
    }

    #[inline]
    fn without(&self, others: &Self) -> Self {
        Self(std::array::from_fn(|n| self.0[n].without(&others.0[n])))
    }
}

/// The set of the sources that `holds` is true of, of so many.
pub(crate) fn set_of<S: SourceSet>(sources: usize, holds: impl Fn(usize) -> bool) -> S {
    let mut set = S::default();
    for source in (0..sources).filter(|&source| holds(source)) {
        set.insert(source);
    }
    set
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn assert_is_a_set<S: SourceSet>() {
        let (mut set, mut model) = (S::default(), BTreeSet::new());
        let thirds: S = set_of(S::MAX, |source| source % 3 == 0);
        for n in 0..3 * S::MAX {
            let source = n * 37 % S::MAX;
            if n % 3 == 2 {
                set.remove(source);
                model.remove(&source);
            } else {
                assert_eq!(set.insert(source), model.insert(source));
            }
            assert_eq!(
                (set.count(), set.is_empty()),
                (model.len(), model.is_empty())
            );
            assert!((0..S::MAX).all(|source| set.contains(source) == model.contains(&source)));
        }
        assert!(set.iter().eq(model.iter().copied()) && S::MAX >= 16);
        model.retain(|source| source % 3 != 0);
        assert!(set.without(&thirds).iter().eq(model));
        assert!(set.without(&set).is_empty() && set.without(&S::default()) == set);
    }

    #[test]
    fn sets_of_sources_are_sets() {
        assert_is_a_set::<u16>();
        assert_is_a_set::<u32>();
        assert_is_a_set::<u64>();
        assert_is_a_set::<u128>();
        assert_is_a_set::<Wide<3>>();
        assert_is_a_set::<Sources1024>();
    }
}
