//! Rounds of the barrel shifter, and the places in them.

use std::collections::VecDeque;

use crate::topology::MAX_FEEDERS;

/// Where a MEP is in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Which of the two rounds.
    pub(super) round: u8,
    /// Its number in the round.
    pub(super) number: u8,
}

/// What a MEP has to do with rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shift {
    /// Nothing.
    No,
    /// It waits for one.
    Waits,
    /// It is in one.
    In(Place),
}

/// Events for different nodes.
#[derive(Debug)]
pub(super) struct Round {
    /// The MEPs by their places.
    pub(super) meps: Vec<u64>,
    /// MEPs that are still in it.
    pub(super) left: usize,
    pub(super) slot: u8,
    /// Messages of the slot that have not returned.
    pub(super) out: usize,
}

impl Round {
    /// Whether the next slot may begin.
    pub(super) fn is_over(&self, slots: usize) -> bool {
        self.left > 0 && self.out == 0 && usize::from(self.slot) + 1 < slots
    }
}

/// MEPs that wait for a round, and the rounds: one with a barrier between the slots, two without.
#[derive(Debug)]
pub(super) struct Shifter {
    pub(super) waiting: VecDeque<u64>,
    pub(super) rounds: [Round; 2],
    pub(super) next: u8,
}

impl Shifter {
    pub(super) fn new(in_flight: usize) -> Self {
        let round = || Round {
            meps: Vec::with_capacity(MAX_FEEDERS),
            left: 0,
            slot: 0,
            out: 0,
        };
        Self {
            waiting: VecDeque::with_capacity(in_flight),
            rounds: [round(), round()],
            next: 0,
        }
    }
}
