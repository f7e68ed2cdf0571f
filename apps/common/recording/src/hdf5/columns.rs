//! Columns of events, hits and rings.

use hdf5_metno::{Group, Result};
use pollux_na62::rich::find::Ring;

use super::column::{Column, Flush, group};
use super::layout::FINE_NS;

pub(super) struct EventColumns {
    pub(super) timestamp: Column<u64>,
    /// In a run with a number.
    pub(super) burst: Option<Column<u16>>,
    pub(super) sources: Column<u16>,
    pub(super) flags: Column<u8>,
    pub(super) rules: Column<u8>,
    pub(super) rule_set: Column<u16>,
    pub(super) hits: Column<u16>,
    pub(super) rings: Column<u8>,
    pub(super) ring_index: Column<u64>,
    pub(super) hit_index: Column<u64>,
}

pub(super) struct HitColumns {
    pub(super) tube: Column<u16>,
    pub(super) time: Column<f32>,
}

pub(super) struct RingColumns {
    pub(super) disk: Column<u8>,
    pub(super) x: Column<f32>,
    pub(super) y: Column<f32>,
    pub(super) r: Column<f32>,
    pub(super) hits: Column<u16>,
    pub(super) chi2: Column<f32>,
    pub(super) time: Column<f32>,
    pub(super) time_spread: Column<f32>,
}

impl EventColumns {
    pub(super) fn create(entry: &Group, numbered: bool) -> Result<Self> {
        let at = &group(entry, "events", "NXcollection")?;
        Ok(Self {
            timestamp: Column::create(
                at,
                "timestamp",
                "25 ns",
                "Time since the start of the burst",
            )?,
            burst: (numbered)
                .then(|| Column::create(at, "burst", "", "Number of the burst, from 1"))
                .transpose()?,
            sources: Column::create(at, "sources", "", "Bit s: source s contributed")?,
            flags: Column::create(
                at,
                "flags",
                "",
                "Bit 0 accepted, 1 complete, 2 late, 3 kept for monitoring",
            )?,
            rules: Column::create(at, "rules", "", "Bit r: rule r of the set accepted it")?,
            rule_set: Column::create(at, "rule_set", "", "Which set of rules decided")?,
            hits: Column::create(at, "hit_count", "", "Number of hits")?,
            rings: Column::create(at, "ring_count", "", "Number of rings")?,
            hit_index: Column::create(at, "hit_index", "", "The first hit")?,
            ring_index: Column::create(at, "ring_index", "", "The first ring")?,
        })
    }

    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut dyn Flush> {
        let burst = self.burst.as_mut().map(|burst| burst as &mut dyn Flush);
        let all: [&mut dyn Flush; 9] = [
            &mut self.timestamp,
            &mut self.sources,
            &mut self.flags,
            &mut self.rules,
            &mut self.rule_set,
            &mut self.hits,
            &mut self.rings,
            &mut self.hit_index,
            &mut self.ring_index,
        ];
        burst.into_iter().chain(all)
    }
}

impl HitColumns {
    pub(super) fn create(entry: &Group) -> Result<Self> {
        let at = &group(entry, "hits", "NXevent_data")?;
        Ok(Self {
            tube: Column::create(at, "event_id", "", "Photomultiplier")?,
            time: Column::create(
                at,
                "event_time_offset",
                "ns",
                "Time since that of the event",
            )?,
        })
    }

    pub(super) fn all(&mut self) -> [&mut dyn Flush; 2] {
        [&mut self.tube, &mut self.time]
    }
}

impl RingColumns {
    pub(super) fn create(entry: &Group) -> Result<Self> {
        let at = &group(entry, "rings", "NXcollection")?;
        Ok(Self {
            disk: Column::create(at, "disk", "", "0 Jura, 1 Saleve")?,
            x: Column::create(at, "x", "mm", "Centre, from that of the disk")?,
            y: Column::create(at, "y", "mm", "Centre, from that of the disk")?,
            r: Column::create(at, "r", "mm", "Radius")?,
            hits: Column::create(at, "hits", "", "Hits on the ring")?,
            chi2: Column::create(
                at,
                "chi2",
                "mm2",
                "Mean squared distance of those hits from it",
            )?,
            time: Column::create(
                at,
                "time",
                "ns",
                "Mean time of those hits since that of the event",
            )?,
            time_spread: Column::create(
                at,
                "time_spread",
                "ns",
                "Standard deviation of their times",
            )?,
        })
    }

    pub(super) fn push(&mut self, ring: &Ring) {
        self.disk.push(ring.disk);
        self.x.push(ring.x);
        self.y.push(ring.y);
        self.r.push(ring.r);
        self.hits.push(ring.hits);
        self.chi2.push(ring.chi2);
        self.time.push(ring.time * FINE_NS);
        self.time_spread.push(ring.time_spread * FINE_NS);
    }

    pub(super) fn all(&mut self) -> [&mut dyn Flush; 8] {
        [
            &mut self.disk,
            &mut self.x,
            &mut self.y,
            &mut self.r,
            &mut self.hits,
            &mut self.chi2,
            &mut self.time,
            &mut self.time_spread,
        ]
    }
}
