//! Progress line with the rates of a run, once a second.

use std::fmt::Write;
use std::time::{Duration, Instant};

use pollux_app::ports::{PortView, Traffic};
use pollux_pmd::Ledger;

use crate::scale::scaled;

const EVERY: Duration = Duration::from_secs(1);

/// Computes rates from counters.
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

    /// The line, if it is due: the rates since the last one.
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
