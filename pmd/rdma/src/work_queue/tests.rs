use super::*;

#[cfg(not(loom))]
use proptest::prelude::*;

fn descriptor(cookie: u64) -> Descriptor {
    Descriptor {
        cookie,
        operation: Operation::Put,
        bytes: cookie as u32,
        immediate: Some(!cookie as u32),
        place: Place::Buffer(Key(cookie as u32), cookie),
        remote: RemoteBuffer {
            address: cookie,
            key: Key(!cookie as u32),
        },
    }
}

/// The oldest request, which must be the one with that number.
fn expect(worker: &Worker, n: u32, cookie: u64) {
    let (of, data) = worker.get(n).unwrap();
    assert_eq!((of.cookie, of.bytes), (cookie, cookie as u32));
    assert_eq!(
        (of.remote.address, of.immediate),
        (cookie, Some(!cookie as u32))
    );
    assert_eq!(data[..8], cookie.to_ne_bytes());
}

#[cfg(not(loom))]
proptest! {
    /// Posts, doorbells and ends in any order: what is shown is what was posted before the doorbell.
    #[test]
    fn a_queue_is_a_list(steps in proptest::collection::vec(0..3_u8, 1..300)) {
        let (mut poster, mut worker) = work_queue::<IMMEDIATE>(4);
        let (mut posted, mut shown, mut done) = (0_u64, 0_u64, 0_u64);
        for step in steps {
            match step {
                0 => {
                    let is_posted = poster.post(descriptor(posted), &posted.to_ne_bytes());
                    prop_assert_eq!(is_posted, posted - done < 4);
                    posted += u64::from(is_posted);
                }
                1 => {
                    poster.ring();
                    shown = posted;
                }
                _ => {
                    worker.finish();
                    done += u64::from(done < shown);
                }
            }
            prop_assert_eq!(u64::from(worker.len()), shown - done);
            for n in 0..worker.len() {
                expect(&worker, n, done + u64::from(n));
            }
            prop_assert!(worker.get(worker.len()).is_none());
        }
    }
}

/// A program posts, and a loop reads each descriptor twice, as for a repetition.
#[cfg(loom)]
#[test]
fn model_of_a_program_and_a_loop() {
    const REQUESTS: u64 = 4;
    crate::sync::holds_but_for(&["show", "see-shown", "done", "see-done"], || {
        let (mut poster, mut worker) = work_queue::<IMMEDIATE>(2);
        let program = loom::thread::spawn(move || {
            for n in 0..REQUESTS {
                while !poster.post(descriptor(n), &n.to_ne_bytes()) {
                    loom::thread::yield_now();
                }
                // The first two with one doorbell.
                if n > 0 {
                    poster.ring();
                }
            }
        });
        let mut done = 0;
        while done < REQUESTS {
            let shown = worker.len();
            if shown == 0 {
                loom::thread::yield_now();
                continue;
            }
            for _ in 0..2 {
                for n in 0..shown {
                    expect(&worker, n, done + u64::from(n));
                }
            }
            worker.finish();
            done += 1;
        }
        program.join().unwrap();
    });
}
