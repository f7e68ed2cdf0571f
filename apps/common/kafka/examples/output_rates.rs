//! Rates of the output to Kafka, for scripts/compare-kafka: prints a count and its seconds.
//!
//! `events BROKER TOPIC SECONDS`: events of 20 hits that one thread encodes and hands over, without the
//! time in which it waits for the broker. `messages BROKER TOPIC SECONDS FILE`: messages with the bytes
//! of a file that the broker acknowledges in that time. `message FILE`: writes a message of events.

use std::error::Error;
use std::fs;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use pollux_kafka::{Ev44, KIND, Place, Producer, Properties};
use pollux_mempool::PoolConfig;
use pollux_na62::l0::{Draft, EventHead, EventView, Span, Verdict, event_pool};
use pollux_na62::rich::Hit;
use pollux_output::{OutputCounts, OutputEvent, OutputKind, RunContext, RunMonitor};
use pollux_pmd::{Percentiles, Registry};

const HITS: usize = 20;

/// Events between two calls of `work`, as the thread of an output has them.
const BURST: usize = 64;

/// Sleep time without work, and the time in which a broker acknowledges all.
const NAP: Duration = Duration::from_micros(100);
const LIMIT: Duration = Duration::from_mins(1);

/// Events handed over at a time: less than wait for a broker at most.
const ROUND: usize = 200_000;

/// The run has no counters.
struct NoRun;

impl RunMonitor for NoRun {
    fn events(&self) -> u64 {
        0
    }

    fn accepted(&self) -> u64 {
        0
    }

    fn stages(&self) -> Vec<(String, Percentiles)> {
        Vec::new()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let (count, time) = match words[..] {
        ["events", broker, topic, seconds] => events(broker, topic, seconds.parse()?)?,
        ["messages", broker, topic, seconds, file] => {
            messages(broker, topic, seconds.parse()?, &fs::read(file)?)?
        }
        ["message", file] => return Ok(fs::write(file, message())?),
        _ => return Err("events BROKER TOPIC SECONDS | messages ... FILE | message FILE".into()),
    };
    println!("{count} {}", time.as_secs_f64());
    Ok(())
}

fn hits() -> [Hit; HITS] {
    let mut hits = [Hit::default(); HITS];
    for (hit, n) in hits.iter_mut().zip(0..) {
        *hit = Hit {
            pm: 97 * n,
            fine: 11 * n,
        };
    }
    hits
}

/// As many events as a message of 64 KiB has.
fn message() -> Vec<u8> {
    let mut ev44 = Ev44::new("rich");
    let mut timestamp = 0;
    while ev44.len_with(HITS) < 64 << 10 {
        ev44.push(timestamp, &hits());
        timestamp += 400;
    }
    ev44.message().to_vec()
}

fn events(broker: &str, topic: &str, seconds: f64) -> Result<(u64, Duration), Box<dyn Error>> {
    let spec = format!("kafka:{broker},topic={topic}");
    let planned = OutputKind::plan(&spec, &[KIND])?;
    let run = RunContext {
        run: None,
        started: SystemTime::now(),
        unix_ns: Arc::new(|_| 0),
        recorded: false,
        ip: Ipv4Addr::LOCALHOST,
        configuration: "",
        ports: &Registry::builtin(),
        monitor: Arc::new(NoRun),
    };
    let counts = Arc::<OutputCounts>::default();
    let mut output = planned.plan.open(&run, Arc::clone(&counts))?;
    let pool = event_pool(64, PoolConfig::default())?;
    let mut cache = pool.cache(8)?;
    let mut draft = Draft::new(&mut cache).ok_or("no buffer")?;
    assert!(draft.insert(0, &hits()));
    let head = EventHead {
        hits: HITS as u16,
        ..EventHead::default()
    };
    let verdict = Verdict {
        rules: 1,
        ..Verdict::default()
    };
    let event = draft.finish(&head, Span::default());
    let event = event.reconstructed(&[]).decided(verdict);
    let view = EventView::of(event.bytes()).ok_or("no event")?;
    let (mut pushed, mut busy) = (0, Duration::ZERO);
    while busy.as_secs_f64() < seconds {
        let start = Instant::now();
        for n in 0..ROUND {
            output.push(OutputEvent { number: 0, view });
            if n % BURST == 0 {
                output.work();
            }
        }
        busy += start.elapsed();
        pushed += ROUND;
        let limit = Instant::now() + LIMIT;
        while counts.delivered.get() < pushed as u64 {
            // Hands over what had to wait for the broker.
            let start = Instant::now();
            output.work();
            busy += start.elapsed();
            if Instant::now() > limit || counts.refused.get() > 0 {
                return Err(format!("the broker does not acknowledge: {counts:?}").into());
            }
            std::thread::sleep(NAP);
        }
    }
    output.finish(Instant::now() + Duration::from_secs(8));
    Ok((pushed as u64, busy))
}

fn messages(
    broker: &str,
    topic: &str,
    seconds: f64,
    bytes: &[u8],
) -> Result<(u64, Duration), Box<dyn Error>> {
    let place = Place {
        topic: topic.into(),
        partition: 0,
    };
    let counts = Arc::<OutputCounts>::default();
    let properties = Properties::default();
    let limit = Producer::reach(broker, &properties, std::slice::from_ref(&place))?;
    let mut producer = Producer::new(broker, &properties, limit, Arc::clone(&counts))?;
    // Connected.
    producer.send(&place, bytes, 1);
    while counts.delivered.get() == 0 {
        producer.poll();
    }
    let (start, mut sent) = (Instant::now(), 1);
    while start.elapsed().as_secs_f64() < seconds {
        if producer.has_room() {
            producer.send(&place, bytes, 1);
            sent += 1;
        }
        if !producer.poll() && !producer.has_room() {
            // As the thread of an output does.
            std::thread::sleep(NAP);
        }
    }
    let (took, acknowledged) = (start.elapsed(), counts.delivered.get() - 1);
    while counts.delivered.get() < sent {
        if counts.refused.get() > 0 || start.elapsed() > LIMIT {
            return Err(format!("the broker does not acknowledge: {counts:?}").into());
        }
        if !producer.poll() {
            std::thread::sleep(NAP);
        }
    }
    producer.finish(Instant::now() + Duration::from_secs(8));
    Ok((acknowledged, took))
}
