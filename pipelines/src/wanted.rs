//! Batches of the sizes that a stage wants.

use std::ops::RangeInclusive;

use pollux_mempool::time::Ns;

use crate::moment::Moment;

/// How many items a stage wants at once, and for how long they are kept back for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    least: usize,
    most: usize,
    wait: Ns,
    /// Until when what is there now is kept back.
    due: Option<Moment>,
}

/// Of a stage that takes any number.
impl Default for Wanted {
    fn default() -> Self {
        Self {
            least: 1,
            most: usize::MAX,
            wait: Ns(0),
            due: None,
        }
    }
}

impl Wanted {
    /// What a stage says that it wants; a batch has one item at least, and room for the least
    /// number.
    pub(crate) fn new(batch: &RangeInclusive<usize>, wait: Ns) -> Self {
        let least = (*batch.start()).max(1);
        Self {
            least,
            most: (*batch.end()).max(least),
            wait,
            due: None,
        }
    }

    /// Whether any number will do.
    pub(crate) fn is_any(&self) -> bool {
        self.least == 1 && self.most == usize::MAX
    }

    /// Room of the batch in front of the stage, where as many items are gathered otherwise.
    pub(crate) fn room(&self, gathered: usize) -> usize {
        gathered.max(self.least).min(self.most)
    }

    /// Whether so many items wait for more.
    #[inline]
    pub(crate) fn keeps_back(&self, items: usize) -> bool {
        (1..self.least).contains(&items)
    }

    /// Whether items that are kept back have waited long enough. They wait from the first time that
    /// this is asked.
    pub(crate) fn is_due(&mut self, now: Moment) -> bool {
        now >= *self.due.get_or_insert(now.after(self.wait))
    }

    /// The items were handed on.
    #[inline]
    pub(crate) fn begin_anew(&mut self) {
        self.due = None;
    }
}
