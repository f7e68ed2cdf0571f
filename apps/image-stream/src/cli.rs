//! Options of a run.

use std::net::SocketAddr;
use std::path::PathBuf;

use pollux_app::{
    ClockOption, Cpus, DurationOption, NEXT_IN_HELP, PortsOption, ReportOptions, RotationOptions,
    address, lines, metrics,
};
use pollux_pmd::lcore::idle::IdlePolicy;

/// Options of a run.
#[derive(Debug, clap::Args)]
#[command(mut_arg("ports", |arg| arg.help("Ports to receive on; without one, the demonstration runs")))]
pub struct RunOptions {
    #[command(flatten)]
    pub ports: PortsOption,

    /// Configuration; without it, that of the demonstration
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Stop after this number of images; in the demonstration, emulate this number [default there:
    /// 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub images: Option<u64>,

    #[command(flatten)]
    pub duration: DurationOption,

    /// Write the images that are kept to HDF5 files (docs/formats/image-file.md), in programs built
    /// with --features hdf5
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Write the images that are vetoed to the files of --out too, marked as such
    #[arg(long, requires = "out")]
    pub vetoed: bool,

    /// Limits of a file of --out: FILE's name then includes a number, run_00001.h5
    #[command(flatten)]
    pub rotation: RotationOptions,

    /// Stream the images that are kept to clients of DECTRIS stream v2 that connect here
    /// (docs/formats/live-stream.md); its usual port is 31001
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub live: Option<SocketAddr>,

    #[command(flatten)]
    pub report: ReportOptions,

    #[command(flatten)]
    pub metrics: metrics::Options,

    /// Serve a page that shows the run and its images at http://ADDRESS:PORT/ during the run
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub http: Option<SocketAddr>,

    /// CPUs of the loops: that of the images, in the demonstration the emulator's, then the workers',
    /// then those of --rx-loops [default: the last ones, that of the images the last of all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cores: Vec<Cpus>,

    /// Loops that process images; the loop of the images then receives and hands stacks out
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=64))]
    pub workers: u16,

    /// Loops that receive: 1 is that of the images; more are loops beside it, which share the receive
    /// queues
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub rx_loops: u16,

    /// Receive queues of each port [default: as many as its device shares frames out over]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub queues: Option<u16>,

    /// Receive stacks of image lines that sources write into memory by RDMA over the port (RoCEv2), as RASHPA
    /// does; the source of module m connects at PORT + m here (docs/formats/rdma-images.md)
    ///
    /// The endpoint has the address detector.ip. A source is `pollux-emulator images --rdma`.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address, conflicts_with = "control")]
    pub rdma: Option<SocketAddr>,

    /// Idle mode of loops that receive (others poll): busy (polls on), pause, or sleep[=ROUNDS]: after ROUNDS idle
    /// iterations it sleeps until a device wakes it, where devices can
    #[arg(long, value_name = "HOW", default_value_t)]
    pub idle: IdlePolicy,

    /// Listen here for a manager, which starts and stops runs and says what each receiver gets
    /// (docs/formats/images-control.md): unix:PATH, or ADDRESS:PORT
    #[arg(long, value_name = "ADDRESS", help_heading = "Manager", long_help = control_help())]
    pub control: Option<lines::Address>,

    /// Folder of the files of what a manager transfers to receivers that the configuration lacks
    #[arg(
        long,
        help = transfers_help(),
        value_name = "DIR",
        requires = "control",
        help_heading = "Manager"
    )]
    pub transfers: Option<PathBuf>,

    #[command(flatten)]
    pub clock: ClockOption,

    /// Print only errors and the report
    #[arg(short, long)]
    pub quiet: bool,
}

fn control_help() -> String {
    format!(
        "Listen here for a manager, which starts and stops runs and says what each receiver gets \
         (docs/formats/images-control.md): unix:PATH, or ADDRESS:PORT\n\n\
         The program opens its ports and files when it is armed. Names of files should have {NEXT_IN_HELP}, \
         the next free number: an existing file is an error. SIGINT, SIGTERM and SIGHUP end the run in order, \
         then the program."
    )
}

fn transfers_help() -> String {
    format!(
        "Write what a manager transfers to receivers that the configuration lacks to files in this folder: \
         NAME-{NEXT_IN_HELP}.raw"
    )
}
