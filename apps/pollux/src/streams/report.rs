//! The report: the busiest senders, and where every frame is.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;
use std::time::Duration;

use pollux_app::ports::{PortView, Traffic};
use pollux_pmd::{Balance, Cause};
use serde::Serialize;

use super::destination::Destination;
use super::senders::{Counts, Reader, Sender};

/// What one sender sent to one UDP port.
#[derive(Serialize)]
struct Stream {
    src_ip: IpAddr,
    dst_port: u16,
    #[serde(flatten)]
    counts: Counts,
    /// Where it goes, in order of first appearance.
    to: Vec<Destination>,
    /// It goes elsewhere too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    to_more: bool,
    /// Datagrams, and bits of their payloads, a second; none where there was no time.
    rate_pps: Option<f64>,
    rate_bps: Option<f64>,
}

impl Stream {
    /// Its line of the table.
    fn cells(&self) -> [String; 8] {
        let rate = |rate: Option<f64>, digits| rate.map_or("-".into(), |n| format!("{n:.digits$}"));
        let others = match (self.to.len(), self.to_more) {
            (0 | 1, _) => String::new(),
            (n, false) => format!(" +{}", n - 1),
            (n, true) => format!(" +{n} or more"),
        };
        let first = self.to.first();
        [
            self.src_ip.to_string(),
            first.map_or(String::new(), |to| format!("{to}{others}")),
            first.map_or(String::new(), Destination::vlans),
            self.dst_port.to_string(),
            self.counts.packets.to_string(),
            self.counts.bytes.to_string(),
            rate(self.rate_pps, 1),
            rate(self.rate_bps.map(|bits| bits / 1e6), 3),
        ]
    }
}

/// The contract of `--json`.
#[derive(Serialize)]
pub(super) struct Report {
    /// Busiest first.
    streams: Vec<Stream>,
    /// Senders that are not listed, together.
    #[serde(skip_serializing_if = "Option::is_none")]
    other: Option<Counts>,
    dropped: BTreeMap<&'static str, u64>,
    from_wire: u64,
    delivered: u64,
    pub(super) balanced: bool,
    /// Of ports that some frames pass by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unseen: Vec<Unseen>,
}

/// Receive queues of a port's device that are not polled.
#[derive(Serialize)]
struct Unseen {
    spec: String,
    unpolled_queues: Vec<u16>,
    #[serde(skip)]
    words: String,
}

impl Unseen {
    fn of(port: Traffic) -> Option<Self> {
        Some(Self {
            words: port.unseen()?,
            spec: port.spec,
            unpolled_queues: port.unpolled_queues,
        })
    }
}

impl Report {
    /// The `top` senders with the most packets. `before` has the counts, in the reader's order,
    /// at the beginning of `span`, the time that rates are made for; it may be shorter, or empty.
    pub(super) fn new(
        reader: &Reader,
        before: &[Counts],
        balance: &Balance,
        top: usize,
        span: Duration,
    ) -> Self {
        let before = before
            .iter()
            .copied()
            .chain(std::iter::repeat(Counts::default()));
        let rate = |n: u64| {
            let seconds = span.as_secs_f64();
            (seconds > 0.0).then(|| n as f64 / seconds)
        };
        let stream = |(sender, before): (Sender<'_>, Counts)| Stream {
            src_ip: sender.src_ip,
            dst_port: sender.dst_port,
            counts: sender.counts,
            to: sender.destinations.kept(),
            to_more: sender.destinations.has_more(),
            rate_pps: rate(sender.counts.packets - before.packets),
            rate_bps: rate(8 * (sender.counts.bytes - before.bytes)),
        };
        let mut streams: Vec<_> = reader.senders().zip(before).map(stream).collect();
        streams.sort_by_key(|s| (Reverse(s.counts.packets), s.src_ip, s.dst_port));
        let mut other = reader.other();
        for stream in streams.drain(top.min(streams.len())..) {
            other.packets += stream.counts.packets;
            other.bytes += stream.counts.bytes;
        }
        Self {
            streams,
            other: (other.packets > 0).then_some(other),
            dropped: balance
                .drops()
                .map(|(cause, n)| (cause.name(), n))
                .collect(),
            from_wire: balance.from_wire,
            delivered: balance.delivered,
            balanced: balance.is_balanced(),
            unseen: Vec::new(),
        }
    }

    /// Tells of what passes by these ports.
    pub(super) fn with_unseen(mut self, ports: &[PortView]) -> Self {
        let ports = ports.iter().map(PortView::traffic);
        self.unseen = ports.filter_map(Unseen::of).collect();
        self
    }

    /// For people, with what the ledger says.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let verdict = if self.balanced {
            "balances"
        } else {
            "does not balance"
        };
        self.write_table(out)?;
        writeln!(out, "The loss ledger {verdict}.")
    }

    /// For people.
    pub(super) fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        let head = [
            "source",
            "destination",
            "vlan",
            "port",
            "packets",
            "bytes",
            "packets/s",
            "Mbit/s",
        ];
        let mut table = vec![head.map(String::from)];
        table.extend(self.streams.iter().map(Stream::cells));
        table.extend(self.other.map(|other| {
            let (packets, bytes) = (other.packets.to_string(), other.bytes.to_string());
            ["(others)", "-", "-", "-", &packets, &bytes, "-", "-"].map(String::from)
        }));
        let width = |column: usize| table.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths: [usize; 8] = std::array::from_fn(width);
        for row in &table {
            write!(out, "{:<2$}  {:<3$}", row[0], row[1], widths[0], widths[1])?;
            for (cell, width) in row.iter().zip(widths).skip(2) {
                write!(out, "  {cell:>width$}")?;
            }
            writeln!(out)?;
        }
        writeln!(out)?;
        let dropped: u64 = self.dropped.values().sum();
        writeln!(
            out,
            "{} frames from the wire, {} delivered, {dropped} dropped",
            self.from_wire, self.delivered
        )?;
        for (name, n) in &self.dropped {
            let text = Cause::all()
                .find(|cause| cause.name() == *name)
                .map(Cause::text);
            writeln!(out, "{n:>12}  {name}: {}", text.unwrap_or_default())?;
        }
        for port in &self.unseen {
            writeln!(out, "Not seen: {}", port.words)?;
        }
        Ok(())
    }
}
