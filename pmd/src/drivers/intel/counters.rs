//! What the devices count in registers that reading sets to zero, so that they are added up here;
//! and the frames among them that no descriptor tells of, for the ledger.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::bus::Bus;
use crate::bus::registers::Register;
use crate::driver::Statistics;
use crate::ledger::{Cause, Tally};

/// The sums of some registers. Any thread may read registers into them: what a register has is
/// added by the one who takes it.
pub(crate) struct Sums {
    registers: &'static [Register],
    sums: Box<[AtomicU64]>,
}

impl Sums {
    /// Of these registers, nothing so far.
    pub(crate) fn new(registers: &'static [Register]) -> Self {
        let sums = registers.iter().map(|_| AtomicU64::new(0)).collect();
        Self { registers, sums }
    }

    /// Discards the counts of the device's previous owner.
    pub(crate) fn clear(&self, bus: &impl Bus) {
        for register in self.registers {
            bus.read32(register.at);
        }
    }

    /// All of them, by name.
    pub(crate) fn statistics(&self, bus: &impl Bus) -> Statistics {
        let all = self.registers.iter().zip(&self.sums);
        all.map(|(register, sum)| (register.text.into(), take(bus, register, sum)))
            .collect()
    }

    fn find(&self, register: &Register) -> Option<&AtomicU64> {
        let at = self.registers.iter().position(|it| it.at == register.at)?;
        self.sums.get(at)
    }
}

/// Adds what a register has to its sum, which it returns.
fn take(bus: &impl Bus, register: &Register, sum: &AtomicU64) -> u64 {
    let more = match bus.read32(register.at) {
        // A counter that sticks, or a device that is gone: nothing is known.
        u32::MAX => 0,
        more => u64::from(more),
    };
    sum.fetch_add(more, Relaxed) + more
}

/// Frames that a device lost before any descriptor: the registers that count them, and why.
pub(crate) type Lost = &'static [(Register, Cause)];

/// Takes what the device has lost into the ledger. One queue of a port does it for all.
pub(crate) struct Losses {
    lost: Lost,
    /// Of each, how much the ledger has been told.
    told: Box<[u64]>,
}

impl Losses {
    /// Those that come from here on: the sums outlive the ledgers of the port's earlier starts.
    pub(crate) fn after(sums: &Sums, lost: Lost) -> Self {
        let so_far = |(register, _): &_| sums.find(register).map_or(0, |sum| sum.load(Relaxed));
        let told = lost.iter().map(so_far).collect();
        Self { lost, told }
    }

    /// Counts the frames that were lost since the last time, as from the wire and as dropped.
    pub(crate) fn tell(&mut self, sums: &Sums, bus: &impl Bus, tally: &mut Tally) {
        for ((register, cause), told) in self.lost.iter().zip(&mut self.told) {
            let Some(sum) = sums.find(register) else {
                continue;
            };
            let sum = take(bus, register, sum);
            let lost = sum.wrapping_sub(*told);
            if lost > 0 {
                *told = sum;
                tally.count_from_wire(lost, 0);
                tally.count_dropped(*cause, lost);
            }
        }
    }
}
