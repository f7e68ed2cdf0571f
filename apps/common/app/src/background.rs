//! Background thread with an async runtime, for servers beside the poll loops.

use std::future::Future;
use std::io;
use std::thread::JoinHandle;

use pollux_pmd::lcore;
use tokio::sync::oneshot;

/// A thread with its own runtime. Dropping it cancels its work and joins the thread.
#[derive(Debug)]
pub struct Background {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Runs `work` on a thread of this name until the work ends or this value is dropped. The
    /// thread is kept off the CPUs in `loops`, off the first ones with priority.
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
                // An open client connection must not delay the end of the program.
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
            // The panic has been reported already, and does not affect the run.
            let _ = thread.join();
        }
    }
}
