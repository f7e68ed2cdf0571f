//! Survives bus errors in shared memory: a page that its file lacks is replaced by a private one.
//!
//! A peer that has the descriptor of a memory file can take pages out of it: it cuts the file short
//! where that is not sealed, or punches holes (fallocate(2)), which no seal forbids that leaves the
//! peer able to write. The next access there brings a new page of zeros, or, where the file has
//! become shorter or there is no free hugepage, a bus error (SIGBUS), which would end this process.
//!
//! Guarded ranges are kept in a table. On a bus error in one of them a handler of the signal maps
//! empty private memory over the unit around the address that was accessed, and nothing else; the
//! access is then made again. A unit is a page of the mapping (of a mapping of hugepages a hugepage:
//! the kernel splits it nowhere else), or the whole range where one loss makes all of it useless.
//!
//! # What holds after a replacement
//!
//! - Every address of the range stays mapped, readable and writable. A reference to bytes in it,
//!   in any thread, stays valid memory, in the replaced unit and in all others.
//! - The bytes of the replaced unit are zeros, as if the peer had written zeros there. It is the
//!   only change: bytes of other units are those that they were, and are shared as before.
//! - The replaced unit is private for the rest of the life of the mapping. What is written there
//!   stays there, and the peer and devices that the pages are mapped for do not see it, nor does
//!   this process see what they write. [`BusErrorGuard::replaced`] counts such units, and the user
//!   of the shared range checks it.
//! - A system call that is given an address in a missing page fails with `EFAULT`, as the kernel
//!   raises no signal for its own accesses. The next access from user space replaces the page.
//!
//! # Why the handler is sound
//!
//! - The range is a mapping of the guard's owner for as long as the guard lives, and every user of
//!   the range keeps the guard. The thread that made the access does not go on before the handler
//!   has returned, so meanwhile neither the range nor its entry is removed or another's.
//! - The handler reads atomics and makes system calls that keep no state in this process (mmap,
//!   sched_yield), both of which a handler may (signal-safety(7)). A range that is being entered or
//!   removed while it looks is not the one of the access, by the first point, and is passed over.
//! - Of several threads that fault on one unit, one replaces it: it has won the exchange of the
//!   unit's state from `SHARED`. The others wait until the state says that the private page is
//!   there, and make their access again, so that nothing which was written to that page is lost.
//!   The winner is never interrupted by a handler that could wait for it: all signals are blocked in
//!   the handler.
//! - A unit that is private and still gives bus errors (an error of the swap device) is not
//!   replaced again: after some attempts the signal goes where it would have gone without this.
//! - A bus error that is not in the table goes to the handler that was there before, or ends the
//!   process. So does one whose page cannot be replaced (the process may have no more mappings:
//!   vm.max_map_count).

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering, fence};
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// Ranges at a time, of the whole process: the queue pairs of several endpoints over shared memory,
/// each with an inbox of its own and one of its peer's, and the ranges that peers register. Entries
/// that were never used take no memory.
const RANGES: usize = 1 << 14;

/// States of a unit: shared; being replaced by a thread; private, and how many threads have come
/// since to find it so.
const SHARED: u8 = 0;
const REPLACING: u8 = 1;
const PRIVATE: u8 = 2;

static TABLE: [Entry; RANGES] = [const { Entry::empty() }; RANGES];

/// Held to enter or remove a range.
static WRITER: Mutex<()> = Mutex::new(());

/// What handled the signal before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// A range in the table, empty where none is.
struct Entry {
    /// Odd while the range is being written.
    turn: AtomicUsize,
    start: AtomicUsize,
    len: AtomicUsize,
    /// Bytes that are replaced together.
    unit: AtomicUsize,
    /// One state for each unit; owned by the guard.
    states: AtomicPtr<AtomicU8>,
    /// Units that were replaced.
    replaced: AtomicUsize,
}

/// A range as it is in the table.
#[derive(Clone, Copy)]
struct Range {
    start: usize,
    len: usize,
    unit: usize,
    states: *mut AtomicU8,
}

impl Entry {
    const fn empty() -> Self {
        Self {
            turn: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            unit: AtomicUsize::new(0),
            states: AtomicPtr::new(ptr::null_mut()),
            replaced: AtomicUsize::new(0),
        }
    }

    /// Only with [`WRITER`].
    fn write(&self, range: Range) {
        let turn = self.turn.load(Ordering::Relaxed);
        self.turn.store(turn.wrapping_add(1), Ordering::Relaxed);
        // Pairs with the acquire fence in `read`: who sees a new part sees the odd turn too.
        fence(Ordering::Release);
        self.start.store(range.start, Ordering::Relaxed);
        self.len.store(range.len, Ordering::Relaxed);
        self.unit.store(range.unit, Ordering::Relaxed);
        self.states.store(range.states, Ordering::Relaxed);
        // Pairs with the acquire load in `read`.
        self.turn.store(turn.wrapping_add(2), Ordering::Release);
    }

    /// The range, if it is not being written.
    fn read(&self) -> Option<Range> {
        let turn = self.turn.load(Ordering::Acquire);
        let range = Range {
            start: self.start.load(Ordering::Relaxed),
            len: self.len.load(Ordering::Relaxed),
            unit: self.unit.load(Ordering::Relaxed),
            states: self.states.load(Ordering::Relaxed),
        };
        fence(Ordering::Acquire);
        (turn.is_multiple_of(2) && self.turn.load(Ordering::Relaxed) == turn).then_some(range)
    }
}

/// A range of shared memory whose bus errors are survived, for as long as this lives.
pub struct BusErrorGuard {
    entry: &'static Entry,
    /// The entry has their address.
    _states: Box<[AtomicU8]>,
}

impl BusErrorGuard {
    /// Guards `len` bytes at `at`, of which `unit` bytes are replaced together.
    ///
    /// # Errors
    /// The units do not make up the range, the table is full ([`StorageFull`](io::ErrorKind::StorageFull)), or the system refuses a handler.
    ///
    /// # Safety
    /// The range is a mapping of the caller's that begins and ends, as its units do, where the
    /// kernel can split the mapping: at a page, of hugepages at a hugepage. It stays for as long as
    /// the guard does, and every user of the range keeps the guard. Its bytes may become zeros at
    /// any time.
    pub unsafe fn new(at: NonNull<u8>, len: usize, unit: usize) -> io::Result<Self> {
        // An entry of no bytes is one that is free.
        if len == 0 || unit == 0 || !len.is_multiple_of(unit) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let states: Box<[_]> = (0..len / unit).map(|_| AtomicU8::new(SHARED)).collect();
        let _writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
        install()?;
        let free = |entry: &&Entry| entry.len.load(Ordering::Relaxed) == 0;
        let entry = TABLE.iter().find(free).ok_or(io::ErrorKind::StorageFull)?;
        entry.replaced.store(0, Ordering::Relaxed);
        entry.write(Range {
            start: at.addr().get(),
            len,
            unit,
            states: states.as_ptr().cast_mut(),
        });
        Ok(Self {
            entry,
            _states: states,
        })
    }

    /// Units that the file lacked when they were accessed, and that are private memory since.
    #[must_use]
    pub fn replaced(&self) -> usize {
        self.entry.replaced.load(Ordering::Relaxed)
    }
}

impl Drop for BusErrorGuard {
    fn drop(&mut self) {
        let _writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
        self.entry.write(Range {
            start: 0,
            len: 0,
            unit: 0,
            states: ptr::null_mut(),
        });
    }
}

/// Has bus errors come here first. Only with [`WRITER`].
fn install() -> io::Result<()> {
    if BEFORE.get().is_some() {
        return Ok(());
    }
    // SAFETY: a `sigaction` of zeros is valid: the default handler, no flags, no signals.
    let mut before: libc::sigaction = unsafe { core::mem::zeroed() };
    let mut ours = before;
    ours.sa_sigaction = on_bus_error as *const () as usize;
    // On the stack that the thread has for signals, as std's own handler is.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: one valid structure each. What was before is known before it is called. No other
    // handler runs on top of ours: it could fault on the unit that ours is replacing, and wait.
    unsafe {
        libc::sigfillset(&raw mut ours.sa_mask);
        if libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut before) != 0 {
            return Err(io::Error::last_os_error());
        }
        BEFORE.get_or_init(|| before);
        if libc::sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// The handler. `extern "C"` and of this form, as the kernel calls it (sigaction(2), `SA_SIGINFO`).
extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives what it says about the signal; of a bus error by an access it says
    // the address.
    let at = unsafe { ((*info).si_code == libc::BUS_ADRERR).then(|| (*info).si_addr().addr()) };
    let found = TABLE.iter().find_map(|entry| {
        let range = entry.read()?;
        let into = at?.wrapping_sub(range.start);
        (into < range.len).then_some((entry, range, into))
    });
    let is_survived = found.is_some_and(|(entry, range, into)| replace(entry, range, into));
    if !is_survived {
        pass_on(signal, info, context);
    }
}

/// Replaces the unit that is `into` the range, unless another thread does; false if the access
/// cannot succeed.
fn replace(entry: &Entry, range: Range, into: usize) -> bool {
    let number = into / range.unit;
    // SAFETY: into < len, so that there is a state for the unit; the guard whose entry this is lives,
    // as said at the top, and with it the states.
    let state = unsafe { &*range.states.add(number) };
    loop {
        // Acquire: pairs with the Release below, so that an access that is made again finds the
        // private page. (It does in any case: the kernel orders a fault behind the change of a map.)
        match state.compare_exchange(SHARED, REPLACING, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => break,
            Err(REPLACING) => rustix::thread::sched_yield(),
            // Some other thread was faster. The same fault for ever is another one.
            Err(now) if now < u8::MAX => {
                let next = now + 1;
                let counted =
                    state.compare_exchange(now, next, Ordering::Relaxed, Ordering::Relaxed);
                if counted.is_ok() {
                    return true;
                }
            }
            Err(_) => return false,
        }
    }
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    // SAFETY: the unit is a part of a mapping whose guard lives, as said at the top. It is mapped
    // before and after, so that references to its bytes stay valid; that the bytes become zeros is
    // what the guard's owner allows. rustix makes the system call itself and touches no errno.
    let replaced = unsafe {
        let at = ptr::with_exposed_provenance_mut(range.start + number * range.unit);
        mmap_anonymous(at, range.unit, protection, flags)
    };
    if replaced.is_err() {
        state.store(SHARED, Ordering::Release);
        return false;
    }
    entry.replaced.fetch_add(1, Ordering::Relaxed);
    state.store(PRIVATE, Ordering::Release);
    true
}

/// What would have happened without us.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = BEFORE.get().filter(|before| {
        before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN
    });
    let Some(before) = before else {
        // SAFETY: the default is to end the process: when this handler returns, and the signal that
        // is raised here comes through.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
        return;
    };
    if before.sa_flags & libc::SA_SIGINFO == 0 {
        // SAFETY: a handler that was installed without SA_SIGINFO has this form (sigaction(2)).
        let handler: extern "C" fn(c_int) = unsafe { core::mem::transmute(before.sa_sigaction) };
        handler(signal);
    } else {
        // SAFETY: one with it has this form.
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
            unsafe { core::mem::transmute(before.sa_sigaction) };
        handler(signal, info, context);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::fd::OwnedFd;
    use std::sync::Barrier;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use rustix::mm::{mmap, munmap};

    use super::*;

    const PAGE: usize = 4096;

    /// A guarded mapping of a file that is not sealed.
    struct Shared {
        at: NonNull<u8>,
        len: usize,
        file: OwnedFd,
        guard: Option<BusErrorGuard>,
    }

    // SAFETY: a range of addresses.
    unsafe impl Sync for Shared {}

    impl Shared {
        fn mapped(pages: usize) -> Self {
            let len = pages * PAGE;
            let file = memfd_create("guard", MemfdFlags::CLOEXEC).unwrap();
            ftruncate(&file, len as u64).unwrap();
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a new mapping where the kernel likes.
            let at = unsafe { mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, &file, 0) };
            let at = NonNull::new(at.unwrap().cast::<u8>()).unwrap();
            // SAFETY: the mapping lives longer than the guard, and is reached by atomics alone.
            let guard = unsafe { BusErrorGuard::new(at, len, PAGE) }.unwrap();
            Self {
                at,
                len,
                file,
                guard: Some(guard),
            }
        }

        fn byte(&self, at: usize) -> &AtomicU8 {
            assert!(at < self.len);
            // SAFETY: inside the mapping, which is reached by atomics alone.
            unsafe { self.at.add(at).cast().as_ref() }
        }

        fn replaced(&self) -> usize {
            self.guard.as_ref().map_or(0, BusErrorGuard::replaced)
        }
    }

    impl Drop for Shared {
        fn drop(&mut self) {
            self.guard = None;
            // SAFETY: the range is ours.
            unsafe { munmap(self.at.as_ptr().cast(), self.len) }.unwrap();
        }
    }

    #[test]
    fn a_page_is_replaced_and_its_neighbours_keep_what_they_hold() {
        let shared = Shared::mapped(4);
        // References from before stay references to mapped memory.
        let bytes: Vec<_> = (0..4).map(|page| shared.byte(page * PAGE + 7)).collect();
        bytes
            .iter()
            .zip(1..)
            .for_each(|(byte, i)| byte.store(i, Ordering::Relaxed));
        ftruncate(&shared.file, 2 * PAGE as u64).unwrap();
        assert_eq!(bytes[2].load(Ordering::Relaxed), 0);
        assert_eq!(shared.replaced(), 1);
        assert_eq!(
            [0, 1].map(|page: usize| bytes[page].load(Ordering::Relaxed)),
            [1, 2]
        );
        // The page behind it was never accessed while it was missing: it is the file's still.
        ftruncate(&shared.file, 4 * PAGE as u64).unwrap();
        for (page, seen) in [(0, 9), (1, 9), (2, 0), (3, 9)] {
            let at = (page * PAGE + 7) as u64;
            assert_eq!(rustix::io::pwrite(&shared.file, &[9], at), Ok(1));
            assert_eq!(bytes[page].load(Ordering::Relaxed), seen, "page {page}");
        }
        // What is written to the private page stays there.
        bytes[2].store(5, Ordering::Relaxed);
        assert_eq!(bytes[2].load(Ordering::Relaxed), 5);
        assert_eq!(shared.replaced(), 1);
    }

    #[test]
    fn what_one_thread_writes_to_a_new_page_another_does_not_replace() {
        const THREADS: usize = 4;
        const ROUNDS: usize = 2000;
        let shared = Shared::mapped(ROUNDS);
        ftruncate(&shared.file, 0).unwrap();
        let barrier = Barrier::new(THREADS);
        // Counted: a thread that gave up would leave the others waiting.
        let lost = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (shared, barrier, lost) = (&shared, &barrier, &lost);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let byte = shared.byte(round * PAGE + thread);
                        barrier.wait();
                        byte.store(1, Ordering::Relaxed);
                        barrier.wait();
                        let is_lost = byte.load(Ordering::Relaxed) != 1;
                        lost.fetch_add(is_lost.into(), Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(lost.into_inner(), 0);
        assert_eq!(shared.replaced(), ROUNDS);
    }

    #[test]
    fn ranges_that_are_not_made_of_units_are_refused() {
        for (len, unit) in [(PAGE, 0), (PAGE + 1, PAGE), (PAGE, 2 * PAGE)] {
            // SAFETY: it is refused.
            let guard = unsafe { BusErrorGuard::new(NonNull::dangling(), len, unit) };
            assert_eq!(
                guard.err().map(|e| e.kind()),
                Some(io::ErrorKind::InvalidInput)
            );
        }
    }

    #[test]
    fn a_process_guards_thousands_of_ranges() {
        const RANGES: usize = 4096;
        let mut whole = Shared::mapped(RANGES);
        whole.guard = None;
        let guard = |page: usize| {
            // SAFETY: a page of the mapping, which lives longer than the guards, and is reached by
            // atomics alone.
            unsafe { BusErrorGuard::new(whole.at.add(page * PAGE), PAGE, PAGE) }.unwrap()
        };
        let guards: Vec<_> = (0..RANGES).map(guard).collect();
        ftruncate(&whole.file, 0).unwrap();
        assert_eq!(whole.byte((RANGES - 1) * PAGE).load(Ordering::Relaxed), 0);
        let replaced: Vec<_> = guards.iter().map(BusErrorGuard::replaced).collect();
        assert_eq!(replaced.iter().sum::<usize>(), 1);
        assert_eq!(replaced.last(), Some(&1));
    }
}
