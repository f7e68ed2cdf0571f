//! Read TEL62: the TDC data in multi-event packets into fragments of events.

use std::sync::Arc;

use pollux_pipelines::StageEnv;
use pollux_pipelines::simd::Simd;
use pollux_pipelines::sink::Output;
use pollux_pipelines::stage::{Batch, Stage};
use pollux_pmd::{Cause, Count, Tally};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::filling::Filling;
use super::read_mep::MepFrame;
use crate::formats::hits::MAX_HITS;
use crate::formats::mep;
use crate::formats::tel62::{Decoded, Edge, Tel62};
use crate::l0::{Fragment, Fragments, L0Stats, stats};
use crate::rich::Hit;
use crate::rich::geometry::{PMS, board_of};

/// TDC channels of a board: four FPGAs, each with four TDC chips of 32 channels.
const CHANNELS: u16 = 512;

/// Most slots on either side of an event of which hits may be taken.
const MAX_AROUND: u16 = 64;

/// Options of `read-tel62`: TDC data of multi-event packets into fragments of events.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReadTel62Options {
    /// Photomultiplier of channel 0 of each source; those of the channels behind it follow, up to
    /// the first one of another source. Left out: equal parts of all photomultipliers.
    #[schemars(inner(range(max = 1951)))]
    pub first_pm: Option<Vec<u16>>,
    /// Slots before an event's own, and behind it, of which hits are taken as well, each slot as a
    /// fragment of its own: for `merge`, which builds events by the hits' own times. For `build`: 0.
    #[schemars(range(max = MAX_AROUND), extend("x-unit" = "slots of 25 ns"))]
    pub slots_around: u16,
}

/// Makes a fragment of each event in a packet: the leading edges that lie in the event's slot, as
/// hits. Of several edges of a channel in a slot the first is taken. A special trigger is an event
/// without hits.
///
/// The data of all events of a packet are checked before the first fragment is made: a packet with
/// malformed data is dropped whole. The frame of any other is counted by the stage that takes the
/// last of its fragments.
pub struct ReadTel62 {
    cables: Cables,
    around: i32,
    stats: Arc<L0Stats>,
    unconnected: Arc<Count>,
    outside: Arc<Count>,
    filling: Filling,
    edges: Decoded,
    /// Hits of one event, and the slots that they lie in, counted from the event's own.
    hits: Vec<(i32, Hit)>,
    tally: Tally,
    scratch: Box<[u8]>,
}

/// Which photomultipliers the channels of each source read.
struct Cables(Vec<std::ops::Range<u16>>);

impl Cables {
    /// From the photomultipliers that channel 0 of each source reads.
    fn new(first_pm: Option<&[u16]>, sources: usize) -> Result<Self, String> {
        let equal = || {
            let boards = sources as u8;
            (0..boards).map(move |board| {
                let is_of_board = |&pm: &u16| board_of(pm, boards) == board;
                (0..PMS as u16).find(is_of_board).unwrap_or(0)
            })
        };
        let first = first_pm.map_or_else(|| equal().collect(), <[u16]>::to_vec);
        if first.len() != sources {
            return Err(format!(
                "first_pm: {} numbers for {sources} sources: one each",
                first.len()
            ));
        }
        for (place, &pm) in first.iter().enumerate() {
            if usize::from(pm) >= PMS || first[..place].contains(&pm) {
                return Err(format!(
                    "first_pm: {pm}: the numbers must differ, and be below {PMS}"
                ));
            }
        }
        let range = |&from: &u16| {
            let next = first.iter().copied().filter(|&other| other > from).min();
            let most = from.saturating_add(CHANNELS).min(PMS as u16);
            from..next.unwrap_or(most).min(most)
        };
        Ok(Self(first.iter().map(range).collect()))
    }

    /// The photomultiplier that an edge is of; `None` if no cable leads to its channel.
    #[inline]
    fn pm(&self, source: usize, edge: &Edge) -> Option<u16> {
        let channel =
            u16::from(edge.fpga) << 7 | u16::from(edge.tdc) << 5 | u16::from(edge.channel);
        let range = self.0.get(source)?;
        let pm = range.start.checked_add(channel)?;
        range.contains(&pm).then_some(pm)
    }
}

impl ReadTel62 {
    /// Makes the stage.
    ///
    /// # Errors
    /// A list of photomultipliers that does not fit the sources, too many slots, or memory that
    /// cannot be had.
    pub fn new(options: &ReadTel62Options, env: &mut StageEnv) -> Result<Self, String> {
        let stats = stats(env)?;
        let cables = Cables::new(options.first_pm.as_deref(), stats.sources.len())?;
        if options.slots_around > MAX_AROUND {
            return Err(format!(
                "slots_around = {}: it must be 0 to {MAX_AROUND}",
                options.slots_around
            ));
        }
        let tally = Tally::new();
        env.ledger.add("read-tel62", tally.view());
        let mut count = |name, help| env.metrics.counter("read-tel62", name, "edges", help);
        let help = "Leading edges of channels without a photomultiplier";
        let unconnected = count("unconnected", help)?;
        let help = "Leading edges outside of the slots of their events";
        let outside = count("outside", help)?;
        let edges = usize::from(u16::MAX) / 4;
        Ok(Self {
            cables,
            around: options.slots_around.into(),
            stats,
            unconnected,
            outside,
            filling: Filling::new(env)?,
            edges: Decoded::new(Simd::best()),
            hits: Vec::with_capacity(edges),
            tally,
            scratch: vec![0; usize::from(u16::MAX)].into(),
        })
    }

    /// Makes the fragments of a packet.
    fn read(&mut self, mep: &MepFrame, out: &mut impl Output<Fragments>) -> Result<(), Cause> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let read = mep
            .packet(&mut scratch)
            .and_then(|packet| self.expand(mep, packet.fragments(), out));
        self.scratch = scratch;
        read
    }

    fn expand(
        &mut self,
        mep: &MepFrame,
        events: mep::Fragments,
        out: &mut impl Output<Fragments>,
    ) -> Result<(), Cause> {
        // Slots ascend in a frame: a later event of an earlier slot, or of the same one, could not be
        // told from hits that are lost. So a packet across the end of the 32 bits is refused, too.
        let mut last = None;
        for event in events.clone() {
            Tel62::parse(event.payload).map_err(|_| Cause::Malformed)?;
            if last.replace(event.timestamp) >= Some(event.timestamp) {
                return Err(Cause::Malformed);
            }
        }
        let mut like = Fragment {
            timestamp: 0,
            source: mep.source(),
            ends_frame: false,
            lost: mep.lost(),
            reordered: mep.is_reordered(),
            at: mep.frame().at,
            arrival: mep.frame().mbuf.arrival(),
            hits: &[],
        };
        let mut fragments = 0_u64;
        // The slot behind the last one that was taken: time stamps ascend in a frame, and where the
        // slots around two events overlap, a hit is in one fragment.
        let mut next = 0;
        for event in events {
            self.collect(mep.source().into(), &event);
            let own = u64::from(event.timestamp);
            let mut hits = &self.hits[..];
            let mut chunk = [Hit::default(); MAX_HITS];
            for offset in -self.around..=self.around {
                let count = hits.iter().take_while(|(slot, _)| *slot == offset).count();
                let (here, rest) = hits.split_at(count);
                hits = rest;
                let Some(timestamp) = own.checked_add_signed(offset.into()) else {
                    continue;
                };
                // The event's own slot says that the source has come to it.
                if timestamp < next || offset != 0 && here.is_empty() {
                    continue;
                }
                if count > MAX_HITS {
                    self.stats.events.overfull.add(1);
                }
                let taken = count.min(MAX_HITS);
                for (place, (_, hit)) in chunk.iter_mut().zip(here) {
                    *place = *hit;
                }
                let fragment = Fragment {
                    timestamp,
                    hits: &chunk[..taken],
                    ..like
                };
                let filling = self.filling.with_room(1, taken, out);
                if !filling.is_some_and(|filling| filling.push(&fragment)) {
                    return self.end_early(like.source, fragments);
                }
                fragments += 1;
                next = timestamp + 1;
                (like.lost, like.reordered) = (0, false);
            }
        }
        if let Some(filling) = self.filling.current() {
            filling.end_frame(0);
        }
        self.filling.flush_if_enough(out);
        Ok(())
    }

    /// Finds the hits of an event, in the order of their slots and photomultipliers.
    fn collect(&mut self, source: usize, event: &mep::Fragment) {
        self.hits.clear();
        // It was checked above.
        let _ = Tel62::decode(event.payload, event.timestamp, &mut self.edges);
        for edge in self.edges.edges().filter(|edge| edge.leading) {
            let slot = (edge.time >> 8) as u32;
            let offset = slot.wrapping_sub(event.timestamp) as i32;
            let Some(pm) = self.cables.pm(source, &edge) else {
                self.unconnected.add(1);
                continue;
            };
            if (-self.around..=self.around).contains(&offset) {
                let fine = u16::from(edge.time as u8);
                self.hits.push((offset, Hit { pm, fine }));
            } else {
                self.outside.add(1);
            }
        }
        self.hits
            .sort_unstable_by_key(|&(slot, hit)| (slot, hit.pm, hit.fine));
        self.hits.dedup_by_key(|&mut (slot, hit)| (slot, hit.pm));
    }

    /// There is no buffer: the frame ends with the fragments that it has, or is dropped if it has
    /// none.
    #[cold]
    fn end_early(&mut self, source: u16, fragments: u64) -> Result<(), Cause> {
        if fragments == 0 {
            return Err(Cause::NoMbuf);
        }
        self.stats.count_unbuffered(source.into(), 1);
        if let Some(filling) = self.filling.current() {
            filling.end_frame(0);
        }
        Ok(())
    }
}

impl Stage for ReadTel62 {
    type In = MepFrame;
    type Out = Fragments;

    /// What is gathered in one buffer need not be gathered once more.
    const GATHERED: usize = 1;

    fn process(&mut self, batch: &mut Batch<MepFrame>, out: &mut impl Output<Fragments>) {
        for mep in batch.as_slice() {
            if let Err(cause) = self.read(mep, out) {
                self.stats.count_unreadable(mep.source(), cause);
                self.tally.count_dropped(cause, 1);
            }
        }
        self.filling.flush(out);
    }
}
