//! A queue of bounded length.

/// A queue whose memory is allocated at construction. One that becomes empty begins at its start
/// again, where its memory is in the cache.
#[derive(Debug)]
pub(super) struct Fifo<T> {
    /// A power of two of places, or none.
    items: Box<[Option<T>]>,
    first: usize,
    len: usize,
    most: usize,
}

impl<T> Fifo<T> {
    /// Room for `most` items.
    pub(super) fn new(most: usize) -> Self {
        let places = if most == 0 {
            0
        } else {
            most.next_power_of_two()
        };
        Self {
            items: (0..places).map(|_| None).collect(),
            first: 0,
            len: 0,
            most,
        }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.len >= self.most
    }

    #[inline(always)]
    fn place(&self, number: usize) -> usize {
        number & self.items.len().wrapping_sub(1)
    }

    /// Adds an item, for which there is room.
    #[inline(always)]
    pub(super) fn push(&mut self, item: T) {
        let end = self.place(self.first + self.len);
        if let Some(place) = self.items.get_mut(end) {
            *place = Some(item);
            self.len += 1;
        }
    }

    /// Takes the first item.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let place = self.first;
        self.len -= 1;
        self.first = if self.is_empty() {
            0
        } else {
            self.place(place + 1)
        };
        // Nothing is between, so that the item is copied once.
        self.items[place].take()
    }
}
