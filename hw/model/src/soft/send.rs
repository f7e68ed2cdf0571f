//! From packets to frames: the neighbour of a packet, the generator.

use super::frame::{BROADCAST, Datagram, arp};
use super::soft_card::{NET_PS, SoftCard};
use super::state::{Descriptor, Outgoing};
use crate::layouts::{
    TX_DESCRIPTOR_CHECKSUM, TX_DESCRIPTOR_CHECKSUM_CARD, TX_DESCRIPTOR_CHECKSUM_GIVEN,
    TX_DESCRIPTOR_COOKIE, TX_DESCRIPTOR_DESTINATION_IP, TX_DESCRIPTOR_DESTINATION_PORT,
    TX_DESCRIPTOR_RAW, TX_DESCRIPTOR_SOURCE_PORT,
};
use crate::registers::port;

/// States of an entry of the ARP cache, and the flag of those that do not expire.
const ASKED: u64 = 1;
const KNOWN: u64 = 2;
const STATIC: u64 = 4;

impl SoftCard {
    /// Puts the packets of a port into frames, one after the other; one whose neighbour is asked for
    /// delays those behind it for a limited time.
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
            let neighbour = match self.neighbour_of(n, ip) {
                Ok(Some(neighbour)) => Some(neighbour),
                Ok(None) => return,
                Err(()) => None,
            };
            let Some(packet) = self.ports[n].sender.packets.pop_front() else {
                return;
            };
            let Some(neighbour) = neighbour else {
                self.port_count(n, port::TX_UNRESOLVED, 1);
                if packet.told {
                    let lost = self.rings[n].lost.map_or(0, |(count, _)| count);
                    let cookie = first.u32(TX_DESCRIPTOR_COOKIE);
                    self.rings[n].lost = Some((lost + 1, cookie));
                }
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
                to: neighbour,
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

    /// The neighbour of an address; none while its answer may come, an error if it does not.
    fn neighbour_of(&mut self, n: usize, ip: u32) -> Result<Option<[u8; 6]>, ()> {
        if ip == u32::MAX {
            return Ok(Some(BROADCAST));
        }
        if ip >> 28 == 0xe {
            let [_, b, c, d] = ip.to_be_bytes();
            return Ok(Some([0x01, 0, 0x5e, b & 0x7f, c, d]));
        }
        let answered = self.ports[n].sender.neighbour.take();
        let found = self.neighbour(n, ip);
        let known = found
            .filter(|&at| self.arp_state(at) == KNOWN)
            .map(|at| super::frame::chunk(&self.store.get64(at + 8).to_be_bytes(), 2))
            .or(answered);
        if let Some(neighbour) = known {
            self.ports[n].sender.asking = None;
            return Ok(Some(neighbour));
        }
        let now = self.now;
        if let Some(until) = self.ports[n].sender.asking {
            if until > now {
                return Ok(None);
            }
            self.ports[n].sender.asking = None;
            return Err(());
        }
        // It was requested, and has not answered.
        if found.is_some() {
            return Err(());
        }
        if let Some(at) = self.arp_place(n, ip) {
            self.store.set(at, ip);
            self.store.set64(at + 8, ASKED << 48);
            self.arp_age[n].insert(at, now);
        }
        let us = (self.port_mac(n), self.port_get(n, port::IP));
        let request = arp(None, 1, us, ([0; 6], ip));
        let ahead = self.ports[n].out.len();
        self.ports[n].out.push_back(request);
        if self.port_get(n, port::ARP_WAIT) == 0 {
            return Err(());
        }
        let sender = &mut self.ports[n].sender;
        sender.asking = Some(u64::MAX);
        sender.asked = ip;
        sender.request = Some(ahead);
        Ok(None)
    }

    /// State of an entry.
    fn arp_state(&self, at: usize) -> u64 {
        self.store.get64(at + 8) >> 48 & 3
    }

    fn is_static(&self, at: usize) -> bool {
        self.store.get64(at + 8) >> 48 & 7 == STATIC | KNOWN
    }

    /// The entries of an address's set.
    fn arp_set(n: usize, ip: u32) -> impl Iterator<Item = usize> + Clone {
        let row = 4 * ((ip ^ ip >> 8) as usize & 63);
        (row..row + 4).map(move |row| Self::port_at(n, port::ARP_IP) + row * port::ARP_IP.step)
    }

    /// A frame of the port leaves: the wait for a neighbour begins behind the request.
    pub(super) fn leaves(&mut self, n: usize) {
        let wait = u64::from(self.port_get(n, port::ARP_WAIT)) * NET_PS;
        let sender = &mut self.ports[n].sender;
        sender.request = match sender.request {
            Some(0) => {
                sender.asking = sender.asking.map(|_| self.now + wait);
                None
            }
            ahead => ahead.map(|ahead| ahead - 1),
        };
    }

    /// The entry of an address, if it has one: a static one, else a known one, else one that was
    /// requested.
    fn neighbour(&self, n: usize, ip: u32) -> Option<usize> {
        let rank = |&at: &usize| (!self.is_static(at), self.arp_state(at) != KNOWN);
        Self::arp_set(n, ip)
            .filter(|&at| self.arp_state(at) != 0 && self.store.get(at) == ip)
            .min_by_key(rank)
    }

    /// The entry for an address that has none: an empty one, one that was requested in vain, or those
    /// that are not static in turn.
    fn arp_place(&mut self, n: usize, ip: u32) -> Option<usize> {
        let turn = self.ports[n].sender.turn;
        self.ports[n].sender.turn = (turn + 1) % 4;
        let set = Self::arp_set(n, ip);
        let of = |state| set.clone().find(|&at| self.arp_state(at) == state);
        let in_turn = set.clone().nth(turn).filter(|&at| !self.is_static(at));
        of(0)
            .or(of(ASKED))
            .or(in_turn)
            .or_else(|| set.clone().find(|&at| !self.is_static(at)))
    }

    /// A neighbour has announced its address.
    pub(super) fn learn(&mut self, n: usize, ip: u32, mac: [u8; 6], to_us: bool) {
        let place = match self.neighbour(n, ip) {
            Some(at) => (!self.is_static(at)).then_some(at),
            None if to_us => self.arp_place(n, ip),
            None => return,
        };
        if let Some(at) = place {
            let [a, b, c, d, e, f] = mac;
            let word = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
            self.store.set(at, ip);
            self.store.set64(at + 8, word | KNOWN << 48);
            self.arp_age[n].insert(at, self.now);
            return;
        }
        // No entry can be its: it answers the packet that waits for it.
        let sender = &mut self.ports[n].sender;
        if sender.asking.is_some() && sender.asked == ip {
            sender.neighbour = Some(mac);
        }
    }

    /// Neighbours and requests age.
    pub(super) fn expire(&mut self, n: usize) {
        let life = |register| u64::from(self.port_get(n, register)) * (NET_PS << 20);
        let (known, asked) = (life(port::ARP_EXPIRY), life(port::ARP_RETRY));
        let now = self.now;
        let store = &mut self.store;
        self.arp_age[n].retain(|&at, since| {
            let word = store.get64(at + 8) >> 48 & 7;
            let life = match word {
                ASKED => asked,
                KNOWN if known != 0 => known,
                _ => u64::MAX,
            };
            let young = now - *since < life;
            if !young {
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
            let packet = Outgoing {
                first,
                bytes,
                told: false,
            };
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
        let generates = sender.generated.map(|(_, due)| due);
        let asking = sender.asking.filter(|&until| until != u64::MAX);
        asking.into_iter().chain(generates).min()
    }
}
