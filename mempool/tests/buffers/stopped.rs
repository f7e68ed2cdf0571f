//! A thread that is stopped while it frees buffers does not delay others.
//!
//! A signal stops the thread at an arbitrary instruction, as preemption by a thread of higher
//! priority would, for as long as the test wants.

use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use pollux_mempool::{Burst, mbuf_ring};

use crate::pool;

static STOP: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Holds the thread that the signal is sent to until it may go on.
extern "C" fn hold(_signal: libc::c_int) {
    STOPPED.store(true, SeqCst);
    let pause = libc::timespec {
        tv_sec: 0,
        tv_nsec: 20_000,
    };
    while STOP.load(SeqCst) {
        // SAFETY: a valid structure; the call is one that handlers may make.
        unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
    }
    STOPPED.store(false, SeqCst);
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !done() {
        if Instant::now() > end {
            // The thread that is stopped goes on, or nothing would end.
            STOP.store(false, SeqCst);
            panic!("{what}");
        }
        thread::sleep(Duration::from_micros(50));
    }
}

/// A poll loop goes on while a thread that drops its buffers is stopped, wherever that is: in a drop
/// for one, of which 400 stops hit dozens.
#[test]
fn a_thread_that_is_stopped_in_a_drop_holds_up_no_poll_loop() {
    // SAFETY: a handler of this form, without flags; zeros are an empty set of signals.
    let installed = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = hold as *const () as usize;
        libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut())
    };
    assert_eq!(installed, 0);

    let pool = pool(512, 64);
    let (mut producer, mut consumer) = mbuf_ring(64).unwrap();
    let (turns, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let (turns, done) = (&*Box::leak(Box::new(turns)), &*Box::leak(Box::new(done)));
    let dropping = thread::spawn(move || {
        let mut burst = Burst::<32>::new();
        while !done.load(SeqCst) {
            consumer.pop(&mut burst.as_mut());
            burst.clear();
        }
    });
    // The cache is as small as its bursts: each turn refills and flushes it.
    let mut cache = pool.cache(64).unwrap();
    let polling = thread::spawn(move || {
        let mut burst = Burst::<32>::new();
        while !done.load(SeqCst) {
            cache.alloc_burst(&mut burst, 32);
            producer.push_front(&mut burst.as_mut(), 16);
            cache.free_burst(&mut burst);
            cache.flush();
            turns.fetch_add(1, SeqCst);
        }
    });
    for round in 0..400 {
        thread::sleep(Duration::from_micros(50 + round % 7 * 30));
        STOP.store(true, SeqCst);
        // SAFETY: the thread has not been joined.
        let sent = unsafe { libc::pthread_kill(dropping.as_pthread_t(), libc::SIGUSR2) };
        assert_eq!(sent, 0);
        wait_until("the signal does not come", || STOPPED.load(SeqCst));
        let before = turns.load(SeqCst);
        wait_until("the poll loop waits for a thread that is stopped", || {
            turns.load(SeqCst) >= before + 50
        });
        STOP.store(false, SeqCst);
        wait_until("the thread does not go on", || !STOPPED.load(SeqCst));
    }
    done.store(true, SeqCst);
    dropping.join().unwrap();
    polling.join().unwrap();
    assert_eq!(pool.available(), 512);
}
