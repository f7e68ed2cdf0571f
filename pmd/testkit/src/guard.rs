//! Proves that a piece of code does nothing but work: that it calls neither the allocator nor the
//! kernel. For tests of poll loops and of the stages that run in them.
//!
//! A program that uses this crate gets a global allocator that counts. [`listen`] runs the code on
//! a thread of its own, whose every system call is seen by a filter; what the code does inside
//! [`Ear::during`] counts, what it does before and after (setting up, tearing down) does not.
//!
//! ```
//! let (sum, noise) = pollux_pmd_testkit::guard::listen(|ear| {
//!     let numbers: Vec<u64> = (0..100).collect();
//!     ear.during(|| numbers.iter().sum::<u64>())
//! });
//! assert_eq!(sum, 4950);
//! noise.assert_none();
//! ```

mod filter;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    /// Whether the calls of the thread count, if the thread is observed.
    static OPEN: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// The system's allocator, which counts the calls of each thread.
struct Counting;

// SAFETY: everything is passed on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

fn count() {
    // No destructor, so it is there for as long as the thread is.
    CALLS.set(CALLS.get() + 1);
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Times that the calling thread has allocated, reallocated or freed so far.
#[must_use]
pub fn allocator_calls() -> u64 {
    CALLS.get()
}

/// What a listened-to piece of code did besides work.
#[derive(Debug)]
pub struct Noise {
    /// Times that it allocated, reallocated or freed.
    pub allocator_calls: u64,
    /// The numbers of its system calls, in order; the first 64.
    pub system_calls: Vec<i32>,
    /// Why system calls could not be seen, if so: the kernel does not let a filter be installed.
    pub deaf: Option<io::Error>,
}

impl Noise {
    /// Whether there was none, as far as could be seen.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.allocator_calls == 0 && self.system_calls.is_empty()
    }

    /// Fails if there was any; says so if system calls could not be seen.
    ///
    /// # Panics
    /// With the calls, if there were any.
    #[track_caller]
    pub fn assert_none(&self) {
        if let Some(error) = &self.deaf {
            println!("skipped: system calls cannot be watched here: {error}");
        }
        assert!(self.is_none(), "not only work: {self}");
    }
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} calls of the allocator, ", self.allocator_calls)?;
        match &self.deaf {
            Some(error) => write!(f, "system calls not seen ({error})"),
            None => write!(f, "system calls {:?} (see ausyscall(8))", self.system_calls),
        }
    }
}

/// Says from where to where the listening goes.
pub struct Ear {
    open: Arc<AtomicBool>,
    allocator_calls: Cell<u64>,
}

impl Ear {
    /// Runs `work` and takes note of all that it does besides work.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = allocator_calls();
        self.open.store(true, Ordering::SeqCst);
        let result = work();
        self.open.store(false, Ordering::SeqCst);
        let calls = allocator_calls() - before;
        self.allocator_calls.set(self.allocator_calls.get() + calls);
        result
    }
}

/// Runs `work` unheard, inside [`Ear::during`] too: what a device that is made of software does, for
/// one, which a real device would do by itself.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    let calls = CALLS.get();
    let open = OPEN.with_borrow(Clone::clone);
    let open = open.filter(|open| open.swap(false, Ordering::SeqCst));
    let result = work();
    if let Some(open) = open {
        open.store(true, Ordering::SeqCst);
    }
    CALLS.set(calls);
    result
}

/// No listener yet. File descriptors and negated error numbers are others.
const PENDING: i32 = i32::MIN;

/// Runs `body` on a thread of its own, and listens where it says so. The system calls of threads
/// that it starts are seen as well; start those that are not meant before.
///
/// # Panics
/// If `body` does.
pub fn listen<T: Send>(body: impl FnOnce(&Ear) -> T + Send) -> (T, Noise) {
    let (open, listener) = (Arc::new(AtomicBool::new(false)), AtomicI32::new(PENDING));
    // All memory for the supervisor is there before: a thread that waits for it may hold a lock of
    // the allocator.
    let mut system_calls = Vec::with_capacity(64);
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // From here on each system call of this thread waits for the supervisor below, so the
            // descriptor must get there without one.
            listener.store(
                filter::install().unwrap_or_else(|error| -error),
                Ordering::SeqCst,
            );
            assert!(is_counting(), "another global allocator is in the way");
            OPEN.set(Some(open.clone()));
            let ear = Ear {
                open: open.clone(),
                allocator_calls: Cell::new(0),
            };
            let result = body(&ear);
            (result, ear.allocator_calls.get())
        });
        let deaf = loop {
            match listener.load(Ordering::SeqCst) {
                PENDING => thread::yield_now(),
                error if error < 0 => break Some(io::Error::from_raw_os_error(-error)),
                fd => {
                    filter::supervise(fd, |number| {
                        if open.load(Ordering::SeqCst)
                            && system_calls.len() < system_calls.capacity()
                        {
                            system_calls.push(number);
                        }
                    });
                    break None;
                }
            }
        };
        match worker.join() {
            Ok((result, allocator_calls)) => (
                result,
                Noise {
                    allocator_calls,
                    system_calls,
                    deaf,
                },
            ),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn is_counting() -> bool {
    let before = allocator_calls();
    drop(black_box(Box::new(0_u8)));
    allocator_calls() == before + 2
}
