//! `pollux capture`: writes received frames to pcapng files, with loss statistics.

mod disk;
mod files;
mod filter;
mod receiver;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, anyhow};
use pollux_app::ports::{self, PortView};
use pollux_app::{Failure, PortOption, RotationOptions, bytes_within};
use pollux_pmd::drivers::pcap::About;
use pollux_pmd::lcore::launch;
use pollux_pmd::mempool::time::WireTime;
use pollux_pmd::mempool::{MbufConsumer, Mempool, PoolConfig, mbuf_ring};
use pollux_pmd::{
    Cause, Ledger, Port, PortConfig, PortSpec, Probed, Registry, RxQueue, StartedPort, Tally,
};
use serde::Serialize;

use self::disk::{Disk, Sources, Written};
use self::files::Files;
use self::filter::Filter;
use self::receiver::{Counts, Receiver};
use crate::frame_budget::FrameBudget;
use crate::promisc::Promisc;
use crate::supervisor::{Base, Options, Supervisor};

/// Buffers in the local cache of each loop.
const CACHE: usize = 512;

/// Descriptors in each queue's ring.
const RING: usize = 1024;

/// Write frames to pcapng files, with time stamps in nanoseconds and loss statistics
///
/// A loop receives, and a separate thread writes, so that a slow disk never holds up the loop. Up
/// to --buffer frames wait between them; frames that do not fit are lost and counted. Frames of a
/// recording wait instead. Each file ends with statistics (an interface statistics block): frames
/// received, dropped by the port and by the kernel, accepted by the filter, and written, since the
/// beginning of the capture; and as text, by cause. Tools like capinfos and Wireshark show them.
///
/// With --file-size or --file-seconds the output is divided: FILE's name gets a number,
/// run_00001.pcapng; with --ring only the last N files are kept. Existing files are overwritten.
///
/// Examples:
///   pollux capture af_packet:eth1 -o run.pcapng --seconds 10
///   pollux capture af_packet:eth1 -o run.pcapng --filter udp.dst=9000-9007 --snap-len 128
///   pollux capture af_packet:eth1 -o run.pcapng --ring 8 --file-size 1GB --cores 2
#[derive(clap::Args)]
#[command(verbatim_doc_comment, mut_arg("place", |arg| arg.help("Where frames are received")))]
pub(crate) struct Args {
    #[command(flatten)]
    port: PortOption,

    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Keep only frames with these UDP destination ports: udp.dst=9000,9500-9510
    ///
    /// With several, frames that match any of them. Later fragments of a datagram have no port, so
    /// no fragment is kept.
    #[arg(long, value_name = "FILTER", value_parser = Filter::parse)]
    filter: Vec<Filter>,

    /// Receive queues [default: as many as the device distributes frames over; one for each loop]
    ///
    /// A loop polls its queues in turn if there are more queues than loops.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    queues: Option<u16>,

    /// Keep at most BYTES of each frame
    #[arg(
        long,
        visible_alias = "snaplen",
        value_name = "BYTES",
        default_value = "262144",
        value_parser = snap_len
    )]
    snap_len: u32,

    /// End after N frames
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Frames that may wait for the disk
    #[arg(long, value_name = "N", default_value_t = 16_384)]
    #[arg(value_parser = clap::value_parser!(u32).range(64..=1 << 22))]
    buffer: u32,

    #[command(flatten)]
    rotation: RotationOptions,

    #[command(flatten)]
    promisc: Promisc,

    #[command(flatten)]
    run: Options,
}

/// Parses the snap length.
fn snap_len(text: &str) -> Result<u32, String> {
    bytes_within(text, 1..=262_144).map(|len| len as u32)
}

/// Content of `--report`.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    base: Base,
    files: Vec<String>,
    written: u64,
    written_bytes: u64,
    accepted: u64,
    filtered: u64,
    lost_before_disk: u64,
    lost_by_disk: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.base)?;
        write!(
            f,
            "captured  {} frames, {} bytes",
            self.written, self.written_bytes
        )?;
        if self.filtered > 0 {
            write!(f, "; {} left out by the filter", self.filtered)?;
        }
        writeln!(
            f,
            "; lost {} in front of the disk, {} by the disk",
            self.lost_before_disk, self.lost_by_disk
        )?;
        match self.files.as_slice() {
            [one] => writeln!(f, "file      {one}"),
            [first, .., last] => {
                writeln!(f, "files     {}: {first} to {last}", self.files.len())
            }
            [] => Ok(()),
        }
    }
}

impl Report {
    /// The report, and the error of the writer.
    fn new(base: Base, counts: &[Arc<Counts>], written: Written) -> (Self, Option<anyhow::Error>) {
        let sum = |count: fn(&Counts) -> u64| counts.iter().map(|counts| count(counts)).sum();
        let report = Self {
            base,
            files: written
                .files
                .iter()
                .map(|file| file.display().to_string())
                .collect(),
            written: written.frames,
            written_bytes: written.bytes,
            accepted: sum(|counts| counts.accepted.get()),
            filtered: sum(|counts| counts.filtered.get()),
            lost_before_disk: sum(|counts| counts.lost.get()),
            lost_by_disk: written.lost,
        };
        (report, written.error)
    }
}

/// Captures, and writes the report.
pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let rotation = args.rotation.rotation().map_err(Failure::Usage)?;
    let supervisor = Supervisor::new(&args.run, &[args.port.spec()])?;
    let loops = supervisor.loops();
    let (mut opened, filtered) = args.promisc.open(registry, &[args.port.spec()])?;
    let port = opened.pop().context("no port was opened")?;
    args.keep_the_source().map_err(Failure::Usage)?;
    let patient = port.capabilities().recorded;
    let queues = args.queues(&port, loops).map_err(Failure::Usage)?;
    let pool = Mempool::new(PoolConfig {
        // Buffers for each queue's ring and its frames in flight, for the rings to the writer, and
        // for the writer.
        buffers: queues * 2 * RING + loops * 2 * CACHE + args.buffer as usize + 2 * CACHE,
        ..PoolConfig::default()
    })
    .context("no memory for packet buffers")?;
    let port = port.configure(PortConfig {
        rx_queues: queues as u16,
        tx_queues: 0,
        ring: RING,
        ..PortConfig::new(pool.clone())
    })?;
    let files = Files::create(&args.output, rotation, args.about())?;
    let started = port.start()?;

    let views = [PortView::new(&started)];
    let StartedPort { port, rx, .. } = started;
    let port = [port];
    let mut ledger = Ledger::new();
    for queue in &rx {
        ledger.add(
            format!("{} queue {}", args.port.spec(), queue.queue()),
            queue.tally(),
        );
    }
    let counts: Vec<_> = (0..loops).map(|_| Arc::new(Counts::default())).collect();
    let sources = Sources {
        start: WireTime::now(),
        queues: rx.iter().map(RxQueue::tally).collect(),
        loops: counts.clone(),
    };
    let (receivers, rings) = args.receivers(rx, &counts, &supervisor, &pool, patient)?;
    for (i, receiver) in receivers.iter().enumerate() {
        ledger.add(format!("loop {i}"), receiver.tally());
    }
    let disk = Disk {
        rings,
        cache: pool.cache(CACHE).context("no packet buffers")?,
        files,
        sources,
        tally: Tally::new(),
        cause: Cause::declare("disk", "could not be written to the file")
            .map_err(anyhow::Error::new)?,
        done: Arc::new(AtomicBool::new(false)),
        stop: supervisor.stop.clone(),
        keep_off: supervisor.cores().to_vec(),
    };
    ledger.add("disk", disk.tally.view());
    let done = Arc::clone(&disk.done);
    let disk = launch("disk", None, move || disk.run()).map_err(anyhow::Error::new)?;

    let bodies = receivers.into_iter().map(|receiver| move || receiver.run());
    let ran = supervisor.run("capture", bodies.collect(), &port, &views, &ledger);
    let ran = ran.map(|mut ended| {
        // The port is stopped first, so that the file's statistics include its final drops.
        let queues = ended.loops.drain(..).flatten().collect();
        (ports::stop(port.into(), queues, Vec::new()), ended)
    });
    // Release pairs with the Acquire of `Disk::run`.
    done.store(true, Ordering::Release);
    let written = disk.join().map_err(anyhow::Error::new)?;
    let (stopped, mut ended) = ran?;
    let base = ended.base("capture", &views, &ledger);
    let (report, error) = Report::new(base, &counts, written);
    ended.finish(&report, &ledger, stopped)?;
    if ledger.balance().from_wire == 0 {
        filtered.tell();
    }
    error.map_or(Ok(()), |error| Err(error.into()))
}

impl Args {
    /// Refuses to overwrite the input file.
    fn keep_the_source(&self) -> anyhow::Result<()> {
        let canonical = |path: &Path| fs::canonicalize(path).ok();
        let spec: PortSpec = self.port.spec().parse()?;
        let source = spec
            .option("rx")
            .and_then(|path| canonical(Path::new(path)));
        if source.is_some() && source == canonical(&self.output) {
            return Err(anyhow!(
                "--output is the file that {} reads; write another one",
                self.port.spec()
            ));
        }
        Ok(())
    }

    /// Number of receive queues for a number of loops; each loop has at least one.
    fn queues(&self, port: &Port<Probed>, loops: usize) -> anyhow::Result<usize> {
        match self.queues.map(usize::from) {
            Some(n) if n < loops => Err(anyhow!(
                "--queues {n}: {loops} loops (--cores) need a queue each"
            )),
            Some(n) => Ok(n),
            None => Ok(usize::from(ports::rx_queues(port, None)).max(loops)),
        }
    }

    /// The loops with their queues, dealt in turn, and the rings from the loops to the writer.
    fn receivers(
        &self,
        queues: Vec<RxQueue>,
        counts: &[Arc<Counts>],
        supervisor: &Supervisor,
        pool: &Mempool,
        patient: bool,
    ) -> anyhow::Result<(Vec<Receiver>, Vec<MbufConsumer>)> {
        let filter = Filter::any(&self.filter);
        let budget = self.count.map(|count| Arc::new(FrameBudget::new(count)));
        let share = (self.buffer as usize).div_ceil(counts.len().max(1));
        let mut shares: Vec<Vec<_>> = counts.iter().map(|_| Vec::new()).collect();
        for (i, queue) in queues.into_iter().enumerate() {
            shares[i % counts.len()].push(queue);
        }
        let both = shares.into_iter().zip(counts).map(|(rx, counts)| {
            let (ring, consumer) = mbuf_ring(share).context("--buffer")?;
            let receiver = Receiver {
                rx,
                ring,
                cache: pool.cache(CACHE).context("no packet buffers")?,
                filter: filter.clone(),
                budget: budget.clone(),
                patient,
                stop: supervisor.stop.clone(),
                tally: Tally::new(),
                counts: Arc::clone(counts),
            };
            Ok((receiver, consumer))
        });
        both.collect()
    }

    /// Description of the capture, for the headers of the files.
    fn about(&self) -> About {
        let filter = Filter::any(&self.filter);
        About {
            program: concat!("pollux ", env!("CARGO_PKG_VERSION")).into(),
            interface: self.port.spec().into(),
            filter: filter.map(|filter| filter.to_string()).unwrap_or_default(),
            snap_len: self.snap_len as usize,
        }
    }
}
