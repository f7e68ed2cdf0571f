//! Judges fitted rings by their hits: a fit belongs to the true ring whose light is in at least
//! 70 % of its hits.
//!
//! The hits of a fit are those in the finder's road around its circle and in its window of time. A
//! hit that two rings share counts for both. Nothing is asked of centre and radius, so that a poor
//! fit to the right hits is found, and one that mixes two rings is not, however near it lies.

use crate::rich::find::{FinderConfig, MAX_RINGS, Ring};
use crate::rich::geometry::{POSITIONS, disk_of};

use super::is_asked_for;
use crate::physics::model::TruthEvent;

/// The part of a fit's hits that must be of one true ring.
pub const PURITY: f64 = 0.7;

/// Counts of true and fitted rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurityScore {
    /// True rings that a finder is asked to find.
    pub findable: u64,
    /// Those of them that a fit belongs to.
    pub found: u64,
    /// Fitted rings.
    pub fitted: u64,
    /// Fitted rings that belong to no true ring.
    pub fakes: u64,
    /// Fitted rings that belong to a true ring to which a fit before them belongs.
    pub clones: u64,
}

impl PurityScore {
    /// Judges one event, for which the finder of `cfg` found `fitted`.
    pub fn add(&mut self, event: &TruthEvent, fitted: &[Ring], cfg: &FinderConfig) {
        let mut owners = [None; MAX_RINGS];
        for (owner, fit) in owners.iter_mut().zip(fitted) {
            *owner = owner_of(event, fit, cfg);
        }
        let owners = &owners[..fitted.len().min(MAX_RINGS)];
        for (n, owner) in owners.iter().enumerate() {
            self.fitted += 1;
            self.fakes += u64::from(owner.is_none());
            self.clones += u64::from(owner.is_some() && owners[..n].contains(owner));
        }
        for i in (0..event.rings.len()).filter(|&i| is_asked_for(&event.rings, i)) {
            self.findable += 1;
            self.found += u64::from(owners.contains(&Some(i)));
        }
    }
}

/// The true ring that a fitted one belongs to by its hits; of those of equal parts, the first.
#[must_use]
pub fn owner_of(event: &TruthEvent, fit: &Ring, cfg: &FinderConfig) -> Option<usize> {
    let (mut total, mut counts) = (0, [0_u32; 64]);
    for (hit, links) in event.hits.iter().zip(&event.links) {
        let Some([x, y]) = POSITIONS.get(usize::from(hit.pm)) else {
            continue;
        };
        let off = ((x - fit.x).hypot(y - fit.y) - fit.r).abs();
        let late = (f32::from(hit.fine) - fit.time).abs();
        let in_time = cfg.time_window == 0 || late <= f32::from(cfg.time_window);
        if disk_of(hit.pm) != fit.disk || off > cfg.road_mm || !in_time {
            continue;
        }
        total += 1;
        let mut left = *links;
        while left > 0 {
            counts[left.trailing_zeros() as usize % 64] += 1;
            left &= left - 1;
        }
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let is_pure = total > 0 && f64::from(most) >= PURITY * f64::from(total);
    let owner = counts.iter().position(|&count| count == most);
    owner.filter(|_| is_pure)
}

#[cfg(test)]
mod tests {
    use crate::rich::Hit;
    use crate::rich::geometry::pm_at;

    use super::*;
    use crate::physics::model::TrueRing;

    /// An event with rings of radius 150 mm on disk 0 around (x, 0), twelve hits each, and so many
    /// hits of noise on the first of them.
    fn event(centres: &[f32], noise: usize) -> TruthEvent {
        let mut lit = std::collections::BTreeMap::new();
        let mut rings = Vec::new();
        for (i, &x) in centres.iter().enumerate() {
            for step in 0..12 + if i == 0 { noise } else { 0 } {
                let (sin, cos) = (0.37 * step as f32).sin_cos();
                let pm = pm_at(0, x + 150.0 * cos, 150.0 * sin).unwrap_or(0);
                *lit.entry(pm).or_insert(0) |= if step < 12 { 1 << i } else { 0 };
            }
            rings.push(TrueRing {
                x,
                r: 150.0,
                hits: 12,
                ..TrueRing::default()
            });
        }
        let mut event = TruthEvent::default();
        event.rings = rings;
        event.hits = lit.keys().map(|&pm| Hit { pm, fine: 10 }).collect();
        event.links = lit.values().copied().collect();
        event
    }

    fn fit(x: f32) -> Ring {
        Ring {
            x,
            r: 150.0,
            time: 10.0,
            ..Ring::default()
        }
    }

    #[test]
    fn a_fit_belongs_to_the_ring_of_its_hits() {
        let cfg = FinderConfig::default();
        let two = event(&[-60.0, 60.0], 0);
        assert_eq!(owner_of(&two, &fit(-60.0), &cfg), Some(0));
        assert_eq!(owner_of(&two, &fit(60.0), &cfg), Some(1));
        // Across both rings, at another time, on the other disk, where nothing is.
        assert_eq!(owner_of(&two, &fit(0.0), &cfg), None);
        let late = Ring {
            time: 200.0,
            ..fit(60.0)
        };
        assert_eq!(owner_of(&two, &late, &cfg), None);
        let timeless = FinderConfig {
            time_window: 0,
            ..cfg
        };
        assert_eq!(owner_of(&two, &late, &timeless), Some(1));
        let other = Ring {
            disk: 1,
            ..fit(60.0)
        };
        assert_eq!(owner_of(&two, &other, &cfg), None);
        let mut score = PurityScore::default();
        score.add(&two, &[fit(-60.0), fit(0.0), fit(-60.5)], &cfg);
        let PurityScore {
            findable, found, ..
        } = score;
        assert_eq!((findable, found), (2, 1));
        assert_eq!((score.fitted, score.fakes, score.clones), (3, 1, 1));
    }

    #[test]
    fn seven_tenths_of_the_hits_are_asked_for() {
        let cfg = FinderConfig::default();
        for (noise, owner) in [(4, Some(0)), (8, None)] {
            let event = event(&[0.0], noise);
            let own = event.links.iter().filter(|&&links| links == 1).count();
            assert_eq!(own as f64 >= 0.7 * event.hits.len() as f64, owner.is_some());
            assert_eq!(owner_of(&event, &fit(0.0), &cfg), owner);
        }
    }
}
