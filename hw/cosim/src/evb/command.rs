//! Commands of the scheduler's register `COMMAND`.

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    ExcludeNode(u16),
    ReadmitNode(u16),
    ExcludeFeeder(u8),
    ReadmitFeeder(u8),
}

impl Command {
    /// What is written to the register.
    pub(crate) fn word(self) -> u32 {
        match self {
            Self::ExcludeNode(node) => node.into(),
            Self::ReadmitNode(node) => 1 << 16 | u32::from(node),
            Self::ExcludeFeeder(feeder) => 2 << 16 | u32::from(feeder),
            Self::ReadmitFeeder(feeder) => 3 << 16 | u32::from(feeder),
        }
    }
}
