//! Traffic between this crate's front end and back end, in every variant.

use crate::support::{Place, Port, pass, spec};

const VARIANTS: [&str; 8] = [
    "packed=off,in-order=off,mergeable=off",
    "packed=off,in-order=off,mergeable=on",
    "packed=off,in-order=on,mergeable=off",
    "packed=off,in-order=on,mergeable=on",
    "packed=on,in-order=off,mergeable=off",
    "packed=on,in-order=off,mergeable=on",
    "packed=on,in-order=on,mergeable=off",
    "packed=on,in-order=on,mergeable=on",
];

/// Lengths of 60 bytes to `longest`, in random order.
fn lens(longest: usize, count: usize) -> Vec<usize> {
    let spread = longest - 59;
    (0..count).map(|i| 60 + i * 7919 % spread).collect()
}

fn both_ways(front: &str, back: &str, queues: u16, longest: usize) {
    let place = Place::new();
    let socket = place.socket();
    let queue_option = format!("queues={queues}");
    let back = spec(
        &socket,
        &format!("role=device,server,{queue_option},{back}"),
    );
    let front = spec(&socket, &format!("{queue_option},{front}"));
    let (mut back, mut front) = (Port::open(&back, queues), Port::open(&front, queues));
    front.wait_up(true);
    back.wait_up(true);
    let lens = lens(longest, 3000);
    for queue in 0..usize::from(queues) {
        pass(&mut front, &mut back, queue, &lens);
        pass(&mut back, &mut front, queue, &lens);
        // All lengths at which behaviour changes.
        let edges: Vec<_> = (60..=longest.min(300)).chain([longest]).collect();
        pass(&mut front, &mut back, queue, &edges);
        pass(&mut back, &mut front, queue, &edges);
    }
    let (received, sent, errors) = front.stop();
    back.wait_up(false);
    let (received_back, sent_back, errors_back) = back.stop();
    assert_eq!((errors, errors_back), (0, 0));
    assert_eq!(
        (sent, sent_back),
        (received_back.from_wire, received.from_wire)
    );
    assert_eq!(
        (received.dropped_total(), received_back.dropped_total()),
        (0, 0)
    );
}

#[test]
fn each_variant_carries_frames_both_ways() {
    for variant in VARIANTS {
        println!("{variant}");
        // A frame that is not merged must fit one buffer of 2048 bytes.
        let longest = if variant.ends_with("=on") { 9000 } else { 1514 };
        let options = format!("mtu=9000,{variant}");
        both_ways(&options, &options, 1, longest);
    }
}

#[test]
fn two_queues_carry_frames_side_by_side() {
    both_ways("packed=off", "mtu=1500", 2, 1514);
    both_ways("packed=on", "mtu=1500", 2, 1514);
}

#[test]
fn what_one_end_does_not_have_is_done_without() {
    for (front, back) in [
        ("packed=on", "packed=off"),
        ("packed=off", "packed=on"),
        ("in-order=on", "in-order=off"),
        ("mergeable=off", "mergeable=on"),
        ("ring=64", "ring=1024"),
    ] {
        both_ways(front, back, 1, 1514);
    }
}
