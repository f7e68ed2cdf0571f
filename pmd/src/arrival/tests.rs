#![allow(clippy::unwrap_used)]
use pollux_mempool::Burst;
use proptest::prelude::*;

use super::*;
use pollux_pmd_testkit::ports::pool;

const NOW: Tsc = Tsc(1 << 50);
const OUTSIDE: WireTime = WireTime(1_800_000_000_000_000_000);

fn cycles(us: u64) -> u64 {
    TscClock::get().to_cycles(Ns(us * 1000))
}

/// Age, in microseconds, of a frame whose time stamp is so far behind.
fn age(line: &mut Line, behind: i64) -> u64 {
    let (now, outside) = line.now;
    let stamp = WireTime(outside.0.wrapping_sub_signed(behind * 1000));
    let arrival = line.arrival(stamp);
    assert!(arrival <= now, "not in the future");
    (TscClock::get().to_ns(now.since(arrival)).0 + 500) / 1000
}

/// A poll so many milliseconds after the first, by both clocks.
fn poll(line: &mut Line, ms: u64) {
    let now = Tsc(NOW.0 + cycles(ms * 1000));
    line.begin(now, OUTSIDE + Ns(ms * 1_000_000));
}

#[test]
fn the_kernel_s_stamps_are_taken_as_they_are() {
    let mut line = Line::of_kernel(TscClock::get());
    poll(&mut line, 0);
    assert_eq!(age(&mut line, 0), 0);
    assert_eq!(age(&mut line, 5000), 5000);
    assert_eq!(age(&mut line, 9_999_000), 9_999_000);
    // The clock has been set.
    assert_eq!(age(&mut line, 10_001_000), 0);
    assert_eq!(age(&mut line, -1), 0);
    assert_eq!(age(&mut line, -3_600_000_000), 0);
    assert_eq!(line.arrival(WireTime(0)), NOW);
    assert_eq!(line.arrival(WireTime(u64::MAX)), NOW);
}

/// The frame that is the least behind the device's clock is fresh, whatever the clock shows.
#[test]
fn a_device_s_clock_may_stand_anywhere() {
    for off in [0, 37_000_000, -37_000_000, 40, -40] {
        let mut line = Line::of_device(TscClock::get());
        poll(&mut line, 0);
        assert_eq!(age(&mut line, off + 3), 0, "nothing is known yet");
        assert_eq!(age(&mut line, off), 0);
        assert_eq!(age(&mut line, off + 7), 7);
        // A gap: earlier readings tell how old these frames are.
        for ms in [5000, 5001] {
            poll(&mut line, ms);
            assert_eq!(age(&mut line, off + 5000), 5000);
            assert_eq!(age(&mut line, off + 100), 100);
        }
        // The clock drifts: an old reading expires.
        poll(&mut line, 6100);
        assert_eq!(age(&mut line, off + 100), 0);
        poll(&mut line, 90_000);
        assert_eq!(age(&mut line, off + 2000), 0);
    }
}

/// A time stamp before the earliest possible arrival: the device's clock was set back.
#[test]
fn a_device_s_clock_may_be_set() {
    let mut line = Line::of_device(TscClock::get());
    let stamp = |ms: u64, set: u64| WireTime(7_000_000_000 + (ms - set) * 1_000_000);
    let since = |line: &mut Line, ms: u64, earliest, stamp| {
        poll(line, ms);
        let arrival = line.arrival_since(Tsc(NOW.0 + cycles(earliest * 1000)), stamp);
        arrival.map(|at| (TscClock::get().to_ns(line.now.0.since(at)).0 + 500) / 1000)
    };
    assert_eq!(since(&mut line, 0, 0, stamp(0, 0)), Some(0));
    assert_eq!(since(&mut line, 100, 50, stamp(98, 0)), Some(2000));
    // The clock restarted 30 ms ago, or 10 s; frames are still behind by their wait.
    for set in [30, 10_000] {
        let now = 200 + set;
        assert_eq!(since(&mut line, now, now - 5, stamp(now, set)), None);
        assert_eq!(
            since(&mut line, now + 10, now + 5, stamp(now + 9, set)),
            Some(1000)
        );
        assert_eq!(
            since(&mut line, now + 20, now, stamp(now + 20, set)),
            Some(0)
        );
        // It is ahead again.
        assert_eq!(since(&mut line, now + 30, now, stamp(now + 30, 0)), Some(0));
    }
}

/// Arrival times of frames that arrived so many cycles after zero, after a poll has charged them.
fn charge(waited: &mut Waited, now: Tsc, asked: usize, arrivals: &[Tsc]) -> Vec<Tsc> {
    let pool = pool(64, 128);
    let (mut cache, mut burst) = (pool.cache(8).unwrap(), Burst::<32>::new());
    cache.alloc_burst(&mut burst, arrivals.len());
    for (mbuf, &arrival) in burst.iter_mut().zip(arrivals) {
        mbuf.set_arrival(arrival);
    }
    waited.charge(now, asked, &mut burst);
    burst.iter().map(Mbuf::arrival).collect()
}

fn at(us: u64) -> Tsc {
    Tsc(NOW.0 + cycles(us))
}

/// A queue of eight frames that was polled at zero.
fn queue() -> Waited {
    Waited {
        polled: at(0),
        ..Waited::new(&TscClock::get(), 8)
    }
}

#[test]
fn polls_in_time_charge_nothing() {
    let mut waited = queue();
    for us in [10, 50, 90, 139] {
        assert_eq!(charge(&mut waited, at(us), 2, &[at(us); 2]), [at(us); 2]);
        assert_eq!(charge(&mut waited, at(us), 2, &[]), []);
    }
}

#[test]
fn what_was_in_the_ring_through_a_gap_is_charged_for_all_of_it() {
    let mut waited = queue();
    let fresh = [at(5000); 4];
    assert_eq!(charge(&mut waited, at(5000), 4, &fresh), [at(0); 4]);
    // The rest of the ring, whatever the time stamps; a driver may know better.
    let stamps = [at(5001), Tsc(5), at(5001), at(5001)];
    let charged = charge(&mut waited, at(5001), 4, &stamps);
    assert_eq!(charged, [at(0), Tsc(5), at(0), at(0)]);
    // Frames beyond the capacity arrived later.
    assert_eq!(charge(&mut waited, at(5002), 4, &fresh), fresh);
}

#[test]
fn a_gap_is_over_when_the_queue_is_empty() {
    let mut waited = queue();
    assert_eq!(charge(&mut waited, at(5000), 4, &[at(5000)]), [at(0)]);
    assert_eq!(charge(&mut waited, at(5001), 4, &[at(5001)]), [at(5001)]);
    // Also without frames.
    assert_eq!(charge(&mut waited, at(9000), 4, &[]), []);
    assert_eq!(charge(&mut waited, at(9001), 4, &[at(9001)]), [at(9001)]);
}

/// The loop may stand still between its clock reading and the poll: the driver's reading counts.
#[test]
fn a_gap_inside_a_round_is_seen() {
    let mut waited = queue();
    assert_eq!(charge(&mut waited, at(10), 4, &[at(5000)]), [at(0)]);
    // The gap is not counted twice.
    assert_eq!(charge(&mut waited, at(5010), 4, &[at(5010)]), [at(5010)]);
}

#[test]
fn gaps_add_up_while_the_queue_is_never_empty() {
    let mut waited = queue();
    assert_eq!(charge(&mut waited, at(1000), 2, &[at(1000); 2]), [at(0); 2]);
    for _ in 0..4 {
        assert_eq!(charge(&mut waited, at(2000), 2, &[at(2000); 2]), [at(0); 2]);
    }
    assert_eq!(charge(&mut waited, at(2000), 1, &[at(2000)]), [at(2000)]);
}

proptest! {
    /// Frames arrive and wait in a ring, and the loop polls at arbitrary times: frames that waited
    /// through a gap arrived at its start or before, and no frame arrives later than its poll.
    #[test]
    fn no_frame_looks_younger_than_the_gap_that_it_waited_through(
        rounds in prop::collection::vec((0..200_u64, 0..9_usize, 1..9_usize), 1..60),
    ) {
        let mut waited = queue();
        let (mut ring, mut us) = (std::collections::VecDeque::new(), 0);
        for (gap, coming, asked) in rounds {
            us += gap;
            // They arrived right after the last poll.
            ring.extend(vec![None; coming.min(8 - ring.len())]);
            if gap > 50 {
                for began in &mut ring {
                    began.get_or_insert(us - gap);
                }
            }
            let taken: Vec<_> = (0..asked).map_while(|_| ring.pop_front()).collect();
            let charged = charge(&mut waited, at(us), asked, &vec![at(us); taken.len()]);
            for (arrival, began) in charged.into_iter().zip(taken) {
                prop_assert!(arrival <= at(began.unwrap_or(us)));
            }
        }
    }
}
