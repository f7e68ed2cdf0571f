//! Images that wait for their packets for less than the configured time.

use pollux_images::receive::FrameCounts;

use crate::config::ImageConfig;

/// Warns, once, of image buffers that last for less than `timeout_us`: a packet that is late has less time
/// than that.
#[derive(Default)]
pub struct EarlyWatch {
    has_warned: bool,
}

impl EarlyWatch {
    /// For the thread that attends to the run.
    pub fn look(&mut self, counts: &FrameCounts, config: &ImageConfig) {
        let early = counts.early.get();
        if self.has_warned || early == 0 {
            return;
        }
        self.has_warned = true;
        let (timeout_us, images) = (config.detector.timeout_us, config.memory.images);
        tracing::warn!(
            "{early} images with missing packets were closed before [detector] timeout_us = {timeout_us}, since newer \
             ones needed their buffers: for this rate lower it, or raise [memory] images = {images}"
        );
    }
}
