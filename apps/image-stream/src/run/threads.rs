//! Threads of a run: launched together, ended in the order in which images flow.

use std::marker::PhantomData;

use anyhow::Result;
use pollux_images::receive::Stored;
use pollux_pmd::lcore::{self, Lcore, StopFlag};
use pollux_pmd::{Clock, RxQueue, TscClock, TxQueue};

use super::demonstration::Source;
use super::image_loop::ImageLoop;
use super::observe::Observe;
use super::place::Place;
use super::plan::Plan;
use super::receive_loop::ReceiveLoop;
use super::stages::Pool;

/// The queues of a loop.
type Queues = (Vec<RxQueue>, Vec<TxQueue>);

/// The report of the emulated detector, whether it has sent all frames, and its queues.
type Emulated = (serde_json::Value, bool, Queues);

/// Loops before their launch.
pub struct Loops<P: Stored, L, O> {
    pub images: ImageLoop<P, L, O>,
    pub receivers: Vec<ReceiveLoop<L>>,
    pub pool: Option<Pool<P>>,
    pub source: Option<Source>,
}

/// Flags that end the loops.
#[derive(Default)]
pub struct Ending {
    pub receivers: StopFlag,
    pub images: StopFlag,
}

/// Threads of the loops.
pub struct Threads<P> {
    images: Lcore<Queues>,
    receivers: Vec<Lcore<Queues>>,
    workers: Vec<Lcore<()>>,
    worker_stop: Option<StopFlag>,
    emulator: Option<Lcore<Emulated>>,
    pixel: PhantomData<fn(P)>,
}

/// What the loops leave behind.
#[derive(Default)]
pub struct Joined {
    pub rx: Vec<RxQueue>,
    pub tx: Vec<TxQueue>,
    /// The loop of the images has ended by itself.
    pub images_ended: bool,
    /// The report of the emulated detector, and whether it has sent all frames.
    pub emulator: Option<(serde_json::Value, bool)>,
}

impl<P: Stored> Threads<P> {
    /// Launches the loops, each on its CPU; the emulated detector last.
    ///
    /// # Errors
    /// A thread that cannot be started or pinned.
    pub fn launch<L: Place, O: Observe<P>>(
        plan: &Plan,
        loops: Loops<P, L, O>,
        clock: &TscClock,
    ) -> Result<Self> {
        let start = clock.now();
        let worker_stop = loops.pool.as_ref().map(|pool| pool.stop.clone());
        let workers = loops.pool.into_iter().flat_map(|pool| pool.workers);
        let mut threads = Self {
            workers: workers
                .zip(&plan.worker_cpus)
                .enumerate()
                .map(|(n, (worker, &cpu))| {
                    lcore::launch(&format!("worker {n}"), cpu, || worker.run())
                })
                .collect::<Result<_, _>>()?,
            worker_stop,
            receivers: Vec::new(),
            images: lcore::launch("images", plan.image_cpu, move || loops.images.run(start))?,
            emulator: None,
            pixel: PhantomData,
        };
        for (n, (receiver, &cpu)) in loops
            .receivers
            .into_iter()
            .zip(&plan.receive_cpus)
            .enumerate()
        {
            let name = format!("receiver {n}");
            let receiver = lcore::launch(&name, cpu, move || receiver.run(start))?;
            threads.receivers.push(receiver);
        }
        if let Some(mut source) = loops.source {
            let body = move || {
                let report = source.run();
                let complete = report.complete;
                let report = serde_json::to_value(report).unwrap_or_default();
                let (tx, rx) = source.into_link().into_queues();
                (report, complete, (rx, tx))
            };
            threads.emulator = Some(lcore::launch("emulator", plan.emulator_cpu, body)?);
        }
        Ok(threads)
    }

    /// Whether a loop has ended without which the run cannot go on.
    pub fn are_to_end(&self) -> bool {
        let emulated = self.emulator.as_ref().is_some_and(Lcore::is_finished);
        // A receive loop ends by itself where its ports have, as when a device is gone.
        let received = self.receivers.iter().any(Lcore::is_finished);
        let worked = self.workers.iter().any(Lcore::is_finished);
        self.images.is_finished() || emulated || received || worked
    }

    /// Ends all loops; the emulated detector has been told to end.
    ///
    /// # Errors
    /// A loop that panicked, beside what the others leave behind.
    pub fn join(self, ending: &Ending) -> (Joined, Result<()>) {
        let (mut joined, mut result) = (Joined::default(), Ok(()));
        let mut take = |joined: &mut Joined, ended: Result<Queues, lcore::LcoreError>| match ended {
            Ok((rx, tx)) => {
                joined.rx.extend(rx);
                joined.tx.extend(tx);
            }
            Err(error) => result = Err(error.into()),
        };
        if let Some(emulator) = self.emulator {
            let ended = emulator.join().map(|(report, complete, queues)| {
                joined.emulator = Some((report, complete));
                queues
            });
            take(&mut joined, ended);
        }
        ending.receivers.stop();
        for receiver in self.receivers {
            take(&mut joined, receiver.join());
        }
        joined.images_ended = self.images.is_finished();
        ending.images.stop();
        take(&mut joined, self.images.join());
        if let Some(stop) = &self.worker_stop {
            stop.stop();
        }
        for worker in self.workers {
            take(&mut joined, worker.join().map(|()| Queues::default()));
        }
        (joined, result)
    }
}
