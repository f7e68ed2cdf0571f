//! Functions of a card: `hw/docs/functions.md`.

use pollux_card_model::registers::{card, clop, event, functions, host, port, tlb, tx};
use pollux_card_model::{Block, Register, SimulatedCard};
use pollux_pmd::bus::{Bus, Device};
use pollux_pmd::net::UDP_HEADERS;

use super::registers::{all_up_to, harmless};
use super::support::{Make, US, count, end, sent, settle};
use crate::CosimDevice;
use crate::rig::{Form, Rig, datagram};

/// Function n has port n, queue n, vector n, and group n of the pages; function 0 the rest too.
const SHARING: [(Register, u32); 3] = [
    (functions::PORTS, 0x0210),
    (functions::QUEUE_OWNERS, 0x0000_0210),
    (functions::PAGES, 0x0000_0210),
];

/// Entries of a group.
pub(super) const GROUP: usize = 16;

pub(super) const WINDOW: usize = 128 << 10;

/// A card of which functions 1 and 2 have a share, as function 0 sees it.
pub(super) fn shared<C: SimulatedCard>(make: Make<'_, C>) -> CosimDevice<C> {
    let device = CosimDevice::new(make());
    let bus = device.bar(0, WINDOW).unwrap();
    for (register, owners) in SHARING {
        bus.write32(functions::THIS.at + register.at, owners);
        assert_eq!(bus.read32(functions::THIS.at + register.at), owners);
    }
    device
}

/// The rigs of functions 0, 1 and 2, with a list of their port.
pub(super) fn rigs<C: SimulatedCard>(device: &CosimDevice<C>) -> [Rig<C>; 3] {
    [0, 1, 2].map(|function| {
        let mut rig = Rig::new(device.function(function)).unwrap();
        let port = usize::from(function);
        rig.add_list(u16::from(function) * 32, 4096, 1000);
        rig.add_stream(port, 0, 5000, Form::Payload);
        // Everybody: no neighbour has to be known.
        rig.write(&port::THIS, port, port::DESTINATION_IP, 0, u32::MAX);
        rig.enable(port);
        rig
    })
}

/// A payload of a function.
fn payload(function: usize, number: usize) -> Vec<u8> {
    (0..64 + number % 700)
        .map(|i| (i * 3 + function * 50 + number) as u8)
        .collect()
}

pub(super) fn send<C: SimulatedCard>(rig: &Rig<C>, which: usize, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let frame = datagram(which, 7, 5000, &payload(which, number));
        rig.put(which, frame);
    }
}

/// All payloads of a function that were announced, in order, are its own from `first` on.
pub(super) fn assert_received<C: SimulatedCard>(
    rig: &mut Rig<C>,
    which: usize,
    numbers: std::ops::Range<usize>,
) {
    let found = settle(rig);
    let bytes: Vec<_> = found.into_iter().map(|payload| payload.bytes).collect();
    let sent: Vec<_> = numbers.map(|number| payload(which, number)).collect();
    assert_eq!(bytes.len(), sent.len(), "payloads of function {which}");
    assert!(bytes == sent, "other payloads of function {which}");
}

/// The function that a register belongs to in [`SHARING`]; `None` if it belongs to no single one.
fn owner(block: &Block, at: usize) -> Option<usize> {
    let into = at - block.at;
    let of = |first: Register, step: usize| (into - first.at) / step;
    let shared = |n: usize| if n < 3 { n } else { 0 };
    if block.kind == port::THIS.kind {
        Some(shared(into / port::THIS.step))
    } else if block.kind == event::THIS.kind && into >= event::QUEUE_BASE.at {
        Some(shared(of(event::QUEUE_BASE, event::QUEUE_BASE.step)))
    } else if block.kind == tx::THIS.kind && into >= tx::PACKETS.at {
        Some(shared(of(tx::PACKETS, tx::PACKETS.step)))
    } else if block.kind == tx::THIS.kind && into >= tx::RING_BASE.at {
        Some(shared(of(tx::RING_BASE, tx::RING_BASE.step)))
    } else if block.kind == clop::THIS.kind && into >= clop::OUTCOME_PLACED.at {
        Some(shared(
            of(clop::OUTCOME_PLACED, clop::OUTCOME_PLACED.step) / 32,
        ))
    } else if block.kind == clop::THIS.kind && into >= clop::LIST_BASE.at {
        Some(shared(of(clop::LIST_BASE, clop::LIST_BASE.step) / 32))
    } else if block.kind == tlb::THIS.kind && into >= tlb::ENTRY_VIRTUAL.at {
        Some(shared(
            of(tlb::ENTRY_VIRTUAL, tlb::ENTRY_VIRTUAL.step) / GROUP,
        ))
    } else {
        None
    }
}

/// Each function writes and reads the whole window. What is another's reads 0 and stays what it
/// was, and each such access is counted.
pub fn functions_reach_their_own_registers_and_no_others<C: SimulatedCard>(make: Make<'_, C>) {
    let device = shared(make);
    let buses = [0, 1, 2].map(|function| device.function(function).bar(0, WINDOW).unwrap());
    let refused = || {
        let at = host::THIS.at + host::REFUSED.at;
        u64::from(buses[0].read32(at)) | u64::from(buses[0].read32(at + 4)) << 32
    };
    for (number, bus) in buses.iter().enumerate() {
        assert_eq!(bus.read32(card::FUNCTION.at) as usize, number);
    }
    // Settings of the rightful owners, which differ.
    let settings: Vec<_> = all_up_to(8)
        .filter_map(|(block, register, at)| {
            let who = owner(block, at)?;
            let mask = harmless(block, register);
            let is_plain = mask != 0 && !block.takes_effect_as_one(register);
            is_plain.then_some((who, at, mask))
        })
        .collect();
    assert!(
        [0, 1, 2]
            .iter()
            .all(|who| settings.iter().any(|(of, ..)| of == who))
    );
    // Less the number of the function, where the card writes that itself.
    let kept = |at: usize, mask: u32| {
        let into = at.wrapping_sub(tlb::THIS.at + tlb::ENTRY_CTRL.at);
        let is_page =
            into < tlb::ENTRY_CTRL.count * tlb::ENTRY_CTRL.step && into.is_multiple_of(32);
        if is_page { mask & !0xff_0000 } else { mask }
    };
    for &(who, at, mask) in &settings {
        buses[who].write32(at, 0x3c3c_3c3c & mask);
    }
    let before = refused();
    let mut denied = 0;
    for (number, bus) in buses.iter().enumerate() {
        for &(who, at, mask) in settings.iter().filter(|(who, ..)| *who != number) {
            bus.write32(at, !0x3c3c_3c3c & mask);
            bus.write8(at, 0xff);
            assert_eq!(
                bus.read32(at),
                0,
                "function {number} reads {at:#x} of {who}"
            );
            denied += 3;
        }
    }
    assert_eq!(refused() - before, denied);
    for &(who, at, mask) in &settings {
        let (is, was) = (buses[who].read32(at), 0x3c3c_3c3c);
        assert_eq!(
            is & kept(at, mask),
            was & kept(at, mask),
            "function {who}: {at:#x}"
        );
    }
    assert_halves_do_not_mix(&buses);
    assert_only_function_0(&buses);
    assert_vectors(&device);
}

/// Three functions receive, send and interrupt at once: each by its own requests, which reach its own
/// memory only.
pub fn functions_have_their_own_frames_memory_and_interrupts<C: SimulatedCard>(make: Make<'_, C>) {
    const FRAMES: usize = 120;
    let device = shared(make);
    let mut rigs = rigs(&device);
    let _vectors: Vec<_> = rigs
        .iter()
        .map(|rig| rig.device.interrupts(8).unwrap())
        .collect();
    for (which, rig) in rigs.iter_mut().enumerate() {
        rig.write(&event::THIS, 0, event::QUEUE_ARM, which, 0);
        send(rig, which, 0..FRAMES);
        for number in 0..8 {
            rig.send(which, &payload(which, number));
            // Its memory is that of the next one.
            let is_read = (0..100).any(|_| {
                rig.advance(US);
                rig.read(&tx::THIS, 0, tx::RING_CONSUMER, which) as usize > number
            });
            assert!(is_read, "packet {number} of function {which}");
        }
    }
    for (which, rig) in rigs.iter_mut().enumerate() {
        assert_received(rig, which, 0..FRAMES);
        assert_eq!(rig.read64(&tx::THIS, 0, tx::PACKETS, which), 8);
        assert_eq!(rig.read64(&tx::THIS, 0, tx::READ_FAILED, which), 0);
        for (number, frame) in sent(rig, which).iter().enumerate() {
            let payload = payload(which, number);
            assert!(
                frame.bytes[UDP_HEADERS..].starts_with(&payload),
                "frame {number} of function {which}: {:?}, not {payload:?}",
                &frame.bytes[UDP_HEADERS..]
            );
        }
        assert_eq!(rig.read64(&port::THIS, which, port::TX_FRAMES, 0), 8);
    }
    let interrupts = device.with(|_, memory| memory.interrupts);
    assert_eq!(interrupts, [1, 1, 1, 0, 0, 0, 0, 0]);
    for (number, rig) in rigs.iter().enumerate() {
        assert_eq!(rig.read(&card::THIS, 0, card::FUNCTION, 0), number as u32);
        let status = rig.read(&functions::THIS, 0, functions::FUNCTION_STATUS, number);
        assert_eq!(status, 6, "a master with interrupts");
    }
    // One function without bus mastering: only its frames are not announced.
    rigs[1].device.set_bus_master(false).unwrap();
    for (which, rig) in rigs.iter().enumerate() {
        send(rig, which, FRAMES..FRAMES + 20);
    }
    rigs[0].advance(40 * US);
    for which in [0, 2] {
        assert_received(&mut rigs[which], which, FRAMES..FRAMES + 20);
    }
    rigs[1].device.set_bus_master(true).unwrap();
    assert!(rigs[1].receive().is_empty());
    assert!(rigs[0].read64(&host::THIS, 0, host::WR_DISCARDED, 0) > 0);
    for rig in rigs {
        end(rig);
    }
}

/// A list that names the queue of another function loses its own announcements, and no others.
pub fn a_list_tells_no_queue_of_another_function<C: SimulatedCard>(make: Make<'_, C>) {
    let device = shared(make);
    let mut rigs = rigs(&device);
    for queue in [0, 2_u32] {
        let control = |rig: &Rig<C>, on| rig.write(&clop::THIS, 0, clop::LIST_CTRL, 32, on);
        control(&rigs[1], 0);
        rigs[1].write(&clop::THIS, 0, clop::LIST_MODE, 32, queue << 8);
        control(&rigs[1], 1);
        let told = |rigs: &[Rig<C>; 3]| {
            let who = &rigs[queue as usize];
            who.read(&event::THIS, 0, event::QUEUE_PRODUCED, queue as usize)
        };
        let lost = |rigs: &[Rig<C>; 3]| rigs[0].read64(&host::THIS, 0, host::EVENTS_DISCARDED, 0);
        let before = (told(&rigs), lost(&rigs));
        send(&rigs[1], 1, 0..20);
        rigs[1].advance(60 * US);
        assert_eq!(told(&rigs), before.0, "queue {queue} was told");
        assert!(lost(&rigs) > before.1, "nothing was thrown away");
    }
    for which in [0, 2] {
        send(&rigs[which], which, 0..20);
        assert_received(&mut rigs[which], which, 0..20);
    }
    for rig in rigs {
        end(rig);
    }
}

/// A function that enters a page for another one gets its own number in it, however it writes the
/// entry; so the other's payloads never go there.
pub fn a_page_is_of_the_function_that_enters_it<C: SimulatedCard>(make: Make<'_, C>) {
    let device = shared(make);
    let mut rigs = rigs(&device);
    // Entry 16 is the lowest of function 1, and function 2's is higher: it would count first.
    let at = |entry: usize| tlb::THIS.at + tlb::ENTRY_CTRL.of(entry);
    let mine = rigs[1].bus.read32(at(GROUP));
    assert_eq!(mine >> 16 & 0xff, 1);
    let refused = |rigs: &[Rig<C>; 3]| rigs[0].read64(&host::THIS, 0, host::REFUSED, 0);
    let before = refused(&rigs);
    rigs[1].bus.write32(at(2 * GROUP), mine);
    rigs[1].advance(US);
    assert_eq!(refused(&rigs), before + 1);
    rigs[1].bus.write32(at(GROUP), mine & !0xff_0000 | 2 << 16);
    rigs[1].bus.write8(at(GROUP) + 2, 2);
    assert_eq!(rigs[1].bus.read32(at(GROUP)), mine);
    send(&rigs[1], 1, 0..30);
    send(&rigs[2], 2, 0..30);
    assert_received(&mut rigs[2], 2, 0..30);
    assert_received(&mut rigs[1], 1, 0..30);
    // A list that claims to be of another function is its own.
    rigs[1].write(&clop::THIS, 0, clop::LIST_CTRL, 32, 0);
    rigs[1].write(&clop::THIS, 0, clop::LIST_MODE, 32, 1 << 8 | 2 << 4);
    rigs[1].write(&clop::THIS, 0, clop::LIST_CTRL, 32, 1);
    let placed = rigs[1].outcomes(32)[0];
    send(&rigs[1], 1, 30..40);
    rigs[1].advance(60 * US);
    assert_eq!(rigs[1].outcomes(32)[0], placed + 10);
    for rig in rigs {
        end(rig);
    }
}

/// A function level reset under traffic of all: the function's list, ring and queue are off, its
/// vector is masked, its page is gone; the others lose nothing, and it begins anew.
pub fn a_reset_of_one_function_leaves_the_others<C: SimulatedCard>(make: Make<'_, C>) {
    const FRAMES: usize = 200;
    let device = shared(make);
    let mut rigs = rigs(&device);
    for round in 0..3 {
        let (first, last) = (round * FRAMES, (round + 1) * FRAMES);
        for (which, rig) in rigs.iter_mut().enumerate() {
            send(rig, which, first..last);
            rig.send(which, &payload(which, round));
        }
        // Without a PCS they have no effect.
        for which in [0, 1] {
            rigs[which].write(&port::THIS, which, port::PCS_CTRL, 0, 3);
        }
        rigs[0].advance((3 + 5 * round as u64) * US);
        rigs[1].device.reset().unwrap();
        let seen = device.function(1);
        let bus = seen.bar(0, WINDOW).unwrap();
        for (block, register, n) in [
            (&event::THIS, event::QUEUE_CTRL, 1),
            (&tx::THIS, tx::RING_CTRL, 1),
            (&clop::THIS, clop::LIST_CTRL, 32),
            (&tlb::THIS, tlb::ENTRY_CTRL, GROUP),
            (&port::THIS, port::STREAM, port::THIS.step / 4),
            (&port::THIS, port::PCS_CTRL, port::THIS.step / 4),
        ] {
            let is = bus.read32(block.at + register.of(n));
            assert_eq!(is & 1, 0, "{} of function 1", register.name);
        }
        let status = functions::THIS.at + functions::FUNCTION_STATUS.of(1);
        assert_eq!(bus.read32(status), 0, "at rest, not a master");
        let table = seen.bar(2, 8192).unwrap();
        assert_eq!(table.read32(16 + 12), 1, "masked");
        let pattern = rigs[0].read(&port::THIS, 0, port::PCS_CTRL, 0);
        assert_eq!(pattern, 3, "that of function 0's port stays");
        for which in [0, 2] {
            assert_received(&mut rigs[which], which, first..last);
            let [placed, lost @ ..] = rigs[which].outcomes(which as u16 * 32);
            assert_eq!((placed as usize, lost), (last, [0; 7]));
            let sent = rigs[which].read64(&tx::THIS, 0, tx::PACKETS, which);
            assert_eq!(sent, round as u64 + 1);
        }
        // No event of its former life is told to its next one.
        rigs[1] = Rig::new(device.function(1)).unwrap();
        rigs[1].add_list(32, 4096, 1000);
        rigs[1].add_stream(1, 0, 5000, Form::Payload);
        rigs[1].enable(1);
        rigs[1].advance(20 * US);
        assert!(rigs[1].receive().is_empty());
        send(&rigs[1], 1, 0..30);
        assert_received(&mut rigs[1], 1, 0..30);
    }
    for rig in rigs {
        end(rig);
    }
}

/// Packets that wait for a neighbour when their function is reset: the reset waits for none, nothing of
/// them leaves later, and no loss is told.
pub fn what_a_function_had_to_send_is_gone_after_its_reset<C: SimulatedCard>(make: Make<'_, C>) {
    const NO_HOST: u32 = 0x0a00_0063;
    let device = shared(make);
    let mut rigs = rigs(&device);
    rigs[1].write(&port::THIS, 1, port::ARP_WAIT, 0, u32::MAX);
    rigs[1].write(&port::THIS, 1, port::DESTINATION_IP, 0, NO_HOST);
    for number in 0..3 {
        rigs[1].send(1, &payload(1, number));
    }
    let is_idle = |rig: &Rig<C>| rig.read(&tx::THIS, 0, tx::RING_STATUS, 1) & 1 == 1;
    assert_eq!(sent(&rigs[1], 1).len(), 1, "a request for the neighbour");
    assert!(!is_idle(&rigs[1]), "packets are left to send");
    rigs[1].device.reset().unwrap();
    rigs[1] = Rig::new(device.function(1)).unwrap();
    rigs[1].write(&port::THIS, 1, port::DESTINATION_IP, 0, u32::MAX);
    rigs[1].enable(1);
    assert!(is_idle(&rigs[1]));
    assert_eq!(sent(&rigs[1], 1).len(), 0);
    assert_eq!(count(&rigs[1], 1, port::TX_UNRESOLVED), 0);
    assert!(rigs[1].receive().is_empty());
    rigs[1].send(1, &payload(1, 3));
    assert_eq!(sent(&rigs[1], 1).len(), 1);
    for rig in rigs {
        end(rig);
    }
}

/// The same by the function itself. The card does not reset: function 0's settings stay.
pub fn a_function_that_is_reset_by_register_begins_anew<C: SimulatedCard>(make: Make<'_, C>) {
    let device = shared(make);
    let mut rigs = rigs(&device);
    send(&rigs[2], 2, 0..50);
    rigs[2].advance(2 * US);
    rigs[2].write(&functions::THIS, 0, functions::FUNCTION_CTRL, 2, 1);
    let status = |rig: &Rig<C>| rig.read(&functions::THIS, 0, functions::FUNCTION_STATUS, 2);
    let mut patience = 1000;
    while status(&rigs[2]) & 1 == 1 {
        rigs[2].advance(US);
        patience -= 1;
        assert!(patience > 0, "the reset goes on for ever");
    }
    assert_eq!(status(&rigs[2]), 2, "still a master");
    // Frames that are still to come find no list.
    rigs[2].advance(60 * US);
    rigs[2] = Rig::new(device.function(2)).unwrap();
    rigs[2].add_list(64, 4096, 1000);
    rigs[2].add_stream(2, 0, 5000, Form::Payload);
    rigs[2].enable(2);
    rigs[2].advance(100 * US);
    assert!(rigs[2].receive().is_empty());
    for which in [2, 0] {
        send(&rigs[which], which, 0..30);
        assert_received(&mut rigs[which], which, 0..30);
    }
    for rig in rigs {
        end(rig);
    }
}

/// A loop of ports of two functions is none: each keeps its wire.
pub fn ports_of_two_functions_do_not_hear_each_other<C: SimulatedCard>(make: Make<'_, C>) {
    let device = shared(make);
    let mut rigs = rigs(&device);
    for which in [0, 1] {
        let control = rigs[which].read(&port::THIS, which, port::MAC_CTRL, 0);
        rigs[which].write(&port::THIS, which, port::MAC_CTRL, 0, control | 4);
        let _ = rigs[which].read(&port::THIS, which, port::MAC_CTRL, 0);
    }
    rigs[0].advance(US);
    for which in [0, 1] {
        send(&rigs[which], which, 0..10);
        assert_received(&mut rigs[which], which, 0..10);
        assert_eq!(
            rigs[which].read64(&port::THIS, which, port::RX_FRAMES, 0),
            10
        );
    }
    for rig in rigs {
        end(rig);
    }
}

/// Halves of settings of 64 bits, which functions write in turn.
fn assert_halves_do_not_mix(buses: &[impl Bus; 3]) {
    for (block, register) in [(event::THIS, event::QUEUE_BASE), (tx::THIS, tx::RING_BASE)] {
        let at = |who: usize| block.at + register.of(who);
        let half = |who: usize, high: usize| (0x1000 * (who + 1) + 0x40 * high) as u32;
        for high in 0..2 {
            for (who, bus) in buses.iter().enumerate() {
                bus.write32(at(who) + 4 * high, half(who, high));
            }
        }
        for high in 0..2 {
            for (who, bus) in buses.iter().enumerate() {
                assert_eq!(
                    bus.read32(at(who) + 4 * high),
                    half(who, high),
                    "{}",
                    register.name
                );
            }
        }
    }
}

/// What only function 0 may.
fn assert_only_function_0(buses: &[impl Bus; 3]) {
    for at in [
        card::SCRATCH.at,
        card::CTRL.at,
        host::THIS.at + host::CTRL.at,
        functions::THIS.at + functions::PORTS.at,
        functions::THIS.at + functions::FUNCTION_CTRL.of(0),
        functions::THIS.at + functions::FUNCTION_CTRL.of(2),
        functions::THIS.at + functions::FAULT_CTRL.of(0),
        functions::THIS.at + functions::FAULT_CTRL.of(2),
        functions::THIS.at + functions::QUEUE_OWNERS.of(1),
        tlb::THIS.at + tlb::TIMEOUT.at,
    ] {
        let was = buses[0].read32(at);
        buses[1].write32(at, u32::MAX);
        assert_eq!(buses[0].read32(at), was, "{at:#x}");
    }
    assert_eq!(
        buses[0].read32(card::STATUS.at) & 1,
        0,
        "function 1 resets the card"
    );
}

/// Vectors, of 4 words each.
fn assert_vectors<C: SimulatedCard>(device: &CosimDevice<C>) {
    let tables = [0, 1, 2].map(|function| device.function(function).bar(2, 8192).unwrap());
    for (who, table) in tables.iter().enumerate() {
        table.write32(16 * who + 8, 0x50 + who as u32);
    }
    for (number, table) in tables.iter().enumerate() {
        for who in (0..3).filter(|who| *who != number) {
            table.write32(16 * who + 8, 0xff);
            assert_eq!(table.read32(16 * who + 8), 0);
        }
    }
    for (who, table) in tables.iter().enumerate() {
        assert_eq!(table.read32(16 * who + 8), 0x50 + who as u32);
    }
}
