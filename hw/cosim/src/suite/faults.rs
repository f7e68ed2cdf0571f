//! TLB faults of each function: `hw/docs/functions.md`.

use pollux_card_model::SimulatedCard;
use pollux_card_model::registers::{clop, event, functions, host, tlb};
use pollux_pmd::bus::{Bus, Device};

use super::functions::{GROUP, WINDOW, assert_received, rigs, send, shared};
use super::pages::fault_in;
use super::support::{Make, US, end};
use crate::rig::{Page, Rig};

/// A missing page is reported in the queue of its function alone, which enters it and loses nothing. A queue that is full, or another's, costs its own function alone, and no fault outlives a reset.
pub fn missing_pages_are_told_to_their_function<C: SimulatedCard>(make: Make<'_, C>) {
    /// Queues for faults, of functions 0 to 2.
    const QUEUES: [usize; 3] = [7, 3, 4];
    const PAGE: Page = Page {
        virt: 0,
        at: 0,
        log2: 24,
        func: 0,
        key: 0,
        writable: true,
    };
    let device = shared(make);
    let bus = device.bar(0, WINDOW).unwrap();
    bus.write32(functions::THIS.at + functions::QUEUE_OWNERS.at, 0x0002_1210);
    // 2 ms.
    bus.write32(tlb::THIS.at + tlb::TIMEOUT.at, 500_000);
    let mut rigs = rigs(&device);
    let tell = |rig: &Rig<C>, which: usize, queue: usize| {
        let control = (queue as u32) << 8 | 1;
        rig.write(&functions::THIS, 0, functions::FAULT_CTRL, which, control);
        assert_eq!(
            rig.read(&functions::THIS, 0, functions::FAULT_CTRL, which),
            control
        );
    };
    let produced = |rig: &Rig<C>, queue| rig.read(&event::THIS, 0, event::QUEUE_PRODUCED, queue);
    for (which, rig) in rigs.iter().enumerate() {
        tell(rig, which, QUEUES[which]);
        // Queue 3 is enabled already.
        if which != 1 {
            rig.begin_queue(QUEUES[which]);
        }
    }
    for which in [1, 2, 0] {
        rigs[which].leave(which * GROUP);
        send(&rigs[which], which, 0..10);
        rigs[which].advance(60 * US);
        let told = fault_in(&mut rigs[which], QUEUES[which]);
        let base = rigs[which].read64(&clop::THIS, 0, clop::LIST_BASE, 32 * which);
        assert_eq!(told, Some((base, which as u32, 0)));
        for (other, rig) in rigs.iter_mut().enumerate() {
            assert_eq!(fault_in(rig, QUEUES[other]), None, "{which} to {other}");
        }
        rigs[which].enter(which * GROUP, PAGE);
        assert_received(&mut rigs[which], which, 0..10);
    }
    // Function 1 names a queue of function 0.
    let before = (produced(&rigs[0], 0), produced(&rigs[0], QUEUES[0]));
    let discarded = |rig: &Rig<C>| rig.read64(&host::THIS, 0, host::EVENTS_DISCARDED, 0);
    assert_eq!(discarded(&rigs[0]), 0);
    for (n, queue) in [0, QUEUES[0]].into_iter().enumerate() {
        tell(&rigs[1], 1, queue);
        rigs[1].leave(GROUP);
        send(&rigs[1], 1, 10 + n..11 + n);
        rigs[1].advance(20 * US);
        assert_eq!(discarded(&rigs[0]), n as u64 + 1);
        rigs[1].enter(GROUP, PAGE);
        assert_received(&mut rigs[1], 1, 10 + n..11 + n);
    }
    let after = (produced(&rigs[0], 0), produced(&rigs[0], QUEUES[0]));
    assert_eq!(before, after, "function 0 was told");
    // Its queue has no space: its fault waits, and that of function 2 does not.
    tell(&rigs[1], 1, QUEUES[1]);
    rigs[1].write(&event::THIS, 0, event::QUEUE_CTRL, QUEUES[1], 0);
    for which in [1, 2] {
        rigs[which].leave(which * GROUP);
        send(&rigs[which], which, 12..14);
        rigs[which].advance(20 * US);
    }
    assert!(fault_in(&mut rigs[2], QUEUES[2]).is_some());
    rigs[2].enter(2 * GROUP, PAGE);
    assert_received(&mut rigs[2], 2, 10 + 2..14);
    // The payload that waits for its page does not hold up the reset, nor is its fault told after that.
    rigs[1].device.reset().unwrap();
    rigs[1] = Rig::new(device.function(1)).unwrap();
    let control = rigs[1].read(&functions::THIS, 0, functions::FAULT_CTRL, 1);
    assert_eq!(control, 0, "the reset forgets the queue");
    tell(&rigs[1], 1, QUEUES[1]);
    rigs[1].advance(60 * US);
    assert_eq!(produced(&rigs[1], QUEUES[1]), 0, "told after the reset");
    for rig in rigs {
        end(rig);
    }
}
