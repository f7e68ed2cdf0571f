//! Child processes of a run: started, followed, ended.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use pollux_app::patience;
use pollux_pmd::Count;
use pollux_pmd::lcore::StopFlag;

use super::counters::{Control, Shown};
use super::fate::{Fate, ProcessReport, is_stopped};
use super::opening::{Absence, Need, Opening};
use super::orders::{Answer, Order};
use super::part::Part;
use super::plan::Plan;
use super::shares::Share;
use super::veths::Veths;

/// Longest wait for the last line of a process.
const END: Duration = Duration::from_secs(5);

/// Least time that processes have to open their ports.
const START: Duration = Duration::from_secs(30);

/// Time between two looks at a process that ends.
const LOOK: Duration = Duration::from_millis(5);

/// Processes of a run; none, where it is in one process.
#[derive(Default)]
pub struct Children {
    processes: Vec<ChildProcess>,
    opening: Opening,
    told: [bool; 2],
    /// Members that the scheduler was told it cannot hear.
    told_absent: u64,
    /// What ended the run.
    failure: Option<String>,
}

/// A process of the run.
struct ChildProcess {
    share: Share,
    child: Child,
    heard: Arc<Heard>,
    fate: Option<Fate>,
    /// The farm has begun without it.
    is_late: bool,
}

/// What a process has said.
#[derive(Default)]
struct Heard {
    /// It has said something, which it does when its port is open.
    begun: StopFlag,
    done: StopFlag,
    sent: Count,
    taken: Count,
    part: Mutex<Option<Part>>,
}

impl Children {
    /// Starts a process for each share of the members, with its port, and in its network namespace
    /// if it has one. What the run shows follows what they show.
    ///
    /// # Errors
    /// A process that cannot be started; those before it are ended.
    pub fn start(
        plan: &Plan,
        ports: &[String],
        folder: &std::path::Path,
        veths: Option<&Veths>,
        shown: &Arc<Shown>,
    ) -> Result<Self> {
        let config = folder.join("farm.toml");
        let text = toml::to_string(&plan.config).context("the configuration of the processes")?;
        fs::write(&config, text).with_context(|| config.display().to_string())?;
        let program = std::env::current_exe().context("the path of this program")?;
        // What is left then is for the members of the others to be heard.
        let longest = Duration::from_micros(plan.config.times.start_us / 2).max(START);
        let mut children = Self::default();
        children.opening = Opening::begin(longest);
        for (number, (share, port)) in plan.shares.iter().zip(ports).enumerate() {
            let mut command = Command::new(&program);
            command.arg("part").arg("--config").arg(&config);
            command.args(["--members", &share.to_string(), "--port", port]);
            let asked = &plan.asked;
            command.args(["--seed", &asked.seed.to_string()]);
            command.args(["--corrupt", &asked.corrupt.to_string()]);
            if let Some(events) = asked.events {
                command.args(["--events", &events.to_string()]);
            }
            for kill in &asked.kill {
                command.args(["--kill", &kill.to_string()]);
            }
            if let Some(Some(cpu)) = plan.cpus.get(number) {
                command.args(["--core", &cpu.to_string()]);
            }
            // A group of its own: the signals of a terminal are for the parent, which ends the run.
            command.process_group(0);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut spawn = || command.spawn().context("cannot be started");
            let child = match veths.and_then(|veths| veths.member(number)) {
                Some(namespace) => namespace.within(spawn),
                None => spawn(),
            };
            let started =
                child.and_then(|child| ChildProcess::new(child, number, share.clone(), shown));
            children
                .processes
                .push(started.with_context(|| format!("process {number} ({share})"))?);
        }
        Ok(children)
    }

    /// Passes on what the run has come to; whether it cannot go on.
    pub fn follow(&mut self, control: &Control) -> bool {
        if self.processes.iter().any(|child| child.heard.done.is_set()) {
            control.done.stop();
        }
        if !control.all_open.is_set() {
            self.open(control);
        }
        self.tell_absent();
        for (told, (flag, order)) in self.told.iter_mut().zip([
            (&control.enough, Order::Enough),
            (&control.done, Order::Done),
        ]) {
            if flag.is_set() && !*told {
                *told = true;
                self.processes
                    .iter_mut()
                    .for_each(|child| child.tell(order));
            }
        }
        for (number, child) in self.processes.iter_mut().enumerate() {
            let Some(fate) = child.look() else { continue };
            let share = &child.share;
            let text = format!("process {number} ({share}) {fate}");
            if matches!(fate, Fate::Killed(_)) && !share.is_end() {
                // Without a port it is reported when the farm begins without it.
                if child.has_port() {
                    tracing::warn!("{text}: the farm goes on without its members");
                }
            } else {
                self.failure.get_or_insert(match fate {
                    Fate::Killed(_) => {
                        format!("{text}: a farm needs its scheduler and result node")
                    }
                    _ => format!("{text} before the end of the run: see its message above"),
                });
            }
        }
        self.failure.is_some()
    }

    /// Lets the switch begin when each process has its port, or is not waited for.
    fn open(&mut self, control: &Control) {
        let (mut absences, mut opens) = (Vec::new(), false);
        for (number, child) in self.processes.iter().enumerate() {
            if child.has_port() {
                continue;
            }
            match child.absence(number, &mut self.opening) {
                Some(absence) => absences.push((number, absence)),
                None => opens = true,
            }
        }
        let others = self.processes.iter().enumerate();
        let others = others.filter(|(n, _)| !absences.iter().any(|(absent, _)| absent == n));
        if !absences.is_empty()
            && let Some(need) = Need::unmet(&others.map(|(_, child)| &child.share))
        {
            let is_its = |number: usize| need.is_met_by(&self.processes[number].share);
            if let Some(&(number, absence)) = absences.iter().find(|&&(n, _)| is_its(n)) {
                let (share, need) = (&self.processes[number].share, need.text);
                let remedy = absence.remedy();
                self.failure.get_or_insert(format!(
                    "process {number} ({share}) {absence}: a farm needs {need}; {remedy}"
                ));
            }
            return;
        }
        if opens {
            return;
        }
        for (number, absence) in absences {
            let child = &mut self.processes[number];
            child.is_late = true;
            let share = &child.share;
            tracing::warn!(
                "process {number} ({share}) {absence}: the farm goes on without its members"
            );
        }
        control.all_open.stop();
    }

    /// Tells the scheduler how many members it cannot hear, until their processes have ports.
    fn tell_absent(&mut self) {
        let without = self.processes.iter().filter(|child| !child.has_port());
        let without = without.filter(|child| child.is_late || child.fate.is_some());
        let absent = without.map(|child| child.share.members() as u64).sum();
        if absent == self.told_absent {
            return;
        }
        self.told_absent = absent;
        let schedulers = self.processes.iter_mut();
        for child in schedulers.filter(|child| child.share.scheduler) {
            child.tell(Order::Absent(absent));
        }
    }

    /// Whether the frames of a process count: what is lost with it does not, nor what was before it had a port.
    pub fn counts(&self, number: usize) -> bool {
        self.processes.get(number).is_none_or(ChildProcess::counts)
    }

    /// Whether those of all do.
    pub fn all_count(&self) -> bool {
        self.processes.iter().all(ChildProcess::counts)
    }

    /// Frames that each process that counts has sent and received.
    pub fn traffic(&self) -> impl Iterator<Item = (u64, u64)> {
        let counting = self.processes.iter().filter(|child| child.counts());
        counting.map(|child| (child.heard.sent.get(), child.heard.taken.get()))
    }

    /// Ends all; what they contribute to the report.
    pub fn end(&mut self) -> Vec<Part> {
        self.processes
            .iter_mut()
            .for_each(|child| child.tell(Order::Stop));
        let since = Instant::now();
        for child in &mut self.processes {
            while child.fate.is_none() {
                let is_over = since.elapsed() >= patience(END);
                if child.look().is_none() && (is_over || !child.is_live()) {
                    child.kill();
                }
                std::thread::sleep(LOOK);
            }
        }
        let parts = self.processes.iter().map(ChildProcess::part);
        parts.flatten().collect()
    }

    /// How each ended.
    pub fn report(&self) -> Option<Vec<ProcessReport>> {
        let reports = self.processes.iter().map(|child| ProcessReport {
            pid: child.child.id(),
            members: child.share.to_string(),
            end: child
                .fate
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            lost: child.fate != Some(Fate::Ended),
        });
        (!self.processes.is_empty()).then(|| reports.collect())
    }

    /// Whether all processes did what they had to.
    ///
    /// # Errors
    /// What ended the run.
    pub fn check(&self) -> Result<()> {
        if let Some(failure) = &self.failure {
            bail!("{failure}");
        }
        for (number, child) in self.processes.iter().enumerate() {
            let share = &child.share;
            match &child.fate {
                Some(Fate::Exited(status)) => bail!(
                    "process {number} ({share}) ended with status {status}: see its message above"
                ),
                Some(Fate::Unopened) if share.is_end() => bail!(
                    "process {number} ({share}) never opened its port: a farm needs its scheduler \
                     and result node"
                ),
                _ => {}
            }
        }
        Ok(())
    }
}

/// A run that is given up leaves no process behind.
impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.processes {
            if child.look().is_none() && child.fate.is_none() {
                child.kill();
            }
        }
    }
}

impl ChildProcess {
    fn new(mut child: Child, number: usize, share: Share, shown: &Arc<Shown>) -> Result<Self> {
        let heard = Arc::new(Heard::default());
        let output = child.stdout.take();
        let process = Self {
            share,
            child,
            heard,
            fate: None,
            is_late: false,
        };
        if let Some(output) = output {
            let (heard, shown) = (Arc::clone(&process.heard), Arc::clone(shown));
            let share = process.share.clone();
            let body = move || listen(output, (number, &share), &heard, &shown);
            let thread = std::thread::Builder::new().name("answers".into());
            thread.spawn(body).context("cannot start a thread")?;
        }
        Ok(process)
    }

    fn tell(&mut self, order: Order) {
        if let Some(input) = &mut self.child.stdin {
            // One that has ended is noticed by its status.
            let _ = writeln!(input, "{order}");
        }
    }

    fn part(&self) -> Option<Part> {
        let part = self.heard.part.lock();
        part.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the process has just ended: how.
    fn look(&mut self) -> Option<Fate> {
        if self.fate.is_some() {
            return None;
        }
        let status = self.child.try_wait().ok().flatten()?;
        self.fate = Some(self.fate_of(status));
        self.fate.clone()
    }

    fn fate_of(&self, status: ExitStatus) -> Fate {
        match (status.code(), status.signal()) {
            (Some(0), _) if self.said_all() => Fate::Ended,
            (Some(code), _) => Fate::Exited(code),
            (None, signal) => Fate::Killed(signal.unwrap_or_default()),
        }
    }

    /// Whether the last line was read.
    fn said_all(&self) -> bool {
        let since = Instant::now();
        // The thread that reads may be behind the process.
        while since.elapsed() < LOOK * 100 {
            let part = self.heard.part.lock();
            if part.unwrap_or_else(PoisonError::into_inner).is_some() {
                return true;
            }
            std::thread::sleep(LOOK);
        }
        false
    }

    /// Whether it runs: not ended, and not stopped by a signal.
    fn is_live(&self) -> bool {
        self.fate.is_none() && !is_stopped(self.child.id())
    }

    /// Whether it has opened its port.
    fn has_port(&self) -> bool {
        self.heard.begun.is_set()
    }

    /// Whether its frames count.
    fn counts(&self) -> bool {
        !self.is_late && self.is_live()
    }

    /// Why it is not waited for, if it has no port and is not.
    fn absence(&self, number: usize, opening: &mut Opening) -> Option<Absence> {
        match &self.fate {
            Some(Fate::Killed(signal)) => Some(Absence::Killed(*signal)),
            // The run fails, and says why.
            Some(_) => None,
            None => opening.absence(number, is_stopped(self.child.id())),
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.fate = Some(if self.has_port() {
            Fate::Stopped
        } else {
            Fate::Unopened
        });
    }
}

/// Reads what a process says until it ends.
fn listen(output: ChildStdout, (number, share): (usize, &Share), heard: &Heard, shown: &Shown) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(Answer::State(state)) => {
                shown.counts.take(&state.counts, share);
                heard.sent.set(state.sent);
                heard.taken.set(state.taken);
                heard.begun.stop();
                if state.done {
                    heard.done.stop();
                }
            }
            Ok(Answer::Figures(figures)) => shown.processes.take(number, figures),
            Ok(Answer::Part(part)) => {
                let mut place = heard.part.lock().unwrap_or_else(PoisonError::into_inner);
                *place = Some(*part);
            }
            Err(error) => tracing::warn!("process of {share}: a line that is no answer: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use pollux_app::metrics::Ledgers;
    use pollux_pmd::{LatencyHistogram, Ledger};

    use super::super::figures::Processes;
    use super::*;

    /// Processes with these members, which say nothing.
    fn mute(shares: &[&str], longest: Duration) -> Children {
        let shown = Arc::new(Shown {
            books: Ledgers {
                ledger: Ledger::new(),
                ports: Vec::new(),
            },
            counts: Arc::default(),
            latency: LatencyHistogram::new().view(),
            processes: Arc::new(Processes::new(shares.len())),
        });
        let mut children = Children::default();
        children.opening = Opening::begin(longest);
        for (number, share) in shares.iter().enumerate() {
            let mut command = Command::new("sleep");
            command.arg("600").stdin(Stdio::piped());
            let child = command.stdout(Stdio::piped()).spawn().unwrap();
            let child = ChildProcess::new(child, number, share.parse().unwrap(), &shown);
            children.processes.push(child.unwrap());
        }
        children
    }

    #[test]
    fn processes_without_a_port_are_waited_for_until_the_time_is_over() {
        let shares = ["scheduler,feeder:0", "results,node:0", "node:1"];
        let mut children = mute(&shares, Duration::from_hours(1));
        let control = Control::default();
        for opened in 0..2 {
            assert!(!children.follow(&control));
            assert!(!control.all_open.is_set() && children.counts(2));
            children.processes[opened].heard.begun.stop();
        }
        assert!(!children.follow(&control) && !control.all_open.is_set());
        children.opening = Opening::begin(Duration::ZERO);
        assert!(!children.follow(&control) && control.all_open.is_set());
        assert_eq!(children.told_absent, 1);
        assert!(children.counts(1) && !children.counts(2));
        // It has its port in the end: its members can be heard.
        children.processes[2].heard.begun.stop();
        assert!(!children.follow(&control) && !children.counts(2));
        assert_eq!(children.told_absent, 0);
    }

    #[test]
    fn a_run_that_cannot_be_fails_when_the_time_is_over() {
        let mut children = mute(&["scheduler,feeder:0,node:0", "results"], Duration::ZERO);
        children.processes[0].heard.begun.stop();
        let control = Control::default();
        assert!(children.follow(&control) && !control.all_open.is_set());
        let error = children.check().unwrap_err().to_string();
        assert_eq!(
            error,
            "process 1 (results) has not opened its port in 0 s: a farm needs its scheduler and \
             result node; look what it waits for, or raise `start_us` in [times]"
        );
    }
}
