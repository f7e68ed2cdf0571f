//! Stacks: one event for many images, which one worker processes.
//!
//! "An event is generated per image or per stack of images" (R. Ponsard, "High Throughput, Low Latency
//! Online Image Processing by GPU/FPGA Coprocessors using RDMA Techniques", 2020): the consolidated
//! event says which images there are, and what they lack.

use super::event::StackFacts;
use super::work::Work;
use crate::receive::{Loss, Stored};

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
        self.facts = StackFacts::of_number(number);
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
