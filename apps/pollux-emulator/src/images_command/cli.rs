//! The command line of `images`.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;

use crate::config::ConfigError;
use crate::images::config::{ImagesConfig, MAX_RATE};
use clap::{Arg, Args, ValueEnum};
use pollux_app::lines::Address;
use pollux_app::{Cpus, DurationOption, NEXT_IN_HELP, PortOption, Rates, ReportOptions, metrics};
use pollux_images::formats::Detector;
use pollux_pmd::net::MacAddr;

use crate::fault_options::FaultOptions;

/// Emulated image detector: sends raw images of JUNGFRAU, EIGER or MOENCH modules to a receiver, at a
/// given rate and with optional faults
///
/// The images are synthetic (Bragg peaks, powder rings, background, three gains, noise, bad pixels,
/// dark frames), or recorded raw frames. They are computed or read once, and sent again and again.
/// Equal seeds give equal images, packets and faults.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, after_help = AFTER_HELP)]
#[command(mut_arg("place", |arg| arg
    .help("Send through a port: af_packet:IF, pcap:tx=FILE, ...")
    .required_unless_present_any(["udp", "check"])
    .conflicts_with("udp")))]
#[command(mut_arg("port", |arg| arg.conflicts_with("udp")))]
#[command(mut_args(of_packets))]
pub(crate) struct ImagesCli {
    #[command(flatten)]
    pub(crate) port: PortOption,

    /// Send through the kernel's UDP sockets to this address; PORT is that of --dst-port
    ///
    /// Where the MTU of the route is below the size of a packet the kernel sends fragments, which
    /// image-stream does not reassemble.
    #[arg(long, value_name = "IP:PORT", conflicts_with_all = ["dst_ip", "dst_port", "dst_mac"])]
    pub(crate) udp: Option<SocketAddrV4>,

    /// Write the images into the memory of a receiver that listens here for module 0, that of module m at
    /// PORT + m: stacks of image lines by RDMA over the port (RoCEv2), as RASHPA does
    ///
    /// The receiver is `image-stream --rdma`. It says how many images a stack has, and when a buffer is free.
    #[arg(long, value_name = "IP:PORT", conflicts_with_all = ["udp", "dst_ip", "dst_port", "dst_mac", "control", "check"], value_parser = listener)]
    pub(crate) rdma: Option<SocketAddr>,

    /// Wait until the receiver has a free buffer, as no detector does; otherwise the stack is lost, and
    /// counted as overrun
    #[arg(long, requires = "rdma")]
    pub(crate) rdma_wait: bool,

    /// Type of the modules [default: jungfrau]
    #[arg(long, value_name = "TYPE")]
    detector: Option<DetectorName>,

    /// Modules, 1 to 64; of EIGER, ports [default: 1]
    #[arg(long, value_name = "N")]
    modules: Option<u16>,

    /// UDP interfaces of a module, 1 or 2: each sends half of its rows [default: 1]
    #[arg(long, value_name = "N")]
    interfaces: Option<u16>,

    /// Version of the packet header, 1 or 2 [default: 2]
    #[arg(long, value_name = "N")]
    header_version: Option<u8>,

    /// Frames to send; 0: until stopped [default: 1000]
    #[arg(long, value_name = "N")]
    frames: Option<u64>,

    /// Frames a second: 100, 2k, 2kHz; 0 or max: as fast as possible [default: 100]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<f64>,

    /// Number of the first frame [default: 1]
    #[arg(long, value_name = "N")]
    first_frame: Option<u64>,

    /// Exposure time in the headers, in microseconds [default: 10]
    #[arg(long, value_name = "US")]
    exposure_us: Option<f64>,

    /// Seed of images, calibration and faults [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Synthetic images in the stack that is sent again and again [default: 10]
    #[arg(long, value_name = "N", help_heading = "Images")]
    stack: Option<u32>,

    /// Send recorded frames instead: files of raw module frames, 16 bits little-endian without header
    ///
    /// Each file has one frame or more. All modules of the first image come first, then those of the
    /// second one; there are as many images in the stack as the files have.
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Images")]
    #[arg(conflicts_with_all = ["stack", "dark_every", "hit_rate", "peaks", "peak_photons",
        "peak_sigma", "rings", "ring_photons", "ring_sigma", "background", "photon_kev", "bad_pixels",
        "truth", "calibration_out"])]
    pub(crate) raw: Vec<PathBuf>,

    /// Every Nth frame is dark, as behind a chopper: those with number N - 1 modulo N; 0: none
    /// [default: 0]
    #[arg(long, value_name = "N", help_heading = "Images")]
    dark_every: Option<u32>,

    /// Fraction of the images with Bragg peaks [default: 1]
    #[arg(long, value_name = "FRACTION", help_heading = "Images")]
    hit_rate: Option<f64>,

    /// Bragg peaks of such an image [default: 40]
    #[arg(long, value_name = "N", help_heading = "Images")]
    peaks: Option<u32>,

    /// Mean number of photons of a Bragg peak [default: 500]
    #[arg(long, value_name = "MEAN", help_heading = "Images")]
    peak_photons: Option<f64>,

    /// Standard deviation of a Bragg peak in pixels [default: 0.9]
    #[arg(long, value_name = "PIXELS", help_heading = "Images")]
    peak_sigma: Option<f64>,

    /// Powder rings [default: 0]
    #[arg(long, value_name = "N", help_heading = "Images")]
    rings: Option<u32>,

    /// Mean number of photons a pixel on the innermost ring [default: 1]
    #[arg(long, value_name = "MEAN", help_heading = "Images")]
    ring_photons: Option<f64>,

    /// Standard deviation of a ring in pixels [default: 3]
    #[arg(long, value_name = "PIXELS", help_heading = "Images")]
    ring_sigma: Option<f64>,

    /// Mean number of photons a pixel of the background [default: 0.05]
    #[arg(long, value_name = "MEAN", help_heading = "Images")]
    background: Option<f64>,

    /// Energy of a photon in keV [default: 12.4]
    #[arg(long, value_name = "KEV", help_heading = "Images")]
    photon_kev: Option<f64>,

    /// Bad pixels of a module [default: 100]
    #[arg(long, value_name = "N", help_heading = "Images")]
    bad_pixels: Option<u32>,

    #[command(flatten)]
    faults: FaultOptions,

    /// IP address of the detector [default: 198.18.0.2; with --udp, the kernel's choice]
    #[arg(long, value_name = "IP", help_heading = "Addresses")]
    src_ip: Option<Ipv4Addr>,

    /// MAC address of the detector [default: that of the interface]
    #[arg(long, value_name = "MAC", help_heading = "Addresses")]
    src_mac: Option<MacAddr>,

    /// Source port of the first interface of module 0 [default: 32410]
    #[arg(long, value_name = "PORT", help_heading = "Addresses")]
    src_port: Option<u16>,

    /// IP address of the receiver [default: 198.18.0.1]
    #[arg(long, value_name = "IP", help_heading = "Addresses")]
    dst_ip: Option<Ipv4Addr>,

    /// MAC address of the receiver [default: resolved by ARP]
    #[arg(long, value_name = "MAC", help_heading = "Addresses")]
    dst_mac: Option<MacAddr>,

    /// The receiver's port for the first interface of module 0; interface i of module m sends to
    /// PORT + m * interfaces + i [default: 50001]
    #[arg(long, value_name = "PORT", help_heading = "Addresses")]
    dst_port: Option<u16>,

    #[command(flatten)]
    pub(crate) duration: DurationOption,

    /// CPU of the loop; of a list, the first
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cores: Vec<Cpus>,

    /// Listen here for a manager, which starts, pauses and stops runs (docs/formats/images-control.md):
    /// unix:PATH, or ADDRESS:PORT
    #[arg(long, value_name = "ADDRESS", conflicts_with = "check", long_help = control_help())]
    pub(crate) control: Option<Address>,

    /// Write the truth about the images as JSON: peaks, rings, order of the stack
    #[arg(long, value_name = "FILE")]
    pub(crate) truth: Option<PathBuf>,

    /// Write the calibration of the modules to this folder: pedestals, gains, masks of bad pixels
    #[arg(long, value_name = "DIR")]
    pub(crate) calibration_out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) report: ReportOptions,

    #[command(flatten)]
    pub(crate) metrics: metrics::Options,

    /// Check the configuration, print the plan, and exit
    #[arg(long)]
    pub(crate) check: bool,

    /// Print only errors and the report
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Faults of the images are those of packets.
fn of_packets(arg: Arg) -> Arg {
    let help = match arg.get_id().as_str() {
        "lost" => "Probability that a packet is never sent [default: 0]",
        "late" => "Probability that a packet is sent late [default: 0]",
        "late_by" => {
            "Delay of late packets: a number of seconds, or a time like 500us [default: 2ms]"
        }
        "duplicated" => "Probability that a packet is sent twice [default: 0]",
        "reordered" => {
            "Probability that a packet is sent after the next one of its sender [default: 0]"
        }
        "corrupted" => "Probability that a byte of a packet is changed [default: 0]",
        _ => return arg,
    };
    arg.help(help)
}

fn control_help() -> String {
    format!(
        "Listen here for a manager, which starts, pauses and stops runs (docs/formats/images-control.md): \
         unix:PATH, or ADDRESS:PORT\n\n\
         The stack is made once; the port is opened when the program is armed. --frames and --rate are what \
         a manager leaves out. {NEXT_IN_HELP} in the name of the report is the next free number. SIGINT, \
         SIGTERM and SIGHUP end the run in order, then the program."
    )
}

/// Name of a detector on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DetectorName {
    Jungfrau,
    Eiger,
    Moench,
}

impl From<DetectorName> for Detector {
    fn from(name: DetectorName) -> Self {
        match name {
            DetectorName::Jungfrau => Self::Jungfrau,
            DetectorName::Eiger => Self::Eiger,
            DetectorName::Moench => Self::Moench,
        }
    }
}

/// The address of a program that listens: at port 0 none does.
fn listener(text: &str) -> Result<SocketAddr, String> {
    let form = "write IP:PORT with the port at which `image-stream --rdma` listens, 1 or more";
    let address = text.parse().ok();
    let address = address.filter(|address: &SocketAddr| address.port() > 0);
    address.ok_or_else(|| form.to_owned())
}

/// Parses a number of frames a second; 0 stands for as many as possible.
fn rate(text: &str) -> Result<f64, String> {
    let rates = Rates {
        units: &["Hz"],
        range: 0.0..=MAX_RATE,
        max: true,
    };
    let rate = rates.read(text)?;
    Ok(rate.map_or(0.0, |(rate, _)| rate))
}

const AFTER_HELP: &str = "\
Examples:
  pollux-emulator images --port pcap:tx=run.pcapng --frames 100 --seed 7 --truth truth.json
      a capture for image-stream; the same bytes each time
  pollux-emulator images --udp 10.0.0.1:50001 --modules 8 --interfaces 2 --rate 200 --lost 0.01
      a JUNGFRAU 4M over plain sockets, one packet in a hundred lost
  pollux-emulator images af_packet:eth1 --src-ip 10.0.0.2 --dst-ip 10.0.0.1 --rate max --frames 0 \\
      --dark-every 2 --calibration-out calibration
      on an interface with an MTU of 9000, as fast as it takes them, until Ctrl-C

Exit status: 0 if the run ended as asked; 1 if it failed; 2 if the command line is wrong, in which
case nothing was opened.";

impl ImagesCli {
    /// The configuration of the run.
    pub(crate) fn config(&self) -> Result<ImagesConfig, ConfigError> {
        let mut config = ImagesConfig::default();
        set(&mut config.seed, self.seed);
        set(&mut config.detector, self.detector.map(Detector::from));
        set(&mut config.header_version, self.header_version);
        set(&mut config.modules, self.modules);
        set(&mut config.interfaces, self.interfaces);
        set(&mut config.frames, self.frames);
        set(&mut config.rate, self.rate);
        set(&mut config.first_frame, self.first_frame);
        set(&mut config.exposure_us, self.exposure_us);
        set(&mut config.stack, self.stack);
        set(&mut config.dark_every, self.dark_every);
        let pattern = &mut config.pattern;
        set(&mut pattern.photon_kev, self.photon_kev);
        set(&mut pattern.background, self.background);
        set(&mut pattern.hit_rate, self.hit_rate);
        set(&mut pattern.peaks, self.peaks);
        set(&mut pattern.peak_photons, self.peak_photons);
        set(&mut pattern.peak_sigma, self.peak_sigma);
        set(&mut pattern.rings, self.rings);
        set(&mut pattern.ring_photons, self.ring_photons);
        set(&mut pattern.ring_sigma, self.ring_sigma);
        set(&mut pattern.bad_pixels, self.bad_pixels);
        self.faults.apply(&mut config.faults);
        let addresses = &mut config.addresses;
        addresses.src_mac = self.src_mac;
        addresses.src_ip = self.src_ip;
        addresses.dst_mac = self.dst_mac;
        set(&mut addresses.src_port, self.src_port);
        set(
            &mut addresses.dst_ip,
            self.udp.map(|to| *to.ip()).or(self.dst_ip),
        );
        set(
            &mut addresses.dst_port,
            self.udp.map(|to| to.port()).or(self.dst_port),
        );
        config.validate()?;
        Ok(config)
    }
}

fn set<T>(value: &mut T, option: Option<T>) {
    if let Some(option) = option {
        *value = option;
    }
}

#[cfg(test)]
mod tests;
