//! After its start, the switch neither allocates nor enters the kernel.

use pollux_pmd_testkit::guard::listen;
use pollux_switch::SwitchConfig;

use crate::rig::{Rig, frame, mac};

#[test]
fn the_switch_does_nothing_but_work() {
    let config = SwitchConfig {
        rate: Some(8_000_000_000),
        buffer: 5000,
        // Fewer than there are, so that the table is full and addresses age.
        addresses: 64,
        age: pollux_pmd::mempool::time::Ns(20_000),
        ..SwitchConfig::default()
    };
    let (rig, noise) = listen(|ear| {
        let mut rig = Rig::new(6, &config);
        for round in 0..3000_u32 {
            for host in 0..6 {
                let n = round.wrapping_mul(31).wrapping_add(host as u32) as u8;
                let dst = match round % 5 {
                    0 => [0xff; 6],
                    _ => mac(n.wrapping_mul(7) % 100),
                };
                let len = [60, 300, 1514, 3000][n as usize % 4];
                rig.send(host, &frame(dst, mac(n % 100), len));
            }
            ear.during(|| rig.poll_after(500));
            for host in 0..6 {
                rig.received(host);
            }
        }
        rig
    });
    noise.assert_none();
    let report = rig.end().report;
    assert!(
        report.table_full > 0 && report.moved > 0 && report.learned > 64,
        "{report}"
    );
    assert!(
        report.outputs.iter().all(|output| output.output_full > 0),
        "{report}"
    );
}
