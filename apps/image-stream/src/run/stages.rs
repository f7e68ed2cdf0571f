//! The stages of a run: in the loop of the images, or in workers.

use std::sync::Arc;

use anyhow::Result;
use pollux_images::receive::Stored;
use pollux_images::stages::{Capacity, ImagesEnv, RadialAxis, Work};
use pollux_mempool::time::Ns;
use pollux_pipelines::in_flight::{InFlight, InFlightCounts, InFlightOptions};
use pollux_pipelines::{Batch, DynStage, Output, Pipeline, Stage, StageEnv, StageRegistry};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::{Count, LatencyView};

use super::plan::Plan;
use super::workers::{self, Chain, Stacking, Worker};

/// How long the oldest stack may be with a worker before it is given up: longer than a busy machine
/// takes for it, since a recording could have waited.
const PATIENCE: Ns = Ns(30_000_000_000);

/// For how long the first image of a stack waits for the others in a live run. In a recording, whose times
/// have passed, it waits for the end.
const STACK_WAIT: Ns = Ns(100_000_000);

/// Workers of a run, before their launch.
pub struct Pool<P: Stored> {
    pub workers: Vec<Worker<P>>,
    pub stop: StopFlag,
    pub counts: Arc<InFlightCounts>,
    /// Times of the stages of each worker.
    pub times: Vec<(String, LatencyView)>,
}

impl<P: Stored> Pool<P> {
    /// Images that each worker has processed.
    pub fn images(&self) -> Vec<Arc<Count>> {
        self.workers.iter().map(Worker::images).collect()
    }
}

/// What the stages of a run find in images.
#[derive(Default)]
pub struct Findings {
    pub capacity: Capacity,
    /// Radial coordinate of the curves, if there are any.
    pub axis: Option<RadialAxis>,
}

/// The stages of a run.
pub struct Built<P: Stored> {
    pub chain: Chain<P>,
    pub pool: Option<Pool<P>>,
    pub findings: Findings,
}

/// Passes images on.
struct Pass<P>(std::marker::PhantomData<fn(P)>);

impl<P: Stored> Stage for Pass<P> {
    type In = Work<P>;
    type Out = Work<P>;

    const GATHERED: usize = 1;

    fn process(&mut self, batch: &mut Batch<Work<P>>, out: &mut impl Output<Work<P>>) {
        batch.drain().for_each(|work| out.push(work));
    }
}

/// One chain of the configured stages.
fn chain<P: Stored>(
    plan: &Plan,
    registry: &StageRegistry,
    mask: &[bool],
) -> Result<(Chain<P>, Findings)> {
    if plan.config.stage.is_empty() {
        let pass = DynStage::new("pass", Pass::<P>(std::marker::PhantomData));
        return Ok((Pipeline::new(vec![pass])?, Findings::default()));
    }
    let mut env = StageEnv::new();
    let mut images = ImagesEnv::new(plan.layout.image(), plan.layout.module().rows);
    images.mask = (!mask.is_empty()).then(|| mask.to_vec());
    images.vetoed = plan.options.vetoed;
    env.insert(images);
    let chain = registry.pipeline(&plan.config.stage, &mut env)?;
    let findings = Findings {
        capacity: env.get().copied().unwrap_or_default(),
        axis: env.get().ok().cloned(),
    };
    Ok((chain, findings))
}

/// The stages of a run, of those in the registry, with its workers. `mask` is true for bad pixels, and
/// empty if they are not known.
///
/// # Errors
/// Stages that are refused.
pub fn build<P: Stored>(plan: &Plan, registry: &StageRegistry, mask: &[bool]) -> Result<Built<P>> {
    let (first, findings) = chain(plan, registry, mask)?;
    let workers = plan.worker_cpus.len();
    if workers == 0 {
        return Ok(Built {
            chain: first,
            pool: None,
            findings,
        });
    }
    let others = (1..workers).map(|_| Ok(chain(plan, registry, mask)?.0));
    let chains = std::iter::once(Ok(first)).chain(others);
    let chains = chains.collect::<Result<Vec<_>>>()?;
    // Of several workers each has its own.
    let name = |worker: usize, stage: String| match workers {
        1 => stage,
        _ => format!("{stage}.{worker}"),
    };
    let own = |(worker, chain)| {
        times(chain)
            .into_iter()
            .map(move |(stage, view)| (name(worker, stage), view))
    };
    let times = chains.iter().enumerate().flat_map(own).collect();
    let stop = StopFlag::new();
    let images = plan.config.detector.stack;
    let wait = if plan.is_recorded() {
        Ns(u64::MAX / 2)
    } else {
        STACK_WAIT
    };
    let stacking = Stacking { images, wait };
    let (pool, workers) = workers::pool(chains, stacking, &stop, plan.shares_cpus())?;
    let options = InFlightOptions {
        jobs: 2 * workers.len(),
        patience: PATIENCE,
    };
    let in_flight = InFlight::new(pool, &options);
    let counts = in_flight.counts();
    let chain = Pipeline::new(vec![DynStage::new("workers", in_flight)])?;
    Ok(Built {
        chain,
        pool: Some(Pool {
            workers,
            stop,
            counts,
            times,
        }),
        findings,
    })
}

/// Times of the stages of a chain.
pub fn times<P: 'static>(chain: &Chain<P>) -> Vec<(String, LatencyView)> {
    let times = chain.times();
    times.map(|(name, view)| (name.to_owned(), view)).collect()
}
