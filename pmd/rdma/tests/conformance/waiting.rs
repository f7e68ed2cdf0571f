//! Waiting for events.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pollux_pmd_testkit::threads::Ends;
use pollux_rdma::{Access, Buffer, Event, Payload, Status, Wait};

use crate::rig::{A, B, Fixture, LONG, Rig, Side};

const SHORT: Duration = Duration::from_millis(20);

fn nothing_comes<F: Fixture>(wait: Wait) {
    let mut rig = Rig::<F>::new();
    let start = Instant::now();
    assert_eq!(rig.sides[A].qp.wait_event(wait), None);
    // How much later it returns is the machine's affair.
    assert!(start.elapsed() >= SHORT);
}

pub(crate) fn a_wait_polls_until_its_end<F: Fixture>() {
    nothing_comes::<F>(Wait::Poll(SHORT));
}

pub(crate) fn a_wait_sleeps_until_its_end<F: Fixture>() {
    nothing_comes::<F>(Wait::Sleep(SHORT));
}

/// Takes events, for which it sleeps, until `count` messages were received and as many are sent. Answers
/// each message, if `is_answering`; sends the next one after each answer otherwise.
fn exchange(side: &mut Side, into: &Buffer, count: u64, is_answering: bool) {
    let (mut received, mut sent) = (0, 0);
    let mut next = u64::from(!is_answering);
    if !is_answering {
        side.send(0, Payload::Immediate(&[0; 8]));
    }
    while received < count || sent < count {
        match side.qp.wait_event(Wait::Sleep(LONG)).expect("an event") {
            Event::Done(done) => {
                assert_eq!((done.cookie, done.status), (sent, Status::Ok));
                sent += 1;
            }
            Event::Received(event) => {
                assert_eq!((event.bytes, event.status), (8, Status::Ok));
                received += 1;
                side.receive(received, into.part(0, 8));
                if next < count {
                    side.send(next, Payload::Immediate(&next.to_ne_bytes()));
                    next += 1;
                }
            }
            Event::Failed(failed) => panic!("{failed:?}"),
        }
    }
}

pub(crate) fn an_event_ends_a_sleep<F: Fixture>() {
    const ROUNDS: u64 = 200;
    let mut rig = Rig::<F>::new();
    let into = [A, B].map(|side| rig.buffer(side, 8, Access::LOCAL));
    for side in [A, B] {
        for n in 0..4 {
            rig.sides[side].receive(n, into[side].part(0, 8));
        }
    }
    let Rig { mut fixture, sides } = rig;
    let (is_over, start) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        let [mut a, mut b] = sides;
        let [into_a, into_b] = &into;
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                fixture.poll();
                std::thread::yield_now();
            }
        });
        let _ends = Ends(&is_over);
        // Both sleep for each event: a wake-up that is lost takes until the time-out.
        let other = scope.spawn(move || exchange(&mut b, into_b, ROUNDS, true));
        exchange(&mut a, into_a, ROUNDS, false);
        other.join().unwrap();
    });
    assert!(start.elapsed() < LONG);
}
