//! The device that is not to be trusted.

use pollux_mempool::MemoryRegion;
use pollux_pmd::bus::Ids;

use super::choices::Choices;
use crate::fake::{Model, World};

/// How far an adversary goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It writes the buffers and rings that it was told of, as it was told, and lies about all
    /// else: whose buffers it was not given finds them as they were, as [`run`](super::run) checks.
    Confined,
    /// It writes all that it reaches, whenever the driver looks at it.
    Free,
    /// And its rings at any other time too, from a thread of its own. No two runs are the same.
    AnyTime,
}

impl Manner {
    /// Of an adversary that decides by these.
    #[must_use]
    pub fn by(self, choices: Choices) -> Will {
        let manner = self;
        Will { choices, manner }
    }
}

/// What an adversary does, and how far it goes.
pub struct Will {
    /// What it decides by.
    pub choices: Choices,
    /// How far it goes.
    pub manner: Manner,
}

/// A free one.
impl From<Choices> for Will {
    fn from(choices: Choices) -> Self {
        Manner::Free.by(choices)
    }
}

/// A model, and a will of its own.
pub struct Adversary<M> {
    /// The device that it would be.
    pub honest: M,
    /// What it decides by.
    pub choices: Choices,
    /// Acts that were meant to do harm.
    pub deeds: u64,
    pub(super) manner: Manner,
    pub(super) unplugged: bool,
}

impl<M: Model> Adversary<M> {
    /// A device that is not to be trusted.
    pub fn new(honest: M, will: impl Into<Will>) -> Self {
        let Will { choices, manner } = will.into();
        Self {
            honest,
            choices,
            deeds: 0,
            manner,
            unplugged: false,
        }
    }

    fn is_confined(&self) -> bool {
        self.manner == Manner::Confined
    }

    /// Does some harm, or none.
    pub fn act(&mut self, world: &mut World) {
        if self.unplugged {
            return;
        }
        self.deeds += 1;
        let confined = self.is_confined();
        let choices = &mut self.choices;
        match choices.below(16) {
            0..5 => {
                self.honest.tick(world);
                self.deeds -= 1;
            }
            5..12 | 13 | 14 if confined => self.honest.lie(choices.number()),
            // A word or two somewhere, as a descriptor has them.
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
            // Upon which it writes nothing any more.
            _ if confined && !choices.once_in(64) => self.deeds -= 1,
            _ => self.honest.reset(world),
        }
    }

    /// Writes over a word of its rings, which its driver may look at in the same moment: memory that
    /// it reaches, but for that of frames, some of which are the user's at any time.
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
            // A word as there may be one, or nearly what is there.
            let mask = if choices.below(2) == 0 { 0 } else { u64::MAX };
            let word = match mask {
                0 => choices.number(),
                _ => 1 << choices.below(64),
            };
            world.change(at, mask, word);
            self.deeds += 1;
        }
    }

    /// An address in mapped memory. Rings are small and pools are large, so the region is chosen
    /// first: every other harm is done to descriptors.
    fn somewhere(&mut self, world: &World) -> Option<u64> {
        let reachable = world.reachable();
        let &(start, len) = reachable.get(self.choices.below(reachable.len()))?;
        // Rings begin at the front of their page; a byte is one of 65536 at most.
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
        // Most ports that are lied to are never started.
        if mood < 248 || self.is_confined() && !self.choices.once_in(32) {
            return honest;
        }
        self.deeds += 1;
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
