//! A link to the trigger, and the counts of what it sent.

use pollux_pmd::Ledger;

use crate::check::DecisionCheck;
use crate::frames::Frame;

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentCounts {
    /// Frames on the wire.
    pub frames: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Hits in them.
    pub hits: u64,
    /// Frames that the device or the kernel refused for good.
    pub errors: u64,
    /// ICMP messages "port unreachable" from the other host.
    pub refused: u64,
}

impl SentCounts {
    pub(super) fn count(&mut self, bytes: u64, hits: u32) {
        self.frames += 1;
        self.bytes += bytes;
        self.hits += u64::from(hits);
    }
}

/// A way to the trigger, owned by one loop. Nothing here waits.
pub trait Link {
    /// Takes a frame for sending. False where there is no room now: it is offered again.
    fn offer(&mut self, frame: &Frame) -> bool;

    /// Sends what was taken, as far as there is room; returns how many frames are left.
    fn flush(&mut self) -> usize;

    /// Takes what has come back: decisions go to `check`, everything is in the ledger.
    fn poll(&mut self, check: &mut DecisionCheck);

    /// Whether frames are sent at their time; else they only bear it, and are sent as fast as
    /// possible.
    fn is_live(&self) -> bool;

    /// Whether decisions can come back.
    fn can_receive(&self) -> bool;

    /// What was sent so far.
    fn sent(&self) -> SentCounts;

    /// The books on what came back.
    fn ledger(&self) -> Ledger;
}
