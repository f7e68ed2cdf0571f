//! From events to the payloads that the boards send.

use pollux_mempool::time::Ns;
use pollux_pipelines::formats::WriteError;
use pollux_pipelines::formats::hits::{HitsWriter, MAX_FRAME, MAX_HITS};
use pollux_pipelines::formats::mtp::SOURCE_RICH;
use pollux_pipelines::rich::Hit;
use pollux_pipelines::rich::geometry::PMS;

use crate::config::{ConfigError, EmulatorConfig};
use crate::physics::TruthEvent;
use crate::truth::{Timeline, Truth};

/// Rings that an event hardly ever exceeds, with a mean of 16 at most.
const MOST_RINGS: usize = 64;

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
    timeline: Timeline,
    events_per_frame: u64,
    boards: Vec<Board>,
    next: u64,
    event: TruthEvent,
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
        Ok(Self {
            truth: Truth::of(config)?,
            timeline: Timeline::of(config),
            events_per_frame: u64::from(config.events_per_frame),
            boards: (0..config.boards).map(board).collect(),
            next: 0,
            event: roomy_event(),
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
        (self.next < self.timeline.events()).then(|| self.timeline.time_of(self.next))
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
        let end = (first + self.events_per_frame).min(self.timeline.events());
        let boards = self.boards.len() as u8;
        for n in first..end {
            self.truth.event(n, &mut self.event);
            seen(n, &self.event);
            let timestamp = self.timeline.timestamp(n);
            for board in &mut self.boards {
                let hits = self.event.board_hits(board.number, boards);
                let (hits, cut) = hits.split_at(hits.len().min(MAX_HITS));
                self.hits_cut += cut.len() as u64;
                let mut result = board.push(timestamp, hits, spare);
                if result == Err(WriteError::Full) {
                    // The frame is out of bytes, or its last event too long ago.
                    let due = self.timeline.time_of(n.saturating_sub(1));
                    out.extend(board.finish(n, due));
                    result = board.push(timestamp, hits, spare);
                }
                // Hits are sorted, timestamps ascend, and an empty frame has room for any event.
                debug_assert_eq!(result, Ok(()));
            }
        }
        if first < end {
            let due = self.timeline.time_of(end - 1);
            out.extend(
                self.boards
                    .iter_mut()
                    .filter_map(|board| board.finish(end, due)),
            );
        }
        self.next = end;
        first < end
    }
}

/// An event whose memory any other one fits.
pub(crate) fn roomy_event() -> TruthEvent {
    TruthEvent {
        rings: Vec::with_capacity(MOST_RINGS),
        hits: Vec::with_capacity(PMS),
        noise: 0,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use pollux_pipelines::formats::hits::HitsFrame;

    use super::*;
    use crate::physics::{ModelConfig, Rings};

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
}
