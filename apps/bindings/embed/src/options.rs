//! Options of an embedded port.

use pollux_mempool::PoolConfig;
use pollux_pmd::stream::{Demux, DemuxBuilder, DemuxError, StreamId};

use crate::error::EmbedError;

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
    /// under reassembly. `None`: 64 MiB of them, 1024 to 8192, or the two batches and the receive rings
    /// if they are more.
    pub buffers: Option<usize>,
    /// Datagrams of a batch, of which the program keeps one while it receives the next, as the variable
    /// of a loop does: the pool must have buffers for two, or a recording would wait for the first for
    /// ever. 0: the program frees datagrams first.
    pub burst: usize,
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
            burst: 0,
            reassemble: true,
        }
    }
}

impl Options {
    /// Checks that the buffers of the caller are those of two batches.
    pub(crate) fn check(&self) -> Result<(), EmbedError> {
        match self.buffers {
            // A pool of 0 buffers is refused for that.
            Some(buffers) if buffers != 0 && buffers / 2 < self.burst => Err(EmbedError::Burst {
                burst: self.burst,
                buffers,
            }),
            _ => Ok(()),
        }
    }

    /// The pool for a link with frames of up to `max_frame` bytes and `rings` buffers in receive rings.
    pub(crate) fn pool(&self, max_frame: usize, rings: usize) -> PoolConfig {
        let config = PoolConfig::default();
        let linked = max_frame.clamp(config.data_room, LONGEST);
        let data_room = self.data_room.unwrap_or(linked);
        let fit = MEMORY / data_room.max(1);
        let fit = fit.clamp(1024, config.buffers);
        let least = match self.burst {
            0 => 0,
            burst => burst.saturating_mul(2).saturating_add(rings),
        };
        PoolConfig {
            buffers: self.buffers.unwrap_or(fit.max(least)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_has_two_batches_and_the_rings() {
        let buffers = |burst, max_frame, rings| {
            let options = Options {
                burst,
                ..Options::default()
            };
            options.pool(max_frame, rings).buffers
        };
        // Recordings, whose rings hold no buffers.
        assert_eq!(buffers(0, LONGEST, 0), 1024);
        assert_eq!(buffers(256, LONGEST, 0), 1024);
        assert_eq!(buffers(4096, LONGEST, 0), 8192);
        // Links.
        assert_eq!(buffers(256, 1514, 1024), 8192);
        assert_eq!(buffers(4096, 1514, 3 * 1024), 8192 + 3 * 1024);
        assert_eq!(buffers(0, 1514, 9 * 1024), 8192);
    }
}
