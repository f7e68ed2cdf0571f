//! Sizes of pages, and which of them to try.

/// Size of a normal page, and of a guard.
pub(crate) const BASE_PAGE: usize = 4096;

/// Size of the smaller hugepages.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// The size of the pages that a region is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageSize {
    /// The largest of the others that is not larger than the region and that can be had. Each
    /// step down is logged with its reason; [`tell_shortage`](super::tell_shortage) has the remedy for all regions.
    #[default]
    Auto,
    /// Normal pages.
    Kib4,
    /// Hugepages of 2 MiB.
    Mib2,
    /// Hugepages of 1 GiB.
    Gib1,
}

impl PageSize {
    /// Bytes of such a page, where it is of one size.
    pub(crate) const fn bytes(self) -> Option<usize> {
        match self {
            Self::Auto => None,
            Self::Kib4 => Some(BASE_PAGE),
            Self::Mib2 => Some(HUGE_PAGE),
            Self::Gib1 => Some(1 << 30),
        }
    }

    /// What to try for a region of `len` bytes, in this order.
    pub(super) fn candidates(self, len: usize) -> impl Iterator<Item = usize> {
        let all = [Self::Gib1, Self::Mib2, Self::Kib4].into_iter();
        all.filter_map(Self::bytes)
            .filter(move |&page| match self.bytes() {
                None => page <= len || page == BASE_PAGE,
                Some(asked) => page == asked,
            })
    }
}
