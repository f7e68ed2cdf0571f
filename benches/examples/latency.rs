//! How long a decision takes at a given rate: `latency RATE SECONDS CPU CPU`, for example
//! `cargo run --release -p pollux-benches --example latency -- 1000000 5 0 1`.
//!
//! The whole chain of the trigger on the second CPU, over the loopback port; boards on the first send
//! what was made before, events of one ring with 10 % noise, 24 of them in a frame, and take the
//! answers. A rate of 0 is the highest: boards send as soon as there is room.
//!
//! Prints events a second, and in microseconds, median, 99 %, 99.9 %, 99.99 %, most:
//!
//! - `latency`: from the arrival of an event's first frame to the departure of its decision;
//! - `apart`: of those decisions that no gap had a part in, and how many these are. A gap is a time
//!   of 20 us or more for which one of the two loops did not look at the clock, though it does so
//!   after each batch of 16 events, or each bunch that is sent; and for the trigger's loop the time
//!   after it, until all frames that arrived meanwhile are decided;
//! - `gaps`: the times between two looks of the trigger's loop at the clock.
//!
//! All are of one run, and nothing is subtracted: a decision counts with all of its time, or not.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pollux_benches::chain::{BURST, Chain, PORT, renumber};
use pollux_benches::witness::Witness;
use pollux_benches::{BOARDS, BUNCH, containers, events, frame, pool};
use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Burst, PoolCache};
use pollux_na62::physics::model::Rings;
use pollux_pipelines::Moment;
use pollux_pmd::lcore::{self, StopFlag};
use pollux_pmd::net::UDP_HEADERS;
use pollux_pmd::{
    Clock, LatencyHistogram, PortConfig, Registry, RxQueue, StartedPort, TscClock, TxQueue,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Frames of a bunch of events: one of each board.
const EACH: usize = BOARDS as usize;
/// Frames of each board that differ.
const VARIETY: u64 = 64;
/// Frames that may be under way.
const WINDOW: u64 = 512;
/// Decisions a second for which there is memory.
const MOST: u64 = 4_000_000;
/// How long the loop goes on for what is under way at the end.
const REST: Duration = Duration::from_millis(200);

fn main() -> Result<(), Failure> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let [rate, seconds, cpu, other] = &words[..] else {
        return Err("usage: latency RATE SECONDS CPU CPU".into());
    };
    let (rate, duration) = (
        rate.parse()?,
        Duration::try_from_secs_f64(seconds.parse()?)?,
    );
    let events = events(Rings::Fixed(1), VARIETY * BUNCH).map_err(|why| why.to_string())?;
    let containers = containers(&events).map_err(|why| why.to_string())?;
    let frames = (0..).zip(&containers).map(|(n, container)| {
        let mut frame = frame(PORT + n % u16::from(BOARDS), container);
        // No checksum (RFC 768): a NIC would verify one.
        frame[UDP_HEADERS - 2..UDP_HEADERS].fill(0);
        frame
    });
    let pool = pool(1 << 14).map_err(|why| why.to_string())?;
    let port = Registry::builtin()
        .open("loopback")?
        .configure(PortConfig {
            rx_queues: 2,
            tx_queues: 2,
            ring: 4096,
            ..PortConfig::new(pool.clone())
        })?;
    let StartedPort {
        rx,
        tx,
        port: _port,
        ..
    } = port.start()?;
    let ([rx, answers], [boards, tx]) = (
        <[_; 2]>::try_from(rx).map_err(|_| "two queues")?,
        <[_; 2]>::try_from(tx).map_err(|_| "two queues")?,
    );
    let (received, stop) = (Arc::new(AtomicU64::new(0)), StopFlag::new());
    let boards = Boards {
        frames: frames.collect(),
        tx: boards,
        answers,
        cache: pool.cache(512)?,
        received: Arc::clone(&received),
        stop: stop.clone(),
        rate,
    };
    let mut chain = Chain::new(rx, tx, &pool, 0).map_err(|why| why.to_string())?;
    // Before the first frame: it takes a while.
    let most = MOST as f64 * (duration + REST).as_secs_f64();
    *chain.witness() = Some(Witness::new(most as usize));
    let boards = lcore::launch("boards", Some(cpu.parse()?), move || boards.run())?;
    let trigger = lcore::launch("trigger", Some(other.parse()?), move || {
        run(&mut chain, &received, &stop, duration);
        chain
    })?;
    let mut chain = trigger.join()?;
    let witness = chain.witness().take().ok_or("no witness")?;
    let (sent, of_boards) = boards.join()??;
    let decided = chain.decided();
    if decided != sent {
        return Err(format!("{decided} of {sent} events were decided").into());
    }
    println!("{:.0}", decided as f64 / duration.as_secs_f64());
    let (mut all, mut apart) = (LatencyHistogram::new(), LatencyHistogram::new());
    for decision in witness.decisions() {
        all.record(decision.ns());
    }
    for decision in witness.apart(&of_boards) {
        apart.record(decision.ns());
    }
    let looks = witness.looks();
    for (name, times) in [
        ("latency", all.view()),
        ("apart", apart.view()),
        ("gaps", looks),
    ] {
        let all = times.percentiles();
        let us = [all.p50, all.p99, all.p999, all.p9999, all.max].map(|ns| ns as f64 / 1e3);
        println!("{name} {us:.1?} of {}", all.count);
    }
    let counts = chain.answer().counts();
    println!("late {} of {}", counts.late.get(), counts.sent.get());
    Ok(())
}

/// The trigger's loop.
fn run(chain: &mut Chain, received: &AtomicU64, stop: &StopFlag, duration: Duration) {
    let clock = TscClock::get();
    let [end, rest] = [duration, duration + REST].map(|time| time.as_nanos() as u64);
    let start = clock.now();
    loop {
        let Ns(spent) = clock.to_ns(clock.now().since(start));
        let frames = chain.poll(Moment(spent));
        chain.tick(Moment(spent));
        chain.flush();
        received.fetch_add(frames as u64, Ordering::Release);
        if spent > end {
            stop.stop();
        }
        if frames > 0 {
            continue;
        }
        if let Some(witness) = chain.witness() {
            witness.caught_up();
        }
        if spent > rest {
            return;
        }
    }
}

/// The readout boards.
struct Boards {
    /// Those of a bunch one behind another.
    frames: Vec<Vec<u8>>,
    tx: TxQueue,
    answers: RxQueue,
    cache: PoolCache,
    received: Arc<AtomicU64>,
    stop: StopFlag,
    rate: u64,
}

impl Boards {
    /// Sends until the stop flag is set, and takes answers for a while longer. Returns the number
    /// of events, and the interruptions.
    fn run(mut self) -> Result<(u64, Witness), Failure> {
        let (clock, mut witness) = (TscClock::get(), Witness::new(0));
        let apart = clock.to_cycles(Ns((BUNCH * 1_000_000_000)
            .checked_div(self.rate)
            .unwrap_or(0)));
        let (mut due, mut bunch) = (clock.now(), 0);
        while !self.stop.is_set() {
            self.listen();
            let ahead = (bunch + 1) * EACH as u64 - self.received.load(Ordering::Acquire);
            let now = witness.caught_up();
            if ahead > WINDOW || now < due {
                spin_loop();
                continue;
            }
            // Who was held up does not make up for it: that would be another rate.
            due = Tsc(now.0.max(due.0 + apart));
            let mut burst = Burst::<EACH>::new();
            let first = (bunch % VARIETY) as usize * EACH;
            for frame in &mut self.frames[first..first + EACH] {
                renumber(&mut frame[UDP_HEADERS..], bunch);
                let mbuf = self.cache.alloc_from(frame).ok_or("no buffer")?;
                burst.push(mbuf).map_err(|_| "no room")?;
            }
            if self.tx.tx(&mut self.cache, &mut burst) < EACH {
                return Err("the wire is full".into());
            }
            bunch += 1;
        }
        let end = Instant::now();
        while end.elapsed() < REST {
            self.listen();
        }
        Ok((bunch * BUNCH, witness))
    }

    /// Takes answers off the wire.
    fn listen(&mut self) {
        let mut burst = Burst::<BURST>::new();
        while self.answers.rx(&mut self.cache, &mut burst) > 0 {
            self.cache.free_burst(&mut burst);
        }
    }
}
