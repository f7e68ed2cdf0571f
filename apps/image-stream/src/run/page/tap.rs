//! Tap in the image loop: fills what the page asks for.
//!
//! An image costs the loop a look at an empty ring, and the sum of its radial curve. Only when the page
//! asks, an image is copied, at most once in [`FRESH`](super::display::FRESH) for each view, or
//! some rows of a projection are computed with each image until it is complete.

use pollux_images::receive::Stored;
use pollux_images::stages::Work;
use pollux_images::statistics::Snapshot;
use pollux_mempool::{BoxConsumer, BoxProducer};
use pollux_pmd::{Clock as _, TscClock};

use super::exposure::{Content, Curves, Exposure, ImageCopy, View};
use crate::run::project::Project;

/// Pixels of a projection that are computed with each image.
const STEP: usize = 1 << 15;

/// The side of the loop.
pub struct Tap<P: Stored> {
    asked: BoxConsumer<Exposure<P>>,
    filled: BoxProducer<Exposure<P>>,
    /// By view: what has been asked for and is not filled yet.
    pending: [Option<Box<Exposure<P>>>; View::ALL.len()],
    /// Sum of the radial curves, and their number.
    sums: Vec<f64>,
    curves: u64,
    images: u64,
    clock: TscClock,
}

impl<P: Stored> Tap<P> {
    /// A tap between two rings, for curves of so many bins.
    pub fn new(
        asked: BoxConsumer<Exposure<P>>,
        filled: BoxProducer<Exposure<P>>,
        bins: usize,
        clock: TscClock,
    ) -> Self {
        Self {
            asked,
            filled,
            pending: Default::default(),
            sums: vec![0.0; bins],
            curves: 0,
            images: 0,
            clock,
        }
    }

    /// Sees an image at the end of the chain; `statistics` include it.
    #[inline]
    pub fn see(&mut self, work: &Work<P>, statistics: &impl Project) {
        self.images += 1;
        let curve = &work.findings.curve;
        let has_curve = !curve.is_empty() && curve.len() == self.sums.len();
        if has_curve {
            self.curves += 1;
            for (sum, &mean) in self.sums.iter_mut().zip(curve) {
                *sum += f64::from(mean);
            }
        }
        while let Some(exposure) = self.asked.pop() {
            let place = exposure.view as usize;
            self.pending[place] = Some(exposure);
        }
        for place in 0..self.pending.len() {
            if let Some(exposure) = self.pending[place].take() {
                self.expose(exposure, place, work, statistics, has_curve);
            }
        }
    }

    /// Fills an exposure, and hands it over if it is complete.
    #[cold]
    fn expose(
        &mut self,
        mut exposure: Box<Exposure<P>>,
        place: usize,
        work: &Work<P>,
        statistics: &impl Project,
        has_curve: bool,
    ) {
        let done = match &mut exposure.content {
            Content::Image(copy) => {
                let wanted = exposure.view == View::Latest || !work.findings.vetoed;
                if wanted {
                    take(copy, work);
                }
                wanted
            }
            Content::Projection(snapshot) => step(snapshot, statistics),
            Content::Curves(curves) => {
                if has_curve {
                    self.add_up(curves, &work.findings.curve);
                }
                has_curve
            }
        };
        if !done {
            self.pending[place] = Some(exposure);
            return;
        }
        exposure.taken = self.clock.now();
        exposure.frame = work.image.number();
        exposure.images = self.images;
        // There is a place for each view.
        drop(self.filled.push(exposure));
    }

    fn add_up(&self, curves: &mut Curves, last: &[f32]) {
        curves.images = self.curves;
        curves.last.clear();
        curves.last.extend_from_slice(last);
        curves.sums.clear();
        curves.sums.extend_from_slice(&self.sums);
    }
}

/// Copies an image.
fn take<P: Stored>(copy: &mut ImageCopy<P>, work: &Work<P>) {
    let (image, findings) = (&work.image, &work.findings);
    // It was made for the shape of these images.
    for (to, from) in copy.pixels.iter_mut().zip(image.pixels()) {
        *to = *from;
    }
    copy.vetoed = findings.vetoed;
    copy.missing_packets = image.missing_packets();
    copy.losses.clear();
    let most = copy.losses.capacity();
    copy.losses.extend(image.losses().take(most));
    copy.peaks.clear();
    let shown = findings.peaks.len().min(copy.peaks.capacity());
    copy.peaks.extend_from_slice(&findings.peaks[..shown]);
    copy.all_peaks = findings.peaks.len() + findings.more_peaks as usize;
}

/// Computes further rows; whether all are computed.
fn step(snapshot: &mut Snapshot, statistics: &impl Project) -> bool {
    let rows = STEP.div_ceil(snapshot.shape().columns.max(1));
    statistics.project(snapshot, rows)
}
