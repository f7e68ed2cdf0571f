//! Configuration of a card with streams, and the buffers that it announces.

use crate::drivers::card::events::Wake;
use crate::drivers::card::send::SendConfig;
use crate::drivers::card::timing::TimingConfig;
use crate::event::{ClopBuffer, ClopConfig};

/// Configuration of a card with streams.
#[derive(Clone, Debug, Default)]
pub struct StreamsConfig {
    /// Receive streams.
    pub streams: Vec<StreamConfig>,
    /// Ports that send payloads.
    pub send: Option<SendConfig>,
    /// Time source. Without it the card counts its own time, which is not set, and payloads have no
    /// time stamps.
    pub timing: TimingConfig,
    /// Interrupt moderation for loops that sleep until a buffer is announced
    /// ([`Streams::arm`](super::Streams::arm)).
    pub wake: Wake,
}

/// Part of a datagram that is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Its payload.
    Payload,
    /// The whole frame.
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
    /// Part that is passed on.
    pub form: Form,
    /// Its buffers, together up to 1 GiB. The stream number in it is ignored.
    pub clop: ClopConfig,
}

/// A buffer of a stream; the caller owns it until it is dropped.
#[derive(Debug)]
pub struct Announced {
    /// Index of the stream in the configuration.
    pub stream: usize,
    /// The buffer. All readable payloads in it count as from the wire.
    pub buffer: ClopBuffer,
}
