//! Devices that do what they like; a virtual function that does, and its physical one; and the
//! other way round.

use pollux_pmd::drivers::igb::message::WORDS;
use pollux_pmd_testkit::adversary::{Choices, FaultModel};
use pollux_pmd_testkit::models::igb::trial;

use super::*;

#[test]
fn a_device_that_does_what_it_likes_breaks_no_promise() {
    for (seed, options) in [(1, ""), (2, ",mtu=9000,promisc"), (3, ",vfs=3,vlans=5")] {
        let outcome = trial::physical(&pool(), options, Choices::Seeded(seed), 400_000);
        assert!(outcome.faults > 10_000, "{outcome:?}");
        assert!(outcome.starts > 10 && outcome.sent > 0, "{outcome:?}");
        assert!(outcome.received.delivered > 0, "{outcome:?}");
        assert!(outcome.violations() > 0, "{outcome:?}");
    }
}

/// Both the virtual function's device and its peer in the mailbox are hostile.
#[test]
fn a_virtual_function_survives_its_device_and_its_physical_function() {
    let options = ",multicast=01:00:5e:00:00:fb,vlans=6";
    let outcome = trial::virtual_function(&pool(), options, 1, Choices::Seeded(5), 300_000);
    assert!(outcome.faults > 10_000, "{outcome:?}");
    assert!(outcome.starts > 100 && outcome.sent > 1000, "{outcome:?}");
    assert!(outcome.received.delivered > 1000, "{outcome:?}");
    assert!(outcome.violations() > 100, "{outcome:?}");
}

#[test]
fn what_was_not_posted_stays_as_it_is() {
    let confined = |seed| FaultModel::Confined.by(Choices::Seeded(seed));
    for outcome in [
        trial::physical(&pool(), ",mtu=9000", confined(1), 100_000),
        trial::virtual_function(&pool(), ",mtu=9000", 1, confined(2), 100_000),
    ] {
        assert!(outcome.received.delivered > 1000, "{outcome:?}");
        assert!(outcome.violations() > 100, "{outcome:?}");
    }
}

#[test]
fn rings_that_change_while_they_are_looked_at_break_no_promise() {
    let plan = |seed| FaultModel::AnyTime.by(Choices::Seeded(seed));
    for outcome in [
        trial::physical(&pool(), ",mtu=9000", plan(1), 100_000),
        trial::virtual_function(&pool(), ",mtu=9000", 1, plan(2), 100_000),
    ] {
        assert!(outcome.violations() > 0, "{outcome:?}");
    }
}

#[test]
fn no_mailbox_leads_to_the_address_of_another() {
    trial::mailboxes(Choices::Seeded(11), 200_000);
}

/// Whatever a virtual function writes, at any time: its physical function answers, grants nothing
/// that it must not, and the others go on.
#[test]
fn a_physical_function_survives_its_virtual_ones() {
    let world = World::new();
    let mut pf = Running::new(world.pf(",vfs=2").unwrap(), 1);
    let mut b = world.start_vf(1, "");
    let hostile = world.nic.device(Some(0));
    let mut choices = Choices::Seeded(7);
    for round in 0..200_000_u32 {
        let write = |at: usize, value| {
            hostile.with(|function, reach| function.write(reach, 0, at, 4, value));
        };
        match choices.below(16) {
            0 => write(0, 1 << 26),
            // A request that there is, with any numbers; or anything at all.
            1..8 => {
                let kind = choices.below(8) as u32 | (choices.below(32) as u32) << 16;
                let first = if choices.once_in(4) {
                    choices.number() as u32
                } else {
                    kind
                };
                write(0x800, first);
                for word in 1..WORDS {
                    write(0x800 + 4 * word, choices.number() as u32);
                }
                write(0xc40, 1);
            }
            8 => {
                // The address of another.
                let [low, high] = igb::message::mac_words([pf.mac(), b.mac()][choices.below(2)]);
                for (at, word) in [(0x800, 2), (0x804, low), (0x808, high), (0xc40, 1)] {
                    write(at, word);
                }
            }
            9 => write(0xc40, choices.number() as u32),
            10 => write(choices.below(0x1000) * 4, choices.number() as u32),
            _ => world.pf.with(Function::tick),
        }
        if round % 10_000 == 0 {
            for mac in [pf.mac(), b.mac()] {
                world.nic.arrive(&frame(mac, PEER, 1));
            }
            assert_eq!(pf.receive().len(), 1);
            let own: Vec<_> = b.receive();
            assert_eq!(own.iter().filter(|got| got[..6] == b.mac().0).count(), 1);
        }
    }
    // The others are answered as before.
    let (port, _) = b.stop();
    Running::start(port, pool()).stop();
    let statistics = pf.port.statistics();
    let refused = statistics
        .iter()
        .find(|(name, _)| name == "vf_requests_refused");
    assert!(refused.is_some_and(|(_, n)| *n > 0), "{statistics:?}");
    pf.stop();
}
