//! A link to the receiver, and the counts of what it sent.

use pollux_mempool::time::Ns;
use pollux_pmd::Ledger;
use serde::Serialize;

use crate::images::stack::Stack;
use crate::images::stream::Packet;

/// How long a loop waits, after the last packet or a stop, for a link that takes nothing: 500 ms.
pub(crate) const GRACE: Ns = Ns(500_000_000);

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentCounts {
    /// Packets on the wire.
    pub packets: u64,
    /// Packets that the device or the kernel refused for good.
    pub errors: u64,
    /// Times that the receiver's host answered that the port is closed.
    pub refused: u64,
}

/// Stacks of image lines that were written into the receiver's memory, of all modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StackCounts {
    /// Stacks that were announced to the receiver.
    pub announced: u64,
    /// Those that the receiver says it has taken.
    pub taken: u64,
    /// Stacks that were lost, since no buffer of the receiver was free.
    pub overrun: u64,
    /// Announcements that were repeated, since the receiver did not answer.
    pub repeated: u64,
}

/// A way to the receiver, owned by one loop. No method waits.
pub trait PacketLink {
    /// Takes a packet for sending; its pixels are in the stack. False if there is no room now: it is
    /// offered again.
    fn offer(&mut self, packet: &Packet, stack: &Stack) -> bool;

    /// Sends what was taken, as far as there is room; returns how many packets are left.
    fn flush(&mut self) -> usize;

    /// Takes what was received, and answers ARP and ping.
    fn poll(&mut self) {}

    /// How long the receiver may take at the end; after a stop no more than 500 ms.
    fn patience(&self) -> Ns {
        GRACE
    }

    /// Called when all packets were offered: ends what was begun. Returns how much of it the receiver has not
    /// confirmed, if it confirms what it has.
    fn finish(&mut self) -> usize {
        0
    }

    /// Whether packets are sent at their time. Otherwise they carry it as a time stamp, and are sent as
    /// fast as possible.
    fn is_live(&self) -> bool {
        true
    }

    /// What was sent so far.
    fn sent(&self) -> SentCounts;

    /// What became of the stacks that images were sent in, if they were.
    fn stacks(&self) -> Option<StackCounts> {
        None
    }

    /// The ledger of what was received.
    fn ledger(&self) -> Ledger {
        Ledger::new()
    }
}
