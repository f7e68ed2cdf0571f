//! The demonstration: an emulated detector on one core sends to the run on another.

use anyhow::{Context as _, Result};
use pollux_emulator::images::config::ImagesConfig;
use pollux_emulator::images::link::PortLink;
use pollux_emulator::images::response::Response;
use pollux_emulator::images::source::ImageSource;
use pollux_emulator::images::stack::Stack;
use pollux_emulator::images::synthesis::Synthesis;
use pollux_images::Shape;
use pollux_images::calibration::{Calibration, Gain, Map};
use pollux_images::integrate::{Geometry, IntegrationConfig};
use pollux_images::stages::IntegrateOptions;
use pollux_mempool::Mempool;
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::{TscClock, TxQueue};

use crate::config::ImageConfig;

/// Frames of the demonstration, and their rate.
pub const FRAMES: u64 = 2000;
const RATE: f64 = 200.0;

/// Fraction of its images with Bragg peaks, and the number of different images.
const HIT_RATE: f64 = 0.3;
const STACK: u32 = 20;

/// Its powder rings, and their photons a pixel on the crest of the innermost one.
const RINGS: u32 = 5;
const RING_PHOTONS: f64 = 0.4;

/// Bins of the radial curve.
const BINS: usize = 500;

/// Planck's constant times the speed of light, in eV m.
const HC: f64 = 1.239_841_98e-6;

/// Free buffers that the emulator keeps for itself.
const CACHE: usize = 256;

/// Stages of the demonstration.
const STAGES: &str = r#"
[[stage]]
name = "veto"
min_photons = 10.0
min_pixels = 5

[[stage]]
name = "peaks"
min_peaks = 3

[[stage]]
name = "compress"
"#;

/// An emulated detector, with the calibration that belongs to it.
pub struct Demonstration {
    config: ImagesConfig,
    synthesis: Synthesis,
}

/// The loop of the emulated detector.
pub type Source = ImageSource<PortLink, TscClock>;

impl Demonstration {
    /// A detector with the geometry of a run, which sends `frames` frames.
    ///
    /// # Errors
    /// A geometry that the emulator does not have.
    pub fn new(run: &ImageConfig, frames: u64) -> Result<Self> {
        let mut config = ImagesConfig {
            detector: run.detector.kind,
            modules: run.detector.modules as u16,
            interfaces: run.detector.interfaces as u16,
            frames,
            rate: RATE,
            dark_every: run.dark.as_ref().map_or(0, |dark| dark.every as u32),
            ..ImagesConfig::default()
        };
        config.pattern.hit_rate = HIT_RATE;
        config.pattern.rings = RINGS;
        config.pattern.ring_photons = RING_PHOTONS;
        config.stack = STACK;
        config.addresses.dst_ip = run.detector.ip;
        config.addresses.dst_port = run.detector.udp_port;
        let synthesis = Synthesis::new(&config).context("the demonstration")?;
        Ok(Self { config, synthesis })
    }

    /// Stages of the demonstration, where the configuration of a run has none.
    ///
    /// # Errors
    /// A geometry that the detector does not have.
    pub fn stages(run: &ImageConfig) -> Result<Vec<toml::Table>> {
        let table: toml::Table = STAGES.parse()?;
        let mut stages: Vec<toml::Table> = table["stage"].clone().try_into()?;
        let (beam, shape) = (&run.beam, run.layout().context("[detector]")?.image());
        let middle = |side: usize| (side as f64 - 1.0) / 2.0;
        let (row, column) = beam
            .centre
            .unwrap_or((middle(shape.rows), middle(shape.columns)));
        let geometry = Geometry {
            dist: beam.distance_m,
            // A pixel has its centre half a pixel from its corner.
            poni1: (row + 0.5) * beam.pixel_m,
            poni2: (column + 0.5) * beam.pixel_m,
            rot1: 0.0,
            rot2: 0.0,
            rot3: 0.0,
            pixel1: beam.pixel_m,
            pixel2: beam.pixel_m,
            wavelength: Some(HC / beam.photon_energy_ev),
        };
        let options = IntegrateOptions {
            geometry,
            curve: IntegrationConfig {
                bins: BINS,
                ..IntegrationConfig::default()
            },
            vetoed: false,
        };
        let mut integrate = toml::Table::try_from(&options)?;
        integrate.insert("name".into(), "integrate".into());
        stages.push(integrate);
        Ok(stages)
    }

    /// Calibration of each module.
    ///
    /// # Errors
    /// Maps that are refused.
    pub fn calibration(&self, shape: Shape) -> Result<Vec<Calibration>> {
        let modules = 0..usize::from(self.config.modules);
        let of = |module| {
            let response = self.synthesis.response(module);
            let name = |what, gain| format!("{what} {gain} of the emulated module {module}");
            let map = |what, values: fn(&Response, usize) -> &[f32]| {
                Gain::ALL.map(|gain| {
                    Map::new(name(what, gain), values(&response, gain as usize).to_vec())
                })
            };
            let pedestals = map("pedestal", Response::pedestals);
            let gains = map("gain", Response::gains);
            let bad = response.mask().into_iter().map(|byte| byte != 0).collect();
            Ok(Calibration::new(shape, pedestals, gains, bad)?)
        };
        modules.map(of).collect()
    }

    /// The loop of the detector.
    ///
    /// # Errors
    /// A pool whose buffers are too small for its packets.
    pub fn source(
        &self,
        tx: TxQueue,
        pool: &Mempool,
        clock: TscClock,
        stop: StopFlag,
    ) -> Result<Source> {
        let stack = Stack::synthetic(&self.synthesis, &StopFlag::new())?;
        let cache = pool.cache(CACHE)?;
        let layout = self.synthesis.layout();
        let link = PortLink::new(&self.config, layout, [tx], None, cache, false)?;
        Ok(ImageSource::new(&self.config, stack, link, clock, stop))
    }
}
