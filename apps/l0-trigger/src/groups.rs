//! The multicast groups of the streams in the report and in the metrics.

use std::fmt;
use std::sync::Arc;

use pollux_app::metrics::Page;
use pollux_pmd::endpoint::PortEndpoint;
use pollux_pmd::net::igmp::IgmpCounts;
use pollux_pmd::{Count, Port, Started};
use serde::Serialize;

/// What is counted on each port that has joined groups.
pub struct GroupView {
    pub port: String,
    pub counts: Arc<IgmpCounts>,
}

/// Those of all ports.
pub fn views(ports: &[Port<Started>], endpoints: &[PortEndpoint]) -> Vec<GroupView> {
    let view = |(port, endpoint): (&Port<Started>, &PortEndpoint)| {
        Some(GroupView {
            port: port.spec().into(),
            counts: endpoint.group_counts()?,
        })
    };
    ports.iter().zip(endpoints).filter_map(view).collect()
}

/// What a port did to be a member of groups.
#[derive(Debug, Serialize)]
pub struct GroupReport {
    pub port: String,
    /// The version of IGMP that it spoke last.
    pub version: u64,
    pub joins: u64,
    pub leaves: u64,
    /// Queries that it heard.
    pub queries: u64,
    /// Reports that it sent, and those of them that answer queries.
    pub reports: u64,
    pub answers: u64,
    /// Reports that those of other hosts made needless.
    pub spared: u64,
    /// Messages that were ignored.
    pub bad: u64,
    /// Times that a report had to wait for room.
    pub unsent: u64,
}

impl GroupReport {
    pub fn of(view: &GroupView) -> Self {
        let counts = &view.counts;
        Self {
            port: view.port.clone(),
            version: counts.version.get(),
            joins: counts.joins.get(),
            leaves: counts.leaves.get(),
            queries: counts.queries.get(),
            reports: counts.reports.get(),
            answers: counts.answers.get(),
            spared: counts.spared.get(),
            bad: counts.bad.get(),
            unsent: counts.unsent.get(),
        }
    }
}

impl fmt::Display for GroupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            port,
            version,
            joins,
            queries,
            reports,
            answers,
            ..
        } = self;
        write!(
            f,
            "groups     {port}: {joins} joined, by IGMPv{version}; {queries} queries, {reports} \
             reports sent, {answers} of them answers"
        )?;
        let rest = [
            (self.bad, "bad messages ignored"),
            (self.unsent, "tries without room to send"),
        ];
        for (n, what) in rest.into_iter().filter(|&(n, _)| n > 0) {
            write!(f, "; {n} {what}")?;
        }
        Ok(())
    }
}

/// Metrics of all ports.
pub fn measure(views: &[GroupView], page: &mut Page<'_>) -> fmt::Result {
    let port = |view: &GroupView| ("port", view.port.clone());
    let groups = views
        .iter()
        .map(|view| ([port(view)], view.counts.groups.get() as f64));
    let help = "Multicast groups that each port is a member of";
    page.gauge("igmp_groups", help, groups)?;
    let versions = views
        .iter()
        .map(|view| ([port(view)], view.counts.version.get() as f64));
    let help = "The version of IGMP that each port speaks: that of the oldest querier";
    page.gauge("igmp_version", help, versions)?;
    let messages = views.iter().flat_map(|view| {
        let counts = &view.counts;
        let kinds: [(&str, &Count); 6] = [
            ("query", &counts.queries),
            ("report", &counts.reports),
            ("answer", &counts.answers),
            ("spared", &counts.spared),
            ("bad", &counts.bad),
            ("unsent", &counts.unsent),
        ];
        kinds.map(|(kind, count)| ([port(view), ("kind", kind.into())], count.get()))
    });
    let help = "Messages about multicast groups, by what they were";
    page.counter("igmp_messages", help, messages)
}
