//! Checksums that one side leaves to the other.

use pollux_pmd::Cause;
use pollux_pmd::net::Checksum;

use super::*;

/// A frame, and the same with the checksum from `start` on left out of `field`.
fn left(number: usize, len: usize, (start, field): (usize, usize)) -> (Vec<u8>, Vec<u8>) {
    let frame = frame(number, len);
    let mut sum = Checksum::new();
    sum.add(&frame[start..]);
    let mut whole = frame.clone();
    whole[field..field + 2].copy_from_slice(&sum.finish_udp().to_be_bytes());
    (whole, frame)
}

fn offloading(device: &Fake, room: usize) -> Rig {
    let config = PortConfig {
        checksum_offload: true,
        ..config(1, pool(room))
    };
    Rig::start(probe(device, ",mtu=1500").unwrap(), device, config).unwrap()
}

const RINGS: [u64; 2] = [0, bit::PACKED];

#[test]
fn the_device_finishes_what_is_left_to_it() {
    for rings in RINGS {
        let device = device(ALL & !bit::PACKED | rings);
        let mut rig = offloading(&device, 2048);
        for n in 0..200 {
            let places = (14 + n % 90, 20 + n % 90);
            let (whole, frame) = left(n, 130 + 5 * n, places);
            let cuts: &[usize] = [&[][..], &[128], &[120, 3]][n % 3];
            let request = ChecksumRequest::new(places.0, places.1);
            assert!(rig.send_asking(0, &frame, cuts, request));
            // The header is as it was when the buffer is used again.
            assert!(rig.send(0, &frame, cuts));
            let sent: Vec<_> = device.with(|model, _| model.sent.drain(..).collect());
            assert_eq!(sent, [(1, whole), (1, frame)]);
        }
        let beyond = ChecksumRequest::new(14, 59);
        assert!(rig.send_asking(0, &frame(0, 60), &[], beyond));
        assert_eq!(device.with(|model, _| model.sent.len()), 0);
        let sent = rig.tx[0].sent();
        rig.stop();
        assert_eq!(sent.errors(), 1);
    }
}

#[test]
fn partial_checksums_are_completed_before_the_user_sees_the_frame() {
    for rings in RINGS {
        // In one buffer, and in several that are merged.
        for room in [2048, 256] {
            let device = device(ALL & !bit::PACKED | rings);
            let mut rig = offloading(&device, room);
            for n in 0..100 {
                let places = (14 + n % 90, 20 + n % 90);
                let (whole, frame) = left(n, 130 + 5 * n, places);
                let start = places.0 as u8;
                let header = [1, 0, 0, 0, 0, 0, start, 0, 6, 0, 0, 0];
                device.with(|model, _| model.checksums = header);
                rig.receive(0, &frame);
                assert_eq!(rig.poll_trusted(), [(whole, true)]);
                device.with(|model, _| model.checksums = [0; 12]);
                rig.receive(0, &frame);
                assert_eq!(rig.poll_trusted(), [(frame.clone(), false)]);
                device.with(|model, _| model.checksums[0] = 2);
                rig.receive(0, &frame);
                assert_eq!(rig.poll_trusted(), [(frame, true)], "verified");
            }
            rig.stop();
        }
    }
}

#[test]
fn a_checksum_that_cannot_be_costs_the_frame() {
    let device = device(ALL);
    let mut rig = offloading(&device, 2048);
    let headers = [
        [1, 0, 0, 0, 0, 0, 14, 0, 45, 0, 0, 0],
        [1, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0],
        [1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0],
        [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    for header in headers {
        device.with(|model, _| model.checksums = header);
        rig.receive(0, &frame(1, 60));
        assert_eq!(rig.poll_trusted(), []);
    }
    let tally = rig.rx[0].tally();
    rig.stop();
    let lost = tally.balance().dropped_for(Cause::DeviceError);
    assert_eq!(lost, headers.len() as u64);
}

#[test]
fn no_feature_is_negotiated_unrequested() {
    let bits = bit::CHECKSUM | bit::GUEST_CHECKSUM;
    let offering = device(ALL);
    let rig = Rig::new(&offering, "", 1, pool(2048));
    assert_eq!(offering.with(|model, _| model.accepted()) & bits, 0);
    rig.stop();
    let rig = offloading(&offering, 2048);
    assert_eq!(offering.with(|model, _| model.accepted()) & bits, bits);
    rig.stop();
    let device = device(ALL & !bit::CHECKSUM);
    let config = PortConfig {
        checksum_offload: true,
        ..config(1, pool(2048))
    };
    let error = probe(&device, "").unwrap().configure(config).err().unwrap();
    assert!(error.is_usage());
    assert!(
        error.to_string().contains("complete the checksums"),
        "{error}"
    );
}
