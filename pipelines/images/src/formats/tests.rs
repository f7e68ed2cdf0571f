#![allow(clippy::unwrap_used)]
use proptest::prelude::*;
use zerocopy::IntoBytes;

use super::*;
use crate::Shape;

/// A packet, written from the description of the format alone.
fn encode(fields: &Fields, pixels: &[u8]) -> Vec<u8> {
    let mut bytes = fields.frame.to_le_bytes().to_vec();
    bytes.extend(fields.exposure.to_le_bytes());
    bytes.extend(fields.packet.to_le_bytes());
    bytes.extend(fields.bunch.to_le_bytes());
    bytes.extend(fields.time.to_le_bytes());
    for half in [fields.module, fields.row, fields.column, fields.spec2] {
        bytes.extend(half.to_le_bytes());
    }
    bytes.extend(fields.spec3.to_le_bytes());
    bytes.extend(fields.spec4.to_le_bytes());
    bytes.extend([fields.kind, fields.version]);
    assert_eq!(bytes.len(), 48);
    bytes.extend(pixels);
    bytes
}

#[derive(Clone, Debug)]
struct Fields {
    frame: u64,
    exposure: u32,
    packet: u32,
    bunch: u64,
    time: u64,
    module: u16,
    row: u16,
    column: u16,
    spec2: u16,
    spec3: u32,
    spec4: u16,
    kind: u8,
    version: u8,
}

prop_compose! {
    fn fields()(
        (frame, bunch, time) in any::<(u64, u64, u64)>(),
        (exposure, packet, spec3) in (any::<u32>(), prop_oneof![0..140_u32, any::<u32>()], any::<u32>()),
        (module, row, column, spec2, spec4) in any::<(u16, u16, u16, u16, u16)>(),
        kind in prop_oneof![4 => Just(3_u8), 1 => any::<u8>()],
        version in prop_oneof![4 => 1..3_u8, 1 => any::<u8>()],
    ) -> Fields {
        Fields {
            frame, exposure, packet, bunch, time, module, row, column, spec2, spec3, spec4, kind, version,
        }
    }
}

fn layouts() -> Vec<Layout> {
    let bits = [
        EigerBits::Four,
        EigerBits::Eight,
        EigerBits::Sixteen,
        EigerBits::ThirtyTwo,
    ];
    let links = [EigerLink::OneGigabit, EigerLink::TenGigabit];
    let eiger = links.map(|link| bits.map(|bits| Layout::eiger(3, bits, link)));
    let two = [Layout::jungfrau, Layout::moench].map(|new| [new(3, 1), new(3, 2)]);
    let all = eiger.into_iter().flatten().chain(two.into_iter().flatten());
    all.map(Result::unwrap).collect()
}

proptest! {
    #[test]
    fn packets_are_read_as_they_were_encoded(fields in fields(), len in prop_oneof![4 => Just(8192), 1 => 0..9000_usize]) {
        let layout = Layout::jungfrau(2, 1).unwrap();
        let pixels: Vec<u8> = (0..len).map(|n| n as u8).collect();
        let payload = encode(&fields, &pixels);
        let read = Packet::parse(&payload, &layout);
        let expected = if !(1..=2).contains(&fields.version) {
            Err(PacketError::Version(fields.version))
        } else if fields.kind != 3 {
            Err(PacketError::Detector { found: fields.kind, expected: Detector::Jungfrau })
        } else if len != 8192 {
            Err(PacketError::Size { have: 48 + len, need: 8240 })
        } else if fields.packet >= 128 {
            Err(PacketError::OutOfRange { packet: fields.packet, packets: 128 })
        } else {
            Ok(())
        };
        prop_assert_eq!(read.map(|_| ()), expected);
        if let Ok(Packet { header, pixels: read }) = read {
            prop_assert_eq!(read, &pixels[..]);
            prop_assert_eq!(
                (header.frame_number.get(), header.bunch_id.get(), header.timestamp.get()),
                (fields.frame, fields.bunch, fields.time)
            );
            prop_assert_eq!(
                (header.exposure.get(), header.packet_number.get(), header.spec3.get()),
                (fields.exposure, fields.packet, fields.spec3)
            );
            prop_assert_eq!(
                (header.module_id.get(), header.row.get(), header.column.get()),
                (fields.module, fields.row, fields.column)
            );
            prop_assert_eq!((header.spec2.get(), header.spec4.get()), (fields.spec2, fields.spec4));
            // What is read is written again byte for byte.
            let mut again = vec![0xEE; payload.len() + 1];
            prop_assert_eq!(write_packet(header, read, &mut again), Ok(payload.len()));
            prop_assert_eq!(&again[..payload.len()], &payload[..]);
            prop_assert_eq!(again[payload.len()], 0xEE);
        }
    }

    #[test]
    fn any_bytes_are_a_packet_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..9000)) {
        for layout in layouts() {
            if let Ok(packet) = Packet::parse(&bytes, &layout) {
                prop_assert_eq!(packet.header.as_bytes(), &bytes[..48]);
                prop_assert_eq!(packet.pixels, &bytes[48..]);
            }
        }
    }
}

#[test]
fn every_length_but_one_is_refused() {
    let layout = Layout::moench(1, 2).unwrap();
    let header = Header::new(Detector::Moench);
    let mut payload = vec![0; 6449];
    assert_eq!(write_packet(&header, &[1; 6400], &mut payload), Ok(6448));
    for len in 0..payload.len() {
        let read = Packet::parse(&payload[..len], &layout);
        assert_eq!(read.is_ok(), len == 6448, "{len}");
        if len != 6448 {
            let (have, need) = (len, 6448);
            assert_eq!(read, Err(PacketError::Size { have, need }));
            let (have, need) = (len.min(6447), 6448);
            let short = write_packet(&header, &[1; 6400], &mut vec![0; have]);
            assert_eq!(short, Err(WriteError { need, have }));
        }
    }
}

/// Numbers and sizes as the detectors' documentation has them.
#[test]
fn layouts_are_those_of_the_detectors() {
    let jungfrau = Layout::jungfrau(2, 1).unwrap();
    assert_eq!((jungfrau.payload_bytes(), jungfrau.packets()), (8240, 128));
    assert_eq!(jungfrau.packet_rows(0..1), 0..4);
    assert_eq!(jungfrau.packet_rows(127..128), 508..512);
    assert_eq!(jungfrau.image_bytes(), 2 << 20);
    let halves = Layout::jungfrau(2, 2).unwrap();
    assert_eq!((halves.packets(), halves.senders()), (64, 4));
    // Packet 0 of the second interface is the first one of the second half.
    assert_eq!(halves.packet_range(1, 0), jungfrau.packet_range(0, 64));
    assert_eq!(halves.packet_rows(64..65), 256..260);
    let moench = Layout::moench(1, 1).unwrap();
    assert_eq!((moench.packets(), moench.packet_rows(0..1)), (50, 0..8));
    assert_eq!(Layout::moench(1, 2).unwrap().packets(), 25);
    let eiger = |bits, link| Layout::eiger(4, bits, link).unwrap();
    let ten = [EigerBits::Four, EigerBits::Eight, EigerBits::Sixteen];
    let packets = ten.map(|bits| eiger(bits, EigerLink::TenGigabit).packets());
    assert_eq!(packets, [16, 32, 64]);
    let most = eiger(EigerBits::ThirtyTwo, EigerLink::OneGigabit);
    // Half a row a packet.
    assert_eq!((most.packets(), most.packet_rows(1..2)), (512, 0..1));
    assert_eq!(most.packet_rows(1..3), 0..2);
    for layout in layouts() {
        let Shape { rows, columns } = layout.module();
        assert_eq!(layout.module_bytes() * 8, rows * columns * layout.bits());
        assert_eq!(layout.packet_rows(0..layout.module_packets()), 0..rows);
        assert_eq!(layout.image().rows, 3 * rows);
        assert!(layout.module_packets() <= 512, "the mask of slsReceiver");
    }
}

#[test]
fn wrong_layouts_are_refused() {
    assert_eq!(Layout::jungfrau(0, 1), Err(LayoutError::Modules(0)));
    assert_eq!(Layout::moench(1025, 1), Err(LayoutError::Modules(1025)));
    for interfaces in [0, 3] {
        let refused = Layout::jungfrau(1, interfaces);
        assert_eq!(refused, Err(LayoutError::Interfaces(interfaces)));
    }
}

#[test]
fn each_error_has_a_cause_of_its_own() {
    let causes = PacketCauses::declare().unwrap();
    let (have, need) = (1, 2);
    let all = [
        PacketError::Size { have, need },
        PacketError::Version(9),
        PacketError::Detector {
            found: 9,
            expected: Detector::Eiger,
        },
        PacketError::OutOfRange {
            packet: 9,
            packets: 9,
        },
    ];
    let mut names: Vec<_> = all.iter().map(|&error| causes.of(error).name()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "bad-version",
            "detector-type",
            "packet-range",
            "packet-size"
        ]
    );
}

/// The bytes of the fenced `hex` block of the format's page, and zeros up to a packet.
fn documented_example() -> Vec<u8> {
    let page = include_str!("../../../../docs/formats/sls.md");
    let block = page.split("```hex").nth(1).unwrap();
    let lines = block.split("```").next().unwrap().lines();
    let mut bytes: Vec<_> = lines
        .flat_map(|line| line.split('#').next().unwrap().split_whitespace())
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect();
    bytes.resize(8240, 0);
    bytes
}

#[test]
fn the_documented_example_is_what_is_written_and_read() {
    let payload = documented_example();
    let layout = Layout::jungfrau(2, 2).unwrap();
    let mut header = Header::new(Detector::Jungfrau);
    header.frame_number = 1_000_000.into();
    header.exposure = 10_000.into();
    header.packet_number = 2.into();
    header.bunch_id = 12_345.into();
    header.timestamp = 10_000_000.into();
    header.module_id = 5.into();
    header.row = 3.into();
    let packet = Packet::parse(&payload, &layout).unwrap();
    assert_eq!(packet.header, &header);
    let pixels = [1000_u16, (1 << 14) + 3000, 0xFFFF];
    assert!(packet.pixels.starts_with(pixels.as_bytes()));
    assert_eq!(layout.packet_rows(64 + 2..64 + 3), 264..268);
    let mut written = vec![0xEE; 8240];
    assert_eq!(write_packet(&header, packet.pixels, &mut written), Ok(8240));
    assert_eq!(written, payload);
}
