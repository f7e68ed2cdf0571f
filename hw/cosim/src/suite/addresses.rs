//! Bus addresses that a function names and that are another's memory: `hw/docs/functions.md`.

use pollux_card_model::registers::{event, port, tx};
use pollux_card_model::{Host, SimulatedCard};

use super::functions::{assert_received, rigs, send, shared};
use super::support::{Make, US, end, sent};
use crate::rig::Rig;

/// Bytes of memory, as a function sees it.
fn bytes_of<C: SimulatedCard>(rig: &Rig<C>, function: u8, at: u64) -> [u8; 4096] {
    let mut bytes = [0; 4096];
    rig.device
        .with(|_, memory| memory.read(function, at, &mut bytes))
        .unwrap();
    bytes
}

/// The refused accesses since the last call.
fn trespasses<C: SimulatedCard>(rig: &Rig<C>) -> u64 {
    rig.device
        .with(|_, memory| std::mem::take(&mut memory.trespasses))
}

/// Function 1 names the memory of function 2 as its ring, as a packet in its own ring, and as its
/// event queue: the card accesses it as function 1, so that an IOMMU refuses it, nothing leaves on
/// the wire, no byte of it changes, and function 2 goes on.
pub fn addresses_of_anothers_memory_reach_nothing<C: SimulatedCard>(make: Make<'_, C>) {
    const CONTROL: u32 = 1 << 16 | 3 << 8 | 1;
    let device = shared(make);
    let mut rigs = rigs(&device);
    for which in [1, 2] {
        rigs[which].send(which, &[which as u8; 100]);
        assert_eq!(sent(&rigs[which], which).len(), 1);
    }
    let own_ring = rigs[1].read64(&tx::THIS, 0, tx::RING_BASE, 1);
    let ring = rigs[2].read64(&tx::THIS, 0, tx::RING_BASE, 2);
    let queue = rigs[2].read64(&event::THIS, 0, event::QUEUE_BASE, 2);
    let before = [ring, queue].map(|at| bytes_of(&rigs[2], 2, at));
    assert!(before[0].iter().any(|&byte| byte != 0), "no descriptor");
    assert_eq!(trespasses(&rigs[0]), 0);

    // A packet of its own ring that lies there.
    rigs[1].post(1, 0, 100);
    let descriptor = own_ring + 32;
    rigs[1]
        .device
        .with(|_, memory| memory.write(1, descriptor, &ring.to_le_bytes()));
    let failed = |rig: &Rig<C>| rig.read64(&tx::THIS, 0, tx::READ_FAILED, 1);
    let lost = failed(&rigs[1]);
    rigs[1].doorbell(1);
    assert!(sent(&rigs[1], 1).is_empty(), "bytes of another function");
    assert!(trespasses(&rigs[0]) > 0, "the packet was not read");
    assert_eq!(failed(&rigs[1]), lost + 1);

    // A ring that lies there, with the other's descriptor.
    rigs[1].write(&tx::THIS, 0, tx::RING_CTRL, 1, 0);
    rigs[1].write64(&tx::THIS, 0, tx::RING_BASE, 1, ring);
    rigs[1].write(&tx::THIS, 0, tx::RING_CTRL, 1, CONTROL);
    rigs[1].write(&tx::THIS, 0, tx::RING_PRODUCER, 1, 1);
    assert!(sent(&rigs[1], 1).is_empty(), "a packet of another function");
    assert!(trespasses(&rigs[0]) > 0, "the descriptor was not read");

    // An event queue that lies there.
    rigs[1].write(&event::THIS, 0, event::QUEUE_CTRL, 1, 0);
    rigs[1].write64(&event::THIS, 0, event::QUEUE_BASE, 1, queue);
    rigs[1].write(&event::THIS, 0, event::QUEUE_CTRL, 1, 3 << 8 | 1);
    send(&rigs[1], 1, 0..20);
    rigs[1].advance(60 * US);
    assert!(trespasses(&rigs[0]) > 0, "no record was written");

    assert!(before == [ring, queue].map(|at| bytes_of(&rigs[2], 2, at)));
    assert_eq!(rigs[2].read64(&port::THIS, 2, port::TX_FRAMES, 0), 1);
    rigs[2].send(2, &[7; 100]);
    assert_eq!(sent(&rigs[2], 2).len(), 1);
    send(&rigs[2], 2, 0..20);
    assert_received(&mut rigs[2], 2, 0..20);
    assert_eq!(trespasses(&rigs[0]), 0);
    for rig in rigs {
        end(rig);
    }
}
