//! A finding of `doctor`: observation, consequence and remedy.

use serde::Serialize;

use pollux_machine::Unread;

/// Severity of a finding, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing, or the check was not possible.
    Note,
    /// Costs speed, or makes tail latencies longer.
    Warn,
    /// Something does not work, or deadlines will be missed.
    Bad,
}

impl Level {
    pub(super) const ALL: [Self; 4] = [Self::Ok, Self::Note, Self::Warn, Self::Bad];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// Remedy of a finding or, where this machine has none, a command that shows details.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Remedy {
    /// A command for a root shell. Its effect lasts until the next boot, or as long as the device
    /// or interface exists.
    Run(String),
    /// Parameters to add to the kernel's command line, for the next boot.
    Boot(String),
    /// An option for the program that polls.
    Option(String),
    /// No remedy: a command for a root shell that shows details. Cables, slots, firmware and
    /// hypervisors are out of reach of a command.
    Look(String),
}

/// A check.
pub(super) struct Check {
    /// Stable name in reports.
    pub(super) name: &'static str,
    /// Reason for the check, in one sentence.
    pub(super) why: &'static str,
}

/// Result of a check for one subject.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    /// Subject, where there are several: a CPU, an interface, a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subject: Option<String>,
    pub(super) level: Level,
    pub(super) found: String,
    pub(super) why: &'static str,
    #[serde(rename = "mend", skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<Remedy>,
}

impl Check {
    fn finding(&self, level: Level, found: impl Into<String>) -> Finding {
        Finding {
            check: self.name,
            subject: None,
            level,
            found: found.into(),
            why: self.why,
            remedy: None,
        }
    }

    pub(super) fn ok(&self, found: impl Into<String>) -> Finding {
        self.finding(Level::Ok, found)
    }

    pub(super) fn note(&self, found: impl Into<String>) -> Finding {
        self.finding(Level::Note, found)
    }

    pub(super) fn warn(&self, found: impl Into<String>) -> Finding {
        self.finding(Level::Warn, found)
    }

    pub(super) fn bad(&self, found: impl Into<String>) -> Finding {
        self.finding(Level::Bad, found)
    }

    /// The check was not possible, so no remedy is known.
    pub(super) fn unread(&self, unread: &Unread) -> Finding {
        self.note(unread.to_string())
    }
}

impl Finding {
    pub(super) fn of(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    pub(super) fn run(mut self, command: impl Into<String>) -> Self {
        self.remedy = Some(Remedy::Run(command.into()));
        self
    }

    pub(super) fn boot(mut self, parameters: impl Into<String>) -> Self {
        self.remedy = Some(Remedy::Boot(parameters.into()));
        self
    }

    pub(super) fn option(mut self, option: impl Into<String>) -> Self {
        self.remedy = Some(Remedy::Option(option.into()));
        self
    }

    pub(super) fn look(mut self, command: impl Into<String>) -> Self {
        self.remedy = Some(Remedy::Look(command.into()));
        self
    }
}
