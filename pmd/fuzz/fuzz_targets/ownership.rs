//! Arbitrary sequences of buffer operations: no buffer is lost, none has two owners, none is freed
//! twice.
//!
//! Each frame is filled with one byte of its own; a second owner would overwrite it.
#![no_main]

use std::collections::VecDeque;

use libfuzzer_sys::fuzz_target;
use pollux_mempool::{Burst, Frozen, Mbuf, MbufConsumer, MbufProducer, Mempool, mbuf_ring};
use pollux_pmd_fuzz::{Input, assert_full, pool};

const BUFFERS: usize = 64;

thread_local! {
    static POOLS: [Mempool; 2] = [pool(BUFFERS, 64), pool(16, 256)];
}

/// A frame and its fill byte.
type Filled<T> = (T, u8);

fn check<'a>(segments: impl Iterator<Item = &'a [u8]>, fill: u8) {
    for segment in segments {
        assert!(segment.iter().all(|&byte| byte == fill), "two owners");
    }
}

fn check_frame((frame, fill): &Filled<Mbuf>) {
    let bytes: usize = frame.segments().map(<[u8]>::len).sum();
    assert_eq!(bytes, frame.total_len());
    assert_eq!(frame.segments().count(), frame.segment_count());
    check(frame.segments(), *fill);
}

fn refill((frame, old): &mut Filled<Mbuf>, fill: u8) {
    let mut rest = frame.split_off();
    frame.data_mut().fill(fill);
    if let Some(tail) = rest.take() {
        let mut tail = (tail, *old);
        refill(&mut tail, fill);
        assert!(frame.chain(tail.0).is_ok(), "it was a chain before");
    }
    *old = fill;
}

fn operate(input: &mut Input, pools: &[Mempool; 2]) {
    let [mine, foreign] = pools;
    let size = 2 + usize::from(input.u8() % 63);
    let mut cache = mine.cache(size).expect("a cache");
    let mut strangers = foreign.cache(4).expect("a cache");
    let mut burst = Burst::<48>::new();
    let mut frames: VecDeque<Filled<Mbuf>> = VecDeque::new();
    let mut frozen: VecDeque<Filled<Frozen>> = VecDeque::new();
    let mut bytes = VecDeque::new();
    let mut ring: (Option<MbufProducer>, Option<MbufConsumer>) = (None, None);
    while !input.is_empty() {
        let (op, n) = (input.u8(), input.u8());
        let some = usize::from(n);
        match op % 24 {
            0 => drop(cache.alloc_burst(&mut burst, some)),
            1 => frames.extend(cache.alloc_from(&vec![n; some]).map(|frame| (frame, n))),
            2 => frames.extend(strangers.alloc_from(&vec![n; some]).map(|frame| (frame, n))),
            3 => cache.free_burst(&mut burst),
            4 => cache.free_front(&mut burst.up_to(0), some),
            5 => frames
                .pop_front()
                .into_iter()
                .for_each(|(frame, _)| cache.free(frame)),
            6 => drop(frames.pop_back()),
            7 => {
                // Into the burst, as received; its fill byte is forgotten.
                if let Some((frame, fill)) = frames.pop_front()
                    && let Err(frame) = burst.push(frame)
                {
                    frames.push_front((frame, fill));
                }
            }
            8 => {
                if let (Some((mut head, fill)), Some((tail, other))) =
                    (frames.pop_front(), frames.pop_front())
                {
                    let tail = head.chain(tail).err();
                    let mut head = (head, fill);
                    refill(&mut head, n);
                    frames.push_back(head);
                    frames.extend(tail.map(|tail| (tail, other)));
                }
            }
            9 => {
                if let Some((mut head, fill)) = frames.pop_front() {
                    frames.extend(head.split_off().map(|tail| (tail, fill)));
                    frames.push_back((head, fill));
                }
            }
            10 => frames
                .iter_mut()
                .take(1)
                .for_each(|(frame, _)| frame.truncate(some)),
            11 => {
                if let Some((frame, fill)) = frames.front_mut()
                    && let Some(grown) = frame.append(some)
                {
                    grown.fill(*fill);
                }
            }
            12 => {
                if let Some((frame, fill)) = frames.front_mut()
                    && let Some(grown) = frame.prepend(some)
                {
                    grown.fill(*fill);
                }
            }
            13 => {
                if let Some((frame, _)) = frames.front_mut() {
                    let (before, fits) = (frame.total_len(), some <= frame.len());
                    assert_eq!(frame.advance(some), fits);
                    assert_eq!(frame.total_len(), before - if fits { some } else { 0 });
                }
            }
            14 => frames.iter_mut().take(1).for_each(|frame| refill(frame, n)),
            15 => frozen.extend(
                frames
                    .pop_front()
                    .map(|(frame, fill)| (frame.freeze(), fill)),
            ),
            16 => frozen.extend(frozen.front().cloned()),
            17 => {
                if let Some((shared, fill)) = frozen.pop_front() {
                    match shared.try_thaw() {
                        Ok(frame) => frames.push_back((frame, fill)),
                        Err(shared) => frozen.push_back((shared, fill)),
                    }
                }
            }
            18 => drop(frozen.pop_back()),
            19 => {
                if let Some((shared, fill)) = frozen.pop_front() {
                    match shared.into_bytes() {
                        Ok(whole) => bytes.push_back((whole, fill)),
                        Err(chain) => bytes.extend(chain.segment_bytes().map(|part| (part, fill))),
                    }
                }
            }
            20 => drop(bytes.pop_front()),
            21 => {
                if some % 4 == 0 {
                    // One end is dropped before the other, with buffers in flight.
                    ring.0 = None;
                    if some % 8 == 0 {
                        ring.1 = None;
                    }
                } else if let (None, None) = ring {
                    let (producer, consumer) = mbuf_ring(1 + some % 24).expect("a ring");
                    ring = (Some(producer), Some(consumer));
                } else {
                    ring.1 = None;
                }
            }
            22 => drop(
                ring.0
                    .as_mut()
                    .map(|end| end.push_front(&mut burst.as_mut(), some)),
            ),
            _ => drop(ring.1.as_mut().map(|end| end.pop(&mut burst.as_mut()))),
        }
        frames.iter().for_each(check_frame);
        frozen
            .iter()
            .for_each(|(frame, fill)| check(frame.segments(), *fill));
        bytes
            .iter()
            .for_each(|(part, fill)| check(std::iter::once(&part[..]), *fill));
        assert!(cache.len() <= size && burst.len() <= 48);
    }
}

fuzz_target!(|data: &[u8]| {
    POOLS.with(|pools| {
        operate(&mut Input(data), pools);
        pools.iter().for_each(assert_full);
    });
});
