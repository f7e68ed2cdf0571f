//! Cards in their state after power-on, with what is at their wires.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use pollux_card_model::{Host, ReadError};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::clocks::Clocks;
use super::lanes::{Lanes, Wires};
use super::model::Model;
use super::pulses::Pulses;
use super::{TRACE, VerilatedCard};
use crate::pcie::{Behaviour, RootPort};
use crate::pins::{NetIn, PORTS};

/// Longest time in which a PCS finds the boundary of blocks.
const LOCK_PS: u64 = 200_000_000;

impl VerilatedCard {
    /// A card that has just been reset. The seed decides the contents of its memory, the phase of its
    /// clocks, and the host's decisions within its behaviour.
    #[must_use]
    pub fn new(seed: u64, behaviour: Behaviour) -> Self {
        let mut card = Self::make(seed, behaviour, Wires::Xgmii);
        card.pulse_reset(&mut Nowhere);
        card
    }

    /// The same with wires of some kind; the PCS of each port has found its partner's blocks.
    #[must_use]
    pub fn wired(seed: u64, behaviour: Behaviour, wires: Wires) -> Self {
        let mut card = Self::make(seed, behaviour, wires);
        card.pulse_reset(&mut Nowhere);
        let end = card.now + LOCK_PS;
        while card.now < end && card.lanes.as_ref().is_some_and(|lanes| !lanes.are_locked()) {
            card.step(&mut Nowhere);
        }
        card
    }

    /// A card before the transceivers' PLL is locked: its ports have no clock, and are in reset.
    #[must_use]
    pub fn unlocked(seed: u64, behaviour: Behaviour) -> Self {
        let mut card = Self::make(seed, behaviour, Wires::Xgmii);
        card.run_net(false);
        card.pulse_reset(&mut Nowhere);
        card.hold_net(true);
        card
    }

    fn make(seed: u64, behaviour: Behaviour, wires: Wires) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut card = Self {
            model: Model::new(rng.random()),
            clocks: Clocks::new(rng.random()),
            now: 0,
            port: RootPort::new(rng.random(), behaviour),
            net: NetIn::default(),
            senders: Default::default(),
            receivers: Default::default(),
            held: VecDeque::new(),
            pulses: Pulses::default(),
            core_cycles: 0,
            watch: None,
            lanes: None,
            stops_at: None,
            function: 0,
        };
        match wires {
            Wires::Xgmii => {}
            Wires::Pcs { ppm, direct } => {
                card.lanes = Some(Lanes::new(rng.random(), false, direct));
                for (port, ppm) in ppm.into_iter().enumerate() {
                    card.clocks.add_far(port, ppm, rng.random_range(0..6_400));
                }
            }
            Wires::Cable => {
                card.lanes = Some(Lanes::new(rng.random(), true, true));
                (0..PORTS).for_each(|port| card.clocks.add_far(port, 0, 3_200));
            }
        }
        if let Some(file) = trace_file()
            && let Err(error) = card.trace(&file)
        {
            eprintln!("{TRACE}: {error}");
        }
        card
    }
}

/// A host without memory.
struct Nowhere;

impl Host for Nowhere {
    fn read(&mut self, _: u8, _: u64, _: &mut [u8]) -> Result<(), ReadError> {
        Err(ReadError::Unsupported)
    }

    fn write(&mut self, _: u8, _: u64, _: &[u8]) {}

    fn interrupt(&mut self, _: u8, _: u16) {}
}

/// The file that [`TRACE`] names, for the first caller.
fn trace_file() -> Option<PathBuf> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let file = std::env::var_os(TRACE)?;
    (!TAKEN.swap(true, Ordering::Relaxed)).then(|| file.into())
}
