//! Latency histograms with one writer (a poll loop) and concurrent readers.
//!
//! The layout is that of HDR histograms (<http://hdrhistogram.org>): 128 steps in each power of
//! two, so that every value has a resolution better than one per cent. The implementation is our
//! own because a live view reads the histogram while the loop writes; the hdrhistogram crate (the
//! oracle of the tests) supports that only through a channel.

use std::sync::Arc;

use crate::count::Count;

/// Longest latency that is resolved, in nanoseconds: some 69 seconds. Longer ones count as this
/// one.
const LONGEST_NS: u64 = (1 << 36) - 1;

/// Steps in each power of two, as a power of two.
const STEP_BITS: u32 = 7;
const STEPS: usize = 1 << STEP_BITS;

/// Number of slots. Values up to twice the number of steps have one slot each.
const SLOTS: usize = slot(LONGEST_NS) + 1;

/// The slot of a value up to the longest one.
#[inline(always)]
const fn slot(ns: u64) -> usize {
    let octave = (ns | STEPS as u64).ilog2() - STEP_BITS;
    ((octave as usize) << STEP_BITS) + (ns >> octave) as usize
}

/// The largest value of a slot.
const fn top(slot: usize) -> u64 {
    let octave = (slot >> STEP_BITS).saturating_sub(1) as u32;
    let step = (slot - ((octave as usize) << STEP_BITS)) as u64;
    ((step + 1) << octave) - 1
}

struct Cells {
    slots: [Count; SLOTS],
    sum: Count,
    max: Count,
}

/// A histogram of times in nanoseconds, exact to one per cent, and the exclusive right to write it.
/// All memory is allocated at construction.
pub struct LatencyHistogram(Arc<Cells>);

/// Summary of a histogram for reports, in nanoseconds. All zero if nothing was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// Number of values.
    pub count: u64,
    /// Half of the values are at most this.
    pub p50: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// 99.99 %.
    pub p9999: u64,
    /// The largest value, exactly.
    pub max: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for LatencyHistogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.view().percentiles().fmt(f)
    }
}

impl LatencyHistogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Cells {
            slots: std::array::from_fn(|_| Count::default()),
            sum: Count::default(),
            max: Count::default(),
        }))
    }

    /// Records a time in nanoseconds. Does not allocate.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let ns = ns.min(LONGEST_NS);
        self.0.slots[slot(ns)].add(1);
        self.0.sum.add(ns);
        if ns > self.0.max.get() {
            self.0.max.set(ns);
        }
    }

    /// Takes over slots of another histogram, as [`LatencyView::slots`] numbers them, with its sum and its
    /// largest value, in nanoseconds: what another process has recorded is shown here. Slots that no
    /// histogram has are left out.
    pub fn copy(&mut self, slots: impl IntoIterator<Item = (usize, u64)>, sum: u64, max: u64) {
        for (slot, count) in slots {
            if let Some(slot) = self.0.slots.get(slot) {
                slot.set(count);
            }
        }
        self.0.sum.set(sum);
        self.0.max.set(max.min(LONGEST_NS));
    }

    /// A reader of this histogram.
    #[must_use]
    pub fn view(&self) -> LatencyView {
        LatencyView(Arc::clone(&self.0))
    }
}

/// A reader of a histogram. While the writer runs, values may belong to slightly different moments.
#[derive(Clone)]
pub struct LatencyView(Arc<Cells>);

impl LatencyView {
    /// Number of values above `ns`, resolved by steps: values in the step of `ns` are not included.
    #[must_use]
    pub fn count_above(&self, ns: u64) -> u64 {
        let above = self.0.slots.iter().skip(slot(ns.min(LONGEST_NS)) + 1);
        above.map(Count::get).sum()
    }

    /// The sum of all values in nanoseconds.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0.sum.get()
    }

    /// Number of values in each power of two of nanoseconds from 2^7 on, without the values of the
    /// power below. Buckets of a coarser histogram.
    pub fn octaves(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.slots.chunks(STEPS).enumerate().map(|(k, slots)| {
            (
                top((k + 1) * STEPS - 1),
                slots.iter().map(Count::get).sum::<u64>(),
            )
        })
    }

    /// Number of values in each slot, for [`LatencyHistogram::copy`].
    pub fn slots(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.slots.iter().map(Count::get)
    }

    /// The largest value in nanoseconds, exactly; 0 if nothing was recorded.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.0.max.get()
    }

    /// The summary for reports.
    #[must_use]
    pub fn percentiles(&self) -> Percentiles {
        percentiles(&self.counts(), self.0.max.get())
    }

    /// A snapshot for [`percentiles_since`](Self::percentiles_since). Allocates.
    #[must_use]
    pub fn mark(&self) -> LatencyMark {
        LatencyMark(Box::new(self.counts()))
    }

    /// The summary of the values recorded since `mark` was taken of this histogram. The largest
    /// value is exact to one per cent, as the others are.
    #[must_use]
    pub fn percentiles_since(&self, mark: &LatencyMark) -> Percentiles {
        let mut counts = self.counts();
        for (count, before) in counts.iter_mut().zip(&*mark.0) {
            *count = count.saturating_sub(*before);
        }
        let largest = counts.iter().rposition(|&n| n > 0).map_or(0, top);
        percentiles(&counts, largest.min(self.0.max.get()))
    }

    fn counts(&self) -> [u64; SLOTS] {
        self.0.slots.each_ref().map(Count::get)
    }
}

/// A snapshot of a histogram.
#[derive(Clone)]
pub struct LatencyMark(Box<[u64; SLOTS]>);

impl std::fmt::Debug for LatencyMark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values: u64 = self.0.iter().sum();
        f.debug_tuple("LatencyMark").field(&values).finish()
    }
}

fn percentiles(counts: &[u64; SLOTS], max: u64) -> Percentiles {
    let count = counts.iter().sum();
    // The value that this many of 10 000 values do not exceed.
    let at = |per_10_000: u64| {
        let rank = (u128::from(count) * u128::from(per_10_000)).div_ceil(10_000) as u64;
        let mut seen = 0;
        let slot = counts.iter().position(|n| {
            seen += n;
            seen >= rank.max(1)
        });
        slot.map_or(0, |slot| top(slot).min(max))
    };
    Percentiles {
        count,
        p50: at(5000),
        p99: at(9900),
        p999: at(9990),
        p9999: at(9999),
        max,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    #[test]
    fn every_value_is_in_one_slot_and_slots_are_narrow() {
        for slot_number in 1..SLOTS {
            let (below, top) = (top(slot_number - 1), top(slot_number));
            assert_eq!((slot(below + 1), slot(top)), (slot_number, slot_number));
            assert!((top - below - 1) * 100 <= top, "{below}..={top}");
        }
        assert_eq!((slot(0), top(SLOTS - 1)), (0, LONGEST_NS));
    }

    #[test]
    fn what_is_longer_than_the_longest_counts_as_it() {
        let mut histogram = LatencyHistogram::new();
        let view = histogram.view();
        assert_eq!(view.percentiles(), Percentiles::default());
        histogram.record(u64::MAX);
        histogram.record(5);
        assert_eq!(view.percentiles().max, LONGEST_NS);
        assert_eq!(view.percentiles().p50, 5);
        assert_eq!((view.count_above(5), view.count_above(u64::MAX)), (1, 0));
        assert_eq!(view.octaves().map(|(_, n)| n).sum::<u64>(), 2);
    }

    #[test]
    fn what_was_recorded_before_a_mark_is_not_in_what_came_since() {
        let mut histogram = LatencyHistogram::new();
        let view = histogram.view();
        histogram.record(5_000_000);
        let mark = view.mark();
        assert_eq!(view.percentiles_since(&mark), Percentiles::default());
        for ns in [100, 100, 100, 3000] {
            histogram.record(ns);
        }
        let since = view.percentiles_since(&mark);
        assert_eq!((since.count, since.p50), (4, 100));
        assert!((3000..3030).contains(&since.max), "{since:?}");
        assert_eq!(since.p9999, since.max);
        assert_eq!(view.percentiles().max, 5_000_000);
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_an_hdr_histogram(
            values in proptest::collection::vec(
                (0u32..36, any::<u64>()).prop_map(|(bits, v)| v & ((1 << bits) - 1)), 1..400)
        ) {
            let (mut ours, mut theirs) = (
                LatencyHistogram::new(),
                Histogram::<u64>::new_with_bounds(1, LONGEST_NS, 2).unwrap(),
            );
            for &value in &values {
                ours.record(value);
                theirs.record(value).unwrap();
            }
            let p = ours.view().percentiles();
            prop_assert_eq!((p.count, p.max), (values.len() as u64, *values.iter().max().unwrap()));
            for (ours, quantile) in [(p.p50, 0.5), (p.p99, 0.99), (p.p999, 0.999), (p.p9999, 0.9999)] {
                let theirs = theirs.value_at_quantile(quantile);
                prop_assert!(ours.abs_diff(theirs) * 100 <= theirs, "{} {}", ours, theirs);
            }
            prop_assert_eq!(ours.view().sum(), values.iter().sum::<u64>());
            // The changes since the first value was recorded, of another process.
            let mut copy = LatencyHistogram::new();
            copy.record(values[0]);
            let before: Vec<_> = copy.view().slots().collect();
            let slots = ours.view().slots().zip(before).enumerate().collect::<Vec<_>>();
            let changed = slots.iter().filter(|(_, (now, before))| now != before);
            let changed = changed.map(|&(slot, (now, _))| (slot, now));
            copy.copy(changed.chain([(SLOTS, 1)]), ours.view().sum(), ours.view().max());
            prop_assert_eq!(copy.view().percentiles(), p);
            prop_assert!(copy.view().slots().eq(ours.view().slots()));
        }
    }
}
