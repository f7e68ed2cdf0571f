//! What a carrier did not send.

/// Frames that were not sent, each of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsent {
    /// The pool had no free buffer.
    pub no_buffer: u64,
    /// Longer than a frame or a buffer may be.
    pub oversize: u64,
    /// The queue had no room.
    pub queue_full: u64,
    /// Messages to members that the farm does not have.
    pub no_member: u64,
}
