//! Execution of a run: open, launch, supervise, stop in order, report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use pollux_app::http::Listeners;
use pollux_app::metrics::Ledgers;
use pollux_app::ports::{PortView, stop};
use pollux_app::{Reports, main_loss, user_message};
use pollux_images::receive::{ImageReader, ReceiveCauses, Stored};
use pollux_images::stages::Desk;
use pollux_mempool::Mempool;
use pollux_mempool::time::Ns;
use pollux_pipelines::Batch;
use pollux_pmd::lcore::idle::Idle;
use pollux_pmd::lcore::{self, JitterMeter, StopFlag};
use pollux_pmd::port::{Port, Started};
use pollux_pmd::{Cause, Ledger, PortError, RxQueue, TscClock};

use super::conflicts::Conflicts;
use super::counters::{Counters, ImageCounts, Overload, Summary};
use super::dark::{Dark, DarkWatch};
use super::demonstration::Source;
use super::early::EarlyWatch;
use super::host::Host;
use super::image_loop::ImageLoop;
use super::monitoring::Monitoring;
use super::observe::Observe;
use super::opened::Opened;
use super::outputs::{OutputThread, Outputs};
use super::overrun::Overruns;
use super::packets::BURST;
use super::page::Images;
use super::place::Place;
use super::plan::Plan;
use super::ports::{self, HandedOut};
use super::receive_loop::ReceiveLoop;
use super::reception::Reception;
use super::regions::{self, RegionThreads};
use super::report::{Ended, Report};
use super::sink::ImageSink;
use super::stages::{self, Findings, Pool};
use super::threads::{Ending, Loops, Threads};
use super::workers::Chain;
use super::{describe, outputs};
use crate::detector::Detector;
use crate::image::PixelType;
use crate::live::LiveConfig;

/// Period of housekeeping.
const ROUND: Duration = Duration::from_millis(20);

/// Longest sleep of an idle loop: images are closed by the clock, also while no packet comes.
const SLEEP: Ns = Ns(1_000_000);

/// Rounds at the end of a run beyond those that empty a full receive ring.
const LAST_ROUNDS: usize = 64;

/// What a run is made of, beside ports and outputs.
pub struct Parts<P: Stored, L, O> {
    pub place: L,
    pub causes: ReceiveCauses,
    pub reader: ImageReader<P>,
    pub chain: Chain<P>,
    pub pool: Option<Pool<P>>,
    pub observer: O,
    pub dark: Option<Dark>,
    /// True for the bad pixels; empty if they are not known.
    pub bad: Vec<bool>,
    /// What the page shows of the images, if there is one.
    pub page: Option<Images>,
    /// What the stages find in images.
    pub findings: Findings,
}

/// Executes a run.
///
/// # Errors
/// What could not be opened, or did not end in order.
#[expect(
    clippy::too_many_lines,
    reason = "the order of a run, from top to bottom"
)]
pub fn execute<P: Stored, L: Place, O: Observe<P>>(
    plan: &Plan,
    pixel: PixelType,
    parts: Parts<P, L, O>,
    host: &Host<'_>,
) -> Result<()> {
    // Before there are files, which would be in the way of the next attempt.
    let listeners = Listeners::bind(plan.options.metrics.address(), plan.options.http)?;
    let reports = plan.reports.ready()?;
    let pool = Mempool::new(plan.config.pool()).context("[memory]")?;
    let mut opened = ports::open(plan, &pool)?;
    let clock = TscClock::get();
    let emulator_stop = StopFlag::new();
    let source = demonstration(plan, &mut opened, &pool, clock, &emulator_stop)?;
    let view = |o: &Opened| PortView::of(&o.port, &o.rx, &o.tx);
    let views: Vec<_> = opened.iter().map(view).collect();
    let recorded = opened.iter().any(|opened| opened.offered.recorded);
    let (mut ledger, no_buffer) = (Ledger::new(), parts.place.no_buffer());
    let handed_out = ports::receptions(plan, &pool, opened, parts.place, &mut ledger)?;
    let HandedOut {
        ports,
        receptions,
        rdma,
    } = handed_out;
    let (sources, rdma) = rdma.unzip();

    let images = plan.config.memory.images;
    let queue = room(images, 1);
    let counts = Arc::<ImageCounts>::default();
    let detector = describe::detector(plan, pixel, &parts.bad);
    let summary = Summary {
        frames: parts.reader.counts(),
        images: Arc::clone(&counts),
    };
    let findings = &parts.findings;
    let outputs = open_outputs::<P>(plan, &detector, findings, summary)?;
    let output_counts = outputs.counts();
    let (sender, output_thread) = if outputs.is_empty() {
        (None, None)
    } else {
        let (sender, thread) = outputs.start(queue, recorded, &plan.cpus())?;
        (Some(sender), Some(thread))
    };
    let (regions, views_of_regions, region_threads) = if plan.receivers.is_empty() {
        (None, Vec::new(), RegionThreads::default())
    } else {
        let shape = plan.layout.image();
        let opened = regions::open::<P>(&plan.receivers, shape, recorded, &plan.cpus())?;
        (Some(opened.0), opened.1, opened.2)
    };
    let jitter = JitterMeter::new(clock);
    let sink = ImageSink::new(
        sender,
        recorded,
        plan.options.vetoed,
        regions,
        parts.observer,
        Arc::clone(&counts),
        clock,
    );
    let mut latency = stages::times(&parts.chain);
    if let Some(pool) = &parts.pool {
        latency.extend(pool.times.iter().cloned());
    }
    latency.push(("total".into(), sink.total()));
    let workers = parts.pool.as_ref();
    let counters = Arc::new(Counters {
        books: Ledgers {
            ledger,
            ports: views,
        },
        frames: parts.reader.counts(),
        images: Arc::clone(&counts),
        placers: receptions.iter().map(Reception::placed).collect(),
        causes: parts.causes,
        overload: Overload::new(no_buffer, &plan.layout),
        latency,
        gaps: jitter.gaps(),
        back_pressure: parts.chain.back_pressure(),
        lost_by_workers: workers.map(|pool| Arc::clone(&pool.counts)),
        workers: workers.map_or_else(Vec::new, Pool::images),
        outputs: output_counts,
        receivers: views_of_regions,
        rdma,
    });
    let cpus = plan.cpus();
    let watch = Monitoring::open(listeners, plan, &detector, &counters, parts.page)?;
    let detector_ports = plan.config.ports(&plan.layout).collect();
    let mut conflicts = Conflicts::new(parts.reader.senders(), detector_ports);

    let received = receptions.iter().map(Reception::received_until).collect();
    let mut receptions = receptions.into_iter();
    let mut own = if plan.receive_cpus.is_empty() {
        receptions.next()
    } else {
        None
    };
    let stops = Ending::default();
    let last_rounds = LAST_ROUNDS + plan.config.memory.ring / BURST;
    let image_loop = ImageLoop {
        idle: idle(plan, own.as_mut())?,
        reception: own,
        received,
        reader: parts.reader,
        // The other half of the buffers is for images that are being received.
        desk: Desk::new(images / 2, &parts.findings.capacity),
        chain: parts.chain,
        sink,
        dark: parts.dark,
        counts,
        last_rounds,
        recorded,
        // In the demonstration the emulator counts: all its images are waited for.
        most: plan.options.images.filter(|_| source.is_none()),
        clock,
        jitter,
        stop: stops.images.clone(),
        gives_way: plan.shares_cpus(),
        waiting: None,
        batch: Batch::with_capacity(1),
    };
    let receive_loop = |mut reception: Reception<L>| {
        Ok::<_, anyhow::Error>(ReceiveLoop {
            idle: idle(plan, Some(&mut reception))?,
            reception,
            clock,
            jitter: JitterMeter::new(clock),
            stop: stops.receivers.clone(),
            last_rounds,
            gives_way: plan.shares_cpus(),
        })
    };
    let loops = Loops {
        images: image_loop,
        receivers: receptions.map(receive_loop).collect::<Result<_>>()?,
        pool: parts.pool,
        source,
    };
    let mut overruns = Overruns::new(&counters.receivers, queue as u64);
    let (mut dark_watch, mut early_watch) = (DarkWatch::default(), EarlyWatch::default());
    host.ready(&counters, recorded);
    let began = Instant::now();
    let threads = Threads::launch(plan, loops, &clock)?;
    lcore::keep_off(&cpus);
    let gone = supervise(plan, &counters, watch, &ports, &threads, || {
        conflicts.keep();
        dark_watch.look(&counters.images);
        early_watch.look(&counters.frames, &plan.config);
        host.keep(&counters, &mut overruns)
    });
    emulator_stop.stop();
    let (joined, joining) = threads.join(&stops);
    // Sources see that no more is taken.
    drop(sources);
    let written = output_thread.map_or(Ok(()), OutputThread::finish);
    let received = region_threads.finish();
    conflicts.look();
    early_watch.look(&counters.frames, &plan.config);
    let duration_s = began.elapsed().as_secs_f64();
    let stopped = stop(ports, joined.rx, joined.tx);
    let gone = gone || matches!(stopped, Err(PortError::Gone { .. }));
    let end = match &joined.emulator {
        _ if gone => "gone",
        Some((_, true)) => "complete",
        None if plan
            .options
            .images
            .is_some_and(|most| counters.images.built.get() >= most) =>
        {
            "enough"
        }
        None if joined.images_ended && recorded => "exhausted",
        _ => "stopped",
    };
    let ended = Ended {
        end,
        duration_s,
        raw_bytes: plan.layout.image_bytes(),
        emulator: joined.emulator.map(|(report, _)| report),
    };
    let told = tell(reports, &Report::new(&counters, ended));
    joining?;
    told?;
    stopped.context("the run ended, but not cleanly")?;
    written?;
    received?;
    counters.books.ledger.check()?;
    if let Some(rdma) = &counters.rdma {
        rdma.lines().check()?;
    }
    expect_images(&counters, recorded)
}

/// Packets of which none is in an image are a failure: the detector is another than the configured one.
fn expect_images(counters: &Counters, recorded: bool) -> Result<()> {
    let balance = counters.books.ledger.balance();
    let most = main_loss(&balance, recorded);
    let placed = counters.packets().placed;
    if let Some(rdma) = counters.rdma.as_ref().filter(|_| placed == 0) {
        let lines = rdma.lines().balance();
        let most = lines.drops().max_by_key(|&(_, lines)| lines);
        if let Some((cause, dropped)) = most {
            bail!(
                "no line of {} is in an image; {dropped} were dropped as {}: compare [detector] with the \
                 source, and look for losses on the way (rdma.missed_packets)",
                lines.from_wire,
                cause.name()
            );
        }
    }
    if let Some((cause, packets)) = most.filter(|_| placed == 0) {
        let remedy = if cause == Cause::IpFragment {
            "fragments are not put together: give the link an MTU for whole packets (ip link set DEV mtu 9000)"
        } else {
            "compare [detector] with what is sent (pollux streams shows it)"
        };
        bail!(
            "no packet of {} is in an image; {packets} were dropped as {}: {remedy}",
            balance.from_wire,
            cause.name()
        );
    }
    let (images, discarded) = (&counters.images, counters.frames.discarded.get());
    if discarded > 0 && images.built.get() + images.dark.get() == 0 {
        bail!(
            "none of {} images was built: {discarded} were discarded ({} packets are missing): compare modules and \
             interfaces of [detector] with what is sent (pollux streams shows it), or choose another discard",
            counters.frames.received.get(),
            counters.packets().missing
        );
    }
    Ok(())
}

/// The emulated detector of the demonstration, which takes the transmit queue of the loopback.
fn demonstration(
    plan: &Plan,
    opened: &mut [Opened],
    pool: &Mempool,
    clock: TscClock,
    stop: &StopFlag,
) -> Result<Option<Source>> {
    let (Some(demonstration), [loopback]) = (&plan.demonstration, opened) else {
        return Ok(None);
    };
    let tx = loopback.tx.pop();
    let tx = tx.context("the loopback has no queue to send by")?;
    Ok(Some(demonstration.source(tx, pool, clock, stop.clone())?))
}

fn idle<L: Place>(plan: &Plan, reception: Option<&mut Reception<L>>) -> Result<Idle> {
    let queues = reception.map(|reception| reception.queues().map(|rx| &*rx).collect());
    let queues: Vec<&RxQueue> = queues.unwrap_or_default();
    Idle::new(plan.options.idle, SLEEP, queues.into_iter()).context("--idle")
}

/// Images that wait for each of so many outputs. A stalled live client holds twice as many, those of the
/// stream's queue and its own, and leaves enough of the buffers that are not for reception to a file.
const fn room(images: usize, outputs: usize) -> usize {
    let room = images / 4 / if outputs == 0 { 1 } else { outputs };
    if room == 0 { 1 } else { room }
}

/// The outputs that the command line names.
fn open_outputs<P: Stored>(
    plan: &Plan,
    detector: &Detector,
    findings: &Findings,
    summary: Summary,
) -> Result<outputs::Outputs<P>> {
    // For the end of a file.
    #[cfg(not(feature = "hdf5"))]
    drop(summary);
    let mut outputs = Outputs::none();
    let outputs_of_run = usize::from(plan.out.is_some()) + usize::from(plan.options.live.is_some());
    let queue = room(plan.config.memory.images, outputs_of_run);
    #[cfg(feature = "hdf5")]
    if let Some(output) = &plan.out {
        let (recorder, file_queue) =
            describe::file(plan, output, (detector, findings), summary.boxed(), queue)?;
        outputs = outputs.with_file(recorder, file_queue);
    }
    if let Some(address) = plan.options.live {
        let config = LiveConfig {
            address,
            queue,
            loops: plan.cpus(),
            ..LiveConfig::default()
        };
        outputs = outputs.with_live(detector, &config, findings.axis.clone())?;
    }
    Ok(outputs)
}

/// Housekeeping of the main thread until the run is to end, as `is_to_end` may say; whether a device is
/// gone.
fn supervise<P: Stored>(
    plan: &Plan,
    counters: &Counters,
    mut watch: Monitoring,
    ports: &[Port<Started>],
    threads: &Threads<P>,
    mut is_to_end: impl FnMut() -> bool,
) -> bool {
    let start = Instant::now();
    let mut shown = (start, 0);
    let limit = plan.options.duration.duration;
    loop {
        let over = limit.is_some_and(|limit| start.elapsed() >= limit);
        if threads.are_to_end() || over || is_to_end() {
            return false;
        }
        if !watch.keep(ports) {
            return true;
        }
        if shown.0.elapsed() >= Duration::from_secs(1) {
            let built = counters.images.built.get();
            let rate = (built - shown.1) as f64 / shown.0.elapsed().as_secs_f64();
            if !plan.options.quiet {
                user_message(format_args!(
                    "{:>5} s {built:>9} images {rate:>7.0}/s, {} kept, {} partial",
                    start.elapsed().as_secs(),
                    counters.images.kept.get(),
                    counters.frames.partial.get()
                ));
            }
            shown = (Instant::now(), built);
        }
        let left = limit.map_or(ROUND, |limit| limit.saturating_sub(start.elapsed()));
        std::thread::sleep(ROUND.min(left));
    }
}

fn tell(reports: Reports, report: &Report) -> Result<()> {
    reports.tell(report, |out| report.write(out))
}

#[cfg(test)]
mod tests {
    use super::{LiveConfig, room};

    #[test]
    fn a_stalled_live_client_leaves_the_room_of_a_file() {
        for images in [64, 256, 4096] {
            let queue = room(images, 2);
            // One image on its way to this client, none to the others that a stream may have.
            let live = LiveConfig {
                queue,
                ..LiveConfig::default()
            };
            let stalled = live.held_images() - (LiveConfig { queue: 0, ..live }).held_images() + 2;
            // And one that is being written.
            assert!(stalled + queue < images / 2, "{images}");
        }
        assert_eq!([room(2, 2), room(64, 1), room(64, 0)], [1, 16, 16]);
    }
}
