//! MTP primitives become fragments without hits.

use crate::common::{Part, l0};
use pollux_na62::formats::mtp::SOURCE_RICH;
use pollux_na62::l0::Fragments;
use pollux_pmd::Cause;

use super::{Rig, mtp};

fn slots(parts: &[Part]) -> Vec<u64> {
    assert!(parts.iter().all(|part| part.hits.is_empty()));
    let ends: Vec<_> = parts.iter().map(|part| part.ends_frame).collect();
    assert!(ends.iter().rev().skip(1).all(|ends| !ends) && ends.last() != Some(&false));
    parts.iter().map(|part| part.timestamp).collect()
}

#[test]
fn primitives_are_fragments_of_their_slots() {
    let mut rig = Rig::<Fragments>::new("{ name = 'read-mtp' }");
    let primitives = [(0x100, 9), (0xffff, 9), (0x100, 10), (0x200, 70_000)];
    let parts = rig.parts(3, &mtp(SOURCE_RICH, 3, &primitives));
    assert_eq!(slots(&parts), [9, 10, 70_000]);
    assert!(parts.iter().all(|part| part.source == 3));
    assert_eq!(l0(&rig.env).stats.sources[3].events.get(), 4);
    let most: Vec<_> = (0..255).map(|slot| (0x100, slot)).collect();
    let parts = rig.parts(3, &mtp(SOURCE_RICH, 3, &most));
    assert_eq!(slots(&parts), (0..255).collect::<Vec<u64>>());
}

#[test]
fn primitives_are_selected_by_their_identifiers() {
    let select = "{ name = 'read-mtp', detectors = [0x1c, 0x18, 0x20, 0x30], select = [\
                  { source = 1, mask = 0x0f00, value = 0x0300 }, \
                  { source = 1, mask = 0x0001, value = 0x0001 }, \
                  { source = 2, mask = 0xffff, value = 0x1234 }] }";
    let mut rig = Rig::<Fragments>::new(select);
    let primitives = [
        (0x1300, 1),
        (0x0301, 2),
        (0x0400, 3),
        (0x8001, 4),
        (0x400, 5),
    ];
    let of = |rig: &mut Rig<_>, stream, detector| {
        slots(&rig.parts(stream, &mtp(detector, 200, &primitives)))
    };
    assert_eq!(of(&mut rig, 0, 0x1c), [1, 2, 3, 4, 5]);
    assert_eq!(of(&mut rig, 1, 0x18), [1, 2, 4]);
    // None is: the frame ends here.
    assert!(of(&mut rig, 2, 0x20).is_empty());
    assert_eq!(rig.env.ledger.balance().delivered, 1);
    assert!(of(&mut rig, 3, 0x18).is_empty());
    assert_eq!(rig.dropped(Cause::Misrouted), 1);
    assert!(of(&mut rig, 3, 0x40).is_empty());
    assert_eq!(rig.dropped(Cause::Unsupported), 1);
}

#[test]
fn packets_of_primitives_that_are_wrong_are_dropped() {
    let mut rig = Rig::<Fragments>::new("{ name = 'read-mtp' }");
    let good = mtp(SOURCE_RICH, 0, &[(0x100, 1), (0x100, 2)]);
    let mut more = good.clone();
    more[6] += 1;
    for bad in [&good[..good.len() - 4], &good[..3], &more] {
        assert_eq!(rig.parts(0, bad).len(), 0);
    }
    assert_eq!(rig.dropped(Cause::Malformed), 3);
    // A slot that steps back, also by a time stamp that begins anew; equal ones are one fragment.
    for times in [[7, 6], [u32::MAX, 0]] {
        let back = times.map(|time| (0x100, time));
        assert_eq!(rig.parts(0, &mtp(SOURCE_RICH, 0, &back)).len(), 0);
    }
    assert_eq!(rig.dropped(Cause::Malformed), 5);
    assert_eq!(rig.parts(0, &mtp(SOURCE_RICH, 0, &[])).len(), 0);
    assert_eq!(rig.env.ledger.balance().delivered, 1);
}
