//! Arbitrary bytes as a packet of each detector. An accepted packet has the length and the numbers of
//! its layout, and is written back byte for byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_images::formats::{EigerBits, EigerLink, Layout, Packet, PacketCauses, write_packet};

fuzz_target!(|data: &[u8]| {
    let layouts = [
        Layout::eiger(1, EigerBits::Four, EigerLink::OneGigabit),
        Layout::eiger(2, EigerBits::ThirtyTwo, EigerLink::OneGigabit),
        Layout::eiger(2, EigerBits::Sixteen, EigerLink::TenGigabit),
        Layout::jungfrau(1, 2),
        Layout::moench(1, 1),
    ];
    let causes = PacketCauses::declare().expect("few causes");
    for layout in layouts.map(|layout| layout.expect("one module or two")) {
        match Packet::parse(data, &layout) {
            Ok(Packet { header, pixels }) => {
                assert!((header.packet_number.get() as usize) < layout.packets());
                assert_eq!(header.detector, layout.detector().code());
                assert!(matches!(header.version, 1 | 2));
                assert_eq!(pixels.len(), layout.packet_bytes());
                let mut again = vec![0; layout.payload_bytes()];
                assert_eq!(write_packet(header, pixels, &mut again), Ok(data.len()));
                assert_eq!(again, data);
            }
            Err(error) => assert!(!causes.of(error).name().is_empty()),
        }
    }
});
