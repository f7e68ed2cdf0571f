//! Pipelines of stages with hidden types.
#![allow(clippy::unwrap_used)]
use super::*;

struct Digits;

impl Stage for Digits {
    type In = u32;
    type Out = char;

    fn process(&mut self, batch: &mut Batch<u32>, out: &mut impl Output<char>) {
        batch
            .drain()
            .for_each(|n| n.to_string().chars().for_each(|c| out.push(c)));
    }

    fn tick(&mut self, now: Moment, out: &mut impl Output<char>) {
        out.push(if now.0 == 0 { '.' } else { '!' });
    }
}

#[derive(Default)]
struct Count(u32);

impl Stage for Count {
    type In = char;
    type Out = u32;

    fn process(&mut self, batch: &mut Batch<char>, _out: &mut impl Output<u32>) {
        self.0 += batch.drain().count() as u32;
    }

    fn finish(&mut self, out: &mut impl Output<u32>) {
        out.push(self.0);
    }
}

#[test]
fn stages_chosen_at_run_time_do_their_work() {
    let stages = vec![
        DynStage::new("digits", Digits),
        DynStage::new("count", Count::default()),
        DynStage::new("again", Digits),
    ];
    let mut pipeline = Pipeline::<u32, char>::new(stages).unwrap();
    let (mut batch, mut out) = (Batch::with_capacity(100), Vec::new());
    (0..100).for_each(|n| batch.push(n).unwrap());
    pipeline.process(&mut batch, &mut out);
    pipeline.tick(Moment(0), &mut out);
    pipeline.finish(&mut out);
    assert_eq!(out.iter().collect::<String>(), ".191");
    let names: Vec<_> = pipeline
        .times()
        .map(|(n, t)| (n, t.percentiles().count))
        .collect();
    // The 190 digits, and one batch more for what the tick made.
    let batches = 190_u64.div_ceil(crate::stage::BATCH as u64) + 1;
    assert_eq!(names, [("digits", 1), ("count", batches), ("again", 1)]);
}

/// Hands on each number by itself.
struct Single;

impl Stage for Single {
    type In = u32;
    type Out = u32;

    const GATHERED: usize = 1;

    fn process(&mut self, batch: &mut Batch<u32>, out: &mut impl Output<u32>) {
        batch.drain().for_each(|n| out.push(n));
    }
}

#[test]
fn what_follows_at_once_is_gathered_with_what_is_there() {
    let stages = vec![
        DynStage::new("single", Single),
        DynStage::new("digits", Digits),
        DynStage::new("count", Count::default()),
    ];
    let mut pipeline = Pipeline::<u32, u32>::new(stages).unwrap();
    let (mut batch, mut out) = (Batch::with_capacity(100), Vec::new());
    let mut batches = 0;
    for _ in 0..2 {
        (10..60).for_each(|n| batch.push(n).unwrap());
        pipeline.process(&mut batch, &mut out);
        // Nothing waits for the next call.
        batches += 100_u64.div_ceil(crate::stage::BATCH as u64);
        let counted = pipeline.times().last().map(|(_, t)| t.percentiles().count);
        assert_eq!(counted, Some(batches));
    }
    pipeline.finish(&mut out);
    assert_eq!(out, [200]);
}

#[test]
fn stages_that_do_not_fit_are_named() {
    let error = Pipeline::<u32, u32>::new(vec![DynStage::new("digits", Digits)])
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "the pipeline must make u32, but its last stage, `digits`, makes char"
    );
    let stages = vec![DynStage::new("a", Digits), DynStage::new("b", Digits)];
    let error = Pipeline::<u32, char>::new(stages).err().unwrap();
    assert_eq!(
        error.to_string(),
        "stage `b` takes u32, but stage `a` before it makes char"
    );
    assert!(Pipeline::<u32, u32>::new(vec![]).is_err());
}
