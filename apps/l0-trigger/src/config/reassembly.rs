//! Configuration of the limits of reassembly.

use anyhow::{Result, ensure};
use pollux_mempool::time::Ns;
use pollux_pmd::net::ReassemblyConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of reassembly from the fragments on one port.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reassembly {
    /// Maximum time of a datagram from its first fragment on.
    #[schemars(range(min = 1, max = 60_000), extend("x-unit" = "ms"))]
    pub timeout_ms: u64,
    /// Maximum number of incomplete datagrams.
    #[schemars(range(min = 1, max = 1024))]
    pub datagrams: usize,
    /// Maximum number of buffers for the fragments of one datagram.
    #[schemars(range(min = 2, max = 1024), extend("x-unit" = "buffers"))]
    pub fragments: usize,
    /// Maximum number of buffers for all fragments, at most a quarter of `memory.buffers` over all
    /// ports. Default: 1024, or that quarter if it is less.
    #[schemars(extend("x-unit" = "buffers"))]
    pub buffers: Option<usize>,
}

impl Default for Reassembly {
    fn default() -> Self {
        let bounds = ReassemblyConfig::default();
        Self {
            timeout_ms: bounds.timeout.0 / 1_000_000,
            datagrams: bounds.datagrams,
            fragments: bounds.fragments,
            buffers: None,
        }
    }
}

impl Reassembly {
    /// The limits for each of `ports` ports. All ports together leave three quarters of the
    /// memory's buffers to other uses.
    pub(super) fn bounds(&self, memory_buffers: usize, ports: usize) -> Result<ReassemblyConfig> {
        let most = memory_buffers / 4 / ports.max(1);
        let buffers = self
            .buffers
            .unwrap_or(ReassemblyConfig::default().buffers.min(most));
        ensure!(
            buffers <= most,
            "reassembly.buffers = {buffers}: with memory.buffers = {memory_buffers} it must be at \
             most {most} for each port"
        );
        let bounds = ReassemblyConfig {
            timeout: Ns(self.timeout_ms.saturating_mul(1_000_000)),
            datagrams: self.datagrams,
            fragments: self.fragments,
            buffers,
        };
        bounds.check()?;
        Ok(bounds)
    }
}
