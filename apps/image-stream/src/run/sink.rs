//! The end of the chain: counts what became of an image, and hands it to the outputs.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};

use pollux_images::receive::Stored;
use pollux_images::stages::Work;
use pollux_images::statistics::HitRate;
use pollux_mempool::time::Tsc;
use pollux_pipelines::Sink;
use pollux_pmd::{Clock, LatencyHistogram, LatencyView, TscClock};

use super::counters::{ImageCounts, WINDOW};
use super::observe::Observe;
use super::regions::Regions;

/// Where images leave the loop.
pub struct ImageSink<P, O> {
    outputs: Option<SyncSender<Work<P>>>,
    /// An image that the outputs had no room for: recordings wait for them.
    pending: Option<Work<P>>,
    patient: bool,
    /// Vetoed images are for the outputs too.
    vetoed: bool,
    /// Receivers of regions, which get vetoed images too.
    regions: Option<Regions<P>>,
    observer: O,
    hits: HitRate,
    counts: Arc<ImageCounts>,
    clock: TscClock,
    start: Tsc,
    /// From the first packet of an image to here.
    total: LatencyHistogram,
}

impl<P: Stored, O: Observe<P>> ImageSink<P, O> {
    /// With `patient`, images wait for the outputs; else they are dropped where those are full. With
    /// `vetoed`, the outputs get vetoed images too.
    pub fn new(
        outputs: Option<SyncSender<Work<P>>>,
        patient: bool,
        vetoed: bool,
        regions: Option<Regions<P>>,
        observer: O,
        counts: Arc<ImageCounts>,
        clock: TscClock,
    ) -> Self {
        Self {
            outputs,
            pending: None,
            patient,
            vetoed,
            regions,
            observer,
            hits: HitRate::new(WINDOW),
            counts,
            clock,
            start: clock.now(),
            total: LatencyHistogram::new(),
        }
    }

    /// Time is counted from here.
    pub fn begin(&mut self, start: Tsc) {
        self.start = start;
    }

    /// Times from the first packet of each image to the end of its processing.
    pub fn total(&self) -> LatencyView {
        self.total.view()
    }

    /// Hands over an image that waits for the outputs; whether none waits any more.
    pub fn flush(&mut self) -> bool {
        if let Some(pending) = self.pending.take() {
            self.send(pending);
        }
        self.pending.is_none()
    }

    /// Counts so many images, and the one that waits, as lost: the outputs took too long at the end of
    /// the run.
    pub fn give_up(&mut self, images: usize) {
        let pending = self.pending.take().into_iter().count();
        self.counts.overrun.add((images + pending) as u64);
    }

    fn send(&mut self, work: Work<P>) {
        let Some(outputs) = &self.outputs else { return };
        let kept = u64::from(!work.findings.vetoed);
        match outputs.try_send(work) {
            Ok(()) => {
                self.counts.handed.add(1);
                self.counts.handed_kept.add(kept);
            }
            Err(TrySendError::Full(work)) if self.patient => self.pending = Some(work),
            Err(_) => self.counts.overrun.add(1),
        }
    }
}

impl<P: Stored, O: Observe<P>> Sink<Work<P>> for ImageSink<P, O> {
    fn try_push(&mut self, work: Work<P>) -> Result<(), Work<P>> {
        let has_room = self.regions.as_ref().is_none_or(Regions::has_room);
        if !has_room || !self.flush() {
            return Err(work);
        }
        if let Some(regions) = &mut self.regions {
            regions.push(&work.image);
        }
        if let Some(opened) = work.image.opened()
            && !self.patient
        {
            let now = self.clock.to_ns(self.clock.now().since(self.start)).0;
            self.total.record(now.saturating_sub(opened.0));
        }
        self.observer.observe(&work);
        self.hits.record(!work.findings.vetoed);
        let recent = self.hits.recent_rate().unwrap_or_default();
        self.counts.set_recent_hit_rate(recent);
        if work.findings.vetoed {
            self.counts.vetoed.add(1);
        } else {
            self.counts.kept.add(1);
            self.counts.peaks.add(work.findings.peaks.len() as u64);
        }
        if self.vetoed || !work.findings.vetoed {
            self.send(work);
        }
        Ok(())
    }
}
