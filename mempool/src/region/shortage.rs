//! Hugepages that regions do without, summed up: a count that is written for one region alone
//! takes away what another one needs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use super::sys;

/// Pages of a size, in bytes, on a node or anywhere.
type Kind = (usize, Option<u32>);

/// What is missing in this process.
struct Missing {
    pages: BTreeMap<Kind, usize>,
    /// Their number at the last report.
    told: usize,
}

static MISSING: Mutex<Missing> = Mutex::new(Missing {
    pages: BTreeMap::new(),
    told: 0,
});

/// A region of normal pages that was to have hugepages, for as long as it is there.
pub(super) struct Shortage {
    kind: Kind,
    pages: usize,
}

impl Shortage {
    pub(super) fn new(page: usize, node: Option<u32>, pages: usize) -> Self {
        let kind = (page, node);
        let mut missing = MISSING.lock().unwrap_or_else(PoisonError::into_inner);
        *missing.pages.entry(kind).or_default() += pages;
        Self { kind, pages }
    }
}

impl Drop for Shortage {
    fn drop(&mut self) {
        let mut missing = MISSING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pages) = missing.pages.get_mut(&self.kind) {
            *pages -= self.pages;
        }
        missing.told = missing.told.min(missing.pages.values().sum());
    }
}

/// Logs, once, how many hugepages all regions together lack, and the commands that add them. For
/// when all memory has been set up: what launches poll loops calls it.
pub fn tell_shortage() {
    let mut missing = MISSING.lock().unwrap_or_else(PoisonError::into_inner);
    let all: usize = missing.pages.values().sum();
    if all <= missing.told {
        return;
    }
    missing.told = all;
    let remedy = remedy(&missing.pages, |(page, node)| {
        sys::hugepage_counts(&sys::hugepage_dir(page, node))
    });
    drop(missing);
    tracing::warn!(
        "some packet memory is in normal pages, which is slower; for all of it {all} more hugepages \
         are needed, from the next start on: {remedy}"
    );
}

/// The commands that make enough pages, given how many there are of a kind: all, free.
fn remedy(missing: &BTreeMap<Kind, usize>, counts: impl Fn(Kind) -> (usize, usize)) -> String {
    let mut commands = String::new();
    let mut added: BTreeMap<usize, usize> = BTreeMap::new();
    let lacking = missing.iter().filter(|&(_, &pages)| pages > 0);
    // Those of a node first: the count of the whole machine says how many there are in all.
    let (of_nodes, anywhere): (Vec<_>, Vec<_>) = lacking.partition(|((_, node), _)| node.is_some());
    for (&(page, node), &pages) in of_nodes.into_iter().chain(anywhere) {
        let (all, free) = counts((page, node));
        let more = pages.saturating_sub(free);
        let before = if node.is_none() {
            added.get(&page).copied().unwrap_or(0)
        } else {
            *added.entry(page).or_default() += more;
            0
        };
        let separator = if commands.is_empty() { "" } else { "; " };
        let (target, dir) = (all + before + more, sys::hugepage_dir(page, node));
        let _ = write!(commands, "{separator}echo {target} > {dir}/nr_hugepages");
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB2: usize = 2 << 20;
    const GIB1: usize = 1 << 30;

    #[test]
    fn one_command_covers_all_regions() {
        let missing = BTreeMap::from([((MIB2, None), 32)]);
        assert_eq!(
            remedy(&missing, |_| (10, 3)),
            "echo 39 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
        );
        // What is gone by now needs nothing.
        let none = BTreeMap::from([((MIB2, None), 0)]);
        assert_eq!(remedy(&none, |_| (0, 0)), "");
    }

    #[test]
    fn what_is_written_for_the_machine_keeps_what_nodes_got() {
        let missing = BTreeMap::from([
            ((MIB2, None), 8),
            ((MIB2, Some(1)), 4),
            ((GIB1, Some(0)), 2),
        ]);
        let counts = |kind| match kind {
            (MIB2, None) => (10, 0),
            (MIB2, Some(1)) => (6, 1),
            _ => (0, 0),
        };
        assert_eq!(
            remedy(&missing, counts),
            "echo 9 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages; \
             echo 2 > /sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages; \
             echo 21 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
        );
    }
}
