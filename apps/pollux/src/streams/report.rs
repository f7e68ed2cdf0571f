//! The report: the busiest senders, and where every frame is.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;
use std::time::Duration;

use pollux_pmd::{Balance, Cause};
use pollux_program::ports::{PortView, Traffic};
use serde::Serialize;

use super::senders::{Counts, Reader};

/// What one sender sent to one UDP port.
#[derive(Serialize)]
struct Stream {
    src_ip: IpAddr,
    dst_port: u16,
    #[serde(flatten)]
    counts: Counts,
    /// The part of the counts that the rate is made of.
    #[serde(skip)]
    recent: Counts,
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

/// Receive queues of a port's device whose frames nobody gets.
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
    /// at the beginning of the time that rates are made for; it may be shorter, or empty.
    pub(super) fn new(reader: &Reader, before: &[Counts], balance: &Balance, top: usize) -> Self {
        let before = before
            .iter()
            .copied()
            .chain(std::iter::repeat(Counts::default()));
        let mut streams: Vec<_> = reader
            .senders()
            .zip(before)
            .map(|(sender, before)| Stream {
                src_ip: sender.src_ip,
                dst_port: sender.dst_port,
                counts: sender.counts,
                recent: Counts {
                    packets: sender.counts.packets - before.packets,
                    bytes: sender.counts.bytes - before.bytes,
                },
            })
            .collect();
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

    /// For people. `span` is the time that rates are made for; none can be made for none.
    pub(super) fn write_table(&self, out: &mut dyn Write, span: Duration) -> io::Result<()> {
        let per_second = |n: f64, digits| match span.as_secs_f64() {
            0.0 => "-".into(),
            seconds => format!("{:.digits$}", n / seconds),
        };
        let head = ["source", "port", "packets", "bytes", "packets/s", "Mbit/s"].map(String::from);
        let mut table = vec![head];
        table.extend(self.streams.iter().map(|stream| {
            [
                stream.src_ip.to_string(),
                stream.dst_port.to_string(),
                stream.counts.packets.to_string(),
                stream.counts.bytes.to_string(),
                per_second(stream.recent.packets as f64, 1),
                per_second(stream.recent.bytes as f64 * 8e-6, 3),
            ]
        }));
        table.extend(self.other.map(|other| {
            let (packets, bytes) = (other.packets.to_string(), other.bytes.to_string());
            [
                "(others)".into(),
                "-".into(),
                packets,
                bytes,
                "-".into(),
                "-".into(),
            ]
        }));
        let width = |column: usize| table.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths: [usize; 6] = std::array::from_fn(width);
        for row in &table {
            write!(out, "{:<1$}", row[0], widths[0])?;
            for (cell, width) in row.iter().zip(widths).skip(1) {
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
            let text = Cause::ALL
                .iter()
                .find(|cause| cause.name() == *name)
                .map(|c| c.text());
            writeln!(out, "{n:>12}  {name}: {}", text.unwrap_or_default())?;
        }
        for port in &self.unseen {
            writeln!(out, "Not seen: {}", port.words)?;
        }
        Ok(())
    }
}
