//! Two clocks in integer picoseconds, so that no rounding ever moves an edge.

/// Half a cycle of the ports' clock, 156.25 MHz.
const NET_HALF: u64 = 3_200;
/// Half a cycle of the core's clock, 250 MHz.
const CORE_HALF: u64 = 2_000;

/// The clock of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Core { rises: bool },
    Net { rises: bool },
}

/// Both clocks.
pub(super) struct Clocks {
    core_at: u64,
    core_rises: bool,
    net_at: u64,
    net_rises: bool,
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
        }
    }

    /// Time of the next edge.
    pub(super) fn at(&self) -> u64 {
        self.core_at.min(self.net_at)
    }

    /// The next edge.
    pub(super) fn step(&mut self) -> (u64, Edge) {
        let at = self.at();
        if self.core_at == at {
            let rises = self.core_rises;
            self.core_at += CORE_HALF;
            self.core_rises = !rises;
            (at, Edge::Core { rises })
        } else {
            let rises = self.net_rises;
            self.net_at += NET_HALF;
            self.net_rises = !rises;
            (at, Edge::Net { rises })
        }
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
}
