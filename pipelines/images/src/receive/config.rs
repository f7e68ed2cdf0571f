//! What a receiver of images is made of, and why it cannot.

use pollux_mempool::time::Ns;
use pollux_pipelines::assemble::{AssembleConfig, AssembleError};
use pollux_pmd::CauseError;
use pollux_pmd::event::RegionOptions;
use pollux_pmd::stream::StreamId;
use serde::{Deserialize, Serialize};

use crate::convert::NoteConfig;
use crate::formats::Layout;

/// How the sender of a packet is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// By the stream, that is by UDP port: one for each sender, in the order of [`Layout::senders`].
    /// slsReceiver does so: the first interface of a JUNGFRAU module (`udp_dstport`, the outer one)
    /// carries the first half of its rows, the second one (`udp_dstport2`, the inner one) the other.
    Streams(Vec<StreamId>),
    /// By the identifier of the module in the header: one for each module. Any stream may carry any
    /// module. Of two interfaces, the first has even rows of the header, the second odd ones, as the
    /// detector's software sets them.
    Modules(Vec<u16>),
}

/// Which images are not delivered. All are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiscardPolicy {
    /// All images are delivered, empty ones too.
    #[default]
    Nothing,
    /// Empty images are discarded: those of which no packet came.
    Empty,
    /// Partial images are discarded too: those of which packets are missing.
    Partial,
}

/// Why a receiver of images could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The route has another number of entries.
    #[error("{found} {what} for a detector of {need}: name one for each")]
    Route {
        /// What the route lists.
        what: &'static str,
        /// Entries of the route.
        found: usize,
        /// Entries that the layout needs.
        need: usize,
    },
    /// An entry of the route is there twice.
    #[error("{what} {entry} is named twice: name one for each")]
    Twice {
        /// What the route lists.
        what: &'static str,
        /// The entry.
        entry: u16,
    },
    /// The type of raw pixels has another number of bits than the detector sends.
    #[error(
        "images of {stored} bits a raw pixel from a detector that sends {sent}: choose the type of that many bits"
    )]
    Bits {
        /// Bits of the type.
        stored: usize,
        /// Bits that the detector sends.
        sent: usize,
    },
    /// The assembler could not be made.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    /// The drop causes could not be declared.
    #[error(transparent)]
    Cause(#[from] CauseError),
}

/// What a receiver of images is made of.
#[derive(Clone, Debug)]
pub struct ReceiveConfig {
    /// Geometry of the detector.
    pub layout: Layout,
    /// How the sender of a packet is found.
    pub route: Route,
    /// Which images are not delivered.
    pub policy: DiscardPolicy,
    /// Images that may be under way or with their consumers: a power of two. Half of them are for those
    /// under way, however long the consumers keep theirs.
    pub buffers: usize,
    /// How long an image waits for its packets, from the first one on.
    pub timeout: Ns,
    /// How far from the newest a frame number may be on the word of one packet, which costs as many
    /// images if it is wrong ([`AssembleConfig::jump`]).
    pub jump: u64,
    /// How far ahead a frame number of which many packets say the same may be for the images between to
    /// be empty ones ([`AssembleConfig::horizon`]).
    pub horizon: u64,
    /// Memory of the images.
    pub memory: RegionOptions,
    /// What the conversion notes of the pixels; nothing of raw ones.
    pub notes: NoteConfig,
}

impl ReceiveConfig {
    /// All images are delivered; buffers, timeout, jump, horizon and memory are those of
    /// [`AssembleConfig::default`].
    #[must_use]
    pub fn new(layout: Layout, route: Route) -> Self {
        let AssembleConfig {
            buffers,
            spares,
            timeout,
            jump,
            horizon,
            memory,
            ..
        } = AssembleConfig::default();
        Self {
            layout,
            route,
            policy: DiscardPolicy::default(),
            buffers: buffers + spares,
            timeout,
            jump,
            horizon,
            memory,
            notes: NoteConfig::default(),
        }
    }
}
