//! State of the runs that a control socket starts and stops.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pollux_app::Reload;
use pollux_pmd::lcore::StopFlag;

use super::protocol::{Answer, Command, Events, Last, Phase, Request, VERSION};
use crate::counters::Counters;
use crate::outputs::{Naming, Outputs};

/// A requested run.
#[derive(Clone)]
pub struct RequestedRun {
    pub run: u32,
    pub outputs: Outputs,
    /// Ends the run.
    pub stop: StopFlag,
}

#[derive(Default)]
struct State {
    phase: Phase,
    /// The current or next run.
    requested: Option<RequestedRun>,
    /// It was requested and has not started.
    is_new: bool,
    begun: Option<(Instant, Arc<Counters>)>,
    last: Option<Last>,
}

/// State shared by clients and the program's main thread. Neither waits for the other.
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

    /// The next requested run, if there is one within this time.
    pub fn next(&self, wait: Duration) -> Option<RequestedRun> {
        let waiting = |state: &mut State| !state.is_new && !self.quit.is_set();
        let waited = self.changed.wait_timeout_while(self.state(), wait, waiting);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_new = std::mem::take(&mut state.is_new);
        state.requested.clone().filter(|_| is_new)
    }

    /// All resources of the run are open.
    pub fn begun(&self, counters: &Arc<Counters>) {
        let mut state = self.state();
        if state.phase == Phase::Starting {
            state.phase = Phase::Running;
        }
        state.begun = Some((Instant::now(), Arc::clone(counters)));
    }

    /// The run has ended, and all its files are complete. Its report is there if it `is_reported`: a
    /// file of that name may also be another run's.
    pub fn ended(
        &self,
        requested: &RequestedRun,
        how: &anyhow::Result<&'static str>,
        is_reported: bool,
    ) {
        let report = requested.outputs.report.as_ref();
        let last = Last {
            run: requested.run,
            ok: how.is_ok(),
            end: how.as_ref().ok().copied(),
            error: how.as_ref().err().map(|error| format!("{error:#}")),
            report: report
                .filter(|_| is_reported)
                .map(|output| output.path().to_path_buf()),
        };
        *self.state() = State {
            last: Some(last),
            ..State::default()
        };
    }

    /// The answer to a line, or to one that was refused for this reason, as a line: the state, after
    /// the command.
    pub fn answer(&self, line: Result<&[u8], &str>) -> String {
        let request = line.map_err(str::to_owned).and_then(|line| {
            serde_json::from_slice::<Request>(line)
                .map_err(|error| format!("this is no request: {error}"))
        });
        let done = request.and_then(|request| self.obey(&request));
        let state = self.state();
        let begun = state.begun.as_ref();
        let answer = Answer {
            version: VERSION,
            ok: done.is_ok(),
            error: done.err(),
            state: state.phase,
            run: state.requested.as_ref().map(|requested| requested.run),
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
        // It consists of numbers and text, which JSON can represent.
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
        if let Some(requested) = &state.requested {
            return Err(format!(
                "run {} has not ended: stop it first",
                requested.run
            ));
        }
        if self.quit.is_set() {
            return Err("the program is about to end".into());
        }
        let outputs = self.naming.name(Some(run));
        let outputs = outputs.map_err(|error| format!("{error:#}"))?;
        state.requested = Some(RequestedRun {
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
        let requested = state.requested.as_ref().ok_or("there is no run to stop")?;
        requested.stop.stop();
        state.phase = Phase::Stopping;
        Ok(())
    }
}
