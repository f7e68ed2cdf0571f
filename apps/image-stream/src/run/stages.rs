//! The stages of a run: in the loop of the images, or in workers.

use std::sync::Arc;

use anyhow::Result;
use pollux_images::Shape;
use pollux_images::receive::Stored;
use pollux_images::stages::{ImagesEnv, StagePixel, Work, image_stages};
use pollux_mempool::time::Ns;
use pollux_pipelines::in_flight::{InFlight, InFlightCounts, InFlightOptions};
use pollux_pipelines::{Batch, DynStage, Output, Pipeline, Stage, StageEnv};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::{Count, LatencyView};

use super::plan::Plan;
use super::workers::{self, Chain, Worker};

/// How long the oldest stack may be with a worker before it is given up.
const PATIENCE: Ns = Ns(2_000_000_000);

/// Workers of a run, before their launch.
pub struct Pool<P: Stored> {
    pub workers: Vec<Worker<P>>,
    pub stop: StopFlag,
    pub counts: Arc<InFlightCounts>,
}

impl<P: Stored> Pool<P> {
    /// Images that each worker has processed.
    pub fn images(&self) -> Vec<Arc<Count>> {
        self.workers.iter().map(Worker::images).collect()
    }
}

/// The stages of a run.
pub struct Built<P: Stored> {
    pub chain: Chain<P>,
    pub pool: Option<Pool<P>>,
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

/// A chain of no stages.
pub fn nothing<P: Stored>() -> Result<Chain<P>> {
    let pass = DynStage::new("pass", Pass::<P>(std::marker::PhantomData));
    Ok(Pipeline::new(vec![pass])?)
}

/// One chain of the configured stages.
fn chain<P: StagePixel>(plan: &Plan, shape: Shape, mask: &[bool]) -> Result<Chain<P>> {
    if plan.config.stage.is_empty() {
        return nothing();
    }
    let mut env = StageEnv::new();
    let mut images = ImagesEnv::new(shape, plan.layout.module().rows);
    images.mask = Some(mask.to_vec());
    env.insert(images);
    Ok(image_stages::<P>().pipeline(&plan.config.stage, &mut env)?)
}

/// The stages of a run, with its workers.
///
/// # Errors
/// Stages that are refused.
pub fn build<P: StagePixel>(plan: &Plan, shape: Shape, mask: &[bool]) -> Result<Built<P>> {
    let workers = plan.worker_cpus.len();
    if workers == 0 {
        let chain = chain(plan, shape, mask)?;
        return Ok(Built { chain, pool: None });
    }
    let chains = (0..workers).map(|_| chain(plan, shape, mask));
    let chains = chains.collect::<Result<Vec<_>>>()?;
    let stop = StopFlag::new();
    let stack = plan.config.detector.stack;
    let (pool, workers) = workers::pool(chains, stack, &stop, plan.shares_cpus())?;
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
        }),
    })
}

/// Times of the stages of a chain.
pub fn times<P: 'static>(chain: &Chain<P>) -> Vec<(String, LatencyView)> {
    let times = chain.times();
    times.map(|(name, view)| (name.to_owned(), view)).collect()
}
