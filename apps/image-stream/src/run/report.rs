//! Report of a run: JSON (docs/images.md), and text.

use std::collections::BTreeMap;
use std::io::{self, Write};

use pollux_app::LedgerReport;
use pollux_images::transfer::{TransferCounts, TransferView};
use pollux_pmd::{LatencyView, Percentiles};
use serde::Serialize;

use super::counters::Counters;
use super::rdma::{RdmaReport, RdmaView};

/// Version of the report's layout; incremented with every change that readers can notice.
pub const SCHEMA: u32 = 1;

/// A run, as other programs read it: names and meanings must not change.
#[derive(Debug, Serialize)]
pub struct Report {
    pub schema: u32,
    /// Why the run ended: `complete` (all frames of the demonstration), `exhausted` (the recordings have
    /// ended), `enough` (the requested number of images), `stopped`, or `gone` (the device of a port).
    pub end: &'static str,
    pub duration_s: f64,
    pub frames: FramesReport,
    pub images: ImagesReport,
    /// Pixels of dark frames: those that the pedestals followed, and those that did not count.
    pub dark_pixels: DarkPixelsReport,
    pub packets: PacketsReport,
    pub ledger: LedgerReport,
    /// Stacks that sources have written into memory, where images come so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma: Option<RdmaReport>,
    /// Images a second, from the start of the run to its end.
    pub rate_hz: f64,
    /// Pixels of the images, in 10^9 bytes a second of what the detector sent.
    pub gb_s: f64,
    /// Share of the images that were kept; null without images.
    pub hit_rate: Option<f64>,
    /// Times of each stage, and `total`.
    pub latency_us: BTreeMap<String, Quantiles>,
    /// The loop's gaps between two readings of the clock, its own work included.
    pub jitter_us: Quantiles,
    /// Rounds of the loop without reception, because a stage or an output was full.
    pub stops: u64,
    /// Receivers of regions.
    pub receivers: Vec<TransferCounts>,
    /// Images of each worker.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<u64>,
    pub outputs: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    /// Emulated detector of the demonstration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emulator: Option<serde_json::Value>,
}

/// Frames of the detector.
#[derive(Debug, Serialize)]
pub struct FramesReport {
    pub received: u64,
    pub complete: u64,
    pub partial: u64,
    pub empty: u64,
    pub discarded: u64,
    /// Frames that were closed before `timeout_us`, since newer ones needed their buffers.
    pub early: u64,
}

/// Images behind the receiver.
#[derive(Debug, Serialize)]
pub struct ImagesReport {
    pub built: u64,
    pub dark: u64,
    pub kept: u64,
    pub vetoed: u64,
    pub written: u64,
    pub overrun: u64,
    /// Images that workers did not return in time: built = kept + vetoed + lost.
    pub lost: u64,
    pub peaks: u64,
}

/// Pixels of dark frames but bad ones.
#[derive(Debug, Serialize)]
pub struct DarkPixelsReport {
    pub used: u64,
    pub other_gain: u64,
    pub implausible: u64,
}

/// Packets of the detector.
#[derive(Debug, Serialize)]
pub struct PacketsReport {
    pub placed: u64,
    pub missing: u64,
    pub duplicate: u64,
    pub out_of_range: u64,
}

/// Quantiles in microseconds.
#[derive(Debug, Serialize)]
pub struct Quantiles {
    pub count: u64,
    pub p50: f64,
    pub p99: f64,
    #[serde(rename = "p99.9")]
    pub p999: f64,
    #[serde(rename = "p99.99")]
    pub p9999: f64,
    pub max: f64,
}

impl From<Percentiles> for Quantiles {
    fn from(of: Percentiles) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        Self {
            count: of.count,
            p50: us(of.p50),
            p99: us(of.p99),
            p999: us(of.p999),
            p9999: us(of.p9999),
            max: us(of.max),
        }
    }
}

fn quantiles(view: &LatencyView) -> Quantiles {
    view.percentiles().into()
}

/// How a run ended.
pub struct Ended {
    pub end: &'static str,
    pub duration_s: f64,
    /// Bytes of an image as the detector sends it.
    pub raw_bytes: usize,
    pub emulator: Option<serde_json::Value>,
}

impl Report {
    /// Collects the counters at the end of a run.
    pub fn new(counters: &Counters, ended: Ended) -> Self {
        let (frames, images) = (&counters.frames, &counters.images);
        let packets = counters.packets();
        let built = images.built.get() + images.dark.get();
        let rate_hz = built as f64 / ended.duration_s.max(1e-9);
        let latency = counters.latency.iter();
        Self {
            schema: SCHEMA,
            end: ended.end,
            duration_s: ended.duration_s,
            frames: FramesReport {
                received: frames.received.get(),
                complete: frames.complete.get(),
                partial: frames.partial.get(),
                empty: frames.empty.get(),
                discarded: frames.discarded.get(),
                early: frames.early.get(),
            },
            images: ImagesReport {
                built: images.built.get(),
                dark: images.dark.get(),
                kept: images.kept.get(),
                vetoed: images.vetoed.get(),
                written: counters.written(),
                overrun: counters.overrun(),
                lost: counters.lost(),
                peaks: images.peaks.get(),
            },
            dark_pixels: DarkPixelsReport {
                used: images.dark_pixels.used.get(),
                other_gain: images.dark_pixels.other_gain.get(),
                implausible: images.dark_pixels.implausible.get(),
            },
            packets: PacketsReport {
                placed: packets.placed,
                missing: packets.missing,
                duplicate: packets.duplicate,
                out_of_range: packets.out_of_range,
            },
            ledger: counters.books.ledger.balance().into(),
            rdma: counters.rdma.as_ref().map(RdmaView::report),
            rate_hz,
            gb_s: rate_hz * ended.raw_bytes as f64 / 1e9,
            hit_rate: images.hit_rate(),
            latency_us: latency
                .map(|(name, view)| (name.clone(), quantiles(view)))
                .collect(),
            jitter_us: quantiles(&counters.gaps),
            stops: counters.back_pressure.stops.get(),
            receivers: counters
                .receivers
                .iter()
                .map(TransferView::counts)
                .collect(),
            workers: counters.workers.iter().map(|count| count.get()).collect(),
            outputs: counters.outputs.report(),
            emulator: ended.emulator,
        }
    }

    /// Writes the report as text.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "run        {:.2} s, {}", self.duration_s, self.end)?;
        writeln!(
            out,
            "frames     {} received: {} complete, {} partial; {} empty, {} discarded, {} early",
            self.frames.received,
            self.frames.complete,
            self.frames.partial,
            self.frames.empty,
            self.frames.discarded,
            self.frames.early
        )?;
        writeln!(
            out,
            "packets    {} placed, {} missing, {} duplicate, {} out of range",
            self.packets.placed,
            self.packets.missing,
            self.packets.duplicate,
            self.packets.out_of_range
        )?;
        writeln!(
            out,
            "images     {} built ({:.0}/s, {:.3} GB/s of raw pixels), {} dark",
            self.images.built, self.rate_hz, self.gb_s, self.images.dark
        )?;
        if self.images.dark > 0 {
            let pixels = &self.dark_pixels;
            writeln!(
                out,
                "           pixels of dark frames: {} used, {} not in G0, {} implausible",
                pixels.used, pixels.other_gain, pixels.implausible
            )?;
        }
        writeln!(
            out,
            "           {} kept with {} peaks, {} vetoed; {} written, {} overrun, {} lost",
            self.images.kept,
            self.images.peaks,
            self.images.vetoed,
            self.images.written,
            self.images.overrun,
            self.images.lost
        )?;
        writeln!(
            out,
            "latency us {:>12} {:>9} {:>9} {:>9} {:>9}",
            "p50", "p99", "p99.9", "p99.99", "max"
        )?;
        let jitter = ("(jitter)", &self.jitter_us);
        let times = self
            .latency_us
            .iter()
            .map(|(name, times)| (&name[..], times));
        for (name, times) in times.chain([jitter]) {
            if times.count == 0 {
                writeln!(out, "  {name:<12} {:>8}", "-")?;
                continue;
            }
            writeln!(
                out,
                "  {name:<12} {:>8.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
                times.p50, times.p99, times.p999, times.p9999, times.max
            )?;
        }
        for (output, counts) in &self.outputs {
            let counts: Vec<_> = counts
                .iter()
                .map(|(name, n)| format!("{n} {name}"))
                .collect();
            writeln!(out, "{output:<10} {}", counts.join(", "))?;
        }
        if let Some(rdma) = &self.rdma {
            writeln!(
                out,
                "stacks     {} of {} sources: {} not announced, {} announced again, {} refused; {} packets missed",
                rdma.stacks,
                rdma.sources,
                rdma.unannounced,
                rdma.repeated,
                rdma.refused,
                rdma.missed_packets
            )?;
            writeln!(out, "lines      {}", balance(&rdma.lines))?;
        }
        for TransferCounts {
            name,
            images,
            bytes,
            overrun,
            ..
        } in &self.receivers
        {
            writeln!(
                out,
                "receiver   {name}: {images} images, {bytes} B, {overrun} overrun"
            )?;
        }
        writeln!(out, "ledger     {}", balance(&self.ledger))
    }
}

/// A ledger in one line.
fn balance(ledger: &LedgerReport) -> String {
    let LedgerReport {
        from_wire,
        delivered,
        dropped,
        balanced,
    } = ledger;
    let dropped: Vec<_> = dropped
        .iter()
        .map(|(cause, n)| format!(" + {n} {cause}"))
        .collect();
    let state = if *balanced { "" } else { ": NOT BALANCED" };
    let dropped = dropped.concat();
    format!("{from_wire} from wire = {delivered} delivered{dropped}{state}")
}
