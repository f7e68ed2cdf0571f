//! Sampled events in the format of the page.

use pollux_app::page::unix_s;
use pollux_na62::rich::Hit;
use pollux_na62::rich::find::{FinderConfig, Ring};
use pollux_na62::rich::geometry::{PMS_PER_DISK, POSITIONS};
use serde::{Deserialize as _, Serialize};

use crate::config::TriggerConfig;
use crate::event_display::SampledEvent;

/// An item of `/events.json`.
#[derive(Serialize)]
pub struct Event {
    number: u64,
    /// Time of the decision, in seconds since 1970-01-01 UTC.
    decided_unix_s: f64,
    timestamp: u64,
    sources: u16,
    complete: bool,
    accepted: bool,
    /// Photomultiplier and time, in units of 25/256 ns.
    hits: Vec<(u16, u16)>,
    rings: Vec<Ring>,
    /// For each hit the index of its ring: the nearest, where rings cross.
    ring_of_hit: Vec<Option<usize>>,
}

impl Event {
    pub fn of(number: u64, sample: &SampledEvent, roads: Roads) -> Self {
        let (head, rings) = (sample.head, sample.rings.clone());
        let hits = sample.hits.iter();
        Self {
            number,
            decided_unix_s: unix_s(sample.decided),
            timestamp: head.timestamp,
            sources: head.sources,
            complete: head.complete,
            accepted: sample.accepted,
            hits: hits.clone().map(|hit| (hit.pm, hit.fine)).collect(),
            ring_of_hit: hits.map(|hit| roads.nearest(*hit, &rings)).collect(),
            rings,
        }
    }
}

/// Maximum distance of a hit from its ring, as configured for the finder.
#[derive(Clone, Copy, Debug)]
pub struct Roads {
    mm: f32,
    /// In units of 25/256 ns.
    time: f32,
}

impl Roads {
    pub fn of(config: &TriggerConfig) -> Self {
        let mut stages = config.stages.iter();
        let stage = stages.find(|stage| stage.get("name") == Some(&"rings".into()));
        let mut options = stage.cloned().unwrap_or_default();
        options.remove("name");
        // The pipeline was created from the same configuration.
        let finder = FinderConfig::deserialize(options).unwrap_or_default();
        Self {
            mm: finder.road_mm,
            time: match finder.time_window {
                0 => f32::INFINITY,
                // It is around the time of one of the hits, which is close to their mean.
                window => f32::from(window),
            },
        }
    }

    /// Of several rings with the hit, its circle is the nearest.
    fn nearest(self, hit: Hit, rings: &[Ring]) -> Option<usize> {
        let pm = usize::from(hit.pm);
        let &[x, y] = POSITIONS.get(pm)?;
        let near = |ring: &Ring| {
            let off = (f32::hypot(x - ring.x, y - ring.y) - ring.r).abs();
            let on_time = (f32::from(hit.fine) - ring.time).abs() <= self.time;
            let on_disk = usize::from(ring.disk) == pm / PMS_PER_DISK;
            (on_disk && on_time && off <= self.mm).then_some(off)
        };
        let rings = rings.iter().enumerate();
        let near = rings.filter_map(|(n, ring)| near(ring).map(|off| (n, off)));
        near.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(n, _)| n)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ring(x: f32, time: f32) -> Ring {
        Ring {
            x,
            r: 120.0,
            time,
            ..Ring::default()
        }
    }

    /// The photomultiplier of disk 0 nearest to a position.
    fn hit(x: f32, y: f32, fine: u16) -> Hit {
        let off = |pm: usize| f32::hypot(POSITIONS[pm][0] - x, POSITIONS[pm][1] - y);
        let pm = (0..PMS_PER_DISK).min_by(|&a, &b| off(a).total_cmp(&off(b)));
        Hit {
            pm: pm.unwrap() as u16,
            fine,
        }
    }

    #[test]
    fn a_hit_belongs_to_the_nearest_ring_of_its_time_and_disk() {
        let roads = Roads::of(&TriggerConfig::default());
        let rings = [ring(-60.0, 100.0), ring(60.0, 100.0), ring(60.0, 200.0)];
        let of = |hit: Hit| roads.nearest(hit, &rings);
        assert_eq!(of(hit(-180.0, 0.0, 104)), Some(0));
        assert_eq!(of(hit(180.0, 0.0, 104)), Some(1));
        assert_eq!(of(hit(180.0, 0.0, 196)), Some(2));
        assert_eq!(of(hit(-180.0, 0.0, 200)), None, "of another time");
        assert_eq!(of(hit(0.0, 0.0, 100)), None, "in the middle");
        let other = hit(-180.0, 0.0, 104);
        let other = Hit {
            pm: other.pm + PMS_PER_DISK as u16,
            ..other
        };
        assert_eq!(of(other), None, "on the other disk");
        // Of two close ones, the nearer one.
        let hit = hit(-180.0, 0.0, 100);
        let at = POSITIONS[usize::from(hit.pm)];
        let through = f32::hypot(at[0] - 60.0, at[1]);
        let circles = [through - 5.0, through + 3.0, through - 4.0];
        let circles = circles.map(|r| Ring {
            r,
            ..ring(60.0, 100.0)
        });
        assert_eq!(roads.nearest(hit, &circles), Some(1));
    }

    #[test]
    fn the_road_is_the_one_that_the_finder_was_told() {
        let text = "[[stage]]\nname = \"rings\"\nroad_mm = 4.5\ntime_window = 0";
        let mut config = TriggerConfig::default();
        let other: toml::Table = toml::from_str(text).unwrap();
        config.stages = vec![other["stage"][0].as_table().unwrap().clone()];
        let roads = Roads::of(&config);
        assert_eq!((roads.mm, roads.time), (4.5, f32::INFINITY));
    }
}
