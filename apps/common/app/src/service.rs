//! Notifications to a service manager: sd_notify(3), with its watchdog.

use std::time::{Duration, Instant};

use sd_notify::NotifyState;

/// Connection to the service manager, if there is one (`NOTIFY_SOCKET`).
#[derive(Debug)]
pub struct Service {
    /// Interval of watchdog notifications: half of the watchdog's timeout.
    interval: Option<Duration>,
    fed: Instant,
    /// Value of the progress counter at the last notification.
    beats: Option<u64>,
    is_ready: bool,
    /// A notification failed, and the failure was logged.
    is_deaf: bool,
    /// Notifications are disabled.
    is_absent: bool,
}

impl Service {
    /// The service manager that the environment names.
    #[must_use]
    pub fn from_env() -> Self {
        Self {
            interval: sd_notify::watchdog_enabled().map(|limit| limit / 2),
            fed: Instant::now(),
            beats: None,
            is_ready: false,
            is_deaf: false,
            is_absent: false,
        }
    }

    /// No service manager: nothing is reported, whatever the environment names.
    #[must_use]
    pub fn none() -> Self {
        Self {
            interval: None,
            fed: Instant::now(),
            beats: None,
            is_ready: true,
            is_deaf: false,
            is_absent: true,
        }
    }

    /// Reports readiness on the first call.
    pub fn ready(&mut self) {
        if !std::mem::replace(&mut self.is_ready, true) {
            self.tell(&[NotifyState::Ready]);
        }
    }

    /// Reports the program's status, as one line.
    pub fn status(&mut self, status: &str) {
        self.tell(&[NotifyState::Status(status)]);
    }

    /// Notifies the watchdog if it is due and the program has made progress since: the count
    /// `beats` has grown.
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

    /// Notifies the watchdog if it is due, for a program that waits for input.
    pub fn waits(&mut self) {
        self.beats = None;
        self.alive(|| 0);
        self.beats = None;
    }

    /// Reports that the program is stopping.
    pub fn stopping(&mut self) {
        self.tell(&[NotifyState::Stopping]);
    }

    fn tell(&mut self, state: &[NotifyState<'_>]) {
        if !self.is_absent
            && let Err(error) = sd_notify::notify(state)
            && !std::mem::replace(&mut self.is_deaf, true)
        {
            tracing::warn!("the service manager cannot be notified: {error}");
        }
    }
}
