//! Triggers on their way to MEPs.

use crate::time::Time;

/// Sources of triggers (thesis, register 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// The program's own generator: [`crate::trigger`].
    #[default]
    Internal,
    /// A port: [`Trigger`](crate::message::Trigger) messages.
    External,
    /// By hand: [`Register::HandTrigger`](super::Register::HandTrigger).
    Hand,
}

/// Triggers that are gathered to a MEP.
#[derive(Debug)]
pub(super) struct Gather {
    pub(super) selected: Source,
    pub(super) enabled: bool,
    pub(super) gathered: u16,
    pub(super) first: Time,
    pub(super) deadline: Time,
    /// Number of the next trigger of the port.
    pub(super) next: u64,
}

impl Default for Gather {
    fn default() -> Self {
        Self {
            selected: Source::Internal,
            enabled: true,
            gathered: 0,
            first: Time::ZERO,
            deadline: Time::MAX,
            next: 0,
        }
    }
}

impl Gather {
    pub(super) fn gathered(&self) -> u16 {
        self.gathered
    }

    /// When an incomplete MEP is closed.
    pub(super) fn deadline(&self) -> Time {
        self.deadline
    }
}
