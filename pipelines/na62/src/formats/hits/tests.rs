#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use pollux_pipelines::simd::Simd;
use proptest::prelude::*;

use super::*;
use crate::formats::{FormatError, WriteError};
use crate::rich::Hit;
use crate::rich::geometry::PMS;

const NO_HITS: [Hit; MAX_HITS] = [Hit { pm: 0, fine: 0 }; MAX_HITS];

type Event = (u64, Vec<Hit>);

fn hit(pm: u16, fine: u8) -> Hit {
    let fine = fine.into();
    Hit { pm, fine }
}

fn write(events: &[Event]) -> Vec<u8> {
    let mut writer = HitsWriter::new(vec![0; MAX_FRAME], 0x1C, 2, 7).unwrap();
    for (timestamp, hits) in events {
        writer.push(*timestamp, hits).unwrap();
    }
    let (mut bytes, len) = writer.finish();
    bytes.truncate(len);
    bytes
}

fn read(frame: &HitsFrame<'_>) -> Vec<Event> {
    let mut buf = NO_HITS;
    let mut events = frame.events();
    let mut out = Vec::new();
    while let Some((timestamp, hits)) = events.next_into(&mut buf) {
        out.push((timestamp, hits.to_vec()));
    }
    assert_eq!(events.remaining(), 0);
    assert_eq!(out.len(), usize::from(frame.event_count()));
    out
}

fn all(decoded: &Decoded) -> Vec<Event> {
    let event = |(timestamp, hits): (u64, &[Hit])| (timestamp, hits.to_vec());
    decoded.events().map(event).collect()
}

fn example() -> Vec<Event> {
    vec![
        (1_000_000, vec![hit(976, 10), hit(980, 12), hit(1200, 255)]),
        (1_000_200, vec![hit(5, 128)]),
    ]
}

/// The bytes of the first fenced `hex` block of the format's page.
fn documented_example() -> Vec<u8> {
    let page = include_str!("../../../../../docs/formats/rich-hits.md");
    let block = page
        .split("```hex")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    block
        .lines()
        .flat_map(|line| line.split('#').next().unwrap().split_whitespace())
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}

#[test]
fn the_documented_example_is_what_is_written_and_read() {
    let bytes = documented_example();
    assert_eq!(write(&example()), bytes);
    let frame = HitsFrame::parse(&bytes).unwrap();
    assert_eq!(
        (frame.source_id(), frame.sub_id(), frame.sequence()),
        (0x1C, 2, 7)
    );
    assert_eq!(frame.first_timestamp(), 1_000_000);
    assert_eq!(read(&frame), example());
}

#[test]
fn every_truncation_and_every_extension_is_refused() {
    let bytes = write(&example());
    for len in 0..bytes.len() {
        let cause = HitsFrame::parse(&bytes[..len]).unwrap_err();
        assert!(
            matches!(cause, FormatError::Truncated { .. }),
            "{len}: {cause}"
        );
        if len >= HEADER_LEN {
            // The same with a header that agrees with the shorter length.
            let mut cut = bytes[..len].to_vec();
            cut[14..16].copy_from_slice(&((len - HEADER_LEN) as u16).to_le_bytes());
            assert!(matches!(
                HitsFrame::parse(&cut),
                Err(FormatError::Truncated { .. })
            ));
        }
    }
    let mut long = bytes.clone();
    long.push(0);
    assert_eq!(
        HitsFrame::parse(&long).unwrap_err(),
        FormatError::Trailing { excess: 1 }
    );
    long[14] += 1;
    assert_eq!(
        HitsFrame::parse(&long).unwrap_err(),
        FormatError::Trailing { excess: 1 }
    );
}

#[test]
fn each_inconsistency_has_its_cause() {
    let good = write(&example());
    let refused = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        HitsFrame::parse(&bytes).unwrap_err()
    };
    assert!(matches!(refused(0, b'Q'), FormatError::Malformed(m) if m.contains("magic")));
    assert_eq!(
        refused(4, 2),
        FormatError::BadVersion {
            found: 2,
            expected: 1
        }
    );
    assert!(matches!(refused(7, 1), FormatError::Malformed(m) if m.contains("reserved")));
    assert!(matches!(
        refused(12, 1),
        FormatError::Trailing { excess: 5 }
    ));
    assert!(matches!(refused(12, 3), FormatError::Truncated { .. }));
    assert!(matches!(refused(24, 1), FormatError::Malformed(m) if m.contains("first timestamp")));
    assert!(matches!(refused(25, 200), FormatError::Truncated { .. }));
    // Second byte of the gap of PM 976: bit 7 set, then a value that leads past PM 1951.
    assert!(matches!(refused(27, 0x87), FormatError::Malformed(m) if m.contains("two bytes")));
    assert!(matches!(refused(27, 0x0F), FormatError::Malformed(m) if m.contains("above the last")));
    let mut late = good.clone();
    late[16..24].copy_from_slice(&(u64::MAX - 199).to_le_bytes());
    assert!(
        matches!(HitsFrame::parse(&late), Err(FormatError::Malformed(m)) if m.contains("2^64"))
    );
    late[16..24].copy_from_slice(&(u64::MAX - 200).to_le_bytes());
    assert_eq!(read(&HitsFrame::parse(&late).unwrap())[1].0, u64::MAX);
}

#[test]
fn a_corrupt_event_takes_the_whole_frame_with_it() {
    let mut bytes = write(&example());
    // The last event's only index becomes a two-byte code that includes its fine time.
    let index = bytes.len() - 2;
    bytes[index] |= 0x80;
    assert!(HitsFrame::parse(&bytes).is_err());
}

#[test]
fn the_writer_refuses_what_it_cannot_say_and_keeps_the_frame() {
    let mut writer = HitsWriter::new([0u8; MAX_FRAME], 1, 2, 3).unwrap();
    writer.push(10, &[hit(3, 1)]).unwrap();
    let invalid = |result| assert!(matches!(result, Err(WriteError::Invalid(_))), "{result:?}");
    invalid(writer.push(10, &[]));
    invalid(writer.push(9, &[]));
    invalid(writer.push(11, &[hit(4, 0), hit(4, 0)]));
    invalid(writer.push(11, &[hit(4, 0), hit(3, 0)]));
    invalid(writer.push(11, &[hit(PMS as u16, 0)]));
    invalid(writer.push(11, &[hit(u16::MAX, 0)]));
    invalid(writer.push(11, &vec![hit(0, 0); 256]));
    invalid(writer.push(u64::MAX, &[]));
    assert_eq!(
        writer.push(11 + u64::from(MAX_GAP) + 1, &[]),
        Err(WriteError::Full)
    );
    writer
        .push(11 + u64::from(MAX_GAP), &[hit(1951, 2)])
        .unwrap();
    assert_eq!(writer.first_timestamp(), Some(10));
    let (bytes, len) = writer.finish();
    let frame = HitsFrame::parse(&bytes[..len]).unwrap();
    assert_eq!(
        read(&frame),
        [
            (10, vec![hit(3, 1)]),
            (11 + u64::from(MAX_GAP), vec![hit(1951, 2)])
        ]
    );
}

#[test]
fn a_full_frame_says_so_and_stays_whole() {
    assert_eq!(
        HitsWriter::new([0u8; HEADER_LEN - 1], 0, 0, 0).unwrap_err(),
        WriteError::Buffer {
            need: HEADER_LEN,
            have: HEADER_LEN - 1
        }
    );
    for size in HEADER_LEN..HEADER_LEN + 40 {
        let mut writer = HitsWriter::new(vec![0u8; size], 0, 0, 0).unwrap();
        let mut written = 0;
        let refusal = loop {
            match writer.push(written, &[hit(700, 1), hit(900, 2)]) {
                Ok(()) => written += 1,
                Err(refusal) => break refusal,
            }
        };
        assert_eq!(refusal, WriteError::Full);
        assert_eq!(usize::from(writer.event_count()), written as usize);
        let (bytes, len) = writer.finish();
        assert!(len <= size && len + 8 > size, "{len} of {size}");
        assert_eq!(
            read(&HitsFrame::parse(&bytes[..len]).unwrap()).len(),
            written as usize
        );
    }
}

#[test]
fn a_frame_without_events_is_legal() {
    let bytes = write(&[]);
    assert_eq!(bytes.len(), HEADER_LEN);
    assert!(read(&HitsFrame::parse(&bytes).unwrap()).is_empty());
}

fn any_events() -> impl Strategy<Value = Vec<Event>> {
    // Mostly short gaps, mostly long ones.
    let pms = prop_oneof![0..PMS as u16, 0..200u16];
    let hits = prop::collection::btree_map(pms, any::<u8>(), 0..40)
        .prop_map(|hits| hits.into_iter().map(|(pm, fine)| hit(pm, fine)).collect());
    let event = (1..=u64::from(MAX_GAP) + 1, hits);
    (any::<u32>(), prop::collection::vec(event, 0..20)).prop_map(|(start, events)| {
        let mut timestamp = u64::from(start);
        events
            .into_iter()
            .map(|(step, hits): (u64, Vec<Hit>)| {
                timestamp += step;
                (timestamp, hits)
            })
            .collect()
    })
}

/// Every accepted frame satisfies the rules that consumers rely on, and all decoders give the same
/// result.
fn check_accepted(bytes: &[u8]) {
    let parsed = HitsFrame::parse(bytes);
    let expected = parsed.as_ref().map(read);
    for simd in Simd::all() {
        let mut decoded = Decoded::new();
        let events = HitsFrame::decode(bytes, simd, &mut decoded).map(|_| all(&decoded));
        assert_eq!(
            events.as_ref(),
            expected.as_ref().map_err(|cause| *cause),
            "{simd:?}"
        );
        assert!(events.is_ok() || decoded.events().len() == 0);
    }
    if let Ok(events) = expected {
        assert!(events.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (_, hits) in events {
            assert!(hits.windows(2).all(|pair| pair[0].pm < pair[1].pm));
            assert!(hits.iter().all(|hit| usize::from(hit.pm) < PMS));
        }
    }
}

proptest! {
    #[test]
    fn round_trip(events in any_events()) {
        let bytes = write(&events);
        check_accepted(&bytes);
        prop_assert_eq!(read(&HitsFrame::parse(&bytes).unwrap()), events);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_accepted(&bytes);
    }

    #[test]
    fn random_payload_behind_a_valid_header_never_panics(
        payload in prop::collection::vec(any::<u8>(), 0..200),
        event_count in 0..20u16,
    ) {
        let mut bytes = write(&[]);
        bytes[12..14].copy_from_slice(&event_count.to_le_bytes());
        bytes[14..16].copy_from_slice(&(payload.len() as u16).to_le_bytes());
        bytes.extend(&payload);
        check_accepted(&bytes);
    }

    #[test]
    fn mutated_frames_never_panic(
        events in any_events(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        keep in any::<prop::sample::Index>(),
    ) {
        let mut bytes = write(&events);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        check_accepted(&bytes);
        bytes.truncate(keep.index(bytes.len()));
        check_accepted(&bytes);
        // With a header that agrees with the shorter length.
        if let Some(payload) = bytes.len().checked_sub(HEADER_LEN) {
            bytes[14..16].copy_from_slice(&(payload as u16).to_le_bytes());
            check_accepted(&bytes);
        }
    }
}

#[test]
fn a_frame_that_is_as_long_as_can_be_is_decoded() {
    // A hit and an event take two bytes each.
    let (hits, events) = ([0x00, 0x01, 0x00, 0x07], [0x00, 0x00]);
    for (event, count, each) in [(&hits[..], 0x3FFF, 1), (&events[..], 0x7FFF, 0)] {
        let mut bytes = write(&[]);
        let payload = event.repeat(count);
        bytes[12..14].copy_from_slice(&(count as u16).to_le_bytes());
        bytes[14..16].copy_from_slice(&(payload.len() as u16).to_le_bytes());
        bytes.extend(payload);
        for simd in Simd::all() {
            let mut decoded = Decoded::new();
            HitsFrame::decode(&bytes, simd, &mut decoded).unwrap();
            assert_eq!(decoded.events().len(), count);
            assert!(decoded.events().all(|(_, hits)| hits.len() == each));
        }
    }
}
