//! The metrics that stages register, on the page of metrics.

use std::collections::BTreeMap;
use std::fmt;

use pollux_app::metrics::Page;
use pollux_pipelines::{Metric, MetricKind, Metrics};

/// Writes a family for each name, with a sample for each stage that has it.
pub fn measure(metrics: &Metrics, page: &mut Page<'_>) -> fmt::Result {
    let mut families = BTreeMap::<&str, Vec<&Metric>>::new();
    for metric in metrics.all() {
        families.entry(metric.name()).or_default().push(metric);
    }
    for (name, metrics) in families {
        // All stages mean the same by it.
        let Some(first) = metrics.first() else {
            continue;
        };
        let name = format!("stage_{name}_{}", first.unit());
        let samples = metrics.iter().map(|metric| {
            let stage = [("stage", metric.stage().to_owned())];
            (stage, metric.value())
        });
        if first.kind() == MetricKind::Counter {
            page.counter(&name, first.help(), samples)?;
        } else {
            let samples = samples.map(|(stage, value)| (stage, value as f64));
            page.gauge(&name, first.help(), samples)?;
        }
    }
    Ok(())
}
