//! Many senders at once, whose fragments are lost or come twice.

use super::*;

/// Fragments of 40 senders by turns, each of a datagram of three after the other. `None` is one that
/// is lost.
fn by_turns(rounds: u16, lost: impl Fn(u16, u16, usize) -> bool) -> Vec<Option<Vec<u8>>> {
    let mut frames = Vec::new();
    for round in 0..rounds {
        let of = |sender: u16| {
            let mut whole = Frame::udp(&payload(400));
            (whole.id, whole.src[3]) = (round, sender as u8);
            whole.body[6..8].fill(0);
            fragments(&whole, &[160])
        };
        let sent: Vec<_> = (0..40).map(of).collect();
        for n in 0..3 {
            for (sender, parts) in (0..).zip(&sent) {
                frames.push((!lost(round, sender, n)).then(|| parts[n].clone()));
            }
        }
    }
    frames
}

#[test]
fn what_was_lost_costs_no_datagram_that_follows() {
    // A glitch, which three times as many datagrams as there are places do not survive.
    let frames = by_turns(40, |round, sender, n| {
        (10..15).contains(&round) && (sender + round) % 3 == n as u16
    });
    let sent = frames.iter().flatten().count();
    let mut rig = rig();
    let mut came = 0;
    for frame in frames.iter().flatten() {
        // The glitch and what follows lie within a time-out.
        rig.now = rig.now + Ns(10_000);
        came += usize::from(rig.give(frame).is_some());
    }
    assert_eq!(came, 40 * 35);
    let balance = rig.end();
    assert_eq!(balance.delivered, 3 * 40 * 35);
    assert_eq!(balance.dropped_total(), sent as u64 - 3 * 40 * 35);
}

#[test]
fn each_frame_twice_gives_each_datagram_once() {
    let mut rig = rig();
    let mut came = 0;
    for frame in by_turns(30, |_, _, _| false).iter().flatten() {
        for _ in 0..2 {
            rig.now = rig.now + Ns(1000);
            came += rig.give_all([frame]).len();
        }
    }
    assert_eq!(came, 40 * 30);
    rig.ends_with(3 * 40 * 30, &[(Cause::Duplicate, 3 * 40 * 30)]);
}
