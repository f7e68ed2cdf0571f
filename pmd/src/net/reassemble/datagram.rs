//! Datagram under reassembly: one entry of the table.

use pollux_mempool::time::{Ns, Tsc, WireTime};
use pollux_mempool::{Mbuf, MbufFlags, PoolCache};
use zerocopy::{FromBytes, IntoBytes};

use super::fragment::{Fragment, Key};
use crate::ledger::{Cause, Tally};
use crate::net::checksum::Checksum;
use crate::net::headers::Ipv4Header;
use crate::net::parse::link_layer;

/// Longest IPv4 datagram in bytes, its header included.
const MAX_DATAGRAM: usize = 65_535;

/// State of a table entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Free,
    Gathering,
    /// Was complete; holds nothing. Its further fragments are copies.
    Complete,
    /// Holds nothing; further fragments are dropped for this cause.
    Refused(Cause),
}

/// A held fragment.
struct Part {
    /// Without the padding behind the datagram.
    mbuf: Mbuf,
    fragment: Fragment,
}

impl Part {
    fn payload(&self) -> impl Iterator<Item = &u8> {
        self.mbuf.segments().flatten().skip(self.fragment.at)
    }

    /// Whether both fragments carry the same bytes for the same offset.
    fn equals(&self, other: &Self) -> bool {
        let place = |part: &Self| (part.fragment.start, part.fragment.end, part.fragment.last);
        place(self) == place(other) && self.payload().eq(other.payload())
    }
}

/// Result of adding a fragment.
pub(super) enum Step {
    Held,
    /// The last missing fragment arrived.
    Complete,
    /// The fragment is not needed.
    Duplicate(Mbuf),
    /// The datagram cannot be reassembled.
    Refuse(Mbuf, Cause),
}

/// An entry of the table.
#[derive(Default)]
pub(super) struct Datagram {
    pub(super) state: State,
    pub(super) key: Key,
    /// Arrival time of its first fragment.
    pub(super) begun: Ns,
    /// Number of its last fragment among all.
    pub(super) touched: u64,
    /// Fragments by their offset in the datagram; none overlaps another.
    parts: Vec<Part>,
    /// Buffers of the fragments.
    pub(super) buffers: usize,
    /// Bytes received.
    gathered: usize,
    /// Length in bytes, known once the last fragment has arrived.
    len: Option<usize>,
}

impl Datagram {
    /// A free entry for datagrams of so many fragments.
    pub(super) fn new(fragments: usize) -> Self {
        Self {
            parts: Vec::with_capacity(fragments),
            ..Self::default()
        }
    }

    pub(super) fn begin(&mut self, key: Key, now: Ns) {
        (self.key, self.begun, self.state) = (key, now, State::Gathering);
    }

    /// Adds a fragment. `room`: number of buffers that may be added.
    pub(super) fn add(&mut self, fragment: Fragment, mut mbuf: Mbuf, room: usize) -> Step {
        mbuf.truncate(fragment.at + fragment.end - fragment.start);
        let part = Part { mbuf, fragment };
        let place = |held: &Part| held.fragment.start < fragment.start;
        let place = self.parts.partition_point(place);
        if let Some(held) = self.parts.get(place)
            && held.equals(&part)
        {
            return Step::Duplicate(part.mbuf);
        }
        let buffers = part.mbuf.segment_count();
        if fragment.header_len + fragment.end > MAX_DATAGRAM {
            return Step::Refuse(part.mbuf, Cause::Oversize);
        } else if self.contradicts(&fragment, place) {
            return Step::Refuse(part.mbuf, Cause::ReassemblyOverlap);
        } else if buffers > room {
            return Step::Refuse(part.mbuf, Cause::ReassemblyFull);
        }
        self.parts.insert(place, part);
        self.buffers += buffers;
        self.gathered += fragment.end - fragment.start;
        if fragment.last {
            self.len = Some(fragment.end);
        }
        // No overlap, and no bytes behind the end: the datagram is complete when the lengths agree.
        if self.len == Some(self.gathered) {
            Step::Complete
        } else {
            Step::Held
        }
    }

    /// Which entry is given up first, the smallest: a free one, one that holds nothing, then the one
    /// that has waited longest for a fragment.
    pub(super) fn worth(&self) -> (u8, u64) {
        let rank = match self.state {
            State::Free => 0,
            State::Complete | State::Refused(_) => 1,
            State::Gathering => 2,
        };
        (rank, self.touched)
    }

    /// Whether the fragment, which would be inserted at `place`, overlaps another, or contradicts
    /// the known end of the datagram.
    fn contradicts(&self, fragment: &Fragment, place: usize) -> bool {
        let before = place.checked_sub(1).and_then(|n| self.parts.get(n));
        let behind = self.parts.get(place);
        before.is_some_and(|part| part.fragment.end > fragment.start)
            || behind.is_some_and(|part| part.fragment.start < fragment.end)
            || fragment.last && behind.is_some()
            || self.len.is_some_and(|len| fragment.end > len)
    }

    /// Frees the fragments and counts them for a cause. The entry becomes free.
    pub(super) fn drop_parts(&mut self, cause: Cause, cache: &mut PoolCache, tally: &mut Tally) {
        tally.count_dropped(cause, self.parts.len() as u64);
        for part in self.parts.drain(..) {
            cache.free(part.mbuf);
        }
        self.end_as(State::Free);
    }

    fn end_as(&mut self, state: State) {
        (self.state, self.buffers, self.gathered, self.len) = (state, 0, 0, None);
    }

    /// The whole datagram as one frame, and its number of fragments: in the first fragment's buffer
    /// if it fits, else as a chain. The entry holds nothing afterwards, and knows the copies.
    ///
    /// The frame has the headers of the first fragment, and the arrival, port and queue of the
    /// fragment in `stamps`. `None`, with nothing changed, if it would be too long.
    pub(super) fn join(&mut self, stamps: &Stamps, cache: &mut PoolCache) -> Option<(Mbuf, u64)> {
        let (count, len) = (self.parts.len() as u64, self.gathered);
        let Fragment { header_len, at, .. } = self.parts.first()?.fragment;
        if header_len + len > MAX_DATAGRAM {
            return None;
        }
        let trusted = |part: &Part| part.mbuf.flags().contains(MbufFlags::CHECKSUM_TRUSTED);
        let trusted = self.parts.iter().all(trusted);
        let mut parts = self.parts.drain(..);
        let mut head = parts.next()?.mbuf;
        let rest = len + at - head.total_len();
        if head.segment_count() == 1 && rest <= head.tailroom() {
            for part in parts {
                // The first buffer has room for all fragments.
                if let Some(room) = head.append(part.mbuf.total_len() - part.fragment.at) {
                    part.mbuf.copy_to(part.fragment.at, room);
                }
                cache.free(part.mbuf);
            }
        } else {
            // From the back, so that each link is one step.
            let chain = parts.rev().fold(None, |tail: Option<Mbuf>, part| {
                let mut mbuf = part.mbuf;
                // The headers lie in the first segment.
                let _ = mbuf.advance(part.fragment.at);
                Self::link(&mut mbuf, tail);
                Some(mbuf)
            });
            Self::link(&mut head, chain);
        }
        self.end_as(State::Complete);
        if !trusted {
            head.remove_flags(MbufFlags::CHECKSUM_TRUSTED);
        }
        stamps.put_on(&mut head);
        make_whole(&mut head, header_len + len, header_len);
        Some((head, count))
    }

    /// The table bounds the chain to the maximum length of a frame.
    fn link(mbuf: &mut Mbuf, tail: Option<Mbuf>) {
        if let Some(tail) = tail {
            let refused = mbuf.chain(tail);
            debug_assert!(refused.is_ok());
        }
    }
}

/// Arrival time and origin of a frame.
pub(super) struct Stamps {
    port: u16,
    queue: u16,
    ordinal: u32,
    arrival: Tsc,
    wire_time: Option<WireTime>,
}

impl Stamps {
    pub(super) fn of(mbuf: &Mbuf) -> Self {
        Self {
            port: mbuf.port(),
            queue: mbuf.queue(),
            ordinal: mbuf.ordinal(),
            arrival: mbuf.arrival(),
            wire_time: mbuf.wire_time(),
        }
    }

    fn put_on(&self, mbuf: &mut Mbuf) {
        mbuf.set_origin(self.port, self.queue, self.ordinal, self.arrival);
        if let Some(time) = self.wire_time {
            mbuf.set_wire_time(time);
        }
    }
}

/// Turns the header of a first fragment into that of the whole datagram, of `total` bytes.
fn make_whole(head: &mut Mbuf, total: usize, header_len: usize) {
    let Ok((_, at)) = link_layer(head.data()) else {
        return;
    };
    let bytes = head.data_mut().get_mut(at..at + header_len);
    let Some(Ok((ip, options))) = bytes.map(Ipv4Header::mut_from_prefix) else {
        return;
    };
    ip.total_len.set(total as u16);
    ip.flags_offset.set(0);
    ip.checksum.set(0);
    let mut sum = Checksum::new();
    sum.add(ip.as_bytes());
    sum.add(options);
    ip.checksum.set(sum.finish());
}
