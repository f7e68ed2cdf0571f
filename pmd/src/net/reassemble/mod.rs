//! Datagrams out of the fragments of IPv4 (RFC 791 section 3.2), with bounded memory.

mod datagram;
mod fragment;
#[cfg(test)]
mod tests;

use pollux_mempool::time::Ns;
use pollux_mempool::{Mbuf, PoolCache};

use self::datagram::{Datagram, Stamps, State, Step};
use self::fragment::{Fragment, Key};
use crate::ledger::{Cause, Tally};

/// Most fragments of a datagram: the longest chain that a frame can be.
const MAX_FRAGMENTS: usize = 1024;

/// The bounds of a [`Reassembler`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReassemblyConfig {
    /// How long a datagram may take from its first fragment on: 1 ms to 60 s. It must be shorter
    /// than the time in which a sender uses an identification again: one that sends 65536
    /// datagrams of two fragments of 1500 bytes at 10 Gb/s takes 157 ms.
    pub timeout: Ns,
    /// Datagrams that may be under way: 1 to 1024. Each fragment is compared with all of them.
    pub datagrams: usize,
    /// Buffers that the fragments of one datagram may have: 2 to 1024.
    pub fragments: usize,
    /// Buffers that all fragments may have together, 2 or more. They are of the pools of the ports
    /// that received them, and must leave these enough to go on receiving.
    pub buffers: usize,
}

impl Default for ReassemblyConfig {
    /// 100 ms, 64 datagrams, 64 buffers of each (the longest take 45 at an MTU of 1500), 1024 of all.
    fn default() -> Self {
        Self {
            timeout: Ns(100_000_000),
            datagrams: 64,
            fragments: 64,
            buffers: 1024,
        }
    }
}

/// A bound that is out of its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("reassembly: {name} = {value}: it must be {least} to {most}")]
pub struct ReassemblyError {
    name: &'static str,
    value: u64,
    least: u64,
    most: u64,
}

impl ReassemblyConfig {
    /// Whether all bounds are within their limits.
    ///
    /// # Errors
    /// The first one that is not, and its limits.
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
    /// One frame, with the headers of the first fragment: of one segment where that fits the first
    /// fragment's buffer, else a chain of the fragments' buffers. It has port, queue, number and
    /// stamps of the fragment that came last. Nothing is verified but the IP headers of the
    /// fragments, so it has yet to be [classified](super::classify).
    pub mbuf: Mbuf,
    /// Frames that it came in: so many are to be counted as delivered, or as dropped.
    pub frames: u64,
}

/// Puts the datagrams of one port together: those of UDP over IPv4.
///
/// [`classify`](super::classify) says [`Cause::IpFragment`] of a fragment. With a reassembler the
/// caller does not drop it, but gives it here, and gets the whole datagram with its last fragment.
/// Each frame that is given is dropped here and counted for a cause, or is one of [`Whole::frames`].
///
/// - A datagram that is not complete in time is dropped: `reassembly-timeout`.
/// - Where two fragments overlap, or disagree on where the datagram ends, all of it is dropped
///   (`reassembly-overlap`), with what comes of it until its time is over: nobody but an attacker
///   sends such (RFC 1858, 3128, 5722). A copy of a fragment that is held is a `duplicate`, and
///   nothing else is lost for it.
/// - What would be longer than an IP datagram can be is `oversize`, and what has no room is
///   `reassembly-full`: all of a datagram that needs more than its share, and no more than the
///   fragment itself where the table is full.
/// - A fragment without payload, or in the middle and not of whole units of 8 bytes, is
///   `malformed`. So the first fragment has all of the UDP header.
/// - Fragments of other protocols, and of IPv6, are dropped as `ip-fragment`.
///
/// All memory is allocated when it is made. [`finish`](Self::finish) before it is dropped, or what it
/// holds then goes uncounted.
pub struct Reassembler {
    config: ReassemblyConfig,
    table: Box<[Datagram]>,
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
        })
    }

    /// Takes a frame of which [`classify`](super::classify) has said that it is a fragment. `now` is
    /// the time that has passed since any moment, the same in all calls: on a recording it is that
    /// of its stamps. A jump back by more than the time-out ends what is under way.
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
        let held: usize = self.table.iter().map(|datagram| datagram.buffers).sum();
        let Some(datagram) = Self::find(&mut self.table, fragment.key, now) else {
            return drop(mbuf, Cause::ReassemblyFull, cache, tally);
        };
        if let State::Refused(cause) = datagram.state {
            return drop(mbuf, cause, cache, tally);
        }
        let (fragments, buffers) = (self.config.fragments, self.config.buffers);
        let room = (fragments - datagram.buffers).min(buffers.saturating_sub(held));
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

    /// The datagram's place: where it is, or a free one.
    fn find(table: &mut [Datagram], key: Key, now: Ns) -> Option<&mut Datagram> {
        let mut free = None;
        for (n, datagram) in table.iter().enumerate() {
            if datagram.state == State::Free {
                free = free.or(Some(n));
            } else if datagram.key == key {
                return table.get_mut(n);
            }
        }
        let datagram = table.get_mut(free?)?;
        datagram.begin(key, now);
        Some(datagram)
    }

    /// Drops the datagrams that are not complete in time. [`take`](Self::take) does so as well: this
    /// is for a loop to call now and then, so that buffers come back when no fragments do.
    pub fn expire(&mut self, now: Ns, cache: &mut PoolCache, tally: &mut Tally) {
        for datagram in &mut self.table {
            if datagram.state != State::Free
                && now.0.abs_diff(datagram.begun.0) >= self.config.timeout.0
            {
                datagram.drop_parts(Cause::ReassemblyTimeout, cache, tally);
            }
        }
    }

    /// Drops all that is under way, as nothing comes any more.
    pub fn finish(&mut self, cache: &mut PoolCache, tally: &mut Tally) {
        for datagram in &mut self.table {
            datagram.drop_parts(Cause::ReassemblyTimeout, cache, tally);
        }
    }
}
