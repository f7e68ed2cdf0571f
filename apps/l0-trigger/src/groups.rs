//! The multicast groups that streams come to: joined on every port that is a host, for the run.

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use pollux_mempool::time::Ns;
use pollux_mempool::{Mbuf, PoolCache};
use pollux_pmd::net::MacAddr;
use pollux_pmd::net::igmp::{IgmpCounts, IgmpHost};
use pollux_pmd::{Cause, Count, Port, Started};
use pollux_program::metrics::Page;
use serde::Serialize;

use crate::side::{self, PortSide};

/// How long switches are told, at the end, that the groups are left.
const FAREWELL: Ns = Ns(1_000_000_000);

/// How long the end waits between two looks at what is due.
const NAP: Duration = Duration::from_millis(1);

/// The groups' member behind a port with these addresses; its first reports are due as soon as the
/// loop runs. Hosts with other MAC addresses answer at other times.
pub fn host(mac: MacAddr, ip: Ipv4Addr, groups: &[Ipv4Addr]) -> Result<Box<IgmpHost>> {
    let [a, b, c, d, e, f] = mac.0;
    let seed = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    let mut host = IgmpHost::new(mac, ip, seed);
    for &group in groups {
        host.join(group, Ns(0)).context("[[stream]]: group")?;
    }
    Ok(Box::new(host))
}

impl PortSide {
    /// Takes a frame that is no datagram, ARP or ping: the cause for which it is dropped, unless it
    /// is about groups.
    pub fn observe(&mut self, frame: &Mbuf, now: Ns) -> Option<Cause> {
        let Some(host) = &mut self.groups else {
            return Some(Cause::NotForUs);
        };
        host.observe(frame.data(), now).err().map(Cause::from)
    }

    /// Sends the reports that are due.
    #[inline]
    pub fn report_groups(&mut self, now: Ns, cache: &mut PoolCache) {
        if self.groups.as_ref().is_some_and(|host| host.due() <= now) {
            self.send_reports(now, cache);
        }
    }

    #[cold]
    fn send_reports(&mut self, now: Ns, cache: &mut PoolCache) {
        let (Some(host), Some(tx)) = (&mut self.groups, &mut self.tx) else {
            return;
        };
        let mut send = |frame: &[u8]| {
            side::send(tx, cache, |out| {
                out.get_mut(..frame.len())?.copy_from_slice(frame);
                Some(frame.len())
            })
        };
        while host.poll(now, &mut send) {}
    }
}

/// Leaves all groups, and tells so for as long as the standard has it repeated, a second at most.
/// `now` is the loops' time.
pub fn leave(sides: &mut [PortSide], cache: &mut PoolCache, now: impl Fn() -> Ns) {
    let start = now();
    let hosts = sides.iter_mut().filter_map(|side| side.groups.as_mut());
    hosts.for_each(|host| host.leave_all(start));
    let end = Ns(start.0.saturating_add(FAREWELL.0));
    loop {
        let time = now();
        let mut left = true;
        for side in sides.iter_mut().filter(|side| side.groups.is_some()) {
            side.report_groups(time, cache);
            side.retry(cache);
            left &= side.groups.as_ref().is_some_and(|host| host.has_left());
        }
        if left || time >= end {
            return;
        }
        std::thread::sleep(NAP);
    }
}

/// What is counted on each port that has joined groups.
pub struct GroupView {
    pub port: String,
    pub counts: Arc<IgmpCounts>,
}

/// Those of all ports.
pub fn views(ports: &[Port<Started>], sides: &[PortSide]) -> Vec<GroupView> {
    let view = |(port, side): (&Port<Started>, &PortSide)| {
        Some(GroupView {
            port: port.spec().into(),
            counts: side.groups.as_ref()?.counts(),
        })
    };
    ports.iter().zip(sides).filter_map(view).collect()
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
