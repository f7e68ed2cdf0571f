//! The metrics of a run: its ledgers, and its senders as streams.

use std::fmt;

use pollux_app::metrics::{self, Ledgers, Page};

use super::senders::{Counts, Reader};

/// Senders that have a line of their own, the first that were heard: strangers choose how many
/// there are, and must not choose how long the page is.
const LINES: usize = 1000;

/// What the page is made from.
pub(super) struct Source {
    pub(super) ledgers: Ledgers,
    pub(super) senders: Reader,
}

impl Source {
    /// The senders by name. All others are summed up; like each of the lines, the sum only grows.
    fn streams(&self) -> Vec<(String, Counts)> {
        let mut senders = self.senders.senders();
        let named = senders.by_ref().take(LINES).map(|sender| {
            let name = format!("{} to {}", sender.src_ip, sender.dst_port);
            (name, sender.counts)
        });
        let mut streams: Vec<_> = named.collect();
        let other = senders.fold(self.senders.other(), |sum, sender| Counts {
            packets: sum.packets + sender.counts.packets,
            bytes: sum.bytes + sender.counts.bytes,
        });
        streams.push(("other".into(), other));
        streams
    }
}

impl metrics::Source for Source {
    fn measure(&self, page: &mut Page<'_>) -> fmt::Result {
        self.ledgers.measure(page)?;
        let streams = self.streams();
        let label = |name: &String| [("stream", name.clone())];
        let frames = streams.iter().map(|(name, n)| (label(name), n.packets));
        page.counter("stream_frames", "Datagrams of each stream", frames)?;
        let bytes = streams.iter().map(|(name, n)| (label(name), n.bytes));
        page.counter("stream_bytes", "Their payloads", bytes)
    }
}
