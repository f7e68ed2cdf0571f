//! The card in software, from its datasheet.

use pollux_pmd::bus::Ids;
use pollux_pmd_testkit::fake::{Model, World};

const RING: usize = 32 << 10;

/// The card.
pub struct Card {
    mac: [u8; 6],
    registers: [u8; 256],
    /// Where the next frame is written to, and how far the ring has been read.
    write_at: usize,
    read_at: usize,
    missed: u32,
    /// Slots whose frame is not sent yet, and what was sent.
    waiting: [bool; 4],
    pub sent: Vec<Vec<u8>>,
    /// Frames are sent when the test says so.
    pub slow: bool,
    /// The cable.
    pub plugged: bool,
    /// Registers that were read.
    pub reads: u64,
    /// Where the last header was written.
    header: u64,
    lie: u32,
}

impl Card {
    pub fn new(mac: [u8; 6]) -> Self {
        let mut card = Self {
            mac,
            registers: [0; 256],
            write_at: 0,
            read_at: 0,
            missed: 0,
            waiting: [false; 4],
            sent: Vec::new(),
            slow: false,
            plugged: true,
            reads: 0,
            header: 0,
            lie: 0,
        };
        card.clear();
        card
    }

    fn clear(&mut self) {
        self.registers = [0; 256];
        self.registers[..6].copy_from_slice(&self.mac);
        (self.write_at, self.read_at, self.waiting) = (0, 0, [false; 4]);
        // All slots are the driver's.
        self.summary(0xf);
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = self
            .registers
            .get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok());
        u32::from_le_bytes(bytes.unwrap_or_default())
    }

    fn summary(&mut self, value: u16) {
        self.registers[0x60..0x62].copy_from_slice(&value.to_le_bytes());
    }

    fn wants(&self, to: [u8; 6]) -> bool {
        let has = |bit: u32| self.word(0x44) & bit != 0;
        let hashed = || {
            let bit = crc(&to) >> 26;
            self.registers[8 + bit as usize / 8] & 1 << (bit % 8) != 0
        };
        has(1)
            || has(1 << 1) && to == self.mac
            || has(1 << 3) && to == [0xff; 6]
            || has(1 << 2) && to[0] & 1 == 1 && to != [0xff; 6] && hashed()
    }

    /// A frame arrives on the wire.
    pub fn receive(&mut self, world: &mut World, frame: &[u8]) {
        let Some(&to) = frame.first_chunk() else {
            return;
        };
        if self.registers[0x37] & 8 == 0 || !self.wants(to) || frame.len() > 1792 {
            return;
        }
        let taken = (frame.len() + 8).next_multiple_of(4);
        let used = (self.write_at + RING - self.read_at) % RING;
        if used + taken >= RING {
            self.missed = (self.missed + 1) & 0xff_ffff;
            return;
        }
        let at = u64::from(self.word(0x30)) + self.write_at as u64;
        let lie = std::mem::take(&mut self.lie);
        let header = ((frame.len() as u32 + 4) << 16 | 1) ^ lie;
        world.write(at + 4, frame);
        world.write(at + 4 + frame.len() as u64, &[0xee; 4]);
        world.write(at, &header.to_le_bytes());
        self.header = at;
        self.write_at = (self.write_at + taken) % RING;
    }

    /// Writes over the word in front of the last frame.
    pub fn scribble(&mut self, world: &mut World, word: u32) {
        world.write(self.header, &word.to_le_bytes());
    }

    /// Sends what waits.
    pub fn work(&mut self, world: &mut World) {
        for slot in 0..4 {
            if !std::mem::take(&mut self.waiting[slot]) || self.registers[0x37] & 4 == 0 {
                continue;
            }
            let len = self.word(0x10 + 4 * slot) & 0x1fff;
            let mut frame = vec![0; len as usize];
            let sent = world.read(self.word(0x20 + 4 * slot).into(), &mut frame);
            if sent {
                self.sent.push(frame);
                // A test that lets it run does not look at all of them.
                if self.sent.len() > 1000 {
                    self.sent.clear();
                }
            }
            let done = 1 << slot | u16::from(sent) << (12 + slot);
            self.summary(self.word(0x60) as u16 | done);
        }
    }
}

/// CRC-32, the bits of each byte from the lowest.
fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        for i in 0..8 {
            let carry = crc >> 31 != u32::from(byte >> i & 1);
            crc = crc << 1 ^ if carry { 0x04c1_1db7 } else { 0 };
        }
    }
    crc
}

impl Model for Card {
    fn ids(&self) -> Ids {
        Ids {
            vendor: 0x10ec,
            device: 0x8139,
            ..Ids::default()
        }
    }

    /// Of ports, which are not used here, and of memory.
    fn bars(&self) -> [usize; 6] {
        [0, 256, 0, 0, 0, 0]
    }

    fn is_narrow(&self) -> bool {
        true
    }

    fn read(&mut self, _: &mut World, _: u8, at: usize, width: usize) -> u32 {
        self.reads += 1;
        let written = (self.write_at as u16).to_le_bytes();
        self.registers[0x3a..0x3c].copy_from_slice(&written);
        self.registers[0x4c..0x50].copy_from_slice(&self.missed.to_le_bytes());
        self.registers[0x58] = if self.plugged { 0xd0 } else { 0xd4 };
        let bytes = self.registers.iter().skip(at).take(width);
        bytes
            .rev()
            .fold(0, |word, &byte| word << 8 | u32::from(byte))
    }

    fn write(&mut self, world: &mut World, _: u8, at: usize, width: usize, value: u32) {
        match at {
            0x37 if value & 0x10 != 0 => return self.clear(),
            0x38 => self.read_at = usize::from((value as u16).wrapping_add(16)) % RING,
            0x44 => (self.write_at, self.read_at) = (0, 0),
            0x4c => self.missed = 0,
            // What is not written by drivers.
            0x00..0x06 | 0x3a | 0x58 | 0x60 => return,
            _ => {}
        }
        let bytes = value.to_le_bytes();
        let place = self.registers.iter_mut().skip(at).take(width);
        place.zip(bytes).for_each(|(to, byte)| *to = byte);
        if let 0x10..0x20 = at {
            let slot = (at - 0x10) / 4;
            self.waiting[slot] = true;
            self.summary(self.word(0x60) as u16 & !(0x1001 << slot));
            if !self.slow {
                self.work(world);
            }
        }
    }

    fn reset(&mut self, _: &mut World) {
        self.clear();
    }

    fn lie(&mut self, bits: u64) {
        self.lie = bits as u32;
    }
}
