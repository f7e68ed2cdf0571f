//! The card's counters, and those that go into the ledger.

use std::borrow::Cow;

use super::nic::Nic;
use super::registers::{clop, host, port, timing, tlb, tx};
use crate::bus::registers::Register;
use crate::bus::{Bus, Device};
use crate::driver::Statistics;
use crate::ledger::{Cause, Tally};

/// Counters of frames that end in a port before any list (hw/docs/operations.md). Without a cause:
/// consumed by the card itself, which counts as delivered.
const ENDS: [(Register, Option<Cause>); 15] = [
    (port::RX_FCS, Some(Cause::DeviceError)),
    (port::RX_SYMBOL, Some(Cause::DeviceError)),
    (port::RX_RUNT, Some(Cause::Malformed)),
    (port::RX_OVERSIZE, Some(Cause::Oversize)),
    (port::RX_PAUSE, None),
    (port::DROP_ADDRESS, Some(Cause::NotForUs)),
    (port::DROP_MALFORMED, Some(Cause::Malformed)),
    (port::DROP_CHECKSUM, Some(Cause::BadChecksum)),
    (port::DROP_FRAGMENT, Some(Cause::IpFragment)),
    (port::DROP_UNSUPPORTED, Some(Cause::Unsupported)),
    (port::DROP_MISS, Some(Cause::DemuxMiss)),
    (port::DROP_ANSWER, Some(Cause::TxFull)),
    (port::DROP_OVERFLOW, Some(Cause::RingFull)),
    (port::ARP_FRAMES, None),
    (port::ECHO_FRAMES, None),
];

/// Counters of payloads that a list refuses. Placed payloads are counted where they are read.
const OUTCOMES: [(Register, Cause); 7] = [
    (clop::OUTCOME_NO_BUFFER, Cause::RingFull),
    (clop::OUTCOME_NO_EVENT, Cause::RingFull),
    (clop::OUTCOME_OVERSIZE, Cause::Oversize),
    (clop::OUTCOME_FAULT, Cause::DeviceError),
    (clop::OUTCOME_OFF, Cause::DemuxMiss),
    (clop::OUTCOME_MALFORMED, Cause::Malformed),
    (clop::OUTCOME_BAD_VERSION, Cause::BadVersion),
];

/// A counter of the card, and the cause of its frames.
struct Watched {
    at: usize,
    cause: Option<Cause>,
    last: u64,
}

/// Maximum number of frames between two readings. A larger difference is ignored until the value is
/// plausible again. (More than a day of the shortest frames.)
const MOST: u64 = 1 << 40;

/// Loss counters of some ports.
pub(super) struct Losses<D: Device> {
    nic: Nic<D>,
    /// Counter of received frames of each port.
    frames: Vec<usize>,
    watched: Vec<Watched>,
}

impl<D: Device> Losses<D> {
    /// Loss counters of ports, and of the lists that are in use, from now on.
    pub(super) fn new(nic: &Nic<D>, ports: &[usize], lists: &[usize]) -> Self {
        let ends = ports
            .iter()
            .flat_map(|&port| ENDS.map(|(register, cause)| (nic.port(port, register), cause)));
        let lists = lists.iter().flat_map(|&list| {
            OUTCOMES.map(|(register, cause)| (nic.at.clop + register.of(list), Some(cause)))
        });
        let watched = ends.chain(lists).map(|(at, cause)| Watched {
            at,
            cause,
            last: nic.read64(at),
        });
        Self {
            watched: watched.collect(),
            frames: ports
                .iter()
                .map(|&port| nic.port(port, port::RX_FRAMES))
                .collect(),
            nic: nic.clone(),
        }
    }

    /// Counts the losses, and the frames consumed by the card, since the last call.
    pub(super) fn count(&mut self, tally: &mut Tally) {
        for watched in &mut self.watched {
            let more = self.nic.read64(watched.at).wrapping_sub(watched.last);
            if (1..MOST).contains(&more) {
                watched.last = watched.last.wrapping_add(more);
                tally.count_from_wire(more, 0);
                match watched.cause {
                    Some(cause) => tally.count_dropped(cause, more),
                    None => tally.count_delivered(more),
                }
            }
        }
    }

    /// Counts, when the ports are at rest, the frames that the card had received and that were not
    /// read: in its FIFOs, or in a buffer that was not announced. A reset clears the card's
    /// counters, so the tally has all frames since then.
    pub(super) fn count_left(&self, tally: &mut Tally) {
        let seen = tally.view().balance().from_wire;
        let came = self.frames.iter().map(|&at| self.nic.read64(at));
        let left = came.fold(0, u64::wrapping_add).wrapping_sub(seen);
        if left < MOST {
            tally.count_from_wire(left, 0);
            tally.count_dropped(Cause::Aborted, left);
        }
    }
}

/// All counters of a card, by name: those of its ports, of their default lists, of its rings, and
/// the shared ones.
pub(super) fn statistics<D: Device>(nic: &Nic<D>, lists: &[usize]) -> Statistics {
    let mut all = Statistics::new();
    let mut add = |prefix: String, at: usize, register: &Register, n| {
        let name = format!("{prefix}{}", register.name.to_lowercase());
        all.push((Cow::Owned(name), nic.read64(at + register.of(n))));
    };
    for (n, &at) in nic.at.ports.iter().enumerate().take(nic.has.ports) {
        for register in counters(port::REGISTERS, port::RX_FRAMES, port::PCS_TX_ERRORS) {
            add(format!("port{n}_"), at, register, 0);
        }
    }
    for &list in lists {
        for register in counters(
            clop::REGISTERS,
            clop::OUTCOME_PLACED,
            clop::OUTCOME_BAD_VERSION,
        ) {
            add(format!("list{list}_"), nic.at.clop, register, list);
        }
    }
    for n in 0..nic.has.tx_rings {
        for register in counters(tx::REGISTERS, tx::PACKETS, tx::READ_FAILED) {
            add(format!("ring{n}_"), nic.at.tx, register, nic.ring(n));
        }
    }
    if !nic.is_first() {
        // The others are of function 0.
        return all;
    }
    for register in counters(host::REGISTERS, host::WRITES, host::RD_DISCARDED) {
        add("host_".into(), nic.at.host, register, 0);
    }
    for register in counters(tlb::REGISTERS, tlb::FAULTS, tlb::MISSES) {
        add("tlb_".into(), nic.at.tlb, register, 0);
    }
    for register in counters(timing::REGISTERS, timing::CLOCKS, timing::EVENTS_LOST) {
        add("timing_".into(), nic.at.timing, register, 0);
    }
    let bursts = nic.bus.read32(nic.at.timing + timing::BURSTS.at);
    all.push((Cow::Borrowed("timing_bursts"), bursts.into()));
    all
}

/// Counter registers from one to another, lower halves only.
fn counters(
    table: &'static [Register],
    first: Register,
    last: Register,
) -> impl Iterator<Item = &'static Register> {
    table.iter().filter(move |register| {
        (first.at..=last.at).contains(&register.at) && !register.name.ends_with("_HIGH")
    })
}
