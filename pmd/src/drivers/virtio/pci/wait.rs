//! Bounded waits for the device.

use pollux_mempool::time::Ns;

use crate::clock::Clock;

/// Waits for an answer; `None` if it takes longer than `patience`.
pub(super) fn wait<T>(
    clock: &impl Clock,
    patience: Ns,
    mut answer: impl FnMut() -> Option<T>,
) -> Option<T> {
    let mut found = None;
    clock.wait(patience, || {
        found = answer();
        found.is_some()
    });
    found
}
