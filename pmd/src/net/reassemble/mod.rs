//! Reassembly of IPv4 fragments to datagrams (RFC 791 section 3.2), with bounded memory.

mod datagram;
mod fragment;
#[cfg(test)]
mod tests;

use pollux_mempool::time::Ns;
use pollux_mempool::{Mbuf, PoolCache};

use self::datagram::{Datagram, Stamps, State, Step};
use self::fragment::{Fragment, Key};
use crate::ledger::{Cause, Tally};

/// Maximum number of fragments of a datagram: the longest chain of a frame.
const MAX_FRAGMENTS: usize = 1024;

/// The bounds of a [`Reassembler`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReassemblyConfig {
    /// Longest time of a datagram from its first fragment on: 1 ms to 60 s. It must be shorter than
    /// the time after which a sender reuses an identification: a sender of 65536 datagrams of two
    /// fragments of 1500 bytes at 10 Gb/s takes 157 ms.
    pub timeout: Ns,
    /// Maximum number of datagrams under reassembly: 1 to 1024. Each fragment is compared with all.
    pub datagrams: usize,
    /// Maximum number of buffers of one datagram: 2 to 1024.
    pub fragments: usize,
    /// Maximum number of buffers of all fragments, 2 or more. They belong to the pools of the ports
    /// that received them, which must keep enough buffers for reception.
    pub buffers: usize,
}

impl Default for ReassemblyConfig {
    /// 100 ms, 64 datagrams, 64 buffers each (the longest take 45 at an MTU of 1500), 1024 in
    /// total.
    fn default() -> Self {
        Self {
            timeout: Ns(100_000_000),
            datagrams: 64,
            fragments: 64,
            buffers: 1024,
        }
    }
}

/// Error: a bound is out of its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("reassembly: {name} = {value}: it must be {least} to {most}")]
pub struct ReassemblyError {
    name: &'static str,
    value: u64,
    least: u64,
    most: u64,
}

impl ReassemblyConfig {
    /// Checks that all bounds are within their limits.
    ///
    /// # Errors
    /// The first bound that is not, and its limits.
    pub fn check(&self) -> Result<(), ReassemblyError> {
        let milliseconds = self.timeout.0 / 1_000_000;
        let most = MAX_FRAGMENTS as u64;
        for (name, value, least, most) in [
            ("timeout_ms", milliseconds, 1, 60_000),
            ("datagrams", self.datagrams as u64, 1, 1024),
            ("fragments", self.fragments as u64, 2, most),
            ("buffers", self.buffers as u64, 2, u64::from(u32::MAX)),
        ] {
            if !(least..=most).contains(&value) {
                return Err(ReassemblyError {
                    name,
                    value,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }
}

/// A datagram of several fragments.
#[derive(Debug)]
pub struct Whole {
    /// One frame with the headers of the first fragment: a single segment if that fits the first
    /// fragment's buffer, else a chain of the fragments' buffers. It has port, queue, number and
    /// time stamps of the fragment that arrived last. Only the IP headers of the fragments are
    /// verified, so the frame must still be [classified](super::classify).
    pub mbuf: Mbuf,
    /// Number of frames that carried it, to be counted as delivered, or as dropped.
    pub frames: u64,
}

/// Reassembles the UDP datagrams over IPv4 of one port.
///
/// [`classify`](super::classify) returns [`Cause::IpFragment`] for a fragment. With a reassembler
/// the caller passes the fragment here instead of dropping it, and gets the whole datagram with its
/// last fragment. Each frame that is passed is either dropped here and counted for a cause, or
/// counted in [`Whole::frames`].
///
/// - A datagram that is incomplete at its time-out is dropped: `reassembly-timeout`.
/// - If two fragments overlap, or disagree on the end of the datagram, the whole datagram is
///   dropped (`reassembly-overlap`), with all its further fragments until the time-out, as long as
///   its entry is not needed: only attackers send such fragments (RFC 1858, 3128, 5722). A copy of a
///   held fragment is a `duplicate` and drops nothing else.
/// - A datagram longer than IP permits is `oversize`.
/// - A datagram that exceeds its share of buffers is dropped: `reassembly-full`. If the table is
///   full, or all buffers are taken, the datagram that has waited longest for a fragment is dropped
///   for the same cause: what has lost a fragment gives way to what is on its way.
/// - A fragment that comes after its datagram was complete is a `duplicate`, as long as the entry is
///   not needed for another datagram. A first fragment begins a datagram anew.
/// - A fragment without payload, or one in the middle that is not of whole units of 8 bytes, is
///   `malformed`. The first fragment therefore contains the whole UDP header.
/// - Fragments of other protocols, and of IPv6, are dropped as `ip-fragment`.
///
/// All memory is allocated at construction. Call [`finish`](Self::finish) before the drop, or
/// frames that are still held remain uncounted.
pub struct Reassembler {
    config: ReassemblyConfig,
    table: Box<[Datagram]>,
    /// Number of fragments so far.
    taken: u64,
}

impl Reassembler {
    /// An empty table.
    ///
    /// # Errors
    /// A bound that is out of its limits.
    pub fn new(config: ReassemblyConfig) -> Result<Self, ReassemblyError> {
        config.check()?;
        let place = |_| Datagram::new(config.fragments);
        Ok(Self {
            config,
            table: (0..config.datagrams).map(place).collect(),
            taken: 0,
        })
    }

    /// Takes a frame that [`classify`](super::classify) has identified as a fragment. `now` is the
    /// time since an origin that is the same in all calls: on a recording, the time of its time
    /// stamps. A jump back by more than the time-out drops all datagrams under reassembly.
    pub fn take(
        &mut self,
        mbuf: Mbuf,
        now: Ns,
        cache: &mut PoolCache,
        tally: &mut Tally,
    ) -> Option<Whole> {
        self.expire(now, cache, tally);
        let drop = |mbuf, cause, cache: &mut PoolCache, tally: &mut Tally| {
            tally.count_dropped(cause, 1);
            cache.free(mbuf);
            None
        };
        let fragment = match Fragment::of(&mbuf) {
            Ok(fragment) => fragment,
            Err(cause) => return drop(mbuf, cause, cache, tally),
        };
        let Some(place) = self.place(fragment.key, now, cache, tally) else {
            return drop(mbuf, Cause::ReassemblyFull, cache, tally);
        };
        let known = match self.table[place].state {
            State::Refused(cause) => Some(cause),
            // A first fragment is no copy: a sender may have but one identification.
            State::Complete if fragment.start != 0 => Some(Cause::Duplicate),
            State::Complete => {
                self.table[place].begin(fragment.key, now);
                None
            }
            State::Free | State::Gathering => None,
        };
        if let Some(cause) = known {
            return drop(mbuf, cause, cache, tally);
        }
        let room = self.room(place, mbuf.segment_count(), cache, tally);
        let datagram = &mut self.table[place];
        let stamps = Stamps::of(&mbuf);
        let refused = match datagram.add(fragment, mbuf, room) {
            Step::Held => return None,
            Step::Duplicate(mbuf) => return drop(mbuf, Cause::Duplicate, cache, tally),
            Step::Refuse(mbuf, cause) => {
                let _: Option<Whole> = drop(mbuf, cause, cache, tally);
                cause
            }
            Step::Complete => match datagram.join(&stamps, cache) {
                Some((mbuf, frames)) => return Some(Whole { mbuf, frames }),
                None => Cause::Oversize,
            },
        };
        datagram.drop_parts(refused, cache, tally);
        datagram.state = State::Refused(refused);
        None
    }

    /// The entry of a datagram: its own, or the one of least worth, whose datagram is dropped. What
    /// lacks a fragment for good gives way to what is on its way.
    fn place(
        &mut self,
        key: Key,
        now: Ns,
        cache: &mut PoolCache,
        tally: &mut Tally,
    ) -> Option<usize> {
        let own = |datagram: &Datagram| datagram.state != State::Free && datagram.key == key;
        let place = if let Some(place) = self.table.iter().position(own) {
            place
        } else {
            let entries = self.table.iter_mut().enumerate();
            let (place, datagram) = entries.min_by_key(|(_, datagram)| datagram.worth())?;
            datagram.drop_parts(Cause::ReassemblyFull, cache, tally);
            datagram.begin(key, now);
            place
        };
        self.taken += 1;
        self.table[place].touched = self.taken;
        Some(place)
    }

    /// Number of buffers that a datagram may still take. If there are not enough for its next
    /// fragment, others are dropped, the one first that has waited longest.
    fn room(
        &mut self,
        place: usize,
        needed: usize,
        cache: &mut PoolCache,
        tally: &mut Tally,
    ) -> usize {
        let own = self.config.fragments - self.table[place].buffers;
        let held: usize = self.table.iter().map(|datagram| datagram.buffers).sum();
        let mut left = self.config.buffers.saturating_sub(held);
        while needed > left && needed <= own {
            let others = self.table.iter_mut().enumerate();
            let others = others.filter(|(n, datagram)| *n != place && datagram.buffers > 0);
            let Some((_, datagram)) = others.min_by_key(|(_, datagram)| datagram.touched) else {
                break;
            };
            left += datagram.buffers;
            datagram.drop_parts(Cause::ReassemblyFull, cache, tally);
        }
        own.min(left)
    }

    /// Drops the datagrams that have timed out. [`take`](Self::take) does so as well; a loop calls
    /// this now and then so that buffers return also when no fragments arrive.
    pub fn expire(&mut self, now: Ns, cache: &mut PoolCache, tally: &mut Tally) {
        for datagram in &mut self.table {
            if datagram.state != State::Free
                && now.0.abs_diff(datagram.begun.0) >= self.config.timeout.0
            {
                datagram.drop_parts(Cause::ReassemblyTimeout, cache, tally);
            }
        }
    }

    /// Drops all datagrams under reassembly, at the end of reception.
    pub fn finish(&mut self, cache: &mut PoolCache, tally: &mut Tally) {
        for datagram in &mut self.table {
            datagram.drop_parts(Cause::ReassemblyTimeout, cache, tally);
        }
    }
}
