//! Watches a loop: how long each decision took, and when the machine held the loop up.

use pollux_mempool::time::{Ns, Tsc};
use pollux_pmd::lcore::JitterMeter;
use pollux_pmd::{Clock, LatencyView, TscClock};

/// What takes so long between two looks at the clock is the machine's: several times the longest
/// piece of work of a loop that looks after each batch of events.
const GAP: Ns = Ns(20_000);

/// Gaps, and decisions of a packet, for which there is memory from the start.
const GAPS: usize = 1 << 16;
const PACKET: usize = 1 << 10;

/// A time from one moment to another.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Its begin.
    pub from: Tsc,
    /// Its end.
    pub to: Tsc,
}

impl Span {
    /// Its length in nanoseconds.
    #[must_use]
    pub fn ns(&self) -> u64 {
        TscClock::get().to_ns(self.to.since(self.from)).0
    }
}

/// The watch over one loop.
pub struct Witness {
    meter: JitterMeter,
    last: Tsc,
    gaps: Vec<Span>,
    /// The loop has not caught up since the last gap.
    behind: bool,
    /// Arrivals of the events whose decisions have not departed.
    arrivals: Vec<Tsc>,
    decisions: Vec<Span>,
}

impl Witness {
    /// A watch that begins now, with memory for so many decisions.
    #[must_use]
    pub fn new(decisions: usize) -> Self {
        let clock = TscClock::get();
        let now = clock.now();
        // Written once, so that the kernel has nothing to do with it later.
        let mut memory = vec![Span { from: now, to: now }; decisions];
        memory.clear();
        Self {
            meter: JitterMeter::new(clock),
            last: clock.now(),
            gaps: Vec::with_capacity(GAPS),
            behind: false,
            arrivals: Vec::with_capacity(PACKET),
            decisions: memory,
        }
    }

    /// Looks at the clock.
    pub fn tick(&mut self) -> Tsc {
        let (from, to) = (self.last, self.meter.tick());
        if to.since(from) >= TscClock::get().to_cycles(GAP) {
            match self.gaps.last_mut() {
                Some(gap) if self.behind => gap.to = to,
                _ => self.gaps.push(Span { from, to }),
            }
            self.behind = true;
        }
        self.last = to;
        to
    }

    /// Looks at the clock; the loop has nothing to do, so the last gap ends here, of which nothing is
    /// left.
    pub fn caught_up(&mut self) -> Tsc {
        let now = self.tick();
        if std::mem::take(&mut self.behind)
            && let Some(gap) = self.gaps.last_mut()
        {
            gap.to = now;
        }
        now
    }

    /// There is a decision about an event that arrived then.
    pub fn decided(&mut self, arrival: Tsc) {
        self.arrivals.push(arrival);
        if self.arrivals.len().is_multiple_of(16) {
            self.tick();
        }
    }

    /// All decisions depart.
    pub fn departed(&mut self) {
        let to = self.tick();
        let spans = self.arrivals.drain(..).map(|from| Span { from, to });
        self.decisions.extend(spans);
    }

    /// The times between two looks at the clock.
    #[must_use]
    pub fn looks(&self) -> LatencyView {
        self.meter.gaps()
    }

    /// Each decision, from arrival to departure.
    #[must_use]
    pub fn decisions(&self) -> &[Span] {
        &self.decisions
    }

    /// The decisions that no gap of this loop, or of the other one, had a part in: from its begin
    /// until the loop had caught up.
    pub fn apart<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a Span> {
        let meets = |gaps: &[Span], life: &Span| {
            // In the order of their begins, and so of their ends.
            let next = gaps.partition_point(|gap| gap.to.0 < life.from.0);
            gaps.get(next).is_some_and(|gap| gap.from.0 <= life.to.0)
        };
        let gaps = [&self.gaps[..], &other.gaps];
        let decisions = self.decisions.iter();
        decisions.filter(move |life| !gaps.iter().any(|gaps| meets(gaps, life)))
    }
}
