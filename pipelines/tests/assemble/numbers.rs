//! Frame numbers that are wrong, jump, and begin anew.

use pollux_mempool::time::Ns;
use pollux_pipelines::Moment;
use pollux_pipelines::assemble::{AssembleConfig, Frame, Part, Placer, assembler};
use pollux_pmd::Cause;

use super::{BYTES, HORIZON, TIMEOUT, config, part};

#[test]
fn a_stray_number_moves_nothing_and_a_new_begin_is_followed() {
    let (mut placer, mut reader) = assembler(config()).unwrap();
    let data = [1; BYTES];
    // Sends a frame, waits for the timeout, and says which frames are complete.
    let mut frame = |placer: &mut Placer, key| {
        let placed: Vec<_> = (0..6).map(|n| placer.place(&part(key, n, &data))).collect();
        let frames = std::iter::from_fn(|| reader.poll(Moment(TIMEOUT)));
        let complete = frames.filter(Frame::is_complete).map(|frame| frame.key());
        (placed, complete.collect::<Vec<_>>())
    };
    for key in 5000..5010 {
        assert_eq!(frame(&mut placer, key), (vec![Ok(()); 6], vec![key]));
        // A wrong bit.
        let far = Err(Cause::OutOfWindow);
        assert_eq!(placer.place(&part(key | 1 << 30, 0, &data)), far);
    }
    // A copy of the last frame, however often it comes.
    for _ in 0..20 {
        assert_eq!(
            frame(&mut placer, 5009),
            (vec![Err(Cause::Late); 6], vec![])
        );
    }
    // The sender begins anew: the first packets are lost to the doubt.
    let mut delivered = Vec::new();
    for key in 0..12 {
        delivered.extend(frame(&mut placer, key).1);
    }
    assert_eq!(delivered, (6..12).collect::<Vec<_>>());
    // And goes on far ahead.
    delivered.clear();
    for key in 1_000_000..1_000_012 {
        delivered.extend(frame(&mut placer, key).1);
    }
    assert_eq!(delivered, (1_000_006..1_000_012).collect::<Vec<_>>());
}

/// A sender whose numbers are wrong in every packet, nearer than the horizon, costs another one nothing.
#[test]
fn persistent_wrong_numbers_cost_no_frame() {
    let jump = 3;
    let (mut placer, mut reader) = assembler(AssembleConfig { jump, ..config() }).unwrap();
    let data = [1; BYTES];
    for key in 1000..1500 {
        for n in 0..6 {
            for (wrong, cause) in [
                (key + jump + 1 + key % (HORIZON - jump), Cause::OutOfWindow),
                (key - jump - 1 - key % (HORIZON - jump), Cause::Late),
            ] {
                // Before the first packet, and after the last one.
                if key > 1000 || n > 0 {
                    assert_eq!(
                        placer.place(&part(wrong, n, &data)),
                        Err(cause),
                        "{key} {n}"
                    );
                }
            }
            assert_eq!(placer.place(&part(key, n, &data)), Ok(()), "{key} {n}");
        }
        let frame = reader.poll(Moment(0)).unwrap();
        assert_eq!((frame.key(), frame.is_complete()), (key, true));
    }
}

/// A sender that begins anew near its last number is late, and is believed after a silence.
#[test]
fn a_new_begin_near_the_last_number_is_believed_after_a_silence() {
    let (mut placer, mut reader) = assembler(config()).unwrap();
    let data = [1; BYTES];
    let mut run = |at: u64| {
        let mut outcomes = Vec::new();
        for key in 10..20 {
            for n in 0..6 {
                let part = Part {
                    at: Moment(at),
                    ..part(key, n, &data)
                };
                outcomes.push(placer.place(&part));
            }
            while reader.poll(Moment(at + TIMEOUT)).is_some() {}
        }
        outcomes
    };
    let second = 1_000_000_000;
    assert_eq!(run(second), vec![Ok(()); 60]);
    // Duplicates of the last frames, as long as they are held, and late ones.
    assert!(run(2 * second).iter().all(Result::is_err));
    let after = run(2 * second + 1);
    assert_eq!(after[..31], vec![Err(Cause::Late); 31]);
    assert_eq!(after[31..], vec![Ok(()); 29]);
}

/// A sender that pauses in a frame, for longer than its timeout, goes on with the rest of it: that is late, and no
/// restart, however much it is.
#[test]
fn a_pause_in_a_frame_is_no_new_begin() {
    const PARTS: usize = 100;
    let second = 1_000_000_000;
    let (mut placer, mut reader) = assembler(AssembleConfig {
        senders: 1,
        packets: PARTS,
        ..config()
    })
    .unwrap();
    let data = [1; BYTES];
    let mut delivered = Vec::new();
    let mut send = |key, packets: std::ops::Range<usize>, at| {
        let place = |packet| {
            placer.place(&Part {
                key,
                sender: 0,
                packet,
                at: Moment(at),
                header: &[1, 2],
                data: &data,
            })
        };
        let placed: Vec<_> = packets.map(place).collect();
        let frames = std::iter::from_fn(|| reader.poll(Moment(at + TIMEOUT)));
        delivered.extend(frames.map(|frame| (frame.key(), frame.restarts(), frame.is_complete())));
        placed
    };
    assert_eq!(send(6, 0..PARTS, second), vec![Ok(()); PARTS]);
    assert_eq!(send(7, 0..40, 2 * second), vec![Ok(()); 40]);
    let rest = send(7, 40..PARTS, 4 * second);
    assert_eq!(rest, vec![Err(Cause::Late); PARTS - 40]);
    assert_eq!(send(8, 0..PARTS, 5 * second), vec![Ok(()); PARTS]);
    assert_eq!(delivered, [(6, 0, true), (7, 0, false), (8, 0, true)]);
}

/// Copies of the last frame that was delivered, while the next one waits for its packets, are no restart.
#[test]
fn copies_after_a_pause_are_no_new_begin() {
    let second = 1_000_000_000;
    let (mut placer, mut reader) = assembler(AssembleConfig {
        timeout: Ns(10 * second),
        ..config()
    })
    .unwrap();
    let data = [1; BYTES];
    let mut place = |key, n, at| {
        placer.place(&Part {
            at: Moment(at),
            ..part(key, n, &data)
        })
    };
    for n in 0..6 {
        assert_eq!(place(6, n, second), Ok(()));
    }
    assert_eq!(place(7, 0, second), Ok(()));
    let first = reader.poll(Moment(second)).unwrap();
    assert_eq!((first.key(), first.is_complete()), (6, true));
    for n in 0..60 {
        assert_eq!(place(6, n % 6, 3 * second), Err(Cause::Late), "{n}");
    }
    for n in 1..6 {
        assert_eq!(place(7, n, 3 * second), Ok(()));
    }
    let next = reader.poll(Moment(3 * second)).unwrap();
    assert_eq!(
        (next.key(), next.restarts(), next.is_complete()),
        (7, 0, true)
    );
}
