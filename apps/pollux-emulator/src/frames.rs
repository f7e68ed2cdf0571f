//! From events to the payloads that the boards send.

use pollux_mempool::time::Ns;
use pollux_na62::formats::WriteError;
use pollux_na62::formats::hits::{HitsWriter, MAX_FRAME, MAX_HITS};
use pollux_na62::formats::mtp::SOURCE_RICH;
use pollux_na62::rich::Hit;

use crate::config::{ConfigError, EmulatorConfig, SLOT_NS};
use crate::slots::Slots;
use crate::truth::{Cursor, Moment, Timeline, Truth};
use pollux_na62::physics::model::{TruthEvent, board_hits};

/// One frame of a board, on its way to the trigger.
#[derive(Debug)]
pub struct Frame {
    /// The board that sends it.
    pub board: u8,
    /// Number behind that of its last event.
    pub events_end: u64,
    /// When it is to be sent, counted from event 0: when its last event has happened.
    pub due: Ns,
    /// Hits in it.
    pub hits: u32,
    /// A byte that goes wrong on the way: its place in the payload, and the bits that flip.
    pub corrupt: Option<(u16, u8)>,
    bytes: Box<[u8]>,
    len: usize,
}

impl Frame {
    /// The UDP payload, as the board made it.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Buffers for payloads, used again and again.
#[derive(Debug, Default)]
pub struct Spare(Vec<Box<[u8]>>);

impl Spare {
    fn take(&mut self) -> Box<[u8]> {
        self.0
            .pop()
            .unwrap_or_else(|| vec![0; MAX_FRAME].into_boxed_slice())
    }

    /// Takes the buffer of a frame that is done with.
    pub fn put(&mut self, frame: Frame) {
        self.0.push(frame.bytes);
    }

    /// A second frame equal to the first.
    pub fn copy(&mut self, frame: &Frame) -> Frame {
        let mut bytes = self.take();
        bytes[..frame.len].copy_from_slice(frame.payload());
        Frame { bytes, ..*frame }
    }
}

/// A board, and the frame that it is filling.
#[derive(Debug)]
struct Board {
    number: u8,
    /// Number of its next frame.
    sequence: u32,
    writer: Option<HitsWriter<Box<[u8]>>>,
    hits: u32,
}

impl Board {
    fn push(&mut self, timestamp: u64, hits: &[Hit], spare: &mut Spare) -> Result<(), WriteError> {
        if self.writer.is_none() {
            let writer = HitsWriter::new(spare.take(), SOURCE_RICH, self.number, self.sequence)?;
            self.writer = Some(writer);
            self.sequence = self.sequence.wrapping_add(1);
            self.hits = 0;
        }
        if let Some(writer) = &mut self.writer {
            writer.push(timestamp, hits)?;
            self.hits += hits.len() as u32;
        }
        Ok(())
    }

    fn finish(&mut self, events_end: u64, due: Ns) -> Option<Frame> {
        let (bytes, len) = self.writer.take()?.finish();
        Some(Frame {
            board: self.number,
            events_end,
            due,
            hits: self.hits,
            corrupt: None,
            bytes,
            len,
        })
    }
}

/// Makes the frames of all boards, group by group: each event of a group is in the frame of each
/// board, even where that board saw nothing, so that "nothing seen" and "frame lost" differ.
#[derive(Debug)]
pub struct FrameMaker {
    truth: Truth,
    times: Cursor,
    events_per_frame: u64,
    restarts: bool,
    boards: Vec<Board>,
    next: u64,
    /// When event `next` happens.
    next_at: Moment,
    event: TruthEvent,
    slots: Slots,
    /// The last slot that was given to the boards: its event, and when it has passed.
    passed: (u64, Ns),
    hits_cut: u64,
}

impl FrameMaker {
    /// Begins with event 0.
    ///
    /// # Errors
    /// A configuration that is not valid.
    pub fn new(config: &EmulatorConfig) -> Result<Self, ConfigError> {
        let board = |number| Board {
            number,
            sequence: 0,
            writer: None,
            hits: 0,
        };
        let mut times = Timeline::of(config).cursor();
        Ok(Self {
            truth: Truth::of(config)?,
            next_at: times.moment(0),
            times,
            events_per_frame: u64::from(config.events_per_frame),
            restarts: config.spill.restart_sequence,
            boards: (0..config.boards).map(board).collect(),
            next: 0,
            event: TruthEvent::roomy(),
            slots: Slots::new(config.physics.slot_edges),
            passed: (0, Ns(0)),
            hits_cut: 0,
        })
    }

    /// The truth that the frames are made from.
    #[must_use]
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    /// No frame that is still to be made is due before this; `None`: none is to be made.
    #[must_use]
    pub fn horizon(&self) -> Option<Ns> {
        (self.next < self.times.line().events()).then_some(self.next_at.time)
    }

    /// Hits beyond the 255 that a frame carries for one event: they were left out.
    #[must_use]
    pub fn hits_cut(&self) -> u64 {
        self.hits_cut
    }

    /// Makes the frames of the next events and appends them to `out`, board by board; false when
    /// there are no more. Shows each event with its number to `seen`.
    pub fn make(
        &mut self,
        spare: &mut Spare,
        mut seen: impl FnMut(u64, &TruthEvent),
        out: &mut Vec<Frame>,
    ) -> bool {
        let first = self.next;
        let end = (first + self.events_per_frame).min(self.times.line().events());
        while self.next < end {
            let (n, at) = (self.next, self.next_at);
            self.truth.event(n, &mut self.event);
            seen(n, &self.event);
            self.slots.add(at, &self.event);
            self.next += 1;
            self.next_at = self.times.moment(self.next);
            let next = (self.next < self.times.line().events()).then_some(self.next_at);
            while let Some(slot) = self.slots.pop(at.spill, next) {
                self.push(&slot.hits, slot.timestamp, spare, out);
                // Light behind the slot of an event is there one slot later.
                let late = slot.timestamp.saturating_sub(at.timestamp) * SLOT_NS;
                let end = n + u64::from(slot.timestamp >= at.timestamp);
                self.passed = (end, at.time + Ns(late));
                self.slots.put(slot);
            }
            // No frame is of two spills: time stamps ascend in it.
            if next.is_none_or(|next| next.spill != at.spill) {
                self.finish(out);
                if self.restarts {
                    self.boards.iter_mut().for_each(|board| board.sequence = 0);
                }
            }
        }
        self.finish(out);
        first < end
    }

    /// Gives a slot to the boards, each its hits.
    fn push(&mut self, slot: &[Hit], timestamp: u64, spare: &mut Spare, out: &mut Vec<Frame>) {
        let boards = self.boards.len() as u8;
        for board in &mut self.boards {
            let hits = board_hits(slot, board.number, boards);
            let (hits, cut) = hits.split_at(hits.len().min(MAX_HITS));
            self.hits_cut += cut.len() as u64;
            let mut result = board.push(timestamp, hits, spare);
            if result == Err(WriteError::Full) {
                // The frame is out of bytes, or its last event too long ago.
                let (events_end, due) = self.passed;
                out.extend(board.finish(events_end, due));
                result = board.push(timestamp, hits, spare);
            }
            // Hits are sorted, timestamps ascend, and an empty frame has room for any event.
            debug_assert_eq!(result, Ok(()));
        }
    }

    /// Finishes the frames of all boards.
    fn finish(&mut self, out: &mut Vec<Frame>) {
        let (events_end, due) = self.passed;
        let boards = self.boards.iter_mut();
        out.extend(boards.filter_map(|board| board.finish(events_end, due)));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use pollux_na62::formats::hits::HitsFrame;

    use super::*;
    use crate::config::{Arrival, Spill};
    use pollux_na62::physics::model::{Carried, ModelConfig, Rings, SlotEdges};

    /// Makes all frames of a run, and checks that they hold the truth.
    fn frames(config: &EmulatorConfig) -> Vec<Frame> {
        let mut maker = FrameMaker::new(config).unwrap();
        let (mut spare, mut frames, mut events) = (Spare::default(), Vec::new(), Vec::new());
        loop {
            let horizon = maker.horizon();
            let first = frames.len();
            let seen = |n, event: &TruthEvent| events.push((n, event.clone()));
            if !maker.make(&mut spare, seen, &mut frames) {
                break;
            }
            assert!(
                frames[first..]
                    .iter()
                    .all(|frame: &Frame| Some(frame.due) >= horizon)
            );
        }
        let mut next = [(0, 0); 16];
        let mut hits = [Hit::default(); MAX_HITS];
        for frame in &frames {
            let parsed = HitsFrame::parse(frame.payload()).unwrap();
            let (sequence, n) = &mut next[usize::from(frame.board)];
            assert_eq!(
                (parsed.source_id(), parsed.sub_id()),
                (SOURCE_RICH, frame.board)
            );
            assert_eq!(parsed.sequence(), *sequence);
            *sequence += 1;
            let (mut reader, mut sum) = (parsed.events(), 0);
            while let Some((timestamp, hits)) = reader.next_into(&mut hits) {
                assert_eq!(timestamp, maker.truth().timeline().timestamp(*n));
                let (number, event) = &events[*n as usize];
                assert_eq!(number, n);
                let expected = event.board_hits(frame.board, config.boards);
                assert_eq!(hits, &expected[..expected.len().min(MAX_HITS)]);
                sum += hits.len() as u32;
                *n += 1;
            }
            assert_eq!((frame.hits, frame.events_end), (sum, *n));
            assert_eq!(frame.due, maker.truth().timeline().time_of(*n - 1));
        }
        assert!(
            next[..usize::from(config.boards)]
                .iter()
                .all(|&(_, n)| n == config.events)
        );
        frames
    }

    #[test]
    fn every_board_sends_every_event_in_order() {
        for boards in [1, 4, 16] {
            let config = EmulatorConfig {
                boards,
                events: 1000,
                ..EmulatorConfig::default()
            };
            let frames = frames(&config);
            assert!(frames.len() >= 32 * usize::from(boards));
            assert!(frames.iter().any(|frame| frame.hits > 0));
        }
    }

    #[test]
    fn events_far_apart_have_a_frame_each() {
        let config = EmulatorConfig {
            events: 50,
            rate: 1000,
            arrival: Arrival::Regular,
            ..EmulatorConfig::default()
        };
        assert_eq!(frames(&config).len(), 50 * 4);
    }

    #[test]
    fn a_full_frame_is_followed_by_another() {
        let rings = Rings::Poisson(8.0);
        let config = EmulatorConfig {
            events: 200,
            boards: 2,
            events_per_frame: 100,
            physics: ModelConfig {
                rings,
                ..ModelConfig::default()
            },
            ..EmulatorConfig::default()
        };
        let frames = frames(&config);
        assert!(frames.len() > 8);
        assert!(
            frames
                .iter()
                .all(|frame| frame.payload().len() <= MAX_FRAME)
        );
    }

    #[test]
    fn more_hits_than_a_frame_carries_are_counted() {
        let physics = ModelConfig {
            rings: Rings::Fixed(16),
            photons: 300.0,
            noise: 1.0,
            ..ModelConfig::default()
        };
        let config = EmulatorConfig {
            events: 3,
            boards: 1,
            physics,
            ..EmulatorConfig::default()
        };
        let mut maker = FrameMaker::new(&config).unwrap();
        let (mut hits, mut frames) = (0, Vec::new());
        let seen = |_, event: &TruthEvent| hits += event.hits.len() as u64;
        maker.make(&mut Spare::default(), seen, &mut frames);
        let sent: u64 = frames.iter().map(|frame| u64::from(frame.hits)).sum();
        assert!(maker.hits_cut() > 0);
        assert_eq!(maker.hits_cut(), hits - sent);
    }

    #[test]
    fn buffers_are_used_again() {
        let mut maker = FrameMaker::new(&EmulatorConfig::default()).unwrap();
        let mut spare = Spare::default();
        for _ in 0..10 {
            let mut frames = Vec::new();
            maker.make(&mut spare, |_, _| (), &mut frames);
            for frame in frames {
                spare.put(frame);
            }
        }
        assert_eq!(spare.0.len(), 4);
    }

    #[test]
    fn numbers_and_time_stamps_begin_again_in_each_spill() {
        for restart_sequence in [false, true] {
            let config = EmulatorConfig {
                events: 3000,
                boards: 2,
                first_timestamp: 0,
                spill: Spill {
                    length_ms: 5,
                    gap_ms: 20,
                    restart_sequence,
                },
                ..EmulatorConfig::default()
            };
            let mut maker = FrameMaker::new(&config).unwrap();
            let line = maker.truth().timeline();
            let (mut spare, mut frames) = (Spare::default(), Vec::new());
            while maker.make(&mut spare, |_, _| (), &mut frames) {}
            let (mut n, mut spill, mut sequence) = (0, 0, 0);
            let mut hits = [Hit::default(); MAX_HITS];
            for frame in frames.iter().filter(|frame| frame.board == 1) {
                let parsed = HitsFrame::parse(frame.payload()).unwrap();
                let at = line.moment(n);
                if at.spill > spill && restart_sequence {
                    sequence = 0;
                }
                spill = at.spill;
                assert_eq!(parsed.sequence(), sequence);
                sequence += 1;
                let mut events = parsed.events();
                while let Some((timestamp, _)) = events.next_into(&mut hits) {
                    let at = line.moment(n);
                    assert_eq!((at.spill, at.timestamp), (spill, timestamp));
                    n += 1;
                }
                assert_eq!((frame.events_end, frame.due), (n, line.time_of(n - 1)));
            }
            assert_eq!(n, 3000);
            assert!((4..=7).contains(&spill), "{spill}");
        }
    }

    /// Each hit at its true time: what is read in all slots together is what was made.
    #[test]
    fn hits_over_an_edge_are_in_the_slot_beside() {
        // At 10 MHz the slots of neighbouring events touch each other and overlap.
        for rate in [100_000, 10_000_000] {
            let config = EmulatorConfig {
                events: 20_000,
                rate,
                physics: ModelConfig {
                    slot_edges: SlotEdges::Carry,
                    ..ModelConfig::default()
                },
                ..EmulatorConfig::default()
            };
            let mut maker = FrameMaker::new(&config).unwrap();
            let (line, mut expected) = (maker.truth().timeline(), BTreeMap::new());
            let mut add = |timestamp: u64, hit: Option<Hit>| {
                let slot: &mut BTreeMap<u16, u16> = expected.entry(timestamp).or_default();
                if let Some(Hit { pm, fine }) = hit {
                    slot.entry(pm)
                        .and_modify(|was| *was = fine.min(*was))
                        .or_insert(fine);
                }
            };
            let (mut spare, mut frames, mut carried) = (Spare::default(), Vec::new(), 0);
            let mut cursor = line.cursor();
            let mut seen = |n, event: &TruthEvent| {
                let at = cursor.moment(n).timestamp;
                add(at, None);
                event.hits.iter().for_each(|&hit| add(at, Some(hit)));
                for &Carried { is_later, hit } in &event.carried {
                    add(if is_later { at + 1 } else { at - 1 }, Some(hit));
                    // 0.3 ns: six of its standard deviations.
                    assert!(if is_later {
                        hit.fine < 20
                    } else {
                        hit.fine > 235
                    });
                    carried += 1;
                }
            };
            loop {
                let (horizon, first) = (maker.horizon(), frames.len());
                if !maker.make(&mut spare, &mut seen, &mut frames) {
                    break;
                }
                assert!(
                    frames[first..]
                        .iter()
                        .all(|frame| Some(frame.due) >= horizon)
                );
            }
            assert!(carried > 1000, "{carried}");
            let mut read = BTreeMap::new();
            let mut hits = [Hit::default(); MAX_HITS];
            for board in 0..4 {
                let mut last = None;
                for frame in frames.iter().filter(|frame| frame.board == board) {
                    let parsed = HitsFrame::parse(frame.payload()).unwrap();
                    let mut events = parsed.events();
                    while let Some((timestamp, hits)) = events.next_into(&mut hits) {
                        assert!(last < Some(timestamp));
                        last = Some(timestamp);
                        let slot: &mut BTreeMap<u16, u16> = read.entry(timestamp).or_default();
                        slot.extend(hits.iter().map(|hit| (hit.pm, hit.fine)));
                    }
                }
                // All boards have an event for each slot.
                assert_eq!(read.len(), expected.len());
            }
            assert!(read == expected);
        }
    }
}
