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
use serde::Serialize;

use super::counters::{Control, Shown};
use super::orders::{Answer, Order};
use super::part::Part;
use super::plan::Plan;
use super::shares::Share;
use super::veths::Veths;

/// Longest wait for the last line of a process.
const END: Duration = Duration::from_secs(5);

/// Time between two looks at a process that ends.
const LOOK: Duration = Duration::from_millis(5);

/// Processes of a run; none, where it is in one process.
#[derive(Default)]
pub struct Children {
    processes: Vec<ChildProcess>,
    told: [bool; 2],
    /// What ended the run.
    failure: Option<String>,
}

/// A process of the run.
struct ChildProcess {
    share: Share,
    child: Child,
    heard: Arc<Heard>,
    fate: Option<Fate>,
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

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// As it should.
    Ended,
    /// By a signal that was not ours.
    Killed(i32),
    /// It stood still at the end of the run, and was killed.
    Stopped,
    /// By itself, before the end.
    Exited(i32),
}

/// A process in the report.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessReport {
    pub pid: u32,
    /// Its members.
    pub members: String,
    /// How it ended.
    pub end: String,
    /// Whether its members were lost in the run.
    pub lost: bool,
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
        let mut children = Self::default();
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
        let mut processes = self.processes.iter();
        if processes.all(|child| child.heard.begun.is_set() || child.fate.is_some()) {
            control.all_open.stop();
        }
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
            let is_needed = share.scheduler || share.results;
            if matches!(fate, Fate::Killed(_)) && !is_needed {
                tracing::warn!("{text}: the farm goes on without its members");
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

    /// Whether a process takes frames.
    pub fn is_live(&self, number: usize) -> bool {
        self.processes.get(number).is_none_or(ChildProcess::is_live)
    }

    /// Whether all do.
    pub fn are_live(&self) -> bool {
        self.processes.iter().all(ChildProcess::is_live)
    }

    /// Frames that each process that lives has sent and received.
    pub fn traffic(&self) -> impl Iterator<Item = (u64, u64)> {
        let live = self.processes.iter().filter(|child| child.is_live());
        live.map(|child| (child.heard.sent.get(), child.heard.taken.get()))
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
            if let Some(Fate::Exited(status)) = child.fate {
                let share = &child.share;
                bail!(
                    "process {number} ({share}) ended with status {status}: see its message above"
                );
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
            let _ = writeln!(input, "{}", order.word());
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

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.fate = Some(Fate::Stopped);
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

/// Whether a process is stopped by a signal (proc(5), the state of `/proc/PID/stat`).
fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in brackets before it may have any character.
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| state.starts_with(['T', 't']))
}

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ended => f.write_str("ended"),
            Self::Killed(signal) => write!(f, "was killed by signal {signal}"),
            Self::Stopped => f.write_str("stood still and was killed"),
            Self::Exited(status) => write!(f, "ended with status {status}"),
        }
    }
}
