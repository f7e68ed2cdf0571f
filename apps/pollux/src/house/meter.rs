//! The line of rates that a run shows every second.

use std::fmt::Write;
use std::time::{Duration, Instant};

use pollux_pmd::Ledger;
use pollux_program::ports::{PortView, Traffic};

const EVERY: Duration = Duration::from_secs(1);

/// Makes rates of counters.
pub(super) struct Meter<'p> {
    ports: &'p [PortView],
    begin: Instant,
    shown: Instant,
    before: Vec<Traffic>,
}

impl<'p> Meter<'p> {
    pub(super) fn new(begin: Instant, ports: &'p [PortView]) -> Self {
        Self {
            ports,
            begin,
            shown: begin,
            before: ports.iter().map(PortView::traffic).collect(),
        }
    }

    /// The line, if it is time for one: the rates since the last.
    pub(super) fn line(&mut self, ledger: &Ledger) -> Option<String> {
        let span = self.shown.elapsed();
        if span < EVERY {
            return None;
        }
        self.shown += span;
        let now: Vec<_> = self.ports.iter().map(PortView::traffic).collect();
        let mut line = format!("{:5.0} s", (self.shown - self.begin).as_secs_f64());
        for (now, before) in now.iter().zip(&self.before) {
            let rate = |now: u64, before: u64| (now - before) as f64 / span.as_secs_f64();
            // Writing to a string cannot fail.
            let _ = write!(
                line,
                "  {}: rx {}, tx {};",
                now.spec,
                both(
                    rate(now.rx_packets, before.rx_packets),
                    rate(now.rx_bytes, before.rx_bytes)
                ),
                both(
                    rate(now.tx_packets, before.tx_packets),
                    rate(now.tx_bytes, before.tx_bytes)
                ),
            );
        }
        let _ = write!(line, "  dropped {}", ledger.balance().dropped_total());
        self.before = now;
        Some(line)
    }
}

/// Packets and bits a second.
fn both(packets: f64, bytes: f64) -> String {
    format!("{}pps {}bit/s", scaled(packets), scaled(bytes * 8.0))
}

/// Three figures and a unit prefix.
pub(crate) fn scaled(n: f64) -> String {
    let (n, prefix) = match n {
        n if n < 1e3 => (n, ""),
        n if n < 1e6 => (n / 1e3, "k"),
        n if n < 1e9 => (n / 1e6, "M"),
        n => (n / 1e9, "G"),
    };
    let digits = match n {
        n if n < 10.0 && !prefix.is_empty() => 2,
        n if n < 100.0 && !prefix.is_empty() => 1,
        _ => 0,
    };
    format!("{n:.digits$} {prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_figures() {
        for (n, text) in [
            (0.0, "0 "),
            (999.0, "999 "),
            (1500.0, "1.50 k"),
            (14_880_952.0, "14.9 M"),
            (1e11, "100 G"),
        ] {
            assert_eq!(scaled(n), text);
        }
    }
}
