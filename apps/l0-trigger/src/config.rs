//! Configuration of the trigger.

mod answer;
mod memory;
mod reassembly;
mod source;
mod stages;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context, Error, Result, ensure};
use pollux_emulator::config::EmulatorConfig;
use pollux_mempool::PoolConfig;
use pollux_mempool::region::PageSize;
use pollux_mempool::time::Ns;
use pollux_na62::formats::mtp::SOURCE_RICH;
use pollux_na62::l0::{Decision, Frame, MAX_SOURCES};
use pollux_na62::stage_env;
use pollux_na62::stages::DecideOptions;
use pollux_pipelines::fan_out::FanOutOptions;
use pollux_pipelines::registry::{StageRegistry, stage_lines};
use pollux_pipelines::{Pipeline, StageEnv, StageError};
use pollux_pmd::net::ReassemblyConfig;
use pollux_pmd::net::igmp::check_group;
use pollux_pmd::stream::{Demux, DemuxBuilder, StreamId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::answer::AnswerTo;
pub use self::memory::Memory;
pub use self::reassembly::Reassembly;
pub use self::source::Source;
pub use self::stages::schemas;

/// Configuration of `l0-trigger` (TOML). Every table, and every key in it, is optional unless
/// marked as required.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TriggerConfig {
    /// The trigger as a host, and its budget.
    pub trigger: Trigger,
    /// Limits of `trigger.reassemble`; allowed only with it.
    pub reassembly: Option<Reassembly>,
    /// Destination of decisions. Default: the boards of `pollux-emulator` at their default address.
    pub answer: AnswerTo,
    /// Packet memory.
    pub memory: Memory,
    /// The sources, one table each, in order: the first is stream 0. Default: the four of
    /// `pollux-emulator`.
    #[serde(rename = "stream")]
    #[schemars(length(min = 1, max = MAX_SOURCES))]
    pub streams: Vec<Stream>,
    /// Outputs of events, one table each (docs/outputs.md); those of `--output` are added.
    #[serde(rename = "output", skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputTable>,
    /// The stages of the pipeline, one table each, in order. Default: `decompress`, `build`,
    /// `rings`, `decide`, each with its defaults.
    #[serde(rename = "stage")]
    #[schemars(schema_with = "stages::schema")]
    pub stages: Vec<toml::Table>,
    /// Line of each stage in the text.
    #[serde(skip)]
    lines: Vec<usize>,
}

/// Maximum budget of a decision: a minute.
const BUDGET_US: RangeInclusive<u64> = 1..=60_000_000;

/// The trigger as a host, and its budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trigger {
    /// Its IPv4 address: ARP and ping for it are answered on ports that have a MAC address, and it
    /// is the source address of answers. The kernel must not have it on the same interface.
    pub ip: Ipv4Addr,
    /// Source identifier in its answers (docs/formats/mtp.md).
    pub source_id: u8,
    /// Maximum time from the arrival of an event's first frame to the transmission of its decision;
    /// a decision that takes longer is marked as late.
    #[schemars(range(min = *BUDGET_US.start(), max = *BUDGET_US.end()), extend("x-unit" = "us"))]
    pub budget_us: u64,
    /// Whether IPv4 and UDP checksums are verified: frames with wrong ones are dropped.
    pub checksums: bool,
    /// Reassemble datagrams from IPv4 fragments; otherwise fragments are dropped.
    pub reassemble: bool,
}

/// One source.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// UDP destination port of its frames. Two sources may share one only if each has a `group` of its own.
    #[schemars(range(min = 1))]
    pub udp_port: u16,
    /// Multicast group of its frames, which is joined; without it, any destination address.
    pub group: Option<Ipv4Addr>,
}

/// An output of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputTable {
    /// Its spec, as of `--output`.
    pub spec: String,
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
            outputs: Vec::new(),
            stages: ["decompress", "build", "rings", "decide"].map(stage).into(),
            lines: Vec::new(),
        }
    }
}

impl TriggerConfig {
    /// Parses a configuration whose stages are in `stages`.
    pub fn of(source: &Source, stages: &StageRegistry) -> Result<Self> {
        match source {
            Source::BuiltIn => Ok(Self::default()),
            Source::File(path) => Self::read(path, stages),
            Source::Text(text) => Self::from_toml(text, stages).context("configuration"),
        }
    }

    /// Reads the configuration that `--config` names.
    pub fn read(path: &Path, stages: &StageRegistry) -> Result<Self> {
        let read = || Self::from_toml(&pollux_app::read_text(path)?, stages);
        read().with_context(|| format!("--config {}", path.display()))
    }

    /// Parses a configuration; missing tables have their defaults.
    pub fn from_toml(text: &str, stages: &StageRegistry) -> Result<Self> {
        let mut config: Self = toml::from_str(text)?;
        config.lines = stage_lines(text);
        config.validate(stages)?;
        Ok(config)
    }

    /// Checks constraints beyond the types.
    pub fn validate(&self, stages: &StageRegistry) -> Result<()> {
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
        // The availability of the memory is not checked yet.
        let memory = PoolConfig {
            pages: PageSize::Kib4,
            ..PoolConfig::default()
        };
        let (_, env) = self.pipeline_in(stages, memory, 0, FanOutOptions::default())?;
        for warning in env.warnings {
            tracing::warn!("{warning}");
        }
        Ok(())
    }

    /// The budget of a decision.
    pub fn budget(&self) -> Ns {
        Ns(self.trigger.budget_us * 1000)
    }

    /// The limits for each of `ports` ports, if fragments are reassembled.
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

    /// The tables in which this differs from `other`, except the rules, which can change during a
    /// run.
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
            ("[[output]]", self.outputs != other.outputs),
            (
                "[[stage]] other than the rules",
                stages(self) != stages(other),
            ),
        ];
        let differ = tables.iter().filter(|(_, differs)| *differs);
        differ.map(|&(table, _)| table).collect()
    }

    /// The board of each stream, as configured for the stage `decompress`.
    pub fn boards(&self) -> Vec<u8> {
        let listed = self.stages.iter().find(|stage| has_boards(stage));
        let listed = listed.and_then(|stage| stage.get("boards")?.as_array());
        let number = |board: &toml::Value| u8::try_from(board.as_integer()?).ok();
        match listed.and_then(|boards| boards.iter().map(number).collect::<Option<Vec<_>>>()) {
            Some(boards) => boards,
            None => (0..self.streams.len()).map(|board| board as u8).collect(),
        }
    }

    /// The rules that accept events, if there is a stage `decide`.
    pub fn rules(&self) -> Result<Option<DecideOptions>> {
        let Some(decide) = self.stages.iter().find(|stage| decides(stage)) else {
            return Ok(None);
        };
        let mut options = decide.clone();
        options.remove("name");
        Ok(Some(DecideOptions::deserialize(options)?))
    }

    /// Creates the pipeline, with its counters; at most `kept` events are in flight to displays and
    /// recordings.
    pub fn pipeline(
        &self,
        stages: &StageRegistry,
        kept: usize,
        fan_out: FanOutOptions,
    ) -> Result<(Pipeline<Frame, Decision>, StageEnv)> {
        self.pipeline_in(stages, self.memory.pool(), kept, fan_out)
    }

    fn pipeline_in(
        &self,
        stages: &StageRegistry,
        memory: PoolConfig,
        kept: usize,
        fan_out: FanOutOptions,
    ) -> Result<(Pipeline<Frame, Decision>, StageEnv)> {
        let mut env = stage_env(self.streams.len());
        env.memory = memory;
        env.under_way += kept;
        env.fan_out = fan_out;
        let pipeline = stages.pipeline(&self.stages, &mut env);
        Ok((pipeline.map_err(|error| self.at_stage(error))?, env))
    }
}

impl TriggerConfig {
    /// The effective configuration, including defaults.
    pub fn in_force(&self, stages: &StageRegistry) -> Result<Self> {
        let mut whole = self.clone();
        for (number, stage) in (1..).zip(&mut whole.stages) {
            let completed = stages.complete(number, stage);
            *stage = completed.map_err(|error| self.at_stage(error))?;
            if has_boards(stage) && stage.get("detectors").is_none() {
                let boards = self.boards().into_iter().map(i64::from);
                stage.insert("boards".into(), boards.collect::<Vec<_>>().into());
            }
        }
        Ok(whole)
    }

    /// The error of the stages, with its line.
    fn at_stage(&self, error: StageError) -> Error {
        let line = error
            .number()
            .and_then(|number| self.lines.get(number.checked_sub(1)?));
        let place = match line {
            Some(line) => format!("[[stage]] in line {line}"),
            None => "[[stage]]".into(),
        };
        Error::new(error).context(place)
    }
}

/// Whether a stage reads the frames of boards, which it can list.
fn has_boards(stage: &toml::Table) -> bool {
    let name = stage.get("name").and_then(toml::Value::as_str);
    name.is_some_and(|name| ["decompress", "read-mep", "read-mtp"].contains(&name))
}

fn decides(stage: &toml::Table) -> bool {
    stage.get("name") == Some(&"decide".into())
}

#[cfg(test)]
mod tests;
