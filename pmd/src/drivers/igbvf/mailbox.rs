//! The virtual function's end of its mailbox (datasheet section 8.26; `igb/mailbox.rs` is the other
//! end).

use pollux_mempool::time::Ns;

use super::registers::{
    MAILBOX_MEMORY, V2PMAILBOX, V2PMAILBOX_ACKNOWLEDGE, V2PMAILBOX_PF_ACKNOWLEDGED,
    V2PMAILBOX_PF_RESET_DONE, V2PMAILBOX_PF_RESETS, V2PMAILBOX_PF_SENT, V2PMAILBOX_SENT,
    V2PMAILBOX_VF_HAS_BUFFER,
};
use crate::bus::Bus;
use crate::clock::Clock;
use crate::drivers::igb::message::{Reply, Request};
use crate::net::MacAddr;

/// Why a VF does not have what it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Its PF has no driver, or is being reset.
    Absent,
    /// It got no answer in time.
    Silent,
    /// The PF says no.
    Refused,
    /// The PF no longer knows of this VF's reset: it must begin anew.
    Forgotten,
}

/// How long a PF's driver may take for one step. (Linux's igbvf waits for one second.)
const PATIENCE: Ns = Ns(2_000_000_000);

/// Messages that are no answer which may come before the answer: Linux's igb tells its VFs of
/// itself when its link changes. A PF that sends more of them does not answer.
const ASIDES: usize = 8;

/// Bits of the register that reading it clears.
const CLEARED: u32 = V2PMAILBOX_PF_SENT | V2PMAILBOX_PF_ACKNOWLEDGED | V2PMAILBOX_PF_RESET_DONE;

/// A VF's end of its mailbox.
pub(super) struct VfEnd<B, C> {
    bus: B,
    clock: C,
    /// Bits that a read has cleared and that have not been consumed yet.
    seen: u32,
}

impl<B: Bus, C: Clock> VfEnd<B, C> {
    /// The mailbox of the VF with these registers.
    pub(super) fn new(bus: B, clock: C) -> Self {
        let seen = 0;
        Self { bus, clock, seen }
    }

    /// Whether the PF is being reset, or was since this was asked last.
    pub(super) fn pf_was_reset(&mut self) -> bool {
        self.has(V2PMAILBOX_PF_RESETS | V2PMAILBOX_PF_RESET_DONE)
    }

    /// Waits until the PF has a driver, and that is done with its own reset.
    ///
    /// # Errors
    /// [`Failure::Absent`]; also where the device is gone, and reads all ones.
    pub(super) fn wait_for_pf(&mut self) -> Result<(), Failure> {
        let ready = self.wait(|end| end.register() & V2PMAILBOX_PF_RESETS == 0);
        // What the PF said before was not for us.
        self.seen = 0;
        ready.then_some(()).ok_or(Failure::Absent)
    }

    /// Asks, and waits for the answer: for a reset, the address that the VF is given.
    ///
    /// # Errors
    /// [`Failure`]; the PF may be in the middle of an answer then, which the next request throws
    /// away.
    pub(super) fn ask(&mut self, request: &Request) -> Result<MacAddr, Failure> {
        let (message, len) = request.message();
        self.lock()?;
        self.seen &= !(V2PMAILBOX_PF_SENT | V2PMAILBOX_PF_ACKNOWLEDGED);
        for (i, &word) in message.iter().take(len).enumerate() {
            self.bus.write32(MAILBOX_MEMORY.of(i), word);
        }
        // Gives the buffer back, too.
        self.bus.write32(V2PMAILBOX.at, V2PMAILBOX_SENT);
        self.wait_for(V2PMAILBOX_PF_ACKNOWLEDGED)?;
        for _ in 0..=ASIDES {
            self.wait_for(V2PMAILBOX_PF_SENT)?;
            self.lock()?;
            let words = std::array::from_fn(|i| self.bus.read32(MAILBOX_MEMORY.of(i)));
            self.bus.write32(V2PMAILBOX.at, V2PMAILBOX_ACKNOWLEDGE);
            match request.reply(words) {
                Some(Reply::Granted(mac)) => return Ok(mac),
                Some(Reply::Refused) => return Err(Failure::Refused),
                Some(Reply::ResetFirst) => return Err(Failure::Forgotten),
                None => {}
            }
        }
        Err(Failure::Silent)
    }

    /// The register; what reading clears is kept.
    fn register(&mut self) -> u32 {
        let now = self.bus.read32(V2PMAILBOX.at) | self.seen;
        self.seen = now & CLEARED;
        now
    }

    /// Whether one of these bits was set since they were asked for last.
    fn has(&mut self, bits: u32) -> bool {
        let found = self.register() & bits != 0;
        self.seen &= !bits;
        found
    }

    fn wait_for(&mut self, bit: u32) -> Result<(), Failure> {
        self.wait(|end| end.has(bit))
            .then_some(())
            .ok_or(Failure::Silent)
    }

    fn lock(&mut self) -> Result<(), Failure> {
        let locked = self.wait(|end| {
            end.bus.write32(V2PMAILBOX.at, V2PMAILBOX_VF_HAS_BUFFER);
            end.register() & V2PMAILBOX_VF_HAS_BUFFER != 0
        });
        locked.then_some(()).ok_or(Failure::Silent)
    }

    fn wait(&mut self, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let clock = self.clock.clone();
        clock.wait(PATIENCE, || done(self))
    }
}
