//! Shared by the tests of the suite: a rig around a card, its counters and frames.

use pollux_card_model::registers::port;
use pollux_card_model::{Register, SimulatedCard, WireFrame};

use crate::CosimDevice;
use crate::rig::{Payload, Rig};

/// Makes cards.
pub type Make<'a, C> = &'a dyn Fn() -> C;

/// A microsecond, in picoseconds.
pub(super) const US: u64 = 1_000_000;

/// A card with the minimum of software.
pub(super) fn rig<C: SimulatedCard>(make: Make<'_, C>) -> Rig<C> {
    Rig::new(CosimDevice::new(make())).unwrap()
}

/// Waits until all frames have arrived, and reads announced buffers; then flushes the rest.
pub(super) fn settle<C: SimulatedCard>(rig: &mut Rig<C>) -> Vec<Payload> {
    let mut found = Vec::new();
    for _ in 0..1000 {
        rig.advance(2 * US);
        found.append(&mut rig.receive());
        let coming: usize = (0..4)
            .map(|port| rig.device.with(|card, _| card.coming(port)))
            .sum();
        if coming == 0 {
            break;
        }
    }
    rig.advance(5 * US);
    found.append(&mut rig.flush());
    assert_eq!(rig.wrong, 0, "announcements that cannot be");
    found
}

/// A counter of a port.
pub(super) fn count<C: SimulatedCard>(rig: &Rig<C>, which: usize, register: Register) -> u64 {
    rig.read64(&port::THIS, which, register, 0)
}

/// All frames that a port has sent, once they have left.
pub(super) fn sent<C: SimulatedCard>(rig: &Rig<C>, which: usize) -> Vec<WireFrame> {
    rig.advance(20 * US);
    let take = || rig.device.with(|card, _| card.take(which));
    std::iter::from_fn(take).collect()
}

/// Ends a test: the card has made no forbidden access.
pub(super) fn end<C: SimulatedCard>(rig: Rig<C>) {
    let trespasses = rig.device.with(|_, memory| memory.trespasses);
    assert_eq!(trespasses, 0, "accesses to memory that is not the card's");
    drop(rig);
}
