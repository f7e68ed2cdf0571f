//! What the trigger is configured with.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use pollux_emulator::config::EmulatorConfig;
use pollux_mempool::region::{Lock, PageSize};
use pollux_mempool::time::Ns;
use pollux_mempool::{MemoryRegion, PoolConfig};
use pollux_pipelines::formats::mtp::SOURCE_RICH;
use pollux_pipelines::l0::{Decision, Frame, MAX_SOURCES};
use pollux_pipelines::spread::Spreading;
use pollux_pipelines::stages::DecideOptions;
use pollux_pipelines::{Pipeline, StageEnv, StageRegistry};
use pollux_pmd::net::igmp::check_group;
use pollux_pmd::net::{MacAddr, ReassemblyConfig};
use pollux_pmd::stream::{Demux, DemuxBuilder, StreamId};
use serde::Deserialize;

/// The configuration of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TriggerConfig {
    /// The trigger as a host, and its budget.
    pub trigger: Trigger,
    /// Bounds of `trigger.reassemble`.
    pub reassembly: Option<Reassembly>,
    /// Where decisions are sent; without this table they are only recorded.
    pub answer: Option<AnswerTo>,
    /// Packet memory.
    pub memory: Memory,
    /// The sources, in order: stream s is source s.
    #[serde(rename = "stream")]
    pub streams: Vec<Stream>,
    /// The pipeline, in order.
    #[serde(rename = "stage")]
    pub stages: Vec<toml::Table>,
}

/// The trigger as a host, and its budget.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Trigger {
    /// Its address: ARP and ping for it are answered on ports that have a MAC address.
    pub ip: Ipv4Addr,
    /// Source identifier in its answers.
    pub source_id: u8,
    /// From the arrival of an event's first frame to its decision's departure.
    pub budget_us: u64,
    /// Verify IPv4 and UDP checksums.
    pub checksums: bool,
    /// Put datagrams together that come in fragments of IPv4; else fragments are dropped.
    pub reassemble: bool,
}

/// Bounds of what is put together of the fragments that come by one port.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reassembly {
    /// How long a datagram may take from its first fragment on: 1 to 60000 ms.
    pub timeout_ms: u64,
    /// Datagrams that may be under way: 1 to 1024.
    pub datagrams: usize,
    /// Buffers that the fragments of one datagram may have: 2 to 1024.
    pub fragments: usize,
    /// Buffers that all fragments may have together, at most a quarter of `memory.buffers` for all
    /// ports; left out: 1024, or that quarter if it is less.
    pub buffers: Option<usize>,
}

/// Where decisions are sent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerTo {
    /// Address and UDP port.
    pub to: SocketAddrV4,
    /// Source port.
    #[serde(default = "default_answer_port")]
    pub from_port: u16,
    /// Station behind the address; without it, it is asked for by ARP.
    pub mac: Option<String>,
}

const fn default_answer_port() -> u16 {
    30_200
}

/// Packet memory.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// Packet buffers.
    pub buffers: usize,
    /// Bytes of data in each.
    pub data_room: usize,
    /// Descriptors of each queue.
    pub ring: usize,
    /// Size of its pages.
    #[serde(with = "Pages")]
    pub pages: PageSize,
    /// The NUMA node that it is on; else where the kernel puts it.
    pub numa_node: Option<u32>,
    /// Whether it must be locked.
    #[serde(with = "Locking")]
    pub lock: Lock,
}

/// How page sizes are written.
#[derive(Deserialize)]
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
#[derive(Deserialize)]
#[serde(remote = "Lock", rename_all = "lowercase")]
enum Locking {
    Try,
    Require,
}

/// One source.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// UDP destination port of its frames.
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

/// The built-in configuration: that of the demonstration, for the emulator's default addresses.
impl Default for TriggerConfig {
    fn default() -> Self {
        let emulator = EmulatorConfig::default();
        let peer = emulator.addresses;
        let stage = |name: &str| toml::Table::from_iter([("name".to_owned(), name.into())]);
        Self {
            trigger: Trigger::default(),
            reassembly: None,
            answer: Some(AnswerTo {
                to: SocketAddrV4::new(*peer.boards().socket.ip(), peer.decision_port),
                from_port: default_answer_port(),
                mac: None,
            }),
            memory: Memory::default(),
            streams: (0..u16::from(emulator.boards))
                .map(|board| Stream {
                    udp_port: peer.trigger_port + board,
                    group: None,
                })
                .collect(),
            stages: ["decompress", "build", "rings", "decide"].map(stage).into(),
        }
    }
}

impl TriggerConfig {
    /// Reads the configuration that `--config` names.
    pub fn read(path: &Path) -> Result<Self> {
        let read = || Self::from_toml(&std::fs::read_to_string(path)?);
        read().with_context(|| format!("--config {}", path.display()))
    }

    /// Reads a configuration; tables that it does not have are as built in.
    pub fn from_toml(text: &str) -> Result<Self> {
        let config: Self = toml::from_str(text)?;
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
            (1..=60_000_000).contains(&self.trigger.budget_us),
            "trigger.budget_us = {}: it must be 1 to 60000000 (a minute)",
            self.trigger.budget_us
        );
        self.memory.validate()?;
        ensure!(
            self.trigger.reassemble || self.reassembly.is_none(),
            "[reassembly] is for trigger.reassemble = true: set that, or leave the table out"
        );
        self.reassembly(1)?;
        if let Some(answer) = &self.answer {
            ensure!(
                answer.to.port() != 0,
                "answer.to = {}: the port is missing",
                answer.to
            );
            answer.station()?;
        }
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

    /// The bounds for each of so many ports, if fragments are to be reassembled. All ports together
    /// leave three quarters of the buffers to what else is under way.
    pub fn reassembly(&self, ports: usize) -> Result<Option<ReassemblyConfig>> {
        if !self.trigger.reassemble {
            return Ok(None);
        }
        let Reassembly {
            timeout_ms,
            datagrams,
            fragments,
            buffers,
        } = self.reassembly.unwrap_or_default();
        let most = self.memory.buffers / 4 / ports.max(1);
        let buffers = buffers.unwrap_or(ReassemblyConfig::default().buffers.min(most));
        ensure!(
            buffers <= most,
            "reassembly.buffers = {buffers}: with memory.buffers = {} it must be at most {most} for each \
             port",
            self.memory.buffers
        );
        let bounds = ReassemblyConfig {
            timeout: Ns(timeout_ms.saturating_mul(1_000_000)),
            datagrams,
            fragments,
            buffers,
        };
        bounds.check()?;
        Ok(Some(bounds))
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
            if stream.udp_port == 0 {
                bail!("[[stream]] {id}: udp_port must not be 0");
            }
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
        let mut env = StageEnv::new(self.streams.len());
        env.memory = memory;
        env.under_way += kept;
        env.spread = spread;
        let pipeline = StageRegistry::builtin().pipeline(&self.stages, &mut env);
        Ok((pipeline.context("[[stage]]")?, env))
    }
}

fn decides(stage: &toml::Table) -> bool {
    stage.get("name") == Some(&"decide".into())
}

impl Memory {
    fn validate(&self) -> Result<()> {
        let &Self {
            buffers,
            data_room,
            ring,
            numa_node,
            ..
        } = self;
        ensure!(
            (1024..=1 << 22).contains(&buffers),
            "memory.buffers = {buffers}: it must be 1024 to 4194304"
        );
        ensure!(
            (256..=65_536).contains(&data_room),
            "memory.data_room = {data_room}: it must be 256 to 65536 bytes"
        );
        ensure!(
            (64..=65_536).contains(&ring),
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

impl AnswerTo {
    /// The station behind the address, if it is configured.
    pub fn station(&self) -> Result<Option<MacAddr>> {
        let parse = |mac: &String| {
            mac.parse::<MacAddr>()
                .with_context(|| format!("answer.mac = `{mac}`"))
        };
        self.mac.as_ref().map(parse).transpose()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use pollux_mempool::RegionError;

    use super::*;

    #[test]
    fn the_built_in_configuration_is_valid() {
        TriggerConfig::default().validate().unwrap();
        assert_eq!(TriggerConfig::from_toml("").unwrap().streams.len(), 4);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| format!("{:#}", TriggerConfig::from_toml(text).unwrap_err());
        assert!(error("[trigger]\nbugdet_us = 5").contains("unknown field `bugdet_us`"));
        assert!(error("[trigger]\nbudget_us = 0").contains("1 to 60000000"));
        assert!(error("stream = []").contains("1 to 16"));
        let twice = error("[[stream]]\nudp_port = 7\n[[stream]]\nudp_port = 7");
        assert!(
            twice.contains("UDP port 7 leads to stream 0 and to stream 1"),
            "{twice}"
        );
        assert!(error("[answer]\nto = \"nowhere\"").contains("invalid"));
        assert!(error("[answer]\nto = \"1.2.3.4:5\"\nmac = \"x\"").contains("answer.mac = `x`"));
        assert!(error("[memory]\nbuffers = 1").contains("1024 to 4194304"));
        let pages = error("[memory]\npages = \"3M\"");
        assert!(
            pages.contains("`3M`") && pages.contains("`auto`, `4K`, `2M`, `1G`"),
            "{pages}"
        );
        assert!(error("[memory]\nlock = true").contains("lock = true"));
        assert!(error("[reassembly]").contains("trigger.reassemble = true"));
        let reassembly = |bounds: &str| {
            error(&format!(
                "[trigger]\nreassemble = true\n[reassembly]\n{bounds}"
            ))
        };
        assert!(reassembly("timeout_ms = 0").contains("timeout_ms = 0: it must be 1 to 60000"));
        assert!(reassembly("fragments = 2000").contains("2 to 1024"));
        assert!(reassembly("buffers = 4097").contains("at most 4096 for each port"));
        assert!(error("[memory]\nlock = \"never\"").contains("`try` or `require`"));
        assert!(error("[memory]\nnuma_node = -1").contains("-1"));
    }

    /// Each block of docs/operations.md that has stages, as it stands there.
    #[test]
    fn what_the_documents_say_about_stages_is_so() {
        let page = include_str!("../../../docs/operations.md");
        let (_, told) = page
            .split_once("### What the other stages can be told")
            .unwrap();
        let (told, _) = told.split_once("## 5.").unwrap();
        let indented = |text: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix("    "));
            lines.collect::<Vec<_>>().join("\n")
        };
        let (build, merge) = told.split_once("In the place of `build`").unwrap();
        let (build, merge) = (indented(build), indented(merge));
        let stage = |config: &TriggerConfig, name: &str| {
            let mut stages = config.stages.iter();
            stages.position(|stage| stage.get("name") == Some(&name.into()))
        };
        let mut config = TriggerConfig::from_toml(&build).unwrap();
        let place = stage(&config, "build").unwrap();
        let other: toml::Table = toml::from_str(&merge).unwrap();
        config.stages[place] = other["stage"][0].as_table().unwrap().clone();
        assert_eq!(stage(&config, "merge"), Some(place));
        config.validate().unwrap();
        // A word that there is not would have been refused.
        config.stages[place].insert("windows".into(), 1.into());
        assert!(config.validate().is_err());
    }

    #[test]
    fn a_node_without_memory_is_refused_with_those_that_have_some() {
        let error = TriggerConfig::from_toml("[memory]\nnuma_node = 900").unwrap_err();
        assert!(matches!(
            error.downcast_ref(),
            Some(RegionError::NoSuchNode { node: 900, .. })
        ));
        let text = format!("{error:#}");
        assert!(
            text.contains("memory.numa_node = 900") && text.contains("nodes with memory: 0"),
            "{text}"
        );
    }

    #[test]
    fn what_the_documents_say_about_fragments_is_so() {
        let page = include_str!("../../../docs/operations.md");
        let (_, told) = page.split_once("### Datagrams in fragments").unwrap();
        let (told, _) = told.split_once("## 5.").unwrap();
        let lines = told.lines().filter_map(|line| line.strip_prefix("    "));
        let block = lines.collect::<Vec<_>>().join("\n");
        let config = TriggerConfig::from_toml(&block).unwrap();
        let bounds = config.reassembly(1).unwrap();
        assert_eq!(bounds, Some(ReassemblyConfig::default()));
        let left_out = TriggerConfig::from_toml("[trigger]\nreassemble = true").unwrap();
        assert_eq!(left_out.reassembly(1).unwrap(), bounds);
    }

    #[test]
    fn fragments_have_a_quarter_of_the_buffers_at_most() {
        let buffers = |text: &str, ports| {
            let config = TriggerConfig::from_toml(text).unwrap();
            config
                .reassembly(ports)
                .unwrap()
                .map(|bounds| bounds.buffers)
        };
        let on = "[trigger]\nreassemble = true\n";
        assert_eq!(buffers("", 1), None);
        assert_eq!(buffers(on, 1), Some(1024));
        assert_eq!(buffers(on, 8), Some(512));
        let few = format!("{on}[memory]\nbuffers = 1024");
        assert_eq!(buffers(&few, 1), Some(256));
        let chosen = format!("{on}[reassembly]\nbuffers = 2048");
        assert_eq!(buffers(&chosen, 2), Some(2048));
        let config = TriggerConfig::from_toml(&chosen).unwrap();
        assert!(config.reassembly(3).is_err());
    }

    #[test]
    fn memory_is_what_the_file_asks_for() {
        let text = "[memory]\nbuffers = 2048\npages = \"4K\"\nnuma_node = 0\nlock = \"require\"";
        let pool = TriggerConfig::from_toml(text).unwrap().memory.pool();
        assert_eq!((pool.buffers, pool.data_room), (2048, 2048));
        assert_eq!(
            (pool.pages, pool.numa_node, pool.lock),
            (PageSize::Kib4, Some(0), Lock::Require)
        );
    }
}
