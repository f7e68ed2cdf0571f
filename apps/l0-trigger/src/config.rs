//! What the trigger is configured with.

mod answer;
mod memory;
mod reassembly;
mod stages;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use pollux_emulator::config::EmulatorConfig;
use pollux_mempool::PoolConfig;
use pollux_mempool::region::PageSize;
use pollux_mempool::time::Ns;
use pollux_na62::formats::mtp::SOURCE_RICH;
use pollux_na62::l0::{Decision, Frame, MAX_SOURCES};
use pollux_na62::stages::DecideOptions;
use pollux_na62::{stage_env, stage_registry};
use pollux_pipelines::spread::Spreading;
use pollux_pipelines::{Pipeline, StageEnv};
use pollux_pmd::net::ReassemblyConfig;
use pollux_pmd::net::igmp::check_group;
use pollux_pmd::stream::{Demux, DemuxBuilder, StreamId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::answer::AnswerTo;
pub use self::memory::Memory;
pub use self::reassembly::Reassembly;

/// Configuration of `l0-trigger` (TOML). Each table, and each key in it, may be left out unless it is
/// said to be required.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TriggerConfig {
    /// The trigger as a host, and its budget.
    pub trigger: Trigger,
    /// Bounds of `trigger.reassemble`, and only with it.
    pub reassembly: Option<Reassembly>,
    /// Where decisions are sent; left out: to the boards of `pollux-emulator` at their default
    /// address.
    pub answer: AnswerTo,
    /// Packet memory.
    pub memory: Memory,
    /// The sources, one table each, in order: the first is stream 0. Left out: the four of
    /// `pollux-emulator`.
    #[serde(rename = "stream")]
    #[schemars(length(min = 1, max = MAX_SOURCES))]
    pub streams: Vec<Stream>,
    /// The stages of the pipeline, one table each, in order. Left out: `decompress`, `build`,
    /// `rings`, `decide`, each with its defaults.
    #[serde(rename = "stage")]
    #[schemars(schema_with = "stages::schema")]
    pub stages: Vec<toml::Table>,
    /// Where the stages stand in the text: the line of each.
    #[serde(skip)]
    lines: Vec<usize>,
}

/// How long a decision may take: up to a minute.
const BUDGET_US: RangeInclusive<u64> = 1..=60_000_000;

/// The trigger as a host, and its budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trigger {
    /// Its IPv4 address: ARP and ping for it are answered on ports that have a MAC address, and
    /// answers leave from it. The kernel must not have it on the same interface.
    pub ip: Ipv4Addr,
    /// Source identifier in its answers (docs/formats/mtp.md).
    pub source_id: u8,
    /// Longest time from the arrival of an event's first frame to its decision's departure; a
    /// decision that takes longer says that it is late.
    #[schemars(range(min = *BUDGET_US.start(), max = *BUDGET_US.end()), extend("x-unit" = "us"))]
    pub budget_us: u64,
    /// Whether IPv4 and UDP checksums are verified: frames whose are wrong are dropped.
    pub checksums: bool,
    /// Put datagrams together that come in fragments of IPv4; else fragments are dropped.
    pub reassemble: bool,
}

/// One source.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// UDP destination port of its frames, another for each source.
    #[schemars(range(min = 1))]
    pub udp_port: u16,
    /// The multicast group that they go to, which is joined; without it, any address.
    pub group: Option<Ipv4Addr>,
}

impl Default for Trigger {
    fn default() -> Self {
        Self {
            ip: EmulatorConfig::default().addresses.trigger_ip,
            source_id: SOURCE_RICH,
            budget_us: 1000,
            checksums: true,
            reassemble: false,
        }
    }
}

/// The built-in configuration: that of the demonstration, for the emulator's default addresses.
impl Default for TriggerConfig {
    fn default() -> Self {
        let emulator = EmulatorConfig::default();
        let stage = |name: &str| toml::Table::from_iter([("name".to_owned(), name.into())]);
        Self {
            trigger: Trigger::default(),
            reassembly: None,
            answer: AnswerTo::default(),
            memory: Memory::default(),
            streams: (0..u16::from(emulator.boards))
                .map(|board| Stream {
                    udp_port: emulator.addresses.trigger_port + board,
                    group: None,
                })
                .collect(),
            stages: ["decompress", "build", "rings", "decide"].map(stage).into(),
            lines: Vec::new(),
        }
    }
}

impl TriggerConfig {
    /// The configuration that `--config` names, or else the built-in one.
    pub fn of(path: Option<&Path>) -> Result<Self> {
        path.map_or_else(|| Ok(Self::default()), Self::read)
    }

    /// Reads the configuration that `--config` names.
    pub fn read(path: &Path) -> Result<Self> {
        let read = || Self::from_toml(&std::fs::read_to_string(path)?);
        read().with_context(|| format!("--config {}", path.display()))
    }

    /// Reads a configuration; tables that it does not have are as built in.
    pub fn from_toml(text: &str) -> Result<Self> {
        let mut config: Self = toml::from_str(text)?;
        config.lines = stages::lines(text);
        config.validate()?;
        Ok(config)
    }

    /// Checks what the types cannot.
    pub fn validate(&self) -> Result<()> {
        ensure!(
            (1..=MAX_SOURCES).contains(&self.streams.len()),
            "{} [[stream]] tables: there must be 1 to {MAX_SOURCES}, one for each source",
            self.streams.len()
        );
        ensure!(
            BUDGET_US.contains(&self.trigger.budget_us),
            "trigger.budget_us = {}: it must be 1 to 60000000 (a minute)",
            self.trigger.budget_us
        );
        self.memory.validate()?;
        ensure!(
            self.trigger.reassemble || self.reassembly.is_none(),
            "[reassembly] is for trigger.reassemble = true: set that, or leave the table out"
        );
        self.reassembly(1)?;
        self.answer.validate()?;
        self.demux()?;
        // Whether the memory for it can be had is not asked yet.
        let memory = PoolConfig {
            pages: PageSize::Kib4,
            ..PoolConfig::default()
        };
        let (_, env) = self.pipeline_in(memory, 0, Spreading::default())?;
        for warning in env.warnings {
            tracing::warn!("{warning}");
        }
        Ok(())
    }

    /// The budget of a decision.
    pub fn budget(&self) -> Ns {
        Ns(self.trigger.budget_us * 1000)
    }

    /// The bounds for each of so many ports, if fragments are to be reassembled.
    pub fn reassembly(&self, ports: usize) -> Result<Option<ReassemblyConfig>> {
        if !self.trigger.reassemble {
            return Ok(None);
        }
        let table = self.reassembly.unwrap_or_default();
        table.bounds(self.memory.buffers, ports).map(Some)
    }

    /// The multicast groups of the streams, each once.
    pub fn groups(&self) -> Vec<Ipv4Addr> {
        let groups = self.streams.iter().filter_map(|stream| stream.group);
        groups.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Routes each stream's UDP port, at its group's address if it has one.
    pub fn demux(&self) -> Result<Demux> {
        let mut builder = DemuxBuilder::new();
        for (stream, id) in self.streams.iter().zip(0..) {
            ensure!(
                stream.udp_port != 0,
                "[[stream]] {id}: udp_port must not be 0"
            );
            if let Some(group) = stream.group {
                check_group(group).with_context(|| format!("[[stream]] {id}: group"))?;
            }
            builder = match stream.group {
                Some(group) => builder.address(group, stream.udp_port, StreamId(id)),
                None => builder.port(stream.udp_port, StreamId(id)),
            };
        }
        builder.build().context("[[stream]]")
    }

    /// The tables in which this differs from `other`, but for the rules, which can change while a run
    /// goes on.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let stages = |config: &Self| {
            let mut stages = config.stages.clone();
            if let Some(decide) = stages.iter_mut().find(|stage| decides(stage)) {
                decide.retain(|key, _| key == "name");
            }
            stages
        };
        let tables = [
            ("[trigger]", self.trigger != other.trigger),
            ("[reassembly]", self.reassembly != other.reassembly),
            ("[answer]", self.answer != other.answer),
            ("[memory]", self.memory != other.memory),
            ("[[stream]]", self.streams != other.streams),
            (
                "[[stage]] other than the rules",
                stages(self) != stages(other),
            ),
        ];
        let differ = tables.iter().filter(|(_, differs)| *differs);
        differ.map(|&(table, _)| table).collect()
    }

    /// The board of each stream, as the stage that decompresses has them.
    pub fn boards(&self) -> Vec<u8> {
        let decompress = |stage: &&toml::Table| stage.get("name") == Some(&"decompress".into());
        let listed = self.stages.iter().find(decompress);
        let listed = listed.and_then(|stage| stage.get("boards")?.as_array());
        let number = |board: &toml::Value| u8::try_from(board.as_integer()?).ok();
        match listed.and_then(|boards| boards.iter().map(number).collect::<Option<Vec<_>>>()) {
            Some(boards) => boards,
            None => (0..self.streams.len()).map(|board| board as u8).collect(),
        }
    }

    /// The rules by which events are accepted, if there is a stage that decides.
    pub fn rules(&self) -> Result<Option<DecideOptions>> {
        let Some(decide) = self.stages.iter().find(|stage| decides(stage)) else {
            return Ok(None);
        };
        let mut options = decide.clone();
        options.remove("name");
        Ok(Some(DecideOptions::deserialize(options)?))
    }

    /// Makes the pipeline, with its counters; `kept` events at most are on their way to those who
    /// look at them or record them.
    pub fn pipeline(
        &self,
        kept: usize,
        spread: Spreading,
    ) -> Result<(Pipeline<Frame, Decision>, StageEnv)> {
        self.pipeline_in(self.memory.pool(), kept, spread)
    }

    fn pipeline_in(
        &self,
        memory: PoolConfig,
        kept: usize,
        spread: Spreading,
    ) -> Result<(Pipeline<Frame, Decision>, StageEnv)> {
        let mut env = stage_env(self.streams.len());
        env.memory = memory;
        env.under_way += kept;
        env.spread = spread;
        let pipeline = stage_registry().pipeline(&self.stages, &mut env);
        Ok((pipeline.map_err(|error| self.at_stage(error))?, env))
    }
}

fn decides(stage: &toml::Table) -> bool {
    stage.get("name") == Some(&"decide".into())
}

#[cfg(test)]
mod tests;
