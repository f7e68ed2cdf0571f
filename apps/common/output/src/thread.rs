//! Threads beside the loops: a slow disk or network blocks its thread, never the run.

use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pollux_pmd::lcore;

/// Sleep time of a thread without work.
const NAP: Duration = Duration::from_millis(1);

/// Work that goes on until it is to finish.
pub trait Task: Send + 'static {
    /// Its result.
    type End: Send + 'static;

    /// Does some of the work; returns whether there was any.
    fn work(&mut self) -> bool;

    /// Completes the work, when no more comes and [`work`](Self::work) finds none, or when the
    /// deadline has passed.
    fn finish(self, deadline: Option<Instant>) -> Self::End;
}

/// The thread of a task.
pub struct TaskThread<E> {
    /// Present until it is waited for.
    thread: Option<JoinHandle<E>>,
    /// Set at the end, to the deadline if there is one.
    end: Arc<OnceLock<Option<Instant>>>,
}

impl<E: Send + 'static> TaskThread<E> {
    /// Starts a thread on none of the CPUs in `loops`.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn start<T: Task<End = E>>(mut task: T, name: &str, loops: &[usize]) -> io::Result<Self> {
        let end = Arc::<OnceLock<Option<Instant>>>::default();
        let (loops, at_end) = (loops.to_vec(), Arc::clone(&end));
        let body = move || {
            lcore::keep_off(&loops);
            loop {
                // Acquire in the lock: all that was queued before the end is visible.
                let end = at_end.get().copied();
                let is_over = |deadline: Instant| Instant::now() >= deadline;
                if end.flatten().is_some_and(is_over) {
                    return task.finish(end.flatten());
                }
                if !task.work() {
                    if let Some(deadline) = end {
                        return task.finish(deadline);
                    }
                    thread::sleep(NAP);
                }
            }
        };
        let thread = thread::Builder::new().name(name.into()).spawn(body)?;
        Ok(Self {
            thread: Some(thread),
            end,
        })
    }

    /// Has the task end once its work is done, or at the deadline if there is one. The first call
    /// holds.
    pub fn end(&self, deadline: Option<Instant>) {
        let _ = self.end.set(deadline);
    }

    /// Waits for the end of the task, as long as `patient` says so; an error is its panic. A thread
    /// that is given up goes on: it may be in a system call that does not return.
    pub fn wait(mut self, mut patient: impl FnMut() -> bool) -> Option<thread::Result<E>> {
        let thread = self.thread.take()?;
        while !thread.is_finished() {
            if !patient() {
                return None;
            }
            thread::sleep(NAP);
        }
        Some(thread.join())
    }
}

/// A thread that is not waited for ends soon.
impl<E> Drop for TaskThread<E> {
    fn drop(&mut self) {
        let _ = self.end.set(Some(Instant::now()));
    }
}
