//! The table of senders: one poll loop writes it, any thread reads it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use pollux_pmd::Count;
use pollux_pmd::net::Udp;

use super::destination::{Destination, Destinations};

/// Datagrams, and the bytes of their payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(super) struct Counts {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// One sender to one port, and what it has sent where.
pub(super) struct Sender<'a> {
    pub(super) src_ip: IpAddr,
    pub(super) dst_port: u16,
    pub(super) counts: Counts,
    pub(super) destinations: &'a Destinations,
}

#[derive(Default)]
struct Cells {
    packets: Count,
    bytes: Count,
}

impl Cells {
    fn count(&self, udp: &Udp) {
        self.packets.add(1);
        self.bytes.add(u64::from(udp.payload_len));
    }

    fn counts(&self) -> Counts {
        Counts {
            packets: self.packets.get(),
            bytes: self.bytes.get(),
        }
    }
}

type Key = (IpAddr, u16);

struct Row {
    key: Key,
    cells: Cells,
    destinations: Destinations,
}

/// In order of first appearance; a row never moves or goes.
struct Table {
    rows: Box<[OnceLock<Row>]>,
    /// Datagrams of senders that found the table full.
    other: Cells,
}

/// The writer's side.
pub(super) struct Senders {
    table: Arc<Table>,
    /// Row of each sender. The default hasher is keyed: strangers choose the addresses, and must
    /// not be able to choose ones that collide.
    index: HashMap<Key, usize>,
}

/// The reader's side.
pub(super) struct Reader(Arc<Table>);

impl Senders {
    /// An empty table for at most `limit` senders; no memory is taken after this.
    pub(super) fn new(limit: usize) -> Self {
        let rows = (0..limit).map(|_| OnceLock::new()).collect();
        let table = Arc::new(Table {
            rows,
            other: Cells::default(),
        });
        Self {
            table,
            index: HashMap::with_capacity(limit),
        }
    }

    pub(super) fn reader(&self) -> Reader {
        Reader(Arc::clone(&self.table))
    }

    /// Counts a datagram for its sender; `frame` is the first part of what it came in.
    pub(super) fn count(&mut self, udp: &Udp, frame: &[u8]) {
        let key = (udp.addresses.src(), udp.dst_port);
        let known = self.index.get(&key).copied();
        let row = known.unwrap_or(self.index.len());
        match self.table.rows.get(row) {
            Some(cell) => {
                if known.is_none() {
                    self.index.insert(key, row);
                }
                let row = cell.get_or_init(|| Row {
                    key,
                    cells: Cells::default(),
                    destinations: Destinations::default(),
                });
                row.cells.count(udp);
                row.destinations.add(Destination::of(udp, frame));
            }
            None => self.table.other.count(udp),
        }
    }
}

impl Reader {
    /// The senders so far, in order of first appearance.
    pub(super) fn senders(&self) -> impl Iterator<Item = Sender<'_>> {
        self.0
            .rows
            .iter()
            .map_while(OnceLock::get)
            .map(|row| Sender {
                src_ip: row.key.0,
                dst_port: row.key.1,
                counts: row.cells.counts(),
                destinations: &row.destinations,
            })
    }

    /// All senders that did not fit, together.
    pub(super) fn other(&self) -> Counts {
        self.0.other.counts()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use pollux_pmd::net::Addresses;
    use std::net::Ipv4Addr;

    fn udp(src: u32, dst_port: u16, payload_len: u16) -> Udp {
        let src = Ipv4Addr::from_bits(src);
        let addresses = Addresses::V4 { src, dst: src };
        Udp {
            addresses,
            src_port: 1,
            dst_port,
            payload_offset: 42,
            payload_len,
            checksum: 0,
        }
    }

    #[test]
    fn a_full_table_goes_on_counting() {
        let mut senders = Senders::new(3);
        let reader = senders.reader();
        let capacity = senders.index.capacity();
        for round in 0..10 {
            for src in 0..5 {
                senders.count(&udp(src, 7502, 100 + round), &[]);
            }
        }
        let listed: Vec<_> = reader.senders().collect();
        let of = |sender: &Sender<'_>| (sender.src_ip, sender.dst_port, sender.counts);
        let counts = Counts {
            packets: 10,
            bytes: 1045,
        };
        let ip = |bits| IpAddr::from(Ipv4Addr::from_bits(bits));
        assert_eq!(
            listed.iter().map(of).collect::<Vec<_>>(),
            [
                (ip(0), 7502, counts),
                (ip(1), 7502, counts),
                (ip(2), 7502, counts)
            ]
        );
        assert_eq!(
            reader.other(),
            Counts {
                packets: 20,
                bytes: 2090
            }
        );
        assert_eq!(senders.index.capacity(), capacity);
    }

    #[test]
    fn one_address_sending_to_two_ports_is_two_senders() {
        let mut senders = Senders::new(8);
        senders.count(&udp(1, 10, 0), &[]);
        senders.count(&udp(1, 11, 5), &[]);
        let bytes: Vec<_> = senders.reader().senders().map(|s| s.counts.bytes).collect();
        assert_eq!(bytes, [0, 5]);
    }
}
