//! What a transfer did, readable from any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pollux_pmd::Count;
use serde::{Deserialize, Serialize};

use super::config::TransferConfig;
use super::region::Region;

/// What a transfer did: an entry of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferCounts {
    /// Name of the receiver.
    pub name: String,
    /// The regions.
    pub region: Vec<Region>,
    /// Sub-images that were transferred.
    pub images: u64,
    /// Bytes of their pixels.
    pub bytes: u64,
    /// Sub-images that were lost: all buffers were with the receiver, or it could not keep them.
    pub overrun: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) images: Count,
    pub(super) bytes: Count,
    pub(super) overrun: Count,
    returned: AtomicU64,
    /// Sub-images that the receiver could not keep, and their bytes.
    given_up: AtomicU64,
    given_up_bytes: AtomicU64,
}

impl Counts {
    /// The receiver gave a buffer back.
    #[inline]
    pub(super) fn give_back(&self) {
        // Release: who sees the count finds the buffer in the ring.
        self.returned.fetch_add(1, Ordering::Release);
    }

    /// The receiver could not keep a sub-image of so many bytes.
    #[cold]
    pub(super) fn give_up(&self, bytes: usize) {
        // Relaxed: the counts publish no other data.
        self.given_up_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }
}

/// Shared by the transfer, its ring and its views.
#[derive(Debug)]
pub(super) struct ViewState {
    pub(super) name: String,
    pub(super) regions: Box<[Region]>,
    pub(super) buffers: usize,
    pub(super) counts: Counts,
    closed: AtomicBool,
}

impl ViewState {
    pub(super) fn new(config: &TransferConfig, regions: &[Region]) -> Self {
        Self {
            name: config.name.clone(),
            regions: regions.into(),
            buffers: config.buffers,
            counts: Counts::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// The receiver has ended.
    #[cold]
    pub(super) fn close(&self) {
        // Relaxed: the flag publishes no other data.
        self.closed.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}

/// Counts of a transfer, readable from any thread.
#[derive(Clone, Debug)]
pub struct TransferView(Arc<ViewState>);

impl TransferView {
    pub(super) fn new(state: &Arc<ViewState>) -> Self {
        Self(Arc::clone(state))
    }

    /// Name of the receiver.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Sub-images that were lost: all buffers were with the receiver, or it could not keep them.
    #[must_use]
    pub fn overrun(&self) -> u64 {
        let counts = &self.0.counts;
        counts.overrun.get() + counts.given_up.load(Ordering::Relaxed)
    }

    /// Buffers of the ring.
    #[must_use]
    pub fn buffers(&self) -> usize {
        self.0.buffers
    }

    /// Buffers that are neither in the queue nor with the receiver.
    #[must_use]
    pub fn free(&self) -> usize {
        let counts = &self.0.counts;
        let returned = counts.returned.load(Ordering::Acquire);
        let used = counts.images.get().saturating_sub(returned);
        self.0.buffers.saturating_sub(used as usize)
    }

    /// Whether the receiver has dropped its end: nothing is transferred to it any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// All counts.
    #[must_use]
    pub fn counts(&self) -> TransferCounts {
        let ViewState {
            name,
            regions,
            counts,
            ..
        } = &*self.0;
        let given_up = counts.given_up.load(Ordering::Relaxed);
        let given_up_bytes = counts.given_up_bytes.load(Ordering::Relaxed);
        TransferCounts {
            name: name.clone(),
            region: regions.to_vec(),
            images: counts.images.get().saturating_sub(given_up),
            bytes: counts.bytes.get().saturating_sub(given_up_bytes),
            overrun: counts.overrun.get() + given_up,
        }
    }
}
