//! The times of events that were closed lately.

/// How many are known: in the default deadline 4096 are closed at 13 MHz.
const KNOWN: usize = 4096;

/// Times of the last events that a timeline closed. An event that was made is not made again, even
/// where most sources come to its time only then.
#[derive(Debug)]
pub(crate) struct Recent {
    times: Box<[u64]>,
    next: usize,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            times: vec![u64::MAX; KNOWN].into(),
            next: 0,
        }
    }
}

impl Recent {
    /// Adds a time, which is not the last of all.
    #[inline]
    pub(crate) fn add(&mut self, time: u64) {
        self.times[self.next % KNOWN] = time;
        self.next = self.next.wrapping_add(1);
    }

    /// Whether an event of this time was closed lately.
    pub(crate) fn has(&self, time: u64) -> bool {
        self.times.contains(&time)
    }

    pub(crate) fn clear(&mut self) {
        self.times.fill(u64::MAX);
    }
}
