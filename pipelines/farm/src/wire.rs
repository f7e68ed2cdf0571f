//! Messages as bytes: docs/formats/farm.md.
//!
//! A message is a header of [`HEADER`] bytes; the payload of a fragment is behind it.

mod crc;
mod header;
pub mod payload;
pub(crate) mod series;

use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros};

use crate::message::{
    Ack, Alive, Assign, Decided, Decision, Feedback, Flow, Fragment, MAX_PACK, Member, Message,
    More, Request, Trigger, Withdraw,
};
use crate::topology::{Descriptor, Feeders, MAX_FEEDERS};
use header::{Fields, HOLD, Kind, PAYLOAD_CRC};

/// Bytes of a header.
pub const HEADER: usize = size_of::<Fields>();

/// Version of the format.
pub const VERSION: u8 = 1;

/// Bytes that are no message of the farm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Fewer bytes than a header has.
    #[error("{0} bytes are no message: a header has {HEADER}")]
    Short(usize),
    /// Another version.
    #[error(
        "version {0} of the farm's messages: this program reads {VERSION}; run the same version everywhere"
    )]
    Version(u8),
    /// Damaged on the way.
    #[error("the CRC of the header is {computed:08x}, not {stored:08x}: it was damaged")]
    Crc {
        /// As computed.
        computed: u32,
        /// As stored.
        stored: u32,
    },
    /// A kind that there is not.
    #[error("message kind {0}: there are kinds 1 to {last}", last = Kind::LAST)]
    Kind(u8),
    /// A value that the kind does not allow.
    #[error("field `{0}` has a value that the kind of message does not allow")]
    Field(&'static str),
    /// A payload of another length than the header says.
    #[error("the payload has {found} bytes, its header says {said}")]
    Payload {
        /// Bytes behind the header.
        found: usize,
        /// Bytes that the header says.
        said: u32,
    },
    /// A damaged payload.
    #[error("the CRC of the payload differs: it was damaged")]
    PayloadCrc,
}

/// A message as the header of a frame.
#[must_use]
pub fn encode(message: &Message) -> [u8; HEADER] {
    let mut fields = fields_of(message);
    fields.crc = U32::new(fields.computed_crc());
    zerocopy::transmute!(fields)
}

/// The fields of a message, without CRC.
fn fields_of(message: &Message) -> Fields {
    let mut fields = Fields::new_zeroed();
    fields.version = VERSION;
    fields.run = U32::new(message.run());
    match message {
        Message::Flow(flow) => write_flow(&mut fields, flow),
        Message::Fragment(fragment) => write_fragment(&mut fields, fragment),
        Message::Feedback(m) => {
            fields.kind = Kind::Feedback as u8;
            fields.member = m.column;
            fields.place(m.descriptor, m.generation, m.mep);
        }
        Message::Alive(m) => {
            fields.kind = Kind::Alive as u8;
            let (kind, number) = match m.from {
                Member::Feeder(feeder) => (1, feeder.into()),
                Member::Node(node) => (2, node),
                Member::Results => (3, 0),
            };
            fields.member = kind;
            fields.descriptor = U16::new(number);
        }
        Message::More(m) => {
            fields.kind = Kind::More as u8;
            fields.place(m.descriptor, m.generation, m.mep);
        }
        Message::Decision(m) => {
            fields.kind = Kind::Decision as u8;
            fields.place(m.descriptor, m.generation, m.mep);
            fields.event = U64::new(m.event);
            fields.count = U16::new(m.count);
            fields.attempt = U16::new(m.absent);
            fields.members = U64::new(m.missing.0);
            fields.words[0] = U64::new(m.accepted);
        }
        Message::Ack(m) => {
            fields.kind = Kind::Ack as u8;
            fields.mep = U64::new(m.mep);
        }
        Message::Decided(m) => {
            fields.kind = Kind::Decided as u8;
            fields.mep = U64::new(m.mep);
            fields.words = [U64::new(m.before), U64::new(m.bits)];
        }
        Message::Trigger(m) => {
            fields.kind = Kind::Trigger as u8;
            fields.event = U64::new(m.first);
            fields.count = U16::new(m.count);
        }
        Message::Withdraw(m) => {
            fields.kind = Kind::Withdraw as u8;
            fields.place(m.descriptor, m.generation, 0);
        }
        Message::Assign(assign) => write_assign(&mut fields, assign),
        Message::Request(request) => write_request(&mut fields, request),
    }
    fields
}

fn write_flow(fields: &mut Fields, flow: &Flow) {
    fields.kind = Kind::Flow as u8;
    fields.flags = if flow.hold { HOLD } else { 0 };
    fields.loops = flow.loops;
    fields.place(flow.descriptor, flow.generation, flow.mep);
    fields.count = U16::new(flow.count);
    fields.attempt = U16::new(flow.attempt);
    fields.part = flow.part;
    fields.event = U64::new(flow.event);
    fields.members = U64::new(flow.members.0);
    fields.words = [U64::new(flow.pending.0), U64::new(flow.decided)];
}

fn write_fragment(fields: &mut Fields, fragment: &Fragment) {
    fields.kind = Kind::Fragment as u8;
    fields.place(fragment.descriptor, fragment.generation, fragment.mep);
    fields.count = U16::new(fragment.count);
    fields.attempt = U16::new(fragment.attempt);
    fields.part = fragment.part;
    fields.member = fragment.feeder;
    fields.event = U64::new(fragment.event);
    fields.members = U64::new(fragment.members.0);
    let crc = fragment.payload_crc.unwrap_or(0);
    if fragment.payload_crc.is_some() {
        fields.flags = PAYLOAD_CRC;
    }
    let lengths = u64::from(fragment.bytes) | u64::from(crc) << 32;
    fields.words = [U64::new(lengths), U64::new(fragment.absent.into())];
}

fn write_assign(fields: &mut Fields, assign: &Assign) {
    fields.kind = Kind::Assign as u8;
    fields.loops = assign.loops;
    fields.place(assign.descriptor, assign.generation, assign.mep);
    fields.count = U16::new(assign.count);
    fields.attempt = U16::new(assign.attempt);
    fields.part = assign.part;
    fields.event = U64::new(assign.event);
    fields.members = U64::new(assign.members.0);
}

fn write_request(fields: &mut Fields, request: &Request) {
    fields.kind = Kind::Request as u8;
    fields.flags = if request.hold { HOLD } else { 0 };
    fields.place(request.descriptor, request.generation, request.mep);
    fields.count = U16::new(request.count);
    fields.attempt = U16::new(request.attempt);
    fields.part = request.part;
    fields.member = request.feeder;
    fields.event = U64::new(request.event);
    fields.members = U64::new(request.members.0);
}

/// Reads a message from the start of a frame, and checks the CRC of its header and each field
/// against the kind of message. Fields that a kind does not use are zero.
///
/// The payload of a fragment is behind the header; [`payload::check`] checks it.
///
/// # Errors
/// Bytes that are no message.
pub fn decode(frame: &[u8]) -> Result<Message, WireError> {
    let Ok((fields, _)) = Fields::ref_from_prefix(frame) else {
        return Err(WireError::Short(frame.len()));
    };
    if fields.version != VERSION {
        return Err(WireError::Version(fields.version));
    }
    let (computed, stored) = (fields.computed_crc(), fields.crc.get());
    if computed != stored {
        return Err(WireError::Crc { computed, stored });
    }
    let kind = Kind::try_from(fields.kind).map_err(WireError::Kind)?;
    let message = match kind {
        Kind::Flow => Message::Flow(read_flow(fields)?),
        Kind::Fragment => Message::Fragment(read_fragment(fields)?),
        Kind::Feedback => Message::Feedback(Feedback {
            run: fields.run.get(),
            column: fields.member,
            descriptor: Descriptor(fields.descriptor.get()),
            generation: fields.generation.get(),
            mep: fields.mep.get(),
        }),
        Kind::Alive => Message::Alive(Alive {
            run: fields.run.get(),
            from: match (fields.member, fields.descriptor.get()) {
                (1, feeder) if usize::from(feeder) < MAX_FEEDERS => Member::Feeder(feeder as u8),
                (2, node) => Member::Node(node),
                (3, 0) => Member::Results,
                _ => return Err(WireError::Field("member")),
            },
        }),
        Kind::More => Message::More(More {
            run: fields.run.get(),
            descriptor: Descriptor(fields.descriptor.get()),
            generation: fields.generation.get(),
            mep: fields.mep.get(),
        }),
        Kind::Decision => Message::Decision(read_decision(fields)?),
        Kind::Ack => Message::Ack(Ack {
            run: fields.run.get(),
            mep: fields.mep.get(),
        }),
        Kind::Decided => Message::Decided(Decided {
            run: fields.run.get(),
            mep: fields.mep.get(),
            before: fields.words[0].get(),
            bits: match fields.words[1].get() {
                0 => return Err(WireError::Field("bits")),
                bits => bits,
            },
        }),
        Kind::Trigger => Message::Trigger(Trigger {
            run: fields.run.get(),
            first: fields.event.get(),
            count: fields.count.get(),
        }),
        Kind::Withdraw => Message::Withdraw(Withdraw {
            run: fields.run.get(),
            descriptor: Descriptor(fields.descriptor.get()),
            generation: fields.generation.get(),
        }),
        Kind::Assign => Message::Assign(read_assign(fields)?),
        Kind::Request => Message::Request(read_request(fields)?),
    };
    // What was read is all that was there: each message has one form.
    if fields.has_others(kind) {
        return Err(WireError::Field("unused"));
    }
    Ok(message)
}

/// The events of a MEP, of which a decision has a bit each.
fn count(fields: &Fields, least: u16) -> Result<u16, WireError> {
    let count = fields.count.get();
    let fits = count >= least && usize::from(count) <= MAX_PACK;
    // Event numbers do not overflow either.
    let fits = fits && fields.event.get().checked_add(count.into()).is_some();
    fits.then_some(count).ok_or(WireError::Field("count"))
}

fn read_flow(fields: &Fields) -> Result<Flow, WireError> {
    let (members, pending) = (
        Feeders(fields.members.get()),
        Feeders(fields.words[0].get()),
    );
    if !pending.without(members).is_empty() {
        return Err(WireError::Field("pending"));
    }
    Ok(Flow {
        run: fields.run.get(),
        mep: fields.mep.get(),
        event: fields.event.get(),
        count: count(fields, 0)?,
        descriptor: Descriptor(fields.descriptor.get()),
        generation: fields.generation.get(),
        attempt: fields.attempt.get(),
        part: part(fields)?,
        loops: fields.loops,
        hold: fields.flags & HOLD != 0,
        members,
        pending,
        decided: fields.words[1].get(),
    })
}

fn part(fields: &Fields) -> Result<u8, WireError> {
    (fields.part <= 1)
        .then_some(fields.part)
        .ok_or(WireError::Field("part"))
}

fn read_fragment(fields: &Fields) -> Result<Fragment, WireError> {
    let members = Feeders(fields.members.get());
    if !members.has(fields.member) {
        return Err(WireError::Field("member"));
    }
    let count = count(fields, 1)?;
    let [lengths, absent] = fields.words.map(U64::get);
    if absent > count.into() {
        return Err(WireError::Field("absent"));
    }
    Ok(Fragment {
        run: fields.run.get(),
        feeder: fields.member,
        mep: fields.mep.get(),
        event: fields.event.get(),
        count,
        descriptor: Descriptor(fields.descriptor.get()),
        generation: fields.generation.get(),
        attempt: fields.attempt.get(),
        part: part(fields)?,
        members,
        absent: absent as u16,
        bytes: lengths as u32,
        payload_crc: (fields.flags & PAYLOAD_CRC != 0).then_some((lengths >> 32) as u32),
    })
}

fn read_assign(fields: &Fields) -> Result<Assign, WireError> {
    let members = Feeders(fields.members.get());
    if members.is_empty() {
        return Err(WireError::Field("feeders"));
    }
    Ok(Assign {
        run: fields.run.get(),
        mep: fields.mep.get(),
        event: fields.event.get(),
        count: count(fields, 1)?,
        descriptor: Descriptor(fields.descriptor.get()),
        generation: fields.generation.get(),
        attempt: fields.attempt.get(),
        part: part(fields)?,
        loops: fields.loops,
        members,
    })
}

fn read_request(fields: &Fields) -> Result<Request, WireError> {
    let members = Feeders(fields.members.get());
    if !members.has(fields.member) {
        return Err(WireError::Field("member"));
    }
    Ok(Request {
        run: fields.run.get(),
        feeder: fields.member,
        mep: fields.mep.get(),
        event: fields.event.get(),
        count: count(fields, 1)?,
        descriptor: Descriptor(fields.descriptor.get()),
        generation: fields.generation.get(),
        attempt: fields.attempt.get(),
        part: part(fields)?,
        hold: fields.flags & HOLD != 0,
        members,
    })
}

fn read_decision(fields: &Fields) -> Result<Decision, WireError> {
    let count = count(fields, 1)?;
    let accepted = fields.words[0].get();
    if accepted & !Feeders::first(count.into()).0 != 0 {
        return Err(WireError::Field("accepted"));
    }
    Ok(Decision {
        run: fields.run.get(),
        mep: fields.mep.get(),
        event: fields.event.get(),
        count,
        descriptor: Descriptor(fields.descriptor.get()),
        generation: fields.generation.get(),
        absent: fields.attempt.get(),
        missing: Feeders(fields.members.get()),
        accepted,
    })
}
