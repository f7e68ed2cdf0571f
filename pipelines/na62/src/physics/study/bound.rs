//! Lower bound on the error of a fitted radius.

use crate::physics::model::TruthEvent;
use crate::rich::geometry::POSITIONS;

/// Least variance of the radius of ring `i`, in mm^2, for a fit that knows the hits of the ring
/// (Cramer and Rao): element rr of the inverse of Fisher's information on centre and radius, to
/// which each hit at angle phi adds g g^T / sigma^2, with g = (cos phi, sin phi, 1) and `sigma` the
/// Gaussian error of a hit in mm. `None` where the hits do not determine the radius.
pub(super) fn bound(event: &TruthEvent, i: usize, sigma: f64) -> Option<f64> {
    let ring = event.rings.get(i)?;
    let link = 1_u64.checked_shl(u32::try_from(i).ok()?)?;
    let (mut n, mut c, mut s, mut cc, mut ss, mut cs) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for (hit, links) in event.hits.iter().zip(&event.links) {
        let Some([x, y]) = POSITIONS.get(usize::from(hit.pm)) else {
            continue;
        };
        if links & link == 0 {
            continue;
        }
        let (dx, dy) = (f64::from(x - ring.x), f64::from(y - ring.y));
        let d = dx.hypot(dy);
        let (cos, sin) = (dx / d, dy / d);
        n += 1.0;
        c += cos;
        s += sin;
        cc += cos * cos;
        ss += sin * sin;
        cs += cos * sin;
    }
    let minor = cc * ss - cs * cs;
    let determinant = n * minor - c * (c * ss - cs * s) + s * (c * cs - cc * s);
    let variance = sigma * sigma * minor / determinant;
    (determinant > 1e-9 && variance.is_finite()).then_some(variance)
}

#[cfg(test)]
mod tests {
    use crate::physics::model::TrueRing;
    use crate::rich::Hit;

    use super::*;

    fn event(pms: impl Iterator<Item = u16>, links: u64) -> TruthEvent {
        let mut event = TruthEvent::default();
        event.hits = pms.map(|pm| Hit { pm, fine: 50 }).collect();
        event.links = vec![links; event.hits.len()];
        event.rings = vec![
            TrueRing {
                r: 180.0,
                ..TrueRing::default()
            };
            2
        ];
        event
    }

    #[test]
    fn the_bound_of_hits_all_around_is_that_of_a_mean() {
        // All photomultipliers of the disk on the ring: evenly distributed.
        let on_ring = |pm: &u16| {
            let [x, y] = POSITIONS[usize::from(*pm)];
            (x.hypot(y) - 180.0).abs() < 9.0
        };
        let event = event((0..976).filter(on_ring), 1);
        let near = event.hits.len() as f64;
        let least = bound(&event, 0, 4.5).map_or(0.0, f64::sqrt);
        let mean = 4.5 / near.sqrt();
        assert!((least / mean - 1.0).abs() < 0.02, "{least} {mean}");
        // No hit is linked to the other ring.
        assert_eq!(bound(&event, 1, 4.5), None);
    }

    #[test]
    fn hits_in_one_place_have_no_bound() {
        let one = event(std::iter::repeat_n(478, 9), 1);
        assert_eq!(bound(&one, 0, 4.5), None);
        assert_eq!(bound(&event(std::iter::empty(), 1), 0, 4.5), None);
    }
}
