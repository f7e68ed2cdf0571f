//! Captures of an emulated detector, and the configuration that belongs to them.

use std::fs;
use std::path::{Path, PathBuf};

use pollux_emulator::images::config::ImagesConfig;
use pollux_emulator::images::link::PortLink;
use pollux_emulator::images::response::Response;
use pollux_emulator::images::scene::{Peak, Ring};
use pollux_emulator::images::source::{ImageSource, ImagesReport};
use pollux_emulator::images::stack::Stack;
use pollux_emulator::images::synthesis::Synthesis;
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::{PortConfig, Registry, StartedPort, TscClock};
use zerocopy::IntoBytes as _;

/// A capture in a folder of its own.
pub(crate) struct Capture {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) report: ImagesReport,
    synthesis: Synthesis,
    config: ImagesConfig,
}

impl Capture {
    /// Writes what a detector sends.
    pub(crate) fn new(config: ImagesConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let synthesis = Synthesis::new(&config).unwrap();
        let spec = format!("pcap:tx={}", folder.path().join("run.pcapng").display());
        let report = send(&config, &synthesis, &spec);
        Self {
            folder,
            report,
            synthesis,
            config,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The port that reads it.
    pub(crate) fn port(&self) -> String {
        format!("pcap:rx={}", self.path("run.pcapng").display())
    }

    /// Raw pixels of the image of a frame, as the detector sends it.
    pub(crate) fn raw(&self, frame: u64) -> Vec<u16> {
        let stack = Stack::synthetic(&self.synthesis, &StopFlag::new()).unwrap();
        let bytes = stack.image(stack.order().place(frame)).unwrap();
        let (pixels, _) = bytes.as_chunks();
        pixels.iter().map(|&b| u16::from_le_bytes(b)).collect()
    }

    /// The response of the first module.
    pub(crate) fn response(&self) -> Response {
        self.synthesis.response(0)
    }

    /// The peaks that are in the image of a frame.
    pub(crate) fn peaks(&self, frame: u64) -> Vec<Peak> {
        let place = self.synthesis.order().place(frame);
        self.synthesis.truth().images[place].peaks.to_vec()
    }

    /// The powder rings that are in all images.
    pub(crate) fn rings(&self) -> Vec<Ring> {
        self.synthesis.truth().rings.to_vec()
    }

    /// Writes the maps of the modules, and a configuration with `more` behind it.
    pub(crate) fn configure(&self, pixels: &str, more: &str) -> PathBuf {
        let modules = 0..usize::from(self.config.modules);
        let responses: Vec<_> = modules
            .map(|module| self.synthesis.response(module))
            .collect();
        for gain in 0..3 {
            let map = |of: fn(&_, usize) -> &[f32]| -> Vec<u8> {
                let maps = responses
                    .iter()
                    .map(|response| of(response, gain).as_bytes());
                maps.collect::<Vec<_>>().concat()
            };
            let pedestals = map(Response::pedestals);
            let gains = map(Response::gains);
            fs::write(self.path(&format!("p{gain}.bin")), pedestals).unwrap();
            fs::write(self.path(&format!("g{gain}.bin")), gains).unwrap();
        }
        let masks: Vec<u8> = responses.iter().flat_map(Response::mask).collect();
        fs::write(self.path("mask.bin"), masks).unwrap();
        let calibration = format!(
            "[calibration]\npedestals = [\"p0.bin\", \"p1.bin\", \"p2.bin\"]\n\
             gains = [\"g0.bin\", \"g1.bin\", \"g2.bin\"]\nmask = \"mask.bin\"\npixels = \"{pixels}\"\n"
        );
        self.write(&(calibration + more))
    }

    /// Writes a configuration of this detector with `more` behind it.
    pub(crate) fn write(&self, more: &str) -> PathBuf {
        let ImagesConfig {
            modules,
            interfaces,
            addresses,
            ..
        } = &self.config;
        let path = self.path("run.toml");
        let text = format!(
            "[detector]\nmodules = {modules}\ninterfaces = {interfaces}\nudp_port = {}\n{more}",
            addresses.dst_port
        );
        fs::write(&path, text).unwrap();
        path
    }
}

/// Sends the frames of a detector through a port.
pub(crate) fn send(config: &ImagesConfig, synthesis: &Synthesis, spec: &str) -> ImagesReport {
    let stack = Stack::synthetic(synthesis, &StopFlag::new()).unwrap();
    let pool = Mempool::new(PoolConfig {
        buffers: 1024,
        data_room: 9000,
        ..PoolConfig::default()
    });
    let pool = pool.unwrap();
    let port = Registry::builtin().open(spec).unwrap();
    let offered = port.capabilities();
    let queues = PortConfig {
        rx_queues: offered.max_rx_queues.min(1),
        ..PortConfig::new(pool.clone())
    };
    let StartedPort { port, rx, tx } = port.configure(queues).unwrap().start().unwrap();
    let cache = pool.cache(256).unwrap();
    let is_capture = spec.starts_with("pcap:");
    let link = PortLink::new(config, synthesis.layout(), tx, rx, cache, is_capture).unwrap();
    let mut source = ImageSource::new(config, stack, link, TscClock::get(), StopFlag::new());
    let report = source.run();
    let (tx, rx) = source.into_link().into_queues();
    port.stop(rx, tx).unwrap();
    report
}

/// A detector of one module with two interfaces, and few images.
pub(crate) fn detector(frames: u64) -> ImagesConfig {
    ImagesConfig {
        interfaces: 2,
        frames,
        stack: 4,
        rate: 100.0,
        ..ImagesConfig::default()
    }
}

/// The report of a run.
pub(crate) fn report(folder: &Path) -> PathBuf {
    folder.join("report.json")
}
