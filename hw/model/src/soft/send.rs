//! From packets to frames: the neighbour of a packet, the generator.

use super::frame::{BROADCAST, Datagram, arp};
use super::soft_card::{NET_PS, SoftCard};
use super::state::{Descriptor, Outgoing};
use crate::layouts::{
    TX_DESCRIPTOR_CHECKSUM, TX_DESCRIPTOR_CHECKSUM_CARD, TX_DESCRIPTOR_CHECKSUM_GIVEN,
    TX_DESCRIPTOR_DESTINATION_IP, TX_DESCRIPTOR_DESTINATION_PORT, TX_DESCRIPTOR_RAW,
    TX_DESCRIPTOR_SOURCE_PORT,
};
use crate::registers::port;

impl SoftCard {
    /// Puts the packets of a port into frames, one after the other; one whose neighbour is unknown
    /// delays those behind it.
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
                // As in the header.
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

    /// The neighbour of an address; none until it has answered, an error when the tries are used up.
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

    /// Entry of an address in the table.
    fn arp_at(n: usize, ip: u32) -> usize {
        let row = (ip ^ ip >> 8) as usize & 255;
        Self::port_at(n, port::ARP_IP) + row * port::ARP_IP.step
    }

    /// A neighbour has announced its address.
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

    /// Neighbours age.
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

    /// A write to a register of a port that starts an action.
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
            // The default destination, with the generator's ports.
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

    /// Time of a port's next action, in picoseconds.
    pub(super) fn sender_due(&self, n: usize) -> Option<u64> {
        let sender = &self.ports[n].sender;
        let asks = sender.asking.map(|(_, due)| due);
        let generates = sender.generated.map(|(_, due)| due);
        asks.into_iter().chain(generates).min()
    }
}
