//! Queues of advanced descriptors with one buffer each (sections 7.1.5 and 7.2.2).

use std::collections::VecDeque;

use pollux_pmd::drivers::igb::registers::*;

use super::Chip;
use super::offsets::queue::{CONTROL, ENABLED, HEAD, LEN, SPLIT, TAIL};
use super::offsets::{self, POOL_STATISTICS};
use crate::fake::World;
use crate::models::checksum::insert_sum;

/// Bits of descriptors.
const DONE: u32 = 1;
const LAST: u32 = 1 << 1;
const TX_LAST: u32 = 1 << 24;
const TX_REPORT: u32 = 1 << 27;
const TX_EXTENDED: u32 = 1 << 29;
const TX_KIND: u32 = 15 << 20;
const TX_CONTEXT: u32 = 2 << 20;
/// In a context: TCP; UDP without it, as other protocols are not known here.
const TX_TCP: u32 = 1 << 11;
/// In a data descriptor, in the last word: have the checksum of TCP or UDP finished.
const TX_SUMMED: u32 = 1 << 9;

/// Longest frame that is put together: a hostile driver's would have no end.
const MOST: usize = 16384;

impl Chip {
    fn ring(&self, base: usize) -> (u64, u32) {
        let address = u64::from(self.get(base)) | u64::from(self.get(base + 4)) << 32;
        (address, self.get(base + LEN) / 16)
    }

    /// Whether a queue may work at all.
    fn is_on(&self, base: usize, queue: usize, global: bool, pools: usize) -> bool {
        let pool = !self.pool_mode() || self.has(pools, 1 << (queue % 8));
        global && pool && (self.has(base + CONTROL, ENABLED) || self.deaf)
    }

    /// Sends what is between head and tail.
    pub(super) fn send(&mut self, queue: usize, world: &mut World) {
        let base = TX.of(queue);
        let (ring, len) = self.ring(base);
        let global = self.has(TCTL.at, TCTL_ENABLE);
        if !self.is_on(base, queue, global, VFTE.at)
            || self.get(base + TAIL) >= len
            || self.get(base + HEAD) >= len
        {
            return;
        }
        let (mut frame, mut is_summed) = (Vec::new(), false);
        while self.get(base + HEAD) != self.get(base + TAIL) {
            let head = self.get(base + HEAD);
            let at = ring + 16 * u64::from(head);
            let mut descriptor = [0; 16];
            if !world.read(at, &mut descriptor) {
                return;
            }
            let [address, rest] = [0, 8].map(|i| {
                let word = descriptor
                    .get(i..i + 8)
                    .and_then(|word| word.try_into().ok());
                u64::from_le_bytes(word.unwrap_or_default())
            });
            let command = rest as u32;
            if command & (TX_EXTENDED | TX_KIND) == TX_EXTENDED | TX_CONTEXT {
                let (lengths, field) =
                    (address as usize, if command & TX_TCP == 0 { 6 } else { 16 });
                let start = (lengths & 0x1ff) + (lengths >> 9 & 0x7f);
                if let Some(context) = self.contexts.get_mut(queue) {
                    *context = (start, start + field);
                }
                self.set(base + HEAD, (head + 1) % len);
                continue;
            }
            is_summed |= rest >> 32 & u64::from(TX_SUMMED) != 0;
            let mut bytes = vec![0; (command & 0xffff) as usize];
            let fits = frame.len() + bytes.len() <= MOST;
            if fits && command & TX_EXTENDED != 0 && world.read(address, &mut bytes) {
                frame.extend(bytes);
            }
            if command & TX_LAST != 0 {
                let mut frame = std::mem::take(&mut frame);
                if std::mem::take(&mut is_summed)
                    && let Some(&(start, field)) = self.contexts.get(queue)
                {
                    insert_sum(&mut frame, start, field);
                }
                self.transmit(queue, frame);
            }
            if command & TX_REPORT != 0 {
                world.write(at + 12, &DONE.to_le_bytes());
            }
            self.set(base + HEAD, (head + 1) % len);
        }
    }

    /// A frame goes from a queue to the switch.
    fn transmit(&mut self, queue: usize, mut frame: Vec<u8>) {
        if frame.len() < 14 {
            return;
        }
        frame.resize(frame.len().max(60), 0);
        let source = self.pool_mode().then_some(queue % 8);
        let mine = POOL_STATISTICS + 0x100 * (queue % 8);
        self.set(mine + 0x14, self.get(mine + 0x14).wrapping_add(1));
        self.set(0x4080, self.get(0x4080).wrapping_add(1));
        self.switch(frame, source);
    }

    /// Puts a frame in front of a queue.
    pub(super) fn enqueue(&mut self, queue: usize, frame: Vec<u8>) {
        if let Some(arrived) = self.arrived.get_mut(queue) {
            arrived.push_back(frame);
        }
    }

    /// Writes what has arrived for a queue into its buffers.
    pub(super) fn deliver(&mut self, queue: usize, world: &mut World) {
        let base = RX.of(queue);
        let global = self.has(RCTL.at, RCTL_ENABLE);
        while let Some(frame) = self.arrived.get_mut(queue).and_then(VecDeque::pop_front) {
            if !self.is_on(base, queue, global, VFRE.at) {
                continue;
            }
            if !self.write_frame(base, &frame, world) {
                // No descriptors: the queue drops, or the packet buffer does when it is full.
                let split = self.get(base + SPLIT);
                let drops = split >> 31 != 0 || self.has(QDE.at, 1 << queue);
                let (counter, last) = if drops {
                    (base + offsets::queue::DROPPED, 0xfff)
                } else {
                    (MPC.at, u32::MAX)
                };
                self.set(counter, self.get(counter).wrapping_add(1) & last);
            }
        }
    }

    fn write_frame(&mut self, base: usize, frame: &[u8], world: &mut World) -> bool {
        let (ring, len) = self.ring(base);
        let buffer = (self.get(base + SPLIT) as usize & 0x7f) << 10;
        let (mut head, tail) = (self.get(base + HEAD), self.get(base + TAIL));
        if buffer == 0 || tail >= len || head >= len {
            return false;
        }
        let free = (tail + len - head) % len;
        let pieces = frame.len().div_ceil(buffer) as u32;
        if free < pieces {
            return false;
        }
        let [about, hash] = self.described(frame);
        for (piece, n) in frame.chunks(buffer).zip(1..) {
            let at = ring + 16 * u64::from(head);
            let mut address = [0; 8];
            if world.read(at, &mut address) {
                world.write(u64::from_le_bytes(address), piece);
            }
            let status = DONE
                | if n == pieces {
                    LAST | self.checked(frame)
                } else {
                    0
                };
            let lie = std::mem::take(&mut self.lie);
            let status = status ^ lie as u32 | DONE;
            let written = piece.len() as u32 ^ (lie >> 48) as u32;
            let mut back = [0; 16];
            for (to, word) in back.chunks_mut(4).zip([about, hash, status, written]) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            world.write(at, &back);
            head = (head + 1) % len;
        }
        self.set(base + HEAD, head);
        self.set(GPRC.at, self.get(GPRC.at).wrapping_add(1));
        let pool = POOL_STATISTICS + 0x100 * ((base - RX.at) / 0x40 % 8);
        self.set(pool + 0x10, self.get(pool + 0x10).wrapping_add(1));
        true
    }
}
