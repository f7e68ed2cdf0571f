//! Fault injector: applies faults to frames and orders the frames by departure.

use pollux_mempool::time::Ns;
use serde::Serialize;

use crate::bottleneck::{Bottleneck, BottleneckOptions, Passage};
use crate::departures::Departures;
use crate::dice::{Dice, FaultError, FaultRates, Outcome};
use crate::frame::Frame;

/// Distance by which a reordered frame is put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Behind the frames that are due within this time after it.
    Time(Ns),
    /// Behind this number of frames that are sent after it. One frame at a time is held back for
    /// that.
    Frames(u32),
}

/// Frames by applied fault. A frame is counted when its fault was applied: one that could not be
/// duplicated for lack of memory is not among the duplicated.
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
    /// Marked by the bottleneck. The only count of frames that may have a fault beside.
    #[serde(skip_serializing_if = "is_zero")]
    pub marked: u64,
    /// Lost in the full queue of the bottleneck; not among the lost.
    #[serde(skip_serializing_if = "is_zero")]
    pub congested: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Applies at most one fault to each frame, and puts the frames in the order of sending.
#[derive(Debug)]
pub struct Injector<F> {
    dice: Dice,
    behind: Behind,
    departures: Departures<F>,
    bottleneck: Option<Bottleneck>,
    /// The frame that is held back, and the number of frames that have overtaken it.
    held: Option<(F, u32)>,
    made: u64,
    counts: Counts,
}

impl<F: Frame> Injector<F> {
    /// Makes an injector with an empty queue. It allocates nothing more while at most `room` frames
    /// wait.
    #[must_use]
    pub fn new(rates: FaultRates, behind: Behind, seed: u64, room: usize) -> Self {
        Self {
            dice: Dice::new(rates, seed),
            behind,
            departures: Departures::new(room),
            bottleneck: None,
            held: None,
            made: 0,
            counts: Counts::default(),
        }
    }

    /// Has frames pass a bottleneck, but for those that are delayed or reordered, which come later.
    ///
    /// # Errors
    /// Numbers that the bottleneck cannot have.
    pub fn with_bottleneck(mut self, options: BottleneckOptions) -> Result<Self, FaultError> {
        options.check()?;
        self.bottleneck = Some(Bottleneck::new(options));
        Ok(self)
    }

    /// Passes the bottleneck; a frame that it loses.
    fn pass(&mut self, frame: &mut F) -> bool {
        let Some(bottleneck) = &mut self.bottleneck else {
            return true;
        };
        match bottleneck.pass(frame.due(), frame.len_on_link()) {
            Passage::Lost => {
                self.counts.congested += 1;
                false
            }
            Passage::Leaves { at, is_marked } => {
                frame.set_due(at);
                self.counts.marked += u64::from(is_marked && frame.mark());
                true
            }
        }
    }

    /// Takes a frame. Frames arrive in the order of their time. A lost frame is returned; `copy`
    /// makes a second frame equal to the first, if it can.
    #[must_use = "a lost frame has memory to be used again"]
    pub fn push(&mut self, mut frame: F, copy: impl FnOnce(&F) -> Option<F>) -> Option<F> {
        self.made += 1;
        match self.dice.throw() {
            Outcome::Lost => {
                self.counts.lost += 1;
                return Some(frame);
            }
            Outcome::Delayed(by) => {
                self.counts.delayed += 1;
                frame.set_due(frame.due() + by);
                self.departures.push(frame, true);
                // It overtakes no held-back frame.
                return None;
            }
            Outcome::Duplicated => {
                if let Some(copy) = copy(&frame) {
                    self.counts.duplicated += 1;
                    drop(self.depart(copy));
                }
            }
            Outcome::Reordered => match self.behind {
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
            Outcome::Corrupted => {
                let done = frame.corrupt(|len| self.dice.wrong_byte(len));
                self.counts.corrupted += u64::from(done);
            }
            Outcome::Untouched => {}
        }
        let due = frame.due();
        let lost = self.depart(frame);
        self.overtaken(due);
        lost
    }

    /// Queues a frame, behind the bottleneck if there is one; the frame if that loses it.
    fn depart(&mut self, mut frame: F) -> Option<F> {
        if !self.pass(&mut frame) {
            return Some(frame);
        }
        self.departures.push(frame, false);
        None
    }

    /// One more frame, due at this time, has overtaken the held-back frame.
    fn overtaken(&mut self, due: Ns) {
        if let (Some((mut frame, by)), Behind::Frames(n)) = (self.held.take(), self.behind) {
            frame.set_due(due);
            if by + 1 < n {
                self.held = Some((frame, by + 1));
                return;
            }
            self.counts.reordered += 1;
            // Directly behind the latest frame, before others that are due at the same time.
            self.departures.push(frame, false);
        }
    }

    /// Ends the input: a held-back frame departs now.
    pub fn finish(&mut self) {
        if let Some((frame, by)) = self.held.take() {
            self.counts.reordered += u64::from(by > 0);
            self.departures.push(frame, false);
        }
    }

    /// The frame to be sent next, if no frame that is still to be pushed, due at `horizon` or
    /// later, can precede it. `None` as horizon: no further frames are pushed.
    #[must_use]
    pub fn peek(&self, horizon: Option<Ns>) -> Option<&F> {
        self.departures.first(horizon)
    }

    /// Takes the frame to be sent next.
    pub fn pop(&mut self) -> Option<F> {
        self.departures.pop()
    }

    /// Frames taken so far: without copies, with those lost.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Number of waiting frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.departures.len() + usize::from(self.held.is_some())
    }

    /// Whether no frame waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts so far.
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

        fn len_on_link(&self) -> usize {
            10
        }

        fn mark(&mut self) -> bool {
            self.number.is_multiple_of(2)
        }

        fn corrupt(&mut self, pick: impl FnOnce(usize) -> Option<(usize, u8)>) -> bool {
            // Odd frames are empty.
            self.wrong = pick(if self.number.is_multiple_of(2) { 50 } else { 0 });
            self.wrong.is_some()
        }
    }

    /// Sends frames, 10 ns apart. Returns those that depart, those that were lost, and the counts.
    fn sent(rates: FaultRates, behind: Behind, frames: u64) -> (Vec<Numbered>, Vec<u64>, Counts) {
        assert_eq!(rates.check(), Ok(()));
        let mut injector = Injector::new(rates, behind, 1, 16);
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

    const NONE: FaultRates = FaultRates {
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
    fn frames_have_no_faults_unless_requested() {
        let (frames, lost, counts) = sent(NONE, Behind::Frames(1), 1000);
        assert_eq!(numbers(&frames), (0..1000).collect::<Vec<_>>());
        assert_eq!((lost.len(), counts), (0, Counts::default()));
    }

    #[test]
    fn what_is_counted_has_happened() {
        let all = FaultRates {
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
        let some = FaultRates {
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
            // The last frame may have been overtaken by all others.
            let (last, others) = moved.split_last().unwrap_or((&1, &[]));
            assert!(others.iter().all(|&by| by == distance as usize));
            assert!((1..=distance as usize).contains(last));
            assert!(counts.reordered > 150, "{counts:?}");
        }
    }

    /// Only frames that a fault holds back wait, however many are due at once.
    #[test]
    fn frames_of_one_instant_go_as_they_come() {
        let some = FaultRates {
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
        // Copies overtake as well, but do not count as reordered.
        assert!(moved.iter().all(|n| (4..=8).contains(n)), "{moved:?}");
    }

    #[test]
    fn a_delayed_frame_waits_for_all_of_its_new_instant() {
        let late = FaultRates { delay: 1.0, ..NONE };
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

    /// Frames come in bursts at twice the rate of the link.
    #[test]
    fn a_bottleneck_delays_marks_and_loses() {
        let options = BottleneckOptions {
            rate: 8e9,
            mark_above: 200,
            capacity: 400,
        };
        let injector = Injector::new(NONE, Behind::Frames(1), 1, 64);
        let mut injector = injector.with_bottleneck(options).unwrap();
        let (mut sent, mut lost) = (Vec::new(), Vec::new());
        for number in 0..200 {
            let (due, wrong) = (Ns(number * 5), None);
            let frame = Numbered { number, due, wrong };
            lost.extend(injector.push(frame, |_| None));
            while injector.peek(Some(due)).is_some() {
                sent.extend(injector.pop());
            }
        }
        sent.extend(std::iter::from_fn(|| injector.pop()));
        let counts = injector.counts();
        assert_eq!(
            (sent.len() + lost.len(), lost.len() as u64),
            (200, counts.congested)
        );
        // 10 bytes leave in 10 ns, one behind the other, in order.
        assert!(sent.windows(2).all(|two| two[1].due - two[0].due == Ns(10)));
        assert!(sent.is_sorted_by_key(|frame| frame.number));
        // 400 bytes fill in 80 frames; then each second one is lost.
        assert_eq!(lost.first().map(|frame| frame.number), Some(79));
        assert!((55..=62).contains(&lost.len()), "{}", lost.len());
        // From half of the queue on even frames, which can be marked: 19 until it is full, and then all
        // that pass.
        assert_eq!(counts.marked, 19 + 60, "{counts:?}");
    }

    #[test]
    fn a_copy_that_cannot_be_made_is_not_counted() {
        let twice = FaultRates {
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
