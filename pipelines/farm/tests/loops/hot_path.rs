//! Members and carriers neither allocate nor enter the kernel once they are warm.

use pollux_farm::scheduler::Policy;
use pollux_pmd_testkit::guard::listen;

use super::rig::{Farm, Way};

const WARM: u64 = 200;
const EVENTS: u64 = 2000;

#[test]
fn loops_do_nothing_but_work_once_they_are_warm() {
    for policy in [
        Policy::Ring,
        Policy::Credits,
        Policy::Slots { barrier: true },
        Policy::None,
    ] {
        for (hand_over, damage) in [(true, 0.0), (false, 0.0), (false, 1e-3)] {
            let way = Way {
                policy,
                hand_over,
                damage,
            };
            let (farm, noise) = listen(|ear| {
                let mut farm = Farm::new(way, |carrier| carrier);
                farm.run(WARM);
                ear.during(|| farm.run(EVENTS));
                farm.check();
                assert_eq!(farm.refused, 0);
                let handed: u64 = farm.loops.iter().map(|of| of.carrier.handed_over()).sum();
                let damaged: u64 = farm.loops.iter().map(|of| of.carrier.damaged()).sum();
                assert_eq!(handed > 0, hand_over, "{way:?}");
                assert_eq!(damaged > 0, damage > 0.0, "{way:?}");
                farm.decided
            });
            println!("{way:?}");
            noise.assert_none();
            assert_eq!(farm, WARM + EVENTS);
        }
    }
}
