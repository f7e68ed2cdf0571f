//! Plan of a run: the checked command line and configuration, before anything is opened.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use pollux_app::{
    Cpus, NamedFile, Output, Overwrite, ReportOutputs, expect_distinct, name_outputs, place_loops,
};
use pollux_images::calibration::{Calibration, Gain, Map};
use pollux_images::formats::Layout;
use pollux_images::transfer::TransferConfig;
use pollux_images::{Shape, read_regular};
use pollux_pmd::lcore::idle::IdlePolicy;

use super::demonstration::{Demonstration, FRAMES};
use crate::cli::RunOptions;
use crate::config::{CalibrationConfig, ImageConfig, Pixels, ReceiverConfig};

/// The port of the demonstration.
const LOOPBACK: &str = "loopback";

/// How long an image of the demonstration waits for its packets.
const DEMONSTRATION_TIMEOUT_US: u64 = 1_000_000;

/// Message of builds without HDF5.
const NO_HDF5: &str =
    "--out: image files are not built in: cargo build --features hdf5 (it needs libhdf5-dev)";

/// A valid run.
pub struct Plan<'a> {
    pub options: &'a RunOptions,
    pub config: ImageConfig,
    pub layout: Layout,
    pub ports: Vec<String>,
    /// The emulated detector of the demonstration.
    pub demonstration: Option<Demonstration>,
    pub image_cpu: Option<usize>,
    pub emulator_cpu: Option<usize>,
    /// One for each worker.
    pub worker_cpus: Vec<Option<usize>>,
    /// One for each receive loop beside that of the images.
    pub receive_cpus: Vec<Option<usize>>,
    pub out: Option<Output>,
    pub reports: ReportOutputs,
    /// Receivers of regions, each with its file.
    pub receivers: Vec<(TransferConfig, Output)>,
}

/// The files of the report.
fn reports(options: &RunOptions) -> Result<ReportOutputs> {
    options.report.outputs().map_err(|failure| match failure {
        pollux_app::Failure::Usage(error) | pollux_app::Failure::Run(error) => error,
    })
}

impl<'a> Plan<'a> {
    /// Reads and checks all that the command line names, with what a manager has armed.
    ///
    /// # Errors
    /// What is wrong.
    pub fn new(options: &'a RunOptions, armed: &[TransferConfig]) -> Result<Self> {
        ensure!(cfg!(feature = "hdf5") || options.out.is_none(), NO_HDF5);
        check_rotation(options)?;
        let mut config = match &options.config {
            Some(path) => ImageConfig::read(path).context("--config")?,
            None => ImageConfig::default(),
        };
        config.arm(armed, options.transfers.as_deref())?;
        let mut ports = options.ports.specs();
        check_ports(&ports)?;
        let demo = ports.is_empty() || ports == [LOOPBACK];
        ensure!(
            demo || !ports.iter().any(|spec| spec == LOOPBACK),
            "--port {LOOPBACK} is the demonstration's, and cannot be combined with others"
        );
        ensure!(
            !demo || options.rx_loops == 1 && options.queues.unwrap_or(1) == 1,
            "--rx-loops and --queues are for other ports than the demonstration's"
        );
        ensure!(
            !demo || options.control.is_none(),
            "--control: give a --port; the demonstration has a detector of its own"
        );
        check_rdma(options, &ports)?;
        let source = options.config.as_ref();
        let source = source.map_or_else(
            || "without --config".into(),
            |path| path.display().to_string(),
        );
        let loops = usize::from(options.rx_loops.max(1)) + usize::from(demo);
        let checked = config
            .check(demo)
            .and_then(|()| config.check_buffers(loops))
            .and_then(|()| options.rdma.map_or(Ok(()), |_| config.check_stacks()));
        checked.context(source)?;
        let demonstration = if demo {
            ports = vec![LOOPBACK.into()];
            if options.config.is_none() {
                // The emulator may share its CPU with other programs.
                config.detector.timeout_us = DEMONSTRATION_TIMEOUT_US;
            }
            if config.stage.is_empty() {
                config.stage = Demonstration::stages(&config)?;
            }
            let frames = options.images.unwrap_or(FRAMES);
            Some(Demonstration::new(&config, frames)?)
        } else {
            None
        };
        let layout = config.layout().context("[detector]")?;
        let (room, frame) = (config.memory.data_room, 42 + layout.payload_bytes());
        ensure!(
            !demo || room >= frame,
            "[memory] data_room = {room}: packets of the demonstration need {frame} bytes"
        );
        let workers = usize::from(options.workers);
        ensure!(
            workers == 0 || !config.stage.is_empty(),
            "--workers: there are no stages for them; configure [[stage]]"
        );
        let others = match usize::from(options.rx_loops) {
            0 | 1 => 0,
            loops => loops,
        };
        let roles = [
            ("images", 1),
            ("emulator", usize::from(demo)),
            ("worker", workers),
            ("receiver", others),
        ];
        let mut cpus = place_loops(&Cpus::of(&options.cores), &roles)?.into_iter();
        let image_cpu = cpus.next().flatten();
        let emulator_cpu = if demo { cpus.next().flatten() } else { None };
        let overwrite = options.report.overwrite;
        let [report, json] = options.report.files();
        // All files of a run are looked for before one of them is made.
        let files = [
            ("--out", &options.out),
            (report.0, &report.1),
            (json.0, &json.1),
        ];
        let [out, report, json] = name_outputs(&files, None, overwrite)?;
        let reports = reports(options)?;
        let receivers = receivers(&config, overwrite)?;
        let outputs = [&out, &report, &json].into_iter().flatten();
        let outputs = outputs.chain(receivers.iter().map(|(_, output)| output));
        let files = inputs(options, &config, &ports).into_iter();
        expect_distinct(&files.chain(outputs.map(Output::file)).collect::<Vec<_>>())?;
        Ok(Self {
            options,
            receivers,
            config,
            layout,
            ports,
            demonstration,
            image_cpu,
            emulator_cpu,
            worker_cpus: cpus.by_ref().take(workers).collect(),
            receive_cpus: cpus.collect(),
            out,
            reports,
        })
    }

    /// Type of the pixels; raw ones if there is none.
    pub fn pixels(&self) -> Option<Pixels> {
        let configured = self.config.calibration.as_ref().map(|c| c.pixels);
        configured.or(self.demonstration.as_ref().map(|_| Pixels::default()))
    }

    /// Calibration of each module.
    ///
    /// # Errors
    /// Files that cannot be read, or maps that are refused.
    pub fn calibrations(&self) -> Result<Vec<Calibration>> {
        let shape = self.layout.module();
        match (&self.config.calibration, &self.demonstration) {
            (Some(config), _) => read(config, shape, self.layout.modules()),
            (None, Some(demonstration)) => demonstration.calibration(shape),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// Whether the frames are those of a recording.
    pub fn is_recorded(&self) -> bool {
        self.ports.iter().any(|spec| spec.starts_with("pcap:"))
    }

    /// Whether loops share CPUs.
    pub fn shares_cpus(&self) -> bool {
        self.image_cpu.is_none()
    }

    /// The CPUs of all loops that have one.
    pub fn cpus(&self) -> Vec<usize> {
        let images = std::iter::once(&self.image_cpu);
        let all = images.chain(&self.worker_cpus).chain(&self.receive_cpus);
        all.chain([&self.emulator_cpu]).flatten().copied().collect()
    }
}

/// Checks the specs of the ports.
fn check_ports(ports: &[String]) -> Result<()> {
    let registry = pollux_app::ports::registry();
    for spec in ports {
        let checked = registry.check(spec);
        checked.with_context(|| format!("--port {spec}"))?;
    }
    Ok(())
}

/// Stacks are received by the loop of the images, on one port that sends too.
fn check_rdma(options: &RunOptions, ports: &[String]) -> Result<()> {
    let Some(listen) = options.rdma else {
        return Ok(());
    };
    ensure!(
        listen.port() > 0,
        "--rdma {listen}: give the port at which the source of module 0 connects, 1 or more; the others follow"
    );
    let is_recorded = ports.iter().any(|spec| spec.starts_with("pcap:"));
    ensure!(
        ports.len() == 1 && ports != [LOOPBACK] && !is_recorded,
        "--rdma: give one --port to a network, on which the endpoint receives and answers"
    );
    ensure!(
        options.rx_loops == 1 && options.queues.unwrap_or(1) == 1,
        "--rx-loops and --queues: with --rdma the loop of the images receives, by one queue"
    );
    ensure!(
        !matches!(options.idle, IdlePolicy::Sleep { .. }),
        "--idle {}: with --rdma the loop polls; use busy or pause",
        options.idle
    );
    Ok(())
}

/// The receivers of regions, each with its file.
fn receivers(config: &ImageConfig, overwrite: Overwrite) -> Result<Vec<(TransferConfig, Output)>> {
    let file = |receiver: &ReceiverConfig| {
        let output = Output::new("[[receiver]] file", &receiver.file, overwrite)?;
        Ok((receiver.transfer.clone(), output))
    };
    config.receiver.iter().map(file).collect()
}

/// The files that a run reads, and those of its ports.
fn inputs(options: &RunOptions, config: &ImageConfig, ports: &[String]) -> Vec<NamedFile> {
    let calibration = config.calibration.iter().flat_map(|calibration| {
        let maps = calibration.pedestals.iter().chain(&calibration.gains);
        maps.chain(&calibration.mask)
    });
    let read = |(what, path): (&str, &PathBuf)| NamedFile::read(what, path);
    let configuration = options.config.iter().map(|path| ("--config", path));
    let calibration = calibration.map(|path| ("[calibration]", path));
    let ports = ports.iter().flat_map(|spec| NamedFile::of_port(spec));
    let files = configuration.chain(calibration).map(read);
    files.chain(ports).collect()
}

/// Limits of files need a file.
fn check_rotation(options: &RunOptions) -> Result<()> {
    let rotation = options.rotation.rotation()?;
    ensure!(
        options.out.is_some() || !rotation.is_on(),
        "--file-size and --file-seconds are limits of a file of --out: give it too"
    );
    Ok(())
}

/// Reads the maps of all modules; each file has one module after another.
fn read(config: &CalibrationConfig, module: Shape, modules: usize) -> Result<Vec<Calibration>> {
    let all = Shape {
        rows: modules * module.rows,
        ..module
    };
    let map = |path: &PathBuf| Map::read(path, all);
    let pedestals = config.pedestals.each_ref().map(map);
    let gains = config.gains.each_ref().map(map);
    let [p0, p1, p2] = pedestals;
    let [g0, g1, g2] = gains;
    let (pedestals, gains) = ([p0?, p1?, p2?], [g0?, g1?, g2?]);
    let bad = match &config.mask {
        Some(path) => {
            let read = read_regular(path, all.pixels());
            let (found, bytes) = read.with_context(|| path.display().to_string())?;
            ensure!(
                found == all.pixels() as u64 && bytes.len() == all.pixels(),
                "{}: {found} B, not one for each of the {} pixels of {all}",
                path.display(),
                all.pixels()
            );
            bytes.into_iter().map(|byte| byte != 0).collect()
        }
        None => vec![false; all.pixels()],
    };
    let of = |n: usize| {
        let pixels = n * module.pixels()..(n + 1) * module.pixels();
        let part = |maps: &[Map; 3]| {
            Gain::ALL.map(|gain| {
                let map = &maps[gain as usize];
                let name = format!("module {n} of {}", map.name());
                Map::new(name, map.values()[pixels.clone()].to_vec())
            })
        };
        let bad = bad[pixels.clone()].to_vec();
        Ok(Calibration::new(
            module,
            part(&pedestals),
            part(&gains),
            bad,
        )?)
    };
    (0..modules).map(of).collect()
}
