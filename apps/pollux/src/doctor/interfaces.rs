//! Checks of kernel network interfaces: settings that change or delay frames before a port receives
//! them.

use super::finding::{Check, Finding};
use super::machine::Machine;
use pollux_machine::ethtool::{Ethtool, Nic};
use pollux_machine::net::{self, Interface};

const STATE: Check = Check {
    name: "interface",
    why: "No frame comes from an interface that is switched off or has no carrier.",
};
const RING: Check = Check {
    name: "rx-ring",
    why: "A burst that is longer than the ring is lost before any program sees it.",
};
const MERGING: Check = Check {
    name: "merged-frames",
    why: "A port on the interface then sees long frames that never were on the wire.",
};
const VLAN: Check = Check {
    name: "vlan-tags",
    why: "An af_xdp port then loses the VLAN tag of a frame: XDP does not tell of tags that the device has taken out.",
};
const PAUSE: Check = Check {
    name: "pause-frames",
    why: "A receiver that is too slow then holds up the sender, and through a switch also others, instead of losing frames that are counted.",
};
const COALESCING: Check = Check {
    name: "coalescing",
    why: "The device keeps frames back until its interrupt is due, which is latency for kernel-backed ports.",
};
const LOST: Check = Check {
    name: "interface-drops",
    why: "These frames were lost before the kernel's socket, so that no program's ledger has them.",
};

/// All Ethernet interfaces of this network namespace.
pub(super) fn examine(machine: &Machine) -> Vec<Finding> {
    let interfaces = net::interfaces(&machine.sys)
        .into_iter()
        .filter(|interface| interface.ethernet && interface.name != "lo");
    // Interfaces below another root do not belong to this kernel.
    let ethtool = machine
        .sys
        .is_live()
        .then(Ethtool::new)
        .and_then(Result::ok);
    let mut found = Vec::new();
    for interface in interfaces {
        found.push(state(&interface));
        if !interface.up {
            continue;
        }
        let nic = ethtool
            .as_ref()
            .map(|ethtool| ethtool.nic(&interface.name))
            .unwrap_or_default();
        found.extend(settings(&interface.name, &nic));
        found.extend(lost(machine, &interface.name));
    }
    found
}

fn state(interface: &Interface) -> Finding {
    let name = &interface.name;
    let speed = interface
        .speed
        .map_or(String::new(), |speed| format!(", {speed} Mbit/s"));
    match (interface.up, interface.carrier) {
        (true, true) => STATE.ok(format!("up{speed}")),
        // Link state of the device: speeds of both ends, cable, module.
        (true, false) => STATE
            .note("no carrier: is the cable, or the other end, there?")
            .look(format!("ethtool {name}")),
        (false, _) => STATE.note("down").run(format!("ip link set {name} up")),
    }
    .of(name)
}

/// Settings of the driver. Settings that it does not report give no finding.
fn settings(name: &str, nic: &Nic) -> Vec<Finding> {
    let rings = nic.rings.filter(|rings| rings.rx_max > 0).map(|rings| {
        let found = format!("{} of {} descriptors", rings.rx, rings.rx_max);
        if rings.rx < rings.rx_max {
            RING.warn(found)
                .run(format!("ethtool -G {name} rx {}", rings.rx_max))
        } else {
            RING.ok(found)
        }
    });
    let merging = match (nic.gro, nic.lro) {
        (None, None) => None,
        (gro, lro) => {
            let on = [("GRO", gro), ("LRO", lro)];
            let on: Vec<_> = on
                .iter()
                .filter(|(_, on)| *on == Some(true))
                .map(|(name, _)| *name)
                .collect();
            Some(if on.is_empty() {
                MERGING.ok("off")
            } else {
                let off = on
                    .iter()
                    .map(|name| format!(" {} off", name.to_lowercase()));
                MERGING
                    .warn(format!("{} on", on.join(" and ")))
                    .run(format!("ethtool -K {name}{}", off.collect::<String>()))
            })
        }
    };
    let vlan = nic.rx_vlan.map(|taken_out| {
        if taken_out {
            VLAN.warn("taken out of frames by the device")
                .run(format!("ethtool -K {name} rxvlan off"))
        } else {
            VLAN.ok("left in frames")
        }
    });
    let pause = nic.pause.map(|pause| match (pause.rx, pause.tx) {
        (false, false) => PAUSE.ok("off"),
        (rx, tx) => {
            let which = match (rx, tx) {
                (true, true) => "obeyed and sent",
                (true, false) => "obeyed",
                _ => "sent",
            };
            PAUSE
                .note(which)
                .run(format!("ethtool -A {name} autoneg off rx off tx off"))
        }
    });
    let coalescing = nic.coalescing.map(|coalescing| {
        /// Microseconds; a tenth of a deadline of 1 ms.
        const LONG: u32 = 100;
        let command = format!("ethtool -C {name} adaptive-rx off rx-usecs 10");
        match (coalescing.adaptive, coalescing.rx_us) {
            (true, _) => COALESCING.note("adaptive").run(command),
            (false, us) if us > LONG => COALESCING.note(format!("{us} us")).run(command),
            (false, us) => COALESCING.ok(format!("{us} us")),
        }
    });
    let all = [rings, merging, vlan, pause, coalescing]
        .into_iter()
        .flatten();
    all.map(|finding| finding.of(name)).collect()
}

/// Frames lost by the device or its driver since the interface came up.
fn lost(machine: &Machine, name: &str) -> Option<Finding> {
    let count = |what: &str| {
        let path = format!("/sys/class/net/{name}/statistics/{what}");
        machine.sys.parse::<u64>(&path).ok()
    };
    let (missed, fifo, crc) = (
        count("rx_missed_errors")?,
        count("rx_fifo_errors")?,
        count("rx_crc_errors")?,
    );
    Some(
        if (missed, fifo, crc) == (0, 0, 0) {
            LOST.ok("none")
        } else {
            LOST.note(format!(
                "{missed} missed, {fifo} for want of room, {crc} damaged, since it came up"
            ))
            .look(format!("ethtool -S {name}"))
        }
        .of(name),
    )
}

#[cfg(test)]
mod tests {
    use super::super::finding::{Level, Remedy};
    use super::super::testing::{findings, levels};
    use super::*;
    use Level::{Note, Ok, Warn};
    use pollux_machine::ethtool::{Coalescing, Pause, Rings};
    use pollux_machine::testing::Tree;

    fn judged(nic: &Nic) -> Vec<(Level, Option<Remedy>)> {
        settings("eth0", nic)
            .into_iter()
            .map(|finding| (finding.level, finding.remedy))
            .collect()
    }

    fn run(command: &str) -> Remedy {
        Remedy::Run(command.into())
    }

    #[test]
    fn settings_of_a_nic() {
        assert_eq!(judged(&Nic::default()), []);
        let good = Nic {
            rings: Some(Rings {
                rx: 4096,
                rx_max: 4096,
            }),
            gro: Some(false),
            lro: None,
            rx_vlan: Some(false),
            pause: Some(Pause {
                rx: false,
                tx: false,
            }),
            coalescing: Some(Coalescing {
                adaptive: false,
                rx_us: 10,
            }),
        };
        assert_eq!(judged(&good), vec![(Ok, None); 5]);
        let other = Nic {
            rings: Some(Rings {
                rx: 512,
                rx_max: 4096,
            }),
            gro: Some(true),
            lro: Some(true),
            rx_vlan: Some(true),
            pause: Some(Pause {
                rx: true,
                tx: false,
            }),
            coalescing: Some(Coalescing {
                adaptive: true,
                rx_us: 0,
            }),
        };
        assert_eq!(
            judged(&other),
            [
                (Warn, Some(run("ethtool -G eth0 rx 4096"))),
                (Warn, Some(run("ethtool -K eth0 gro off lro off"))),
                (Warn, Some(run("ethtool -K eth0 rxvlan off"))),
                (Note, Some(run("ethtool -A eth0 autoneg off rx off tx off"))),
                (
                    Note,
                    Some(run("ethtool -C eth0 adaptive-rx off rx-usecs 10"))
                ),
            ]
        );
        let strange = Nic {
            rings: Some(Rings {
                rx: u32::MAX,
                rx_max: 0,
            }),
            ..Nic::default()
        };
        assert_eq!(judged(&strange), []);
    }

    #[test]
    fn state_and_losses() {
        let tree = Tree::new();
        assert_eq!(levels(examine, &tree), []);
        let of = |attribute: &str| format!("/sys/class/net/eth0/{attribute}");
        let lost = |n: &str| {
            for what in ["missed", "fifo", "crc"] {
                tree.file(&of(&format!("statistics/rx_{what}_errors")), n);
            }
        };
        tree.file(&of("type"), "1\n")
            .file(&of("flags"), "0x1003\n")
            .file(&of("carrier"), "1")
            .file(&of("speed"), "10000\n");
        assert_eq!(findings(examine, &tree)[0].found, "up, 10000 Mbit/s");
        lost("0");
        assert_eq!(levels(examine, &tree), [Ok, Ok]);
        lost("7");
        assert_eq!(levels(examine, &tree), [Ok, Note]);
        let look = |command: &str| Some(Remedy::Look(command.into()));
        assert_eq!(findings(examine, &tree)[1].remedy, look("ethtool -S eth0"));
        lost("-7");
        tree.file(&of("carrier"), "0").file(&of("speed"), "-1");
        assert_eq!(levels(examine, &tree), [Note]);
        assert_eq!(findings(examine, &tree)[0].remedy, look("ethtool eth0"));
        tree.file(&of("flags"), "0x1002");
        assert_eq!(
            findings(examine, &tree)[0].remedy,
            Some(run("ip link set eth0 up"))
        );
        tree.file(&of("flags"), "many")
            .unreadable("/sys/class/net/eth1/type");
        assert_eq!(levels(examine, &tree), [Note]);
    }
}
