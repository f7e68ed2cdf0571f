//! The operations of a mempool of twins: how DPDK takes buffers from our pool and gives them back.
//!
//! DPDK calls them on any thread, for many buffers at a time: it keeps some for each of its threads
//! ([`known_to_dpdk`]), as it does for its own mempools.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uint, c_void};

use pollux_dpdk_sys as dpdk;

use super::twins::{NAME, Twins};

/// A thread that DPDK knows: its mempools keep buffers for it, so that the operations here are
/// called once in a while and not for each frame.
struct Registration {
    /// Whether it is ours to end.
    ours: bool,
}

impl Registration {
    fn new() -> Self {
        // SAFETY: reads a thread-local number. EAL runs, since a device was started.
        let is_known = unsafe { dpdk::rte_lcore_id() } != dpdk::LCORE_ID_ANY;
        // SAFETY: a thread that DPDK does not know; EAL runs. Refused where DPDK knows as many
        // threads as it can: such a thread goes to the pool's depot for each buffer.
        let ours = !is_known && unsafe { dpdk::rte_thread_register() } == 0;
        Self { ours }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.ours {
            // SAFETY: this thread was registered above; its number is given to the next one, with
            // the buffers that are kept under it.
            unsafe { dpdk::rte_thread_unregister() };
        }
    }
}

thread_local! {
    static REGISTRATION: Registration = Registration::new();
    static KNOWN: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread known to DPDK, the first time that it polls.
#[inline(always)]
pub(super) fn known_to_dpdk() {
    if !KNOWN.get() {
        register();
    }
}

#[cold]
fn register() {
    // While the thread ends it cannot be registered any more, and need not be.
    let _ = REGISTRATION.try_with(|_| ());
    KNOWN.set(true);
}

/// The operations of all mempools of twins.
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

/// The twins behind a mempool; `None` while it is being populated or freed.
///
/// # Safety
/// `mempool` is one of ours.
unsafe fn twins_of<'a>(mempool: *const dpdk::rte_mempool) -> Option<&'a Twins> {
    // SAFETY: `populate` put this there; the mempool is gone before its twins are.
    unsafe {
        (*mempool)
            .__bindgen_anon_1
            .pool_data
            .cast::<Twins>()
            .as_ref()
    }
}

/// DPDK frees buffers.
unsafe extern "C" fn enqueue(
    mempool: *mut dpdk::rte_mempool,
    objects: *const *mut c_void,
    n: c_uint,
) -> c_int {
    // SAFETY: DPDK calls the operations of a mempool with that mempool, and gives as many elements
    // of it as it says, which it has no more.
    unsafe {
        if let Some(twins) = twins_of(mempool) {
            twins.take_back(std::slice::from_raw_parts(objects, n as usize));
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
    // SAFETY: as in `enqueue`; there is room for `n` elements, in DPDK's own array of pointers.
    let lent = unsafe {
        twins_of(mempool).is_some_and(|twins| {
            twins.lend(std::slice::from_raw_parts_mut(objects.cast(), n as usize))
        })
    };
    if lent { 0 } else { -libc::ENOBUFS }
}

unsafe extern "C" fn count(mempool: *const dpdk::rte_mempool) -> c_uint {
    // SAFETY: as in `enqueue`.
    unsafe { twins_of(mempool) }.map_or(0, |twins| twins.pool().available() as c_uint)
}
