//! The poll loop of an emulated detector.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pollux_mempool::time::{Ns, Tsc};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::{Clock, Count};
use serde::Serialize;

use super::config::ImagesConfig;
use super::link::{GRACE, PacketLink, StackCounts};
use super::stack::Stack;
use super::stream::{Done, PacketStream};

/// How far the loop may be behind its own time before that time is stopped for it: a detector never
/// sends a burst to make up for lost time.
const MAX_BEHIND: Ns = Ns(500_000);
/// Packets that are sent before the loop looks at what was received.
const MAX_SENT: usize = 64;
/// Packets of each sender that are made ahead.
const AHEAD: u64 = 4;

/// State of a running loop, readable from any thread, and its pause.
#[derive(Debug, Default)]
pub struct Control {
    /// Frames whose packets are all made.
    pub frames: Count,
    /// Packets sent.
    pub packets: Count,
    paused: AtomicBool,
}

impl Control {
    /// Pauses the detector after the frame that it has begun, or lets it go on. Its time stands still
    /// meanwhile, and no frame number is left out.
    pub fn pause(&self, paused: bool) {
        // Relaxed: the flag publishes no other data.
        self.paused.store(paused, Ordering::Relaxed);
    }

    /// Whether the detector was told to pause.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }
}

/// What an emulated detector did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ImagesReport {
    /// Whether all frames of the configuration were sent; false where it says "until stopped".
    pub complete: bool,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets that the device or the kernel refused for good.
    pub send_errors: u64,
    /// Times that the receiver's host answered that the port is closed.
    pub connection_refused: u64,
    /// Packets that were still waiting when the loop was stopped.
    pub packets_unsent: u64,
    /// Bytes of UDP payload sent.
    pub bytes_sent: u64,
    /// From the start to the last packet, without pauses, in seconds.
    pub duration_s: f64,
    /// Frames a second that were requested; 0: as many as possible.
    pub rate_asked: f64,
    /// Frames a second that were sent.
    pub rate_achieved: f64,
    /// Gigabytes (10^9 B) of UDP payload a second.
    pub gb_s: f64,
    /// Stacks, where images were written into the receiver's memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stacks: Option<StackCounts>,
    /// Frames, packets and faults.
    #[serde(flatten)]
    pub done: Done,
}

/// The poll loop of an emulated detector: sends each packet at its time, or as fast as the link takes
/// them. It is run on an lcore of its own, or polled by another loop.
///
/// ```no_run
/// use pollux_emulator::images::config::ImagesConfig;
/// use pollux_emulator::images::link::PortLink;
/// use pollux_emulator::images::source::ImageSource;
/// use pollux_emulator::images::stack::Stack;
/// use pollux_emulator::images::synthesis::Synthesis;
/// use pollux_pmd::lcore::{self, StopFlag};
/// # use pollux_pmd::mempool::{Mempool, PoolConfig};
/// # use pollux_pmd::{PortConfig, Registry, StartedPort};
/// # let pool = Mempool::new(PoolConfig { data_room: 9000, ..PoolConfig::default() })?;
/// # let port = Registry::builtin().open("loopback")?.configure(PortConfig::new(pool.clone()))?;
/// # let StartedPort { rx, tx, .. } = port.start()?;
///
/// let config = ImagesConfig { rate: 0.0, ..ImagesConfig::default() };
/// let stop = StopFlag::new();
/// let stack = Stack::synthetic(&Synthesis::new(&config)?, &stop)?;
/// // What the receiver gets is in `rx`; this link receives nothing.
/// let link = PortLink::new(&config, stack.layout(), tx, None, pool.cache(256)?, false)?;
/// let clock = pollux_pmd::TscClock::get();
/// let mut source = ImageSource::new(&config, stack, link, clock, stop);
/// let control = source.control(); // to be used from any thread
/// let lcore = lcore::launch("detector", Some(1), move || (source.run(), source.into_link()))?;
///
/// let (report, link) = lcore.join()?;
/// println!("{} frames sent", report.done.frames);
/// let (tx, _) = link.into_queues(); // for Port::stop
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ImageSource<L, C> {
    link: L,
    clock: C,
    stop: StopFlag,
    stack: Arc<Stack>,
    stream: PacketStream,
    control: Arc<Control>,
    rate: f64,
    frames: u64,
    paced: bool,
    ahead: Ns,
    start: Option<Tsc>,
    /// Time by which the detector's clock was stopped.
    held_up: Ns,
    /// Time of the last packet by the detector's clock.
    last_sent: Ns,
    /// Since when the link has taken nothing.
    stalled: Option<Tsc>,
    /// What the receiver has not confirmed, at the end.
    unconfirmed: usize,
}

impl<L: PacketLink, C: Clock> ImageSource<L, C> {
    /// A loop that sends the images of a stack through `link`, until all frames of the configuration,
    /// which is valid and that of the stack, are sent or `stop` is set.
    #[must_use]
    pub fn new(
        config: &ImagesConfig,
        stack: impl Into<Arc<Stack>>,
        link: L,
        clock: C,
        stop: StopFlag,
    ) -> Self {
        let stack = stack.into();
        let stream = PacketStream::new(config, *stack.layout(), stack.order());
        Self {
            paced: config.rate > 0.0 && link.is_live(),
            ahead: Ns(AHEAD * config.packet_gap(stack.layout()).0),
            link,
            clock,
            stop,
            stack,
            stream,
            control: Arc::default(),
            rate: config.rate,
            frames: config.frames,
            start: None,
            held_up: Ns(0),
            last_sent: Ns(0),
            stalled: None,
            unconfirmed: 0,
        }
    }

    /// The state of the loop and its pause.
    #[must_use]
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    /// Sends all frames.
    pub fn run(&mut self) -> ImagesReport {
        while self.poll() {}
        self.report()
    }

    /// One iteration of the loop: sends the packets that are due, up to some tens of them. Returns
    /// false when the run has ended.
    pub fn poll(&mut self) -> bool {
        if self.stop.is_set() {
            self.stream.end();
        }
        let now = self.elapsed();
        // Unpaced packets are due at once, in the order of the detector's time.
        let due = if self.paced { now } else { Ns(u64::MAX) };
        let sent = self.send(due, now);
        let left = self.link.flush();
        self.link.poll();
        let is_finished = self.stream.is_finished();
        let unconfirmed = if is_finished { self.link.finish() } else { 0 };
        if is_finished && left == 0 && unconfirmed == 0 {
            return false;
        }
        let is_answered = unconfirmed != self.unconfirmed;
        self.unconfirmed = unconfirmed;
        let left = left + unconfirmed;
        let waits = self.stream.peek().is_some_and(|packet| packet.due <= due);
        if sent > 0 || is_answered || (!waits && left == 0) {
            self.stalled = None;
        } else if self.has_stalled() {
            return false;
        }
        // Nothing is made while packets that are due have to wait: memory stays bounded.
        let made = if waits { 0 } else { self.prepare(due, now) };
        if sent + made == 0 {
            self.clock.relax();
        }
        true
    }

    /// Makes the packets that are due, and a few of those that follow. Returns how many it made.
    fn prepare(&mut self, due: Ns, now: Ns) -> usize {
        let mut made = 0;
        while made < MAX_SENT
            && let Some(next) = self.stream.horizon()
            && (next <= due || next <= due + self.ahead)
        {
            if self.stream.is_between_frames() && self.control.is_paused() {
                self.hold(now);
                break;
            }
            self.stream.prepare();
            made += self.stack.layout().senders();
        }
        if made > 0 {
            self.control.frames.set(self.stream.frames());
        }
        made
    }

    /// The detector's time. It stands still while the loop is too far behind.
    fn elapsed(&mut self) -> Ns {
        let now = self.clock.now();
        let start = *self.start.get_or_insert(now);
        let elapsed = self.clock.to_ns(now.since(start)) - self.held_up;
        if !self.paced {
            return elapsed;
        }
        let due = self.stream.peek().map_or(elapsed, |packet| packet.due);
        let lost = elapsed - due - MAX_BEHIND;
        self.held_up = self.held_up + lost;
        elapsed - lost
    }

    /// Stops the detector's time for a pause: the next frame is due now.
    fn hold(&mut self, now: Ns) {
        let next = if self.paced {
            self.stream.horizon().unwrap_or(now)
        } else {
            self.last_sent
        };
        self.held_up = self.held_up + (now - next);
    }

    fn send(&mut self, due: Ns, now: Ns) -> usize {
        let mut sent = 0;
        while let Some(packet) = self.stream.peek()
            && packet.due <= due
            && sent < MAX_SENT
            && self.link.offer(packet, &self.stack)
        {
            self.stream.advance();
            sent += 1;
        }
        if sent > 0 {
            self.last_sent = now;
            self.control.packets.add(sent as u64);
        }
        sent
    }

    /// Whether no further frame is begun, or the receiver confirms, and the link has taken nothing for
    /// too long.
    fn has_stalled(&mut self) -> bool {
        // A receiver that confirms what it took has its patience within the run too.
        let confirms = self.link.stacks().is_some();
        if !self.stop.is_set() && !confirms && self.stream.horizon().is_some() {
            return false;
        }
        let now = self.clock.now();
        let since = *self.stalled.get_or_insert(now);
        let mut patience = self.link.patience();
        if self.stop.is_set() {
            patience = patience.min(GRACE);
        }
        now.since(since) > self.clock.to_cycles(patience)
    }

    /// What was done so far; the end of the run for its list of faults, which is taken.
    pub fn report(&mut self) -> ImagesReport {
        let left = self.link.flush() as u64;
        let done = self.stream.done();
        let sent = self.link.sent();
        let duration_s = self.last_sent.0 as f64 / 1e9;
        let bytes_sent = sent.packets * self.stack.layout().payload_bytes() as u64;
        ImagesReport {
            complete: self.frames > 0
                && done.frames == self.frames
                && self.stream.is_finished()
                && left == 0
                && self.link.finish() == 0,
            packets_sent: sent.packets,
            send_errors: sent.errors,
            connection_refused: sent.refused,
            packets_unsent: self.stream.waiting() + left,
            bytes_sent,
            duration_s,
            rate_asked: self.rate,
            rate_achieved: done.frames as f64 / duration_s.max(1e-9),
            gb_s: bytes_sent as f64 / 1e9 / duration_s.max(1e-9),
            stacks: self.link.stacks(),
            done,
        }
    }

    /// The link, with its ledger.
    #[must_use]
    pub fn link(&self) -> &L {
        &self.link
    }

    /// The images.
    #[must_use]
    pub fn stack(&self) -> &Arc<Stack> {
        &self.stack
    }

    /// Gives the link back, with its queues.
    #[must_use]
    pub fn into_link(self) -> L {
        self.link
    }
}
