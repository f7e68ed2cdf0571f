//! `EmbedError`: why a port cannot be opened, used or closed.

use pollux_mempool::PoolError;
use pollux_pmd::PortError;
use pollux_pmd::net::ReassemblyError;
use pollux_pmd::stream::DemuxError;

/// Why a port cannot be opened, used or closed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The spec is wrong, or the port cannot be opened, started or stopped.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The pool has a size out of its limits, or there is no memory for it.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// A UDP port is given twice among the streams.
    #[error("streams: {0}")]
    Streams(#[from] DemuxError),
    /// A program that keeps one batch while it receives the next could keep all buffers.
    #[error(
        "burst = {burst} with {buffers} buffers: a batch is kept while the next is received, and both \
         need buffers: give buffers = {} or more, or a smaller burst", .burst.saturating_mul(2)
    )]
    Burst {
        /// Most datagrams of a batch.
        burst: usize,
        /// Buffers asked for.
        buffers: usize,
    },
    /// The bounds of reassembly do not fit the pool.
    #[error(transparent)]
    Reassembly(#[from] ReassemblyError),
    /// The port is closed.
    #[error("port {port} is closed: open it again to use it")]
    Closed {
        /// Spec of the port.
        port: String,
    },
    /// Another thread than the owner uses the port.
    #[error(
        "port {port} is in use by another thread: the thread that polls first owns the port, and \
         others may stop it and read its ledger only"
    )]
    OtherThread {
        /// Spec of the port.
        port: String,
    },
    /// A child process uses a port that its parent has opened.
    #[error(
        "port {port} was opened before this process was forked, and stays with the parent: open \
         it in the child, or start processes by exec (in Python: the start method `spawn`)"
    )]
    Forked {
        /// Spec of the port.
        port: String,
    },
    /// A frame that no link carries.
    #[error(
        "frame {index} has {len} B: a frame has 14 B (an Ethernet header) to {most} B, the lesser of \
         the link's limit and one buffer (data_room)"
    )]
    FrameLength {
        /// Position of the frame among those given.
        index: usize,
        /// Its bytes.
        len: usize,
        /// Most bytes that can be sent.
        most: usize,
    },
}

impl EmbedError {
    /// Whether the request is wrong in itself, and nothing was opened. All other errors are failures
    /// of an attempt.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Port(error) => error.is_usage(),
            Self::Pool(error) => error.is_usage(),
            Self::Streams(_)
            | Self::Burst { .. }
            | Self::Reassembly(_)
            | Self::FrameLength { .. } => true,
            Self::Closed { .. } | Self::OtherThread { .. } | Self::Forked { .. } => false,
        }
    }
}
