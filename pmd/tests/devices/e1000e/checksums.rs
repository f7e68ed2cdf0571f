//! Checksums that are left to the card.

use pollux_mempool::{Burst, ChecksumRequest};
use pollux_pmd_testkit::ports::pool;

use super::{Bench, MAC, checksum, frame_to, ipv4};

/// Where the sum of a segment behind an IPv4 header begins, and where that of UDP belongs.
const L4: usize = 34;
const UDP: usize = L4 + 6;

/// A datagram or a segment, and the same with its checksum left to the card.
fn left(protocol: u8, from: u8, len: usize) -> (Vec<u8>, Vec<u8>, Option<ChecksumRequest>) {
    let whole = ipv4(protocol, from, 1000, len);
    let field = if protocol == 17 { UDP } else { L4 + 16 };
    let length = (len as u16).to_be_bytes();
    let pseudo = checksum(&[&whole[26..34], &[0, protocol], &length]);
    let mut frame = whole.clone();
    frame[field..field + 2].copy_from_slice(&pseudo.map(|byte| !byte));
    (whole, frame, ChecksumRequest::new(L4, field))
}

fn offloading(room: usize) -> Bench {
    Bench::with_offload("", 2, pool(512, room), true)
}

fn send(bench: &mut Bench, queue: usize, bytes: &[u8], request: Option<ChecksumRequest>) -> usize {
    let mut burst = Burst::<1>::new();
    let mut frame = bench.frame(bytes);
    frame.set_checksum_request(request);
    drop(burst.push(frame));
    let cache = bench.cache.as_mut().unwrap();
    let n = bench.started.tx[queue].tx(cache, &mut burst);
    bench.taken += n as u64;
    cache.free_burst(&mut burst);
    n
}

#[test]
fn the_card_finishes_them_whichever_queue_they_come_from() {
    // In one buffer, and in several.
    for room in [2048, 256] {
        let mut bench = offloading(room);
        for n in 0..200_usize {
            let (queue, protocol) = (n % 2, if n % 3 == 0 { 6 } else { 17 });
            let (whole, frame, request) = left(protocol, n as u8, 26 + 7 * n);
            assert_eq!(send(&mut bench, queue, &frame, request), 1);
            // Frames that ask for nothing are sent as they are.
            assert_eq!(send(&mut bench, queue, &frame, None), 1);
            let sent = bench.with(|card, _| card.sent[queue].drain(..).collect::<Vec<_>>());
            assert_eq!(sent, [whole, frame], "{n}, buffers of {room}");
        }
        let (_, errors) = bench.stop();
        assert_eq!(errors, 0);
    }
}

#[test]
fn a_frame_that_asks_for_what_cannot_be_is_refused() {
    let mut bench = offloading(2048);
    for (len, field) in [(60, 59), (60, 255), (41, UDP), (41, L4 + 16)] {
        let request = ChecksumRequest::new(L4, field);
        assert_eq!(send(&mut bench, 0, &frame_to(MAC, len), request), 1);
    }
    let at_the_end = ChecksumRequest::new(L4, 58);
    assert_eq!(send(&mut bench, 0, &frame_to(MAC, 60), at_the_end), 1);
    assert_eq!(bench.with(|card, _| card.sent[0].len()), 1);
    let (_, errors) = bench.stop();
    assert_eq!(errors, 4);
}

#[test]
fn a_full_ring_has_room_for_frames_with_what_they_ask() {
    // With headroom four to a page, so that none is cut where one ends.
    let mut bench = offloading(896);
    bench.with(|card, _| card.stalled = true);
    let (whole, frame, request) = left(17, 1, 100);
    let sent = (0..100).take_while(|_| send(&mut bench, 0, &frame, request) == 1);
    assert_eq!(sent.count(), 31, "two descriptors each, of 63");
    assert_eq!(send(&mut bench, 0, &frame, None), 1);
    assert_eq!(send(&mut bench, 0, &frame, None), 0);
    bench.with(|card, world| {
        card.stalled = false;
        card.send(world, 0);
    });
    let sent = bench.with(|card, _| card.sent[0].clone());
    assert!(sent.iter().take(31).all(|bytes| *bytes == whole));
    assert_eq!(sent.back(), Some(&frame));
    bench.stop();
}

#[test]
fn a_port_that_was_not_configured_for_it_sends_frames_as_they_are() {
    let mut bench = Bench::new("", 1, pool(256, 2048));
    let (_, frame, request) = left(17, 1, 100);
    assert_eq!(send(&mut bench, 0, &frame, request), 1);
    assert_eq!(bench.with(|card, _| card.sent[0].pop_front()), Some(frame));
    bench.stop();
}
