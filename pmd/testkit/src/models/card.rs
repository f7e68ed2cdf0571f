//! The card in software as a device of the tests: what it does is in `hw/model`.

pub mod trial;

use pollux_card_model::{Host, ReadError, SimulatedCard, SoftCard};
use pollux_pmd::bus::Ids;

use crate::fake::{Model, World};

/// The card.
pub struct Card(pub SoftCard);

impl Card {
    /// A card after power-up.
    #[must_use]
    pub fn new() -> Self {
        let mut card = Self(SoftCard::new());
        card.connect(&mut World::default());
        card
    }

    /// Whether it may master the bus, the world knows, and refuses what may not be.
    fn connect(&mut self, world: &mut World) {
        self.0.set_bus_master(&mut Outside(world), true);
        self.0.set_msix(&mut Outside(world), u16::MAX);
    }

    /// Has time in the card's world go on with that outside it.
    pub fn follow(&mut self, world: &mut World) {
        let late = (world.now * 1000).saturating_sub(self.0.now());
        self.0.advance(&mut Outside(world), late);
    }
}

/// The world, as a card sees it.
pub struct Outside<'a>(pub &'a mut World);

impl Host for Outside<'_> {
    fn read(&mut self, _: u8, at: u64, out: &mut [u8]) -> Result<(), ReadError> {
        let is_there = self.0.read(at, out);
        is_there.then_some(()).ok_or(ReadError::Unsupported)
    }

    fn write(&mut self, _: u8, at: u64, bytes: &[u8]) {
        self.0.write(at, bytes);
    }

    fn interrupt(&mut self, _: u8, vector: u16) {
        self.0.interrupt(vector);
    }
}

impl Model for Card {
    fn ids(&self) -> Ids {
        Ids {
            vendor: pollux_pmd::drivers::card::VENDOR,
            device: pollux_pmd::drivers::card::DEVICE,
            ..Ids::default()
        }
    }

    fn bars(&self) -> [usize; 6] {
        [128 << 10, 0, 4 << 10, 0, 0, 0]
    }

    fn vectors(&self) -> u16 {
        8
    }

    fn read(&mut self, world: &mut World, bar: u8, at: usize, width: usize) -> u32 {
        self.follow(world);
        self.0.read(&mut Outside(world), bar, at, width)
    }

    fn write(&mut self, world: &mut World, bar: u8, at: usize, width: usize, value: u32) {
        self.follow(world);
        self.0.write(&mut Outside(world), bar, at, width, value);
    }

    fn tick(&mut self, world: &mut World) {
        self.follow(world);
    }

    fn reset(&mut self, world: &mut World) {
        self.0.reset(&mut Outside(world));
        self.connect(world);
    }
}
