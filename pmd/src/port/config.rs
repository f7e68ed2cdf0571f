//! What a port is to be set up with.

use pollux_mempool::Mempool;

/// What a port is to be set up with.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Receive queues; 0 for a port that only sends.
    pub rx_queues: u16,
    /// Transmit queues; 0 for a port that only receives.
    pub tx_queues: u16,
    /// Descriptors or frames in each queue's ring.
    pub ring: usize,
    /// Pool that received frames are put in.
    pub pool: Mempool,
    /// Frames may leave a checksum to the device
    /// ([`Capabilities::checksum_offload`](crate::Capabilities::checksum_offload)). Where nobody asks for it nobody pays for it.
    pub checksum_offload: bool,
}

impl PortConfig {
    /// One queue each way, 1024 deep.
    #[must_use]
    pub fn new(pool: Mempool) -> Self {
        Self {
            rx_queues: 1,
            tx_queues: 1,
            ring: 1024,
            pool,
            checksum_offload: false,
        }
    }
}
