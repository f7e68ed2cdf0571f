//! A peer that cuts its memory file short under our mapping: the next access there is a bus error
//! (SIGBUS), which would end this process. Here it costs the peer its session, and nothing else.
//!
//! Ranges of mapped files that cannot be sealed are kept in a table. On a bus error in one of them a
//! handler of the signal puts empty memory in the place of the whole range, and the access is made
//! again. Then the bytes are zeros, which a peer might have written too: what is read from its
//! memory is believed nothing in any case. Whoever looks at [`Guard::was_cut`] sees what happened.
//!
//! # Why this is sound
//!
//! - The range is a mapping of ours for as long as its guard lives, and whoever reaches into it
//!   keeps the guard. The thread that made the access does not go on before the handler has
//!   returned, so meanwhile the range is neither unmapped nor another's.
//! - Nobody forms a reference to a byte of it, so that its bytes change under others is nothing new.
//! - The handler reads atomics and makes one system call, both of which a handler may
//!   (signal-safety(7)). A range that is being entered or removed while it looks is not the one of
//!   the access, by the first point, and is passed over whole.
//! - A bus error that is not in the table goes to who handled them before, or ends the process.

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// Ranges at a time: 32 peers with as many regions as one may have.
const RANGES: usize = 256;

static TABLE: [Entry; RANGES] = [const { Entry::empty() }; RANGES];

/// Held by whoever enters or removes a range.
static WRITER: Mutex<()> = Mutex::new(());

/// What handled the signal before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// A range in the table, empty where none is.
struct Entry {
    /// Odd while the range is being written.
    turn: AtomicUsize,
    start: AtomicUsize,
    len: AtomicUsize,
    cut: AtomicBool,
}

impl Entry {
    const fn empty() -> Self {
        Self {
            turn: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            cut: AtomicBool::new(false),
        }
    }

    /// Only with [`WRITER`].
    fn write(&self, start: usize, len: usize) {
        let turn = self.turn.load(Ordering::Relaxed);
        self.turn.store(turn.wrapping_add(1), Ordering::Relaxed);
        // Pairs with the acquire fence in `read`: who sees a new half sees the odd turn too.
        fence(Ordering::Release);
        self.start.store(start, Ordering::Relaxed);
        self.len.store(len, Ordering::Relaxed);
        // Pairs with the acquire load in `read`.
        self.turn.store(turn.wrapping_add(2), Ordering::Release);
    }

    /// The range, if it is not being written.
    fn read(&self) -> Option<(usize, usize)> {
        let turn = self.turn.load(Ordering::Acquire);
        let range = (
            self.start.load(Ordering::Relaxed),
            self.len.load(Ordering::Relaxed),
        );
        fence(Ordering::Acquire);
        (turn.is_multiple_of(2) && self.turn.load(Ordering::Relaxed) == turn).then_some(range)
    }
}

/// A range whose bus errors are survived, for as long as this lives.
pub(super) struct Guard(&'static Entry);

impl Guard {
    /// Guards `len` bytes at `at`.
    ///
    /// # Errors
    /// The table is full, or the system refuses a handler.
    ///
    /// # Safety
    /// The range is a mapping of the caller's, which stays for as long as the guard does, and nobody
    /// forms references to its bytes.
    pub(super) unsafe fn new(at: NonNull<u8>, len: usize) -> io::Result<Self> {
        let _writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
        install()?;
        let free = |entry: &&Entry| entry.len.load(Ordering::Relaxed) == 0;
        let entry = TABLE.iter().find(free).ok_or(io::ErrorKind::StorageFull)?;
        entry.cut.store(false, Ordering::Relaxed);
        entry.write(at.addr().get(), len);
        Ok(Self(entry))
    }

    /// Whether the file was cut short, and an access found it so.
    pub(super) fn was_cut(&self) -> bool {
        self.0.cut.load(Ordering::Relaxed)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.write(0, 0);
    }
}

/// Has bus errors come here first. Only with [`WRITER`].
fn install() -> io::Result<()> {
    if BEFORE.get().is_some() {
        return Ok(());
    }
    // SAFETY: a `sigaction` of zeros is valid: the default handler, no flags, no signals.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    let mut ours = before;
    ours.sa_sigaction = on_bus_error as *const () as usize;
    // On the stack that the thread has for signals, as std's own handler is.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: one valid structure each. What was before is known before it is called.
    unsafe {
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
        let (start, len) = entry.read()?;
        (at?.wrapping_sub(start) < len).then_some((entry, start, len))
    });
    let Some((entry, start, len)) = found else {
        return pass_on(signal, info, context);
    };
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    // SAFETY: the range is a mapping whose guard lives, as said at the top, and none of its bytes is
    // behind a reference. rustix makes the system call itself and touches no errno.
    let replaced = unsafe {
        let at = ptr::with_exposed_provenance_mut(start);
        mmap_anonymous(at, len, protection, flags)
    };
    match replaced {
        Ok(_) => entry.cut.store(true, Ordering::Relaxed),
        Err(_) => pass_on(signal, info, context),
    }
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
        let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(before.sa_sigaction) };
        handler(signal);
    } else {
        // SAFETY: one with it has this form.
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
            unsafe { std::mem::transmute(before.sa_sigaction) };
        handler(signal, info, context);
    }
}
