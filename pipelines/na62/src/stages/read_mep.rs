//! Read MEP: the multi-event packets in which boards send triggered events to the farm.

use pollux_pipelines::StageEnv;
use pollux_pipelines::sink::Output;
use pollux_pipelines::stage::{Batch, Stage};
use pollux_pmd::{Cause, Tally};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sources::Sources;
use crate::formats::mep::MepPacket;
use crate::formats::mtp::SOURCE_RICH;
use crate::l0::{Frame, MAX_SOURCES};

/// Options of `read-mep`: multi-event packets, checked, for a stage that reads the data in them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReadMepOptions {
    /// Detector whose packets are taken.
    pub source_id: u8,
    /// Boards of that detector, in the order of the sources; one for each. Left out: 0, 1, 2, ...
    pub boards: Option<Vec<u8>>,
}

impl Default for ReadMepOptions {
    fn default() -> Self {
        Self {
            source_id: SOURCE_RICH,
            boards: None,
        }
    }
}

/// A frame with a sound multi-event packet of a source.
#[derive(Debug)]
pub struct MepFrame {
    frame: Frame,
    source: u16,
    lost: u16,
    reordered: bool,
}

impl MepFrame {
    /// The frame that the packet came in.
    #[must_use]
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Index of the source in the configured list.
    #[must_use]
    pub fn source(&self) -> u16 {
        self.source
    }

    /// Packets of the source that event numbers say are missing before this one; saturates.
    #[must_use]
    pub fn lost(&self) -> u16 {
        self.lost
    }

    /// The packet was counted as missing before it came.
    #[must_use]
    pub fn is_reordered(&self) -> bool {
        self.reordered
    }

    /// The packet; its bytes are copied into `scratch` first if they span segments.
    ///
    /// # Errors
    /// `scratch` is shorter than the packet.
    pub fn packet<'a>(&'a self, scratch: &'a mut [u8]) -> Result<MepPacket<'a>, Cause> {
        MepPacket::parse(self.frame.payload(scratch)).map_err(|_| Cause::Malformed)
    }
}

/// Checks each frame's packet down to the headers of its fragments, and follows the event numbers of
/// its source. Source s has stream s: a packet of a board on the port of another is dropped.
///
/// Packets have no number of their own: that of their first event, over the most events that a
/// packet of the source has had, takes its place. Boards put the same number of events into each
/// packet of a burst, but for the last one.
///
/// A frame that is refused is dropped with its cause; a packet without events is delivered here. Any
/// other frame goes on, and is counted where it ends.
pub struct ReadMep {
    sources: Sources,
    /// Most events of a packet of each source.
    most_events: [u8; MAX_SOURCES],
    tally: Tally,
    scratch: Box<[u8]>,
}

impl ReadMep {
    /// Makes the stage.
    ///
    /// # Errors
    /// A list of boards that is not as long as the list of sources, or names one twice.
    pub fn new(options: &ReadMepOptions, env: &mut StageEnv) -> Result<Self, String> {
        let sources = Sources::boards(options.source_id, options.boards.as_deref(), env)?;
        let tally = Tally::new();
        env.ledger.add("read-mep", tally.view());
        Ok(Self {
            sources,
            most_events: [0; MAX_SOURCES],
            tally,
            scratch: vec![0; usize::from(u16::MAX)].into(),
        })
    }

    /// Checks a frame; `None` if its packet is sound and has no events.
    fn read(&mut self, frame: &Frame) -> Result<Option<Admitted>, Cause> {
        let payload = frame.payload(&mut self.scratch);
        let packet = MepPacket::parse(payload).map_err(|_| Cause::Malformed)?;
        let (detector, board) = (packet.source_id(), packet.sub_id());
        let source = self.sources.find(detector, board, frame.stream)?;
        self.sources.count_frame(source);
        let Some(first) = packet.fragments().next() else {
            return Ok(None);
        };
        let most = &mut self.most_events[source % MAX_SOURCES];
        *most = (*most).max(packet.event_count());
        let sequence = first.event.div_ceil(u32::from(*most));
        let order = self
            .sources
            .follow(source, sequence, first.timestamp.into())?;
        self.sources
            .count_events(source, packet.event_count().into());
        Ok(Some(Admitted {
            source: source as u16,
            lost: order.lost,
            reordered: order.reordered,
        }))
    }
}

/// What is known of a sound packet.
struct Admitted {
    source: u16,
    lost: u16,
    reordered: bool,
}

impl Stage for ReadMep {
    type In = Frame;
    type Out = MepFrame;

    fn process(&mut self, batch: &mut Batch<Frame>, out: &mut impl Output<MepFrame>) {
        for frame in batch.drain() {
            match self.read(&frame) {
                Ok(Some(admitted)) => out.push(MepFrame {
                    frame,
                    source: admitted.source,
                    lost: admitted.lost,
                    reordered: admitted.reordered,
                }),
                Ok(None) => self.tally.count_delivered(1),
                Err(cause) => {
                    self.sources.stats().count_unreadable(frame.stream.0, cause);
                    self.tally.count_dropped(cause, 1);
                }
            }
        }
    }

    fn finish(&mut self, _out: &mut impl Output<MepFrame>) {
        self.sources.show_all();
    }
}
