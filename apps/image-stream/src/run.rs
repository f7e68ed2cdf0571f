//! A run: packets to images, images through the stages, and what is kept to files and streams.
//!
//! ```text
//!            receive loops            image loop                    worker loops
//!  ports ---> place, convert --> images --> [dark frames] --> veto, peaks, integrate, compress
//!                                                                        |
//!                                      files, live stream <-- outputs <--+--> statistics
//! ```
//!
//! Without `--rx-loops` and `--workers` the image loop does all of it on one core.

mod conflicts;
mod counters;
mod dark;
mod demonstration;
mod describe;
mod early;
mod execute;
mod host;
mod image_loop;
mod monitoring;
mod notes;
mod observe;
mod opened;
mod outputs;
mod overrun;
mod packets;
mod page;
mod place;
mod plan;
mod ports;
mod project;
mod rdma;
mod receive_loop;
mod received;
mod reception;
mod regions;
mod report;
mod sink;
mod stages;
mod threads;
mod workers;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use arc_swap::ArcSwap;
use pollux_app::Failure;
use pollux_images::calibration::{Calibration, PedestalTracker};
use pollux_images::convert::Converter;
use pollux_images::receive::{Raw, ReceiveError, images};
use pollux_images::stages::{StagePixel, image_stages, raw_stages};
use pollux_images::statistics::ImageStatistics;
use pollux_pipelines::assemble::AssembleError;

pub use self::counters::Counters;
use self::dark::Dark;
use self::execute::{Parts, execute};
pub use self::host::{Follow, Host};
use self::observe::{RawImages, Statistics};
use self::page::Shown;
use self::place::{Converters, PlaceConverted, PlaceRaw};
pub use self::plan::Plan;
use crate::cli::RunOptions;
use crate::config::Pixels;
use crate::image::PixelType;

/// Runs until the end of the run, and reports.
///
/// # Errors
/// A configuration that is refused, a port that cannot be opened, an output that failed.
pub fn run(options: &RunOptions) -> Result<(), Failure> {
    options.clock.select()?;
    let plan = Plan::new(options, &[]).map_err(Failure::Usage)?;
    let quit = pollux_app::stop_on_signals().context("cannot handle signals")?;
    perform(&plan, &Host::alone(quit))
}

/// Runs a plan until the end of the run, and reports.
///
/// # Errors
/// As [`run`].
pub fn perform(plan: &Plan, host: &Host<'_>) -> Result<(), Failure> {
    match plan.pixels() {
        None => match plan.layout.bits() {
            8 => raw::<u8>(plan, PixelType::U8, host),
            32 => raw::<u32>(plan, PixelType::U32, host),
            _ => raw::<u16>(plan, PixelType::U16, host),
        },
        Some(Pixels::I16) => converted::<i16>(plan, PixelType::I16, host),
        Some(Pixels::I32) => converted::<i32>(plan, PixelType::I32, host),
        Some(Pixels::F32) => converted::<f32>(plan, PixelType::F32, host),
    }
}

/// The class of an error of the receiver: numbers in the configuration, or memory that cannot be had.
fn refused(error: ReceiveError) -> Failure {
    let no_memory = match &error {
        ReceiveError::Assemble(AssembleError::Region(error)) => !error.is_usage(),
        _ => false,
    };
    let error = anyhow::Error::from(error).context("[detector], [memory]");
    if no_memory {
        Failure::Run(error)
    } else {
        Failure::Usage(error)
    }
}

/// A run of raw images.
fn raw<P: Raw + Shown>(plan: &Plan, pixel: PixelType, host: &Host<'_>) -> Result<(), Failure> {
    let (placer, reader) = images::<P>(&plan.config.receive(plan.layout)).map_err(refused)?;
    let causes = *placer.causes();
    let built = stages::build(plan, &raw_stages::<P>(), &[]).context("[[stage]]");
    let built = built.map_err(Failure::Usage)?;
    let (page, tap) = page::images(plan, &[], false)?;
    let parts = Parts {
        place: PlaceRaw(placer),
        causes,
        reader,
        chain: built.chain,
        pool: built.pool,
        observer: RawImages(tap),
        dark: None,
        bad: Vec::new(),
        page,
        findings: built.findings,
    };
    Ok(execute(plan, pixel, parts, host)?)
}

/// A run of images in photons.
fn converted<P: StagePixel + Shown>(
    plan: &Plan,
    pixel: PixelType,
    host: &Host<'_>,
) -> Result<(), Failure> {
    let calibrations = plan.calibrations().context("[calibration]");
    let calibrations = calibrations.map_err(Failure::Usage)?;
    let mut receive = plan.config.receive(plan.layout);
    // In one loop the stages find the image in the cache, and notes cost more than they save.
    if !(plan.worker_cpus.is_empty() && plan.receive_cpus.is_empty()) {
        receive.notes = notes::of_stages(&plan.config.stage);
    }
    let (placer, reader) = images::<P>(&receive).map_err(refused)?;
    let converters: Converters = calibrations
        .iter()
        .map(|calibration| ArcSwap::from_pointee(Converter::new(calibration)))
        .collect();
    let dark = dark(plan, &calibrations, &converters)?;
    let shape = plan.layout.image();
    let mask = mask(&calibrations);
    let causes = *placer.causes();
    let built = stages::build(plan, &image_stages::<P>(), &mask).context("[[stage]]");
    let built = built.map_err(Failure::Usage)?;
    let (page, tap) = page::images(plan, &mask, true)?;
    let parts = Parts {
        place: PlaceConverted {
            placer,
            converters,
            dark: plan.config.dark.clone(),
        },
        causes,
        reader,
        chain: built.chain,
        pool: built.pool,
        observer: Statistics {
            images: ImageStatistics::<P>::new(shape).map_err(Failure::usage)?,
            tap,
        },
        dark,
        bad: mask,
        page,
        findings: built.findings,
    };
    Ok(execute(plan, pixel, parts, host)?)
}

/// What follows the dark frames, if there are any.
fn dark(
    plan: &Plan,
    calibrations: &[Calibration],
    converters: &Converters,
) -> Result<Option<Dark>> {
    let Some(config) = &plan.config.dark else {
        return Ok(None);
    };
    let module = |calibration: &Calibration| {
        let tracker = PedestalTracker::new(calibration, config.tracking)?;
        Ok((tracker, Converter::new(calibration)))
    };
    let modules = calibrations.iter().map(module).collect::<Result<_>>();
    let modules = modules.context("[dark]")?;
    Ok(Some(Dark::new(
        config.clone(),
        Arc::clone(converters),
        modules,
    )))
}

/// The bad pixels of all modules.
fn mask(calibrations: &[Calibration]) -> Vec<bool> {
    let bad = calibrations.iter().map(Calibration::bad);
    bad.flatten().copied().collect()
}
