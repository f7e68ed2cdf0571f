//! Configuration of a run: TOML, with the options of the command line above it.

use std::path::Path;

use anyhow::{Context as _, Result};
use pollux_app::read_text;
use serde::{Deserialize, Serialize};

use super::link::Ports;
use super::options::{ModeName, PolicyName, RunOptions, TriggerName};

/// A run. Every key has a default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FarmConfig {
    /// The members.
    pub farm: Members,
    /// Events and how they travel.
    pub traffic: Traffic,
    /// Time-outs, in microseconds.
    pub times: Times,
    /// Loops and memory.
    pub loops: Loops,
    /// The switch that carries the frames; without it, they go from loop to loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<SwitchTable>,
    /// Ports of processes; without them, those of a process are in its memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Ports>,
}

/// A switch in the process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchTable {
    /// Bytes of the buffer of each output.
    pub buffer: usize,
    /// Rate of each output.
    pub rate_gbps: f64,
}

impl Default for SwitchTable {
    fn default() -> Self {
        Self {
            buffer: 64 << 10,
            rate_gbps: 10.0,
        }
    }
}

/// The members of the farm.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Members {
    /// Feeders, at most 64.
    pub feeders: usize,
    /// Computing nodes.
    pub nodes: usize,
    /// Columns, at most 64; the nodes are dealt to them in turn.
    pub columns: usize,
    /// Receive buffers of each node.
    pub buffers: usize,
}

impl Default for Members {
    fn default() -> Self {
        Self {
            feeders: 24,
            nodes: 12,
            columns: 6,
            buffers: 10,
        }
    }
}

/// Events and how they travel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Traffic {
    /// Who sends when: `ring`, `credits`, `slots` or `none`.
    pub policy: PolicyName,
    /// With `slots`: a slot begins when all transfers of the one before are complete.
    pub barrier: bool,
    /// Fragments that a node asks for at a time, with `credits`.
    pub credits: usize,
    /// What happens when the next column is busy: `skip` or `wait`.
    pub mode: ModeName,
    /// Rounds in which busy feeders pass the message on.
    pub bypass: u8,
    /// Events that are scheduled together, at most 64.
    pub pack: u16,
    /// Bytes of a fragment.
    pub fragment: u32,
    /// Bytes of the slot that a receive buffer has for a feeder; without it, what a transfer needs.
    pub slot: Option<u32>,
    /// Payloads have a CRC; without it, where messages are damaged on purpose, and where the ports of
    /// processes are configured: other frames do not leave the memory of the machine.
    pub crc: Option<bool>,
    /// Triggers a second; without it, as many as the farm takes.
    pub rate_hz: Option<f64>,
    /// Distances of the triggers: `regular`, `poisson` or `bunches`.
    pub triggers: TriggerName,
    /// Most events, or packs of events, that are triggered and not decided; without it, four times
    /// the receive buffers, or 4096 where messages are lost on purpose and events wait for them.
    pub in_flight: Option<usize>,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            policy: PolicyName::Ring,
            barrier: true,
            credits: 24,
            mode: ModeName::Skip,
            bypass: 0,
            pack: 1,
            fragment: 128,
            slot: None,
            crc: None,
            rate_hz: None,
            triggers: TriggerName::Regular,
            in_flight: None,
        }
    }
}

/// Time-outs, in microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "keys name their unit")]
pub struct Times {
    /// What was not answered is sent again.
    pub timeout_us: u64,
    /// A member that is silent is excluded.
    pub silence_us: u64,
    /// An incomplete pack waits for more triggers.
    pub pack_wait_us: u64,
    /// The scheduler waits so long for the first sign of life of all members, and then begins.
    pub start_us: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            timeout_us: 500_000,
            silence_us: 3_000_000,
            pack_wait_us: 1000,
            start_us: 60_000_000,
        }
    }
}

/// Loops and memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Loops {
    /// Loops that share the members, at most 8; without it, as many as CPUs.
    pub loops: Option<u16>,
    /// Packet buffers; without it, enough for all receive buffers.
    pub packet_buffers: Option<usize>,
}

impl FarmConfig {
    /// The configuration of a command line: its file, and its options.
    ///
    /// # Errors
    /// A file that cannot be read or is none.
    pub fn of(options: &RunOptions) -> Result<Self> {
        let mut config = match &options.config {
            Some(path) => Self::read(path).context("--config")?,
            None => Self::default(),
        };
        config.apply(options);
        Ok(config)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// A file that cannot be read or is none.
    pub fn read(path: &Path) -> Result<Self> {
        let name = || path.display().to_string();
        let text = read_text(path).with_context(name)?;
        toml::from_str(&text).with_context(name)
    }

    fn apply(&mut self, options: &RunOptions) {
        fn set<T: Copy>(key: &mut T, option: Option<T>) {
            if let Some(value) = option {
                *key = value;
            }
        }
        set(&mut self.farm.feeders, options.feeders);
        set(&mut self.farm.nodes, options.nodes);
        set(&mut self.farm.columns, options.columns);
        set(&mut self.farm.buffers, options.buffers);
        let traffic = &mut self.traffic;
        set(&mut traffic.policy, options.policy);
        set(&mut traffic.mode, options.mode);
        set(&mut traffic.bypass, options.bypass);
        set(&mut traffic.pack, options.pack);
        set(&mut traffic.fragment, options.fragment);
        set(&mut traffic.slot, options.slot.map(Some));
        set(&mut traffic.rate_hz, options.rate.map(|rate| rate.0));
        set(&mut traffic.triggers, options.triggers);
        set(&mut self.loops.loops, options.loops.map(Some));
        if let Some(buffer) = options.switch {
            self.switch.get_or_insert_default().buffer = buffer;
        }
    }
}
