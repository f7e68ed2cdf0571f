//! The PCS of each port, as a board has it beside the card, and what is at the far end of its line: the PCS of
//! a partner with a clock of its own, or the other port of a pair.

use super::lane::{Lane, LaneIn, LaneOut, Line};
use super::wire::Word;
use crate::pins::{NetIn, NetOut, PORTS};

/// Cycles from a word at XGMII of a partner to its block at the port: two in its PCS, and one that it is there.
const FAR_CYCLES: u64 = 3;
/// A cycle of the ports, in picoseconds; that of a partner is the same to a part in 5000.
const CYCLE_PS: u64 = 6_400;

/// What is between the MACs of a card and its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wires {
    /// Nothing: XGMII.
    Xgmii,
    /// The PCS of each port, and a partner whose clock is faster by some parts per million.
    Pcs {
        /// Of each port's partner.
        ppm: [i64; PORTS],
        /// Nothing waits on the line, and blocks begin where they are expected; else anywhere.
        direct: bool,
    },
    /// The PCS of each port; those of a pair hear each other, with a received clock half a cycle apart.
    Cable,
}

/// Totals of a port's PCS since it was made, each as its register counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PcsState {
    /// The boundary of blocks is known, and words arrive.
    pub block_lock: bool,
    /// Blocks received with an invalid header.
    pub ber: u64,
    /// Blocks that became errors.
    pub errored_blocks: u64,
    /// Wrong bits of the test pattern.
    pub prbs31_errors: u64,
    /// Columns that the elastic buffer deleted.
    pub deleted: u64,
    /// Words that it inserted.
    pub inserted: u64,
    /// Words that it lost.
    pub overflow: u64,
    /// Times that it was empty.
    pub underflow: u64,
    /// Words that were sent as errors.
    pub tx_errors: u64,
}

impl PcsState {
    /// Adds what was counted in a cycle: the fields of `inc_pcs`, from the lowest on.
    fn add(&mut self, mut inc: u32) {
        let counts = [
            (&mut self.ber, 2),
            (&mut self.errored_blocks, 2),
            (&mut self.prbs31_errors, 8),
            (&mut self.deleted, 2),
            (&mut self.inserted, 1),
            (&mut self.overflow, 2),
            (&mut self.underflow, 1),
            (&mut self.tx_errors, 1),
        ];
        for (count, bits) in counts {
            *count += u64::from(inc & ((1 << bits) - 1));
            inc >>= bits;
        }
    }
}

/// One end of a line: its lane, and the line to it.
struct End {
    lane: Lane,
    pins: LaneIn,
    line: Line,
}

impl End {
    fn new(seed: u64, line: Line) -> Self {
        let (lane, pins) = (Lane::new(seed), LaneIn::default());
        Self { lane, pins, line }
    }

    /// An edge of the received clock brings a block of the other end.
    fn arrive(&mut self, now: u64, from: &LaneOut) {
        let slip = self.lane.out().slip != 0;
        self.lane.set_clk_rx(true);
        self.lane.eval(now);
        let block = (from.tx_header, from.tx_data);
        (self.pins.rx_header, self.pins.rx_data) = self.line.pass(block, slip);
        self.lane.drive(&self.pins);
    }

    /// An edge of its own clock takes a word.
    fn send(&mut self, now: u64, (data, control): Word) {
        self.lane.set_clk_net(true);
        self.lane.eval(now);
        (self.pins.txd, self.pins.txc) = (data, control);
        self.lane.drive(&self.pins);
    }
}

/// The lanes of all ports.
pub(super) struct Lanes {
    near: Vec<End>,
    far: Vec<End>,
    /// Ports of a pair hear each other.
    cable: bool,
    counts: [PcsState; PORTS],
}

impl Lanes {
    /// Lines on which nothing waits, and blocks begin where they are expected: for latencies. Others have a
    /// delay, and begin anywhere.
    pub(super) fn new(seed: u64, cable: bool, direct: bool) -> Self {
        let line = |n: u64| {
            if direct {
                Line::default()
            } else {
                Line::new(3, (seed >> n) as u32)
            }
        };
        let end = |n: u64| End::new(seed.wrapping_add(n), line(n));
        Self {
            near: (0..PORTS as u64).map(end).collect(),
            far: (0..PORTS as u64).map(|n| end(n + 8)).collect(),
            cable,
            counts: [PcsState::default(); PORTS],
        }
    }

    /// Resets the ports, or both ends.
    pub(super) fn set_reset(&mut self, reset: bool, both: bool) {
        let far = self.far.iter_mut().filter(|_| both);
        for end in self.near.iter_mut().chain(far) {
            end.pins.reset = reset.into();
            end.lane.drive(&end.pins);
        }
    }

    /// An edge of the ports' clock, before which the card sent these words; returns those for it.
    pub(super) fn net_edge(&mut self, now: u64, seen: &NetOut, pins: &mut NetIn) {
        for (port, (near, far)) in self.near.iter_mut().zip(&mut self.far).enumerate() {
            let before = near.lane.out();
            if pins.reset == 0 {
                self.counts[port].add(before.inc);
            }
            near.pins.prbs31_tx = seen.prbs31_tx >> port & 1;
            near.pins.prbs31_rx = seen.prbs31_rx >> port & 1;
            (pins.pcs_status[port], pins.pcs_inc[port]) = (before.status, before.inc);
            near.send(now, (seen.data[port], seen.control[port]));
            far.arrive(now, &before);
            (pins.data[port], pins.control[port]) = (before.rxd, before.rxc);
        }
    }

    /// An edge of the clock at a far end, where a word is sent; returns the one that arrives there.
    pub(super) fn far_edge(&mut self, now: u64, port: usize, word: Word) -> Word {
        let before = self.far[port].lane.out();
        self.far[port].send(now, word);
        let from = if self.cable {
            self.near[port ^ 1].lane.out()
        } else {
            before
        };
        self.near[port].arrive(now, &from);
        (before.rxd, before.rxc)
    }

    /// The falling edges.
    pub(super) fn net_falls(&mut self, now: u64) {
        for (near, far) in self.near.iter_mut().zip(&mut self.far) {
            near.lane.set_clk_net(false);
            near.lane.eval(now);
            far.lane.set_clk_rx(false);
            far.lane.eval(now);
        }
    }

    pub(super) fn far_falls(&mut self, now: u64, port: usize) {
        self.far[port].lane.set_clk_net(false);
        self.far[port].lane.eval(now);
        self.near[port].lane.set_clk_rx(false);
        self.near[port].lane.eval(now);
    }

    /// All ends are locked.
    pub(super) fn are_locked(&self) -> bool {
        let far = self.far.iter().filter(|_| !self.cable);
        self.near
            .iter()
            .chain(far)
            .all(|end| end.lane.out().is_locked())
    }

    /// State of a port.
    pub(super) fn state(&self, port: usize) -> PcsState {
        PcsState {
            block_lock: self.near[port].lane.out().is_locked(),
            ..self.counts[port]
        }
    }

    /// Time from a word at XGMII of a partner to its block at the port.
    pub(super) fn delay_ps(&self, port: usize) -> u64 {
        let waiting = self.near.get(port).map_or(0, |near| near.line.waiting());
        (FAR_CYCLES + waiting) * CYCLE_PS
    }
}
