//! Messages of peers.

use std::net::Ipv4Addr;

use pollux_pmd::mempool::time::Ns;
use zerocopy::FromBytes;

use super::connection::{Connection, Peer, State, Timer, rej};
use super::event::{CmEvent, Failure, Reason};
use super::layouts::{self, Datagram, Dreq, Ids, Mra, Rej, Rep, Req};
use super::manager::{ConnectionManager, close, failed, patience};
use crate::address::{Mtu, Psn, QpKind, gid_of};
use crate::mad::Mad;

/// Longest time that a peer may ask for, and shortest after which a message is repeated.
const MOST_WAIT: u64 = 60_000_000_000;
const LEAST_INTERVAL: u64 = 4096 << 12;

/// Nanoseconds of a time-out code of five bits (InfiniBand, 12.7.34: 4.096 us x 2^code).
fn time(code: u8) -> u64 {
    (4096 << (code & 31)).min(MOST_WAIT)
}

impl ConnectionManager {
    /// Takes a datagram that came to queue pair 1 from a host.
    pub fn receive(&mut self, mad: &Mad, now: Ns) {
        let source = mad.host;
        let Ok(mad) = Datagram::ref_from_bytes(&mad.bytes) else {
            return;
        };
        if !mad.is_communication_management() {
            self.drops.malformed += 1;
            return;
        }
        match mad.attribute.get() {
            layouts::REQ => self.with(mad, |cm, req: &Req| cm.on_req(source, mad, req, now)),
            layouts::MRA => self.with(mad, |cm, mra: &Mra| cm.on_mra(source, mra, now)),
            layouts::REJ => self.with(mad, |cm, rej: &Rej| cm.on_rej(source, rej, now)),
            layouts::REP => self.with(mad, |cm, rep: &Rep| cm.on_rep(source, mad, rep, now)),
            layouts::RTU => self.with(mad, |cm, ids: &Ids| cm.on_rtu(source, ids)),
            layouts::DREQ => self.with(mad, |cm, dreq: &Dreq| cm.on_dreq(source, mad, dreq, now)),
            layouts::DREP => self.with(mad, |cm, ids: &Ids| cm.on_drep(source, ids, now)),
            _ => self.drops.malformed += 1,
        }
    }

    fn with<T: FromBytes + zerocopy::KnownLayout + zerocopy::Immutable + zerocopy::Unaligned>(
        &mut self,
        mad: &Datagram,
        act: impl FnOnce(&mut Self, &T),
    ) {
        if let Some(body) = mad.body() {
            act(self, body);
        }
    }

    /// The connection of a message, by both identifiers and the host.
    fn find(&mut self, source: Ipv4Addr, own: u32, peers: u32) -> Option<&mut Connection> {
        self.table
            .get_mut((own & 0xff) as usize)
            .and_then(Option::as_mut)
            .filter(|one| one.matches(source, own, peers))
    }

    fn on_req(&mut self, source: Ipv4Addr, mad: &Datagram, req: &Req, now: Ns) {
        let (peer_id, guid) = (req.local_id.get(), req.ca_guid.get());
        let transaction = mad.transaction.get();
        let known = self
            .table
            .iter()
            .flatten()
            .find(|one| (one.peer_ip, one.peer_guid, one.peer_id) == (source, guid, peer_id));
        if let Some(known) = known {
            let message = known.message;
            let repeats = match known.state {
                State::RepSent => true,
                State::TimeWait => message.attribute.get() == layouts::REJ,
                _ => false,
            };
            self.drops.duplicate += 1;
            if repeats {
                self.send(source, &message);
            }
            return;
        }
        let refused = match self.check_req(source, req, now) {
            Ok(peer) => match self.connection(State::ReqReceived, source) {
                Some(Ok(connection)) if self.events.len() < self.most_waiting() => {
                    self.take_req(connection, transaction, req, peer, now);
                    return;
                }
                _ => Reason::NO_RESOURCES,
            },
            Err(reason) => reason,
        };
        let message = rej(transaction, 0, peer_id, layouts::OF_REQ, refused, &[]);
        self.send(source, &message);
    }

    /// What a request says of its sender, or why it is rejected.
    fn check_req(&mut self, source: Ipv4Addr, req: &Req, now: Ns) -> Result<Peer, Reason> {
        let port = layouts::port_of(req.service.get());
        if !port.is_some_and(|port| self.ports.contains(&port)) {
            return Err(Reason::INVALID_SERVICE);
        }
        if req.kind() != Some(QpKind::Reliable) {
            return Err(Reason::INVALID_TRANSPORT);
        }
        if req.local_id.get() == 0 || !req.ip.is_from(source) {
            return Err(Reason::UNSUPPORTED);
        }
        if req.primary.local_gid != gid_of(source) {
            return Err(Reason::INVALID_GID);
        }
        let mtu = Mtu::from_code(req.mtu_rnr >> 4).ok_or(Reason::INVALID_MTU)?;
        let qp = req.qp().ok_or(Reason::UNSUPPORTED)?;
        // A queue pair is in one connection: the older one is a memory of the peer before it started anew.
        let guid = req.ca_guid.get();
        let stale = self.table.iter_mut().flatten().find(|one| {
            (one.peer_ip, one.peer_guid) == (source, guid)
                && one.peer.is_some_and(|peer| peer.qp == qp)
                && matches!(one.state, State::RepSent | State::Established)
        });
        if let Some(stale) = stale {
            let id = stale.id;
            close(stale, now);
            self.events.push_back(CmEvent::Disconnected { id });
            return Err(Reason::STALE);
        }
        let timeout_retry = req.psn_timeout_retry.get() as u8;
        let interval = time(timeout_retry >> 3).min(self.interval().0);
        Ok(Peer {
            qp,
            first_psn: psn_of(req.psn_timeout_retry.get()),
            mtu,
            retry: Some(timeout_retry & 7),
            rnr_retry: req.mtu_rnr & 7,
            answers: req.qp_resources.get() as u8,
            gets: req.initiator_depth.get() as u8,
            interval: Ns(interval.max(LEAST_INTERVAL)),
            retries: (req.max_retries >> 4).max(1),
        })
    }

    fn take_req(
        &mut self,
        mut connection: Connection,
        transaction: u64,
        req: &Req,
        peer: Peer,
        now: Ns,
    ) {
        connection.transaction = transaction;
        connection.peer_id = req.local_id.get();
        connection.peer_guid = req.ca_guid.get();
        connection.peer = Some(peer);
        connection.timer = Some(patience(now));
        self.events.push_back(CmEvent::Requested {
            id: connection.id,
            peer: connection.peer_ip,
            port: req.service.get() as u16,
            mtu: peer.mtu,
            private: Box::new(req.private),
        });
        self.put(connection);
    }

    fn on_rep(&mut self, source: Ipv4Addr, mad: &Datagram, rep: &Rep, now: Ns) {
        let (own, peer_id) = (rep.remote_id.get(), rep.local_id.get());
        let connection = self
            .table
            .get_mut((own & 0xff) as usize)
            .and_then(Option::as_mut)
            .filter(|one| one.id.0 == own && one.peer_ip == source)
            .filter(|one| peer_id != 0 && (one.peer_id == 0 || one.peer_id == peer_id));
        let Some(connection) = connection else {
            self.drops.unknown += 1;
            let reason = Reason::INVALID_ID;
            let message = rej(
                mad.transaction.get(),
                own,
                peer_id,
                layouts::OF_REP,
                reason,
                &[],
            );
            self.send(source, &message);
            return;
        };
        if connection.state != State::ReqSent {
            let repeats = match connection.state {
                State::Established => true,
                State::TimeWait => connection.message.attribute.get() == layouts::REJ,
                _ => false,
            };
            // RTU or REJ; before that the program is asked.
            let message = connection.message;
            self.drops.duplicate += 1;
            if repeats {
                self.send(source, &message);
            }
            return;
        }
        connection.peer_id = peer_id;
        connection.peer_guid = rep.ca_guid.get();
        let id = connection.id;
        connection.peer = rep.qp().zip(connection.offer).map(|(qp, offer)| Peer {
            qp,
            first_psn: psn_of(rep.psn.get()),
            mtu: offer.path.mtu,
            retry: None,
            rnr_retry: rep.rnr >> 5,
            answers: rep.responder_resources,
            gets: rep.initiator_depth,
            interval: Ns(0),
            retries: 0,
        });
        connection.state = State::RepReceived;
        let Some(agreed) = connection.agreed() else {
            let message = connection.rej(Reason::UNSUPPORTED, &[]);
            connection.message = message;
            close(connection, now);
            self.send(source, &message);
            let why = Failure::Answer("queue pair number");
            self.events.push_back(failed(id, why));
            return;
        };
        connection.timer = Some(patience(now));
        self.events.push_back(CmEvent::Accepted {
            id,
            agreed,
            private: Box::new(rep.private),
        });
    }

    fn on_rtu(&mut self, source: Ipv4Addr, ids: &Ids) {
        match self.find(source, ids.remote_id.get(), ids.local_id.get()) {
            Some(connection) if connection.state == State::RepSent => {
                let id = connection.id;
                connection.state = State::Established;
                connection.timer = None;
                self.events.push_back(CmEvent::Established { id });
            }
            Some(_) => self.drops.duplicate += 1,
            None => self.drops.unknown += 1,
        }
    }

    fn on_mra(&mut self, source: Ipv4Addr, mra: &Mra, now: Ns) {
        let own = mra.remote_id.get();
        let connection = self
            .table
            .get_mut((own & 0xff) as usize)
            .and_then(Option::as_mut)
            .filter(|one| one.id.0 == own && one.peer_ip == source);
        // Each delay is one repetition less, so that no peer keeps a connection waiting for ever.
        match connection {
            Some(Connection {
                state: State::ReqSent | State::RepSent,
                timer:
                    Some(Timer {
                        due,
                        interval,
                        left,
                    }),
                ..
            }) if *left > 0 => {
                *left -= 1;
                *due = now + Ns(time(mra.timeout >> 3)) + *interval;
            }
            Some(_) => self.drops.duplicate += 1,
            None => self.drops.unknown += 1,
        }
    }

    fn on_rej(&mut self, source: Ipv4Addr, rej: &Rej, now: Ns) {
        // The peer's own identifier is 0 where it made none.
        let (own, peer_id) = (rej.remote_id.get(), rej.local_id.get());
        let connection = self
            .table
            .get_mut((own & 0xff) as usize)
            .and_then(Option::as_mut)
            .filter(|one| one.id.0 == own && one.peer_ip == source)
            .filter(|one| peer_id == 0 || one.peer_id == 0 || one.peer_id == peer_id);
        let Some(connection) = connection else {
            self.drops.unknown += 1;
            return;
        };
        let id = connection.id;
        let event = match connection.state {
            State::ReqSent
            | State::ReqReceived
            | State::RepReady
            | State::RepSent
            | State::RepReceived => {
                let why = Failure::Rejected {
                    reason: Reason(rej.reason.get()),
                    private: Box::new(rej.private),
                };
                failed(id, why)
            }
            State::Established | State::DreqSent => CmEvent::Disconnected { id },
            State::TimeWait => {
                self.drops.duplicate += 1;
                return;
            }
        };
        close(connection, now);
        self.events.push_back(event);
    }

    fn on_dreq(&mut self, source: Ipv4Addr, mad: &Datagram, dreq: &Dreq, now: Ns) {
        let (own, peer_id) = (dreq.remote_id.get(), dreq.local_id.get());
        // The answer is the same for a connection that is over, or is unknown: the peer may end its own.
        let ids = Ids::new(own, peer_id);
        let message = Datagram::new(layouts::DREP, mad.transaction.get(), &ids);
        let qp = dreq.remote_qp.get() >> 8;
        match self.find(source, own, peer_id) {
            None => self.drops.unknown += 1,
            Some(connection) if connection.state == State::TimeWait => self.drops.duplicate += 1,
            Some(connection) if connection.offer.is_some_and(|offer| offer.qp.get() == qp) => {
                let id = connection.id;
                close(connection, now);
                self.events.push_back(CmEvent::Disconnected { id });
            }
            Some(_) => {
                self.drops.malformed += 1;
                return;
            }
        }
        self.send(source, &message);
    }

    fn on_drep(&mut self, source: Ipv4Addr, ids: &Ids, now: Ns) {
        match self.find(source, ids.remote_id.get(), ids.local_id.get()) {
            Some(connection) if connection.state == State::DreqSent => {
                let id = connection.id;
                close(connection, now);
                self.events.push_back(CmEvent::Disconnected { id });
            }
            Some(_) => self.drops.duplicate += 1,
            None => self.drops.unknown += 1,
        }
    }
}

/// The PSN in the upper bits of a word.
fn psn_of(word: u32) -> Psn {
    Psn::new(word >> 8)
}
