//! Packets that are converted on the way to their frames, codes in the place of missing ones, and runs
//! that begin anew.
#![allow(clippy::unwrap_used)]

use std::thread;

use pollux_mempool::region::PageSize;
use pollux_mempool::time::Ns;
use pollux_pipelines::Moment;
use pollux_pipelines::assemble::{AssembleConfig, Frame, FrameReader, Part, Placer, assembler};
use pollux_pmd::Cause;
use pollux_pmd::event::RegionOptions;
use proptest::prelude::*;

const PACKETS: usize = 5;
/// Numbers of two bytes in a packet, which become numbers of four bytes in the frame.
const NUMBERS: usize = 3;
/// What stands where a packet is missing.
const MISSING: u32 = 0x8000_1234;
const TIMEOUT: u64 = 100;

fn config(buffers: usize) -> AssembleConfig {
    AssembleConfig {
        buffers,
        spares: 0,
        senders: 2,
        packets: PACKETS,
        packet_bytes: 4 * NUMBERS,
        header_bytes: 1,
        note_bytes: [2, 4],
        fill: MISSING.to_le_bytes(),
        timeout: Ns(TIMEOUT),
        jump: 50,
        horizon: 50,
        memory: RegionOptions {
            pages: PageSize::Kib4,
            ..RegionOptions::default()
        },
    }
}

fn number(key: u64, part: usize, n: usize) -> u16 {
    (key as u16) << 8 | (part as u16) << 4 | n as u16
}

/// The value of a number in the frame.
fn converted(raw: u16) -> u32 {
    u32::from(raw) * 3 + 1
}

fn part(key: u64, part: usize) -> Part<'static> {
    Part {
        key,
        sender: part / PACKETS,
        packet: part % PACKETS,
        at: Moment(key * 1000),
        header: &[9],
        data: &[],
    }
}

/// Notes of a part, in both lists; every third one is placed without notes.
fn notes(key: u64, n: usize) -> ([u8; 2], [u8; 4]) {
    let byte = |of: u64| (key + of) as u8 | 1;
    if n.is_multiple_of(3) {
        Default::default()
    } else {
        ([byte(n as u64); 2], [byte(100 + n as u64); 4])
    }
}

/// Places a packet converted; `calls` counts the conversions.
fn place(placer: &mut Placer, key: u64, n: usize, calls: &mut usize) -> Result<(), Cause> {
    let mut convert = |to: &mut [u8]| {
        *calls += 1;
        for (number_, to) in to.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            *to = converted(number(key, n, number_)).to_le_bytes();
        }
    };
    match n % 3 {
        0 => placer.place_with(&part(key, n), convert),
        _ => placer.place_noted(&part(key, n), |to, [first, second]| {
            convert(to);
            let notes = notes(key, n);
            first.copy_from_slice(&notes.0);
            second.copy_from_slice(&notes.1);
        }),
    }
}

/// Compares a frame with the parts that it has to have.
fn check(frame: &Frame, has: impl Fn(usize) -> bool) {
    let (numbers, rest) = frame.data().as_chunks::<4>();
    assert_eq!((numbers.len(), rest.len()), (2 * PACKETS * NUMBERS, 0));
    for (at, bytes) in numbers.iter().enumerate() {
        let (n, number_) = (at / NUMBERS, at % NUMBERS);
        let expected = if has(n) {
            converted(number(frame.key(), n, number_))
        } else {
            MISSING
        };
        assert_eq!(u32::from_le_bytes(*bytes), expected, "{frame:?} part {n}");
        let header = frame.header(n / PACKETS, n % PACKETS);
        assert_eq!(header, has(n).then_some(&[9][..]));
    }
    let expected = (0..2 * PACKETS).map(|n| {
        let notes = notes(frame.key(), n);
        if has(n) { notes } else { Default::default() }
    });
    let (first, second): (Vec<_>, Vec<_>) = expected.unzip();
    assert_eq!(frame.notes(0), first.concat(), "{frame:?}");
    assert_eq!(frame.notes(1), second.concat(), "{frame:?}");
    assert!(frame.notes(2).is_empty());
}

fn poll(reader: &mut FrameReader, now: u64) -> Vec<Frame> {
    std::iter::from_fn(|| reader.poll(Moment(now))).collect()
}

proptest! {
    #[test]
    fn converted_packets_are_where_they_belong(
        frames in prop::collection::vec(prop::collection::vec(0..2 * PACKETS, 0..30), 1..6),
    ) {
        // Two buffers: most frames are in one that an earlier frame has left.
        let (mut placer, mut reader) = assembler(config(2)).unwrap();
        for (key, parts) in (0..).zip(frames) {
            let (mut calls, mut seen) = (0, [false; 2 * PACKETS]);
            for n in parts {
                let complete = seen == [true; 2 * PACKETS];
                let placed = place(&mut placer, key, n, &mut calls);
                let expected = if seen[n] || complete { Err(Cause::Duplicate) } else { Ok(()) };
                prop_assert_eq!(placed, expected);
                seen[n] = true;
            }
            // Only what is placed is converted.
            prop_assert_eq!(calls, seen.iter().filter(|&&seen| seen).count());
            let frames = poll(&mut reader, key * 1000 + TIMEOUT);
            prop_assert_eq!(frames.len(), usize::from(calls > 0));
            for frame in &frames {
                check(frame, |n| seen[n]);
            }
        }
    }
}

#[test]
fn packets_out_of_range_are_not_converted() {
    let (mut placer, _reader) = assembler(config(2)).unwrap();
    let mut calls = 0;
    let wrong = place(&mut placer, 0, 2 * PACKETS, &mut calls);
    assert_eq!((wrong, calls), (Err(Cause::Malformed), 0));
    let short = Part {
        header: &[],
        ..part(0, 0)
    };
    let short = placer.place_with(&short, |_| calls += 1);
    assert_eq!((short, calls), (Err(Cause::Malformed), 0));
}

/// Threads that convert parts of the same frames.
#[test]
fn several_loops_convert_parts_of_the_same_frames() {
    const FRAMES: u64 = 200;
    let (placer, mut reader) = assembler(AssembleConfig {
        timeout: Ns(1 << 60),
        jump: FRAMES,
        horizon: FRAMES,
        ..config(256)
    })
    .unwrap();
    let other = placer.for_another_loop().unwrap();
    thread::scope(|scope| {
        for (own, mut placer) in [placer, other].into_iter().enumerate() {
            scope.spawn(move || {
                for key in 0..FRAMES {
                    for n in (0..2 * PACKETS).filter(|n| n % 2 == own) {
                        assert_eq!(place(&mut placer, key, n, &mut 0), Ok(()));
                    }
                }
            });
        }
    });
    let frames = poll(&mut reader, 0);
    assert!(frames.iter().map(Frame::key).eq(0..FRAMES));
    for frame in &frames {
        check(frame, |_| true);
    }
}

/// A run that begins anew loses nothing, whatever its first number, and the numbers of the run before
/// may come again.
#[test]
fn a_run_begins_anew_at_any_number() {
    let (mut placer, mut reader) = assembler(config(8)).unwrap();
    for first in [40, 0, 0, 41, 1_000_000, 3, 1 << 30] {
        for key in first..first + 20 {
            for n in 0..2 * PACKETS {
                let placed = place(&mut placer, key, n, &mut 0);
                assert_eq!(placed, Ok(()), "run {first} frame {key} part {n}");
            }
            let frames = poll(&mut reader, 0);
            assert!(frames.iter().map(Frame::key).eq([key]));
            for frame in &frames {
                check(frame, |_| true);
            }
        }
        reader.begin_anew();
    }
}

#[test]
fn missing_packets_have_the_configured_code() {
    let (mut placer, mut reader) = assembler(config(2)).unwrap();
    for n in 1..2 * PACKETS {
        let data = &[0xAA; 4 * NUMBERS];
        assert_eq!(placer.place(&Part { data, ..part(7, n) }), Ok(()));
    }
    let frames = poll(&mut reader, 7000 + TIMEOUT);
    let (missing, rest) = frames[0].data().split_at(4 * NUMBERS);
    assert_eq!(missing, MISSING.to_le_bytes().repeat(NUMBERS));
    assert!(rest.iter().all(|&byte| byte == 0xAA));
}
