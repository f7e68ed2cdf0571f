//! Pipelines whose stages are chosen at run time.
//!
//! The types of neighbouring stages are compared when the pipeline is built; at run time each
//! batch costs one indirect call a stage, and the code of a stage is the same as in a compiled
//! chain. Each stage is timed, batch by batch.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;

use pollux_pmd::{Clock, LatencyHistogram, LatencyView, TscClock};

use crate::env::without_path;
use crate::stage::{Batch, Moment, Sink, Stage};

/// Why stages do not make a pipeline.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// Two neighbours do not fit.
    #[error("stage `{stage}` takes {takes}, but {} {makes}", giver(before.as_deref()))]
    Mismatch {
        /// The stage that does not fit.
        stage: String,
        /// Its place: the first is number 1.
        number: usize,
        /// The kind that it takes.
        takes: &'static str,
        /// The stage before it; `None` where it is the first.
        before: Option<String>,
        /// The kind that it would be given.
        makes: &'static str,
    },
    /// The last stage makes something else than the pipeline must.
    #[error("the pipeline must make {wanted}, but its last stage, `{stage}`, makes {makes}")]
    End {
        /// The last stage.
        stage: String,
        /// Its place: the first is number 1.
        number: usize,
        /// The kind that it makes.
        makes: &'static str,
        /// The kind that is wanted.
        wanted: &'static str,
    },
    /// There is no stage.
    #[error("a pipeline needs at least one stage")]
    Empty,
}

impl PipelineError {
    /// The place of the stage that is wrong, if it is one: the first is number 1.
    #[must_use]
    pub fn number(&self) -> Option<usize> {
        match *self {
            Self::Mismatch { number, .. } | Self::End { number, .. } => Some(number),
            Self::Empty => None,
        }
    }
}

/// Who gives a stage what it does not take.
fn giver(before: Option<&str>) -> String {
    before.map_or_else(
        || "the pipeline is given".into(),
        |before| format!("stage `{before}` before it makes"),
    )
}

/// A type, to be compared and named.
#[derive(Clone, Copy)]
struct Kind {
    id: TypeId,
    name: &'static str,
}

impl Kind {
    fn of<T: 'static>() -> Self {
        Self {
            id: TypeId::of::<T>(),
            name: without_path(type_name::<T>()),
        }
    }
}

/// What people call the items that flow between stages, by their types; the others have the names of
/// their types.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    names: HashMap<TypeId, &'static str>,
}

impl Kinds {
    /// Names the items of a type.
    pub fn name<T: 'static>(&mut self, name: &'static str) {
        self.names.insert(TypeId::of::<T>(), name);
    }

    fn of(&self, kind: Kind) -> &'static str {
        self.names.get(&kind.id).copied().unwrap_or(kind.name)
    }
}

/// Takes what the last stage has made, a `Batch` of its `Out`.
trait Exit {
    fn take(&mut self, batch: &mut dyn Any);
}

struct To<'a, T, S> {
    sink: &'a mut S,
    items: std::marker::PhantomData<fn(T)>,
}

impl<T: 'static, S: Sink<T>> Exit for To<'_, T, S> {
    fn take(&mut self, batch: &mut dyn Any) {
        if let Some(batch) = batch.downcast_mut::<Batch<T>>() {
            batch.drain().for_each(|item| self.sink.push(item));
        }
    }
}

/// What a stage is asked to do: one entry point, so that its time is taken in one place.
enum Call<'a> {
    /// Process the batch, a `Batch` of its `In`; `more` of them follow at once, so what is made
    /// may wait for them until it fills a batch.
    Process {
        batch: &'a mut dyn Any,
        more: bool,
    },
    Tick(Moment),
    Finish,
}

/// A stage whose types are hidden.
trait Node: Send {
    fn takes(&self) -> Kind;
    fn makes(&self) -> Kind;
    /// Runs the stage, and `rest` on what it makes; returns the cycles that both took, but for what
    /// `rest` does besides when it is told the time or the end.
    fn run(&mut self, call: Call<'_>, rest: &mut [DynStage], exit: &mut dyn Exit) -> u64;
    fn times(&self) -> LatencyView;
}

/// A stage of any types, with its name.
pub struct DynStage {
    name: String,
    node: Box<dyn Node>,
}

impl DynStage {
    /// Hides the types of a stage.
    #[must_use]
    pub fn new<S>(name: impl Into<String>, stage: S) -> Self
    where
        S: Stage + Send + 'static,
        S::In: Send + 'static,
        S::Out: Send + 'static,
    {
        let node = Typed {
            stage,
            made: Batch::with_capacity(S::GATHERED),
            waits: false,
            clock: TscClock::get(),
            times: LatencyHistogram::new(),
        };
        Self {
            name: name.into(),
            node: Box::new(node),
        }
    }

    /// The name in the configuration and in reports.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

struct Typed<S: Stage> {
    stage: S,
    /// What the stage has made and the next one has not taken yet.
    made: Batch<S::Out>,
    /// Stages behind may keep back what they have been told is not the last.
    waits: bool,
    clock: TscClock,
    times: LatencyHistogram,
}

/// The sink behind a stage: hands full batches on.
struct Link<'a, T> {
    made: &'a mut Batch<T>,
    waits: &'a mut bool,
    rest: &'a mut [DynStage],
    exit: &'a mut dyn Exit,
    /// Cycles that the stages behind took.
    below: u64,
}

impl<T: 'static> Link<'_, T> {
    /// Hands on what was made; the stages behind keep back none of it unless there is `more`.
    fn flush(&mut self, more: bool) {
        if self.made.is_empty() && !*self.waits {
            return;
        }
        *self.waits = more;
        match self.rest.split_first_mut() {
            Some((next, rest)) => {
                let batch = &mut *self.made;
                self.below += next
                    .node
                    .run(Call::Process { batch, more }, rest, self.exit);
            }
            None => self.exit.take(self.made),
        }
        self.made.clear();
    }
}

impl<T: 'static> Sink<T> for Link<'_, T> {
    #[inline]
    fn push(&mut self, item: T) {
        if let Err(item) = self.made.push(item) {
            self.flush(true);
            // The batch is empty now and holds at least one.
            let _ = self.made.push(item);
        }
    }
}

impl<S> Node for Typed<S>
where
    S: Stage + Send,
    S::In: Send + 'static,
    S::Out: Send + 'static,
{
    fn takes(&self) -> Kind {
        Kind::of::<S::In>()
    }

    fn makes(&self) -> Kind {
        Kind::of::<S::Out>()
    }

    fn run(&mut self, call: Call<'_>, rest: &mut [DynStage], exit: &mut dyn Exit) -> u64 {
        let start = self.clock.now();
        let mut link = Link {
            made: &mut self.made,
            waits: &mut self.waits,
            rest,
            exit,
            below: 0,
        };
        let (mut processed, mut gather) = (false, false);
        let mut onward = None;
        match call {
            Call::Process { batch, more } => {
                // The types were compared when the pipeline was built.
                let batch = batch.downcast_mut::<Batch<S::In>>();
                if let Some(batch) = batch.filter(|batch| !batch.is_empty()) {
                    self.stage.process(batch, &mut link);
                    processed = true;
                }
                gather = more;
            }
            Call::Tick(now) => {
                self.stage.tick(now, &mut link);
                onward = Some(Call::Tick(now));
            }
            Call::Finish => {
                self.stage.finish(&mut link);
                onward = Some(Call::Finish);
            }
        }
        if !gather {
            link.flush(false);
        }
        let below = link.below;
        let spent = self.clock.now().since(start);
        if processed {
            let own = spent.saturating_sub(below);
            self.times.record(self.clock.to_ns(own).0);
        }
        if let (Some(call), Some((next, rest))) = (onward, rest.split_first_mut()) {
            next.node.run(call, rest, exit);
        }
        spent
    }

    fn times(&self) -> LatencyView {
        self.times.view()
    }
}

/// A chain of stages from `In` to `Out`.
pub struct Pipeline<In, Out> {
    stages: Vec<DynStage>,
    types: std::marker::PhantomData<fn(In) -> Out>,
}

impl<In: 'static, Out: 'static> Pipeline<In, Out> {
    /// Chains stages.
    ///
    /// # Errors
    /// No stage at all, neighbours whose types differ, or ends of other types than these.
    pub fn new(stages: Vec<DynStage>) -> Result<Self, PipelineError> {
        Self::with_kinds(stages, &Kinds::default())
    }

    /// Chains stages; errors call what does not fit by these names.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn with_kinds(stages: Vec<DynStage>, kinds: &Kinds) -> Result<Self, PipelineError> {
        let mut made = Kind::of::<In>();
        for (place, stage) in stages.iter().enumerate() {
            let takes = stage.node.takes();
            if takes.id != made.id {
                return Err(PipelineError::Mismatch {
                    stage: stage.name.clone(),
                    number: place + 1,
                    takes: kinds.of(takes),
                    before: place
                        .checked_sub(1)
                        .map(|before| stages[before].name.clone()),
                    makes: kinds.of(made),
                });
            }
            made = stage.node.makes();
        }
        let last = stages.last().ok_or(PipelineError::Empty)?;
        let wanted = Kind::of::<Out>();
        if wanted.id != made.id {
            return Err(PipelineError::End {
                stage: last.name.clone(),
                number: stages.len(),
                makes: kinds.of(made),
                wanted: kinds.of(wanted),
            });
        }
        Ok(Self {
            stages,
            types: std::marker::PhantomData,
        })
    }

    fn run(&mut self, call: Call<'_>, out: &mut impl Sink<Out>) {
        let mut exit = To {
            sink: out,
            items: std::marker::PhantomData,
        };
        if let Some((first, rest)) = self.stages.split_first_mut() {
            first.node.run(call, rest, &mut exit);
        }
    }

    /// Takes a batch through all stages. What the first stage leaves in it stays.
    #[inline]
    pub fn process(&mut self, batch: &mut Batch<In>, out: &mut impl Sink<Out>) {
        self.run(Call::Process { batch, more: false }, out);
    }

    /// Tells all stages the time.
    pub fn tick(&mut self, now: Moment, out: &mut impl Sink<Out>) {
        self.run(Call::Tick(now), out);
    }

    /// Lets all stages release what they hold.
    pub fn finish(&mut self, out: &mut impl Sink<Out>) {
        self.run(Call::Finish, out);
    }

    /// Each stage's name, and the time that it spent on each batch, in nanoseconds.
    pub fn times(&self) -> impl Iterator<Item = (&str, LatencyView)> {
        self.stages
            .iter()
            .map(|stage| (stage.name.as_str(), stage.node.times()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    struct Digits;

    impl Stage for Digits {
        type In = u32;
        type Out = char;

        fn process(&mut self, batch: &mut Batch<u32>, out: &mut impl Sink<char>) {
            batch
                .drain()
                .for_each(|n| n.to_string().chars().for_each(|c| out.push(c)));
        }

        fn tick(&mut self, now: Moment, out: &mut impl Sink<char>) {
            out.push(if now.0 == 0 { '.' } else { '!' });
        }
    }

    #[derive(Default)]
    struct Count(u32);

    impl Stage for Count {
        type In = char;
        type Out = u32;

        fn process(&mut self, batch: &mut Batch<char>, _out: &mut impl Sink<u32>) {
            self.0 += batch.drain().count() as u32;
        }

        fn finish(&mut self, out: &mut impl Sink<u32>) {
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

        fn process(&mut self, batch: &mut Batch<u32>, out: &mut impl Sink<u32>) {
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
}
