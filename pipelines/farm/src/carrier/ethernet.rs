//! Messages as Ethernet frames over the queues of ports.
//!
//! Messages to one member that are sent between two flushes share a frame, since a frame costs
//! more than a message does; the fragments of a transfer have a frame each, which the receiver
//! keeps as it is.

use std::cell::RefCell;
use std::rc::Rc;

use pollux_pmd::ledger::Tally;
use pollux_pmd::mempool::{Burst, Mbuf, PoolCache};
use pollux_pmd::port::{RxQueue, TxQueue};
use pollux_pmd::{Cause, CauseError};

use super::arrival::{Arrival, Carrier};
use super::damage::Damage;
use super::frame::{ETHERNET, mac_of, read_header, write_header};
use super::payload::{Buffers, Payload};
use super::way::Way;
use crate::fragments::{Fragments, Outgoing};
use crate::message::Message;
use crate::role::{Address, Outbox, Transfer};
use crate::topology::Topology;
use crate::wire::{self, HEADER, WireError, payload};

/// Frames that are taken of a queue at a time.
const BURST: usize = 64;

/// A carrier that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum CarrierError {
    /// A route to a queue that the carrier does not have.
    #[error("a route to transmit queue {way} of {ways}: the first one is 0")]
    NoWay {
        /// The queue.
        way: u16,
        /// Queues of the carrier.
        ways: usize,
    },
    /// A member that the farm does not have.
    #[error("{0:?} is not in the farm: raise the number of feeders or nodes")]
    NoMember(Address),
    /// Frames that do not hold a message.
    #[error("frames of {0} bytes hold no message: set at least {least}", least = ETHERNET + HEADER)]
    Frame(usize),
    /// The counters could not be made.
    #[error(transparent)]
    Cause(#[from] CauseError),
}

/// By which transmit queue each member is reached, or sends.
#[derive(Clone, Debug)]
pub struct Routes {
    feeders: usize,
    nodes: usize,
    ways: Box<[u16]>,
    by_sender: bool,
    /// The way that leads back to the loop itself, where the others lead to a switch.
    own: Option<u16>,
}

impl Routes {
    /// All members are reached by the first queue.
    #[must_use]
    pub fn new(topology: &Topology) -> Self {
        let (feeders, nodes) = (topology.feeders(), topology.nodes());
        Self {
            feeders,
            nodes,
            ways: vec![0; 2 + feeders + nodes].into(),
            by_sender: false,
            own: None,
        }
    }

    /// All members are reached by the first queue, over a switch, but those of the loop itself, which
    /// are to be set to the way `own`: a switch returns no frame to where it came from. Of the frames
    /// that arrive, those for members of the loop alone are taken. The messages of each sender are in
    /// frames of their own, from which the switch learns where it is.
    #[must_use]
    pub fn over_switch(topology: &Topology, own: u16) -> Self {
        Self {
            own: Some(own),
            ..Self::new(topology)
        }
    }

    /// Each member of the loop has a queue of its own, by which it reaches all others: the routes
    /// are those of the senders.
    #[must_use]
    pub fn by_sender(topology: &Topology) -> Self {
        Self {
            by_sender: true,
            ..Self::new(topology)
        }
    }

    /// A member is reached by another queue, or sends by it.
    ///
    /// # Errors
    /// A member that the farm does not have.
    pub fn set(&mut self, member: Address, way: u16) -> Result<(), CarrierError> {
        let place = self.place(member).ok_or(CarrierError::NoMember(member))?;
        self.ways[place] = way;
        Ok(())
    }

    /// Whether frames have the messages of one sender alone.
    fn is_apart(&self) -> bool {
        self.by_sender || self.own.is_some()
    }

    /// Whether frames for a member are for the loop.
    fn is_here(&self, member: Address) -> bool {
        let way = || self.place(member).map(|place| self.ways[place]);
        self.own.is_none_or(|own| way() == Some(own))
    }

    /// The place of a member in a list of all.
    fn place(&self, member: Address) -> Option<usize> {
        match member {
            Address::Scheduler => Some(0),
            Address::Results => Some(1),
            Address::Feeder(feeder) => {
                let feeder = usize::from(feeder);
                (feeder < self.feeders).then_some(2 + feeder)
            }
            Address::Node(node) => {
                let node = usize::from(node);
                (node < self.nodes).then_some(2 + self.feeders + node)
            }
        }
    }
}

/// Configuration of a carrier.
pub struct EthernetConfig {
    /// Where the members are.
    pub routes: Routes,
    /// The member of each receive queue, whose frames alone are taken: a switch floods others; empty
    /// where the queues are for all members of the loop.
    pub owners: Vec<Address>,
    /// Most bytes of a frame, without frame check sequence.
    pub max_frame: usize,
    /// Payloads of fragments have a CRC.
    pub crc: bool,
    /// Messages that are damaged on purpose.
    pub damage: Option<Damage>,
    /// Counts the frames that are delivered or dropped.
    pub tally: Tally,
}

/// Frames that were not sent, each of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsent {
    /// The pool had no free buffer.
    pub no_buffer: u64,
    /// Longer than a frame or a buffer may be.
    pub oversize: u64,
    /// The queue had no room.
    pub queue_full: u64,
    /// Messages to members that the farm does not have.
    pub no_member: u64,
}

/// A frame that messages are read from.
struct Reading {
    frame: Mbuf,
    to: Address,
    at: usize,
}

/// Frames over the queues of ports. All memory is allocated at construction.
pub struct Ethernet {
    rx: Box<[RxQueue]>,
    ways: Box<[Way]>,
    buffers: Buffers,
    config: EthernetConfig,
    from: Address,
    /// The frame with the messages to each member since the last flush.
    gathered: Box<[Option<Mbuf>]>,
    /// Members that have one.
    open: Vec<u16>,
    /// Frames that were taken of a queue, last one first.
    taken: Vec<Mbuf>,
    /// The queue that is asked next, and the one that was asked last.
    turn: usize,
    source: usize,
    reading: Option<Reading>,
    unsent: Unsent,
    damaged: Cause,
}

impl Ethernet {
    /// A carrier over queues, with the free buffers of its loop.
    ///
    /// # Errors
    /// A configuration that cannot be.
    pub fn new(
        config: EthernetConfig,
        rx: Vec<RxQueue>,
        tx: Vec<TxQueue>,
        cache: PoolCache,
    ) -> Result<Self, CarrierError> {
        let ways = tx.len();
        if let Some(&way) = config
            .routes
            .ways
            .iter()
            .find(|&&way| usize::from(way) >= ways)
        {
            return Err(CarrierError::NoWay { way, ways });
        }
        if config.max_frame < ETHERNET + HEADER {
            return Err(CarrierError::Frame(config.max_frame));
        }
        let members = config.routes.ways.len();
        Ok(Self {
            rx: rx.into(),
            ways: tx.into_iter().map(Way::new).collect(),
            buffers: Rc::new(RefCell::new(cache)),
            config,
            from: Address::Scheduler,
            gathered: (0..members).map(|_| None).collect(),
            open: Vec::with_capacity(members),
            taken: Vec::with_capacity(BURST),
            turn: 0,
            source: 0,
            reading: None,
            unsent: Unsent::default(),
            damaged: Cause::declare(
                "damaged-message",
                "the CRC of a message of the farm is wrong",
            )?,
        })
    }

    /// So many frames may wait in front of each queue that is full, beyond a burst. Without them, what
    /// a loop sends at a time must fit into the rings.
    #[must_use]
    pub fn with_backlog(mut self, frames: usize) -> Self {
        self.ways.iter_mut().for_each(|way| way.reserve(frames));
        self
    }

    /// Messages that were damaged on purpose.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.config.damage.as_ref().map_or(0, Damage::damaged)
    }

    /// What was not sent.
    #[must_use]
    pub fn unsent(&self) -> Unsent {
        self.unsent
    }

    /// Whether no frame waits to be read or sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let sent = self.ways.iter().all(|way| way.waiting() == 0);
        sent && self.open.is_empty() && self.taken.is_empty() && self.reading.is_none()
    }

    /// The queues, for the ports to stop. What waits is counted as aborted.
    #[must_use]
    pub fn into_queues(mut self) -> (Vec<RxQueue>, Vec<TxQueue>) {
        let unread = self.taken.len() + usize::from(self.reading.is_some());
        self.config
            .tally
            .count_dropped(Cause::Aborted, unread as u64);
        let queues = self.ways.into_iter().map(|way| way.into_queue().0);
        (self.rx.into(), queues.collect())
    }

    /// A new frame to a member with room for `bytes` behind its header.
    fn begin(&mut self, to: Address, bytes: usize) -> Option<Mbuf> {
        let total = ETHERNET + bytes;
        let Some(mut frame) = self.buffers.borrow_mut().alloc() else {
            self.unsent.no_buffer += 1;
            return None;
        };
        let fits = total <= self.config.max_frame;
        let data = frame.append(total).filter(|_| fits);
        if let Some(header) = data.and_then(|data| data.first_chunk_mut()) {
            write_header(header, mac_of(self.from), to);
            return Some(frame);
        }
        self.buffers.borrow_mut().free(frame);
        self.unsent.oversize += 1;
        None
    }

    fn push(&mut self, place: usize, frame: Mbuf) {
        let routes = &self.config.routes;
        let sender = routes.place(self.from).filter(|_| routes.by_sender);
        let way = usize::from(routes.ways[sender.unwrap_or(place)]);
        let mut buffers = self.buffers.borrow_mut();
        if let Some(frame) = self.ways[way].push(frame, &mut buffers) {
            buffers.free(frame);
            self.unsent.queue_full += 1;
        }
    }

    /// Room for a message in the frame that is gathered for a member.
    fn gather(&mut self, place: usize, to: Address) -> Option<&mut [u8]> {
        let has_room = |frame: &Mbuf| {
            frame.tailroom() >= HEADER && frame.len() + HEADER <= self.config.max_frame
        };
        if let Some(full) = self.gathered[place].take_if(|frame| !has_room(frame)) {
            self.push(place, full);
        } else if self.gathered[place].is_some() {
            return self.gathered[place].as_mut()?.append(HEADER);
        } else {
            self.open.push(place as u16);
        }
        self.gathered[place] = self.begin(to, HEADER);
        if self.gathered[place].is_none() {
            self.open.retain(|&open| usize::from(open) != place);
        }
        let frame = self.gathered[place].as_mut()?;
        frame.data_mut().get_mut(ETHERNET..)
    }

    /// Ends the frames that are gathered.
    fn close(&mut self) {
        while let Some(place) = self.open.pop() {
            let place = usize::from(place);
            if let Some(frame) = self.gathered[place].take() {
                self.push(place, frame);
            }
        }
    }

    /// Takes frames of the next queue that has some.
    fn refill(&mut self) -> Option<Mbuf> {
        let mut burst = Burst::<BURST>::new();
        let mut buffers = self.buffers.borrow_mut();
        for _ in 0..self.rx.len() {
            let queue = self.turn;
            self.turn = (queue + 1) % self.rx.len();
            if self.rx[queue].rx(&mut buffers, &mut burst) > 0 {
                self.source = queue;
                while let Some(frame) = burst.pop() {
                    frame.prefetch_read();
                    self.taken.push(frame);
                }
                return self.taken.pop();
            }
        }
        None
    }

    /// Reads the next message of a frame.
    fn read(&mut self, reading: Reading) -> Option<Arrival<Payload>> {
        let Reading { frame, to, at } = reading;
        let rest = frame.data().get(at..).unwrap_or_default();
        let message = match wire::decode(rest) {
            Ok(Message::Fragment(fragment)) => match payload::check(&fragment, &rest[HEADER..]) {
                Ok(()) => {
                    self.config.tally.count_delivered(1);
                    let payload = Payload::new(frame, at + HEADER, &self.buffers);
                    let message = Message::Fragment(fragment);
                    let payload = Some(payload);
                    return Some(Arrival {
                        to,
                        message,
                        payload,
                    });
                }
                Err(error) => {
                    self.refuse(frame, error);
                    return None;
                }
            },
            Ok(message) => message,
            Err(error) => {
                self.refuse(frame, error);
                return None;
            }
        };
        if rest.len() > HEADER {
            let at = at + HEADER;
            self.reading = Some(Reading { frame, to, at });
        } else {
            self.config.tally.count_delivered(1);
            self.buffers.borrow_mut().free(frame);
        }
        let payload = None;
        Some(Arrival {
            to,
            message,
            payload,
        })
    }

    /// Drops a frame, or what is left of it.
    fn refuse(&mut self, frame: Mbuf, error: WireError) {
        let cause = match error {
            WireError::Crc { .. } | WireError::PayloadCrc => self.damaged,
            WireError::Version(_) => Cause::BadVersion,
            _ => Cause::Malformed,
        };
        self.drop_frame(frame, cause);
    }

    fn drop_frame(&mut self, frame: Mbuf, cause: Cause) {
        self.config.tally.count_dropped(cause, 1);
        self.buffers.borrow_mut().free(frame);
    }
}

impl Outbox for Ethernet {
    fn send(&mut self, to: Address, message: &Message) {
        let Some(place) = self.config.routes.place(to) else {
            self.unsent.no_member += 1;
            return;
        };
        let mut bytes = wire::encode(message);
        if let Some(damage) = &mut self.config.damage {
            damage.apply(&mut bytes);
        }
        if let Some(room) = self.gather(place, to) {
            room.copy_from_slice(&bytes);
        }
    }

    fn transfer(&mut self, node: u16, outgoing: &Outgoing<'_, impl Fragments>) -> Transfer {
        let to = Address::Node(node);
        let Some(place) = self.config.routes.place(to) else {
            self.unsent.no_member += 1;
            return Transfer::Done;
        };
        let Some(mut frame) = self.begin(to, outgoing.frame_len()) else {
            return Transfer::Done;
        };
        let crc = self.config.crc;
        let message = &mut frame.data_mut()[ETHERNET..];
        if outgoing.write(crc, message).is_err() {
            self.unsent.oversize += 1;
            self.buffers.borrow_mut().free(frame);
            return Transfer::Done;
        }
        if let Some(damage) = &mut self.config.damage {
            damage.apply(message);
        }
        self.push(place, frame);
        Transfer::Done
    }
}

impl Carrier for Ethernet {
    type Payload = Payload;

    fn set_sender(&mut self, from: Address) {
        if self.config.routes.is_apart() && from != self.from {
            self.close();
        }
        self.from = from;
    }

    fn next(&mut self) -> Option<Arrival<Payload>> {
        loop {
            if let Some(reading) = self.reading.take() {
                if let Some(arrival) = self.read(reading) {
                    return Some(arrival);
                }
                continue;
            }
            let frame = self.taken.pop().or_else(|| self.refill())?;
            let owner = self.config.owners.get(self.source);
            let routes = &self.config.routes;
            let is_ours =
                |to: &Address| owner.is_none_or(|owner| owner == to) && routes.is_here(*to);
            match read_header(frame.data()).filter(is_ours) {
                Some(to) if frame.segment_count() == 1 => {
                    let at = ETHERNET;
                    self.reading = Some(Reading { frame, to, at });
                }
                Some(_) => self.drop_frame(frame, Cause::Oversize),
                None => self.drop_frame(frame, Cause::NotForUs),
            }
        }
    }

    fn flush(&mut self) {
        self.close();
        let mut buffers = self.buffers.borrow_mut();
        for way in &mut self.ways {
            way.flush(&mut buffers);
        }
    }
}
