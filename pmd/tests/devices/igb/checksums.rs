//! Checksums that are left to the device, by either function.

use pollux_mempool::ChecksumRequest;
use pollux_pmd::net::Checksum;
use pollux_pmd_testkit::frames::Frame;

use super::{Running, World};

/// A datagram, and the same with its checksum left to the device.
fn left(payload: &[u8]) -> (Vec<u8>, Vec<u8>, Option<ChecksumRequest>) {
    let whole = Frame::udp(payload).bytes();
    let mut frame = whole.clone();
    let quad = |at: usize| <[u8; 4]>::try_from(&whole[at..at + 4]).unwrap().into();
    let pseudo = Checksum::pseudo_v4(quad(26), quad(30), 17, (whole.len() - 34) as u16);
    frame[40..42].copy_from_slice(&pseudo.partial().to_be_bytes());
    (whole, frame, ChecksumRequest::new(34, 40))
}

fn sent(world: &World, running: &Running) -> Vec<Vec<u8>> {
    // Housekeeping reads registers, and so lets the device work.
    let _ = running.port.link();
    world.nic.chip().wire.drain(..).collect()
}

#[test]
fn the_device_finishes_them() {
    let world = World::new();
    let mut pf = Running::with_offload(world.pf("").unwrap(), 1, true);
    for len in [18, 19, 700, 1472] {
        let (whole, frame, request) = left(&vec![0x5a; len]);
        pf.send_asking(&frame, request);
        // Frames that ask for nothing are sent as they are.
        pf.send(&frame);
        assert_eq!(sent(&world, &pf), [whole, frame], "{len} bytes");
    }
    assert_eq!(
        pf.tx[0].sent().packets(),
        0,
        "reported when they are looked at"
    );
    let sent = pf.tx[0].sent();
    pf.stop();
    assert_eq!((sent.packets(), sent.errors()), (8, 0));
}

#[test]
fn one_of_another_protocol_is_finished_by_the_driver() {
    let world = World::new();
    let mut pf = Running::with_offload(world.pf("").unwrap(), 1, true);
    let (whole, frame, _) = left(&[7; 100]);
    // As of ICMP: two bytes into what is summed.
    let (mut expected, mut asked) = (whole, frame);
    asked[36..38].fill(0);
    let mut sum = Checksum::new();
    sum.add(&asked[34..]);
    expected.copy_from_slice(&asked);
    expected[36..38].copy_from_slice(&sum.finish().to_be_bytes());
    pf.send_asking(&asked, ChecksumRequest::new(34, 36));
    assert_eq!(sent(&world, &pf), [expected]);
    // A field that is not in the frame is not to be had.
    pf.send_asking(&asked[..60], ChecksumRequest::new(34, 60));
    let sent = pf.tx[0].sent();
    pf.stop();
    assert_eq!((sent.packets(), sent.errors()), (1, 1));
}
