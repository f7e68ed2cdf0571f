//! The assembler as a stage: packets in, frames out.

use std::sync::Arc;

use pollux_pmd::{Cause, Tally};

use super::config::{AssembleConfig, AssembleError};
use super::frame::{AssembleCounts, Frame, FrameReader};
use super::place::{Part, Placer, assembler};
use crate::env::StageEnv;
use crate::sink::Output;
use crate::stage::{Batch, Moment, Stage};

/// How packets of a detector say which part of which frame they are.
pub trait PartFormat {
    /// A packet, as it comes from the port.
    type Packet;

    /// Reads a packet.
    ///
    /// # Errors
    /// The cause for which it is dropped.
    fn part<'a>(&mut self, packet: &'a Self::Packet) -> Result<Part<'a>, Cause>;
}

/// Assembles frames in one loop. A packet is delivered when it is in its frame.
pub struct Assemble<F> {
    format: F,
    placer: Placer,
    reader: FrameReader,
    now: Moment,
    tally: Tally,
}

impl<F: PartFormat> Assemble<F> {
    /// Makes the stage; its place in the ledger is called `name`.
    ///
    /// # Errors
    /// As of [`assembler`].
    pub fn new(
        name: &str,
        format: F,
        config: AssembleConfig,
        env: &mut StageEnv,
    ) -> Result<Self, AssembleError> {
        let (placer, reader) = assembler(config)?;
        let tally = Tally::new();
        env.ledger.add(name, tally.view());
        Ok(Self {
            format,
            placer,
            reader,
            now: Moment(0),
            tally,
        })
    }

    /// What became of the frames.
    #[must_use]
    pub fn counts(&self) -> Arc<AssembleCounts> {
        self.reader.counts()
    }

    fn deliver(&mut self, out: &mut impl Output<Frame>) {
        while let Some(frame) = self.reader.poll(self.now) {
            out.push(frame);
        }
    }
}

impl<F: PartFormat> Stage for Assemble<F> {
    type In = F::Packet;
    type Out = Frame;

    /// A frame is work enough, and a buffer that another frame waits for.
    const GATHERED: usize = 1;

    /// Leaves the packets in the batch: their buffers go back to the loop's cache.
    fn process(&mut self, batch: &mut Batch<F::Packet>, out: &mut impl Output<Frame>) {
        for packet in batch.as_slice() {
            let placed = match self.format.part(packet) {
                Ok(part) => {
                    // What is due is closed before a packet of a later moment comes.
                    if part.at > self.now {
                        self.now = part.at;
                        while let Some(frame) = self.reader.poll(part.at) {
                            out.push(frame);
                        }
                    }
                    self.placer.place(&part)
                }
                Err(cause) => Err(cause),
            };
            match placed {
                Ok(()) => self.tally.count_delivered(1),
                Err(cause) => self.tally.count_dropped(cause, 1),
            }
        }
        self.deliver(out);
    }

    fn tick(&mut self, now: Moment, out: &mut impl Output<Frame>) {
        self.now = self.now.max(now);
        self.deliver(out);
    }

    fn finish(&mut self, out: &mut impl Output<Frame>) {
        self.reader.close_all();
        self.deliver(out);
    }
}
