//! The malicious device.

use pollux_mempool::MemoryRegion;
use pollux_pmd::bus::Ids;

use super::choices::Choices;
use crate::fake::{Model, World};

/// Which faults an adversary injects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultModel {
    /// The device writes only the buffers and rings that were posted to it, within their bounds,
    /// and returns false values everywhere else. [`run`](super::run) checks that all other buffers
    /// are unchanged.
    Confined,
    /// The device writes any memory that it can reach, at each access of the driver.
    Free,
    /// As `Free`, and a second thread overwrites the rings at any time. Runs are not reproducible.
    AnyTime,
}

impl FaultModel {
    /// A plan with this fault model and a source of choices.
    #[must_use]
    pub fn by(self, choices: Choices) -> FaultPlan {
        FaultPlan {
            choices,
            fault_model: self,
        }
    }
}

/// The faults of an adversary: a fault model, and the source of its choices.
pub struct FaultPlan {
    /// Source of choices.
    pub choices: Choices,
    /// Bounds of the faults.
    pub fault_model: FaultModel,
}

/// A plan with [`FaultModel::Free`].
impl From<Choices> for FaultPlan {
    fn from(choices: Choices) -> Self {
        FaultModel::Free.by(choices)
    }
}

/// A model that injects faults.
pub struct Adversary<M> {
    /// The wrapped model.
    pub honest: M,
    /// Source of choices.
    pub choices: Choices,
    /// Number of injected faults.
    pub faults: u64,
    pub(super) fault_model: FaultModel,
    pub(super) unplugged: bool,
}

impl<M: Model> Adversary<M> {
    /// Wraps a model.
    pub fn new(honest: M, plan: impl Into<FaultPlan>) -> Self {
        let FaultPlan {
            choices,
            fault_model,
        } = plan.into();
        Self {
            honest,
            choices,
            faults: 0,
            fault_model,
            unplugged: false,
        }
    }

    fn is_confined(&self) -> bool {
        self.fault_model == FaultModel::Confined
    }

    /// Injects at most one fault.
    pub fn act(&mut self, world: &mut World) {
        if self.unplugged {
            return;
        }
        self.faults += 1;
        let confined = self.is_confined();
        let choices = &mut self.choices;
        match choices.below(16) {
            0..5 => {
                self.honest.tick(world);
                self.faults -= 1;
            }
            5..12 | 13 | 14 if confined => self.honest.lie(choices.number()),
            // One or two words, aligned as in a descriptor.
            5..11 => {
                let words = [choices.number(), choices.number()].map(u64::to_le_bytes);
                let len = 8 << choices.below(2);
                if let Some(at) = self.somewhere(world) {
                    world.write(at & !7, &words.as_flattened()[..len]);
                }
            }
            11 => {
                let bytes = choices.number().to_le_bytes();
                let len = choices.below(9);
                if let Some(at) = self.somewhere(world) {
                    world.write(at, &bytes[..len]);
                }
            }
            12 => world.interrupt(choices.below(8) as u16),
            13 | 14 => {
                let (bar, len) = self.window();
                let at = self.choices.below(len / 4) * 4;
                let value = self.choices.number() as u32;
                self.honest.write(world, bar, at, 4, value);
            }
            _ if choices.once_in(64) => self.unplugged = true,
            // After a reset the device writes no memory.
            _ if confined && !choices.once_in(64) => self.faults -= 1,
            _ => self.honest.reset(world),
        }
    }

    /// Overwrites a word of the rings, possibly while the driver reads it. The memory of frames is
    /// excluded, as the user owns some of them at any time.
    pub(super) fn spoil(
        &mut self,
        world: &mut World,
        frames: &MemoryRegion,
        choices: &mut Choices,
    ) {
        let rings = world.reachable_beside(frames);
        let chosen = rings.get(choices.below(rings.len()));
        if let Some(&(start, len)) = chosen.filter(|_| !self.unplugged) {
            let at = start + choices.below(len / 8) as u64 * 8;
            // A random word, or the present one with a bit changed.
            let mask = if choices.below(2) == 0 { 0 } else { u64::MAX };
            let word = match mask {
                0 => choices.number(),
                _ => 1 << choices.below(64),
            };
            world.change(at, mask, word);
            self.faults += 1;
        }
    }

    /// A random address in mapped memory. Rings are small and pools are large, so the region is
    /// chosen first: half of the faults hit descriptors.
    fn somewhere(&mut self, world: &World) -> Option<u64> {
        let reachable = world.reachable();
        let &(start, len) = reachable.get(self.choices.below(reachable.len()))?;
        // Rings begin at the start of their page: the offset is chosen within 64 KiB.
        let steps = len.div_ceil(1 << 16);
        let into = self.choices.below(steps) << 16;
        let into = into + self.choices.below((len - into).min(1 << 16));
        Some(start + into as u64)
    }

    fn window(&mut self) -> (u8, usize) {
        let there = |(bar, len): (u8, usize)| (len > 0).then_some((bar, len));
        let bars: Vec<_> = (0..).zip(self.honest.bars()).filter_map(there).collect();
        let chosen = self.choices.below(bars.len());
        bars.get(chosen).copied().unwrap_or_default()
    }
}

impl<M: Model> Model for Adversary<M> {
    fn ids(&self) -> Ids {
        self.honest.ids()
    }

    fn bars(&self) -> [usize; 6] {
        self.honest.bars()
    }

    fn config(&mut self, at: u16) -> Option<u32> {
        let honest = self.honest.config(at);
        if !self.is_confined() && self.choices.once_in(64) {
            honest.map(|_| self.choices.number() as u32)
        } else {
            honest
        }
    }

    fn set_config(&mut self, at: u16, value: u32) {
        self.honest.set_config(at, value);
    }

    fn is_narrow(&self) -> bool {
        self.honest.is_narrow()
    }

    fn vectors(&self) -> u16 {
        self.honest.vectors()
    }

    fn set_virtual_functions(&mut self, count: u16) -> bool {
        self.honest.set_virtual_functions(count)
    }

    fn read(&mut self, world: &mut World, bar: u8, at: usize, width: usize) -> u32 {
        let mood = self.choices.below(256);
        if (216..248).contains(&mood) {
            self.act(world);
        }
        if self.unplugged {
            return u32::MAX;
        }
        let honest = self.honest.read(world, bar, at, width);
        // Rare for a confined device: a start fails on most false values.
        if mood < 248 || self.is_confined() && !self.choices.once_in(32) {
            return honest;
        }
        self.faults += 1;
        match mood % 4 {
            0 => 0,
            1 => u32::MAX,
            2 => honest ^ 1 << self.choices.below(32),
            _ => self.choices.number() as u32,
        }
    }

    fn write(&mut self, world: &mut World, bar: u8, at: usize, width: usize, value: u32) {
        let mood = self.choices.below(256);
        if (223..255).contains(&mood) {
            self.act(world);
        }
        let is_lost = mood == 255 && !self.is_confined();
        if !self.unplugged && !is_lost {
            self.honest.write(world, bar, at, width, value);
        }
    }

    fn tick(&mut self, world: &mut World) {
        if self.choices.once_in(8) {
            self.act(world);
        }
        if !self.unplugged {
            self.honest.tick(world);
        }
    }

    fn reset(&mut self, world: &mut World) {
        if !self.unplugged {
            self.honest.reset(world);
        }
    }
}
