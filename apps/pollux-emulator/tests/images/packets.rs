//! Packets against an independent parser, and images put together from them.

use std::collections::HashMap;

use pollux_emulator::images::config::ImagesConfig;
use pollux_images::formats::Detector;

use crate::frames::parse;
use crate::receiver::{send_all, small, stack};

/// What FORMATS says of a detector: type, packets of a frame from a sender, bytes of pixels.
type Expected = (u8, u32, usize);

/// Sends a few frames, and puts the images together by senders and packet numbers alone.
fn check(config: &ImagesConfig, (code, packets, bytes): Expected, queues: u16) {
    let sent = stack(config);
    let images: Vec<Vec<u8>> = (0..sent.order().total())
        .map(|place| sent.image(place).unwrap())
        .collect();
    let order = sent.order();
    let (frames, report) = send_all(config, sent, queues);
    let senders = u32::from(config.modules * config.interfaces);
    let all = config.frames * u64::from(senders * packets);
    assert_eq!((report.packets_sent, frames.len() as u64), (all, all));
    assert_eq!(report.bytes_sent, all * (bytes as u64 + 48));
    assert!(report.complete && report.packets_unsent == 0);

    let mut built: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut seen = HashMap::new();
    for (queue, frame) in &frames {
        let packet = parse(frame).unwrap();
        assert_eq!(packet.pixels.len(), bytes);
        assert_eq!(
            (packet.detector, packet.version),
            (code, config.header_version)
        );
        assert!(packet.packet < packets);
        let sender = packet.ports.1 - config.addresses.dst_port;
        assert_eq!(packet.ports.0 - config.addresses.src_port, sender);
        assert_eq!(*queue, sender % queues, "each sender has one queue");
        assert_eq!(packet.module, sender / config.interfaces);
        assert_eq!((packet.row, packet.column), (sender, 0));
        assert_eq!(packet.exposure, 105, "units of 100 ns");
        // 500 us from frame to frame where there is no rate.
        let since = (packet.frame - config.first_frame) * 5000;
        assert_eq!(packet.timestamp, since);
        let image = built.entry(packet.frame).or_default();
        image.resize((senders * packets) as usize * bytes, 0);
        let at = (u32::from(sender) * packets + packet.packet) as usize * bytes;
        image[at..at + bytes].copy_from_slice(&packet.pixels);
        *seen
            .entry((packet.frame, sender, packet.packet))
            .or_insert(0) += 1;
    }
    assert_eq!(seen.len() as u64, all, "each packet once");
    for number in config.first_frame..config.first_frame + config.frames {
        assert!(
            built[&number] == images[order.place(number)],
            "frame {number}"
        );
    }
}

#[test]
fn packets_are_those_of_the_detectors() {
    let cases = [
        (Detector::Jungfrau, 1, 1, (3, 128, 8192), 1),
        (Detector::Jungfrau, 2, 2, (3, 64, 8192), 4),
        (Detector::Jungfrau, 3, 1, (3, 128, 8192), 2),
        (Detector::Moench, 2, 2, (5, 25, 6400), 1),
        (Detector::Eiger, 4, 1, (1, 64, 4096), 1),
    ];
    for (detector, modules, interfaces, expected, queues) in cases {
        let config = ImagesConfig {
            detector,
            modules,
            interfaces,
            exposure_us: 10.5,
            ..small()
        };
        check(&config, expected, queues);
    }
}

#[test]
fn versions_first_frames_and_dark_frames() {
    let config = ImagesConfig {
        header_version: 1,
        first_frame: (1 << 40) + 1,
        dark_every: 3,
        frames: 7,
        exposure_us: 10.5,
        ..small()
    };
    check(&config, (3, 128, 8192), 1);
}

/// A UDP checksum of zero is sent as all ones; whatever the pixels are, no packet lacks it.
#[test]
fn every_checksum_is_there() {
    let mut config = small();
    config.pattern.bad_pixels = 0;
    config.frames = 60;
    config.stack = 1;
    let (frames, _) = send_all(&config, stack(&config), 1);
    assert!(frames.iter().all(|(_, frame)| parse(frame).is_ok()));
}
