//! Lets faults befall frames.

use pollux_mempool::time::Ns;
use serde::Serialize;

use crate::departures::Departures;
use crate::dice::{Dice, Fate, Impairments};

/// What an [`Injector`] must know of a frame.
pub trait Frame: Sized {
    /// When it is to be sent, counted from the beginning of the run.
    fn due(&self) -> Ns;

    /// Sends it at another time.
    fn set_due(&mut self, due: Ns);

    /// Changes one byte, or remembers to. `pick` chooses the place among so many bytes, and the
    /// bits that flip. False where there is no byte to be changed.
    fn corrupt(&mut self, pick: impl FnOnce(usize) -> Option<(usize, u8)>) -> bool;
}

/// What a frame that is sent out of order is sent behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Frames that are due until so much after it.
    Time(Ns),
    /// So many frames that are sent after it. One frame at a time is held back for that.
    Frames(u32),
}

/// How many frames each thing befell. A frame is counted when it has happened: one that could not
/// be sent twice for want of memory is not among the duplicated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Never sent.
    pub lost: u64,
    /// Sent after their time.
    pub delayed: u64,
    /// Sent twice.
    pub duplicated: u64,
    /// Sent behind later frames.
    pub reordered: u64,
    /// Sent with a changed byte.
    pub corrupted: u64,
}

/// Lets at most one thing befall each frame, and puts the frames in the order of sending.
#[derive(Debug)]
pub struct Injector<F> {
    dice: Dice,
    behind: Behind,
    departures: Departures<F>,
    /// A frame that is held back, and how many have overtaken it.
    held: Option<(F, u32)>,
    made: u64,
    counts: Counts,
}

impl<F: Frame> Injector<F> {
    /// An injector with nothing queued. It allocates no more while at most `room` frames wait.
    #[must_use]
    pub fn new(impairments: Impairments, behind: Behind, seed: u64, room: usize) -> Self {
        Self {
            dice: Dice::new(impairments, seed),
            behind,
            departures: Departures::new(room),
            held: None,
            made: 0,
            counts: Counts::default(),
        }
    }

    /// Takes a frame. Frames come in the order of their time. A frame that is lost is given back;
    /// `copy` makes a second frame equal to the first, if it can.
    #[must_use = "a lost frame has memory to be used again"]
    pub fn push(&mut self, mut frame: F, copy: impl FnOnce(&F) -> Option<F>) -> Option<F> {
        self.made += 1;
        match self.dice.throw() {
            Fate::Lost => {
                self.counts.lost += 1;
                return Some(frame);
            }
            Fate::Delayed(by) => {
                self.counts.delayed += 1;
                frame.set_due(frame.due() + by);
                self.departures.push(frame, true);
                // It overtakes nothing that is held back.
                return None;
            }
            Fate::Duplicated => {
                if let Some(copy) = copy(&frame) {
                    self.counts.duplicated += 1;
                    self.departures.push(copy, false);
                }
            }
            Fate::Reordered => match self.behind {
                Behind::Time(by) => {
                    self.counts.reordered += 1;
                    frame.set_due(frame.due() + by);
                    self.departures.push(frame, true);
                    return None;
                }
                Behind::Frames(n) if self.held.is_none() && n > 0 => {
                    self.held = Some((frame, 0));
                    return None;
                }
                Behind::Frames(_) => {}
            },
            Fate::Corrupted => {
                let done = frame.corrupt(|len| self.dice.wrong_byte(len));
                self.counts.corrupted += u64::from(done);
            }
            Fate::Untouched => {}
        }
        let due = frame.due();
        self.departures.push(frame, false);
        self.overtaken(due);
        None
    }

    /// One more frame, due then, has overtaken the one that is held back.
    fn overtaken(&mut self, due: Ns) {
        if let (Some((mut frame, by)), Behind::Frames(n)) = (self.held.take(), self.behind) {
            frame.set_due(due);
            if by + 1 < n {
                self.held = Some((frame, by + 1));
                return;
            }
            self.counts.reordered += 1;
            // Right behind the frame that has just come, before others that are due with it.
            self.departures.push(frame, false);
        }
    }

    /// No more frames come: one that is still held back goes now.
    pub fn finish(&mut self) {
        if let Some((frame, by)) = self.held.take() {
            self.counts.reordered += u64::from(by > 0);
            self.departures.push(frame, false);
        }
    }

    /// The frame to be sent next, where no frame that is still to be pushed, due at `horizon` or
    /// later, can come before it. `None` as horizon: nothing more is pushed.
    #[must_use]
    pub fn peek(&self, horizon: Option<Ns>) -> Option<&F> {
        self.departures.first(horizon)
    }

    /// Takes the frame to be sent next.
    pub fn pop(&mut self) -> Option<F> {
        self.departures.pop()
    }

    /// Frames that have come: without copies, with those lost.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Frames that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.departures.len() + usize::from(self.held.is_some())
    }

    /// Whether no frame waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Numbered {
        number: u64,
        due: Ns,
        wrong: Option<(usize, u8)>,
    }

    impl Frame for Numbered {
        fn due(&self) -> Ns {
            self.due
        }

        fn set_due(&mut self, due: Ns) {
            self.due = due;
        }

        fn corrupt(&mut self, pick: impl FnOnce(usize) -> Option<(usize, u8)>) -> bool {
            // Odd frames are empty.
            self.wrong = pick(if self.number.is_multiple_of(2) { 50 } else { 0 });
            self.wrong.is_some()
        }
    }

    /// Sends frames, 10 ns apart; those that depart, those that were lost, and the counts.
    fn sent(
        impairments: Impairments,
        behind: Behind,
        frames: u64,
    ) -> (Vec<Numbered>, Vec<u64>, Counts) {
        assert_eq!(impairments.check(), Ok(()));
        let mut injector = Injector::new(impairments, behind, 1, 16);
        let (mut sent, mut lost) = (Vec::new(), Vec::new());
        for number in 0..frames {
            let due = Ns(number * 10);
            let wrong = None;
            let frame = Numbered { number, due, wrong };
            lost.extend(injector.push(frame, |f| Some(f.clone())).map(|f| f.number));
            while injector.peek(Some(due)).is_some() {
                sent.extend(injector.pop());
            }
        }
        injector.finish();
        while injector.peek(None).is_some() {
            sent.extend(injector.pop());
        }
        assert!(injector.is_empty() && injector.made() == frames);
        (sent, lost, injector.counts())
    }

    const NONE: Impairments = Impairments {
        loss: 0.0,
        delay: 0.0,
        delay_by: (Ns(0), Ns(0)),
        duplicate: 0.0,
        reorder: 0.0,
        corrupt: 0.0,
    };

    fn numbers(frames: &[Numbered]) -> Vec<u64> {
        frames.iter().map(|frame| frame.number).collect()
    }

    #[test]
    fn nothing_befalls_frames_unless_asked() {
        let (frames, lost, counts) = sent(NONE, Behind::Frames(1), 1000);
        assert_eq!(numbers(&frames), (0..1000).collect::<Vec<_>>());
        assert_eq!((lost.len(), counts), (0, Counts::default()));
    }

    #[test]
    fn what_is_counted_has_happened() {
        let all = Impairments {
            loss: 0.1,
            delay: 0.1,
            delay_by: (Ns(5), Ns(500)),
            duplicate: 0.1,
            reorder: 0.1,
            corrupt: 0.1,
        };
        for behind in [Behind::Frames(3), Behind::Time(Ns(30))] {
            let (frames, lost, counts) = sent(all, behind, 10_000);
            assert_eq!(lost.len() as u64, counts.lost);
            assert_eq!(
                frames.len() as u64,
                10_000 - counts.lost + counts.duplicated
            );
            assert!(frames.is_sorted_by_key(|frame| frame.due));
            let wrong = frames.iter().filter(|frame| frame.wrong.is_some()).count();
            assert_eq!(wrong as u64, counts.corrupted, "only those with bytes");
            let moved = frames.iter().filter(|f| f.due.0 > f.number * 10).count() as u64;
            assert!(moved >= counts.delayed && moved <= counts.delayed + counts.reordered);
            for (count, expected) in [
                (counts.lost, 1000_u64),
                (counts.delayed, 1000),
                (counts.duplicated, 1000),
                (counts.corrupted, 500),
            ] {
                assert!(expected.abs_diff(count) < expected / 5, "{counts:?}");
            }
            assert_eq!(sent(all, behind, 10_000).0, frames, "equal seeds");
        }
    }

    #[test]
    fn a_reordered_frame_is_behind_exactly_so_many() {
        let some = Impairments {
            reorder: 0.2,
            ..NONE
        };
        for distance in [1, 4, 17] {
            let (frames, _, counts) = sent(some, Behind::Frames(distance), 5000);
            let numbers = numbers(&frames);
            let behind = |place: usize| {
                let before = numbers[..place].iter();
                before.filter(|&&other| other > numbers[place]).count()
            };
            let moved = (0..numbers.len()).map(behind).filter(|&by| by > 0);
            let moved: Vec<_> = moved.collect();
            assert_eq!(moved.len() as u64, counts.reordered);
            // The last may have been overtaken by as many as there were.
            let (last, others) = moved.split_last().unwrap_or((&1, &[]));
            assert!(others.iter().all(|&by| by == distance as usize));
            assert!((1..=distance as usize).contains(last));
            assert!(counts.reordered > 150, "{counts:?}");
        }
    }

    /// However many frames are due at once, only those that faults hold back wait.
    #[test]
    fn frames_of_one_instant_go_as_they_come() {
        let some = Impairments {
            loss: 0.1,
            duplicate: 0.1,
            reorder: 0.2,
            corrupt: 0.1,
            ..NONE
        };
        let mut injector = Injector::new(some, Behind::Frames(4), 1, 16);
        let (mut sent, mut lost) = (Vec::new(), 0);
        for number in 0..5000 {
            let (due, wrong) = (Ns(7), None);
            let frame = Numbered { number, due, wrong };
            lost += u64::from(injector.push(frame, |f| Some(f.clone())).is_some());
            while injector.peek(Some(due)).is_some() {
                sent.extend(injector.pop().map(|frame| frame.number));
            }
            assert!(injector.len() <= 1, "{} wait", injector.len());
        }
        injector.finish();
        sent.extend(std::iter::from_fn(|| injector.pop()).map(|frame| frame.number));
        let counts = injector.counts();
        assert_eq!(sent.len() as u64, 5000 - lost + counts.duplicated);
        let overtaken = |place: usize| {
            let before = sent[place.saturating_sub(10)..place].iter();
            before.filter(|&&other| other > sent[place]).count()
        };
        let moved: Vec<_> = (0..sent.len()).map(overtaken).filter(|&n| n > 0).collect();
        assert_eq!(moved.len() as u64, counts.reordered);
        // Copies overtake as well, but are not counted as frames that do.
        assert!(moved.iter().all(|n| (4..=8).contains(n)), "{moved:?}");
    }

    #[test]
    fn a_delayed_frame_waits_for_all_of_its_new_instant() {
        let late = Impairments { delay: 1.0, ..NONE };
        let mut injector = Injector::new(late, Behind::Frames(1), 1, 16);
        let frame = Numbered {
            number: 0,
            due: Ns(7),
            wrong: None,
        };
        assert_eq!(injector.push(frame, |_| None), None);
        assert_eq!(injector.peek(Some(Ns(7))), None);
        assert!(injector.peek(Some(Ns(8))).is_some() && injector.peek(None).is_some());
    }

    #[test]
    fn a_copy_that_cannot_be_made_is_not_counted() {
        let twice = Impairments {
            duplicate: 1.0,
            ..NONE
        };
        let mut injector = Injector::new(twice, Behind::Frames(1), 1, 1);
        let frame = Numbered {
            number: 0,
            due: Ns(0),
            wrong: None,
        };
        assert_eq!(injector.push(frame, |_| None), None);
        assert_eq!((injector.len(), injector.counts()), (1, Counts::default()));
    }
}
