//! The receive queue: a ring of bytes, in which each frame has a word in front of it (section 5.3).

use pollux_pmd::bus::{Bus as _, Device};
use pollux_pmd::driver::{Origin, RxDriver};
use pollux_pmd::drivers::dma::{Assembly, DmaArea};
use pollux_pmd::mempool::{BurstMut, PoolCache};
use pollux_pmd::port::SharedRxState;
use pollux_pmd::{Cause, Clock as _, RxState, Tally, TscClock};

use crate::nic::{LONGEST, Nic};
use crate::registers::{
    COMMAND, COMMAND_RX, COMMAND_TX, GOOD, LENGTH_SHIFT, MPC, MPC_COUNT, RCR, READ_AT, READ_BIAS,
    WRITE_AT,
};

/// The ring. A frame that begins in it goes on behind its end, which needs as much more.
const RING: usize = 32 << 10;
pub const BYTES: usize = RING + 2048;

/// In front of a frame, and its check sequence behind it.
const WORD: usize = 4;
const CHECK: usize = 4;

/// Shortest frame that a header may announce: addresses and type.
const SHORTEST: usize = 14;

#[repr(align(128))] // as CachePadded: no line shared with another loop
pub struct Rx<D: Device> {
    nic: Nic<D>,
    area: DmaArea,
    /// As of the last `Driver::link`.
    state: SharedRxState,
    /// The receive configuration, which resets the ring when it is written.
    receive: u32,
    /// Where the next frame begins.
    at: usize,
    frame: Assembly,
    clock: TscClock,
}

impl<D: Device> Rx<D> {
    pub fn new(nic: Nic<D>, area: DmaArea, state: SharedRxState, receive: u32) -> Self {
        Self {
            nic,
            area,
            state,
            receive,
            at: 0,
            frame: Assembly::new(),
            clock: TscClock::get(),
        }
    }

    /// Bytes that the card has put into the ring, whole frames. One read of a register for all
    /// frames of a burst, and none while the ring is empty: the word of the next frame is zero then.
    fn written(&self) -> usize {
        if self.area.load(self.at) == 0 {
            return 0;
        }
        let end = usize::from(self.nic.bus.read16(WRITE_AT)) % RING;
        (end + RING - self.at) % RING
    }

    /// The length of the next frame, without its check sequence, if what is in front of it can be.
    fn next(&self, left: usize) -> Option<usize> {
        let word = self.area.load(self.at);
        let len = ((word >> LENGTH_SHIFT) as usize).checked_sub(CHECK)?;
        let fits = (SHORTEST..=LONGEST).contains(&len) && taken(len) <= left;
        (word & GOOD != 0 && fits).then_some(len)
    }

    /// Goes past a frame. Its place is zeroed, so that an old word is not taken for a new one.
    fn skip(&mut self, len: usize) {
        let bytes = taken(len);
        for offset in (0..bytes).step_by(WORD) {
            self.area.store(self.at + offset, 0);
        }
        self.at = (self.at + bytes) % RING;
    }

    /// Where frames begin is lost: the ring begins anew, and what is in it is one loss.
    #[cold]
    fn resynchronise(&mut self, tally: &mut Tally) {
        tally.count_from_wire(1, 0);
        tally.count_dropped(Cause::DeviceError, 1);
        self.nic.bus.write8(COMMAND, COMMAND_TX);
        for offset in (0..BYTES).step_by(WORD) {
            self.area.store(offset, 0);
        }
        self.nic.bus.write8(COMMAND, COMMAND_TX | COMMAND_RX);
        self.nic.bus.write32(RCR.at, self.receive);
        self.at = 0;
        self.release();
    }

    /// Tells the card how far the ring has been read.
    fn release(&self) {
        let at = (self.at as u16).wrapping_sub(READ_BIAS);
        self.nic.bus.write16(READ_AT, at);
    }
}

/// Bytes of the ring that a frame takes: frames begin at multiples of four.
fn taken(len: usize) -> usize {
    (WORD + len + CHECK).next_multiple_of(WORD)
}

impl<D: Device> RxDriver for Rx<D> {
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        let mut left = self.written();
        if left == 0 {
            return 0;
        }
        let (before, now) = (out.len(), self.clock.now());
        let (mut frames, mut bytes) = (0, 0);
        // Each frame takes bytes of those that were there at the start: the loop passes over the
        // ring at most once.
        while left > 0 && out.free() > 0 {
            let Some(len) = self.next(left) else {
                self.resynchronise(tally);
                break;
            };
            frames += 1;
            bytes += len as u64;
            let at = self.at + WORD;
            let whole = self
                .area
                .read_into(at, len, &mut self.frame, || cache.alloc());
            match self.frame.finish().filter(|_| whole) {
                Some(mut mbuf) => {
                    origin.stamp(&mut mbuf, now);
                    // It fits: there was room when the round began.
                    drop(out.push(mbuf));
                }
                None => tally.count_dropped(Cause::NoMbuf, 1),
            }
            self.skip(len);
            left -= taken(len);
        }
        if frames > 0 {
            tally.count_from_wire(frames, bytes);
            self.release();
        }
        out.len() - before
    }

    fn state(&self) -> RxState {
        self.state.get()
    }

    fn sync_counters(&mut self, tally: &mut Tally) {
        let missed = self.nic.bus.read32(MPC.at);
        // All ones are those of a device that is gone.
        if missed != u32::MAX && missed & MPC_COUNT != 0 {
            // Any write clears it.
            self.nic.bus.write32(MPC.at, 0);
            let missed = u64::from(missed & MPC_COUNT);
            tally.count_from_wire(missed, 0);
            tally.count_dropped(Cause::RingFull, missed);
        }
    }

    fn finish(&mut self, tally: &mut Tally) {
        let mut left = self.written();
        while left > 0
            && let Some(len) = self.next(left)
        {
            tally.count_from_wire(1, len as u64);
            tally.count_dropped(Cause::Aborted, 1);
            self.skip(len);
            left -= taken(len);
        }
        self.sync_counters(tally);
    }
}

impl<D: Device> Drop for Rx<D> {
    fn drop(&mut self) {
        self.nic.disable(COMMAND_RX);
    }
}
