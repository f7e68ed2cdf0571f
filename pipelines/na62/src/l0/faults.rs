//! Diagnosis of sources: names the fault of a source from its counters and those of the others.

use pollux_pmd::Count;

use super::stats::{L0Stats, SourceCounts};

/// Minimum number of cases of an occasional event, in a part of a run, that identify a faulty
/// source.
const LEAST: u64 = 20;
/// A source is faulty if it sends this many times the events of others.
const TOO_MANY: u64 = 4;

/// A fault: its name, and its test for a source. An occasional event needs `least` cases.
struct Fault {
    name: &'static str,
    has: fn(&L0Stats, usize, &SourceCounts, least: u64) -> bool,
}

/// More than one in `share`, and at least `least`.
fn often(cases: u64, share: u64, of: u64, least: u64) -> bool {
    cases >= least && share * cases > of
}

/// All faults, as documented at [`L0Stats::faults`].
const FAULTS: [Fault; 10] = [
    Fault {
        name: "clock",
        has: |stats, _, counts, least| {
            let (frames, built) = (counts.frames.get(), stats.events.built.get());
            counts.skewed.get() + counts.off.get() > 0
                || often(counts.out_of_window.get(), 100, frames, least)
                || often(counts.strays.get(), 100, frames, least)
                || !stats.is_full() && often(counts.apart.get(), 20, built, least)
        },
    },
    Fault {
        name: "rate",
        has: |stats, source, counts, least| {
            let events = counts.events.get();
            let usual = stats.usual_events(source);
            events >= least && usual.is_some_and(|usual| events > TOO_MANY * usual.max(least))
        },
    },
    Fault {
        name: "late",
        has: |stats, _, counts, least| {
            !stats.is_full() && often(counts.late.get(), 20, counts.frames.get(), least)
        },
    },
    Fault {
        name: "absent",
        has: |stats, _, counts, least| {
            // A full builder does not wait for the boards. A silent one is absent all the same.
            if stats.is_full() && counts.frames.get() > 0 {
                return false;
            }
            let (absent, missed) = (counts.absent.get(), counts.missed.get());
            let (shared, built) = (stats.events.shared.get(), stats.events.built.get());
            absent >= least && 2 * missed >= shared && (shared > 0 || 2 * absent >= built)
        },
    },
    Fault {
        name: "sequence",
        has: |_, _, counts, least| {
            // A new spill is not a fault.
            let alone = counts.resyncs.get().saturating_sub(counts.spills.get());
            often(alone, 100, counts.frames.get(), least.max(2))
        },
    },
    Fault {
        name: "loss",
        has: |stats, _, counts, least| {
            let (frames, missing) = (counts.frames.get(), counts.missing.get());
            !stats.is_overloaded() && often(missing, 100, frames + missing, least)
        },
    },
    Fault {
        name: "duplicates",
        has: |_, _, counts, least| often(counts.duplicates.get(), 100, counts.frames.get(), least),
    },
    Fault {
        name: "hot",
        has: |stats, _, counts, least| {
            often(counts.hot.get(), 100, stats.events.built.get(), least)
        },
    },
    Fault {
        name: "identity",
        has: |stats, _, counts, _| {
            // Either it claims to be another board: its port receives frames of that board, and its
            // own are missing. Or its frames arrive on the ports of others, together with theirs.
            let claims = |counts: &SourceCounts| {
                let (others, own) = (counts.misrouted.get(), counts.frames.get());
                others > 0 && (2 * counts.missing.get() >= others || others > 2 * own)
            };
            claims(counts) || counts.elsewhere.get() > 0 && !stats.sources.iter().any(claims)
        },
    },
    Fault {
        name: "unreadable",
        has: |_, _, counts, least| {
            let (frames, unreadable) = (counts.frames.get(), counts.unreadable.get());
            often(unreadable, 100, frames + unreadable, least)
        },
    },
];

impl L0Stats {
    /// Names of the faults of a source, for reports and warnings; empty for an unknown source. They
    /// result from the counts since the start of the run, and from the findings of
    /// [`name_faults`](Self::name_faults) in any part of it:
    ///
    /// | word | when |
    /// | --- | --- |
    /// | `clock` | its time stamps differ from those of most others: frames refused as `clock-skew`, 1 % as `out-of-window`, 1 % come back from a time far away, or one in twenty events is its own alone |
    /// | `rate` | it sent more than four times as many events as most others |
    /// | `late` | 5 % of its frames came when their events were closed |
    /// | `absent` | it contributed to no more than half of the events that most others contributed to, or of all where those are none |
    /// | `sequence` | its sequence numbers began anew in 1 % of its frames, and not with those of most others |
    /// | `loss` | 1 % of its frames are missing |
    /// | `duplicates` | 1 % of its frames came twice |
    /// | `hot` | in 1 % of the events it had more hits than rings explain |
    /// | `identity` | its frames claim to be of another board, or come on the port of another |
    /// | `unreadable` | 1 % of the frames on its port could not be read, or are of no configured board |
    ///
    /// While the builder is [full](Self::is_full) it is not known who is late: `late`, `absent` of a
    /// board that sends, and `clock` by events of its own are withheld. So is `loss` while the trigger
    /// is [overloaded](Self::is_overloaded).
    #[must_use]
    pub fn faults(&self, source: usize) -> Vec<&'static str> {
        let named = self.named.get(source).map_or(0, Count::get);
        words(self.judge(source, 1) | named)
    }

    /// Diagnoses the sources from a part of the run ([`since`](Self::since)). Shares of occasional
    /// events are less significant there, so at least twenty cases are required. A finding remains
    /// until the end of the run. Returns the names for each source.
    pub fn name_faults(&self, stretch: &Self) -> Vec<Vec<&'static str>> {
        let judged = self.named.iter().enumerate().map(|(source, named)| {
            let found = stretch.judge(source, LEAST);
            named.set(named.get() | found);
            words(found)
        });
        judged.collect()
    }

    /// More than 1 % of the events were closed early, because too many were open, or too many hits
    /// waited: the fault of no source.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let events = &self.events;
        often(events.forced.get(), 100, events.built.get(), LEAST)
    }

    /// At least half of the frames that are missing by sequence number can have come, and have been
    /// dropped in front of the stages.
    #[must_use]
    pub fn is_overloaded(&self) -> bool {
        let dropped = self.events.overload_drops.get();
        let missing: u64 = self.sources.iter().map(|it| it.missing.get()).sum();
        dropped > 0 && 2 * dropped >= missing
    }

    /// Bit f: the source has fault f.
    fn judge(&self, source: usize, least: u64) -> u64 {
        let Some(counts) = self.sources.get(source) else {
            return 0;
        };
        let faults = FAULTS.iter().enumerate();
        let bit =
            |(n, fault): (usize, &Fault)| u64::from((fault.has)(self, source, counts, least)) << n;
        faults.map(bit).sum()
    }

    /// Number of events that most others sent; `None` with fewer than two others.
    fn usual_events(&self, source: usize) -> Option<u64> {
        let others = self
            .sources
            .iter()
            .enumerate()
            .filter(|&(n, _)| n != source);
        let mut events: Vec<_> = others.map(|(_, counts)| counts.events.get()).collect();
        events.sort_unstable();
        let usual = events.get(events.len() / 2).copied();
        usual.filter(|&usual| events.len() > 1 && usual > 0)
    }
}

fn words(faults: u64) -> Vec<&'static str> {
    let named = FAULTS
        .iter()
        .enumerate()
        .filter(|(n, _)| faults >> n & 1 == 1);
    named.map(|(_, fault)| fault.name).collect()
}
