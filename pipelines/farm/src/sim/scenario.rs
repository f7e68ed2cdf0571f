//! Scenarios: what is simulated, by name.

mod crossbar;
mod error;
mod ethernet;
mod run3;
mod thesis;

use super::policy::PolicyName;
use super::queue::Queue;
use super::settings::{Key, Kind, Settings};
use super::statistics::{Progress, Results};
use crate::time::Time;
pub use error::SimError;

/// What is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// A queue with Poisson arrivals and a fixed service time.
    Queue,
    /// A saturated crossbar.
    Crossbar,
    /// An Ethernet switch with bounded outputs.
    Ethernet,
    /// A fat tree of servers (LHCb Run 3).
    Run3,
    /// The farm of chapter V of the thesis.
    Thesis,
    /// The prototype of chapter IV of the thesis.
    Prototype,
}

const QUEUE: &[Key] = &[
    Key {
        name: "load",
        kind: Kind::Real(0.001, 0.999),
        default: "0.8",
        text: "arrival rate x service time",
    },
    Key {
        name: "service_ns",
        kind: Kind::Whole(1, 1_000_000_000),
        default: "465",
        text: "service time in ns",
    },
    Key {
        name: "events",
        kind: Kind::Whole(1, 1_000_000_000),
        default: "10000000",
        text: "customers",
    },
];

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Queue,
        Self::Crossbar,
        Self::Ethernet,
        Self::Run3,
        Self::Thesis,
        Self::Prototype,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Crossbar => "crossbar",
            Self::Ethernet => "ethernet",
            Self::Run3 => "run3",
            Self::Thesis => "thesis",
            Self::Prototype => "prototype",
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Queue => "one server, Poisson arrivals, fixed service time (M/D/1)",
            Self::Crossbar => "saturated crossbar without buffers, fragments of 1 us in the mean",
            Self::Ethernet => "Ethernet switch with a bounded queue at each output",
            Self::Run3 => "two-level fat tree with credits and D-mod-k routes (LHCb Run 3)",
            Self::Thesis => "24 feeders at a three-dimensional SCI torus (thesis, chapter V)",
            Self::Prototype => {
                "2 feeders and 12 nodes at an SCI torus of 2 x 8 (thesis, chapter IV)"
            }
        }
    }

    /// Its parameters.
    #[must_use]
    pub fn keys(self) -> &'static [Key] {
        match self {
            Self::Queue => QUEUE,
            Self::Crossbar => crossbar::KEYS,
            Self::Ethernet => ethernet::KEYS,
            Self::Run3 => run3::KEYS,
            Self::Thesis => thesis::THESIS,
            Self::Prototype => thesis::PROTOTYPE,
        }
    }

    /// Its policies, the default first.
    #[must_use]
    pub fn policies(self) -> &'static [PolicyName] {
        use PolicyName::{Credits, None, Ring, Slots};
        match self {
            Self::Queue => &[],
            Self::Crossbar => &[None, Ring, Credits, Slots],
            Self::Ethernet => &[Ring, Credits, Slots, None],
            Self::Run3 => &[Slots, Credits, Ring, None],
            Self::Thesis | Self::Prototype => &[Ring, None],
        }
    }

    /// The policy that runs: the given one, if the scenario has it, or the default.
    ///
    /// # Errors
    /// A policy that it has not.
    pub fn policy(self, given: Option<PolicyName>) -> Result<Option<PolicyName>, SimError> {
        let policies = self.policies();
        match given {
            Some(given) if !policies.contains(&given) => Err(SimError::Policy {
                given,
                scenario: self.name(),
                allowed: match policies {
                    [] => "no policies: leave it out".into(),
                    _ => policies
                        .iter()
                        .map(|p| p.name())
                        .collect::<Vec<_>>()
                        .join(", "),
                },
            }),
            Some(given) => Ok(Some(given)),
            None => Ok(policies.first().copied()),
        }
    }

    /// Runs it until its end, or until `watch`, which is called every few milliseconds, returns false.
    ///
    /// # Errors
    /// Settings that exclude each other, a policy that the scenario has not, and a simulated time
    /// beyond 64 bits of picoseconds.
    pub fn run(
        self,
        settings: &Settings,
        policy: Option<PolicyName>,
        seed: u64,
        watch: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Results, SimError> {
        let policy = self.policy(policy)?;
        let results = match (self, policy) {
            (Self::Crossbar, Some(policy)) => crossbar::run(settings, policy, seed, watch)?,
            (Self::Ethernet, Some(policy)) => ethernet::run(settings, policy, seed, watch),
            (Self::Run3, Some(policy)) => run3::run(settings, policy, seed, watch)?,
            (Self::Thesis, Some(policy)) => thesis::thesis(settings, policy, seed, watch)?,
            (Self::Prototype, Some(policy)) => thesis::prototype(settings, policy, seed, watch)?,
            (_, _) => {
                let queue = Queue {
                    load: settings.real("load").unwrap_or_default(),
                    service: Time::from_ns(settings.whole("service_ns")),
                    customers: settings.whole("events"),
                };
                queue.run(seed, watch)
            }
        };
        if results.over_time {
            return Err(SimError::OverTime);
        }
        Ok(results)
    }
}
