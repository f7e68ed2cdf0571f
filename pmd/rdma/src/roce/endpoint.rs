//! The control side of an endpoint.

use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::Arc;

use pollux_mempool::PoolCache;
use pollux_mempool::time::Ns;
use pollux_pmd::driver::Megabits;
use pollux_pmd::endpoint::PortEndpoint;
use pollux_pmd::event::{EventQueue, RegionOptions};
use pollux_pmd::net::{MacAddr, ParseOptions};
use pollux_pmd::{Capabilities, CauseError, RxQueue, Tally, TxQueue};

use super::congestion::Congestion;
use super::connection::Connection;
use super::counts::Counts;
use super::drops::Causes;
use super::events::Events;
use super::handle::RoceQueuePair;
use super::mailbox::Mailbox;
use super::management::{Management, ManagementLoop};
use super::output::{OVERHEAD, Output};
use super::poll::{RoceLoop, chain_room};
use super::qp::Qp;
use super::requester::Requester;
use super::responder::Responder;
use super::table::Table;
use super::wake::Wake;
use crate::access::{Access, RemoteBuffer};
use crate::address::{Mtu, Psn, QpAddress, QpNumber, is_host};
use crate::buffer::Buffer;
use crate::endpoint::{
    ConnectError, Endpoint, EndpointDriver, PathOptions, QpError, QpOptions, RegisterError,
};
use crate::mad::Mad;
use crate::memory::Memory;
use crate::queue_pair::QueuePair;
use crate::random;
use crate::registrations::{MAX_BUFFERS, Registrations};
use crate::work_queue::work_queue;

/// Most queue pairs of an endpoint.
const MAX_QPS: usize = 1024;
/// Rate of a link of unknown speed, in bit/s.
const ASSUMED_RATE: f64 = 100e9;
/// Numbers below are those of management.
const FIRST_NUMBER: u32 = 2;

/// Why an endpoint could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoceError {
    /// The number of queue pairs is out of its limits.
    #[error("{0} queue pairs: an endpoint has 1 to {MAX_QPS}")]
    QueuePairs(usize),
    /// The port has no MAC address.
    #[error("the port has no MAC address: give one in the options")]
    NoMac,
    /// The IP address is none that a host has.
    #[error("{0} is not the IP address of a host: an endpoint needs a unicast one")]
    Ip(Ipv4Addr),
    /// The MAC address is that of a group.
    #[error("{0} is not the MAC address of a host: an endpoint needs a unicast one")]
    Mac(MacAddr),
    /// The process has too many drop causes.
    #[error(transparent)]
    Cause(#[from] CauseError),
    /// More loops look ranges up than a table has room for.
    #[error("the table of registered memory has no room for a loop")]
    NoReader,
}

/// What an endpoint is made of.
#[derive(Clone, Debug)]
pub struct RoceOptions {
    /// Its IP address.
    pub ip: Ipv4Addr,
    /// Its MAC address; the port's if `None`.
    pub mac: Option<MacAddr>,
    /// Most queue pairs, 1 to 1024.
    pub queue_pairs: usize,
    /// Speed of the port's link ([`Port::link`](pollux_pmd::Port::link)): the rate that congestion cuts. 100
    /// Gb/s are assumed if `None`.
    pub speed: Option<Megabits>,
}

impl RoceOptions {
    /// An endpoint with this address, the port's MAC address, a link of unknown speed, and up to 64 queue
    /// pairs.
    #[must_use]
    pub fn new(ip: Ipv4Addr) -> Self {
        Self {
            ip,
            mac: None,
            queue_pairs: 64,
            speed: None,
        }
    }
}

/// The control side of a RoCEv2 endpoint: what it can do beyond the [`Endpoint`] of all back ends. Clones
/// are the same endpoint.
#[derive(Clone)]
pub struct RoceEndpoint(Arc<Shared>);

struct Shared {
    ip: Ipv4Addr,
    mac: MacAddr,
    /// Largest frame that the port sends, in one buffer.
    max_frame: usize,
    /// Rate of its link, in bit/s.
    line_rate: f64,
    registrations: Arc<Registrations>,
    mailbox: Arc<Mailbox>,
    management: Arc<Management>,
}

/// A queue pair of a chosen number, for a conversation that is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpIdentity {
    /// Its number.
    pub number: QpNumber,
    /// Number of the first packet that it sends.
    pub psn: Psn,
}

impl RoceEndpoint {
    /// An endpoint on a receive and a transmit queue of a port with these capabilities, and the loop that
    /// an lcore has to poll. The cache is that of a pool whose buffers hold a whole packet to be sent.
    ///
    /// # Errors
    /// Options out of their limits, or no MAC address.
    pub fn new(
        options: &RoceOptions,
        port: &Capabilities,
        (rx, tx): (RxQueue, TxQueue),
        cache: PoolCache,
    ) -> Result<(Self, RoceLoop), RoceError> {
        let RoceOptions {
            ip,
            mac,
            queue_pairs,
            speed,
        } = *options;
        if !(1..=MAX_QPS).contains(&queue_pairs) {
            return Err(RoceError::QueuePairs(queue_pairs));
        }
        if !is_host(ip) {
            return Err(RoceError::Ip(ip));
        }
        let mac = mac.or(port.mac).ok_or(RoceError::NoMac)?;
        if !mac.is_unicast() {
            return Err(RoceError::Mac(mac));
        }
        let host = Capabilities {
            mac: Some(mac),
            ..port.clone()
        };
        let registrations = Registrations::new(MAX_BUFFERS, 1);
        let mailbox = Arc::new(Mailbox::new(queue_pairs));
        let management = Arc::new(Management::new());
        let reader = registrations.reader().ok_or(RoceError::NoReader)?;
        let max_frame = port.max_frame.min(cache.pool().data_room());
        let host = PortEndpoint::new(&host, Some(tx), ip);
        let poll = RoceLoop {
            rx,
            out: Output::new(host, cache, Counts::default()),
            reader,
            mailbox: Arc::clone(&mailbox),
            management: Arc::clone(&management),
            mads: ManagementLoop::new(ip),
            qps: Table::new(queue_pairs),
            turn: 0,
            // The ICRC covers what the UDP checksum does, and senders leave that out.
            options: ParseOptions {
                udp_checksum: false,
                local: Some(ip),
                ..ParseOptions::default()
            },
            ip,
            causes: Causes::declare()?,
            tally: Tally::new(),
            retry_at: Ns(0),
            next: None,
            chain: chain_room(),
        };
        let shared = Shared {
            ip,
            mac,
            max_frame,
            line_rate: speed.map_or(ASSUMED_RATE, |speed| f64::from(speed.0) * 1e6),
            registrations,
            mailbox,
            management,
        };
        Ok((Self(Arc::new(shared)), poll))
    }

    /// The endpoint as the API of all back ends has it.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::new(Box::new(self.clone()))
    }

    /// The largest MTU whose packets the port and the pool carry; 256 B if they carry none.
    #[must_use]
    pub fn mtu(&self) -> Mtu {
        let mut all = Mtu::ALL.into_iter().rev();
        let fits = all.find(|mtu| mtu.bytes() + OVERHEAD <= self.0.max_frame);
        fits.unwrap_or(Mtu::B256)
    }

    /// Registers a range under a key and at an address of the caller's choice, for a conversation that is
    /// replayed. A key that can be guessed is no protection.
    ///
    /// # Errors
    /// As [`Endpoint::register_buffer`], a key in use, or an address whose range ends beyond 2^64.
    pub fn register_buffer_at(
        &self,
        memory: &Memory,
        range: Range<usize>,
        access: Access,
        at: RemoteBuffer,
    ) -> Result<Buffer, RegisterError> {
        let bytes = range.len();
        if at.address.checked_add(bytes as u64).is_none() {
            let why = format!("it would end beyond 2^64 at address {:#x}", at.address);
            return Err(RegisterError { bytes, why });
        }
        self.register_as(memory, range, access, Some(at))
    }

    fn register_as(
        &self,
        memory: &Memory,
        range: Range<usize>,
        access: Access,
        at: Option<RemoteBuffer>,
    ) -> Result<Buffer, RegisterError> {
        let bytes = range.len();
        let registered = self.0.registrations.register(memory, range, access, at);
        registered.map_err(|error| RegisterError {
            bytes,
            why: error.to_string(),
        })
    }

    /// Makes a queue pair with a number and a first sequence number of the caller's choice, for a
    /// conversation that is replayed.
    ///
    /// # Errors
    /// As [`Endpoint::create_queue_pair`], or a number that is in use.
    pub fn create_queue_pair_as(
        &self,
        options: &QpOptions,
        identity: QpIdentity,
    ) -> Result<QueuePair, QpError> {
        options.check()?;
        let number = identity.number;
        let mut is_free = number.get() >= FIRST_NUMBER;
        // It is asked for again if a queue pair has it.
        let pick = || {
            let was_free = std::mem::replace(&mut is_free, false);
            was_free.then_some(number).ok_or(QpError::Option {
                option: "number",
                value: u64::from(number.get()),
                allowed: "2 to 2^24 - 1, and one that no queue pair has",
            })
        };
        self.create_as(options, pick, identity.psn)
    }

    /// The next management datagram that queue pair 1 has received: what RDMA CM reads. At most 64 wait.
    #[must_use]
    pub fn receive_mad(&self) -> Option<Mad> {
        self.0.management.receive()
    }

    /// Sends a management datagram to queue pair 1 of a host, whose MAC address is looked up by ARP. False
    /// if 64 wait. It may be lost, as any datagram.
    #[must_use]
    pub fn send_mad(&self, mad: &Mad) -> bool {
        self.0.management.send(mad)
    }

    fn create_as(
        &self,
        options: &QpOptions,
        pick: impl FnMut() -> Result<QpNumber, QpError>,
        psn: Psn,
    ) -> Result<QueuePair, QpError> {
        let wake = Arc::new(Wake::new().map_err(QpError::Sleep)?);
        let events = EventQueue::new(options.events, &RegionOptions::default())?;
        let (producer, consumer) = events.split();
        let (requests, worker) = work_queue(QueuePair::REQUESTS);
        let (receives, receiver) = work_queue(options.receives);
        let (kind, line_rate) = (options.kind, self.0.line_rate);
        let make = |number| {
            let events = Events::new(producer, Arc::clone(&wake));
            let (requester, responder) = (Requester::new(worker, psn), Responder::new(receiver));
            let congestion = Congestion::new(line_rate);
            let qp = Qp::new(number, kind, requester, responder, events, congestion);
            Box::new(qp)
        };
        let number = self.0.mailbox.add(pick, make)?;
        let driver = RoceQueuePair {
            requests,
            receives,
            events: consumer,
            next: None,
            wake,
            mailbox: Arc::clone(&self.0.mailbox),
            number,
        };
        let address = QpAddress {
            number,
            psn,
            ip: self.0.ip,
            mac: Some(self.0.mac),
        };
        Ok(QueuePair::new(Box::new(driver), kind, address))
    }
}

/// A random number of a queue pair.
fn pick() -> Result<QpNumber, QpError> {
    loop {
        let bits = random::bits().map_err(QpError::Random)?;
        if let Some(number) = QpNumber::connectable(bits >> 8) {
            return Ok(number);
        }
    }
}

impl EndpointDriver for RoceEndpoint {
    fn register(
        &mut self,
        memory: &Memory,
        range: Range<usize>,
        access: Access,
    ) -> Result<Buffer, RegisterError> {
        self.register_as(memory, range, access, None)
    }

    fn create(&mut self, options: &QpOptions) -> Result<QueuePair, QpError> {
        let psn = Psn::new(random::bits().map_err(QpError::Random)?);
        self.create_as(options, pick, psn)
    }

    fn connect(
        &mut self,
        qp: &QueuePair,
        peer: &QpAddress,
        path: &PathOptions,
    ) -> Result<(), ConnectError> {
        if !is_host(peer.ip) {
            return Err(ConnectError::Ip(peer.ip));
        }
        if let Some(mac) = peer.mac.filter(|mac| !mac.is_unicast()) {
            return Err(ConnectError::Mac(mac));
        }
        let needed = path.mtu.bytes() + OVERHEAD;
        if needed > self.0.max_frame {
            return Err(ConnectError::Mtu {
                mtu: path.mtu.bytes(),
                needed,
                has: self.0.max_frame,
            });
        }
        let connection = Connection::new(self.0.ip, qp.number(), peer, path);
        self.0.mailbox.connect(qp.number(), connection, peer.psn)
    }
}
