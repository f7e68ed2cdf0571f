//! Tables of rates, made from two pages of metrics and the time between them.

use std::collections::BTreeSet;

use super::openmetrics::{Labels, Page};
use crate::scale::scaled;

/// A table with its title.
#[derive(Debug, PartialEq)]
pub(super) struct Table {
    pub(super) title: &'static str,
    pub(super) header: Vec<&'static str>,
    pub(super) rows: Vec<Row>,
}

/// A line of a table.
#[derive(Debug, PartialEq)]
pub(super) struct Row {
    pub(super) cells: Vec<String>,
    /// Frames or events were lost or late since the last page.
    pub(super) alarm: bool,
}

/// Two consecutive pages of a program.
pub(super) struct View<'a> {
    pub(super) before: &'a Page,
    pub(super) now: &'a Page,
    /// Seconds between them.
    pub(super) seconds: f64,
}

impl View<'_> {
    /// All tables that are not empty.
    pub(super) fn tables(&self) -> Vec<Table> {
        let tables = [
            self.places(),
            self.drops(),
            self.sent(),
            self.streams(),
            self.events(),
            self.latencies(),
            self.gauges(),
        ];
        tables
            .into_iter()
            .filter(|table| !table.rows.is_empty())
            .collect()
    }

    fn total(&self, name: &str, labels: &Labels) -> f64 {
        self.now.get(name, labels).unwrap_or(0.0)
    }

    /// Increase of a counter. A counter below its earlier value was reset, so its whole value is
    /// new.
    fn growth(&self, name: &str, labels: &Labels) -> f64 {
        let now = self.total(name, labels);
        match self.before.get(name, labels) {
            Some(before) if before <= now => now - before,
            Some(_) => now,
            // The counter appears for the first time: its value may be old.
            None => 0.0,
        }
    }

    fn rate(&self, name: &str, labels: &Labels) -> String {
        rate(self.growth(name, labels) / self.seconds)
    }

    fn bits(&self, name: &str, labels: &Labels) -> String {
        bits(self.growth(name, labels) * 8.0 / self.seconds)
    }

    fn places(&self) -> Table {
        let dropped = |labels: &Labels, of: &dyn Fn(&Labels) -> f64| -> f64 {
            let causes = self.now.of("pollux_frames_dropped_total");
            causes
                .filter(|(l, _)| l.get("place") == labels.get("place"))
                .map(|(l, _)| of(l))
                .sum()
        };
        let row = |(labels, _): (&Labels, f64)| {
            let total = dropped(labels, &|l| self.total("pollux_frames_dropped_total", l));
            let more = dropped(labels, &|l| self.growth("pollux_frames_dropped_total", l));
            let cells = vec![
                label(labels, "place"),
                self.rate("pollux_frames_from_wire_total", labels),
                self.bits("pollux_bytes_from_wire_total", labels),
                self.rate("pollux_frames_delivered_total", labels),
                count(self.total("pollux_frames_delivered_total", labels)),
                rate(more / self.seconds),
                count(total),
            ];
            Row {
                cells,
                alarm: more > 0.0,
            }
        };
        Table {
            title: "Frames",
            header: vec![
                "place",
                "from wire",
                "bit/s",
                "delivered",
                "in all",
                "dropped",
                "in all",
            ],
            rows: self
                .now
                .of("pollux_frames_from_wire_total")
                .map(row)
                .collect(),
        }
    }

    fn drops(&self) -> Table {
        let name = "pollux_frames_dropped_total";
        let lost = self.now.of(name).filter(|&(_, total)| total > 0.0);
        let row = |(labels, total): (&Labels, f64)| Row {
            cells: vec![
                label(labels, "place"),
                label(labels, "cause"),
                self.rate(name, labels),
                count(total),
            ],
            alarm: self.growth(name, labels) > 0.0,
        };
        Table {
            title: "Dropped, by cause",
            header: vec!["place", "cause", "now", "in all"],
            rows: lost.map(row).collect(),
        }
    }

    fn sent(&self) -> Table {
        let row = |(labels, total): (&Labels, f64)| Row {
            cells: vec![
                format!("{} queue {}", label(labels, "port"), label(labels, "queue")),
                self.rate("pollux_frames_sent_total", labels),
                self.bits("pollux_bytes_sent_total", labels),
                count(total),
                count(self.total("pollux_send_errors_total", labels)),
            ],
            alarm: self.growth("pollux_send_errors_total", labels) > 0.0,
        };
        Table {
            title: "Sent",
            header: vec!["port", "frames", "bit/s", "in all", "errors"],
            rows: self.now.of("pollux_frames_sent_total").map(row).collect(),
        }
    }

    fn streams(&self) -> Table {
        let faults = "pollux_stream_sequence_faults_total";
        let row = |(labels, total): (&Labels, f64)| {
            let own = || {
                let of_stream = move |l: &&Labels| l.get("stream") == labels.get("stream");
                self.now.of(faults).map(|(l, _)| l).filter(of_stream)
            };
            let said: Vec<_> = own()
                .filter(|l| self.total(faults, l) > 0.0)
                .map(|l| format!("{} {}", count(self.total(faults, l)), label(l, "fault")))
                .collect();
            let cells = vec![
                label(labels, "stream"),
                self.rate("pollux_stream_frames_total", labels),
                self.bits("pollux_stream_bytes_total", labels),
                count(total),
                said.join(", "),
            ];
            Row {
                cells,
                alarm: own().any(|l| self.growth(faults, l) > 0.0),
            }
        };
        let mut rows: Vec<_> = self.now.of("pollux_stream_frames_total").collect();
        rows.sort_by_key(|(labels, _)| label(labels, "stream").parse::<u64>().unwrap_or(u64::MAX));
        Table {
            title: "Streams",
            header: vec!["stream", "frames", "bit/s", "in all", "faults"],
            rows: rows.into_iter().map(row).collect(),
        }
    }

    fn events(&self) -> Table {
        const LATE: [&str; 2] = [
            "pollux_l0_late_decisions_total",
            "pollux_l0_deadline_missed_total",
        ];
        let names = [
            "pollux_l0_events_total",
            "pollux_l0_decisions_total",
            LATE[0],
            LATE[1],
        ];
        let row = |name: &str, labels: &Labels, total: f64| {
            let what = name
                .trim_start_matches("pollux_l0_")
                .trim_end_matches("_total");
            let what = what.replace('_', " ");
            let outcome = labels
                .get("outcome")
                .map_or(String::new(), |o| format!(", {o}"));
            Row {
                cells: vec![what + &outcome, self.rate(name, labels), count(total)],
                alarm: LATE.contains(&name) && self.growth(name, labels) > 0.0,
            }
        };
        let samples = names.iter().flat_map(|name| {
            let samples = self.now.of(name).filter(|&(_, total)| total > 0.0);
            samples.map(move |(labels, total)| row(name, labels, total))
        });
        Table {
            title: "Events",
            header: vec!["", "now", "in all"],
            rows: samples.collect(),
        }
    }

    /// Every histogram, over the interval between both pages, and over the whole run.
    fn latencies(&self) -> Table {
        let names: BTreeSet<_> = self.now.0.keys().map(|(name, _)| &name[..]).collect();
        let mut rows = Vec::new();
        for name in names.iter().filter_map(|name| name.strip_suffix("_bucket")) {
            for (labels, _) in self.now.of(&format!("{name}_count")) {
                let what: Vec<_> = labels.values().map(String::as_str).collect();
                let what = format!("{} {}", name.trim_start_matches("pollux_"), what.join(" "));
                let mut cells = vec![what];
                for part in [
                    self.buckets(name, labels, Self::growth),
                    self.buckets(name, labels, Self::total),
                ] {
                    cells.extend(
                        [0.5, 0.99, 0.999, 1.0]
                            .map(|q| quantile(&part, q).map_or("-".into(), time)),
                    );
                }
                rows.push(Row {
                    cells,
                    alarm: false,
                });
            }
        }
        Table {
            title: "Times, at most (now, and in all)",
            header: vec![
                "", "p50", "p99", "p99.9", "max", "p50", "p99", "p99.9", "max",
            ],
            rows,
        }
    }

    /// Upper bounds and cumulative counts, in ascending order.
    fn buckets(
        &self,
        name: &str,
        labels: &Labels,
        value: fn(&Self, &str, &Labels) -> f64,
    ) -> Vec<(f64, f64)> {
        let name = format!("{name}_bucket");
        let own = self.now.of(&name).filter(|(l, _)| {
            l.len() == labels.len() + 1 && labels.iter().all(|(k, v)| l.get(k) == Some(v))
        });
        let mut buckets: Vec<_> = own
            .filter_map(|(l, _)| {
                let bound = l.get("le")?;
                let bound = if bound == "+Inf" {
                    f64::INFINITY
                } else {
                    bound.parse().ok()?
                };
                Some((bound, value(self, &name, l)))
            })
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        buckets
    }

    fn gauges(&self) -> Table {
        let name = "pollux_link_up";
        let row = |(labels, up): (&Labels, f64)| Row {
            cells: vec![
                label(labels, "port"),
                if up > 0.0 { "up" } else { "down" }.into(),
            ],
            alarm: up == 0.0,
        };
        Table {
            title: "Links",
            header: vec!["port", "link"],
            rows: self.now.of(name).map(row).collect(),
        }
    }
}

fn label(labels: &Labels, name: &str) -> String {
    // Control characters are removed: the text is untrusted.
    let value = labels.get(name).map_or("", String::as_str);
    value.chars().filter(|c| !c.is_control()).collect()
}

/// The bound that a share of all values does not exceed; `None` without values.
fn quantile(buckets: &[(f64, f64)], share: f64) -> Option<f64> {
    let all = buckets.last().filter(|last| last.1 > 0.0)?.1;
    let found = buckets.iter().find(|(_, up_to)| *up_to >= share * all);
    found.map(|(bound, _)| *bound)
}

fn rate(per_second: f64) -> String {
    format!("{}/s", scaled(per_second))
}

fn bits(per_second: f64) -> String {
    format!("{}bit/s", scaled(per_second))
}

fn count(value: f64) -> String {
    format!("{value:.0}")
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s.is_infinite() => "over".into(),
        s if s >= 1.0 => format!("{s:.1} s"),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s if s >= 1e-6 => format!("{:.1} us", s * 1e6),
        s => format!("{:.0} ns", s * 1e9),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tables(before: &str, now: &str) -> Vec<Table> {
        let (before, now) = (Page::parse(before), Page::parse(now));
        View {
            before: &before,
            now: &now,
            seconds: 2.0,
        }
        .tables()
    }

    #[test]
    fn a_rate_is_growth_over_time_and_growing_loss_alarms() {
        let page = |frames: u32, late: u32| {
            format!(
                "pollux_frames_from_wire_total{{place=\"a\"}} {frames}\n\
                 pollux_frames_dropped_total{{place=\"a\",cause=\"late\"}} {late}\n"
            )
        };
        let shown = tables(&page(1000, 5), &page(5000, 7));
        assert_eq!(shown[0].rows[0].cells[1], "2.00 k/s");
        assert!(shown[0].rows[0].alarm && shown[1].rows[0].alarm);
        assert_eq!(shown[1].rows[0].cells, ["a", "late", "1 /s", "7"]);
        // Earlier losses do not raise an alarm.
        let quiet = tables(&page(1000, 7), &page(5000, 7));
        assert!(!quiet[0].rows[0].alarm && !quiet[1].rows[0].alarm);
    }

    #[test]
    fn a_program_that_began_anew_has_no_negative_rate() {
        let shown = tables(
            "pollux_frames_sent_total{port=\"p\",queue=\"0\"} 900\n",
            "pollux_frames_sent_total{port=\"p\",queue=\"0\"} 100\n",
        );
        assert_eq!(shown[0].rows[0].cells[1], "50 /s");
    }

    #[test]
    fn quantiles_are_of_the_last_interval_and_of_the_run() {
        let page = |counts: [u32; 3]| {
            let bounds = ["1e-06", "0.001", "+Inf"];
            let lines = bounds.iter().zip(counts).map(|(bound, n)| {
                format!("pollux_t_seconds_bucket{{le=\"{bound}\",stage=\"s\"}} {n}\n")
            });
            lines.collect::<String>()
                + &format!("pollux_t_seconds_count{{stage=\"s\"}} {}\n", counts[2])
        };
        let shown = tables(&page([99, 99, 99]), &page([99, 100, 100]));
        let cells = &shown[0].rows[0].cells;
        assert_eq!(cells[1..5], ["1.0 ms", "1.0 ms", "1.0 ms", "1.0 ms"]);
        assert_eq!(cells[5..9], ["1.0 us", "1.0 us", "1.0 ms", "1.0 ms"]);
    }
}
