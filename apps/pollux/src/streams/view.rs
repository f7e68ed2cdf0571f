//! The table on a terminal, renewed every second while the run goes on.

use std::io::Write;
use std::time::{Duration, Instant};

use pollux_pmd::Ledger;

use super::report::Report;
use super::senders::{Counts, Reader};

const EVERY: Duration = Duration::from_secs(1);

/// Draws on standard error, so that standard output has the final report alone.
pub(super) struct View {
    rows: usize,
    drawn: Instant,
    /// Counts at that moment, in the reader's order.
    before: Vec<Counts>,
    /// Lines on the terminal.
    lines: usize,
}

impl View {
    pub(super) fn new(rows: usize) -> Self {
        Self {
            rows,
            drawn: Instant::now(),
            before: Vec::new(),
            lines: 0,
        }
    }

    /// Draws the table anew, if it is time; its rates are those since the last time.
    pub(super) fn refresh(&mut self, reader: &Reader, ledger: &Ledger) {
        let span = self.drawn.elapsed();
        if span < EVERY {
            return;
        }
        self.drawn += span;
        let report = Report::new(reader, &self.before, &ledger.balance(), self.rows, span);
        self.before.clear();
        self.before
            .extend(reader.senders().map(|sender| sender.counts));
        let mut text = Vec::new();
        if report.write_table(&mut text).is_ok() {
            self.erase();
            self.lines = text.split(|&byte| byte == b'\n').count() - 1;
            // A terminal that went away is no reason to end the run.
            let _ = std::io::stderr().write_all(&text);
        }
    }

    /// Takes the table off the terminal.
    pub(super) fn clear(mut self) {
        self.erase();
    }

    /// Moves up to the first line and clears all below (ECMA-48: CPL, ED).
    fn erase(&mut self) {
        if self.lines > 0 {
            let _ = write!(std::io::stderr(), "\x1b[{}F\x1b[J", self.lines);
            self.lines = 0;
        }
    }
}
