//! A short list in place.

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

/// Up to `N` items in place, so that they can be moved without the heap.
///
/// The places behind the last item are not initialised: fragments and events have room for many
/// more hits than they mostly have, and to fill that room would cost more than to decode the hits.
pub struct List<T, const N: usize> {
    /// The first `len` items are initialised; at most `N`.
    len: u16,
    items: [MaybeUninit<T>; N],
}

impl<T: Copy, const N: usize> List<T, N> {
    /// An empty list.
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        const { assert!(N <= u16::MAX as usize) };
        Self {
            len: 0,
            items: [const { MaybeUninit::uninit() }; N],
        }
    }

    /// Adds items; `false`, and no change, if they do not fit.
    #[must_use]
    #[inline]
    pub fn extend(&mut self, items: &[T]) -> bool {
        let start = usize::from(self.len);
        let Some(free) = self.items.get_mut(start..start + items.len()) else {
            return false;
        };
        for (place, &item) in free.iter_mut().zip(items) {
            place.write(item);
        }
        self.len += items.len() as u16;
        true
    }

    /// Removes all items.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

impl<T: Copy, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy, const N: usize> Clone for List<T, N> {
    fn clone(&self) -> Self {
        let mut list = Self::new();
        // They fit: it is a list of the same size.
        let _ = list.extend(self);
        list
    }
}

impl<T: fmt::Debug, const N: usize> fmt::Debug for List<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T, const N: usize> Deref for List<T, N> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` items are initialised, len <= N, and MaybeUninit has the layout
        // of its content.
        unsafe { std::slice::from_raw_parts(self.items.as_ptr().cast(), usize::from(self.len)) }
    }
}

impl<T, const N: usize> DerefMut for List<T, N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        let len = usize::from(self.len);
        // SAFETY: as in `deref`; the list is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.items.as_mut_ptr().cast(), len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_added_whole_or_not_at_all() {
        let mut list = List::<u32, 5>::new();
        assert!(list.is_empty());
        assert!(list.extend(&[1, 2, 3]));
        assert!(!list.extend(&[4, 5, 6]));
        assert!(list.extend(&[]));
        assert_eq!(*list, [1, 2, 3]);
        assert!(list.extend(&[4, 5]));
        assert!(!list.extend(&[6]));
        list[4] = 50;
        let copy = list.clone();
        list.clear();
        assert!(list.is_empty());
        assert_eq!(*copy, [1, 2, 3, 4, 50]);
        assert_eq!(format!("{copy:?}"), "[1, 2, 3, 4, 50]");
        assert!(list.extend(&[7]));
        assert_eq!(*list, [7]);
    }

    #[test]
    fn a_list_without_room_stays_empty() {
        let mut list = List::<u8, 0>::default();
        assert!(list.extend(&[]) && !list.extend(&[1]));
        assert_eq!(*list.clone(), []);
    }
}
