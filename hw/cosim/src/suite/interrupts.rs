//! Interrupts of event queues, and masked vectors.

use pollux_card_model::SimulatedCard;
use pollux_card_model::registers::{card, event, host};
use pollux_pmd::bus::{Bus, Device};

use super::support::{Make, US, end, rig};
use crate::rig::{Form, Rig, datagram};

/// Interrupts received, of each vector.
fn interrupts<C: SimulatedCard>(rig: &Rig<C>) -> [u64; 8] {
    rig.device.with(|_, memory| memory.interrupts)
}

/// A payload of 48 bytes fills a buffer of 64, so that each makes an event.
fn announce<C: SimulatedCard>(rig: &Rig<C>, buffers: usize) {
    for _ in 0..buffers {
        rig.put(0, datagram(0, 7, 5000, &[1; 48]));
    }
    rig.advance(10 * US);
}

/// After a number of events, a time after the first one, at once if some were missed; once for each
/// arming of the queue.
pub fn interrupts_come_by_count_or_by_time<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = rig(make);
    let _vectors = rig.device.interrupts(8).unwrap();
    let status = rig.read(&host::THIS, 0, host::STATUS, 0);
    assert_eq!(status & 7, 7, "idle, a master, with MSI-X");
    rig.add_list(0, 64, 1000);
    rig.add_stream(0, 0, 5000, Form::Payload);
    rig.enable(0);
    let write = |rig: &Rig<C>, register, value| rig.write(&event::THIS, 0, register, 0, value);
    // A queue that is not armed does not interrupt.
    announce(&rig, 2);
    assert_eq!(interrupts(&rig), [0; 8]);
    // Two were missed.
    write(&rig, event::QUEUE_COUNT, 4);
    write(&rig, event::QUEUE_HOLD, 250_000);
    write(&rig, event::QUEUE_ARM, 0);
    rig.advance(10 * US);
    assert_eq!(interrupts(&rig)[0], 1);
    // Armed with all of them seen: the fourth one counts.
    write(&rig, event::QUEUE_ARM, 2);
    announce(&rig, 3);
    assert_eq!(interrupts(&rig)[0], 1);
    announce(&rig, 1);
    assert_eq!(interrupts(&rig)[0], 2);
    announce(&rig, 8);
    assert_eq!(interrupts(&rig)[0], 2, "it is not armed any more");
    // 100 us after the first one.
    write(&rig, event::QUEUE_HOLD, 25_000);
    write(&rig, event::QUEUE_ARM, 14);
    announce(&rig, 1);
    assert_eq!(interrupts(&rig)[0], 2);
    rig.advance(70 * US);
    assert_eq!(interrupts(&rig)[0], 2, "too soon");
    rig.advance(40 * US);
    assert_eq!(interrupts(&rig), [3, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(rig.read64(&host::THIS, 0, host::INTERRUPTS, 0), 3);
    assert_eq!(rig.receive().len(), 15);
    end(rig);
}

/// The window of vectors, of 16 bytes each: the word that masks one, and the pending bits.
const VECTORS: usize = 8;
const WINDOW: (u8, usize) = (2, 8192);
const CONTROL: usize = 12;
const PENDING: usize = 0x1000;

/// A masked vector keeps one interrupt until it is unmasked (PCIe 4.0 section 6.1.4); all are masked
/// after power-on. A reset by register clears pending interrupts, and no mask.
pub fn a_masked_vector_keeps_its_interrupt<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = rig(make);
    let table = rig.device.bar(WINDOW.0, WINDOW.1).unwrap();
    let masks = || (0..VECTORS).map(|vector| table.read32(16 * vector + CONTROL));
    assert!(masks().all(|mask| mask == 1), "after power");
    let vectors = rig.device.interrupts(8).unwrap();
    assert!(masks().all(|mask| mask == 0), "programmed");
    rig.add_list(0, 64, 1000);
    rig.add_stream(0, 0, 5000, Form::Payload);
    rig.enable(0);
    let mut seen = 0;
    let mut arm_and_announce = |rig: &Rig<C>| {
        rig.write(&event::THIS, 0, event::QUEUE_ARM, 0, seen);
        announce(rig, 1);
        seen += 1;
    };
    table.write32(CONTROL, 1);
    arm_and_announce(&rig);
    arm_and_announce(&rig);
    // Only whole words are written.
    table.write8(CONTROL, 0);
    table.write16(CONTROL, 0);
    assert_eq!((table.read32(CONTROL), table.read32(PENDING)), (1, 1));
    assert_eq!(interrupts(&rig), [0; 8]);
    table.write32(CONTROL, 0);
    rig.advance(5 * US);
    assert_eq!(table.read32(PENDING), 0);
    assert_eq!(interrupts(&rig)[0], 1, "asked for twice, it came once");
    // While MSI-X is off as a whole.
    drop(vectors);
    arm_and_announce(&rig);
    assert_eq!((table.read32(PENDING), interrupts(&rig)[0]), (1, 1));
    let _vectors = rig.device.interrupts(8).unwrap();
    rig.advance(5 * US);
    assert_eq!((table.read32(PENDING), interrupts(&rig)[0]), (0, 2));
    assert_eq!(rig.receive().len(), 3);
    table.write32(CONTROL, 1);
    arm_and_announce(&rig);
    assert_eq!(table.read32(PENDING), 1);
    rig.write(&card::THIS, 0, card::CTRL, 0, 1);
    rig.advance(5 * US);
    assert_eq!((table.read32(CONTROL), table.read32(PENDING)), (1, 0));
    assert_eq!(interrupts(&rig), [2, 0, 0, 0, 0, 0, 0, 0]);
    end(rig);
}
