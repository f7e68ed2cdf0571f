//! One connection: its state, and the messages that it sends.

use std::net::Ipv4Addr;

use pollux_pmd::mempool::time::Ns;
use zerocopy::FromZeros;

use super::event::{Agreed, ConnectionId, Offer, Reason};
use super::layouts::{self, Datagram, Dreq, Ids, IpHeader, Rej, Rep, Req};
use crate::address::{Mtu, Psn, QpAddress, QpNumber, gid_of};

/// Default partition, full member (InfiniBand, 10.9.1.2): the only one of RoCE.
const DEFAULT_PARTITION: u16 = 0xffff;
/// A LID that stands for any: RoCE has none (annex A16.4.3).
const PERMISSIVE_LID: u16 = 0xffff;
/// Hops of a packet: routers count down from there.
const HOPS: u8 = 64;

/// Where a connection is (InfiniBand, 12.9.5 and 12.9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Active: REQ was sent.
    ReqSent,
    /// Active: REP was received, and the program has not confirmed.
    RepReceived,
    /// Passive: REQ was received, and the program has not answered.
    ReqReceived,
    /// Passive: the program has accepted, and not confirmed.
    RepReady,
    /// Passive: REP was sent.
    RepSent,
    /// Both ends agree.
    Established,
    /// DREQ was sent.
    DreqSent,
    /// It is over, and its late messages are known for a while.
    TimeWait,
}

/// Repetition of the message that has no answer yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    /// When it is repeated, or given up.
    pub(super) due: Ns,
    pub(super) interval: Ns,
    /// How often it is still repeated.
    pub(super) left: u8,
}

/// A connection.
pub(super) struct Connection {
    pub(super) id: ConnectionId,
    pub(super) state: State,
    pub(super) peer_ip: Ipv4Addr,
    /// Communication identifier of the peer; 0 before it is known.
    pub(super) peer_id: u32,
    /// Identifier of the peer's channel adapter.
    pub(super) peer_guid: u64,
    pub(super) transaction: u64,
    pub(super) offer: Option<Offer>,
    /// What the peer's queue pair is, once it is known.
    pub(super) peer: Option<Peer>,
    /// The PSN with which the peer begins, chosen by this end.
    pub(super) peer_psn: Psn,
    /// The message that is repeated: at its time, or when the peer repeats the one that it answers.
    pub(super) message: Datagram,
    pub(super) timer: Option<Timer>,
}

/// What a peer says of its queue pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) qp: QpNumber,
    /// The PSN with which this end begins.
    pub(super) first_psn: Psn,
    pub(super) mtu: Mtu,
    /// How often this end repeats a request for want of an acknowledgement; `None`: as it likes.
    pub(super) retry: Option<u8>,
    pub(super) rnr_retry: u8,
    /// GETs that the peer answers, and asks for, at a time.
    pub(super) answers: u8,
    pub(super) gets: u8,
    /// How long this end waits for an answer of the peer, and how often it asks.
    pub(super) interval: Ns,
    pub(super) retries: u8,
}

impl Connection {
    pub(super) fn new(id: ConnectionId, state: State, peer_ip: Ipv4Addr, peer_psn: Psn) -> Self {
        Self {
            id,
            state,
            peer_ip,
            peer_id: 0,
            peer_guid: 0,
            transaction: u64::from(id.0),
            offer: None,
            peer: None,
            peer_psn,
            message: Datagram::new_zeroed(),
            timer: None,
        }
    }

    /// Whether a message of this host, with these identifiers, is of this connection.
    pub(super) fn matches(&self, source: Ipv4Addr, own: u32, peers: u32) -> bool {
        self.id.0 == own && self.peer_ip == source && self.peer_id == peers && peers != 0
    }

    /// What both ends have agreed upon, when both have told.
    pub(super) fn agreed(&self) -> Option<Agreed> {
        let (offer, peer) = (self.offer?, self.peer?);
        let mut path = offer.path;
        path.mtu = peer.mtu;
        path.retry = peer.retry.unwrap_or(path.retry);
        path.rnr_retry = peer.rnr_retry;
        path.gets = path.gets.min(peer.answers);
        path.first_psn = Some(peer.first_psn);
        Some(Agreed {
            peer: QpAddress {
                number: peer.qp,
                psn: self.peer_psn,
                ip: self.peer_ip,
                mac: None,
            },
            path,
        })
    }

    /// REQ (InfiniBand, 12.6.5).
    pub(super) fn req(&self, offer: &Offer, to: &Request<'_>) -> Datagram {
        let mut req = Req::new_zeroed();
        req.local_id.set(self.id.0);
        req.service.set(layouts::service(to.port));
        req.ca_guid.set(to.guid);
        let qp = offer.qp.get() << 8;
        req.qp_resources.set(qp | u32::from(offer.answers));
        req.initiator_depth.set(offer.path.gets.into());
        // A reliable connection, without flow control from end to end: 0 and 0.
        req.remote_timeout.set(u32::from(to.timeout) << 3);
        let timeout_retry = u32::from(to.timeout) << 3 | u32::from(offer.path.retry & 7);
        req.psn_timeout_retry
            .set(self.peer_psn.get() << 8 | timeout_retry);
        req.partition.set(DEFAULT_PARTITION);
        req.mtu_rnr = offer.path.mtu.code() << 4 | offer.path.rnr_retry & 7;
        req.max_retries = to.retries << 4;
        req.primary.local_lid.set(PERMISSIVE_LID);
        req.primary.remote_lid.set(PERMISSIVE_LID);
        req.primary.local_gid = gid_of(to.own_ip);
        req.primary.remote_gid = gid_of(self.peer_ip);
        req.primary.hop_limit = HOPS;
        req.primary.ack_timeout = (offer.path.timeout & 31) << 3;
        req.ip = IpHeader::new(to.own_ip, to.own_port, self.peer_ip);
        fill(&mut req.private, to.private);
        Datagram::new(layouts::REQ, self.transaction, &req)
    }

    /// REP (InfiniBand, 12.6.8).
    pub(super) fn rep(&self, offer: &Offer, peer: &Peer, guid: u64, private: &[u8]) -> Datagram {
        let mut rep = Rep::new_zeroed();
        rep.local_id.set(self.id.0);
        rep.remote_id.set(self.peer_id);
        rep.qp.set(offer.qp.get() << 8);
        rep.psn.set(self.peer_psn.get() << 8);
        rep.responder_resources = offer.answers.min(peer.gets);
        rep.initiator_depth = offer.path.gets.min(peer.answers);
        rep.rnr = (offer.path.rnr_retry & 7) << 5;
        rep.ca_guid.set(guid);
        fill(&mut rep.private, private);
        Datagram::new(layouts::REP, self.transaction, &rep)
    }

    /// RTU (InfiniBand, 12.6.9).
    pub(super) fn rtu(&self) -> Datagram {
        let ids = Ids::new(self.id.0, self.peer_id);
        Datagram::new(layouts::RTU, self.transaction, &ids)
    }

    /// DREQ (InfiniBand, 12.6.10).
    pub(super) fn dreq(&self, peer_qp: QpNumber) -> Datagram {
        let mut dreq = Dreq::new_zeroed();
        dreq.local_id.set(self.id.0);
        dreq.remote_id.set(self.peer_id);
        dreq.remote_qp.set(peer_qp.get() << 8);
        Datagram::new(layouts::DREQ, self.transaction, &dreq)
    }

    /// REJ of the last message of the peer (InfiniBand, 12.6.7).
    pub(super) fn rej(&self, reason: Reason, private: &[u8]) -> Datagram {
        let of = match self.state {
            State::ReqSent | State::ReqReceived | State::RepReady => layouts::OF_REQ,
            State::RepReceived | State::RepSent => layouts::OF_REP,
            _ => layouts::OF_OTHER,
        };
        rej(
            self.transaction,
            self.id.0,
            self.peer_id,
            of,
            reason,
            private,
        )
    }
}

/// What a REQ says beside the connection's own.
pub(super) struct Request<'a> {
    pub(super) own_ip: Ipv4Addr,
    pub(super) own_port: u16,
    pub(super) port: u16,
    pub(super) guid: u64,
    pub(super) timeout: u8,
    pub(super) retries: u8,
    pub(super) private: &'a [u8],
}

/// REJ (InfiniBand, 12.6.7).
pub(super) fn rej(
    transaction: u64,
    own_id: u32,
    peer_id: u32,
    of: u8,
    reason: Reason,
    private: &[u8],
) -> Datagram {
    let mut rej = Rej::new_zeroed();
    rej.local_id.set(own_id);
    rej.remote_id.set(peer_id);
    rej.message = of;
    rej.reason.set(reason.0);
    fill(&mut rej.private, private);
    Datagram::new(layouts::REJ, transaction, &rej)
}

/// Private data: what does not fit was refused before.
fn fill(field: &mut [u8], private: &[u8]) {
    for (to, from) in field.iter_mut().zip(private) {
        *to = *from;
    }
}
