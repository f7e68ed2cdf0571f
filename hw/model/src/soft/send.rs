//! From descriptors to frames: rings, the station of a packet, the generator.

use std::collections::VecDeque;

use super::events::put;
use super::frame::{BROADCAST, Datagram, arp};
use super::{NET_PS, SoftCard};
use crate::layouts::{
    EVENT_RECORD_INDEX, EVENT_RECORD_KIND, EVENT_RECORD_LENGTH, EVENT_RECORD_SEQUENCE,
    EVENT_RECORD_STREAM, TX_DESCRIPTOR_ADDRESS, TX_DESCRIPTOR_CHECKSUM,
    TX_DESCRIPTOR_CHECKSUM_CARD, TX_DESCRIPTOR_CHECKSUM_GIVEN, TX_DESCRIPTOR_COOKIE,
    TX_DESCRIPTOR_DESTINATION_IP, TX_DESCRIPTOR_DESTINATION_PORT, TX_DESCRIPTOR_EVENT,
    TX_DESCRIPTOR_FIRST, TX_DESCRIPTOR_FLAGS, TX_DESCRIPTOR_LAST, TX_DESCRIPTOR_LENGTH,
    TX_DESCRIPTOR_RAW, TX_DESCRIPTOR_SIZE, TX_DESCRIPTOR_SOURCE_PORT, TX_DESCRIPTOR_TOTAL,
    TX_SENT_BYTES, TX_SENT_COOKIE, TX_SENT_KIND, TX_SENT_PACKETS, TX_SENT_STAGES, TX_SENT_STATUS,
};
use crate::registers::{port, tx};
use crate::simulated::Host;

/// Status of a packet.
const PASSED_ON: u32 = 0;
const BAD: u32 = 1;
const UNREADABLE: u32 = 2;
const STOPPED: u32 = 3;

/// Longest payload, and longest whole frame, without FCS.
const MAX_PAYLOAD: usize = 9000;
const MAX_RAW: usize = 9596;

/// A descriptor, as it was read.
#[derive(Clone, Copy, Default)]
struct Descriptor([u8; TX_DESCRIPTOR_SIZE]);

impl Descriptor {
    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        super::frame::chunk(&self.0, at)
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.field(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.field(at))
    }

    fn has(&self, flag: u16) -> bool {
        self.u16(TX_DESCRIPTOR_FLAGS) & flag != 0
    }
}

/// A packet, of which pieces are being read.
#[derive(Default)]
struct Packet {
    first: Descriptor,
    bytes: Vec<u8>,
    /// Bytes of its pieces, as its descriptors say.
    len: usize,
    is_bad: bool,
    is_unreadable: bool,
}

impl Packet {
    /// One whose first descriptor this is, or that begins without a first one.
    fn begin(descriptor: Descriptor) -> Self {
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

/// A packet that is to be put into a frame.
pub(super) struct Outgoing {
    first: Descriptor,
    bytes: Vec<u8>,
}

/// What a port is about to send.
#[derive(Default)]
pub(super) struct Sender {
    packets: VecDeque<Outgoing>,
    /// Requests that are left for the station of the first packet, and when the next one is due.
    asking: Option<(u32, u64)>,
    /// The station that answered.
    station: Option<[u8; 6]>,
    generated: Option<(u32, u64)>,
}

impl Sender {
    /// Nothing is left to send.
    pub(super) fn is_idle(&self) -> bool {
        self.packets.is_empty()
    }
}

/// A ring, beside its registers.
#[derive(Default)]
pub(super) struct Ring {
    consumer: u32,
    error: bool,
    packet: Option<Packet>,
    /// Since the last event.
    packets: u32,
    bytes: u64,
    events: u32,
    doorbell: u64,
    /// Of the last descriptor.
    cookie: u32,
    /// An event that found no room yet.
    owed: Option<(u32, u32, u32)>,
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

    /// What registers tell of a ring.
    pub(super) fn ring_status(&self, n: usize, register: usize) -> u32 {
        let Some(ring) = self.rings.get(n) else {
            return 0;
        };
        if register == tx::RING_CONSUMER.at {
            return ring.consumer;
        }
        let port = &self.ports[n];
        let enabled = self.store.get(Self::ring_register(n, tx::RING_CTRL)) & 1 == 1;
        let posted = self.store.get(Self::ring_register(n, tx::RING_PRODUCER));
        let all_done = !enabled || ring.error || posted == ring.consumer;
        let idle = all_done && port.sender.is_idle() && port.out.is_empty() && ring.owed.is_none();
        u32::from(idle) | u32::from(ring.error) << 1 | u32::from(ring.owed.is_some()) << 2
    }

    /// Goes on with a ring, as far as it can.
    pub(super) fn work_ring(&mut self, host: &mut dyn Host, n: usize) {
        let control = self.store.get(Self::ring_register(n, tx::RING_CTRL));
        let queue = (control >> 16 & 7) as usize;
        if let Some((index, length, status)) = self.rings[n].owed {
            if !self.has_room(queue) {
                return;
            }
            self.rings[n].owed = None;
            self.tell_sent(host, n, queue, index, length, status);
        }
        let size = 1_u32 << (control >> 8 & 31).clamp(3, 16);
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
            if waiting > size {
                return self.stop_ring(host, n, queue);
            }
            let slot = u64::from(ring.consumer & (size - 1));
            let at = base + slot * TX_DESCRIPTOR_SIZE as u64;
            let mut descriptor = Descriptor::default();
            match self.dma_read(host, at, TX_DESCRIPTOR_SIZE) {
                Ok(bytes) => descriptor.0.copy_from_slice(&bytes),
                Err(_) => return self.stop_ring(host, n, queue),
            }
            self.piece(host, n, queue, descriptor);
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
        if !packet.is_bad && length > 0 {
            let at = u64::from_le_bytes(descriptor.field(TX_DESCRIPTOR_ADDRESS));
            match self.dma_read(host, at, length) {
                Ok(bytes) => packet.bytes.extend(bytes),
                Err(_) => packet.is_unreadable = true,
            }
        }
        if ends {
            let asked = descriptor.has(TX_DESCRIPTOR_EVENT);
            self.end_packet(host, n, queue, packet, asked);
        } else {
            self.rings[n].packet = Some(packet);
        }
    }

    /// Ends a packet that is open: another begins within it, or nothing comes any more.
    fn cut(&mut self, host: &mut dyn Host, n: usize, queue: usize) {
        if let Some(mut packet) = self.rings[n].packet.take() {
            packet.is_bad = true;
            self.end_packet(host, n, queue, packet, false);
        }
    }

    /// Passes a packet on, or counts why not; and tells of it, where that is asked for or due.
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
            packets.push_back(Outgoing { first, bytes });
            self.work_sender(n);
            PASSED_ON
        };
        self.rings[n].packets += 1;
        if asked || status != PASSED_ON {
            let index = self.rings[n].consumer;
            self.report(host, n, queue, index, total.into(), status);
        }
    }

    /// Tells of packets, or owes it.
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
        let mut record = [0; 64];
        put(&mut record, EVENT_RECORD_INDEX, &index.to_le_bytes());
        put(&mut record, EVENT_RECORD_LENGTH, &length.to_le_bytes());
        put(&mut record, TX_SENT_PACKETS, &ring.packets.to_le_bytes());
        put(&mut record, TX_SENT_STATUS, &status.to_le_bytes());
        put(&mut record, TX_SENT_COOKIE, &ring.cookie.to_le_bytes());
        put(&mut record, TX_SENT_BYTES, &ring.bytes.to_le_bytes());
        put(
            &mut record,
            EVENT_RECORD_SEQUENCE,
            &ring.events.to_le_bytes(),
        );
        put(&mut record, EVENT_RECORD_STREAM, &(n as u16).to_le_bytes());
        put(&mut record, EVENT_RECORD_KIND, &[TX_SENT_KIND]);
        (ring.packets, ring.bytes) = (0, 0);
        ring.events = ring.events.wrapping_add(1);
        let doorbell = ring.doorbell;
        let now = self.stamp();
        for (i, stamp) in [doorbell, now, now].into_iter().enumerate() {
            let at = TX_SENT_STAGES + 4 * i;
            put(&mut record, at, &(stamp as u32).to_le_bytes());
        }
        self.tell(host, queue, record);
    }

    /// Puts the packets of a port into frames, one after the other; one whose station is not known
    /// holds up those behind it.
    pub(super) fn work_sender(&mut self, n: usize) {
        self.generate(n);
        while !self.ports[n].is_full()
            && let Some(packet) = self.ports[n].sender.packets.front()
        {
            let first = packet.first;
            if first.has(TX_DESCRIPTOR_RAW) {
                if let Some(packet) = self.ports[n].sender.packets.pop_front() {
                    self.ports[n].out.push_back(packet.bytes);
                }
                continue;
            }
            let given = first.u32(TX_DESCRIPTOR_DESTINATION_IP);
            let ports = self.port_get(n, port::DESTINATION_PORTS);
            let (ip, to, from) = match given {
                0 => (
                    self.port_get(n, port::DESTINATION_IP),
                    ports as u16,
                    (ports >> 16) as u16,
                ),
                ip => (
                    ip,
                    first.u16(TX_DESCRIPTOR_DESTINATION_PORT),
                    first.u16(TX_DESCRIPTOR_SOURCE_PORT),
                ),
            };
            let station = match self.station_of(n, ip) {
                Ok(Some(station)) => Some(station),
                Ok(None) => return,
                Err(()) => None,
            };
            let Some(packet) = self.ports[n].sender.packets.pop_front() else {
                return;
            };
            let Some(station) = station else {
                self.port_count(n, port::TX_UNRESOLVED, 1);
                continue;
            };
            let send = self.port_get(n, port::IP_SEND);
            let checksum = if first.has(TX_DESCRIPTOR_CHECKSUM_CARD) {
                None
            } else if first.has(TX_DESCRIPTOR_CHECKSUM_GIVEN) {
                // As it stands in the header.
                Some(u16::from_be_bytes(first.field(TX_DESCRIPTOR_CHECKSUM)))
            } else {
                Some(0)
            };
            let datagram = Datagram {
                to: station,
                from: self.port_mac(n),
                source_ip: self.port_get(n, port::IP),
                destination_ip: ip,
                source_port: from,
                destination_port: to,
                ttl: send as u8,
                tos: (send >> 8) as u8,
                checksum,
                payload: &packet.bytes,
            };
            let frame = datagram.frame();
            self.ports[n].out.push_back(frame);
        }
    }

    /// The station of an address; none as long as it has not answered, an error when it will not.
    fn station_of(&mut self, n: usize, ip: u32) -> Result<Option<[u8; 6]>, ()> {
        if ip == u32::MAX {
            return Ok(Some(BROADCAST));
        }
        if ip >> 28 == 0xe {
            let [_, b, c, d] = ip.to_be_bytes();
            return Ok(Some([0x01, 0, 0x5e, b & 0x7f, c, d]));
        }
        let at = Self::arp_at(n, ip);
        let entry = self.store.get64(at + 8);
        let (state, is_it) = (entry >> 48 & 3, self.store.get(at) == ip);
        let answered = self.ports[n].sender.station.take();
        let known = (state == 2 && is_it)
            .then(|| super::frame::chunk(&entry.to_be_bytes(), 2))
            .or(answered);
        if let Some(station) = known {
            self.ports[n].sender.asking = None;
            return Ok(Some(station));
        }
        let fixed = entry >> 50 & 1 == 1 && state == 2;
        if !(fixed || state == 1 && is_it) {
            self.store.set(at, ip);
            self.store.set64(at + 8, 1 << 48);
        }
        let tries = self.port_get(n, port::ARP_CTRL) & 15;
        let retry = u64::from(self.port_get(n, port::ARP_RETRY)) * NET_PS;
        let now = self.now;
        let (left, due) = self.ports[n].sender.asking.unwrap_or((tries, now));
        if due > now {
            return Ok(None);
        }
        if left == 0 {
            self.ports[n].sender.asking = None;
            if !fixed {
                self.store.set64(at + 8, 0);
                self.store.set(at, 0);
            }
            return Err(());
        }
        self.ports[n].sender.asking = Some((left - 1, now + retry));
        let us = (self.port_mac(n), self.port_get(n, port::IP));
        let request = arp(None, 1, us, ([0; 6], ip));
        self.ports[n].out.push_back(request);
        Ok(None)
    }

    /// Where an address has its place in the table.
    fn arp_at(n: usize, ip: u32) -> usize {
        let row = (ip ^ ip >> 8) as usize & 255;
        Self::port_at(n, port::ARP_IP) + row * port::ARP_IP.step
    }

    /// A station has said who it is.
    pub(super) fn learn(&mut self, n: usize, ip: u32, mac: [u8; 6], to_us: bool) {
        let at = Self::arp_at(n, ip);
        let entry = self.store.get64(at + 8);
        let of_it = entry >> 48 & 3 != 0 && self.store.get(at) == ip;
        let fixed = entry >> 50 & 1 == 1 && entry >> 48 & 3 == 2;
        let [a, b, c, d, e, f] = mac;
        if (of_it || to_us) && !fixed {
            let word = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
            self.store.set(at, ip);
            self.store.set64(at + 8, word | 2 << 48);
            self.arp_age[n].insert(at, self.now);
        } else if fixed && to_us && self.ports[n].sender.asking.is_some() {
            self.ports[n].sender.station = Some(mac);
        }
    }

    /// Stations grow old.
    pub(super) fn expire(&mut self, n: usize) {
        let life = u64::from(self.port_get(n, port::ARP_EXPIRY)) * (NET_PS << 20);
        if life == 0 {
            return;
        }
        let now = self.now;
        let store = &mut self.store;
        self.arp_age[n].retain(|&at, since| {
            let young = now - *since < life;
            let fixed = store.get64(at + 8) >> 50 & 1 == 1;
            if !young && !fixed {
                store.set64(at + 8, 0);
                store.set(at, 0);
            }
            young
        });
    }

    /// A register of a port was written, which does something.
    pub(super) fn port_written(&mut self, n: usize, register: usize, value: u32) {
        if register == port::ARP_CTRL.at && value & 1 << 8 != 0 {
            for row in 0..port::ARP_IP.count {
                let at = Self::port_at(n, port::ARP_IP) + row * port::ARP_IP.step;
                self.store.set(at, 0);
                self.store.set64(at + 8, 0);
            }
            self.arp_age[n].clear();
        }
        if register == port::GEN_CTRL.at {
            if value & 1 != 0 {
                self.ports[n].sender.generated = Some((0, self.now));
            }
            if value & 2 != 0 {
                self.ports[n].sender.generated = None;
            }
        }
        let running = self.ports[n].sender.generated.is_some();
        let at = Self::port_at(n, port::GEN_STATUS);
        self.store.set(at, running.into());
    }

    /// The generator's next packets.
    fn generate(&mut self, n: usize) {
        while let Some((number, due)) = self.ports[n].sender.generated
            && due <= self.now
            && self.ports[n].sender.packets.is_empty()
            && !self.ports[n].is_full()
        {
            let size = self.port_get(n, port::GEN_SIZE) as usize;
            let count = self.port_get(n, port::GEN_COUNT);
            let gap = u64::from(self.port_get(n, port::GEN_GAP)) * NET_PS;
            let mut bytes: Vec<u8> = (0..size).map(|i| (number as usize + i) as u8).collect();
            for (byte, of) in bytes.iter_mut().zip(number.to_le_bytes()) {
                *byte = of;
            }
            let mut first = Descriptor::default();
            // The default destination, with ports of its own.
            let ports = self.port_get(n, port::GEN_PORTS);
            let ip = self.port_get(n, port::DESTINATION_IP);
            let fields = [
                (TX_DESCRIPTOR_DESTINATION_IP, ip.to_le_bytes()),
                (TX_DESCRIPTOR_DESTINATION_PORT, ports.to_le_bytes()),
            ];
            for (at, field) in fields {
                first.0[at..at + 4].copy_from_slice(&field);
            }
            let packet = Outgoing { first, bytes };
            self.ports[n].sender.packets.push_back(packet);
            self.port_count(n, port::GEN_PACKETS, 1);
            let words = size.div_ceil(8).max(1) as u64 * NET_PS;
            let next = number.wrapping_add(1);
            let goes_on = count == 0 || next < count;
            self.ports[n].sender.generated = goes_on.then_some((next, due + words + gap));
            let at = Self::port_at(n, port::GEN_STATUS);
            self.store.set(at, goes_on.into());
        }
    }

    /// When a port has something to do next, in picoseconds.
    pub(super) fn sender_due(&self, n: usize) -> Option<u64> {
        let sender = &self.ports[n].sender;
        let asks = sender.asking.map(|(_, due)| due);
        let generates = sender.generated.map(|(_, due)| due);
        asks.into_iter().chain(generates).min()
    }
}
