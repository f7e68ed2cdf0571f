//! DPDK's environment (EAL) in this process, and its errors.

use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pollux_dpdk_sys as dpdk;

/// State of EAL in this process.
pub(super) enum State {
    Untried,
    Running {
        /// The arguments of its start; `None` if the program has started it by itself.
        arguments: Option<Vec<String>>,
    },
    /// EAL can be started only once: a failed start is not cleaned up.
    Failed(String),
}

pub(super) static STATE: Mutex<State> = Mutex::new(State::Untried);

/// Proof that EAL runs, and that no other code of this crate performs DPDK set-up concurrently:
/// DPDK's set-up functions are not thread-safe.
pub(super) struct Eal(#[expect(dead_code, reason = "held")] pub(super) MutexGuard<'static, State>);

/// Text of DPDK's last error on this thread.
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

/// EAL again, for callers that have a device, which proves that it runs.
pub(super) fn lock() -> Eal {
    Eal(STATE.lock().unwrap_or_else(PoisonError::into_inner))
}
