//! Sends payloads as UDP datagrams: the card reads each payload in place, or a short one in the ring, resolves the neighbour of
//! its address, and prepends Ethernet, IPv4 and UDP headers.

use std::net::SocketAddrV4;

use pollux_mempool::{BurstMut, Mempool, PoolCache};
use zerocopy::little_endian::U16;

use super::layouts::TxDescriptor;
use super::tx::{Packets, Tx};
use crate::bus::Device;
use crate::driver::TxDriver;
use crate::ledger::{Sent, SentView};

/// Maximum length of a payload, whatever the MTU.
const LONGEST: usize = 9000;

/// IPv4 and UDP headers.
const HEADERS: usize = 28;

/// Configuration of the ports that send datagrams.
#[derive(Clone, Debug)]
pub struct SendConfig {
    /// The ports; each needs an address (option `ip`).
    pub ports: Vec<usize>,
    /// Number of descriptors in each port's ring: at least one for each buffer in flight, and one
    /// more for each 32 bytes of a payload of up to 64 bytes.
    pub ring: usize,
    /// Pool of the payloads. Payloads in buffers of another pool are copied.
    pub pool: Mempool,
}

/// Header fields of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Destination.
    pub to: SocketAddrV4,
    /// UDP source port.
    pub from: u16,
    /// Checksum.
    pub checksum: DatagramChecksum,
}

/// The checksum in a UDP header (RFC 768), which precedes the data that it covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DatagramChecksum {
    /// No checksum: 0.
    #[default]
    None,
    /// The card computes it.
    Card,
    /// The caller's, for a single payload: use it with a burst of one.
    Given(u16),
}

impl Datagram {
    /// Flags and value for a descriptor.
    fn header(&self) -> TxDescriptor {
        let (flags, checksum) = match self.checksum {
            DatagramChecksum::None => (0, 0),
            DatagramChecksum::Card => (TxDescriptor::CHECKSUM_CARD, 0),
            DatagramChecksum::Given(checksum) => (TxDescriptor::CHECKSUM_GIVEN, checksum),
        };
        TxDescriptor {
            flags: flags.into(),
            destination_ip: u32::from(*self.to.ip()).into(),
            destination_port: self.to.port().into(),
            source_port: self.from.into(),
            // The bytes in the header.
            checksum: U16::from_bytes(checksum.to_be_bytes()),
            ..TxDescriptor::default()
        }
    }
}

/// The datagrams of one port.
pub(super) struct Sender<D: Device> {
    tx: Tx<D>,
    sent: Sent,
    longest: usize,
}

impl<D: Device> Sender<D> {
    pub(super) fn new(tx: Tx<D>, mtu: usize) -> Self {
        Self {
            tx,
            sent: Sent::new(),
            longest: mtu.saturating_sub(HEADERS).min(LONGEST),
        }
    }

    #[inline]
    pub(super) fn send(
        &mut self,
        cache: &mut PoolCache,
        burst: &mut BurstMut<'_>,
        datagram: &Datagram,
    ) -> usize {
        let packets = Packets {
            header: datagram.header(),
            shortest: 0,
            longest: self.longest,
        };
        self.tx.send(cache, burst, &packets, &mut self.sent)
    }

    pub(super) fn view(&self) -> SentView {
        self.sent.view()
    }

    pub(super) fn finish(&mut self) {
        self.tx.finish(&mut self.sent);
    }
}
