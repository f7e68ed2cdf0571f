//! Lists of buffers, the TLB, and event queues.

use pollux_card_model::layouts::{
    EVENT_RECORD_INDEX, EVENT_RECORD_KIND, EVENT_RECORD_SEQUENCE, TLB_FAULT_ADDRESS,
    TLB_FAULT_KIND, TLB_FAULT_REASON,
};
use pollux_card_model::registers::{clop, event, functions, tlb};
use pollux_card_model::{Register, SimulatedCard};

use super::support::{Make, US, end, rig, settle};
use crate::rig::{Form, Rig, datagram};

/// A rig with one stream of port 0, whose list has buffers of `size` bytes.
pub(super) fn one_stream<C: SimulatedCard>(make: Make<'_, C>, size: usize, timeout: u32) -> Rig<C> {
    let mut rig = rig(make);
    rig.add_list(0, size, timeout);
    rig.add_stream(0, 0, 5000, Form::Payload);
    rig.enable(0);
    rig
}

pub(super) const NEVER: u32 = 0x7fff_ffff;

/// The queue of events of faults.
pub(super) const FAULTS_QUEUE: usize = 7;

pub(super) fn list<C: SimulatedCard>(rig: &Rig<C>, register: Register) -> u32 {
    rig.read(&clop::THIS, 0, register, 0)
}

/// Puts payloads of so many bytes on the wire, and waits for them.
pub(super) fn put<C: SimulatedCard>(rig: &Rig<C>, payloads: usize, len: usize) {
    for _ in 0..payloads {
        rig.put(0, datagram(0, 7, 5000, &vec![0x3c; len]));
    }
    while rig.device.with(|card, _| card.coming(0)) > 0 {
        rig.advance(2 * US);
    }
    rig.advance(5 * US);
}

/// Only a payload that does not fit announces a buffer, or a buffer without space for any.
pub fn a_full_buffer_is_announced<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = one_stream(make, 256, NEVER);
    // A record and 44 bytes are 64 with padding: four fill a buffer to its end.
    put(&rig, 3, 44);
    assert!(rig.receive().is_empty());
    assert_eq!(
        (list(&rig, clop::LIST_USED), list(&rig, clop::LIST_SERIAL)),
        (192, 0)
    );
    put(&rig, 1, 44);
    assert_eq!(rig.receive().len(), 4);
    // Two of 100 take 128 each; a third of 50 does not fit after one of 100 and one of 60.
    put(&rig, 1, 100);
    put(&rig, 1, 60);
    assert!(rig.receive().is_empty());
    put(&rig, 1, 50);
    assert_eq!(rig.receive().len(), 2);
    assert_eq!(list(&rig, clop::LIST_SEQUENCE), 7);
    assert_eq!(rig.flush().len(), 1);
    end(rig);
}

/// Each at its multiple of the stride, padded with zeros; the next buffer begins where no whole
/// stride is left.
pub fn bare_payloads_lie_at_a_fixed_stride<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = rig(make);
    rig.add_bare_list(0, 256, NEVER, 80);
    rig.add_stream(0, 0, 5000, Form::Payload);
    rig.enable(0);
    for len in [80, 0, 1, 79, 81, 33] {
        put(&rig, 1, len);
    }
    assert_eq!(rig.outcomes(0), [5, 0, 0, 1, 0, 0, 0, 0]);
    // Three strides fit a buffer.
    let mut found = rig.receive();
    assert_eq!(found.len(), 3);
    found.append(&mut rig.flush());
    assert_eq!(rig.wrong, 0);
    for (payload, len) in found.iter().zip([80, 0, 1, 79, 33]) {
        let wanted: Vec<u8> = (0..80).map(|i| if i < len { 0x3c } else { 0 }).collect();
        assert_eq!(payload.bytes, wanted, "a payload of {len} bytes");
    }
    assert_eq!(found.len(), 5);
    end(rig);
}

/// Software requests it, or the oldest payload has waited for long enough.
pub fn a_timeout_and_a_flush_announce_what_is_there<C: SimulatedCard>(make: Make<'_, C>) {
    // 20 us.
    let mut rig = one_stream(make, 4096, 3125);
    put(&rig, 2, 30);
    assert!(rig.receive().is_empty(), "too soon");
    rig.advance(30 * US);
    assert_eq!(rig.receive().len(), 2);
    put(&rig, 1, 30);
    assert_eq!(rig.flush().len(), 1);
    assert!(
        rig.flush().is_empty(),
        "a buffer without payloads is not announced"
    );
    end(rig);
}

/// The reader owns all buffers: payloads are refused, their numbers used up.
pub fn a_list_without_a_buffer_refuses_and_goes_on<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = one_stream(make, 4096, 100);
    let buffers = list(&rig, clop::LIST_COUNT);
    // Each payload waits until it is announced.
    for _ in 0..buffers + 3 {
        put(&rig, 1, 100);
        rig.advance(5 * US);
    }
    let placed = u64::from(buffers);
    assert_eq!(rig.outcomes(0), [placed, 3, 0, 0, 0, 0, 0, 0]);
    assert_eq!(rig.receive().len() as u64, placed);
    put(&rig, 1, 100);
    rig.advance(5 * US);
    let found = rig.receive();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].sequence, buffers + 3);
    end(rig);
}

/// Longer than a buffer.
pub fn a_payload_that_no_buffer_holds_is_refused<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = one_stream(make, 128, NEVER);
    put(&rig, 1, 112);
    put(&rig, 1, 113);
    put(&rig, 1, 112);
    let found = settle(&mut rig);
    assert_eq!(found.len(), 2);
    assert_eq!(rig.outcomes(0), [2, 0, 0, 1, 0, 0, 0, 0]);
    rig.write(&clop::THIS, 0, clop::LIST_CTRL, 0, 0);
    put(&rig, 1, 10);
    assert_eq!(rig.outcomes(0)[5], 1, "the list is off");
    end(rig);
}

/// No entry of the TLB covers a list: nothing is written, and a requested event is sent, sooner or
/// later: a fault waits for space in its queue, and those behind it at the same port are counted.
pub fn a_fault_writes_nothing_and_is_told<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = one_stream(make, 4096, 100);
    // The list is beyond the page.
    rig.write(&clop::THIS, 0, clop::LIST_CTRL, 0, 0);
    let base = rig.read64(&clop::THIS, 0, clop::LIST_BASE, 0) + (1 << 24);
    rig.write64(&clop::THIS, 0, clop::LIST_BASE, 0, base);
    rig.write(&clop::THIS, 0, clop::LIST_CTRL, 0, 1);
    let control = (FAULTS_QUEUE as u32) << 8 | 1;
    rig.write(&functions::THIS, 0, functions::FAULT_CTRL, 0, control);
    put(&rig, 12, 100);
    assert_eq!(rig.outcomes(0), [0, 0, 0, 0, 12, 0, 0, 0]);
    let counts = |rig: &Rig<C>| {
        [tlb::FAULTS, tlb::EVENTS_LOST].map(|counter| rig.read64(&tlb::THIS, 0, counter, 0))
    };
    // The queue is disabled.
    assert_eq!(counts(&rig), [12, 11]);
    rig.begin_queue(FAULTS_QUEUE);
    rig.advance(20 * US);
    put(&rig, 1, 100);
    assert_eq!(counts(&rig), [13, 11]);
    for sequence in 0..2_u32 {
        let record = rig.event(FAULTS_QUEUE).unwrap();
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| record[at + i]));
        assert_eq!(record[EVENT_RECORD_KIND], TLB_FAULT_KIND);
        assert_eq!(word(EVENT_RECORD_SEQUENCE), sequence);
        assert_eq!((word(EVENT_RECORD_INDEX), word(TLB_FAULT_REASON)), (0, 0));
        let (low, high) = (word(TLB_FAULT_ADDRESS), word(TLB_FAULT_ADDRESS + 4));
        assert_eq!(u64::from(high) << 32 | u64::from(low), base);
    }
    assert!(rig.event(FAULTS_QUEUE).is_none() && rig.flush().is_empty());
    end(rig);
}

/// No byte is written elsewhere than where the host said, and no number is cut to its register: the list is off.
pub fn a_list_that_the_card_cannot_honour_is_off<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = one_stream(make, 4096, 100);
    let base = rig.read64(&clop::THIS, 0, clop::LIST_BASE, 0);
    let mut off = 0;
    let count = list(&rig, clop::LIST_COUNT);
    let begin = |rig: &Rig<C>, [shift, size, count, timeout]: [u32; 4]| {
        rig.write(&clop::THIS, 0, clop::LIST_CTRL, 0, 0);
        rig.write64(&clop::THIS, 0, clop::LIST_BASE, 0, base + u64::from(shift));
        rig.write(&clop::THIS, 0, clop::LIST_SIZE, 0, size);
        rig.write(&clop::THIS, 0, clop::LIST_COUNT, 0, count);
        rig.write(&clop::THIS, 0, clop::LIST_TIMEOUT, 0, timeout);
        rig.write(&clop::THIS, 0, clop::LIST_CTRL, 0, 1);
    };
    for settings in [
        [1, 4096, count, 100],
        [4, 4096, count, 100],
        [32, 4096, count, 100],
        [0, 4097, count, 100],
        [0, 4096 + 32, count, 100],
        [0, (1 << 30) + 64, count, 100],
        [0, (1 << 31) + 4096, count, 100],
        [0, 4096, (1 << 16) + 1, 100],
        [0, 4096, (1 << 17) + count, 100],
        [0, 4096, (1 << 31) + count, 100],
        [0, 4096, count, (1 << 31) + 100],
    ] {
        begin(&rig, settings);
        put(&rig, 2, 100);
        off += 2;
        assert_eq!(rig.outcomes(0), [0, 0, 0, 0, 0, off, 0, 0], "{settings:?}");
        assert!(rig.flush().is_empty());
    }
    // The largest that it honours. (Buffers behind the first have no page.)
    for settings in [[0, 1 << 30, 1 << 16, (1 << 31) - 1], [0, 4096, count, 100]] {
        begin(&rig, settings);
        put(&rig, 1, 100);
    }
    assert_eq!(rig.outcomes(0), [2, 0, 0, 0, 0, off, 0, 0]);
    end(rig);
}

/// Events are not read: none is overwritten, payloads are refused, and all continues afterwards.
pub fn a_full_event_queue_loses_no_event<C: SimulatedCard>(make: Make<'_, C>) {
    // A payload fills a buffer, so that each is announced: the rig's queue has 256 records.
    let mut rig = one_stream(make, 64, NEVER);
    put(&rig, 400, 48);
    let produced = rig.read(&event::THIS, 0, event::QUEUE_PRODUCED, 0);
    assert!((200..=256).contains(&produced), "{produced}");
    let [placed, no_buffer, no_event, ..] = rig.outcomes(0);
    assert_eq!((placed + no_event, no_buffer), (400, 0));
    assert!(no_event > 100, "{no_event}");
    let found = settle(&mut rig).len() as u64;
    assert_eq!(
        found, placed,
        "what was placed is announced, sooner or later"
    );
    put(&rig, 3, 48);
    assert_eq!(settle(&mut rig).len(), 3);
    end(rig);
}

/// A base that is no multiple of 64: the queue says so and has no room, so that no record is written
/// across its slots, and what waits is announced when the queue begins at another place.
pub fn a_queue_at_a_misaligned_address_takes_no_record<C: SimulatedCard>(make: Make<'_, C>) {
    const ENABLE: u32 = 1;
    const MISALIGNED: u32 = 2;
    // A payload fills a buffer, so that each is announced.
    let mut rig = one_stream(make, 64, NEVER);
    let base = rig.read64(&event::THIS, 0, event::QUEUE_BASE, 0);
    let control = rig.read(&event::THIS, 0, event::QUEUE_CTRL, 0);
    assert_eq!(control & 3, ENABLE);
    let [mut placed, mut refused] = [0, 0];
    for off in [1, 8, 16, 32, 63] {
        rig.write(&event::THIS, 0, event::QUEUE_CTRL, 0, control & !ENABLE);
        rig.forget_events(0);
        rig.write64(&event::THIS, 0, event::QUEUE_BASE, 0, base + off);
        rig.write(&event::THIS, 0, event::QUEUE_CTRL, 0, control);
        let is = rig.read(&event::THIS, 0, event::QUEUE_CTRL, 0);
        assert_eq!(is, control | MISALIGNED, "{off} bytes off");
        put(&rig, 5, 48);
        assert_eq!(rig.read(&event::THIS, 0, event::QUEUE_PRODUCED, 0), 0);
        let outcomes = rig.outcomes(0);
        assert_eq!(outcomes[0] - placed + outcomes[2] - refused, 5);
        assert!(outcomes[2] > refused, "{off} bytes off: {outcomes:?}");
        let waits = (outcomes[0] - placed) as usize;
        [placed, refused] = [outcomes[0], outcomes[2]];
        let queue = rig.memory_at(0, 64 << (control >> 8 & 31));
        assert!(queue.iter().all(|&byte| byte == 0), "{off} bytes off");
        rig.write(&event::THIS, 0, event::QUEUE_CTRL, 0, 0);
        rig.begin_queue(0);
        rig.advance(5 * US);
        assert_eq!(rig.receive().len(), waits, "{off} bytes off");
        put(&rig, 3, 48);
        assert_eq!(rig.receive().len(), 3);
        placed += 3;
    }
    end(rig);
}
