//! The time stamp of payloads, and the timing input.

use pollux_card_model::layouts::{
    EVENT_RECORD_INDEX, EVENT_RECORD_KIND, EVENT_RECORD_SEQUENCE, EVENT_RECORD_WIRE,
    TIMING_EDGE_EDGE, TIMING_EDGE_FLAGS, TIMING_EDGE_KIND, TIMING_EDGE_TRIGGERS,
};
use pollux_card_model::registers::{event, host, timing};
use pollux_card_model::{Register, SimulatedCard, TimingInput};

use super::support::{Make, US, end, rig};
use crate::rig::Rig;

/// The queue of events of the timing input.
const QUEUE: usize = 5;

/// Bits of the control register: by the external clock, a start sets the time, events.
const BY_CLOCK: u32 = 1;
const SET_ON_START: u32 = 2;
const EVENTS: u32 = 4 | 8 | 16;

/// A flag.
const UNEXPECTED_START: u32 = 1;
const UNEXPECTED_END: u32 = 2;
const EARLY: u32 = 4;
const LOST: u32 = 8;
const NO_ROOM: u32 = 16;

/// A card with its timing enabled.
fn on<C: SimulatedCard>(make: Make<'_, C>, control: u32) -> Rig<C> {
    let rig = rig(make);
    rig.begin_queue(QUEUE);
    write(&rig, timing::CTRL, (QUEUE as u32) << 8 | control);
    // Done when this read completes: pulses do not wait for registers.
    let _ = read(&rig, timing::STATUS);
    rig
}

fn write<C: SimulatedCard>(rig: &Rig<C>, register: Register, value: u32) {
    rig.write(&timing::THIS, 0, register, 0, value);
}

fn read<C: SimulatedCard>(rig: &Rig<C>, register: Register) -> u32 {
    rig.read(&timing::THIS, 0, register, 0)
}

fn read64<C: SimulatedCard>(rig: &Rig<C>, register: Register) -> u64 {
    rig.read64(&timing::THIS, 0, register, 0)
}

fn pulse<C: SimulatedCard>(rig: &Rig<C>, input: TimingInput, then: u64) {
    rig.device.with(|card, _| card.pulse(input));
    rig.advance(then);
}

/// Fields of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimingEdge {
    edge: u32,
    burst: u32,
    flags: u32,
    wire: u64,
    valid: bool,
    triggers: u64,
    sequence: u32,
}

fn next_edge<C: SimulatedCard>(rig: &mut Rig<C>) -> Option<TimingEdge> {
    let record = rig.event(QUEUE)?;
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| record[at + i]));
    let long = |at: usize| u64::from(word(at + 4)) << 32 | u64::from(word(at));
    assert_eq!(record[EVENT_RECORD_KIND], TIMING_EDGE_KIND);
    Some(TimingEdge {
        edge: word(TIMING_EDGE_EDGE),
        burst: word(EVENT_RECORD_INDEX),
        flags: word(TIMING_EDGE_FLAGS),
        wire: long(EVENT_RECORD_WIRE),
        valid: record[63] & 1 == 1,
        triggers: long(TIMING_EDGE_TRIGGERS),
        sequence: word(EVENT_RECORD_SEQUENCE),
    })
}

/// (edge, burst, flags) of all events so far.
fn edges<C: SimulatedCard>(rig: &mut Rig<C>) -> Vec<(u32, u32, u32)> {
    rig.advance(5 * US);
    let next = || next_edge(rig);
    let all = std::iter::from_fn(next);
    all.map(|edge| (edge.edge, edge.burst, edge.flags))
        .collect()
}

/// Start, end and trigger: the counter is latched, and set by a start; one without the other is a
/// flag, which is reported once until it is cleared.
pub fn bursts_and_triggers_are_latched_and_told<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = on(make, SET_ON_START | EVENTS);
    assert_eq!(read(&rig, timing::STATUS), 0);
    rig.write64(&timing::THIS, 0, timing::SET, 0, 1_000_000);
    rig.write64(&timing::THIS, 0, timing::PRESET, 0, 5_000);
    assert_eq!(read(&rig, timing::STATUS), 1, "the time was set");
    pulse(&rig, TimingInput::Start, 5 * US);
    let start = next_edge(&mut rig).unwrap();
    assert_eq!((start.edge, start.burst, start.flags), (0, 1, 0));
    assert!(start.valid && (1_000_000..1_100_000).contains(&start.wire));
    assert_eq!(read64(&rig, timing::START), start.wire);
    let now = read64(&rig, timing::NOW);
    assert!((9_000..50_000).contains(&now), "{now} ns since the start");
    assert_eq!(read(&rig, timing::STATUS), 3, "a burst goes on");
    for triggers in 1..=2 {
        pulse(&rig, TimingInput::Trigger, 5 * US);
        let trigger = next_edge(&mut rig).unwrap();
        assert_eq!((trigger.edge, trigger.triggers), (2, triggers));
        assert_eq!(read64(&rig, timing::TRIGGER), trigger.wire);
        assert!(trigger.wire > 5_000);
    }
    pulse(&rig, TimingInput::Start, US);
    let both = [(0, 2, UNEXPECTED_START), (3, 2, UNEXPECTED_START)];
    assert_eq!(edges(&mut rig), both);
    pulse(&rig, TimingInput::End, US);
    assert_eq!(edges(&mut rig), [(1, 2, UNEXPECTED_START)]);
    let ended = read64(&rig, timing::END);
    assert!((5_000..50_000).contains(&ended), "the second start set it");
    pulse(&rig, TimingInput::End, US);
    let all = UNEXPECTED_START | UNEXPECTED_END;
    assert_eq!(edges(&mut rig), [(1, 2, all), (3, 2, all)]);
    pulse(&rig, TimingInput::End, US);
    assert_eq!(edges(&mut rig), [(1, 2, all)], "the flag was set before");
    let counts = [timing::BURSTS, timing::UNPAIRED, timing::TRIGGERS];
    assert_eq!(counts.map(|counter| read(&rig, counter)), [2, 3, 2]);
    assert_eq!(read(&rig, timing::FLAGS), all);
    write(&rig, timing::FLAGS, UNEXPECTED_START);
    assert_eq!(read(&rig, timing::FLAGS), UNEXPECTED_END);
    end(rig);
}

/// A clock each 10 us, give or take 3.2 us, that drives the time; one surplus pulse, and two
/// missing ones.
pub fn external_clocks_too_many_or_too_few_are_told<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = on(make, BY_CLOCK | EVENTS);
    write(&rig, timing::PERIOD, 10_000 << 16);
    rig.write64(&timing::THIS, 0, timing::SET, 0, 500);
    let watch = |rig: &Rig<C>, on: bool| {
        // 1562 cycles, give or take 500.
        let expect = if on { 0x01f4_061a } else { 0 };
        write(rig, timing::WATCH, expect);
        // Done when this read completes.
        let _ = read(rig, timing::STATUS);
    };
    let clock = |rig: &Rig<C>, then| pulse(rig, TimingInput::Clock, then * US);
    let counts = |rig: &Rig<C>| {
        let counters = [timing::CLOCKS, timing::EARLY, timing::LOST];
        counters.map(|counter| read64(rig, counter))
    };
    watch(&rig, true);
    (0..10).for_each(|_| clock(&rig, 10));
    watch(&rig, false);
    assert_eq!(counts(&rig), [10, 0, 0]);
    assert_eq!(read64(&rig, timing::NOW), 100_500);
    watch(&rig, true);
    for then in [10, 2, 10, 25, 1] {
        clock(&rig, then);
    }
    watch(&rig, false);
    assert_eq!(counts(&rig), [15, 1, 2]);
    assert_eq!(read(&rig, timing::FLAGS), EARLY | LOST);
    assert_eq!(edges(&mut rig), [(3, 0, EARLY), (3, 0, EARLY | LOST)]);
    assert_eq!(read64(&rig, timing::NOW), 150_500);
    // Its own time continues from there.
    write(&rig, timing::CTRL, 0);
    rig.advance(20 * US);
    let now = read64(&rig, timing::NOW);
    assert!((165_000..190_000).contains(&now), "{now}");
    end(rig);
}

/// Events are not consumed: those that fit their queue and the card are reported later, the others
/// are counted.
pub fn edges_without_room_are_counted<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = on(make, EVENTS);
    for _ in 0..300 {
        rig.device.with(|card, _| card.pulse(TimingInput::Trigger));
    }
    rig.advance(30 * US);
    let lost = read64(&rig, timing::EVENTS_LOST);
    assert!((30..45).contains(&lost), "{lost} of 300");
    assert_eq!(read64(&rig, timing::TRIGGERS), 300);
    assert_eq!(read(&rig, timing::FLAGS), NO_ROOM);
    let mut taken = 0;
    for _ in 0..10 {
        while let Some(edge) = next_edge(&mut rig) {
            assert_eq!(edge.sequence, taken);
            taken += 1;
        }
        rig.write(&event::THIS, 0, event::QUEUE_RELEASED, QUEUE, taken);
        rig.advance(5 * US);
    }
    assert_eq!(u64::from(taken) + lost, 300);
    pulse(&rig, TimingInput::Trigger, US);
    assert_eq!(edges(&mut rig), [(2, 0, NO_ROOM)]);
    end(rig);
}

/// The host bus accepts nothing for a while, and meanwhile the consumer disables its queue, or writes
/// a base that is no multiple of 64: the event in flight is discarded and counted, those after it wait.
pub fn an_event_whose_room_is_taken_back_is_counted<C: SimulatedCard>(make: Make<'_, C>) {
    take_back(make, event::QUEUE_CTRL, 0);
    take_back(make, event::QUEUE_BASE, 32);
}

fn take_back<C: SimulatedCard>(make: Make<'_, C>, register: Register, value: u32) {
    const EDGES: u32 = 6;
    let mut rig = on(make, EVENTS);
    rig.write(&host::THIS, 0, host::CTRL, 0, 1);
    let _ = read(&rig, timing::STATUS);
    for _ in 0..EDGES {
        pulse(&rig, TimingInput::Trigger, US);
    }
    rig.write(&event::THIS, 0, register, QUEUE, value);
    rig.write(&host::THIS, 0, host::CTRL, 0, 0);
    rig.advance(10 * US);
    let discarded = rig.read64(&host::THIS, 0, host::EVENTS_DISCARDED, 0);
    assert_eq!(discarded, 1);
    // Earlier records are still in the memory of the queue.
    rig.write(&event::THIS, 0, event::QUEUE_CTRL, QUEUE, 0);
    rig.forget_events(QUEUE);
    rig.begin_queue(QUEUE);
    rig.advance(10 * US);
    let numbers: Vec<_> = std::iter::from_fn(|| next_edge(&mut rig)).collect();
    let numbers: Vec<_> = numbers.iter().map(|edge| edge.sequence).collect();
    let first = *numbers.first().unwrap();
    assert!(first >= 1, "the one before was thrown away");
    assert_eq!(numbers, (first..EDGES).collect::<Vec<_>>());
    assert_eq!(read64(&rig, timing::EVENTS_LOST), 0);
    end(rig);
}
