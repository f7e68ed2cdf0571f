//! The whole chain of the trigger on one core: from frames on a loopback port to answers on it.
//!
//! What the boards send is made before it is measured, and answers are taken after it.
#![allow(missing_docs)]

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use criterion::{Throughput, criterion_group, criterion_main};
use pollux_benches::chain::{BURST, Chain, PORT, renumber};
use pollux_benches::{
    BOARDS, BUNCH, Criterion, Error, containers, events, frame, noisy_events, pool, report,
    settings,
};
use pollux_mempool::{Burst, PoolCache};
use pollux_na62::physics::model::{Rings, TruthEvent};
use pollux_pipelines::Moment;
use pollux_pmd::lcore::{self, Lcore, StopFlag};
use pollux_pmd::{PortConfig, Registry, RxQueue, StartedPort, TxQueue};

/// Events of a round.
const EVENTS: u64 = 32 * BUNCH;

/// The loop of a trigger, those of its workers, and the boards that it listens to.
struct Trigger {
    chain: Chain,
    workers: Vec<Lcore<()>>,
    stop: StopFlag,
    boards: TxQueue,
    answers: RxQueue,
    containers: Vec<Vec<u8>>,
    cache: PoolCache,
    round: u64,
}

impl Trigger {
    fn new(events: &[TruthEvent], workers: usize) -> Result<Self, Error> {
        let pool = pool(4096)?;
        let port = Registry::builtin()
            .open("loopback")?
            .configure(PortConfig {
                rx_queues: 2,
                tx_queues: 2,
                ..PortConfig::new(pool.clone())
            })?;
        let StartedPort { rx, tx, .. } = port.start()?;
        let ([rx, answers], [boards, tx]) = (
            <[_; 2]>::try_from(rx).map_err(|_| "two queues")?,
            <[_; 2]>::try_from(tx).map_err(|_| "two queues")?,
        );
        let (mut chain, stop) = (Chain::new(rx, tx, &pool, workers)?, StopFlag::new());
        let mut workers = Vec::new();
        for mut worker in chain.take_workers() {
            let stop = stop.clone();
            workers.push(lcore::launch("worker", None, move || {
                while !stop.is_set() {
                    if !worker.poll() {
                        std::hint::spin_loop();
                    }
                }
            })?);
        }
        Ok(Self {
            chain,
            workers,
            stop,
            boards,
            answers,
            containers: containers(events)?,
            cache: pool.cache(512)?,
            round: 0,
        })
    }

    /// Puts the frames of one round on the wire: the same events, later.
    fn send(&mut self) -> Result<(), Error> {
        let bunches = self.containers.len() as u64 / u64::from(BOARDS);
        for (n, container) in (0..).zip(&mut self.containers) {
            renumber(container, self.round * bunches + n / u64::from(BOARDS));
            let frame = frame(PORT + (n % u64::from(BOARDS)) as u16, container);
            let mbuf = self.cache.alloc_from(&frame).ok_or("no buffer")?;
            let mut burst = Burst::<1>::new();
            burst.push(mbuf).map_err(|_| "no room")?;
            if self.boards.tx(&mut self.cache, &mut burst) == 0 {
                return Err("the wire is full".into());
            }
        }
        self.round += 1;
        Ok(())
    }

    /// Decides all that is on the wire.
    fn decide(&mut self) {
        let (now, sent) = (Moment(self.round * EVENTS * 1000), self.round * EVENTS);
        while self.chain.poll(now) > 0 {}
        while self.chain.decided() < sent && !self.workers.is_empty() {
            self.chain.tick(now);
        }
        self.chain.flush();
    }

    /// Takes the answers off the wire.
    fn listen(&mut self) {
        let mut burst = Burst::<BURST>::new();
        while self.answers.rx(&mut self.cache, &mut burst) > 0 {
            self.cache.free_burst(&mut burst);
        }
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        self.stop.stop();
        for worker in self.workers.drain(..) {
            // Whatever it has to say, the round was decided.
            let _ = worker.join();
        }
    }
}

fn chain(c: &mut Criterion) {
    let measure = |c: &mut Criterion| -> Result<(), Error> {
        let mut group = c.benchmark_group("trigger");
        group.throughput(Throughput::Elements(EVENTS));
        let one = events(Rings::Fixed(1), EVENTS)?;
        let some = events(Rings::Poisson(1.5), EVENTS)?;
        for (name, events, workers) in [
            ("one ring, 10 % noise", &one, 0),
            (
                "one ring, 20 % noise",
                &noisy_events(Rings::Fixed(1), EVENTS)?,
                0,
            ),
            ("1.5 rings on average, 10 % noise", &some, 0),
            ("one ring, 10 % noise, a worker", &one, 1),
            ("1.5 rings on average, 10 % noise, a worker", &some, 1),
            ("1.5 rings on average, 10 % noise, two workers", &some, 2),
        ] {
            // Each loop has a core, or there is nothing to be seen.
            if workers >= available_parallelism().map_or(1, NonZero::get) {
                continue;
            }
            let mut trigger = Trigger::new(events, workers)?;
            let mut failed = None;
            group.bench_function(name, |b| {
                b.iter_custom(|rounds| {
                    let mut spent = Duration::ZERO;
                    for _ in 0..rounds {
                        if let Err(error) = trigger.send() {
                            failed = Some(error);
                        }
                        let start = Instant::now();
                        trigger.decide();
                        spent += start.elapsed();
                        trigger.listen();
                    }
                    spent
                });
            });
            let (decided, sent) = (trigger.chain.decided(), trigger.round * EVENTS);
            if let Some(error) = failed {
                return Err(error);
            }
            if decided != sent || trigger.chain.answer().counts().sent.get() != sent {
                return Err(format!("{decided} of {sent} events were decided").into());
            }
        }
        group.finish();
        Ok(())
    };
    report("trigger", measure(c));
}

criterion_group! { name = benches; config = settings(); targets = chain }
criterion_main!(benches);
