//! Capture files as a port: receives the frames of one file, writes sent frames to another.
//!
//! Reads pcap (microseconds and nanoseconds, both byte orders) and pcapng (several sections and
//! interfaces, any time resolution), plain or compressed by gzip or zstd. A window moves over the
//! file, so a file of any size is read in constant memory. Writes pcapng with time stamps in
//! nanoseconds.
//!
//! A replay is deterministic: the time stamps never step back, the ordinal of a frame is its number
//! in the file, and each frame is assigned to a queue by its flow alone. A frame that the capture
//! truncated is dropped as [`Cause::Oversize`](crate::Cause::Oversize). When the pool is empty the
//! file waits. If the file is damaged, reception ends there: one
//! [`Cause::DeviceError`](crate::Cause::DeviceError) represents the rest in the ledger, and
//! [`Port::stop`](crate::Port::stop) returns the error, as it does for a file that could not be
//! written.

mod classic;
mod error;
mod link;
mod pcapng;
mod reader;
mod record;
mod rx;
mod source;
mod trouble;
mod tx;
mod window;
mod writer;

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use pollux_mempool::Mempool;

use self::link::Link;
use self::reader::{Reader, Record};
use self::rx::{Pace, Rx};
use self::trouble::Trouble;
use self::tx::Tx;
pub use self::writer::{About, Statistics, WriteError, Writer};
use crate::clock::TscClock;
use crate::driver::{Capabilities, Description, Driver, Feature, Queues, SpecOption, Support};
use crate::port::{PortConfig, PortError, RxState};
use crate::spec::{PortSpec, SpecError};

pub(crate) const DESCRIPTION: Description = Description {
    options: &[
        SpecOption {
            key: "rx",
            values: "FILE",
            default: "receives nothing",
            text: "the capture to receive: pcap or pcapng, plain or compressed by gzip or zstd",
        },
        SpecOption {
            key: "tx",
            values: "FILE",
            default: "sends nothing",
            text: "the pcapng file to send into; an existing file is overwritten",
        },
        SpecOption {
            key: "pace",
            values: "fast|recorded",
            default: "fast",
            text: "receive as fast as the port is polled, or at the recorded intervals",
        },
        SpecOption {
            key: "loop",
            values: "N",
            default: "1",
            text: "receive the capture N times in a row; 0: without end",
        },
    ],
    features: &[
        (Feature::Receive, Support::Yes),
        (Feature::Send, Support::Yes),
        (
            Feature::MultiQueue,
            Support::Partly("16 to receive, 1 to send"),
        ),
        (Feature::Steering, Support::Partly("by UDP flow")),
        (Feature::Link, Support::Partly("always up")),
        (Feature::Jumbo, Support::Yes),
        (
            Feature::KernelStamps,
            Support::Partly("those of the capture"),
        ),
        (
            Feature::HardwareStamps,
            Support::Partly("those of the capture"),
        ),
        (Feature::KernelBacked, Support::Yes),
    ],
    check: |spec| Pcap::parse(spec).map(drop),
    opening_only_looks: true,
    ..Description::new("pcap", "capture files to receive, to send into, or both")
};

/// Maximum number of queues over which a file is distributed; each reads the whole file.
const MAX_QUEUES: u16 = 16;

struct Pcap {
    spec: String,
    rx: Option<PathBuf>,
    tx: Option<PathBuf>,
    recorded_pace: bool,
    /// Number of times that the file is received; `None`: endlessly.
    rounds: Option<u64>,
    trouble: Trouble,
}

pub(crate) fn open(spec: &PortSpec) -> Result<Box<dyn Driver>, PortError> {
    let port = Pcap::parse(spec)?;
    if let Some(path) = &port.rx {
        port.check_capture(path)?;
    }
    Ok(Box::new(port))
}

impl Pcap {
    fn parse(spec: &PortSpec) -> Result<Self, SpecError> {
        let recorded_pace = spec.choice("pace", [("fast", false), ("recorded", true)])?;
        let rounds = spec.parse_option("loop", 1_u64, "a number of times, or 0 for no end")?;
        let path = |key| spec.option(key).map(PathBuf::from);
        let (rx, tx, spec) = (path("rx"), path("tx"), spec.to_string());
        if rx.is_none() && tx.is_none() {
            let what = "pcap needs rx=FILE, tx=FILE or both".into();
            return Err(SpecError::Target { spec, what });
        }
        Ok(Self {
            spec,
            rx,
            tx,
            recorded_pace,
            rounds: (rounds > 0).then_some(rounds),
            trouble: Trouble::default(),
        })
    }

    fn device(&self, what: String) -> PortError {
        PortError::Device {
            port: self.spec.clone(),
            what,
        }
    }

    fn system(&self, what: &str, path: &Path, error: io::Error) -> PortError {
        let hint = match error.kind() {
            ErrorKind::NotFound => "check the path; relative paths start at the working directory",
            ErrorKind::PermissionDenied => "change the file's permissions, or the user",
            ErrorKind::StorageFull => "free some space, or choose another disk",
            _ => "",
        };
        let what = format!("cannot {what} {}", path.display());
        PortError::System {
            port: self.spec.clone(),
            what,
            hint: hint.into(),
            error,
        }
    }

    fn reader(&self, path: &Path) -> Result<Reader, PortError> {
        let open = |error| self.system("open", path, error);
        // The open of a pipe waits for a writer.
        if !fs::metadata(path).map_err(open)?.is_file() {
            // A pipe would block the poll loop, and each queue must read the whole file.
            let what = format!(
                "{} is not a regular file; copy the capture into one",
                path.display()
            );
            return Err(self.device(what));
        }
        let file = File::open(path).map_err(open)?;
        Reader::new(file, self.rounds)
            .map_err(|error| self.device(format!("{} {error}", path.display())))
    }

    /// Refuses a file that is not a capture, or whose first frame cannot be read. Later errors are
    /// detected during reception.
    fn check_capture(&self, path: &Path) -> Result<(), PortError> {
        match self.reader(path)?.peek() {
            Ok(Some(Record {
                link: Link::Other(linktype),
                ..
            })) => Err(self.device(format!(
                "{} has link type {linktype}, which cannot be read; these can: {}",
                path.display(),
                Link::KNOWN
            ))),
            Ok(_) => Ok(()),
            Err(error) => Err(self.device(format!("{} {error}", path.display()))),
        }
    }

    fn writer(&self, path: &Path) -> Result<Tx, PortError> {
        // By any name: links have device and inode of their file.
        let identity = |path: &Path| {
            let found = fs::metadata(path).ok()?;
            found.is_file().then(|| (found.dev(), found.ino()))
        };
        if let Some(rx) = &self.rx
            && identity(rx).is_some_and(|rx| Some(rx) == identity(path))
        {
            return Err(self.device("rx and tx are the same file; send into another one".into()));
        }
        let file = File::create(path).map_err(|error| self.system("create", path, error))?;
        let writer = Writer::new(file, path, &About::default());
        let writer = writer.map_err(|error| self.system("write", path, error))?;
        Ok(Tx::new(writer, self.trouble.clone()))
    }
}

impl Driver for Pcap {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: if self.rx.is_some() { MAX_QUEUES } else { 0 },
            max_tx_queues: u16::from(self.tx.is_some()),
            mac: None,
            max_frame: pcapng::MAX_FRAME,
            checksum_offload: false,
            wire_time: self.rx.is_some(),
            recorded: self.rx.is_some(),
            kernel_backed: true,
        }
    }

    fn validate(&self, _: &PortConfig) -> Result<(), PortError> {
        let Some(path) = &self.tx else { return Ok(()) };
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let there = fs::metadata(folder.unwrap_or(Path::new(".")));
        there
            .map(drop)
            .map_err(|error| self.system("create", path, error))
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        self.trouble = Trouble::default();
        let started = Arc::new(OnceLock::new());
        let mut queues = Queues {
            rx: Vec::new(),
            tx: Vec::new(),
        };
        let is_damaged = Arc::<AtomicBool>::default();
        if let Some(path) = &self.rx {
            for queue in 0..config.rx_queues {
                queues.rx.push(Box::new(Rx {
                    reader: self.reader(path)?,
                    path: path.clone(),
                    queue,
                    queues: config.rx_queues,
                    pace: self.recorded_pace.then(|| Pace {
                        started: started.clone(),
                    }),
                    clock: TscClock::get(),
                    longest: longest_frame(&config.pool),
                    scratch: Vec::new(),
                    state: RxState::Live,
                    has_own: false,
                    is_damaged: Arc::clone(&is_damaged),
                    trouble: self.trouble.clone(),
                }));
            }
        }
        if let Some(path) = &self.tx
            && config.tx_queues > 0
        {
            queues.tx.push(Box::new(self.writer(path)?));
        }
        Ok(queues)
    }

    fn stop(&mut self) -> Result<(), PortError> {
        self.trouble
            .take()
            .map_or(Ok(()), |what| Err(self.device(what)))
    }
}

/// A frame waits in the file until the pool has buffers for all of it. One that needs more than
/// half of the pool might wait for ever, since caches and rings hold buffers too.
fn longest_frame(pool: &Mempool) -> usize {
    pool.longest_frame()
        .min(pool.data_room() * pool.buffers().div_ceil(2))
}
