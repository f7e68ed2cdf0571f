//! Messages as datagrams of the kernel, as fast as they can be had: a pair of connected sockets from
//! each loop to each, 64 datagrams a call, without waiting, and with room for all that may be under
//! way. As on the ports of `farm run`, messages to one member between two flushes share a datagram,
//! fragments stay in the buffer that they arrived in, and members of one loop hand their messages over.

use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;

use anyhow::{Context as _, Result, ensure};
use libc::{iovec, mmsghdr};
use pollux_farm::carrier::{Arrival, Carrier, Handover, address_of, mac_of};
use pollux_farm::fragments::{Fragments, Outgoing};
use pollux_farm::message::{Fragment, Message};
use pollux_farm::role::{Address, Outbox, Transfer};
use pollux_farm::topology::{Feeders, Topology};
use pollux_farm::wire::payload::{padded, table_len};
use pollux_farm::wire::{self, HEADER};

use crate::room::{Payload, Rooms};
use crate::share::{Share, loop_of};

/// Datagrams of a call.
const BURST: usize = 64;
/// Bytes in front of the messages of a datagram: the address of the member.
const ADDRESS: usize = 6;
/// Bytes that may wait in a socket: far more than what may be under way takes, with the kernel's
/// overhead of about 1 KiB for each datagram.
const BUFFER: libc::c_int = 64 << 20;
/// Microseconds that a read may poll the device, where that has an effect.
const BUSY_POLL: libc::c_int = 50;
/// Messages of a kind that wait for members of the loop itself, at most.
const HANDED: usize = 4096;
/// Least room of a datagram, which messages to one member share: that of a frame of `farm run`.
const LEAST_ROOM: usize = 2496;

/// Sockets of a loop.
pub(crate) struct Links {
    /// To each loop.
    tx: Vec<UdpSocket>,
    /// From each loop.
    rx: Vec<UdpSocket>,
}

/// Sets an option of a socket.
fn set(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) -> Result<()> {
    let len = size_of_val(&value) as libc::socklen_t;
    let value = (&raw const value).cast();
    // SAFETY: an integer that lives for the call is read.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, len) };
    ensure!(
        result == 0,
        "option {option} of a socket, which needs root: {}",
        io::Error::last_os_error()
    );
    Ok(())
}

/// The sockets of all loops, connected on the loopback interface.
pub(crate) fn links(loops: usize) -> Result<Vec<Links>> {
    let mut links: Vec<_> = (0..loops)
        .map(|_| Links {
            tx: Vec::new(),
            rx: Vec::new(),
        })
        .collect();
    for from in 0..loops {
        for to in 0..loops {
            let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
            let (tx, rx) = (bind()?, bind()?);
            tx.connect(rx.local_addr()?)?;
            rx.connect(tx.local_addr()?)?;
            set(&tx, libc::SO_SNDBUFFORCE, BUFFER)?;
            set(&rx, libc::SO_RCVBUFFORCE, BUFFER)?;
            set(&rx, libc::SO_BUSY_POLL, BUSY_POLL)?;
            links[from].tx.push(tx);
            links[to].rx.push(rx);
        }
    }
    Ok(links)
}

const NOWHERE: iovec = iovec {
    iov_base: null_mut(),
    iov_len: 0,
};

/// Headers of messages into, or out of, these places.
fn messages(places: &mut [iovec; BURST]) -> [mmsghdr; BURST] {
    let mut places = places.iter_mut();
    std::array::from_fn(|_| {
        // SAFETY: integers, and pointers that may be null.
        let mut message: mmsghdr = unsafe { zeroed() };
        message.msg_hdr.msg_iov = places.next().map_or(null_mut(), |place| place);
        message.msg_hdr.msg_iovlen = 1;
        message
    })
}

/// A buffer, and the bytes that are used of it.
struct Datagram {
    room: Box<[u8]>,
    len: usize,
}

/// What has not been read of a datagram.
struct Reading {
    to: Address,
    rest: Payload,
}

/// Carrier of a loop.
pub(crate) struct Sockets {
    links: Links,
    rooms: Rooms,
    /// Loop of each member.
    ways: Vec<usize>,
    feeders: usize,
    /// The loop itself, where its members hand messages over.
    within: Option<usize>,
    handover: Handover,
    /// The payload that is handed over.
    written: Option<Payload>,
    /// The datagram with the messages to each member since the last flush.
    gathered: Vec<Option<Datagram>>,
    open: Vec<usize>,
    /// Datagrams to each loop that wait.
    waiting: Vec<Vec<Datagram>>,
    /// Datagrams that have arrived, the last one first.
    taken: Vec<Datagram>,
    /// Buffers that datagrams may be put into.
    empty: Vec<Box<[u8]>>,
    turn: usize,
    reading: Option<Reading>,
    pub(crate) datagrams: u64,
    pub(crate) calls: u64,
    pub(crate) failure: Option<anyhow::Error>,
}

impl Sockets {
    pub(crate) fn new(links: Links, topology: &Topology, share: &Share) -> Result<Self> {
        let (feeders, nodes, loops) = (topology.feeders(), topology.nodes(), share.loops);
        let mut ways = vec![0, loops - 1];
        for feeder in 0..feeders {
            ways.push(loop_of(feeder, feeders, loops)?);
        }
        for node in 0..nodes {
            ways.push(node % loops);
        }
        let data = padded(share.fragment).and_then(|bytes| bytes.checked_mul(share.pack.into()));
        let slot = data.context("fragments that are too long")? + table_len(share.pack);
        let room = (ADDRESS + HEADER + slot as usize).max(LEAST_ROOM);
        ensure!(room <= 65_507, "a datagram holds 65507 bytes");
        let members = ways.len();
        // All receive buffers with all their fragments, and as many under way.
        let buffers = 2 * topology.descriptors() * feeders + members + 4 * loops * BURST;
        Ok(Self {
            rooms: Rooms::new(buffers, room),
            ways,
            feeders,
            within: share.hands_over.then_some(share.number),
            handover: Handover::new(HANDED),
            written: None,
            gathered: (0..members).map(|_| None).collect(),
            open: Vec::with_capacity(members),
            waiting: (0..loops).map(|_| Vec::with_capacity(BURST)).collect(),
            taken: Vec::with_capacity(BURST),
            empty: Vec::with_capacity(BURST),
            turn: 0,
            reading: None,
            datagrams: 0,
            calls: 0,
            failure: None,
            links,
        })
    }

    fn place(&self, member: Address) -> usize {
        match member {
            Address::Scheduler => 0,
            Address::Results => 1,
            Address::Feeder(feeder) => 2 + usize::from(feeder),
            Address::Node(node) => 2 + self.feeders + usize::from(node),
        }
    }

    /// Whether messages to the member at a place are handed over.
    fn is_within(&self, place: usize) -> bool {
        self.within == Some(self.ways[place]) && self.handover.has_room()
    }

    /// A new datagram to a member.
    fn begin(&mut self, to: Address) -> Option<Datagram> {
        let Some(mut room) = self.rooms.take() else {
            self.fail(anyhow::anyhow!("no buffer for a datagram is left"));
            return None;
        };
        room[..ADDRESS].copy_from_slice(&mac_of(to).0);
        Some(Datagram { room, len: ADDRESS })
    }

    fn fail(&mut self, error: anyhow::Error) {
        self.failure.get_or_insert(error);
    }

    /// Adds a datagram; sends when as many wait as a call takes.
    fn push(&mut self, place: usize, datagram: Datagram) {
        let way = self.ways[place];
        self.waiting[way].push(datagram);
        if self.waiting[way].len() == BURST {
            self.transmit(way);
        }
    }

    fn transmit(&mut self, way: usize) {
        let mut places = [NOWHERE; BURST];
        let waiting = &mut self.waiting[way];
        for (place, datagram) in places.iter_mut().zip(waiting.iter_mut()) {
            place.iov_base = datagram.room.as_mut_ptr().cast();
            place.iov_len = datagram.len;
        }
        let (mut messages, count) = (messages(&mut places), waiting.len());
        let mut sent = 0;
        while sent < count {
            let rest = &mut messages[sent..count];
            // SAFETY: as many messages as there are datagrams, each with the place of one that lives
            // for the call and is only read.
            let more = unsafe {
                libc::sendmmsg(
                    self.links.tx[way].as_raw_fd(),
                    rest.as_mut_ptr(),
                    rest.len() as libc::c_uint,
                    0,
                )
            };
            self.calls += 1;
            let Ok(more) = usize::try_from(more) else {
                self.fail(io::Error::last_os_error().into());
                break;
            };
            sent += more;
        }
        self.datagrams += sent as u64;
        for datagram in self.waiting[way].drain(..) {
            self.rooms.give(datagram.room);
        }
    }

    /// Takes datagrams of the next socket that has some.
    fn refill(&mut self) -> Option<Datagram> {
        for _ in 0..self.links.rx.len() {
            let from = self.turn;
            self.turn = (from + 1) % self.links.rx.len();
            if self.receive(from) > 0 {
                return self.taken.pop();
            }
        }
        None
    }

    fn receive(&mut self, from: usize) -> usize {
        while self.empty.len() < BURST
            && let Some(room) = self.rooms.take()
        {
            self.empty.push(room);
        }
        let mut places = [NOWHERE; BURST];
        for (place, room) in places.iter_mut().zip(&mut self.empty) {
            place.iov_base = room.as_mut_ptr().cast();
            place.iov_len = room.len();
        }
        let mut messages = messages(&mut places);
        // SAFETY: as many messages as there are buffers, each with the address of one that lives for
        // the call and has no other user.
        let count = unsafe {
            libc::recvmmsg(
                self.links.rx[from].as_raw_fd(),
                messages.as_mut_ptr(),
                self.empty.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
                null_mut(),
            )
        };
        self.calls += 1;
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::WouldBlock {
                self.fail(error.into());
            }
            return 0;
        };
        let arrived = self.empty.drain(..count).zip(&messages);
        self.taken.extend(arrived.map(|(room, message)| Datagram {
            room,
            len: message.msg_len as usize,
        }));
        self.taken.reverse();
        count
    }

    /// Reads the next message of a datagram.
    fn read(&mut self, Reading { to, rest }: Reading) -> Option<Arrival<Payload>> {
        let message = match wire::decode(&rest) {
            Ok(message) => message,
            Err(error) => {
                self.fail(error.into());
                return None;
            }
        };
        let (mut payload, mut len) = (None, HEADER);
        if let Message::Fragment(fragment) = &message {
            len += fragment.bytes as usize;
            payload = rest.part(HEADER..len);
            let bytes = payload.as_deref().unwrap_or_default();
            if let Err(error) = wire::payload::check(fragment, bytes) {
                self.fail(error.into());
                return None;
            }
        }
        self.reading = rest.behind(len).map(|rest| Reading { to, rest });
        Some(Arrival {
            to,
            message,
            payload,
        })
    }

    /// Room for a message of so many bytes in the datagram that is gathered for a member.
    fn gather(&mut self, place: usize, to: Address, bytes: usize) -> Option<&mut [u8]> {
        let is_full = |open: &mut Datagram| open.len + bytes > open.room.len();
        if let Some(full) = self.gathered[place].take_if(is_full) {
            self.push(place, full);
        } else if self.gathered[place].is_none() {
            self.open.push(place);
        }
        if self.gathered[place].is_none() {
            self.gathered[place] = self.begin(to);
        }
        let open = self.gathered[place].as_mut()?;
        let at = open.len;
        open.len += bytes;
        open.room.get_mut(at..open.len)
    }
}

impl Outbox for Sockets {
    fn send(&mut self, to: Address, message: &Message) {
        let place = self.place(to);
        if self.is_within(place) {
            return self.handover.push(to, message);
        }
        if let Some(room) = self.gather(place, to, HEADER) {
            room.copy_from_slice(&wire::encode(message));
        }
    }

    fn transfer(&mut self, node: u16, outgoing: &Outgoing<'_, impl Fragments>) -> Transfer {
        let to = Address::Node(node);
        let place = self.place(to);
        if let Some(room) = self.gather(place, to, outgoing.frame_len())
            && let Err(error) = outgoing.write(false, room)
        {
            self.fail(error.into());
        }
        Transfer::Done
    }
}

impl Carrier for Sockets {
    type Payload = Payload;
    type Payloads = std::option::IntoIter<Payload>;

    fn set_sender(&mut self, _from: Address) {}

    fn next(&mut self) -> Option<Arrival<Payload>> {
        if let Some(arrival) = self.handover.next() {
            return Some(arrival);
        }
        if let Some(reading) = self.reading.take() {
            return self.read(reading);
        }
        if self.taken.is_empty()
            && let Some(arrival) = self.handover.next_begin()
        {
            return Some(arrival);
        }
        let datagram = self.taken.pop().or_else(|| self.refill())?;
        let address = datagram.room.first_chunk().copied().and_then(address_of);
        let Some(to) = address.filter(|_| datagram.len > ADDRESS) else {
            self.fail(anyhow::anyhow!("a datagram for no member"));
            return None;
        };
        let rest = Payload::new(datagram.room, ADDRESS..datagram.len, &self.rooms);
        self.read(Reading { to, rest })
    }

    fn following(&mut self, _fragment: &Fragment) -> Option<(Feeders, Self::Payloads)> {
        None
    }

    fn hands_over(&self) -> bool {
        self.within.is_some()
    }

    fn count_handed_over(&mut self) {
        self.handover.pass();
    }

    fn has_room(&self, _bytes: usize) -> bool {
        self.written.is_none()
    }

    fn write(&mut self, outgoing: &Outgoing<'_, impl Fragments>) -> bool {
        let Some(mut room) = self.rooms.take() else {
            self.fail(anyhow::anyhow!("no buffer for a fragment is left"));
            return false;
        };
        let len = outgoing.payload_len();
        match outgoing.write_payload(&mut room[..len]) {
            Ok(()) => {
                self.written = Some(Payload::new(room, 0..len, &self.rooms));
                true
            }
            Err(error) => {
                self.fail(error.into());
                false
            }
        }
    }

    fn written(&mut self, _bytes: usize) -> Self::Payloads {
        self.written.take().into_iter()
    }

    fn flush(&mut self) {
        while let Some(place) = self.open.pop() {
            if let Some(datagram) = self.gathered[place].take() {
                self.push(place, datagram);
            }
        }
        for way in 0..self.waiting.len() {
            if !self.waiting[way].is_empty() {
                self.transmit(way);
            }
        }
    }
}
