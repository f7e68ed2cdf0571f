//! Mempool operations for shadow mbufs: DPDK takes buffers from the pool and returns them.
//!
//! DPDK calls them on any thread, for many buffers at a time: it caches some for each of its
//! threads ([`known_to_dpdk`]), as it does for its own mempools.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uint, c_void};

use pollux_dpdk_sys as dpdk;

use super::shadow::{NAME, ShadowMbufs};

/// Registration of a thread with DPDK, whose mempools then cache buffers for it, so that the
/// operations here are called now and then and not for each frame.
struct Registration {
    /// Whether this crate must end it.
    ours: bool,
}

impl Registration {
    fn new() -> Self {
        // SAFETY: reads a thread-local number. EAL runs, since a device was started.
        let is_known = unsafe { dpdk::rte_lcore_id() } != dpdk::LCORE_ID_ANY;
        // SAFETY: a thread that DPDK does not know; EAL runs. The call fails if DPDK has the
        // maximum number of threads: such a thread then uses the pool's shared free list for each
        // buffer.
        let ours = !is_known && unsafe { dpdk::rte_thread_register() } == 0;
        Self { ours }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.ours {
            // SAFETY: this thread was registered above; the next thread gets its number, with the
            // buffers that are cached under it.
            unsafe { dpdk::rte_thread_unregister() };
        }
    }
}

thread_local! {
    static REGISTRATION: Registration = Registration::new();
    static KNOWN: Cell<bool> = const { Cell::new(false) };
}

/// Registers the calling thread with DPDK, at its first poll.
#[inline(always)]
pub(super) fn known_to_dpdk() {
    if !KNOWN.get() {
        register();
    }
}

#[cold]
fn register() {
    // A thread that is ending can no longer be registered, and need not be.
    let _ = REGISTRATION.try_with(|_| ());
    KNOWN.set(true);
}

/// The operations of all mempools of shadow mbufs.
pub(super) static OPERATIONS: dpdk::rte_mempool_ops = {
    let mut name = [0; 32];
    let mut i = 0;
    while i < NAME.count_bytes() {
        name[i] = NAME.to_bytes()[i] as c_char;
        i += 1;
    }
    dpdk::rte_mempool_ops {
        name,
        alloc: Some(create),
        free: Some(destroy),
        enqueue: Some(enqueue),
        dequeue: Some(dequeue),
        get_count: Some(count),
        calc_mem_size: None,
        populate: None,
        get_info: None,
        dequeue_contig_blocks: None,
    }
};

unsafe extern "C" fn create(_mempool: *mut dpdk::rte_mempool) -> c_int {
    0
}

unsafe extern "C" fn destroy(_mempool: *mut dpdk::rte_mempool) {}

/// The shadows of a mempool; `None` while it is being populated or freed.
///
/// # Safety
/// `mempool` is a mempool of shadow mbufs.
unsafe fn shadows_of<'a>(mempool: *const dpdk::rte_mempool) -> Option<&'a ShadowMbufs> {
    // SAFETY: `populate` stored the pointer; the mempool is freed before its shadows.
    unsafe {
        (*mempool)
            .__bindgen_anon_1
            .pool_data
            .cast::<ShadowMbufs>()
            .as_ref()
    }
}

/// DPDK frees buffers.
unsafe extern "C" fn enqueue(
    mempool: *mut dpdk::rte_mempool,
    objects: *const *mut c_void,
    n: c_uint,
) -> c_int {
    // SAFETY: DPDK calls the operations of a mempool with that mempool, and passes as many elements
    // of it as `n` says, which it does not use any more.
    unsafe {
        if let Some(shadows) = shadows_of(mempool) {
            shadows.take_back(std::slice::from_raw_parts(objects, n as usize));
        }
    }
    0
}

/// DPDK takes `n` buffers, or none.
unsafe extern "C" fn dequeue(
    mempool: *mut dpdk::rte_mempool,
    objects: *mut *mut c_void,
    n: c_uint,
) -> c_int {
    // SAFETY: as in `enqueue`; there is space for `n` elements, in DPDK's own array of pointers.
    let lent = unsafe {
        shadows_of(mempool).is_some_and(|shadows| {
            shadows.lend(std::slice::from_raw_parts_mut(objects.cast(), n as usize))
        })
    };
    if lent { 0 } else { -libc::ENOBUFS }
}

unsafe extern "C" fn count(mempool: *const dpdk::rte_mempool) -> c_uint {
    // SAFETY: as in `enqueue`.
    unsafe { shadows_of(mempool) }.map_or(0, |shadows| shadows.pool().available() as c_uint)
}
