//! Stages for images: a chain in the loop of a program or of a worker.
//!
//! ```text
//!  image --> veto --> peaks --> integrate --> compress --> outputs
//! ```
//!
//! Each takes a [`Work`], an image with what the stages found in it, and passes it on. Images that are
//! vetoed stay in the chain, so that they are counted, and later stages leave them alone. Any stage may
//! be left out, and a program can register its own between them.
//!
//! | name | options | what it adds |
//! | --- | --- | --- |
//! | `veto` | [`VetoConfig`] | the number of intense pixels; vetoes an image with too few |
//! | `peaks` | [`PeakOptions`] | the Bragg peaks; vetoes an image with too few, if asked to |
//! | `integrate` | [`IntegrateOptions`] | the radial curve |
//! | `compress` | [`CompressOptions`] | the compressed image |
//!
//! ```
//! use pollux_images::Shape;
//! use pollux_images::stages::{ImagesEnv, Work, image_stages};
//! use pollux_pipelines::{Pipeline, StageEnv};
//!
//! let config: toml::Table = r#"
//!     stage = [
//!         { name = "veto", min_photons = 5.0, min_pixels = 10 },
//!         { name = "peaks", min_peaks = 3, criteria = { min_snr = 6.0 } },
//!         { name = "compress", method = "bitshuffle-lz4" },
//!     ]"#
//! .parse()?;
//! let stages: Vec<toml::Table> = config["stage"].clone().try_into()?;
//! let mut env = StageEnv::new();
//! env.insert(ImagesEnv::new(Shape::JUNGFRAU_MODULE, 512));
//! let chain: Pipeline<Work<i16>, Work<i16>> = image_stages::<i16>().pipeline(&stages, &mut env)?;
//! assert_eq!(chain.times().count(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compress;
mod env;
mod event;
mod integrate;
mod lossless;
mod peaks;
mod pixel;
mod raw;
mod stack;
mod veto;
mod work;

use pollux_pipelines::registry::StageRegistry;
use pollux_pipelines::{DynStage, StageEnv};

pub use compress::{CompressOptions, Method};
pub use env::ImagesEnv;
pub use event::StackFacts;
pub use integrate::{IntegrateOptions, RadialAxis};
pub use peaks::PeakOptions;
pub use pixel::StagePixel;
pub use raw::{RawCompressOptions, RawMethod};
pub use stack::Stack;
pub use work::{Capacity, Desk, Encoding, Findings, Work};

use crate::receive::Raw;
use crate::veto::VetoConfig;

/// The stages by name, for images of converted pixels.
#[must_use]
pub fn image_stages<P: StagePixel>() -> StageRegistry {
    let mut registry = StageRegistry::new();
    registry.name_kind::<Work<P>>("images");
    registry.register("veto", |config: VetoConfig, _: &mut StageEnv| {
        let veto = veto::VetoStage::<P>::new(config)?;
        Ok(DynStage::new("veto", veto))
    });
    registry.register("peaks", |options: PeakOptions, env: &mut StageEnv| {
        let peaks = peaks::FindPeaks::<P>::new(&options, env.get()?)?;
        add(env, |capacity| capacity.peaks = options.criteria.max_peaks);
        Ok(DynStage::new("peaks", peaks))
    });
    registry.register(
        "integrate",
        |options: IntegrateOptions, env: &mut StageEnv| {
            let integrate = integrate::Integrate::<P>::new(&options, env.get()?)?;
            let axis = integrate.axis();
            add(env, |capacity| capacity.bins = axis.values.len());
            env.insert(axis);
            Ok(DynStage::new("integrate", integrate))
        },
    );
    registry.register(
        "compress",
        |options: CompressOptions, env: &mut StageEnv| {
            let compress = compress::Compress::<P>::new(&options, env.get()?)?;
            add(env, |capacity| compress.add_to(capacity));
            Ok(DynStage::new("compress", compress))
        },
    );
    registry
}

/// The stages by name, for raw images: `compress` without loss.
#[must_use]
pub fn raw_stages<P: Raw>() -> StageRegistry {
    let mut registry = StageRegistry::new();
    registry.name_kind::<Work<P>>("raw images");
    registry.register("compress", |_: RawCompressOptions, env: &mut StageEnv| {
        let compress = raw::CompressRaw::<P>::new(env.get()?)?;
        add(env, |capacity| {
            capacity.chunk_bytes = compress.chunk_bytes();
        });
        Ok(DynStage::new("compress", compress))
    });
    registry
}

/// Adds what a stage finds to the capacity in the environment.
fn add(env: &mut StageEnv, change: impl FnOnce(&mut Capacity)) {
    let mut capacity = env.get::<Capacity>().copied().unwrap_or_default();
    change(&mut capacity);
    env.insert(capacity);
}
