//! DPDK's environment (EAL) in this process, and its errors.

use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pollux_dpdk_sys as dpdk;

/// What has become of EAL in this process.
pub(super) enum State {
    Untried,
    Running {
        /// As they were chosen or given; none if the program has started it by itself.
        arguments: Option<Vec<String>>,
    },
    /// It can be tried once only: what it left behind is not cleaned up.
    Failed(String),
}

pub(super) static STATE: Mutex<State> = Mutex::new(State::Untried);

/// EAL runs, and nobody else of this crate sets anything up in DPDK meanwhile: its functions for
/// set-up may not be called by two threads at once.
pub(super) struct Eal(#[expect(dead_code, reason = "held")] pub(super) MutexGuard<'static, State>);

/// What DPDK says about its last failure on this thread.
pub(super) fn error_of(what: &str) -> String {
    // SAFETY: reads a thread-local number.
    format!("{what}: {}", text_of(unsafe { dpdk::dpdk_errno() }))
}

/// DPDK's text for an error number, of either sign.
pub(super) fn text_of(error: i32) -> String {
    // SAFETY: the text is static or thread-local, and copied at once.
    let text = unsafe { CStr::from_ptr(dpdk::rte_strerror(error.abs())) };
    text.to_string_lossy().into_owned()
}

/// EAL again, for whoever has a device and so knows that it runs.
pub(super) fn lock() -> Eal {
    Eal(STATE.lock().unwrap_or_else(PoisonError::into_inner))
}
