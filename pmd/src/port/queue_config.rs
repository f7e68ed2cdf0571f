//! Settings of single queues of a port.

use pollux_mempool::Mempool;

/// Settings of one queue; a setting that is `None` is the port's.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct QueueConfig {
    /// Descriptors or frames in the ring.
    pub ring: Option<usize>,
    /// Pool for received frames, or for copies of frames that cannot be sent in place.
    pub pool: Option<Mempool>,
    /// CPU for its poll loop: a hint for [`lcore::core_of`](crate::lcore::core_of); drivers ignore
    /// it.
    pub core: Option<usize>,
    /// NUMA node of the ring's memory; by default the node of the device.
    pub numa_node: Option<u32>,
}

impl QueueConfig {
    /// All settings are the port's.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of descriptors or frames in the ring.
    #[must_use]
    pub fn ring(mut self, ring: usize) -> Self {
        self.ring = Some(ring);
        self
    }

    /// Sets the pool.
    #[must_use]
    pub fn pool(mut self, pool: Mempool) -> Self {
        self.pool = Some(pool);
        self
    }

    /// Sets the CPU for the poll loop.
    #[must_use]
    pub fn core(mut self, core: usize) -> Self {
        self.core = Some(core);
        self
    }

    /// Sets the NUMA node of the ring's memory.
    #[must_use]
    pub fn numa_node(mut self, node: u32) -> Self {
        self.numa_node = Some(node);
        self
    }
}

/// Settings of those queues that differ from the port's.
#[derive(Clone, Debug, Default)]
pub struct QueueSettings {
    rx: Vec<QueueConfig>,
    tx: Vec<QueueConfig>,
}

/// Settings of a queue without any of its own.
static PORT_DEFAULTS: QueueConfig = QueueConfig {
    ring: None,
    pool: None,
    core: None,
    numa_node: None,
};

impl QueueSettings {
    /// Settings of a receive queue.
    #[must_use]
    pub fn rx(&self, queue: u16) -> &QueueConfig {
        self.rx.get(usize::from(queue)).unwrap_or(&PORT_DEFAULTS)
    }

    /// Settings of a transmit queue.
    #[must_use]
    pub fn tx(&self, queue: u16) -> &QueueConfig {
        self.tx.get(usize::from(queue)).unwrap_or(&PORT_DEFAULTS)
    }

    pub(super) fn set_rx(&mut self, queue: u16, config: QueueConfig) {
        set(&mut self.rx, queue, config);
    }

    pub(super) fn set_tx(&mut self, queue: u16, config: QueueConfig) {
        set(&mut self.tx, queue, config);
    }

    /// Why these settings are invalid for so many queues: the request, and what the port offers.
    pub(super) fn refusal(
        &self,
        rx_queues: u16,
        tx_queues: u16,
        offered: QueueSupport,
    ) -> Option<(String, String)> {
        for (kind, configs, queues) in [
            ("receive", &self.rx, rx_queues),
            ("transmit", &self.tx, tx_queues),
        ] {
            if configs.len() > usize::from(queues) {
                let last = configs.len() - 1;
                let asked = format!("settings of {kind} queue {last}");
                return Some((asked, format!("{queues} {kind} queues, numbered from 0")));
            }
            for (queue, config) in configs.iter().enumerate() {
                let refused = [
                    (config.ring.is_some(), offered.ring, "ring"),
                    (config.pool.is_some(), offered.pool, "pool"),
                    (config.numa_node.is_some(), offered.numa_node, "NUMA node"),
                ];
                let refused = refused
                    .into_iter()
                    .find(|(is_set, is_offered, _)| *is_set && !is_offered);
                if let Some((.., what)) = refused {
                    let asked = format!("a {what} of its own for {kind} queue {queue}");
                    return Some((asked, offered.to_string()));
                }
            }
        }
        None
    }
}

fn set(configs: &mut Vec<QueueConfig>, queue: u16, config: QueueConfig) {
    let queue = usize::from(queue);
    if configs.len() <= queue {
        configs.resize_with(queue + 1, QueueConfig::default);
    }
    configs[queue] = config;
}

/// Settings of single queues that a driver supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueSupport {
    /// Ring size.
    pub ring: bool,
    /// Pool.
    pub pool: bool,
    /// NUMA node of the ring's memory.
    pub numa_node: bool,
}

impl QueueSupport {
    /// None.
    pub const NONE: Self = Self {
        ring: false,
        pool: false,
        numa_node: false,
    };

    /// The ring size alone.
    pub const RING: Self = Self {
        ring: true,
        ..Self::NONE
    };

    /// All.
    pub const ALL: Self = Self {
        ring: true,
        pool: true,
        numa_node: true,
    };
}

/// Text for messages: `settings for each queue: ring size; for all queues: pool, NUMA node`.
impl std::fmt::Display for QueueSupport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = [
            (self.ring, "ring size"),
            (self.pool, "pool"),
            (self.numa_node, "NUMA node"),
        ];
        let names = |offered| {
            let names = all.iter().filter(move |(is, _)| *is == offered);
            names.map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
        };
        let (each, shared) = (names(true), names(false));
        match (each.is_empty(), shared.is_empty()) {
            (true, _) => write!(f, "one setting for all queues: {shared}"),
            (_, true) => write!(f, "settings for each queue: {each}"),
            _ => write!(
                f,
                "settings for each queue: {each}; for all queues: {shared}"
            ),
        }
    }
}
