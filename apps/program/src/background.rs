//! A thread beside the loops that answers somebody outside.

use std::future::Future;
use std::io;
use std::thread::JoinHandle;

use pollux_pmd::lcore;
use tokio::sync::oneshot;

/// A thread with a runtime of its own; dropping it ends what it does, and waits for that.
#[derive(Debug)]
pub struct Background {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Runs `work` on a thread of this name, on none of the CPUs in `loops`, the first of which matter
    /// most, until it ends by itself or this is dropped.
    ///
    /// # Errors
    /// The system's refusal of a thread, or of what a runtime needs.
    pub fn start<F: Future<Output = ()>>(
        name: &str,
        loops: &[usize],
        work: impl FnOnce() -> F + Send + 'static,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let loops = loops.to_vec();
        let body = move || {
            lcore::keep_off(&loops);
            runtime.block_on(async move {
                // A client that keeps its connection open does not hold the program up.
                tokio::select! {
                    () = work() => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name(name.into());
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread.spawn(body)?),
        })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there has been reported already, and is nothing to the run.
            let _ = thread.join();
        }
    }
}
