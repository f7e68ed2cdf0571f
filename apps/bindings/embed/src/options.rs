//! Options of an embedded port.

use pollux_mempool::PoolConfig;
use pollux_pmd::stream::{Demux, DemuxBuilder, DemuxError, StreamId};

/// Options of an [`EmbeddedPort`](crate::EmbeddedPort).
#[derive(Clone, Debug)]
pub struct Options {
    /// UDP destination ports that are received; datagrams to others are dropped as `demux-miss`.
    /// `None`: all datagrams are received.
    pub streams: Option<Vec<u16>>,
    /// Bytes of data in a buffer, 64 to about 1 MiB. A longer frame or datagram is dropped as
    /// `oversize`. `None`: the longest frame of the link, 2048 to 65 600 (a datagram of IP, with its
    /// headers).
    pub data_room: Option<usize>,
    /// Buffers of the pool: those of the rings, of frames that the program holds, and of datagrams
    /// under reassembly. `None`: 64 MiB of them, 1024 to 8192.
    pub buffers: Option<usize>,
    /// Whether IPv4 fragments are joined to datagrams, as a kernel's socket does; without it they are
    /// dropped as `ip-fragment`.
    pub reassemble: bool,
}

/// The longest frame with an IP datagram: 65 535 B, behind an Ethernet header with two VLAN tags, in
/// whole cache lines.
const LONGEST: usize = 65_600;

/// Memory of a pool whose size the caller leaves open.
const MEMORY: usize = 64 << 20;

impl Default for Options {
    fn default() -> Self {
        Self {
            streams: None,
            data_room: None,
            buffers: None,
            reassemble: true,
        }
    }
}

impl Options {
    /// The pool for a link with frames of up to `max_frame` bytes.
    pub(crate) fn pool(&self, max_frame: usize) -> PoolConfig {
        let config = PoolConfig::default();
        let linked = max_frame.clamp(config.data_room, LONGEST);
        let data_room = self.data_room.unwrap_or(linked);
        let fit = MEMORY / data_room.max(1);
        PoolConfig {
            buffers: self.buffers.unwrap_or(fit.clamp(1024, config.buffers)),
            data_room,
            ..config
        }
    }

    /// One stream for each UDP port, in their order, or one for all datagrams.
    pub(crate) fn demux(&self) -> Result<Demux, DemuxError> {
        let builder = DemuxBuilder::new();
        match &self.streams {
            None => builder.catch_all(StreamId(0)),
            Some(ports) => (0..).zip(ports).fold(builder, |builder, (stream, &port)| {
                builder.port(port, StreamId(stream))
            }),
        }
        .build()
    }
}
