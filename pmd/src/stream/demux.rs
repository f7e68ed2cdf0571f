//! Demultiplexer: maps a datagram's destination to its stream, in constant time.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use super::id::StreamId;
use crate::count::Count;
use crate::net::{Addresses, Udp};

/// Table value: no stream.
const NONE: u16 = u16::MAX;
/// Empty slot of the address table. It ends in [`NONE`], which no entry does.
const EMPTY: u64 = u64::MAX;

/// Error: a set of routes cannot be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DemuxError {
    /// One destination maps to two streams.
    #[error(
        "UDP port {port}{} leads to stream {} and to stream {}: give each destination one stream",
        .address.map(|ip| format!(" at {ip}")).unwrap_or_default(), .first.0, .second.0
    )]
    Conflict {
        /// The address, if the route has one.
        address: Option<Ipv4Addr>,
        /// The UDP destination port.
        port: u16,
        /// The stream of the earlier route.
        first: StreamId,
        /// The stream of the later one.
        second: StreamId,
    },
    /// The highest id is reserved.
    #[error("stream 65535 is reserved: number the streams from 0")]
    ReservedId,
}

/// Routes from which a [`Demux`] is built.
#[derive(Debug, Clone, Default)]
pub struct DemuxBuilder {
    routes: Vec<(Option<Ipv4Addr>, u16, StreamId)>,
    catch_all: Option<StreamId>,
}

impl DemuxBuilder {
    /// No routes: every datagram is a miss.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a route of datagrams to a UDP port, at any address and of either IP version.
    #[must_use]
    pub fn port(mut self, port: u16, stream: StreamId) -> Self {
        self.routes.push((None, port, stream));
        self
    }

    /// Adds a route of datagrams to a UDP port at one IPv4 address; it takes precedence over the
    /// route of the port alone.
    #[must_use]
    pub fn address(mut self, address: Ipv4Addr, port: u16, stream: StreamId) -> Self {
        self.routes.push((Some(address), port, stream));
        self
    }

    /// Sets the stream of all datagrams without a route.
    #[must_use]
    pub fn catch_all(mut self, stream: StreamId) -> Self {
        self.catch_all = Some(stream);
        self
    }

    /// Builds the tables, with counters at zero. Each poll loop has a demux of its own.
    ///
    /// # Errors
    /// [`DemuxError`] if a destination maps to two streams or an id is reserved.
    pub fn build(&self) -> Result<Demux, DemuxError> {
        let mut routes = BTreeMap::new();
        for &(address, port, second) in &self.routes {
            let first = *routes.entry((address, port)).or_insert(second);
            if first != second {
                return Err(DemuxError::Conflict {
                    address,
                    port,
                    first,
                    second,
                });
            }
        }
        let highest = routes.values().copied().chain(self.catch_all).max();
        if highest.is_some_and(|id| id.0 == NONE) {
            return Err(DemuxError::ReservedId);
        }

        let fallback = self.catch_all.map_or(NONE, |id| id.0);
        let mut ports = vec![fallback; 1 << 16].into_boxed_slice();
        let mut addresses = AddressTable::new(routes.keys().filter(|(ip, _)| ip.is_some()).count());
        for ((address, port), stream) in routes {
            match address {
                None => ports[usize::from(port)] = stream.0,
                Some(address) => addresses.insert(address, port, stream),
            }
        }
        let streams = highest.map_or(0, |id| usize::from(id.0) + 1);
        Ok(Demux {
            ports,
            addresses,
            cells: (0..streams).map(|_| Cells::default()).collect(),
        })
    }
}

/// Open addressing with linear probing, at most a quarter full: seven of eight searches then end at
/// the first slot, which the branch predictor learns.
#[derive(Debug)]
struct AddressTable {
    /// Key (address and port, 48 bits) and stream (16 bits) in one word each. The number of words
    /// is a power of two, or zero if no route names an address.
    slots: Box<[u64]>,
    shift: u32,
    /// Probes of the longest search among the routes: the bound of every search.
    probes: usize,
}

impl AddressTable {
    fn new(routes: usize) -> Self {
        let len = if routes == 0 {
            0
        } else {
            (routes * 4).next_power_of_two()
        };
        Self {
            slots: vec![EMPTY; len].into_boxed_slice(),
            shift: 64 - len.max(1).trailing_zeros(),
            probes: 0,
        }
    }

    #[inline]
    fn key(address: Ipv4Addr, port: u16) -> u64 {
        u64::from(address.to_bits()) << 16 | u64::from(port)
    }

    /// Multiplicative hashing: the high bits of the product with 2^64 / golden ratio (Knuth,
    /// The Art of Computer Programming, volume 3, section 6.4).
    #[inline]
    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// Inserts a key that is new; three quarters of the slots are free.
    fn insert(&mut self, address: Ipv4Addr, port: u16, stream: StreamId) {
        let key = Self::key(address, port);
        let (home, mask) = (self.home(key), self.slots.len() - 1);
        for probe in 0..self.slots.len() {
            let slot = &mut self.slots[(home + probe) & mask];
            if *slot == EMPTY {
                *slot = key << 16 | u64::from(stream.0);
                self.probes = self.probes.max(probe + 1);
                return;
            }
        }
    }

    /// The stream of a key, or [`NONE`].
    #[inline]
    fn find(&self, address: Ipv4Addr, port: u16) -> u16 {
        let key = Self::key(address, port);
        let mut at = self.home(key);
        for _ in 0..self.probes {
            match self.slots.get(at & self.slots.len().wrapping_sub(1)) {
                Some(&slot) if slot >> 16 == key => return slot as u16,
                Some(&EMPTY) | None => return NONE,
                Some(_) => at += 1,
            }
        }
        NONE
    }
}

#[derive(Debug, Default)]
struct Cells {
    packets: Count,
    bytes: Count,
}

/// Counters of one stream in one demux.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamCounts {
    /// Datagrams.
    pub packets: u64,
    /// Bytes of their UDP payloads.
    pub bytes: u64,
}

/// Assigns datagrams to streams and counts them; the counters exist here only.
#[derive(Debug)]
pub struct Demux {
    /// Stream by UDP port: 2^16 elements, [`NONE`] where there is no route.
    ports: Box<[u16]>,
    addresses: AddressTable,
    /// Written by this demux alone.
    cells: Arc<[Cells]>,
}

impl Demux {
    /// The stream of a datagram, which is counted for it. `None` is a miss, which the caller counts
    /// (cause `demux-miss`).
    #[inline]
    pub fn route(&mut self, udp: &Udp) -> Option<StreamId> {
        let mut id = NONE;
        if self.addresses.probes != 0
            && let Addresses::V4 { dst, .. } = udp.addresses
        {
            id = self.addresses.find(dst, udp.dst_port);
        }
        if id == NONE {
            id = *self.ports.get(usize::from(udp.dst_port))?;
        }
        // NONE is above every index: one comparison detects the miss
        let cells = self.cells.get(usize::from(id))?;
        cells.packets.add(1);
        cells.bytes.add(u64::from(udp.payload_len));
        Some(StreamId(id))
    }

    /// A reader of the counters, for any thread.
    #[must_use]
    pub fn view(&self) -> StreamView {
        StreamView(Arc::clone(&self.cells))
    }
}

/// A reader of the counters of a [`Demux`].
#[derive(Debug, Clone)]
pub struct StreamView(Arc<[Cells]>);

impl StreamView {
    /// The counters of every stream from 0 to the highest one with a route. While the loop runs,
    /// values may belong to slightly different moments.
    pub fn counts(&self) -> impl Iterator<Item = (StreamId, StreamCounts)> {
        self.0.iter().enumerate().map(|(id, cells)| {
            let counts = StreamCounts {
                packets: cells.packets.get(),
                bytes: cells.bytes.get(),
            };
            (StreamId(id as u16), counts)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn datagram(addresses: Addresses, dst_port: u16, payload_len: u16) -> Udp {
        Udp {
            addresses,
            src_port: 1,
            dst_port,
            payload_offset: 42,
            payload_len,
            checksum: 0,
        }
    }

    fn to(ip: u32, port: u16) -> Udp {
        let dst = Ipv4Addr::from_bits(ip);
        datagram(Addresses::V4 { src: dst, dst }, port, 10)
    }

    #[test]
    fn the_address_goes_before_the_port() {
        let mut demux = DemuxBuilder::new()
            .port(2000, StreamId(1))
            .address(Ipv4Addr::from_bits(7), 2000, StreamId(0))
            .build()
            .unwrap();
        assert_eq!(demux.route(&to(7, 2000)), Some(StreamId(0)));
        assert_eq!(demux.route(&to(8, 2000)), Some(StreamId(1)));
        assert_eq!(demux.route(&to(7, 2001)), None);
        let (src, dst) = ([1; 16].into(), [2; 16].into());
        let v6 = datagram(Addresses::V6 { src, dst }, 2000, 10);
        assert_eq!(demux.route(&v6), Some(StreamId(1)));
    }

    #[test]
    fn catch_all_takes_the_rest() {
        let builder = DemuxBuilder::new()
            .port(0, StreamId(3))
            .catch_all(StreamId(9));
        let mut demux = builder.build().unwrap();
        assert_eq!(demux.route(&to(1, 0)), Some(StreamId(3)));
        assert_eq!(demux.route(&to(1, 65535)), Some(StreamId(9)));
        assert_eq!(demux.view().counts().count(), 10);
    }

    #[test]
    fn nothing_configured_is_a_miss() {
        let mut demux = DemuxBuilder::new().build().unwrap();
        assert_eq!(demux.route(&to(0, 0)), None);
        assert_eq!(demux.route(&to(u32::MAX, u16::MAX)), None);
        assert_eq!(demux.view().counts().count(), 0);
    }

    #[test]
    fn routes_that_contradict() {
        let twice = DemuxBuilder::new()
            .port(5, StreamId(1))
            .port(5, StreamId(1));
        assert!(twice.build().is_ok());
        let conflict = twice.port(5, StreamId(2)).build().unwrap_err();
        assert_eq!(
            conflict.to_string(),
            "UDP port 5 leads to stream 1 and to stream 2: give each destination one stream"
        );
        let reserved = DemuxBuilder::new().catch_all(StreamId(u16::MAX)).build();
        assert_eq!(reserved.unwrap_err(), DemuxError::ReservedId);
        assert!(
            DemuxBuilder::new()
                .port(1, StreamId(u16::MAX - 1))
                .build()
                .is_ok()
        );
    }

    proptest! {
        #[test]
        fn equals_a_map(
            ports in proptest::collection::vec((0u16..40, 0u16..20), 0..20),
            addresses in proptest::collection::vec((0u32..12, 0u16..40, 0u16..20), 0..200),
            catch_all in proptest::option::of(0u16..20),
            traffic in proptest::collection::vec((0u32..14, 0u16..42, 0u16..1473), 0..200),
        ) {
            // the first of two routes for one destination wins; addresses are adjacent as in a
            // subnet, and spread over the network
            let spread = |n: u32| if n < 6 { 0x0a00_0001 + n } else { n.wrapping_mul(0x1234_5677) };
            let mut by_port = HashMap::new();
            let mut by_address = HashMap::new();
            let mut builder = DemuxBuilder::new();
            for (port, id) in ports {
                let id = *by_port.entry(port).or_insert(id);
                builder = builder.port(port, StreamId(id));
            }
            for (ip, port, id) in addresses {
                let id = *by_address.entry((spread(ip), port)).or_insert(id);
                builder = builder.address(Ipv4Addr::from_bits(spread(ip)), port, StreamId(id));
            }
            if let Some(id) = catch_all {
                builder = builder.catch_all(StreamId(id));
            }
            let mut demux = builder.build().unwrap();
            let mut counts: HashMap<u16, StreamCounts> = HashMap::new();
            for (ip, port, len) in traffic {
                let ip = spread(ip);
                let expected =
                    by_address.get(&(ip, port)).or(by_port.get(&port)).copied().or(catch_all);
                let udp = Udp { payload_len: len, ..to(ip, port) };
                prop_assert_eq!(demux.route(&udp), expected.map(StreamId));
                if let Some(id) = expected {
                    let count = counts.entry(id).or_default();
                    count.packets += 1;
                    count.bytes += u64::from(len);
                }
            }
            for (id, found) in demux.view().counts() {
                prop_assert_eq!(found, counts.remove(&id.0).unwrap_or_default());
            }
            prop_assert!(counts.is_empty());
        }
    }
}
