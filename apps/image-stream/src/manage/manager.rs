//! The course of a run: prepare, start, watch, stop.

use std::fmt::{Display, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use pollux_app::{Failure, patience, user_message};
use pollux_images::control::{Arm, Capabilities, Counts, Event, Reply, Request, Role, State};
use pollux_images::transfer::check_all;
use pollux_pmd::lcore::StopFlag;

use super::config::ManageConfig;
use super::nodes::{Happened, MAX_WAITING, Nodes};
use super::pauses::Pauses;
use super::report::{End, NodeReport, Report, SCHEMA};

/// Interval at which signals and times are looked at.
const ROUND: Duration = Duration::from_millis(50);

/// Interval of progress messages.
const PROGRESS: Duration = Duration::from_secs(1);

/// The source is the first node.
const SOURCE: usize = 0;

/// What the manager knows of a node.
struct Known {
    capabilities: Capabilities,
    counts: Counts,
    /// It has a run of this manager.
    is_armed: bool,
    /// Its run is over.
    is_ended: bool,
    /// Its counts are final.
    is_finished: bool,
}

/// The manager of a run.
pub(super) struct Manager {
    config: ManageConfig,
    nodes: Nodes,
    known: Vec<Known>,
    pauses: Pauses,
    stop: StopFlag,
    duration: Option<Duration>,
    is_quiet: bool,
    errors: Vec<String>,
    /// The source was started, and is not being stopped yet.
    is_running: bool,
    /// The node whose run ended first.
    first_ended: usize,
    start: Instant,
    /// From the start to the end of the run, before nodes complete their files.
    ended: Duration,
}

impl Manager {
    /// For a run that ends by `stop`, and after this time.
    pub(super) fn new(
        config: ManageConfig,
        stop: StopFlag,
        duration: Option<Duration>,
        is_quiet: bool,
    ) -> Self {
        Self {
            nodes: Nodes::new(config.reply_timeout()),
            known: Vec::new(),
            pauses: Pauses::new(config.resume_after()),
            stop,
            duration,
            is_quiet,
            errors: Vec::new(),
            is_running: false,
            first_ended: SOURCE,
            start: Instant::now(),
            ended: Duration::ZERO,
            config,
        }
    }

    /// Connects to all nodes, checks what they are to do, and arms them.
    ///
    /// # Errors
    /// A node that cannot be reached, or does not reply; a configuration that does not fit the nodes. All
    /// nodes are left without a run.
    pub(super) fn prepare(&mut self) -> Result<(), Failure> {
        let (source, receivers) = (&self.config.source, &self.config.receiver);
        self.nodes
            .add(Role::Source, source.name(), &source.control)?;
        for receiver in receivers {
            let name = receiver.name();
            self.nodes.add(Role::Receiver, name, &receiver.control)?;
        }
        for n in 0..self.nodes.all().len() {
            let Reply::Capabilities(capabilities) = self.nodes.ask(n, &Request::Capabilities)?
            else {
                let title = self.nodes.all()[n].title();
                return Err(
                    anyhow::anyhow!("{title}: its reply to `capabilities` is another one").into(),
                );
            };
            self.known.push(Known {
                capabilities,
                counts: Counts::default(),
                is_armed: false,
                is_ended: false,
                is_finished: false,
            });
        }
        self.check().map_err(Failure::Usage)?;
        self.arm().inspect_err(|_| self.abandon())?;
        Ok(())
    }

    /// Whether the configuration fits the nodes.
    fn check(&self) -> Result<()> {
        for (n, (node, Known { capabilities, .. })) in
            self.nodes.all().iter().zip(&self.known).enumerate()
        {
            self.check_node(n, capabilities)
                .with_context(|| node.title())?;
        }
        Ok(())
    }

    fn check_node(&self, n: usize, capabilities: &Capabilities) -> Result<()> {
        let (role, shape) = (self.nodes.all()[n].role, capabilities.shape);
        ensure!(
            capabilities.role == role,
            "it is a {}: give the address of a {role}",
            capabilities.role
        );
        let Some(receiver) = n.checked_sub(1) else {
            let rate = self.config.source.run().rate_hz;
            if let (Some(rate), Some(max)) = (rate, capabilities.max_rate_hz) {
                ensure!(rate <= max, "rate_hz = {rate}: its highest rate is {max}");
            }
            return Ok(());
        };
        let sent = self.known[SOURCE].capabilities.shape;
        ensure!(
            shape == sent,
            "it receives images of {shape}, and the source sends {sent}: configure one detector in both"
        );
        let transfers = &self.config.receiver[receiver].transfer;
        let pixel_bytes = capabilities.pixel_bytes.unwrap_or(1).min(16);
        let memory = capabilities.memory_bytes.unwrap_or(u64::MAX);
        check_all(transfers, shape, pixel_bytes, memory)?;
        Ok(())
    }

    /// Arms all nodes: the source when the receivers are armed, since it may look for them.
    fn arm(&mut self) -> Result<()> {
        let begun = Instant::now();
        let receivers = self.config.receiver.iter();
        let transfers: Vec<_> = receivers
            .map(|receiver| Arm::Transfers(receiver.transfer.clone()))
            .collect();
        for (n, arm) in (1..).zip(transfers) {
            self.ask_to_arm(n, arm)?;
        }
        for n in 1..self.known.len() {
            self.wait_until_armed(n, begun)?;
        }
        self.ask_to_arm(SOURCE, Arm::Source(self.config.source.run()))?;
        self.wait_until_armed(SOURCE, begun)?;
        // What came meanwhile must not be taken for an event of the run.
        for _ in 0..MAX_WAITING {
            if !self.take_before_start(Duration::ZERO)? {
                break;
            }
        }
        Ok(())
    }

    fn ask_to_arm(&mut self, n: usize, arm: Arm) -> Result<()> {
        self.nodes.ask(n, &Request::Arm(arm))?;
        self.known[n].is_armed = true;
        Ok(())
    }

    fn wait_until_armed(&mut self, n: usize, begun: Instant) -> Result<()> {
        let limit = self.config.arm_timeout();
        while self.nodes.status(n)?.state != State::Armed {
            self.take_before_start(ROUND)?;
            ensure!(!self.stop.is_set(), "stopped before the start");
            ensure!(
                begun.elapsed() < patience(limit),
                "{}: not armed within {} s; look at its log, or raise arm_timeout_s",
                self.nodes.all()[n].title(),
                limit.as_secs_f64()
            );
        }
        Ok(())
    }

    /// Takes note of what happens within this time, if anything does. The end of an armed run is an error.
    fn take_before_start(&mut self, wait: Duration) -> Result<bool> {
        let Some((n, happened)) = self.nodes.next(wait) else {
            return Ok(false);
        };
        if !self.is_of_another_run(n, &happened) {
            self.take(n, happened);
            let title = self.nodes.all()[n].title();
            ensure!(
                !self.known[n].is_finished,
                "{title}: its run was ended before the start: another client has stopped it"
            );
        }
        match self.errors.first() {
            Some(error) => bail!("{error}"),
            None => Ok(true),
        }
    }

    /// Whether a node tells the end of a run that was not this manager's: a node whose run is over is idle.
    fn is_of_another_run(&mut self, n: usize, happened: &Happened) -> bool {
        let is_end = matches!(
            happened,
            Happened::Event(Event::Error { .. } | Event::Finished { .. })
        );
        let status = is_end.then(|| self.nodes.status(n).ok()).flatten();
        status.is_some_and(|status| !self.known[n].is_armed || status.state != State::Idle)
    }

    /// Ends the runs of the nodes that are armed, as far as they reply.
    fn abandon(&mut self) {
        for n in 0..self.known.len() {
            if self.known[n].is_armed && !self.known[n].is_ended {
                // The error that leads here is the one to show.
                let _ = self.nodes.ask(n, &Request::Stop);
            }
        }
    }

    /// Runs, after [`prepare`](Self::prepare), and ends all nodes.
    pub(super) fn run(&mut self) -> Report {
        let mut end = self.start().and_then(|()| self.watch());
        if let Err(error) = &end {
            self.fail(format!("{error:#}"));
        }
        self.finish();
        if matches!(end, Ok(End::Finished)) {
            self.expect_all();
        }
        self.expect_images();
        if !self.errors.is_empty() {
            end = Ok(End::Failed);
        }
        self.report(end.unwrap_or(End::Failed))
    }

    fn start(&mut self) -> Result<()> {
        for n in (1..self.known.len()).chain([SOURCE]) {
            self.nodes.ask(n, &Request::Start)?;
        }
        (self.start, self.is_running) = (Instant::now(), true);
        Ok(())
    }

    /// Waits for the end of the run: pauses the source where that is needed, and shows the progress.
    fn watch(&mut self) -> Result<End> {
        let mut shown = Instant::now();
        loop {
            if let Some((n, happened)) = self.nodes.next(ROUND) {
                self.take(n, happened);
            }
            if !self.errors.is_empty() {
                return Ok(End::Failed);
            }
            if let Some(n) = self.known.iter().position(|known| known.is_ended) {
                self.first_ended = n;
                return Ok(End::Finished);
            }
            let elapsed = self.start.elapsed();
            if self.stop.is_set() || self.duration.is_some_and(|limit| elapsed >= limit) {
                return Ok(End::Stopped);
            }
            if let Some(why) = self.pauses.is_due(elapsed) {
                self.pauses.end(elapsed, why);
                self.pause(false)?;
                self.show(format_args!("the source resumes: {why}"));
            }
            if shown.elapsed() >= PROGRESS {
                shown = Instant::now();
                self.progress()?;
            }
        }
    }

    /// Takes note of what happened at a node. An overrun pauses the source.
    fn take(&mut self, n: usize, happened: Happened) {
        let node = &self.nodes.all()[n];
        let title = node.title();
        match happened {
            Happened::Closed(why) => {
                if !self.known[n].is_finished {
                    self.fail(format!("{title}: {why}"));
                }
                self.known[n].is_ended = true;
            }
            Happened::Event(Event::Error { text }) => {
                self.known[n].is_ended = true;
                self.fail(format!("{title}: its run has failed: {text}"));
            }
            Happened::Event(Event::Finished { counts }) => {
                let known = &mut self.known[n];
                (known.counts, known.is_ended, known.is_finished) = (counts, true, true);
            }
            Happened::Event(Event::Room { receiver }) => self.pauses.room(n, receiver),
            Happened::Event(Event::Overrun { receiver, images }) => {
                let shown = receiver.clone().unwrap_or_default();
                let now = self.start.elapsed();
                let name = (n, node.name.as_str());
                if self.is_running && self.pauses.overrun(now, name, receiver, images) {
                    self.show(format_args!(
                        "{title}: {shown} lost {images} images by overrun: the source is paused"
                    ));
                    if let Err(error) = self.pause(true) {
                        self.fail(format!("{error:#}"));
                    }
                }
            }
        }
    }

    /// Pauses the source, or ends its pause. A source that has just finished does neither.
    fn pause(&mut self, paused: bool) -> Result<()> {
        let request = if paused {
            Request::Pause
        } else {
            Request::Resume
        };
        let asked = self.nodes.ask(SOURCE, &request).map(drop);
        if asked.is_err()
            && matches!(
                self.nodes.status(SOURCE)?.state,
                State::Idle | State::Stopping
            )
        {
            return Ok(());
        }
        asked
    }

    /// Keeps each error once.
    fn fail(&mut self, error: String) {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    fn show(&self, line: impl Display) {
        if !self.is_quiet {
            user_message(format_args!(
                "{:6.0} s  {line}",
                self.start.elapsed().as_secs_f64()
            ));
        }
    }

    /// Asks all nodes for their counts, and shows them.
    fn progress(&mut self) -> Result<()> {
        let mut line = String::new();
        for n in 0..self.known.len() {
            let counts = self.nodes.status(n)?.counts;
            let node = &self.nodes.all()[n];
            let lost: u64 = counts
                .transfers
                .iter()
                .map(|transfer| transfer.overrun)
                .sum();
            let separator = if n == SOURCE { "" } else { ", " };
            // Writing to a string never fails.
            let _ = write!(line, "{separator}{} {}", node.name, counts.frames);
            if lost > 0 {
                let _ = write!(line, " ({lost} lost)");
            }
            self.known[n].counts = counts;
        }
        self.show(format_args!("frames: {line}"));
        Ok(())
    }

    /// Stops the source, then the receivers, and waits for their counts.
    fn finish(&mut self) {
        if std::mem::take(&mut self.is_running) {
            self.ended = self.start.elapsed();
            self.pauses.end(self.ended, "end");
        }
        for n in 0..self.known.len() {
            if !self.known[n].is_ended
                && let Err(error) = self.end_node(n)
            {
                self.fail(format!("{error:#}"));
            }
        }
    }

    fn end_node(&mut self, n: usize) -> Result<()> {
        self.nodes.ask(n, &Request::Stop)?;
        let limit = self.config.finish_timeout();
        let begun = Instant::now();
        while !self.known[n].is_ended {
            if let Some((from, happened)) = self.nodes.next(ROUND) {
                self.take(from, happened);
            }
            ensure!(
                begun.elapsed() < patience(limit),
                "{}: not finished within {} s; look at its log, or raise finish_timeout_s",
                self.nodes.all()[n].title(),
                limit.as_secs_f64()
            );
        }
        Ok(())
    }

    /// A run that ends before all frames have been sent is a failure, unless it was to go on until it is
    /// stopped.
    fn expect_all(&mut self) {
        let sent = self.known[SOURCE].counts.frames;
        let asked = self.config.source.run().frames.unwrap_or(0);
        if sent < asked {
            let title = self.nodes.all()[self.first_ended].title();
            self.fail(format!(
                "{title}: its run has ended after {sent} of {asked} frames: its --images or --duration is over, or \
                 it was interrupted"
            ));
        }
    }

    /// A receiver without an image of those that were sent is a failure: it listens elsewhere.
    fn expect_images(&mut self) {
        let sent = self.known[SOURCE].counts.frames;
        for n in 1..self.known.len() {
            let known = &self.known[n];
            let has_none = known.is_finished && known.counts.frames == 0;
            if sent > 0 && has_none && self.errors.is_empty() {
                self.fail(format!(
                    "{}: it has built no image of the {sent} that the source sent; compare its [detector] \
                     and addresses with those of the source, and look at its log",
                    self.nodes.all()[n].title()
                ));
            }
        }
    }

    fn report(&mut self, end: End) -> Report {
        Report {
            schema: SCHEMA,
            end,
            errors: std::mem::take(&mut self.errors),
            duration_s: self.ended.as_secs_f64(),
            source: self.node(SOURCE),
            receivers: (1..self.known.len()).map(|n| self.node(n)).collect(),
            pause_count: self.pauses.count,
            paused_s: self.pauses.total.as_secs_f64(),
            pauses: std::mem::take(&mut self.pauses.listed),
        }
    }

    fn node(&self, n: usize) -> NodeReport {
        let (node, known) = (&self.nodes.all()[n], &self.known[n]);
        NodeReport {
            name: node.name.clone(),
            control: node.address.to_string(),
            program: known.capabilities.program.clone(),
            finished: known.is_finished,
            counts: known.counts.clone(),
        }
    }
}
