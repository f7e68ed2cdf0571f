//! A seccomp filter that shows a thread's system calls to another thread (seccomp(2),
//! seccomp_unotify(2)). Nothing is refused: the supervisor takes note and lets the call go on, so
//! the thread can set up before and tear down after what is watched.

use std::ffi::{c_int, c_uint, c_ulong, c_void};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Reports all system calls of the calling thread, until it ends, to the reader of the returned
/// descriptor. Other threads are not affected.
///
/// # Errors
/// The kernel's error number. Needs Linux 5.8, and no other such listener on the thread.
pub(crate) fn install() -> Result<c_int, c_int> {
    let mut program = [libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_USER_NOTIF,
    }];
    let program = libc::sock_fprog {
        len: 1,
        filter: program.as_mut_ptr(),
    };
    let (one, zero): (c_ulong, c_ulong) = (1, 0);
    // SAFETY: no pointers. Without privileges to be gained, a filter needs no privilege.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, zero, zero, zero) } != 0 {
        return Err(errno());
    }
    // SAFETY: the kernel copies the program, which lives until the call returns.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER as c_uint,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER as c_uint,
            &raw const program,
        )
    };
    if fd < 0 {
        Err(errno())
    } else {
        Ok(fd as c_int)
    }
}

/// Calls `seen` with the number of each system call of the thread that installed the filter, and
/// lets it go on; until that thread has ended. Takes the descriptor over.
///
/// `seen` must not wait for that thread: it is stopped in the middle of the call.
pub(crate) fn supervise(fd: c_int, mut seen: impl FnMut(i32)) {
    // SAFETY: `install` made the descriptor and gave it to this function only.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    loop {
        let mut poll = libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one structure, which lives until the call returns.
        let ready = unsafe { libc::poll(&raw mut poll, 1, -1) };
        if ready < 0 && errno() == libc::EINTR {
            continue;
        }
        if ready < 0 || poll.revents & libc::POLLIN == 0 {
            // Hung up: the thread has ended.
            return;
        }
        // SAFETY: integers only, for which zeroes are a value, and which the kernel wants to find.
        let mut call: libc::seccomp_notif = unsafe { mem::zeroed() };
        if !control(&fd, libc::SECCOMP_IOCTL_NOTIF_RECV, (&raw mut call).cast()) {
            // The thread was interrupted, and will be back with the same call.
            continue;
        }
        seen(call.data.nr);
        let mut answer = libc::seccomp_notif_resp {
            id: call.id,
            val: 0,
            error: 0,
            flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        };
        // If it fails, the thread was interrupted: as above.
        control(
            &fd,
            libc::SECCOMP_IOCTL_NOTIF_SEND,
            (&raw mut answer).cast(),
        );
    }
}

/// An ioctl whose argument is the structure that belongs to the request.
fn control(fd: &OwnedFd, request: libc::Ioctl, argument: *mut c_void) -> bool {
    // SAFETY: both callers pass the request's own structure (seccomp_unotify(2)), which lives until
    // the call returns.
    unsafe { libc::ioctl(fd.as_raw_fd(), request, argument) == 0 }
}

fn errno() -> c_int {
    io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EINVAL)
}
