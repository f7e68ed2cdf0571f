//! What the event of a stack says to the outputs.

use crate::receive::{Image, Stored};

/// What the event of a stack says. Each image of the stack carries it to the outputs, beside its own
/// loss map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackFacts {
    /// Number of the event in the run, from 0.
    pub number: u64,
    /// Images of the stack.
    pub images: u32,
    /// Images of which packets are missing, empty ones too.
    pub incomplete: u32,
    /// Packets that are missing in all of them.
    pub missing: u32,
}

impl StackFacts {
    /// An event without images.
    pub(super) fn of_number(number: u64) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    /// Adds an image.
    pub(super) fn add<P: Stored>(&mut self, image: &Image<P>) {
        self.images += 1;
        if !image.is_complete() {
            self.incomplete += 1;
            self.missing += image.missing_packets() as u32;
        }
    }

    /// The event of a single image.
    pub(super) fn of_image<P: Stored>(number: u64, image: &Image<P>) -> Self {
        let mut facts = Self::of_number(number);
        facts.add(image);
        facts
    }
}
