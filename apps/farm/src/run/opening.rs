//! Processes that have not opened their ports: how long the farm waits for them, and whether it can do without.

use std::fmt::{self, Display};
use std::time::{Duration, Instant};

use super::shares::Share;

/// A process that is stopped for so long is not waited for. One that is traced stands still for moments.
const STOPPED: Duration = Duration::from_secs(1);

/// Why a process is not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// It was killed by this signal.
    Killed(i32),
    /// It is stopped by a signal.
    Stopped,
    /// It has not opened its port in so long.
    Late(Duration),
}

/// The wait for the ports of all processes.
#[derive(Default)]
pub struct Opening {
    since: Option<Instant>,
    /// Longest wait.
    longest: Duration,
    /// Since when each process is stopped.
    stopped: Vec<Option<Instant>>,
}

impl Opening {
    /// Processes are started now, and waited for so long at most.
    pub fn begin(longest: Duration) -> Self {
        Self {
            since: Some(Instant::now()),
            longest,
            stopped: Vec::new(),
        }
    }

    /// Why a process that has no port is not waited for, if so; it is stopped by a signal now or not.
    pub fn absence(&mut self, number: usize, is_stopped: bool) -> Option<Absence> {
        if self.stopped.len() <= number {
            self.stopped.resize(number + 1, None);
        }
        let stopped = &mut self.stopped[number];
        if !is_stopped {
            *stopped = None;
        } else if stopped.get_or_insert_with(Instant::now).elapsed() >= STOPPED {
            return Some(Absence::Stopped);
        }
        let is_over = self.since.is_none_or(|at| at.elapsed() >= self.longest);
        is_over.then_some(Absence::Late(self.longest))
    }
}

impl Absence {
    /// What a user can do where the farm cannot do without the process.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Killed(_) => "start the run again",
            Self::Stopped => "start the run again, and stop no process before it has its port",
            Self::Late(_) => "look what it waits for, or raise `start_us` in [times]",
        }
    }
}

impl Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed(signal) => write!(f, "was killed by signal {signal}"),
            Self::Stopped => f.write_str("is stopped and has not opened its port"),
            Self::Late(time) => {
                write!(f, "has not opened its port in {} s", time.as_secs_f64())
            }
        }
    }
}

/// What a farm of all these members but those of one process, or of several, cannot do without.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    pub text: &'static str,
    has: fn(&Share) -> bool,
}

/// Members of which a farm needs one at least.
const NEEDS: [Need; 4] = [
    Need {
        text: "its scheduler and result node",
        has: |share| share.scheduler,
    },
    Need {
        text: "its scheduler and result node",
        has: |share| share.results,
    },
    Need {
        text: "a feeder",
        has: |share| !share.feeders.is_empty(),
    },
    Need {
        text: "a node",
        has: |share| share.nodes.first().is_some(),
    },
];

impl Need {
    /// What a farm lacks if it has these shares alone.
    pub fn unmet<'a>(shares: &(impl Iterator<Item = &'a Share> + Clone)) -> Option<Self> {
        let is_met = |need: &Self| shares.clone().any(need.has);
        NEEDS.into_iter().find(|need| !is_met(need))
    }

    /// Whether a share would meet it.
    pub fn is_met_by(&self, share: &Share) -> bool {
        (self.has)(share)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_process_is_waited_for_until_it_stands_or_time_is_over() {
        let mut opening = Opening::begin(Duration::from_hours(1));
        let began = Instant::now();
        assert_eq!(opening.absence(2, false), None);
        while opening.absence(2, true).is_none() {
            assert_eq!(opening.absence(0, false), None);
            assert!(began.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(began.elapsed() >= STOPPED);
        assert_eq!(opening.absence(2, true), Some(Absence::Stopped));
        // It goes on, and is stopped anew.
        assert_eq!(opening.absence(2, false), None);
        assert_eq!(opening.absence(2, true), None);
        let mut opening = Opening::begin(Duration::ZERO);
        let late = Some(Absence::Late(Duration::ZERO));
        assert_eq!(opening.absence(1, false), late);
    }

    #[test]
    fn a_farm_needs_both_ends_a_feeder_and_a_node() {
        let shares = ["scheduler", "results", "feeder:0", "node:0", "node:1"];
        let shares: Vec<Share> = shares.map(|text| text.parse().unwrap()).into();
        assert!(Need::unmet(&shares.iter()).is_none());
        for (left_out, text) in [
            (0, Some("its scheduler and result node")),
            (1, Some("its scheduler and result node")),
            (2, Some("a feeder")),
            (3, None),
        ] {
            let others = shares.iter().enumerate();
            let others = others.filter(|&(n, _)| n != left_out).map(|(_, s)| s);
            let need = Need::unmet(&others);
            assert_eq!(need.map(|need| need.text), text);
            assert!(need.is_none_or(|need| need.is_met_by(&shares[left_out])));
        }
    }
}
