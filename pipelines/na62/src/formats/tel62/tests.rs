#![allow(clippy::unwrap_used, clippy::panic)]
use pollux_pipelines::simd::Simd;
use proptest::prelude::*;

use super::data::MAX_WORDS;
use super::*;
use crate::formats::{FormatError, WriteError};

/// All decoders give the same result for these bytes.
fn check_agree(payload: &[u8], timestamp: u32) -> Result<(), TestCaseError> {
    let expected = Tel62::parse(payload).map(|data| data.edges(timestamp).collect::<Vec<_>>());
    for simd in Simd::all() {
        let mut decoded = Decoded::new(simd);
        let data = Tel62::decode(payload, timestamp, &mut decoded);
        let edges: Vec<_> = decoded.edges().collect();
        prop_assert!(data.is_ok() || edges.is_empty());
        prop_assert_eq!(data.map(|_| edges), expected.clone(), "{:?}", simd);
    }
    Ok(())
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn edges(words: &[u32], timestamp: u32) -> Vec<Edge> {
    Tel62::parse(&bytes(words))
        .unwrap()
        .edges(timestamp)
        .collect()
}

fn refused(words: &[u32]) -> FormatError {
    Tel62::parse(&bytes(words)).unwrap_err()
}

/// Board 3, trigger type 1, FPGAs 0 and 2: one frame of two edges, one frame of one.
const GOOD: [u32; 8] = [
    0x0003_0105,
    0x0000_0101,
    0x0003_1234,
    0x4 << 28 | 2 << 24 | 17 << 19 | 0x2_3456,
    0x5 << 28 | 2 << 24 | 17 << 19 | 0x2_3470,
    0x0002_0101,
    0x0002_1235,
    0x4 << 28 | 3 << 24 | 31 << 19 | 0x7_FFFF,
];

#[test]
fn words_are_those_of_the_farm() {
    let payload = bytes(&GOOD);
    let data = Tel62::parse(&payload).unwrap();
    assert_eq!(
        (data.sub_id(), data.trigger_type(), data.format()),
        (3, 1, 0)
    );
    assert!(!data.is_special());
    // Slot 0x1234 lies in the block of 2048 slots that begins at 0x1000.
    let base = 0x0056_1000 << 8;
    let edge = |fpga, tdc, channel, leading, time| Edge {
        fpga,
        tdc,
        channel,
        leading,
        time,
    };
    assert_eq!(
        edges(&GOOD, 0x0056_1230),
        [
            edge(0, 2, 17, true, base + 0x2_3456),
            edge(0, 2, 17, false, base + 0x2_3470),
            edge(2, 3, 31, true, base + 0x7_FFFF),
        ]
    );
}

#[test]
fn frames_across_a_wrap_of_16_bits_belong_to_the_nearest_slot() {
    let at = |frame: u32, timestamp: u32| {
        edges(
            &[0x0000_0001, 0x0000_0101, 0x0002_0000 | frame, 0x4 << 28],
            timestamp,
        )[0]
        .time
            >> 8
    };
    assert_eq!(at(0xFFF0, 0x0001_0005), 0xF800);
    assert_eq!(at(0x0004, 0x0001_FFFE), 0x2_0000);
    assert_eq!(at(0x8000, 0x0001_7FFF), 0x1_8000);
    // The counter of 32 bits wraps, too.
    assert_eq!(at(0x0001, 0xFFFF_FFFF), 0);
    assert_eq!(at(0xFFFF, 0), 0xFFFF_F800);
}

#[test]
fn error_blocks_are_passed_over() {
    let with_block = |block: &[u32]| {
        let mut words = GOOD.to_vec();
        words[1] |= 0x0100_0000;
        words.splice(5..5, block.iter().copied());
        words
    };
    let expected = edges(&GOOD, 0);
    assert_eq!(edges(&with_block(&[0x0001_0001]), 0), expected);
    assert_eq!(
        edges(&with_block(&[0x0003_0001, 0xDEAD, 0xBEEF]), 0),
        expected
    );
    // A block whose count exceeds the data, and one with a count of zero.
    assert!(matches!(
        refused(&with_block(&[0x0009_0001])),
        FormatError::Truncated { .. }
    ));
    assert!(matches!(
        refused(&with_block(&[0x0000_0001])),
        FormatError::Malformed(_)
    ));
    // The flag without a block: at the end, or before a word whose second byte is 0xFF.
    let mut words = GOOD.to_vec();
    words[5] |= 0x0100_0000;
    assert_eq!(edges(&words, 0), expected);
    let mut words = GOOD.to_vec();
    words[1] |= 0x0100_0000;
    words[5] |= 0x0000_FF00;
    assert_eq!(edges(&words, 0), expected);
}

#[test]
fn each_inconsistency_is_refused() {
    assert!(matches!(
        Tel62::parse(&[]),
        Err(FormatError::Truncated { .. })
    ));
    for len in 0..GOOD.len() * 4 {
        assert!(Tel62::parse(&bytes(&GOOD)[..len]).is_err(), "{len}");
    }
    let mut long = GOOD.to_vec();
    long.push(0);
    assert_eq!(refused(&long), FormatError::Trailing { excess: 4 });
    let with = |at: usize, word: u32| {
        let mut words = GOOD;
        words[at] = word;
        refused(&words)
    };
    assert!(matches!(with(0, 0x0003_0100), FormatError::Malformed(_)));
    assert!(matches!(with(0, 0x0003_011F), FormatError::Malformed(_)));
    assert!(matches!(
        with(0, 0x0003_0107),
        FormatError::Truncated { .. }
    ));
    assert!(matches!(with(2, 0x0000_1234), FormatError::Malformed(_)));
    assert!(matches!(with(3, 0x6 << 28), FormatError::Malformed(_)));
    assert!(matches!(
        with(6, 0xFFFF_1234),
        FormatError::Truncated { .. }
    ));
}

#[test]
fn special_triggers_have_no_edges() {
    let words = [0x0003_2301 | 0x8000, 0xFFFF_FFFF, 0x1234_5678];
    let payload = bytes(&words);
    let data = Tel62::parse(&payload).unwrap();
    assert!(data.is_special());
    assert_eq!(data.edges(0).count(), 0);
}

#[test]
fn the_writer_refuses_what_it_cannot_say() {
    let good = Edge {
        fpga: 1,
        tdc: 0,
        channel: 0,
        leading: true,
        time: 1000 << 8,
    };
    let mut buf = [0; 64];
    let mut write = |edges: &[Edge]| write_tel62(&mut buf, 0, 1, 1000, edges);
    assert_eq!(write(&[good]), Ok(16));
    assert_eq!(write(&[]), Ok(8));
    assert_eq!(write(&[good; 14]), Err(WriteError::Full));
    for bad in [
        Edge { fpga: 4, ..good },
        Edge { tdc: 4, ..good },
        Edge {
            channel: 32,
            ..good
        },
        Edge {
            time: (1000 + 32768) << 8,
            ..good
        },
        Edge {
            time: 1 << 40,
            ..good
        },
    ] {
        assert!(
            matches!(write(&[bad]), Err(WriteError::Invalid(_))),
            "{bad:?}"
        );
    }
    let early = Edge { fpga: 0, ..good };
    assert!(matches!(write(&[good, early]), Err(WriteError::Invalid(_))));
}

proptest! {
    #[test]
    fn round_trip(
        timestamp in any::<u32>(),
        raw in prop::collection::vec(
            (0..4u8, 0..4u8, 0..32u8, any::<bool>(), -32768..32768i32, any::<u8>()), 0..60),
    ) {
        let mut sent: Vec<Edge> = raw
            .into_iter()
            .map(|(fpga, tdc, channel, leading, offset, fine)| {
                let slot = timestamp.wrapping_add_signed(offset);
                let time = u64::from(slot) << 8 | u64::from(fine);
                Edge { fpga, tdc, channel, leading, time }
            })
            .collect();
        sent.sort_by_key(|edge| (edge.fpga, edge.time));
        let mut buf = [0; 1024];
        let len = write_tel62(&mut buf, 7, 1, timestamp, &sent).unwrap();
        let data = Tel62::parse(&buf[..len]).unwrap();
        prop_assert_eq!(data.edges(timestamp).collect::<Vec<_>>(), sent);
        check_agree(&buf[..len], timestamp)?;
    }

    #[test]
    fn any_words_are_safe(words in prop::collection::vec(any::<u32>(), 0..40), mask in any::<u32>()) {
        // Masked, so that small counts are likely.
        let payload = bytes(&words.iter().map(|word| word & (mask | 0x4001_0101)).collect::<Vec<_>>());
        check_agree(&payload, mask)?;
        if let Ok(data) = Tel62::parse(&payload) {
            prop_assert!(data.edges(0).count() <= words.len());
        }
    }

    #[test]
    fn mutated_data_is_safe(at in 0..GOOD.len() * 4, value in any::<u8>(), keep in 0..=GOOD.len() * 4) {
        let mut payload = bytes(&GOOD);
        payload[at] = value;
        for payload in [&payload[..], &payload[..keep]] {
            check_agree(payload, 5)?;
            if let Ok(data) = Tel62::parse(payload) {
                prop_assert!(data.edges(5).count() <= GOOD.len());
            }
        }
    }
}

#[test]
fn frames_of_many_words_are_decoded_and_longer_payloads_than_there_are_refused() {
    // Board word, FPGA word, frame word, and edges up to the last word of a fragment.
    let mut words = vec![
        0x0003_0101,
        0x0000_0101,
        ((MAX_WORDS as u32 - 2) << 16) | 0x1234,
    ];
    words.resize(MAX_WORDS, 0x4 << 28 | 9 << 19 | 0x4D);
    check_agree(&bytes(&words), 0x1234).unwrap();
    assert_eq!(edges(&words, 0x1234).len(), MAX_WORDS - 3);
    words.push(0);
    assert!(matches!(refused(&words), FormatError::Malformed(_)));
}
