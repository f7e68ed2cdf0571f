//! Which frames a port receives.

use anyhow::{Result, ensure};
use pollux_pmd::net::MacAddr;

use crate::bench::Bench;
use crate::rig::{DIRECTIONS, Rig, Setup};
use crate::test::Test;
use crate::wire::plain;

pub(crate) const FILTERS: &[Test] = &[
    Test {
        name: "filter-own",
        shows: "a port receives what is for it and for all, and nothing else",
        run: |bench| filter(bench, "", &[]),
    },
    Test {
        name: "filter-multicast",
        shows: "a port receives the groups that it was told",
        run: |bench| filter(bench, ",multicast=01:00:5e:00:00:05", &[GROUP]),
    },
    Test {
        name: "filter-all-multicast",
        shows: "multicast=all receives all groups",
        run: |bench| filter(bench, ",multicast=all", &[GROUP, OTHER_GROUP]),
    },
    Test {
        name: "filter-promiscuous",
        shows: "promisc=on receives everything",
        run: |bench| {
            let options = ",promisc=on,multicast=all";
            filter(bench, options, &[GROUP, OTHER_GROUP, OTHER_STATION])
        },
    },
];

const GROUP: MacAddr = MacAddr([0x01, 0x00, 0x5e, 0x00, 0x00, 0x05]);
const OTHER_GROUP: MacAddr = MacAddr([0x33, 0x33, 0x00, 0x01, 0x02, 0x03]);
const OTHER_STATION: MacAddr = MacAddr([0x02, 0x00, 0x00, 0x00, 0x00, 0x99]);

fn filter(bench: &Bench, options: &'static str, more: &[MacAddr]) -> Result<()> {
    let mut rig = Rig::open(
        bench,
        Setup {
            options,
            ..Setup::default()
        },
    )?;
    for direction in DIRECTIONS {
        let (from, to) = direction.of(&rig.a, &rig.b);
        let (own, src) = (to.mac()?, from.mac()?);
        let all = [own, OTHER_STATION, GROUP, OTHER_GROUP, MacAddr::BROADCAST];
        let sent: Vec<_> = all.iter().map(|&dst| plain(dst, src)).collect();
        let expected = all
            .into_iter()
            .filter(|dst| [own, MacAddr::BROADCAST].contains(dst) || more.contains(dst));
        let expected: Vec<_> = expected.map(|dst| plain(dst, src)).collect();
        let received: Vec<_> = rig
            .pass(direction, &sent)?
            .into_iter()
            .map(|it| it.bytes)
            .collect();
        let stations = |frames: &[Vec<u8>]| -> Vec<String> {
            frames
                .iter()
                .map(|frame| format!("{:02x?}", &frame[..6]))
                .collect()
        };
        ensure!(
            received == expected,
            "{direction:?}: frames for {:?} came, not for {:?}",
            stations(&received),
            stations(&expected)
        );
    }
    rig.finish()
}
