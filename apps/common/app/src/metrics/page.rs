//! One page of metrics in the OpenMetrics text format.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::get;
use pollux_pmd::ledger::SentView;
use pollux_pmd::quarantine::{leaked_buffers, quarantined_buffers};
use pollux_pmd::{LatencyView, Ledger};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

use crate::ports::PortView;

/// A source of metrics.
pub trait Source: Send + Sync + 'static {
    /// Writes the current values of all metrics.
    ///
    /// # Errors
    /// Those of the page, handed on.
    fn measure(&self, page: &mut Page<'_>) -> fmt::Result;
}

/// Names and values of a sample's labels.
pub type Labels<const L: usize> = [(&'static str, String); L];

/// The library writes values verbatim. The format requires backslashes, quotes and line feeds
/// escaped (OpenMetrics, "Escaping").
fn escaped<const L: usize>(labels: Labels<L>) -> Labels<L> {
    labels.map(|(name, value)| {
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        (name, value)
    })
}

/// A page that is being written. Names are given without their prefix `pollux_`, and names of
/// counters without `_total`: the format adds both.
pub struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    /// Name, version and build of this program.
    fn build(&mut self, labels: &Build) -> fmt::Result {
        let help = "The program that is running, as it was built";
        let mut metric = self
            .0
            .encode_descriptor("build", help, None, MetricType::Info)?;
        metric.encode_info(&labels.0)
    }

    /// Counters, one for each set of labels.
    ///
    /// # Errors
    /// Those of the page.
    pub fn counter<const L: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<L>, u64)>,
    ) -> fmt::Result {
        let mut metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in samples {
            metric
                .encode_family(&escaped(labels))?
                .encode_counter(&value, None::<&Exemplar<NoLabels, u64>>)?;
        }
        Ok(())
    }

    /// Gauges, one for each set of labels.
    ///
    /// # Errors
    /// Those of the page.
    pub fn gauge<const L: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<L>, f64)>,
    ) -> fmt::Result {
        let mut metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in samples {
            metric
                .encode_family(&escaped(labels))?
                .encode_gauge(&value)?;
        }
        Ok(())
    }

    /// Histograms of times in seconds, in powers of two of nanoseconds.
    ///
    /// # Errors
    /// Those of the page.
    pub fn latency<const L: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<L>, LatencyView)>,
    ) -> fmt::Result {
        const SECOND: f64 = 1e9;
        let mut metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, view) in samples {
            let mut buckets: Vec<_> = view
                .octaves()
                .map(|(top, n)| (top as f64 / SECOND, n))
                .collect();
            // The format requires a last bucket without upper bound. The longest time is used for
            // all longer ones.
            if let Some(last) = buckets.last_mut() {
                last.0 = f64::MAX;
            }
            let count = buckets.iter().map(|&(_, n)| n).sum();
            let sum = view.sum() as f64 / SECOND;
            metric.encode_family(&escaped(labels))?.encode_histogram(
                sum,
                count,
                &buckets,
                None::<&Exemplars>,
            )?;
        }
        Ok(())
    }

    /// The ledger of a run: frames by place and cause.
    ///
    /// # Errors
    /// Those of the page.
    pub fn ledger(&mut self, ledger: &Ledger) -> fmt::Result {
        let places: Vec<_> = ledger
            .places()
            .map(|(place, share)| (place.to_owned(), share.0))
            .collect();
        let place = |name: &String| [("place", name.clone())];
        let by_place = |value: fn(&pollux_pmd::Balance) -> u64| {
            places
                .iter()
                .map(move |(name, balance)| (place(name), value(balance)))
        };
        self.counter(
            "frames_from_wire",
            "Frames that reached the ports",
            by_place(|b| b.from_wire),
        )?;
        self.counter(
            "bytes_from_wire",
            "Their bytes, without preamble and frame check sequence",
            by_place(|b| b.bytes),
        )?;
        self.counter(
            "frames_delivered",
            "Frames that reached their consumers",
            by_place(|b| b.delivered),
        )?;
        let dropped = places.iter().flat_map(|(name, balance)| {
            pollux_pmd::Cause::all().map(move |cause| {
                (
                    [("place", name.clone()), ("cause", cause.name().into())],
                    balance.dropped_for(cause),
                )
            })
        });
        self.counter("frames_dropped", "Frames that were lost, by cause", dropped)
    }

    /// Sent frames, by port and queue.
    ///
    /// # Errors
    /// Those of the page.
    pub fn sent<'s>(
        &mut self,
        ports: impl Iterator<Item = (&'s str, &'s [SentView])>,
    ) -> fmt::Result {
        let queues: Vec<_> = ports
            .flat_map(|(port, queues)| (0..).zip(queues).map(move |(k, view)| (port, k, view)))
            .collect();
        let by_queue = |value: fn(&SentView) -> u64| {
            queues
                .iter()
                .map(move |&(port, queue, view): &(&str, u32, &SentView)| {
                    (
                        [("port", port.to_owned()), ("queue", queue.to_string())],
                        value(view),
                    )
                })
        };
        self.counter(
            "frames_sent",
            "Frames put on the wire",
            by_queue(SentView::packets),
        )?;
        self.counter("bytes_sent", "Their bytes", by_queue(SentView::bytes))?;
        self.counter(
            "send_errors",
            "Frames that the device refused",
            by_queue(SentView::errors),
        )
    }

    /// Link state of the ports, and the buffers that their devices and peers have not released.
    ///
    /// # Errors
    /// Those of the page.
    pub fn links(&mut self, ports: &[PortView]) -> fmt::Result {
        let up = ports.iter().map(|port| {
            let up = if port.is_up() { 1.0 } else { 0.0 };
            ([("port", port.spec().to_owned())], up)
        });
        self.gauge("link_up", "1 where frames can pass, else 0", up)?;
        self.gauge(
            "quarantined_buffers",
            "Packet buffers in quarantine until a device or peer has released them",
            [([], quarantined_buffers() as f64)],
        )?;
        self.counter(
            "leaked_buffers",
            "Packet buffers leaked, since no device or peer was proven to have released them",
            [([], leaked_buffers())],
        )
    }
}

/// The labels of `pollux_build_info`.
struct Build(Vec<(&'static str, String)>);

impl Build {
    fn of_this_program() -> Self {
        let path = std::env::current_exe().unwrap_or_default();
        let program = path.file_name().unwrap_or_default().to_string_lossy();
        let labels = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("program", program.into_owned()),
        ];
        // Set by the build: the source need not be in a repository.
        let commit = option_env!("POLLUX_COMMIT").map(|commit| [("commit", commit.to_owned())]);
        let all = escaped(labels).into_iter();
        Self(
            all.chain(commit.map(escaped).into_iter().flatten())
                .collect(),
        )
    }
}

type NoLabels = [(&'static str, &'static str); 0];
type Exemplars = std::collections::HashMap<usize, Exemplar<NoLabels, f64>>;

impl<S: Source> Source for Arc<S> {
    fn measure(&self, page: &mut Page<'_>) -> fmt::Result {
        self.as_ref().measure(page)
    }
}

/// Content type that Prometheus requests; see the OpenMetrics specification, "Content type".
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Route of `GET /metrics`: all metrics of `source`.
pub fn routes(source: impl Source) -> Router {
    let registry = Arc::new(registry(source));
    let metrics = move || async move {
        match write(&registry) {
            Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    };
    Router::new().route("/metrics", get(metrics))
}

/// Makes a registry that reads a source whenever it is encoded.
fn registry(source: impl Source) -> Registry {
    struct Asked<S>(Build, S);
    impl<S> fmt::Debug for Asked<S> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Asked")
        }
    }
    impl<S: Source> Collector for Asked<S> {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
            let mut page = Page(encoder);
            page.build(&self.0)?;
            self.1.measure(&mut page)
        }
    }
    let mut registry = Registry::with_prefix("pollux");
    registry.register_collector(Box::new(Asked(Build::of_this_program(), source)));
    registry
}

/// The page of a registry.
fn write(registry: &Registry) -> Result<String, fmt::Error> {
    let mut text = String::new();
    text::encode(&mut text, registry)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use pollux_pmd::{Cause, LatencyHistogram, Tally};

    struct Some(Ledger, LatencyView);
    impl Source for Some {
        fn measure(&self, page: &mut Page<'_>) -> fmt::Result {
            page.ledger(&self.0)?;
            page.gauge(
                "link_up",
                "Whether it is",
                [([("port", "a\"b".into())], 1.0)],
            )?;
            page.latency(
                "stage_seconds",
                "Times",
                [([("stage", "rings".into())], self.1.clone())],
            )
        }
    }

    #[test]
    fn a_page_has_what_was_counted() {
        let (mut tally, mut times, mut ledger) =
            (Tally::new(), LatencyHistogram::new(), Ledger::new());
        ledger.add("null queue 0", tally.view());
        tally.count_from_wire(10, 640);
        tally.count_dropped(Cause::NoMbuf, 3);
        let own = Cause::declare("of-a-driver", "for a reason of its own").unwrap();
        tally.count_dropped(own, 4);
        for ns in [100, 3000, 1 << 40] {
            times.record(ns);
        }
        let registry = registry(Some(ledger, times.view()));
        let page = write(&registry).unwrap();
        for line in [
            "pollux_frames_from_wire_total{place=\"null queue 0\"} 10",
            "pollux_frames_dropped_total{place=\"null queue 0\",cause=\"no-mbuf\"} 3",
            "pollux_frames_dropped_total{place=\"null queue 0\",cause=\"late\"} 0",
            "pollux_frames_dropped_total{place=\"null queue 0\",cause=\"of-a-driver\"} 4",
            "pollux_link_up{port=\"a\\\"b\"} 1.0",
            "pollux_stage_seconds_bucket{le=\"1.27e-7\",stage=\"rings\"} 1",
            "pollux_stage_seconds_bucket{le=\"+Inf\",stage=\"rings\"} 3",
            "pollux_stage_seconds_count{stage=\"rings\"} 3",
        ] {
            assert!(page.lines().any(|l| l == line), "{line}\n{page}");
        }
        let build = page.lines().find(|l| l.starts_with("pollux_build_info{"));
        let build = build.unwrap();
        let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
        assert!(
            build.contains(&version) && build.contains("program=\"pollux_app-"),
            "{build}"
        );
        assert_eq!(
            build.contains("commit="),
            option_env!("POLLUX_COMMIT").is_some()
        );
        assert!(build.ends_with("} 1"), "{build}");
        // The next page includes what has been counted since.
        tally.count_from_wire(1, 64);
        assert!(
            write(&registry)
                .unwrap()
                .contains("{place=\"null queue 0\"} 11")
        );
    }
}
