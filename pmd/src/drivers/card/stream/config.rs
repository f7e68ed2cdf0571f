//! What a card with streams is to do, and what comes of it.

use crate::drivers::card::events::Wake;
use crate::drivers::card::send::SendConfig;
use crate::drivers::card::timing::TimingConfig;
use crate::event::{ClopBuffer, ClopConfig};

/// What a card is to do.
#[derive(Clone, Debug, Default)]
pub struct StreamsConfig {
    /// What it receives.
    pub streams: Vec<StreamConfig>,
    /// Where it sends payloads.
    pub send: Option<SendConfig>,
    /// How it tells the time. Without this it counts its own, which nobody has set, and payloads
    /// have no time stamps.
    pub timing: TimingConfig,
    /// When it wakes who sleeps until a buffer is announced ([`Streams::arm`](super::Streams::arm)).
    pub wake: Wake,
}

/// What of a datagram is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Its payload.
    Payload,
    /// All of its frame.
    Frame,
    /// Its payload, a container of compressed hits, in the expanded form
    /// (`docs/formats/rich-hits.md`).
    Hits,
}

/// A stream.
#[derive(Clone, Debug)]
pub struct StreamConfig {
    /// Port of the card.
    pub port: usize,
    /// UDP destination port.
    pub udp: u16,
    /// What is passed on.
    pub form: Form,
    /// Its buffers, together up to 1 GiB. The number of the stream there is not looked at.
    pub clop: ClopConfig,
}

/// A buffer of a stream, which is the caller's until it is dropped.
#[derive(Debug)]
pub struct Announced {
    /// Which of the streams, in the order in which they were configured.
    pub stream: usize,
    /// The buffer. All of the payloads in it that can be read count as from the wire.
    pub buffer: ClopBuffer,
}
