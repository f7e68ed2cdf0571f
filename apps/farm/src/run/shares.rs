//! Shares of the members: what a loop, or a process with one loop, has of the farm.

use std::fmt::{self, Display};
use std::ops::Range;
use std::str::FromStr;

use pollux_farm::members::Numbers;
use pollux_farm::role::Address;

/// Members of a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub scheduler: bool,
    pub results: bool,
    pub feeders: Range<usize>,
    pub nodes: Numbers,
}

impl Share {
    /// A number that differs between processes that have feeders, or nodes.
    pub fn first(&self) -> usize {
        self.feeders.start + usize::from(self.nodes.first().unwrap_or(0))
    }

    /// Whether it has the scheduler or the result node, of which there is one each.
    pub fn is_end(&self) -> bool {
        self.scheduler || self.results
    }

    /// How many members it has.
    pub fn members(&self) -> usize {
        let ends = usize::from(self.scheduler) + usize::from(self.results);
        ends + self.feeders.len() + self.nodes.iter().count()
    }

    /// Whether a member is among them.
    pub fn has(&self, member: Address) -> bool {
        match member {
            Address::Scheduler => self.scheduler,
            Address::Results => self.results,
            Address::Feeder(feeder) => self.feeders.contains(&feeder.into()),
            Address::Node(node) => self.nodes.place(node).is_some(),
        }
    }
}

/// Deals the members to the loops of a process as [`deal`] does, but the nodes in turn. Nodes are dealt
/// to the columns in turn too, and events go to the columns in turn: one event after the other is
/// built by another loop, so that all loops have work at any time. Nodes that follow each other
/// would be of one loop for as many events as they have receive buffers.
pub fn deal_in_turn(feeders: usize, nodes: usize, loops: usize) -> Vec<Share> {
    let mut shares = deal(feeders, nodes, loops);
    if loops <= nodes {
        for (first, share) in (0..).zip(&mut shares) {
            share.nodes = Numbers::every(first..nodes as u16, loops as u16);
        }
    }
    shares
}

/// Deals the members to processes: neighbours of the ring to one process, and each process feeders and
/// nodes, so that they have equal work. Where there are more of them than that allows, each has a
/// member at least, if there are as many.
pub fn deal(feeders: usize, nodes: usize, loops: usize) -> Vec<Share> {
    let part = |of: usize, n: usize| of * n / loops..of * (n + 1) / loops;
    if loops <= feeders.max(nodes) {
        let share = |n| Share {
            scheduler: n == 0,
            results: n + 1 == loops,
            feeders: part(feeders, n),
            nodes: numbers(part(nodes, n)),
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
            nodes: numbers(among(1 + feeders, nodes)),
        }
    };
    (0..loops).map(share).collect()
}

/// Numbers of nodes, of which there are up to 65 535.
fn numbers(range: Range<usize>) -> Numbers {
    Numbers::from(range.start as u16..range.end as u16)
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
        nodes: numbers(n..n + 1),
        ..Share::default()
    };
    let feeders = (0..feeders).map(feeder);
    let others = feeders.chain((0..nodes).map(node));
    [scheduler, results].into_iter().chain(others).collect()
}

/// As `scheduler,feeder:0-11,node:3`; `node:0-10/2` is every second node.
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
        let feeders = Numbers::from(self.feeders.start as u16..self.feeders.end as u16);
        for (kind, numbers) in [("feeder", feeders), ("node", self.nodes)] {
            let mut all = numbers.iter();
            match (all.next(), all.next_back(), numbers.step()) {
                (None, ..) => {}
                (Some(only), None, _) => put(format_args!("{kind}:{only}"))?,
                (Some(first), Some(last), 1) => put(format_args!("{kind}:{first}-{last}"))?,
                (Some(first), Some(last), step) => {
                    put(format_args!("{kind}:{first}-{last}/{step}"))?;
                }
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
                Some(("node", ids)) => share.nodes = ids.parse::<NodeIds>()?.0,
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

/// Numbers of nodes: as [`Ids`], or `0-10/2` for every second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeIds(pub Numbers);

impl FromStr for NodeIds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (range, step) = text.split_once('/').unwrap_or((text, "1"));
        let Ids(Range { start, end }) = range.parse()?;
        match (u16::try_from(end), step.parse()) {
            (Ok(end), Ok(step)) if step > 0 => {
                Ok(Self(Numbers::every(start as u16..end, step)))
            }
            _ => Err("write a number, the first and the last one, or each so many of these, as 3, 0-11 or 0-10/2".into()),
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
                for shares in [
                    deal(feeders, nodes, loops),
                    deal_in_turn(feeders, nodes, loops),
                ] {
                    let of = shares.iter().flat_map(|share| share.feeders.clone());
                    assert_eq!(of.collect::<Vec<_>>(), (0..feeders).collect::<Vec<_>>());
                    let of = shares.iter().flat_map(|share| share.nodes.iter());
                    let mut of: Vec<_> = of.collect();
                    of.sort_unstable();
                    assert_eq!(of, (0..nodes as u16).collect::<Vec<_>>());
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
    }

    #[test]
    fn columns_in_turn_are_built_by_loops_in_turn() {
        let shares = deal_in_turn(24, 12, 2);
        for column in 0..6 {
            for node in [column, column + 6] {
                assert!(shares[usize::from(column % 2)].has(Address::Node(node)));
            }
        }
        assert_eq!(shares[1].to_string(), "results,feeder:12-23,node:1-11/2");
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
            "node:0-4/0",
            "node:0-4/x",
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
