//! Rings of descriptors, written by hand, including invalid ones.

use std::sync::Arc;

use pollux_card_model::layouts::{
    CLOP_BUFFER_KIND, EVENT_RECORD_KIND, EVENT_RECORD_SEQUENCE, TX_DESCRIPTOR_CHECKSUM_CARD,
    TX_DESCRIPTOR_CHECKSUM_GIVEN, TX_DESCRIPTOR_EVENT, TX_DESCRIPTOR_FIRST, TX_DESCRIPTOR_INLINE,
    TX_DESCRIPTOR_LAST, TX_DESCRIPTOR_RAW, TX_SENT_KIND, TX_SENT_PACKETS, TX_SENT_STATUS,
};
use pollux_card_model::registers::{clop, event, host, tx};
use pollux_card_model::{Host, ReadError, SimulatedCard, WireFrame};
use pollux_mempool::MemoryRegion;
use pollux_mempool::region::PageSize;
use pollux_pmd::bus::{DmaMapping, DmaMemory};

use super::answers::{arp, sum};
use super::support::{Make, US, end, rig, sent};
use crate::device::grant;
use crate::rig::{Form, Rig, datagram, neighbour, peer};

/// Descriptors of the ring, records of its queue, and where data begin, in the memory.
const RING: u32 = 16;
const RECORDS: u32 = 64;
const QUEUE_AT: u64 = 4096;
const DATA_AT: u64 = 16384;

/// The queue that the ring reports to.
const QUEUE: usize = 6;

pub(super) const WHOLE: u16 = TX_DESCRIPTOR_FIRST | TX_DESCRIPTOR_LAST | TX_DESCRIPTOR_EVENT;

/// A descriptor: the fields of its packet, and the address of this segment.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) at: u64,
    pub(super) len: u32,
    pub(super) flags: u16,
    pub(super) total: u16,
    pub(super) checksum: u16,
}

/// Ring 0, with its own memory.
pub(super) struct Sending<C: SimulatedCard> {
    pub(super) rig: Rig<C>,
    _mapping: DmaMapping,
    base: u64,
    pub(super) posted: u32,
    taken: u32,
    filled: u64,
}

impl<C: SimulatedCard> Sending<C> {
    pub(super) fn new(make: Make<'_, C>) -> Self {
        let rig = rig(make);
        let region = MemoryRegion::builder(1 << 17).pages(PageSize::Kib4).build();
        let mapping = rig.device.map(&Arc::new(region.unwrap()), grant()).unwrap();
        let base = mapping.addresses().iova(0, 1 << 17).unwrap().0;
        rig.enable(0);
        let mut sending = Self {
            rig,
            _mapping: mapping,
            base,
            posted: 0,
            taken: 0,
            filled: 0,
        };
        let rig = &sending.rig;
        rig.write64(&event::THIS, 0, event::QUEUE_BASE, QUEUE, base + QUEUE_AT);
        let control = RECORDS.trailing_zeros() << 8 | 1;
        rig.write(&event::THIS, 0, event::QUEUE_CTRL, QUEUE, control);
        rig.write64(&tx::THIS, 0, tx::RING_BASE, 0, base);
        sending.begin();
        // Its peer is known.
        sending.rig.put(0, WireFrame::good(arp(1, true)));
        sending.rig.advance(5 * US);
        let _ = sent(&sending.rig, 0);
        sending
    }

    /// Enables the ring, or disables and enables it.
    pub(super) fn begin(&mut self) {
        let control = (QUEUE as u32) << 16 | RING.trailing_zeros() << 8;
        self.rig.write(&tx::THIS, 0, tx::RING_CTRL, 0, control);
        self.rig.write(&tx::THIS, 0, tx::RING_CTRL, 0, control | 1);
        self.posted = 0;
    }

    /// Puts bytes where the card can read them.
    pub(super) fn data(&mut self, bytes: &[u8]) -> u64 {
        let at = self.base + DATA_AT + self.filled;
        // At any byte, and never at the previous place.
        self.filled = (self.filled + bytes.len() as u64 + 3) % 65536;
        self.rig.device.with(|_, memory| memory.write(0, at, bytes));
        at
    }

    pub(super) fn post(&mut self, piece: Piece) {
        let mut bytes = [0; 32];
        let them = peer(0, 4000).socket;
        bytes[..8].copy_from_slice(&piece.at.to_le_bytes());
        bytes[8..12].copy_from_slice(&piece.len.to_le_bytes());
        bytes[12..14].copy_from_slice(&piece.flags.to_le_bytes());
        bytes[14..16].copy_from_slice(&piece.total.to_le_bytes());
        bytes[16..20].copy_from_slice(&u32::from(*them.ip()).to_le_bytes());
        bytes[20..22].copy_from_slice(&4000_u16.to_le_bytes());
        bytes[22..24].copy_from_slice(&3000_u16.to_le_bytes());
        bytes[24..26].copy_from_slice(&piece.checksum.to_be_bytes());
        let at = self.base + u64::from(self.posted % RING) * 32;
        self.rig
            .device
            .with(|_, memory| memory.write(0, at, &bytes));
        self.posted += 1;
    }

    pub(super) fn packet(&mut self, payload: &[u8], flags: u16, checksum: u16) {
        let at = self.data(payload);
        let (len, total) = (payload.len() as u32, payload.len() as u16);
        let flags = flags | WHOLE;
        self.post(Piece {
            at,
            len,
            flags,
            total,
            checksum,
        });
    }

    /// A packet whose bytes are in the ring, and its slots.
    pub(super) fn inline(&mut self, payload: &[u8], flags: u16) {
        let (len, total) = (payload.len() as u32, payload.len() as u16);
        let flags = flags | WHOLE | TX_DESCRIPTOR_INLINE;
        self.post(Piece {
            at: 0,
            len,
            flags,
            total,
            checksum: 0,
        });
        for bytes in payload.chunks(32) {
            self.slot(bytes);
        }
    }

    /// A slot with data.
    pub(super) fn slot(&mut self, bytes: &[u8]) {
        let at = self.base + u64::from(self.posted % RING) * 32;
        self.rig.device.with(|_, memory| memory.write(0, at, bytes));
        self.posted += 1;
    }

    pub(super) fn doorbell(&mut self) {
        self.rig
            .write(&tx::THIS, 0, tx::RING_PRODUCER, 0, self.posted);
        self.rig.advance(20 * US);
    }

    /// The next record of the ring's queue.
    fn record(&mut self) -> Option<[u8; 64]> {
        let mut record = [0; 64];
        let at = QUEUE_AT + u64::from(self.taken % RECORDS) * 64;
        let base = self.base;
        let read = self.rig.device.with(|_, memory| {
            let kept = std::mem::take(&mut memory.read_errors);
            let read = memory.read(0, base + at, &mut record);
            memory.read_errors = kept;
            read
        });
        let phase = (self.taken / RECORDS).is_multiple_of(2);
        if read.is_err() || (record[63] & 0x80 != 0) != phase {
            return None;
        }
        self.taken += 1;
        self.rig
            .write(&event::THIS, 0, event::QUEUE_RELEASED, QUEUE, self.taken);
        Some(record)
    }

    /// (descriptors done, packets, status) of each event.
    pub(super) fn events(&mut self) -> Vec<(u32, u32, u32)> {
        self.rig.advance(20 * US);
        let told = |record: [u8; 64]| {
            assert_eq!(record[62], 2, "kind");
            let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| record[at + i]));
            (word(8), word(TX_SENT_PACKETS), word(TX_SENT_STATUS))
        };
        std::iter::from_fn(|| self.record()).map(told).collect()
    }

    pub(super) fn fail_reads(&self, plan: impl IntoIterator<Item = Option<ReadError>>) {
        self.rig
            .device
            .with(|_, memory| memory.read_errors.extend(plan));
    }

    /// The payloads that have been sent; each frame is checked.
    pub(super) fn payloads(&self) -> Vec<Vec<u8>> {
        let frames = sent(&self.rig, 0).into_iter().map(|frame| frame.bytes);
        let udp = frames.filter(|frame| frame[12..14] == [8, 0]);
        udp.map(|frame| {
            assert_eq!(frame[..6], peer(0, 0).mac.0);
            assert_eq!(frame[6..12], neighbour(0, 0).mac.0);
            assert_eq!(sum(&[&frame[14..34]]), 0, "header sum");
            assert_eq!(frame[26..30], neighbour(0, 0).socket.ip().octets());
            assert_eq!(frame[34..38], [0x0b, 0xb8, 0x0f, 0xa0], "ports");
            let len = usize::from(u16::from_be_bytes([frame[38], frame[39]]));
            frame[42..34 + len].to_vec()
        })
        .collect()
    }
}

pub(super) fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 11 + len) as u8).collect()
}

/// Whole packets, segments at any byte, whole frames; a ring that wraps.
pub fn several_descriptors_need_one_doorbell<C: SimulatedCard>(make: Make<'_, C>) {
    let mut sending = Sending::new(make);
    for round in 0..10_usize {
        let lens = [0, 1, 18 + round, 1400, 64];
        for len in lens {
            sending.packet(&bytes(len), 0, 0);
        }
        // One of three segments, of which only the last requests an event.
        let whole = bytes(600);
        let pieces = [&whole[..1], &whole[1..300], &whole[300..]];
        for (n, piece) in pieces.into_iter().enumerate() {
            let at = sending.data(piece);
            let first = if n == 0 { TX_DESCRIPTOR_FIRST } else { 0 };
            let last = TX_DESCRIPTOR_LAST | TX_DESCRIPTOR_EVENT;
            let flags = first | if n == 2 { last } else { 0 };
            let (len, total) = (piece.len() as u32, 600);
            sending.post(Piece {
                at,
                len,
                flags,
                total,
                checksum: 0,
            });
        }
        sending.doorbell();
        let mut wanted: Vec<_> = lens.into_iter().map(bytes).collect();
        wanted.push(whole);
        assert!(sending.payloads() == wanted, "round {round}");
        let events = sending.events();
        let done = sending.posted;
        assert_eq!(events.len(), 6);
        assert_eq!(events[5], (done, 1, 0));
    }
    let at = sending.data(&[0xee; 100]);
    let flags = WHOLE | TX_DESCRIPTOR_RAW;
    sending.post(Piece {
        at,
        len: 100,
        flags,
        total: 100,
        checksum: 0,
    });
    sending.doorbell();
    let frames: Vec<_> = sent(&sending.rig, 0);
    assert_eq!(frames, [WireFrame::good(vec![0xee; 100])]);
    assert_eq!(sending.rig.read64(&tx::THIS, 0, tx::PACKETS, 0), 61);
    end(sending.rig);
}

/// Buffers and packets in one queue, in the order of their completion; each kind has its own
/// numbers.
pub fn one_queue_tells_of_lists_and_rings<C: SimulatedCard>(make: Make<'_, C>) {
    let mut sending = Sending::new(make);
    // A payload of 48 bytes fills a buffer.
    let rig = &mut sending.rig;
    rig.add_list(0, 64, 1000);
    rig.write(&clop::THIS, 0, clop::LIST_CTRL, 0, 0);
    let mode = (QUEUE as u32) << 8;
    rig.write(&clop::THIS, 0, clop::LIST_MODE, 0, mode);
    rig.write(&clop::THIS, 0, clop::LIST_CTRL, 0, 1);
    rig.add_stream(0, 0, 5000, Form::Payload);
    for number in 0..5 {
        sending.packet(b"sent", 0, 0);
        sending.doorbell();
        sending.rig.put(0, datagram(0, 7, 5000, &[1; 48]));
        sending.rig.advance(10 * US);
        for kind in [TX_SENT_KIND, CLOP_BUFFER_KIND] {
            let record = sending.record().unwrap();
            assert_eq!(record[EVENT_RECORD_KIND], kind);
            let at = EVENT_RECORD_SEQUENCE;
            assert_eq!(record[at..at + 4], u32::to_le_bytes(number));
        }
    }
    assert!(sending.record().is_none());
    end(sending.rig);
}

/// None, the host's, the card's.
pub fn checksums_are_none_given_or_the_cards<C: SimulatedCard>(make: Make<'_, C>) {
    let mut sending = Sending::new(make);
    for (flags, given) in [
        (0, 0),
        (TX_DESCRIPTOR_CHECKSUM_GIVEN, 0xbeef),
        (TX_DESCRIPTOR_CHECKSUM_CARD, 0),
    ] {
        for len in [1, 2, 17, 1000] {
            sending.packet(&bytes(len), flags, given);
            sending.doorbell();
            let frames = sent(&sending.rig, 0);
            assert_eq!(frames.len(), 1);
            let frame = &frames[0].bytes;
            let is = u16::from_be_bytes([frame[40], frame[41]]);
            let udp = &frame[34..42 + len];
            match flags {
                0 => assert_eq!(is, 0),
                TX_DESCRIPTOR_CHECKSUM_GIVEN => assert_eq!(is, given),
                _ => {
                    let length = (8 + len as u16).to_be_bytes();
                    let all = sum(&[&frame[26..34], &[0, 17], &length, udp]);
                    assert_eq!((all, is == 0), (0, false), "{len} bytes");
                }
            }
        }
    }
    end(sending.rig);
}

/// Inconsistent lengths: counted, reported, and the packets around them are sent.
pub fn bad_descriptors_cost_their_packet<C: SimulatedCard>(make: Make<'_, C>) {
    let mut sending = Sending::new(make);
    let at = sending.data(&[1; 2000]);
    let piece = |len, flags, total| Piece {
        at,
        len,
        flags,
        total,
        checksum: 0,
    };
    let raw = WHOLE | TX_DESCRIPTOR_RAW;
    let given = TX_DESCRIPTOR_CHECKSUM_GIVEN;
    let both = given | TX_DESCRIPTOR_CHECKSUM_CARD;
    let bad = [
        ("shorter than it says", piece(10, WHOLE, 11)),
        ("longer than it says", piece(11, WHOLE, 10)),
        ("too long for a payload", piece(9001, WHOLE, 9001)),
        ("shorter than a header", piece(13, raw, 13)),
        ("a piece of nothing", piece(0, WHOLE, 5)),
        ("no beginning", piece(10, WHOLE & !TX_DESCRIPTOR_FIRST, 10)),
        ("no end", piece(10, TX_DESCRIPTOR_FIRST, 20)),
        ("two checksums", piece(10, WHOLE | both, 10)),
        ("a whole frame with a checksum", piece(60, raw | given, 60)),
    ];
    for (n, (name, descriptor)) in bad.into_iter().enumerate() {
        sending.packet(b"before", 0, 0);
        // Reported without a request.
        let flags = descriptor.flags & !TX_DESCRIPTOR_EVENT;
        sending.post(Piece {
            flags,
            ..descriptor
        });
        sending.packet(b"behind", 0, 0);
        sending.doorbell();
        let statuses: Vec<_> = sending.events().iter().map(|event| event.2).collect();
        assert_eq!(statuses, [0, 1, 0], "{name}");
        assert_eq!(sending.payloads(), [b"before", b"behind"], "{name}");
        let counted = sending.rig.read64(&tx::THIS, 0, tx::BAD, 0);
        assert_eq!(counted, n as u64 + 1, "{name}");
    }
    end(sending.rig);
}

/// For any completion of the host, or none.
pub fn reads_that_fail_cost_their_packet<C: SimulatedCard>(make: Make<'_, C>) {
    let mut sending = Sending::new(make);
    // Soon, so that the test is short.
    sending.rig.write(&host::THIS, 0, host::TIMEOUT, 0, 2000);
    sending.rig.write(&host::THIS, 0, host::QUARANTINE, 0, 4000);
    let errors = [
        (ReadError::Unsupported, host::RD_UNSUPPORTED),
        (ReadError::Abort, host::RD_ABORT),
        (ReadError::Poisoned, host::RD_POISONED),
        (ReadError::Unanswered, host::RD_TIMEOUT),
    ];
    for (error, register) in errors {
        // The descriptor is read, and its packet is not.
        sending.fail_reads([None, Some(error)]);
        sending.packet(b"lost", 0, 0);
        sending.doorbell();
        let statuses: Vec<_> = sending.events().iter().map(|event| event.2).collect();
        assert_eq!(statuses, [2], "{error:?}");
        assert_eq!(
            sending.rig.read64(&host::THIS, 0, register, 0),
            1,
            "{error:?}"
        );
        sending.packet(b"sent", 0, 0);
        sending.doorbell();
        assert_eq!(sending.payloads(), [b"sent"], "{error:?}");
        let statuses: Vec<_> = sending.events().iter().map(|event| event.2).collect();
        assert_eq!(statuses, [0], "{error:?}");
    }
    assert_eq!(sending.rig.read64(&tx::THIS, 0, tx::READ_FAILED, 0), 4);
    end(sending.rig);
}

/// Reported, and cleared when the ring is enabled again; as is an excess of descriptors.
pub fn a_ring_whose_descriptors_cannot_be_read_stops<C: SimulatedCard>(make: Make<'_, C>) {
    let mut sending = Sending::new(make);
    let status = |sending: &Sending<C>| sending.rig.read(&tx::THIS, 0, tx::RING_STATUS, 0);
    for round in 0..3 {
        if round < 2 {
            sending.fail_reads([Some(ReadError::Abort)]);
            sending.packet(b"never", 0, 0);
        } else {
            sending.posted += RING + 1;
        }
        sending.doorbell();
        let statuses: Vec<_> = sending.events().iter().map(|event| event.2).collect();
        assert_eq!(statuses, [3]);
        assert_eq!(status(&sending) & 3, 3, "it has stopped, and is at rest");
        sending.packet(b"never", 0, 0);
        sending.doorbell();
        assert!(sending.payloads().is_empty());
        sending.begin();
        assert_eq!(status(&sending) & 2, 0);
        sending.packet(b"again", 0, 0);
        sending.doorbell();
        assert_eq!(sending.payloads(), [b"again"]);
        assert_eq!(sending.events(), [(1, 1, 0)]);
    }
    end(sending.rig);
}

/// A disabled queue has no room: the ring's reports wait, and none is lost.
pub fn a_ring_waits_for_room_in_its_queue<C: SimulatedCard>(make: Make<'_, C>) {
    let mut sending = Sending::new(make);
    let control = event::QUEUE_CTRL;
    let on = sending.rig.read(&event::THIS, 0, control, QUEUE);
    let switch = |sending: &Sending<C>, to| {
        sending.rig.write(&event::THIS, 0, control, QUEUE, to);
    };
    let status = |sending: &Sending<C>| sending.rig.read(&tx::THIS, 0, tx::RING_STATUS, 0) & 7;
    switch(&sending, on & !1);
    for _ in 0..RING {
        sending.packet(b"told later", 0, 0);
    }
    sending.doorbell();
    assert_eq!(
        status(&sending),
        4,
        "it waits, at work and without an error"
    );
    assert!(sending.events().is_empty());
    let mut payloads = sending.payloads();
    switch(&sending, on);
    sending.rig.advance(20 * US);
    payloads.extend(sending.payloads());
    assert_eq!(payloads, [b"told later"; RING as usize]);
    let told: Vec<_> = (1..=RING).map(|done| (done, 1, 0)).collect();
    assert_eq!(sending.events(), told);
    assert_eq!(status(&sending), 1, "it is at rest");
    end(sending.rig);
}
