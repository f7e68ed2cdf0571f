//! Several loops place parts of the same frames.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pollux_mempool::time::Ns;
use pollux_pipelines::Moment;
use pollux_pipelines::assemble::{AssembleConfig, assembler};

use super::{PACKETS, bytes, config, content, part};

/// Loops that share a placer and a reader's loop: every frame is delivered whole or says what it
/// lacks, none is torn, and every packet has one outcome.
#[test]
fn several_loops_place_parts_of_the_same_frames() {
    const LOOPS: usize = 3;
    const FRAMES: u64 = 2000;
    let wide = AssembleConfig {
        buffers: 16,
        timeout: Ns(1 << 60),
        ..config()
    };
    let (placer, mut reader) = assembler(wide).unwrap();
    let placers: Vec<_> = (1..LOOPS)
        .map(|_| placer.for_another_loop().unwrap())
        .collect();
    let (ended, progress) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (mut placed, mut dropped, mut parts) = (0, 0, 0);
    thread::scope(|scope| {
        let all = placers.into_iter().chain([placer]).enumerate();
        let loops: Vec<_> = all
            .map(|(own, mut placer)| {
                let (ended, progress) = (&ended, &progress);
                scope.spawn(move || {
                    let mut outcome = (0_u64, 0_u64);
                    for key in 0..FRAMES {
                        // No loop is far ahead of the reader.
                        while key > progress.load(Ordering::Relaxed) as u64 + 8 {
                            thread::yield_now();
                        }
                        for n in 0..6 {
                            // Each loop has its share, and a copy of one of another's.
                            if n % LOOPS == own || n == (own + 1) % 6 {
                                let data = bytes(key, n / PACKETS, n % PACKETS, 3);
                                match placer.place(&part(key, n, &data)) {
                                    Ok(()) => outcome.0 += 1,
                                    Err(_) => outcome.1 += 1,
                                }
                            }
                        }
                    }
                    ended.fetch_add(1, Ordering::Release);
                    outcome
                })
            })
            .collect();
        let mut last = None;
        loop {
            let over = ended.load(Ordering::Acquire) == LOOPS;
            if over {
                reader.close_all();
            }
            while let Some(frame) = reader.poll(Moment(0)) {
                assert!(last < Some(frame.key()), "{last:?} {frame:?}");
                last = Some(frame.key());
                let content = content(&frame);
                parts += content.len() as u64;
                for ((sender, packet), (header, data)) in content {
                    assert_eq!(data, bytes(frame.key(), sender, packet, 3));
                    assert_eq!(header, [1, 2]);
                }
                progress.store(frame.key() as usize, Ordering::Relaxed);
            }
            if over {
                break;
            }
            thread::yield_now();
        }
        for outcome in loops {
            let (own, refused) = outcome.join().unwrap();
            placed += own;
            dropped += refused;
        }
    });
    assert_eq!(placed, parts);
    assert_eq!(
        placed,
        FRAMES * 6,
        "each part is placed once: its loop waits for the reader"
    );
    assert_eq!(placed + dropped, FRAMES * 9);
}
