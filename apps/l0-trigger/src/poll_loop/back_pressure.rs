//! A full stage or output: the loop takes no frames, and none is lost.

#![allow(clippy::unwrap_used)]
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pollux_na62::l0::L0Record;
use pollux_na62::stage_registry;
use pollux_pipelines::{DynStage, Output, Stage};
use pollux_pmd::event::EventRecord;

use super::standstill::{EVENTS, Plain, frames, rounds, trigger_of};
use super::*;
use crate::counters::Counters;
use crate::tap;

const WITH_GATE: &str = r#"
    [answer]
    to = "nobody"

    [[stage]]
    name = "decompress"
    [[stage]]
    name = "build"
    [[stage]]
    name = "rings"
    [[stage]]
    name = "decide"
    [[stage]]
    name = "gate"
"#;

#[derive(serde::Deserialize)]
struct NoOptions {}

/// Passes items on; its flag makes it full.
#[derive(Clone, Default)]
struct Gate {
    is_full: Arc<AtomicBool>,
    ticks: Arc<AtomicU64>,
}

impl Stage for Gate {
    type In = Decision;
    type Out = Decision;

    fn process(&mut self, batch: &mut Batch<Decision>, out: &mut impl Output<Decision>) {
        batch.drain().for_each(|decision| out.push(decision));
    }

    fn tick(&mut self, _now: Moment, _out: &mut impl Output<Decision>) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
    }

    fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }
}

/// Frames for the port; how many.
fn fill(plain: &Plain, counters: &Counters) -> usize {
    let frames = frames(counters.stats.sources.len() as u8);
    let count = frames.len();
    *plain.0.lock().unwrap() = frames;
    count
}

/// Lets the loop take all of them; every event is decided, and every frame is accounted for.
fn assert_all_decided(mut trigger: PollLoop, counters: &Counters) {
    rounds(&mut trigger, 20);
    trigger.pipeline.finish(&mut trigger.sink);
    trigger.sink.flush();
    assert_eq!(counters.stats.events.complete.get(), EVENTS);
    assert_eq!(trigger.sink.decisions, EVENTS);
    let balance = counters.ledgers.ledger.balance();
    assert!(
        balance.is_balanced() && balance.dropped_total() == 0,
        "{balance}"
    );
}

#[test]
fn a_full_stage_stops_reception() {
    let gate = Gate::default();
    let (mut stages, stage) = (stage_registry(), gate.clone());
    stages.register("gate", move |NoOptions {}, _| {
        Ok(DynStage::new("gate", stage.clone()))
    });
    let (mut trigger, plain, counters) = trigger_of(stages, Some(WITH_GATE));
    gate.is_full.store(true, Ordering::Relaxed);
    let count = fill(&plain, &counters);
    rounds(&mut trigger, 10);
    assert_eq!(plain.0.lock().unwrap().len(), count, "frames were taken");
    assert_eq!(gate.ticks.load(Ordering::Relaxed), 10, "it may get on");
    assert_eq!(counters.stage_stops.stops.get(), 10);
    assert_eq!(counters.output_stops.get(), 0);
    gate.is_full.store(false, Ordering::Relaxed);
    assert_all_decided(trigger, &counters);
    assert_eq!(counters.stage_stops.stops.get(), 10);
}

/// The trigger with a full tap, its consumer, and the number of records in it.
fn full_tap() -> (
    PollLoop,
    Plain,
    Arc<Counters>,
    pollux_pmd::event::EventConsumer,
    u64,
) {
    let (mut trigger, plain, counters) = trigger_of(stage_registry(), None);
    let (consumer, _) = tap::add(&mut trigger.sink.taps, false).unwrap();
    let producer = &mut trigger.sink.taps.last_mut().unwrap().producer;
    let mut filled = 0;
    while producer.push(&EventRecord::default()).is_ok() {
        filled += 1;
    }
    (trigger, plain, counters, consumer, filled)
}

#[test]
fn a_full_output_stops_reception_of_a_recording() {
    let (mut trigger, plain, counters, mut consumer, filled) = full_tap();
    trigger.sink.patient = true;
    let count = fill(&plain, &counters);
    rounds(&mut trigger, 10);
    assert_eq!(plain.0.lock().unwrap().len(), count, "frames were taken");
    assert_eq!(counters.output_stops.get(), 10);
    for _ in 0..filled {
        assert!(consumer.poll().is_some());
    }
    let missed = Arc::clone(&trigger.sink.taps.last().unwrap().counts);
    assert_all_decided(trigger, &counters);
    assert_eq!(counters.output_stops.get(), 10);
    let records = std::iter::from_fn(|| consumer.poll());
    let records = records.filter_map(|event| L0Record::from_event(&event));
    assert_eq!(records.count() as u64, EVENTS);
    assert_eq!(missed.queue.missed.get(), 0);
}

/// A live run goes on, and counts the events that the output has no room for. So does a recording that
/// is to end.
#[test]
fn a_full_output_stops_neither_a_live_run_nor_the_end() {
    for stopped in [false, true] {
        let (mut trigger, plain, counters, _consumer, _) = full_tap();
        trigger.sink.patient = stopped;
        if stopped {
            trigger.sink.stop.stop();
        }
        fill(&plain, &counters);
        let missed = Arc::clone(&trigger.sink.taps.last().unwrap().counts);
        assert_all_decided(trigger, &counters);
        assert_eq!(counters.output_stops.get(), 0);
        assert_eq!(missed.queue.missed.get(), EVENTS);
    }
}
