//! A link to the receiver, and the counts of what it sent.

use pollux_pmd::Ledger;

use crate::images::stack::Stack;
use crate::images::stream::Packet;

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

/// A way to the receiver, owned by one loop. No method waits.
pub trait PacketLink {
    /// Takes a packet for sending; its pixels are in the stack. False if there is no room now: it is
    /// offered again.
    fn offer(&mut self, packet: &Packet, stack: &Stack) -> bool;

    /// Sends what was taken, as far as there is room; returns how many packets are left.
    fn flush(&mut self) -> usize;

    /// Takes what was received, and answers ARP and ping.
    fn poll(&mut self) {}

    /// Whether packets are sent at their time. Otherwise they carry it as a time stamp, and are sent as
    /// fast as possible.
    fn is_live(&self) -> bool {
        true
    }

    /// What was sent so far.
    fn sent(&self) -> SentCounts;

    /// The ledger of what was received.
    fn ledger(&self) -> Ledger {
        Ledger::new()
    }
}
