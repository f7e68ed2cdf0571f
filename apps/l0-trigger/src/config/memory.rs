//! Configuration of packet memory.

use std::ops::RangeInclusive;

use anyhow::{Context, Result, ensure};
use pollux_mempool::region::{Lock, PageSize};
use pollux_mempool::{MemoryRegion, PoolConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Range of the number of packet buffers.
const BUFFERS: RangeInclusive<usize> = 1024..=1 << 22;

/// Range of the data room of a buffer, in bytes.
const DATA_ROOM: RangeInclusive<usize> = 256..=65_536;

/// Range of the length of queues.
const RING: RangeInclusive<usize> = 64..=65_536;

/// Packet memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// Packet buffers of the run, for all ports and all frames in flight.
    #[schemars(range(min = *BUFFERS.start(), max = *BUFFERS.end()), extend("x-unit" = "buffers"))]
    pub buffers: usize,
    /// Data room of each buffer: a longer frame takes several buffers, if its port supports that.
    #[schemars(range(min = *DATA_ROOM.start(), max = *DATA_ROOM.end()), extend("x-unit" = "bytes"))]
    pub data_room: usize,
    /// Length of each queue of a port, in both directions.
    #[schemars(range(min = *RING.start(), max = *RING.end()), extend("x-unit" = "descriptors"))]
    pub ring: usize,
    /// Size of its pages: `auto` takes the largest available ones (docs/tuning.md).
    #[serde(with = "Pages")]
    pub pages: PageSize,
    /// NUMA node of the memory. Default: the kernel's choice.
    pub numa_node: Option<u32>,
    /// Whether its pages must be locked: `try` continues without, `require` refuses to run.
    #[serde(with = "Locking")]
    pub lock: Lock,
}

/// Names of page sizes.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "PageSize")]
enum Pages {
    #[serde(rename = "auto")]
    Auto,
    #[serde(rename = "4K")]
    Kib4,
    #[serde(rename = "2M")]
    Mib2,
    #[serde(rename = "1G")]
    Gib1,
}

/// Names of lock modes.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Lock", rename_all = "lowercase")]
enum Locking {
    Try,
    Require,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            buffers: 16_384,
            data_room: 2048,
            ring: 2048,
            pages: PageSize::Auto,
            numa_node: None,
            lock: Lock::Try,
        }
    }
}

impl Memory {
    pub(super) fn validate(&self) -> Result<()> {
        let &Self {
            buffers,
            data_room,
            ring,
            numa_node,
            ..
        } = self;
        ensure!(
            BUFFERS.contains(&buffers),
            "memory.buffers = {buffers}: it must be 1024 to 4194304"
        );
        ensure!(
            DATA_ROOM.contains(&data_room),
            "memory.data_room = {data_room}: it must be 256 to 65536 bytes"
        );
        ensure!(
            RING.contains(&ring),
            "memory.ring = {ring}: it must be 64 to 65536"
        );
        // A page on the node shows whether it has memory.
        if let Some(node) = numa_node {
            MemoryRegion::builder(1)
                .numa_node(node)
                .build()
                .with_context(|| format!("memory.numa_node = {node}"))?;
        }
        Ok(())
    }

    /// The configured pool.
    pub fn pool(&self) -> PoolConfig {
        PoolConfig {
            buffers: self.buffers,
            data_room: self.data_room,
            pages: self.pages,
            numa_node: self.numa_node,
            lock: self.lock,
            ..PoolConfig::default()
        }
    }
}
