//! Connections of a host: the program's calls, and time.

use std::collections::VecDeque;
use std::fmt;
use std::net::Ipv4Addr;

use pollux_pmd::mempool::time::Ns;
use zerocopy::IntoBytes;

use super::connection::{Connection, Request, State, Timer};
use super::event::{Agreed, CmDrops, CmError, CmEvent, ConnectionId, Failure, Offer, Reason};
use super::layouts::Datagram;
use crate::address::Psn;
use crate::mad::{MAD_BYTES, Mad};
use crate::random;

/// Most connections: the number of one has eight bits.
const MOST: usize = 256;
/// Most bytes of private data: in REQ, beside the header of annex A11; in REP; in REJ.
const REQ_PRIVATE: usize = 56;
const REP_PRIVATE: usize = 196;
const REJ_PRIVATE: usize = 148;
/// How long a request may wait for the program, and late messages are known.
const PATIENCE: Ns = Ns(60_000_000_000);

/// What a connection manager is made of.
#[derive(Clone, Copy, Debug)]
pub struct CmOptions {
    /// Address of the host.
    pub ip: Ipv4Addr,
    /// Connections at a time, up to 256.
    pub connections: usize,
    /// How long an answer may take: 4.096 us x 2^timeout, up to 31. The peer is told.
    pub timeout: u8,
    /// How often a message is repeated, up to 15.
    pub retries: u8,
}

impl CmOptions {
    /// 64 connections, 1.07 s, 15 repetitions.
    #[must_use]
    pub fn new(ip: Ipv4Addr) -> Self {
        Self {
            ip,
            connections: 64,
            timeout: 18,
            retries: 15,
        }
    }
}

/// Connections of a host.
///
/// Times are those of any clock that does not go back.
pub struct ConnectionManager {
    pub(super) options: CmOptions,
    pub(super) guid: u64,
    pub(super) ports: Vec<u16>,
    pub(super) table: Vec<Option<Connection>>,
    out: VecDeque<Mad>,
    pub(super) events: VecDeque<CmEvent>,
    pub(super) drops: CmDrops,
}

impl ConnectionManager {
    /// A connection manager without connections, with an identifier that is random.
    ///
    /// # Errors
    /// An option is out of its limits, or the system has no random bits.
    pub fn new(options: CmOptions) -> Result<Self, CmError> {
        let (timeout, retries) = (options.timeout.into(), options.retries.into());
        for (option, value, limits, allowed) in [
            ("connections", options.connections, 1..=MOST, "1 to 256"),
            ("timeout", timeout, 0..=31, "0 to 31"),
            ("retries", retries, 0..=15, "0 to 15"),
        ] {
            if !limits.contains(&value) {
                return Err(CmError::Option {
                    option,
                    value,
                    allowed,
                });
            }
        }
        let bits = || random::bits().map(u64::from).map_err(|_| CmError::Random);
        Ok(Self {
            options,
            guid: bits()? << 32 | bits()?,
            ports: Vec::new(),
            table: (0..options.connections).map(|_| None).collect(),
            out: VecDeque::new(),
            events: VecDeque::new(),
            drops: CmDrops::default(),
        })
    }

    /// Takes requests for a port.
    pub fn listen(&mut self, port: u16) {
        if !self.ports.contains(&port) {
            self.ports.push(port);
        }
    }

    /// Asks a host for a connection to a port, with up to 56 bytes for its program.
    ///
    /// # Errors
    /// Too many connections, or too much private data.
    pub fn connect(
        &mut self,
        peer: Ipv4Addr,
        port: u16,
        offer: &Offer,
        private: &[u8],
        now: Ns,
    ) -> Result<ConnectionId, CmError> {
        check_private(private, REQ_PRIVATE)?;
        let mut connection = self
            .connection(State::ReqSent, peer)
            .ok_or(CmError::TooMany(self.options.connections))??;
        connection.offer = Some(*offer);
        connection.message = connection.req(
            offer,
            &Request {
                own_ip: self.options.ip,
                // Not a port of a socket: it tells connections of the host apart.
                own_port: connection.id.0 as u16,
                port,
                guid: self.guid,
                timeout: self.options.timeout,
                retries: self.options.retries,
                private,
            },
        );
        connection.timer = Some(self.timer(now));
        self.send(peer, &connection.message);
        let id = connection.id;
        self.put(connection);
        Ok(id)
    }

    /// Accepts a request, with up to 196 bytes for the peer's program. Connect the queue pair with the
    /// result, then [`confirm`](Self::confirm): the peer's packets follow.
    ///
    /// # Errors
    /// The request is over, or the private data are too long.
    pub fn accept(
        &mut self,
        id: ConnectionId,
        offer: &Offer,
        private: &[u8],
    ) -> Result<Agreed, CmError> {
        check_private(private, REP_PRIVATE)?;
        let guid = self.guid;
        let connection = self.at(id, &[State::ReqReceived])?;
        let peer = connection.peer.ok_or(CmError::State(id))?;
        connection.offer = Some(*offer);
        connection.message = connection.rep(offer, &peer, guid, private);
        let agreed = connection.agreed().ok_or(CmError::State(id))?;
        connection.state = State::RepReady;
        Ok(agreed)
    }

    /// Rejects a request, or what the peer has accepted, with up to 148 bytes for the peer's program.
    ///
    /// # Errors
    /// The connection is over or confirmed, or the private data are too long.
    pub fn reject(&mut self, id: ConnectionId, private: &[u8], now: Ns) -> Result<(), CmError> {
        check_private(private, REJ_PRIVATE)?;
        let states = [State::ReqReceived, State::RepReady, State::RepReceived];
        let connection = self.at(id, &states)?;
        let message = connection.rej(Reason::CONSUMER, private);
        connection.message = message;
        let to = connection.peer_ip;
        close(connection, now);
        self.send(to, &message);
        Ok(())
    }

    /// Tells the peer that the queue pair is connected with what both ends agreed upon. For the active end
    /// the connection is then established; for the passive one [`CmEvent::Established`] follows.
    ///
    /// # Errors
    /// The connection is over, or was confirmed.
    pub fn confirm(&mut self, id: ConnectionId, now: Ns) -> Result<(), CmError> {
        let connection = self.at(id, &[State::RepReceived, State::RepReady])?;
        match connection.peer {
            Some(peer) if connection.state == State::RepReady => {
                connection.state = State::RepSent;
                connection.timer = Some(Timer {
                    due: now + peer.interval,
                    interval: peer.interval,
                    left: peer.retries,
                });
            }
            _ => {
                connection.state = State::Established;
                connection.message = connection.rtu();
                connection.timer = None;
            }
        }
        let (to, message) = (connection.peer_ip, connection.message);
        self.send(to, &message);
        Ok(())
    }

    /// Ends a connection; [`CmEvent::Disconnected`] follows.
    ///
    /// # Errors
    /// It is over, or is not established.
    pub fn disconnect(&mut self, id: ConnectionId, now: Ns) -> Result<(), CmError> {
        let timer = self.timer(now);
        let connection = self.at(id, &[State::Established, State::RepSent])?;
        let peer = connection.peer.ok_or(CmError::State(id))?;
        connection.state = State::DreqSent;
        connection.message = connection.dreq(peer.qp);
        connection.timer = Some(timer);
        let (to, message) = (connection.peer_ip, connection.message);
        self.send(to, &message);
        Ok(())
    }

    /// Repeats or gives up what is due, and says when to call again: never, if there is nothing to wait
    /// for. [`receive`](Self::receive) may make it earlier.
    pub fn poll(&mut self, now: Ns) -> Option<Ns> {
        let mut next: Option<Ns> = None;
        for index in 0..self.table.len() {
            self.poll_one(index, now);
            let timer = self.table[index].as_ref().and_then(|one| one.timer);
            if let Some(timer) = timer {
                next = Some(next.map_or(timer.due, |next| next.min(timer.due)));
            }
        }
        next
    }

    fn poll_one(&mut self, index: usize, now: Ns) {
        let Some(connection) = &mut self.table[index] else {
            return;
        };
        let (id, to) = (connection.id, connection.peer_ip);
        let Some(timer) = connection.timer.as_mut().filter(|timer| timer.due <= now) else {
            return;
        };
        if timer.left > 0 {
            timer.left -= 1;
            timer.due = now + timer.interval;
            let message = connection.message;
            self.send(to, &message);
            return;
        }
        let event = match connection.state {
            State::TimeWait => {
                self.table[index] = None;
                return;
            }
            State::DreqSent => CmEvent::Disconnected { id },
            State::ReqReceived | State::RepReady | State::RepReceived => {
                failed(id, Failure::TooLate)
            }
            _ => failed(id, Failure::NoAnswer),
        };
        let message = connection.rej(Reason::TIMEOUT, &[]);
        connection.message = message;
        close(connection, now);
        self.send(to, &message);
        self.events.push_back(event);
    }

    /// The next datagram to send to queue pair 1 of a host.
    pub fn transmit(&mut self) -> Option<Mad> {
        self.out.pop_front()
    }

    /// The next event.
    pub fn event(&mut self) -> Option<CmEvent> {
        self.events.pop_front()
    }

    /// Datagrams that were not acted upon.
    #[must_use]
    pub fn drops(&self) -> CmDrops {
        self.drops
    }

    /// Most datagrams and events that wait: those of a peer that asks for more are refused.
    pub(super) fn most_waiting(&self) -> usize {
        4 * self.table.len() + 16
    }

    pub(super) fn send(&mut self, host: Ipv4Addr, datagram: &Datagram) {
        if self.out.len() >= self.most_waiting() {
            self.drops.no_room += 1;
            return;
        }
        let mut bytes = [0; MAD_BYTES];
        bytes.copy_from_slice(datagram.as_bytes());
        self.out.push_back(Mad { host, bytes });
    }

    /// How long this end waits for an answer.
    pub(super) fn interval(&self) -> Ns {
        Ns(4096 << self.options.timeout)
    }

    /// Repetition of a message that is sent now.
    fn timer(&self, now: Ns) -> Timer {
        Timer {
            due: now + self.interval(),
            interval: self.interval(),
            left: self.options.retries,
        }
    }

    /// A new connection, which is not in the table yet; `None` if that is full.
    pub(super) fn connection(
        &mut self,
        state: State,
        peer: Ipv4Addr,
    ) -> Option<Result<Connection, CmError>> {
        let over =
            |one: &Option<Connection>| one.as_ref().is_none_or(|one| one.state == State::TimeWait);
        let free = self.table.iter().position(Option::is_none);
        let index = free.or_else(|| self.table.iter().position(over))?;
        let numbers = random::bits().and_then(|id| Ok((id, random::bits()?)));
        Some(match numbers {
            Ok((id, psn)) => {
                // 0 stands for an identifier that is not known.
                let id = ConnectionId(id.max(1 << 8) & !0xff | index as u32);
                Ok(Connection::new(id, state, peer, Psn::new(psn)))
            }
            Err(_) => Err(CmError::Random),
        })
    }

    /// Puts a connection at its place.
    pub(super) fn put(&mut self, connection: Connection) {
        let index = (connection.id.0 & 0xff) as usize;
        if let Some(place) = self.table.get_mut(index) {
            *place = Some(connection);
        }
    }

    /// The connection, if it is in one of these states.
    fn at(&mut self, id: ConnectionId, states: &[State]) -> Result<&mut Connection, CmError> {
        self.table
            .get_mut((id.0 & 0xff) as usize)
            .and_then(Option::as_mut)
            .filter(|one| one.id == id && states.contains(&one.state))
            .ok_or(CmError::State(id))
    }
}

/// Ends a connection. If its last message is REJ, that answers late ones of the peer.
pub(super) fn close(connection: &mut Connection, now: Ns) {
    connection.state = State::TimeWait;
    connection.timer = Some(patience(now));
}

/// A connection that did not begin.
pub(super) fn failed(id: ConnectionId, why: Failure) -> CmEvent {
    CmEvent::Failed { id, why }
}

/// When a connection is given up that waits for the program.
pub(super) fn patience(now: Ns) -> Timer {
    Timer {
        due: now + PATIENCE,
        interval: PATIENCE,
        left: 0,
    }
}

fn check_private(private: &[u8], most: usize) -> Result<(), CmError> {
    if private.len() > most {
        let len = private.len();
        return Err(CmError::PrivateData { len, most });
    }
    Ok(())
}

impl fmt::Debug for ConnectionManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connections = self.table.iter().flatten();
        f.debug_struct("ConnectionManager")
            .field("ip", &self.options.ip)
            .field("ports", &self.ports)
            .field("connections", &connections.count())
            .finish_non_exhaustive()
    }
}
