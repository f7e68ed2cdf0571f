//! `pollux bench`: how fast frames may come before some are lost.

mod plot;
mod report;
mod search;
mod stand;
mod trial;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::{Capabilities, LatencyHistogram, Ledger, PortConfig, Registry};
use pollux_program::{Failure, Output, PortOption, Rates, bytes_within, say, seconds};

use self::report::{Report, SizeReport};
use self::search::{Critical, Search};
use self::stand::{CACHE, Plan, Stand};
use self::trial::Sum;
use crate::generate::{Ends, Flows};
use crate::house::{House, Options, Rig};
use crate::payload::{Content, HEADER, Pattern};
use crate::promisc::{Filtered, Promisc};
use crate::scale::scaled;

/// Bytes of the frame check sequence, which sizes here count as RFC 2544 does (section 9.1), and
/// buffers do not hold.
const CHECK_SEQUENCE: u16 = 4;

/// How often a trial is made, at most, until one is not disturbed.
const ATTEMPTS: u32 = 4;

/// The rate at which frames begin to be lost between two ports
///
/// At each rate --trials trials are made (RFC 2544 section 26.1): a trial sends for --trial
/// seconds, waits for what is on its way, and was loss-free if all came, unchanged. The critical
/// rate is the one at which half of the trials are; it is looked for by bisection between
/// --rate-min and --rate-max, and reported with its uncertainty, with the share of loss-free
/// trials at each rate, with what was lost by cause, and with latency. A trial whose sender did
/// not reach its rate is not loss-free. What the machine takes from the loops is measured: a trial
/// that failed and was disturbed so is made again, up to three times as often.
///
/// Sizes are those of frames with their check sequence, as in RFC 2544: 64 is the shortest.
/// --cores takes the CPUs of the senders, of which there is one for each queue, and that of the
/// receiver. A device spreads flows over its receive queues, so give it some. A signal ends the
/// run with what is known by then (docs/formats/bench.md).
///
/// Examples:
///   pollux bench --port loopback --rate-max 20M --plot curve.svg
///   pollux bench --tx af_packet:eth1 --rx af_packet:eth2 --cores 2,3 --report run.json
///   pollux bench --tx af_xdp:eth1 --rx af_xdp:eth2 --queues 2 --flows 64 --cores 2,3,4
///   pollux bench --tx vhost-user:/run/a.sock --rx vhost-user:/run/b.sock --sizes 64 --trials 20
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(mut_arg("place", |arg| arg
    .help("One port that sends, and receives what comes back")
    .required_unless_present("tx")
    .conflicts_with_all(["tx", "rx"])))]
#[command(mut_arg("port", |arg| arg.conflicts_with_all(["tx", "rx"])))]
pub(crate) struct Args {
    #[command(flatten)]
    port: PortOption,

    /// The port that sends
    #[arg(long, value_name = "PORT", requires = "rx")]
    tx: Option<String>,

    /// The port that receives
    #[arg(long, value_name = "PORT", requires = "tx")]
    rx: Option<String>,

    /// Bytes of the frames, with check sequence; one search for each
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "64,512,1518",
        value_parser = size
    )]
    sizes: Vec<u16>,

    /// The lowest rate, in packets a second
    #[arg(long, value_name = "RATE", default_value = "1k", value_parser = frames)]
    rate_min: f64,

    /// The highest rate, in packets a second
    #[arg(long, value_name = "RATE", default_value = "10M", value_parser = frames)]
    rate_max: f64,

    /// For how long a trial sends: a number of seconds, or a time like 200ms
    #[arg(long, value_name = "TIME", default_value = "0.2", value_parser = seconds)]
    trial: Duration,

    /// Trials at each rate
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    trials: u32,

    /// How exactly the critical rate is to be known, as a share of it
    #[arg(long, value_name = "SHARE", default_value = "0.05", value_parser = tolerance)]
    tolerance: f64,

    /// Share of a trial's frames that may be lost
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    loss_tolerance: f64,

    /// For how long frames are waited for, after the last one that came
    #[arg(long, value_name = "TIME", default_value = "0.25", value_parser = seconds)]
    settle: Duration,

    /// Queues of each port: a loop sends on each, and one loop receives from all
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    queues: u16,

    /// Flows, which differ in their source ports [default: one for each queue]
    #[arg(long, value_name = "N", help_heading = "Flows")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    flows: Option<u16>,

    /// Descriptors in each queue's ring
    #[arg(long, value_name = "N", default_value_t = 1024)]
    ring: usize,

    #[command(flatten)]
    ends: Ends,

    /// Write the curves as an SVG picture
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    promisc: Promisc,

    #[command(flatten)]
    run: Options,
}

/// Reads a number of packets a second, for clap's `value_parser`.
fn frames(text: &str) -> Result<f64, String> {
    let rates = Rates {
        units: &["pps"],
        range: 1.0..=1e10,
        max: false,
    };
    let rate = rates.read(text)?.map(|(rate, _)| rate);
    rate.ok_or_else(|| rates.wrong())
}

/// Reads the size of a frame.
fn size(text: &str) -> Result<u16, String> {
    bytes_within(text, 1..=u64::from(u16::MAX)).map(|size| size as u16)
}

/// Reads a share below 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok();
    let share = share.filter(|share| (0.0..1.0).contains(share));
    share.ok_or_else(|| "write a share from 0 to below 1, like 0.001".into())
}

/// Reads a share that a search can reach.
fn tolerance(text: &str) -> Result<f64, String> {
    let share = share(text)?;
    let usable = (0.001..=0.5).contains(&share).then_some(share);
    usable.ok_or_else(|| "must be from 0.001 to 0.5".into())
}

/// One rate, and what its trials were.
struct Tried {
    rate: f64,
    sum: Sum,
    latency: LatencyHistogram,
}

impl Tried {
    fn new(rate: f64) -> Self {
        Self {
            rate,
            sum: Sum::default(),
            latency: LatencyHistogram::new(),
        }
    }
}

/// Searches, and reports.
pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let house = House::new(&args.run)?;
    args.check(&house)?;
    let plot = args.plot.as_deref();
    let plot = plot.map(|path| Output::new("--plot", path, args.run.report.overwrite));
    let plot = plot.transpose().map_err(Failure::Usage)?;
    let (rig, ledger, pool, flows, filtered) = args.start(registry)?;
    let drawing = plot.as_ref().map(Output::create).transpose()?;
    let begun = house.begin(&[&vec!["sender"; args.queues.into()][..], &["receiver"]].concat())?;
    let content = Content::new(Pattern::Random, 1, usize::from(args.longest()));
    let on = (&house, &begun);
    let mut stand = Stand::new(on, (rig, ledger), pool, content, flows)?;

    let mut sizes = Vec::new();
    if stand.wait_for_links()? {
        for &size in &args.sizes {
            sizes.push(args.search(&mut stand, size, &house)?);
            if stand.is_over() {
                break;
            }
        }
    }
    let complete = !stand.is_over();
    let (ledger, views, stopped) = stand.stop();
    let elapsed = begun.elapsed();
    let mut ended = begun.end(Vec::<()>::new(), elapsed);
    let base = ended.base("bench", &views, &ledger);
    let report = Report::new(base, args, complete, sizes);
    ended.finish(&report, &ledger, stopped)?;
    if ledger.balance().delivered == 0 {
        filtered.tell();
    }
    if let (Some(plot), Some(mut file)) = (plot, drawing) {
        let written = file.write_all(plot::svg(&report.sizes).as_bytes());
        written.with_context(|| plot.name())?;
    }
    Ok(())
}

impl Args {
    /// Refuses options that contradict each other.
    fn check(&self, house: &House) -> Result<(), Failure> {
        let refuse = |what: String| Err(Failure::Usage(anyhow!(what)));
        let loops = usize::from(self.queues) + 1;
        if ![0, loops].contains(&house.cores().len()) {
            return refuse(format!(
                "--cores: give {loops} CPUs, of the sender on each queue and of the receiver"
            ));
        }
        if self.flows() < self.queues {
            return refuse(format!(
                "--flows {}: give one for each of the {} queues at least",
                self.flows(),
                self.queues
            ));
        }
        if self.rate_min >= self.rate_max {
            return refuse(format!(
                "--rate-min {} is not below --rate-max {}",
                self.rate_min, self.rate_max
            ));
        }
        // Ethernet's least is 64 with check sequence (IEEE 802.3 section 4.2.3.3).
        let least = (self.ends.header_len() + HEADER).max(60) + usize::from(CHECK_SEQUENCE);
        match self.sizes.iter().find(|&&size| usize::from(size) < least) {
            Some(size) => refuse(format!(
                "--sizes {size}: a frame has at least {least} bytes"
            )),
            None => Ok(()),
        }
    }

    /// Bytes of the longest frame, without check sequence.
    fn longest(&self) -> u16 {
        self.sizes
            .iter()
            .max()
            .map_or(0, |size| size - CHECK_SEQUENCE)
    }

    fn flows(&self) -> u16 {
        self.flows.unwrap_or(self.queues)
    }

    /// The specs of the ports, the sender's first; with their queues, to receive and to send.
    fn ports(&self) -> Vec<(&str, u16, u16)> {
        let n = self.queues;
        match (self.port.get(), &self.tx, &self.rx) {
            (None, Some(tx), Some(rx)) => vec![(tx, 0, n), (rx, n, 0)],
            (port, ..) => port.map(|port| (port, n, n)).into_iter().collect(),
        }
    }

    /// Opens the ports and starts them.
    #[allow(clippy::type_complexity)] // taken apart where it is called
    fn start(
        &self,
        registry: &Registry,
    ) -> Result<(Rig, Ledger, Mempool, Vec<Flows>, Filtered), Failure> {
        let specs = self.ports();
        let names: Vec<_> = specs.iter().map(|(spec, ..)| spec).collect();
        let (opened, filtered) = self.promisc.open(registry, &names)?;
        for port in &opened {
            let Capabilities { max_frame, .. } = port.capabilities();
            if usize::from(self.longest()) > max_frame {
                return Err(Failure::Usage(anyhow!(
                    "--sizes {}: port {} carries at most {max_frame} bytes and a check sequence",
                    self.longest() + CHECK_SEQUENCE,
                    port.spec()
                )));
            }
        }
        let sender = opened.first().context("no port was opened")?;
        let ends = self.ends.endpoints(&sender.capabilities());
        let ends = ends.map_err(Failure::Usage)?;
        let queues = usize::from(self.queues);
        let flows = (0..queues).map(|i| Flows::by_port(ends, self.flows(), (i, queues)));
        let flows: Vec<_> = flows.collect::<Result<_, _>>().map_err(Failure::Usage)?;
        // One pool, since a wire inside the process takes buffers from sender to receiver.
        let pool = Mempool::new(PoolConfig {
            buffers: queues * (4 * self.ring.min(1 << 16) + CACHE) + 3 * CACHE,
            data_room: usize::from(self.longest()).max(PoolConfig::default().data_room),
            ..PoolConfig::default()
        })
        .context("no memory for packet buffers")?;
        let configured = opened.into_iter().zip(&specs);
        let configured = configured.map(|(port, &(_, rx_queues, tx_queues))| {
            port.configure(PortConfig {
                rx_queues,
                tx_queues,
                ring: self.ring,
                pool: pool.clone(),
                checksum_offload: false,
            })
        });
        let configured: Vec<_> = configured.collect::<Result<_, _>>()?;
        let mut ledger = Ledger::new();
        let rig = Rig::start(configured, &mut ledger)?;
        Ok((rig, ledger, pool, flows, filtered))
    }

    /// Looks for the critical rate of one size.
    fn search(
        &self,
        stand: &mut Stand<'_>,
        size: u16,
        house: &House,
    ) -> Result<SizeReport, Failure> {
        let mut search = Search::new(self.rate_min, self.rate_max, self.tolerance);
        let mut tried: Vec<Tried> = Vec::new();
        let mut disturbed = false;
        while !disturbed
            && !stand.is_over()
            && let Some(rate) = search.next()
        {
            // The median may come back to where it was.
            let again = tried.iter().position(|at| at.rate.total_cmp(&rate).is_eq());
            let mut at = again.map_or_else(
                || {
                    let at = Tried::new(rate);
                    let of = format!("{size} B at {rate:.0} pps");
                    house.latencies.add(of, at.latency.view());
                    at
                },
                |i| tried.swap_remove(i),
            );
            let before = (at.sum.judged(), at.sum.loss_free);
            let plan = Plan {
                rate,
                bytes: size - CHECK_SEQUENCE,
                duration: self.trial,
                settle: self.settle,
            };
            for _ in 0..ATTEMPTS * self.trials {
                let (trial, latency) = stand.trial(plan, at.latency)?;
                at.latency = latency;
                let Some(trial) = trial else { break };
                at.sum.add(&trial, self.loss_tolerance);
                if at.sum.judged() - before.0 == self.trials {
                    break;
                }
            }
            let judged = at.sum.judged() - before.0;
            if judged > 0 {
                search.observe(rate, judged, at.sum.loss_free - before.1);
            }
            disturbed = judged == 0 && at.sum.trials() > 0 && !stand.is_over();
            if at.sum.trials() > 0 && !house.is_quiet() {
                say(progress(size, &at, search.critical()));
            }
            if at.sum.trials() > 0 {
                tried.push(at);
            }
        }
        let critical = if disturbed {
            Critical::Disturbed
        } else {
            search.critical()
        };
        Ok(SizeReport::new(size, critical, tried))
    }
}

/// A line on what is known by now.
fn progress(size: u16, Tried { rate, sum, .. }: &Tried, critical: Critical) -> String {
    let known = match critical {
        Critical::Unknown | Critical::Disturbed => String::new(),
        Critical::BelowMin => "; critical below the lowest rate".into(),
        Critical::AboveMax => "; critical above the highest rate".into(),
        Critical::Within { low, high, .. } => {
            format!("; critical {}pps to {}pps", scaled(low), scaled(high))
        }
    };
    format!(
        "{size:5} B {:>9}pps: {} of {} trials loss-free, {} not reached, {} disturbed{known}",
        scaled(*rate),
        sum.loss_free,
        sum.trials(),
        sum.not_reached,
        sum.disturbed
    )
}
