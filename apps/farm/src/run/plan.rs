//! Plan of a run: the checked configuration, before anything is opened.

use anyhow::{Result, ensure};
use pollux_app::{Cpus, ReportOutputs, place_loops};
use pollux_farm::carrier::{Damage, ETHERNET};
use pollux_farm::role::Address;
use pollux_farm::scheduler::{self, Mode, Policy, Scheduler};
use pollux_farm::time::Time;
use pollux_farm::topology::{Feeders, Topology};
use pollux_farm::wire::HEADER;
use pollux_farm::wire::payload::{padded, table_len};
use pollux_farm::{feeder, node, results};
use pollux_mempool::PoolConfig;
use pollux_pmd::lcore;
use pollux_switch::SwitchConfig;

use super::config::{FarmConfig, SwitchTable};
use super::kill::Kill;
use super::options::{ModeName, PolicyName, RunOptions};
use super::triggers::Triggers;

/// Number of the run in messages.
const RUN: u32 = 1;

/// Most loops: each pair of them has a queue of the port.
const MAX_LOOPS: usize = 8;

/// Least data room of a packet buffer: messages to one member share a frame.
const LEAST_ROOM: usize = 1536;

/// Most bytes of a frame.
const MAX_FRAME: usize = 1 << 19;

/// Free buffers that a loop keeps.
pub const CACHE: usize = 256;

/// Bytes of fragments that stay in the second-level cache of a core, beside what else a loop needs.
const CACHED: usize = 512 << 10;

/// Bytes of a packet buffer's header.
const MBUF: usize = 128;

/// Longest time-out: an hour.
const LONGEST_US: u64 = 3_600_000_000;

/// A valid run.
pub struct Plan<'a> {
    pub options: &'a RunOptions,
    pub config: FarmConfig,
    pub topology: Topology,
    /// The members of each loop.
    pub shares: Vec<Share>,
    /// The CPU of each loop, that of the switch last.
    pub cpus: Vec<Option<usize>>,
    /// The switch, if there is one.
    pub switch: Option<SwitchConfig>,
    /// Bytes of a slot.
    pub slot: u32,
    pub reports: ReportOutputs,
}

/// The members of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    pub scheduler: bool,
    pub results: bool,
    pub feeders: std::ops::Range<usize>,
    pub nodes: std::ops::Range<usize>,
}

/// Deals the members to loops: neighbours of the ring to one loop, and each loop feeders and nodes,
/// so that the loops have equal work.
fn shares(feeders: usize, nodes: usize, loops: usize) -> Vec<Share> {
    let part = |of: usize, n: usize| of * n / loops..of * (n + 1) / loops;
    let share = |n| Share {
        scheduler: n == 0,
        results: n + 1 == loops,
        feeders: part(feeders, n),
        nodes: part(nodes, n),
    };
    (0..loops).map(share).collect()
}

impl<'a> Plan<'a> {
    /// Checks a configuration.
    ///
    /// # Errors
    /// What is wrong.
    pub fn new(options: &'a RunOptions, config: FarmConfig) -> Result<Self> {
        let farm = &config.farm;
        let topology = Topology::regular(farm.feeders, farm.columns, farm.nodes, farm.buffers)?;
        let slot = slot(&config)?;
        let members = 2 + topology.feeders() + topology.nodes();
        let cores = Cpus::of(&options.cores);
        let cpus = lcore::allowed_cpus().len();
        let default = if cores.is_empty() { cpus } else { cores.len() };
        let switch = config.switch.map(switch).transpose()?;
        let switches = usize::from(switch.is_some());
        let default = default.saturating_sub(switches);
        let loops = config.loops.loops.map_or(default, usize::from);
        let loops = loops.clamp(1, MAX_LOOPS.min(members));
        let cpus = place_loops(&cores, &[("loop", loops), ("switch", switches)])?;
        Damage::new(options.corrupt, options.seed)
            .map_err(|error| anyhow::anyhow!("--corrupt: {error}"))?;
        let times = &config.times;
        for (name, time) in [
            ("timeout_us", times.timeout_us),
            ("silence_us", times.silence_us),
            ("pack_wait_us", times.pack_wait_us),
        ] {
            ensure!(
                (1..=LONGEST_US).contains(&time),
                "[times] {name}: {time} us; set 1 to {LONGEST_US}"
            );
        }
        let plan = Self {
            shares: shares(topology.feeders(), topology.nodes(), loops),
            reports: match options.report.outputs() {
                Ok(outputs) => outputs,
                Err(pollux_app::Failure::Usage(error) | pollux_app::Failure::Run(error)) => {
                    return Err(error);
                }
            },
            options,
            topology,
            cpus,
            switch,
            slot,
            config,
        };
        plan.check_kills()?;
        // What the roles refuse is refused before anything is opened.
        Scheduler::new(plan.scheduler(), Time::ZERO)?;
        plan.triggers()?;
        Ok(plan)
    }

    fn check_kills(&self) -> Result<()> {
        for kill in &self.options.kill {
            let (kind, number, of) = match kill.member {
                Address::Node(node) => ("node", usize::from(node), self.topology.nodes()),
                Address::Feeder(feeder) => ("feeder", feeder.into(), self.topology.feeders()),
                Address::Scheduler | Address::Results => continue,
            };
            ensure!(
                number < of,
                "--kill {kind}:{number}: the farm has {of}, the first one is 0"
            );
            let events = self.options.events.unwrap_or(u64::MAX);
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
        let kills = self.options.kill.iter();
        let its = kills.filter(|kill| kill.member == member);
        its.map(|&Kill { event, .. }| event).min()
    }

    /// Whether loops share CPUs.
    pub fn shares_cpus(&self) -> bool {
        self.cpus.iter().any(Option::is_none)
    }

    /// CPUs of the loops.
    pub fn cpus(&self) -> Vec<usize> {
        self.cpus.iter().copied().flatten().collect()
    }

    /// The loop of a member.
    pub fn loop_of(&self, member: Address) -> usize {
        let has = |share: &Share| match member {
            Address::Scheduler => share.scheduler,
            Address::Results => share.results,
            Address::Feeder(feeder) => share.feeders.contains(&feeder.into()),
            Address::Node(node) => share.nodes.contains(&node.into()),
        };
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

    /// When events are triggered.
    pub fn triggers(&self) -> Result<Triggers> {
        let traffic = &self.config.traffic;
        Ok(match traffic.rate_hz {
            None => Triggers::AsManyAsPossible,
            Some(rate) => Triggers::at(traffic.triggers, rate, self.options.seed)?,
        })
    }

    /// Damage of the messages that a loop sends.
    pub fn damage(&self, number: usize) -> Option<Damage> {
        let probability = self.options.corrupt;
        let seed = self.options.seed.wrapping_mul(MAX_LOOPS as u64 + 1);
        let damage = Damage::new(probability, seed.wrapping_add(number as u64)).ok();
        damage.filter(|_| probability > 0.0)
    }

    /// Whether payloads have a CRC.
    pub fn crc(&self) -> bool {
        self.config
            .traffic
            .crc
            .unwrap_or(self.options.corrupt > 0.0)
    }

    /// Most bytes of a frame.
    pub fn max_frame(&self) -> usize {
        self.room()
    }

    /// Frames in the ring of a queue: it holds all that can be under way.
    pub fn ring(&self) -> usize {
        let fragments = self.topology.descriptors() * self.topology.feeders();
        let (least, most) = (1024, 1 << 16);
        fragments
            .saturating_mul(2)
            .next_power_of_two()
            .clamp(least, most)
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
        let enough = 2 * fragments + (loops + 1) * (2 * CACHE + members) + flooded + 1024;
        PoolConfig {
            buffers: self.config.loops.packet_buffers.unwrap_or(enough),
            data_room: self.room(),
            ..PoolConfig::default()
        }
    }

    fn room(&self) -> usize {
        let bytes = ETHERNET + HEADER + self.slot as usize;
        bytes.next_multiple_of(64).max(LEAST_ROOM)
    }

    /// Whether messages or members are lost on purpose.
    fn is_lossy(&self) -> bool {
        self.options.corrupt > 0.0 || !self.options.kill.is_empty() || self.switch.is_some()
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

    /// Undecided MEPs up to which events are triggered as fast as the farm takes them: all that have
    /// a receive buffer, or as many as have fragments that stay in the caches of the loops' cores;
    /// where messages are lost, others do not wait for those of a time-out.
    pub fn window(&self) -> u64 {
        let fragment = (ETHERNET + HEADER + self.slot as usize).next_multiple_of(64) + MBUF;
        let cached = self.shares.len() * CACHED / (fragment * self.topology.feeders());
        let least = 2 * self.topology.columns();
        if self.is_lossy() {
            return u64::MAX;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_is_in_one_loop() {
        for (feeders, nodes) in [(24, 12), (1, 1), (64, 3), (5, 100)] {
            for loops in 1..=8 {
                let shares = shares(feeders, nodes, loops);
                let all = |range: fn(&Share) -> std::ops::Range<usize>| -> Vec<usize> {
                    shares.iter().flat_map(range).collect()
                };
                assert_eq!(all(|s| s.feeders.clone()), (0..feeders).collect::<Vec<_>>());
                assert_eq!(all(|s| s.nodes.clone()), (0..nodes).collect::<Vec<_>>());
                assert_eq!(shares.iter().filter(|s| s.scheduler).count(), 1);
                assert_eq!(shares.iter().filter(|s| s.results).count(), 1);
            }
        }
    }
}
