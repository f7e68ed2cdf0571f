//! A finding: what was seen, what it means, and what mends it.

use serde::Serialize;

use crate::sys::Unread;

/// How much a finding matters, from nothing to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing; or it could not be looked at.
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

/// What mends a finding, or where nothing on this machine does, what shows more of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mend {
    /// A command for a root shell; it lasts until the next boot, or as long as what it sets.
    Run(String),
    /// Parameters to add to the kernel's command line, for the next boot.
    Boot(String),
    /// An option to give to the program that polls.
    Option(String),
    /// Mends nothing: a command for a root shell that shows where to look. A cable, a slot, a
    /// firmware or a hypervisor is not within reach of a command.
    Look(String),
}

/// One thing that is looked at.
pub(super) struct Check {
    /// Stable name in reports.
    pub(super) name: &'static str,
    /// Why it matters, in one sentence.
    pub(super) why: &'static str,
}

/// What was found in one place.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    /// Which one, where there are several: a CPU, an interface, a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subject: Option<String>,
    pub(super) level: Level,
    pub(super) found: String,
    pub(super) why: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mend: Option<Mend>,
}

impl Check {
    fn finding(&self, level: Level, found: impl Into<String>) -> Finding {
        Finding {
            check: self.name,
            subject: None,
            level,
            found: found.into(),
            why: self.why,
            mend: None,
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

    /// It could not be looked at, so that nothing is known to be mended.
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
        self.mend = Some(Mend::Run(command.into()));
        self
    }

    pub(super) fn boot(mut self, parameters: impl Into<String>) -> Self {
        self.mend = Some(Mend::Boot(parameters.into()));
        self
    }

    pub(super) fn option(mut self, option: impl Into<String>) -> Self {
        self.mend = Some(Mend::Option(option.into()));
        self
    }

    pub(super) fn look(mut self, command: impl Into<String>) -> Self {
        self.mend = Some(Mend::Look(command.into()));
        self
    }
}
