//! From the card to the host: writes, reads, completions of registers.

use std::collections::VecDeque;

use pollux_card_model::{Host, ReadError};

use super::header::{ADDRESS, FUNC, Header};
use super::link::{Assembly, Link, Tlp};
use super::{Draw, Traffic};
use crate::pins::Beat;

/// Posted writes in flight: credits for headers (PCIe 4.0, 2.6.1), which return
/// when a write is in memory.
pub const POSTED_HEADERS: usize = 64;
/// Bytes of them, likewise.
pub const POSTED_BYTES: usize = 16 << 10;

/// Read requests on their way to the root port: credits for headers of non-posted requests. One
/// returns when its request is there, after half of the time of a read.
pub const NON_POSTED_HEADERS: usize = 64;

/// Backlog of the link at which the hard block accepts no more: four of the longest
/// writes.
const BUFFER_PS: u64 = 150_000;

/// Address of interrupt writes (MSI-X, PCI 3.0 section 6.8.2; the x86 window).
pub(super) const INTERRUPTS: u64 = 0xfee0_0000;
const INTERRUPTS_LEN: u64 = 0x10_0000;

struct Posted {
    lands: u64,
    function: u8,
    at: u64,
    bytes: Vec<u8>,
}

/// A request that waits for the writes before it.
struct Behind<T> {
    arrives: u64,
    /// Writes that come before it.
    writes: u64,
    what: T,
}

/// A read that memory has answered, or not.
pub(super) struct Done {
    pub(super) header: Header,
    /// The request; its requested bytes.
    pub(super) bytes: Vec<u8>,
    pub(super) result: Result<(), ReadError>,
}

#[derive(Default)]
pub(super) struct Upstream {
    link: Link,
    write: Assembly,
    answer: Assembly,
    posted: VecDeque<Posted>,
    posted_bytes: usize,
    /// Writes that were accepted, and that are in memory.
    sent: u64,
    landed: u64,
    reads: Vec<Behind<Header>>,
    /// When the credits of reads return.
    credits: VecDeque<u64>,
    answers: VecDeque<Behind<Tlp>>,
}

impl Upstream {
    /// Whether the hard block accepts another beat of a write.
    pub(super) fn has_room(&self, now: u64) -> bool {
        self.link.backlog(now) <= BUFFER_PS
            && self.posted.len() < POSTED_HEADERS
            && self.posted_bytes < POSTED_BYTES
    }

    /// Whether the hard block accepts another read request.
    pub(super) fn has_credit(&mut self, now: u64) -> bool {
        while self.credits.pop_front_if(|back| *back <= now).is_some() {}
        self.credits.len() < NON_POSTED_HEADERS
    }

    /// A beat of a write.
    pub(super) fn write(
        &mut self,
        now: u64,
        beat: &Beat,
        draw: &mut Draw<'_>,
        traffic: &mut Traffic,
    ) {
        let Some(Tlp { header, mut data }) = self.write.take(beat) else {
            return;
        };
        data.truncate(4 * header.dws());
        let gone = self.link.send(now, data.len(), draw.behaviour.upstream);
        let last = self.posted.back().map_or(0, |last| last.lands);
        let lands = (gone + draw.write()).max(last);
        let at = header.get(ADDRESS);
        if !is_interrupt(at) {
            traffic.writes += 1;
            traffic.write_bytes += data.len() as u64;
            traffic.last_write = now;
        }
        self.sent += 1;
        self.posted_bytes += data.len();
        self.posted.push_back(Posted {
            lands,
            function: header.get(FUNC) as u8,
            at,
            bytes: data,
        });
    }

    /// A read request.
    pub(super) fn read(
        &mut self,
        now: u64,
        header: Header,
        draw: &mut Draw<'_>,
        traffic: &mut Traffic,
    ) {
        traffic.reads += 1;
        traffic.read_bytes += 4 * header.dws() as u64;
        let gone = self.link.send(now, 0, draw.behaviour.upstream);
        let time = draw.read();
        let arrives = gone + time;
        // In order, as the requests are.
        let last = self.credits.back().copied().unwrap_or_default();
        self.credits.push_back(last.max(gone + time / 2));
        let writes = self.sent;
        self.reads.push(Behind {
            arrives,
            writes,
            what: header,
        });
    }

    /// A beat of a register's completion.
    pub(super) fn answer(&mut self, now: u64, beat: &Beat, draw: &mut Draw<'_>) {
        if let Some(what) = self.answer.take(beat) {
            let gone = self
                .link
                .send(now, what.data.len(), draw.behaviour.upstream);
            let arrives = gone + draw.register();
            let writes = self.sent;
            self.answers.push_back(Behind {
                arrives,
                writes,
                what,
            });
        }
    }

    /// Writes reach memory, followed by the reads that waited for them.
    pub(super) fn land(
        &mut self,
        now: u64,
        host: &mut dyn Host,
        traffic: &mut Traffic,
    ) -> Vec<Done> {
        while let Some(posted) = self.posted.pop_front_if(|posted| posted.lands <= now) {
            if is_interrupt(posted.at) {
                let vector = posted.bytes.first().map_or(0, |&byte| byte.into());
                host.interrupt(posted.function, vector);
                traffic.interrupts += 1;
            } else {
                host.write(posted.function, posted.at, &posted.bytes);
            }
            self.posted_bytes -= posted.bytes.len();
            self.landed += 1;
        }
        let landed = self.landed;
        let due = |read: &mut Behind<Header>| read.arrives <= now && read.writes <= landed;
        let read = |read: Behind<Header>| {
            let header = read.what;
            let (begin, len) = header.enabled().unwrap_or((0, 4 * header.dws()));
            let mut bytes = vec![0; len];
            let function = header.get(FUNC) as u8;
            let result = host.read(function, header.get(ADDRESS) + begin as u64, &mut bytes);
            Done {
                header,
                bytes,
                result,
            }
        };
        self.reads.extract_if(.., due).map(read).collect()
    }

    /// The next register completion that has arrived, after the writes before it.
    pub(super) fn arrived(&mut self, now: u64) -> Option<Tlp> {
        let landed = self.landed;
        let due = |answer: &mut Behind<Tlp>| answer.arrives <= now && answer.writes <= landed;
        self.answers.pop_front_if(due).map(|answer| answer.what)
    }

    /// Writes so far: accepted, and in memory.
    pub(super) fn writes(&self) -> (u64, u64) {
        (self.sent, self.landed)
    }

    /// Bytes of all TLPs so far.
    pub(super) fn link_bytes(&self) -> u64 {
        self.link.bytes()
    }

    /// Whether nothing is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.posted.is_empty() && self.reads.is_empty() && self.answers.is_empty()
    }
}

fn is_interrupt(at: u64) -> bool {
    (INTERRUPTS..INTERRUPTS + INTERRUPTS_LEN).contains(&at)
}
