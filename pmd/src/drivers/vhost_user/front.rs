//! Front end: shares its memory with the back end, and is the driver of the rings.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use pollux_mempool::region::MemoryRegion;
use pollux_mempool::{IovaMap, Mempool};
use zerocopy::IntoBytes;

use super::connection::Connection;
use super::ended::Ended;
use super::lent::Loan;
use super::link::State;
use super::message::{
    Header, NO_FD, Region, Request, TableHead, VringAddress, VringState, protocol,
};
use super::queues::{RxSlot, TxSlot, watch};
use crate::drivers::dma::DeviceAddresses;
use crate::drivers::virtio::{Doorbell, DriverRx, DriverTx, Features, QueueMemory, RingFeatures};
use crate::event::RegionOptions;
use crate::grant::MemoryGrant;

pub(super) struct Front {
    /// For its memory, which is shared with the back end.
    pub(super) grant: MemoryGrant,
    /// Features accepted from the back end's offer.
    pub(super) wanted: Features,
    pub(super) mtu: u16,
    /// Descriptors of each ring.
    pub(super) size: u16,
    /// Pool of the receive buffers; its memory is shared.
    pub(super) pool: Mempool,
    pub(super) rx: Vec<Arc<RxSlot<DriverRx>>>,
    pub(super) tx: Vec<Arc<TxSlot<DriverTx>>>,
}

impl Front {
    /// Serves the queues through one back end, until it disconnects or the port is stopped.
    pub(super) fn session(&self, connection: Connection, state: &State) -> Ended {
        self.session_with(connection, state, || {})
    }

    /// As `session`, with a callback when the rings have started.
    pub(super) fn session_with(
        &self,
        connection: Connection,
        state: &State,
        started: impl FnOnce(),
    ) -> Ended {
        let damaged = self.pool.region().replaced_pages();
        if damaged > 0 {
            return Ended::Refused(format!(
                "{damaged} pages of the pool are private memory since a back end has taken them out \
                 of its file; a pool is lent again only whole: start the program again"
            ));
        }
        state.lent.look(true);
        let mut loan = Loan::new(connection.process());
        let ended = self.serve(&connection, state, &mut loan, started);
        state.set_up(false);
        self.rx.iter().for_each(|slot| slot.pause());
        self.tx.iter().for_each(|slot| slot.pause());
        let is_acknowledged = self.part(connection, &ended, &loan);
        for ring in self.rx.iter().filter_map(|slot| slot.take()) {
            loan.keep(ring.buffers(), ring);
        }
        for ring in self.tx.iter().filter_map(|slot| slot.take()) {
            loan.keep(ring.buffers(), ring);
        }
        if loan.knows_buffers() && !is_acknowledged {
            state.lent.hold(loan);
        }
        ended
    }

    /// Ends the session with the back end; returns whether it has acknowledged that its rings are
    /// stopped, and therefore has released their buffers.
    fn part(&self, mut connection: Connection, ended: &Ended, loan: &Loan) -> bool {
        let is_there = !matches!(ended, Ended::Closed | Ended::System(..));
        if connection.hurry().is_err() {
            return false;
        }
        if is_there && loan.knows_buffers() && self.halt(&connection).is_ok() {
            return true;
        }
        connection.close();
        false
    }

    /// Runs the session; returns the reason for its end.
    fn serve(
        &self,
        connection: &Connection,
        state: &State,
        loan: &mut Loan,
        started: impl FnOnce(),
    ) -> Ended {
        if let Err(ended) = self.establish(connection, state, loan) {
            return ended;
        }
        state.set_up(true);
        started();
        let watch = || {
            state.lent.look(false);
            let replaced = |region: &Arc<MemoryRegion>| region.replaced_pages();
            match loan.regions().iter().map(replaced).sum::<usize>() {
                0 => watch(&self.rx, &self.tx),
                pages => Err(Ended::Violation(format!(
                    "it has taken {pages} pages out of the memory that it was lent"
                ))),
            }
        };
        match connection.next(watch) {
            Err(ended) => ended,
            Ok(message) => Ended::Violation(format!(
                "message number {} came, and nothing had been asked",
                message.number()
            )),
        }
    }

    fn pairs(&self) -> usize {
        self.rx.len().max(self.tx.len())
    }

    fn establish(
        &self,
        connection: &Connection,
        state: &State,
        loan: &mut Loan,
    ) -> Result<(), Ended> {
        let mut requests = Requests {
            connection,
            acknowledged: false,
        };
        let features = self.negotiate(&mut requests)?;
        let rings = RingFeatures::of(features).ok_or_else(|| {
            Ended::Unfit("VIRTIO_F_VERSION_1: it is a device from before the standard".into())
        })?;
        let memory = RegionOptions {
            numa_node: self.pool.region().numa_node(),
            ..RegionOptions::default()
        };
        let memory = QueueMemory::several(2 * self.pairs(), self.size, rings.packed, &memory)
            .map_err(|error| Ended::Unfit(format!("memory for the rings: {error}")))?;
        let regions: Vec<_> = std::iter::once(self.pool.region())
            .chain(memory.first().map(QueueMemory::region))
            .cloned()
            .collect();
        let mut addresses = DeviceAddresses::new();
        for region in &regions {
            addresses.add(region, &IovaMap::identity(region));
        }
        // Both sides poll, so no doorbell is needed.
        let (pool, none) = (&self.pool, || Doorbell::None);
        let rx: Vec<_> = (self.rx.iter().zip(memory.iter().step_by(2)))
            .map(|(_, memory)| DriverRx::new(memory, rings, addresses.clone(), pool, none()))
            .collect();
        let tx: Vec<_> = (self.tx.iter().zip(memory.iter().skip(1).step_by(2)))
            .map(|(_, memory)| DriverTx::new(memory, rings, addresses.clone(), pool, none()))
            .collect();
        if state.lent.is_exhausted() {
            return Err(Ended::Refused(
                "too many back ends have not released the buffers lent to them; end their \
                 processes, or restart this program"
                    .into(),
            ));
        }
        let posted = rx.iter().map(DriverRx::buffers).sum::<usize>();
        let quarantined = state.lent.buffers();
        let is_dry = if rx.is_empty() {
            !pool.has(1)
        } else {
            posted == 0
        };
        if is_dry && quarantined > 0 {
            return Err(Ended::Refused(format!(
                "no buffers are left: {quarantined} of {} are in quarantine, since earlier back \
                 ends have not released them; end their processes, or restart this program",
                self.pool.buffers()
            )));
        }
        loan.set_regions(&regions);
        state.set_shared(self.pool.region());
        requests.share(&regions, self.grant)?;
        loan.set_knows_buffers();
        let begun = requests.begin(&memory, features, rings);
        if let Err(ended) = begun {
            // The back end may know some of their buffers.
            for ring in rx {
                loan.keep(ring.buffers(), ring);
            }
            for ring in tx {
                loan.keep(0, ring);
            }
            return Err(ended);
        }
        loan.set_taken();
        for (slot, ring) in self.rx.iter().zip(rx) {
            slot.put(ring);
        }
        for (slot, ring) in self.tx.iter().zip(tx) {
            slot.put(ring);
        }
        Ok(())
    }

    /// Negotiates features with the back end; returns those of the device.
    fn negotiate(&self, requests: &mut Requests<'_>) -> Result<Features, Ended> {
        let offered = Features(requests.ask(Request::GetFeatures)?);
        let mut wanted = self.wanted | Features::VHOST_USER_PROTOCOL;
        if self.pairs() > 1 {
            wanted = wanted | Features::SEVERAL_QUEUES;
        }
        let features = offered & wanted;
        let mut protocol = 0;
        if features.contains(Features::VHOST_USER_PROTOCOL) {
            let known = protocol::MULTI_QUEUE | protocol::REPLY_ACK | protocol::MTU;
            protocol = requests.ask(Request::GetProtocolFeatures)? & known;
            requests.tell(Request::SetProtocolFeatures, protocol.as_bytes(), &[])?;
            requests.acknowledged = protocol & protocol::REPLY_ACK != 0;
        }
        requests.tell(Request::SetOwner, &[], &[])?;
        if self.pairs() > 1 {
            let pairs = match protocol & protocol::MULTI_QUEUE {
                0 => 1,
                _ => requests.ask(Request::GetQueueNum)?,
            };
            if pairs < self.pairs() as u64 {
                return Err(Ended::Unfit(format!(
                    "{} queue pairs, it has {pairs}",
                    self.pairs()
                )));
            }
        }
        requests.tell(Request::SetFeatures, features.0.as_bytes(), &[])?;
        if protocol & protocol::MTU != 0 && features.contains(Features::MTU) {
            let mtu = u64::from(self.mtu);
            requests.tell(Request::NetSetMtu, mtu.as_bytes(), &[])?;
        }
        Ok(features)
    }

    /// Makes the back end stop its rings; after its reply none of them is in use.
    fn halt(&self, connection: &Connection) -> Result<(), Ended> {
        // Replies that an interrupted session still expects: one in total.
        let mut late = 1;
        for index in 0..2 * self.pairs() as u32 {
            let state = VringState { index, num: 0 };
            let header = Header::request(Request::GetVringBase, size_of_val(&state), false);
            connection.send(header, state.as_bytes(), &[])?;
            loop {
                let reply = connection.receive("stop a ring")?;
                let Err(ended) = reply.expect_reply(Request::GetVringBase) else {
                    // The reply must be about this ring.
                    if reply.read::<VringState>()?.index == index {
                        break;
                    }
                    return Err(Ended::Violation(format!("it has not stopped ring {index}")));
                };
                if late == 0 {
                    return Err(ended);
                }
                late -= 1;
            }
        }
        Ok(())
    }
}

/// Requests to the back end.
struct Requests<'a> {
    connection: &'a Connection,
    /// It acknowledges each request.
    acknowledged: bool,
}

impl Requests<'_> {
    /// Sends a request and returns the number in its reply.
    fn ask(&self, request: Request) -> Result<u64, Ended> {
        let header = Header::request(request, 0, false);
        self.connection.send(header, &[], &[])?;
        let reply = self.connection.receive("answer a request")?;
        reply.expect_reply(request)?;
        reply.read()
    }

    fn tell(&self, request: Request, payload: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Ended> {
        let header = Header::request(request, payload.len(), self.acknowledged);
        self.connection.send(header, payload, fds)?;
        if !self.acknowledged {
            return Ok(());
        }
        let reply = self.connection.receive("acknowledge a request")?;
        reply.expect_reply(request)?;
        match reply.read::<u64>()? {
            0 => Ok(()),
            error => Err(Ended::Unfit(format!("{request:?}, it answers {error}"))),
        }
    }

    /// Configures the rings in the back end, which has started them when this returns.
    fn begin(
        &self,
        memory: &[QueueMemory],
        features: Features,
        rings: RingFeatures,
    ) -> Result<(), Ended> {
        for (index, queue) in (0..).zip(memory) {
            self.set_up(index, queue, rings)?;
        }
        if features.contains(Features::VHOST_USER_PROTOCOL) {
            // Receive queues first, so that returning frames find buffers.
            let count = memory.len() as u32;
            for index in (0..count).step_by(2).chain((1..count).step_by(2)) {
                self.enable(index)?;
            }
        }
        // A back end may acknowledge a request before it has executed it (DPDK's starts its queues
        // after the reply), and frames that it forwards in between are lost. It executes messages
        // in order, so its reply to this one proves that it has executed all.
        self.ask(Request::GetFeatures)?;
        Ok(())
    }

    /// Shares regions, at their addresses in this process.
    fn share(&self, regions: &[Arc<MemoryRegion>], _grant: MemoryGrant) -> Result<(), Ended> {
        let head = TableHead {
            regions: regions.len() as u32,
            padding: 0,
        };
        let mut table = head.as_bytes().to_vec();
        for region in regions {
            let at = region.as_ptr().addr().get() as u64;
            let entry = Region {
                guest: at,
                size: region.len() as u64,
                user: at,
                offset: 0,
            };
            table.extend_from_slice(entry.as_bytes());
        }
        let mut fds = Vec::with_capacity(regions.len());
        for region in regions {
            // SAFETY: neither region holds data that the peer could corrupt to break this process:
            // one holds the data of packet buffers, the other the rings, whose contents are never
            // trusted (`virtio`). A correct peer writes only to buffers that were posted to it. The
            // grant's author trusts the back end to do so, and at stake are only the bytes of
            // frames.
            let fd = unsafe { region.share() };
            fds.push(fd.map_err(Ended::system("cannot guard memory that is to be shared"))?);
        }
        self.tell(Request::SetMemTable, &table, &fds)
    }

    /// Configures a ring in the back end; it starts at once.
    fn set_up(&self, index: u32, queue: &QueueMemory, rings: RingFeatures) -> Result<(), Ended> {
        let state = |num| VringState { index, num };
        let at = queue.ring().at();
        let address = VringAddress {
            index,
            flags: 0,
            descriptors: at.descriptors.addr().get() as u64,
            used: at.device.addr().get() as u64,
            available: at.driver.addr().get() as u64,
            log: 0,
        };
        let no_fd = u64::from(index) | NO_FD;
        self.tell(Request::SetVringCall, no_fd.as_bytes(), &[])?;
        let size = state(queue.ring().size().into());
        self.tell(Request::SetVringNum, size.as_bytes(), &[])?;
        // A packed ring has two halves: of available, and of used descriptors.
        let base = u32::from(rings.first_base());
        let base = state(base << 16 | base);
        self.tell(Request::SetVringBase, base.as_bytes(), &[])?;
        self.tell(Request::SetVringAddr, address.as_bytes(), &[])?;
        self.tell(Request::SetVringKick, no_fd.as_bytes(), &[])
    }

    fn enable(&self, index: u32) -> Result<(), Ended> {
        let state = VringState { index, num: 1 };
        self.tell(Request::SetVringEnable, state.as_bytes(), &[])
    }
}
