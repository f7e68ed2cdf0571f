//! Counters of stacks and of their lines.

use std::fmt;
use std::sync::Arc;

use pollux_app::LedgerReport;
use pollux_app::metrics::Page;
use pollux_pmd::{Cause, CauseError, Count, Ledger, Tally, TallyView};
use serde::Serialize;

/// What the sources of a module have announced. Written by the loop.
#[derive(Default)]
pub struct SeatCounts {
    /// Sources that were connected.
    pub sources: Count,
    /// Stacks that were taken.
    pub stacks: Count,
    /// Stacks among them whose own announcement did not come: a later one, or the end of the source, has
    /// shown that they are over.
    pub unannounced: Count,
    /// Announcements of stacks that were announced before.
    pub repeated: Count,
    /// Announcements of stacks for which the source had no free buffer, and messages that announce nothing.
    pub refused: Count,
    /// Packets of connections that sequence numbers say were lost.
    pub missed: Count,
}

/// The counters of a module, for the loop.
pub struct Counts {
    pub seat: Arc<SeatCounts>,
    lines: Tally,
    lost: Cause,
}

impl Counts {
    /// Counts a line that should be there.
    #[inline]
    pub fn line(&mut self, bytes: usize) {
        self.lines.count_from_wire(1, bytes as u64);
    }

    /// Counts a line that is not there.
    #[inline]
    pub fn lost_line(&mut self) {
        self.lines.count_dropped(self.lost, 1);
    }
}

/// A reader of all counters.
#[derive(Clone)]
pub struct RdmaView {
    seats: Arc<[Arc<SeatCounts>]>,
    lines: Ledger,
}

/// Counters of so many modules; `place` counts the lines that were there.
///
/// # Errors
/// Too many drop causes.
pub fn counts(modules: usize, place: TallyView) -> Result<(RdmaView, Vec<Counts>), CauseError> {
    let lost = Cause::declare(
        "line-lost",
        "a line of a stack of images that is not in its buffer: lost on the way, or never sent",
    )?;
    let counts: Vec<_> = (0..modules)
        .map(|_| Counts {
            seat: Arc::default(),
            lines: Tally::new(),
            lost,
        })
        .collect();
    let mut lines = Ledger::new();
    for (module, counts) in counts.iter().enumerate() {
        lines.add(format!("module {module}"), counts.lines.view());
    }
    lines.add("place", place);
    let seats = counts.iter().map(|counts| Arc::clone(&counts.seat));
    let view = RdmaView {
        seats: seats.collect(),
        lines,
    };
    Ok((view, counts))
}

/// Stacks and lines of a run.
#[derive(Debug, Serialize)]
pub struct RdmaReport {
    /// Sources that were connected.
    pub sources: u64,
    /// Stacks that were taken, of all modules.
    pub stacks: u64,
    /// Stacks whose own announcement did not come.
    pub unannounced: u64,
    /// Announcements of stacks that were announced before.
    pub repeated: u64,
    /// Announcements without a free buffer, and messages that announce nothing.
    pub refused: u64,
    /// Packets of the connections that were lost.
    pub missed_packets: u64,
    /// Lines of the stacks: those that should be there = in images + dropped by cause.
    pub lines: LedgerReport,
}

impl RdmaView {
    /// The counters now.
    pub fn report(&self) -> RdmaReport {
        let sum =
            |of: fn(&SeatCounts) -> &Count| self.seats.iter().map(|seat| of(seat).get()).sum();
        RdmaReport {
            sources: sum(|seat| &seat.sources),
            stacks: sum(|seat| &seat.stacks),
            unannounced: sum(|seat| &seat.unannounced),
            repeated: sum(|seat| &seat.repeated),
            refused: sum(|seat| &seat.refused),
            missed_packets: sum(|seat| &seat.missed),
            lines: self.lines.balance().into(),
        }
    }

    /// Writes the counters to a page of metrics.
    ///
    /// # Errors
    /// Those of the page.
    pub fn measure(&self, page: &mut Page<'_>) -> fmt::Result {
        let report = self.report();
        let stacks = [
            ("taken", report.stacks),
            ("unannounced", report.unannounced),
            ("repeated", report.repeated),
            ("refused", report.refused),
        ];
        let stacks = stacks.map(|(name, count)| ([("outcome", String::from(name))], count));
        let help = "Stacks that sources have written into memory, and their announcements";
        page.counter("image_stacks", help, stacks)?;
        let lines = self.lines.balance();
        let dropped = lines.drops().map(|(cause, n)| (cause.name().to_owned(), n));
        let lines = std::iter::once(("placed".to_owned(), lines.delivered)).chain(dropped);
        let lines = lines.map(|(name, count)| ([("outcome", name)], count));
        page.counter(
            "image_lines",
            "Lines of stacks, by what became of them",
            lines,
        )?;
        let help = "Packets of sources that were lost on the way";
        page.counter("image_missed_packets", help, [([], report.missed_packets)])
    }

    /// The ledger of the lines.
    pub fn lines(&self) -> &Ledger {
        &self.lines
    }
}
