//! Every interleaving (with two or three preemptions) and every outcome of weak memory, for tiny
//! rings and a tiny free list.
//!
//! Each model must hold, and must fail with a mutant at each of the sites on which it depends:
//! an ordering that is relaxed, or two steps that are exchanged. Run it with
//! `RUSTFLAGS="--cfg loom" cargo test --release -p pollux-mempool --test loom`.
#![cfg(loom)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::mem::MaybeUninit;
use std::panic::catch_unwind;
// Not loom's: handing out the ring must not order anything.
use std::sync::Arc;

use loom::thread;
use pollux_mempool::ring::model::{FreeList, mutant, wait_until};
use pollux_mempool::ring::{Mpmc, spsc};

fn explore(preemptions: usize, model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// The model holds as it is, and each mutant makes it fail.
fn holds_but_for(mutants: &[&'static str], preemptions: usize, model: fn()) {
    explore(preemptions, model);
    for &site in mutants {
        mutant::set(Some(site));
        let outcome = catch_unwind(|| explore(preemptions, model));
        mutant::set(None);
        let report = outcome.expect_err(site);
        let report = report.downcast_ref::<String>().map_or("", String::as_str);
        // A model that only runs for ever has not found the fault.
        assert!(
            !report.contains("maximum number of branches"),
            "{site}: {report}"
        );
    }
}

fn filled(items: &[MaybeUninit<u32>]) -> Vec<u32> {
    // SAFETY: called with what a pop has just filled.
    items
        .iter()
        .map(|item| unsafe { item.assume_init() })
        .collect()
}

/// Retries until `step` succeeds; the other threads go on in between.
fn retry<R>(mut step: impl FnMut() -> Option<R>) -> R {
    let mut result = None;
    wait_until(|| {
        result = step();
        result.is_some()
    });
    result.unwrap()
}

fn push_all(ring: &Mpmc<u32>, items: &[u32]) {
    retry(|| ring.push_bulk(items).then_some(()));
}

#[test]
fn spsc_bulk_and_burst_wrap() {
    let sites = [
        "spsc-tail-load",
        "spsc-tail-store",
        "spsc-head-load",
        "spsc-head-store",
        "spsc-push-order",
        "spsc-pop-order",
    ];
    holds_but_for(&sites, 2, || {
        let (mut producer, mut consumer) = spsc::channel(2).unwrap();
        let pushing = thread::spawn(move || {
            assert!(producer.push(1));
            retry(|| producer.push_bulk(&[2, 3]).then_some(()));
            retry(|| (producer.push_burst(&[4]) == 1).then_some(()));
        });
        let mut got = Vec::new();
        while got.len() < 4 {
            let mut out = [MaybeUninit::uninit(); 2];
            let n = retry(|| Some(consumer.pop_burst(&mut out)).filter(|&n| n > 0));
            got.extend(filled(&out[..n]));
        }
        assert_eq!(got, [1, 2, 3, 4]);
        pushing.join().unwrap();
        assert!(consumer.is_abandoned() && consumer.is_empty());
    });
}

#[test]
fn spsc_bulk_pop_is_all_or_nothing() {
    holds_but_for(&["spsc-tail-load", "spsc-tail-store"], 3, || {
        let (mut producer, mut consumer) = spsc::channel(3).unwrap();
        let pushing = thread::spawn(move || {
            assert!(producer.push(1));
            assert!(producer.push(2));
        });
        let mut out = [MaybeUninit::uninit(); 2];
        retry(|| consumer.pop_bulk(&mut out).then_some(()));
        assert_eq!(filled(&out), [1, 2]);
        pushing.join().unwrap();
    });
}

#[test]
fn mpmc_two_producers_one_consumer() {
    let sites = [
        "mpmc-turn",
        "mpmc-publish",
        "mpmc-other-tail",
        "mpmc-push-order",
    ];
    holds_but_for(&sites, 2, || {
        let ring = Arc::new(Mpmc::new(4).unwrap());
        // The second pair continues at the beginning of the slots.
        push_all(&ring, &[0, 0]);
        let mut out = [MaybeUninit::uninit(); 4];
        assert!(ring.pop_bulk(&mut out[..1]) && ring.pop_bulk(&mut out[..1]));
        let producers = [[1, 2], [3, 4]].map(|items| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || push_all(&ring, &items))
        });
        let mut got = Vec::new();
        while got.len() < 4 {
            let n = retry(|| Some(ring.pop_burst(&mut out)).filter(|&n| n > 0));
            got.extend(filled(&out[..n]));
        }
        assert!(got == [1, 2, 3, 4] || got == [3, 4, 1, 2], "{got:?}");
        producers
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn mpmc_one_producer_two_consumers() {
    let sites = [
        "mpmc-turn",
        "mpmc-publish",
        "mpmc-other-tail",
        "mpmc-push-order",
        "mpmc-pop-order",
    ];
    holds_but_for(&sites, 2, || {
        let ring = Arc::new(Mpmc::new(2).unwrap());
        let consumers = [(), ()].map(|()| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || retry(|| ring.pop()))
        });
        push_all(&ring, &[1, 2]);
        retry(|| (ring.push_burst(&[3]) == 1).then_some(()));
        let mut got = consumers.map(|thread| thread.join().unwrap()).to_vec();
        got.push(ring.pop().unwrap());
        got.sort_unstable();
        assert_eq!(got, [1, 2, 3]);
        assert_eq!(ring.pop(), None);
    });
}

/// A producer that reads a new head of its side beside an old tail of the other would see a
/// negative room, which is a huge one.
#[test]
fn mpmc_room_is_never_negative() {
    holds_but_for(&["mpmc-head-load", "mpmc-head-swap"], 3, || {
        let ring = Arc::new(Mpmc::new(1).unwrap());
        let first = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                assert!(ring.push(1));
                usize::from(ring.push(2))
            })
        };
        let second = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                let popped = ring.pop();
                (popped.is_some() && ring.push(3), popped)
            })
        };
        let more = first.join().unwrap();
        let (pushed, popped) = second.join().unwrap();
        let inside = 1 + more + usize::from(pushed) - usize::from(popped.is_some());
        assert_eq!(ring.len(), inside);
        assert!(inside <= 1, "{inside} items in a ring of one");
    });
}

/// Two threads return the last buffers while a third drops the last handle: one of them ends the
/// free list, and no thread touches it afterwards (loom watches the indices).
#[test]
fn free_list_ends_once() {
    holds_but_for(&["free-list-missing"], 3, || {
        let free_list = FreeList::new(2).unwrap();
        assert!(free_list.add(0) && free_list.add(1));
        let buffers = free_list.pop(2);
        let returning = [buffers[0], buffers[1]].map(|buffer| {
            let free_list = free_list.clone();
            thread::spawn(move || usize::from(free_list.give_back(buffer)))
        });
        let mut ends = usize::from(free_list.close());
        for thread in returning {
            ends += thread.join().unwrap();
        }
        assert_eq!(ends, 1);
    });
}

/// As above, with a handle that still pops and puts while a buffer comes back.
#[test]
fn free_list_ends_once_after_late_pops() {
    holds_but_for(&["returns-close"], 3, || {
        let free_list = FreeList::new(2).unwrap();
        assert!(free_list.add(0) && free_list.add(1));
        let first = free_list.pop(1)[0];
        let returning = {
            let free_list = free_list.clone();
            thread::spawn(move || usize::from(free_list.give_back(first)))
        };
        let mine = free_list.pop(1)[0];
        free_list.put(&[mine]);
        let mut ends = usize::from(free_list.close());
        ends += returning.join().unwrap();
        assert_eq!(ends, 1);
    });
}

/// As above, with an element that was never taken when the last handle goes.
#[test]
fn free_list_ends_once_with_all_that_it_was_given() {
    holds_but_for(&["free-list-missing+returns-close"], 3, || {
        let free_list = FreeList::new(2).unwrap();
        assert!(free_list.add(0) && free_list.add(1));
        let buffer = free_list.pop(1)[0];
        let returning = {
            let free_list = free_list.clone();
            thread::spawn(move || usize::from(free_list.give_back(buffer)))
        };
        let ends = usize::from(free_list.close());
        assert_eq!(ends + returning.join().unwrap(), 1);
    });
}

/// While a handle lives nothing ends the free list, and all that came back can be taken again.
#[test]
fn free_list_never_ends_before_its_handles() {
    explore(3, || {
        let free_list = FreeList::new(2).unwrap();
        assert!(free_list.add(0) && free_list.add(1));
        let mine = free_list.pop(1)[0];
        let cycling = {
            let free_list = free_list.clone();
            thread::spawn(move || {
                free_list
                    .pop(1)
                    .iter()
                    .any(|&buffer| free_list.give_back(buffer))
            })
        };
        let ended = free_list.give_back(mine);
        assert!(!ended && !cycling.join().unwrap());
        assert_eq!(free_list.len(), 2);
        let mut all = free_list.pop(2);
        all.sort_unstable();
        assert_eq!(all, [0, 1]);
    });
}

/// The next owner of a returned buffer sees all that was done with it before.
#[test]
fn what_was_done_with_a_returned_buffer_comes_before_its_next_owner() {
    holds_but_for(&["returns-push", "returns-pop"], 3, || {
        let free_list = FreeList::new(2).unwrap();
        assert!(free_list.add(0) && free_list.add(1));
        let buffers = free_list.pop(2);
        let bytes = Arc::new([0, 1].map(loom::cell::UnsafeCell::new));
        let returning = [buffers[0], buffers[1]].map(|buffer| {
            let (free_list, bytes) = (free_list.clone(), Arc::clone(&bytes));
            thread::spawn(move || {
                // SAFETY: loom checks that no other access runs at the same time.
                bytes[buffer as usize].with_mut(|byte| unsafe { *byte += 10 });
                free_list.give_back(buffer)
            })
        });
        for buffer in free_list.pop(2) {
            // SAFETY: as above.
            bytes[buffer as usize].with_mut(|byte| unsafe { *byte += 100 });
        }
        for thread in returning {
            assert!(!thread.join().unwrap());
        }
    });
}

/// A pop that is preempted behind its look at the top, while others take all and give some of it
/// back in another order, does not take what is not there.
#[test]
fn a_returned_buffer_is_taken_by_one_thread_alone() {
    holds_but_for(&["returns-tag"], 3, || {
        let free_list = FreeList::new(3).unwrap();
        assert!((0..3).all(|buffer| free_list.add(buffer)));
        free_list.pop(3).into_iter().for_each(|buffer| {
            assert!(!free_list.give_back(buffer));
        });
        let other = {
            let free_list = free_list.clone();
            thread::spawn(move || {
                let mut taken = free_list.pop(2);
                // The one that was on top is again, without the one below.
                if taken.len() == 2 {
                    let top = taken.remove(0);
                    assert!(!free_list.give_back(top));
                }
                taken
            })
        };
        let mut taken = free_list.pop(1);
        taken.extend(other.join().unwrap());
        taken.extend(free_list.pop(3));
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2]);
    });
}
