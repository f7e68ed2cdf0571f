//! What goes to a worker and comes back.

use crate::stage::{BATCH, Batch, Stage};

/// Most items of a job: a batch.
pub(super) const JOB: usize = BATCH;

/// Items to be worked on, or what was made of them.
pub(super) struct Job<I, O> {
    pub(super) items: Batch<I>,
    pub(super) made: Vec<O>,
}

impl<I, O> Default for Job<I, O> {
    fn default() -> Self {
        Self {
            items: Batch::with_capacity(JOB),
            made: Vec::with_capacity(JOB),
        }
    }
}

impl<I, O> Job<I, O> {
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.made.clear();
    }
}

pub(super) type JobOf<S> = Job<<S as Stage>::In, <S as Stage>::Out>;
