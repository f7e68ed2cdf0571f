//! Random configurations of a ring.

use pollux_farm::scheduler::{Config, ConfigError, Discipline, Mode, Timeouts};
use pollux_farm::time::Time;
use pollux_farm::topology::{Feeders, Topology};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::model::{FEEDERS, SLOTS};

/// Longer than any run.
const NEVER: Time = Time::from_ps(1 << 62);

/// A configuration.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) run: u32,
    pub(crate) columns: usize,
    pub(crate) column_of: Vec<u8>,
    pub(crate) buffers: usize,
    pub(crate) feeders: usize,
    pub(crate) wait: bool,
    pub(crate) discipline: Discipline,
    pub(crate) partition_of: Vec<u8>,
    pub(crate) loops: u8,
    pub(crate) pending: usize,
    /// Cycles after which a message is sent again.
    pub(crate) timeout: u32,
    pub(crate) slot: u16,
    pub(crate) bypass_above: u16,
    /// Source of triggers: 1 internal, 2 external, 3 by hand; and cycles between two.
    pub(crate) source: u32,
    pub(crate) period: u64,
    /// Cycles that a node takes.
    pub(crate) latency: u64,
    /// Of a thousand messages on a link, how many are lost, and damaged; of a thousand fragments, how
    /// many are five times as large.
    pub(crate) lost: u32,
    pub(crate) damaged: u32,
    pub(crate) large: u32,
    /// Cycles between commands; between lies of nodes. 0: none.
    pub(crate) commands: u64,
    pub(crate) lies: u64,
    /// Events' data that arrive late, of a thousand.
    pub(crate) late: u32,
}

impl Setting {
    /// A configuration by the random numbers of a seed.
    pub(crate) fn random(random: &mut Xoshiro256PlusPlus) -> Self {
        let columns = random.random_range(1..=32_usize);
        let nodes = random.random_range(1..=2 * columns.max(4));
        let column_of = (0..nodes)
            .map(|_| random.random_range(0..columns) as u8)
            .collect();
        let discipline = match random.random_range(0..4) {
            0 => Discipline::QueueLength,
            1 => Discipline::Weights((0..columns).map(|_| random.random_range(1..=100)).collect()),
            _ => Discipline::Turns,
        };
        let mut partition_of: Vec<u8> = (0..columns).map(|_| random.random_range(0..2)).collect();
        if random.random_bool(0.6) || !partition_of.contains(&0) {
            partition_of.clear();
        }
        let faulty = random.random_bool(0.5);
        let mut rate = |most| {
            if faulty {
                random.random_range(0..=most)
            } else {
                0
            }
        };
        let (lost, damaged) = (rate(3), rate(3));
        Self {
            run: random.random(),
            columns,
            column_of,
            buffers: random.random_range(1..=8),
            feeders: random.random_range(1..=FEEDERS),
            wait: random.random_bool(0.3),
            discipline,
            partition_of,
            loops: random.random_range(0..4),
            pending: random.random_range(1..=SLOTS),
            timeout: random.random_range(2_000..8_000),
            slot: random.random_range(200..600),
            bypass_above: random.random_range(64..400),
            source: random.random_range(1..=3),
            period: random.random_range(8..60),
            latency: random.random_range(50..1000),
            lost,
            damaged,
            large: random.random_range(0..50),
            commands: random.random_range(0..4) * 400,
            lies: random.random_range(0..4) * 200,
            late: random.random_range(0..30),
        }
    }

    /// Receive buffers of all nodes.
    pub(crate) fn descriptors(&self) -> usize {
        self.column_of.len() * self.buffers
    }

    /// The node of a receive buffer.
    pub(crate) fn node(&self, descriptor: usize) -> usize {
        descriptor % self.column_of.len()
    }

    /// The feeders of the farm, a bit each.
    pub(crate) fn members(&self) -> u32 {
        Feeders::first(self.feeders).0 as u32
    }

    /// The scheduler's configuration.
    pub(crate) fn scheduler(&self) -> anyhow::Result<Config> {
        let topology = Topology::new(self.feeders, self.columns, &self.column_of, self.buffers)?;
        let config = Config {
            mode: if self.wait { Mode::Wait } else { Mode::Skip },
            discipline: self.discipline.clone(),
            partition_of: self.partition_of.clone(),
            pack: 1,
            in_flight: SLOTS,
            pending: self.pending,
            loops: self.loops,
            timeouts: Timeouts::Constant,
            ring_timeout: Time::from_ps(self.timeout.into()),
            event_timeout: NEVER,
            silence: NEVER,
            ..Config::new(self.run, topology)
        };
        Ok::<_, ConfigError>(config).map_err(Into::into)
    }
}
