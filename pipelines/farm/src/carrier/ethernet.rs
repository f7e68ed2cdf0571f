//! Messages as Ethernet frames over the queues of ports.
//!
//! Messages to one member that are sent between two flushes share a frame, since a frame costs
//! more than a message does. The receiver keeps a frame as it is, as long as a fragment of it is
//! in use.

mod announce;
mod gather;

use pollux_pmd::Cause;
use pollux_pmd::ledger::Tally;
use pollux_pmd::mempool::{Burst, Mbuf, PoolCache};
use pollux_pmd::port::{RxQueue, TxQueue};

use super::arrival::{Arrival, Carrier};
use super::damage::Damage;
use super::error::CarrierError;
use super::frame::{ETHERNET, is_announcement, read_header};
use super::handover::Handover;
use super::lines;
use super::payload::{Buffers, Free, Owner, Payload, Payloads};
use super::routes::Routes;
use super::unsent::Unsent;
use super::way::Way;
use crate::fragments::{Fragments, Outgoing};
use crate::message::{Fragment, Message};
use crate::role::{Address, Outbox, Transfer};
use crate::topology::Feeders;
use crate::wire::series::Series;
use crate::wire::{self, HEADER, WireError};

/// Frames that are taken of a queue at a time.
const BURST: usize = 64;

/// Frames whose lines are asked for ahead of the one that is read: no more than a processor asks for at a
/// time, and those that come early are not displaced.
const AHEAD: usize = 2;

/// Configuration of a carrier.
pub struct EthernetConfig {
    /// Where the members are.
    pub routes: Routes,
    /// The member of each receive queue, whose frames alone are taken: a switch floods others; empty
    /// where the queues are for all members of the loop.
    pub owners: Vec<Address>,
    /// The transmit queue that leads back to the loop itself, whose messages need no frame: members of
    /// one loop hand them over. Without it, all messages have frames.
    pub within: Option<u16>,
    /// Most bytes of a frame, without frame check sequence.
    pub max_frame: usize,
    /// Payloads of fragments have a CRC.
    pub crc: bool,
    /// Messages that are damaged on purpose.
    pub damage: Option<Damage>,
    /// Counts the frames that are delivered or dropped.
    pub tally: Tally,
}

/// A frame that messages are read from.
struct Reading {
    frame: Owner,
    to: Address,
    at: usize,
}

/// Messages of a kind that can wait for members of the loop itself; others go by frames.
const HANDED: usize = 4096;

/// Frames over the queues of ports. All memory is allocated at construction.
pub struct Ethernet {
    rx: Box<[RxQueue]>,
    ways: Box<[Way]>,
    buffers: Buffers,
    /// Payloads that are handed over: those of one MEP share a buffer.
    near: Option<Mbuf>,
    /// Bytes of a buffer.
    room: usize,
    config: EthernetConfig,
    from: Address,
    /// Members whose address a frame to the switch has had since the last sign of life: messages of
    /// the others begin a frame, from which the switch learns where they are.
    named: Box<[bool]>,
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
    /// The fragments that were read and written last.
    read: Series,
    written: Series,
    handover: Handover,
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
        let handed = config.within.map_or(0, |_| HANDED);
        Ok(Self {
            rx: rx.into(),
            ways: tx.into_iter().map(Way::new).collect(),
            room: cache.pool().data_room(),
            buffers: Free::new(cache),
            near: None,
            named: vec![false; members].into(),
            config,
            from: Address::Scheduler,
            gathered: (0..members).map(|_| None).collect(),
            open: Vec::with_capacity(members),
            taken: Vec::with_capacity(BURST),
            turn: 0,
            source: 0,
            reading: None,
            read: Series::default(),
            written: Series::default(),
            handover: Handover::new(handed),
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

    /// Messages that members of the loop handed over without a frame.
    #[must_use]
    pub fn handed_over(&self) -> u64 {
        self.handover.count()
    }

    /// Whether no message waits to be read or sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let sent = self.ways.iter().all(|way| way.waiting() == 0);
        sent && self.open.is_empty()
            && self.taken.is_empty()
            && self.reading.is_none()
            && self.handover.is_empty()
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

    /// Whether a message to the member at a place is handed over without a frame.
    #[inline]
    fn is_within(&self, place: usize) -> bool {
        let within = self.config.within;
        within == Some(self.config.routes.ways[place]) && self.handover.has_room()
    }

    /// Sends a message in a frame.
    fn send_frame(&mut self, place: usize, to: Address, message: &Message) {
        if matches!(message, Message::Alive(_)) {
            self.named.fill(false);
        }
        let mut bytes = wire::encode(message);
        if let Some(damage) = &mut self.config.damage {
            damage.apply(&mut bytes);
        }
        let room = self.gather(place, to, HEADER);
        if let Some(room) = room.and_then(|room| room.first_chunk_mut()) {
            *room = bytes;
        }
    }

    /// The next message of the frames that were taken.
    #[inline]
    fn next_read(&mut self) -> Option<Arrival<Payload>> {
        loop {
            let reading = self.reading.take().or_else(|| self.next_frame())?;
            let arrival = self.read(reading);
            if arrival.is_some() {
                return arrival;
            }
        }
    }

    /// The next frame that is for members of the loop.
    fn next_frame(&mut self) -> Option<Reading> {
        while let Some(frame) = self.taken.pop() {
            // The lines of the next frames come while this one is built.
            if let Some(next) = self.taken.iter().nth_back(AHEAD - 1) {
                lines::to_read(next.data());
            }
            let owner = self.config.owners.get(self.source);
            let routes = &self.config.routes;
            let is_ours =
                |to: &Address| owner.is_none_or(|owner| owner == to) && routes.is_here(*to);
            match read_header(frame.data()).filter(is_ours) {
                Some(to) if frame.segment_count() == 1 => {
                    let (frame, at) = (Owner::new(frame, &self.buffers), ETHERNET);
                    return Some(Reading { frame, to, at });
                }
                Some(_) => self.drop_frame(frame, Cause::Oversize),
                None if is_announcement(frame.data()) => {
                    self.config.tally.count_delivered(1);
                    self.buffers.borrow_mut().cache.free(frame);
                }
                None => self.drop_frame(frame, Cause::NotForUs),
            }
        }
        None
    }

    /// Takes frames of the next queue that has some; false where none has.
    fn refill(&mut self) -> bool {
        let mut burst = Burst::<BURST>::new();
        let cache = &mut self.buffers.borrow_mut().cache;
        for _ in 0..self.rx.len() {
            let queue = self.turn;
            self.turn = if queue + 1 == self.rx.len() {
                0
            } else {
                queue + 1
            };
            if self.rx[queue].rx(cache, &mut burst) > 0 {
                self.source = queue;
                while let Some(frame) = burst.pop() {
                    self.taken.push(frame);
                }
                for first in self.taken.iter().rev().take(AHEAD) {
                    lines::to_read(first.data());
                }
                return true;
            }
        }
        false
    }

    /// Reads the next message of a frame.
    #[inline(always)]
    fn read(&mut self, reading: Reading) -> Option<Arrival<Payload>> {
        let Reading { frame, to, at } = reading;
        let (message, bytes) = match self.read.read(frame.data().get(at..).unwrap_or_default()) {
            Ok(read) => read,
            Err(error) => {
                self.refuse(frame, error);
                return None;
            }
        };
        let end = at + HEADER + bytes;
        let is_fragment = matches!(message, Message::Fragment(_));
        let payload = if end < frame.data().len() {
            let payload = is_fragment.then(|| Payload::new(frame.clone(), at + HEADER, bytes));
            self.reading = Some(Reading { frame, to, at: end });
            payload
        } else {
            self.config.tally.count_delivered(1);
            is_fragment.then(|| Payload::new(frame, at + HEADER, bytes))
        };
        Some(Arrival {
            to,
            message,
            payload,
        })
    }

    /// Drops what is left of a frame.
    fn refuse(&mut self, frame: Owner, error: WireError) {
        let cause = match error {
            WireError::Crc { .. } | WireError::PayloadCrc => self.damaged,
            WireError::Version(_) => Cause::BadVersion,
            _ => Cause::Malformed,
        };
        self.config.tally.count_dropped(cause, 1);
        drop(frame);
    }

    fn drop_frame(&mut self, frame: Mbuf, cause: Cause) {
        self.config.tally.count_dropped(cause, 1);
        self.buffers.borrow_mut().cache.free(frame);
    }
}

impl Outbox for Ethernet {
    #[inline]
    fn send(&mut self, to: Address, message: &Message) {
        let Some(place) = self.config.routes.place(to) else {
            self.unsent.no_member += 1;
            return;
        };
        if self.is_within(place) {
            return self.handover.push(to, message);
        }
        self.send_frame(place, to, message);
    }

    fn transfer(&mut self, node: u16, outgoing: &Outgoing<'_, impl Fragments>) -> Transfer {
        let to = Address::Node(node);
        let Some(place) = self.config.routes.place(to) else {
            self.unsent.no_member += 1;
            return Transfer::Done;
        };
        let (bytes, crc) = (outgoing.frame_len(), self.config.crc);
        if self.gather(place, to, bytes).is_none() {
            return Transfer::Done;
        }
        let frame = self.gathered[place].as_mut().map(Mbuf::data_mut);
        let message = frame.and_then(|data| {
            let start = data.len().checked_sub(bytes)?;
            data.get_mut(start..)
        });
        let message = message.unwrap_or_default();
        if outgoing.write_in(&mut self.written, crc, message).is_err() {
            self.unsent.oversize += 1;
            self.take_back(place, bytes);
        } else if let Some(damage) = &mut self.config.damage {
            damage.apply(message);
        }
        Transfer::Done
    }
}

impl Carrier for Ethernet {
    type Payload = Payload;
    type Payloads = Payloads;

    #[inline]
    fn set_sender(&mut self, from: Address) {
        if self.config.routes.by_sender && from != self.from {
            self.close();
        }
        self.from = from;
    }

    #[inline]
    fn next(&mut self) -> Option<Arrival<Payload>> {
        // What ends an event comes before what begins one. Each is returned from where it is made.
        if self.handover.has_next() {
            return self.handover.next();
        }
        while self.reading.is_some()
            || !self.taken.is_empty()
            || (!self.handover.has_begin() && self.refill())
        {
            let arrival = self.next_read();
            if arrival.is_some() {
                return arrival;
            }
        }
        self.handover.next_begin()
    }

    #[inline]
    fn following(&mut self, fragment: &Fragment) -> Option<(Feeders, Payloads)> {
        let reading = self.reading.as_mut()?;
        if !self.read.is_last(fragment) {
            return None;
        }
        let rest = reading.frame.data().get(reading.at..).unwrap_or_default();
        let (feeders, length) = self.read.following(rest);
        if feeders.is_empty() {
            return None;
        }
        let (at, bytes, is_end) = (reading.at, fragment.bytes as usize, length == rest.len());
        let frame = if is_end {
            self.config.tally.count_delivered(1);
            self.reading.take().map(|reading| reading.frame)
        } else {
            reading.at += length;
            Some(reading.frame.clone())
        };
        let layout = (bytes, HEADER + bytes);
        let payloads = Payloads::new(frame, at + HEADER, layout, feeders.len());
        Some((feeders, payloads))
    }

    #[inline]
    fn hands_over(&self) -> bool {
        self.config.within.is_some()
    }

    #[inline]
    fn count_handed_over(&mut self) {
        self.handover.pass();
    }

    #[inline]
    fn has_room(&self, bytes: usize) -> bool {
        self.near.as_ref().map_or(self.room, Mbuf::tailroom) >= bytes
    }

    #[inline]
    fn write(&mut self, outgoing: &Outgoing<'_, impl Fragments>) -> bool {
        if self.near.is_none() {
            self.near = self.buffers.borrow_mut().cache.alloc();
        }
        let Some(frame) = &mut self.near else {
            self.unsent.no_buffer += 1;
            return false;
        };
        let bytes = outgoing.payload_len();
        let before = frame.len();
        let data = frame.append(bytes);
        lines::to_write(data.as_deref().unwrap_or_default());
        let is_written = data.is_some_and(|data| outgoing.write_payload(data).is_ok());
        if !is_written {
            frame.truncate(before);
            self.unsent.oversize += 1;
        }
        is_written
    }

    #[inline]
    fn written(&mut self, bytes: usize) -> Payloads {
        let frame = self.near.take();
        let count = frame.as_ref().map_or(0, |frame| frame.len() / bytes.max(1));
        let frame = frame.map(|frame| Owner::new(frame, &self.buffers));
        Payloads::new(frame, 0, (bytes, bytes), count)
    }

    fn announce(&mut self) {
        self.announce_all();
    }

    fn flush(&mut self) {
        self.close();
        let cache = &mut self.buffers.borrow_mut().cache;
        for way in &mut self.ways {
            way.flush(cache);
        }
    }
}
