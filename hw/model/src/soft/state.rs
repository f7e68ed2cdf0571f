//! State of a card's blocks besides their registers.

use std::collections::VecDeque;

use super::frame::chunk;
use super::record::Record;
use crate::layouts::{
    TX_DESCRIPTOR_CHECKSUM_CARD, TX_DESCRIPTOR_CHECKSUM_GIVEN, TX_DESCRIPTOR_FIRST,
    TX_DESCRIPTOR_FLAGS, TX_DESCRIPTOR_INLINE, TX_DESCRIPTOR_LAST, TX_DESCRIPTOR_LENGTH,
    TX_DESCRIPTOR_RAW, TX_DESCRIPTOR_SIZE, TX_DESCRIPTOR_TOTAL,
};
use crate::simulated::{FUNCTIONS, LinkSignal, WireFrame};

/// Ports.
pub(super) const PORTS: usize = 4;

/// Preamble, FCS and gap, in bytes beside those of a frame.
const AROUND: u64 = 24;

/// A byte at 10 Gb/s.
const BYTE_PS: u64 = 800;

/// Frames that wait for the MAC; more wait in their ring.
const WAITING: usize = 8;

/// Longest payload, and longest whole frame, without FCS.
const MAX_PAYLOAD: usize = 9000;
const MAX_RAW: usize = 9596;

/// A queue, besides its registers.
#[derive(Clone, Copy, Default)]
pub(super) struct Queue {
    /// Events since the last interrupt, and when the first of them was written.
    pub(super) waiting: u32,
    pub(super) since: u64,
}

/// A payload for a list.
#[derive(Clone, Debug)]
pub(super) struct Payload {
    pub(super) list: usize,
    pub(super) bytes: Vec<u8>,
    /// The length by which it is placed.
    pub(super) bound: usize,
    pub(super) source_port: u16,
    pub(super) wire: Option<u64>,
    /// Time of its start, and of its first word, in stamps.
    pub(super) stamps: [u64; 2],
}

/// A payload that has its place in a list.
pub(super) struct Placement {
    pub(super) list: usize,
    pub(super) func: u32,
    /// Virtual address, and all bytes, with record and padding.
    pub(super) start: u64,
    pub(super) bytes: Vec<u8>,
    /// Number of bytes that have been written.
    pub(super) written: usize,
    /// Until when the next chunk waits for its page.
    pub(super) until: Option<u64>,
    /// The list has not restarted meanwhile.
    pub(super) live: bool,
    pub(super) number: u32,
    pub(super) wire: Option<u64>,
    pub(super) stamps: [u64; 2],
}

/// A list, besides its registers: the current buffer, and numbers.
#[derive(Clone, Copy, Default)]
pub(super) struct List {
    pub(super) index: u32,
    pub(super) serial: u32,
    pub(super) number: u32,
    pub(super) used: u32,
    pub(super) payloads: u32,
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) wire: Option<u64>,
    pub(super) oldest: u64,
    pub(super) stages: [u32; 3],
}

/// A port, besides its registers.
pub(super) struct Port {
    pub(super) coming: VecDeque<WireFrame>,
    /// Arrival of the frame in front of those.
    pub(super) arrives: Option<u64>,
    pub(super) signal: LinkSignal,
    pub(super) sent: VecDeque<WireFrame>,
    /// Frames that the MAC is to send, and the earliest start of the next one.
    pub(super) out: VecDeque<Vec<u8>>,
    pub(super) out_free: u64,
    /// End of the link partner's pause, and since when it delays a frame.
    pub(super) paused: u64,
    pub(super) held: Option<u64>,
    pub(super) fifo: VecDeque<Payload>,
    /// The payload whose next chunk has no page.
    pub(super) waiting: Option<Placement>,
    pub(super) sender: Sender,
}

impl Default for Port {
    fn default() -> Self {
        Self {
            coming: VecDeque::new(),
            arrives: None,
            signal: LinkSignal::Idle,
            sent: VecDeque::new(),
            out: VecDeque::new(),
            out_free: 0,
            paused: 0,
            held: None,
            fifo: VecDeque::new(),
            waiting: None,
            sender: Sender::default(),
        }
    }
}

impl Port {
    /// Duration of a frame on the wire.
    pub(super) fn duration(len: usize) -> u64 {
        (len.max(60) as u64 + AROUND) * BYTE_PS
    }

    /// Frames are waiting for the MAC.
    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= WAITING
    }
}

/// A descriptor, as read.
#[derive(Clone, Copy, Default)]
pub(super) struct Descriptor(pub(super) [u8; TX_DESCRIPTOR_SIZE]);

impl Descriptor {
    pub(super) fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        chunk(&self.0, at)
    }

    pub(super) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.field(at))
    }

    pub(super) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.field(at))
    }

    pub(super) fn has(&self, flag: u16) -> bool {
        self.u16(TX_DESCRIPTOR_FLAGS) & flag != 0
    }

    /// Number of slots of the ring behind it that have data of its packet.
    pub(super) fn slots(&self) -> u32 {
        match self.u32(TX_DESCRIPTOR_LENGTH) {
            1..=32 if self.has(TX_DESCRIPTOR_INLINE) => 1,
            33..=64 if self.has(TX_DESCRIPTOR_INLINE) => 2,
            _ => 0,
        }
    }

    /// Whether it has inline data and may not.
    pub(super) fn is_bad_inline(&self) -> bool {
        let is_whole = self.has(TX_DESCRIPTOR_FIRST) && self.has(TX_DESCRIPTOR_LAST);
        self.has(TX_DESCRIPTOR_INLINE) && !(is_whole && self.slots() > 0)
    }
}

/// A packet whose segments are being read.
#[derive(Default)]
pub(super) struct Packet {
    pub(super) first: Descriptor,
    pub(super) bytes: Vec<u8>,
    /// Bytes of its segments, by its descriptors.
    pub(super) len: usize,
    pub(super) is_bad: bool,
    pub(super) is_unreadable: bool,
}

impl Packet {
    /// One whose first descriptor this is, or that begins without a first one.
    pub(super) fn begin(descriptor: Descriptor) -> Self {
        if !descriptor.has(TX_DESCRIPTOR_FIRST) {
            return Self {
                is_bad: true,
                ..Self::default()
            };
        }
        let raw = descriptor.has(TX_DESCRIPTOR_RAW);
        let given = descriptor.has(TX_DESCRIPTOR_CHECKSUM_GIVEN);
        let card = descriptor.has(TX_DESCRIPTOR_CHECKSUM_CARD);
        let limits = if raw { 14..=MAX_RAW } else { 0..=MAX_PAYLOAD };
        let total = usize::from(descriptor.u16(TX_DESCRIPTOR_TOTAL));
        Self {
            first: descriptor,
            is_bad: given && card || raw && (given || card) || !limits.contains(&total),
            ..Self::default()
        }
    }
}

/// Purpose of a read without completion.
pub(super) enum Unanswered {
    /// A descriptor.
    Descriptor,
    /// A segment of a packet: whether it is the last one, and an event is requested.
    Piece {
        packet: Packet,
        ends: bool,
        asked: bool,
    },
}

/// A ring, beside its registers.
#[derive(Default)]
pub(super) struct Ring {
    pub(super) consumer: u32,
    pub(super) error: bool,
    pub(super) packet: Option<Packet>,
    /// A packet whose data are in the next slots, their number, and whether an event is requested.
    pub(super) data: Option<(Packet, u32, bool)>,
    pub(super) unanswered: Option<Unanswered>,
    /// Since the last event.
    pub(super) packets: u32,
    pub(super) bytes: u64,
    pub(super) events: u32,
    pub(super) doorbell: u64,
    /// Of the last descriptor.
    pub(super) cookie: u32,
    /// An event that has not fitted its queue yet.
    pub(super) owed: Option<(u32, u32, u32)>,
    /// Packets that no neighbour was found for, since the last report; the cookie of the last one.
    pub(super) lost: Option<(u32, u32)>,
}

/// A packet that is to be put into a frame.
pub(super) struct Outgoing {
    pub(super) first: Descriptor,
    pub(super) bytes: Vec<u8>,
    /// Its ring reports it if there is no neighbour.
    pub(super) told: bool,
}

/// Frames that a port is about to send.
#[derive(Default)]
pub(super) struct Sender {
    pub(super) packets: VecDeque<Outgoing>,
    /// End of the first packet's wait for its neighbour: `u64::MAX` until the request has left.
    pub(super) asking: Option<u64>,
    /// The address that was asked for.
    pub(super) asked: u32,
    /// Frames in front of the request, which has not left.
    pub(super) request: Option<usize>,
    /// The neighbour that answered.
    pub(super) neighbour: Option<[u8; 6]>,
    pub(super) generated: Option<(u32, u64)>,
    /// Place of a set of the ARP cache that is the next to be replaced.
    pub(super) turn: usize,
}

impl Sender {
    /// Nothing is left to send.
    pub(super) fn is_idle(&self) -> bool {
        self.packets.is_empty()
    }
}

/// The time base of payloads.
#[derive(Default)]
pub(super) struct Timing {
    /// Its time, in units of ns / 65536, at the moment `since`, and whether it has been set.
    pub(super) time: u128,
    pub(super) since: u64,
    pub(super) valid: bool,
    pub(super) in_burst: bool,
    /// The last external clock, or the due time of a missing one: then the next
    /// clock has no expected time.
    pub(super) clock_at: u64,
    pub(super) is_known: bool,
    /// Unreported events of one moment, and the number reported.
    pub(super) waiting: VecDeque<Vec<Record>>,
    pub(super) told: u32,
}

/// The unreported fault of each port, with its function, and the number reported to each function.
#[derive(Default)]
pub(super) struct Faults {
    pub(super) waiting: [Option<(u8, Record)>; PORTS],
    pub(super) told: [u32; FUNCTIONS],
}
