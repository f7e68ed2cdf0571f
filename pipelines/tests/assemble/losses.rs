//! A lost packet costs its own frame, and no other one.

use std::ops::Range;

use pollux_mempool::time::Ns;
use pollux_pipelines::Moment;
use pollux_pipelines::assemble::{AssembleConfig, Part, assembler};
use pollux_pmd::Cause;

use super::{BYTES, config, part};

/// Time between two frames. The buffers of all but the smallest list last for less than the timeout.
const PERIOD: u64 = 500;
const WAIT: u64 = 20_000;

/// Sends 300 frames, of which some lack a packet, to a reader that takes each at once: the causes for which
/// other packets were refused, the numbers of the partial frames, and how many were closed early.
fn partial_frames(buffers: usize, lacking: Range<u64>) -> (Vec<Cause>, Vec<u64>, u64) {
    let (mut placer, mut reader) = assembler(AssembleConfig {
        buffers,
        timeout: Ns(WAIT),
        ..config()
    })
    .unwrap();
    let data = [1; BYTES];
    let (mut refused, mut partial, mut delivered) = (Vec::new(), Vec::new(), 0);
    for key in 0..300 {
        let at = Moment(key * PERIOD);
        for n in (0..6).filter(|&n| n != 4 || !lacking.contains(&key)) {
            let part = Part {
                at,
                ..part(key, n, &data)
            };
            refused.extend(placer.place(&part).err());
            // The reader is never behind.
            while let Some(frame) = reader.poll(at) {
                assert_eq!(frame.key(), delivered);
                delivered += 1;
                if !frame.is_complete() {
                    partial.push(frame.key());
                }
            }
        }
    }
    reader.close_all();
    delivered += std::iter::from_fn(|| reader.poll(Moment(u64::MAX))).count() as u64;
    assert_eq!(delivered, 300);
    (refused, partial, reader.counts().early.get())
}

#[test]
fn a_lost_packet_costs_one_frame_whose_buffer_is_needed_before_its_time() {
    for buffers in [4, 8, 16, 32] {
        let early = (vec![], vec![100], 1);
        assert_eq!(partial_frames(buffers, 100..101), early, "{buffers}");
        let frames: Vec<_> = (100..132).collect();
        let early = (vec![], frames, 32);
        assert_eq!(partial_frames(buffers, 100..132), early, "{buffers}");
    }
    // Here the timeout is over first.
    let frames: Vec<_> = (100..132).collect();
    assert_eq!(partial_frames(64, 100..132), (vec![], frames, 0));
}

/// Frames of before a restart, open in buffers that the new numbers need.
#[test]
fn open_frames_of_before_a_restart_cost_no_packet_after_it() {
    let (mut placer, mut reader) = assembler(AssembleConfig {
        buffers: 8,
        timeout: Ns(WAIT),
        ..config()
    })
    .unwrap();
    let data = [1; BYTES];
    for key in 1000..1006 {
        assert_eq!(placer.place(&part(key, 0, &data)), Ok(()));
    }
    reader.begin_anew();
    let mut frames = Vec::new();
    for key in 6..40 {
        for n in 0..6 {
            assert_eq!(placer.place(&part(key, n, &data)), Ok(()), "{key} {n}");
            let next = std::iter::from_fn(|| reader.poll(Moment(0)));
            frames.extend(next.map(|frame| (frame.key(), frame.is_complete())));
        }
    }
    let before = (1000..1006).map(|key| (key, false));
    assert_eq!(
        frames,
        before
            .chain((6..40).map(|key| (key, true)))
            .collect::<Vec<_>>()
    );
}
