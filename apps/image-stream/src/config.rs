//! Configuration of a run: TOML.

mod beam;
mod rdma;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use pollux_images::calibration::TrackingConfig;
use pollux_images::formats::{Detector as Kind, EigerBits, EigerLink, Layout};
use pollux_images::receive::{DiscardPolicy, ReceiveConfig, Route};
use pollux_images::transfer::{TransferConfig, check_all};
use pollux_mempool::PoolConfig;
use pollux_mempool::time::Ns;
use pollux_pmd::event::RegionOptions;
use pollux_pmd::stream::StreamId;
use serde::{Deserialize, Serialize};

pub use self::beam::BeamConfig;
pub use self::rdma::RdmaConfig;

/// Type of the converted pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pixels {
    /// Photons, 16-bit integers.
    #[default]
    I16,
    /// Photons, 32-bit integers.
    I32,
    /// Photons, floating point.
    F32,
}

/// A run. Every key has a default, which is that of the demonstration.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImageConfig {
    /// The detector and its packets.
    pub detector: DetectorConfig,
    /// Position of the detector and energy of the beam, for files and streams.
    pub beam: BeamConfig,
    /// Packet buffers and image buffers.
    pub memory: MemoryConfig,
    /// Conversion to photons; without it, images are raw.
    pub calibration: Option<CalibrationConfig>,
    /// Dark frames between the others.
    pub dark: Option<DarkConfig>,
    /// The stages, in order.
    pub stage: Vec<toml::Table>,
    /// Receivers of regions of interest.
    pub receiver: Vec<ReceiverConfig>,
    /// Stacks that sources write into memory.
    pub rdma: RdmaConfig,
}

/// Most image buffers.
const MAX_IMAGES: usize = 1 << 12;

/// Packet buffers that a loop which receives or sends holds at most: those of its cache, and a burst.
const LOOP_BUFFERS: usize = 256 + 32;

/// Shortest time that an image waits for its packets: below it, those that a busy host takes late are lost.
const MIN_TIMEOUT_US: u64 = 100;

/// Largest horizon in frames.
const MAX_HORIZON: u64 = 1 << 30;

/// A receiver of regions of interest, which it writes to a file: the buffers of its sub-images one
/// after another, without a header.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverConfig {
    /// The file.
    pub file: PathBuf,
    /// What it gets: regions, one image in so many, a rate.
    pub transfer: TransferConfig,
}

/// The detector, and where its packets arrive.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DetectorConfig {
    /// `jungfrau`, `eiger` or `moench`.
    pub kind: Kind,
    /// Number of modules; of EIGER, each port is a module.
    pub modules: usize,
    /// UDP interfaces of a module: 1 or 2.
    pub interfaces: usize,
    /// Bits of a pixel of EIGER: 8, 16 or 32.
    pub bits: usize,
    /// Network of EIGER: 10 or 1 Gbit/s, which sets the size of its packets.
    pub link_gbit: u32,
    /// Address of this host: it answers ARP and ping.
    pub ip: Ipv4Addr,
    /// UDP port of the first interface of the first module; the others follow.
    pub udp_port: u16,
    /// Identifiers of the modules, by which packets are sorted instead of by their ports.
    pub module_ids: Option<Vec<u16>>,
    /// Images that are not delivered: `nothing`, `empty` or `partial`.
    pub discard: DiscardPolicy,
    /// How long an image waits for its packets.
    pub timeout_us: u64,
    /// How far from the newest a frame number may be on the word of one packet.
    pub jump: u64,
    /// How far ahead it may be for the images between to be empty ones, not those of a new run.
    pub horizon: u64,
    /// Images in a stack: a worker takes so many at a time.
    pub stack: usize,
}

impl Default for DetectorConfig {
    fn default() -> Self {
        Self {
            kind: Kind::Jungfrau,
            modules: 1,
            interfaces: 2,
            bits: 16,
            link_gbit: 10,
            ip: Ipv4Addr::new(198, 18, 0, 1),
            udp_port: 50_001,
            module_ids: None,
            discard: DiscardPolicy::Nothing,
            timeout_us: 20_000,
            jump: 64,
            horizon: 4096,
            stack: 1,
        }
    }
}

/// Memory of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// Packet buffers.
    pub buffers: usize,
    /// Bytes of a packet buffer.
    pub data_room: usize,
    /// Descriptors of a receive ring.
    pub ring: usize,
    /// Image buffers: a power of two.
    pub images: usize,
    /// NUMA node of the memory; the kernel's choice by default.
    pub numa_node: Option<u32>,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            buffers: 4096,
            data_room: 8704,
            ring: 1024,
            images: 64,
            numa_node: None,
        }
    }
}

/// Maps of a module, or of all modules one after another.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationConfig {
    /// Pedestals of G0, G1 and G2: files of 32-bit floating point numbers, in ADU.
    pub pedestals: [PathBuf; 3],
    /// Gains of G0, G1 and G2, in ADU per photon.
    pub gains: [PathBuf; 3],
    /// Mask of bad pixels: one byte a pixel, not 0 for a bad one.
    #[serde(default)]
    pub mask: Option<PathBuf>,
    /// Type of the converted pixels.
    #[serde(default)]
    pub pixels: Pixels,
}

/// Dark frames, which a chopper puts between the others: the pedestals of G0 follow them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DarkConfig {
    /// One frame in so many is dark.
    pub every: u64,
    /// Which: the remainder of its number divided by `every`; the last one by default.
    #[serde(default)]
    pub phase: Option<u64>,
    /// How the pedestals follow.
    #[serde(default)]
    pub tracking: TrackingConfig,
}

impl DarkConfig {
    /// Whether a frame is dark.
    #[must_use]
    #[inline]
    pub fn is_dark(&self, number: u64) -> bool {
        number % self.every == self.phase.unwrap_or(self.every - 1)
    }
}

impl ImageConfig {
    /// Reads a configuration. File names in it are relative to its folder.
    ///
    /// # Errors
    /// A file that cannot be read, or a text that is no configuration.
    pub fn read(path: &Path) -> Result<Self> {
        let name = || path.display().to_string();
        let text = pollux_app::read_text(path).with_context(name)?;
        let mut config: Self = toml::from_str(&text).with_context(name)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        if let Some(calibration) = &mut config.calibration {
            let CalibrationConfig {
                pedestals,
                gains,
                mask,
                ..
            } = calibration;
            for file in pedestals.iter_mut().chain(gains).chain(mask) {
                *file = folder.join(&*file);
            }
        }
        Ok(config)
    }

    /// Takes over what a manager has armed: a transfer with the name of a receiver replaces that of the
    /// receiver, and any other one is a further receiver, with a file in `folder`.
    ///
    /// # Errors
    /// A further receiver without a folder, or with a name that is none of a file.
    pub fn arm(&mut self, armed: &[TransferConfig], folder: Option<&Path>) -> Result<()> {
        let configured = self.receiver.len();
        for transfer in armed {
            let name = &transfer.name;
            let (known, further) = self.receiver.split_at_mut(configured);
            ensure!(
                further.iter().all(|other| other.transfer.name != *name),
                "two transfers are named `{name}`: give each its own name"
            );
            if let Some(receiver) = known.iter_mut().find(|one| one.transfer.name == *name) {
                receiver.transfer = transfer.clone();
                continue;
            }
            let folder = folder.with_context(|| {
                format!(
                    "transfer `{name}` has no file: configure a [[receiver]] of that name, or give \
                     --transfers DIR"
                )
            })?;
            let is_plain = |c: char| c.is_alphanumeric() || "-_+ ".contains(c);
            ensure!(
                name.chars().all(is_plain),
                "transfer {name:?}: with --transfers a name has letters, digits, `-`, `_`, `+` and blanks"
            );
            self.receiver.push(ReceiverConfig {
                file: folder.join(format!("{name}-{{n}}.raw")),
                transfer: transfer.clone(),
            });
        }
        Ok(())
    }

    /// Checks what can be checked before anything is opened. The demonstration has a calibration of its
    /// own.
    ///
    /// # Errors
    /// A value out of range, or values that do not fit each other.
    pub fn check(&self, demonstration: bool) -> Result<()> {
        let layout = self.layout().context("[detector]")?;
        ensure!(
            layout.bits() >= 8,
            "[detector] bits = {}: runs take 8, 16 and 32 bits a pixel",
            layout.bits()
        );
        ensure!(
            self.detector.kind == Kind::Eiger || self.detector.bits == 16,
            "[detector] bits = {}: pixels of {} have 16",
            self.detector.bits,
            layout.detector()
        );
        self.beam.check()?;
        let images = self.memory.images;
        ensure!(
            images.is_power_of_two() && (2..=MAX_IMAGES).contains(&images),
            "[memory] images = {images}: a power of two from 2 to {MAX_IMAGES}"
        );
        let DetectorConfig { jump, horizon, .. } = self.detector;
        ensure!(
            jump > 0 && (jump..=MAX_HORIZON).contains(&horizon),
            "[detector] jump = {jump} and horizon = {horizon}: 1 to {MAX_HORIZON} frames, and the horizon no less than the jump"
        );
        let timeout = self.detector.timeout_us;
        ensure!(
            timeout >= MIN_TIMEOUT_US,
            "[detector] timeout_us = {timeout}: {MIN_TIMEOUT_US} or more; images wait so long for their packets"
        );
        let last = usize::from(self.detector.udp_port) + layout.senders() - 1;
        ensure!(
            self.detector.udp_port > 0 && u16::try_from(last).is_ok(),
            "[detector] udp_port = {}: {} senders need the ports up to {last}, and there are 65535",
            self.detector.udp_port,
            layout.senders()
        );
        ensure!(
            (1..=self.memory.images / 2).contains(&self.detector.stack),
            "[detector] stack = {}: 1 to {}, half of memory.images, since one stack is filled while \
             another is processed",
            self.detector.stack,
            self.memory.images / 2
        );
        if let Some(DarkConfig { every, phase, .. }) = self.dark {
            ensure!(every >= 2, "[dark] every = {every}: 2 or more");
            ensure!(
                phase.is_none_or(|phase| phase < every),
                "[dark] phase = {}: less than every = {every}",
                phase.unwrap_or_default()
            );
            let pixels = match &self.calibration {
                Some(calibration) => Some(calibration.pixels),
                None => demonstration.then(Pixels::default),
            };
            ensure!(
                pixels == Some(Pixels::I16),
                "[dark]: pedestals are tracked where [calibration] converts to pixels = \"i16\""
            );
        }
        let transfers: Vec<_> = self.receiver.iter().map(|r| r.transfer.clone()).collect();
        check_all(&transfers, layout.image(), size_of::<f32>(), u64::MAX)
            .context("[[receiver]]")?;
        ensure!(
            !demonstration || self.detector.kind == Kind::Jungfrau,
            "[detector] kind: the demonstration emulates a JUNGFRAU; give a --port"
        );
        ensure!(
            self.calibration.is_none() || self.detector.kind == Kind::Jungfrau,
            "[calibration]: only JUNGFRAU is converted; leave it out for raw images"
        );
        if let Some(n) = self.stage.iter().position(|stage| name(stage).is_none()) {
            bail!(
                "[[stage]] number {}: no `name`: give one of veto, peaks, integrate and compress",
                n + 1
            );
        }
        ensure!(
            self.calibration.is_some() || demonstration || self.stage.iter().all(is_compress),
            "[[stage]]: other stages than compress take photons, and without [calibration] images are raw"
        );
        Ok(())
    }

    /// Checks the stack buffers of a run into whose memory sources write.
    ///
    /// # Errors
    /// Too few or too many, or images of several modules that cannot wait for a lost announcement.
    pub fn check_stacks(&self) -> Result<()> {
        let DetectorConfig {
            modules,
            stack,
            timeout_us,
            ..
        } = self.detector;
        self.rdma
            .check(modules, stack, timeout_us, self.memory.images)
    }

    /// Checks that there are packet buffers for so many loops that receive or send.
    ///
    /// # Errors
    /// Too few, with the number that is needed.
    pub fn check_buffers(&self, loops: usize) -> Result<()> {
        let (buffers, least) = (self.memory.buffers, loops * LOOP_BUFFERS);
        ensure!(
            buffers >= least,
            "[memory] buffers = {buffers}: this run needs {least} or more, {LOOP_BUFFERS} for each of its \
             {loops} loops that receive or send"
        );
        Ok(())
    }

    /// Geometry of the detector.
    ///
    /// # Errors
    /// Numbers out of range.
    pub fn layout(&self) -> Result<Layout> {
        let DetectorConfig {
            kind,
            modules,
            interfaces,
            bits,
            link_gbit,
            ..
        } = self.detector;
        Ok(match kind {
            Kind::Jungfrau => Layout::jungfrau(modules, interfaces)?,
            Kind::Moench => Layout::moench(modules, interfaces)?,
            Kind::Eiger => {
                ensure!(interfaces == 1, "interfaces = {interfaces}: EIGER has 1");
                let bits = match bits {
                    4 => EigerBits::Four,
                    8 => EigerBits::Eight,
                    16 => EigerBits::Sixteen,
                    32 => EigerBits::ThirtyTwo,
                    _ => bail!("bits = {bits}: 4, 8, 16 or 32"),
                };
                let link = match link_gbit {
                    1 => EigerLink::OneGigabit,
                    10 => EigerLink::TenGigabit,
                    _ => bail!("link_gbit = {link_gbit}: 1 or 10"),
                };
                Layout::eiger(modules, bits, link)?
            }
            _ => bail!("kind = {kind}: runs take jungfrau, eiger and moench"),
        })
    }

    /// UDP ports of the senders, in their order.
    pub fn ports(&self, layout: &Layout) -> impl Iterator<Item = u16> {
        // `check` has found that they fit.
        (0..layout.senders()).map(|sender| self.detector.udp_port + sender as u16)
    }

    /// How images are received.
    #[must_use]
    pub fn receive(&self, layout: Layout) -> ReceiveConfig {
        let route = match &self.detector.module_ids {
            Some(ids) => Route::Modules(ids.clone()),
            None => Route::Streams((0..layout.senders()).map(|n| StreamId(n as u16)).collect()),
        };
        let mut config = ReceiveConfig::new(layout, route);
        config.policy = self.detector.discard;
        config.buffers = self.memory.images;
        config.timeout = Ns(self.detector.timeout_us.saturating_mul(1000));
        config.jump = self.detector.jump;
        config.horizon = self.detector.horizon;
        config.memory = RegionOptions {
            numa_node: self.memory.numa_node,
            ..RegionOptions::default()
        };
        config
    }

    /// The pool of packet buffers.
    #[must_use]
    pub fn pool(&self) -> PoolConfig {
        PoolConfig {
            buffers: self.memory.buffers,
            data_room: self.memory.data_room,
            numa_node: self.memory.numa_node,
            ..PoolConfig::default()
        }
    }
}

/// Name of a stage.
fn name(stage: &toml::Table) -> Option<&str> {
    stage.get("name").and_then(toml::Value::as_str)
}

/// Whether a stage is `compress`, which raw images have too.
fn is_compress(stage: &toml::Table) -> bool {
    name(stage) == Some("compress")
}
