//! Tests with packets that are written, read and corrupted.
#![allow(clippy::unwrap_used, clippy::panic)]
use pollux_pipelines::simd::Simd;
use proptest::prelude::*;

use super::packet::is_timestamp;
use super::*;
use crate::formats::{FormatError, WriteError};

fn write(primitives: &[Primitive]) -> Vec<u8> {
    let mut writer = MtpWriter::new(vec![0; MAX_PACKET], SOURCE_RICH, 3).unwrap();
    for &primitive in primitives {
        writer.push(primitive).unwrap();
    }
    let (mut bytes, len) = writer.finish();
    bytes.truncate(len);
    bytes
}

fn example() -> Vec<Primitive> {
    vec![
        Primitive {
            id: 0x4001,
            timestamp: 0x0001_02FE,
            fine: 0x10,
        },
        Primitive {
            id: 0x4002,
            timestamp: 0x0001_0301,
            fine: 0xFF,
        },
    ]
}

#[test]
fn words_are_those_of_the_firmware() {
    let bytes = write(&example());
    let words: Vec<u32> = bytes
        .chunks(4)
        .map(|w| u32::from_le_bytes(w.try_into().unwrap()))
        .collect();
    assert_eq!(
        words,
        [
            0x1C00_0102,
            0x0302_0014,
            0x4001_FE10,
            0x0000_0103,
            0x4002_01FF
        ]
    );
    let packet = MtpPacket::parse(&bytes).unwrap();
    assert_eq!(
        (packet.source_id(), packet.sub_id(), packet.count()),
        (SOURCE_RICH, 3, 2)
    );
    assert!(packet.primitives().eq(example()));
}

#[test]
fn times_take_the_fine_unit_as_a_parameter() {
    let primitive = Primitive {
        id: 0x4000,
        timestamp: 4,
        fine: 128,
    };
    assert!((primitive.time_ns(FINE_NS) - 112.5).abs() < 1e-9);
    assert!((primitive.time_ns(FINE_FIRMWARE_NS) - 112.475_481_6).abs() < 1e-9);
}

#[test]
fn an_id_that_reads_as_a_timestamp_is_refused() {
    let mut writer = MtpWriter::new([0u8; 64], 1, 1).unwrap();
    let refused = Primitive {
        id: 0x00FF,
        timestamp: 0,
        fine: 0,
    };
    assert!(matches!(writer.push(refused), Err(WriteError::Invalid(_))));
    writer
        .push(Primitive {
            id: 0x0100,
            ..refused
        })
        .unwrap();
    assert_eq!(writer.count(), 1);
}

#[test]
fn bits_are_set_in_identifiers_alone() {
    // The high parts change, so timestamp words stand between the primitives.
    let primitives: Vec<_> = (0..9)
        .map(|n| Primitive {
            id: 0x8000,
            timestamp: (n / 2) << 8 | 0xff,
            fine: 0xff,
        })
        .collect();
    let mut writer = MtpWriter::new([0u8; 256], 1, 1).unwrap();
    for &primitive in &primitives {
        writer.push(primitive).unwrap();
    }
    writer.set_bits(|n| if n % 3 == 0 { 0x0180 } else { 0 });
    let (bytes, len) = writer.finish();
    let packet = MtpPacket::parse(&bytes[..len]).unwrap();
    for (n, (read, written)) in packet.primitives().zip(primitives).enumerate() {
        let id = if n % 3 == 0 { 0x8180 } else { 0x8000 };
        assert_eq!(read, Primitive { id, ..written });
    }
    assert_eq!(packet.count(), 9);
}

#[test]
fn packets_fill_up_at_255_primitives_or_1472_bytes() {
    let fill = |step: u32| {
        let mut writer = MtpWriter::new(vec![0; 4096], 1, 1).unwrap();
        let mut n = 0;
        while writer
            .push(Primitive {
                id: 0x8000,
                timestamp: n * step,
                fine: 0,
            })
            .is_ok()
        {
            n += 1;
        }
        let (bytes, len) = writer.finish();
        assert!(MtpPacket::parse(&bytes[..len]).is_ok());
        (n, len)
    };
    assert_eq!(fill(0), (255, 8 + 255 * 4));
    // A timestamp word for each primitive but the first: 183 primitives take 8 + 4 + 182 * 8 bytes.
    assert_eq!(fill(256), (183, 1468));
    assert!(MtpWriter::new([0u8; 7], 1, 1).is_err());
}

#[test]
fn every_wrong_length_or_count_is_refused() {
    let good = write(&example());
    for len in 0..good.len() {
        assert!(matches!(
            MtpPacket::parse(&good[..len]),
            Err(FormatError::Truncated { .. })
        ));
    }
    let mut long = good.clone();
    long.push(0);
    assert_eq!(
        MtpPacket::parse(&long).unwrap_err(),
        FormatError::Trailing { excess: 1 }
    );
    long[4] += 1;
    assert!(matches!(
        MtpPacket::parse(&long),
        Err(FormatError::Malformed(_))
    ));
    for count in [0, 1, 3, 255] {
        let mut bytes = good.clone();
        bytes[6] = count;
        assert!(matches!(
            MtpPacket::parse(&bytes),
            Err(FormatError::Malformed(_))
        ));
    }
}

proptest! {
    #[test]
    fn round_trip(raw in prop::collection::vec((0x100..=u16::MAX, any::<u32>(), any::<u8>()), 0..180)) {
        let primitives: Vec<_> = raw
            .into_iter()
            .map(|(id, timestamp, fine)| Primitive { id, timestamp, fine })
            .collect();
        let bytes = write(&primitives);
        prop_assert!(MtpPacket::parse(&bytes).unwrap().primitives().eq(primitives));
    }

    #[test]
    fn any_bytes_are_safe(mut bytes in prop::collection::vec(any::<u8>(), 0..120), fix in any::<bool>()) {
        if fix && bytes.len() >= HEADER_LEN {
            let len = (bytes.len() as u16).to_le_bytes();
            bytes[4..6].copy_from_slice(&len);
        }
        if let Ok(packet) = MtpPacket::parse(&bytes) {
            prop_assert_eq!(packet.primitives().count(), usize::from(packet.count()));
        }
    }

    /// Any mixture of words, valid, truncated or corrupted: all instruction sets give the same
    /// result.
    #[test]
    fn all_ways_to_decode_agree(
        words in prop::collection::vec((any::<u32>(), 0..4u8), 0..330),
        rare in 1..4u8,
        (cut, damage) in (0..40usize, prop::option::of((any::<prop::sample::Index>(), any::<u8>()))),
    ) {
        let (header, words): (u32, Vec<u32>) = (words.len() as u32, words
            .into_iter()
            .map(|(word, kind)| if kind < rare { word & 0x00FF_FFFF } else { word })
            .collect());
        let count = words.iter().filter(|&&word| !is_timestamp(word)).count() as u32;
        let second = (count << 16) + (words.len() as u32 + 2) * 4;
        let mut bytes: Vec<u8> = [header, second].iter().chain(&words).flat_map(|word| word.to_le_bytes()).collect();
        if let Some((at, value)) = damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        for bytes in [&bytes[..], &bytes[..bytes.len().saturating_sub(cut)]] {
            let expected = MtpPacket::parse(bytes).map(|packet| packet.primitives().collect::<Vec<_>>());
            prop_assert!(damage.is_some() || cut > 0 || count > 255 || expected.is_ok());
            for simd in Simd::all() {
                let mut decoded = Decoded::new(simd);
                let read = MtpPacket::decode(bytes, &mut decoded).map(|_| decoded.primitives().collect());
                prop_assert_eq!(&read, &expected, "{:?}", simd);
                prop_assert!(read.is_ok() || decoded.words().is_empty());
            }
        }
    }
}
