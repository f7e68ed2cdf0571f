//! CLOP case by case, against a model, and between two threads.

mod model;
mod threads;

use pollux_mempool::time::{Ns, Tsc, WireTime};
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::event::{
    BadEvent, Clop, ClopBuffer, ClopConfig, ClopReader, ClopReason, ClopWriter, EventConsumer,
    EventKind, EventProducer, EventQueue, EventRecord, Framing, PayloadInfo, Refused,
    RegionOptions,
};
use pollux_pmd::{Cause, Clock, ManualClock};

struct Bench {
    clock: ManualClock,
    events: EventProducer,
    announced: EventConsumer,
    writer: ClopWriter,
    reader: ClopReader,
}

const STREAM: u16 = 5;
const TIMEOUT: Ns = Ns(1000);

fn bench(buffers: usize, size: usize, framing: Framing, records: usize) -> Bench {
    let clock = ManualClock::new();
    let config = ClopConfig {
        stream: STREAM,
        buffers,
        size,
        timeout: TIMEOUT,
        framing,
        ..ClopConfig::default()
    };
    let (events, announced) = EventQueue::new(records, &RegionOptions::default())
        .unwrap()
        .split();
    let (writer, reader) = Clop::new(&config, &clock).unwrap().split();
    Bench {
        clock,
        events,
        announced,
        writer,
        reader,
    }
}

impl Bench {
    fn info(&self) -> PayloadInfo {
        PayloadInfo {
            arrival: self.clock.now(),
            source_port: 9,
            wire: None,
        }
    }

    fn append(&mut self, payload: &[u8]) -> Result<(), Refused> {
        let info = self.info();
        self.writer.append(&mut self.events, &info, payload)
    }

    fn pass(&mut self, ns: u64) {
        self.clock.advance(Ns(ns));
        self.writer.poll(&mut self.events, self.clock.now());
    }

    fn accept(&mut self) -> Option<ClopBuffer> {
        let event = self.announced.poll()?;
        Some(self.reader.accept(&event).unwrap())
    }
}

fn data(buffer: &ClopBuffer) -> Vec<Vec<u8>> {
    buffer
        .payloads()
        .map(|payload| payload.unwrap().data.to_vec())
        .collect()
}

#[test]
fn a_full_buffer_is_announced_at_once() {
    let mut bench = bench(2, 64, Framing::Records, 4);
    bench.append(&[1; 16]).unwrap();
    assert!(bench.accept().is_none());
    bench.append(&[2; 9]).unwrap();
    let buffer = bench.accept().unwrap();
    assert_eq!(data(&buffer), [vec![1; 16], vec![2; 9]]);
    let event = *buffer.event();
    assert_eq!(
        (event.bytes, event.payloads, event.first, event.last),
        (64, 2, 0, 1)
    );
    assert_eq!((event.stream, event.buffer, event.serial), (STREAM, 0, 0));
    assert_eq!(event.reason, ClopReason::Full);
}

#[test]
fn a_buffer_is_announced_when_the_next_payload_does_not_fit() {
    let mut bench = bench(2, 64, Framing::Records, 4);
    bench.append(&[1; 16]).unwrap();
    bench.append(&[2; 40]).unwrap();
    let buffer = bench.accept().unwrap();
    assert_eq!(data(&buffer), [vec![1; 16]]);
    assert_eq!(
        (buffer.event().bytes, buffer.event().reason),
        (32, ClopReason::Full)
    );
    assert_eq!(data(&bench.accept().unwrap()), [vec![2; 40]]);
}

#[test]
fn the_timeout_counts_from_the_oldest_payload_and_never_announces_nothing() {
    let mut bench = bench(2, 128, Framing::Records, 4);
    bench.pass(5000);
    assert!(bench.accept().is_none(), "nothing had come");
    bench.append(b"").unwrap();
    bench.pass(999);
    bench.append(b"young").unwrap();
    assert!(bench.accept().is_none());
    bench.pass(1);
    let buffer = bench.accept().unwrap();
    assert_eq!(data(&buffer), [&b""[..], b"young"]);
    assert_eq!(
        (buffer.event().reason, buffer.event().oldest),
        (ClopReason::Timeout, Tsc(5000))
    );
    bench.pass(5000);
    assert!(bench.accept().is_none(), "nothing more had come");
}

#[test]
fn without_a_free_buffer_payloads_are_refused_and_leave_a_gap() {
    let mut bench = bench(2, 64, Framing::Records, 4);
    bench.append(&[0; 48]).unwrap();
    bench.append(&[1; 48]).unwrap();
    let (first, second) = (bench.accept().unwrap(), bench.accept().unwrap());
    let refused = bench.append(&[2; 48]).unwrap_err();
    assert_eq!(
        (refused, refused.cause()),
        (Refused::ClopFull, Cause::RingFull)
    );
    // Out of order: the writer needs the first one next.
    drop(second);
    assert_eq!(bench.append(&[3; 48]), Err(Refused::ClopFull));
    drop(first);
    bench.append(&[4; 48]).unwrap();
    bench.append(&[5; 48]).unwrap();
    assert_eq!(bench.append(&[6; 48]), Err(Refused::ClopFull));
    let third = bench.accept().unwrap();
    assert_eq!((third.event().first, data(&third)), (4, vec![vec![4; 48]]));
    assert_eq!(data(&bench.accept().unwrap()), [vec![5; 48]]);
}

#[test]
fn a_full_event_queue_refuses_and_recovers() {
    let mut bench = bench(4, 64, Framing::Records, 2);
    (0..3).for_each(|n| bench.append(&[n; 48]).unwrap());
    assert_eq!(bench.append(&[3; 48]), Err(Refused::EventsFull));
    assert!(!bench.writer.flush(&mut bench.events));
    for n in 0..3 {
        assert_eq!(data(&bench.accept().unwrap()), [vec![n; 48]]);
        bench.pass(TIMEOUT.0);
    }
    assert!(bench.writer.flush(&mut bench.events), "nothing is left");
    assert!(bench.accept().is_none());
}

#[test]
fn what_fits_no_buffer_is_refused() {
    let mut records = bench(2, 128, Framing::Records, 4);
    assert_eq!(
        records.append(&[0; 113]),
        Err(Refused::Oversize {
            length: 113,
            limit: 112
        })
    );
    records.append(&[7; 112]).unwrap();
    assert_eq!(data(&records.accept().unwrap()), [vec![7; 112]]);
    let mut bare = bench(2, 128, Framing::Bare { stride: 50 }, 4);
    let refused = bare.append(&[0; 51]).unwrap_err();
    assert_eq!(
        (refused, refused.cause()),
        (
            Refused::Oversize {
                length: 51,
                limit: 50
            },
            Cause::Oversize
        )
    );
}

#[test]
fn bare_payloads_lie_at_the_stride_and_are_filled_up_with_zeros() {
    let mut bench = bench(1, 128, Framing::Bare { stride: 50 }, 4);
    for lap in 1..3 {
        bench.append(&[lap; 50]).unwrap();
        bench
            .append(if lap == 1 { &[9; 50] } else { &[9; 3] })
            .unwrap();
        let buffer = bench.accept().unwrap();
        assert_eq!((buffer.bytes().len(), buffer.event().payloads), (100, 2));
        let end = if lap == 1 { 9 } else { 0 };
        assert_eq!(buffer.bytes()[50..], [vec![9; 3], vec![end; 47]].concat());
        assert!(
            buffer
                .payloads()
                .all(|payload| payload.unwrap().record.is_none())
        );
    }
}

#[test]
fn stamps_come_back_whole_or_in_another_buffer() {
    let mut bench = bench(4, 1024, Framing::Records, 4);
    let far = 0x12_ffff_ff00;
    let stamps = [
        None,
        Some(far),
        Some(far + 0x200),
        Some(far - 0x7fff_ff00),
        None,
        Some(far << 1),
    ];
    for wire in stamps {
        let info = PayloadInfo {
            wire: wire.map(WireTime),
            ..bench.info()
        };
        bench.writer.append(&mut bench.events, &info, &[]).unwrap();
    }
    assert!(bench.writer.flush(&mut bench.events));
    let wire_times = |buffer: ClopBuffer| -> Vec<_> {
        buffer
            .payloads()
            .map(|p| p.unwrap().record.unwrap().wire.map(|wire| wire.0))
            .collect()
    };
    assert_eq!(wire_times(bench.accept().unwrap()), stamps[..5]);
    assert_eq!(wire_times(bench.accept().unwrap()), stamps[5..]);
}

#[test]
fn an_event_out_of_turn_is_refused_and_changes_nothing() {
    let mut bench = bench(4, 64, Framing::Records, 4);
    let made_up = EventRecord {
        kind: EventKind::CLOP_BUFFER,
        stream: STREAM,
        ..EventRecord::default()
    };
    assert!(
        matches!(
            bench.reader.accept(&made_up),
            Err(BadEvent::OutOfTurn { .. })
        ),
        "not announced"
    );
    bench.append(&[1; 48]).unwrap();
    let event = bench.announced.poll().unwrap();
    for (bad, length) in [
        (
            EventRecord {
                kind: EventKind::APPLICATION,
                ..event
            },
            false,
        ),
        (
            EventRecord {
                stream: STREAM + 1,
                ..event
            },
            false,
        ),
        (EventRecord { index: 1, ..event }, false),
        (
            EventRecord {
                index: u32::MAX,
                ..event
            },
            false,
        ),
        (
            EventRecord {
                sequence: 1,
                ..event
            },
            false,
        ),
        (
            EventRecord {
                length: 65,
                ..event
            },
            true,
        ),
        (
            EventRecord {
                payload: [0xff; 40],
                ..event
            },
            false,
        ),
    ] {
        let refused = bench.reader.accept(&bad).unwrap_err();
        assert_eq!(
            matches!(refused, BadEvent::TooLong { .. }),
            length,
            "{refused}"
        );
    }
    let buffer = bench.reader.accept(&event).unwrap();
    assert!(
        matches!(bench.reader.accept(&event), Err(BadEvent::OutOfTurn { .. })),
        "twice"
    );
    drop(buffer);
    assert!(
        matches!(bench.reader.accept(&event), Err(BadEvent::OutOfTurn { .. })),
        "again"
    );
}

#[test]
fn a_chained_frame_is_gathered() {
    let pool = Mempool::new(PoolConfig {
        buffers: 64,
        data_room: 64,
        ..PoolConfig::default()
    })
    .unwrap();
    let mut cache = pool.cache(32).unwrap();
    let bytes: Vec<u8> = (0..200).collect();
    let mut frame = cache.alloc_from(&bytes).unwrap();
    assert!(frame.segment_count() > 1);
    frame.set_arrival(Tsc(7));
    frame.set_wire_time(WireTime(70));
    let mut bench = bench(4, 1024, Framing::Records, 4);
    let ranges = [0..200, 42..142, 63..65, 64..64, 128..200, 200..200];
    for range in ranges.clone() {
        bench
            .writer
            .append_frame(&mut bench.events, 4, &frame, range)
            .unwrap();
    }
    #[expect(
        clippy::reversed_empty_ranges,
        reason = "the caller's mistake is the point"
    )]
    for range in [0..201, 201..201, 3..2, 0..usize::MAX] {
        let refused = bench
            .writer
            .append_frame(&mut bench.events, 4, &frame, range)
            .unwrap_err();
        assert_eq!(refused.cause(), Cause::Malformed);
    }
    assert!(bench.writer.flush(&mut bench.events));
    let buffer = bench.accept().unwrap();
    assert_eq!(
        data(&buffer),
        ranges.clone().map(|range| bytes[range].to_vec())
    );
    let record = buffer.payloads().next().unwrap().unwrap().record.unwrap();
    assert_eq!((record.source_port, record.wire), (4, Some(WireTime(70))));
    assert_eq!(
        (buffer.event().oldest, buffer.event().wire),
        (Tsc(7), Some(WireTime(70)))
    );
}
