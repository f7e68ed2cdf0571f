//! A port: its MAC and wire, acceptance and answers, its ARP cache.

use super::frame::{Headers, arp, chunk, echo, long, word};
use super::hits;
use super::parse::{Drop, Settings, Taken, judge};
use super::soft_card::{NET_PS, SoftCard};
use super::state::{Payload, Port};
use crate::registers::port;
use crate::simulated::{FrameEnd, Host, LinkSignal, WireFrame};

/// Capacity of a receive fifo in bytes, and in frames.
const FIFO: usize = 2048 * 8;
const FIFO_FRAMES: usize = 256;

/// Destination of pause frames (IEEE 802.3 annex 31B).
const PAUSE: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 1];

impl SoftCard {
    /// A register of a port.
    pub(super) fn port_at(n: usize, register: crate::Register) -> usize {
        port::THIS.at + n * port::THIS.step + register.at
    }

    pub(super) fn port_get(&self, n: usize, register: crate::Register) -> u32 {
        self.store.get(Self::port_at(n, register))
    }

    pub(super) fn port_count(&mut self, n: usize, register: crate::Register, by: u64) {
        self.store.count(Self::port_at(n, register), by);
    }

    pub(super) fn port_mac(&self, n: usize) -> [u8; 6] {
        chunk(
            &self.store.get64(Self::port_at(n, port::MAC)).to_be_bytes(),
            2,
        )
    }

    fn settings(&self, n: usize) -> Settings {
        let mac = self.port_get(n, port::MAC_CTRL);
        let net = self.port_get(n, port::NET_CTRL);
        Settings {
            mac: self.port_mac(n),
            ip: self.port_get(n, port::IP),
            promiscuous: mac & 8 != 0,
            multicast: mac & 16 != 0,
            arp: net & 1 != 0,
            echo: net & 2 != 0,
            checksum: net & 4 != 0,
            catch_udp: net & 16 != 0,
            catch_other: net & 32 != 0,
        }
    }

    /// The stream of a UDP destination port, and its delivery mode.
    fn stream(&self, n: usize, udp_port: u16) -> Option<(usize, u32)> {
        (0..port::STREAM.count).find_map(|stream| {
            let word = self.store.get(Self::port_at(n, port::STREAM) + 4 * stream);
            let is_it = word >> 31 == 1 && word as u16 == udp_port;
            is_it.then_some((stream, word >> 16 & 3))
        })
    }

    /// A frame has ended at the MAC.
    pub(super) fn receive(&mut self, n: usize, frame: WireFrame) {
        let WireFrame { bytes, end } = frame;
        let Some(state) = self.ports.get(n) else {
            return;
        };
        let up = state.signal == LinkSignal::Idle;
        let control = self.port_get(n, port::MAC_CTRL);
        if control & 1 == 0 || !up {
            return;
        }
        let max_frame = self.port_get(n, port::MAX_FRAME) as usize;
        self.port_count(n, port::RX_FRAMES, 1);
        self.port_count(n, port::RX_BYTES, bytes.len().min(max_frame) as u64);
        let lost = if bytes.len() + 4 > max_frame {
            Some(port::RX_OVERSIZE)
        } else if end == FrameEnd::Error {
            Some(port::RX_SYMBOL)
        } else if bytes.len() < 60 {
            Some(port::RX_RUNT)
        } else if end == FrameEnd::BadFcs {
            Some(port::RX_FCS)
        } else {
            None
        };
        if let Some(register) = lost {
            return self.port_count(n, register, 1);
        }
        let to: [u8; 6] = chunk(&bytes, 0);
        let to_mac = to == PAUSE || to == self.port_mac(n);
        if to_mac && word(&bytes, 12) == 0x8808 && word(&bytes, 14) == 1 {
            self.port_count(n, port::RX_PAUSE, 1);
            if control & 32 != 0 {
                // 0 quanta end a pause.
                let quanta = u64::from(word(&bytes, 16));
                let until = self.now + quanta * 8 * NET_PS;
                self.ports[n].paused = until;
            }
            return;
        }
        self.take(n, bytes, max_frame);
    }

    /// A good frame, from the MAC to its destination.
    fn take(&mut self, n: usize, bytes: Vec<u8>, max_frame: usize) {
        let on_wire = bytes.len();
        let settings = self.settings(n);
        let taken = judge(&bytes, &settings, |udp| self.stream(n, udp).is_some());
        let (list, bound, source_port, bytes) = match taken {
            Err(cause) => {
                let register = match cause {
                    Drop::Address => port::DROP_ADDRESS,
                    Drop::Malformed => port::DROP_MALFORMED,
                    Drop::Checksum => port::DROP_CHECKSUM,
                    Drop::Fragment => port::DROP_FRAGMENT,
                    Drop::Unsupported => port::DROP_UNSUPPORTED,
                    Drop::Miss => port::DROP_MISS,
                };
                return self.port_count(n, register, 1);
            }
            Ok(Taken::Arp) => return self.arp(n, &bytes, &settings),
            Ok(Taken::Echo) => {
                if self.ports[n].is_full() {
                    return self.port_count(n, port::DROP_ANSWER, 1);
                }
                self.port_count(n, port::ECHO_FRAMES, 1);
                let ttl = self.port_get(n, port::IP_SEND) as u8;
                let answer = echo(&bytes, settings.mac, settings.ip, ttl);
                self.ports[n].out.push_back(answer);
                return;
            }
            Ok(Taken::Whole { source_port }) => {
                (16, whole_bound(bytes.len(), max_frame), source_port, bytes)
            }
            Ok(Taken::Udp {
                source_port,
                port: udp,
                at,
                len,
            }) => match self.stream(n, udp) {
                Some((stream, 1)) => {
                    let bound = whole_bound(bytes.len(), max_frame);
                    (stream, bound, source_port, bytes)
                }
                Some((stream, 2)) => {
                    let list = n * 32 + stream;
                    match hits::expand(&bytes[at..at + len]) {
                        Ok(expanded) => {
                            let known = expanded.len() <= 240;
                            let most = (4 * len).saturating_sub(72);
                            let bound = if known { expanded.len() } else { most };
                            (stream, bound, source_port, expanded)
                        }
                        Err(register) => {
                            let at = crate::registers::clop::THIS.at + register.of(list);
                            return self.store.count(at, 1);
                        }
                    }
                }
                Some((stream, _)) => (stream, len, source_port, bytes[at..at + len].to_vec()),
                None => return,
            },
        };
        // It began with its first bit.
        let begun = self.now.saturating_sub(Port::duration(on_wire));
        let stamps = [self.stamp_at(begun), self.stamp()];
        let payload = Payload {
            list: n * 32 + list,
            bytes,
            bound,
            source_port,
            wire: self.wire_at(begun),
            stamps,
        };
        let fifo = &self.ports[n].fifo;
        let used: usize = fifo.iter().map(|payload| payload.bytes.len() + 8).sum();
        if fifo.len() >= FIFO_FRAMES || used + payload.bytes.len() > FIFO {
            return self.port_count(n, port::DROP_OVERFLOW, 1);
        }
        self.ports[n].fifo.push_back(payload);
    }

    /// The contents of a receive fifo go to their lists, unless the card is quiesced, or a payload
    /// waits for a page.
    pub(super) fn drain(&mut self, host: &mut dyn Host, n: usize) {
        while !self.is_quiet() {
            if let Some(waiting) = self.ports[n].waiting.take() {
                self.write_payload(host, waiting);
            } else if let Some(payload) = self.ports[n].fifo.pop_front() {
                self.place(host, &payload);
            } else {
                return;
            }
            if self.ports[n].waiting.is_some() {
                return;
            }
        }
    }

    /// ARP: learns, and answers (RFC 826).
    fn arp(&mut self, n: usize, bytes: &[u8], settings: &Settings) {
        let Headers { inside, tag, .. } = Headers::of(bytes);
        let operation = word(bytes, inside + 6);
        let sender: [u8; 6] = chunk(bytes, inside + 8);
        let sender_ip = long(bytes, inside + 14);
        let to_us = long(bytes, inside + 24) == settings.ip;
        let is_neighbour = sender[0] & 1 == 0 && sender != settings.mac;
        if is_neighbour && to_us && operation == 1 {
            if self.ports[n].is_full() {
                return self.port_count(n, port::DROP_ANSWER, 1);
            }
            let us = (settings.mac, settings.ip);
            let answer = arp(tag, 2, us, (sender, sender_ip));
            self.ports[n].out.push_back(answer);
        }
        self.port_count(n, port::ARP_FRAMES, 1);
        if is_neighbour && sender_ip != 0 {
            self.learn(n, sender_ip, sender, to_us);
        }
    }

    /// A status register of a port.
    pub(super) fn mac_status(&self, n: usize) -> u32 {
        let Some(state) = self.ports.get(n) else {
            return 0;
        };
        let local = state.signal == LinkSignal::LocalFault;
        let remote = state.signal == LinkSignal::RemoteFault;
        let rx_idle = state.fifo.is_empty() && state.waiting.is_none();
        let tx_idle = state.out.is_empty() && state.sender.is_idle();
        let paused = state.paused > self.now;
        let bits = [!local && !remote, local, remote, rx_idle, tx_idle, paused];
        bits.iter()
            .enumerate()
            .fold(0, |word, (i, &bit)| word | u32::from(bit) << i)
    }

    /// Whether a port has its pair instead of its wire: that of the same function.
    pub(super) fn is_looped(&self, n: usize) -> bool {
        self.port_get(n, port::MAC_CTRL) & 4 != 0 && self.port_owner(n) == self.port_owner(n ^ 1)
    }

    /// Sends the frames that the MAC may begin now.
    pub(super) fn transmit(&mut self, n: usize) {
        loop {
            let control = self.port_get(n, port::MAC_CTRL);
            let state = &mut self.ports[n];
            let is_ready = control & 2 != 0 && state.out_free <= self.now && !state.out.is_empty();
            if is_ready && state.paused > self.now {
                state.held.get_or_insert(self.now);
            }
            if let Some(since) = state.held.filter(|_| state.paused <= self.now) {
                state.held = None;
                self.port_count(n, port::TX_PAUSED, (self.now - since) / NET_PS);
            }
            let state = &mut self.ports[n];
            if !is_ready || state.paused > self.now {
                return;
            }
            let Some(mut frame) = state.out.pop_front() else {
                return;
            };
            self.leaves(n);
            let state = &mut self.ports[n];
            if state.signal != LinkSignal::Idle {
                self.port_count(n, port::TX_FAULT, 1);
                continue;
            }
            if frame.len() < 60 {
                frame.resize(60, 0);
            }
            state.out_free = self.now + Port::duration(frame.len());
            self.port_count(n, port::TX_FRAMES, 1);
            self.port_count(n, port::TX_BYTES, frame.len() as u64);
            let frame = WireFrame::good(frame);
            if self.is_looped(n) {
                // To the other port of its pair, if that is looped too.
                let peer = n ^ 1;
                if self.is_looped(peer) {
                    self.arrive(peer, frame);
                }
            } else {
                self.ports[n].sent.push_back(frame);
            }
        }
    }

    /// A frame begins on the wire to a port, after those in flight.
    pub(super) fn arrive(&mut self, n: usize, frame: WireFrame) {
        let now = self.now;
        if let Some(state) = self.ports.get_mut(n) {
            let duration = Port::duration(frame.bytes.len());
            state.coming.push_back(frame);
            state.arrives.get_or_insert(now + duration);
        }
    }
}

/// The length by which a whole frame is placed: one that fits a chunk is known by then.
fn whole_bound(len: usize, max_frame: usize) -> usize {
    if len <= 240 { len } else { max_frame.max(len) }
}
