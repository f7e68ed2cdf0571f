//! Runs that are started and stopped from outside (docs/formats/control.md): what is asked and
//! answered, and the state that both are about.

mod server;

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pollux_pmd::lcore::StopFlag;
use pollux_program::Reload;
use serde::{Deserialize, Serialize};

pub use self::server::Server;
use crate::counters::Counters;
use crate::outputs::{Naming, Outputs};

/// Version of the protocol.
const VERSION: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    version: u32,
    command: Command,
    run: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Command {
    Status,
    Start,
    Stop,
    Reload,
    Quit,
}

/// What is answered to every line.
#[derive(Serialize)]
struct Answer {
    version: u32,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    state: Phase,
    run: Option<u32>,
    /// Since everything was open.
    uptime_s: Option<f64>,
    events: Option<Events>,
    last: Option<Last>,
}

/// Of the present run, so far.
#[derive(Serialize)]
struct Events {
    built: u64,
    accepted: u64,
    rejected: u64,
}

/// How the last run ended.
#[derive(Clone, Serialize)]
struct Last {
    run: u32,
    ok: bool,
    /// As in its report; null for one that failed.
    end: Option<&'static str>,
    error: Option<String>,
    /// Null where there is none, as of a run that could not begin.
    report: Option<PathBuf>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Phase {
    #[default]
    Idle,
    /// Ports are being opened.
    Starting,
    Running,
    /// It was told to, and its files are being completed.
    Stopping,
}

/// A run that is to be.
#[derive(Clone)]
pub struct Asked {
    pub run: u32,
    pub outputs: Outputs,
    /// Ends it.
    pub stop: StopFlag,
}

#[derive(Default)]
struct State {
    phase: Phase,
    /// The present run, or the one that is to begin.
    asked: Option<Asked>,
    /// It is to begin, and has not been taken up.
    is_new: bool,
    begun: Option<(Instant, Arc<Counters>)>,
    last: Option<Last>,
}

/// What clients and the program's main thread share. Neither waits for the other but to look.
pub struct Control {
    naming: Naming,
    reload: Reload,
    quit: StopFlag,
    state: Mutex<State>,
    changed: Condvar,
}

impl Control {
    pub fn new(naming: Naming, reload: Reload, quit: StopFlag) -> Self {
        Self {
            naming,
            reload,
            quit,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next run that is asked for, if it is within so long a time.
    pub fn next(&self, wait: Duration) -> Option<Asked> {
        let waiting = |state: &mut State| !state.is_new && !self.quit.is_set();
        let waited = self.changed.wait_timeout_while(self.state(), wait, waiting);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_new = std::mem::take(&mut state.is_new);
        state.asked.clone().filter(|_| is_new)
    }

    /// Everything of the run is open.
    pub fn begun(&self, counters: &Arc<Counters>) {
        let mut state = self.state();
        if state.phase == Phase::Starting {
            state.phase = Phase::Running;
        }
        state.begun = Some((Instant::now(), Arc::clone(counters)));
    }

    /// The run has ended, and all its files are complete.
    pub fn ended(&self, asked: &Asked, how: &anyhow::Result<&'static str>) {
        let report = asked.outputs.report.as_ref();
        let last = Last {
            run: asked.run,
            ok: how.is_ok(),
            end: how.as_ref().ok().copied(),
            error: how.as_ref().err().map(|error| format!("{error:#}")),
            report: report
                .map(|output| output.path().to_path_buf())
                .filter(|path| path.exists()),
        };
        *self.state() = State {
            last: Some(last),
            ..State::default()
        };
    }

    /// The answer to a line, as a line.
    fn answer(&self, line: &[u8]) -> String {
        let done = serde_json::from_slice::<Request>(line)
            .map_err(|error| format!("this is no request: {error}"))
            .and_then(|request| self.obey(&request));
        self.told(done)
    }

    /// The state, behind what was done.
    fn told(&self, done: Result<(), String>) -> String {
        let state = self.state();
        let begun = state.begun.as_ref();
        let answer = Answer {
            version: VERSION,
            ok: done.is_ok(),
            error: done.err(),
            state: state.phase,
            run: state.asked.as_ref().map(|asked| asked.run),
            uptime_s: begun.map(|(at, _)| at.elapsed().as_secs_f64()),
            events: begun.map(|(_, counters)| {
                let events = &counters.stats.events;
                Events {
                    built: events.built.get(),
                    accepted: events.accepted.get(),
                    rejected: events.rejected.get(),
                }
            }),
            last: state.last.clone(),
        };
        // It has but numbers and text in it, which JSON can say.
        serde_json::to_string(&answer).unwrap_or_default() + "\n"
    }

    fn obey(&self, request: &Request) -> Result<(), String> {
        let Request {
            version,
            command,
            run,
        } = *request;
        if version != VERSION {
            return Err(format!("version {version} is not known: {VERSION} is"));
        }
        if run.is_some() && command != Command::Start {
            return Err("`run` goes with `start` alone".into());
        }
        match command {
            Command::Status => Ok(()),
            Command::Start => self.start(run.ok_or("`start` needs a `run`: its number")?),
            Command::Stop => self.stop(),
            Command::Reload if self.state().begun.is_none() => {
                Err("no run has begun whose rules could be read again".into())
            }
            Command::Reload => {
                self.reload.ask();
                Ok(())
            }
            Command::Quit => {
                self.quit.stop();
                self.changed.notify_all();
                Ok(())
            }
        }
    }

    fn start(&self, run: u32) -> Result<(), String> {
        let mut state = self.state();
        if let Some(asked) = &state.asked {
            return Err(format!("run {} has not ended: stop it first", asked.run));
        }
        if self.quit.is_set() {
            return Err("the program is about to end".into());
        }
        let outputs = self.naming.name(Some(run));
        let outputs = outputs.map_err(|error| format!("{error:#}"))?;
        state.asked = Some(Asked {
            run,
            outputs,
            stop: StopFlag::new(),
        });
        (state.phase, state.is_new) = (Phase::Starting, true);
        self.changed.notify_all();
        Ok(())
    }

    fn stop(&self) -> Result<(), String> {
        let mut state = self.state();
        let asked = state.asked.as_ref().ok_or("there is no run to stop")?;
        asked.stop.stop();
        state.phase = Phase::Stopping;
        Ok(())
    }
}
