//! What a service manager is told: sd_notify(3), with its watchdog.

use std::time::{Duration, Instant};

use sd_notify::NotifyState;

/// The service manager, if there is one (`NOTIFY_SOCKET`).
#[derive(Debug)]
pub struct Service {
    /// How often it wants to hear that all is well; half of what it waits for.
    interval: Option<Duration>,
    fed: Instant,
    /// What had been counted then.
    beats: Option<u64>,
    is_ready: bool,
    /// It has not been told what it was to be told, and that was said.
    is_deaf: bool,
}

impl Service {
    /// The service manager as the environment names it.
    #[must_use]
    pub fn from_env() -> Self {
        Self {
            interval: sd_notify::watchdog_enabled().map(|limit| limit / 2),
            fed: Instant::now(),
            beats: None,
            is_ready: false,
            is_deaf: false,
        }
    }

    /// The program does what it is for, from the first call on.
    pub fn ready(&mut self) {
        if !std::mem::replace(&mut self.is_ready, true) {
            self.tell(&[NotifyState::Ready]);
        }
    }

    /// What it is at, in a line.
    pub fn status(&mut self, status: &str) {
        self.tell(&[NotifyState::Status(status)]);
    }

    /// Feeds the watchdog if it is time to, and something has been done since it was fed last: if
    /// what `beats` counts has grown.
    pub fn alive(&mut self, beats: impl FnOnce() -> u64) {
        let is_due = |interval| self.fed.elapsed() >= interval;
        if !self.interval.is_some_and(is_due) {
            return;
        }
        let beats = beats();
        if self.beats != Some(beats) {
            self.beats = Some(beats);
            self.fed = Instant::now();
            self.tell(&[NotifyState::Watchdog]);
        }
    }

    /// Feeds the watchdog if it is time to, of a program that waits for what it is to do.
    pub fn waits(&mut self) {
        self.beats = None;
        self.alive(|| 0);
        self.beats = None;
    }

    /// The program comes to its end.
    pub fn stopping(&mut self) {
        self.tell(&[NotifyState::Stopping]);
    }

    fn tell(&mut self, state: &[NotifyState<'_>]) {
        if let Err(error) = sd_notify::notify(state)
            && !std::mem::replace(&mut self.is_deaf, true)
        {
            tracing::warn!("the service manager cannot be told: {error}");
        }
    }
}
