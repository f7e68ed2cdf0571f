//! Sizes of the events in the simulation of the roles.

use crate::fragments::Fragments;
use crate::sim::sizes::{Shape, Sizes};

/// Fragments of one size, and a share of events whose fragments are larger by a factor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store {
    pub(super) bytes: u32,
    pub(super) factor: u32,
    /// Share of larger events in 65535ths.
    pub(super) big: u16,
    pub(super) random: Sizes,
}

impl Store {
    pub(super) fn new(bytes: u32, big: f64, factor: u32, seed: u64) -> Self {
        Self {
            bytes,
            factor,
            // The cast saturates.
            big: (big * f64::from(u16::MAX)).round() as u16,
            random: Sizes::new(Shape::Fixed, 1, 1, seed),
        }
    }

    /// Bytes of each fragment of an event.
    pub(super) fn size(&self, event: u64) -> u32 {
        if self.random.pick(event as u32, 0, u16::MAX) < self.big {
            self.bytes * self.factor
        } else {
            self.bytes
        }
    }
}

impl Fragments for Store {
    fn length(&self, event: u64, part: u8) -> Option<u32> {
        (part == 0).then(|| self.size(event))
    }

    fn write(&self, _: u64, _: u8, into: &mut [u8]) {
        into.fill(0);
    }

    fn release(&mut self, _: u64) {}
}
