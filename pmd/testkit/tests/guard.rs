//! What must be heard is heard, and what must not is not.

use std::hint::black_box;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use pollux_pmd_testkit::guard::{Noise, aside, listen};

/// Listens to `work` only; whether system calls can be heard.
fn noise(work: impl FnOnce() + Send) -> Noise {
    listen(|ear| ear.during(work)).1
}

/// Whether exactly these system calls were made, where they can be seen at all.
fn calls(noise: &Noise, expected: &[i64]) -> bool {
    let seen: Vec<_> = noise
        .system_calls
        .iter()
        .map(|&number| i64::from(number))
        .collect();
    if let Some(error) = &noise.deaf {
        println!("skipped: system calls cannot be watched here: {error}");
    }
    noise.deaf.is_some() || seen == expected
}

#[test]
fn work_is_silent() {
    let mut buffer = vec![0_u64; 1000];
    let work = || {
        for (n, word) in buffer.iter_mut().enumerate() {
            *word = black_box(n as u64);
        }
        // Through the vDSO, which is not the kernel.
        black_box(Instant::now());
        // An uncontended lock makes no system call.
        drop(black_box(Mutex::new(0).lock()));
    };
    let noise = noise(work);
    assert!(noise.is_none(), "{noise}");
    noise.assert_none();
}

#[test]
fn what_is_done_aside_is_not_heard_and_what_is_done_after_it_is() {
    let call = || drop(std::fs::metadata("/"));
    let noise = noise(|| {
        aside(|| {
            call();
            aside(|| drop(black_box(Box::new(1))));
            call();
        });
    });
    assert!(noise.is_none(), "{noise}");
    let noise = self::noise(|| {
        aside(call);
        std::thread::yield_now();
    });
    assert!(calls(&noise, &[libc::SYS_sched_yield]), "{noise}");
}

#[test]
fn each_call_of_the_allocator_counts() {
    assert_eq!(noise(|| drop(black_box(Box::new(1)))).allocator_calls, 2);
    let growing = || {
        let mut list = Vec::with_capacity(1);
        (0..3).for_each(|n| list.push(black_box(n)));
        std::mem::forget(list);
    };
    // With room for one, then for four.
    assert_eq!(noise(growing).allocator_calls, 2);
    let zeroed = noise(|| std::mem::forget(black_box(vec![0_u8; 10])));
    assert_eq!(zeroed.allocator_calls, 1);
    let text = String::from("made before");
    let ((), noise) = listen(move |ear| ear.during(|| drop(black_box(text))));
    assert_eq!(noise.allocator_calls, 1);
    assert!(!noise.is_none());
}

#[test]
fn each_system_call_is_seen_and_still_works() {
    let (pid, noise) = listen(|ear| {
        std::thread::yield_now();
        let pid = ear.during(std::process::id);
        std::thread::yield_now();
        pid
    });
    assert_eq!(pid, std::process::id());
    assert!(calls(&noise, &[libc::SYS_getpid]), "{noise}");

    let noise = self::noise(|| std::thread::sleep(Duration::from_nanos(1)));
    assert!(calls(&noise, &[libc::SYS_clock_nanosleep]), "{noise}");
    let noise = self::noise(|| (0..1000).for_each(|_| std::thread::yield_now()));
    assert!(calls(&noise, &[libc::SYS_sched_yield; 64]), "{noise}");
}

#[test]
#[should_panic(expected = "not only work: 2 calls of the allocator")]
fn noise_fails_a_test() {
    noise(|| drop(black_box(Box::new(1)))).assert_none();
}

#[test]
#[should_panic(expected = "its own words")]
fn a_panic_comes_through() {
    listen::<()>(|ear| ear.during(|| panic!("its own words")));
}

#[test]
fn listening_is_for_one_thread_and_can_be_done_again() {
    for _ in 0..3 {
        std::thread::scope(|scope| {
            scope.spawn(|| drop(black_box(vec![std::process::id()])));
            noise(|| ()).assert_none();
        });
    }
}
