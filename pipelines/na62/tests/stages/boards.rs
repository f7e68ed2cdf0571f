//! Boards with wrong clocks, numbers, rates or contents, in front of both event builders.
//!
//! Four boards see events at random times, and a scenario maps them to the data of each. Whatever
//! one board does, the others must lose next to nothing, and the report must name it.

mod one_wrong;

use std::collections::BTreeMap;

use crate::common::{Part, env, hit, l0, stored};
use pollux_mempool::time::Tsc;
use pollux_na62::l0::{Event, Fragments};
use pollux_na62::rich::Hit;
use pollux_na62::stages::{Build, BuildOptions, MergeHits, MergeHitsOptions};
use pollux_pipelines::{Batch, Moment, Stage, StageEnv};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const BOARDS: u16 = 4;
/// Slots in a microsecond.
const US: i64 = 40;
/// Time of the first event: two minutes into the burst.
const START: i64 = 5_000_000_000;

/// A board's time instead of the true time, in slots; `now` counts from the first event.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    /// A constant offset.
    Offset(i64),
    /// A drift, per million slots.
    Drift(i64),
    /// A random offset up to this, or down to it if negative, for each frame.
    Random(i64),
    /// An offset from a time on, for a while.
    Jump {
        from: i64,
        by: i64,
        back: i64,
    },
    /// An offset in one of so many frames.
    Stray {
        one_in: u64,
        by: i64,
    },
    /// The time stamps stand still.
    Stuck,
    /// So many events for each true one, in between.
    Flood(u64),
}

impl Fault {
    fn shift(self, now: i64, frame: u64, rng: &mut SmallRng) -> i64 {
        match self {
            Fault::Offset(by) => by,
            Fault::Drift(by) => now * by / 1_000_000,
            Fault::Random(by) if by < 0 => -rng.random_range(0..=-by),
            Fault::Random(by) => rng.random_range(0..=by),
            Fault::Jump { from, by, back } if (from..back).contains(&now) => by,
            Fault::Stray { one_in, by } if frame % one_in == one_in / 2 => by,
            Fault::Stuck => -now,
            Fault::None | Fault::Flood(_) | Fault::Jump { .. } | Fault::Stray { .. } => 0,
        }
    }
}

/// Parameters of a run.
#[derive(Clone, Debug)]
struct Scenario {
    faults: [Fault; BOARDS as usize],
    /// Events a second.
    rate: u64,
    events: u64,
    events_per_frame: u64,
    /// Order in which the boards send.
    order: [u16; BOARDS as usize],
    /// Maximum delay of a frame after its last event, in microseconds.
    jitter_us: u64,
    /// A board has a hit in every second event, at random.
    empty: bool,
    /// After so many events the time stamps restart, and all boards are silent for so many
    /// milliseconds.
    spills: Option<(u64, u64)>,
    seed: u64,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            faults: [Fault::None; BOARDS as usize],
            rate: 100_000,
            events: 20_000,
            events_per_frame: 8,
            order: [0, 1, 2, 3],
            jitter_us: 5,
            empty: false,
            spills: None,
            seed: 1,
        }
    }
}

/// Result of a run.
struct Outcome {
    env: StageEnv,
    /// Frames that each board sent.
    sent: u64,
    /// Number of events with all honest boards, and number of true events.
    whole: u64,
    events: u64,
    /// Hits that were sent.
    hits: u64,
    /// For each board, the number of wrong frames, and of events in its frames.
    wrong: [u64; BOARDS as usize],
    sent_events: [u64; BOARDS as usize],
    /// The events of each burst.
    bursts: Vec<u64>,
}

/// Frames in the order of their arrival: arrival time, and fragments.
type Frames = Vec<(u64, Vec<Part>)>;

trait Builder: Stage<In = Fragments, Out = Event> {}
impl<S: Stage<In = Fragments, Out = Event>> Builder for S {}

impl Scenario {
    /// All frames, and for each board the number of wrong ones.
    fn frames(&self) -> (Frames, [u64; BOARDS as usize]) {
        // From two deadlines on a clock is wrong, whatever the delay of its frames.
        let span = self.events_per_frame as i64 * 40_000_000 / self.rate as i64;
        let limit = (600 + self.jitter_us as i64) * US + span;
        let mut wrong = [0; BOARDS as usize];
        let mut rng = SmallRng::seed_from_u64(self.seed);
        let spacing = (40_000_000 / self.rate).max(1) as i64;
        let mut frames = Vec::new();
        let mut first = 0;
        let mut number = 0;
        let mut before = [0; BOARDS as usize];
        while first < self.events {
            let count = self.events_per_frame.min(self.events - first);
            let last = (first + count - 1) as i64 * spacing;
            for (place, &board) in self.order.iter().enumerate() {
                let fault = self.faults[usize::from(board)];
                let shift = fault.shift(last, number, &mut rng);
                let flood = matches!(fault, Fault::Flood(more) if more >= 4);
                wrong[usize::from(board)] += u64::from(flood || shift.abs() > limit);
                let jitter = rng.random_range(0..=self.jitter_us * 1000);
                let (spill, pause) = match self.spills {
                    Some((events, pause_ms)) => {
                        (first / events * events, first / events * pause_ms)
                    }
                    None => (0, 0),
                };
                let at = last as u64 * 25 + jitter + place as u64 * 200 + pause * 1_000_000;
                // A board's frames arrive in order.
                let at = at.max(before[place]);
                before[place] = at;
                let mut part = |n: u64| {
                    let slot = START + (n - spill) as i64 * spacing + shift;
                    let seen = !self.empty || rng.random_bool(0.5);
                    Part {
                        timestamp: slot.max(0) as u64,
                        source: board,
                        ends_frame: n + 1 == first + count,
                        lost: 0,
                        reordered: false,
                        at: Moment(at),
                        arrival: Tsc(at),
                        hits: vec![Hit {
                            fine: rng.random_range(0..256),
                            ..hit(board * 100 + (n % 90) as u16)
                        }]
                        .split_off(usize::from(!seen)),
                    }
                };
                let mut parts: Vec<_> = (first..first + count).map(&mut part).collect();
                if let Fault::Flood(more) = fault {
                    let step = (spacing as u64 / (more + 1)).max(1);
                    let extra = |part: &Part| {
                        (0..=more)
                            .map(move |n| n * step)
                            .map({
                                let part = part.clone();
                                move |later| Part {
                                    timestamp: part.timestamp + later,
                                    ends_frame: part.ends_frame && later == more * step,
                                    ..part.clone()
                                }
                            })
                            .collect::<Vec<_>>()
                    };
                    parts = parts.iter().flat_map(extra).collect();
                }
                frames.push((at, parts));
            }
            first += count;
            number += 1;
        }
        frames.sort_by_key(|&(at, _)| at);
        (frames, wrong)
    }

    fn run(&self, mut builder: impl Builder, env: StageEnv) -> Outcome {
        let honest = |board: u16| matches!(self.faults[usize::from(board)], Fault::None);
        let wanted: u16 = (0..BOARDS).filter(|&b| honest(b)).map(|b| 1 << b).sum();
        let spacing = (40_000_000 / self.rate).max(1) as i64;
        // Maximum number of boards that share an event of a time.
        let mut seen = BTreeMap::<u64, u16>::new();
        let mut bursts = Vec::new();
        let mut out = Vec::<Event>::new();
        let mut collect = |out: &mut Vec<Event>| {
            for event in out.drain(..) {
                let head = event.head();
                let burst = usize::from(head.burst);
                bursts.resize(bursts.len().max(burst + 1), 0);
                bursts[burst] += 1;
                let (best, boards) = (seen.entry(head.timestamp).or_default(), contributed(&event));
                if (boards & wanted).count_ones() > (*best & wanted).count_ones() {
                    *best = boards;
                }
            }
        };
        let mut batch = Batch::with_capacity(1);
        let (mut now, mut sent) = (0, 0);
        let (mut sent_events, mut hits) = ([0; BOARDS as usize], 0);
        let (frames, wrong) = self.frames();
        for (at, frame) in frames {
            sent_events[usize::from(frame[0].source)] += frame.len() as u64;
            hits += frame.iter().map(|part| part.hits.len() as u64).sum::<u64>();
            while now + 50_000 < at {
                now += 50_000;
                builder.tick(Moment(now), &mut out);
                if now + 20_000_000 < at {
                    now = at - 20_000_000;
                }
            }
            now = at;
            sent += 1;
            batch.push(stored(&frame)).unwrap();
            builder.process(&mut batch, &mut out);
            batch.clear();
            collect(&mut out);
        }
        for _ in 0..20 {
            now += 50_000;
            builder.tick(Moment(now), &mut out);
        }
        builder.finish(&mut out);
        collect(&mut out);
        let balance = env.ledger.balance();
        assert_eq!(
            balance.delivered + balance.dropped_total(),
            sent,
            "{self:?}"
        );
        let time = |n: u64| (START + n as i64 * spacing) as u64;
        let whole = |n: &u64| {
            seen.get(&time(*n))
                .is_some_and(|got| got & wanted == wanted)
        };
        Outcome {
            sent: sent / u64::from(BOARDS),
            whole: (0..self.events).filter(whole).count() as u64,
            events: self.events,
            hits,
            wrong,
            sent_events,
            bursts,
            env,
        }
    }

    fn build(&self) -> Outcome {
        let mut env = env(BOARDS.into());
        let build = Build::new(&BuildOptions::default(), &mut env).unwrap();
        self.run(build, env)
    }

    fn merge(&self) -> Outcome {
        let mut env = env(BOARDS.into());
        let merge = MergeHits::new(&MergeHitsOptions::default(), &mut env).unwrap();
        self.run(merge, env)
    }

    /// The honest boards lose at most 1 %, and four frames until the majority is known, and the
    /// others are named.
    fn check(&self, outcome: &Outcome) {
        let sources = &l0(&outcome.env).stats.sources;
        let built = l0(&outcome.env).stats.events.built.get();
        assert_eq!(l0(&outcome.env).stats.events.burst.get(), 1, "{self:?}");
        for (counts, events) in sources.iter().zip(outcome.sent_events) {
            counts.frames.set(outcome.sent);
            counts.events.set(events);
        }
        for (board, (counts, wrong)) in sources.iter().zip(&outcome.wrong).enumerate() {
            // A check of the source, one per deadline, must coincide with an occasional stray
            // frame.
            let long = 1000 * self.events >= 20 * self.rate;
            let wrong = *wrong > 20 && 16 * *wrong > outcome.sent && long;
            let faults = l0(&outcome.env).stats.faults(board);
            assert!(!wrong || !faults.is_empty(), "{counts:?} {built} {self:?}");
            let honest = matches!(self.faults[board], Fault::None);
            assert!(!honest || faults.is_empty(), "{board}: {faults:?} {self:?}");
        }
        for (board, counts) in sources.iter().enumerate() {
            let lost = counts.late.get() + counts.skewed.get() + counts.out_of_window.get();
            if matches!(self.faults[board], Fault::None) {
                assert!(
                    100 * lost <= outcome.sent + 400,
                    "board {board} lost {lost} of {}: {self:?}",
                    outcome.sent
                );
            }
        }
        assert!(
            100 * outcome.whole + 400 * self.events_per_frame >= 99 * outcome.events,
            "{} of {} events: {self:?}",
            outcome.whole,
            outcome.events
        );
    }
}

/// The boards that have hits in an event.
fn contributed(event: &Event) -> u16 {
    event
        .hits()
        .iter()
        .fold(0, |all, hit| all | 1 << (hit.pm / 100))
}

#[test]
fn boards_without_faults_lose_nothing() {
    for rate in [5, 100, 1000, 5000, 100_000, 10_000_000] {
        let scenario = Scenario {
            rate,
            events: if rate < 10_000 { 500 } else { 20_000 },
            events_per_frame: if rate < 10_000 { 1 } else { 8 },
            ..Scenario::default()
        };
        for outcome in [scenario.build(), scenario.merge()] {
            assert_eq!(outcome.env.ledger.balance().dropped_total(), 0, "{rate}");
            assert_eq!(outcome.whole, outcome.events, "{rate}");
            assert_eq!(l0(&outcome.env).stats.events.resyncs.get(), 0, "{rate}");
        }
    }
}

/// As where boards report only what they have seen, and at rates that are low for a deadline.
#[test]
fn boards_with_nothing_in_an_event_are_not_behind_the_others() {
    for rate in [20, 100, 1000, 3000, 10_000, 100_000] {
        for jitter_us in [0, 5] {
            let scenario = Scenario {
                rate,
                events: 2000,
                events_per_frame: rate / 3000 + 1,
                empty: true,
                jitter_us,
                ..Scenario::default()
            };
            for outcome in [scenario.build(), scenario.merge()] {
                let stats = &l0(&outcome.env).stats;
                let events = &stats.events;
                assert_eq!(outcome.env.ledger.balance().dropped_total(), 0, "{rate}");
                assert_eq!(events.hits.get(), outcome.hits, "{rate}");
                assert_eq!(events.complete.get(), events.built.get(), "{rate}");
                assert!((0..4).all(|board| stats.faults(board).is_empty()), "{rate}");
            }
        }
    }
}

/// Identical spills, with pauses in which all are silent.
#[test]
fn spills_of_the_same_times_lose_nothing() {
    for pause_ms in [900, 1100, 12_000] {
        for rate in [1000, 20_000] {
            let scenario = Scenario {
                rate,
                events: 1200,
                events_per_frame: rate / 3000 + 1,
                spills: Some((300, pause_ms)),
                ..Scenario::default()
            };
            for outcome in [scenario.build(), scenario.merge()] {
                let events = &l0(&outcome.env).stats.events;
                let dropped = outcome.env.ledger.balance().dropped_total();
                assert_eq!(
                    (dropped, events.built.get()),
                    (0, 1200),
                    "{rate} {pause_ms}"
                );
                assert_eq!(events.complete.get(), 1200, "{rate} {pause_ms}");
                assert_eq!(events.resyncs.get(), 3, "{rate} {pause_ms}");
                // Every event has the number of its burst.
                let mut expected = [0; 5];
                for n in 0..1200 {
                    // No frame belongs to two.
                    let first = n - n % scenario.events_per_frame;
                    expected[first as usize / 300 + 1] += 1;
                }
                assert_eq!(outcome.bursts, expected, "{rate} {pause_ms}");
                assert_eq!(events.burst.get(), 4, "{rate} {pause_ms}");
            }
        }
    }
}

/// `merge` knows that frames are missing between the neighbours.
#[test]
fn events_of_which_a_frame_was_refused_are_not_complete() {
    let by = -50_000 * US;
    let scenario = Scenario {
        faults: [
            Fault::None,
            Fault::Stray { one_in: 25, by },
            Fault::None,
            Fault::None,
        ],
        events: 4000,
        events_per_frame: 1,
        ..Scenario::default()
    };
    for outcome in [scenario.build(), scenario.merge()] {
        let refused = outcome.env.ledger.balance().dropped_total();
        assert!(refused > 100, "{refused}");
        let complete = l0(&outcome.env).stats.events.complete.get();
        assert!(complete + refused <= outcome.events, "{complete} {refused}");
        assert!(
            complete + 2 * refused >= outcome.events,
            "{complete} {refused}"
        );
    }
}
