//! What a scheduler is told at its start.

use crate::message::MAX_PACK;
use crate::time::Time;
use crate::topology::{Feeders, Topology};

/// Most MEPs that may be undecided at a time.
pub const MAX_IN_FLIGHT: usize = 1 << 20;

/// What happens when the next column has no free buffer (thesis, register 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The column is passed.
    #[default]
    Skip,
    /// The scheduler waits for the column.
    Wait,
}

/// How the next column is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// The columns come in turn.
    #[default]
    Turns,
    /// Each column gets a share of the events by its weight: that which is furthest behind its
    /// share is next.
    Weights(Box<[u16]>),
    /// The column with most free buffers is next.
    QueueLength,
}

/// How feeders learn of the receive buffer of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The message goes from feeder to feeder: they transfer one after the other.
    #[default]
    Ring,
    /// The node gets the message, and asks the feeders for the fragments that it has credit for
    /// (`node::Node::with_credits`): receivers limit the traffic, as the builder units of CMS and
    /// the data collection of ATLAS do, and the grants of Homa.
    Credits,
    /// A barrel shifter, as that of LHCb Run 3: in each slot all feeders transfer at once, each to
    /// another node. Messages are not bypassed.
    Slots {
        /// A slot begins when all transfers of the one before are complete. Otherwise a feeder goes
        /// on by itself.
        barrier: bool,
    },
    /// All feeders get the message at once, and transfer at once: no flow control, for comparison.
    /// Messages are not bypassed, and their return is not waited for.
    None,
}

/// How long an answer is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timeouts {
    /// As the round trips that were observed suggest ([`Rtt`](crate::rtt::Rtt)), at least as
    /// configured. Few MEPs are sent again at a time, more as answers come.
    #[default]
    Observed,
    /// As configured; what was not answered is sent again at once, as the gateware does.
    Constant,
}

/// A scheduler that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Not one weight for each column.
    #[error("{found} weights for {columns} columns: each column needs one")]
    Weights {
        /// Weights.
        found: usize,
        /// Columns.
        columns: usize,
    },
    /// A weight of 0.
    #[error("column {0} has weight 0: it would never get an event; exclude its nodes instead")]
    NoWeight(usize),
    /// Not one partition for each column, or partitions without a column.
    #[error(
        "partitions {found:?} of {columns} columns: each column needs one, from 0 without a gap"
    )]
    Partitions {
        /// Columns that have a partition.
        found: usize,
        /// Columns.
        columns: usize,
    },
    /// Too few or too many events in a MEP.
    #[error("{0} events in a MEP: there may be 1 to {MAX_PACK}; set `pack`")]
    Pack(u16),
    /// Too few or too many MEPs at a time.
    #[error("{0} MEPs in flight: there may be 1 to {MAX_IN_FLIGHT}; set `in_flight`")]
    InFlight(usize),
    /// No waiting MEP, or more than in flight.
    #[error("{pending} MEPs may wait of {in_flight} in flight: set `pending` between 1 and that")]
    Pending {
        /// MEPs that may wait.
        pending: usize,
        /// MEPs in flight.
        in_flight: usize,
    },
    /// A time-out of zero.
    #[error("`{0}` is zero: no message could arrive in time")]
    NoTime(&'static str),
    /// No try.
    #[error("`tries` is 0: a node would be excluded at once; set 1 or more")]
    NoTry,
    /// Feeders that are not there.
    #[error(
        "`second` names feeder {0}, which the farm does not have: leave it out, or raise `feeders`"
    )]
    NoFeeder(u8),
}

/// Configuration of a scheduler.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of the run.
    pub run: u32,
    /// The farm.
    pub topology: Topology,
    /// How feeders learn of the receive buffer of an event.
    pub policy: Policy,
    /// What happens when the next column is busy.
    pub mode: Mode,
    /// How the next column is chosen.
    pub discipline: Discipline,
    /// The partition of each column, from 0; empty: one partition. Where two feeders share a row,
    /// two partitions in turn halve the traffic that passes each (thesis, figure III-8).
    pub partition_of: Vec<u8>,
    /// Events of a MEP, at most [`MAX_PACK`].
    pub pack: u16,
    /// How long an incomplete MEP waits for more triggers.
    pub pack_wait: Time,
    /// Most MEPs that are triggered and undecided: what the feeders have buffers for.
    pub in_flight: usize,
    /// Most MEPs of them that wait for a free receive buffer.
    pub pending: usize,
    /// Rounds of a flow control message in which busy feeders pass it on; 0: they never do. With
    /// [`Policy::Credits`], requests that a feeder without the data leaves unanswered.
    pub loops: u8,
    /// Whether time-outs follow the round trips.
    pub timeouts: Timeouts,
    /// A flow control message that has not returned after this time is sent again.
    pub ring_timeout: Time,
    /// An event that its node has not finished after this time is sent again.
    pub event_timeout: Time,
    /// A node that has not finished an event after so many times of `event_timeout` is excluded. A
    /// time-out that has doubled counts as many times as it is long, at most a quarter of them all.
    /// Times in which the node finished other events do not count, nor those in which it, the
    /// result node or a feeder of the event was not heard for half of the whole time.
    pub tries: u16,
    /// A node or a feeder that is silent for this time is excluded.
    pub silence: Time,
    /// Feeders with data that only the second transfer has.
    pub second: Feeders,
}

impl Config {
    /// Columns in turn, busy ones passed, one event a MEP, no bypass; time-outs of 10 ms, silence
    /// of 100 ms, 4 tries.
    #[must_use]
    pub fn new(run: u32, topology: Topology) -> Self {
        Self {
            run,
            second: Feeders::first(topology.feeders()),
            topology,
            policy: Policy::Ring,
            mode: Mode::Skip,
            discipline: Discipline::Turns,
            partition_of: Vec::new(),
            pack: 1,
            pack_wait: Time::from_ns(1_000_000),
            in_flight: 4096,
            pending: 1024,
            loops: 0,
            timeouts: Timeouts::Observed,
            ring_timeout: Time::from_ns(10_000_000),
            event_timeout: Time::from_ns(10_000_000),
            tries: 4,
            silence: Time::from_ns(100_000_000),
        }
    }

    /// Whether the slots of the barrel shifter are separated.
    pub(super) fn has_barrier(&self) -> bool {
        self.policy == Policy::Slots { barrier: true }
    }

    /// A feeder or a result node that is silent for so long may be dead: events are not overdue.
    pub(super) fn blame_window(&self, event_timeout: Time) -> Time {
        let tries = u64::from(self.tries / 2).max(1);
        Time::from_ps(event_timeout.ps().saturating_mul(tries))
    }

    /// How many tries a time-out counts for that is so many times as long as `event_timeout`. One
    /// fragment that is lost while time-outs are long says nothing of the node.
    pub(super) fn blame(&self, periods: u64) -> u16 {
        let most = (self.tries / 4).max(1);
        u16::try_from(periods).map_or(most, |periods| periods.min(most))
    }

    /// Checks what the types do not.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let columns = self.topology.columns();
        if let Discipline::Weights(weights) = &self.discipline {
            let found = weights.len();
            if found != columns {
                return Err(ConfigError::Weights { found, columns });
            }
            if let Some(column) = weights.iter().position(|&weight| weight == 0) {
                return Err(ConfigError::NoWeight(column));
            }
        }
        let partitions = &self.partition_of;
        let most = partitions.iter().max().copied().unwrap_or(0);
        if !partitions.is_empty()
            && (partitions.len() != columns || !(0..most).all(|p| partitions.contains(&p)))
        {
            let found = partitions.len();
            return Err(ConfigError::Partitions { found, columns });
        }
        if !(1..=MAX_PACK).contains(&self.pack.into()) {
            return Err(ConfigError::Pack(self.pack));
        }
        let (pending, in_flight) = (self.pending, self.in_flight);
        if !(1..=MAX_IN_FLIGHT).contains(&in_flight) {
            return Err(ConfigError::InFlight(in_flight));
        }
        if !(1..=in_flight).contains(&pending) {
            return Err(ConfigError::Pending { pending, in_flight });
        }
        for (name, time) in [
            ("ring_timeout", self.ring_timeout),
            ("event_timeout", self.event_timeout),
            ("silence", self.silence),
        ] {
            if time == Time::ZERO {
                return Err(ConfigError::NoTime(name));
            }
        }
        if self.tries == 0 {
            return Err(ConfigError::NoTry);
        }
        let all = Feeders::first(self.topology.feeders());
        match self.second.without(all).next_from(0) {
            Some(feeder) => Err(ConfigError::NoFeeder(feeder)),
            None => Ok(()),
        }
    }
}
