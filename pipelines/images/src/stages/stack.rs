//! Stacks: one event for many images, which one worker processes.
//!
//! "An event is generated per image or per stack of images" (R. Ponsard, "High Throughput, Low Latency
//! Online Image Processing by GPU/FPGA Coprocessors using RDMA Techniques", 2020): the consolidated
//! event says which images there are, and what they lack.

use super::work::Work;
use crate::receive::{Image, Loss, Stored};

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
    fn add<P: Stored>(&mut self, image: &Image<P>) {
        self.images += 1;
        if !image.is_complete() {
            self.incomplete += 1;
            self.missing += image.missing_packets() as u32;
        }
    }

    /// The event of a single image.
    pub(super) fn of_image<P: Stored>(number: u64, image: &Image<P>) -> Self {
        let mut facts = Self {
            number,
            ..Self::default()
        };
        facts.add(image);
        facts
    }
}

/// The event of a stack, with its images. Its list is filled again with the next stack.
#[derive(Debug)]
pub struct Stack<P> {
    facts: StackFacts,
    /// The images, in the order of their numbers. A worker takes them out, and puts them back when they
    /// are processed.
    pub images: Vec<Work<P>>,
}

impl<P: Stored> Stack<P> {
    /// An event without images, with room for so many.
    #[must_use]
    pub fn with_capacity(images: usize) -> Self {
        Self {
            facts: StackFacts::default(),
            images: Vec::with_capacity(images),
        }
    }

    /// Makes the event of this number of these images.
    pub fn fill(&mut self, number: u64, images: impl Iterator<Item = Work<P>>) {
        self.facts = StackFacts {
            number,
            ..StackFacts::default()
        };
        self.images.clear();
        for work in images {
            self.facts.add(&work.image);
            self.images.push(work);
        }
        for work in &mut self.images {
            work.stack = self.facts;
        }
    }

    /// What the event says.
    #[must_use]
    pub fn facts(&self) -> &StackFacts {
        &self.facts
    }

    /// The loss map: what each image lacks, with the place of the image in the stack.
    pub fn losses(&self) -> impl Iterator<Item = (usize, Loss)> + '_ {
        let images = self.images.iter().enumerate();
        images.flat_map(|(n, work)| work.image.losses().map(move |loss| (n, loss)))
    }
}
