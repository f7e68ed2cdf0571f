//! When event queues interrupt.

use pollux_card_model::SimulatedCard;
use pollux_card_model::registers::{event, host};
use pollux_pmd::bus::Device;

use super::{Make, US, end, rig};
use crate::rig::{Form, Rig, datagram};

/// Interrupts that have come, of each vector.
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

/// After so many events, so long after the first one, at once if some were overlooked; once for each
/// time that the queue is armed.
pub fn interrupts_come_by_count_or_by_time<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = rig(make);
    let _vectors = rig.device.interrupts(8).unwrap();
    rig.add_list(0, 64, 1000);
    rig.add_stream(0, 0, 5000, Form::Payload);
    rig.enable(0);
    let write = |rig: &Rig<C>, register, value| rig.write(&event::THIS, 0, register, 0, value);
    // A queue that is not armed interrupts nobody.
    announce(&rig, 2);
    assert_eq!(interrupts(&rig), [0; 8]);
    // Two were overlooked.
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
