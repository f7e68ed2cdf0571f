//! Links that go, ports that stop, processes and devices that vanish.

use anyhow::{Result, ensure};

use super::Test;
use crate::bench::Bench;
use crate::control::Control;
use crate::nic::wait_until;
use crate::rig::{BOTH_WAYS, Rig, Setup};

pub(crate) const LINK: &[Test] = &[Test {
    name: "link",
    shows: "a link that goes down and comes back is told, and carries frames again",
    run: link,
}];

pub(crate) const LIFE: &[Test] = &[Test {
    name: "restart",
    shows: "a port stops and starts 100 times, with traffic each time",
    run: restart,
}];

fn link(bench: &Bench) -> Result<()> {
    let mut control = Control::open()?;
    let mut rig = Rig::open(bench, Setup::default())?;
    for round in 0..3 {
        let before = rig.a.port.link().changes;
        control.set_link("a", false)?;
        wait_until("the link of `a` is down", || !rig.a.port.link().up)?;
        control.set_link("a", true)?;
        wait_until("the link of `a` is up", || rig.a.port.link().up)?;
        let changes = rig.a.port.link().changes - before;
        ensure!(
            changes == 2,
            "round {round}: {changes} changes were counted, not 2"
        );
        for way in BOTH_WAYS {
            rig.exchange(way, 500, &[64, 1518])?;
        }
    }
    rig.finish()
}

fn restart(bench: &Bench) -> Result<()> {
    let mut rig = Rig::open(bench, Setup::default())?;
    for _ in 0..100 {
        rig = rig.restart_a()?;
        for way in BOTH_WAYS {
            rig.exchange(way, 50, &[64, 1518])?;
        }
    }
    rig.finish()
}
