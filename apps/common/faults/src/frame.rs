//! Access of the injector to a frame.

use pollux_mempool::time::Ns;

/// A frame whose time and bytes an [`Injector`](crate::Injector) may change.
pub trait Frame: Sized {
    /// Time of sending, counted from the beginning of the run.
    fn due(&self) -> Ns;

    /// Sets the time of sending.
    fn set_due(&mut self, due: Ns);

    /// Its bytes on the link of a bottleneck.
    fn len_on_link(&self) -> usize;

    /// Marks it as having met congestion; false if it cannot be marked
    /// ([`mark_congestion`](crate::mark_congestion)).
    fn mark(&mut self) -> bool;

    /// Changes one byte, or stores the change for later. `pick` selects the index among so many
    /// bytes, and the bits to flip. Returns false if there is no byte to change.
    fn corrupt(&mut self, pick: impl FnOnce(usize) -> Option<(usize, u8)>) -> bool;
}
