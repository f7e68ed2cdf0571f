//! Port configuration: settings for all queues, and settings of single queues.

use pollux_mempool::Mempool;

use super::queue_config::{QueueConfig, QueueSettings};
use crate::driver::flow::FlowRule;
use crate::driver::rss::Rss;

/// Configuration of a port.
///
/// Fields may be added: complete a literal with `..PortConfig::new(pool)`, or use the methods.
///
/// ```
/// use pollux_mempool::{Mempool, PoolConfig};
/// use pollux_pmd::{PortConfig, QueueConfig};
///
/// let pool = Mempool::new(PoolConfig::default())?;
/// let config = PortConfig::new(pool)
///     .rx_queues(2)
///     .tx_queues(2)
///     .ring(512)
///     .rx_queue(1, QueueConfig::new().ring(64).core(3));
/// assert_eq!((config.rx_ring(0), config.rx_ring(1)), (512, 64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Receive queues; 0 for a port that only sends.
    pub rx_queues: u16,
    /// Transmit queues; 0 for a port that only receives.
    pub tx_queues: u16,
    /// Descriptors or frames in each queue's ring.
    pub ring: usize,
    /// Pool for received frames.
    pub pool: Mempool,
    /// Frames may leave a checksum to the device
    /// ([`Capabilities::checksum_offload`](crate::Capabilities::checksum_offload)). Without it no
    /// driver pays for the check.
    pub checksum_offload: bool,
    /// Settings of single queues.
    pub queues: QueueSettings,
    /// How flows are distributed over the receive queues; overrides the spec.
    pub rss: Rss,
    /// Flows that are steered to certain receive queues, in addition to those of the spec.
    pub flow_rules: Vec<FlowRule>,
}

impl PortConfig {
    /// One queue in each direction, with a ring of 1024.
    #[must_use]
    pub fn new(pool: Mempool) -> Self {
        Self {
            rx_queues: 1,
            tx_queues: 1,
            ring: 1024,
            pool,
            checksum_offload: false,
            queues: QueueSettings::default(),
            rss: Rss::new(),
            flow_rules: Vec::new(),
        }
    }

    /// Sets the number of receive queues.
    #[must_use]
    pub fn rx_queues(mut self, queues: u16) -> Self {
        self.rx_queues = queues;
        self
    }

    /// Sets the number of transmit queues.
    #[must_use]
    pub fn tx_queues(mut self, queues: u16) -> Self {
        self.tx_queues = queues;
        self
    }

    /// Sets the descriptors or frames in each queue's ring.
    #[must_use]
    pub fn ring(mut self, ring: usize) -> Self {
        self.ring = ring;
        self
    }

    /// Allows frames to leave a checksum to the device.
    #[must_use]
    pub fn checksum_offload(mut self, on: bool) -> Self {
        self.checksum_offload = on;
        self
    }

    /// Sets how flows are distributed over the receive queues.
    #[must_use]
    pub fn rss(mut self, rss: Rss) -> Self {
        self.rss = rss;
        self
    }

    /// Adds a flow rule.
    #[must_use]
    pub fn flow_rule(mut self, rule: FlowRule) -> Self {
        self.flow_rules.push(rule);
        self
    }

    /// Sets the settings of one receive queue; replaces earlier ones.
    #[must_use]
    pub fn rx_queue(mut self, queue: u16, config: QueueConfig) -> Self {
        self.queues.set_rx(queue, config);
        self
    }

    /// Sets the settings of one transmit queue; replaces earlier ones.
    #[must_use]
    pub fn tx_queue(mut self, queue: u16, config: QueueConfig) -> Self {
        self.queues.set_tx(queue, config);
        self
    }

    /// Descriptors or frames in the ring of a receive queue.
    #[must_use]
    pub fn rx_ring(&self, queue: u16) -> usize {
        self.queues.rx(queue).ring.unwrap_or(self.ring)
    }

    /// Descriptors or frames in the ring of a transmit queue.
    #[must_use]
    pub fn tx_ring(&self, queue: u16) -> usize {
        self.queues.tx(queue).ring.unwrap_or(self.ring)
    }

    /// Pool for the frames of a receive queue.
    #[must_use]
    pub fn rx_pool(&self, queue: u16) -> &Mempool {
        self.queues.rx(queue).pool.as_ref().unwrap_or(&self.pool)
    }

    /// Pool for frames that a transmit queue must copy.
    #[must_use]
    pub fn tx_pool(&self, queue: u16) -> &Mempool {
        self.queues.tx(queue).pool.as_ref().unwrap_or(&self.pool)
    }

    /// Ring sizes of all queues.
    pub(crate) fn rings(&self) -> impl Iterator<Item = usize> {
        let rx = (0..self.rx_queues).map(|queue| self.rx_ring(queue));
        rx.chain((0..self.tx_queues).map(|queue| self.tx_ring(queue)))
    }

    /// All pools, each once; the port's own is the first.
    pub(crate) fn pools(&self) -> Vec<&Mempool> {
        let mut pools = vec![&self.pool];
        let rx = (0..self.rx_queues).map(|queue| self.rx_pool(queue));
        for pool in rx.chain((0..self.tx_queues).map(|queue| self.tx_pool(queue))) {
            if pools.iter().all(|known| known.id() != pool.id()) {
                pools.push(pool);
            }
        }
        pools
    }

    /// NUMA nodes of the rings: receive queues, then transmit queues.
    pub(crate) fn numa_nodes(&self) -> Vec<Option<u32>> {
        let rx = (0..self.rx_queues).map(|queue| self.queues.rx(queue).numa_node);
        rx.chain((0..self.tx_queues).map(|queue| self.queues.tx(queue).numa_node))
            .collect()
    }
}
