//! Containers into fragments: refusals with their causes, and the counters of each source.

use crate::common::{Part, Shot, container, env, frame, hit, l0, pool};
use pollux_mempool::PoolCache;
use pollux_na62::formats::hits::{HEADER_LEN, HitsWriter, MAX_FRAME};
use pollux_na62::l0::{Fragments, Frame};
use pollux_na62::stages::{Decompress, DecompressOptions};
use pollux_pipelines::{Batch, Each, Moment, Stage, StageEnv};
use pollux_pmd::stream::StreamId;
use pollux_pmd::{Balance, Cause};
use proptest::prelude::*;

struct Rig {
    stage: Decompress,
    env: StageEnv,
    cache: PoolCache,
    out: Vec<Part>,
}

impl Rig {
    /// Boards 0 and 1, buffers of so many bytes.
    fn new(room: usize) -> Self {
        let mut env = env(2);
        let stage = Decompress::new(&DecompressOptions::default(), &mut env).unwrap();
        let cache = pool(512, room).cache(64).unwrap();
        Self {
            stage,
            env,
            cache,
            out: Vec::new(),
        }
    }

    fn put(&mut self, payload: &[u8]) {
        self.put_at(payload, 42);
    }

    fn put_at(&mut self, payload: &[u8], offset: usize) {
        let mut batch = Batch::with_capacity(1);
        batch
            .push(frame(&mut self.cache, payload, offset, 9))
            .unwrap();
        self.process(&mut batch);
        assert_eq!(
            batch.as_slice().len(),
            1,
            "the frames stay, for their buffers to be returned"
        );
    }

    fn process(&mut self, batch: &mut Batch<Frame>) {
        let out = &mut self.out;
        let mut take = Each(|fragments: Fragments| out.extend(fragments.iter().map(Part::from)));
        self.stage.process(batch, &mut take);
    }

    fn balance(&self) -> Balance {
        self.env.ledger.balance()
    }
}

fn shots(timestamps: std::ops::Range<u64>) -> Vec<Shot> {
    timestamps
        .map(|t| (t * 3, vec![hit(t as u16), hit(t as u16 + 900)]))
        .collect()
}

#[test]
fn each_event_of_a_frame_becomes_a_fragment() {
    let mut rig = Rig::new(2048);
    let shots = shots(5..15);
    rig.put(&container(1, 0, &shots));
    assert_eq!(rig.out.len(), 10);
    for (n, (fragment, (timestamp, hits))) in rig.out.iter().zip(&shots).enumerate() {
        assert_eq!(
            (fragment.timestamp, &fragment.hits[..]),
            (*timestamp, &hits[..])
        );
        assert_eq!((fragment.source, fragment.ends_frame), (1, n == 9));
        assert_eq!((fragment.at, fragment.arrival.0), (Moment(9000), 9));
    }
    let balance = rig.balance();
    assert_eq!(
        (balance.delivered, balance.dropped_total()),
        (0, 0),
        "that is for the last stage"
    );
    assert_eq!(l0(&rig.env).stats.sources[1].frames.get(), 1);
}

#[test]
fn an_event_of_255_hits_fits() {
    let mut rig = Rig::new(2048);
    let hits: Vec<_> = (0..255).map(|n| hit(3 * n)).collect();
    rig.put(&container(0, 0, &[(1, hits.clone())]));
    assert_eq!(rig.out[0].hits[..], hits);
}

/// The fragments of the longest datagram need several buffers, and are still one frame.
#[test]
fn a_frame_may_be_as_long_as_can_be() {
    let (hit, none) = ([0x00, 0x01, 0x00, 0x07], [0x00, 0x00]);
    for (event, count, hits) in [(&hit[..], 0x3FF8, 1), (&none[..], 0x7FF0, 0)] {
        let mut rig = Rig::new(2048);
        rig.put(&container(0, 0, &shots(0..3)));
        let payload = event.repeat(count);
        let mut bytes = container(1, 0, &[]);
        bytes[12..14].copy_from_slice(&(count as u16).to_le_bytes());
        bytes[14..16].copy_from_slice(&(payload.len() as u16).to_le_bytes());
        bytes.extend(payload);
        rig.put(&bytes);
        rig.put(&container(0, 1, &shots(0..3)));
        // With one byte too few, no fragment is visible.
        bytes[14..16].copy_from_slice(&(event.len() as u16 * count as u16 - 1).to_le_bytes());
        bytes.pop();
        rig.put(&bytes);
        assert_eq!(rig.balance().dropped_for(Cause::Malformed), 1);
        let long = &rig.out[3..rig.out.len() - 3];
        assert_eq!(long.len(), count);
        for (n, fragment) in (0..).zip(long) {
            assert_eq!((fragment.timestamp, fragment.hits.len()), (n, hits));
            let last = n + 1 == count as u64;
            assert_eq!((fragment.source, fragment.ends_frame), (1, last));
        }
    }
}

#[test]
fn a_payload_may_span_segments_and_begin_anywhere() {
    let shots = shots(100..200);
    let payload = container(0, 0, &shots);
    for offset in [0, 42, 63, 64, 65, 500] {
        let mut rig = Rig::new(64);
        rig.put_at(&payload, offset);
        assert_eq!(rig.out.len(), 100, "{:?}", rig.balance());
        assert!(
            rig.out
                .iter()
                .zip(&shots)
                .all(|(f, s)| f.timestamp == s.0 && f.hits[..] == s.1)
        );
    }
}

/// No parser makes such a frame; if one did, nothing beyond its bytes would be read.
#[test]
fn a_frame_that_ends_before_its_payload_is_read_to_its_end() {
    let mut rig = Rig::new(2048);
    let payload = container(0, 0, &shots(1..3));
    let mut batch = Batch::with_capacity(2);
    for (offset, len) in [(42, payload.len() as u16 + 1), (u16::MAX, u16::MAX)] {
        let mut frame = frame(&mut rig.cache, &payload, 42, 0);
        (frame.offset, frame.len) = (offset, len);
        batch.push(frame).unwrap();
    }
    rig.process(&mut batch);
    assert_eq!(rig.out.len(), 2, "of the first");
    assert_eq!(rig.balance().dropped_for(Cause::Malformed), 1, "the second");
}

#[test]
fn every_cause_of_a_drop() {
    let good = || container(0, 0, &shots(1..4));
    let changed = |at: usize, to: u8| {
        let mut bytes = good();
        bytes[at] = to;
        bytes
    };
    let mut one_more = good();
    one_more.push(0);
    let cases = [
        (changed(4, 2), Cause::BadVersion),
        (changed(0, b'Q'), Cause::Malformed),
        (changed(7, 1), Cause::Malformed),
        (changed(12, 4), Cause::Malformed), // one event more than there are
        (good()[..good().len() - 1].to_vec(), Cause::Malformed),
        (good()[..HEADER_LEN - 1].to_vec(), Cause::Malformed),
        (Vec::new(), Cause::Malformed),
        (one_more, Cause::Malformed),
        (changed(5, 0x40), Cause::Unsupported), // another detector
        (container(2, 0, &[]), Cause::Unsupported), // a board too many
        (container(255, 0, &[]), Cause::Unsupported),
    ];
    for (payload, cause) in cases {
        let mut rig = Rig::new(2048);
        rig.put(&payload);
        assert_eq!(rig.balance().drops().collect::<Vec<_>>(), [(cause, 1)]);
        assert!(rig.out.is_empty());
        let counts = &l0(&rig.env).stats.sources;
        assert!(counts.iter().all(|source| source.frames.get() == 0));
    }
}

#[test]
fn a_container_without_events_is_delivered_here() {
    let mut rig = Rig::new(2048);
    rig.put(&container(0, 0, &[]));
    let balance = rig.balance();
    assert_eq!((balance.delivered, balance.dropped_total()), (1, 0));
    assert_eq!(l0(&rig.env).stats.sources[0].frames.get(), 1);
}

#[test]
fn a_second_copy_is_dropped_and_counted_for_its_source() {
    let mut rig = Rig::new(2048);
    for (board, sequence) in [(0, 7), (1, 7), (0, 8), (0, 7), (1, 7)] {
        rig.put(&container(board, sequence, &shots(1..2)));
    }
    assert_eq!(rig.out.len(), 3);
    assert_eq!(rig.balance().dropped_for(Cause::Duplicate), 2);
    for (source, frames) in [(0, 3), (1, 2)] {
        let counts = &l0(&rig.env).stats.sources[source];
        assert_eq!((counts.frames.get(), counts.duplicates.get()), (frames, 1));
        assert_eq!(counts.events.get(), frames - 1, "those of copies are none");
    }
}

#[test]
fn what_sequence_numbers_say_is_counted_for_each_source() {
    let mut rig = Rig::new(2048);
    let first = u32::MAX - 5;
    for n in [0, 1, 4, 3, 10, 11] {
        rig.put(&container(1, first.wrapping_add(n), &[]));
    }
    let counts = &l0(&rig.env).stats.sources[1];
    assert_eq!(counts.missing.get(), 6, "2, 5 to 9");
    assert_eq!((counts.gaps.get(), counts.reordered.get()), (2, 1));
    assert_eq!((counts.duplicates.get(), counts.resyncs.get()), (0, 0));
    for n in 0..10 {
        rig.put(&container(1, 1 << 30 | n, &[]));
    }
    let counts = &l0(&rig.env).stats.sources[1];
    assert_eq!((counts.resyncs.get(), counts.missing.get()), (1, 6));
    assert_eq!(l0(&rig.env).stats.sources[0].missing.get(), 0);
}

#[test]
fn boards_are_those_of_the_configuration() {
    let mut env = env(2);
    let options = DecompressOptions {
        source_id: 9,
        boards: Some(vec![200, 3]),
    };
    let mut stage = Decompress::new(&options, &mut env).unwrap();
    let mut cache = pool(8, 2048).cache(8).unwrap();
    let (mut batch, mut out) = (Batch::default(), Vec::<Fragments>::new());
    // Source 0 is board 200, source 1 board 3. A board on the port of another is ignored.
    for (board, stream, sequence) in [(3, 1, 0), (200, 0, 0), (0, 0, 0), (3, 0, 1), (200, 1, 1)] {
        let mut writer = HitsWriter::new(vec![0; MAX_FRAME], 9, board, sequence).unwrap();
        writer.push(1, &[]).unwrap();
        let (bytes, len) = writer.finish();
        let mut frame = frame(&mut cache, &bytes[..len], 42, 0);
        frame.stream = StreamId(stream);
        batch.push(frame).unwrap();
    }
    stage.process(&mut batch, &mut out);
    let sources = out.iter().flat_map(Fragments::iter).map(|f| f.source);
    assert_eq!(sources.collect::<Vec<_>>(), [1, 0]);
    let balance = env.ledger.balance();
    let dropped = [Cause::Unsupported, Cause::Misrouted].map(|cause| balance.dropped_for(cause));
    assert_eq!(dropped, [1, 2]);
    for source in 0..2 {
        // It is counted for the port on which it arrived.
        assert_eq!(l0(&env).stats.sources[source].misrouted.get(), 1);
        assert_eq!(l0(&env).stats.sources[source].frames.get(), 1);
    }
    // A board of which nothing is known was on the port of source 0.
    assert_eq!(l0(&env).stats.sources[0].unreadable.get(), 1);
    assert_eq!(l0(&env).stats.faults(0), ["identity", "unreadable"]);
    assert_eq!(l0(&env).stats.faults(1), ["identity"]);

    let refused = |boards: Vec<u8>| {
        let options = DecompressOptions {
            boards: Some(boards),
            ..DecompressOptions::default()
        };
        Decompress::new(&options, &mut crate::common::env(2))
            .err()
            .unwrap()
    };
    assert_eq!(refused(vec![1]), "1 boards for 2 sources: one each");
    assert_eq!(refused(vec![1, 1]), "board 1 is listed twice");
}

proptest! {
    /// No payload causes a panic, and each has one outcome: its fragments are passed on, it is
    /// delivered empty, or it is dropped.
    #[test]
    fn any_payload_has_one_fate(
        random in proptest::collection::vec(any::<u8>(), 0..200),
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        (room, offset) in (64usize..2048, 0usize..100),
        len in 0usize..400,
    ) {
        let mut rig = Rig::new(room);
        let mut corrupted = container(0, 3, &shots(0..20));
        for (at, to) in &cuts {
            let at = at.index(corrupted.len());
            corrupted[at] = *to;
        }
        corrupted.truncate(corrupted.len().min(300 + len));
        for payload in [&random[..], &corrupted] {
            let (before, fragments) = (rig.balance(), rig.out.len());
            rig.put_at(payload, offset);
            let now = rig.balance();
            let new = &rig.out[fragments..];
            let settled = now.delivered + now.dropped_total();
            prop_assert_eq!(settled - before.delivered - before.dropped_total(), u64::from(new.is_empty()));
            prop_assert_eq!(new.iter().filter(|f| f.ends_frame).count(), usize::from(!new.is_empty()));
            prop_assert!(new.last().is_none_or(|last| last.ends_frame));
        }
    }
}
