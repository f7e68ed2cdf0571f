//! The switch against one that looks through lists: which hosts each frame reaches.

use pollux_pmd::mempool::time::Ns;
use pollux_switch::SwitchConfig;
use proptest::prelude::*;

use crate::rig::{Rig, frame, mac};

const PORTS: usize = 4;
const CAPACITY: usize = 5;
const AGE: u64 = 1000;

/// All that was ever seen, in order.
#[derive(Default)]
struct Model {
    /// Address, port and time of each frame that was learned.
    seen: Vec<(u8, usize, u64)>,
}

impl Model {
    /// The last frame of an address, if it has not aged.
    fn known(&self, address: u8, now: u64) -> Option<usize> {
        let last = self.seen.iter().rev().find(|seen| seen.0 == address)?;
        (now - last.2 < AGE).then_some(last.1)
    }

    fn learn(&mut self, address: u8, port: usize, now: u64) {
        let known = (0..=u8::MAX).filter(|&other| self.known(other, now).is_some());
        if self.known(address, now).is_some() || known.count() < CAPACITY {
            self.seen.push((address, port, now));
        }
    }

    fn reaches(&mut self, port: usize, src: u8, dst: Option<u8>, now: u64) -> Vec<usize> {
        self.learn(src, port, now);
        match dst.and_then(|dst| self.known(dst, now)) {
            Some(to) if to == port => vec![],
            Some(to) => vec![to],
            None => (0..PORTS).filter(|&to| to != port).collect(),
        }
    }
}

proptest! {
    #[test]
    fn frames_reach_the_same_hosts(
        frames in prop::collection::vec(
            (0..PORTS, 0_u8..8, prop::option::weighted(0.9, 0_u8..8), 0_u64..400),
            1..300,
        ),
    ) {
        let config = SwitchConfig {
            addresses: CAPACITY,
            age: Ns(AGE),
            ..SwitchConfig::default()
        };
        let (mut rig, mut model, mut now) = (Rig::with_ring(PORTS, &config, 64), Model::default(), 0);
        for (port, src, dst, wait) in frames {
            rig.clock.advance(Ns(wait));
            now += wait + 1;
            let expected = model.reaches(port, src, dst, now);
            let dst = dst.map_or([0xff; 6], mac);
            prop_assert_eq!(rig.reached(port, &frame(dst, mac(src), 60)), expected);
        }
        rig.end();
    }
}
