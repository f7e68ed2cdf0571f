//! Threads of a test, which end when the test does.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets a flag when it is dropped: a thread that polls until then ends however the test does. Where
/// it polls in a scope, a failure of the test would wait for it for ever.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// let is_over = AtomicBool::new(false);
/// std::thread::scope(|scope| {
///     let polls = scope.spawn(|| {
///         while !is_over.load(Ordering::Acquire) {
///             std::thread::yield_now();
///         }
///     });
///     let ends = pollux_pmd_testkit::threads::Ends(&is_over);
///     // What may fail.
///     drop(ends);
///     polls.join().unwrap();
/// });
/// ```
pub struct Ends<'a>(pub &'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
