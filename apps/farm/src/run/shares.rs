//! Shares of the members: what a loop, or a process with one loop, has of the farm.

use std::fmt::{self, Display};
use std::ops::Range;
use std::str::FromStr;

use pollux_farm::role::Address;

/// Members of a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub scheduler: bool,
    pub results: bool,
    pub feeders: Range<usize>,
    pub nodes: Range<usize>,
}

impl Share {
    /// Whether a member is among them.
    pub fn has(&self, member: Address) -> bool {
        match member {
            Address::Scheduler => self.scheduler,
            Address::Results => self.results,
            Address::Feeder(feeder) => self.feeders.contains(&feeder.into()),
            Address::Node(node) => self.nodes.contains(&node.into()),
        }
    }
}

/// Deals the members to loops: neighbours of the ring to one loop, and each loop feeders and nodes,
/// so that the loops have equal work. Where there are more loops than that allows, each has a member
/// at least, if there are as many.
pub fn deal(feeders: usize, nodes: usize, loops: usize) -> Vec<Share> {
    let part = |of: usize, n: usize| of * n / loops..of * (n + 1) / loops;
    if loops <= feeders.max(nodes) {
        let share = |n| Share {
            scheduler: n == 0,
            results: n + 1 == loops,
            feeders: part(feeders, n),
            nodes: part(nodes, n),
        };
        return (0..loops).map(share).collect();
    }
    // The scheduler, the feeders, the nodes, the result node.
    let members = 2 + feeders + nodes;
    let share = |n| {
        let Range { start, end } = part(members, n);
        let among = |first: usize, count: usize| {
            let within = |place: usize| place.clamp(first, first + count) - first;
            within(start)..within(end)
        };
        Share {
            scheduler: !among(0, 1).is_empty(),
            results: !among(members - 1, 1).is_empty(),
            feeders: among(1, feeders),
            nodes: among(1 + feeders, nodes),
        }
    };
    (0..loops).map(share).collect()
}

/// Each member alone.
pub fn each(feeders: usize, nodes: usize) -> Vec<Share> {
    let scheduler = Share {
        scheduler: true,
        ..Share::default()
    };
    let results = Share {
        results: true,
        ..Share::default()
    };
    let feeder = |n| Share {
        feeders: n..n + 1,
        ..Share::default()
    };
    let node = |n| Share {
        nodes: n..n + 1,
        ..Share::default()
    };
    let feeders = (0..feeders).map(feeder);
    let others = feeders.chain((0..nodes).map(node));
    [scheduler, results].into_iter().chain(others).collect()
}

/// As `scheduler,feeder:0-11,node:3`.
impl Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        let mut put = |text: fmt::Arguments<'_>| {
            write!(f, "{comma}{text}")?;
            comma = ",";
            Ok(())
        };
        if self.scheduler {
            put(format_args!("scheduler"))?;
        }
        if self.results {
            put(format_args!("results"))?;
        }
        for (kind, range) in [("feeder", &self.feeders), ("node", &self.nodes)] {
            match range.len() {
                0 => {}
                1 => put(format_args!("{kind}:{}", range.start))?,
                _ => put(format_args!("{kind}:{}-{}", range.start, range.end - 1))?,
            }
        }
        Ok(())
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut share = Self::default();
        for item in text.split(',') {
            match item.split_once(':') {
                None if item == "scheduler" => share.scheduler = true,
                None if item == "results" => share.results = true,
                Some(("feeder", ids)) => share.feeders = ids.parse::<Ids>()?.0,
                Some(("node", ids)) => share.nodes = ids.parse::<Ids>()?.0,
                _ => return Err("write members as scheduler,results,feeder:0-11,node:3".into()),
            }
        }
        Ok(share)
    }
}

/// Numbers of members of one kind: `3`, or `0-11`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids(pub Range<usize>);

impl FromStr for Ids {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.parse::<u16>(), last.parse::<u16>()) {
            (Ok(first), Ok(last)) if first <= last => {
                Ok(Self(usize::from(first)..usize::from(last) + 1))
            }
            _ => Err("write a number, or the first and the last one, as 3 or 0-11".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_is_in_one_loop() {
        for (feeders, nodes) in [(24, 12), (1, 1), (64, 3), (5, 100)] {
            for loops in 1..=8 {
                let shares = deal(feeders, nodes, loops);
                let all = |range: fn(&Share) -> Range<usize>| -> Vec<usize> {
                    shares.iter().flat_map(range).collect()
                };
                assert_eq!(all(|s| s.feeders.clone()), (0..feeders).collect::<Vec<_>>());
                assert_eq!(all(|s| s.nodes.clone()), (0..nodes).collect::<Vec<_>>());
                assert_eq!(shares.iter().filter(|s| s.scheduler).count(), 1);
                assert_eq!(shares.iter().filter(|s| s.results).count(), 1);
                for share in shares {
                    let text = share.to_string();
                    if loops > 2 + feeders + nodes && text.is_empty() {
                        continue;
                    }
                    let read: Result<Share, _> = text.parse();
                    assert_eq!(read.map(|read| read.to_string()), Ok(text));
                }
            }
        }
    }

    #[test]
    fn what_names_no_member_is_refused() {
        for text in [
            "",
            "x",
            "feeder",
            "feeder:",
            "node:3-2",
            "node:-1",
            "node:70000",
        ] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
        let share: Result<Share, _> = "results,feeder:2".parse();
        let expected = Share {
            results: true,
            feeders: 2..3,
            ..Share::default()
        };
        assert_eq!(share, Ok(expected));
    }
}
