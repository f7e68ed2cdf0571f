//! All counters of a run, readable at any time: for the report, the page and the metrics.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pollux_app::metrics::{Ledgers, Page, Source};
use pollux_images::calibration::DarkFrame;
use pollux_images::formats::Layout;
use pollux_images::receive::{FrameCounts, ReceiveCauses};
use pollux_images::transfer::TransferView;
use pollux_pipelines::BackPressure;
use pollux_pmd::{Balance, Cause, Count, LatencyView};

use super::outputs::OutputCounts;
use super::rdma::RdmaView;

/// Images of which the recent hit rate is.
pub const WINDOW: usize = 1000;

/// Pixels of dark frames but bad ones, of all modules.
#[derive(Debug, Default)]
pub struct DarkPixels {
    /// Their pedestals followed them.
    pub used: Count,
    /// They were not in G0.
    pub other_gain: Count,
    /// They were too far from their pedestals (`plausible` of the tracking).
    pub implausible: Count,
}

impl DarkPixels {
    /// Adds a frame of a module.
    pub fn add(&self, frame: DarkFrame) {
        self.used.add(frame.used as u64);
        self.other_gain.add(frame.other_gain as u64);
        self.implausible.add(frame.implausible as u64);
    }

    /// Names and numbers.
    pub fn outcomes(&self) -> [(&'static str, u64); 3] {
        [
            ("used", self.used.get()),
            ("other-gain", self.other_gain.get()),
            ("implausible", self.implausible.get()),
        ]
    }
}

/// What became of the images. Written by the loop that takes them.
#[derive(Debug, Default)]
pub struct ImageCounts {
    /// Images that were delivered to the stages.
    pub built: Count,
    /// Dark frames, which only the pedestals follow.
    pub dark: Count,
    /// Pixels of dark frames, by what the pedestals made of them.
    pub dark_pixels: DarkPixels,
    /// Images that were not vetoed.
    pub kept: Count,
    /// Images that were vetoed.
    pub vetoed: Count,
    /// Images that were handed to the outputs, and those of them that were kept.
    pub handed: Count,
    pub handed_kept: Count,
    /// Images that no output had room for.
    pub overrun: Count,
    /// Bragg peaks in the images that were kept.
    pub peaks: Count,
    /// Share of the last images that were kept: the bits of an `f64`.
    recent: AtomicU64,
}

impl ImageCounts {
    /// Images that have come to the end of the chain.
    pub fn ended(&self) -> u64 {
        self.kept.get() + self.vetoed.get()
    }

    /// Hit rate: share of the images that were kept; `None` before the first.
    pub fn hit_rate(&self) -> Option<f64> {
        let (kept, ended) = (self.kept.get(), self.ended());
        (ended > 0).then(|| kept as f64 / ended as f64)
    }

    /// Hit rate of the last [`WINDOW`] images.
    pub fn recent_hit_rate(&self) -> Option<f64> {
        let rate = f64::from_bits(self.recent.load(Ordering::Relaxed));
        (self.ended() > 0).then_some(rate)
    }

    /// Sets the hit rate of the last images.
    pub fn set_recent_hit_rate(&self, rate: f64) {
        self.recent.store(rate.to_bits(), Ordering::Relaxed);
    }
}

/// Counts for the end of a file.
#[cfg_attr(not(feature = "hdf5"), expect(dead_code))]
pub struct Summary {
    pub frames: Arc<FrameCounts>,
    pub images: Arc<ImageCounts>,
}

#[cfg(feature = "hdf5")]
impl Summary {
    /// As the file takes it.
    pub fn boxed(self) -> crate::nexus::Summary {
        let Self { frames, images } = self;
        Box::new(move || {
            let counts = [
                ("frames_complete", &frames.complete),
                ("frames_partial", &frames.partial),
                ("frames_empty", &frames.empty),
                ("frames_discarded", &frames.discarded),
                ("packets_missing", &frames.missing),
                ("images_built", &images.built),
                ("images_kept", &images.kept),
                ("images_vetoed", &images.vetoed),
                ("images_overrun", &images.overrun),
            ];
            counts
                .map(|(name, count)| (name.into(), count.get()))
                .into()
        })
    }
}

/// Packets by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// Packets that are in an image.
    pub placed: u64,
    /// Packets that did not come.
    pub missing: u64,
    /// Copies of packets that are in an image.
    pub duplicate: u64,
    /// Packets whose number no packet of the detector has.
    pub out_of_range: u64,
}

/// Packets that were lost since loops did not take them in time.
#[derive(Clone, Copy, Debug)]
pub struct Overload {
    causes: [Cause; 4],
    /// Packets of an image.
    packets: u64,
}

impl Overload {
    /// `no_buffer` is the cause of packets without an image buffer.
    pub fn new(no_buffer: Cause, layout: &Layout) -> Self {
        Self {
            causes: [Cause::NoMbuf, Cause::RingFull, Cause::KernelDrop, no_buffer],
            packets: (layout.senders() * layout.packets()).max(1) as u64,
        }
    }

    /// Images that the lost packets make up, at least.
    fn images(&self, balance: &Balance) -> u64 {
        let lost = self.causes.iter().map(|&cause| balance.dropped_for(cause));
        lost.sum::<u64>().div_ceil(self.packets)
    }
}

/// Views of the counters of the loops.
pub struct Counters {
    pub books: Ledgers,
    pub frames: Arc<FrameCounts>,
    pub images: Arc<ImageCounts>,
    /// Counters of the packets of each receive loop.
    pub placers: Vec<pollux_pmd::TallyView>,
    pub causes: ReceiveCauses,
    /// Packets that were lost since the run was too slow.
    pub overload: Overload,
    /// Times of each stage, and `total`: from the first packet of an image to the end of its
    /// processing.
    pub latency: Vec<(String, LatencyView)>,
    /// Time for which the loop was kept from its work, per interruption.
    pub gaps: LatencyView,
    pub back_pressure: Arc<BackPressure>,
    /// Images that workers did not return in time.
    pub lost_by_workers: Option<Arc<pollux_pipelines::in_flight::InFlightCounts>>,
    /// Images of each worker.
    pub workers: Vec<Arc<Count>>,
    pub outputs: OutputCounts,
    /// Receivers of regions.
    pub receivers: Vec<TransferView>,
    /// Stacks that sources write into memory, where images come so.
    pub rdma: Option<RdmaView>,
}

impl Counters {
    /// Packets so far.
    pub fn packets(&self) -> Packets {
        let mut packets = Packets {
            missing: self.frames.missing.get(),
            ..Packets::default()
        };
        for placer in &self.placers {
            let balance = placer.balance();
            packets.placed += balance.delivered;
            packets.duplicate += balance.dropped_for(Cause::Duplicate);
            packets.out_of_range += balance.dropped_for(self.causes.packet.out_of_range);
        }
        packets
    }

    /// Images that were written to a file.
    pub fn written(&self) -> u64 {
        self.outputs.written()
    }

    /// Images that were kept and that no file has: the outputs, or the disk, were too slow.
    pub fn overrun(&self) -> u64 {
        self.images.overrun.get() + self.outputs.overrun()
    }

    /// Images that all receivers lost: no output, image buffer or packet buffer was free in time.
    pub fn lost_by_all(&self) -> u64 {
        let images = self.images.overrun.get() + self.outputs.behind();
        images + self.overload.images(&self.books.ledger.balance())
    }

    /// Images that workers did not return in time.
    pub fn lost(&self) -> u64 {
        let lost = self.lost_by_workers.as_ref();
        lost.map_or(0, |counts| counts.lost.get())
    }
}

impl Source for Counters {
    fn measure(&self, page: &mut Page<'_>) -> fmt::Result {
        self.books.measure(page)?;
        let frames = &self.frames;
        let outcomes = [
            ("complete", &frames.complete),
            ("partial", &frames.partial),
            ("empty", &frames.empty),
            ("discarded", &frames.discarded),
            ("early", &frames.early),
        ];
        let outcomes = outcomes.map(|(name, count)| ([("outcome", name.into())], count.get()));
        page.counter(
            "image_frames",
            "Frames of the detector, by each thing that became of them",
            outcomes,
        )?;
        let packets = self.packets();
        let fates = [
            ("placed", packets.placed),
            ("missing", packets.missing),
            ("duplicate", packets.duplicate),
            ("out-of-range", packets.out_of_range),
        ];
        let fates = fates.map(|(name, count)| ([("outcome", name.into())], count));
        page.counter(
            "image_packets",
            "Packets of the detector, by outcome",
            fates,
        )?;
        let images = &self.images;
        let outcomes = [
            ("built", images.built.get()),
            ("dark", images.dark.get()),
            ("kept", images.kept.get()),
            ("vetoed", images.vetoed.get()),
            ("overrun", self.overrun()),
            ("written", self.written()),
            ("lost", self.lost()),
        ];
        let outcomes = outcomes.map(|(name, count)| ([("outcome", name.into())], count));
        page.counter(
            "images",
            "Images, by each thing that became of them",
            outcomes,
        )?;
        let pixels = images.dark_pixels.outcomes();
        let pixels = pixels.map(|(name, count)| ([("outcome", name.into())], count));
        page.counter(
            "image_dark_pixels",
            "Pixels of dark frames, by what the pedestals made of them",
            pixels,
        )?;
        page.counter(
            "image_peaks",
            "Bragg peaks in images that were kept",
            [([], images.peaks.get())],
        )?;
        let rates = [
            ("run", images.hit_rate()),
            ("last-1000", images.recent_hit_rate()),
        ];
        let rates = rates.into_iter().filter_map(|(window, rate)| {
            rate.map(|rate| ([("images", String::from(window))], rate))
        });
        page.gauge(
            "image_hit_rate",
            "Share of the images that were kept: of the run, and of the last 1000",
            rates,
        )?;
        let receivers = self.receivers.iter().map(TransferView::counts);
        let receivers = receivers.flat_map(|counts| {
            let outcomes = [("transferred", counts.images), ("overrun", counts.overrun)];
            outcomes.map(|(outcome, count)| {
                let labels = [
                    ("receiver", counts.name.clone()),
                    ("outcome", outcome.into()),
                ];
                (labels, count)
            })
        });
        let help = "Images of each receiver of regions, by what became of them";
        page.counter("image_receiver_images", help, receivers)?;
        if let Some(rdma) = &self.rdma {
            rdma.measure(page)?;
        }
        let help = "Time of each stage, and from the first packet of an image to its end (total)";
        let times = self.latency.iter();
        let times = times.map(|(name, view)| ([("stage", name.clone())], view.clone()));
        page.latency("image_stage_seconds", help, times)
    }
}
