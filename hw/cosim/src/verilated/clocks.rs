//! Clocks in integer picoseconds, so that no rounding ever moves an edge, and clocks beside them that are
//! some parts per million off, in femtoseconds.

use crate::pins::PORTS;

/// Half a cycle of the ports' clock, 156.25 MHz.
const NET_HALF: u64 = 3_200;
/// Half a cycle of the core's clock, 250 MHz.
const CORE_HALF: u64 = 2_000;
/// Of a clock that stands.
const NEVER: u64 = u64::MAX;

/// The clock of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Core {
        rises: bool,
    },
    Net {
        rises: bool,
    },
    /// Of the far end of a wire.
    Far {
        port: usize,
        rises: bool,
    },
}

/// A clock of a far end, in femtoseconds.
#[derive(Clone, Copy)]
struct Far {
    at: u64,
    half: u64,
    rises: bool,
}

/// All clocks.
pub(super) struct Clocks {
    core_at: u64,
    core_rises: bool,
    net_at: u64,
    net_rises: bool,
    far: [Option<Far>; PORTS],
}

impl Clocks {
    /// Clocks whose edges are `phase` picoseconds apart in the beginning, up to a cycle.
    pub(super) fn new(phase: u64) -> Self {
        let net_at = NET_HALF + phase % (2 * NET_HALF);
        Self {
            core_at: CORE_HALF,
            core_rises: true,
            net_at,
            net_rises: true,
            far: [None; PORTS],
        }
    }

    /// The far end of a wire has a clock of its own, some parts per million faster than the ports', whose
    /// first edge is `phase` picoseconds behind the first one there.
    pub(super) fn add_far(&mut self, port: usize, ppm: i64, phase: u64) {
        let half = NET_HALF * 1000;
        let off = half as i64 * ppm / 1_000_000;
        self.far[port] = Some(Far {
            at: (self.net_at + phase) * 1000,
            half: half.saturating_add_signed(-off),
            rises: true,
        });
    }

    /// The ports' clock stands, or runs on.
    pub(super) fn run_net(&mut self, now: u64, runs: bool) {
        if runs == (self.net_at == NEVER) {
            self.net_at = if runs { now + NET_HALF } else { NEVER };
        }
    }

    /// Time of the next edge.
    pub(super) fn at(&self) -> u64 {
        let far = self.far.iter().flatten().map(|far| far.at / 1000);
        far.fold(self.core_at.min(self.net_at), u64::min)
    }

    /// The next edge.
    pub(super) fn step(&mut self) -> (u64, Edge) {
        let at = self.at();
        if self.core_at == at {
            let rises = self.core_rises;
            self.core_at += CORE_HALF;
            self.core_rises = !rises;
            return (at, Edge::Core { rises });
        }
        for (port, far) in self.far.iter_mut().enumerate() {
            if let Some(far) = far.as_mut().filter(|far| far.at / 1000 == at) {
                let rises = far.rises;
                far.at += far.half;
                far.rises = !rises;
                return (at, Edge::Far { port, rises });
            }
        }
        let rises = self.net_rises;
        self.net_at += NET_HALF;
        self.net_rises = !rises;
        (at, Edge::Net { rises })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_32_ns_there_are_8_and_5_cycles_whatever_the_phase() {
        for phase in [0, 1, 999, 6_399] {
            let mut clocks = Clocks::new(phase);
            let (mut core, mut net, mut last) = (0, 0, 0);
            while clocks.at() <= 3_200_000 {
                let (at, edge) = clocks.step();
                assert!(at >= last);
                last = at;
                core += u32::from(edge == Edge::Core { rises: true });
                net += u32::from(edge == Edge::Net { rises: true });
            }
            assert!(core == 800 && (499..=500).contains(&net), "{core} {net}");
        }
    }

    #[test]
    fn a_far_end_is_off_by_what_is_told() {
        let mut clocks = Clocks::new(0);
        clocks.add_far(0, 100, 0);
        clocks.add_far(3, -100, 1000);
        let (mut net, mut far) = (0_i64, [0_i64; PORTS]);
        while clocks.at() <= 6_400 * 100_000 {
            match clocks.step().1 {
                Edge::Net { rises: true } => net += 1,
                Edge::Far { port, rises: true } => far[port] += 1,
                _ => {}
            }
        }
        assert_eq!((far[0] - net, far[3] - net), (10, -10));
    }
}
