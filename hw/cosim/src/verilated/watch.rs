//! Latencies in cycles: first occurrence of signals of a port.

use std::collections::BTreeMap;

use crate::pins::PORTS;

/// Observed signals of a port, by which latencies are measured, as in `shim/card.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is said in shim/card.h")]
#[repr(u32)]
pub enum Probe {
    RxStart = 1 << 0,
    RxWord = 1 << 1,
    Payload = 1 << 2,
    Sent = 1 << 3,
    TxOffer = 1 << 4,
    TxWord = 1 << 5,
    TxStart = 1 << 6,
    Fetched = 1 << 8,
    Expanded = 1 << 9,
    Select = 1 << 10,
    Place = 1 << 11,
    Lookup = 1 << 12,
    Bus = 1 << 13,
    Desc = 1 << 14,
}

/// Probes of `clk_net`; the others are of `clk_core`.
const NET_PROBES: u32 = 0xff;

/// First cycle of each probe of each port, in cycles of its clock.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    net: u64,
    core: u64,
    first: BTreeMap<(usize, u32), u64>,
    /// The first beat of a write to memory that was offered to the host bus.
    write: Option<u64>,
}

impl Watch {
    /// Cycles from one to the other, of one clock; `None` if one of them did not occur.
    #[must_use]
    pub fn cycles(&self, from: (usize, Probe), to: (usize, Probe)) -> Option<u64> {
        let first = |(port, probe)| self.first.get(&(port, probe as u32)).copied();
        first(to)?.checked_sub(first(from)?)
    }

    /// Cycles from a probe to the first write that was offered to the host bus.
    #[must_use]
    pub fn cycles_to_write(&self, from: (usize, Probe)) -> Option<u64> {
        self.write?
            .checked_sub(*self.first.get(&(from.0, from.1 as u32))?)
    }

    /// Before an edge of `clk_net`.
    pub(super) fn net_edge(&mut self, probes: [u32; PORTS]) {
        self.net += 1;
        self.look(probes, NET_PROBES, self.net);
    }

    /// Before an edge of `clk_core`, and whether a write is offered to the host bus.
    pub(super) fn core_edge(&mut self, probes: [u32; PORTS], writes: bool) {
        self.core += 1;
        self.look(probes, !NET_PROBES, self.core);
        self.write = self.write.or(writes.then_some(self.core));
    }

    fn look(&mut self, probes: [u32; PORTS], which: u32, at: u64) {
        for (port, probes) in probes.into_iter().enumerate() {
            for bit in (0..u32::BITS)
                .map(|bit| probes & which & 1 << bit)
                .filter(|&bit| bit != 0)
            {
                self.first.entry((port, bit)).or_insert(at);
            }
        }
    }
}
