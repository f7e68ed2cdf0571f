//! Messages between the roles. docs/formats/farm.md has their layout in frames.
//!
//! The unit that is scheduled is a multi-event packet (MEP): `count` events from number `event` on
//! that go to the same receive buffer. MEPs are numbered from 0; with one event in each, the two
//! numbers are equal.

use crate::topology::{Descriptor, Feeders};

/// Most events of a MEP: a decision has a bit for each.
pub const MAX_PACK: usize = 64;

/// No MEP: their numbers begin with 0.
pub const NO_MEP: u64 = u64::MAX;

/// The message of the flow control ring (thesis, III.D and III.F).
///
/// It goes to the feeders of `pending` in the order of their numbers and then returns to the
/// scheduler. A feeder that has transferred its fragment clears its bit; a busy one passes the
/// message on as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Number of the run.
    pub run: u32,
    /// The MEP.
    pub mep: u64,
    /// Its first event.
    pub event: u64,
    /// Its events; 0: nothing is transferred, and only `decided` counts.
    pub count: u16,
    /// The receive buffer.
    pub descriptor: Descriptor,
    /// How often the receive buffer has been assigned: tells the MEP from those before it.
    pub generation: u32,
    /// How often the MEP has been sent: a feeder transfers once for each.
    pub attempt: u16,
    /// Part of the event data: 0 in the first transfer, 1 in the second one.
    pub part: u8,
    /// Rounds that this attempt has made in the ring.
    pub loops: u8,
    /// Busy feeders keep the message until they have transferred.
    pub hold: bool,
    /// The feeders whose fragments make up this part.
    pub members: Feeders,
    /// Those of them that have not transferred yet.
    pub pending: Feeders,
    /// All events before this one are decided.
    pub decided: u64,
}

/// Header of a fragment: what one feeder has of a MEP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Number of the run.
    pub run: u32,
    /// The feeder.
    pub feeder: u8,
    /// As of the flow control message.
    pub mep: u64,
    /// As of the flow control message.
    pub event: u64,
    /// As of the flow control message.
    pub count: u16,
    /// As of the flow control message.
    pub descriptor: Descriptor,
    /// As of the flow control message.
    pub generation: u32,
    /// As of the flow control message.
    pub attempt: u16,
    /// As of the flow control message.
    pub part: u8,
    /// As of the flow control message.
    pub members: Feeders,
    /// Events of which the feeder has no data, or more than fit: they are empty.
    pub absent: u16,
    /// Bytes of the payload.
    pub bytes: u32,
    /// CRC-32 of the payload, where it has one.
    pub payload_crc: Option<u32>,
}

/// A node has a free receive buffer (thesis, figure III-37).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// Number of the run.
    pub run: u32,
    /// The column of the node.
    pub column: u8,
    /// The receive buffer.
    pub descriptor: Descriptor,
    /// The last assignment of the buffer that the node knows of; 0: none.
    pub generation: u32,
    /// The MEP of that assignment; [`NO_MEP`]: the node does not know it.
    pub mep: u64,
}

/// A member that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alive {
    /// Number of the run.
    pub run: u32,
    /// The sender.
    pub from: Member,
}

/// A member of the farm that the scheduler watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// A feeder.
    Feeder(u8),
    /// A computing node.
    Node(u16),
    /// The result node.
    Results,
}

/// A node asks for the second part of a MEP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct More {
    /// Number of the run.
    pub run: u32,
    /// The receive buffer of the MEP.
    pub descriptor: Descriptor,
    /// As of the flow control message.
    pub generation: u32,
    /// The MEP.
    pub mep: u64,
}

/// The scheduler has given the MEPs of a receive buffer to others, up to this assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Withdraw {
    /// Number of the run.
    pub run: u32,
    /// The receive buffer.
    pub descriptor: Descriptor,
    /// As of the flow control message.
    pub generation: u32,
}

/// A node is given a MEP, and asks the feeders for its fragments (policy `credits`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assign {
    /// Number of the run.
    pub run: u32,
    /// The MEP.
    pub mep: u64,
    /// Its first event.
    pub event: u64,
    /// Its events.
    pub count: u16,
    /// The receive buffer.
    pub descriptor: Descriptor,
    /// How often the receive buffer has been assigned.
    pub generation: u32,
    /// How often the MEP has been sent.
    pub attempt: u16,
    /// Part of the event data: 0 in the first transfer, 1 in the second one.
    pub part: u8,
    /// Requests to a feeder that it may leave unanswered while it does not have the data.
    pub loops: u8,
    /// The feeders whose fragments make up this part.
    pub members: Feeders,
}

/// A node asks a feeder for its fragment (policy `credits`).
///
/// The fragment is the answer. A request without an answer is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number of the run.
    pub run: u32,
    /// The feeder.
    pub feeder: u8,
    /// As of the assignment.
    pub mep: u64,
    /// As of the assignment.
    pub event: u64,
    /// As of the assignment.
    pub count: u16,
    /// As of the assignment.
    pub descriptor: Descriptor,
    /// As of the assignment.
    pub generation: u32,
    /// As of the assignment.
    pub attempt: u16,
    /// As of the assignment.
    pub part: u8,
    /// The feeder answers though it does not have the data.
    pub hold: bool,
    /// As of the assignment.
    pub members: Feeders,
}

/// What a node decided on the events of a MEP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Number of the run.
    pub run: u32,
    /// The MEP.
    pub mep: u64,
    /// Its first event.
    pub event: u64,
    /// Its events.
    pub count: u16,
    /// The receive buffer that it was built in.
    pub descriptor: Descriptor,
    /// As of the flow control message.
    pub generation: u32,
    /// Fragments of single events of which a feeder had no data, or more than fit.
    pub absent: u16,
    /// Feeders of the farm whose fragments the MEP lacks.
    pub missing: Feeders,
    /// Bit n is set: event n of the MEP is accepted.
    pub accepted: u64,
}

/// The result node has the decision of a MEP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Number of the run.
    pub run: u32,
    /// The MEP.
    pub mep: u64,
}

/// The result node tells the scheduler what is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// Number of the run.
    pub run: u32,
    /// The first of 64 MEPs.
    pub mep: u64,
    /// Bit n is set: MEP `mep + n` is decided. At least one is.
    pub bits: u64,
    /// All MEPs before this one are decided.
    pub before: u64,
}

/// Triggers for the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Number of the run.
    pub run: u32,
    /// Number of the first trigger, counted by the source: a gap is a loss, a repetition is not
    /// taken twice.
    pub first: u64,
    /// How many.
    pub count: u16,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Scheduler to feeder, feeder to feeder, feeder to scheduler.
    Flow(Flow),
    /// Feeder to node.
    Fragment(Fragment),
    /// Node to scheduler.
    Feedback(Feedback),
    /// Feeder, node or result node to scheduler.
    Alive(Alive),
    /// Node to scheduler.
    More(More),
    /// Node to result node.
    Decision(Decision),
    /// Result node to node.
    Ack(Ack),
    /// Result node to scheduler.
    Decided(Decided),
    /// Trigger source to scheduler.
    Trigger(Trigger),
    /// Scheduler to node.
    Withdraw(Withdraw),
    /// Scheduler to node.
    Assign(Assign),
    /// Node to feeder.
    Request(Request),
}

impl Message {
    /// Number of the run.
    #[must_use]
    pub fn run(&self) -> u32 {
        match self {
            Self::Flow(message) => message.run,
            Self::Fragment(message) => message.run,
            Self::Feedback(message) => message.run,
            Self::Alive(message) => message.run,
            Self::More(message) => message.run,
            Self::Decision(message) => message.run,
            Self::Ack(message) => message.run,
            Self::Decided(message) => message.run,
            Self::Trigger(message) => message.run,
            Self::Withdraw(message) => message.run,
            Self::Assign(message) => message.run,
            Self::Request(message) => message.run,
        }
    }
}
