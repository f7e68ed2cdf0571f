//! The loop of the emulator.

use std::sync::Arc;

use pollux_mempool::time::{Ns, Tsc};
use pollux_pmd::event::EventConsumer;
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::{Clock, Count};
use serde::Serialize;

use crate::check::{DecisionCheck, DecisionCounts};
use crate::config::{ConfigError, EmulatorConfig, SLOT_NS, SLOTS_PER_SECOND};
use crate::faults::FaultCounts;
use crate::link::Link;
use crate::rings::{RingCheck, RingReport};
use crate::stream::FrameStream;
use pollux_na62::physics::model::{TrueRing, TruthEvent};

/// How long the loop waits, after the last frame, for another decision: 500 ms.
const GRACE: Ns = Ns(500_000_000);
/// How far the loop may be behind its own time before that time is stopped for it: boards never
/// stand still, so what this core has lost is not made up for by a burst that no board would send.
const MAX_BEHIND: Ns = Ns(500_000);
/// Frames that are sent before the loop looks at what has come back.
const MAX_SENT: usize = 64;
/// Progress of a running loop, for display.
#[derive(Debug, Default)]
pub struct Progress {
    /// Events sent.
    pub events: Count,
    /// Frames sent.
    pub frames: Count,
    /// Events decided.
    pub decided: Count,
}

/// What the emulator did, and what it learned.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EmulatorReport {
    /// Whether all events of the configuration were sent.
    pub complete: bool,
    /// Events sent, in part at least.
    pub events_sent: u64,
    /// Frames made by the boards. Made - lost + duplicated = sent + refused + unsent.
    pub frames_made: u64,
    /// Frames sent.
    pub frames_sent: u64,
    /// Frames that the device or the kernel refused for good.
    pub send_errors: u64,
    /// ICMP messages "port unreachable" from the other host.
    pub connection_refused: u64,
    /// Frames that were still waiting when the loop was stopped.
    pub frames_unsent: u64,
    /// Bytes of payload sent.
    pub bytes_sent: u64,
    /// Hits sent.
    pub hits_sent: u64,
    /// Hits left out, because a frame has no more than 255 for one event.
    pub hits_cut: u64,
    /// From the start to the last frame, in seconds.
    pub duration_s: f64,
    /// Events a second that were asked for; 0: as many as possible.
    pub rate_asked: f64,
    /// Events a second that were sent.
    pub rate_achieved: f64,
    /// What was made go wrong.
    pub faults: FaultCounts,
    /// What came back, where decisions can.
    pub decisions: Option<DecisionReport>,
    /// How well rings were found, where the trigger tells.
    pub truth: Option<RingReport>,
}

/// What came back, and how good it was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DecisionReport {
    /// The counts.
    #[serde(flatten)]
    pub counts: DecisionCounts,
    /// Accepted events among those with a true ring to be found.
    pub trigger_efficiency: Option<f64>,
    /// Events without such a ring among those accepted.
    pub fake_accept_rate: Option<f64>,
}

/// The poll loop of the emulated boards: sends each frame at its time, receives decisions, and
/// judges both by the truth. It is run on an lcore of its own.
///
/// ```no_run
/// use pollux_emulator::config::EmulatorConfig;
/// use pollux_emulator::link::PortLink;
/// use pollux_emulator::run::EmulatorLoop;
/// use pollux_pmd::lcore::{self, StopFlag};
/// # use pollux_pmd::{PortConfig, Registry, StartedPort};
/// # let pool = pollux_pmd::mempool::Mempool::new(Default::default())?;
/// # let port = Registry::builtin().open("loopback")?.configure(PortConfig::new(pool.clone()))?;
/// # let StartedPort { mut rx, mut tx, .. } = port.start()?;
/// # let (rx, tx) = (rx.remove(0), tx.remove(0));
///
/// let config = EmulatorConfig::default();
/// let link = PortLink::new(&config, tx, Some(rx), pool.cache(256)?, false)?;
/// let clock = pollux_pmd::TscClock::get();
/// let mut emulator = EmulatorLoop::new(&config, link, clock, StopFlag::new())?;
/// let progress = emulator.progress(); // to be read from any thread
/// let lcore = lcore::launch("emulator", Some(1), move || (emulator.run(), emulator.into_link()))?;
///
/// let (report, link) = lcore.join()?;
/// println!("{} frames sent", report.frames_sent);
/// let (tx, rx) = link.into_queues(); // for Port::stop
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct EmulatorLoop<L, C> {
    config: EmulatorConfig,
    link: L,
    clock: C,
    stop: StopFlag,
    stream: FrameStream,
    check: DecisionCheck,
    rings: Option<RingCheck>,
    progress: Arc<Progress>,
    events_sent: u64,
    last_sent: Tsc,
}

impl<L: Link, C: Clock> EmulatorLoop<L, C> {
    /// A loop that sends the events of a configuration through `link`, until all are sent or `stop`
    /// is set. The caller bounds the time by setting it.
    ///
    /// # Errors
    /// A configuration that is not valid.
    pub fn new(
        config: &EmulatorConfig,
        link: L,
        clock: C,
        stop: StopFlag,
    ) -> Result<Self, ConfigError> {
        let stream = FrameStream::new(config)?;
        Ok(Self {
            config: *config,
            link,
            stop,
            check: DecisionCheck::new(stream.truth().timeline()),
            stream,
            rings: None,
            progress: Arc::default(),
            events_sent: 0,
            last_sent: clock.now(),
            clock,
        })
    }

    /// Judges the trigger's rings as well: `records` is the queue of its L0 event records.
    #[must_use]
    pub fn with_records(mut self, records: EventConsumer) -> Self {
        self.rings = Some(RingCheck::new(records, self.stream.truth().clone()));
        self
    }

    /// What is going on, while the loop runs.
    #[must_use]
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Sends all events, and waits for the last decisions.
    pub fn run(&mut self) -> EmulatorReport {
        let paced = self.config.rate > 0 && self.link.is_live();
        // A few frames of each board are made ahead, in the time when none is due.
        let period = u64::from(self.config.events_per_frame) * self.config.spacing() * SLOT_NS;
        let ahead = Ns(4 * period);
        let patience = Ns(period).max(MAX_BEHIND);
        let mut held_up = Ns(0);
        let start = self.clock.now();
        self.last_sent = start;
        while !self.stop.is_set() && !self.stream.is_finished() {
            let mut elapsed = Ns(u64::MAX);
            if paced {
                elapsed = self.clock.to_ns(self.clock.now().since(start)) - held_up;
                let due = self.stream.peek().map_or(elapsed, |frame| frame.due);
                let lost = elapsed - due - patience;
                held_up = held_up + lost;
                elapsed = elapsed - lost;
            }
            self.send(elapsed);
            self.receive();
            // Nothing is made while frames that are due have to wait: memory stays bounded.
            let due = self.stream.peek().is_some_and(|frame| frame.due <= elapsed);
            if !due
                && self
                    .stream
                    .horizon()
                    .is_some_and(|next| next <= elapsed + ahead)
            {
                let Self { stream, check, .. } = self;
                stream.prepare(|_, event| check.expect(has_ring(event)));
            } else {
                self.clock.relax();
            }
        }
        self.wait_for_decisions();
        self.report(start)
    }

    fn send(&mut self, elapsed: Ns) {
        let mut n = 0;
        while let Some(frame) = self.stream.peek()
            && frame.due <= elapsed
            && n < MAX_SENT
            && self.link.offer(frame)
        {
            self.events_sent = self.events_sent.max(frame.events_end);
            self.stream.advance();
            n += 1;
        }
        if n > 0 {
            self.last_sent = self.clock.now();
            self.progress.events.set(self.events_sent);
            self.progress.frames.add(n as u64);
        }
        self.link.flush();
    }

    fn receive(&mut self) {
        self.link.poll(&mut self.check);
        self.progress.decided.set(self.check.counts().decided);
        if let Some(rings) = &mut self.rings {
            // As many as are made in a round, so that judging keeps up at any rate.
            rings.poll(usize::from(self.config.events_per_frame));
        }
    }

    /// Goes on until everything is sent and decided, or nothing has come for [`GRACE`].
    fn wait_for_decisions(&mut self) {
        if self.stream.is_finished() {
            // The frames of the last events may all have been lost on purpose.
            self.events_sent = self.stream.truth().timeline().events();
        }
        let grace = self.clock.to_cycles(GRACE);
        let (mut seen, mut since) = ((0, 0, 0), self.clock.now());
        loop {
            let left = self.link.flush();
            self.receive();
            let decided = self.check.counts().decided;
            let judged = self.rings.as_ref().map_or(decided, RingCheck::taken);
            let all = decided >= self.events_sent && judged >= decided;
            if left == 0 && (all || !self.link.can_receive()) {
                return;
            }
            let now = self.clock.now();
            if seen != (left, decided, judged) {
                (seen, since) = ((left, decided, judged), now);
            } else if now.since(since) > grace {
                return;
            }
            self.clock.relax();
        }
    }

    fn report(&mut self, start: Tsc) -> EmulatorReport {
        let timeline = self.stream.truth().timeline();
        let check = std::mem::replace(&mut self.check, DecisionCheck::new(timeline));
        let counts = check.finish(self.events_sent);
        let sent = self.link.sent();
        let duration_s = self.clock.to_ns(self.last_sent.since(start)).0 as f64 / 1e9;
        let rate_asked = match self.config.rate {
            0 => 0.0,
            _ => SLOTS_PER_SECOND as f64 / self.config.spacing() as f64,
        };
        EmulatorReport {
            complete: self.events_sent == timeline.events(),
            events_sent: self.events_sent,
            frames_made: self.stream.frames_made(),
            frames_sent: sent.frames,
            send_errors: sent.errors,
            connection_refused: sent.refused,
            frames_unsent: self.stream.frames_waiting() + self.link.flush() as u64,
            bytes_sent: sent.bytes,
            hits_sent: sent.hits,
            hits_cut: self.stream.hits_cut(),
            duration_s,
            rate_asked,
            rate_achieved: self.events_sent as f64 / duration_s.max(1e-9),
            faults: self.stream.faults(),
            decisions: self.link.can_receive().then(|| DecisionReport {
                counts,
                trigger_efficiency: counts.trigger_efficiency(),
                fake_accept_rate: counts.fake_accept_rate(),
            }),
            truth: self.rings.as_ref().map(RingCheck::report),
        }
    }

    /// The link, with its ledger and its queues.
    #[must_use]
    pub fn link(&self) -> &L {
        &self.link
    }

    /// Gives the link back, with its queues.
    #[must_use]
    pub fn into_link(self) -> L {
        self.link
    }
}

/// Whether an event has a ring that a finder is asked to find.
fn has_ring(event: &TruthEvent) -> bool {
    event.rings.iter().any(TrueRing::is_findable)
}
