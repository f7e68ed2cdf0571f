//! Time in a pipeline.

use pollux_mempool::time::Ns;

/// A point on the time line by which deadlines run, in nanoseconds. Live, it is the clock of the
/// poll loop; on recorded input it is capture time, so that a replay decides as the original run
/// did, however fast it goes. The epoch is that of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// The time `ns` after this one; saturates.
    #[must_use]
    #[inline]
    pub fn after(self, ns: Ns) -> Moment {
        Moment(self.0.saturating_add(ns.0))
    }
}
