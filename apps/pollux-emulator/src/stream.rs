//! The frames of a run in the order of sending.

use pollux_faults::Injector;
use pollux_mempool::time::Ns;

use crate::config::{ConfigError, EmulatorConfig};
use crate::faults::{self, FaultCounts};
use crate::frames::{Frame, FrameMaker, Spare};
use crate::truth::Truth;
use pollux_na62::physics::model::TruthEvent;

/// All frames that the boards send in a run, faults included, in order. The sequence depends on
/// the configuration alone, not on when it is asked for what.
///
/// Its memory grows until it has as many buffers as wait at once; then it allocates no more.
#[derive(Debug)]
pub struct FrameStream {
    maker: FrameMaker,
    injector: Injector<Frame>,
    spare: Spare,
    /// Frames on their way from one to the other.
    made: Vec<Frame>,
}

impl FrameStream {
    /// The frames of a configuration, from event 0.
    ///
    /// # Errors
    /// A configuration that is not valid.
    pub fn new(config: &EmulatorConfig) -> Result<Self, ConfigError> {
        Ok(Self {
            maker: FrameMaker::new(config)?,
            injector: faults::injector(config),
            spare: Spare::default(),
            made: Vec::with_capacity(64),
        })
    }

    /// The truth that the frames are made from.
    #[must_use]
    pub fn truth(&self) -> &Truth {
        self.maker.truth()
    }

    /// Makes the next group of events, shows each with its number to `seen`, and queues their
    /// frames; false when all events are made. This is the work that a loop does ahead of time.
    pub fn prepare(&mut self, seen: impl FnMut(u64, &TruthEvent)) -> bool {
        let more = self.maker.make(&mut self.spare, seen, &mut self.made);
        for frame in self.made.drain(..) {
            let spare = &mut self.spare;
            if let Some(lost) = self.injector.push(frame, |frame| Some(spare.copy(frame))) {
                self.spare.put(lost);
            }
        }
        more
    }

    /// No frame that is still to be prepared is due before this; `None`: all are prepared.
    #[must_use]
    pub fn horizon(&self) -> Option<Ns> {
        self.maker.horizon()
    }

    /// The next frame, if it is certain: else [`prepare`](Self::prepare) more.
    #[must_use]
    pub fn peek(&self) -> Option<&Frame> {
        self.injector.peek(self.horizon())
    }

    /// Drops the frame that [`peek`](Self::peek) showed.
    pub fn advance(&mut self) {
        if let Some(frame) = self.injector.pop() {
            self.spare.put(frame);
        }
    }

    /// Whether every frame of the run has been taken.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.horizon().is_none() && self.injector.is_empty()
    }

    /// The faults so far, in the frames that are prepared.
    #[must_use]
    pub fn faults(&self) -> FaultCounts {
        self.injector.counts().into()
    }

    /// Frames prepared, without duplicates, with those lost.
    #[must_use]
    pub fn frames_made(&self) -> u64 {
        self.injector.made()
    }

    /// Frames prepared and not yet taken.
    #[must_use]
    pub fn frames_waiting(&self) -> u64 {
        self.injector.len() as u64
    }

    /// Hits that were left out because a frame carries no more than 255 for one event.
    #[must_use]
    pub fn hits_cut(&self) -> u64 {
        self.maker.hits_cut()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::{Arrival, Faults};

    /// Board, due time, payload, and whether a byte of it is changed.
    type Sent = (u8, Ns, Vec<u8>, bool);

    /// Every frame; `ahead` groups are prepared first.
    fn frames(config: &EmulatorConfig, ahead: usize) -> (Vec<Sent>, FaultCounts) {
        let mut stream = FrameStream::new(config).unwrap();
        for _ in 0..ahead {
            stream.prepare(|_, _| ());
        }
        let mut frames = Vec::new();
        while !stream.is_finished() {
            match stream.peek() {
                Some(frame) => {
                    let payload = frame.payload().to_vec();
                    frames.push((frame.board, frame.due, payload, frame.corrupt.is_some()));
                    stream.advance();
                }
                None => assert!(stream.prepare(|_, _| ())),
            }
        }
        (frames, stream.faults())
    }

    fn sequence(payload: &[u8]) -> u32 {
        u32::from_le_bytes(payload[8..12].try_into().unwrap())
    }

    fn config(faults: Faults) -> EmulatorConfig {
        EmulatorConfig {
            events: 5000,
            arrival: Arrival::Regular,
            events_per_frame: 5,
            faults,
            ..EmulatorConfig::default()
        }
    }

    const NONE: Faults = Faults {
        lost: 0.0,
        late: 0.0,
        late_us: 700,
        duplicated: 0.0,
        reordered: 0.0,
        corrupted: 0.0,
    };

    #[test]
    fn the_order_does_not_depend_on_the_pace() {
        let faults = Faults {
            lost: 0.05,
            late: 0.1,
            duplicated: 0.05,
            reordered: 0.2,
            corrupted: 0.05,
            ..NONE
        };
        let config = config(faults);
        let (slow, counts) = frames(&config, 0);
        assert_eq!(
            (&slow, counts),
            (&frames(&config, 7).0, frames(&config, 1000).1)
        );
        assert!(slow.is_sorted_by_key(|(_, due, ..)| *due));
        let FaultCounts {
            lost,
            late,
            duplicated,
            reordered,
            corrupted,
        } = counts;
        assert_eq!(slow.len() as u64, 4000 - lost + duplicated);
        assert_eq!(
            slow.iter().filter(|(.., corrupt)| *corrupt).count() as u64,
            corrupted
        );
        for (count, expected) in [
            (lost, 200),
            (late, 400),
            (duplicated, 200),
            (reordered, 800),
            (corrupted, 200),
        ] {
            assert!(
                count * 10 > expected * 7 && count * 10 < expected * 13,
                "{counts:?}"
            );
        }
        let poisson = EmulatorConfig {
            arrival: Arrival::Poisson,
            ..config
        };
        let (slow, counts) = frames(&poisson, 0);
        assert_eq!(
            (&slow, counts),
            (&frames(&poisson, 7).0, frames(&poisson, 1000).1)
        );
        assert!(slow.is_sorted_by_key(|(_, due, ..)| *due));
        let other = EmulatorConfig { seed: 2, ..config };
        assert_ne!(frames(&other, 0).1, frames(&config, 0).1);
    }

    #[test]
    fn without_faults_all_frames_come_in_order() {
        let (frames, counts) = frames(&config(NONE), 0);
        assert_eq!(counts, FaultCounts::default());
        for (i, (board, _, payload, _)) in frames.iter().enumerate() {
            assert_eq!(
                (usize::from(*board), sequence(payload) as usize),
                (i % 4, i / 4)
            );
        }
    }

    #[test]
    fn each_fault_is_what_it_says() {
        let board0 = |faults| {
            let (frames, counts) = frames(&config(faults), 0);
            let ours = frames.into_iter().filter(|(board, ..)| *board == 0);
            let ours: Vec<_> = ours
                .map(|(_, due, payload, _)| (due, sequence(&payload)))
                .collect();
            (ours, counts)
        };
        let (on_time, _) = board0(NONE);

        let (twice, counts) = board0(Faults {
            duplicated: 1.0,
            ..NONE
        });
        assert_eq!(counts.duplicated, 4000);
        assert!(
            twice
                .chunks(2)
                .zip(&on_time)
                .all(|(pair, one)| pair == [*one; 2])
        );

        let (late, _) = board0(Faults { late: 1.0, ..NONE });
        assert!(
            late.iter()
                .zip(&on_time)
                .all(|(a, b)| a.1 == b.1 && a.0 == b.0 + Ns(700_000))
        );

        // 50 us from frame to frame: a late frame is overtaken by 14.
        let (some_late, _) = board0(Faults { late: 0.1, ..NONE });
        let overtaken = |i: usize| {
            let later = |j: &&(Ns, u32)| j.1 > some_late[i].1;
            some_late[..i].iter().filter(later).count()
        };
        assert!((0..some_late.len()).all(|i| overtaken(i) <= 14));
        assert!((0..some_late.len()).any(|i| overtaken(i) >= 10));

        let (swapped, counts) = board0(Faults {
            reordered: 0.1,
            ..NONE
        });
        let inversions = swapped
            .windows(2)
            .filter(|pair| pair[0].1 > pair[1].1)
            .count();
        assert!(inversions > 50 && inversions as u64 <= counts.reordered);

        assert_eq!(board0(Faults { lost: 1.0, ..NONE }).0, []);
    }
}
