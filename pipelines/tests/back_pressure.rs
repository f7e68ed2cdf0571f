//! A sink that is full holds its chain up: nothing is lost, order is kept, and the loop receives no
//! more.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;

use pollux_pipelines::{Batch, Chain, DynStage, Moment, Output, Pipeline, Sink, Stage, StageExt};
use pollux_pmd_testkit::guard::listen;
use proptest::prelude::*;

/// Makes of each number so many, and keeps the last number until the end or the next tick.
struct Repeat(u32, Option<u32>);

impl Repeat {
    fn release(&mut self, out: &mut impl Output<u32>) {
        if let Some(held) = self.1.take() {
            (0..self.0).for_each(|_| out.push(held));
        }
    }
}

impl Stage for Repeat {
    type In = u32;
    type Out = u32;

    fn process(&mut self, batch: &mut Batch<u32>, out: &mut impl Output<u32>) {
        for n in batch.drain() {
            self.release(out);
            self.1 = Some(n);
        }
    }

    fn tick(&mut self, _now: Moment, out: &mut impl Output<u32>) {
        self.release(out);
    }

    fn finish(&mut self, out: &mut impl Output<u32>) {
        self.release(out);
    }
}

/// Has room for so many items now; counts how often it had none.
#[derive(Default)]
struct Bounded {
    room: usize,
    taken: Vec<u32>,
    refused: u64,
}

impl Sink<u32> for Bounded {
    fn try_push(&mut self, item: u32) -> Result<(), u32> {
        if self.room == 0 {
            self.refused += 1;
            return Err(item);
        }
        self.room -= 1;
        self.taken.push(item);
        Ok(())
    }
}

/// A chain of either kind, of the same stages.
enum Either {
    Compiled(Chain<pollux_pipelines::stage::Then<Repeat, Repeat>>),
    Chosen(Pipeline<u32, u32>),
}

/// One call of both kinds.
macro_rules! both {
    ($either:expr, $chain:ident => $call:expr) => {
        match $either {
            Either::Compiled($chain) => $call,
            Either::Chosen($chain) => $call,
        }
    };
}

fn compiled(first: u32, second: u32) -> Either {
    let stages = Repeat(first, None).then(Repeat(second, None));
    Either::Compiled(Chain::new(stages, 1000))
}

fn chosen(first: u32, second: u32) -> Either {
    let stages = vec![
        DynStage::new("first", Repeat(first, None)),
        DynStage::new("second", Repeat(second, None)),
    ];
    Either::Chosen(Pipeline::new(stages).unwrap().holding(1000))
}

/// A poll loop in front of a chain: receives a batch only where there is room.
struct Loop {
    chain: Either,
    batch: Batch<u32>,
    /// What it has not received yet.
    source: VecDeque<u32>,
    sink: Bounded,
    /// Rounds in which it received nothing for want of room.
    stopped: u64,
}

impl Loop {
    fn new(chain: Either, source: u32) -> Self {
        Self {
            chain,
            batch: Batch::with_capacity(5),
            source: (0..source).collect(),
            sink: Bounded::default(),
            stopped: 0,
        }
    }

    fn round(&mut self, now: u64) {
        let Self { chain, sink, .. } = self;
        if both!(chain, chain => chain.has_room(sink)) {
            while !self.batch.is_full() {
                let Some(n) = self.source.pop_front() else {
                    break;
                };
                self.batch.push(n).unwrap();
            }
            both!(chain, chain => chain.process(&mut self.batch, sink));
        } else {
            self.stopped += 1;
        }
        both!(chain, chain => chain.tick(Moment(now), sink));
    }

    /// Ends the input, and gives the sink as much room as it takes.
    fn finish(&mut self) -> &[u32] {
        let Self { chain, sink, .. } = self;
        both!(chain, chain => chain.finish(sink));
        while !both!(chain, chain => chain.has_room(sink)) {
            self.stopped += 1;
            sink.room += 1;
        }
        &sink.taken
    }
}

fn expected(count: u32, each: u32) -> Vec<u32> {
    let repeat = |n| std::iter::repeat_n(n, each as usize);
    (0..count).flat_map(repeat).collect()
}

#[test]
fn a_sink_that_is_full_for_ever_stops_the_loop() {
    for chain in [compiled(2, 3), chosen(2, 3)] {
        let mut poll = Loop::new(chain, 1000);
        for now in 0..100 {
            poll.round(now);
        }
        // One batch was received, before the sink was known to be full.
        assert_eq!(poll.source.front(), Some(&5));
        assert_eq!(poll.stopped, 99);
        let counts = both!(&poll.chain, chain => chain.back_pressure());
        assert_eq!(counts.stops.get(), 99);
        assert_eq!(counts.refused.get(), poll.sink.refused);
        // Each stage keeps one of the last number until a tick, and there is none.
        assert_eq!((counts.held.get(), counts.most_held.get()), (21, 21));
        assert!(poll.sink.taken.is_empty());
        // What is never taken is there to be accounted for.
        both!(&mut poll.chain, chain => chain.finish(&mut poll.sink));
        let left: Vec<_> = both!(&mut poll.chain, chain => chain.take_held().collect());
        assert_eq!(left, expected(5, 6));
        assert_eq!(counts.held.get(), 0);
        assert!(both!(&mut poll.chain, chain => chain.has_room(&mut poll.sink)));
    }
}

#[test]
fn a_sink_with_room_stops_nothing() {
    for chain in [compiled(1, 1), chosen(1, 1)] {
        let mut poll = Loop::new(chain, 1000);
        poll.sink.room = 1000;
        (0..200).for_each(|now| poll.round(now));
        assert_eq!(poll.finish(), expected(1000, 1));
        let counts = both!(&poll.chain, chain => chain.back_pressure());
        assert_eq!(
            (poll.stopped, counts.stops.get(), counts.most_held.get()),
            (0, 0, 0)
        );
    }
}

/// With memory for what is held, a full sink causes no allocation.
#[test]
fn what_is_held_is_in_memory_of_before() {
    for chain in [compiled(2, 3), chosen(2, 3)] {
        let mut poll = Loop::new(chain, 1000);
        poll.sink.taken.reserve(6000);
        let noise = listen(|ear| {
            ear.during(|| {
                for now in 0..2000 {
                    poll.sink.room += 4;
                    poll.round(now);
                }
            });
        });
        noise.1.assert_none();
        assert!(poll.stopped > 0);
        assert_eq!(poll.finish(), expected(1000, 6));
    }
}

/// A stage that has as much as it may hold until a tick.
#[derive(Default)]
struct Slow(VecDeque<u32>);

impl Stage for Slow {
    type In = u32;
    type Out = u32;

    fn process(&mut self, batch: &mut Batch<u32>, _out: &mut impl Output<u32>) {
        self.0.extend(batch.drain());
    }

    fn tick(&mut self, _now: Moment, out: &mut impl Output<u32>) {
        self.0
            .drain(..self.0.len().min(1))
            .for_each(|n| out.push(n));
    }

    fn is_full(&self) -> bool {
        !self.0.is_empty()
    }
}

#[test]
fn a_stage_that_is_full_stops_the_loop() {
    let mut chain = Chain::new(Repeat(1, None).then(Slow::default()), 0);
    let stages = vec![
        DynStage::new("repeat", Repeat(1, None)),
        DynStage::new("slow", Slow::default()),
    ];
    let mut pipeline = Pipeline::<u32, u32>::new(stages).unwrap();
    let (mut batch, mut out) = (Batch::with_capacity(3), Vec::new());
    let mut rooms = Vec::new();
    for n in 0..3 {
        batch.push(n).unwrap();
    }
    chain.process(&mut batch, &mut out);
    for n in 0..3 {
        batch.push(n).unwrap();
    }
    pipeline.process(&mut batch, &mut out);
    for now in 0..4 {
        rooms.push((chain.has_room(&mut out), pipeline.has_room(&mut out)));
        chain.tick(Moment(now), &mut out);
        pipeline.tick(Moment(now), &mut out);
    }
    // The first tick brings the number that the stage in front has kept.
    assert_eq!(
        rooms,
        [(false, false), (false, false), (false, false), (true, true)]
    );
    assert_eq!(out, [0, 0, 1, 1, 2, 2]);
    assert_eq!(chain.back_pressure().stops.get(), 3);
    assert_eq!(pipeline.back_pressure().stops.get(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However the room comes and goes, nothing is lost, nothing is there twice, and order is kept;
    /// no more is held than one batch and one tick make.
    #[test]
    fn a_sink_that_is_full_for_a_while_loses_nothing(
        rooms in prop::collection::vec(0..40_usize, 1..60),
        first in 1..4_u32,
        second in 1..4_u32,
        count in 0..150_u32,
    ) {
        let each = first * second;
        for chain in [compiled(first, second), chosen(first, second)] {
            let mut poll = Loop::new(chain, count);
            let mut received = 0;
            for (now, &room) in rooms.iter().enumerate() {
                poll.sink.room = room;
                poll.round(now as u64);
                received = count as usize - poll.source.len();
                let taken = &poll.sink.taken;
                prop_assert_eq!(&expected(count, each)[..taken.len()], &taken[..]);
                let counts = both!(&poll.chain, chain => chain.back_pressure());
                prop_assert!(counts.most_held.get() <= u64::from(7 * each));
                prop_assert_eq!(counts.refused.get(), poll.sink.refused);
                prop_assert_eq!(counts.stops.get(), poll.stopped);
            }
            poll.source.clear();
            prop_assert_eq!(poll.finish(), expected(received as u32, each));
        }
    }
}
