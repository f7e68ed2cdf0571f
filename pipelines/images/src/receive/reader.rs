//! The side that gets the images.

use std::ops::Range;
use std::sync::Arc;

use pollux_pipelines::Moment;
use pollux_pipelines::assemble::{Frame, FrameReader};
use pollux_pmd::Count;

use super::config::{DiscardPolicy, ReceiveConfig};
use super::image::{Common, Image};
use super::senders::{SenderView, Senders};
use super::stored::Stored;

/// What became of the frames. Written by the reader alone.
#[derive(Debug, Default)]
pub struct FrameCounts {
    /// Frames of which packets were placed: complete and partial ones.
    pub received: Count,
    /// Frames without a missing packet.
    pub complete: Count,
    /// Frames of which packets are missing.
    pub partial: Count,
    /// Frame numbers that were skipped: no packet was placed.
    pub empty: Count,
    /// Frames that were not delivered: by the policy, or because their number had been counted as empty.
    pub discarded: Count,
    /// Packets that are missing in partial and in empty frames.
    pub missing: Count,
    /// Frames that were closed before their timeout, since a newer frame was about to need their buffer:
    /// the buffers last for less than the timeout.
    pub early: Count,
}

/// Gets the images, in one loop, in the order of their numbers.
pub struct ImageReader<P> {
    reader: FrameReader,
    common: Arc<Common<P>>,
    senders: Arc<Senders>,
    counts: Arc<FrameCounts>,
    policy: DiscardPolicy,
    /// Restarts of the sender, and the next frame number.
    expected: Option<(u8, u64)>,
    /// Empty images to deliver, and then the frame that follows them.
    skipped: Range<u64>,
    held: Option<Frame>,
}

impl<P: Stored> ImageReader<P> {
    pub(super) fn new(
        reader: FrameReader,
        senders: Arc<Senders>,
        common: Arc<Common<P>>,
        config: &ReceiveConfig,
    ) -> Self {
        Self {
            reader,
            common,
            senders,
            counts: Arc::default(),
            policy: config.policy,
            expected: None,
            skipped: 0..0,
            held: None,
        }
    }

    /// Who sends.
    #[must_use]
    pub fn senders(&self) -> SenderView {
        SenderView(Arc::clone(&self.senders))
    }

    /// What became of the frames.
    #[must_use]
    pub fn counts(&self) -> Arc<FrameCounts> {
        Arc::clone(&self.counts)
    }

    /// The next image that is complete, or whose time is over at `now`.
    #[inline]
    pub fn poll(&mut self, now: Moment) -> Option<Image<P>> {
        loop {
            if let Some(number) = self.skipped.next() {
                return Some(Image::new(&self.common, number, None));
            }
            if let Some(frame) = self.held.take() {
                return Some(Image::new(&self.common, frame.key(), Some(frame)));
            }
            let frame = self.reader.poll(now)?;
            self.held = self.accept(frame);
        }
    }

    /// Counts a frame, and those that were skipped before it; the frame if it is to be delivered.
    fn accept(&mut self, frame: Frame) -> Option<Frame> {
        let (counts, key, restarts) = (&self.counts, frame.key(), frame.restarts());
        counts.received.add(1);
        if frame.is_complete() {
            counts.complete.add(1);
        } else {
            counts.partial.add(1);
            counts.missing.add(frame.missing().count() as u64);
            counts.early.set(self.reader.counts().early.get());
        }
        if let Some((_, next)) = self.expected.filter(|&(before, _)| before == restarts) {
            if key < next {
                // Its number was skipped: its first packet came after a younger frame had ended.
                counts.discarded.add(1);
                return None;
            }
            let layout = &self.common.layout;
            let packets = (layout.senders() * layout.packets()) as u64;
            counts.empty.add(key - next);
            counts.missing.add((key - next).saturating_mul(packets));
            if self.policy == DiscardPolicy::Nothing {
                self.skipped = next..key;
            } else {
                counts.discarded.add(key - next);
            }
        }
        self.expected = Some((restarts, key.saturating_add(1)));
        if self.policy == DiscardPolicy::Partial && !frame.is_complete() {
            counts.discarded.add(1);
            return None;
        }
        Some(frame)
    }

    /// Closes all images that are under way, for the end of the input: [`poll`](Self::poll) has them
    /// then.
    pub fn close_all(&mut self) {
        self.reader.close_all();
    }

    /// Has the next packet begin the frame numbers anew, whatever its number, and every sender be
    /// learned anew: for a new run, when all senders have stopped and all images have been taken.
    /// Without this, the numbers of a sender that restarts within the horizon are late.
    pub fn begin_anew(&mut self) {
        self.reader.begin_anew();
        self.senders.forget();
        self.expected = None;
    }
}
