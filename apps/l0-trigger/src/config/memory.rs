//! Packet memory, as the configuration has it.

use std::ops::RangeInclusive;

use anyhow::{Context, Result, ensure};
use pollux_mempool::region::{Lock, PageSize};
use pollux_mempool::{MemoryRegion, PoolConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many packet buffers there may be.
const BUFFERS: RangeInclusive<usize> = 1024..=1 << 22;

/// Bytes that each may have room for.
const DATA_ROOM: RangeInclusive<usize> = 256..=65_536;

/// How long queues may be.
const RING: RangeInclusive<usize> = 64..=65_536;

/// Packet memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// Packet buffers of the run, for all ports and all that is under way.
    #[schemars(range(min = *BUFFERS.start(), max = *BUFFERS.end()), extend("x-unit" = "buffers"))]
    pub buffers: usize,
    /// Room for data in each buffer: a frame that is longer takes several, where its port can do so.
    #[schemars(range(min = *DATA_ROOM.start(), max = *DATA_ROOM.end()), extend("x-unit" = "bytes"))]
    pub data_room: usize,
    /// Length of each queue of a port, to receive and to send.
    #[schemars(range(min = *RING.start(), max = *RING.end()), extend("x-unit" = "descriptors"))]
    pub ring: usize,
    /// Size of its pages: `auto` takes the largest that there are (docs/tuning.md).
    #[serde(with = "Pages")]
    pub pages: PageSize,
    /// The NUMA node that it is on; left out: where the kernel puts it.
    pub numa_node: Option<u32>,
    /// Whether its pages must be locked: `try` goes on without, `require` refuses to run.
    #[serde(with = "Locking")]
    pub lock: Lock,
}

/// How page sizes are written.
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

/// How it is written whether memory must be locked.
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
        // Whether a node has memory, a page on it tells.
        if let Some(node) = numa_node {
            MemoryRegion::builder(1)
                .numa_node(node)
                .build()
                .with_context(|| format!("memory.numa_node = {node}"))?;
        }
        Ok(())
    }

    /// The pool that this asks for.
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
