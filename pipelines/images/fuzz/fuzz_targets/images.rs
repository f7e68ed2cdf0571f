//! Packets of two EIGER ports, valid and corrupted, early and late, through a receiver with few
//! buffers. Each packet has one outcome; each image has the pixels of its own packets and no others.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_images::formats::{Detector, EigerBits, EigerLink, Header, Layout, write_packet};
use pollux_images::receive::{DiscardPolicy, Image, ReceiveConfig, Route, images};
use pollux_mempool::region::PageSize;
use pollux_mempool::time::Ns;
use pollux_pipelines::Moment;
use pollux_pmd::event::RegionOptions;
use pollux_pmd::stream::StreamId;

const PORTS: usize = 2;

/// The byte of all pixels of a packet.
fn pixel(frame: u64, port: usize, packet: usize) -> u8 {
    (frame.wrapping_mul(167) as u8) ^ (port as u8 * 16 + packet as u8) & 0x7F
}

/// Compares the pixels of an image with those that its packets have to have.
fn check(image: &Image<u8>) {
    let layout = image.layout();
    let mut missing = 0;
    for port in 0..PORTS {
        let packets = image.module_pixels(port).chunks(layout.packet_bytes());
        for (packet, pixels) in packets.enumerate() {
            let is_there = image.has(port, packet);
            missing += usize::from(!is_there);
            let expected = if is_there {
                pixel(image.number(), port, packet)
            } else {
                0xFF
            };
            assert!(pixels.iter().all(|&pixel| pixel == expected), "{image:?}");
        }
    }
    assert_eq!(image.missing_packets(), missing);
    assert_eq!(image.losses().next().is_none(), missing == 0);
}

fuzz_target!(|data: &[u8]| {
    let layout = Layout::eiger(PORTS, EigerBits::Four, EigerLink::TenGigabit).expect("two ports");
    let Some((&choice, data)) = data.split_first() else {
        return;
    };
    let route = if choice & 1 == 0 {
        Route::Streams(vec![StreamId(0), StreamId(1)])
    } else {
        Route::Modules(vec![10, 11])
    };
    let policies = [
        DiscardPolicy::Nothing,
        DiscardPolicy::Empty,
        DiscardPolicy::Partial,
    ];
    let config = ReceiveConfig {
        policy: policies[usize::from(choice >> 1) % 3],
        buffers: 4,
        timeout: Ns(64),
        jump: 5,
        horizon: 20,
        memory: RegionOptions {
            pages: PageSize::Kib4,
            ..RegionOptions::default()
        },
        ..ReceiveConfig::new(layout, route)
    };
    let (mut placer, mut reader) = images::<u8>(&config).expect("a small receiver");
    let mut payload = vec![0; layout.payload_bytes()];
    let (mut frame, mut now, mut sent, mut held) = (100_u64, 0_u64, 0, Vec::new());
    for (n, op) in data.as_chunks::<4>().0.iter().enumerate() {
        let [kind, packet, module, more] = op.map(usize::from);
        match kind % 16 {
            0 => frame = frame.wrapping_add(more as u64),
            1 => frame = frame.wrapping_sub(more as u64),
            2 => frame ^= 1 << (more % 64),
            3 => now += more as u64,
            4 => reader.begin_anew(),
            _ => {}
        }
        // Several packets an operation, so that images become complete.
        for packet in packet..packet + 1 + kind / 16 {
            let mut header = Header::new(Detector::Eiger);
            header.frame_number = frame.into();
            header.packet_number = (packet as u32 % 17).into();
            header.module_id = (10 + module as u16 % 3).into();
            if kind % 16 == 5 {
                header.row = (more as u16).into();
                header.version = module as u8 % 4;
            }
            let port = module % 3 % PORTS;
            let pixels = vec![pixel(frame, port, packet % 17); layout.packet_bytes()];
            let len = write_packet(&header, &pixels, &mut payload).expect("room");
            let stream = StreamId(module as u16 % 3);
            let cut = if kind % 16 == 6 { more.min(len) } else { 0 };
            let _ = placer.place(stream, &payload[..len - cut], Moment(now));
            sent += 1;
        }
        if n % 3 == 0 {
            held.extend(reader.poll(Moment(now)));
            held.iter().for_each(check);
        }
        if held.len() > more % 4 {
            held.clear();
        }
    }
    reader.close_all();
    held.clear();
    while let Some(image) = reader.poll(Moment(now)) {
        check(&image);
    }
    let balance = placer.view().balance();
    assert_eq!(balance.delivered + balance.dropped_total(), sent);
    let counts = reader.counts();
    assert_eq!(
        counts.received.get(),
        counts.complete.get() + counts.partial.get()
    );
});
