//! Read MTP: the primitives that detectors send to the L0 trigger processor, into fragments of
//! events.

use pollux_pipelines::StageEnv;
use pollux_pipelines::simd::Simd;
use pollux_pipelines::sink::Output;
use pollux_pipelines::stage::{Batch, Stage};
use pollux_pmd::{Cause, Tally};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::filling::Filling;
use super::sources::Sources;
use crate::formats::hits::EventSink;
use crate::formats::mtp::{Decoded, MtpPacket, SOURCE_RICH};
use crate::l0::{Fragment, Fragments, Frame};

/// In the environment of stages whose fragments have no hits.
pub(super) struct WithoutHits;

/// Options of `read-mtp`: packets of primitives into fragments of events, without hits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReadMtpOptions {
    /// Detector whose boards are the sources, unless `detectors` are listed.
    pub source_id: u8,
    /// Boards of that detector, in the order of the sources; one for each. Left out: 0, 1, 2, ...
    pub boards: Option<Vec<u8>>,
    /// Detectors, in the order of the sources; one for each, whatever its board.
    pub detectors: Option<Vec<u8>>,
    /// Which primitives are taken. Left out: all.
    pub select: Vec<Selection>,
}

/// Primitives of a source that are taken: those that one of its selections holds for. Of a source
/// without one, all are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// The source: its place among the `[[stream]]` tables, from 0.
    pub source: u16,
    /// Bits of the identifier that are compared.
    pub mask: u16,
    /// Their value.
    pub value: u16,
}

impl Default for ReadMtpOptions {
    fn default() -> Self {
        Self {
            source_id: SOURCE_RICH,
            boards: None,
            detectors: None,
            select: Vec::new(),
        }
    }
}

/// Makes a fragment of each primitive that is selected: its source has seen something in its slot of
/// 25 ns. Primitives that follow each other in one slot make one fragment. A fragment has no hits;
/// what a primitive's identifier says beyond the selection, and its fine time, is not handed on.
///
/// A frame that is refused is dropped with its cause. A packet without primitives that are selected
/// is delivered here; the frame of any other is counted by the stage that takes the last of its
/// fragments. Packets have no sequence numbers, so that a lost one shows in its events alone.
pub struct ReadMtp {
    sources: Sources,
    select: Vec<Selection>,
    filling: Filling,
    primitives: Decoded,
    tally: Tally,
    scratch: Box<[u8]>,
}

impl ReadMtp {
    /// Makes the stage.
    ///
    /// # Errors
    /// A list that does not fit the sources, a selection that is wrong, or memory that cannot be
    /// had.
    pub fn new(options: &ReadMtpOptions, env: &mut StageEnv) -> Result<Self, String> {
        let boards = options.boards.as_deref();
        let sources = match options.detectors.as_deref() {
            Some(_) if boards.is_some() => {
                return Err("boards and detectors: one of them, not both".into());
            }
            Some(detectors) => Sources::detectors(detectors, env)?,
            None => Sources::boards(options.source_id, boards, env)?,
        };
        for &Selection {
            source,
            mask,
            value,
        } in &options.select
        {
            if usize::from(source) >= sources.len() {
                return Err(format!(
                    "select: source = {source}: there are {} sources, from 0 on",
                    sources.len()
                ));
            }
            if value & !mask != 0 {
                return Err(format!(
                    "select: value = {value:#06x} has bits that mask = {mask:#06x} does not: no \
                     primitive would be taken"
                ));
            }
        }
        let filling = Filling::new(env)?;
        let tally = Tally::new();
        env.ledger.add("read-mtp", tally.view());
        env.insert(WithoutHits);
        Ok(Self {
            sources,
            select: options.select.clone(),
            filling,
            primitives: Decoded::new(Simd::best()),
            tally,
            scratch: vec![0; usize::from(u16::MAX)].into(),
        })
    }

    /// Makes the fragments of a packet; whether there are any.
    fn read(&mut self, frame: &Frame, out: &mut impl Output<Fragments>) -> Result<bool, Cause> {
        let payload = frame.payload(&mut self.scratch);
        let decoded = MtpPacket::decode(payload, &mut self.primitives);
        let packet = decoded.map_err(|_| Cause::Malformed)?;
        let (detector, board) = (packet.source_id(), packet.sub_id());
        let source = self.sources.find(detector, board, frame.stream)?;
        let primitives = self.primitives.primitives();
        // Slots ascend in a frame: builders would lose a primitive of an earlier one. So a packet
        // across the end of the 32 bits is refused, too.
        if !self.primitives.timestamps().is_sorted() {
            return Err(Cause::Malformed);
        }
        self.sources.count_frame(source);
        self.sources.count_events(source, primitives.len() as u64);
        let filling = self.filling.with_room(primitives.len(), 0, out);
        let filling = filling.ok_or(Cause::NoMbuf)?;
        let before = filling.used();
        let mut filler = filling.filler(&Fragment {
            timestamp: 0,
            source: source as u16,
            ends_frame: false,
            lost: 0,
            reordered: false,
            at: frame.at,
            arrival: frame.mbuf.arrival(),
            hits: &[],
        });
        let select = || {
            let all = self.select.iter();
            all.filter(|selection| usize::from(selection.source) == source)
        };
        let is_all = select().next().is_none();
        let mut last = None;
        for primitive in primitives {
            let holds = |one: &Selection| primitive.id & one.mask == one.value;
            if last != Some(primitive.timestamp) && (is_all || select().any(holds)) {
                filler.event(primitive.timestamp.into(), 0);
                last = Some(primitive.timestamp);
            }
        }
        filling.end_frame(before);
        self.filling.flush_if_enough(out);
        Ok(last.is_some())
    }
}

impl Stage for ReadMtp {
    type In = Frame;
    type Out = Fragments;

    /// What is gathered in one buffer need not be gathered once more.
    const GATHERED: usize = 1;

    /// Leaves the frames in the batch: their buffers go back to the loop's cache.
    fn process(&mut self, batch: &mut Batch<Frame>, out: &mut impl Output<Fragments>) {
        for frame in batch.as_slice() {
            match self.read(frame, out) {
                Ok(true) => {}
                Ok(false) => self.tally.count_delivered(1),
                Err(cause) => {
                    self.sources.stats().count_unreadable(frame.stream.0, cause);
                    self.tally.count_dropped(cause, 1);
                }
            }
        }
        self.filling.flush(out);
    }
}
