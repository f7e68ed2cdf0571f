//! Plan of a run: the checked configuration, before anything is opened.

use anyhow::{Result, ensure};
use pollux_app::{Cpus, Failure, ReportOptions, ReportOutputs, place_loops};
use pollux_farm::carrier::{Damage, ETHERNET};
use pollux_farm::role::Address;
use pollux_farm::scheduler::{self, Mode, Policy, Scheduler};
use pollux_farm::time::Time;
use pollux_farm::topology::{Feeders, Topology};
use pollux_farm::wire::HEADER;
use pollux_farm::wire::payload::{padded, table_len};
use pollux_farm::{feeder, node, results};
use pollux_mempool::PoolConfig;
use pollux_switch::SwitchConfig;

use super::asked::Asked;
use super::config::{FarmConfig, SwitchTable};
use super::kill::Kill;
use super::layout::{self, Layout};
use super::options::{ModeName, PolicyName, RunOptions};
use super::rest::Rest;
use super::shares::Share;
use super::triggers::Triggers;

/// Number of the run in messages.
const RUN: u32 = 1;

/// Least data room of a packet buffer: messages to one member share a frame, as the fragments of
/// twelve feeders.
const LEAST_ROOM: usize = 2496;

/// The same, of ports: AF_XDP takes buffers of 2048 B, of which 128 are headroom.
const PORT_ROOM: usize = 2048 - 128;

/// Bytes that XDP keeps free in front of a frame.
const XDP_HEADROOM: usize = 256;

/// Longest frame of Ethernet, without frame check sequence.
const PORT_FRAME: usize = 1514;

/// Most bytes of a frame.
const MAX_FRAME: usize = 1 << 19;

/// Free buffers that a loop keeps.
pub const CACHE: usize = 256;

/// Bytes of the buffer of an output of the switch between processes, where none is configured: more
/// than flow control leaves in the network.
const OUTPUT: usize = 512 << 10;

/// Shortest frame of the farm that the switch's buffers are counted for.
const SHORTEST: usize = ETHERNET + HEADER;

/// Bytes of fragments that stay in the second-level cache of a core, beside what else a loop needs.
const CACHED: usize = 512 << 10;

/// Bytes of a packet buffer's header.
const MBUF: usize = 128;

/// Longest time-out: an hour.
const LONGEST_US: u64 = 3_600_000_000;

/// A valid run.
pub struct Plan {
    pub asked: Asked,
    pub config: FarmConfig,
    pub topology: Topology,
    pub layout: Layout,
    /// The members of each loop; of each process, where there are several.
    pub shares: Vec<Share>,
    /// The CPU of each loop, that of the switch last.
    pub cpus: Vec<Option<usize>>,
    /// The switch, if there is one.
    pub switch: Option<SwitchConfig>,
    /// Bytes of a slot.
    pub slot: u32,
    pub reports: ReportOutputs,
}

impl Plan {
    /// Checks a run.
    ///
    /// # Errors
    /// What is wrong.
    pub fn of(options: &RunOptions, config: FarmConfig) -> Result<Self> {
        let layout = options.processes.map_or(Layout::Loops, Layout::Processes);
        let reports = reports(&options.report)?;
        let cores = Cpus::of(&options.cores);
        Self::new(options.asked(), config, layout, &cores, reports)
    }

    /// Checks a configuration. `cores` are the CPUs of the loops.
    ///
    /// # Errors
    /// What is wrong.
    pub fn new(
        asked: Asked,
        config: FarmConfig,
        layout: Layout,
        cores: &[usize],
        reports: ReportOutputs,
    ) -> Result<Self> {
        let farm = &config.farm;
        let topology = Topology::regular(farm.feeders, farm.columns, farm.nodes, farm.buffers)?;
        let slot = slot(&config)?;
        let switch = match (config.switch.map(switch).transpose()?, &layout) {
            (None, Layout::Processes(_) | Layout::Switch) => Some(SwitchConfig {
                buffer: OUTPUT,
                ..SwitchConfig::default()
            }),
            (_, Layout::Part(_)) => None,
            (switch, _) => switch,
        };
        let shares = layout::deal(&layout, &config, &topology, cores, switch.is_some())?;
        let cpus = match layout {
            // The loop of a process that is given no CPU gives way to others.
            Layout::Part(_) | Layout::Switch if cores.is_empty() => vec![None],
            Layout::Part(_) | Layout::Switch => place_loops(cores, &[("loop", 1)])?,
            Layout::Loops | Layout::Processes(_) => {
                let switches = usize::from(switch.is_some());
                place_loops(cores, &[("loop", shares.len()), ("switch", switches)])?
            }
        };
        Damage::new(asked.corrupt, asked.seed)
            .map_err(|error| anyhow::anyhow!("--corrupt: {error}"))?;
        let times = &config.times;
        for (name, time) in [
            ("timeout_us", times.timeout_us),
            ("silence_us", times.silence_us),
            ("pack_wait_us", times.pack_wait_us),
            ("start_us", times.start_us),
        ] {
            ensure!(
                (1..=LONGEST_US).contains(&time),
                "[times] {name}: {time} us; set 1 to {LONGEST_US}"
            );
        }
        let plan = Self {
            asked,
            config,
            topology,
            layout,
            shares,
            cpus,
            switch,
            slot,
            reports,
        };
        plan.check_kills()?;
        // What the roles refuse is refused before anything is opened.
        Scheduler::new(plan.scheduler(), Time::ZERO)?;
        plan.triggers()?;
        Ok(plan)
    }

    fn check_kills(&self) -> Result<()> {
        for kill in &self.asked.kill {
            let (kind, number, of) = match kill.member {
                Address::Node(node) => ("node", usize::from(node), self.topology.nodes()),
                Address::Feeder(feeder) => ("feeder", feeder.into(), self.topology.feeders()),
                Address::Scheduler | Address::Results => continue,
            };
            ensure!(
                number < of,
                "--kill {kind}:{number}: the farm has {of}, the first one is 0"
            );
            let events = self.asked.events.unwrap_or(u64::MAX);
            ensure!(
                kill.event < events,
                "--kill {kind}:{number}@{}: the run has {events} events, the first one is 0",
                kill.event
            );
        }
        Ok(())
    }

    /// The event at which a member dies.
    pub fn death(&self, member: Address) -> Option<u64> {
        let kills = self.asked.kill.iter();
        let its = kills.filter(|kill| kill.member == member);
        its.map(|&Kill { event, .. }| event).min()
    }

    /// What the loops do when there is nothing to do: where they share CPUs, they give way.
    pub fn rest(&self) -> Rest {
        match self.layout {
            _ if self.cpus.iter().all(Option::is_some) => Rest::Never,
            Layout::Loops => Rest::Yield,
            _ => Rest::Sleep,
        }
    }

    /// CPUs of the loops.
    pub fn cpus(&self) -> Vec<usize> {
        self.cpus.iter().copied().flatten().collect()
    }

    /// The loop of a member.
    pub fn loop_of(&self, member: Address) -> usize {
        let has = |share: &Share| share.has(member);
        self.shares.iter().position(has).unwrap_or_default()
    }

    /// All members.
    pub fn members(&self) -> impl Iterator<Item = Address> {
        let feeders = (0..self.topology.feeders()).map(|n| Address::Feeder(n as u8));
        let nodes = (0..self.topology.nodes()).map(|n| Address::Node(n as u16));
        let ends = [Address::Scheduler, Address::Results];
        ends.into_iter().chain(feeders).chain(nodes)
    }

    /// Configuration of the scheduler.
    pub fn scheduler(&self) -> scheduler::Config {
        let traffic = &self.config.traffic;
        let (timeout, silence) = (self.timeout(), self.silence());
        scheduler::Config {
            policy: match traffic.policy {
                PolicyName::Ring => Policy::Ring,
                PolicyName::Credits => Policy::Credits,
                PolicyName::Slots => Policy::Slots {
                    barrier: traffic.barrier,
                },
                PolicyName::None => Policy::None,
            },
            mode: match traffic.mode {
                ModeName::Skip => Mode::Skip,
                ModeName::Wait => Mode::Wait,
            },
            pack: traffic.pack,
            pack_wait: micros(self.config.times.pack_wait_us),
            in_flight: self.in_flight(),
            pending: self.in_flight(),
            loops: traffic.bypass,
            ring_timeout: timeout,
            event_timeout: timeout,
            // A node that a busy machine does not run is given as long as one that is silent.
            tries: u16::try_from(silence.ps() / timeout.ps())
                .unwrap_or(u16::MAX)
                .max(4),
            silence,
            second: Feeders::NONE,
            ..scheduler::Config::new(RUN, self.topology.clone())
        }
    }

    /// Configuration of a feeder.
    pub fn feeder(&self, id: u8) -> feeder::Config {
        feeder::Config {
            run: RUN,
            id,
            slot: self.slot,
            in_flight: self.in_flight(),
            // Transfers are complete when they are handed to a queue.
            bypass_above: self.slot,
            beat: self.beat(),
        }
    }

    /// Configuration of a node.
    pub fn node(&self, id: u16) -> node::Config {
        node::Config {
            run: RUN,
            id,
            slot: self.slot,
            workers: 1,
            beat: self.beat(),
        }
    }

    /// Fragments that a node asks for at a time, if it does.
    pub fn credits(&self) -> Option<usize> {
        let traffic = &self.config.traffic;
        (traffic.policy == PolicyName::Credits).then_some(traffic.credits)
    }

    /// Configuration of the result node.
    pub fn results(&self) -> results::Config {
        results::Config {
            run: RUN,
            in_flight: self.in_flight(),
            beat: self.beat(),
        }
    }

    /// How long the scheduler waits for the first sign of life of all members.
    pub fn start(&self) -> Time {
        micros(self.config.times.start_us)
    }

    /// When events are triggered.
    pub fn triggers(&self) -> Result<Triggers> {
        let traffic = &self.config.traffic;
        Ok(match traffic.rate_hz {
            None => Triggers::AsManyAsPossible,
            Some(rate) => Triggers::at(traffic.triggers, rate, self.asked.seed)?,
        })
    }

    /// Damage of the messages that a loop sends.
    pub fn damage(&self, number: usize) -> Option<Damage> {
        let probability = self.asked.corrupt;
        let seed = self.asked.seed.wrapping_mul(layout::MAX_LOOPS as u64 + 1);
        let number = match &self.layout {
            // Loops of other processes have the same number, and other members.
            Layout::Part(share) => share.first(),
            _ => number,
        };
        let damage = Damage::new(probability, seed.wrapping_add(number as u64)).ok();
        damage.filter(|_| probability > 0.0)
    }

    /// Whether payloads have a CRC.
    pub fn crc(&self) -> bool {
        self.config
            .traffic
            .crc
            .unwrap_or(self.asked.corrupt > 0.0 || self.config.ports.is_some())
    }

    /// Most bytes of a frame; over a port no more than Ethernet's, unless fragments need more.
    pub fn max_frame(&self) -> usize {
        match self.layout {
            Layout::Loops => self.room(),
            _ => self.longest().max(PORT_FRAME),
        }
    }

    /// Bytes of the longest frame of a fragment.
    fn longest(&self) -> usize {
        ETHERNET + HEADER + self.slot as usize
    }

    /// Checks that a port carries the longest frame: a fragment.
    ///
    /// # Errors
    /// One that does not.
    pub fn expect_frames_of(&self, bytes: usize, port: &str) -> Result<()> {
        let needed = self.longest();
        ensure!(
            needed <= bytes,
            "port {port}: it carries frames of {bytes} B, and fragments need {needed} B; set a smaller \
             `fragment`, `pack` or `slot`, or `mtu=` of the port"
        );
        Ok(())
    }

    /// Frames in the ring of a queue: it holds all that can be under way; of a port of a process, as
    /// many of them as devices have room for.
    pub fn ring(&self) -> usize {
        let fragments = self.topology.descriptors() * self.topology.feeders();
        let (least, most) = match self.layout {
            Layout::Loops => (1024, 1 << 16),
            Layout::Processes(_) | Layout::Part(_) => (1024, 4096),
            Layout::Switch => (1024, 1024),
        };
        fragments
            .saturating_mul(2)
            .next_power_of_two()
            .clamp(least, most)
    }

    /// Frames that wait in front of a port: rings between loops hold all that can be under way, and
    /// sockets of the kernel do not.
    pub fn backlog(&self) -> usize {
        match self.layout {
            Layout::Part(_) => self.ring(),
            _ => 0,
        }
    }

    /// The packet buffers: for all receive buffers with all their fragments, as many under way,
    /// the caches, and messages to all members.
    pub fn pool(&self) -> PoolConfig {
        let fragments = self.topology.descriptors() * self.topology.feeders();
        let members = self.members().count();
        let loops = self.shares.len();
        // A switch floods what is for a member that it has not heard, a copy to each.
        let flooded = if self.switch.is_some() {
            members * members
        } else {
            0
        };
        let ports = match (&self.layout, &self.switch) {
            (Layout::Loops, _) => 0,
            // Some outputs may be full.
            (_, Some(switch)) => loops * 2 * self.ring() + 4 * switch.buffer / SHORTEST,
            _ => 3 * self.ring(),
        };
        let enough = 2 * fragments + (loops + 1) * (2 * CACHE + members) + flooded + ports + 1024;
        PoolConfig {
            buffers: self.config.loops.packet_buffers.unwrap_or(enough),
            data_room: self.room(),
            ..PoolConfig::default()
        }
    }

    fn room(&self) -> usize {
        let bytes = match self.layout {
            Layout::Loops => self.longest().max(LEAST_ROOM),
            _ => (self.longest() + XDP_HEADROOM).max(PORT_ROOM),
        };
        bytes.next_multiple_of(64)
    }

    /// Whether messages or members may be lost: on purpose, in a switch, or with a process.
    fn is_lossy(&self) -> bool {
        let asked = self.asked.corrupt > 0.0 || !self.asked.kill.is_empty();
        let is_whole = matches!(self.layout, Layout::Loops);
        asked || self.switch.is_some() || !is_whole
    }

    /// MEPs in flight. Small tables stay in the CPU's cache; where messages are lost, the other
    /// events of a time-out have to fit.
    fn in_flight(&self) -> usize {
        let buffers = self.topology.descriptors();
        let least = if self.is_lossy() { 4096 } else { 256 };
        let default = buffers.saturating_mul(4).next_power_of_two().max(least);
        let most = scheduler::MAX_IN_FLIGHT;
        self.config.traffic.in_flight.unwrap_or(default.min(most))
    }

    /// Undecided MEPs up to which events are triggered as fast as the farm takes them: as many as have
    /// fragments that stay in the caches of the loops' cores, or some for each column and loop, so that
    /// all have work; where messages are lost, others do not wait for those of a time-out.
    pub fn window(&self) -> u64 {
        if self.is_lossy() {
            return u64::MAX;
        }
        let fragment = (ETHERNET + HEADER + self.slot as usize).next_multiple_of(64) + MBUF;
        let cached = self.shares.len() * CACHED / (fragment * self.topology.feeders());
        let least = 4 * self.topology.columns() * self.shares.len();
        cached.max(least) as u64
    }

    fn timeout(&self) -> Time {
        micros(self.config.times.timeout_us)
    }

    /// Time between two signs of life.
    fn beat(&self) -> Time {
        let silence = Time::from_ps(self.silence().ps() / 4);
        self.timeout().min(silence).max(Time::from_ps(1))
    }

    fn silence(&self) -> Time {
        micros(self.config.times.silence_us)
    }
}

/// Destinations of the report.
pub fn reports(options: &ReportOptions) -> Result<ReportOutputs> {
    options.outputs().map_err(|failure| match failure {
        Failure::Usage(error) | Failure::Run(error) => error,
    })
}

/// A time in microseconds.
pub fn micros(us: u64) -> Time {
    Time::from_ns(us.saturating_mul(1000))
}

/// The switch of a run.
fn switch(table: SwitchTable) -> Result<SwitchConfig> {
    let rate = table.rate_gbps * 1e9;
    ensure!(
        rate.is_finite() && SwitchConfig::RATES.contains(&(rate as u64)),
        "[switch] rate_gbps: {}; set 1e-6 to 1000",
        table.rate_gbps
    );
    let config = SwitchConfig {
        rate: Some(rate as u64),
        buffer: table.buffer,
        ..SwitchConfig::default()
    };
    config.check()?;
    Ok(config)
}

/// Bytes of a slot: what a transfer needs, or as configured.
fn slot(config: &FarmConfig) -> Result<u32> {
    let traffic = &config.traffic;
    let (pack, fragment) = (traffic.pack, traffic.fragment);
    let data = padded(fragment).and_then(|bytes| bytes.checked_mul(pack.into()));
    let needed = data.and_then(|bytes| bytes.checked_add(table_len(pack)));
    let most = (MAX_FRAME - ETHERNET - HEADER) as u32;
    let fits = needed.filter(|&needed| needed <= most);
    let Some(needed) = fits else {
        anyhow::bail!(
            "fragments of {fragment} B, {pack} in a pack: a frame holds {most} B of them; set a \
             smaller `fragment` or `pack`"
        );
    };
    let slot = traffic.slot.unwrap_or(needed);
    ensure!(
        needed <= slot && slot <= most,
        "a slot of {slot} B: {pack} fragments of {fragment} B need {needed} B, a frame holds {most} B; \
         set `slot` between them"
    );
    Ok(slot)
}
