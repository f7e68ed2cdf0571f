//! Frames are assembled as a model says that keeps them in maps.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod losses;
mod numbers;
mod threads;

use std::collections::{BTreeMap, BTreeSet};

use pollux_mempool::region::PageSize;
use pollux_mempool::time::Ns;
use pollux_pipelines::assemble::{
    Assemble, AssembleConfig, Frame, FrameReader, Part, PartFormat, Placer, assembler,
};
use pollux_pipelines::{Batch, Chain, Moment, StageEnv};
use pollux_pmd::event::RegionOptions;
use pollux_pmd::{Cause, Tally};
use pollux_pmd_testkit::guard::listen;
use proptest::prelude::*;

const SENDERS: usize = 2;
const PACKETS: usize = 3;
const BYTES: usize = 5;
const HEADER: usize = 2;
const BUFFERS: u64 = 4;
/// A frame is closed so many frames before its buffer is needed.
const MARGIN: u64 = 1;
const TIMEOUT: u64 = 100;
const HORIZON: u64 = 20;

fn config() -> AssembleConfig {
    AssembleConfig {
        buffers: BUFFERS as usize,
        spares: 0,
        senders: SENDERS,
        packets: PACKETS,
        packet_bytes: BYTES,
        header_bytes: HEADER,
        note_bytes: [0; 2],
        fill: [0; 4],
        timeout: Ns(TIMEOUT),
        jump: HORIZON,
        horizon: HORIZON,
        memory: RegionOptions {
            pages: PageSize::Kib4,
            ..RegionOptions::default()
        },
    }
}

/// The bytes of a packet, which differ from those of any other.
fn bytes(key: u64, sender: usize, packet: usize, try_: u8) -> [u8; BYTES] {
    [key as u8, sender as u8, packet as u8, try_, 0xEE]
}

/// What a frame has: by sender and packet the header and the data.
type Content = BTreeMap<(usize, usize), (Vec<u8>, Vec<u8>)>;

fn content(frame: &Frame) -> Content {
    let missing: BTreeSet<_> = frame.missing().collect();
    assert_eq!(missing.is_empty(), frame.is_complete());
    let all = (0..SENDERS).flat_map(|s| (0..PACKETS).map(move |p| (s, p)));
    let mut content = Content::new();
    for (place, data) in all.zip(frame.data().chunks(BYTES)) {
        if missing.contains(&place) {
            assert_eq!(
                (data, frame.header(place.0, place.1)),
                (&[0; BYTES][..], None)
            );
        } else {
            let header = frame.header(place.0, place.1).unwrap();
            content.insert(place, (header.to_vec(), data.to_vec()));
        }
    }
    content
}

struct Open {
    at: u64,
    closed: bool,
    content: Content,
}

/// An assembler that keeps frames by their numbers.
struct Model {
    frames: BTreeMap<u64, Open>,
    /// Pieces of memory that are no buffer's, and frames whose buffers have none.
    spares: usize,
    waiting: BTreeSet<u64>,
    floor: Option<u64>,
    newest: u64,
    /// Frames that were closed before their time was over.
    early: u64,
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Placed,
    Dropped(Cause),
    NoBuffer,
}

impl Model {
    fn place(&mut self, part: &Part<'_>) -> Outcome {
        if part.sender >= SENDERS || part.packet >= PACKETS || part.data.len() > BYTES {
            return Outcome::Dropped(Cause::Malformed);
        }
        let key = part.key;
        let floor = *self.floor.get_or_insert_with(|| {
            self.newest = key;
            key.saturating_sub(HORIZON)
        });
        if key > self.newest + HORIZON {
            return Outcome::Dropped(Cause::OutOfWindow);
        }
        if key < floor {
            return Outcome::Dropped(Cause::Late);
        }
        self.make_room(key);
        let mut data = part.data.to_vec();
        data.resize(BYTES, 0);
        let packet = (part.header[..HEADER].to_vec(), data);
        if let Some(frame) = self.frames.get_mut(&key) {
            let known = frame.content.contains_key(&(part.sender, part.packet));
            if known {
                return Outcome::Dropped(Cause::Duplicate);
            }
            if frame.closed {
                return Outcome::Dropped(Cause::Late);
            }
            frame.content.insert((part.sender, part.packet), packet);
            frame.closed = frame.content.len() == SENDERS * PACKETS;
            return Outcome::Placed;
        }
        let shares = |other: &u64| other % BUFFERS == key % BUFFERS;
        if let Some((&other, frame)) = self.frames.iter_mut().find(|(other, _)| shares(other)) {
            if other > key {
                return Outcome::Dropped(Cause::Late);
            }
            self.early += u64::from(!frame.closed);
            frame.closed = true;
            return Outcome::NoBuffer;
        }
        if let Some(&other) = self.waiting.iter().find(|other| shares(other)) {
            let late = other > key;
            return if late {
                Outcome::Dropped(Cause::Late)
            } else {
                Outcome::NoBuffer
            };
        }
        let content = [((part.sender, part.packet), packet)].into();
        let at = part.at.0;
        self.frames.insert(
            key,
            Open {
                at,
                closed: false,
                content,
            },
        );
        Outcome::Placed
    }

    /// A newer frame has the frames closed whose buffers come soon.
    fn make_room(&mut self, key: u64) {
        let due = |newest: u64| newest + MARGIN - BUFFERS;
        for due in due(self.newest) + 1..=due(key.max(self.newest)) {
            let shares = |other: u64| other % BUFFERS == due % BUFFERS && other <= due;
            let open = self.frames.iter_mut().filter(|(_, frame)| !frame.closed);
            for (_, frame) in open.filter(|(other, _)| shares(**other)) {
                frame.closed = true;
                self.early += 1;
            }
        }
        self.newest = self.newest.max(key);
    }

    fn poll(&mut self, now: u64) -> Option<(u64, Content)> {
        for frame in self.frames.values_mut() {
            frame.closed |= frame.at + TIMEOUT <= now;
        }
        let oldest = self.frames.first_entry()?;
        if !oldest.get().closed {
            return None;
        }
        let (key, frame) = oldest.remove_entry();
        self.floor = Some(key + 1);
        if self.spares > 0 {
            self.spares -= 1;
        } else {
            self.waiting.insert(key);
        }
        Some((key, frame.content))
    }

    /// The reader drops a frame. Its own buffer comes before the others.
    fn release(&mut self, key: u64) {
        let buffer = |key: u64| key % BUFFERS;
        let own = self
            .waiting
            .iter()
            .find(|&&other| buffer(other) == buffer(key));
        let first = || self.waiting.iter().min_by_key(|&&other| buffer(other));
        match own.or_else(first).copied() {
            Some(other) => {
                self.waiting.remove(&other);
            }
            None => self.spares += 1,
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// A packet of a frame so far from the one that is sent now.
    Packet {
        off: i64,
        sender: usize,
        packet: usize,
        len: usize,
    },
    /// All packets of the frame that is sent now, in any order, but some.
    Frame {
        first: usize,
        step: bool,
        without: usize,
    },
    /// The next frame is sent.
    Next(u64),
    /// Time passes.
    Wait(u64),
    /// The reader looks, and keeps what it gets.
    Poll,
    /// The reader drops the frame that it has had so long.
    Release(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (-6..8_i64, 0..=SENDERS, 0..=PACKETS, 0..=BYTES + 1)
            .prop_map(|(off, sender, packet, len)| Op::Packet { off, sender, packet, len }),
        4 => (0..6_usize, any::<bool>(), 0..9_usize)
            .prop_map(|(first, step, without)| Op::Frame { first, step, without }),
        4 => (1..3_u64).prop_map(Op::Next),
        2 => (1..80_u64).prop_map(Op::Wait),
        4 => Just(Op::Poll),
        4 => (0..4_usize).prop_map(Op::Release),
    ]
}

struct Rig {
    placer: Placer,
    reader: FrameReader,
    model: Model,
    held: Vec<Frame>,
    now: u64,
    tries: u8,
}

impl Rig {
    fn packet(&mut self, key: u64, sender: usize, packet: usize, len: usize) {
        self.tries = self.tries.wrapping_add(1);
        let data = bytes(key, sender, packet, self.tries);
        let data = [&data[..], &[7; 3]].concat();
        let header = [self.tries, key as u8, 9];
        let part = Part {
            key,
            sender,
            packet,
            at: Moment(self.now),
            header: &header,
            data: &data[..len],
        };
        let no_buffer = self.placer.no_buffer();
        let outcome = match self.placer.place(&part) {
            Ok(()) => Outcome::Placed,
            Err(cause) if cause == no_buffer => Outcome::NoBuffer,
            Err(cause) => Outcome::Dropped(cause),
        };
        assert_eq!(outcome, self.model.place(&part), "{part:?}");
    }

    fn poll(&mut self) {
        loop {
            let frame = self.reader.poll(Moment(self.now));
            let got = frame.as_ref().map(|frame| (frame.key(), content(frame)));
            assert_eq!(got, self.model.poll(self.now));
            let Some(frame) = frame else { break };
            self.held.push(frame);
        }
        // What the reader has stays as it is while others are written.
        for frame in &self.held {
            for ((sender, packet), (_, data)) in content(frame) {
                let expected = bytes(frame.key(), sender, packet, data[3]);
                assert!(expected.starts_with(&data[..3]), "{data:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn frames_are_those_of_the_model(ops in prop::collection::vec(op(), 1..120), spares in 0..4_usize) {
        let (placer, reader) = assembler(AssembleConfig { spares, ..config() }).unwrap();
        let model = Model {
            frames: BTreeMap::new(),
            spares,
            waiting: BTreeSet::new(),
            floor: None,
            newest: 0,
            early: 0,
        };
        let (held, now, tries) = (Vec::new(), 1000, 0);
        let mut rig = Rig { placer, reader, model, held, now, tries };
        let mut current = 1000_u64;
        for op in ops {
            match op {
                // Shorter than three bytes a packet says too little of itself.
                Op::Packet { off, sender, packet, len } => {
                    rig.packet(current.wrapping_add_signed(off), sender, packet, len.max(3));
                }
                Op::Frame { first, step, without } => {
                    for n in 0..6 {
                        let n = (first + n * if step { 5 } else { 1 }) % 6;
                        if n != without {
                            rig.packet(current, n / PACKETS, n % PACKETS, BYTES);
                        }
                    }
                }
                Op::Next(frames) => current += frames,
                Op::Wait(ns) => rig.now += ns,
                Op::Poll => rig.poll(),
                Op::Release(n) if n < rig.held.len() => {
                    let frame = rig.held.remove(n);
                    rig.model.release(frame.key());
                }
                Op::Release(_) => {}
            }
        }
        // At the end of the input all frames come, and none is left.
        for frame in rig.held.drain(..) {
            rig.model.release(frame.key());
        }
        rig.reader.close_all();
        rig.model.frames.values_mut().for_each(|frame| frame.closed = true);
        rig.poll();
        prop_assert!(rig.model.frames.is_empty());
        prop_assert_eq!(rig.reader.counts().early.get(), rig.model.early);
    }
}

fn part(key: u64, packet: usize, data: &[u8]) -> Part<'_> {
    Part {
        key,
        sender: packet / PACKETS,
        packet: packet % PACKETS,
        at: Moment(0),
        header: &[1, 2],
        data,
    }
}

#[test]
fn wrong_numbers_are_refused_by_name() {
    let refusal = |config: AssembleConfig| assembler(config).err().unwrap().to_string();
    for buffers in [0, 1, 3, 1 << 13] {
        assert!(
            refusal(AssembleConfig {
                buffers,
                ..config()
            })
            .contains("power of two")
        );
    }
    for (senders, packets) in [(0, 1), (1, 0), (2, 1 << 13), (usize::MAX, 2)] {
        let text = refusal(AssembleConfig {
            senders,
            packets,
            ..config()
        });
        assert!(text.contains("together 1 to 16383"), "{text}");
    }
    for packet_bytes in [0, 1 << 29] {
        let text = refusal(AssembleConfig {
            packet_bytes,
            ..config()
        });
        assert!(text.contains("at most 1073741824 B"), "{text}");
    }
    for (jump, horizon) in [(0, 20), (21, 20), (1, (1 << 30) + 1)] {
        let text = refusal(AssembleConfig {
            jump,
            horizon,
            ..config()
        });
        assert!(text.contains("1 to 2^30 each"), "{text}");
    }
}

/// Packets as the stage gets them: frame, number and byte, and when they came.
struct Numbered;

impl PartFormat for Numbered {
    type Packet = (u64, usize, [u8; BYTES], u64);

    fn part<'a>(&mut self, packet: &'a Self::Packet) -> Result<Part<'a>, Cause> {
        let (key, number, data, at) = packet;
        if data[0] == 0xFF {
            return Err(Cause::BadVersion);
        }
        let at = Moment(*at);
        Ok(Part {
            at,
            ..part(*key, *number, data)
        })
    }
}

#[test]
fn the_stage_balances_its_ledger() {
    let mut env = StageEnv::new();
    let mut wire = Tally::new();
    env.ledger.add("port", wire.view());
    let stage = Assemble::new("assemble", Numbered, config(), &mut env).unwrap();
    let counts = stage.counts();
    let mut chain = Chain::new(stage, 4);
    let (mut batch, mut out) = (Batch::with_capacity(64), Vec::new());
    let mut send = |key, number, data, at| batch.push((key, number, data, at)).unwrap();
    (0..6).for_each(|n| send(0, n, [n as u8; BYTES], 10));
    // One is missing, one comes twice, one is no packet.
    (0..5).for_each(|n| send(1, n, [n as u8; BYTES], 20));
    send(1, 4, [4; BYTES], 20);
    send(2, 0, [0xFF; BYTES], 20);
    (0..6).for_each(|n| send(2, n, [n as u8; BYTES], 30));
    // The timeout of the second frame is over: a packet for it is late.
    send(1, 5, [5; BYTES], 20 + TIMEOUT);
    wire.count_from_wire(batch.as_slice().len() as u64, 0);
    chain.process(&mut batch, &mut out);
    batch.clear();
    let keys: Vec<_> = out
        .iter()
        .map(|frame| (frame.key(), frame.is_complete()))
        .collect();
    assert_eq!(keys, [(0, true), (1, false), (2, true)]);
    assert_eq!(out[1].missing().collect::<Vec<_>>(), [(1, 2)]);
    let sum = env.ledger.check().unwrap();
    let dropped = [
        (Cause::BadVersion, 1),
        (Cause::Late, 1),
        (Cause::Duplicate, 1),
    ];
    assert_eq!(sum.drops().collect::<Vec<_>>(), dropped);
    let counts = [&counts.complete, &counts.partial, &counts.missing];
    assert_eq!(counts.map(pollux_pmd::Count::get), [2, 1, 1]);
}

#[test]
fn frames_are_assembled_without_allocation() {
    let (mut placer, mut reader) = assembler(config()).unwrap();
    let data = [3; BYTES];
    let (complete, noise) = listen(|ear| {
        ear.during(|| {
            let mut complete = 0;
            for key in 0..100 {
                for n in 0..6 - usize::from(key % 10 == 0) {
                    assert_eq!(placer.place(&part(key, n, &data)), Ok(()));
                }
                let now = Moment(if key % 10 == 0 { TIMEOUT } else { 0 });
                complete += reader
                    .poll(now)
                    .map_or(0, |frame| u32::from(frame.is_complete()));
            }
            complete
        })
    });
    noise.assert_none();
    assert_eq!(complete, 90);
}
