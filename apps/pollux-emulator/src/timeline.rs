//! When each event of a run happens.
//!
//! Events arrive at equal distances or as a Poisson process. The time of event `n` is a function
//! of the seed and `n`, and the event of a time one of the seed and that time: nothing of a run
//! is stored, and both ends of a link find the same answer in any order.
//!
//! A Poisson process of `n` events is a sum of exponential gaps, and a sum cannot be entered in
//! the middle. It can be halved, though: of a run of 2n gaps with a total T, the share of the
//! first n follows the Beta distribution B(n, n) whatever T is. So the total of the longest run
//! is drawn from its Gamma distribution, and halved until a block of `BLOCK` gaps is left; the
//! gaps of a block are exponential draws, scaled to the block's total (L. Devroye, "Non-Uniform
//! Random Variate Generation", 1986, chapters V.2 and IX.4). This is the process itself, not an
//! approximation: gaps are exponential and independent.
//!
//! A slot of 25 ns holds one event at most: a board's container has one event for each slot. Each
//! gap is one slot, which is dead, and an exponential rest whose mean makes up for it. Other
//! decays of the same slot are the model's pile-up.

use pollux_mempool::time::Ns;
use rand::SeedableRng;
use rand_distr::{Distribution, Exp1, Gamma};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::config::{Arrival, EmulatorConfig, MAX_EVENTS, SLOT_NS, SLOTS_PER_SECOND};
use pollux_na62::physics::model::SlotEdges;

/// Events in a block, whose times are computed together.
const BLOCK: usize = 1 << BLOCK_BITS;
const BLOCK_BITS: u32 = 8;
/// Halvings from all events to a block.
const DEPTH: u32 = MAX_EVENTS.ilog2() - BLOCK_BITS;
/// Blocks that a [`Cursor`] remembers: the events in flight at 100 kHz for 20 ms.
const REMEMBERED: usize = 8;

/// When each event of a run happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    seed: u64,
    arrival: Arrival,
    first: u64,
    spacing: u64,
    events: u64,
    /// Slots of a spill, and those from its end to the next; none where the beam has no spills.
    spill: Option<(u64, u64)>,
    edges: SlotEdges,
}

/// A slot in which an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The spill, from 0.
    pub spill: u64,
    /// Time stamp in slots of 25 ns; it begins again in each spill.
    pub timestamp: u64,
    /// Since the beginning of the run, gaps between spills included.
    pub time: Ns,
}

/// The times of a block of events: in slots with beam since the beginning of the run.
#[derive(Clone, Debug)]
struct Block {
    number: u64,
    slots: [u64; BLOCK],
}

impl Timeline {
    /// The time line of a configuration.
    #[must_use]
    pub fn of(config: &EmulatorConfig) -> Self {
        let slots = |ms: u32| u64::from(ms) * (SLOTS_PER_SECOND / 1000);
        let spill = config.spill;
        Self {
            seed: config.seed,
            arrival: config.arrival,
            first: config.first_timestamp,
            spacing: config.spacing(),
            events: config.event_limit(),
            spill: (spill.length_ms > 0).then(|| (slots(spill.length_ms), slots(spill.gap_ms))),
            edges: config.physics.slot_edges,
        }
    }

    /// Events in a full run.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// When event `n` happens.
    #[must_use]
    pub fn moment(&self, n: u64) -> Moment {
        self.moment_of_slot(self.slot(n))
    }

    /// Time of event `n` in slots of 25 ns.
    #[must_use]
    pub fn timestamp(&self, n: u64) -> u64 {
        self.moment(n).timestamp
    }

    /// When event `n` happens, since the beginning of the run.
    #[must_use]
    pub fn time_of(&self, n: u64) -> Ns {
        self.moment(n).time
    }

    /// The event of a time stamp in the first spill; `None` for a slot without one.
    #[must_use]
    pub fn event_number(&self, timestamp: u64) -> Option<u64> {
        self.event_in_spill(0, timestamp)
    }

    /// The event of a time stamp in a spill; `None` for a slot without one.
    #[must_use]
    pub fn event_in_spill(&self, spill: u64, timestamp: u64) -> Option<u64> {
        self.cursor().event_in_spill(spill, timestamp)
    }

    /// Time stamp of the first slot of the run, and of each spill.
    #[must_use]
    pub fn first_timestamp(&self) -> u64 {
        self.first
    }

    /// Whether events have hits in the slots beside their own.
    #[must_use]
    pub fn edges(&self) -> SlotEdges {
        self.edges
    }

    /// Slots of a spill; `None` where time stamps never begin again.
    #[must_use]
    pub fn spill_slots(&self) -> Option<u64> {
        self.spill.map(|(length, _)| length)
    }

    /// Answers the same questions fast where they are about events near to each other.
    #[must_use]
    pub fn cursor(self) -> Cursor {
        Cursor {
            line: self,
            blocks: std::array::from_fn(|_| None),
        }
    }

    fn moment_of_slot(&self, slot: u64) -> Moment {
        let Some((length, gap)) = self.spill else {
            return Moment {
                spill: 0,
                timestamp: self.first + slot,
                time: Ns(slot * SLOT_NS),
            };
        };
        let spill = slot / length;
        Moment {
            spill,
            timestamp: self.first + slot % length,
            time: Ns((slot + spill * gap) * SLOT_NS),
        }
    }

    /// The slot of a time stamp in a spill, if the spill has it.
    fn slot_of(&self, spill: u64, timestamp: u64) -> Option<u64> {
        let offset = timestamp.checked_sub(self.first)?;
        match self.spill {
            None => (spill == 0).then_some(offset),
            Some((length, _)) if offset < length => spill.checked_mul(length)?.checked_add(offset),
            Some(_) => None,
        }
    }

    /// The slot with beam of event `n`.
    fn slot(&self, n: u64) -> u64 {
        match self.arrival {
            Arrival::Regular => n * self.spacing,
            Arrival::Poisson => self.block(n >> BLOCK_BITS).slots[(n % BLOCK as u64) as usize],
        }
    }

    /// Mean of the part of a gap that is exponential, in slots.
    fn mean(&self) -> f64 {
        (self.spacing - 1) as f64
    }

    /// The generator of node `index` of the level at which a node has `1 << level` events.
    fn node(&self, level: u32, index: u64) -> Xoshiro256PlusPlus {
        let node = (u64::from(level) << 56 | index).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Xoshiro256PlusPlus::seed_from_u64(
            (self.seed ^ 0xA5A5_5A5A_C3C3_3C3C).wrapping_mul(0xD1B5_4A32_D192_ED03) ^ node,
        )
    }

    /// The block that `goes_right` leads to, and the sums of gaps at both of its ends: it is asked,
    /// at each halving, with the number of the first event of the right half and the sum before it.
    fn descend(&self, mut goes_right: impl FnMut(u64, f64) -> bool) -> (u64, [f64; 2]) {
        let mut level = MAX_EVENTS.ilog2();
        let total = gamma(MAX_EVENTS, &mut self.node(level, 0)) * self.mean();
        let (mut index, mut ends) = (0, [0.0, total]);
        for _ in 0..DEPTH {
            level -= 1;
            let mut rng = self.node(level, index);
            let (a, b) = (gamma(1 << level, &mut rng), gamma(1 << level, &mut rng));
            let [start, end] = ends;
            let middle = (start + (end - start) * (a / (a + b))).clamp(start, end);
            let right = 2 * index + 1;
            if goes_right(right << level, middle) {
                (index, ends) = (right, [middle, end]);
            } else {
                (index, ends) = (2 * index, [start, middle]);
            }
        }
        (index, ends)
    }

    /// The times of block `number`.
    fn block(&self, number: u64) -> Block {
        let (_, ends) = self.descend(|right, _| number >= right >> BLOCK_BITS);
        self.fill(number, ends)
    }

    /// The times of the block that has `slot`, or would have it.
    fn block_at(&self, slot: u64) -> Block {
        // The first event of the right half is not before its number of dead slots and the sum.
        let (number, ends) = self.descend(|right, sum| slot >= right + sum as u64);
        self.fill(number, ends)
    }

    fn fill(&self, number: u64, [start, end]: [f64; 2]) -> Block {
        // Levels below that of the block have no other nodes.
        let mut rng = self.node(0, number);
        let (mut sums, mut total) = ([0.0; BLOCK], 0.0);
        for sum in &mut sums {
            let gap: f64 = Exp1.sample(&mut rng);
            total += gap;
            *sum = total;
        }
        let mut slots = [0; BLOCK];
        for ((n, slot), sum) in (number << BLOCK_BITS..).zip(&mut slots).zip(sums) {
            *slot = n + (start + (end - start) * (sum / total)).min(end) as u64;
        }
        Block { number, slots }
    }
}

/// A draw from the Gamma distribution of shape `n` and scale 1: the sum of `n` exponential gaps.
fn gamma(n: u64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    // Shape and scale are positive: there is a distribution.
    Gamma::new(n as f64, 1.0).map_or(n as f64, |gamma| gamma.sample(rng))
}

/// A [`Timeline`] that remembers the blocks of events asked for last. It does not allocate.
#[derive(Clone, Debug)]
pub struct Cursor {
    line: Timeline,
    /// Block b at b modulo [`REMEMBERED`].
    blocks: [Option<Block>; REMEMBERED],
}

impl Cursor {
    /// The time line.
    #[must_use]
    pub fn line(&self) -> Timeline {
        self.line
    }

    /// When event `n` happens.
    pub fn moment(&mut self, n: u64) -> Moment {
        let slot = match self.line.arrival {
            Arrival::Regular => n * self.line.spacing,
            Arrival::Poisson => {
                let number = n >> BLOCK_BITS;
                let line = self.line;
                let place = &mut self.blocks[(number % REMEMBERED as u64) as usize];
                let block = match place {
                    Some(block) if block.number == number => block,
                    _ => place.insert(line.block(number)),
                };
                block.slots[(n % BLOCK as u64) as usize]
            }
        };
        self.line.moment_of_slot(slot)
    }

    /// The event of a time stamp in a spill; `None` for a slot without one.
    pub fn event_in_spill(&mut self, spill: u64, timestamp: u64) -> Option<u64> {
        let line = self.line;
        let slot = line.slot_of(spill, timestamp)?;
        let n = match line.arrival {
            Arrival::Regular => (slot % line.spacing == 0).then_some(slot / line.spacing)?,
            Arrival::Poisson => {
                let block = self.block_with(slot);
                let at = block.slots.binary_search(&slot).ok()?;
                (block.number << BLOCK_BITS) + at as u64
            }
        };
        (n < line.events).then_some(n)
    }

    /// The block that has `slot`, if any has.
    fn block_with(&mut self, slot: u64) -> &Block {
        let has = |block: &Option<Block>| {
            let has = |block: &Block| block.slots[0] <= slot && slot <= block.slots[BLOCK - 1];
            block.as_ref().is_some_and(has)
        };
        let line = self.line;
        let known = self.blocks.iter().position(has);
        let place = if let Some(place) = known {
            &mut self.blocks[place]
        } else {
            let block = line.block_at(slot);
            let place = &mut self.blocks[(block.number % REMEMBERED as u64) as usize];
            *place = Some(block);
            place
        };
        place.get_or_insert_with(|| line.block_at(slot))
    }
}

#[cfg(test)]
mod tests;
