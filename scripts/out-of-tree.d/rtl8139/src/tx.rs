//! The transmit queue: four slots that frames are copied into (section 5.1).

use pollux_pmd::bus::{Bus as _, Device};
use pollux_pmd::driver::TxDriver;
use pollux_pmd::drivers::dma::DmaArea;
use pollux_pmd::ledger::Sent;
use pollux_pmd::mempool::{BurstMut, Mbuf, PoolCache};

use crate::nic::{LONGEST, Nic};
use crate::registers::{COMMAND_TX, SUMMARY, SUMMARY_OK, SUMMARY_OWN, TSAD, TSD, TSD_SIZE};

const SLOTS: usize = 4;
const SLOT: usize = 2048;
pub const BYTES: usize = SLOTS * SLOT;

/// The card does not pad frames (IEEE 802.3 section 4.2.8).
const SHORTEST: usize = 60;

#[repr(align(128))] // as CachePadded: no line shared with another loop
pub struct Tx<D: Device> {
    nic: Nic<D>,
    area: DmaArea,
    /// Bytes of the frame in each slot that is on its way.
    posted: [Option<usize>; SLOTS],
    /// The slot of the next frame, and of the oldest that is on its way.
    next: usize,
    oldest: usize,
}

impl<D: Device> Tx<D> {
    pub fn new(nic: Nic<D>, area: DmaArea, slots: u32) -> Self {
        for slot in 0..SLOTS {
            let at = slots + (slot * SLOT) as u32;
            nic.bus.write32(TSAD.of(slot), at);
        }
        Self {
            nic,
            area,
            posted: [None; SLOTS],
            next: 0,
            oldest: 0,
        }
    }

    /// Counts the frames that the card is done with, in order. One read for all slots.
    fn reclaim(&mut self, sent: &mut Sent) {
        if self.posted[self.oldest].is_none() {
            return;
        }
        let summary = self.nic.bus.read16(SUMMARY);
        if summary == u16::MAX {
            // It is gone.
            return;
        }
        while let Some(len) = self.posted[self.oldest]
            && summary & SUMMARY_OWN << self.oldest != 0
        {
            if summary & SUMMARY_OK << self.oldest == 0 {
                sent.count_errors(1);
            } else {
                sent.count(1, len as u64);
            }
            self.posted[self.oldest] = None;
            self.oldest = (self.oldest + 1) % SLOTS;
        }
    }

    /// Copies a frame into a slot, padded; false if it is too long, or empty.
    fn copy(&mut self, slot: usize, frame: &Mbuf) -> bool {
        let len = frame.total_len();
        if !(1..=LONGEST).contains(&len) {
            return false;
        }
        let base = slot * SLOT;
        let mut at = base;
        for segment in frame.segments() {
            if !self.area.write(at, segment) {
                return false;
            }
            at += segment.len();
        }
        len >= SHORTEST || self.area.write(at, &[0; SHORTEST][len..])
    }
}

impl<D: Device> TxDriver for Tx<D> {
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        self.reclaim(sent);
        burst.take_while(|frame| {
            let (slot, len) = (self.next, frame.total_len());
            if self.posted[slot].is_some() {
                return Err(frame);
            }
            if self.copy(slot, &frame) {
                // The size, and the card's turn: the write is behind the copy.
                let size = len.max(SHORTEST) as u32 & TSD_SIZE;
                self.nic.bus.write32(TSD.of(slot), size);
                self.posted[slot] = Some(len);
                self.next = (slot + 1) % SLOTS;
            } else {
                sent.count_errors(1);
            }
            cache.free(frame);
            Ok(())
        })
    }

    fn finish(&mut self, sent: &mut Sent) {
        let nic = self.nic.clone();
        nic.wait(|| {
            self.reclaim(sent);
            self.posted[self.oldest].is_none()
        });
        let lost = self.posted.iter_mut().filter_map(Option::take).count();
        sent.count_errors(lost as u64);
    }
}

impl<D: Device> Drop for Tx<D> {
    fn drop(&mut self) {
        self.nic.disable(COMMAND_TX);
    }
}
