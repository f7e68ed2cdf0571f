//! The endpoint: registers, makes queue pairs and connects them.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pollux_mempool::region::{MemoryRegion, PageSize};
use pollux_pmd::Tally;

use super::inbox::{INBOX, own};
use super::link::{Connection, OwnPair};
use super::mapping::hand_over;
use super::pair::Pair;
use super::requester::Tables;
use super::seat::{Counters, Seat};
use crate::access::Access;
use crate::address::{Psn, QpAddress, QpNumber};
use crate::buffer::{Buffer, Withdraw};
use crate::endpoint::{
    ConnectError, EndpointDriver, PathOptions, QpError, QpOptions, RegisterError,
};
use crate::memory::Memory;
use crate::queue_pair::QueuePair;
use crate::random;
use crate::registrations::Registrations;

/// An endpoint that shares memory with the peer.
pub(super) struct ShmDriver {
    limit: usize,
    own: Arc<Registrations>,
    tallies: Arc<Mutex<Vec<Tally>>>,
    counters: Arc<Counters>,
    connection: Arc<Connection>,
}

impl ShmDriver {
    pub(super) fn new(
        own: Arc<Registrations>,
        tallies: Vec<Tally>,
        counters: Arc<Counters>,
        connection: Arc<Connection>,
    ) -> Self {
        Self {
            limit: tallies.len(),
            own,
            tallies: Arc::new(Mutex::new(tallies)),
            counters,
            connection,
        }
    }

    /// A number that no other queue pair of this endpoint has.
    fn number(&self) -> Result<QpNumber, QpError> {
        loop {
            let number = random::bits().map_err(QpError::Random)? & 0xff_ffff;
            if number > 1 && self.connection.link.own(number).is_none() {
                return QpNumber::new(number).ok_or(QpError::TooMany(self.limit));
            }
        }
    }
}

impl EndpointDriver for ShmDriver {
    fn register(
        &mut self,
        memory: &Memory,
        range: Range<usize>,
        access: Access,
    ) -> Result<Buffer, RegisterError> {
        let bytes = range.len();
        let refused = |why: String| RegisterError { bytes, why };
        let offset = range.start as u64;
        let buffer = self.own.register(memory, range, access, None);
        let buffer = buffer.map_err(|error| refused(error.to_string()))?;
        if access == Access::LOCAL || buffer.is_empty() {
            return Ok(buffer);
        }
        // SAFETY: the region of a `Memory` is for peers as a whole: this process accesses its bytes by
        // copies that allow for a peer's writes.
        let file = unsafe { hand_over(memory.region(), access.remote_write) };
        let file = file.map_err(|error| refused(format!("the memory file: {error}")))?;
        let link = &self.connection.link;
        let peer: Arc<dyn Withdraw> = self.connection.clone();
        // From here on: a peer that answers too late has mapped it.
        let buffer = buffer.shared_with(peer);
        let asked = link.register(buffer.remote(), bytes as u64, offset, access, &file);
        asked.map_err(|error| refused(error.to_string()))?;
        Ok(buffer)
    }

    fn create(&mut self, options: &QpOptions) -> Result<QueuePair, QpError> {
        let tally = self
            .tallies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let tally = tally.ok_or(QpError::TooMany(self.limit))?;
        let seat = Seat::new(&self.tallies, tally, &self.counters);
        let too_many = QpError::TooMany(self.limit);
        let link = &self.connection.link;
        let readers = self.own.reader().zip(link.remote.reader());
        let (own_reader, remote) = readers.ok_or(too_many)?;
        let number = self.number()?;
        let region = MemoryRegion::builder(INBOX).pages(PageSize::Kib4).build();
        let region = region.map_err(pollux_pmd::event::EventError::from)?;
        // SAFETY: the region is the inbox's alone, which is accessed as memory that the peer writes.
        let file = unsafe { hand_over(&region, true) }.map_err(QpError::MemoryFile)?;
        let inbox = own(region).ok_or(QpError::TooMany(self.limit))?;
        let pair = Arc::new(OwnPair {
            number: number.get(),
            inbox,
            peer: OnceLock::new(),
            has_failed: AtomicBool::new(false),
        });
        let created = link.create(&pair, &file);
        created.map_err(|error| QpError::Peer(error.to_string()))?;
        let address = QpAddress {
            number,
            psn: Psn::new(random::bits().map_err(QpError::Random)?),
            ip: std::net::Ipv4Addr::UNSPECIFIED,
            mac: None,
        };
        let tables = Tables {
            own: own_reader,
            remote,
        };
        let connection = Arc::clone(&self.connection);
        let (kind, receives) = (options.kind, options.receives);
        let driver = Pair::new(pair, number, kind, receives, tables, seat, connection);
        Ok(QueuePair::new(Box::new(driver), kind, address))
    }

    fn connect(
        &mut self,
        qp: &QueuePair,
        peer: &QpAddress,
        _: &PathOptions,
    ) -> Result<(), ConnectError> {
        let link = &self.connection.link;
        if link.is_gone() {
            return Err(ConnectError::PeerGone);
        }
        let own = link.own(qp.number().get());
        let own = own.ok_or(ConnectError::Unknown(qp.number()))?;
        if own.has_failed.load(Acquire) || own.peer.get().is_some() {
            return Err(ConnectError::State(qp.number()));
        }
        let found = link.take_peer(peer.number.get());
        let found = found.ok_or(ConnectError::NoPeer(peer.number))?;
        own.inbox.set_partner(found.number);
        let wake = found.inbox.clone();
        if own.peer.set(found).is_err() {
            return Err(ConnectError::State(qp.number()));
        }
        // Either end may sleep until it is connected.
        own.wake();
        super::link::wake(&wake);
        Ok(())
    }
}
