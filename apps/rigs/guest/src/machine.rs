//! What a machine is.

use crate::nic::Owner;

/// A machine with two NICs, `a` and `b`, wired back to back; or each to one of the kernel's.
pub(crate) struct Machine {
    /// As `scripts/qemu-test` calls it: mostly the driver of ours that it is for.
    pub(crate) name: &'static str,
    /// Whose the NICs are when a test begins.
    pub(crate) owner: Owner,
    /// Queues in each direction.
    pub(crate) queues: u16,
}
