//! Arbitrary bytes as a hit container. An accepted container satisfies the format's rules, and is
//! written back byte for byte unless its encoding is not minimal; all instruction sets decode the
//! same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_na62::formats::hits::{Decoded, HitsFrame, HitsWriter, MAX_FRAME, MAX_HITS};
use pollux_na62::rich::Hit;
use pollux_na62::rich::geometry::PMS;
use pollux_pipelines::simd::Simd;

/// The events of a frame, each checked.
fn events(frame: &HitsFrame) -> Vec<(u64, Vec<Hit>)> {
    let (mut events, mut hits) = (frame.events(), [Hit::default(); MAX_HITS]);
    let mut all: Vec<(u64, Vec<Hit>)> = Vec::new();
    while let Some((timestamp, hits)) = events.next_into(&mut hits) {
        assert!(all.last().is_none_or(|(before, _)| timestamp > *before));
        assert!(hits.is_sorted_by(|a, b| a.pm < b.pm));
        assert!(hits.last().is_none_or(|hit| usize::from(hit.pm) < PMS));
        all.push((timestamp, hits.to_vec()));
    }
    assert_eq!(events.remaining(), 0);
    assert_eq!(all.len(), usize::from(frame.event_count()));
    all
}

fuzz_target!(|data: &[u8]| {
    let parsed = HitsFrame::parse(data).map(|frame| events(&frame));
    for simd in Simd::all() {
        let mut decoded = Decoded::new();
        let event = |(timestamp, hits): (u64, &[Hit])| (timestamp, hits.to_vec());
        let read = HitsFrame::decode(data, simd, &mut decoded)
            .map(|_| decoded.events().map(event).collect());
        assert_eq!(read, parsed, "{simd:?}");
    }
    let Ok(frame) = HitsFrame::parse(data) else {
        return;
    };
    let read = events(&frame);
    if let Some((first, _)) = read.first() {
        assert_eq!(*first, frame.first_timestamp());
    }
    if data.len() > MAX_FRAME || read.last().is_some_and(|(last, _)| *last == u64::MAX) {
        // Longer, or later, than any frame that is written.
        return;
    }
    let (source, board, sequence) = (frame.source_id(), frame.sub_id(), frame.sequence());
    let mut writer = HitsWriter::new([0; MAX_FRAME], source, board, sequence).expect("room");
    for (timestamp, hits) in &read {
        writer
            .push(*timestamp, hits)
            .expect("no longer than it was");
    }
    let (bytes, len) = writer.finish();
    assert!(len <= data.len());
    let again = HitsFrame::parse(&bytes[..len]).expect("our own frame");
    assert_eq!(events(&again), read);
    assert_eq!(
        (again.source_id(), again.sub_id(), again.sequence()),
        (source, board, sequence)
    );
});
