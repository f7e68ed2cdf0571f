//! Rings of descriptors: packets are read, segment by segment, and reported.

use super::record::put;
use super::soft_card::SoftCard;
use super::state::{Descriptor, Outgoing, Packet, Ring, Unanswered};
use crate::layouts::{
    EVENT_RECORD_INDEX, EVENT_RECORD_KIND, EVENT_RECORD_LENGTH, EVENT_RECORD_SEQUENCE,
    EVENT_RECORD_STREAM, TX_DESCRIPTOR_ADDRESS, TX_DESCRIPTOR_COOKIE, TX_DESCRIPTOR_EVENT,
    TX_DESCRIPTOR_FIRST, TX_DESCRIPTOR_INLINE, TX_DESCRIPTOR_LAST, TX_DESCRIPTOR_LENGTH,
    TX_DESCRIPTOR_SIZE, TX_DESCRIPTOR_TOTAL, TX_SENT_BYTES, TX_SENT_COOKIE, TX_SENT_KIND,
    TX_SENT_PACKETS, TX_SENT_STAGES, TX_SENT_STATUS,
};
use crate::registers::tx;
use crate::simulated::{Host, ReadError};

/// Status of a packet.
const PASSED_ON: u32 = 0;
const BAD: u32 = 1;
const UNREADABLE: u32 = 2;
const STOPPED: u32 = 3;
const UNRESOLVED: u32 = 4;

/// Fields of an event of a ring.
#[derive(Default)]
struct Told {
    index: u32,
    length: u32,
    packets: u32,
    status: u32,
    cookie: u32,
    bytes: u64,
}

impl SoftCard {
    fn ring_register(ring: usize, register: crate::Register) -> usize {
        tx::THIS.at + register.of(ring)
    }

    /// A register of a ring was written.
    pub(super) fn ring_written(&mut self, n: usize, register: usize, before: u32, now: u32) {
        if register == tx::RING_CTRL.at && before & 1 == 0 && now & 1 == 1 {
            self.rings[n] = Ring::default();
            let at = Self::ring_register(n, tx::RING_PRODUCER);
            self.store.set(at, 0);
        }
        if register == tx::RING_PRODUCER.at {
            self.rings[n].doorbell = self.stamp();
        }
    }

    /// Status registers of a ring.
    pub(super) fn ring_status(&self, n: usize, register: usize) -> u32 {
        let Some(ring) = self.rings.get(n) else {
            return 0;
        };
        if register == tx::RING_CONSUMER.at {
            return ring.consumer;
        }
        let port = &self.ports[n];
        let control = self.store.get(Self::ring_register(n, tx::RING_CTRL));
        let enabled = control & 1 == 1;
        let posted = self.store.get(Self::ring_register(n, tx::RING_PRODUCER));
        let all_done = !enabled || ring.error || posted == ring.consumer;
        let told = ring.owed.is_none() && ring.unanswered.is_none();
        let idle = all_done && port.sender.is_idle() && port.out.is_empty() && told;
        // A packet begins only with space for its event.
        let has_room = self.has_room((control >> 16 & 0xff) as usize);
        let no_event = ring.owed.is_some() || !all_done && !has_room;
        u32::from(idle) | u32::from(ring.error) << 1 | u32::from(no_event) << 2
    }

    /// Continues a ring, as far as possible.
    pub(super) fn work_ring(&mut self, host: &mut dyn Host, n: usize) {
        if self.is_waiting() {
            return;
        }
        let control = self.store.get(Self::ring_register(n, tx::RING_CTRL));
        let queue = (control >> 16 & 0xff) as usize;
        if let Some((index, length, status)) = self.rings[n].owed {
            if !self.has_room(queue) {
                return;
            }
            self.rings[n].owed = None;
            self.tell_sent(host, n, queue, index, length, status);
        }
        match self.rings[n].unanswered.take() {
            Some(Unanswered::Descriptor) => return self.stop_ring(host, n, queue),
            Some(Unanswered::Piece {
                packet,
                ends,
                asked,
            }) => self.end_piece(host, n, queue, packet, ends, asked),
            None => {}
        }
        let log2 = control >> 8 & 31;
        let size = 1_u32 << log2.clamp(3, 16);
        let base = self.store.get64(Self::ring_register(n, tx::RING_BASE));
        if control & 1 == 0 {
            self.cut(host, n, queue);
        }
        loop {
            let posted = self.store.get(Self::ring_register(n, tx::RING_PRODUCER));
            let ring = &self.rings[n];
            let waiting = posted.wrapping_sub(ring.consumer);
            let stuck = self.ports[n].is_full() || self.ports[n].sender.packets.len() >= 4;
            if control & 1 == 0 || ring.error || waiting == 0 || stuck || self.is_quiet() {
                return;
            }
            if !self.has_room(queue) {
                return;
            }
            if waiting > size || !base.is_multiple_of(64) || !(3..=16).contains(&log2) {
                return self.stop_ring(host, n, queue);
            }
            let slot = u64::from(ring.consumer & (size - 1));
            let at = base + slot * TX_DESCRIPTOR_SIZE as u64;
            let mut descriptor = Descriptor::default();
            match self.dma_read(host, self.port_owner(n), at, TX_DESCRIPTOR_SIZE) {
                Ok(bytes) => descriptor.0.copy_from_slice(&bytes),
                Err(ReadError::Unanswered) => {
                    self.rings[n].unanswered = Some(Unanswered::Descriptor);
                    return;
                }
                Err(_) => return self.stop_ring(host, n, queue),
            }
            match self.rings[n].data.take() {
                Some((packet, slots, asked)) => {
                    self.data(host, n, queue, descriptor, packet, (slots, asked));
                }
                None => self.piece(host, n, queue, descriptor),
            }
            if self.is_waiting() {
                return;
            }
        }
    }

    fn stop_ring(&mut self, host: &mut dyn Host, n: usize, queue: usize) {
        self.cut(host, n, queue);
        let ring = &mut self.rings[n];
        ring.error = true;
        let index = ring.consumer;
        self.report(host, n, queue, index, 0, STOPPED);
    }

    /// One descriptor.
    fn piece(&mut self, host: &mut dyn Host, n: usize, queue: usize, descriptor: Descriptor) {
        if descriptor.has(TX_DESCRIPTOR_FIRST) {
            self.cut(host, n, queue);
        }
        let ring = &mut self.rings[n];
        ring.consumer = ring.consumer.wrapping_add(1);
        ring.cookie = descriptor.u32(TX_DESCRIPTOR_COOKIE);
        let open = ring.packet.take();
        let mut packet = open.unwrap_or_else(|| Packet::begin(descriptor));
        let ends = descriptor.has(TX_DESCRIPTOR_LAST);
        let length = descriptor.u32(TX_DESCRIPTOR_LENGTH) as usize;
        let total = usize::from(packet.first.u16(TX_DESCRIPTOR_TOTAL));
        packet.len += length;
        packet.is_bad |=
            length == 0 && total != 0 || packet.len > total || ends && packet.len != total;
        let asked = descriptor.has(TX_DESCRIPTOR_EVENT);
        if descriptor.has(TX_DESCRIPTOR_INLINE) {
            packet.is_bad |= descriptor.is_bad_inline() || packet.len != total;
            match descriptor.slots() {
                0 => self.end_packet(host, n, queue, packet, asked),
                slots => self.rings[n].data = Some((packet, slots, asked)),
            }
            return;
        }
        if !packet.is_bad && length > 0 {
            let at = u64::from_le_bytes(descriptor.field(TX_DESCRIPTOR_ADDRESS));
            match self.dma_read(host, self.port_owner(n), at, length) {
                Ok(bytes) => packet.bytes.extend(bytes),
                Err(_) => packet.is_unreadable = true,
            }
        }
        if self.is_waiting() {
            self.rings[n].unanswered = Some(Unanswered::Piece {
                packet,
                ends,
                asked,
            });
        } else {
            self.end_piece(host, n, queue, packet, ends, asked);
        }
    }

    /// A slot with data of a packet, `left` of which are to come.
    fn data(
        &mut self,
        host: &mut dyn Host,
        n: usize,
        queue: usize,
        slot: Descriptor,
        mut packet: Packet,
        (left, asked): (u32, bool),
    ) {
        let ring = &mut self.rings[n];
        ring.consumer = ring.consumer.wrapping_add(1);
        packet.bytes.extend(slot.0);
        packet.bytes.truncate(packet.len);
        if left > 1 {
            ring.data = Some((packet, left - 1, asked));
        } else {
            self.end_packet(host, n, queue, packet, asked);
        }
    }

    /// A segment has been read, or the read failed.
    fn end_piece(
        &mut self,
        host: &mut dyn Host,
        n: usize,
        queue: usize,
        packet: Packet,
        ends: bool,
        asked: bool,
    ) {
        if ends {
            self.end_packet(host, n, queue, packet, asked);
        } else {
            self.rings[n].packet = Some(packet);
        }
    }

    /// Ends an open packet: another begins within it, or no descriptor follows.
    fn cut(&mut self, host: &mut dyn Host, n: usize, queue: usize) {
        let ring = &mut self.rings[n];
        let open = ring.packet.take();
        if let Some(mut packet) = open.or(ring.data.take().map(|(packet, ..)| packet)) {
            packet.is_bad = true;
            self.end_packet(host, n, queue, packet, false);
        }
    }

    /// Passes a packet on, or counts the cause; and reports it, if requested or due.
    fn end_packet(
        &mut self,
        host: &mut dyn Host,
        n: usize,
        queue: usize,
        packet: Packet,
        asked: bool,
    ) {
        let at = |register: crate::Register| tx::THIS.at + register.of(n);
        let total = packet.first.u16(TX_DESCRIPTOR_TOTAL);
        let Packet { first, bytes, .. } = packet;
        let status = if packet.is_bad {
            self.store.count(at(tx::BAD), 1);
            BAD
        } else if packet.is_unreadable {
            self.store.count(at(tx::READ_FAILED), 1);
            UNREADABLE
        } else {
            self.store.count(at(tx::PACKETS), 1);
            self.store.count(at(tx::BYTES), total.into());
            self.rings[n].bytes += u64::from(total);
            let packets = &mut self.ports[n].sender.packets;
            packets.push_back(Outgoing {
                first,
                bytes,
                told: true,
            });
            self.work_sender(n);
            PASSED_ON
        };
        self.rings[n].packets += 1;
        if asked || status != PASSED_ON {
            let index = self.rings[n].consumer;
            self.report(host, n, queue, index, total.into(), status);
        }
    }

    /// Reports packets, or records that a report is due.
    fn report(
        &mut self,
        host: &mut dyn Host,
        n: usize,
        queue: usize,
        index: u32,
        length: u32,
        status: u32,
    ) {
        if self.has_room(queue) {
            self.tell_sent(host, n, queue, index, length, status);
        } else {
            self.rings[n].owed = Some((index, length, status));
        }
    }

    fn tell_sent(
        &mut self,
        host: &mut dyn Host,
        n: usize,
        queue: usize,
        index: u32,
        length: u32,
        status: u32,
    ) {
        let ring = &mut self.rings[n];
        let told = Told {
            index,
            length,
            packets: std::mem::take(&mut ring.packets),
            status,
            cookie: ring.cookie,
            bytes: std::mem::take(&mut ring.bytes),
        };
        self.tell_ring(host, n, queue, &told);
    }

    /// Reports packets that were passed on, and that no neighbour was found for.
    pub(super) fn tell_lost(&mut self, host: &mut dyn Host, n: usize) {
        let control = self.store.get(Self::ring_register(n, tx::RING_CTRL));
        let queue = (control >> 16 & 0xff) as usize;
        if !self.has_room(queue) {
            return;
        }
        if let Some((packets, cookie)) = self.rings[n].lost.take() {
            let told = Told {
                index: self.rings[n].consumer,
                packets,
                status: UNRESOLVED,
                cookie,
                ..Told::default()
            };
            self.tell_ring(host, n, queue, &told);
        }
    }

    fn tell_ring(&mut self, host: &mut dyn Host, n: usize, queue: usize, told: &Told) {
        let ring = &mut self.rings[n];
        let mut record = [0; 64];
        put(&mut record, EVENT_RECORD_INDEX, &told.index.to_le_bytes());
        put(&mut record, EVENT_RECORD_LENGTH, &told.length.to_le_bytes());
        put(&mut record, TX_SENT_PACKETS, &told.packets.to_le_bytes());
        put(&mut record, TX_SENT_STATUS, &told.status.to_le_bytes());
        put(&mut record, TX_SENT_COOKIE, &told.cookie.to_le_bytes());
        put(&mut record, TX_SENT_BYTES, &told.bytes.to_le_bytes());
        put(
            &mut record,
            EVENT_RECORD_SEQUENCE,
            &ring.events.to_le_bytes(),
        );
        put(&mut record, EVENT_RECORD_STREAM, &(n as u16).to_le_bytes());
        put(&mut record, EVENT_RECORD_KIND, &[TX_SENT_KIND]);
        ring.events = ring.events.wrapping_add(1);
        let doorbell = ring.doorbell;
        let now = self.stamp();
        for (i, stamp) in [doorbell, now, now].into_iter().enumerate() {
            let at = TX_SENT_STAGES + 4 * i;
            put(&mut record, at, &(stamp as u32).to_le_bytes());
        }
        self.tell(host, self.port_owner(n), queue, record);
    }
}
