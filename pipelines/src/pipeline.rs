//! Pipelines whose stages are chosen at run time.
//!
//! The types of neighbouring stages are compared when the pipeline is built; at run time each
//! batch costs one indirect call a stage, and the code of a stage is the same as in a compiled
//! chain. Each stage is timed, batch by batch.

mod kind;

use std::any::Any;
use std::sync::Arc;

use pollux_pmd::{Clock, LatencyHistogram, LatencyView, TscClock};

use self::kind::Kind;
pub use self::kind::{Kinds, PipelineError};
use crate::sink::{BackPressure, Held, Holding, Output, Sink};
use crate::stage::{BATCH, Batch, Moment, Stage};
use crate::wanted::Wanted;

/// Takes what the last stage has made, a `Batch` of its `Out`.
trait Exit {
    fn take(&mut self, batch: &mut dyn Any);
}

impl<T: 'static, S: Sink<T>> Exit for Holding<'_, T, S> {
    fn take(&mut self, batch: &mut dyn Any) {
        if let Some(batch) = batch.downcast_mut::<Batch<T>>() {
            batch.drain().for_each(|item| self.push(item));
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
    /// Nothing more follows at once: what was kept back for it goes on.
    Flush,
    Tick(Moment),
    Finish,
}

/// A stage whose types are hidden.
trait Node: Send {
    fn takes(&self) -> Kind;
    fn makes(&self) -> Kind;
    /// What the stage wants at once.
    fn wants(&self) -> Wanted;
    /// Sets the batch size that the next stage wants: results are gathered for it.
    fn gather_for(&mut self, wanted: Wanted);
    /// Runs the stage, and `rest` on its results. Returns the cycles of both, without those of
    /// `rest` for a tick or the finish.
    fn run(&mut self, call: Call<'_>, rest: &mut [DynStage], exit: &mut dyn Exit) -> u64;
    fn times(&self) -> LatencyView;
    fn is_full(&self) -> bool;
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
            wanted: Wanted::default(),
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
    /// What the next one wants.
    wanted: Wanted,
    /// Stages behind may keep back what they have been told is not the last.
    waits: bool,
    clock: TscClock,
    times: LatencyHistogram,
}

/// The sink behind a stage: hands full batches on.
struct Link<'a, T> {
    made: &'a mut Batch<T>,
    wanted: &'a mut Wanted,
    waits: &'a mut bool,
    rest: &'a mut [DynStage],
    exit: &'a mut dyn Exit,
    /// Cycles that the stages behind took.
    below: u64,
}

impl<T: 'static> Link<'_, T> {
    /// At the end of a batch, or at a time: what is too little for the next stage stays, unless it
    /// has waited long enough.
    #[inline]
    fn end_batch(&mut self, now: Option<Moment>) {
        let kept = self.wanted.keeps_back(self.made.as_slice().len());
        if !kept || now.is_some_and(|now| self.wanted.is_due(now)) {
            self.flush(false);
        } else if std::mem::take(self.waits)
            && let Some((next, rest)) = self.rest.split_first_mut()
        {
            self.below += next.node.run(Call::Flush, rest, self.exit);
        }
    }

    /// Hands on what was made; the stages behind keep back none of it unless there is `more`.
    fn flush(&mut self, more: bool) {
        if self.made.is_empty() && !*self.waits {
            return;
        }
        *self.waits = more;
        self.wanted.begin_anew();
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

impl<T: 'static> Output<T> for Link<'_, T> {
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

    fn wants(&self) -> Wanted {
        Wanted::new(&self.stage.batch(), self.stage.batch_wait())
    }

    fn gather_for(&mut self, wanted: Wanted) {
        self.made = Batch::with_capacity(wanted.room(S::GATHERED));
        self.wanted = wanted;
    }

    fn run(&mut self, call: Call<'_>, rest: &mut [DynStage], exit: &mut dyn Exit) -> u64 {
        let start = self.clock.now();
        let mut link = Link {
            made: &mut self.made,
            wanted: &mut self.wanted,
            waits: &mut self.waits,
            rest,
            exit,
            below: 0,
        };
        let (mut processed, mut gather) = (false, false);
        let (mut onward, mut now) = (None, None);
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
            Call::Flush => {}
            Call::Tick(at) => {
                self.stage.tick(at, &mut link);
                (onward, now) = (Some(Call::Tick(at)), Some(at));
            }
            Call::Finish => {
                self.stage.finish(&mut link);
                link.flush(false);
                onward = Some(Call::Finish);
            }
        }
        if !gather {
            link.end_batch(now);
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

    fn is_full(&self) -> bool {
        self.stage.is_full()
    }
}

/// A chain of stages from `In` to `Out`, and what its sink had no room for.
///
/// The sink may be full ([`Sink::try_push`]): the results that it hands back are held, in order. The
/// poll loop asks whether there [is room](Self::has_room) before it receives, so that no more than the
/// results of one batch are held.
pub struct Pipeline<In, Out> {
    stages: Vec<DynStage>,
    /// Where the first stage wants batches of some size: what is gathered for it.
    front: Option<Front<In>>,
    held: Held<Out>,
}

/// The batch in front of the first stage.
struct Front<In> {
    items: Batch<In>,
    wanted: Wanted,
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
    pub fn with_kinds(mut stages: Vec<DynStage>, kinds: &Kinds) -> Result<Self, PipelineError> {
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
        let wants: Vec<_> = stages.iter().map(|stage| stage.node.wants()).collect();
        for (stage, wanted) in stages.iter_mut().zip(&wants[1..]) {
            stage.node.gather_for(*wanted);
        }
        let front = (!wants[0].is_any()).then(|| Front {
            items: Batch::with_capacity(wants[0].room(BATCH)),
            wanted: wants[0],
        });
        Ok(Self {
            stages,
            front,
            held: Held::default(),
        })
    }

    /// Has memory for so many results that the sink has no room for: with as many as one batch and
    /// one tick make, nothing is allocated where it is full.
    #[must_use]
    pub fn holding(mut self, results: usize) -> Self {
        self.held = Held::with_capacity(results);
        self
    }

    fn run(&mut self, call: Call<'_>, out: &mut impl Sink<Out>) {
        let mut exit = self.held.output(out);
        if let Some((first, rest)) = self.stages.split_first_mut() {
            first.node.run(call, rest, &mut exit);
        }
    }

    /// Whether the pipeline takes more: hands on what it holds, and says whether all of it is gone and
    /// no stage is full. The poll loop asks this before it receives; a `false` is counted
    /// ([`BackPressure::stops`]).
    #[inline]
    pub fn has_room(&mut self, out: &mut impl Sink<Out>) -> bool {
        let full = self.stages.iter().any(|stage| stage.node.is_full());
        self.held.has_room(full, out)
    }

    /// Takes a batch through all stages. What the first stage leaves in it stays; where that stage
    /// wants batches of [some size](Stage::batch), all items are taken.
    #[inline]
    pub fn process(&mut self, batch: &mut Batch<In>, out: &mut impl Sink<Out>) {
        self.held.flush(out);
        if self.front.is_some() {
            self.gather(batch, out);
        } else {
            self.run(Call::Process { batch, more: false }, out);
        }
    }

    /// Gathers items for the first stage.
    #[cold]
    fn gather(&mut self, batch: &mut Batch<In>, out: &mut impl Sink<Out>) {
        let Some(mut front) = self.front.take() else {
            return;
        };
        let mut more = false;
        for item in batch.drain() {
            if let Err(item) = front.items.push(item) {
                more = true;
                self.hand_on(&mut front, more, out);
                // The batch is empty now and holds at least one.
                let _ = front.items.push(item);
            }
        }
        if !front.wanted.keeps_back(front.items.as_slice().len()) {
            self.hand_on(&mut front, false, out);
        } else if more {
            self.run(Call::Flush, out);
        }
        self.front = Some(front);
    }

    /// Hands on what was gathered for the first stage.
    fn hand_on(&mut self, front: &mut Front<In>, more: bool, out: &mut impl Sink<Out>) {
        let batch = &mut front.items;
        self.run(Call::Process { batch, more }, out);
        front.items.clear();
        front.wanted.begin_anew();
    }

    /// Hands on what was gathered for the first stage, at a time if it has waited long enough, or
    /// at the end.
    #[cold]
    fn flush_front(&mut self, now: Option<Moment>, out: &mut impl Sink<Out>) {
        if let Some(mut front) = self.front.take() {
            let is_due = |now| front.wanted.is_due(now);
            if !front.items.is_empty() && now.is_none_or(is_due) {
                self.hand_on(&mut front, false, out);
            }
            self.front = Some(front);
        }
    }

    /// Tells all stages the time, unless results are held: what is due then waits in its stage.
    pub fn tick(&mut self, now: Moment, out: &mut impl Sink<Out>) {
        if self.held.flush(out) {
            if self.front.is_some() {
                self.flush_front(Some(now), out);
            }
            self.run(Call::Tick(now), out);
        }
    }

    /// Lets all stages release what they hold. Results may be left where the sink is full: the caller
    /// asks whether there [is room](Self::has_room) until they are gone, or [takes](Self::take_held)
    /// them.
    pub fn finish(&mut self, out: &mut impl Sink<Out>) {
        self.held.flush(out);
        self.flush_front(None, out);
        self.run(Call::Finish, out);
    }

    /// How often the sink was full.
    #[must_use]
    pub fn back_pressure(&self) -> Arc<BackPressure> {
        self.held.counts()
    }

    /// Takes out the results that the sink had no room for: the caller accounts for them.
    pub fn take_held(&mut self) -> impl Iterator<Item = Out> + '_ {
        self.held.take()
    }

    /// Each stage's name, and the time that it spent on each batch, in nanoseconds.
    pub fn times(&self) -> impl Iterator<Item = (&str, LatencyView)> {
        self.stages
            .iter()
            .map(|stage| (stage.name.as_str(), stage.node.times()))
    }
}

#[cfg(test)]
mod tests;
