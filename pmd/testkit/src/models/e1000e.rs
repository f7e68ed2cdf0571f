//! The 82574L in software, register by register, as far as the driver knows it: rings, DMA,
//! filters, RSS, checksums, statistics, link, interrupts. Where the datasheet leaves a choice it
//! does as QEMU's model of the device does.

mod look;
pub mod trial;

use std::collections::VecDeque;

pub use self::look::toeplitz;
use self::look::{flow, ipv4};
use crate::fake::{Model, World};
use crate::models::checksum::insert_sum;
use pollux_pmd::bus::Ids;
use pollux_pmd::drivers::e1000e::registers::*;
use pollux_pmd::net::Checksum;

/// Bytes of the packet buffer for frames that wait for descriptors: its half for receiving
/// (section 10.2.2, PBA).
const PACKET_BUFFER: usize = 20 << 10;

/// Statistics: 0x4000 to 0x4124.
const STATISTICS: std::ops::Range<usize> = 0x4000..0x4128;

/// Receive status and errors (section 7.1.4.2), and transmit commands (section 7.2).
const DD: u32 = 1;
const EOP: u32 = 1 << 1;
const UDPCS: u32 = 1 << 4;
const L4CS: u32 = 1 << 5;
const IPCS: u32 = 1 << 6;
const L4E: u32 = 1 << 29;
const IPE: u32 = 1 << 30;
const TX_EOP: u32 = 1 << 24;
const TX_RS: u32 = 1 << 27;
const TX_DEXT: u32 = 1 << 29;
const TX_DTYP_DATA: u32 = 1 << 20;
/// In the upper half: POPTS.TXSM.
const TX_TXSM: u32 = 1 << 9;

/// The device.
#[allow(clippy::struct_excessive_bools)] // each is a fault, or a state, of its own
pub struct Card {
    registers: Vec<u32>,
    mac: [u8; 6],
    phy: [u16; 32],
    link: bool,
    /// Frames that are sent come back.
    pub loopback: bool,
    /// It takes no notice of being told to stop, or to reset.
    pub stubborn: bool,
    /// Nothing is sent.
    pub stalled: bool,
    /// Frames that were sent, by queue, without `loopback`.
    pub sent: [VecDeque<Vec<u8>>; 2],
    /// What is sent, up to its last piece.
    pieces: [Vec<u8>; 2],
    /// A piece of it could not be had.
    unmapped: [bool; 2],
    /// Where the sum of a frame begins and where it belongs, as the last context of either queue
    /// has said; and that of the frame that is being sent.
    context: [u8; 2],
    sum: [Option<[u8; 2]>; 2],
    waiting: VecDeque<Vec<u8>>,
    /// Frames written to memory.
    pub received: u64,
    /// Frames dropped for lack of room.
    pub missed: u64,
    /// Bits that the next descriptor has wrong.
    lie: u64,
}

impl Card {
    /// A card with that address, whose link is up.
    #[must_use]
    pub fn new(mac: [u8; 6]) -> Self {
        let mut card = Self {
            registers: Vec::new(),
            mac,
            phy: [0; 32],
            link: true,
            loopback: false,
            stubborn: false,
            stalled: false,
            sent: Default::default(),
            pieces: Default::default(),
            unmapped: [false; 2],
            context: [0; 2],
            sum: [None; 2],
            waiting: VecDeque::new(),
            received: 0,
            missed: 0,
            lie: 0,
        };
        card.clear();
        // As a kernel driver leaves it: without power.
        card.phy[0] = 1 << 12 | 1 << 11;
        card
    }

    fn clear(&mut self) {
        let [a, b, c, d, e, f] = self.mac;
        self.registers = vec![0; WINDOW / 4];
        self.set(CTRL.at, CTRL_FD | CTRL_SLU);
        // A driver has to clear it.
        self.set(CTRL_EXT.at, CTRL_EXT_REQUIRED_ZERO);
        self.set(EECD.at, EECD_AUTO_RD);
        self.set(RAL.of(0), u32::from_le_bytes([a, b, c, d]));
        self.set(RAH.of(0), u32::from_le_bytes([e, f, 0, 0]) | RAH_AV);
        self.set(RXCSUM.at, RXCSUM_IPOFLD | RXCSUM_TUOFLD);
        self.set(TARC.of(0), TARC_ENABLE | 3);
        self.set(TARC.of(1), TARC_ENABLE | 3);
        self.pieces = Default::default();
        self.sum = [None; 2];
        self.waiting.clear();
    }

    /// What a register holds.
    #[must_use]
    pub fn get(&self, at: usize) -> u32 {
        self.registers.get(at / 4).copied().unwrap_or(0)
    }

    /// Sets a register, without any effect.
    pub fn set(&mut self, at: usize, value: u32) {
        if let Some(register) = self.registers.get_mut(at / 4) {
            *register = value;
        }
    }

    fn add(&mut self, at: usize, more: u32) {
        self.set(at, self.get(at).saturating_add(more));
    }

    /// Plugs the cable in, or pulls it out.
    pub fn set_link(&mut self, world: &mut World, up: bool) {
        if self.link != up {
            self.link = up;
            self.cause(world, ICR_LSC);
        }
    }

    fn is_on(&self, at: usize, bits: u32) -> bool {
        self.get(at) & bits == bits
    }

    /// Something has happened that may interrupt (section 7.4). A cause whose bit in EIAC is set
    /// clears itself and its mask.
    fn cause(&mut self, world: &mut World, causes: u32) {
        self.set(ICR.at, self.get(ICR.at) | causes);
        let vectors = self.get(IVAR.at);
        for (queue, bit) in [IMS_RXQ0, IMS_RXQ1].into_iter().enumerate() {
            let entry = vectors >> (4 * queue);
            if self.get(ICR.at) & self.get(IMS.at) & bit != 0 && entry & 8 != 0 {
                world.interrupt((entry & 7) as u16);
                if self.is_on(EIAC.at, bit) {
                    self.set(ICR.at, self.get(ICR.at) & !bit);
                    self.set(IMS.at, self.get(IMS.at) & !bit);
                }
            }
        }
    }

    /// A frame comes from the wire.
    pub fn receive(&mut self, world: &mut World, frame: &[u8]) {
        let mut frame = frame.to_vec();
        frame.resize(frame.len().max(60), 0);
        if !self.link || !self.is_on(RCTL.at, RCTL_EN) || !self.passes(&frame) {
            return;
        }
        let most = if self.is_on(RCTL.at, RCTL_LPE) {
            16_380
        } else {
            1518
        };
        if frame.len() > most {
            return self.add(ROC.at, 1);
        }
        let waiting: usize = self.waiting.iter().map(Vec::len).sum();
        if waiting + frame.len() > PACKET_BUFFER {
            self.missed += 1;
            return self.add(MPC.at, 1);
        }
        self.waiting.push_back(frame);
        self.deliver(world);
    }

    /// Section 7.1.1.
    fn passes(&self, frame: &[u8]) -> bool {
        let Some(to) = frame.first_chunk::<6>() else {
            return false;
        };
        let all = match to {
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff] => RCTL_BAM,
            [first, ..] if first & 1 != 0 => RCTL_MPE,
            _ => RCTL_UPE,
        };
        let is_listed = (0..RAL.count).any(|index| {
            let [a, b, c, d] = self.get(RAL.of(index)).to_le_bytes();
            let [e, f, ..] = self.get(RAH.of(index)).to_le_bytes();
            self.is_on(RAH.of(index), RAH_AV) && *to == [a, b, c, d, e, f]
        });
        let hash = usize::from(u16::from_le_bytes([to[4], to[5]]) >> 4);
        let is_hashed = to[0] & 1 != 0 && self.get(MTA.of(hash / 32)) >> (hash % 32) & 1 != 0;
        self.is_on(RCTL.at, all) || is_listed || is_hashed
    }

    /// Puts frames that wait into memory, as far as there are descriptors.
    fn deliver(&mut self, world: &mut World) {
        while let Some(frame) = self.waiting.pop_front() {
            let (hash, queue) = self.share_out(&frame);
            let needed = frame.len().div_ceil(self.room().max(1));
            if self.available(queue) < needed {
                self.add(RNBC.at, 1);
                self.waiting.push_front(frame);
                return;
            }
            self.write_frame(world, queue, hash, &frame);
            self.received += 1;
            self.add(GPRC.at, 1);
            self.add(TPR.at, 1);
            self.add(GORCL.at, frame.len() as u32 + 4);
            self.cause(world, [IMS_RXQ0, IMS_RXQ1][queue]);
        }
    }

    /// Bytes of a receive buffer (section 10.2.5.1).
    fn room(&self) -> usize {
        let control = self.get(RCTL.at);
        match ((control & RCTL_FLXBUF) >> 27, (control & RCTL_BSIZE) >> 16) {
            (0, size) => 2048 >> size,
            (kib, _) => kib as usize * 1024,
        }
    }

    fn available(&self, queue: usize) -> usize {
        let size = self.get(RDLEN.of(queue)) / 16;
        let (head, tail) = (self.get(RDH.of(queue)), self.get(RDT.of(queue)));
        if tail >= size || head >= size {
            return 0;
        }
        ((tail + size - head) % size) as usize
    }

    fn write_frame(&mut self, world: &mut World, queue: usize, hash: u32, frame: &[u8]) {
        /// RSS type (section 7.1.11.2).
        const HASH_IPV4: u64 = 2;
        let is_extended = self.is_on(RFCTL.at, RFCTL_EXTEN);
        let size = self.get(RDLEN.of(queue)) / 16;
        let base = pair(self.get(RDBAL.of(queue)), self.get(RDBAH.of(queue)));
        let room = self.room();
        let count = frame.len().div_ceil(room);
        for (i, piece) in frame.chunks(room).enumerate() {
            let head = self.get(RDH.of(queue));
            let at = base.wrapping_add(u64::from(head) * 16);
            let mut descriptor = [0; 16];
            world.read(at, &mut descriptor);
            let buffer = u64::from_le_bytes(*descriptor.first_chunk().unwrap_or(&[0; 8]));
            world.write(buffer, piece);
            let status = if i + 1 == count {
                DD | EOP | self.verdict(frame)
            } else {
                DD
            };
            let lie = std::mem::take(&mut self.lie);
            let status = u64::from(status ^ lie as u32 | DD);
            let len = piece.len() as u64 ^ lie >> 48;
            let (first, second) = if is_extended {
                let kind = if hash == 0 { 0 } else { HASH_IPV4 };
                (u64::from(hash) << 32 | kind, len << 32 | status)
            } else {
                let (low, high) = (status & 0xff, status >> 24);
                (buffer, high << 40 | low << 32 | len)
            };
            world.write(at, &first.to_le_bytes());
            world.write(at.wrapping_add(8), &second.to_le_bytes());
            self.set(RDH.of(queue), (head + 1) % size);
        }
    }

    /// The hash of a flow and its queue (section 7.1.11).
    fn share_out(&self, frame: &[u8]) -> (u32, usize) {
        let rss = self.is_on(MRQC.at, MRQC_RSS)
            && self.is_on(RXCSUM.at, RXCSUM_PCSD)
            && self.is_on(RFCTL.at, RFCTL_EXTEN);
        let Some(flow) = flow(frame).filter(|_| rss) else {
            return (0, 0);
        };
        let key: Vec<u8> = (0..RSSRK.count)
            .flat_map(|index| self.get(RSSRK.of(index)).to_le_bytes())
            .collect();
        let hash = toeplitz(&key, &flow);
        let index = hash as usize & 0x7f;
        let entries = self.get(RETA.of(index / 4)).to_le_bytes();
        (hash, usize::from(entries[index % 4] >> 7))
    }

    /// What the checksums are found to be (section 7.1.10).
    fn verdict(&self, frame: &[u8]) -> u32 {
        let mut status = 0;
        if let Some((header, l4, protocol)) = ipv4(frame) {
            let mut sum = Checksum::new();
            sum.add(header);
            if self.is_on(RXCSUM.at, RXCSUM_IPOFLD) {
                status |= IPCS | if sum.is_valid() { 0 } else { IPE };
            }
            let bit = match protocol {
                17 => L4CS | UDPCS,
                6 => L4CS,
                _ => return status,
            };
            let is_absent = protocol == 17 && l4.get(6..8) == Some(&[0, 0]);
            if self.is_on(RXCSUM.at, RXCSUM_TUOFLD) && !is_absent {
                let mut sum = Checksum::new();
                sum.add(&header[12..20]);
                sum.add(&[0, protocol]);
                sum.add(&(l4.len() as u16).to_be_bytes());
                sum.add(l4);
                status |= bit | if sum.is_valid() { 0 } else { L4E };
            }
        }
        status
    }

    /// Sends what is in a ring.
    pub fn send(&mut self, world: &mut World, queue: usize) {
        let ready = self.is_on(TCTL.at, TCTL_EN) && self.is_on(TARC.of(queue), TARC_ENABLE);
        let size = self.get(TDLEN.of(queue)) / 16;
        let base = pair(self.get(TDBAL.of(queue)), self.get(TDBAH.of(queue)));
        // No ring of ours is longer; an adversary's would take a while.
        for _ in 0..4096 {
            let (head, tail) = (self.get(TDH.of(queue)), self.get(TDT.of(queue)));
            if !ready || self.stalled || head == tail || tail >= size {
                break;
            }
            let at = base.wrapping_add(u64::from(head) * 16);
            let mut descriptor = [0; 16];
            world.read(at, &mut descriptor);
            let words = descriptor.as_chunks::<8>().0;
            let [address, rest] = [0, 1].map(|i: usize| u64::from_le_bytes(words[i]));
            if rest as u32 & (TX_DEXT | TX_DTYP_DATA) == TX_DEXT {
                let [_, _, _, _, start, field, ..] = address.to_le_bytes();
                self.context = [start, field];
            } else {
                self.take_piece(world, queue, address, rest);
            }
            if rest as u32 & TX_RS != 0 {
                let done = (rest >> 32) as u32 | DD;
                world.write(at.wrapping_add(12), &done.to_le_bytes());
            }
            self.set(TDH.of(queue), if head + 1 >= size { 0 } else { head + 1 });
        }
    }

    /// A piece of a frame that is sent.
    fn take_piece(&mut self, world: &mut World, queue: usize, address: u64, rest: u64) {
        let is_extended = rest as u32 & TX_DEXT != 0;
        if is_extended && self.pieces[queue].is_empty() && (rest >> 32) as u32 & TX_TXSM != 0 {
            self.sum[queue] = Some(self.context);
        }
        let mut piece = vec![0; usize::from(rest as u16)];
        let end = address.wrapping_add(piece.len() as u64).wrapping_sub(1);
        // QEMU maps each piece in one go, and loses the frame where it cannot.
        self.unmapped[queue] |= address >> 12 != end >> 12;
        if world.read(address, &mut piece) && self.pieces[queue].len() < 16_384 {
            self.pieces[queue].extend(piece);
        }
        if rest as u32 & TX_EOP != 0 {
            let mut frame = std::mem::take(&mut self.pieces[queue]);
            if let Some([start, field]) = self.sum[queue].take() {
                insert_sum(&mut frame, start.into(), field.into());
            }
            if !std::mem::take(&mut self.unmapped[queue]) {
                self.put_on_wire(world, queue, frame);
            }
        }
    }

    fn put_on_wire(&mut self, world: &mut World, queue: usize, mut frame: Vec<u8>) {
        if self.is_on(TCTL.at, TCTL_PSP) {
            frame.resize(frame.len().max(60), 0);
        }
        self.add(GPTC.at, 1);
        self.add(TPT.at, 1);
        self.add(GOTCL.at, frame.len() as u32 + 4);
        if self.loopback {
            self.receive(world, &frame);
        } else {
            self.sent[queue].push_back(frame);
        }
    }

    fn phy(&mut self, command: u32) -> u32 {
        let register = (command & MDIC_REGADD) >> 16;
        if (command & MDIC_PHYADD) >> 21 != 1 {
            return command | MDIC_ERROR | MDIC_READY;
        }
        let value = &mut self.phy[register as usize];
        if command & MDIC_WRITE != 0 {
            *value = (command & MDIC_DATA) as u16 & !(1 << 9);
        }
        command & !MDIC_DATA | u32::from(*value) | MDIC_READY
    }
}

impl Model for Card {
    fn ids(&self) -> Ids {
        Ids {
            vendor: 0x8086,
            device: 0x10d3,
            ..Ids::default()
        }
    }

    fn bars(&self) -> [usize; 6] {
        [WINDOW, 0, 0, 0, 0, 0]
    }

    fn vectors(&self) -> u16 {
        5
    }

    fn read(&mut self, _: &mut World, _: u8, at: usize, _: usize) -> u32 {
        let value = self.get(at);
        if at == RDFPC.at {
            return self.waiting.len() as u32;
        }
        if at == STATUS.at {
            let up = self.link && self.phy[0] & 1 << 11 == 0;
            let link = if up { STATUS_LU } else { 0 };
            let master = if self.is_on(CTRL.at, CTRL_MASTER_DISABLE) {
                0
            } else {
                STATUS_MASTER_ENABLE
            };
            return STATUS_FD | 2 << 6 | link | master;
        }
        let low_half = [GORCL.at, GOTCL.at].contains(&at);
        if at == ICR.at && (self.get(IMS.at) == 0 || value & self.get(IMS.at) != 0) {
            self.set(ICR.at, 0);
        } else if STATISTICS.contains(&at) && !low_half {
            self.set(at, 0);
            if [GORCH.at, GOTCH.at].contains(&at) {
                self.set(at - 4, 0);
            }
        }
        value
    }

    fn write(&mut self, world: &mut World, _: u8, at: usize, _: usize, value: u32) {
        let queue = (at >> 8) & 1;
        let stops = [CTRL.at, RCTL.at, TCTL.at, TARC.of(0), TARC.of(1)];
        match at {
            at if self.stubborn && stops.contains(&at) => {}
            at if at == CTRL.at && value & CTRL_RST != 0 => self.clear(),
            at if at == STATUS.at || STATISTICS.contains(&at) => {}
            at if at == ICR.at => self.set(at, self.get(at) & !value),
            at if at == IMS.at => {
                self.set(at, self.get(at) | value);
                self.cause(world, 0);
            }
            at if at == IMC.at => self.set(IMS.at, self.get(IMS.at) & !value),
            at if at == MDIC.at => {
                let answer = self.phy(value);
                self.set(at, answer);
            }
            at if at == RDT.of(queue) => {
                self.set(at, value & 0xffff);
                self.deliver(world);
            }
            at if at == TDT.of(queue) => {
                self.set(at, value & 0xffff);
                self.send(world, queue);
            }
            at if at == RDLEN.of(queue) || at == TDLEN.of(queue) => self.set(at, value & 0xfff80),
            at if at == RDH.of(queue) || at == TDH.of(queue) => self.set(at, value & 0xffff),
            at => self.set(at, value),
        }
    }

    fn reset(&mut self, _: &mut World) {
        self.clear();
    }

    fn lie(&mut self, bits: u64) {
        self.lie = bits;
    }
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low & !0xf)
}
