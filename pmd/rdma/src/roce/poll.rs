//! The loop of an endpoint: one lcore polls it, with a receive and a transmit queue of a port.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use pollux_mempool::time::Ns;
use pollux_mempool::{Burst, Mbuf};
use pollux_pmd::net::headers::{
    ArpPacket, ETHERTYPE_QINQ, ETHERTYPE_VLAN, EthernetHeader, VlanTag,
};
use pollux_pmd::net::roce::{Bth, ICRC_LEN, Packet, UDP_PORT, icrc};
use pollux_pmd::net::{MacAddr, ParseOptions, Parsed, Udp, parse};
use pollux_pmd::{Cause, RxQueue, RxState, Tally, TallyView, TxQueue};
use zerocopy::FromBytes;

use super::counts::RoceCountsView;
use super::drops::{Causes, Drop};
use super::mailbox::Mailbox;
use super::management::{self, Management, ManagementLoop};
use super::output::Output;
use super::qp::Source;
use super::table::Table;
use crate::address::QpNumber;
use crate::registrations::{Reader, Session};

/// Frames that a poll receives at most.
const BURST: usize = 32;
/// Interval at which frames that a kernel refused are sent again, if nothing else is sent.
const RETRY_INTERVAL: u64 = 100_000;
/// Partition keys differ in the bit of full members only.
const PARTITION: u16 = 0x7fff;
/// Congestion experienced (RFC 3168).
const MARKED: u8 = 0b11;
/// Longest frame that is looked at, if it is a chain of buffers.
const MAX_CHAIN: usize = 9216;

/// The loop side of a RoCEv2 endpoint. One lcore polls it; it answers ARP and ping, receives, executes
/// what peers ask for, and sends. It neither allocates nor enters the kernel, but for what the port does
/// and to wake a program that sleeps.
pub struct RoceLoop {
    pub(super) rx: RxQueue,
    pub(super) out: Output,
    pub(super) reader: Reader,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) management: Arc<Management>,
    pub(super) mads: ManagementLoop,
    pub(super) qps: Table,
    /// The queue pair that is served first in the next poll.
    pub(super) turn: usize,
    pub(super) options: ParseOptions,
    pub(super) ip: Ipv4Addr,
    pub(super) causes: Causes,
    pub(super) tally: Tally,
    /// When frames that a kernel refused are sent again.
    pub(super) retry_at: Ns,
    /// A frame of a recording that the next poll takes.
    pub(super) next: Option<Mbuf>,
    /// Where a frame of several buffers is put together.
    pub(super) chain: Box<[u8]>,
}

impl RoceLoop {
    /// One poll. `now` is the time of a clock that does not go back. Returns whether there was anything to
    /// do.
    #[inline]
    pub fn poll(&mut self, now: Ns) -> bool {
        self.poll_up_to(now, BURST)
    }

    /// As [`poll`](Self::poll), with at most so many frames.
    pub fn poll_up_to(&mut self, now: Ns, frames: usize) -> bool {
        self.mailbox.take(&mut self.qps);
        let mut burst = Burst::<BURST>::new();
        if frames > 0
            && let Some(next) = self.next.take()
        {
            // The burst is empty.
            drop(burst.push(next));
        }
        let frames = frames.saturating_sub(burst.len());
        self.rx.rx_up_to(&mut self.out.cache, &mut burst, frames);
        let session = self.reader.enter();
        let mut parts = Parts {
            out: &mut self.out,
            session: &session,
            qps: &mut self.qps,
            management: &self.management,
            mads: &mut self.mads,
            options: &self.options,
            ip: self.ip,
            chain: &mut self.chain,
        };
        for mbuf in burst.iter() {
            match parts.take(mbuf, now) {
                Ok(()) => self.tally.count_delivered(1),
                Err(Refused::Cause(cause)) => self.tally.count_dropped(cause, 1),
                Err(Refused::Drop(drop)) => self.tally.count_dropped(self.causes.of(drop), 1),
            }
        }
        let mut is_busy = !burst.is_empty();
        for qp in parts.qps.from(self.turn) {
            is_busy |= qp.run(&session, parts.out, now);
        }
        drop(session);
        self.mads.transmit(&self.management, &mut self.out, now);
        self.turn += 1;
        if self.turn >= self.qps.len() {
            self.turn = 0;
        }
        self.out.cache.free_burst(&mut burst);
        self.out.flush();
        if now >= self.retry_at {
            self.retry_at = Ns(now.0.saturating_add(RETRY_INTERVAL));
            self.out.host.retry(&mut self.out.cache);
        }
        is_busy
    }

    /// Capture time of the next frame of a recording, which the next poll takes as its first one; `None`
    /// if there is none now, or it has no time. What is due before that time has to be done first: by polls
    /// [up to](Self::poll_up_to) no frame, at each [deadline](Self::next_deadline).
    pub fn peek_recorded(&mut self) -> Option<Ns> {
        if self.next.is_none() {
            let mut burst = Burst::<1>::new();
            self.rx.rx(&mut self.out.cache, &mut burst);
            self.next = burst.pop();
        }
        let time = self.next.as_ref()?.wire_time()?;
        Some(Ns(time.0))
    }

    /// Whether the port can still yield frames: a recording ends.
    #[must_use]
    pub fn rx_state(&self) -> RxState {
        match self.next {
            Some(_) => RxState::Live,
            None => self.rx.state(),
        }
    }

    /// The next time at which something is due, if nothing is received until then: of acknowledgements
    /// that do not come, and of peers that were not ready.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Ns> {
        self.qps
            .iter()
            .filter_map(super::qp::Qp::next_deadline)
            .min()
    }

    /// The rate in bit/s to which congestion has cut a queue pair; `None` if it has not, or there is no
    /// such queue pair.
    #[must_use]
    pub fn rate(&self, number: QpNumber) -> Option<f64> {
        let mut qps = self.qps.iter();
        qps.find(|qp| qp.number == number)?.rate()
    }

    /// The counters of the loop for a ledger: frames are delivered that it acted on.
    #[must_use]
    pub fn tally(&self) -> TallyView {
        self.tally.view()
    }

    /// The receive queue's part of the ledger.
    #[must_use]
    pub fn rx_tally(&self) -> TallyView {
        self.rx.tally()
    }

    /// The counters of the endpoint.
    #[must_use]
    pub fn counts(&self) -> RoceCountsView {
        self.out.counts.view()
    }

    /// Ends the loop: the queues, with which the port is stopped. Frames that were not sent are given up.
    #[must_use]
    pub fn into_queues(mut self) -> (RxQueue, Option<TxQueue>) {
        self.out.flush();
        self.out.abandon();
        if let Some(next) = self.next.take() {
            self.tally.count_dropped(Cause::Aborted, 1);
            self.out.cache.free(next);
        }
        let Self { rx, out, .. } = self;
        (rx, out.host.into_tx())
    }
}

/// Why a frame is not acted on.
enum Refused {
    Cause(Cause),
    Drop(Drop),
}

impl From<Cause> for Refused {
    fn from(cause: Cause) -> Self {
        Self::Cause(cause)
    }
}

impl From<Drop> for Refused {
    fn from(drop: Drop) -> Self {
        Self::Drop(drop)
    }
}

/// What a received frame needs of the loop.
struct Parts<'a> {
    out: &'a mut Output,
    session: &'a Session<'a>,
    qps: &'a mut Table,
    management: &'a Management,
    mads: &'a mut ManagementLoop,
    options: &'a ParseOptions,
    ip: Ipv4Addr,
    chain: &'a mut [u8],
}

impl Parts<'_> {
    #[inline]
    fn take(&mut self, mbuf: &Mbuf, now: Ns) -> Result<(), Refused> {
        let parsed = parse(mbuf.data(), mbuf.total_len(), self.options).map_err(Cause::from)?;
        match parsed {
            Parsed::Udp(udp) if udp.dst_port == UDP_PORT => {
                if mbuf.segment_count() == 1 {
                    return self.take_packet(mbuf.data(), &udp, now);
                }
                let len = mbuf.total_len();
                let room = std::mem::take(&mut self.chain);
                let taken = match room.get_mut(..len) {
                    Some(frame) => {
                        mbuf.copy_to(0, frame);
                        self.take_packet(frame, &udp, now)
                    }
                    None => Err(Cause::Oversize.into()),
                };
                self.chain = room;
                taken
            }
            Parsed::Udp(_) => Err(Cause::DemuxMiss.into()),
            Parsed::Arp => {
                self.observe_arp(mbuf.data());
                self.out.host.reply(mbuf, &mut self.out.cache);
                Ok(())
            }
            Parsed::IcmpEcho => {
                self.out.host.reply(mbuf, &mut self.out.cache);
                Ok(())
            }
            Parsed::Other => Err(Cause::NotForUs.into()),
        }
    }

    #[inline]
    fn take_packet(&mut self, frame: &[u8], udp: &Udp, now: Ns) -> Result<(), Refused> {
        let start = usize::from(udp.payload_offset);
        let end = start + usize::from(udp.payload_len);
        let (IpAddr::V4(source), Some(ethernet)) = (
            udp.addresses.src(),
            EthernetHeader::ref_from_prefix(frame).ok(),
        ) else {
            return Err(Cause::NotForUs.into());
        };
        // Not to a group.
        if udp.addresses.dst() != IpAddr::V4(self.ip) {
            return Err(Cause::NotForUs.into());
        }
        let ip = ip_offset(frame);
        let (Some(datagram), Some(payload)) = (frame.get(ip..end), frame.get(start..end)) else {
            return Err(Cause::Malformed.into());
        };
        if payload.len() < size_of::<Bth>() + ICRC_LEN {
            return Err(Cause::Malformed.into());
        }
        // The ICRC first: nothing else of a damaged packet counts.
        if !icrc::is_valid(datagram) {
            return Err(Drop::BadIcrc.into());
        }
        let packet = Packet::parse(payload).map_err(|_| Cause::Malformed)?;
        if packet.bth.pkey.get() & PARTITION != PARTITION {
            return Err(Drop::Partition.into());
        }
        let number = QpNumber::new(packet.bth.qp()).ok_or(Drop::UnknownQp)?;
        if number.get() == management::QP {
            let host = (source, ethernet.0.src);
            return Ok(self.mads.take(&packet, host, self.management)?);
        }
        let qp = self.qps.get_mut(number).ok_or(Drop::UnknownQp)?;
        let source = Source {
            ip: source,
            mac: ethernet.0.src,
            is_marked: datagram
                .get(1)
                .is_some_and(|service| service & MARKED == MARKED),
        };
        qp.take(&packet, source, self.session, self.out, now)?;
        Ok(())
    }

    /// Learns the sender of an ARP packet (RFC 826, "merge").
    #[cold]
    fn observe_arp(&mut self, frame: &[u8]) {
        let arp = frame.get(size_of::<EthernetHeader>()..);
        let Some(Ok((arp, _))) = arp.map(ArpPacket::ref_from_prefix) else {
            return;
        };
        if arp.is_ipv4_over_ethernet() {
            let (ip, mac) = (Ipv4Addr::from(arp.sender_ip), arp.sender_mac);
            self.observe_host(ip, mac);
        }
    }

    fn observe_host(&mut self, ip: Ipv4Addr, mac: MacAddr) {
        self.mads.observe_host(ip, mac);
        for qp in self.qps.from(0) {
            qp.observe_host(ip, mac);
        }
    }
}

/// First byte of the IP header of a frame that was parsed: behind at most two VLAN tags.
#[inline]
fn ip_offset(frame: &[u8]) -> usize {
    let mut at = size_of::<EthernetHeader>();
    let tags = [ETHERTYPE_VLAN, ETHERTYPE_QINQ].map(u16::to_be_bytes);
    while frame
        .get(at - 2..at)
        .is_some_and(|ethertype| tags.iter().any(|tag| tag == ethertype))
    {
        at += size_of::<VlanTag>();
    }
    at
}

/// Room for a frame of several buffers.
pub(super) fn chain_room() -> Box<[u8]> {
    vec![0; MAX_CHAIN].into()
}
