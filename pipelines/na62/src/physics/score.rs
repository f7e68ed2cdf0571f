//! Judges a ring finder by the truth.
//!
//! A fitted ring belongs to a true one when both are on one disk, their centres within 20 mm
//! and their radii within 10 mm. Each ring is matched once at most, and so that as many true
//! rings as possible are matched. Efficiency counts the true rings that can be asked for: those
//! that are findable by themselves ([`TrueRing::is_findable`]), and whose centre is at least one
//! pitch of the photomultipliers away from that of any other ring on the disk. A fitted ring that
//! belongs to any true ring at all is no fake; a second one of the same ring is a clone.
//!
//! [`purity`] judges by the hits instead, whatever the circle: a fitted ring belongs to the true
//! one that most of its hits are of.

pub mod purity;

use crate::rich::find::{MAX_RINGS, Ring};
use crate::rich::geometry::PITCH_MM;

use crate::physics::model::TrueRing;

/// Largest distance of the centres of a true ring and its fit, in mm.
pub const CENTRE_MM: f32 = 20.0;
/// Largest difference of the radii of a true ring and its fit, in mm.
pub const RADIUS_MM: f32 = 10.0;

/// Counts of true and fitted rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TruthScore {
    /// Events judged.
    pub events: u64,
    /// True rings that a finder is asked to find.
    pub findable: u64,
    /// Those of them that it found.
    pub found: u64,
    /// Fitted rings.
    pub fitted: u64,
    /// Fitted rings that belong to no true ring: fakes.
    pub unmatched: u64,
    /// Fitted rings that belong to a true ring which another fit belongs to better: clones.
    pub clones: u64,
}

impl TruthScore {
    /// Judges one event.
    pub fn add(&mut self, truth: &[TrueRing], fitted: &[Ring]) {
        let matched = matches(truth, fitted);
        let asked = |i: &usize| is_asked_for(truth, *i);
        let findable = (0..truth.len()).filter(asked).count() as u64;
        let found = matched.iter().flatten().filter(|i| asked(i)).count() as u64;
        let belongs = |fit: &Ring| truth.iter().any(|ring| belong_together(ring, fit));
        let unmatched = fitted.iter().filter(|fit| !belongs(fit)).count() as u64;
        self.events += 1;
        self.findable += findable;
        self.found += found;
        self.fitted += fitted.len() as u64;
        self.unmatched += unmatched;
        self.clones += fitted.len() as u64 - unmatched - matched.iter().flatten().count() as u64;
    }

    /// Adds the counts of another score.
    pub fn merge(&mut self, other: &Self) {
        self.events += other.events;
        self.findable += other.findable;
        self.found += other.found;
        self.fitted += other.fitted;
        self.unmatched += other.unmatched;
        self.clones += other.clones;
    }

    /// Found rings per ring to be found; `None` where there was none to be found.
    #[must_use]
    pub fn efficiency(&self) -> Option<f64> {
        (self.findable > 0).then(|| self.found as f64 / self.findable as f64)
    }

    /// Unmatched fitted rings per fitted ring; `None` where nothing was fitted.
    #[must_use]
    pub fn fake_rate(&self) -> Option<f64> {
        (self.fitted > 0).then(|| self.unmatched as f64 / self.fitted as f64)
    }
}

/// For each fitted ring the index of the true ring that it belongs to, so that as many of those that
/// are asked for are matched as possible, then as many others. Of more than a finder gives
/// ([`MAX_RINGS`]) the rest has none.
#[must_use]
pub fn matches(truth: &[TrueRing], fitted: &[Ring]) -> [Option<usize>; MAX_RINGS] {
    let mut matched = [None; MAX_RINGS];
    let candidates = &fitted[..fitted.len().min(MAX_RINGS)];
    // Those that are asked for first: an augmenting path never unmatches what was matched, so the
    // others cannot take a fit away from them.
    for asked in [true, false] {
        for i in (0..truth.len()).filter(|&i| is_asked_for(truth, i) == asked) {
            augment(i, truth, candidates, &mut matched, &mut [false; MAX_RINGS]);
        }
    }
    matched
}

/// Whether a finder is asked to find ring `i` among the rings of its event.
#[must_use]
pub fn is_asked_for(truth: &[TrueRing], i: usize) -> bool {
    truth[i].is_findable() && is_apart(truth, i)
}

/// Whether the centre of ring `i` is one pitch of the photomultipliers at least from those of all
/// other rings on its disk.
#[must_use]
pub fn is_apart(truth: &[TrueRing], i: usize) -> bool {
    let ring = &truth[i];
    let apart = |(j, other): (usize, &TrueRing)| {
        i == j || other.disk != ring.disk || (other.x - ring.x).hypot(other.y - ring.y) >= PITCH_MM
    };
    truth.iter().enumerate().all(apart)
}

fn belong_together(truth: &TrueRing, fit: &Ring) -> bool {
    truth.disk == fit.disk
        && (truth.x - fit.x).hypot(truth.y - fit.y) <= CENTRE_MM
        && (truth.r - fit.r).abs() <= RADIUS_MM
}

/// Finds a fit for true ring `i`, moving rings matched before to other fits where that makes
/// room (H. W. Kuhn's augmenting paths); whether there was one. `matched` holds for each fit
/// its true ring; `seen`, the fits that this search has tried.
fn augment(
    i: usize,
    truth: &[TrueRing],
    fitted: &[Ring],
    matched: &mut [Option<usize>; MAX_RINGS],
    seen: &mut [bool; MAX_RINGS],
) -> bool {
    for (j, fit) in fitted.iter().enumerate() {
        if seen[j] || !belong_together(&truth[i], fit) {
            continue;
        }
        seen[j] = true;
        if matched[j].is_none_or(|other| augment(other, truth, fitted, matched, seen)) {
            matched[j] = Some(i);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(x: f32, r: f32, hits: u16) -> TrueRing {
        TrueRing {
            disk: 0,
            x,
            y: 0.0,
            r,
            hits,
            ..TrueRing::default()
        }
    }

    fn fit(x: f32, r: f32) -> Ring {
        Ring {
            disk: 0,
            x,
            y: 0.0,
            r,
            hits: 15,
            ..Ring::default()
        }
    }

    fn score(truth: &[TrueRing], fitted: &[Ring]) -> (u64, u64, u64, u64) {
        let mut score = TruthScore::default();
        score.add(truth, fitted);
        (score.findable, score.found, score.fitted, score.unmatched)
    }

    #[test]
    fn limits_are_20_mm_in_centre_and_10_mm_in_radius_on_one_disk() {
        let ring = [truth(0.0, 150.0, 10)];
        assert_eq!(score(&ring, &[fit(20.0, 160.0)]), (1, 1, 1, 0));
        assert_eq!(score(&ring, &[fit(20.1, 150.0)]), (1, 0, 1, 1));
        assert_eq!(score(&ring, &[fit(0.0, 160.1)]), (1, 0, 1, 1));
        assert_eq!(
            score(
                &ring,
                &[Ring {
                    disk: 1,
                    ..fit(0.0, 150.0)
                }]
            ),
            (1, 0, 1, 1)
        );
        assert_eq!(score(&ring, &[]), (1, 0, 0, 0));
        assert_eq!(score(&[], &[fit(0.0, 150.0)]), (0, 0, 1, 1));
    }

    #[test]
    fn each_ring_is_matched_once() {
        let one = [truth(0.0, 150.0, 10)];
        assert_eq!(
            score(&one, &[fit(1.0, 150.0), fit(2.0, 150.0)]),
            (1, 1, 2, 0)
        );
        // The second one is a clone.
        let mut total = TruthScore::default();
        total.add(&one, &[fit(1.0, 150.0), fit(2.0, 150.0), fit(60.0, 150.0)]);
        assert_eq!((total.clones, total.unmatched, total.fitted), (1, 1, 3));
        let two = [truth(0.0, 150.0, 10), truth(24.0, 150.0, 10)];
        assert_eq!(score(&two, &[fit(7.0, 150.0)]), (2, 1, 1, 0));
        // The first true ring reaches both fits, the second only the first fit.
        assert_eq!(
            score(&two, &[fit(18.0, 150.0), fit(-10.0, 150.0)]),
            (2, 2, 2, 0)
        );
    }

    #[test]
    fn rings_with_nearly_one_centre_are_not_asked_for_but_no_fakes() {
        let near = [truth(0.0, 150.0, 10), truth(15.0, 120.0, 10)];
        assert_eq!(score(&near, &[fit(1.0, 150.0)]), (0, 0, 1, 0));
        let apart = [truth(0.0, 150.0, 10), truth(18.0, 120.0, 10)];
        assert_eq!(score(&apart, &[fit(1.0, 150.0)]), (2, 1, 1, 0));
    }

    #[test]
    fn rings_not_asked_for_are_no_fakes_and_take_no_fit_away() {
        let outside = truth(ACCEPTANCE + 5.0, 150.0, 10);
        let weak = truth(0.0, 150.0, 4);
        assert_eq!(score(&[weak], &[fit(0.0, 150.0)]), (0, 0, 1, 0));
        assert_eq!(score(&[outside], &[fit(ACCEPTANCE, 150.0)]), (0, 0, 1, 0));
        assert_eq!(
            score(&[weak, truth(19.0, 150.0, 9)], &[fit(0.0, 150.0)]),
            (1, 1, 1, 0)
        );
    }

    const ACCEPTANCE: f32 = crate::rich::geometry::ACCEPTANCE_MM;

    #[test]
    fn rates_are_those_of_the_counts() {
        let mut total = TruthScore::default();
        assert_eq!((total.efficiency(), total.fake_rate()), (None, None));
        let mut part = TruthScore::default();
        part.add(
            &[truth(0.0, 150.0, 9)],
            &[fit(0.0, 150.0), fit(90.0, 150.0)],
        );
        part.add(&[truth(0.0, 150.0, 9)], &[]);
        total.merge(&part);
        total.merge(&part);
        assert_eq!(total.events, 4);
        assert_eq!(
            (total.efficiency(), total.fake_rate()),
            (Some(0.5), Some(0.5))
        );
    }

    #[test]
    fn more_fits_than_a_finder_gives_are_counted() {
        let fits = [fit(300.0, 150.0); MAX_RINGS + 3];
        assert_eq!(
            score(&[], &fits),
            (0, 0, MAX_RINGS as u64 + 3, MAX_RINGS as u64 + 3)
        );
    }
}
